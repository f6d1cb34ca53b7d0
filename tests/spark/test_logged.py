"""States as logs: whoever answers a micro-batch, and whatever it remembers, answers are those of the embedded engine; entries
leave the store. Spark is played by lists (cluster.py)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from cluster import Cluster
from hypothesis import given
from hypothesis import strategies as st
from shard_cases import Case, cases, expected, seen, tasks_of

import skyband as sb
from skyband.errors import StateError
from skyband.spark import logged
from skyband.spark import plan as planning
from skyband.spark.group import Group
from skyband.spark.kept import Kept
from skyband.spark.logged import Log, is_logged
from skyband.state import unpack


@pytest.fixture(autouse=True)
def every_score_is_one_of_many(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "MANY", 0)
        patch.setattr("skyband.spark.shards.MANY", 1)
        patch.setattr("skyband.spark.shards.CROWD", 1)
        yield


ungrouped = cases(("time", "count"), ("ranked", "pairs"), arrival=True).filter(lambda case: not case.grouped)


@given(
    ungrouped, st.lists(st.integers(0, 2), min_size=8, max_size=8), st.sampled_from([0, 1, 5]), st.sampled_from([60, 1 << 26])
)
def test_workers_that_remember_what_was_long_ago_go_on_where_the_log_ends(
    case: Case, workers: list[int], times: int, most_bytes: int
) -> None:
    """Each micro-batch is answered by one of two workers with memories of their own, or by a new one; entries are dropped
    soon or late, and lie in one value or in many."""
    plan = case.plan
    memories: list[Kept[Group]] = [Kept(), Kept()]
    cluster = Cluster(plan)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("TIMES", times), ("LEAST_BYTES", 0), ("MOST_ENTRIES", 3), ("MOST_BYTES", most_bytes)):
            patch.setattr(logged, name, value)
        for number, batch in enumerate(sorted(set(case.batches))):
            worker = workers[number % len(workers)]
            patch.setattr(logged, "remembered", memories[worker] if worker < 2 else Kept())
            cluster.batch(tasks_of(case, plan, batch))
        cluster.batch([])
    if is_logged(plan):
        assert not cluster.store
    assert seen(case, cluster.results) == expected(case, plan, plan.scale.time(cluster.watermark))


def stream(count: int, batches: int) -> Case:
    """Rows one after another, and 70 linear queries."""
    generator = np.random.default_rng(count)
    row = {"g": "a", "object": "o", "stream": "r", "gone": None}
    rows = [{**row, "t": n, "id": n, "tie": n, "x": generator.random(), "y": generator.random()} for n in range(count)]
    window = sb.CountWindow(60, 10)
    queries = [sb.TopK(name=f"q{n}", k=3, score=sb.linear({"x": 1.0, "y": n / 7}), window=window) for n in range(5)]
    return Case(rows, [n * batches // count for n in range(count)], [n % 3 for n in range(count)], queries, 1)


def test_a_micro_batch_that_is_tried_again_changes_nothing() -> None:
    case = stream(200, 10)
    calm, troubled = Cluster(case.plan), Cluster(case.plan)
    for batch in range(10):
        calm.batch(tasks_of(case, case.plan, batch))
        logs, results = {key: one.copy() for key, one in troubled.logs.items()}, list(troubled.results)
        troubled.batch(tasks_of(case, case.plan, batch))
        troubled.logs, troubled.results = logs, results
        troubled.batch(tasks_of(case, case.plan, batch))
    assert calm.results == troubled.results and seen(case, calm.results) == expected(case, case.plan, 200)


def test_entries_leave_the_store_and_a_snapshot_is_seldom_written(monkeypatch: pytest.MonkeyPatch) -> None:
    case, snapshots = stream(1000, 100), 0
    monkeypatch.setattr(logged, "LEAST_BYTES", 0)
    cluster, values, sizes = Cluster(case.plan), [], []
    (address,) = case.plan.by_address
    for batch in range(100):
        cluster.batch(tasks_of(case, case.plan, batch))
        (own,) = (log for key, log in cluster.logs.items() if key[-1] == address)
        entries = Log(own, own).head().entries
        values.append(len(own.values))
        sizes.append(sum(map(len, own.values.values())))
        snapshots += len(entries) == 1
        assert set(own.values) == {number for one in entries for number in range(one.first, one.first + one.values)}
    assert max(values) <= logged.MOST_ENTRIES + 1
    assert max(sizes[50:]) <= 1.5 * max(sizes[10:50])
    assert 2 <= snapshots <= 100 / 4


def test_a_log_of_other_queries_and_a_damaged_one_are_refused() -> None:
    case = stream(200, 10)
    cluster = Cluster(case.plan)
    for batch in range(9):
        cluster.batch(tasks_of(case, case.plan, batch))
    other = stream(200, 10)
    other.queries.pop()
    with pytest.raises(StateError, match=r"query 'q4' is gone.*new checkpointLocation"):
        Cluster(other.plan, True, logs=cluster.logs).batch(tasks_of(other, other.plan, 9))
    (address,) = case.plan.by_address
    (own,) = (log for key, log in cluster.logs.items() if key[-1] == address)
    last = max(own.values)
    unpack("entry of a log", own.values[last])
    own.values[last] = own.values[last][:-1] + bytes([own.values[last][-1] ^ 1])
    with pytest.raises(StateError, match="damaged"):
        Cluster(case.plan, True, logs=cluster.logs).batch(tasks_of(case, case.plan, 9))


@pytest.mark.parametrize(("change", "says"), [(-1, "an older one"), (7, "a newer one")])
@pytest.mark.parametrize("part", ["head", "snapshot", "entry"])
def test_a_log_of_another_format_is_refused_with_what_to_do(part: str, change: int, says: str) -> None:
    case = stream(200, 10)
    cluster = Cluster(case.plan)
    for batch in range(9):
        cluster.batch(tasks_of(case, case.plan, batch))

    def other(data: bytes) -> bytes:
        return data[:8] + bytes([data[8] + change]) + data[9:]

    for own in cluster.logs.values():
        assert own.head is not None and len(own.values) > 1
        if part == "head":
            own.head = other(own.head)
        else:
            number = (min if part == "snapshot" else max)(own.values)
            own.values[number] = other(own.values[number])
    before = {key: one.copy() for key, one in cluster.logs.items()}
    with pytest.raises(StateError, match=rf"{says} than \d+.* go on with that one, or start with a new checkpointLocation"):
        Cluster(case.plan, True, logs=cluster.logs).batch(tasks_of(case, case.plan, 9))
    assert cluster.logs == before

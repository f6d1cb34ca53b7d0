"""The two Python steps against the meaning in plain Python, over a Spark of lists (cluster.py): any cut into
micro-batches and tasks, rows out of order and late, idle groups, states read back from their bytes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cluster import Cluster, as_counted, batch_answer, end_of, played
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from reference import Asked, Event, Reference
from skyband.errors import StateError
from skyband.spark import stateful
from skyband.spark.group import Group
from skyband.spark.memory import Memory
from skyband.spark.plan import Plan, make_request
from skyband.spark.tallies import Told, heard

SCHEMA = pa.schema([("t", pa.int64()), ("x", pa.float64()), ("g", pa.string()), ("id", pa.int64())])


@dataclass(frozen=True)
class Case:
    rows: list[dict[str, Any]]  # t, x, g, id, tie
    batches: list[int]  # of each row: its micro-batch
    tasks: list[int]  # and its task
    queries: list[sb.TopK]
    lateness: int
    grouped: bool
    arrival: bool


SCORES = st.one_of(st.sampled_from([0.0, 1.0, 2.0, -1.0, math.inf, -math.inf, math.nan]), st.floats(-3, 3, width=16), st.none())


@st.composite
def queries(draw: st.DrawFn, kinds: tuple[str, ...]) -> list[sb.TopK]:
    asked = []
    for number in range(draw(st.integers(1, 3))):
        slide = draw(st.integers(1, 7))
        size = slide + draw(st.integers(0, 12))
        kind = draw(st.sampled_from(kinds))
        asked.append(
            sb.TopK(
                name=f"q{number}",
                k=draw(st.integers(1, 4)),
                score="x",
                window=sb.TimeWindow(size, slide) if kind == "time" else sb.CountWindow(size, slide),
                order=draw(st.sampled_from(["desc", "asc"])),
                where=draw(st.sampled_from([None, "x > 0"])),
                emit=draw(st.sampled_from(["changes", "snapshots", "arrivals"])),
            )
        )
    return asked


@st.composite
def cases(draw: st.DrawFn, kinds: tuple[str, ...] = ("time",), arrival: bool | None = None) -> Case:
    count = draw(st.integers(1, 25))
    times = draw(st.lists(st.integers(0, 40) | st.none(), min_size=count, max_size=count))
    if draw(st.booleans()):
        times = sorted(times, key=lambda time: -1 if time is None else time)
    rows = [
        {
            "t": time,
            "x": draw(SCORES),
            "g": draw(st.sampled_from(["a", "b", None])),
            "id": number,
            "tie": draw(st.integers(-3, 3)) * 100 + number,
        }
        for number, time in enumerate(times)
    ]
    cuts = draw(st.lists(st.integers(0, count), max_size=5))
    by_arrival = draw(st.booleans()) if arrival is None else arrival
    if by_arrival:
        for row in rows:
            row["tie"] = row["id"]
    return Case(
        rows=rows,
        batches=[sum(place > cut for cut in cuts) for place in range(count)],
        tasks=draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)),
        queries=draw(queries(kinds)),
        lateness=draw(st.sampled_from([0, 3, 10])),
        grouped=draw(st.booleans()),
        arrival=by_arrival,
    )


def plan_of(case: Case) -> Plan:
    return make_request(
        SCHEMA, case.queries, "t", case.lateness, ["g"] if case.grouped else [], "id" if case.arrival else None
    ).plan


def handed_out(case: Case, plan: Plan, rows: list[dict[str, Any]]) -> list[pa.RecordBatch]:
    """What Catalyst hands to a task, in batches of three rows."""
    scores = {}
    for i, where in enumerate(dict.fromkeys(query.where for query in case.queries)):
        x = [math.nan if row["x"] is None else row["x"] for row in rows]
        scores[f"s{i}"] = pa.array([math.nan if where and not value > 0 else value for value in x], pa.float64())
        if where:
            scores[f"m{i}"] = pa.array([math.isnan(value) for value in x], pa.bool_())
    own = {f"c{i}": pa.array([row[name] for row in rows], SCHEMA.field(name).type) for i, name in enumerate(SCHEMA.names)}
    table = pa.table({**own, **scores, "tie": pa.array([row["tie"] for row in rows], pa.int64())})
    return table.to_batches(max_chunksize=3)


def tasks_of(case: Case, plan: Plan, batch: int | None = None) -> list[list[pa.RecordBatch]]:
    chosen = [number for number in range(len(case.rows)) if batch is None or case.batches[number] == batch]
    return [handed_out(case, plan, [case.rows[n] for n in chosen if case.tasks[n] == task]) for task in range(3)]


def asked_of(query: sb.TopK) -> Asked:
    where = None if query.where is None else lambda row: row["x"] is not None and row["x"] > 0
    kind = "time" if isinstance(query.window, sb.TimeWindow) else "count"
    return Asked(
        query.name, query.k, lambda row: row["x"], kind, query.window.size, query.window.slide, query.order, where, query.emit
    )


def position(event: Event) -> tuple[Any, ...]:
    return (event.query, event.window_end, event.event, event.rank, event.score, event.row["id"])


def expected(
    case: Case, plan: Plan, watermark: int | None
) -> tuple[dict[Any, list[tuple[Any, ...]]], dict[str, tuple[int, int]]]:
    """Per group the result rows up to `watermark` (None: batch, nothing is late), and per query late and null counts."""
    results: dict[Any, list[tuple[Any, ...]]] = {}
    counts: dict[str, tuple[int, int]] = {}
    for query in case.queries:
        accepted: dict[Any, list[dict[str, Any]]] = {}
        late = nulls = 0
        greatest = None
        for batch in sorted(set(case.batches)):
            rows = [row for row, own in zip(case.rows, case.batches, strict=True) if own == batch and row["t"] is not None]
            moved = 0 if greatest is None else (greatest - case.lateness) // plan.scale.tick * plan.scale.tick
            for row in rows:
                slide = query.window.slide if isinstance(query.window, sb.TimeWindow) else 1
                waits = isinstance(query.window, sb.TimeWindow) or not case.arrival
                if watermark is not None and waits and moved > 0 and (row["t"] // slide + 1) * slide <= moved:
                    late += 1
                    continue
                accepted.setdefault((row["g"],) if case.grouped else (), []).append({**row, "batch": batch})
                nulls += row["x"] is None or math.isnan(row["x"])
            greatest = max([row["t"] for row in rows] + ([] if greatest is None else [greatest]), default=None)
        counts[query.name] = (late, nulls)
        for group, rows in accepted.items():
            events: list[Event]
            if isinstance(query.window, sb.TimeWindow):
                reference = Reference([asked_of(query)], time="t")
                events = reference.push(sorted(rows, key=lambda row: (row["t"], row["tie"]))) + reference.flush()
                events = [event for event in events if watermark is None or event.window_end <= watermark]
            else:
                rows = as_counted(rows, case.arrival, watermark)
                events = Reference([asked_of(query)]).push(rows)
            results.setdefault(group, []).extend(position(event) for event in events)
    return {group: rows for group, rows in results.items() if rows}, counts


def seen(case: Case, rows: Any) -> dict[Any, list[tuple[Any, ...]]]:
    """Result rows per group, queries in the order they were asked, each query's in the order they came."""
    results: dict[Any, list[tuple[Any, ...]]] = {}
    order = [query.name for query in case.queries]
    for row in rows:
        end = end_of(row, case.queries)
        results.setdefault(row["group"], []).append((row["query"], end, row["event"], row["rank"], row["score"], row["c3"]))
    return {group: sorted(own, key=lambda row: order.index(row[0])) for group, own in results.items()}


def play(case: Case, forgetful: bool) -> tuple[Cluster, int]:
    plan = plan_of(case)
    return played(plan, forgetful, (tasks_of(case, plan, batch) for batch in sorted(set(case.batches))))


def late_and_nulls(case: Case, cluster: Cluster) -> dict[str, tuple[int, int]]:
    told = heard(cluster.told)
    results = Counter(row["query"] for row in cluster.results)
    assert {name: one.results for name, one in told.items() if one.results} == results
    return {query.name: told.get(query.name, Told(nulls=0))[:2] for query in case.queries}


@given(cases(), st.booleans())
def test_time_windows_equal_the_reference_for_any_cut_into_batches_and_tasks(case: Case, forgetful: bool) -> None:
    cluster, watermark = play(case, forgetful)
    results, counts = expected(case, cluster.plan, watermark)
    assert seen(case, cluster.results) == results
    assert late_and_nulls(case, cluster) == counts
    assert cluster.tallies["rows"] == len(case.rows)
    assert cluster.tallies["null_times"] == sum(row["t"] is None for row in case.rows)


@given(cases(kinds=("time", "count"), arrival=False), st.booleans())
def test_count_windows_count_rows_in_the_order_of_time(case: Case, forgetful: bool) -> None:
    cluster, watermark = play(case, forgetful)
    results, _ = expected(case, cluster.plan, watermark)
    assert seen(case, cluster.results) == results


@given(cases(kinds=("time", "count"), arrival=True), st.booleans())
def test_count_windows_with_an_arrival_column_count_at_once(case: Case, forgetful: bool) -> None:
    cluster, watermark = play(case, forgetful)
    results, _ = expected(case, cluster.plan, watermark)
    assert seen(case, cluster.results) == results


@given(cases(kinds=("time", "count")))
def test_a_batch_gives_every_window_of_its_rows(case: Case) -> None:
    plan = plan_of(case)
    results, _ = expected(case, plan, None)
    assert seen(case, batch_answer(plan, tasks_of(case, plan))) == results


# -- state -----------------------------------------------------------------------------------------------------


def simple(*queries: sb.TopK, rows: int = 200, step: int = 1) -> tuple[Case, Plan]:
    generator = np.random.default_rng(5)
    made = [{"t": n * step, "x": float(generator.random()), "g": "a", "id": n, "tie": n} for n in range(rows)]
    case = Case(made, [n // 10 for n in range(rows)], [n % 2 for n in range(rows)], list(queries), 0, False, False)
    return case, plan_of(case)


def query(name: str = "q", k: int = 2, size: int = 20, slide: int = 5, **more: Any) -> sb.TopK:
    return sb.TopK(name=name, k=k, score="x", window=sb.TimeWindow(size, slide), **more)


def test_a_groups_state_stays_as_small_as_its_window() -> None:
    case, plan = simple(query(), rows=2000)
    cluster = Cluster(plan)
    sizes = []
    for batch in sorted(set(case.batches)):
        cluster.batch(tasks_of(case, plan, batch))
        sizes.append(len(cluster.store[()].value[1]))
    assert max(sizes[len(sizes) // 2 :]) <= 1.2 * max(sizes[: len(sizes) // 2])


def test_a_group_that_has_gone_quiet_leaves_no_state() -> None:
    """But for that of nulls, which says what the checkpoint was written for."""
    case = Case(simple(query(), rows=20)[0].rows, [0] * 20, [0] * 20, [query()], 0, True, False)
    plan = plan_of(case)
    cluster = Cluster(plan)
    cluster.batch(tasks_of(case, plan, 0))
    assert set(cluster.store) == {(None,), ("a",)}
    later = Case([{"t": 500, "x": 1.0, "g": "b", "id": 0, "tie": 0}], [0], [0], case.queries, 0, True, False)
    cluster.batch(tasks_of(later, plan, 0))
    cluster.batch([])
    assert set(cluster.store) == {(None,), ("b",)}


@pytest.mark.parametrize("forgetful", [False, True])
def test_windows_of_the_group_of_nulls_come_once(forgetful: bool) -> None:
    """Its state is called in every micro-batch, and stays when all its windows have closed."""
    given = [(1, None), (20, "a"), (40, "a"), (60, None), (80, "a"), (100, "a")]
    rows = [{"t": t, "x": float(t), "g": g, "id": t, "tie": t} for t, g in given]
    case = Case(rows, list(range(6)), [0] * 6, [query(size=5, slide=5)], 0, True, False)
    cluster, watermark = play(case, forgetful)
    assert watermark == 100
    results, _ = expected(case, cluster.plan, watermark)
    assert seen(case, cluster.results) == results and len(results[None,]) == 4
    token, _ = cluster.store[None,].value
    cluster.batch([handed_out(case, cluster.plan, [{**rows[-1], "t": 120}])])
    assert cluster.store[None,].value[0] == token  # nothing is written while nothing is in it


@pytest.mark.parametrize("group", ["a", None])
@pytest.mark.parametrize("first", [1.0, math.nan])
def test_a_window_before_sparks_watermark_begins_comes_once(group: str | None, first: float) -> None:
    """It begins at 1970: what a group has closed before that, no one else knows."""
    query = sb.TopK(name="q", k=1, score="x", window=sb.TimeWindow("10 seconds", "10 seconds"))
    plan = make_request(SCHEMA.set(0, pa.field("t", pa.timestamp("us"))), [query], "t", 0, ["g"], None).plan
    cluster = Cluster(plan, forgetful=True)
    for number, (second, x) in enumerate([(-100, first), (-50, math.nan), (-100, 2.0), (-40, 3.0)]):
        columns = {"c0": [second * 10**6], "c1": [x], "c2": [group], "c3": [number], "s0": [x], "tie": [number]}
        types = [*plan.schema.types, pa.float64(), pa.int64()]
        arrays = [pa.array(values, kind) for values, kind in zip(columns.values(), types, strict=True)]
        cluster.batch([[pa.record_batch(arrays, names=list(columns))]])
    found = [(row["event"], row["score"]) for row in cluster.results]
    assert found == ([] if math.isnan(first) else [("enter", 1.0), ("leave", 1.0)])
    assert heard(cluster.told)["q"].late == 1


def test_a_slow_slide_does_not_pile_up_open_rows() -> None:
    case, plan = simple(query(size=10**6, slide=10**6), rows=30)
    group = Group(plan)
    for number in range(3000):
        piece = handed_out(case, plan, [{"t": number * 10 + i, "x": float(i), "g": "a", "id": i, "tie": i} for i in range(10)])
        rows = pa.Table.from_batches(piece)
        rows = pa.table(
            [rows["c0"], rows["tie"], rows["s0"], *(rows[f"c{i}"] for i in range(4))],
            names=["t", "tie", "s0", "c0", "c1", "c2", "c3"],
        )
        assert not list(group.add(rows, np.zeros((0, 4), np.int64)))
    assert sum(map(len, group.open)) < 20_000


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (lambda: [query(k=3)], "query 'q' changed"),
        (lambda: [query(), query("new")], "query 'new' is new"),
        (lambda: [query("other")], "query 'q' is gone"),
    ],
)
@pytest.mark.parametrize("forgetful", [True, False])
def test_a_state_of_other_queries_is_refused_and_says_what_changed(changed: Any, says: str, forgetful: bool) -> None:
    case, plan = simple(query())
    cluster = Cluster(plan)
    cluster.batch(tasks_of(case, plan, 0))
    other = Cluster(
        plan_of(Case(case.rows, case.batches, case.tasks, changed(), 0, False, False)), store=cluster.store, forgetful=forgetful
    )
    with pytest.raises(StateError, match=f"{says}.*new checkpointLocation"):
        other.batch(tasks_of(case, plan, 1))


def test_a_damaged_state_is_refused() -> None:
    _, plan = simple(query())
    data = bytearray(Group(plan).snapshot())
    data[-1] ^= 1
    with pytest.raises(StateError, match="damaged"):
        Group.restore(plan, bytes(data))


def test_a_worker_uses_what_it_remembers_only_if_the_store_agrees() -> None:
    """A task that fails after its answer was made runs again from the old state: the group in memory is too new."""
    case, plan = simple(query(emit="snapshots"))
    calm, troubled = Cluster(plan), Cluster(plan)
    stateful.remembered.clear()
    for batch in sorted(set(case.batches)):
        calm.batch(tasks_of(case, plan, batch))
        store, greatest, results = dict(troubled.store), troubled.greatest, list(troubled.results)
        troubled.batch(tasks_of(case, plan, batch))
        troubled.store, troubled.greatest, troubled.results = store, greatest, results
        troubled.batch(tasks_of(case, plan, batch))
    assert calm.results == troubled.results


def test_what_a_task_holds_is_bounded_and_the_answer_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    case, plan = simple(query(), rows=400)
    whole = seen(case, batch_answer(plan, tasks_of(case, plan)))
    monkeypatch.setattr("skyband.spark.reduce.MOST_HELD", 10)
    monkeypatch.setattr("skyband.spark.packets.MOST_BYTES", 500)
    monkeypatch.setattr("skyband.spark.reduce.MOST_ROWS", 3)
    assert seen(case, batch_answer(plan, tasks_of(case, plan))) == whole


@pytest.mark.parametrize("far", [10**17, -(10**17), (1 << 63) - 1, -(1 << 63)])
def test_a_time_too_far_for_sparks_watermark_is_counted_and_left_out(far: int) -> None:
    """One poisoned row neither ends the stream nor moves its windows."""
    case, plan = simple(query(slide=5), rows=60)
    case.rows[33]["x"] = 9.0  # it would rank
    clean = Cluster(plan)
    poisoned = Cluster(plan)
    for batch in range(6):
        clean.batch(tasks_of(case, plan, batch))
    case.rows[33]["t"] = far
    for batch in range(6):
        poisoned.batch(tasks_of(case, plan, batch))
    assert (poisoned.tallies["rows"], poisoned.tallies["null_times"]) == (60, 1)
    assert poisoned.watermark == clean.watermark > 0
    del case.rows[33], case.batches[33], case.tasks[33]
    without = Cluster(plan)
    for batch in range(6):
        without.batch(tasks_of(case, plan, batch))
    assert seen(case, poisoned.results) == seen(case, without.results) != seen(case, clean.results)


def test_a_worker_knows_how_many_bytes_it_remembers() -> None:
    """What a snapshot takes on disk says little of it: of scores that are all alike it is a tenth."""
    plan = plan_of(Case([], [], [], [query(k=500, size=500)], 0, False, False))
    rows = [{"t": n, "x": 1.0, "g": "a", "id": n, "tie": n} for n in range(1000)]
    cluster = Cluster(plan)
    stateful.remembered.clear()
    cluster.batch([handed_out(Case(rows, [0] * 1000, [0] * 1000, [query()], 0, False, False), plan, rows)])
    ((group, size),) = stateful.remembered.memory._held.values()
    lanes = [lane for monitor in group.monitors if monitor is not None for lane in monitor._lanes]
    held = sum(lane.nbytes for lane in lanes) + sum(monitor._store.nbytes for monitor in group.monitors if monitor is not None)
    assert 3 * len(cluster.store[()].value[1]) < held < 2 * size


def test_a_worker_remembers_a_bounded_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    _, plan = simple(query())
    monkeypatch.setattr("skyband.spark.memory._MOST_REMEMBERED", 100)
    memory: Memory[Group] = Memory()
    groups = [Group(plan) for _ in range(3)]
    for number, group in enumerate(groups):
        memory.put(bytes([number]), group, 40)
    assert memory.take(b"\x00") is None
    assert memory.take(b"\x02") is groups[2] and memory.take(b"\x02") is None
    memory.put(b"new", groups[0], 60)
    assert memory.take(b"\x01") is groups[1] and memory.take(b"new") is groups[0]

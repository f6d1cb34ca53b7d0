"""Times in Spark's watermark: what it holds of them is never ahead of them, and integers of any unit are times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cluster import batch_answer, played
from hypothesis import given
from hypothesis import strategies as st
from shard_cases import Case, check

import skyband as sb
from skyband.errors import SchemaError
from skyband.spark.control.terms import make_terms
from skyband.spark.control.travel import packed_rows
from skyband.spark.plan import make_request
from skyband.spark.stream import Stream
from skyband.spark.watermark import Scale, bent, straight

TIMES = st.one_of(st.integers(-(1 << 62), 1 << 62), st.integers(-50, 50), st.integers(40, 62).map(lambda bits: (1 << bits) - 1))
SCHEMA = pa.schema([("t", pa.int64()), ("x", pa.float64())])
UNITS = {"seconds": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
EPOCH = 1_700_000_000


@given(TIMES, TIMES)
def test_a_larger_number_is_never_held_as_a_smaller_one(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert bent(low) <= bent(high) < (1 << 63) // 10**6
    if high >= 0:
        assert 0 <= high - straight(bent(high)) <= high >> 37


@given(st.integers(0, 1 << 62), st.sampled_from([1, 7, 1000]), st.booleans())
def test_a_window_ends_when_the_watermark_first_reaches_it(end: int, tick: int, integer: bool) -> None:
    scale = Scale(tick, integer=integer)
    first = scale.reached(end)
    assert scale.time(first) >= end > scale.time(first - 1)


def rows_of(unit: int, rows: int = 40) -> pa.Table:
    """One a second, some a second too late."""
    place = np.arange(rows)
    time = (EPOCH + place - (place % 5 == 4)) * unit
    return pa.table({"c0": time, "c1": (place * 7 % 11).astype(float), "tie": place})


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("window", ["count", "time"])
@pytest.mark.parametrize("lateness", [0, 1])
def test_integers_of_any_unit_are_times(unit: int, window: str, lateness: int) -> None:
    """Windows of rows by time have no slide, and a lateness of one unit no divisor in common with one."""
    shape = sb.CountWindow(5) if window == "count" else sb.TimeWindow(10 * unit, 2 * unit)
    query = sb.TopK(name="q", k=2, score="x", window=shape)
    plan = make_request(SCHEMA, [query], "t", unit + lateness, [], None).plan
    rows = rows_of(unit)
    cluster, watermark = played(plan, True, ([rows.slice(at, 8).to_batches()] for at in range(0, 40, 8)))
    true = int(rows["c0"].to_numpy().max()) - unit - lateness
    assert true - 2 * unit <= watermark <= true and (window == "time" or true - watermark <= true >> 37)
    embedded = sb.Monitor([query], time="t", lateness=0)
    ordered = rows.rename_columns(["t", "x", "id"]).sort_by([("t", "ascending"), ("id", "ascending")])
    passed = ordered.filter(pa.compute.less(ordered["t"], watermark))
    found = embedded.push(passed if window == "count" else ordered).to_pylist()
    found = [row for row in found if window == "count" or row["window_end"] <= watermark]
    names = ("window_end", "event", "rank", "score")
    assert [[row[name] for name in names] for row in cluster.results] == [[row[name] for name in names] for row in found] != []
    assert cluster.tallies["null_times"] == 0
    whole = embedded.push(ordered.slice(0, 0)).to_pylist() if window == "time" else None
    assert whole is None or len(list(batch_answer(plan, [rows.to_batches()]))) >= len(found)


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_integers_of_any_unit_are_times_where_no_query_is_known_yet(unit: int) -> None:
    terms = make_terms(SCHEMA, [], Stream("t"), dated=False)
    rows = rows_of(unit).append_column("bucket", pa.array(np.zeros(40, np.int32)))
    packets = pa.Table.from_batches(packed_rows(terms, rows.to_batches()))
    assert sum(packets["null_times"].to_pylist()) == 0
    mark = max(one for one in packets["mark"].cast(pa.int64()).to_pylist() if one is not None) // 1000
    latest = (EPOCH + 38) * unit
    assert 0 <= latest - terms.scale.time(mark) <= latest >> 37


def test_a_task_whose_times_no_window_can_follow_says_so() -> None:
    """Nanoseconds, and windows of fifty of them; a few such rows are only counted."""
    query = sb.TopK(name="q", k=1, score="x", window=sb.TimeWindow(50, 50))
    plan = make_request(SCHEMA, [query], "t", 0, [], None).plan
    far = rows_of(10**9, 100)
    with pytest.raises(SchemaError, match=r"all times of 100 rows, such as 1700000\d+, .* timestamp_micros"):
        played(plan, True, [[far.to_batches()]])
    with pytest.raises(SchemaError, match="make the slide longer"):
        list(batch_answer(plan, [far.to_batches()]))
    near = far.set_column(0, "c0", pa.array(np.arange(100)))
    for rows in (far.slice(0, 99), pa.concat_tables([far, near.slice(0, 1)])):
        cluster, _ = played(plan, True, [[rows.to_batches()]])
        assert cluster.tallies["null_times"] in (99, 100)


@pytest.mark.parametrize("far", [(1 << 62) + 1, (1 << 63) - 1, -(1 << 63)])
def test_one_row_beyond_all_units_is_counted_where_rows_are(far: int) -> None:
    query = sb.TopK(name="q", k=2, score="x", window=sb.CountWindow(5))
    plan = make_request(SCHEMA, [query], "t", 0, [], None).plan
    rows = rows_of(10**6)
    times = rows["c0"].to_numpy().copy()
    times[7] = far
    clean, _ = played(plan, True, [[pa.concat_tables([rows.slice(0, 7), rows.slice(8)]).to_batches()]])
    poisoned, _ = played(plan, True, [[rows.set_column(0, "c0", pa.array(times)).to_batches()]])
    assert poisoned.tallies["null_times"] == 1 and poisoned.results == clean.results != []


def test_a_lateness_may_change_without_a_word_to_the_checkpoint() -> None:
    """What the watermark in a checkpoint stands for does not depend on it."""
    query = sb.TopK(name="q", k=2, score="x", window=sb.TimeWindow(1000, 500))
    one, other = (make_request(SCHEMA, [query], "t", lateness, [], None).plan for lateness in (500, 7))
    assert one.scale.tick == other.scale.tick == 500 and one.marks == other.marks


@given(st.sampled_from([0, -1, -45, -(10**12)]), st.booleans(), st.data())
def test_it_does_not_matter_where_integers_begin(begin: int, forgetful: bool, data: Any) -> None:
    """Groups wait for each other about zero and before it, too."""
    schema = pa.schema([*SCHEMA, ("g", pa.string())])
    query = sb.TopK(name="q", k=2, score="x", window=sb.TimeWindow(12, 5))
    plan = make_request(schema, [query], "t", 3, ["g"], None).plan
    row = st.tuples(st.integers(0, 40), st.sampled_from([1.0, 2.0, np.nan]), st.sampled_from("ab"))
    batches = data.draw(st.lists(st.lists(row, max_size=4), max_size=5))

    def answered(shift: int) -> list[tuple[Any, ...]]:
        def task(rows: list[tuple[int, float, str]]) -> list[pa.RecordBatch]:
            columns = {"c0": [t + shift for t, _, _ in rows], "c1": [x for _, x, _ in rows], "c2": [g for _, _, g in rows]}
            tie = pa.array(range(len(rows)), pa.int64())
            return pa.table({**columns, "tie": tie}).cast(pa.schema([*plan.schema, ("tie", pa.int64())])).to_batches()

        cluster, _ = played(plan, forgetful, ([task(rows)] for rows in batches if rows))
        names = ("event", "rank", "score", "group")
        return sorted((result["window_end"] - shift, *map(str, map(result.get, names))) for result in cluster.results)

    assert answered(begin * 5) == answered(10**6 * 5)


@given(st.integers(0, 4000), st.booleans(), st.data())
def test_groups_wait_for_each_other_where_steps_are_longer_than_windows(far: int, counts: bool, data: Any) -> None:
    """Beyond 64 the watermark counts a doubling in 4 steps: rows in time stay so, and come out when it has passed them."""
    times = sorted(data.draw(st.lists(st.integers(0, 300), min_size=1, max_size=20)))
    row = {"y": 0.0, "object": "o", "stream": "r", "gone": False}
    rows = [{**row, "t": far + t, "x": float(n % 4), "g": "ab"[n % 2], "id": n, "tie": n} for n, t in enumerate(times)]
    batches = sorted(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))))
    queries = [sb.TopK(name="q", k=2, score="x", window=sb.TimeWindow(6, 3))]
    queries += [sb.TopK(name="r", k=2, score="x", window=sb.CountWindow(4))] if counts else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skyband.spark.watermark._STRAIGHT", 6)
        patch.setattr("skyband.spark.watermark._STEPS", 2)
        for grouped in (False, True):
            check(Case(rows, batches, [0] * len(rows), queries, 1, grouped=grouped, arrival=False), forgetful=True)

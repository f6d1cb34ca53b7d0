"""Every kind of query through the shards, against the embedded Monitor: any cut into micro-batches and tasks, any number of
shards, rows out of order and late, idle groups, states read back from their bytes. Spark is played by lists (cluster.py)."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cluster import Cluster, batch_answer
from hypothesis import given
from hypothesis import strategies as st
from killable_kinds import MIXED
from shard_cases import SCHEMA, STREAMS, Case, as_table, cases, check, expected, play, seen, tasks_of
from states import single

import skyband as sb
from skyband.errors import QueryError, SchemaError, StateError
from skyband.lanes import NEVER
from skyband.monitor import Monitor
from skyband.spark import plan as planning
from skyband.spark import stateful
from skyband.spark.group import Group
from skyband.spark.plan import make_request
from skyband.spark.reduce import reduced
from skyband.spark.shard_group import ShardGroup
from skyband.spark.shards import MANY, spark_hash
from skyband.spark.tallies import heard
from skyband.spark.warm import warm
from skyband.state import table_from_bytes, table_to_bytes

# -- the kinds ---------------------------------------------------------------------------------------------------


@given(st.booleans().flatmap(lambda arrival: cases(("time", "count"), ("pairs",), arrival)), st.booleans())
def test_pairs_in_blocks_equal_the_embedded_engine(case: Case, forgetful: bool) -> None:
    check(case, forgetful)


@given(st.booleans().flatmap(lambda arrival: cases(("time", "count"), ("across",), arrival)), st.booleans())
def test_objects_by_key_equal_the_embedded_engine(case: Case, forgetful: bool) -> None:
    check(case, forgetful)


@given(cases(("time", "count"), ("ranked",), arrival=True), st.booleans())
def test_many_scores_are_answered_over_the_columns_themselves(case: Case, forgetful: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "MANY", 0)
        patch.setattr("skyband.spark.shards.MANY", 1)
        patch.setattr("skyband.spark.shards.CROWD", 1)
        assert all(not pace.queries for pace in case.plan.paces)
        check(case, forgetful)


@given(cases(("time", "count"), ("ranked", "pairs", "across"), arrival=False), st.booleans())
def test_all_kinds_at_once(case: Case, forgetful: bool) -> None:
    check(case, forgetful)


def test_a_shard_that_counts_rows_and_waits_for_time_may_be_sent_places_alone() -> None:
    """One block of the pair space has no row: its shard hears of all rows and holds none."""
    row = {"x": 1.0, "y": 0.0, "g": "a", "object": "o", "stream": "r", "gone": None}
    queries = [
        sb.TopKPairs(name="counted", k=1, score="a.x - b.x", window=sb.CountWindow(4, 2)),
        sb.TopKPairs(name="timed", k=1, score="a.x - b.x", window=sb.TimeWindow(4, 2)),
    ]
    check(Case([{**row, "t": 1, "id": n, "tie": n} for n in range(2)], [0, 0], [0, 0], queries, 5), forgetful=True)


@pytest.mark.parametrize("most", [1, 200, 1000])
def test_results_that_travel_in_slices_are_the_same(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr("skyband.spark.packets.MOST_BYTES", most)
    monkeypatch.setattr(stateful, "MOST_PACKETS", 2)
    monkeypatch.setattr(stateful, "MOST_RESULTS", 5)
    monkeypatch.setattr("skyband.spark.group.TOGETHER", 3)
    queries = [
        sb.TopK(name="rows", k=3, score="x", window=sb.CountWindow(4)),
        sb.TopK(name="timed", k=3, score="x", window=sb.TimeWindow(4, 2)),
        sb.TopKPairs(name="pairs", k=2, score="abs(a.x - b.x)", window=sb.CountWindow(4, 2)),
    ]
    row = {"y": 0.0, "g": "a", "object": "o", "stream": "r", "gone": False}
    rows = [{**row, "t": n, "x": float(n * 7 % 5), "id": n, "tie": n} for n in range(12)]
    check(Case(rows, [n // 6 for n in range(12)], [0] * 12, queries, 2), forgetful=True)


def test_result_rows_are_handed_on_before_all_of_a_micro_batch_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of queries give more of them than memory holds; the state is written when the last have gone."""
    monkeypatch.setattr(stateful, "MOST_RESULTS", 8)
    monkeypatch.setattr("skyband.spark.group.TOGETHER", 2)
    schema = pa.schema([("t", pa.int64()), ("x", pa.float64())])
    query = sb.TopK(name="q", k=3, score="x", window=sb.TimeWindow(10, 1), emit="snapshots")
    plan = make_request(schema, [query], "t", 0, [], None).plan
    rows = pa.record_batch([pa.array(np.arange(100) * one) for one in (1, 1.0, 1)], ["c0", "c1", "tie"])
    lines = pa.Table.from_batches(list(reduced(plan, [rows]))).to_pylist()
    given = stateful.Given(NEVER, [one["rows"] for one in lines if one["rows"]], 99, np.zeros((0, 3 + plan.slots), np.int64))
    group, written = Group(plan), []
    frames = stateful.answers(plan, group, given, (0,), lambda: written.append(group.closed) or 7)
    closed = [int(group.closed[0]) for frame in frames if len(frame) and not written]
    found = stateful.answers(plan, Group(plan), given, (0,), lambda: 7)
    told = [one for frame in found for one in frame["told"] if one is not None]
    assert len(closed) > 10 and set(closed) == {NEVER} and written == [[99]]
    assert heard(told)["q"].results == 3 * 99 - 3


def test_where_a_micro_batch_ends_matters_only_to_rows_later_than_the_lateness() -> None:
    """Rows of times 0, 30, then 26 (within 5 of the greatest) and 8 (not): the last counts only beside what it is behind of."""
    schema = pa.schema([("t", pa.int64()), ("x", pa.float64())])
    query = sb.TopK(name="q", k=3, score="x", window=sb.TimeWindow(10, 10), emit="snapshots")
    plan = make_request(schema, [query], "t", 5, [], None).plan
    rows = pa.record_batch([pa.array([0, 30, 26, 8, 99]), pa.array([1.0, 2.0, 3.0, 4.0, 5.0])], names=["c0", "c1"])
    rows = rows.append_column("tie", pa.array([0, 1, 2, 3, 4]))

    def counted(*cuts: int) -> tuple[list[int], int]:
        cluster = Cluster(plan)
        for begin, end in pairwise((0, *cuts, 5)):
            cluster.batch([[rows.slice(begin, end - begin)]])
        return sorted(row["c0"] for row in cluster.results), sum(one.late for one in heard(cluster.told).values())

    assert counted() == counted(1) == counted(4) == ([0, 8, 26, 30], 0)
    assert counted(2) == counted(3) == counted(1, 2, 3, 4) == ([0, 26, 30], 1)


BEST = sb.TopK(name="q", k=1, score="x", window=sb.TimeWindow(1, 1))
CLOSEST = sb.TopKPairs(name="q", k=1, score="abs(a.x - b.x)", window=sb.TimeWindow(1, 1))


@pytest.mark.parametrize("window", [sb.TimeWindow(10, 5), sb.TimeWindow(40, 20)])
@pytest.mark.parametrize("query", [BEST, CLOSEST])
def test_a_window_that_ends_beyond_the_time_columns_type_is_refused_in_words(query: Any, window: sb.TimeWindow) -> None:
    schema = pa.schema([("t", pa.int32()), ("x", pa.float64())])
    plan = make_request(schema, [replace(query, window=window)], "t", 0, [], None).plan
    times, scores = pa.array([5, 6, 2**31 - 3, 2**31 - 2], pa.int32()), pa.array([2.0, 1.0, 3.0, 4.0])
    rows = pa.record_batch([times, scores, pa.array([0, 1, 2, 3])], names=["c0", "c1", "tie"])
    with pytest.raises(sb.SchemaError, match=r"bounds from .* the time column \(int32\) .* cast it to bigint"):
        list(batch_answer(plan, [[rows]]))
    early = list(batch_answer(plan, [[rows.slice(0, 2)]]))
    assert max(row["window_end"] for row in early) < 100


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC")])
def test_packets_are_put_in_the_order_of_arrival(kind: pa.DataType) -> None:
    schema = pa.schema([("n", kind), ("x", pa.float64())])
    many = [sb.TopK(name=f"q{n}", k=1, score=sb.linear({"x": n + 1.0}), window=sb.CountWindow(4)) for n in range(70)]
    plan = make_request(schema, many, None, 0, (), "n").plan
    sent = [
        table_to_bytes(pa.table([pa.array(n, pa.int64()).cast(kind), [0.0, 0.0]], names=["c0", "c1"]))
        for n in ([3, 4], [0, 2], [None, 7], [-5, -1])
    ]
    came = ShardGroup(plan, plan.shards[0]).rows_of(sent)
    assert came["tie"].to_pylist() == [-(1 << 63), 7, -5, -1, 0, 2, 3, 4]


# -- deletions ---------------------------------------------------------------------------------------------------


@st.composite
def keyed_cases(draw: st.DrawFn, kind: str, arrival: bool) -> Case:
    """Rows and deletions; some delete nothing, some rows have the key of a live one, or none."""
    case = draw(cases((kind,), ("ranked",), arrival))
    keys = st.integers(0, 12) | st.none()
    rows = [{**row, "gone": draw(st.sampled_from([False, False, True, None])), "id": draw(keys)} for row in case.rows]
    return replace(case, rows=rows, keyed=True, lateness=case.lateness if kind == "time" else 0)


@given(st.sampled_from(["time", "count"]).flatmap(lambda kind: keyed_cases(kind, arrival=False)), st.booleans())
def test_deletions_come_in_the_order_of_the_stream(case: Case, forgetful: bool) -> None:
    cluster, watermark = play(case, forgetful)
    assert seen(case, cluster.results) == expected(case, cluster.plan, watermark)
    assert seen(case, batch_answer(cluster.plan, tasks_of(case, cluster.plan))) == expected(case, cluster.plan, None)


def test_rows_whose_keys_cannot_be_taken_are_counted() -> None:
    rows = [
        {"t": t, "x": float(t), "y": 0.0, "g": "a", "id": key, "object": "o", "stream": "r", "gone": gone, "tie": t}
        for t, (key, gone) in enumerate([(1, False), (1, False), (None, False), (1, True), (1, False), (7, True), (None, True)])
    ]
    query = sb.TopK(name="q", k=2, score="x", window=sb.CountWindow(5))
    case = Case(rows, [0] * 7, [0] * 7, [query], 2, keyed=True, arrival=False)
    cluster, _ = play(case, forgetful=True)
    assert cluster.tallies["refused"] == 2
    assert [(event, who) for _, event, _, _, who in seen(case, cluster.results)[(), "q"]] == [
        ("enter", 1),
        ("leave", 1),
        ("enter", 1),
    ]


@pytest.mark.parametrize("forgetful", [False, True])
def test_a_key_may_come_again_once_its_windows_have_ended_however_far_other_groups_are(forgetful: bool) -> None:
    """Whatever the micro-batches, and the same in a batch: another group's rows may have moved the watermark in between."""
    same = {"y": 0.0, "object": "o", "stream": "r", "gone": False}
    came = [(0, "a", 1), (7, "a", 1), (20, "b", 5), (32, "a", 1), (33, "a", 2), (44, "a", 3), (90, "b", 6)]
    rows = [{**same, "t": t, "x": float(t), "g": group, "id": key, "tie": at} for at, (t, group, key) in enumerate(came)]
    query = sb.TopK(name="q", k=3, score="x", window=sb.TimeWindow(10, 5), emit="arrivals")
    for batches in ([0, 0, 0, 0, 0, 0, 0], [0, 0, 1, 2, 2, 2, 3], [0, 1, 2, 3, 4, 5, 6]):
        case = Case(rows, batches, [0] * 7, [query], 1, grouped=True, keyed=True, arrival=False)
        cluster, _ = play(case, forgetful)
        assert cluster.tallies["refused"] == 1  # that of 7, for windows that hold 0 end after it
        for results in (cluster.results, batch_answer(case.plan, tasks_of(case, case.plan))):
            arrived = [(end, score) for end, _, _, score, _ in seen(case, results)[("a",), "q"]]
            assert arrived == [(5, 0.0), (35, 33.0), (35, 32.0), (45, 44.0)]


def test_a_key_that_cannot_be_taken_does_not_make_every_row_a_push_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    same = {"x": 1.0, "y": 0.0, "g": "a", "object": "o", "stream": "r", "gone": False}
    rows = [{**same, "t": t, "id": t % 700, "tie": t} for t in range(702)]
    query = sb.TopK(name="q", k=2, score="x", window=sb.CountWindow(1000, 100))
    pushes: list[int] = []
    push = Monitor.push
    monkeypatch.setattr(Monitor, "push", lambda monitor, batch: pushes.append(len(batch)) or push(monitor, batch))
    cluster, _ = play(Case(rows, [0] * 702, [0] * 702, [query], 2, keyed=True, arrival=True), forgetful=True)
    assert cluster.tallies["refused"] == 2 and len(pushes) < 50


def test_windows_of_time_and_of_rows_have_no_deletions_in_common() -> None:
    windows = [sb.TimeWindow(6, 2), sb.CountWindow(4)]
    queries = [sb.TopK(name=f"q{n}", k=1, score="x", window=window) for n, window in enumerate(windows)]
    with pytest.raises(QueryError, match=r"'q0' and 'q1' one has windows of time .* a call of its own"):
        make_request(SCHEMA, queries, "t", 0, [], "id", key="id", deletes="gone")


# -- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "given", "error", "says"),
    [
        (sb.TopK(name="q", k=1, score="x", window=sb.CountWindow(5)), {"key": "id"}, QueryError, "deletes="),
        (sb.TopK(name="q", k=1, score="x", window=sb.CountWindow(5)), {"deletes": "gone"}, QueryError, "key="),
        (
            sb.TopK(name="q", k=1, score="x", window=sb.CountWindow(5)),
            {"key": "id", "deletes": "x"},
            SchemaError,
            "must be boolean",
        ),
        (sb.TopK(name="q", k=1, score="x", window=sb.CountWindow(5)), {"key": "x", "deletes": "gone"}, SchemaError, "texts"),
        (
            sb.TopKPairs(name="q", k=1, score="a.x - b.x", window=sb.CountWindow(5)),
            {"key": "id", "deletes": "gone"},
            QueryError,
            "another monitor",
        ),
        (sb.TopKPairs(name="q", k=1, score="a.z - b.x", window=sb.CountWindow(5)), {}, SchemaError, "'z'"),
        (sb.TopKPairs(name="q", k=1, score="a.g - b.x", window=sb.CountWindow(5)), {}, SchemaError, "'g'"),
        (
            sb.TopKAcross(name="q", k=1, key="x", stream="stream", value="x", streams=["r"], window=sb.CountWindow(5)),
            {},
            SchemaError,
            "name objects",
        ),
        (sb.TopK(name="q", k=1, score="x", window=sb.CountWindow(5)), {"spread": 0}, QueryError, "shards must be"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_remedy(
    query: Any, given: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        make_request(SCHEMA, [query], "t", 0, [], "id", **given)


def test_a_function_as_one_of_very_many_scores_is_refused() -> None:
    window = sb.CountWindow(5)
    many = [sb.TopK(name=f"q{n}", k=1, score=sb.linear({"x": 1.0, "y": float(n)}), window=window) for n in range(70)]
    assert make_request(SCHEMA, many, "t", 0, [], "id").plan.scores == 0
    with pytest.raises(QueryError, match=r"'odd'.*expression"):
        make_request(SCHEMA, [*many, sb.TopK(name="odd", k=1, score=lambda c: c["x"], window=window)], "t", 0, [], "id")


def test_a_column_with_an_inner_name_is_refused() -> None:
    schema = pa.schema([*SCHEMA, ("#tie", pa.int64())])
    pairs = sb.TopKPairs(name="q", k=1, score="a.x - b.x", window=sb.CountWindow(5))
    with pytest.raises(SchemaError, match=r"'#tie'.*rename"):
        make_request(schema, [pairs], "t", 0, [], "id")


def test_another_number_of_shards_on_an_old_state_is_refused() -> None:
    pairs = sb.TopKPairs(name="q", k=1, score="a.x - b.x", window=sb.CountWindow(5))
    row = {"t": 1, "x": 1.0, "y": 0.0, "g": "a", "id": 1, "object": "o", "stream": "r", "gone": None, "tie": 1}
    case = Case([row], [0], [0], [pairs], 2)
    cluster, _ = play(case, forgetful=True)
    other = replace(case, spread=3)
    with pytest.raises(StateError, match=r"shards=2 is gone, shards=3 is new.*say monitor\(\.\.\., shards=2\)"):
        Cluster(other.plan, True, store=cluster.store).batch(tasks_of(other, other.plan))


def test_a_state_from_when_every_row_travelled_is_refused() -> None:
    """Queries were dealt out to other shards then."""
    window = sb.TimeWindow(10, 5)
    many = [sb.TopK(name=f"q{n}", k=1, score=sb.linear({"x": 1.0, "y": n / 7}), window=window) for n in range(70)]
    row = {"t": 1, "x": 1.0, "y": 0.0, "g": "a", "id": 1, "object": "o", "stream": "r", "gone": None, "tie": 1}
    case = Case([row], [0], [0], many, 1)
    plan = case.plan
    before = replace(plan, marks={name: mark for name, mark in plan.marks.items() if "rows next to the data" not in name})
    cluster = Cluster(before, True)
    cluster.batch(tasks_of(case, before))
    with pytest.raises(StateError, match="the choice of rows next to the data is new"):
        Cluster(plan, True, store=cluster.store, logs=cluster.logs).batch(tasks_of(case, plan))


def test_queries_on_many_scores_are_dealt_out_whole_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [
        sb.TopK(name=f"q{n}", k=1, score=sb.linear({"x": 1.0, "y": float(n)}), window=sb.CountWindow(50 + n % 2))
        for n in range(400)
    ]
    assert len(make_request(SCHEMA, many, "t", 0, [], "id", spread=4).plan.shards) == 1  # two crowds are not worth more
    monkeypatch.setattr("skyband.spark.shards.CROWD", MANY)
    plan = make_request(SCHEMA, many, "t", 0, [], "id", spread=4).plan
    dealt = [query.name for shard in plan.shards for pace in shard.paces for query in pace.queries]
    assert len(plan.shards) == 4 and sorted(dealt) == sorted(query.name for query in many)
    assert {spread % 4 for spread in (spark_hash(shard.address) for shard in plan.shards)} == {0, 1, 2, 3}
    assert len(make_request(SCHEMA, many[:100], "t", 0, [], "id", spread=4).plan.shards) == 1


@pytest.mark.parametrize(("where", "most"), [("x >= 2 and x <= 3", 20), ({"x": (2.0, 3.0)}, 19)])
def test_rows_that_no_query_of_a_shard_can_rank_do_not_travel(where: Any, most: int) -> None:
    window = sb.TimeWindow(10, 5)
    many = [sb.TopK(name=f"q{n}", k=1, score=sb.linear({"x": 1.0, "y": n / 7}), where=where, window=window) for n in range(70)]
    rows = [
        {"t": n, "x": n % 5.0, "y": 1.0, "g": "a", "id": n, "object": "o", "stream": "r", "gone": None, "tie": n}
        for n in range(50)
    ]
    case = Case(rows, [0] * 50, [0] * 50, many, 1)
    travelled = [part for part in single(reduced(case.plan, tasks_of(case, case.plan)[0])) if part["shard"][0].as_py()]
    assert sum(len(table_from_bytes(part["rows"][0].as_buffer())) for part in travelled) <= most
    check(case, forgetful=True)


@pytest.mark.parametrize(("window", "forgetful"), [(sb.TimeWindow(10, 5), True), (sb.CountWindow(9, 3), False)])
def test_late_and_null_rows_are_told_of_each_of_very_many_queries(window: Any, forgetful: bool) -> None:
    """Of queries over rows whose shard is sent only those within their `where`, nulls are not counted, and that is said."""
    x = [1.0, None, np.nan, 2.0, np.inf]
    row = {"g": "a", "object": "o", "stream": "r", "gone": None}
    rows = [{**row, "t": n, "x": x[n % 5], "y": -np.inf if n % 7 == 0 else 1.0, "id": n, "tie": n} for n in range(60)]
    rows[40]["t"], rows[41]["t"] = 3, 17  # late, where rows wait for time: the watermark is 29 when they come
    rows.append({**row, "t": 1000, "x": 1.0, "y": 1.0, "id": 60, "tie": 60})  # closes every window before it
    scores = [sb.linear({"x": 1.0, "y": float(n)}) for n in range(65)]
    many = [sb.TopK(name=f"q{n}", k=2, score=score, window=window) for n, score in enumerate(scores)]
    case = Case(rows, [n // 30 for n in range(61)], [n % 2 for n in range(61)], many, 1)
    timed = isinstance(window, sb.TimeWindow)
    late = (40, 41) if timed else ()
    nulls = [
        sum(row["x"] is None or math.isnan(row["x"] + n * row["y"]) for at, row in enumerate(rows) if at not in late)
        for n in range(65)
    ]
    told = heard(play(case, forgetful)[0].told)
    assert [(told[query.name].late, told[query.name].nulls) for query in many] == [(len(late), count) for count in nulls]
    scoreless = replace(case, rows=[{**row, "x": None} for row in rows])
    assert {one.nulls for one in heard(play(scoreless, forgetful)[0].told).values()} == {61 - len(late)}
    narrow = replace(case, queries=[replace(query, where={"x": (0.0, 1.0)}) for query in many])
    told = heard(play(narrow, forgetful)[0].told)
    assert [told[query.name].nulls for query in many] == (nulls if timed else [None] * 65)


def test_kernels_of_every_kind_can_be_loaded_ahead() -> None:
    window = sb.TimeWindow("10 seconds", "1 second")
    warm(MIXED)
    warm([sb.TopK(name=f"q{n}", k=2, score=sb.linear({"x": 1.0, "y": n / 3}), window=window) for n in range(MANY + 1)])


# -- approximate answers -----------------------------------------------------------------------------------------


def test_approximate_answers_are_those_of_the_embedded_engine_and_say_their_bound() -> None:
    """A probabilistic algorithm, and objects with a precision: one shard, whatever the spread."""
    generator = np.random.default_rng(3)
    rows = [
        {
            **{"t": n, "x": float(generator.random()), "y": 0.0, "g": "a", "id": n, "object": f"o{generator.integers(0, 40)}"},
            **{"stream": STREAMS[n % 2], "gone": None, "tie": n},
        }
        for n in range(400)
    ]
    roughly = sb.TopK(name="rough", k=3, score="x", window=sb.CountWindow(60, 5), algorithm="probabilistic", error=0.2)
    objects = sb.TopKAcross(
        **{"name": "share", "k": 3, "key": "object", "stream": "stream", "value": "x", "streams": STREAMS, "precision": 0.7},
        **{"window": sb.CountWindow(80, 10), "ranges": (0, 1), "repeats": 4},
    )
    case = Case(rows, [n // 50 for n in range(400)], [n % 2 for n in range(400)], [roughly, objects], 3)
    cluster, watermark = play(case, forgetful=True)
    assert seen(case, cluster.results) == expected(case, cluster.plan, watermark)
    monitor = sb.Monitor([roughly, objects])
    monitor.push(as_table(roughly, rows))
    assert cluster.plan.inexact == ("rough", "share")
    assert cluster.bounds["bound_0"] == monitor.stats("rough")["missed_at_most"] > 0
    assert 0 < cluster.bounds["bound_1"] <= 1
    assert make_request(SCHEMA, [replace(roughly, algorithm="auto")], "t", 0, [], "id").plan.inexact == ()

"""Every kind of query through the shards, against the embedded Monitor: any cut into micro-batches and tasks, any number of
shards, rows out of order and late, idle groups, states read back from their bytes. Spark is played by lists (cluster.py)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cluster import Cluster, batch_answer
from hypothesis import given
from hypothesis import strategies as st
from killable_kinds import MIXED

import skyband as sb
from skyband.errors import QueryError, SchemaError, StateError
from skyband.score import bind, bind_where
from skyband.spark import plan as planning
from skyband.spark.plan import Plan, make_request
from skyband.spark.reduce import reduced
from skyband.spark.shards import MANY, spark_hash
from skyband.spark.warm import warm
from skyband.state import table_from_bytes

SCHEMA = pa.schema(
    [
        ("t", pa.int64()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("g", pa.string()),
        ("id", pa.int64()),
        ("object", pa.string()),
        ("stream", pa.string()),
        ("gone", pa.bool_()),
    ]
)
STREAMS = ["r", "s"]
Events = dict[tuple[Any, str], list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Case:
    rows: list[dict[str, Any]]
    batches: list[int]  # of each row: its micro-batch
    tasks: list[int]  # and its task
    queries: list[Any]
    spread: int
    lateness: int = 0
    grouped: bool = False
    arrival: bool = True
    keyed: bool = False

    @property
    def plan(self) -> Plan:
        deletions = {"key": "id", "deletes": "gone"} if self.keyed else {}
        groups = ["g"] if self.grouped else []
        arrival = "id" if self.arrival else None
        return make_request(SCHEMA, self.queries, "t", self.lateness, groups, arrival, spread=self.spread, **deletions).plan


NUMBERS = st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.5, math.inf, math.nan, None])


def windows(draw: st.DrawFn, kinds: tuple[str, ...]) -> Any:
    slide = draw(st.integers(1, 6))
    size = slide + draw(st.integers(0, 9))
    return sb.TimeWindow(size, slide) if draw(st.sampled_from(kinds)) == "time" else sb.CountWindow(size, slide)


@st.composite
def asked(draw: st.DrawFn, kinds: tuple[str, ...], families: tuple[str, ...]) -> list[Any]:
    queries: list[Any] = []
    for number in range(draw(st.integers(1, 3))):
        given: dict[str, Any] = {
            "name": f"q{number}",
            "window": windows(draw, kinds),
            "emit": draw(st.sampled_from(["changes", "snapshots", "arrivals", "changes"])),
        }
        family = draw(st.sampled_from(families))
        if family == "across":
            more: dict[str, Any] = draw(
                st.sampled_from(
                    [{}, {"repeats": 2, "ranges": (0, 10)}, {"aggregate": "max"}, {"combine": {"r": 2.0, "s": 0.0}}]
                )
            )
            given |= {"key": "object", "stream": "stream", "value": "x", "streams": STREAMS, "k": draw(st.integers(1, 4))}
            queries.append(sb.TopKAcross(**given, **more))
        elif family == "pairs":
            where = draw(st.sampled_from([None, "a.x > 0", "a.x != b.x or a.y > 1", {"x": (0.0, 2.0)}]))
            score = draw(st.sampled_from(["abs(a.x - b.x)", "a.x - 2 * b.y", sb.pair_distance(["x", "y"])]))
            order = draw(st.sampled_from(["asc", "desc"]))
            queries.append(sb.TopKPairs(**given, k=draw(st.integers(1, 5)), score=score, where=where, order=order))
        else:
            score = draw(st.sampled_from(["x", sb.linear({"x": 1.0, "y": 0.5}), sb.distance({"x": 1.0, "y": 1.0})]))
            where = draw(st.sampled_from([None, {"x": (0.0, 1.5)}, "y > 0"]))
            order = draw(st.sampled_from(["asc", "desc"]))
            ranked = {**given, "score": score, "where": where, "order": order}
            if draw(st.booleans()):
                queries.append(sb.TopK(**ranked, k=draw(st.integers(1, 4))))
            else:
                queries.append(sb.Threshold(**ranked, above=1.0))
    return queries


@st.composite
def cases(draw: st.DrawFn, kinds: tuple[str, ...], families: tuple[str, ...], arrival: bool) -> Case:
    count = draw(st.integers(1, 25))
    times = draw(st.lists(st.integers(0, 30), min_size=count, max_size=count))
    if draw(st.booleans()):
        times = sorted(times)
    rows = [
        {
            "t": time,
            "x": draw(NUMBERS),
            "y": draw(NUMBERS),
            "g": draw(st.sampled_from(["a", "b", None])),
            "id": number,
            "object": draw(st.sampled_from(["o", "p", "q", "u", "v", None])),
            "stream": draw(st.sampled_from([*STREAMS, "r", "s", "r", "s", "unknown", None])),
            "gone": False,
            "tie": number if arrival else draw(st.integers(-3, 3)) * 100 + number,
        }
        for number, time in enumerate(times)
    ]
    cuts = draw(st.lists(st.integers(0, count), max_size=5))
    return Case(
        rows,
        [sum(place > cut for cut in cuts) for place in range(count)],
        draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)),
        draw(asked(kinds, families)),
        draw(st.integers(1, 5)),
        draw(st.sampled_from([0, 3, 10])),
        draw(st.booleans()),
        arrival,
    )


# -- what is to come out -----------------------------------------------------------------------------------------


def handed_out(case: Case, plan: Plan, rows: list[dict[str, Any]]) -> list[pa.RecordBatch]:
    """What Catalyst hands to a task, in batches of three rows; scores are those of the embedded engine."""
    own = pa.table({name: pa.array([row[name] for row in rows], SCHEMA.field(name).type) for name in SCHEMA.names})
    columns = {f"c{i}": column for i, column in enumerate(own.columns)}
    request = request_of(case)
    for i, (score, where) in enumerate(request.scores):
        value = bind(score, SCHEMA).evaluate(own)
        if where is not None:
            columns[f"m{i}"] = pa.array(value != value)
            value = value.copy()
            value[~bind_where(where, SCHEMA).passes(own)] = math.nan
        columns[f"s{i}"] = pa.array(value)
    return pa.table({**columns, "tie": pa.array([row["tie"] for row in rows], pa.int64())}).to_batches(max_chunksize=3)


def request_of(case: Case) -> Any:
    deletions = {"key": "id", "deletes": "gone"} if case.keyed else {}
    return make_request(SCHEMA, case.queries, "t", 0, [], "id", spread=1, **deletions)


def tasks_of(case: Case, plan: Plan, batch: int | None = None) -> list[list[pa.RecordBatch]]:
    chosen = [number for number in range(len(case.rows)) if batch is None or case.batches[number] == batch]
    return [handed_out(case, plan, [case.rows[n] for n in chosen if case.tasks[n] == task]) for task in range(3)]


def as_table(query: Any, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as a monitor takes them: what a query across streams refuses keeps its place, without a value."""
    if isinstance(query, sb.TopKAcross):
        rows = [row if _is_taken(query, row) else {**row, "object": "z", "stream": "r", "x": None} for row in rows]
    return pa.table({name: pa.array([row[name] for row in rows], SCHEMA.field(name).type) for name in SCHEMA.names})


def _is_taken(query: sb.TopKAcross, row: dict[str, Any]) -> bool:
    if row["object"] is None or row["stream"] not in STREAMS:
        return False
    low, high = query.ranges[row["stream"]]
    return row["x"] is None or math.isnan(row["x"]) or low <= row["x"] <= (math.inf if high is None else high)


def position(row: dict[str, Any], end: Any) -> tuple[Any, ...]:
    who = row["id"] if row.get("id") is not None else (row.get("a_id"), row.get("b_id"), row.get("object"))
    return (end, row["event"], row["rank"], row["score"], who)


def expected(case: Case, plan: Plan, watermark: int | None) -> Events:
    """Result rows of the embedded engine by group and query, up to `watermark` (None: batch, nothing is late)."""
    results: Events = {}
    for query in case.queries:
        accepted: dict[Any, list[dict[str, Any]]] = {}
        timed = isinstance(query.window, sb.TimeWindow)
        greatest = None
        for batch in sorted(set(case.batches)):
            rows = [row for row, own in zip(case.rows, case.batches, strict=True) if own == batch]
            moved = 0 if greatest is None else greatest // plan.tick * plan.tick - case.lateness
            for row in rows:
                slide = query.window.slide if timed else 1
                waits = timed or not case.arrival
                if watermark is not None and waits and moved > 0 and (row["t"] // slide + 1) * slide <= moved:
                    continue
                accepted.setdefault((row["g"],) if case.grouped else (), []).append({**row, "batch": batch})
            greatest = max([row["t"] for row in rows] + ([] if greatest is None else [greatest]))
        for group, rows in accepted.items():
            if timed:
                rows = sorted(rows, key=lambda row: (row["t"], row["tie"]))
                monitor = sb.Monitor([query], time="t")
                found = monitor.push(as_table(query, rows)).to_pylist() + monitor.flush().to_pylist()
                found = [row for row in found if watermark is None or row["window_end"] <= watermark]
            else:
                if case.arrival:
                    rows = sorted(rows, key=lambda row: (row["batch"] if watermark is not None else 0, row["tie"]))
                else:
                    rows = sorted(rows, key=lambda row: (row["t"], row["tie"]))
                    rows = [row for row in rows if watermark is None or row["t"] < watermark]
                found = keyed(query, rows) if case.keyed else sb.Monitor([query]).push(as_table(query, rows)).to_pylist()
            if found:
                results[group, query.name] = [position(row, row["window_end"]) for row in found]
    return results


def keyed(query: Any, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The embedded engine, one row at a time."""
    monitor, found = sb.Monitor([query], key="id"), []
    for row in rows:
        if row["gone"]:
            found += monitor.delete([row["id"]]).to_pylist()
        else:
            try:
                found += monitor.push(as_table(query, [row])).to_pylist()
            except SchemaError:
                continue  # the key of a live row
    return found


def seen(case: Case, rows: Any) -> Events:
    results: Events = {}
    sizes = {query.name: query.window.size for query in case.queries}
    for row in rows:
        end, start = row["window_end"], row["window_start"]
        if end is None:
            end, start = row["window_end_time"], row["window_start_time"]
        timed = isinstance(next(q for q in case.queries if q.name == row["query"]).window, sb.TimeWindow)
        assert start == (end - sizes[row["query"]] if timed else max(0, end - sizes[row["query"]]))
        plain = {**row, "id": row["c4"], "a_id": row.get("a4"), "b_id": row.get("b4"), "object": row.get("k5")}
        results.setdefault((row["group"], row["query"]), []).append(position(plain, end))
    return results


def play(case: Case, forgetful: bool) -> tuple[Cluster, int]:
    plan = case.plan
    cluster = Cluster(plan, forgetful)
    for batch in sorted(set(case.batches)):
        cluster.batch(tasks_of(case, plan, batch))
    cluster.batch([])
    return cluster, cluster.watermark * plan.tick


def check(case: Case, forgetful: bool) -> None:
    cluster, watermark = play(case, forgetful)
    assert seen(case, cluster.results) == expected(case, cluster.plan, watermark)
    assert cluster.tallies["rows"] == len(case.rows)
    assert seen(case, batch_answer(cluster.plan, tasks_of(case, cluster.plan))) == expected(case, cluster.plan, None)


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
        assert all(not pace.queries for pace in case.plan.paces)
        check(case, forgetful)


@given(cases(("time", "count"), ("ranked", "pairs", "across"), arrival=False), st.booleans())
def test_all_kinds_at_once(case: Case, forgetful: bool) -> None:
    check(case, forgetful)


# -- deletions ---------------------------------------------------------------------------------------------------


@st.composite
def keyed_cases(draw: st.DrawFn, arrival: bool) -> Case:
    """Rows and deletions; some delete nothing, some rows have the key of a live one, or none."""
    case = draw(cases(("count",), ("ranked",), arrival))
    keys = st.integers(0, 12) | st.none()
    rows = [{**row, "gone": draw(st.sampled_from([False, False, True, None])), "id": draw(keys)} for row in case.rows]
    queries = [query for query in case.queries if isinstance(query, sb.TopK)]
    queries = [replace(query, emit="changes") if query.emit == "snapshots" else query for query in queries]
    queries = queries or [sb.TopK(name="q", k=2, score="x", window=sb.CountWindow(6, 2))]
    return replace(case, rows=rows, queries=queries, keyed=True, lateness=0)


@given(keyed_cases(arrival=False), st.booleans())
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
            sb.TopK(name="q", k=1, score="x", window=sb.TimeWindow(5, 5)),
            {"key": "id", "deletes": "gone"},
            QueryError,
            "CountWindow",
        ),
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
    with pytest.raises(StateError, match="shards=2 is gone, shards=3 is new"):
        Cluster(other.plan, True, store=cluster.store).batch(tasks_of(other, other.plan))


def test_queries_on_many_scores_are_dealt_out_whole_and_once() -> None:
    many = [
        sb.TopK(name=f"q{n}", k=1, score=sb.linear({"x": 1.0, "y": float(n)}), window=sb.CountWindow(50 + n % 2))
        for n in range(400)
    ]
    plan = make_request(SCHEMA, many, "t", 0, [], "id", spread=4).plan
    dealt = [query.name for shard in plan.shards for pace in shard.paces for query in pace.queries]
    assert len(plan.shards) == 4 and sorted(dealt) == sorted(query.name for query in many)
    assert {spread % 4 for spread in (spark_hash(shard.address) for shard in plan.shards)} == {0, 1, 2, 3}
    assert len(make_request(SCHEMA, many[:100], "t", 0, [], "id", spread=4).plan.shards) == 1


def test_rows_that_no_query_of_a_shard_can_rank_do_not_travel() -> None:
    window = sb.TimeWindow(10, 5)
    many = [
        sb.TopK(name=f"q{n}", k=1, score=sb.linear({"x": 1.0, "y": n / 7}), where={"x": (2.0, 3.0)}, window=window)
        for n in range(70)
    ]
    rows = [
        {"t": n, "x": n % 5.0, "y": 1.0, "g": "a", "id": n, "object": "o", "stream": "r", "gone": None, "tie": n}
        for n in range(50)
    ]
    case = Case(rows, [0] * 50, [0] * 50, many, 1)
    travelled = [part for part in reduced(case.plan, tasks_of(case, case.plan)[0]) if part["shard"][0].as_py()]
    assert sum(len(table_from_bytes(part["rows"][0].as_buffer())) for part in travelled) == 20
    check(case, forgetful=True)


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

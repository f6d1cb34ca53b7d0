"""Streams with queries of every kind, as Hypothesis draws them, and what the embedded Monitor makes of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from cluster import Cluster, as_counted, batch_answer, end_of, played
from hypothesis import strategies as st

import skyband as sb
from skyband.errors import SchemaError
from skyband.scores.score import bind, bind_where
from skyband.spark.plan import Plan, make_request

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
            texts = ["a.object != b.object", "b.stream == 'r' and a.stream != b.stream", "a.object == 'o' or b.stream == 's'"]
            where = draw(st.sampled_from([None, "a.x > 0", "a.x != b.x or a.y > 1", {"x": (0.0, 2.0)}, *texts]))
            score = draw(st.sampled_from(["abs(a.x - b.x)", "a.x - 2 * b.y", sb.pair_distance(["x", "y"])]))
            order = draw(st.sampled_from(["asc", "desc"]))
            queries.append(sb.TopKPairs(**given, k=draw(st.integers(1, 5)), score=score, where=where, order=order))
        else:
            score = draw(st.sampled_from(["x", sb.linear({"x": 1.0, "y": 0.5}), sb.distance({"x": 1.0, "y": 1.0})]))
            where = draw(st.sampled_from([None, {"x": (0.0, 1.5)}, "y > 0", "stream == 'r' or object != 'o'"]))
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
            moved = 0 if greatest is None else (greatest - case.lateness) // plan.scale.tick * plan.scale.tick
            for row in rows:
                slide = plan.scale.tick if case.keyed else query.window.slide if timed else 1
                waits = timed or not case.arrival
                if watermark is not None and waits and moved > 0 and (row["t"] // slide + 1) * slide <= moved:
                    continue
                accepted.setdefault((row["g"],) if case.grouped else (), []).append({**row, "batch": batch})
            greatest = max([row["t"] for row in rows] + ([] if greatest is None else [greatest]))
        for group, rows in accepted.items():
            if case.keyed:  # whose row is live depends on the windows of all queries
                found = [row for row in keyed(case, plan, rows, watermark) if row["query"] == query.name]
            elif timed:
                rows = sorted(rows, key=lambda row: (row["t"], row["tie"]))
                monitor = sb.Monitor([query], time="t")
                found = monitor.push(as_table(query, rows)).to_pylist() + monitor.flush().to_pylist()
                found = [row for row in found if watermark is None or row["window_end"] <= watermark]
            else:
                rows = as_counted(rows, case.arrival, watermark)
                found = sb.Monitor([query]).push(as_table(query, rows)).to_pylist()
            if found:
                results[group, query.name] = [position(row, row["window_end"]) for row in found]
    return results


def keyed(case: Case, plan: Plan, rows: list[dict[str, Any]], watermark: int | None) -> list[dict[str, Any]]:
    """The embedded engine, one row at a time; of windows of time, rows as far as the watermark has passed whole steps, and
    those that end by the time of a row or deletion closed before it."""
    timed = isinstance(case.queries[0].window, sb.TimeWindow)
    monitor, found = sb.Monitor(case.queries, key="id", time="t" if timed else None), []
    if timed:
        rows = sorted(rows, key=lambda row: (row["t"], row["tie"]))
        rows = [row for row in rows if watermark is None or row["t"] < watermark]
    else:
        rows = as_counted(rows, case.arrival, watermark)
    for row in rows:
        if timed and row["id"] is not None:
            found += monitor.advance(row["t"]).to_pylist()
        if row["gone"]:
            found += monitor.delete([row["id"]]).to_pylist()
        else:
            try:
                found += monitor.push(as_table(case.queries[0], [row])).to_pylist()
            except SchemaError:
                continue  # the key of a live row
    if timed:
        found += (monitor.flush() if watermark is None else monitor.advance(watermark)).to_pylist()
    return found


def seen(case: Case, rows: Any) -> Events:
    results: Events = {}
    for row in rows:
        plain = {**row, "id": row["c4"], "a_id": row.get("a4"), "b_id": row.get("b4"), "object": row.get("k5")}
        results.setdefault((row["group"], row["query"]), []).append(position(plain, end_of(row, case.queries)))
    return results


def play(case: Case, forgetful: bool) -> tuple[Cluster, int]:
    return played(case.plan, forgetful, (tasks_of(case, case.plan, batch) for batch in sorted(set(case.batches))))


def check(case: Case, forgetful: bool) -> None:
    cluster, watermark = play(case, forgetful)
    assert seen(case, cluster.results) == expected(case, cluster.plan, watermark)
    assert cluster.tallies["rows"] == len(case.rows)
    assert seen(case, batch_answer(cluster.plan, tasks_of(case, cluster.plan))) == expected(case, cluster.plan, None)

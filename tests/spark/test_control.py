"""Live control against embedded monitors whose `add` and `cancel` are called at the same points: any cut into micro-batches,
tasks and shards, rows and commands out of order and late, states read back from their bytes."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steered import Oracle, Said, Steered, as_table, shown

import skyband as sb
from skyband.errors import SchemaError, StateError
from skyband.spark import packets
from skyband.spark.control.command import Command
from skyband.spark.control.shard import Shard
from skyband.spark.control.terms import Terms, make_terms
from skyband.spark.stream import Stream
from skyband.spark.tallies import Told, heard
from skyband.state import table_to_bytes

SCHEMA = pa.schema([("t", pa.int64()), ("x", pa.float64()), ("g", pa.string()), ("id", pa.int64())])
END = 500  # a row of this time closes everything


@dataclass(frozen=True)
class Case:
    rows: list[dict[str, Any]]  # t, x, g, id, tie, batch, task
    queries: list[Any]
    said: list[Said]
    lateness: int
    grouped: bool
    dated: bool
    shards: int


SCORES = st.one_of(st.sampled_from([0.0, 1.0, 2.0, -1.0, math.inf, math.nan]), st.floats(-3, 3, width=16), st.none())


@st.composite
def queries(draw: st.DrawFn, name: str, counted: bool) -> Any:
    slide = draw(st.integers(1, 7))
    size = slide + draw(st.integers(0, 12))
    window = sb.CountWindow(size, slide) if counted and draw(st.booleans()) else sb.TimeWindow(size, slide)
    given: dict[str, Any] = {
        "name": name,
        "score": draw(st.sampled_from(["x", "-x", "x * 2 + t"])),
        "window": window,
        "order": draw(st.sampled_from(["desc", "asc"])),
        "where": draw(st.sampled_from([None, "x > 0"])),
        "emit": draw(st.sampled_from(["changes", "snapshots", "arrivals"])),
    }
    if draw(st.integers(0, 4)) == 0:
        return sb.Threshold(above=draw(st.sampled_from([-1.0, 0.5])), **given)
    return sb.TopK(k=draw(st.integers(1, 4)), **given)


@st.composite
def cases(draw: st.DrawFn, counted: bool = False) -> Case:
    count = draw(st.integers(1, 25))
    times = draw(st.lists(st.integers(1, 40) | st.none(), min_size=count, max_size=count))
    if draw(st.booleans()):
        times = sorted(times, key=lambda time: -1 if time is None else time)
    cuts = draw(st.lists(st.integers(0, count), max_size=4))
    grouped = draw(st.booleans())
    rows = [
        {
            "t": time,
            "x": draw(SCORES),
            "g": draw(st.sampled_from(["a", "b", "c", None])) if grouped else None,
            "id": number,
            "tie": draw(st.integers(-3, 3)) * 100 + number,
            "batch": sum(number > cut for cut in cuts),
            "task": draw(st.integers(0, 1)),
        }
        for number, time in enumerate(times)
    ]
    names = ["p", "q", "r", "s"]
    asked = [draw(queries(name, counted)) for name in names[: draw(st.integers(0, 2))]]
    if counted:
        asked.append(sb.TopK(name="counts", k=2, score="x", window=sb.CountWindow(5, 2)))
        asked.append(sb.TopK(name="timed", k=1, score="x", window=sb.TimeWindow(6, 3)))
    dated = draw(st.booleans())
    said = []
    for _ in range(draw(st.integers(0, 8))):
        name = draw(st.sampled_from(names))
        text = draw(
            st.sampled_from(
                [json.dumps({"add": draw(queries(name, counted)).to_json()})] * 4
                + [json.dumps({"cancel": name})] * 4
                + ["{", None, "[]}", '{"cancel": 7}', '{"add": {"name": "q"}}', '{"drop": "q"}']
                + [json.dumps({"add": sb.TopK(name=name, k=1, score="nowhere", window=sb.TimeWindow(3, 3)).to_json()})]
            )
        )
        if text == "[]}":
            text = "{}"
        said.append(Said(text, draw(st.integers(0, 5)), draw(st.integers(1, 45) | st.none()) if dated else None))
    return Case(rows, asked, said, draw(st.sampled_from([0, 3, 10])), grouped, dated, draw(st.sampled_from([1, 1, 3])))


def terms_of(case: Case) -> Terms:
    groups = ("g",) if case.grouped else ()
    return make_terms(SCHEMA, case.queries, Stream("t", case.lateness, groups, shards=case.shards), dated=case.dated)


def handed_out(terms: Terms, rows: list[dict[str, Any]]) -> list[pa.RecordBatch]:
    """What Catalyst hands to a task, in batches of three rows."""
    own = {f"c{i}": pa.array([row[name] for row in rows], SCHEMA.field(name).type) for i, name in enumerate(SCHEMA.names)}
    bucket = [("abc".index(row["g"]) if row["g"] else 3) % terms.buckets for row in rows]
    table = pa.table({**own, "tie": pa.array([row["tie"] for row in rows], pa.int64()), "bucket": pa.array(bucket, pa.int32())})
    return table.to_batches(max_chunksize=3)


def told(said: list[Said]) -> list[pa.RecordBatch]:
    columns = {
        "command": pa.array([one.text for one in said], pa.string()),
        "time": pa.array([one.time for one in said], pa.int64()),
        "order": pa.nulls(len(said), pa.int64()),
    }
    return pa.table(columns).to_batches(max_chunksize=2)


def run(case: Case, forgetful: bool) -> tuple[Steered, Oracle]:
    """The case, then rows that close everything, and what must come of it."""
    last = max((row["batch"] for row in case.rows), default=0) + 6
    groups = {row["g"] for row in case.rows}
    closing = [
        {"t": END, "x": None, "g": group, "id": 1000 + i, "tie": 0, "batch": last, "task": 0} for i, group in enumerate(groups)
    ]
    rows = [*case.rows, *closing]
    stream = Steered(terms_of(case), forgetful)
    for batch in range(last + 2):
        own = [row for row in rows if row["batch"] == batch]
        tasks = [handed_out(stream.plan, [row for row in own if row["task"] == task]) for task in range(2)]
        stream.batch(tasks, [told([one for one in case.said if one.batch == batch])])
    tick = stream.plan.scale.tick
    end = (END - case.lateness) // tick * tick
    return stream, Oracle(case.queries, rows, case.said, case.lateness, case.dated, end, tick)


def answers(stream: Steered) -> list[str]:
    found = []
    for row in stream.results:
        if row["event"] in ("enter", "leave", "top"):
            end = row["window_end"]
            if end is None:
                end = row["window_end_time"]
            found.append(shown({**row, "window_end": end, "id": row["c3"]}, row.get("g0")))
    return sorted(found)


def acknowledged(stream: Steered) -> list[str]:
    return sorted(str((r["event"], r["query"])) for r in stream.results if r["event"] in ("added", "cancelled", "refused"))


@given(case=cases(), forgetful=st.booleans())
def test_queries_come_and_go_as_in_an_embedded_monitor(case: Case, forgetful: bool) -> None:
    stream, oracle = run(case, forgetful)
    assert acknowledged(stream) == sorted(map(str, oracle.acknowledged))
    assert answers(stream) == oracle.expected(SCHEMA)
    assert stream.figures["commands"] == len(case.said)
    check_counts(stream, oracle)


@given(case=cases(counted=True), forgetful=st.booleans())
def test_windows_of_rows_count_what_came_before_a_query(case: Case, forgetful: bool) -> None:
    stream, oracle = run(case, forgetful)
    assert acknowledged(stream) == sorted(map(str, oracle.acknowledged))
    assert answers(stream) == oracle.expected(SCHEMA)
    check_counts(stream, oracle)


def check_counts(stream: Steered, oracle: Oracle) -> None:
    """What is told of each query, in all micro-batches together."""
    told = heard(stream.told)
    results = Counter(row["query"] for row in stream.results if row["event"] in ("enter", "leave", "top"))
    assert {name: one.results for name, one in told.items() if one.results} == results
    assert {name: one.nulls for name, one in told.items() if one.nulls} == oracle.nulls()
    assert {name: told[name].late if name in told else 0 for name in oracle.late()} == oracle.late()


# -- the rules, one by one -----------------------------------------------------------------------------------------


def played(said: list[Said], rows: list[tuple[int, float]], lateness: int = 0, asked: list[Any] | None = None) -> Steered:
    """Rows of time and score in one micro-batch each, then the end."""
    whole = [
        {"t": t, "x": x, "g": None, "id": number, "tie": number, "batch": number, "task": 0}
        for number, (t, x) in enumerate(rows)
    ]
    case = Case(whole, [] if asked is None else asked, said, lateness, False, True, 1)
    stream, oracle = run(case, forgetful=True)
    assert answers(stream) == oracle.expected(SCHEMA)
    assert acknowledged(stream) == sorted(map(str, oracle.acknowledged))
    return stream


def adding(name: str = "q", size: int = 4, slide: int = 4, **more: Any) -> str:
    query = sb.TopK(name=name, k=9, score="x", window=sb.TimeWindow(size, slide), **{"emit": "snapshots", **more})
    return json.dumps({"add": query.to_json()})


def ids(stream: Steered) -> list[int]:
    return sorted(row["c3"] for row in stream.results if row["event"] in ("enter", "top"))


def test_a_query_sees_the_row_of_its_very_time_and_none_before() -> None:
    assert ids(played([Said(adding(), 0, 5)], [(4, 1.0), (5, 2.0), (6, 3.0), (9, 4.0)])) == [1, 2, 3]


def test_a_cancelled_query_answers_the_windows_that_ended_by_then_and_no_other() -> None:
    said = [Said(adding(), 0, 1), Said('{"cancel": "q"}', 0, 8)]
    assert ids(played(said, [(1, 1.0), (5, 2.0), (9, 4.0), (13, 1.0)])) == [0, 1]
    said = [Said(adding(), 0, 1), Said('{"cancel": "q"}', 0, 7)]
    assert ids(played(said, [(1, 1.0), (5, 2.0), (9, 4.0), (13, 1.0)])) == [0]


def test_a_slide_nobody_had_before_finds_the_rows_that_others_have_closed() -> None:
    asked = [sb.TopK(name="fine", k=1, score="x", window=sb.TimeWindow(1, 1), emit="none")]
    said = [Said(adding("wide", 30, 30), 2, 12)]
    stream = played(said, [(10, 1.0), (12, 2.0), (13, 3.0), (19, 4.0), (25, 1.0), (31, 1.0)], 0, asked)
    assert ids(stream) == [1, 2, 3, 4, 5]


def test_a_query_is_replaced_at_one_moment() -> None:
    again = adding(size=2, slide=2)
    said = [Said(adding(), 0, 1), Said(again, 1, 4), Said('{"cancel": "q"}', 1, 4)]
    stream = played(said, [(1, 1.0), (3, 2.0), (4, 3.0), (6, 4.0)])
    assert acknowledged(stream) == ["('added', 'q')", "('added', 'q')", "('cancelled', 'q')"]
    assert ids(stream) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "the command is null"),
        ("{", "is written as JSON"),
        ("7", "a JSON object"),
        ('{"add": {}, "cancel": "q"}', "has one key"),
        ('{"cancel": ["q"]}', "cancel takes the name"),
        ('{"cancel": "nobody"}', "no query is called 'nobody'"),
        ('{"add": {"kind": "Best"}}', "no kind of query called 'Best'"),
        ('{"add": {"name": "q", "k": 0, "score": "x", "window": {"size": 4, "slide": 4}}}', "k must be at least 1"),
        ('{"add": {"name": "q", "k": 1, "score": "y", "window": {"size": 4, "slide": 4}}}', "needs the column 'y'"),
        ('{"add": {"name": "q", "k": 1, "score": "g", "window": {"size": 4, "slide": 4}}}', "as a number"),
        ('{"add": {"name": "q", "k": 1, "score": "x", "window": {"size": "1 s", "slide": "1 s"}}}', "plain int64"),
        ('{"add": {"name": "q", "k": 1, "score": "x", "window": {"rows": 4}}}', "windows of time only"),
        ('{"add": {"name": "old", "k": 1, "score": "x", "window": {"size": 4, "slide": 4}}}', "'old' is there already"),
        ('{"add": {"name": "p", "k": 1, "pair_score": "a.x", "window": {"size": 4, "slide": 4}}}', "reports rows only"),
        (
            '{"add": {"name": "o", "k": 1, "key": "id", "stream": "g", "value": "x", "streams": ["a"], '
            '"window": {"size": 4, "slide": 4}}}',
            "reports no objects",
        ),
        (f'{{"add": {{"name": "q", "k": {10**15}, "score": "x", "window": {{"size": 4, "slide": 4}}}}}}', "than 1,000,000"),
    ],
)
def test_a_bad_command_is_refused_with_its_reason_and_changes_nothing(text: str | None, reason: str) -> None:
    asked = [sb.TopK(name="old", k=2, score="x", window=sb.TimeWindow(4, 4))]
    terms = make_terms(SCHEMA, asked, Stream("t"), dated=True)
    shard = Shard(terms, 0)
    shard.hear([Command(text, 5)])
    (told,) = shard.advance(6)
    assert told["event"].to_pylist() == ["refused"] and reason in told["message"][0].as_py()
    plain = Shard(terms, 0)
    plain.advance(6)
    assert shard.snapshot() == plain.snapshot()


@pytest.mark.parametrize("most", [1, 200, 1000])
def test_answers_travel_in_pieces_and_are_counted_once(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    said = [Said(adding(f"q{n}", size=8, slide=2), 0, 1) for n in range(5)]
    rows = [(t, t % 3.0) for t in range(1, 20)]
    whole = played(said, rows)
    monkeypatch.setattr(packets, "MOST_BYTES", most)
    pieces: list[int] = []
    monkeypatch.setattr(packets, "table_to_bytes", lambda table: pieces.append(table.nbytes) or table_to_bytes(table))
    cut = played(said, rows)
    assert cut.results == whole.results and cut.figures == whole.figures and heard(cut.told) == heard(whole.told)
    assert len(pieces) > 1 and (most == 1 or max(pieces) <= most + 100)  # one row a packet, or as many as fit, on average


def test_late_rows_are_told_of_the_queries_that_were_asked_when_they_came() -> None:
    asked = [sb.TopK(name="fine", k=1, score="x", window=sb.TimeWindow(2, 2), emit="none")]
    said = [Said(adding("wide", 10, 10), 0, 1), Said(adding("new", 2, 2), 3, 30), Said('{"cancel": "wide"}', 3, 31)]
    rows = [(9, 1.0), (19, 1.0), (12, 1.0), (8, 1.0), (40, 1.0), (13, 1.0), (41, 1.0), (33, 1.0)]
    told = heard(played(said, rows, 0, asked).told)  # the watermark is 19 when 12 and 8 come, and 40 when 13 and 33 do
    assert {name: one.late for name, one in told.items()} == {"fine": 4, "wide": 1, "new": 2}


# -- objects -------------------------------------------------------------------------------------------------------


def across(name: str = "o", streams: tuple[str, ...] = ("a", "b"), window: Any = None, **more: Any) -> sb.TopKAcross:
    window = sb.CountWindow(6, 3) if window is None else window
    return sb.TopKAcross(name=name, k=2, key="id", stream="g", value="x", streams=list(streams), window=window, **more)


VISITS = st.tuples(st.sampled_from([0.0, 1.0, 2.5, None, -1.0]), st.sampled_from(["a", "b", "c", None]), st.integers(0, 3))


@given(
    content=st.lists(VISITS, min_size=1, max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=3),
    since=st.integers(1, 25),
    until=st.integers(1, 30),
    window=st.sampled_from([sb.CountWindow(6, 3), sb.CountWindow(4, 1), sb.CountWindow(10, 4)]),
    arrival=st.booleans(),
    forgetful=st.booleans(),
)
def test_objects_over_windows_of_rows_count_what_came_before_a_query(
    content: list[Any], cuts: list[int], since: int, until: int, window: sb.CountWindow, arrival: bool, forgetful: bool
) -> None:
    """A row that the query refuses keeps its place, as one without a value does."""
    first = across("first", window=sb.CountWindow(5, 2), aggregate="max")
    added = across("added", ("b", "c"), window, emit="snapshots")
    batches = [sum(at >= cut for cut in sorted(cuts)) for at in range(len(content))]
    said = [] if arrival else [Said(json.dumps({"add": added.to_json()}), 0, since), Said('{"cancel": "added"}', 0, until)]
    if arrival:  # commands hold from their micro-batch on
        said = [Said(json.dumps({"add": added.to_json()}), 1), Said('{"cancel": "added"}', 3)]
    terms = make_terms(SCHEMA, [first], Stream("t", arrival="id" if arrival else None), dated=not arrival)
    rows = [
        {"t": 1 + at, "x": x, "g": g, "id": key, "tie": at, "batch": batch}
        for at, ((x, g, key), batch) in enumerate(zip(content, batches, strict=True))
    ]
    closing = {"t": END, "x": None, "g": "a", "id": 0, "tie": END, "batch": 9}
    stream = Steered(terms, forgetful)
    for batch in range(10):
        own = [row for row in [*rows, closing] if row["batch"] == batch and (not arrival or row is not closing)]
        stream.batch([handed_out(terms, own)], [told([one for one in said if one.batch == batch])])
    stream.batch([], [])
    if arrival:
        life = [row for row in rows if 1 <= row["batch"] < 3]
    else:  # a cancel that comes before is refused
        life = [row for row in rows if row["t"] >= since and (since >= until or row["t"] < until)]
    expected, refused, nulls = [], {}, {}
    for query, own in ((first, rows), (added, life)):
        wrong = [row for row in own if row["g"] not in query.streams or (row["x"] is not None and row["x"] < 0)]
        places = [{**row, "x": None, "g": query.streams[0]} if row in wrong else row for row in own]
        monitor = sb.Monitor()
        if before := [{**row, "g": "a"} for row in rows if own and row["tie"] < own[0]["tie"]]:
            monitor.push(as_table(before, SCHEMA))
        monitor.add(query)
        expected += monitor.push(as_table(places, SCHEMA)).to_pylist() if own else []
        refused[query.name], nulls[query.name] = len(wrong), sum(row["x"] is None for row in own if row not in wrong)
    got = [{**row, "id": row["k3"]} for row in stream.results if row["about"]]
    assert sorted(shown(row, None) for row in got) == sorted(shown(row, None) for row in expected)
    said_of = {name: heard(stream.told).get(name, Told(nulls=0)) for name in refused}
    assert {name: one.refused for name, one in said_of.items()} == refused
    assert {name: one.nulls for name, one in said_of.items()} == nulls


def test_an_object_query_replaced_under_its_name_takes_the_rows_of_its_own_streams() -> None:
    window = sb.TimeWindow(4, 4)
    shard = Shard(make_terms(SCHEMA, [across(window=window)], Stream("t"), dated=True), 0)
    again = across(streams=("c",), window=window)
    shard.hear([Command('{"cancel": "o"}', 4), Command(json.dumps({"add": again.to_json()}), 4)])
    content = [(1, 1.0, "a", 1), (5, 2.0, "a", 1), (6, 3.0, "c", 2)]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*content, strict=True), SCHEMA, strict=True)]
    shard.take(pa.table([columns[0], pa.array(range(3)), *columns], names=["", "", *SCHEMA.names]))
    answer = pa.concat_tables(shard.advance(8))
    answer = answer.filter(answer["about"].is_valid())
    assert list(zip(answer["k3"].to_pylist(), answer["score"].to_pylist(), strict=True)) == [(1, 1.0), (2, 3.0)]


def test_rows_that_name_no_object_are_left_out_and_counted() -> None:
    shard = Shard(make_terms(SCHEMA, [across(window=sb.TimeWindow(4, 4))], Stream("t"), dated=True), 0)
    content = [(1, 1.0, "a", 1), (1, 5.0, "c", 1), (2, 2.0, None, 1), (2, 3.0, "b", None), (3, -1.0, "a", 2), (3, None, "a", 2)]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*content, strict=True), SCHEMA, strict=True)]
    shard.take(pa.table([columns[0], pa.array(range(6)), *columns], names=["", "", *SCHEMA.names]))
    answer = pa.concat_tables(shard.advance(4))
    assert list(zip(answer["k3"].to_pylist(), answer["score"].to_pylist(), strict=True)) == [(1, 1.0)]
    first, second = shard.counted()["o"], shard.counted()["o"]
    assert first[:4] == (0, 1, 1, 4) and second[:4] == (0, 0, 1, 0)
    assert first[4] == second[4] > 0  # bytes in memory


def test_windows_that_begin_before_the_time_column_can_say_are_refused_with_what_to_do() -> None:
    schema = pa.schema([("t", pa.int8()), ("x", pa.float64())])
    asked = [sb.TopK(name="q", k=1, score="x", window=sb.TimeWindow(20, 10))]
    shard = Shard(make_terms(schema, asked, Stream("t"), dated=False), 0)
    columns = [pa.array([-120]), pa.array([0]), pa.array([-120], pa.int8()), pa.array([1.0])]
    shard.take(pa.table(columns, names=["", "", *schema.names]))
    with pytest.raises(SchemaError, match=r"bounds from -130 to .* cast it to bigint"):
        shard.advance(-100)


# -- state ---------------------------------------------------------------------------------------------------------


def test_the_state_of_another_stream_is_refused() -> None:
    asked = [sb.TopK(name="old", k=2, score="x", window=sb.TimeWindow(4, 4))]
    state = Shard(make_terms(SCHEMA, asked, Stream("t"), dated=True), 0).snapshot()
    with pytest.raises(StateError, match="query 'old' is gone"):
        Shard.restore(make_terms(SCHEMA, [], Stream("t"), dated=True), state)
    with pytest.raises(StateError, match="the commands' time changed"):
        Shard.restore(make_terms(SCHEMA, asked, Stream("t"), dated=False), state)

"""TopKAcross through the monitor: windows, emissions, lateness, keys of any kind, queries that come and go, bad input."""

from __future__ import annotations

import math
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from across_reference import AcrossReference, asked
from played import events_of, plain_events, reloaded
from reference import Event, Row
from test_stories import SIGNS

STREAMS = ("north", "south", "west")
SCHEMA = pa.schema([("t", pa.int64()), ("key", pa.string()), ("stream", pa.string()), ("value", pa.float64())])


def ask(window: Any, **more: Any) -> sb.TopKAcross:
    given = {"name": "q", "k": 2, "key": "key", "stream": "stream", "value": "value", "streams": STREAMS, "window": window}
    return sb.TopKAcross(**{**given, **more})


def batch(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def by_key(events: list[Event]) -> list[Event]:
    """Events of a monitor as the reference tells them: an object's key in place of a number."""
    return [event._replace(seq=dict(event.row)["key"]) for event in events]


def events(table: pa.Table) -> list[Event]:
    whole = table.append_column("seq", pa.nulls(len(table), pa.int64())) if "seq" not in table.column_names else table
    return by_key(events_of(whole))


# --- against the reference ------------------------------------------------------------------------------------------


@st.composite
def scenarios(draw: st.DrawFn) -> tuple[Any, ...]:
    """Two queries, one perhaps of another kind of window; rows; where to cut them."""
    queries = []
    for name in ("q", "p"):
        size = draw(st.integers(1, 15))
        slide = draw(st.integers(1, size))
        kind = draw(st.sampled_from(["count", "time"]))
        repeats = draw(st.sampled_from([None, 1, 2]))
        combine = draw(st.sampled_from(["sum", "mean", "max", {"north": 0.5, "south": 2.0, "west": 0.0}]))
        algorithm = draw(st.sampled_from(["sla", "eaa", "across-oracle", "auto"]))
        aggregate = draw(st.sampled_from(["sum", "max"] if algorithm == "eaa" and repeats != 1 else ["sum", "max", "latest"]))
        emit = draw(st.sampled_from(["changes", "snapshots", "arrivals", "none"]))
        ranges = draw(st.sampled_from([None, (0, 1)]))
        k = draw(st.integers(1, 3))
        shared = {"combine": combine, "aggregate": aggregate, "repeats": repeats, "emit": emit}
        window = (sb.CountWindow if kind == "count" else sb.TimeWindow)(size, slide)
        queries.append((ask(window, name=name, k=k, algorithm=algorithm, ranges=ranges, **shared),
                        asked(name, k, kind, size, slide, STREAMS, **shared)))  # fmt: skip
    count = draw(st.integers(1, 50))
    steps = draw(st.lists(st.integers(-4, 6), min_size=count, max_size=count))
    values = st.one_of(st.sampled_from([0.0, 0.5, 1.0, None, math.nan]), st.floats(0, 1))
    rows, time = [], 0
    for step in steps:
        time += step
        key, stream = draw(st.sampled_from("abcdefgh")), draw(st.sampled_from(STREAMS))
        rows.append({"t": time, "key": key, "stream": stream, "value": draw(values)})
    cuts = sorted({0, count, *draw(st.lists(st.integers(0, count), max_size=6))})
    return queries, rows, cuts, draw(st.integers(0, 5)), draw(st.integers(0, len(cuts))), draw(st.integers(0, len(cuts)))


@given(scenarios())
def test_the_monitor_says_what_the_reference_says(scenario: tuple[Any, ...]) -> None:
    ((first, first_asked), (second, second_asked)), rows, cuts, lateness, joins, reload_at = scenario
    monitor = sb.Monitor([first], time="t", lateness=lateness)
    truth = AcrossReference([first_asked], "t", lateness)
    for number, (begin, end) in enumerate(pairwise(cuts)):
        if number == joins:
            monitor.add(second)
            truth.add(second_asked)
        if number == reload_at:
            monitor = reloaded(monitor)
        found, wanted = events(monitor.push(batch(rows[begin:end]))), plain_events(truth.push(rows[begin:end]))
        assert found == wanted
    assert events(monitor.flush()) == plain_events(truth.flush())
    for name, standing in truth.standing.items():
        top = [(row["score"], row["key"]) for row in monitor.top(name).to_pylist()]
        assert top == [(ranked.score, ranked.seq) for ranked in standing.top]
        if monitor.stats(name)["rows"]:
            assert (monitor.stats(name)["late"], monitor.stats(name)["nulls"]) == (standing.late, standing.nulls)


@pytest.mark.parametrize("algorithm", ["across-oracle", "sla", "eaa", "eaa-approximate", "eaa-estimate(margin=0.3)"])
def test_many_pushes_are_one_push(algorithm: str) -> None:
    generator = np.random.default_rng(3)
    rows = 3000
    table = {
        "t": np.arange(rows) // 3,
        "key": generator.integers(0, 400, rows),
        "stream": generator.integers(0, 3, rows),
        "value": generator.random(rows),
    }
    windows = (sb.CountWindow(300, 7), sb.TimeWindow(100, 9))
    queries = [
        ask(w, name=f"q{i}", streams=(0, 1, 2), repeats=2, ranges=(0, 1), k=5, algorithm=algorithm)
        for i, w in enumerate(windows)
    ]
    whole, pieces = (sb.Monitor(queries, time="t") for _ in range(2))
    said, cut = whole.push(table), []
    for begin in range(0, rows, 37):
        cut.append(pieces.push({name: column[begin : begin + 37] for name, column in table.items()}))
        if begin % 5 == 0:
            pieces = reloaded(pieces)
    assert said.num_rows > 100
    for query in ("q0", "q1"):
        one, many = (part.filter(pa.compute.equal(part["query"], query)) for part in (said, pa.concat_tables(cut)))
        assert one.to_pylist() == many.to_pylist()
        assert whole.top(query).equals(pieces.top(query))


# --- stories ----------------------------------------------------------------------------------------------------------


def told(monitor: sb.Monitor, story: str) -> None:
    """Rows of `t key stream value`, and below each what the monitor said."""
    written = [line.split() for line in story.strip().splitlines()]
    lived: list[list[str]] = []
    for words in written:
        if words[0] in SIGNS.values():
            continue
        lived.append(words)
        time, key, stream, value = words
        result = monitor.push(batch([{"t": int(time), "key": key, "stream": stream, "value": float(value)}]))
        for row in result.to_pylist():
            rank = [] if row["rank"] is None else [str(row["rank"])]
            lived.append([SIGNS[row["event"]], str(row["window_end"]), row["key"], *rank, f"{row['score']:.1f}"])
    assert lived == written


@pytest.mark.parametrize("algorithm", ["sla", "eaa"])
def test_an_object_rises_as_attributes_arrive_and_falls_as_they_leave(algorithm: str) -> None:
    told(
        sb.Monitor([ask(sb.CountWindow(4), k=1, algorithm=algorithm)]),
        """
        0 ann north 0.5
        + 1 ann 1 0.5
        0 bob north 0.7
        - 2 ann 0.5
        + 2 bob 1 0.7
        0 ann south 0.6
        - 3 bob 0.7
        + 3 ann 1 1.1
        0 cid west 0.1
        0 cid north 0.2
        - 5 ann 1.1
        + 5 bob 1 0.7
        0 dan west 0.0
        - 6 bob 0.7
        + 6 ann 1 0.6
        """,
    )


def test_figure_1() -> None:
    """Flows seen by three routers, a window of 100 time units; a tuple of time 10 is valid until 110."""
    routers = {
        "r1": [("p", 0.3, 10), ("q", 0.2, 11), ("r", 0.5, 109), ("o", 0.5, 110), ("t", 0.9, 111)],
        "r2": [("r", 0.6, 10), ("p", 0.1, 11), ("q", 0.7, 109), ("w", 0.6, 110), ("s", 0.2, 111)],
        "rd": [("q", 0.6, 10), ("r", 0.1, 11), ("o", 0.5, 109), ("s", 0.4, 110), ("t", 0.1, 111)],
    }
    rows = [{"t": t, "key": key, "stream": r, "value": v} for r, seen in routers.items() for key, v, t in seen]
    rows.sort(key=lambda row: row["t"])
    for algorithm in ("sla", "eaa"):
        query = ask(sb.TimeWindow(101, 1), k=9, streams=list(routers), algorithm=algorithm, emit="snapshots")
        monitor = sb.Monitor([query], time="t")
        said = pa.concat_tables([monitor.push(batch(rows)), monitor.advance(112)]).to_pylist()
        tables = {
            time: {row["key"]: round(row["score"], 6) for row in said if row["window_end"] == time + 1}
            for time in (10, 11, 109, 110, 111)
        }
        assert tables == {
            10: {"p": 0.3, "r": 0.6, "q": 0.6},
            11: {"p": 0.4, "r": 0.7, "q": 0.8},
            109: {"p": 0.4, "r": 1.2, "q": 1.5, "o": 0.5},
            110: {"p": 0.4, "r": 1.2, "q": 1.5, "o": 1.0, "w": 0.6, "s": 0.4},
            111: {"p": 0.1, "r": 0.6, "q": 0.9, "o": 1.0, "w": 0.6, "s": 0.6, "t": 1.0},
        }


def test_combine_says_how_streams_add_up() -> None:
    rows = [{"t": 0, "key": "a", "stream": s, "value": v} for s, v in (("north", 3.0), ("south", 6.0))]
    for combine, score in (("sum", 9.0), ("mean", 3.0), ("max", 6.0), ({"north": 2, "south": 0.5, "west": 1}, 9.0)):
        monitor = sb.Monitor([ask(sb.CountWindow(9), combine=combine)])
        monitor.push(batch(rows))
        assert monitor.top("q")["score"].to_pylist() == [score]


@pytest.mark.parametrize(("aggregate", "score"), [("sum", 7.0), ("max", 4.0), ("latest", 1.0)])
def test_aggregate_says_what_repeated_rows_come_to(aggregate: str, score: float) -> None:
    monitor = sb.Monitor([ask(sb.CountWindow(9), aggregate=aggregate)])
    monitor.push(batch([{"t": 0, "key": "a", "stream": "west", "value": v} for v in (2.0, 4.0, 1.0)]))
    assert monitor.top("q")["score"].to_pylist() == [score]


def test_rows_beyond_repeats_are_left_out_and_counted_while_the_object_lives() -> None:
    for algorithm in ("sla", "eaa"):
        monitor = sb.Monitor([ask(sb.CountWindow(3), repeats=1, algorithm=algorithm)])
        say = [monitor.push(batch([{"t": 0, "key": k, "stream": "west", "value": v}])) for k, v in
               (("a", 1.0), ("a", 8.0), ("b", 2.0), ("a", 3.0), ("c", 0.0))]  # fmt: skip
        # with the fourth row the first has left, so that a, of which nothing else counts, begins anew
        assert [row["score"] for row in say[3].to_pylist() if row["event"] == "enter"] == []
        assert monitor.top("q").to_pylist() == [
            {"rank": 1, "score": 3.0, "key": "a"},
            {"rank": 2, "score": 2.0, "key": "b"},
        ]
        assert monitor.stats("q")["repeated"] == 1


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([3, 1, 3, 2]),
        pa.array(["c", "a", "c", "b"]),
        pa.array([b"c", b"a", b"c", b"b"]),
        pa.array([True, False, True, False]),
        pa.array([datetime(2026, 1, d) for d in (3, 1, 3, 2)], pa.timestamp("us")),
        pa.array([3, 1, 3, 2], pa.date32()),
        pa.array(["c", "a", "c", "b"]).dictionary_encode(),
    ],
    ids=lambda keys: str(keys.type),
)
def test_keys_of_any_kind_come_back_as_they_were(keys: pa.Array) -> None:
    monitor = sb.Monitor([ask(sb.CountWindow(9), k=1)])
    monitor.push({"key": keys, "stream": ["west", "west", "north", "north"], "value": [1.0, 1.0, 1.0, 0.5]})
    found = reloaded(monitor).top("q")["key"]
    plain = keys.dictionary_decode() if pa.types.is_dictionary(keys.type) else keys
    assert found.type == plain.type and found.to_pylist() == [plain[0].as_py()]


def test_keys_no_longer_in_the_window_are_forgotten() -> None:
    for algorithm in ("across-oracle", "sla", "eaa", "eaa-approximate", "eaa-estimate"):
        monitor = sb.Monitor([ask(sb.CountWindow(100, 10), algorithm=algorithm, ranges=(0, 1), repeats=1)])
        generator = np.random.default_rng(1)
        for push in range(60):
            keys = [f"key {push * 100 + i}" for i in range(100)]
            streams = generator.choice(STREAMS, 100)
            monitor.push({"key": keys, "stream": streams, "value": generator.random(100)})
        numbering = monitor._lanes[0].numbering  # type: ignore[attr-defined]
        assert len(numbering.number) <= 1500 and len(numbering) <= 2000
        assert numbering.number == {key: number for number, key in enumerate(numbering.key) if key is not None}


def test_beside_other_queries_and_folded() -> None:
    top = sb.TopK(name="rows", k=1, score="value", window=sb.CountWindow(3))
    monitor = sb.Monitor([top, ask(sb.CountWindow(3))])
    rows = [{"t": i, "key": "abc"[i % 3], "stream": "west", "value": float(i % 4)} for i in range(9)]
    changes = monitor.push(batch(rows))
    folded = sb.fold(changes).to_pylist()
    assert {(row["query"], row["key"]) for row in folded} == {
        ("rows", monitor.top("rows")["key"][0].as_py()),
        *(("q", key) for key in monitor.top("q")["key"].to_pylist()),
    }
    assert all((row["seq"] is None) == (row["query"] == "q") for row in changes.to_pylist())


def test_state_survives_a_file_and_a_cancelled_query_is_gone(tmp_path: Path) -> None:
    rows = [{"t": i, "key": "abcd"[i % 4], "stream": STREAMS[i % 3], "value": i * 7 % 10 / 10} for i in range(40)]
    monitor = sb.Monitor([ask(sb.TimeWindow(7, 2)), ask(sb.CountWindow(5), name="p")], time="t")
    monitor.push(batch(rows[:20]))
    monitor.cancel("p")
    monitor.save(tmp_path / "state")
    other = sb.Monitor.load(tmp_path / "state")
    assert monitor.push(batch(rows[20:])).equals(other.push(batch(rows[20:])))
    assert [*other.queries] == ["q"] and other.queries["q"] == monitor.queries["q"]


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"k": 0}, "k must be at least 1"),
        ({"k": 1.5}, "whole number"),
        ({"key": ""}, "key must be the name of a column"),
        ({"streams": []}, "1 to 62"),
        ({"streams": "abc"}, "list of the values"),
        ({"streams": ["a", 1]}, "all texts or all whole numbers"),
        ({"streams": ["a", "b", "a"]}, "'a' twice"),
        ({"combine": "median"}, "may fall when an attribute rises"),
        ({"combine": lambda values: 0}, "nobody knows"),
        ({"combine": {"north": -1, "south": 1, "west": 1}}, "'north' the weight -1"),
        ({"combine": {"north": 1}}, "no weight for 'south'"),
        ({"combine": {"east": 1}}, "'east', which is not one of"),
        ({"order": "asc"}, "order must be 'desc'"),
        ({"emit": "all"}, "emit must be one of"),
        ({"aggregate": "median"}, "aggregate must be one of"),
        ({"outside": "ignore"}, "outside must be one of"),
        ({"ranges": {"east": (0, 1)}}, "'east', which is not one of"),
        ({"ranges": (-1, 1)}, "begin at 0 or above"),
        ({"ranges": (2, 1)}, "not end before"),
        ({"ranges": {"north": 5}}, "give \\(low, high\\)"),
        ({"ranges": (0, "many")}, "must be numbers"),
        ({"repeats": 0}, "repeats must be a whole number"),
        ({"precision": 1.0}, "above 0 and below 1"),
        ({"precision": 0.9, "algorithm": "eaa"}, "'eaa' is exact"),
        ({"precision": 0.9, "algorithm": "eaa-estimate(margin=0.1)"}, "precision is for 'eaa-approximate'"),
        ({"algorithm": "strict"}, "does not rank objects across streams"),
        ({"algorithm": "nonsense"}, "unknown algorithm"),
        ({"algorithm": "eaa", "aggregate": "latest"}, "only grow"),
        ({"window": 5}, "window must be"),
        ({"name": ""}, "needs a name"),
    ],
    ids=lambda value: str(value).split(" at 0x")[0][:40] if isinstance(value, dict) else "",
)
def test_a_wrong_question_is_refused_where_it_is_asked(more: dict[str, Any], says: str) -> None:
    with pytest.raises(sb.QueryError, match=says):
        ask(**{"window": sb.CountWindow(5), **more})


def test_algorithms_across_streams_do_not_answer_other_queries() -> None:
    with pytest.raises(sb.QueryError, match="TopKAcross"):
        sb.TopK(name="q", k=1, score="x", window=sb.CountWindow(5), algorithm="eaa")


GOOD = {"key": ["a", "b"], "stream": ["west", "west"], "value": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"stream": ["west", "east"]}, "row 1 of the batch is of the stream 'east', which is not one of"),
        ({"stream": ["west", None]}, "does not say in which stream"),
        ({"key": ["a", None]}, "row 1 of the batch names no object"),
        ({"value": [1.0, -2.0]}, "value -2.0 in row 1 of the batch is outside the range 0 to 5 of the stream 'west'"),
        ({"value": [1.0, 7.0]}, "outside the range 0 to 5"),
    ],
)
def test_a_wrong_row_costs_the_batch_and_nothing_else(wrong: dict[str, Any], says: str) -> None:
    monitor = sb.Monitor([ask(sb.CountWindow(5), ranges=(0, 5))])
    with pytest.raises(sb.SchemaError, match=says):
        monitor.push({**GOOD, **wrong})
    monitor.push(GOOD)
    before = monitor.top("q")
    with pytest.raises(sb.SchemaError, match=says):
        monitor.push({**GOOD, **wrong})
    assert monitor.top("q").equals(before) and monitor.stats("q")["rows"] == 2
    monitor.push(GOOD)
    assert monitor.top("q")["score"].to_pylist() == [4.0, 2.0]


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"stream": ["west"], "value": [1.0]}, "'key' as its key, which the stream does not have"),
        ({"key": [1.5], "stream": ["west"], "value": [1.0]}, "to name objects, and it is double"),
        ({"key": ["a"], "stream": [1], "value": [1.0]}, "to hold the texts"),
        ({"key": ["a"], "stream": ["west"], "value": ["much"]}, "as numbers, and it is string"),
    ],
)
def test_a_stream_without_the_columns_is_refused(columns: dict[str, Any], says: str) -> None:
    with pytest.raises(sb.SchemaError, match=says):
        sb.Monitor([ask(sb.CountWindow(5))]).push(columns)


def test_values_outside_their_range_are_counted_where_asked() -> None:
    monitor = sb.Monitor([ask(sb.CountWindow(3), ranges=(1, 5), outside="skip")])
    monitor.push({"key": ["a", "b", "c", "d"], "stream": ["west"] * 4, "value": [5.0, 0.5, 9.0, math.nan]})
    assert monitor.top("q").num_rows == 0  # the three rows of the window hold their places
    assert (monitor.stats("q")["outside"], monitor.stats("q")["nulls"]) == (2, 1)


def test_auto_prunes_where_bounds_are_known() -> None:
    window = sb.CountWindow(5)
    assert ask(window).settled_algorithm == "sla"
    assert ask(window, repeats=1, ranges=(0, 1)).settled_algorithm == "eaa"
    assert ask(window, repeats=2, ranges=(0, 1), aggregate="latest").settled_algorithm == "sla"
    assert ask(window, precision=0.9).settled_algorithm == "eaa-approximate"

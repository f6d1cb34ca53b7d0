"""Pairs through the monitor: equal to pairing and sorting every window, whatever the stream, the cuts and the queries."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from pair_reference import AskedPairs, PairFunction, PairReference, l1, l2, over, product
from played import plain
from reference import Event, Row

EXACT = [row["name"] for row in sb.algorithms().to_pylist() if row["family"] == "pairs" and row["exact"]]
SCHEMA = pa.schema([("t", pa.int64()), ("x", pa.float64()), ("y", pa.float64()), ("v", pa.int64())])

# name: the engine's score, the same of two rows, the columns it names
Score = tuple[Any, PairFunction, tuple[str, ...]]


def _some(function: Any) -> PairFunction:
    """None where x is missing on either side."""
    return lambda a, b: None if a["x"] is None or b["x"] is None else function(a, b)


def _weighted(a: Row, b: Row) -> float | None:
    return None if a["x"] is None or b["x"] is None else -(abs(a["y"] - b["y"]) / 4 + 3 * abs(b["x"] - a["x"]))


SCORES: dict[str, Score] = {
    "l1": (sb.pair_distance(["x", "y"], "l1"), l1("x", "y"), ("x", "y")),
    "l2": (sb.pair_distance(["x", "y"]), l2("x", "y"), ("x", "y")),
    "product": (sb.pair_distance(["x", "y"], "product"), product("x", "y"), ("x", "y")),
    "one column": (sb.pair_distance(["x"], "l1"), l1("x"), ("x",)),
    "written out": ("abs(b.x - a.x) + abs(a.y - b.y)", l1("x", "y"), ("x", "y")),
    "weighted": ("-(abs(a.y - b.y) / 4 + 3 * abs(b.x - a.x))", _weighted, ("x", "y")),
    "largest": (
        "max(abs(a.x - b.x), abs(a.y - b.y))",
        _some(lambda a, b: math.nan if math.isnan(a["x"] - b["x"]) else max(abs(a["x"] - b["x"]), abs(a["y"] - b["y"]))),
        ("x", "y"),
    ),
    "not symmetric": ("a.x - 2 * b.y", lambda a, b: None if a["x"] is None else a["x"] - 2 * b["y"], ("x", "y")),
    "a side alone": ("b.y", lambda a, b: b["y"], ("y",)),
    "ratio": ("abs(a.t - b.t) / abs(a.y - b.y)", lambda a, b: over(abs(a["t"] - b["t"]), abs(a["y"] - b["y"])), ("t", "y")),
    "branches": (
        "where(a.v == b.v, min(a.y, b.y), max(a.y, b.y) * 2 + 1)",
        lambda a, b: min(a["y"], b["y"]) if a["v"] == b["v"] else max(a["y"], b["y"]) * 2 + 1,
        ("v", "y"),
    ),
    "shared parts": (
        "(a.x - b.x) * (a.x - b.x) + (a.y + b.y) * (b.y + 1) / (b.y + 1)",
        _some(lambda a, b: (a["x"] - b["x"]) * (a["x"] - b["x"]) + (a["y"] + b["y"]) * (b["y"] + 1) / (b["y"] + 1)),
        ("x", "y"),
    ),
}
WHERES: dict[str, tuple[Any, Any]] = {
    "none": (None, None),
    "older": ("a.v > 0", lambda a, b: a["v"] > 0),
    "newer": ("b.v != 1", lambda a, b: b["v"] != 1),
    "both": ({"v": (1, 2)}, lambda a, b: 1 <= a["v"] <= 2 and 1 <= b["v"] <= 2),
    "across": ("a.v != b.v", lambda a, b: a["v"] != b["v"]),
    "all": ("a.v != b.v and a.y > 0 and b.v > 0", lambda a, b: a["v"] != b["v"] and a["y"] > 0 and b["v"] > 0),
    "unknown": ("a.x < b.x", lambda a, b: a["x"] is not None and b["x"] is not None and a["x"] < b["x"]),
}
AS_METRIC = ("l1", "l2", "product", "one column", "written out", "weighted", "largest")


class Pair:
    """A query, as the engine's and as the reference's."""

    def __init__(
        self, name: str, k: int, kind: str, size: int, slide: int, score: str, where: str, order: str, emit: str, algorithm: str
    ) -> None:
        given_score, function, columns = SCORES[score]
        given_where, passes = WHERES[where]
        if algorithm == "pairs-ta" and score not in AS_METRIC:
            algorithm = "auto"
        window: Any = sb.CountWindow(size, slide) if kind == "count" else sb.TimeWindow(size, slide)
        self.query = sb.TopKPairs(
            name=name, k=k, score=given_score, window=window, order=order, where=given_where, emit=emit, algorithm=algorithm
        )
        self.text = (name, k, kind, size, slide, score, where, order, emit, algorithm)
        self.asked = AskedPairs(name, k, function, kind, size, slide, order, passes, emit, columns)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"Pair{self.text}"


def both(a: Row, b: Row) -> tuple[Any, ...]:
    return plain(a), plain(b)


def events_of(table: pa.Table) -> list[Any]:
    found = []
    for one in table.to_pylist():
        end = one["window_end"] if one["window_end"] is not None else one["window_end_time"]
        a, b = ({name: one[f"{side}_{name}"] for name in SCHEMA.names} for side in "ab")
        found.append(
            Event(one["query"], end, one["event"], one["rank"], one["score"], (one["a_seq"], one["b_seq"]), both(a, b))
        )  # type: ignore[arg-type]
    return found


def expected_events(events: list[Event]) -> list[Any]:
    return [event._replace(row=both(*event.row)) for event in events]  # type: ignore[arg-type]


def same_top(monitor: sb.Monitor, reference: PairReference, name: str) -> None:
    found = [(one["rank"], one["score"], one["a_seq"], one["b_seq"]) for one in monitor.top(name).to_pylist()]
    top = reference.standing[name].top
    assert found == [(rank, r.score, *r.seq) for rank, r in enumerate(top, 1)]  # type: ignore[misc]


def batch_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def play(pairs: list[Pair], rows: list[Row], cuts: list[int], lateness: int = 0, folder: Path | None = None) -> None:
    """Push rows in pieces to both, and compare everything that comes out; with a folder, by way of the disk."""
    monitor = sb.Monitor([pair.query for pair in pairs], time="t", lateness=lateness)
    reference = PairReference([pair.asked for pair in pairs], "t", lateness)
    begin = 0
    for upto in [*cuts, len(rows)]:
        if upto <= begin:
            continue
        assert events_of(monitor.push(batch_of(rows[begin:upto]))) == expected_events(reference.push(rows[begin:upto]))
        check(monitor, reference)
        if folder is not None:
            monitor.save(folder / "state")
            monitor = sb.Monitor.load(folder / "state")
        begin = upto
    assert events_of(monitor.flush()) == expected_events(reference.flush())
    check(monitor, reference)


def check(monitor: sb.Monitor, reference: PairReference) -> None:
    for name, standing in reference.standing.items():
        same_top(monitor, reference, name)
        stats = monitor.stats(name)
        assert (stats["late"], stats["nulls"]) == (standing.late, standing.nulls)
    for lane in monitor._lanes:
        lane.structure.check_invariants()  # type: ignore[attr-defined]


numbers = st.sampled_from([0.0, 1.0, 2.0, -1.0, 0.5, 3.25, math.inf, -math.inf, math.nan, None])
small = st.sampled_from([0.0, 1.0, 2.0, 5.0])


@st.composite
def rows_drawn(draw: st.DrawFn, most: int = 24) -> list[Row]:
    time, rows = 0, []
    for _ in range(draw(st.integers(1, most))):
        time += draw(st.integers(0, 3))
        rows.append({"t": time - draw(st.integers(0, 4)), "x": draw(numbers), "y": draw(small), "v": draw(st.integers(0, 2))})
    return rows


@st.composite
def pair_queries(draw: st.DrawFn, name: str, algorithm: str, kind: str | None = None) -> Pair:
    kind = kind or draw(st.sampled_from(["count", "time"]))
    size = draw(st.integers(1, 14))
    return Pair(
        name, draw(st.integers(1, 9)), kind, size, draw(st.integers(1, size)), draw(st.sampled_from(sorted(SCORES))),
        draw(st.sampled_from(sorted(WHERES))), draw(st.sampled_from(["asc", "desc"])),
        draw(st.sampled_from(["changes", "snapshots", "arrivals", "none"])), algorithm,
    )  # fmt: skip


@pytest.mark.parametrize("algorithm", EXACT)
@given(data=st.data())
def test_answers_are_those_of_sorting_all_pairs(algorithm: str, data: st.DataObject) -> None:
    rows = data.draw(rows_drawn())
    pairs = [data.draw(pair_queries(f"q{i}", algorithm)) for i in range(data.draw(st.integers(1, 3)))]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    lateness = data.draw(st.integers(0, 3))
    play(pairs, rows, cuts, lateness)
    play(pairs, rows, list(range(1, len(rows))), lateness)


@pytest.mark.parametrize("algorithm", EXACT)
@given(data=st.data())
def test_a_monitor_goes_on_after_a_stay_on_disk(algorithm: str, data: st.DataObject, tmp_path_factory: Any) -> None:
    rows = data.draw(rows_drawn())
    pairs = [data.draw(pair_queries(f"q{i}", algorithm)) for i in range(2)]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    play(pairs, rows, cuts, 2, tmp_path_factory.mktemp("state"))


@pytest.mark.parametrize("algorithm", EXACT)
@given(data=st.data())
def test_queries_come_and_go(algorithm: str, data: st.DataObject) -> None:
    """Each step is a push, a query more or a query less."""
    rows = data.draw(rows_drawn(20))
    monitor, reference = sb.Monitor(time="t"), PairReference([], "t")
    at, number = 0, 0
    score, where = data.draw(st.sampled_from(sorted(SCORES))), data.draw(st.sampled_from(sorted(WHERES)))
    while at < len(rows):
        step = data.draw(st.sampled_from(["push", "push", "add", "cancel"]))
        if step == "push":
            upto = data.draw(st.integers(at, min(at + 9, len(rows)))) if at else 1
            assert events_of(monitor.push(batch_of(rows[at:upto]))) == expected_events(reference.push(rows[at:upto]))
            check(monitor, reference)
            at = upto
        elif step == "add":
            drawn = data.draw(pair_queries(f"q{number}", algorithm))
            query = drawn.query
            kind = "count" if isinstance(query.window, sb.CountWindow) else "time"
            size, slide = query.window.size, query.window.slide
            pair = Pair(query.name, query.k, kind, size, slide, score, where, "asc", query.emit, algorithm)  # type: ignore[arg-type]
            monitor.add(pair.query)
            reference.add(pair.asked)
            number += 1
        elif reference.standing:
            name = data.draw(st.sampled_from(sorted(reference.standing)))
            monitor.cancel(name)
            reference.cancel(name)
    assert events_of(monitor.flush()) == expected_events(reference.flush())


def random_rows(count: int, seed: int) -> list[Row]:
    generator = np.random.default_rng(seed)
    x, y, v = generator.random(count), np.round(generator.random(count), 1), generator.integers(0, 3, count)
    return [{"t": i, "x": float(x[i]), "y": float(y[i]), "v": int(v[i])} for i in range(count)]


@pytest.mark.parametrize("score", sorted(SCORES))
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_queries_of_one_score_share_a_structure(score: str, order: str) -> None:
    rows = random_rows(120, 3)
    pairs = [
        Pair(f"q{i}", k, "count", size, slide, score, "none", order, emit, "auto")
        for i, (k, size, slide, emit) in enumerate(
            [(5, 60, 1, "changes"), (30, 17, 4, "none"), (1, 100, 7, "snapshots"), (9, 40, 40, "arrivals")]
        )
    ]
    play(pairs, rows, [7, 50, 51, 90])
    monitor = sb.Monitor([pair.query for pair in pairs], time="t")
    monitor.push(batch_of(rows))
    assert len(monitor._lanes) == 1 and len({monitor.stats(pair.query.name)["candidates"] for pair in pairs}) == 1


def test_a_score_written_out_is_the_distance_it_says() -> None:
    queries = [
        sb.TopKPairs(name="d", k=3, score=sb.pair_distance(["x", "y"], "l1"), window=sb.CountWindow(20)),
        sb.TopKPairs(name="w", k=2, score="abs(a.x - b.x) + abs(a.y - b.y)", window=sb.CountWindow(30)),
    ]
    monitor = sb.Monitor(queries)
    monitor.push({"x": np.arange(9.0), "y": np.arange(9.0)})
    assert len(monitor._lanes) == 1


def test_a_larger_query_joins_the_structure_that_is_there() -> None:
    rows = random_rows(200, 5)
    small, large = (
        Pair(name, k, "count", size, 1, "l1", "none", "asc", "changes", "auto")
        for name, k, size in (("s", 2, 20), ("l", 40, 90))
    )
    monitor, reference = sb.Monitor([small.query]), PairReference([small.asked])
    for begin, end in ((0, 70), (70, 75), (75, 160), (160, 200)):
        if begin == 70:
            monitor.add(large.query)
            reference.add(large.asked)
        if begin == 160:
            monitor.cancel("l")
            reference.cancel("l")
        assert events_of(monitor.push(batch_of(rows[begin:end]))) == expected_events(reference.push(rows[begin:end]))
        check(monitor, reference)
        assert len(monitor._lanes) == 1


def test_pairs_beside_rows_in_one_monitor() -> None:
    near = sb.TopKPairs(name="near", k=1, score=sb.pair_distance(["x"], "l1"), window=sb.CountWindow(3))
    monitor = sb.Monitor([sb.TopK(name="best", k=1, score="x", window=sb.CountWindow(3)), near])
    found = monitor.push({"x": [1.0, 5.0, 4.5]}).select(["query", "event", "score", "seq", "a_seq", "b_seq"]).to_pylist()
    assert [tuple(one.values()) for one in found] == [
        ("best", "enter", 1.0, 0, None, None),
        ("best", "leave", 1.0, 0, None, None),
        ("best", "enter", 5.0, 1, None, None),
        ("near", "enter", 4.0, None, 0, 1),
        ("near", "leave", 4.0, None, 0, 1),
        ("near", "enter", 0.5, None, 1, 2),
    ]  # fmt: skip


def test_memory_is_that_of_the_window_however_long_the_stream() -> None:
    generator = np.random.default_rng(1)
    monitor = sb.Monitor([sb.TopKPairs(name="q", k=5, score=sb.pair_distance(["x", "y"]), window=sb.CountWindow(500))])
    sizes = []
    for _ in range(12):
        monitor.push({"x": generator.random(2000), "y": generator.random(2000)})
        sizes.append((monitor.stats("q")["bytes"], monitor._store.count))
    assert max(size for size, _ in sizes[4:]) <= 1.5 * sizes[3][0]
    assert max(rows for _, rows in sizes) < 40_000

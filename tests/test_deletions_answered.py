"""Deletions whatever answers the query (thresholds, the oracle, TMA) and however it is told: every result row against plain
lists of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skyband as sb
from played import reloaded

Told = tuple[str, int, str, int | None, float, int]  # query, window end, event, rank, score, seq


@dataclass
class Standing:
    """One query, by sorting its window after every row."""

    query: sb.TopK | sb.Threshold
    since: int = 0
    answer: list[tuple[float, int]] = field(default_factory=list)
    ranked: set[int] = field(default_factory=set)

    def end(self, seen: int) -> int:
        slide = self.query.window.slide
        assert isinstance(slide, int)
        return seen // slide * slide

    def first(self, seen: int) -> int:
        size = self.query.window.size
        assert isinstance(size, int)
        return max(self.end(seen) - size, self.since)

    def best(self, rows: list[tuple[float, float]], gone: set[int], seen: int) -> list[tuple[float, int]]:
        found = []
        for seq in range(self.first(seen), self.end(seen)):
            x, y = rows[seq]
            if seq in gone or math.isnan(x) or (self.query.where is not None and not 0 <= y <= 2):
                continue
            score = x if self.query.order == "desc" else -x
            if isinstance(self.query, sb.Threshold):
                bound = self.query.above if self.query.order == "desc" else -self.query.above
                if not score > bound:
                    continue
            found.append((score, seq))
        found.sort(reverse=True)
        return found if isinstance(self.query, sb.Threshold) else found[: self.query.k]

    def told(self, answer: list[tuple[float, int]], end: int) -> list[Told]:
        """The result rows of a window, which is answered so."""
        before, self.answer = self.answer, answer
        name, sign = self.query.name, 1.0 if self.query.order == "desc" else -1.0
        left = [(name, end, "leave", None, sign * score, seq) for score, seq in before if (score, seq) not in answer]
        ranks = [(rank, score, seq) for rank, (score, seq) in enumerate(answer, 1)]
        came = [(name, end, "enter", rank, sign * score, seq) for rank, score, seq in ranks if (score, seq) not in before]
        if self.query.emit == "snapshots":
            return [(name, end, "top", rank, sign * score, seq) for rank, score, seq in ranks]
        if self.query.emit == "arrivals":
            came = [told for told in came if told[-1] not in self.ranked]
            self.ranked |= {told[-1] for told in came}
            return list(came)
        return [*left, *came] if self.query.emit == "changes" else []


@dataclass
class Plain:
    """Many of them over the same rows."""

    standing: dict[str, Standing] = field(default_factory=dict)
    rows: list[tuple[float, float]] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)

    def push(self, rows: list[tuple[float, float]]) -> list[Told]:
        told: dict[str, list[Told]] = {name: [] for name in self.standing}
        for row in rows:
            self.rows.append(row)
            seen = len(self.rows)
            for name, one in self.standing.items():
                if one.end(seen) == seen:
                    told[name] += one.told(one.best(self.rows, self.gone, seen), seen)
        return [row for rows_told in told.values() for row in rows_told]

    def delete(self, seqs: list[int]) -> tuple[list[Told], int]:
        """The result rows, and how many of the rows were live."""
        live_from = min((one.first(len(self.rows)) for one in self.standing.values()), default=len(self.rows))
        gone = {seq for seq in seqs if live_from <= seq < len(self.rows)} - self.gone
        self.gone |= gone
        told: list[Told] = []
        for one in self.standing.values():
            if gone & {seq for _, seq in one.answer}:
                seen = len(self.rows)
                told += one.told(one.best(self.rows, self.gone, seen), one.end(seen))
        return told, len(gone)


numbers = st.sampled_from([0.0, 1.0, 2.0, 3.0, -1.0, math.nan, math.inf, -math.inf])


@st.composite
def questions(draw: st.DrawFn, name: str) -> sb.TopK | sb.Threshold:
    size = draw(st.integers(1, 9))
    asked: dict[str, Any] = {
        "name": name,
        "score": "x",
        "window": sb.CountWindow(size, slide=draw(st.integers(1, size))),
        "order": draw(st.sampled_from(["desc", "asc"])),
        "where": draw(st.sampled_from([None, {"y": (0, 2)}])),
        "emit": draw(st.sampled_from(["changes", "snapshots", "arrivals", "none"])),
    }
    kind = draw(st.sampled_from(["above", "above", "oracle", "tma"]))
    if kind == "above":
        return sb.Threshold(above=draw(st.sampled_from([0.0, 1.0, -math.inf, math.inf])), **asked)
    if kind == "tma" and asked["emit"] == "snapshots":
        asked["emit"] = "changes"
    return sb.TopK(k=draw(st.integers(1, 3)), algorithm=kind, **asked)


def told_of(results: pa.Table) -> list[Told]:
    columns = ("query", "window_end", "event", "rank", "score", "seq")
    return [tuple(row[name] for name in columns) for row in results.to_pylist()]  # type: ignore[misc]


@pytest.mark.parametrize("texts", [False, True], ids=["numbers", "texts"])
@settings(max_examples=150)
@given(data=st.data())
def test_every_result_row_is_that_of_the_rows_left(texts: bool, data: st.DataObject) -> None:
    drawn = [data.draw(questions(f"q{at}")) for at in range(data.draw(st.integers(1, 4), label="queries"))]
    begin = data.draw(st.integers(1, len(drawn)), label="there at first")
    monitor, plain, waiting = sb.Monitor(drawn[:begin], key="id"), Plain(), drawn[begin:]
    plain.standing = {query.name: Standing(query) for query in drawn[:begin]}
    name = (lambda number: f"k{number}") if texts else (lambda number: number)
    kind = pa.string() if texts else pa.int64()
    deleted = missing = 0
    for at in range(data.draw(st.integers(3, 12), label="calls")):
        call = "push" if at == 0 else data.draw(st.sampled_from(["push", "delete", "push", "delete", "save", "add", "cancel"]))
        seen = len(plain.rows)
        if call == "save":
            monitor = reloaded(monitor)
        elif call == "add" and waiting:
            query = waiting.pop()
            monitor.add(query)
            rows = [(1.0, 1.0)]  # with its first row it has a window
            keys = pa.array([name(seen)], kind)
            plain.standing[query.name] = Standing(query, since=seen)
            assert told_of(monitor.push({"id": keys, "x": [1.0], "y": [1.0]})) == plain.push(rows)
        elif call == "cancel" and monitor.queries and seen:
            gone = data.draw(st.sampled_from(sorted(monitor.queries)))
            monitor.cancel(gone)
            del plain.standing[gone]
        elif call == "delete":
            back = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=4), label="how far back")
            wanted = [max(seen - far, 0) for far in back]  # 0: not there yet
            results = monitor.delete([name(number) for number in wanted])
            told, live = plain.delete(wanted)
            assert told_of(results) == told
            deleted, missing = deleted + live, missing + len(wanted) - live
        elif call == "push":
            rows = data.draw(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8), label="rows")
            keys = pa.array([name(seen + at) for at in range(len(rows))], kind)
            batch = {"id": keys, "x": [x for x, _ in rows], "y": [y for _, y in rows]}
            assert told_of(monitor.push(batch)) == plain.push(rows)
        for query in plain.standing.values():
            top = monitor.top(query.query.name)
            assert top["seq"].to_pylist() == [seq for _, seq in query.answer]
        for lane in monitor._lanes:
            lane.structure.check_invariants()  # type: ignore[attr-defined]
    for one in plain.standing if plain.rows else ():
        if monitor.stats(one)["rows"]:
            assert (monitor.stats(one)["deleted"], monitor.stats(one)["not_found"]) == (deleted, missing)


def test_rows_below_every_bound_have_keys_too() -> None:
    monitor = sb.Monitor([sb.Threshold(name="q", above=5.0, score="x", window=sb.CountWindow(3))], key="id")
    monitor.push({"id": ["a", "b", "c"], "x": [9.0, 1.0, 2.0]})
    with pytest.raises(sb.SchemaError, match="the key 'b' of a live row"):
        monitor.push({"id": ["b"], "x": [1.0]})
    assert monitor.delete(["b", "z"]).num_rows == 0
    assert (monitor.stats("q")["deleted"], monitor.stats("q")["not_found"]) == (1, 1)
    assert told_of(monitor.delete(["a"])) == [("q", 3, "leave", None, 9.0, 0)]
    assert monitor.stats("q")["candidates"] == 0


def test_rows_that_came_before_every_query_have_no_keys() -> None:
    """Nothing is kept of them, and no window of a query that is added later holds them."""
    monitor = sb.Monitor(key="id")
    monitor.push({"id": ["a"], "x": [1.0]})
    monitor.add(sb.TopK(name="q", k=1, score="x", window=sb.CountWindow(5)))
    monitor.push({"id": ["b"], "x": [1.0]})
    monitor.push({"id": ["a"], "x": [3.0]})
    monitor.delete(["a"])
    assert monitor.top("q")["id"].to_pylist() == ["b"]


def test_rows_of_an_unfinished_slide_are_deleted_before_they_rank() -> None:
    monitor = sb.Monitor(
        [
            sb.Threshold(name="hot", above=0.0, score=lambda rows: rows["x"], window=sb.CountWindow(4, slide=2)),
            sb.TopK(name="best", k=1, score="x", window=sb.CountWindow(4, slide=2), algorithm="oracle", emit="snapshots"),
        ],
        key="id",
    )
    monitor.push({"id": [0, 1, 2], "x": [1.0, 2.0, 3.0]})
    assert monitor.delete([2]).num_rows == 0
    assert told_of(monitor.push({"id": [3], "x": [0.5]})) == [("hot", 4, "enter", 3, 0.5, 3), ("best", 4, "top", 1, 2.0, 1)]
    assert told_of(monitor.delete([1])) == [("hot", 4, "leave", None, 2.0, 1), ("best", 4, "top", 1, 1.0, 0)]


def test_deletions_among_many_rows_above_a_bound() -> None:
    generator = np.random.default_rng(6)
    monitor = sb.Monitor([sb.Threshold(name="q", above=0.9, score="x", window=sb.CountWindow(2000, slide=50))], key="id")
    x, alive, folded = generator.random(20_000), np.ones(20_000, bool), None
    for begin in range(0, 20_000, 1000):
        rows = np.arange(begin, begin + 1000)
        folded = sb.fold(monitor.push({"id": rows, "x": x[rows]}), folded)
        low = max(begin + 1000 - 2000, 0)
        gone = generator.choice(np.arange(low, begin + 1000), 300, replace=False)
        folded = sb.fold(monitor.delete(gone), folded)
        alive[gone] = False
        right = low + np.flatnonzero((x[low : begin + 1000] > 0.9) & alive[low : begin + 1000])
        right = right[np.argsort(-x[right])]
        assert monitor.top("q")["seq"].to_pylist() == right.tolist()
        assert sorted(folded["seq"].to_pylist()) == sorted(right.tolist())
    assert monitor._store.count < 2 * 2050 + (1 << 14)


def test_a_threshold_over_time_is_refused_for_its_window() -> None:
    query = sb.Threshold(name="q", above=1.0, score="x", window=sb.TimeWindow(10, 5))
    with pytest.raises(sb.QueryError, match="needs a CountWindow") as problem:
        sb.Monitor([query], key="id", time="t")
    assert "algorithm" not in str(problem.value)

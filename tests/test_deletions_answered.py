"""Deletions whatever answers the query (thresholds, the oracle, TMA) and however it is told: every result row against plain
lists of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skyband as sb
from played import reloaded
from skyband.algorithms import choose

Told = tuple[str, int, str, int | None, float, int]  # query, window end, event, rank, score, seq


Row = tuple[int, float, float]  # time, x, y


@dataclass
class Standing:
    """One query, by sorting its window after every row."""

    query: sb.TopK | sb.Threshold
    since: int = 0
    accepted: dict[int, int] = field(default_factory=dict)  # of time windows: seq and time of every row that was not late
    closed: int | None = None  # end of the last window
    answer: list[tuple[float, int]] = field(default_factory=list)
    ranked: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        assert isinstance(self.query.window.size, int) and isinstance(self.query.window.slide, int)
        self.size, self.slide = self.query.window.size, self.query.window.slide
        self.timed = isinstance(self.query.window, sb.TimeWindow)
        if not self.timed:
            self.closed = self.since // self.slide * self.slide

    def take(self, seq: int, time: int, watermark: int | None) -> None:
        if not self.timed:
            self.accepted[seq] = seq
        elif watermark is None or (time // self.slide + 1) * self.slide > watermark:
            self.accepted[seq] = time

    def ends(self, upto: int) -> list[int]:
        """Ends of the windows that close now, as far as one holds a row or its predecessor did; the last of them anyway."""
        last = upto // self.slide * self.slide
        if self.closed is not None and last <= self.closed:
            return []
        times = [time for time in self.accepted.values() if self.closed is None or time >= self.closed - self.size - self.slide]
        first = min(times, default=last) // self.slide * self.slide
        return list(range(max(first, first if self.closed is None else self.closed) + self.slide, last + 1, self.slide))

    def holds(self, seq: int) -> bool:
        """Is the row in the window that ended last, or in one to come?"""
        return seq in self.accepted and (self.closed is None or self.accepted[seq] >= self.closed - self.size)

    def best(self, rows: list[Row], gone: set[int], end: int) -> list[tuple[float, int]]:
        found = []
        for seq, position in self.accepted.items():
            _, x, y = rows[seq]
            if not end - self.size <= position < end or seq in gone:
                continue
            if math.isnan(x) or (self.query.where is not None and not 0 <= y <= 2):
                continue
            score = x if self.query.order == "desc" else -x
            if isinstance(self.query, sb.Threshold):
                bound = self.query.above if self.query.order == "desc" else -self.query.above
                if not score > bound:
                    continue
            found.append((score, position, seq))
        found.sort(reverse=True)
        ranked = [(score, seq) for score, _, seq in found]
        return ranked if isinstance(self.query, sb.Threshold) else ranked[: self.query.k]

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

    lateness: int = 0
    standing: dict[str, Standing] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    watermark: int | None = None

    def push(self, rows: list[Row]) -> list[Told]:
        told: dict[str, list[Told]] = {name: [] for name in self.standing}
        for row in rows:
            seq = len(self.rows)
            self.rows.append(row)
            for one in self.standing.values():
                one.take(seq, row[0], self.watermark)
            moved = row[0] - self.lateness
            self.watermark = moved if self.watermark is None else max(self.watermark, moved)
            for name, one in self.standing.items():
                told[name] += self._closed(one, self.watermark if one.timed else seq + 1)
        return [row for rows_told in told.values() for row in rows_told]

    def advance(self, time: int) -> list[Told]:
        self.watermark = time if self.watermark is None else max(self.watermark, time)
        return [row for one in self.standing.values() if one.timed for row in self._closed(one, self.watermark)]

    def _closed(self, one: Standing, upto: int) -> list[Told]:
        told: list[Told] = []
        for end in one.ends(upto):
            told += one.told(one.best(self.rows, self.gone, end), end)
        last = upto // one.slide * one.slide
        one.closed = last if one.closed is None else max(one.closed, last)
        return told

    def delete(self, seqs: list[int]) -> tuple[list[Told], int]:
        """The result rows, and how many of the rows were live."""
        gone = {seq for seq in seqs if any(one.holds(seq) for one in self.standing.values())} - self.gone
        self.gone |= gone
        told: list[Told] = []
        for one in self.standing.values():
            if gone & {seq for _, seq in one.answer}:
                assert one.closed is not None
                told += one.told(one.best(self.rows, self.gone, one.closed), one.closed)
        return told, len(gone)


numbers = st.sampled_from([0.0, 1.0, 2.0, 3.0, -1.0, math.nan, math.inf, -math.inf])


@st.composite
def questions(draw: st.DrawFn, name: str) -> sb.TopK | sb.Threshold:
    size = draw(st.integers(1, 9))
    slide = draw(st.integers(1, size))
    asked: dict[str, Any] = {
        "name": name,
        "score": "x",
        "window": draw(st.sampled_from([sb.CountWindow(size, slide), sb.TimeWindow(size, slide)])),
        "order": draw(st.sampled_from(["desc", "asc"])),
        "where": draw(st.sampled_from([None, {"y": (0, 2)}])),
        "emit": draw(st.sampled_from(["changes", "snapshots", "arrivals", "none"])),
    }
    kind = draw(st.sampled_from(["above", "sma", "oracle", "tma", "tma", "auto"]))
    if kind in ("above", "sma") or draw(st.booleans()):
        return sb.Threshold(above=draw(st.sampled_from([0.0, 1.0, -math.inf, math.inf])), algorithm=kind, **asked)
    return sb.TopK(k=draw(st.integers(1, 3)), algorithm=kind, **asked)


def told_of(results: pa.Table) -> list[Told]:
    columns = ("query", "window_end", "event", "rank", "score", "seq")
    found = results.to_pylist()
    for row in found:
        row["window_end"] = row["window_end"] if row["window_end"] is not None else row["window_end_time"]
    return [tuple(row[name] for name in columns) for row in found]  # type: ignore[misc]


drawn = given(data=st.data(), texts=st.booleans(), lateness=st.sampled_from([0, 3]), many=st.integers(1, 3))


@settings(max_examples=80)
@drawn
def test_every_result_row_is_that_of_the_rows_left(data: st.DataObject, texts: bool, lateness: int, many: int) -> None:
    """Of rows whose keys are texts or numbers."""
    with patch.multiple(choose, MANY=many, MANY_BOUNDS=many):
        rows_come_and_go(texts, data, lateness)


@pytest.mark.slow
@drawn
def test_the_same_of_many_streams(data: st.DataObject, texts: bool, lateness: int, many: int) -> None:
    with patch.multiple(choose, MANY=many, MANY_BOUNDS=many):
        rows_come_and_go(texts, data, lateness)


def rows_come_and_go(texts: bool, data: st.DataObject, lateness: int) -> None:
    drawn = [data.draw(questions(f"q{at}")) for at in range(data.draw(st.integers(1, 4), label="queries"))]
    begin = data.draw(st.integers(1, len(drawn)), label="there at first")
    monitor, plain = sb.Monitor(drawn[:begin], key="id", time="t", lateness=lateness), Plain(lateness)
    waiting, now = drawn[begin:], 0
    plain.standing = {query.name: Standing(query) for query in drawn[:begin]}
    name = (lambda number: f"k{number}") if texts else (lambda number: number)
    kind = pa.string() if texts else pa.int64()
    deleted = missing = 0

    def pushed(rows: list[Row]) -> None:
        keys = pa.array([name(len(plain.rows) + at) for at in range(len(rows))], kind)
        time, x, y = (list(column) for column in zip(*rows, strict=True))
        assert told_of(monitor.push({"id": keys, "t": time, "x": x, "y": y})) == plain.push(rows)

    for at in range(data.draw(st.integers(3, 12), label="calls")):
        calls = ["push", "delete", "push", "delete", "save", "add", "cancel", "advance"]
        call = "push" if at == 0 else data.draw(st.sampled_from(calls))
        seen = len(plain.rows)
        if call == "save":
            monitor = reloaded(monitor)
        elif call == "add" and waiting:
            query = waiting.pop()
            monitor.add(query)
            plain.standing[query.name] = Standing(query, since=seen)
            pushed([(now, 1.0, 1.0)])  # with its first row it has a window
        elif call == "cancel" and monitor.queries and seen:
            gone = data.draw(st.sampled_from(sorted(monitor.queries)))
            monitor.cancel(gone)
            del plain.standing[gone]
        elif call == "advance":
            now += data.draw(st.integers(0, 12), label="by")
            assert told_of(monitor.advance(now)) == plain.advance(now)
        elif call == "delete":
            back = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=4), label="how far back")
            wanted = [max(seen - far, 0) for far in back]  # 0: not there yet
            results = monitor.delete([name(number) for number in wanted])
            told, live = plain.delete(wanted)
            assert told_of(results) == told
            deleted, missing = deleted + live, missing + len(wanted) - live
        elif call == "push":
            steps = data.draw(st.lists(st.tuples(st.integers(-5, 4), numbers, numbers), min_size=1, max_size=8), label="rows")
            rows = []
            for step, x, y in steps:
                rows.append((now + step, x, y))
                now = max(now, now + step)
            pushed(rows)
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


def test_rows_that_came_too_late_have_no_keys() -> None:
    window = sb.TimeWindow(10, 5)
    monitor = sb.Monitor([sb.TopK(name="q", k=2, score="x", window=window, emit="snapshots")], key="id", time="t")
    monitor.push({"id": ["a", "b"], "t": [1, 12], "x": [3.0, 4.0]})
    monitor.push({"id": ["a", "b"], "t": [2, 3], "x": [9.0, 9.0]})  # late: neither counts, nor takes the keys of live rows
    with pytest.raises(sb.SchemaError, match=r"row 1 of the batch has the key 'b' of a live row \(seq 1\)"):
        monitor.push({"id": ["c", "b"], "t": [13, 13], "x": [1.0, 1.0]})
    assert told_of(monitor.delete(["a", "a", "z"])) == []  # in the window that ended at 10, and its only row
    assert (monitor.stats("q")["deleted"], monitor.stats("q")["not_found"], monitor.stats("q")["late"]) == (1, 2, 2)
    monitor.delete(["b"])  # waits for its slide to close
    assert told_of(monitor.push({"id": ["b"], "t": [14], "x": [1.0]})) == []
    assert told_of(monitor.advance(15)) == [("q", 15, "top", 1, 1.0, 4)]
    monitor.advance(40)
    monitor.push({"id": ["b"], "t": [41], "x": [5.0]})  # the other has left every window
    assert monitor.stats("q")["late"] == 2

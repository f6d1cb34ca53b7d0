"""Where bands of candidates lie: one arena for all, in which a band that grows moves to free places at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skyband.kernels.ranked import bands
from skyband.kernels.ranked.bands import Rows
from skyband.kernels.ranked.pruning import COLUMNS, CORE, FILTER, NONE, Pruners

KINDS = {
    "strict": bands.STRICT,
    "relaxed": bands.RELAXED,
    "probabilistic": bands.PROBABILISTIC,
    "limited": bands.LIMITED,
}
_FEW = 16  # candidates there is room for at first, besides some for each of the k


@dataclass(frozen=True)
class Band:
    """How a band prunes.

    kind       one of KINDS; limited: probabilistic, and rows that k newer ones outrank are dropped
    limit      relaxed: the candidates at the first sweep; probabilistic, limited: the most candidates; strict: where it is
               filled from the window, the rows above which it is cut back
    least      probabilistic, limited: the fewest candidates at which its threshold still holds
    share      relaxed: the pruning coefficient gamma; probabilistic, limited: how far a lost row lowers the threshold, in
               differences of the two lowest candidates
    """

    kind: str
    k: int
    limit: int = 0
    least: int = 0
    share: float = 0.0

    @property
    def room(self) -> int:
        """Places to begin with."""
        if KINDS[self.kind] >= bands.PROBABILISTIC:
            return self.k + self.limit + _FEW
        return max(2 * self.k, self.limit if self.kind == "strict" else 0) + _FEW


def pruners(bands_asked: Sequence[Band], queries: int) -> Pruners:
    """Empty bands, and queries without any."""
    marks = np.zeros((len(bands_asked), bands.MARKS), np.int64)
    levels = np.full((len(bands_asked), bands.LEVELS), -np.inf)
    begin = max((band.k for band in bands_asked), default=0)  # a sweep's places
    for row, level, band in zip(marks, levels, bands_asked, strict=True):
        row[[bands.BEGIN, bands.ROOM, bands.HEAD, bands.STOP]] = begin, band.room, begin, begin
        row[[bands.K, bands.KIND, bands.LIMIT, bands.LEAST]] = band.k, KINDS[band.kind], band.limit, band.least
        row[bands.OLDEST] = bands.NEVER
        level[bands.SHARE] = band.share
        begin += band.room
    return Pruners(_rows(begin), marks, levels, np.zeros((queries, COLUMNS), np.int64))


def _rows(room: int) -> Rows:
    return Rows(np.zeros(room), np.zeros(room, np.int64), np.zeros(room, np.int32))


def with_room(state: Pruners, band: int) -> Pruners:
    """The same, with twice the places for a band. O(rows of the band), now and then O(all rows)."""
    marks = state.marks
    wanted = 2 * int(marks[band, bands.ROOM]) + _FEW
    end = int((marks[:, bands.BEGIN] + marks[:, bands.ROOM]).max())
    if end + wanted > len(state.rows.score):
        rooms = marks[:, bands.ROOM].copy()
        rooms[band] = wanted
        return _moved(state, rooms, spare=int(rooms.sum()))
    _copy(state.rows, state.rows, marks[band], end)
    marks[band, bands.ROOM] = wanted
    return state


def packed(state: Pruners) -> Pruners:
    """The same without free places, bands in order: what is worth writing down."""
    return _moved(state, state.marks[:, bands.STOP] - state.marks[:, bands.HEAD], spare=0)


def without(state: Pruners, number: int) -> Pruners:
    """The same without a query, which has two bands, as have all; their places are given back when most are free."""
    marks, levels = (np.delete(table, [2 * number, 2 * number + 1], axis=0) for table in (state.marks, state.levels))
    query = np.delete(state.query, number, axis=0)
    query[number:, CORE] -= 2
    query[number:, FILTER] -= 2 * (query[number:, FILTER] != NONE)
    left, rooms = Pruners(state.rows, marks, levels, query), marks[:, bands.ROOM]
    return left if 4 * int(rooms.sum()) >= len(state.rows.score) else _moved(left, rooms, spare=0)


def joined(state: Pruners, other: Pruners) -> Pruners:
    """The bands and queries of both."""
    marks, end = other.marks.copy(), len(state.rows.score)
    marks[:, [bands.BEGIN, bands.HEAD, bands.STOP]] += end
    query = other.query.copy()
    query[:, CORE] += len(state.marks)
    query[query[:, FILTER] != NONE, FILTER] += len(state.marks)
    rows = Rows(*(np.concatenate(pair) for pair in zip(state.rows, other.rows, strict=True)))
    tables = ((state.marks, marks), (state.levels, other.levels), (state.query, query))
    whole = Pruners(rows, *(np.concatenate(pair) for pair in tables))
    if whole.marks[:, bands.K].max() > whole.marks[:, bands.BEGIN].min():  # a sweep needs more places at the beginning
        rooms = whole.marks[:, bands.ROOM]
        return _moved(whole, rooms, spare=int(rooms.sum()))
    return whole


def _moved(state: Pruners, rooms: np.ndarray, spare: int) -> Pruners:
    """The bands in a new arena, each with so many places, and `spare` ones at the end."""
    first, marks = int(state.marks[:, bands.K].max(initial=0)), state.marks.copy()
    rows = _rows(first + int(rooms.sum()) + spare)
    begin = first + np.cumsum(rooms) - rooms
    count = marks[:, bands.STOP] - marks[:, bands.HEAD]
    source, target = _places(marks[:, bands.HEAD], count), _places(begin, count)
    for old, new in zip(state.rows, rows, strict=True):
        new[target] = old[source]
    marks[:, bands.BEGIN] = marks[:, bands.HEAD] = begin
    marks[:, bands.STOP], marks[:, bands.ROOM] = begin + count, rooms
    return state._replace(rows=rows, marks=marks)


def _places(begin: np.ndarray, count: np.ndarray) -> np.ndarray:
    """begin[0], begin[0] + 1, ..., as many as count[0] says, then those from begin[1] on, and so forth."""
    skipped = begin - (np.cumsum(count) - count)
    return np.arange(int(count.sum())) + np.repeat(skipped, count)


def _copy(source: Rows, target: Rows, marks: np.ndarray, begin: int) -> None:
    """Copy a band's rows to the places from `begin` on, which its marks then say."""
    held = slice(int(marks[bands.HEAD]), int(marks[bands.STOP]))
    count = held.stop - held.start
    for old, new in zip(source, target, strict=True):
        new[begin : begin + count] = old[held]
    marks[[bands.BEGIN, bands.HEAD, bands.STOP]] = begin, begin, begin + count


def held(state: Pruners, band: int) -> Rows:
    """The rows of a band, best first: a view."""
    span = slice(int(state.marks[band, bands.HEAD]), int(state.marks[band, bands.STOP]))
    return Rows(*(column[span] for column in state.rows))


def check_band(state: Pruners, band: int, name: str) -> None:
    """AssertionError, with the band in its message, when a property of it does not hold."""
    marks, rows = state.marks[band], held(state, band)
    listed = list(zip(*(column.tolist() for column in rows), strict=True))
    shown = f"{name} (score, ordinal, dominators) {listed}"
    score, ordinal, dominators = rows
    k, kind = int(marks[bands.K]), int(marks[bands.KIND])
    assert marks[bands.BEGIN] <= marks[bands.HEAD] <= marks[bands.STOP] <= marks[bands.BEGIN] + marks[bands.ROOM], shown
    above, below = slice(None, -1), slice(1, None)
    ranked = (score[above] > score[below]) | ((score[above] == score[below]) & (ordinal[above] > ordinal[below]))
    assert ranked.all(), f"out of order: {shown}"
    assert not np.isnan(score).any(), f"a row without a score is held: {shown}"
    known = ordinal if kind >= bands.PROBABILISTIC else ordinal[:k]
    assert (known >= marks[bands.OLDEST]).all(), f"a row is older than the oldest, {marks[bands.OLDEST]}: {shown}"
    if kind >= bands.PROBABILISTIC:
        assert len(score) <= k + marks[bands.LIMIT], f"more than {k} rows and {marks[bands.LIMIT]} candidates: {shown}"
    if kind == bands.PROBABILISTIC:
        return
    newer_above = np.array([int((ordinal[:place] > ordinal[place]).sum()) for place in range(len(score))], np.int64)
    if kind in (bands.STRICT, bands.LIMITED):
        assert (dominators == newer_above).all(), f"dominators miscounted, should be {newer_above.tolist()}: {shown}"
        assert (dominators < k).all(), f"a dominated row is held: {shown}"
    else:
        counted = np.where(dominators < 0, -1 - dominators, dominators)
        assert (counted <= newer_above).all(), f"more dominators than the {newer_above.tolist()} there are: {shown}"
        assert (counted < k).all(), f"a row known to be dominated is held: {shown}"
        assert len(score) - k <= max(int(marks[bands.LIMIT]), 0), f"more than {marks[bands.LIMIT]} candidates: {shown}"

"""Rows of slides that have not closed: held in the order of arrival until the watermark passes them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from skyband.algorithms.contract import read_only
from skyband.schedule import pane_cuts

_AT_LEAST = 1 << 13  # fewer rows are not worth sorting out
_LARGE = 1 << 15  # rows of a piece, at most
_JOINED = 4  # pieces at a time

Columns = tuple[np.ndarray, ...]  # time, seq, score


class OpenRows:
    """Time, arrival number and score of rows that wait, in pieces: when a slide closes, only those are read that hold rows
    of it. Of the rows that enter and leave all windows together (a pane) only the best k can rank: the others are sorted out
    when the number held has doubled, at O(log) a row."""

    def __init__(self) -> None:
        self._pieces: list[tuple[int, Columns]] = []  # the earliest time, and rows; seq increases throughout
        self.count = 0
        self.limit = _AT_LEAST

    def add(self, time: np.ndarray, seq: np.ndarray, score: np.ndarray) -> None:
        """Hold more rows, of increasing `seq`."""
        for begin in range(0, len(time), _LARGE):
            run = slice(begin, begin + _LARGE)
            self._pieces.append(_piece((time[run], seq[run], score[run])))
        self.count += len(time)
        while len(self._pieces) >= _JOINED:
            newest = self._pieces[-_JOINED:]
            lengths = [len(rows[0]) for _, rows in newest]
            if lengths[0] > sum(lengths[1:]) or sum(lengths) > _LARGE:
                return
            self._pieces[-_JOINED:] = [_piece(_joined(rows for _, rows in newest))]

    def tidy(self, slide: int, sizes: list[int], k: int) -> None:
        """Sort out rows that cannot rank when there are many rows."""
        if self.count > self.limit:
            time, seq, score = self.whole()
            kept = _best_of_panes(time, seq, score, slide, sizes, k)
            self._hold((time[kept], seq[kept], score[kept]))
            self.limit = 2 * self.count + _AT_LEAST

    def whole(self) -> Columns:
        """All rows: times, arrival numbers, scores."""
        return _joined(rows for _, rows in self._pieces)

    def _hold(self, rows: Columns) -> None:
        self._pieces, self.count = [], 0
        self.add(rows[0], rows[1], rows[2])

    def take_before(self, time: int) -> Columns:
        """Hand out the rows before `time`, in the order of time, then arrival. O(rows of the pieces that hold one)."""
        done: list[Columns] = []
        left: list[tuple[int, Columns]] = []
        was_read = False  # the last of those that are left
        for earliest, rows in self._pieces:
            if earliest >= time:
                left.append((earliest, rows))
                was_read = False
                continue
            due = rows[0] < time
            done.append(tuple(column[due] for column in rows))
            if due.all():
                continue
            rest = tuple(column[~due] for column in rows)
            if was_read and len(left[-1][1][0]) + len(rest[0]) <= _LARGE:
                rest = _joined((left.pop()[1], rest))
            left.append(_piece(rest))
            was_read = True
        self._pieces = left
        rows = _joined(done)
        self.count -= len(rows[0])
        if (rows[0][1:] < rows[0][:-1]).any():
            order = np.argsort(rows[0], kind="stable")
            rows = tuple(column[order] for column in rows)
        return rows

    def drop(self, seq: np.ndarray) -> None:
        """Let these rows go."""
        rows = self.whole()
        stays = ~np.isin(rows[1], seq)
        if not stays.all():
            self._hold(tuple(column[stays] for column in rows))

    def seqs(self, since: int) -> np.ndarray:
        """Arrival numbers from `since` on, increasing."""
        parts: list[np.ndarray] = []
        for _, (_, seq, _) in reversed(self._pieces):
            if seq[-1] < since:
                break
            parts.append(seq[np.searchsorted(seq, since) :])
        return np.concatenate([np.zeros(0, np.int64), *reversed(parts)])

    def restore(self, time: np.ndarray, seq: np.ndarray, score: np.ndarray, limit: int) -> None:
        """Hold what `whole` gave."""
        self._hold((time, seq, score))
        self.limit = limit


def _piece(rows: Columns) -> tuple[int, Columns]:
    return int(rows[0].min()), rows


def _joined(pieces: Iterable[Columns]) -> Columns:
    some = list(pieces)
    if not some:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    return some[0] if len(some) == 1 else tuple(np.concatenate(column) for column in zip(*some, strict=True))


def _best_of_panes(time: np.ndarray, seq: np.ndarray, score: np.ndarray, slide: int, sizes: list[int], k: int) -> np.ndarray:
    """Places, in the order of arrival, of the best k rows of each pane."""
    from skyband.kernels.cells import Keys, keep_best, number_cells, number_panes

    pane, cell, keep = np.empty(len(time), np.int64), np.empty(len(time), np.int64), np.zeros(len(time), bool)
    time = read_only(time)
    number_panes(time, slide, read_only(pane_cuts(slide, sizes)), pane)
    cells = number_cells(read_only(np.zeros(len(time), np.int64)), read_only(pane), cell)
    keep_best(read_only(cell), cells, Keys(read_only(score), time, read_only(seq)), k, keep)
    return np.flatnonzero(keep)

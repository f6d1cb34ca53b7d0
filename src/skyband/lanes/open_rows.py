"""Rows of slides that have not closed: held in the order of arrival until the watermark passes them."""

from __future__ import annotations

import numpy as np

from skyband.algorithms.contract import read_only
from skyband.schedule import pane_cuts

_AT_LEAST = 1 << 13  # fewer rows are not worth sorting out
_PIECES = 64  # more make every push slow


class OpenRows:
    """Time, arrival number and score of rows that wait. Of the rows that enter and leave all windows together (a pane)
    only the best k can rank: the others are sorted out when the number held has doubled, at O(log) a row."""

    def __init__(self) -> None:
        self._pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # time, seq, score; seq increases throughout
        self.count = 0
        self.limit = _AT_LEAST

    def add(self, time: np.ndarray, seq: np.ndarray, score: np.ndarray) -> None:
        """Hold more rows, of increasing `seq`."""
        if len(time):
            self._pieces.append((time, seq, score))
            self.count += len(time)

    def tidy(self, slide: int, sizes: list[int], k: int) -> None:
        """Join pieces when there are many; sort out rows that cannot rank when there are many rows."""
        if self.count > self.limit:
            time, seq, score = self.whole()
            kept = _best_of_panes(time, seq, score, slide, sizes, k)
            self._hold((time[kept], seq[kept], score[kept]))
            self.limit = 2 * self.count + _AT_LEAST
        elif len(self._pieces) > _PIECES:
            self._hold(self.whole())

    def whole(self) -> tuple[np.ndarray, ...]:
        """All rows: times, arrival numbers, scores."""
        if not self._pieces:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        return tuple(np.concatenate(column) for column in zip(*self._pieces, strict=True))

    def _hold(self, rows: tuple[np.ndarray, ...]) -> None:
        self._pieces, self.count = [], 0
        self.add(rows[0], rows[1], rows[2])

    def take_before(self, time: int) -> tuple[np.ndarray, ...]:
        """Hand out the rows before `time`, in the order of time, then arrival."""
        rows = self.whole()
        done = rows[0] < time
        self._hold(tuple(column[~done] for column in rows))
        rows = tuple(column[done] for column in rows)
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
        for _, seq, _ in reversed(self._pieces):
            if seq[-1] < since:
                break
            parts.append(seq[np.searchsorted(seq, since) :])
        return np.concatenate([np.zeros(0, np.int64), *reversed(parts)])

    def restore(self, time: np.ndarray, seq: np.ndarray, score: np.ndarray, limit: int) -> None:
        """Hold what `whole` gave."""
        self._hold((time, seq, score))
        self.limit = limit


def _best_of_panes(time: np.ndarray, seq: np.ndarray, score: np.ndarray, slide: int, sizes: list[int], k: int) -> np.ndarray:
    """Places, in the order of arrival, of the best k rows of each pane."""
    from skyband.kernels.cells import Keys, keep_best, number_cells, number_panes

    pane, cell, keep = np.empty(len(time), np.int64), np.empty(len(time), np.int64), np.zeros(len(time), bool)
    time = read_only(time)
    number_panes(time, slide, read_only(pane_cuts(slide, sizes)), pane)
    cells = number_cells(read_only(np.zeros(len(time), np.int64)), read_only(pane), cell)
    keep_best(read_only(cell), cells, Keys(read_only(score), time, read_only(seq)), k, keep)
    return np.flatnonzero(keep)

"""Many queries over the same attributes and windows that hold any number of rows, such as those of time.

A crowd (`crowd`) whose windows are intervals of ordinals, told with the rows. Whatever relies on how many rows a window holds
grows with them: the rings of the window's rows, and the calendar. Cells are made for the rows that the last window held, and
anew, in O(window), when these have come to be three times as many, or as few.

Paper: SIGMOD06 sections 4 and 5, which treat windows of time and of so many rows alike. Guarantee: exact. Cost and memory:
those of a crowd.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from skyband.algorithms.spatial import scanned
from skyband.algorithms.spatial.asked import Asked, resolution
from skyband.algorithms.spatial.crowd import Crowd
from skyband.algorithms.spatial.scanned import NO_POINTS, Round
from skyband.kernels.ranked import bands, pruning
from skyband.kernels.spatial import crowd_index, points
from skyband.kernels.spatial import scan as scan_kernel
from skyband.kernels.spatial.point_grid import room_for, search

_GROWN = 3  # times as many rows, or as few, as the grid was made for call for another


class TimeCrowd(Crowd):
    """`grid`: cells along each attribute; None: as many as suit the rows."""

    def __init__(self, attributes: tuple[str, ...], grid: int | None = None) -> None:
        super().__init__(attributes, resolution(0, len(attributes)) if grid is None else grid)
        self.fixed = grid is not None
        self._suits = 0  # rows that the grid is made for
        self._first, self._end = np.zeros(0, np.int64), np.zeros(0, np.int64)  # the windows being answered
        self._number = np.zeros(0, np.int64)  # and their places among those handed over
        self.last = (0, 0)  # first row and end of the window answered last

    def take(self, rows: np.ndarray, first: np.ndarray, end: np.ndarray) -> Iterator[Round]:
        """Take rows, float64 [attributes, rows], and answer the windows of the ordinals first[i] <= row < end[i], which never
        decrease; the last ends with the rows, or before. In rounds: queries, places of windows, answers of those that may
        have changed. Otherwise as `push`."""
        rows = np.ascontiguousarray(rows)
        begin, stop, at = self.seen, self.seen + rows.shape[1], 0
        while at < len(end) or self.seen < stop:
            start = self.seen
            self.seen = min(start + (scanned.WALKED if self.grid > 1 else scanned.PIECE), stop)
            upto = at + int(np.searchsorted(end[at:], self.seen, "right"))
            self._first, self._end, self._number = first[at:upto], end[at:upto], np.arange(at, upto)
            if self.asked and self.seen > 0:
                yield from self._take(rows[:, start - begin : self.seen - begin].copy(), start, start)
            if upto > at:
                self.last = int(first[upto - 1]), int(end[upto - 1])
            at = upto

    def take_over(self, asked: Asked, score: np.ndarray, ordinal: np.ndarray) -> None:
        """Take up a query that has seen all rows of the last window, and was told these of it, best first: its core is filled
        as after a search."""
        self.add(asked)
        q, (first, end) = len(self.asked) - 1, self.last
        self.tops.score[q, : len(score)], self.tops.ordinal[q, : len(score)] = score, ordinal
        self.tops.count[q] = len(score)
        if self.seen == 0:
            return
        if self._index is None:
            self._index = self._indexed(self.seen)
        grid, indexed, calendar = self._index
        query, places = self.state.query[q], self._points.seen.size
        query[pruning.LEFT] = first
        wanted = int(query[pruning.WANTED])
        found = np.empty(room_for(wanted)), np.empty(room_for(wanted), np.int64)
        heap = np.empty(places), np.empty(places, np.int64)
        count = search(self._points, grid, self.questions, q, first, end, wanted, *found, *heap)
        pruning.fill(self.state, q, *found, count, pruning.filled_for(first, end))
        crowd_index.index_query(self.state, self.questions, grid, indexed, q)
        crowd_index.plan_query(self.state, calendar, q)

    def push(self, rows: np.ndarray) -> Iterator[Round]:
        """Windows are not known from the rows: see `take`."""
        raise AssertionError("a crowd over windows of any number of rows is told which end with them")

    def _windows(self, begin: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._first, self._end, self._number

    def _coming(self) -> int:
        return int(bands.NEVER)  # that depends on the rows to come

    def _last_window(self, seen: int) -> tuple[int, int]:
        return self.last

    def _slides(self, begin: int) -> scan_kernel.Slides:
        """The windows being answered; of a query that is not heard, the last of them."""
        kind = np.array([0 if asked.heard else 1 for asked in self.asked], np.int64)
        first, end = (np.concatenate([column, column[-1:]]) for column in (self._first, self._end))
        return scan_kernel.Slides(kind, np.array([0, len(self._end), len(end)]), first, end)

    def _named(self, slides: scan_kernel.Slides, places: np.ndarray) -> np.ndarray:
        return np.concatenate([self._number, self._number[-1:]])[places]

    # -- as many rows as there are -------------------------------------------------------------------------------

    def _most_rows(self) -> int:
        """Twice as many as there are: room for more."""
        return 2 * (self.seen - self.last[0]) + scanned.WALKED

    def _make_room(self, begin: int) -> None:
        rows = self.seen - self.last[0]
        if not self.fixed and not self._suits / _GROWN < rows < self._suits * _GROWN:
            suited, self._suits = resolution(rows, len(self.attributes)), rows
            if suited != self.grid:
                self.grid = suited
                if self._extent.bounds is not None:
                    self._lay_anew(begin)
        if self._points is not NO_POINTS and rows > len(self._points.cell):
            self._points = points.with_window(self._points, self._most_rows())
        if self._index is not None and rows > self._index[2].head.shape[1]:
            self._index = None

    def _header(self) -> dict[str, Any]:
        return {**super()._header(), "last": list(self.last), "suits": self._suits}

    def _restore_header(self, header: dict[str, Any]) -> None:
        super()._restore_header(header)
        first, end = header["last"]
        self.last, self._suits = (int(first), int(end)), int(header["suits"])
        if not self.fixed:
            self.grid = resolution(self._suits, len(self.attributes))

"""TSL over windows that hold any number of rows, such as those of time.

Lists are made anew, in O(window), when a window has more rows than they have room for.

Paper, guarantee, cost: those of `tsl`. Deviation: a view is made for as many rows as k asks for, whatever the window holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from skyband.algorithms.spatial.asked import Asked
from skyband.algorithms.spatial.tsl import TSL, Round, most_rows
from skyband.kernels.spatial.sorted_lists import fresh_limit

_LEAST = 1 << 10  # rows that lists have room for


class TimeTSL(TSL):
    """Queries over the same attributes and windows, which are told with the rows."""

    def __init__(self, attributes: tuple[str, ...], grid: int | None = None) -> None:
        super().__init__(attributes)
        self.last = (0, 0)  # first row and end of the window answered last
        self._room = (0, 0)  # rows of a window and of a cycle that lists have room for

    def _most_of(self, asked: Asked) -> int:
        return most_rows(asked.k)  # the window's size is a length of time: nobody knows how many rows it will hold

    def take(self, rows: np.ndarray, first: np.ndarray, end: np.ndarray) -> Iterator[Round]:
        """Take rows, float64 [attributes, rows], and answer the windows of the ordinals first[i] <= row < end[i], which never
        decrease; the last ends with the rows, or before. In rounds: queries, places of windows, answers of those that may
        have changed. Otherwise as `push`."""
        if not self.asked:
            self.seen += rows.shape[1]
            return
        starts = np.concatenate([[self.seen - self.rows.shape[1]], end])
        most = int((end - np.maximum(np.minimum(first, starts[:-1]), self.last[0])).max(initial=0))
        longest = int((starts[1:] - starts[:-1]).max(initial=0))
        if self._lists is None or most > self._room[0] or longest > self._room[1]:
            window = self._window()  # the rows before these, of which the oldest may have left
            self._room = 2 * most + _LEAST, 2 * longest + _LEAST
            self._make_lists(window[:, max(window.shape[1] - most, 0) :], *self._room)
        self.seen += rows.shape[1]
        yield from self._cycles(rows, first, end, fresh_limit(*self._room))
        if len(end):
            self.last = int(first[-1]), int(end[-1])

    def push(self, rows: np.ndarray) -> Iterator[Round]:
        """Windows are not known from the rows: see `take`."""
        raise AssertionError("views over windows of any number of rows are told which end with them")

    def _live(self) -> tuple[int, int]:
        return max(self.last[0], self._first), self.seen - self.rows.shape[1]

    def _header(self) -> dict[str, Any]:
        return {**super()._header(), "last": list(self.last)}

    def _restore_header(self, header: dict[str, Any]) -> None:
        super()._restore_header(header)
        first, end = header["last"]
        self.last = int(first), int(end)

    def _restore_window(self, window: np.ndarray) -> None:
        self._room = 2 * window.shape[1] + _LEAST, _LEAST
        self._make_lists(window, *self._room)

"""What part of space the rows of a window take up: what a grid over them divides, and how far its outermost cells reach.

The range of the window is known as that of some thirty pieces of it, so that it shrinks when rows leave. A grid fits as long as
the window takes up a third of it at least, on every attribute, and does not reach out of it by more than its own length.

Where its outermost cells reach farther than rows do, queries take rows there for possible, and monitor more cells than they
need: half a cell too far along each of four attributes makes that five times as many. But each time they have to reach farther,
all queries are indexed anew. So they reach a little beyond the rows, and twice as far each time, for rows that drift.
"""

from __future__ import annotations

from collections import deque

import numpy as np

_PIECES = 32  # of a window
_FITTING = 3  # times the window's range that a grid may have
_LEAST_SLACK, _MOST_SLACK = 0.0005, 0.05  # of the range, by which cells reach beyond the rows that made them reach farther


class Extent:
    """Ranges are [2, d]: least and greatest numbers."""

    def __init__(self) -> None:
        self.bounds: np.ndarray | None = None  # what the grid divides
        self.reach: np.ndarray | None = None  # how far its outermost cells reach, where they do not to infinity
        self._slack = np.array([[_LEAST_SLACK], [_LEAST_SLACK]])  # below and above: of all attributes, later of each
        self._pieces: deque[tuple[int, int, np.ndarray, np.ndarray]] = deque()  # first, stop, finite range, range
        self._since, self._first = -1, 0  # rows from the one on are in pieces, if there are any; those before the other left

    def take(self, rows: np.ndarray, begin: int, first: int) -> None:
        """Rows come, float64 [d, n], from the ordinal `begin` on; those before `first` have left."""
        self._first = first
        if self._since < 0:
            self._since = begin
        if rows.shape[1]:
            finite, whole = _range(rows)
            stop = begin + rows.shape[1]
            if self._pieces and _PIECES * (self._pieces[-1][1] - self._pieces[-1][0]) < stop - first:
                begin, _, others, all_others = self._pieces.pop()
                finite, whole = _union(finite, others), _union(whole, all_others)
            self._pieces.append((begin, stop, finite, whole))
        while self._pieces and self._pieces[0][1] <= first:
            self._pieces.popleft()

    @property
    def range(self) -> np.ndarray | None:
        """The range of the finite numbers in the window; of an attribute that has none, from infinity to minus infinity. None
        where there are no rows."""
        return self._united(2)

    @property
    def whole_range(self) -> np.ndarray | None:
        """The range of all numbers in it; what is none counts as the least there is."""
        return self._united(3)

    def _united(self, column: int) -> np.ndarray | None:
        if not self._pieces:
            return None
        ranges = np.stack([piece[column] for piece in self._pieces])
        return np.stack([ranges[:, 0].min(axis=0), ranges[:, 1].max(axis=0)])

    def fits(self) -> bool:
        """Does the window fit the grid's bounds?"""
        found = self.range
        if self.bounds is None or found is None:
            return True
        known = found[0] <= found[1]
        (low, high), (least, greatest) = found[:, known], self.bounds[:, known]
        with np.errstate(over="ignore"):
            length = greatest - least
            too_wide = self._since <= self._first and (length > _FITTING * (high - low)).any()
            beyond = np.maximum(high, greatest) - np.minimum(low, least)
            return bool((beyond <= 2 * length).all() and not too_wide)

    def fit(self) -> None:
        """Let the grid divide what the window takes up, and reach no farther. Rows have come."""
        found = self.range
        assert found is not None
        before = np.zeros_like(found) if self.bounds is None else self.bounds
        self.bounds, self.reach = np.where(found[0] <= found[1], found, before), None
        self._slack = np.full(found.shape, _LEAST_SLACK)

    def widen(self, rows: np.ndarray, edge: np.ndarray) -> bool:
        """Let a grid's edges, float64 [d, cells + 1], reach as far as rows do; True when they had to be moved."""
        low, high = rows.min(axis=1, initial=np.inf), rows.max(axis=1, initial=-np.inf)
        if (low >= edge[:, 0]).all() and (high <= edge[:, -1]).all():  # no NaN is among them
            return False
        low, high = np.fmin.reduce(rows, axis=1, initial=np.inf), np.fmax.reduce(rows, axis=1, initial=-np.inf)
        if (low >= edge[:, 0]).all() and (high <= edge[:, -1]).all():
            return False
        with np.errstate(invalid="ignore", over="ignore"):  # edges at infinity
            below, above = self._slack * np.maximum(np.fmax(high, edge[:, -1]) - np.fmin(low, edge[:, 0]), 0)
            beyond = np.stack([low < edge[:, 0], high > edge[:, -1]])
            self._slack = np.where(beyond, np.minimum(2 * self._slack, _MOST_SLACK), self._slack)
            # not past 0, on the other side of which a product or a power may turn
            lower = np.where(low >= 0, np.maximum(low - below, 0), low - below)
            higher = np.where(high <= 0, np.minimum(high + above, 0), high + above)
            edge[:, 0] = np.where(beyond[0], lower, edge[:, 0])
            edge[:, -1] = np.where(beyond[1], higher, edge[:, -1])
        self.reach = np.stack([edge[:, 0], edge[:, -1]])
        return True


def _range(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The range of the finite numbers, and of all, of each attribute."""
    whole = np.stack([rows.min(axis=1), rows.max(axis=1)])
    if np.isfinite(whole).all():
        return whole, whole
    finite = np.where(np.isfinite(rows), rows, np.nan)
    inside = np.stack([np.fmin.reduce(finite, axis=1, initial=np.inf), np.fmax.reduce(finite, axis=1, initial=-np.inf)])
    unknown = np.isnan(rows)
    low, high = np.where(unknown, -np.inf, rows).min(axis=1), np.where(unknown, -np.inf, rows).max(axis=1)
    return inside, np.stack([low, high])


def _union(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.stack([np.minimum(one[0], other[0]), np.maximum(one[1], other[1])])

"""Form every pair of the window and sort: the definition itself, for checking anything against it.

Keeps the rows' columns and, for each window, scores all pairs with NumPy. Plain; shares no code with what it checks.
Cost: O(n² log n) a window; memory: the rows of the window, and all pairs while a window is answered.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from skyband.algorithms.pairs.contract import (
    Answered,
    PairStructure,
    Scoring,
    answers_layout,
    empty_answers,
    with_query,
    with_room,
    without_query,
)
from skyband.kernels.pairs.state import Answers
from skyband.kernels.tables import Windows
from skyband.layout import Layout, fields, whole_number

_OLDER, _NEWER = 1, 2  # bits of a row's sides


class PairOracle(PairStructure):
    """Sorts all pairs."""

    def __init__(self, scoring: Scoring) -> None:
        super().__init__(scoring)
        assert scoring.plain is not None, "the oracle scores with NumPy"
        self._answers = empty_answers()
        self._first = 0  # ordinal of the first row held
        self._older, self._newer = np.zeros((scoring.older, 0)), np.zeros((scoring.newer, 0))
        self._sides = np.zeros(0, np.uint8)

    @property
    def answers(self) -> Answers:
        return self._answers

    def begin_at(self, ordinal: int) -> None:
        super().begin_at(ordinal)
        self._first = ordinal

    def add(self, k: int, *, watched: bool, first: int) -> None:
        self._answers = with_query(self.answers, k, k, False, first, 0)

    def _widen(self, k: np.ndarray) -> None:
        self._answers = with_room(self.answers, k, k)

    def remove(self, at: int) -> None:
        self._answers = without_query(self.answers, at)

    def advance(
        self, older: np.ndarray, newer: np.ndarray, sides: np.ndarray, windows: Windows, reach: np.ndarray
    ) -> Iterator[Answered]:
        self._older, self._newer = np.hstack([self._older, older]), np.hstack([self._newer, newer])
        self._sides = np.concatenate([self._sides, sides])
        self.next += len(sides)
        for at in range(len(windows.query)):
            results = self._results(1)
            q, first, end = int(windows.query[at]), int(windows.first[at]), int(windows.end[at])
            score, a, b = self._best(first - self._first, end - self._first, int(self.answers.k[q]))
            count = len(score)
            self.answers.count[q] = results.size[0] = count
            for column, found in zip(self.answers[:3], (score, a + self._first, b + self._first), strict=True):
                column[q, :count] = found
            results.score[:count], results.a[:count], results.b[:count] = (column[q, :count] for column in self.answers[:3])
            one = results._replace(begin=np.zeros(at + 1, np.int64), size=np.full(at + 1, count))
            yield Answered(at, at + 1, one)
        gone = min(int(reach[-1]) - self._first, len(self._sides))
        if gone > 0:
            self._older, self._newer = self._older[:, gone:].copy(), self._newer[:, gone:].copy()
            self._sides, self._first = self._sides[gone:].copy(), self._first + gone

    def _best(self, first: int, end: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Turned scores and places of the best k pairs of the rows [first, end)."""
        assert self.scoring.plain is not None
        scores, older, newer = [np.zeros(0)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        partners = first + np.flatnonzero(self._sides[first:end] & _OLDER)
        for b in range(first, end):
            if self._sides[b] & _NEWER:
                a = partners[: np.searchsorted(partners, b)]
                scores.append(self.scoring.plain(self._older[:, a], self._newer[:, b]))
                older.append(a)
                newer.append(np.full(len(a), b))
        score, a, b_of = np.concatenate(scores), np.concatenate(older), np.concatenate(newer)
        score = score if self.scoring.order == "desc" else -score
        known = np.flatnonzero(~np.isnan(score))
        best = known[np.lexsort((-b_of[known], -a[known], -score[known]))[:k]]
        return score[best], a[best], b_of[best]

    @property
    def candidates(self) -> int:
        rows = len(self._sides)
        return rows * (rows - 1) // 2

    @property
    def nbytes(self) -> int:
        return self._older.nbytes + self._newer.nbytes + self._sides.nbytes + sum(column.nbytes for column in self.answers)

    def check_invariants(self) -> None:
        assert self._first + len(self._sides) == self.next, (self._first, len(self._sides), self.next)

    def snapshot(self) -> bytes:
        arrays: dict[str, np.ndarray] = {"older": self._older, "newer": self._newer, "sides": self._sides}
        arrays |= {f"answers.{name}": column for name, column in self.answers._asdict().items()}
        return self._packed({"first": self._first}, arrays)

    def layout(self) -> Layout:
        own = {"older": "float64 older rows", "newer": "float64 newer rows", "sides": "uint8 rows"}
        return fields(own | answers_layout(), older=self.scoring.older, newer=self.scoring.newer)

    def restore(self, data: bytes) -> None:
        header, arrays = self._unpacked(data)
        self.next, self._first = header["next"], whole_number(header, "first")
        self._older, self._newer, self._sides = arrays["older"], arrays["newer"], arrays["sides"]
        self._answers = Answers(**{name: arrays[f"answers.{name}"] for name in Answers._fields})

"""Every row above a bound: a threshold query's answer is all of the window that its door lets in, ranked.

Rows below the bound come without a score, so nothing has to be compared: what comes in is sorted and merged into what is
held, what has left the window is dropped.

Paper: SIGMOD06 section 7 (threshold queries). Guarantee: exact. Cost: O(log m) a row let in, O(m) for a window that differs
from the one before, with m rows in the answer; O(m) for rows that are deleted. Memory: the answer.
"""

from __future__ import annotations

import numpy as np

from skyband.algorithms.contract import Ranked
from skyband.kernels.spatial import above as kernel
from skyband.kernels.tables import Panes, Results, Tops, Windows
from skyband.layout import grows


class Above(Ranked):
    """One query; the plan's k says nothing."""

    growing = grows("state", room=("score", "ordinal")) | dict.fromkeys(("tops.score", "tops.ordinal"), "* ranks")
    deletes = True
    _state: kernel.Kept

    def _empty(self) -> kernel.Kept:
        marks = np.zeros(kernel.MARKS, np.int64)
        marks[kernel.OLDEST] = kernel.NEVER
        return kernel.Kept(np.zeros(0), np.zeros(0, np.int64), marks)

    def _largest_answer(self, scores: np.ndarray) -> int:
        return self.candidates + int(np.count_nonzero(~np.isnan(scores)))

    def _prepare(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None) -> None:
        self._most = self._largest_answer(scores)
        self._state = self._with_room(max(self._most, len(self._state.score)))
        self._widen_tops(len(self._state.score))

    def _with_room(self, room: int) -> kernel.Kept:
        held = self.candidates
        score, ordinal = np.zeros(room), np.zeros(room, np.int64)
        score[:held], ordinal[:held] = self._state.score[:held], self._state.ordinal[:held]
        return kernel.Kept(score, ordinal, self._state.marks)

    def _run(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None, start: int, results: Results) -> int:
        return int(kernel.run(self._state, self.tops, begin, scores, windows, start, self._most, results))

    def delete(self, ordinals: np.ndarray, windows: Windows) -> Results:
        """What is held is the last answer: rows are left out of both."""
        score, ordinal, marks = self._state
        stays = np.flatnonzero(~np.isin(ordinal[: self.candidates], ordinals))
        count = len(stays)
        score[:count], ordinal[:count] = score[stays], ordinal[stays]
        marks[kernel.COUNT], marks[kernel.OLDEST] = count, ordinal[:count].min(initial=kernel.NEVER)
        self.tops.score[0, :count], self.tops.ordinal[0, :count] = score[:count], ordinal[:count]
        self.tops.count[0] = count
        answered = len(windows.query)
        return Results(np.zeros(answered, np.int64), np.full(answered, count), score[:count].copy(), ordinal[:count].copy())

    @property
    def candidates(self) -> int:
        return int(self._state.marks[kernel.COUNT])

    def snapshot(self) -> bytes:
        """As the contract says; free places are left out."""
        self._state = self._with_room(self.candidates)
        filled = max(int(self.tops.count.max()), 1)
        self.tops = Tops(self.tops.score[:, :filled].copy(), self.tops.ordinal[:, :filled].copy(), self.tops.count)
        return super().snapshot()

    def check_invariants(self) -> None:
        held = self.candidates
        score, ordinal = self._state.score[:held], self._state.ordinal[:held]
        ranked = (score[:-1] > score[1:]) | ((score[:-1] == score[1:]) & (ordinal[:-1] > ordinal[1:]))
        assert ranked.all() and not np.isnan(score).any(), f"out of order: {list(zip(score, ordinal, strict=True))}"
        assert (ordinal >= self._state.marks[kernel.OLDEST]).all(), f"older than {self._state.marks[kernel.OLDEST]}: {ordinal}"

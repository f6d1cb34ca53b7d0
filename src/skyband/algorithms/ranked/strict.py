"""The one-pass k-skyband: keep exactly the rows that can still rank.

A row that k newer rows outrank can never be among the best k of any later window, since those k rows outlive it.
So each new row goes to its place among the candidates, counts as a dominator of every candidate below it, and
drops those that have k dominators. What is left, read from the best on, answers every window and every smaller k.

Papers: TODS15 4.1 (strict), TKDE17 2.1 (one-pass k-skyband). Guarantee: exact; no smaller state is.
Cost: O(log candidates + k) a row, amortized, for every input (a candidate is touched at most k times); O(1) where
scores fall; O(k) for a window whose answer changed. Memory: the candidates, k (1 + ln(n/k)) for scores in random
order, n where they fall; no raw scores.

Deviations: a sorted array instead of a tree, as the candidates that must be counted down are those that must be
shifted; expired candidates are skipped when read and swept out when as many rows came as are held. One skyband for the
largest k serves every query of the plan: k-skybands of shorter windows and smaller k lie within it.
"""

from __future__ import annotations

import numpy as np

from skyband.algorithms.contract import Ranked
from skyband.kernels.ranked import strict as kernel
from skyband.kernels.tables import Panes, Results, Windows
from skyband.layout import grows

_FIRST_ROOM = 64  # candidates there is room for at first


class Strict(Ranked):
    """One k-skyband for the largest k of the plan."""

    shares = True
    growing = grows("state", room=("score", "ordinal", "dominators"))
    _state: kernel.Skyband

    def _empty(self) -> kernel.Skyband:
        queries = len(self.plan.ks)
        return kernel.Skyband(
            score=np.zeros(_FIRST_ROOM),
            ordinal=np.zeros(_FIRST_ROOM, np.int64),
            dominators=np.zeros(_FIRST_ROOM, np.int32),
            marks=np.zeros(kernel.MARKS, np.int64),
            since=np.full(queries, np.inf),  # the first window of each query has to be read
            oldest=np.full(queries, kernel.NEVER),
            reach=np.zeros(queries, np.int64),
        )

    def _run(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None, start: int, results: Results) -> int:
        used = 0
        while True:
            start, used, full = kernel.run(self._state, self.tops, self.ks, begin, scores, windows, start, used, results)
            if not full:
                return start
            self._state = self._with_room(2 * len(self._state.score))

    def _with_room(self, room: int) -> kernel.Skyband:
        """The same candidates, from the first place on, in arrays of `room` places."""
        state = self._state
        held = slice(int(state.marks[kernel.HEAD]), int(state.marks[kernel.STOP]))
        count = held.stop - held.start
        assert count <= room
        columns = {}
        for name in ("score", "ordinal", "dominators"):
            column = getattr(state, name)
            columns[name] = np.zeros(room, column.dtype)
            columns[name][:count] = column[held]
        marks = state.marks.copy()
        marks[[kernel.HEAD, kernel.STOP]] = 0, count
        return state._replace(marks=marks, **columns)

    @property
    def candidates(self) -> int:
        kernel.sweep(self._state)
        return int(self._state.marks[kernel.STOP])

    def snapshot(self) -> bytes:
        """As the contract says; expired candidates and free places are left out."""
        self._state = self._with_room(max(self.candidates, 1))
        return super().snapshot()

    def check_invariants(self) -> None:
        kernel.sweep(self._state)
        state = self._state
        held = slice(0, int(state.marks[kernel.STOP]))
        score, ordinal, dominators = state.score[held], state.ordinal[held], state.dominators[held]
        rows = list(zip(score.tolist(), ordinal.tolist(), dominators.tolist(), strict=True))
        shown = f"candidates (score, ordinal, dominators) {rows}"
        above, below = slice(None, -1), slice(1, None)
        ranked = (score[above] > score[below]) | ((score[above] == score[below]) & (ordinal[above] > ordinal[below]))
        assert ranked.all(), f"out of order: {shown}"
        assert not np.isnan(score).any(), f"a row without a score is held: {shown}"
        assert (ordinal >= state.reach.min()).all() and (ordinal < state.marks[kernel.TAKEN]).all(), f"not in a window: {shown}"
        # whoever dominates a candidate is a candidate itself, so the counts can be checked among them
        counted = [int((ordinal[:place] > ordinal[place]).sum()) for place in range(len(score))]
        assert (dominators == counted).all(), f"dominators miscounted, should be {counted}: {shown}"
        assert (dominators < self.plan.largest_k).all(), f"a dominated row is held: {shown}"

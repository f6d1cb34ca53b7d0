"""Sort the window: the definition itself, for checking anything against it.

Keeps the scores of the widest window and, for each window, sorts them all. Plain NumPy; shares no code with what
it checks. Cost: O(n log n) a window; memory: 8 bytes a row of the window.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.algorithms.contract import Plan, Ranked
from skyband.kernels.tables import Panes, Results, Windows
from skyband.layout import grows


class OracleState(NamedTuple):
    """The scores held."""

    scores: np.ndarray  # the scores of the ordinals from first[0] on, oldest first
    first: np.ndarray  # int64 [1]
    reach: np.ndarray  # int64 [queries]: first row of each query's last window


class Oracle(Ranked):
    """Sorts the window."""

    shares = True
    growing = grows("state", rows=("scores",))
    deletes = True

    @classmethod
    def for_plan(cls, plan: Plan, **options: Any) -> Ranked:
        return WholeOracle(plan) if plan.whole else cls(plan)

    def _most(self, query: int, first: int, end: int) -> int:
        """The most ranks that the answer of a window may have."""
        return min(self.plan.ks[query], end - first)

    def _empty(self) -> OracleState:
        return OracleState(np.zeros(0), np.zeros(1, np.int64), np.zeros(len(self.plan.ks), np.int64))

    def _run(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None, start: int, results: Results) -> int:
        state = self._state
        if self.next == begin:  # these rows are new
            if len(state.scores) == 0:
                state.first[0] = begin
            self._state = state = state._replace(scores=np.concatenate([state.scores, scores]))
            self.next = begin + len(scores)
        used = 0
        for at in range(start, len(windows.query)):
            query, first, end = int(windows.query[at]), int(windows.first[at]), int(windows.end[at])
            if used + self._most(query, first, end) > len(results.score):
                return at
            used = self._answer(query, first, end, at, used, results)
        self._forget(windows)
        return len(windows.query)

    def _answer(self, query: int, first: int, end: int, at: int, used: int, results: Results) -> int:
        """Sort the window [first, end); returns how many places of `results` are taken now."""
        state = self._state
        held = state.scores[first - state.first[0] : end - state.first[0]]
        ranked = np.flatnonzero(~np.isnan(held))
        # lexsort: last key first; the newest row (largest place) of equal scores comes first
        best = ranked[np.lexsort((-ranked, -held[ranked]))[: self._most(query, first, end)]]
        n = len(best)
        self._widen_tops(n)
        self.tops.count[query] = n
        self.tops.score[query, :n] = results.score[used : used + n] = held[best]
        self.tops.ordinal[query, :n] = results.ordinal[used : used + n] = best + first
        results.begin[at], results.size[at] = used, n
        return used + n

    def delete(self, ordinals: np.ndarray, windows: Windows) -> Results:
        """Rows lose their scores."""
        state, asked = self._state, len(windows.query)
        places = ordinals - state.first[0]
        state.scores[places[(places >= 0) & (places < len(state.scores))]] = np.nan
        most = [self._most(*map(int, window)) for window in zip(windows.query, windows.first, windows.end, strict=True)]
        room = sum(most)
        results = Results(np.zeros(asked, np.int64), np.zeros(asked, np.int64), np.empty(room), np.empty(room, np.int64))
        used = 0
        for at, (query, first, end) in enumerate(zip(windows.query, windows.first, windows.end, strict=True)):
            used = self._answer(int(query), int(first), int(end), at, used, results)
        return results

    def _forget(self, windows: Windows) -> None:
        """Drop rows before the first row of every query's last window."""
        state = self._state
        np.maximum.at(state.reach, windows.query, windows.first)
        gone = int(state.reach.min()) - int(state.first[0])
        if gone > 0:
            self._state = state._replace(scores=state.scores[gone:].copy(), first=state.first + gone)

    @property
    def candidates(self) -> int:
        return len(self._state.scores)

    def check_invariants(self) -> None:
        state: Any = self._state
        assert int(state.first[0]) + len(state.scores) == self.next or len(state.scores) == 0, state


class WholeOracle(Oracle):
    """Sorts the window, and answers with all of it: one threshold query."""

    shares = False
    growing = Oracle.growing | dict.fromkeys(("tops.score", "tops.ordinal"), "* ranks")

    def _most(self, query: int, first: int, end: int) -> int:
        return end - first

    def _largest_answer(self, scores: np.ndarray) -> int:
        return self.candidates + len(scores)

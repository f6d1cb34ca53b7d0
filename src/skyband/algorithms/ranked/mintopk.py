"""MinTopK: for every future window, who would be in its top-k if no more rows came.

The s rows of a slide enter and leave together, so a row's life is a run of window numbers. The predicted top-k's of all
future windows are kept as one list of candidates in rank order, with a pointer per window to the last of its k. A new
row enters the windows whose last row it outranks, pushes that row out of each, and is discarded at once when there are
none; a row pushed out of its last window is forgotten.

Papers: Yang et al., EDBT 2011; TKDE17 2.1. Guarantee: exact. Cost: O(log(n/s) + k + windows entered) a row, at
most n/s of them (about k (1 + ln(n/k)) on average for s = 1 and scores in random order); O(k) for a window whose answer
changed. Memory: the candidates, at most nk/max(s, k), and 8 bytes for each of the n/s future windows (as many as there are
slides in the stream while it is shorter than that); no raw scores.

Deviations: only the best k of a slide are tried, best first; the place of a row is found by walking from the pointer of
the first window it enters, not by descending a tree; the first window with a free place is told by when the k newest
rows leave, so no counts per window are kept; candidates carry no starting window, as it decides nothing that `leave`
does not; windows before the first row leaves hold the same rows and are one, so that a window larger than the stream takes
memory for the stream alone.
"""

from __future__ import annotations

import numpy as np

from skyband.algorithms.contract import Ranked
from skyband.kernels.ranked import mintopk as kernel
from skyband.kernels.tables import Panes, Results, Windows
from skyband.layout import grows

_FIRST_NODES = 64
_FIRST_RING = 16


class MinTopK(Ranked):
    """The predicted top-k of every future window of one query."""

    wants_panes = True
    window_bytes = 8
    growing = grows("state", nodes=("score", "ordinal", "leave", "better", "worse"), ring=("bound", "leaving"))
    _state: kernel.SuperList

    def _empty(self) -> kernel.SuperList:
        marks = np.zeros(kernel.MARKS, np.int64)
        marks[[kernel.CURRENT, kernel.UNFILLED]] = kernel.LONG_AGO
        marks[kernel.FREE] = kernel.NONE
        marks[kernel.CHANGED] = 1
        ends = kernel.SuperList(
            score=np.zeros(1),
            ordinal=np.zeros(1, np.int64),
            leave=np.array([kernel.NEVER]),
            better=np.zeros(1, np.int32),
            worse=np.zeros(1, np.int32),
            bound=np.zeros(_FIRST_RING, np.int32),
            leaving=np.zeros(_FIRST_RING, np.int32),
            recent=np.full(self.plan.largest_k, kernel.LONG_AGO),
            marks=marks,
        )
        return _with_nodes(ends, _FIRST_NODES)

    def _prepare(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None) -> None:
        assert panes is not None
        if len(windows.end) == 0 or len(panes.begin) == 0:
            return
        marks = self._state.marks
        if marks[kernel.CURRENT] == kernel.LONG_AGO:  # up to the window that the first row leaves after, none leaves
            marks[kernel.CURRENT] = panes.leave[0] - 1
        # when window i is answered, the rows held leave after it and not after the newest pane
        newest = np.searchsorted(panes.begin, windows.end, side="left") - 1
        ahead = np.where(newest >= 0, panes.leave[newest] - np.maximum(windows.number, marks[kernel.CURRENT]), 0)
        self._state = _with_ring(self._state, int(ahead.max()) + 1)

    def _run(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None, start: int, results: Results) -> int:
        used = 0
        while True:
            start, used, wanted = kernel.run(self._state, self.tops, begin, scores, windows, panes, start, used, results)
            if not wanted:
                return start
            self._state = _with_nodes(self._state, len(self._state.score) + wanted)

    @property
    def candidates(self) -> int:
        return int(self._state.marks[kernel.HELD])

    def predicted(self) -> dict[int, list[int]]:
        """The ordinals of the predicted top-k of every window from the current one on, best first."""
        state = self._state
        listed = self._listed()
        last = int(state.leave[listed].max(initial=kernel.LONG_AGO))
        current = int(state.marks[kernel.CURRENT])
        k = self.plan.largest_k
        return {w: [int(state.ordinal[node]) for node in listed if state.leave[node] > w][:k] for w in range(current, last)}

    def _listed(self) -> list[int]:
        """The nodes of the list, best first."""
        state, nodes = self._state, []
        node = int(state.worse[kernel.ENDS])
        while node != kernel.ENDS:
            nodes.append(node)
            node = int(state.worse[node])
        return nodes

    def check_invariants(self) -> None:
        state, k = self._state, self.plan.largest_k
        listed = self._listed()
        shown = [(state.score[node], int(state.ordinal[node]), int(state.leave[node])) for node in listed]
        current, unfilled = int(state.marks[kernel.CURRENT]), int(state.marks[kernel.UNFILLED])
        text = f"window {current}, first with free places {unfilled}, candidates (score, ordinal, leave) {shown}"
        assert shown == sorted(shown, key=lambda row: row[:2], reverse=True), f"out of order: {text}"
        assert [int(state.worse[state.better[node]]) for node in listed] == listed, f"links disagree: {text}"
        assert int(state.marks[kernel.HELD]) == len(listed), f"miscounted: {text}"
        free, spare = int(state.marks[kernel.FREE]), 0
        while free != kernel.NONE:
            free, spare = int(state.worse[free]), spare + 1
        assert spare + len(listed) + 1 == len(state.score), f"nodes lost: {text}"
        assert all(leave > current for _, _, leave in shown), f"an expired row is held: {text}"
        mask = len(state.bound) - 1
        needed = set()
        for w, rows in self.predicted().items():
            assert (len(rows) == k) == (w < unfilled), f"window {w} predicts {rows}: {text}"
            if w < unfilled:
                bound = int(state.ordinal[state.bound[w & mask]])
                assert bound == rows[-1], f"window {w} predicts {rows}, its pointer is at {bound}: {text}"
            leaving = sum(leave == w + 1 for _, _, leave in shown)
            assert int(state.leaving[(w + 1) & mask]) == leaving, f"{leaving} rows leave before window {w + 1}: {text}"
            needed.update(rows)
        assert needed == {ordinal for _, ordinal, _ in shown}, f"rows that no window predicts are held: {text}"
        assert int(state.leaving.sum()) == len(listed), f"leavers miscounted: {text}"


def _with_nodes(state: kernel.SuperList, room: int) -> kernel.SuperList:
    """The same list in a pool of at least `room` nodes, at least doubled."""
    old = len(state.score)
    room = max(room, 2 * old)
    columns = {}
    for name in ("score", "ordinal", "leave", "better", "worse"):
        column = getattr(state, name)
        columns[name] = np.concatenate([column, np.zeros(room - old, column.dtype)])
    columns["worse"][old:] = np.arange(old + 1, room + 1)
    columns["worse"][-1] = state.marks[kernel.FREE]
    marks = state.marks.copy()
    marks[kernel.FREE] = old
    return state._replace(marks=marks, **columns)


def _with_ring(state: kernel.SuperList, windows: int) -> kernel.SuperList:
    """The same windows in rings with room for at least `windows` of them; a power of two."""
    old = len(state.bound)
    if windows <= old:
        return state
    ring = 1 << (windows - 1).bit_length()
    bound, leaving = np.zeros(ring, np.int32), np.zeros(ring, np.int32)
    number = state.marks[kernel.CURRENT] + np.arange(1, old + 1)  # leaves from the next window on
    leaving[number & (ring - 1)] = state.leaving[number & (old - 1)]
    bound[(number - 1) & (ring - 1)] = state.bound[(number - 1) & (old - 1)]
    return state._replace(bound=bound, leaving=leaving)

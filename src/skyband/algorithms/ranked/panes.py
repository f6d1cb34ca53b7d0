"""Panes and two stacks: the best k of each pane once, then windows without looking at rows again.

Rows that enter and leave together form a pane, of which only the best k can ever rank. New panes go on the back stack,
whose best k only ever gains; when the front stack has run out, the back's panes are merged newest first into the front's
best k, and each notes what it changed, so that the oldest pane leaves by undoing its note. A window is the merger of two
sorted lists of k, whatever the data and however many panes it spans.

Papers: two stacks as in Tangwongsan, Hirzel, Schneider, VLDB 2015, and the literature before; panes: Li et al., SIGMOD
Record 2005. Guarantee: exact. Cost: one vectorized comparison a row, then O(k) a pane amortized, for every input, and
O(k) for a window whose answer changed. Memory: the best min(k, s) rows of each pane in the back and the notes, at most
one row for each that a pane brought into the front's best.

Deviations: two stacks keep the merged best k of every suffix of the front, (n/s) k rows; the notes keep only differences.
"""

from __future__ import annotations

import numpy as np

from skyband.algorithms.contract import Ranked
from skyband.kernels.ranked import panes as kernel
from skyband.kernels.tables import Panes, Results, Windows
from skyband.layout import grows

_FIRST_LISTS = 64
_FIRST_LOG = 64
_LISTS = ("list_score", "list_ordinal")
_PANES = ("pane_begin", "pane_leave")
_LOG = ("entry_leave", "entry_entered", "entry_evicted", "entered_at", "evicted_score", "evicted_ordinal")


class TwoStackPanes(Ranked):
    """The panes of one query on two stacks."""

    wants_panes = True
    growing = grows("state", rows=_LISTS, panes=_PANES, log=_LOG)
    _state: kernel.Stacks

    def _empty(self) -> kernel.Stacks:
        k = self.plan.largest_k
        marks = np.zeros(kernel.MARKS, np.int64)
        marks[kernel.FRONT_LEAVE] = kernel.LONG_AGO
        marks[kernel.OLDEST] = kernel.NEVER
        marks[kernel.FRESH] = 1
        lengths = dict.fromkeys(("front_score", "front_ordinal", "back_score", "back_ordinal"), k)
        lengths |= dict.fromkeys((*_LISTS, *_PANES), _FIRST_LISTS) | dict.fromkeys(_LOG, _FIRST_LOG)
        columns = {name: np.zeros(length, float if name.endswith("score") else np.int64) for name, length in lengths.items()}
        return kernel.Stacks(marks=marks, **columns)

    def _run(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None, start: int, results: Results) -> int:
        used = 0
        while True:
            start, used, reason = kernel.run(self._state, self.tops, begin, scores, windows, panes, start, used, results)
            if reason == kernel.DONE:
                return start
            grown = _LOG if reason == kernel.WANT_LOG else (*_LISTS, *_PANES)
            columns = {name: _doubled(getattr(self._state, name)) for name in grown}
            self._state = self._state._replace(**columns)

    @property
    def candidates(self) -> int:
        """Rows of the front's best, of the notes and of the back's lists."""
        return int(self._state.marks[[kernel.FRONT, kernel.EVICTED, kernel.LISTED]].sum())

    def snapshot(self) -> bytes:
        """As the contract says; free places are left out."""
        marks = self._state.marks
        used = dict.fromkeys(_LISTS, kernel.LISTED) | dict.fromkeys(_PANES, kernel.PANES) | dict.fromkeys(_LOG, kernel.ENTERED)
        columns = {name: getattr(self._state, name)[: max(1, int(marks[mark]))].copy() for name, mark in used.items()}
        self._state = self._state._replace(**columns)
        return super().snapshot()

    def check_invariants(self) -> None:
        state, marks, k = self._state, self._state.marks, self.plan.largest_k
        front = _rows(state.front_score, state.front_ordinal, 0, int(marks[kernel.FRONT]))
        back = _rows(state.back_score, state.back_ordinal, 0, int(marks[kernel.BACK]))
        begins = [int(begin) for begin in state.pane_begin[: marks[kernel.PANES]]]
        ends = [*begins[1:], int(marks[kernel.LISTED])]
        lists = [_rows(state.list_score, state.list_ordinal, begin, end) for begin, end in zip(begins, ends, strict=False)]
        text = f"front {front}, back {back}, lists of the back {lists}"
        for rows in (front, back, *lists):
            assert rows == sorted(rows, reverse=True) and len(rows) <= k, f"{rows} is not a list of the best {k}: {text}"
        assert all(lists), f"an empty pane is held: {text}"
        assert back == sorted((row for rows in lists for row in rows), reverse=True)[:k], f"the back's best is wrong: {text}"
        leaves = state.pane_leave[: marks[kernel.PANES]]
        assert (np.diff(leaves) >= 0).all(), f"panes of the back leave out of order, {leaves}: {text}"
        assert len(leaves) == 0 or leaves[0] >= marks[kernel.FRONT_LEAVE], f"the back leaves before the front: {text}"
        logged = state.entry_leave[: marks[kernel.ENTRIES]]
        assert (np.diff(logged) <= 0).all(), f"panes of the front leave out of order, {logged}: {text}"
        self._check_undoing(text)

    def _check_undoing(self, text: str) -> None:
        """Undo the whole log on a copy: each step must leave a sorted list of older panes' rows less, the last one none."""
        copy = kernel.Stacks(*(column.copy() for column in self._state))
        while copy.marks[kernel.ENTRIES]:
            before = set(_rows(copy.front_score, copy.front_ordinal, 0, int(copy.marks[kernel.FRONT])))
            kernel.undo_pane(copy)
            after = _rows(copy.front_score, copy.front_ordinal, 0, int(copy.marks[kernel.FRONT]))
            assert after == sorted(after, reverse=True), f"undoing leaves {after}: {text}"
            left = before - set(after)
            newest = max((ordinal for _, ordinal in left), default=-1)
            assert left and all(ordinal > newest for _, ordinal in after), f"undoing takes {left} and leaves {after}: {text}"
        log = copy.marks[[kernel.FRONT, kernel.ENTERED, kernel.EVICTED]]
        assert not log.any(), f"undoing everything leaves {log}: {text}"


def _doubled(column: np.ndarray) -> np.ndarray:
    return np.concatenate([column, np.zeros_like(column)])


def _rows(score: np.ndarray, ordinal: np.ndarray, begin: int, end: int) -> list[tuple[float, int]]:
    return list(zip(score[begin:end].tolist(), ordinal[begin:end].tolist(), strict=True))

"""Probabilistic while the stream is in random order, exact while it is not.

A watch looks at the order of recent scores now and then: do neighbours resemble each other, do they differ from the rest
of the window? While it sees nothing for a whole window's time, a probabilistic core answers; as soon as it does, a
relaxed core behind a probabilistic filter takes over, built from the window's scores, and is exact from there on.

Paper: TODS15 section 4.1.3, the hybrid PA/RAPF it leaves to future work; sections 4.1, 5 for its parts (`pruned`).
Guarantee: exact while relaxed+probabilistic answers. While the probabilistic core does, fewer than sigma * N / n rows that
rank are missed of N rows in random order. Rows that came between the last look and the one that saw an order are *unsure*:
nothing is promised of the windows that ended with them. A weak order may go unseen (`kernels.order_watch` says how weak).
Cost: that of its parts; O(1) a row for the watch; O(n) when they change places, at most once in n rows and back.
Memory: theirs, and the scores of the window: to be exact at once, nothing in it may have been forgotten.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.algorithms.arena import Band, check_band, held, packed, pruners, with_room
from skyband.algorithms.contract import Plan, Ranked
from skyband.algorithms.pruned import GAMMA, RULE, SIGMA, band, buffer_of, hand_over
from skyband.errors import QueryError
from skyband.kernels import bands, order_watch
from skyband.kernels import pruning as kernel
from skyband.kernels.bands import Rows
from skyband.kernels.live import live_rows
from skyband.kernels.tables import Panes, Results, Windows
from skyband.layout import grows

_LOOKS = 32  # a window, at most
EXACT_CORE, EXACT_FILTER, QUICK_CORE = 0, 1, 2  # the bands

# places in State.watch
QUIET = 0  # rows since an order was last seen
LOOKED = 1  # the row at which the watch last looked
QUICK_ROWS = 2  # rows in random order that the probabilistic core took
UNSURE_ROWS = 3  # rows it took before an order was seen
CHANGES = 4  # how often the parts changed places
WATCH = 5


class State(NamedTuple):
    """`kernels.pruning.Pruners` laid flat, the scores of the window, and what the watch knows."""

    score: np.ndarray
    ordinal: np.ndarray
    dominators: np.ndarray
    marks: np.ndarray
    levels: np.ndarray
    query: np.ndarray
    window: np.ndarray  # float64 [n]: the score of row r in place r % n; NaN where there is none
    watch: np.ndarray  # int64 [WATCH]


class Hybrid(Ranked):
    """One query over a count window."""

    growing = grows("state", room=("score", "ordinal", "dominators"))
    _state: State

    def __init__(
        self,
        plan: Plan,
        sigma: float = SIGMA,
        gamma: float = GAMMA,
        buffer: int | None = None,
        level: float = order_watch.LEVEL,
    ) -> None:
        (k,), size = plan.ks, plan.largest_size
        if size is None:
            raise QueryError("the hybrid needs a window of a known number of rows; use relaxed+probabilistic instead")
        self.size, self.sigma, self.gamma, self.level = size, sigma, gamma, level
        self.buffer = buffer_of(size, buffer)
        self.interval = max(order_watch.SAMPLE, size // _LOOKS)  # rows between two looks
        shape: dict[str, Any] = {"gamma": gamma, "sigma": sigma, "rule": RULE, "additional": 0}
        self._bands: list[Band] = [
            band("relaxed", k, size, **shape, is_filter=False),
            band("probabilistic", k, self.buffer, **shape, is_filter=True),
            band("probabilistic", k, size, **shape, is_filter=False),
        ]
        super().__init__(plan)

    def _empty(self) -> State:
        state = pruners(self._bands, 1)
        self._be_exact(state.query[0])
        watch = np.zeros(WATCH, np.int64)
        if hasattr(self, "_state"):  # a gap in the rows: what was counted stays
            watch[[QUICK_ROWS, UNSURE_ROWS, CHANGES]] = self._state.watch[[QUICK_ROWS, UNSURE_ROWS, CHANGES]]
        return self._flat(state, np.full(self.size, np.nan), watch)

    def _be_exact(self, query: np.ndarray) -> None:
        query[[kernel.CORE, kernel.FILTER, kernel.SIZE, kernel.BUFFER]] = EXACT_CORE, EXACT_FILTER, 0, self.buffer

    def _be_quick(self, query: np.ndarray) -> None:
        query[[kernel.CORE, kernel.FILTER, kernel.SIZE, kernel.BUFFER]] = QUICK_CORE, kernel.NONE, self.size, 0

    @property
    def quick(self) -> bool:
        """Does the probabilistic core answer?"""
        return int(self._state.query[0, kernel.CORE]) == QUICK_CORE

    @staticmethod
    def _flat(state: kernel.Pruners, window: np.ndarray, watch: np.ndarray) -> State:
        return State(*state.rows, state.marks, state.levels, state.query, window, watch)

    @property
    def _pruners(self) -> kernel.Pruners:
        return kernel.Pruners(Rows(*self._state[:3]), *self._state[3:6])

    # -- rows ----------------------------------------------------------------------------------------------------

    def _prepare(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None) -> None:
        state = self._state
        if state.query[0, kernel.TAKEN] < begin:
            state.query[0, [kernel.TAKEN, kernel.LEFT]] = begin
            state.query[0, kernel.TOUCHED] = begin + 1  # a gap may have emptied the top-k
            state.watch[LOOKED] = begin
        waiting = self._last(begin, min(self.buffer, self.size))
        self._rows, self._rows_from = np.concatenate([waiting, scores]), begin - len(waiting)
        self._rows.flags.writeable = False

    def _last(self, end: int, count: int) -> np.ndarray:
        """The scores of the last `count` rows before the ordinal `end`, oldest first."""
        return self._state.window[np.arange(end - count, end) % self.size]

    def _run(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None, start: int, results: Results) -> int:
        answers = kernel.answers_room(len(windows.query), results.score, results.ordinal)
        at, asked, written = start, len(windows.query), bool(windows.report.any())
        last = int(windows.end[-1])
        status = kernel.DONE
        while status == kernel.DONE and (at < asked or self._taken < last):
            upto = min(int(self._state.watch[LOOKED]) + self.interval, last)
            ready = int(np.searchsorted(windows.end, upto, "right"))
            at, status = self._take(windows.first[:ready], windows.end[:ready], at, upto, written, answers)
            self._store(begin, scores)
            if status == kernel.DONE and self._taken - self._state.watch[LOOKED] >= self.interval:
                self._look()
        hand_over(answers, start, at, results)
        self.tops.count[0] = kernel.read(self._pruners, 0, self.tops.score[0], self.tops.ordinal[0])
        return at

    @property
    def _taken(self) -> int:
        return int(self._state.query[0, kernel.TAKEN])

    def _take(
        self, first: np.ndarray, end: np.ndarray, at: int, upto: int, written: bool, answers: kernel.Answers
    ) -> tuple[int, int]:
        """Answer the windows from `at` on, then take the rows up to the ordinal `upto`. Returns the first window not
        gone through, and DONE or ANSWERS_FULL."""
        state = self._pruners
        rows, rows_from = self._rows, self._rows_from
        while True:
            at, status = kernel.follow(state, 0, first, end, at, rows, rows_from, rows, rows_from, written, answers)
            if status == kernel.DONE:
                status = kernel.take(*state.rows, *state[1:], 0, upto, rows, rows_from, rows, rows_from, False)
            if status < 0:
                break
            state = with_room(state, status)
        self._state = self._flat(state, self._state.window, self._state.watch)
        return int(at), int(status)

    def _store(self, begin: int, scores: np.ndarray) -> None:
        """Keep the scores of the rows taken so far."""
        first = max(begin, self._taken - self.size)
        self._state.window[np.arange(first, self._taken) % self.size] = scores[first - begin : self._taken - begin]

    # -- the watch -----------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Look at the order of what came; change places if it says so."""
        watch, rows = self._state.watch, self._taken - int(self._state.watch[LOOKED])
        older = self._last(self._taken, min(self._taken, self.size))[: -order_watch.SAMPLE]
        spread = older[:: max(len(older) // order_watch.SAMPLE, 1)]
        recent = self._last(self._taken, min(self._taken, order_watch.SAMPLE))
        ordered = order_watch.looks_ordered(recent, spread, self.level) or abs(order_watch.serial_z(spread)) > self.level
        watch[LOOKED] = self._taken
        watch[QUIET] = 0 if ordered else watch[QUIET] + rows
        if self.quick:
            watch[UNSURE_ROWS if ordered else QUICK_ROWS] += rows
            if ordered:
                self._change(self._be_exact)
        elif watch[QUIET] >= self.size:
            self._change(self._be_quick)

    def _change(self, into: Any) -> None:
        """Fill empty bands from the window's scores and let them take over. O(n)."""
        end, begin = self._taken, max(self._taken - self.size, 0)
        scores = self._last(end, end - begin)
        state = pruners(self._bands, 1)
        query = state.query[0]
        query[:] = self._state.query[0]
        into(query)
        query[kernel.LEFT] = end - self.buffer
        live, _, _ = live_rows(scores, self.plan.largest_k)
        if query[kernel.FILTER] == kernel.NONE:
            state = _refill(state, QUICK_CORE, scores, begin, live)
        else:
            state = _refill(state, EXACT_CORE, scores, begin, live)
            waiting = np.arange(len(scores) - min(self.buffer, len(scores)), len(scores))
            state = _refill(state, EXACT_FILTER, scores, begin, waiting[~np.isnan(scores[waiting])])
            state.marks[EXACT_CORE, bands.REACH] = begin
        self._state = self._flat(state, self._state.window, self._state.watch)
        self._state.watch[CHANGES] += 1

    # -- figures -------------------------------------------------------------------------------------------------

    @property
    def missed_at_most(self) -> float:
        watch = self._state.watch
        running = self._taken - int(watch[LOOKED]) if self.quick else 0
        return self.sigma * (int(watch[QUICK_ROWS]) + running) / self.size

    def figures(self) -> dict[str, Any]:
        watch = self._state.watch
        return {
            "missed_at_most": self.missed_at_most,
            "unsure_rows": int(watch[UNSURE_ROWS]),
            "changes": int(watch[CHANGES]),
            "answers_now": "probabilistic" if self.quick else "relaxed+probabilistic",
        }

    @property
    def candidates(self) -> int:
        return len(held(self._pruners, int(self._state.query[0, kernel.CORE])).score)

    def snapshot(self) -> bytes:
        """As the contract says; free places are left out."""
        self._state = self._flat(packed(self._pruners), self._state.window, self._state.watch)
        return super().snapshot()

    def _made_for(self) -> dict[str, Any]:
        own = {"sigma": self.sigma, "gamma": self.gamma, "buffer": self.buffer, "level": self.level}
        return {**super()._made_for(), **own}

    def check_invariants(self) -> None:
        for number, name in enumerate(("exact core", "exact filter", "probabilistic core")):
            check_band(self._pruners, number, name)


def _refill(state: kernel.Pruners, number: int, scores: np.ndarray, begin: int, places: np.ndarray) -> kernel.Pruners:
    """Offer the rows at `places`, in the order they came, to a band."""
    places = np.sort(places)
    while True:
        done = kernel.refill(*state.rows, state.marks, state.levels, number, scores, begin, places)
        if done == len(places):
            return state
        places = places[done:]
        state = with_room(state, number)

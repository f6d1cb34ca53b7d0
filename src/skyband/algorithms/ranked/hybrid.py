"""Probabilistic as long as it can be shown that nothing is missed, exact by other means where it cannot.

A probabilistic core answers as fast as it does because it passes most rows over, and those below a threshold it never sees
again. The highest threshold of the last window's time is kept: while rank k is as high, no row that was passed over can
rank, and the answer is right whatever the stream. The moment rank k falls below it, before a window is answered, a relaxed
core behind a probabilistic filter takes over, built from the window's scores, until a watch over their order has seen
nothing for a while: then the next probabilistic core is likely to last.

Paper: TODS15 section 4.1.3, the hybrid PA/RAPF it leaves to future work; sections 4.1, 5 for its parts (`pruned`).
Guarantee: exact, on every stream. On one in random order the probabilistic core would miss fewer than sigma rows that rank in
n, and has to be replaced about as rarely: sigma sets how many rows it holds, and thereby how long it lasts.
Cost: that of the part that answers; O(n) when they change places. After it failed the probabilistic core is left alone for a
window, and for twice as long each time it then lasts less than that: streams on which it fails cost what the exact part does.
Memory: theirs, and the scores of the window: to be exact at once, nothing in it may have been forgotten.

Deviations: the paper would have a test of the order decide. No test of a few hundred scores sees a drift that is slight beside
the noise and yet decides who ranks; so here it only says when to try again (`kernels.ranked.order_watch`: what it does not see
costs time, not rows).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from skyband.algorithms.contract import Plan, Ranked
from skyband.algorithms.ranked.arena import Band, check_band, held, packed, pruners, with_room
from skyband.algorithms.ranked.pruned import GAMMA, RULE, SIGMA, band, buffer_of, hand_over
from skyband.errors import QueryError
from skyband.kernels.live import live_rows
from skyband.kernels.ranked import bands, order_watch
from skyband.kernels.ranked import pruning as kernel
from skyband.kernels.ranked.bands import Rows
from skyband.kernels.ranked.following import follow, refill
from skyband.kernels.tables import Panes, Results, Windows
from skyband.layout import grows

_SPANS = 8  # a window, at most
_SHORTEST = 8 * order_watch.SAMPLE  # rows of a span
_LONGEST_REST = 64  # windows
EXACT_CORE, EXACT_FILTER, QUICK_CORE = 0, 1, 2  # the bands

# places in State.watch
SPAN = 0  # the row at which the current span began
QUIET = 1  # rows since an order was last seen, or a probabilistic core failed
SINCE = 2  # the row at which the parts last changed places
REST = 3  # rows that have to be quiet before a probabilistic core is tried
CHANGES = 4  # how often the parts changed places
WATCH = 5


class State(NamedTuple):
    """`kernels.ranked.pruning.Pruners` laid flat, the scores of the window, what was passed over, and what the watch knows."""

    score: np.ndarray
    ordinal: np.ndarray
    dominators: np.ndarray
    marks: np.ndarray
    levels: np.ndarray
    query: np.ndarray
    window: np.ndarray  # float64 [n]: the score of row r in place r % n; NaN where there is none
    passed: np.ndarray  # float64: the highest threshold of each of the last spans that reach into the window, newest first
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
        self.span = max(_SHORTEST, size // _SPANS)  # rows between two looks
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
        watch[REST] = self.size
        if hasattr(self, "_state"):  # a gap in the rows: what was counted stays
            watch[CHANGES] = self._state.watch[CHANGES]
        spans = -(-self.size // self.span)
        return self._flat(state, np.full(self.size, np.nan), np.full(spans, -np.inf), watch)

    def _be_exact(self, query: np.ndarray) -> None:
        query[[kernel.CORE, kernel.FILTER, kernel.SIZE, kernel.BUFFER]] = EXACT_CORE, EXACT_FILTER, 0, self.buffer
        query[kernel.CHECKED] = 0

    def _be_quick(self, query: np.ndarray) -> None:
        query[[kernel.CORE, kernel.FILTER, kernel.SIZE, kernel.BUFFER]] = QUICK_CORE, kernel.NONE, self.size, 0
        query[kernel.CHECKED] = 1

    @property
    def quick(self) -> bool:
        """Does the probabilistic core answer?"""
        return int(self._state.query[0, kernel.CORE]) == QUICK_CORE

    @staticmethod
    def _flat(state: kernel.Pruners, window: np.ndarray, passed: np.ndarray, watch: np.ndarray) -> State:
        return State(*state.rows, state.marks, state.levels, state.query, window, passed, watch)

    def _keep(self, state: kernel.Pruners) -> None:
        self._state = self._flat(state, self._state.window, self._state.passed, self._state.watch)

    @property
    def _pruners(self) -> kernel.Pruners:
        return kernel.Pruners(Rows(*self._state[:3]), *self._state[3:6])

    # -- rows ----------------------------------------------------------------------------------------------------

    def _prepare(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None) -> None:
        state = self._state
        if state.query[0, kernel.TAKEN] < begin:
            state.query[0, [kernel.TAKEN, kernel.LEFT]] = begin
            state.query[0, kernel.TOUCHED] = begin + 1  # a gap may have emptied the top-k
            state.watch[[SPAN, SINCE]] = begin
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
            taken = self._taken
            upto = min(int(self._state.watch[SPAN]) + self.span, last)
            ready = int(np.searchsorted(windows.end, upto, "right"))
            at, status = self._take(windows.first[:ready], windows.end[:ready], at, upto, written, answers)
            self._store(taken, scores[taken - begin : self._taken - begin])
            if status == kernel.DOUBT:
                self._fail()
                status = kernel.DONE
            elif status == kernel.DONE and self._taken - self._state.watch[SPAN] >= self.span:
                self._end_span()
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
        gone through, and DONE, ANSWERS_FULL or DOUBT."""
        state = self._pruners
        rows, rows_from = self._rows, self._rows_from
        while True:
            at, status = follow(state, 0, first, end, at, rows, rows_from, rows, rows_from, written, answers)
            if status == kernel.DONE:
                status = kernel.take(*state.rows, *state[1:], 0, upto, rows, rows_from, rows, rows_from, False)
            if status < 0:
                break
            state = with_room(state, status)
        self._keep(state)
        return int(at), int(status)

    def _store(self, begin: int, scores: np.ndarray) -> None:
        """Keep the scores of rows that were taken, the first of which has the ordinal `begin`."""
        window, size = self._state.window, self.size
        begin, scores = begin + max(len(scores) - size, 0), scores[-size:]
        at = begin % size
        before_the_end = min(len(scores), size - at)
        window[at : at + before_the_end] = scores[:before_the_end]
        window[: len(scores) - before_the_end] = scores[before_the_end:]

    # -- who answers ---------------------------------------------------------------------------------------------

    def _end_span(self) -> None:
        """Forget what was passed over before the window; or see if a probabilistic core may be tried."""
        state, watch = self._state, self._state.watch
        if self.quick:
            self._pass(float(state.levels[QUICK_CORE, bands.PASSED]))
        else:
            watch[QUIET] = 0 if self._looks_ordered() else watch[QUIET] + self._taken - watch[SPAN]
            if watch[QUIET] >= watch[REST]:
                self._change(self._be_quick)
                state = self._state
                state.passed[:] = -np.inf
                self._pass(float(state.levels[QUICK_CORE, bands.PASSED]))
        watch[SPAN] = self._taken

    def _pass(self, highest: float) -> None:
        """A span ends in which rows up to the score `highest` were passed over."""
        passed, levels = self._state.passed, self._state.levels[QUICK_CORE]
        passed[1:] = passed[:-1].copy()
        passed[0] = highest
        levels[bands.PASSED] = levels[bands.THRESHOLD]
        levels[bands.PASSED_BEFORE] = passed.max()

    def _fail(self) -> None:
        """The probabilistic core may miss a row: be exact, and for longer if it was not for long."""
        watch = self._state.watch
        lasted, rest = self._taken - int(watch[SINCE]), int(watch[REST])
        watch[REST] = min(2 * rest, _LONGEST_REST * self.size) if lasted < rest else self.size
        watch[QUIET] = 0
        self._change(self._be_exact)

    def _looks_ordered(self) -> bool:
        """Do the scores of the window seem to have an order?"""
        rows = min(self._taken, self.size)
        recent = self._last(self._taken, min(rows, order_watch.SAMPLE))
        older = rows - len(recent)
        step = max(older // order_watch.SAMPLE, 1)
        spread = self._state.window[np.arange(self._taken - rows, self._taken - rows + older, step) % self.size]
        ordered = order_watch.looks_ordered(recent, spread, self.level)
        return bool(ordered or abs(order_watch.serial_z(spread)) > self.level)

    def _change(self, into: Callable[[np.ndarray], None]) -> None:
        """Fill empty bands from the window's scores and let them take over. O(n)."""
        end, begin = self._taken, max(self._taken - self.size, 0)
        scores = self._last(end, end - begin)
        state = pruners(self._bands, 1)
        query = state.query[0]
        query[:] = self._state.query[0]
        into(query)
        query[kernel.LEFT] = end - self.buffer
        query[kernel.TOUCHED] = query[kernel.TOUCHED] or end  # since the last answer rows may have left the window
        live, _, _ = live_rows(scores, self.plan.largest_k, False)
        if query[kernel.FILTER] == kernel.NONE:
            state = _refill(state, QUICK_CORE, scores, begin, live)
        else:
            state = _refill(state, EXACT_CORE, scores, begin, live)
            waiting = np.arange(len(scores) - min(self.buffer, len(scores)), len(scores))
            state = _refill(state, EXACT_FILTER, scores, begin, waiting[~np.isnan(scores[waiting])])
            state.marks[EXACT_CORE, bands.REACH] = begin
        self._keep(state)
        self._state.watch[CHANGES] += 1
        self._state.watch[SINCE] = self._taken

    # -- figures -------------------------------------------------------------------------------------------------

    def figures(self) -> dict[str, Any]:
        return {
            "missed_at_most": self.missed_at_most,
            "changes": int(self._state.watch[CHANGES]),
            "answers_now": "probabilistic" if self.quick else "relaxed+probabilistic",
        }

    @property
    def candidates(self) -> int:
        return len(held(self._pruners, int(self._state.query[0, kernel.CORE])).score)

    def snapshot(self) -> bytes:
        """As the contract says; free places are left out."""
        self._keep(packed(self._pruners))
        return super().snapshot()

    def _made_for(self) -> dict[str, Any]:
        own = {"sigma": self.sigma, "gamma": self.gamma, "buffer": self.buffer, "level": self.level}
        return {**super()._made_for(), **own}

    def check_invariants(self) -> None:
        for number, name in enumerate(("exact core", "exact filter", "probabilistic core")):
            check_band(self._pruners, number, name)
        if self.quick:
            rows, levels = held(self._pruners, QUICK_CORE).score, self._state.levels[QUICK_CORE]
            floor = rows[self.plan.largest_k - 1] if len(rows) >= self.plan.largest_k else -np.inf
            assert floor >= levels[[bands.PASSED, bands.PASSED_BEFORE]].max(), f"rank k, {floor}, is below these: {levels}"
            assert levels[bands.THRESHOLD] <= levels[bands.PASSED], f"the threshold is above what was passed: {levels}"


def _refill(state: kernel.Pruners, number: int, scores: np.ndarray, begin: int, places: np.ndarray) -> kernel.Pruners:
    """Offer the rows at `places`, in the order they came, to a band."""
    places = np.sort(places)
    while True:
        done = refill(*state.rows, state.marks, state.levels, number, scores, begin, places)
        if done == len(places):
            return state
        places = places[done:]
        state = with_room(state, number)

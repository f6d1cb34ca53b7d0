"""Candidate pruning: a core that keeps what may still rank, and a filter in front of it that keeps most rows out.

A row is offered to the core, which holds a skyband of the window: *strict* drops a row as soon as k newer ones outrank
it, *relaxed* sweeps such rows out when the candidates have grown by a share gamma, *probabilistic* holds a fixed number
of the best rows, enough for a stream in random order, and passes over all others. A filter is the same thing over the
last b rows, for all rows the core need not see at once: a row that is not among the filter's best k when it comes cannot
rank while it is among the last b, and when it leaves them it goes on only if fewer than k newer rows outrank it.

Paper: TODS15 sections 4.1 (PA), 4.2 (RA), 5 (filters: SASF, SARF, SAPF, RASF, RARF, RAPF, here core+filter).
Guarantee: exact, but for a probabilistic core: on a stream in random order it misses fewer than sigma * N / n of the rows
that rank while N come in, and reports at most 1.5 times as many wrong ones; on other streams it promises nothing.
Cost a row: strict O(k); relaxed O(k) with a smaller constant; probabilistic O(1), as only (k + limit) / n of the rows
are looked at; core+probabilistic the same with b for n, and k / b of the core's. Memory: k (1 + ln(n/k)) rows for strict,
(1 + gamma / 2) times that for relaxed, k + limit for probabilistic; a filter adds its own and the last b scores.

Glossary: gamma pruning coefficient, sigma probability of error, limit most candidates (`candidate_limit`), b buffer.

Ours, the paper's form being that of the rules "definition" and "table": a probabilistic core also drops rows that k newer
ones outrank, which never rank, where that does not make it let in more than twice as many, 1.5 times with a grid (the rule
"auto", the default; "swept": always). Its limit counts rows that are not dominated, so that sigma holds as before, and it
holds fewer: 144, not 167, for k = 81, n = 40,000, sigma = 0.001. A probabilistic filter misses nothing however few
candidates it has, it then only lets more rows through: it has 4 + sqrt(k) of them, about as many as are fastest for k from 1
to 81, instead of limit.

Deviations: sorted arrays for trees; the oldest row's ordinal for the time tree. The sweep counts, for each row, the newer
ones above it that came since the last sweep, instead of carrying the k newest rows down (algorithm 4): the same rows go. A
threshold that has fewer than two candidates to be lowered by is reset. Rows of a slide are taken before those that leave with
it are dropped, so that a sweep may come earlier than printed. In windows whose rows are not known beforehand
the buffer gives rows back early, as far as theorem 5.1 needs it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from skyband.algorithms.contract import Plan, Ranked
from skyband.algorithms.ranked.arena import Band, check_band, held, packed, pruners, with_room
from skyband.algorithms.ranked.candidate_limit import candidate_limit, sweeping_pays
from skyband.errors import QueryError
from skyband.kernels.ranked import pruning as kernel
from skyband.kernels.ranked.bands import REACH, Rows
from skyband.kernels.ranked.following import follow
from skyband.kernels.tables import SAME, Panes, Results, Windows
from skyband.layout import grows

BUFFER = 2000  # rows of a filter's buffer, where the window allows it (TODS15 table IX)
GAMMA = 0.2
SIGMA = 0.001
RULE = "auto"  # how many candidates are held, and whether a probabilistic core drops dominated ones
SPARE = 4  # candidates of a probabilistic filter, besides the root of k
FIRST_SWEEP = 4  # a relaxed band is first swept at this many candidates for each of the k


class State(NamedTuple):
    """`kernels.ranked.pruning.Pruners` laid flat, and the buffer."""

    score: np.ndarray
    ordinal: np.ndarray
    dominators: np.ndarray
    marks: np.ndarray
    levels: np.ndarray
    query: np.ndarray
    waiting: np.ndarray  # float64: scores of the rows from query[0, LEFT] on; empty without a filter


def band(
    kind: str,
    k: int,
    rows: int,
    *,
    gamma: float,
    sigma: float,
    rule: str,
    additional: int,
    is_filter: bool,
    indexed: bool = False,
) -> Band:
    """A core over `rows` rows, or a filter over a buffer of so many; `indexed` if a grid says which rows to look at."""
    if kind == "strict":
        return Band(kind, k)
    if kind == "relaxed":
        return Band(kind, k, limit=FIRST_SWEEP * k, share=gamma)
    ours = rule in ("auto", "swept")
    if is_filter:  # section 6.1: never reset for want of candidates, lowered by the whole difference
        limit = SPARE + math.isqrt(k) if ours else candidate_limit(k, rows, sigma, rule)
        return Band(kind, k, limit=limit, least=0, share=1.0)
    if rule == "auto":
        rule = "swept" if sweeping_pays(k, rows, sigma, indexed) else "definition"
    limit = candidate_limit(k, rows, sigma, rule)
    return Band("limited" if rule == "swept" else kind, k, limit=limit + additional, least=limit, share=0.5)


def buffer_of(size: int | None, buffer: int | None) -> int:
    """The rows of a filter's buffer: as asked, or the usual number where the window allows it."""
    most = BUFFER if size is None else (size + 1) // 2  # theorem 5.1
    if buffer is None:
        return min(BUFFER, most)
    if buffer < 1:
        raise QueryError(f"buffer={buffer} holds no row; ask for at least 1, or leave it out")
    if size is not None and buffer > most:
        raise QueryError(
            f"buffer={buffer} is more than half the window of {size} rows, where a filter is no longer exact; "
            f"ask for at most {most}"
        )
    return buffer


def hand_over(answers: kernel.Answers, start: int, stop: int, results: Results) -> None:
    """Enter the answers to windows[start:stop] into the results; those not there are the same as the one before."""
    results.size[start:stop] = SAME
    window = answers.window[: answers.used[0]]
    results.begin[window] = answers.begin[: len(window)]
    results.size[window] = answers.size[: len(window)]


class Pruned(Ranked):
    """One query: a core, and perhaps a filter."""

    growing = grows("state", room=("score", "ordinal", "dominators"), waiting=("waiting",))
    _state: State

    def __init__(
        self,
        plan: Plan,
        core: str = "relaxed",
        filter: str | None = None,
        gamma: float = GAMMA,
        sigma: float = SIGMA,
        rule: str = RULE,
        additional: int = 0,
        buffer: int | None = None,
    ) -> None:
        (k,), size = plan.ks, plan.largest_size
        if core == "probabilistic" and (size is None or filter is not None):
            what = "a window of a known number of rows" if size is None else "no filter in front of it"
            raise QueryError(f"the probabilistic core needs {what}; use relaxed+probabilistic, which is exact, instead")
        self.core, self.filter = core, filter
        self.sigma = sigma
        self.options: dict[str, Any] = {"gamma": gamma, "sigma": sigma, "rule": rule, "additional": additional}
        self.buffer = 0 if filter is None else buffer_of(size, buffer)
        self._bands = [band(core, k, size or 0, **self.options, is_filter=False)]
        if filter is not None:
            self._bands.append(band(filter, k, self.buffer, **self.options, is_filter=True))
        super().__init__(plan)

    def _empty(self) -> State:
        state = pruners(self._bands, 1)
        query = state.query[0]
        query[kernel.FILTER] = kernel.NONE if self.filter is None else 1
        query[kernel.SIZE] = self.plan.largest_size if self.core == "probabilistic" else 0
        query[kernel.BUFFER] = self.buffer
        query[kernel.UNEVEN] = self.filter is not None and self.plan.sizes is None
        return self._flat(state, np.zeros(0))

    @staticmethod
    def _flat(state: kernel.Pruners, waiting: np.ndarray) -> State:
        return State(*state.rows, state.marks, state.levels, state.query, waiting)

    @property
    def _pruners(self) -> kernel.Pruners:
        return kernel.Pruners(Rows(*self._state[:3]), *self._state[3:6])

    def _prepare(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None) -> None:
        query = self._state.query[0]
        if query[kernel.TAKEN] < begin:
            query[[kernel.TAKEN, kernel.LEFT]] = begin
            query[kernel.TOUCHED] = begin + 1  # a gap may have emptied the top-k
        self._rows, self._rows_from = scores, begin
        if self.filter is not None:
            self._rows = np.concatenate([self._state.waiting, scores])
            self._rows_from = int(query[kernel.LEFT])
            assert self._rows_from + len(self._state.waiting) == begin
            self._rows.flags.writeable = False

    def _run(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None, start: int, results: Results) -> int:
        answers = kernel.answers_room(len(windows.query), results.score, results.ordinal)
        state, at, written = self._pruners, start, bool(windows.report.any())
        rows = (self._rows, self._rows_from)
        while True:
            at, status = follow(state, 0, windows.first, windows.end, at, *rows, *rows, written, answers)
            if status < 0:
                break
            state = with_room(state, status)
        waiting = self._state.waiting
        if self.filter is not None:
            left, taken = state.query[0, [kernel.LEFT, kernel.TAKEN]] - self._rows_from
            waiting = self._rows[left:taken]
        self._state = self._flat(state, waiting if at < len(windows.query) else waiting.copy())
        hand_over(answers, start, int(at), results)
        self.tops.count[0] = kernel.read(state, 0, self.tops.score[0], self.tops.ordinal[0])
        return int(at)

    @property
    def candidates(self) -> int:
        return int((held(self._pruners, 0).ordinal >= self._state.marks[0, REACH]).sum())

    @property
    def references(self) -> int:
        """Rows held by the core and by the filter, a row in both twice."""
        return sum(len(held(self._pruners, number).score) for number in range(len(self._bands)))

    @property
    def missed_at_most(self) -> float:
        if self.core != "probabilistic" or self.plan.largest_size is None:
            return 0.0
        return self.sigma * self.next / self.plan.largest_size

    def figures(self) -> dict[str, Any]:
        return {"missed_at_most": self.missed_at_most} if self.core == "probabilistic" else {}

    def snapshot(self) -> bytes:
        """As the contract says; free places are left out."""
        self._state = self._flat(packed(self._pruners), self._state.waiting)
        return super().snapshot()

    def _made_for(self) -> dict[str, Any]:
        return {**super()._made_for(), "core": self.core, "filter": self.filter, "buffer": self.buffer, **self.options}

    def check_invariants(self) -> None:
        state = self._pruners
        query = state.query[0]
        for number, name in enumerate(["core", "filter"][: len(self._bands)]):
            check_band(state, number, name)
        if self.filter is not None:
            waiting = len(self._state.waiting)
            assert waiting == query[kernel.TAKEN] - query[kernel.LEFT] <= self.buffer, f"{waiting} rows wait, marks {query}"
            newest = held(state, 1).ordinal[: self.plan.largest_k]
            assert (newest >= query[kernel.LEFT]).all(), f"the filter ranks rows that left the buffer: {newest} {query}"

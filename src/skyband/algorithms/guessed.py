"""Early aggregation that guesses: a stream where an object was not yet seen counts as far as it is likely to be seen there.

Everything is as in `eaa`, but what an instance may come to is not taken at its highest: the largest value of a stream not yet
seen is weighted with the chance, estimated from the window's correlations, that the object will be seen there, plus a margin.
Fewer instances can reach their level then, and those that cannot are forgotten, with their objects where nothing else is left
and every tuple counts; where only the first `repeats` do, an object's counts are kept while it is in the window, as `eaa` does.
So an object may be missed, or stand lower than it should, but never higher: what is reported it has. With a margin of 1 nothing
is guessed, whatever is known of values and repeats, and answers are those of `eaa`.
With `ahead`, an instance not expected to reach the score that is at rank k + ahead now is forgotten too, however new it is:
on a stream whose scores do not fall with time it would be outranked before long.

Given a memory, a number of instances, nothing is pruned but what is certain and, where there are more, what promises least
time among the best k: `kernels.across_budget` says how that is told, from how soon objects are seen again and what values are
like. Answers then come from these instances alone; there are never more of them when anyone looks, as a tuple that makes one too
many makes room for itself and a 32nd of the memory.

Asked for a precision, it finds out by itself how bold it may be. One object in eight, a witness, is pruned only where that
is certain; a witness that comes to rank after it would have been forgotten is one missed, and the share of such among the
witnesses that rank is what all the others lose. When enough of them have come to rank since the margin was set, it grows by
0.15 if that share is too large (1: nothing is guessed), or shrinks by 0.1 if it would not be even with the next one
missed; not soon again to where it was too small.

Paper: CIKM09 4 (margin 0, ahead 0, the default); `ahead`, the memory and the precision asked for are ours. Guarantee: none for
one answer; the precision reached is estimated and reported where one was asked for. Cost and memory: as `eaa`, with an
instance set that hardly grows with the window, or as large as it may be; the sample, 32 KB and 32 KB a stream. Answers
depend on the tuples alone: sweeps and estimates happen at ordinals that they determine. Deviation: chances are estimated
anew when a 64th of the window has come, at least 64 tuples. An unknown largest value is the largest that came.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.algorithms import correlation
from skyband.algorithms.across import AcrossPlan
from skyband.algorithms.eaa import Instances
from skyband.errors import QueryError
from skyband.kernels import across_instances as kernel
from skyband.kernels import samples
from skyband.kernels.across_budget import AGES, GRID, QUANTILES, Budget
from skyband.kernels.across_tables import Tuples
from skyband.kernels.across_worth import Guess
from skyband.layout import grows

WITNESSES = 8  # one object in so many, where a precision is asked for
_PACE = 64
_UP, _DOWN, _FORGIVEN = 0.15, 0.1, 0.01
_MEMORY = 0.99  # of what was counted before, at each new estimate
_AHEAD = 12  # instances of the memory, besides k, for each rank below k that is still taken to be enough
_SIGHT = 2  # times k: ranks beyond k that are looked at where there is room for so many instances only
_SPARE = 32  # of so many places one is made free at a time, and filled again before the next are
_RECENT = 256  # values that tell what values are like
_ENOUGH = 3.0  # witnesses from which a share is told


class Beliefs(NamedTuple):
    """What is believed of the streams."""

    high: np.ndarray  # float64 [streams]: the largest value, or the largest that came where none is known
    chance: np.ndarray  # see `correlation.chances`
    often: np.ndarray  # float64 [streams]
    margin: np.ndarray  # float64 [1]
    bar: np.ndarray  # float64 [1]: the score at the rank k + ahead
    counted: np.ndarray  # float64 [2]: witnesses that came to rank, those missed; older ones fade
    judged: np.ndarray  # float64 [2]: the same since the margin was set
    sampled: np.ndarray  # int64 [1]: ordinal after the last tuple that the sample has seen
    adapted: np.ndarray  # int64 [1]: when the margin was set
    least: np.ndarray  # float64 [1]: the margin does not become smaller: there, too much was missed not long ago
    alone: np.ndarray  # see `correlation.alone`
    recent: np.ndarray  # float64 [_RECENT]: the last values, that of the ordinal i in place i % _RECENT; NaN: none
    values: np.ndarray  # float64 [QUANTILES]: what values are like


class GuessedInstances(Instances):
    """The k dominance set of what is likely."""

    growing = Instances.growing | grows("stretches", stretches=("number", "tuples"))

    def __init__(
        self,
        plan: AcrossPlan,
        margin: float = 0.0,
        precision: float | None = None,
        ahead: int | None = None,
        memory: int | None = None,
        pace: int = kernel.LEAST_SWEEP,
    ) -> None:
        if memory is not None and memory < plan.k:
            raise QueryError(f"memory={memory} instances cannot hold the best {plan.k} objects; ask for at least {plan.k}")
        if ahead is None:
            ahead = 0 if precision is None else 3 * plan.k + 10
            if memory is not None:
                ahead = max((memory - plan.k) // _AHEAD, 1)
        super().__init__(plan, pace, ahead if memory is None else max(ahead, _SIGHT * plan.k))
        self.ahead, self.memory = ahead, memory
        self.spare = 0 if memory is None else memory // _SPARE
        self.precision = precision
        self.sample = samples.no_sample(plan.streams)
        self.stretches = correlation.no_stretches(plan.streams)
        rows = 1 << plan.streams if plan.streams <= correlation.JOINT else plan.streams
        start = 1.0 if memory is not None else margin if precision is None else 0.5
        self.beliefs = Beliefs(
            high=np.where(np.isinf(self.rule.high), 0.0, self.rule.high),
            chance=np.ones((rows, plan.streams)),
            often=np.ones(plan.streams),
            margin=np.array([start]),
            bar=np.array([-np.inf]),
            counted=np.zeros(2),
            judged=np.zeros(2),
            sampled=np.zeros(1, np.int64),
            adapted=np.zeros(1, np.int64),
            least=np.array([-1.0]),
            alone=np.ones((plan.streams + 1, AGES + 1)),
            recent=np.full(_RECENT, np.nan),
            values=np.zeros(QUANTILES),
        )
        self._believe()

    def _believe(self) -> None:
        beliefs, streams, room = self.beliefs, self.plan.streams, len(self.held.ordinal)
        tables = (np.zeros((streams + 1, GRID)), np.zeros((streams + 1, GRID)), np.zeros((2, room)))
        budget = Budget(self.memory or 0, self.spare, self.ahead, beliefs.alone, beliefs.values, *tables)
        witnesses = 0 if self.precision is None else WITNESSES
        high, chance, often, margin, bar, *_ = beliefs
        ahead = len(self.held.level) - self.plan.k
        self.guess = Guess(1, high, chance, often, margin, ahead, bar, witnesses, budget)

    def _begin(self, ordinal: int) -> None:
        super()._begin(ordinal)
        self.held.marks[kernel.REFRESH] = ordinal + _PACE
        self.beliefs.sampled[0] = ordinal

    def _make_way(self, begin: int, tuples: Tuples) -> None:
        marks = self.held.marks
        if marks[kernel.TAKEN] >= marks[kernel.REFRESH]:
            self._refresh(begin, tuples)
        super()._make_way(begin, tuples)
        if len(self.held.ordinal) > self.guess.budget.worth.shape[1]:
            self._believe()

    def _finish(self, begin: int, tuples: Tuples) -> None:
        start, taken = int(self.beliefs.sampled[0]), int(self.held.marks[kernel.TAKEN])
        samples.see(self.sample, tuples.stream, tuples.hash, tuples.reach, begin, start, taken)
        self.stretches = correlation.counted(self.stretches, tuples.stream[start - begin : taken - begin], start)
        self.beliefs.sampled[0] = taken
        last = slice(max(start, taken - _RECENT) - begin, taken - begin)
        counts = np.flatnonzero(tuples.stream[last] >= 0) + last.start
        self.beliefs.recent[(counts + begin) % _RECENT] = tuples.value[counts]

    def _refresh(self, begin: int, tuples: Tuples) -> None:
        """Estimate the chances anew, and how bold to be."""
        self._finish(begin, tuples)
        marks = self.held.marks
        first, taken = int(marks[kernel.REACH]), int(marks[kernel.TAKEN])
        pace = max(_PACE, (taken - first) // 64)
        samples.widen(self.sample, first, taken)
        self.stretches = correlation.forgotten(self.stretches, first)
        self.beliefs.chance[:] = correlation.chances(self.sample, first)
        if self.plan.repeats > 1:
            self.beliefs.often[:] = np.minimum(correlation.occurrences(self.sample, self.stretches, first), self.plan.repeats)
        if self.memory is not None:
            self.beliefs.alone[:] = correlation.alone(self.sample, first, taken)
            known = self.beliefs.recent[~np.isnan(self.beliefs.recent)]
            if len(known):
                self.beliefs.values[:] = np.quantile(known, (np.arange(QUANTILES) + 0.5) / QUANTILES)
        marks[kernel.REFRESH] = taken + pace
        if self.precision is not None:
            self._adapt(self.precision)

    def _adapt(self, wanted: float) -> None:
        """Judge the margin by the witnesses that came to rank since it was set, once a window has passed."""
        marks, beliefs = self.held.marks, self.beliefs
        taken, span = int(marks[kernel.TAKEN]), int(marks[kernel.TAKEN] - marks[kernel.REACH])
        found = marks[[kernel.HITS, kernel.MISSES]]
        marks[[kernel.HITS, kernel.MISSES]] = 0
        beliefs.counted[:] = beliefs.counted * _MEMORY + found
        if taken < beliefs.adapted[0] + span:
            return  # what an earlier margin lost still shows
        beliefs.judged[:] += found
        hits, misses = beliefs.judged
        if hits >= _ENOUGH and misses > (1.0 - wanted) * hits:
            beliefs.margin[0] = beliefs.least[0] = min(beliefs.margin[0] + _UP, 1.0)
        elif misses + 1.0 < (1.0 - wanted) * (hits + 2.0):  # it would be, even if the next one were missed
            beliefs.margin[0] = max(beliefs.margin[0] - _DOWN, beliefs.least[0], -1.0)
            beliefs.least[0] -= _FORGIVEN
        else:
            return
        beliefs.judged[:] = 0.0
        beliefs.adapted[0] = taken

    @property
    def candidates(self) -> int:
        return int(self.held.marks[kernel.STOP])

    @property
    def estimated_precision(self) -> float | None:
        """The share of the ranks that are right, as far as witnesses tell; None: they cannot, or nobody asked."""
        hits, misses = self.beliefs.counted + self.held.marks[[kernel.HITS, kernel.MISSES]]
        if self.precision is None or hits < _ENOUGH:
            return None
        return float(1.0 - (1.0 - 1.0 / WITNESSES) * misses / hits)

    def figures(self) -> dict[str, Any]:
        sketch_bytes = sum(array.nbytes for part in (self.sample, self.stretches) for array in part)
        found: dict[str, Any] = {
            "margin": float(self.beliefs.margin[0]),
            "sketch_bytes": sketch_bytes,
        }
        if self.precision is not None:
            found["precision_estimated"] = self.estimated_precision
        return super().figures() | found

    def alive(self) -> np.ndarray:
        """As the contract says; an object that was forgotten may still have a floor."""
        alive = super().alive()
        alive[self.held.floor_obj[: self.held.marks[kernel.FLOORS]]] = True
        return alive

    def _made_for(self) -> dict[str, Any]:
        return super()._made_for() | {"precision": self.precision, "ahead": self.ahead, "memory": self.memory}

    def _parts(self) -> dict[str, Any]:
        return super()._parts() | {"sample": self.sample, "stretches": self.stretches, "beliefs": self.beliefs}

    def _set_parts(self, parts: dict[str, Any]) -> None:
        super()._set_parts(parts)
        self.sample, self.stretches, self.beliefs = parts["sample"], parts["stretches"], parts["beliefs"]
        self._believe()

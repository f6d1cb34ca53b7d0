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
like. Answers then come from these instances alone; there are never more of them when anyone looks, as a tuple that makes one
too many makes room for itself and a 32nd of the memory.

Asked for a precision, it forgets what promises less than a threshold, and finds out by itself how bold that may be. One object
in eight, a witness, is pruned only where that is certain (far below the threshold fewer are kept, and count for more); what its
instances had promised before they came to rank tells of every threshold what share of the ranks it would lose
(`kernels.across_witness`), and the largest that loses no more than asked is taken whenever chances are estimated: up or down,
without being tried. Until something has left the window and enough instances have come to rank, nothing is forgotten and every
object is a witness.

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
from skyband.kernels.across_witness import DISTINCT, LOST, RANKED, TALLY, Witnesses, boldest
from skyband.kernels.across_worth import Guess
from skyband.layout import grows

WITNESSES = 8  # one object in so many, where a precision is asked for
_PACE = 64
_FADING = 0.97  # of what witnesses told, after a window's worth of tuples
_LONG = 256.0  # instances of witnesses that have ranked, of which none need be remembered longer
_TELLING = 16.0  # instances of witnesses that have ranked, from which a threshold is told
_AHEAD = 12  # instances of the memory, besides k, for each rank below k that is still taken to be enough
_SIGHT = 2  # times k: ranks beyond k that are looked at where there is room for so many instances only
_SPARE = 32  # of so many places one is made free at a time, and filled again before the next are
_RECENT = 256  # values that tell what values are like
_ENOUGH = 3.0  # instances of witnesses that have ranked, from which a precision is told


class Beliefs(NamedTuple):
    """What is believed of the streams."""

    high: np.ndarray  # float64 [streams]: the largest value, or the largest that came where none is known
    chance: np.ndarray  # see `correlation.chances`
    often: np.ndarray  # float64 [streams]
    margin: np.ndarray  # float64 [1]
    bar: np.ndarray  # float64 [1]: the score at the rank k + ahead
    threshold: np.ndarray  # float64 [1]: an instance that promises less is forgotten
    one_in: np.ndarray  # int64 [1]: one object in so many is a witness
    tally: np.ndarray  # float64 [TALLY]: what witnesses told; older ranks fade
    began: np.ndarray  # int64 [1]: ordinal of the first tuple
    sampled: np.ndarray  # int64 [1]: ordinal after the last tuple that the sample has seen
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
            ahead = 0 if precision is None else plan.k
            if memory is not None:
                ahead = max((memory - plan.k) // _AHEAD, 1)
        promised = memory is not None or precision is not None
        super().__init__(plan, pace, max(ahead, _SIGHT * plan.k) if promised else ahead)
        self.ahead, self.memory = ahead, memory
        self.spare = 0 if memory is None else memory // _SPARE
        self.precision = precision
        self.sample = samples.no_sample(plan.streams)
        self.stretches = correlation.no_stretches(plan.streams)
        rows = 1 << plan.streams if plan.streams <= correlation.JOINT else plan.streams
        self.beliefs = Beliefs(
            high=np.where(np.isinf(self.rule.high), 0.0, self.rule.high),
            chance=np.ones((rows, plan.streams)),
            often=np.ones(plan.streams),
            margin=np.array([margin]),
            bar=np.array([-np.inf]),
            threshold=np.zeros(1),
            one_in=np.ones(1, np.int64),
            tally=np.zeros(TALLY),
            began=np.zeros(1, np.int64),
            sampled=np.zeros(1, np.int64),
            alone=np.ones((plan.streams + 1, AGES + 1)),
            recent=np.full(_RECENT, np.nan),
            values=np.zeros(QUANTILES),
        )
        self._believe()

    @property
    def _by_promise(self) -> bool:
        """Is what is kept told by what instances promise?"""
        return self.memory is not None or self.precision is not None

    def _believe(self) -> None:
        beliefs, streams, room = self.beliefs, self.plan.streams, len(self.held.ordinal)
        tables = (np.zeros((streams + 1, GRID)), np.zeros((streams + 1, GRID)), np.zeros((2, room)))
        budget = Budget(int(self._by_promise), self.memory or 0, self.spare, self.ahead, beliefs.alone, beliefs.values, *tables)
        witnesses = Witnesses(int(self.precision is not None), beliefs.threshold, beliefs.one_in, beliefs.tally)
        high, chance, often, margin, bar, *_ = beliefs
        ahead = len(self.held.level) - self.plan.k
        self.guess = Guess(1, high, chance, often, margin, ahead, bar, witnesses, budget)

    def _begin(self, ordinal: int) -> None:
        super()._begin(ordinal)
        self.held.marks[kernel.REFRESH] = ordinal + _PACE
        self.beliefs.began[0] = self.beliefs.sampled[0] = ordinal

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
        if self._by_promise:
            self.beliefs.alone[:] = correlation.alone(self.sample, first, taken)
            known = self.beliefs.recent[~np.isnan(self.beliefs.recent)]
            if len(known):
                self.beliefs.values[:] = np.quantile(known, (np.arange(QUANTILES) + 0.5) / QUANTILES)
        marks[kernel.REFRESH] = taken + pace
        if self.precision is not None:
            self._adapt(self.precision, pace / max(taken - first, pace))

    def _adapt(self, wanted: float, passed: float) -> None:
        """Take the boldest threshold that loses no more than is allowed, as far as witnesses tell; so many windows have
        passed since it was last done."""
        beliefs, tally = self.beliefs, self.beliefs.tally
        if self.held.marks[kernel.REACH] > beliefs.began[0] and tally[DISTINCT] >= _TELLING:
            allowed = (1.0 - wanted) / (1.0 - 1.0 / WITNESSES)  # of witnesses themselves nothing is lost
            beliefs.threshold[0] = boldest(tally, allowed)
            if beliefs.threshold[0] > 0.0:
                beliefs.one_in[0] = WITNESSES
        tally *= min(_FADING**passed, _LONG / max(tally[DISTINCT], 1.0))

    @property
    def candidates(self) -> int:
        return int(self.held.marks[kernel.STOP])

    @property
    def estimated_precision(self) -> float | None:
        """The share of the ranks that are right, as far as witnesses tell; None: they cannot, or nobody asked."""
        tally = self.beliefs.tally
        if self.precision is None or tally[DISTINCT] < _ENOUGH:
            return None
        return float(1.0 - (1.0 - 1.0 / self.beliefs.one_in[0]) * tally[LOST] / tally[RANKED])

    def figures(self) -> dict[str, Any]:
        sketch_bytes = sum(array.nbytes for part in (self.sample, self.stretches) for array in part)
        found: dict[str, Any] = {"sketch_bytes": sketch_bytes}
        if self.precision is not None:
            found |= {"threshold": float(self.beliefs.threshold[0]), "precision_estimated": self.estimated_precision}
        elif self.memory is None:
            found["margin"] = float(self.beliefs.margin[0])
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

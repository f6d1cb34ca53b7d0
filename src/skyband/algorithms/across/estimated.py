"""The paper's estimate: a stream where an object was not yet seen counts as far as it is likely to be seen there.

Everything is as in `eaa`, but what an instance may come to is not taken at its highest: the largest value of a stream not yet
seen is weighted with the chance, estimated from the window's correlations, that the object will be seen there, plus a margin.
Fewer instances can reach their level then, and those that cannot are forgotten, with their objects where nothing else is left
and every tuple counts; where only the first `repeats` do, an object's counts are kept while it is in the window, as `eaa` does.
So an object may be missed, or stand lower than it should, but never higher: what is reported it has. With a margin of 1 nothing
is guessed, whatever is known of values and repeats, and answers are those of `eaa`.

Paper: CIKM09 4 (margin 0). Guarantee: none. Cost and memory: as `eaa`, with fewer instances; the sample. Deviations: whether k
objects dominate an instance is told by the scores there are, not by counters that keep what an estimate said once. An unknown
largest value is the largest that came. `eaa-approximate` holds less for the same precision.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.algorithms.across import correlation
from skyband.algorithms.across.contract import AcrossPlan
from skyband.algorithms.across.eaa import NOBODY, NOTHING
from skyband.algorithms.across.guessing import Guessing
from skyband.kernels.across import instances as kernel
from skyband.kernels.across.tables import Tuples
from skyband.kernels.across.worth import Guess
from skyband.layout import grows


class Beliefs(NamedTuple):
    """What is believed of the streams."""

    high: np.ndarray  # float64 [streams]: the largest value, or the largest that came where none is known
    chance: np.ndarray  # see `correlation.chances`
    often: np.ndarray  # float64 [streams]
    margin: np.ndarray  # float64 [1]


class EstimatedInstances(Guessing):
    """The k dominance set of what is likely."""

    growing = Guessing.growing | grows("stretches", stretches=("number", "tuples"))

    def __init__(self, plan: AcrossPlan, margin: float = 0.0, pace: int = kernel.LEAST_SWEEP) -> None:
        super().__init__(plan, pace)
        self.stretches = correlation.no_stretches(plan.streams)
        rows = 1 << plan.streams if plan.streams <= correlation.JOINT else plan.streams
        high = np.where(np.isinf(self.rule.high), 0.0, self.rule.high)
        self.beliefs = Beliefs(high, np.ones((rows, plan.streams)), np.ones(plan.streams), np.array([margin]))
        self._believe()

    def _believe(self) -> None:
        self.guess = Guess(1, *self.beliefs, NOBODY, NOTHING)

    def _estimate(self, first: int, now: int, passed: float) -> None:
        self.stretches = correlation.forgotten(self.stretches, first)
        self.beliefs.chance[:] = correlation.chances(self.sample, first)
        if self.plan.repeats > 1:
            self.beliefs.often[:] = np.minimum(correlation.occurrences(self.sample, self.stretches, first), self.plan.repeats)

    def _finish(self, begin: int, tuples: Tuples) -> None:
        start, taken = int(self.progress.sampled[0]), int(self.held.marks[kernel.TAKEN])
        self.stretches = correlation.counted(self.stretches, tuples.stream[start - begin : taken - begin], start)
        super()._finish(begin, tuples)

    def figures(self) -> dict[str, Any]:
        return super().figures() | {"margin": float(self.beliefs.margin[0])}

    def _sketches(self) -> dict[str, Any]:
        return super()._sketches() | {"stretches": self.stretches, "beliefs": self.beliefs}

"""Early aggregation that guesses: a stream where an object was not yet seen counts as far as it is likely to be seen there.

Everything is as in `eaa`, but what an instance may come to is not taken at its highest: the largest value of a stream not yet
seen is weighted with the chance, estimated from the window's correlations, that the object will be seen there. Fewer
instances can reach their level then, and those that cannot are forgotten, with their objects where nothing else is left.

Asked for a precision, it finds out by itself how bold it may be. One object in sixteen, a witness, is pruned only where that
is certain; a witness that ranks after it would have been forgotten is a rank missed, and the share of such ranks among those
of witnesses is what all the others lose. A margin is added to every chance: it grows by 0.1 when that share is too large, and
shrinks by 0.02 while there is room.

Paper: CIKM09 4 (`margin=0`, the default); the precision asked for is ours. Guarantee: none for one answer; the precision
reached is estimated and reported. Cost and memory: as `eaa`, with an instance set that hardly grows with the window; the
sketches, 80 KB a stream. Answers depend on the tuples alone: sweeps and estimates happen at ordinals that they determine.
Deviation: chances are estimated anew when a 64th of the window has come, at least 256 tuples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.algorithms import correlation
from skyband.algorithms.across import AcrossPlan
from skyband.algorithms.eaa import Instances
from skyband.kernels import across_instances as kernel
from skyband.kernels.across_tables import Tuples

WITNESSES = 16  # one object in so many, where a precision is asked for
_PACE = 256
_UP, _DOWN = 0.1, 0.02
_MEMORY = 0.98  # of what was counted before, at each new estimate
_ENOUGH = 20.0  # ranks of witnesses from which a share is told


class Beliefs(NamedTuple):
    """What is believed of the streams."""

    chance: np.ndarray  # see `correlation.chances`
    often: np.ndarray  # float64 [streams]
    margin: np.ndarray  # float64 [1]
    counted: np.ndarray  # float64 [2]: ranks of witnesses, those missed; older ones fade
    sketched: np.ndarray  # int64 [1]: ordinal after the last tuple that the sketches have seen


class GuessedInstances(Instances):
    """The k dominance set of what is likely."""

    def __init__(
        self, plan: AcrossPlan, margin: float = 0.0, precision: float | None = None, pace: int = kernel.LEAST_SWEEP
    ) -> None:
        super().__init__(plan, pace)
        self.precision = precision
        self.sketches = correlation.no_sketches(plan.streams)
        rows = 1 << plan.streams if plan.streams <= correlation.JOINT else plan.streams
        start = margin if precision is None else 1.0
        self.beliefs = Beliefs(
            np.ones((rows, plan.streams)), np.ones(plan.streams), np.array([start]), np.zeros(2), np.zeros(1, np.int64)
        )
        self._believe()

    def _believe(self) -> None:
        chance, often, margin, _, _ = self.beliefs
        self.guess = kernel.Guess(1, chance, often, margin, 0 if self.precision is None else WITNESSES)

    def _begin(self, ordinal: int) -> None:
        super()._begin(ordinal)
        self.held.marks[kernel.REFRESH] = ordinal + _PACE
        self.beliefs.sketched[0] = ordinal

    def _make_way(self, begin: int, tuples: Tuples) -> None:
        marks = self.held.marks
        if marks[kernel.TAKEN] >= marks[kernel.REFRESH]:
            self._refresh(begin, tuples)
        super()._make_way(begin, tuples)

    def _finish(self, begin: int, tuples: Tuples) -> None:
        taken = int(self.held.marks[kernel.TAKEN])
        self.sketches = correlation.seen(self.sketches, tuples.stream, tuples.hash, begin, int(self.beliefs.sketched[0]), taken)
        self.beliefs.sketched[0] = taken

    def _refresh(self, begin: int, tuples: Tuples) -> None:
        """Estimate the chances anew, and how bold to be."""
        self._finish(begin, tuples)
        marks = self.held.marks
        first, taken = int(marks[kernel.REACH]), int(marks[kernel.TAKEN])
        pace = max(_PACE, (taken - first) // 64)
        self.sketches = correlation.forgotten(self.sketches, first)
        self.beliefs.chance[:] = correlation.chances(self.sketches, first)
        if self.plan.repeats > 1:
            self.beliefs.often[:] = np.minimum(correlation.occurrences(self.sketches, first), self.plan.repeats)
        marks[kernel.REFRESH] = taken + pace
        if self.precision is not None:
            self._adapt(self.precision)

    def _adapt(self, wanted: float) -> None:
        marks, counted, margin = self.held.marks, self.beliefs.counted, self.beliefs.margin
        counted *= _MEMORY
        counted += marks[[kernel.HITS, kernel.MISSES]]
        marks[[kernel.HITS, kernel.MISSES]] = 0
        if counted[0] < _ENOUGH:
            return
        reached = 1.0 - counted[1] / counted[0]
        if reached < wanted:
            margin[0] = min(margin[0] + _UP, 1.0)
        elif reached > wanted + 0.25 * (1.0 - wanted):
            margin[0] = max(margin[0] - _DOWN, 0.0)

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
        found: dict[str, Any] = {
            "margin": float(self.beliefs.margin[0]),
            "sketch_bytes": sum(part.nbytes for part in self.sketches),
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
        return super()._made_for() | {"precision": self.precision}

    def _parts(self) -> dict[str, Any]:
        return super()._parts() | {"sketches": self.sketches, "beliefs": self.beliefs}

    def _set_parts(self, parts: dict[str, Any]) -> None:
        super()._set_parts(parts)
        self.sketches, self.beliefs = parts["sketches"], parts["beliefs"]
        self._believe()

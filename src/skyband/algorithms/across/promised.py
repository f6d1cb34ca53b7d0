"""Early aggregation that guesses: what promises little time among the best k is forgotten.

Everything is as in `eaa`, but instances are forgotten, too, that promise too little: the time they can be expected to rank, by
the time they would have to be held for it (`kernels.across.promise`). What is to be expected comes from the window's
correlations: of objects seen in the same streams, how soon they were seen in which other one, and what values are like there
(`kernels.across.returns`). So an instance is held as long as its object is likely to be seen again, and what is held does not
grow with the window. An object may be missed, or stand lower than it should, but never higher: what is reported it has.

Which promise is too little is one threshold. It is the same for all streams if nothing else is said; given a memory, a number
of instances, it is what the least of so many promise, and there are never more when anyone looks, as a tuple that makes one too
many makes room for itself and a 32nd of the memory. How much it loses is told by witnesses, one object in eight, which are
pruned only where that is certain (far below the threshold fewer are kept, and count for more; of a memory they have a 16th
at most, none where it is hardly larger than k). What those that rank had promised before tells of every threshold what share of
the ranks it would lose (`kernels.across.witness`). Asked for a precision, it finds out by itself how bold it may be: the
largest that loses no more than asked is taken whenever chances are estimated: down at once, up by and by, as what was lost
shows only when it would have ranked. Until enough instances have ranked to tell, it is as careful as nearly every stream needs.

An object is forgotten with its last instance where every tuple counts; where only the first `repeats` do, its counts are kept
while it is in the window, as `eaa` does.

Paper: CIKM09 4, whose aim it shares; promises, the memory and the precision asked for are ours. Guarantee: none for one answer;
the precision reached is estimated and reported. Cost and memory: as `eaa`, with an instance set that hardly grows with the
window where objects come again within some time of their own, or as large as it may be; the sample.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.algorithms.across.contract import AcrossPlan
from skyband.algorithms.across.guessing import Guessing
from skyband.errors import QueryError
from skyband.kernels.across import instances as kernel
from skyband.kernels.across import samples
from skyband.kernels.across.promise import ENOUGH, GRID, SIGHT, Promises
from skyband.kernels.across.returns import foresee, no_outlook
from skyband.kernels.across.witness import DISTINCT, LEAST, LOST, ONE_IN, RANKED, TALLY, Witnesses, boldest, telling
from skyband.kernels.across.worth import Guess

THRESHOLD = 0.01  # of what is held for a hundred times as long as it ranks nothing is lost
_FADING = 0.97  # of what ranks told, after a window's worth of tuples
_RISE = 8.0  # times as large a threshold may become while a window passes: what it forgot does not come back
_LONG = 4.0  # times as many instances that have ranked as tell: older ones are remembered no longer
_ENOUGH = 3.0  # and from which a precision is told
_WITNESSED = 16  # of so many places one is for witnesses
_SPARE = 32  # of so many places one is made free at a time, and filled again before the next are


class Worth(NamedTuple):
    """What promises are made of, and which are too small; see `across_promise.Promises`."""

    threshold: np.ndarray
    tally: np.ndarray  # float64 [TALLY]: what ranks told of thresholds; older ones fade
    ranking: np.ndarray
    raised: np.ndarray
    filled: np.ndarray


class PromisedInstances(Guessing):
    """The instances that promise most."""

    def __init__(
        self, plan: AcrossPlan, precision: float | None = None, memory: int | None = None, pace: int = kernel.LEAST_SWEEP
    ) -> None:
        if memory is not None and memory < plan.k:
            raise QueryError(f"memory={memory} instances cannot hold the best {plan.k} objects; ask for at least {plan.k}")
        super().__init__(plan, pace, (1 + SIGHT) * plan.k)
        self.precision, self.memory = precision, memory
        self.high = np.zeros(plan.streams)
        self.outlook = no_outlook(self.returns)
        bold = 1.0 if precision is None else 1.0 - precision  # until ranks tell
        ranking, raised = np.ones((2, len(self.returns.gaps), GRID))
        self.worth = Worth(np.array([bold * THRESHOLD]), np.zeros(TALLY), ranking, raised, np.array([0.0, -1.0]))
        self._believe()

    def _believe(self) -> None:
        memory, none = self.memory or 0, np.zeros((1, 1))
        threshold, tally, ranking, raised, filled = self.worth
        sets, outlook, room = self.returns.sets, self.outlook, np.zeros((2, len(self.held.ordinal)))
        promises = Promises(1, memory, memory // _SPARE, threshold, sets, outlook, ranking, raised, filled, room)
        witnesses = Witnesses(int(self._witnessed), self._places, tally)
        self.guess = Guess(1, self.high, none, self.high, np.ones(1), witnesses, promises)

    @property
    def _places(self) -> int:
        """Of the memory, those for witnesses: the best k and what is made free have theirs, too."""
        memory = self.memory or 0
        return max(min(memory // _WITNESSED, memory - memory // _SPARE - self.plan.k), 0)

    @property
    def _witnessed(self) -> bool:
        return self.memory is None or self._places > 0

    def _estimate(self, first: int, now: int, passed: float) -> None:
        waiting, unit = samples.waiting(self.sample, self.returns, first, now)
        foresee(self.returns, waiting, max(now - first, 1), unit, self.outlook)
        for counted in (self.returns.gaps, self.returns.streams):
            counted *= np.exp(-passed)
        self.worth.filled[ENOUGH] = -1.0
        if self.precision is None:
            self.worth.tally[:] *= _FADING**passed
        else:
            self._adapt(self.precision, passed)

    def _adapt(self, wanted: float, passed: float) -> None:
        """Take the boldest threshold that loses no more than is allowed, as far as ranks tell."""
        tally, lost = self.worth.tally, (1.0 - wanted) / (1.0 - 1.0 / ONE_IN)  # of witnesses nothing is lost
        if tally[DISTINCT] >= telling(lost):
            self.worth.threshold[0] = min(boldest(tally, lost), max(self.worth.threshold[0], LEAST) * _RISE**passed)
        tally *= min(_FADING**passed, _LONG * telling(lost) / max(tally[DISTINCT], 1.0))

    @property
    def learns_from_windows(self) -> bool:
        return True

    @property
    def estimated_precision(self) -> float | None:
        """The share of the ranks that are right, as far as witnesses tell; None: they cannot yet."""
        tally = self.worth.tally
        if not self._witnessed or tally[DISTINCT] < _ENOUGH:
            return None
        return float(1.0 - (1.0 - 1.0 / ONE_IN) * tally[LOST] / tally[RANKED])

    def figures(self) -> dict[str, Any]:
        found = super().figures() | {"precision_estimated": self.estimated_precision}
        return found if self.memory is not None else found | {"threshold": float(self.worth.threshold[0])}

    def _made_for(self) -> dict[str, Any]:
        return super()._made_for() | {"precision": self.precision, "memory": self.memory}

    def _sketches(self) -> dict[str, Any]:
        return super()._sketches() | {"outlook": self.outlook, "worth": self.worth}

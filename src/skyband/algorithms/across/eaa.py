"""Early aggregation: keep only instances of objects that may still rank.

A tuple makes an instance of its object, *what the object's tuples from this one on come to*; later tuples raise it, and it
ends with the tuple that made it. So its score only grows, and what it can still come to only shrinks. An instance that k
other objects outrank for good, by instances that end later and already score more than it can come to, will never be seen.
What is left is the k dominance set: no smaller state answers every window whatever comes.

Paper: CIKM09 3.2; repeated occurrences (section 5) by sum or maximum. Guarantee: exact, if values are at most `high` (an
infinite one is right too, and keeps every object that was not yet seen in that stream). Cost: O(instances of its object) a
tuple, which `repeats` bounds and a few hot objects without it do not (`sla` is for these: nothing can be pruned then),
O(floors) a window whose answer may have changed (all instances where scores fall with time), and the sweeps, O(1) a tuple.
Memory: the instances of the k dominance set and at most an eighth more; the floors among them; counts and the key of every
object in the window.

Structures: not the paper's three sorted lists with a counter and a list of dominators for each instance, where every tuple
scans its way through one list: linear in the window. Whether k objects dominate an instance of time t depends on one number,
the k-th highest score that distinct objects newer than t have. These levels only rise, and one walk from the newest instance
to the oldest gives them all; so instances lie in the order of time, and are swept by such a walk when an eighth as many
tuples have come: O(1) a tuple, exact at every moment it is asked. Answers come from the *floors*: the k-skyband of (time,
score) over distinct objects, k (1 + ln(n/k)) entries for scores in random order, kept in the order of time and weeded when
they have doubled. Levels and answers need nothing else, as an instance outside it has k objects above it for good.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.algorithms.across.contract import Across, AcrossPlan, grown, more_objects
from skyband.errors import QueryError
from skyband.kernels.across import instances as kernel
from skyband.kernels.across.promise import Promises
from skyband.kernels.across.returns import no_outlook, no_returns
from skyband.kernels.across.tables import LATEST, NEVER, Answers, Tuples, no_ranking
from skyband.kernels.across.witness import TALLY, Witnesses
from skyband.kernels.across.worth import Guess
from skyband.kernels.tables import Windows
from skyband.layout import grows

_FIRST_ROOM = 64
_HELD = ("ordinal", "obj", "current", "best", "values", "older", "least", "doubted")
_FLOORS = ("floor_time", "floor_obj", "floor")
NOBODY = Witnesses(0, 0, np.zeros(TALLY))
_FORGOTTEN = (np.zeros((1, 1)), np.zeros((1, 1)), np.zeros(2), np.zeros((2, 1)))
NOTHING = Promises(0, 0, 0, np.zeros(1), np.zeros(1, np.int64), no_outlook(no_returns(1, True)), *_FORGOTTEN)
CERTAIN = Guess(0, np.zeros(1), np.zeros((1, 1)), np.zeros(1), np.zeros(1), NOBODY, NOTHING)


def check_aggregate(aggregate: int, repeats: int) -> None:
    """QueryError when an instance's score could fall."""
    if aggregate == LATEST and repeats != 1:
        raise QueryError(
            "aggregate='latest' lets a later tuple lower a score, and instances rely on scores that only grow; "
            "use algorithm='sla', or repeats=1, or aggregate 'sum' or 'max'"
        )


class Instances(Across):
    """The k dominance set."""

    growing = grows("held", room=_HELD, floors=_FLOORS)

    def __init__(self, plan: AcrossPlan, pace: int = kernel.LEAST_SWEEP, levels: int = 0) -> None:
        check_aggregate(plan.aggregate, plan.repeats)
        super().__init__(plan)
        self.guess = CERTAIN
        room, k = _FIRST_ROOM, plan.k
        self.held = kernel.Instances(
            ordinal=np.zeros(room, np.int64),
            obj=np.zeros(room, np.int64),
            current=np.zeros(room),
            best=np.zeros(room),
            values=np.zeros((room, plan.streams)),
            older=np.zeros(room, np.int64),
            least=np.zeros(room),
            doubted=np.zeros(room, np.uint8),
            floor_time=np.zeros(3 * room, np.int64),
            floor_obj=np.zeros(3 * room, np.int64),
            floor=np.zeros(3 * room),
            level=np.zeros(max(levels, k)),
            level_obj=np.zeros(max(levels, k), np.int64),
            marks=np.zeros(kernel.MARKS, np.int64),
        )
        self.held.marks[[kernel.STALE, kernel.OLDEST, kernel.REFRESH, kernel.PACE]] = 1, NEVER, NEVER, pace
        self._found = no_ranking(k)

    def _begin(self, ordinal: int) -> None:
        self.held.marks[kernel.TAKEN] = ordinal

    def _more_objects(self) -> None:
        self.objects = more_objects(self.objects)

    def _run(self, begin: int, tuples: Tuples, windows: Windows, start: int, used: int, answers: Answers) -> tuple[int, int]:
        stop, used = kernel.run(
            self.held, self.objects, self.top, self._found, tuples, begin, windows, start, used, answers, self.rule, self.guess
        )
        return int(stop), int(used)

    def _take(self, begin: int, tuples: Tuples, end: int) -> bool:
        return bool(kernel.take(self.held, self.objects, self.top, tuples, begin, end, self.rule, self.guess))

    def _make_way(self, begin: int, tuples: Tuples) -> None:
        room = len(self.held.ordinal)
        if self.held.marks[kernel.STOP] == room:
            self.held = grown(self.held, dict.fromkeys(_HELD, 0), 2 * room, {})
            self.held = grown(self.held, dict.fromkeys(_FLOORS, 0), 6 * room, {})

    def _reach(self) -> int:
        return int(self.held.marks[kernel.REACH])

    def tidy(self) -> None:
        """Hold the k dominance set and no more."""
        kernel.sweep(self.held, self.objects, self.rule, self.guess)
        kernel.weed_floors(self.held, self.objects, self.plan.k, self._reach())

    @property
    def candidates(self) -> int:
        self.tidy()
        return int(self.held.marks[kernel.STOP])

    @property
    def repeated(self) -> int:
        return int(self.held.marks[kernel.REPEATED])

    def _parts(self) -> dict[str, Any]:
        return {"held": self.held, "objects": self.objects, "top": self.top}

    def _set_parts(self, parts: dict[str, Any]) -> None:
        self.held, self.objects, self.top = parts["held"], parts["objects"], parts["top"]

    def instances(self) -> list[tuple[int, int, float, float]]:
        """Those held, oldest first: ordinal, object, score, what it may come to."""
        stop = int(self.held.marks[kernel.STOP])
        columns = (self.held.ordinal, self.held.obj, self.held.current, self.held.best)
        return list(zip(*(column[:stop].tolist() for column in columns), strict=True))

    def check_invariants(self) -> None:
        held, objects, k = self.held, self.objects, self.plan.k
        stop, reach = int(held.marks[kernel.STOP]), self._reach()
        every = self.instances()
        shown = f"from {reach} on, instances (ordinal, object, score, best) {every}"
        ordinals = [ordinal for ordinal, *_ in every]
        assert ordinals == sorted(set(ordinals)), f"out of order: {shown}"
        assert all(score <= best for _, _, score, best in every), f"a score above the best: {shown}"
        live = [entry for entry in every if entry[0] >= reach]
        newest: dict[int, int] = {}
        for place in range(stop):
            obj = int(held.obj[place])
            if held.ordinal[place] >= reach:
                older = int(held.older[place])
                if older >= 0 and held.ordinal[older] < reach:
                    older = -1
                assert older == newest.get(obj, -1), f"instance {place} of {obj} is linked to {older}: {shown}"
                newest[obj] = place
        for obj, place in newest.items():
            assert objects.head[obj] == place, f"the newest instance of {obj} is not {int(objects.head[obj])}: {shown}"
        times = held.floor_time[: held.marks[kernel.FLOORS]].tolist()
        assert times == sorted(set(times)), f"floors out of order: {times}"
        floors = dict(zip(times, held.floor.tolist(), strict=False))
        for ordinal, obj, score, _ in live:  # whoever is in the skyband of floors has one
            above = {other for time, other, higher, _ in live if time > ordinal and higher >= score and other != obj}
            own = any(time > ordinal and other == obj and higher >= score for time, other, higher, _ in live)
            if len(above) < k and not own:
                assert floors.get(ordinal) == score, f"the floor of {ordinal} is {floors.get(ordinal)}: {shown}"

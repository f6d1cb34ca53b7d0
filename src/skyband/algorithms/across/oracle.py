"""Add up every object of the window and sort: the definition itself, for checking anything against it.

Keeps the window's tuples that count and, for each window, goes through them from the oldest on. Plain Python; shares no code
with what it checks. Cost: O(n log n) a window; memory: the tuples of the window, and lives and counts of its objects.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.algorithms.across.contract import Across, AcrossPlan, more_objects
from skyband.kernels.across.tables import Answers, Tuples
from skyband.kernels.tables import Windows
from skyband.layout import grows

_TAKEN, _REACH, _REPEATED = 0, 1, 2  # places in Held.marks
_ADDED, _LARGEST = 0, 1  # codes of AcrossPlan.aggregate; otherwise the latest
_MEAN, _MAX = 1, 2  # codes of AcrossPlan.combine; otherwise a sum


class Held(NamedTuple):
    """The window's tuples that count, oldest first."""

    ordinal: np.ndarray  # int64 [tuples], increasing
    obj: np.ndarray  # int64 [tuples]
    stream: np.ndarray  # int64 [tuples]
    value: np.ndarray  # float64 [tuples]
    marks: np.ndarray  # int64 [3]: ordinal after the last tuple taken, of the first that a coming window holds; tuples too many


class AcrossOracle(Across):
    """Sorts the window's objects."""

    growing = grows("held", tuples=("ordinal", "obj", "stream", "value"))

    def __init__(self, plan: AcrossPlan) -> None:
        super().__init__(plan)
        none = np.zeros(0, np.int64)
        self.held = Held(none, none, none, np.zeros(0), np.zeros(3, np.int64))

    def _begin(self, ordinal: int) -> None:
        self.held.marks[_TAKEN] = ordinal

    def _more_objects(self) -> None:
        self.objects = more_objects(self.objects)

    def _take(self, begin: int, tuples: Tuples, end: int) -> bool:
        marks, start = self.held.marks, int(self.held.marks[_TAKEN])
        fresh = []
        for ordinal in range(start, end):
            row = ordinal - begin
            marks[_REACH] = max(marks[_REACH], tuples.reach[row])
            if tuples.stream[row] >= 0 and self._counts(tuples, row, ordinal):
                fresh.append((ordinal, tuples.obj[row], tuples.stream[row], tuples.value[row]))
        marks[_TAKEN] = max(start, end)
        if fresh:
            joined = zip(self.held[:4], zip(*fresh, strict=True), strict=True)
            self._hold([np.concatenate([old, np.array(new)]) for old, new in joined])
        return True

    def _counts(self, tuples: Tuples, row: int, ordinal: int) -> bool:
        """Is the tuple one of the first so many of its object's life in its stream?"""
        obj, stream, objects = tuples.obj[row], tuples.stream[row], self.objects
        if objects.last[obj] < tuples.reach[row]:  # no window holds it and the one before
            objects.life[obj] = ordinal
            objects.count[obj] = 0
        if objects.count[obj, stream] >= self.plan.repeats:
            self.held.marks[_REPEATED] += 1
            return False
        objects.count[obj, stream] += 1
        objects.last[obj] = ordinal
        return True

    def _run(self, begin: int, tuples: Tuples, windows: Windows, start: int, used: int, answers: Answers) -> tuple[int, int]:
        for at in range(start, len(windows.end)):
            if used + self.plan.k > len(answers.score):
                return at, used
            self._take(begin, tuples, int(windows.end[at]))
            self._expire(int(windows.first[at]))
            best = self._sorted(int(windows.first[at]))[: self.plan.k]
            self.top.size[0] = answers.size[at] = len(best)
            answers.begin[at] = used
            for rank, (score, newest, obj) in enumerate(best):
                life = self.objects.life[obj]
                answers.score[used + rank], answers.obj[used + rank], answers.life[used + rank] = score, obj, life
                self.top.score[rank], self.top.obj[rank], self.top.life[rank], self.top.time[rank] = score, obj, life, newest
            used += len(best)
        return len(windows.end), used

    def _expire(self, first: int) -> None:
        """Let go what no coming window holds."""
        self.held.marks[_REACH] = max(self.held.marks[_REACH], first)
        kept = self.held.ordinal >= self.held.marks[_REACH]
        self._hold([column[kept] for column in self.held[:4]])

    def _hold(self, columns: list[np.ndarray]) -> None:
        ordinal, obj, stream, value = columns
        self.held = Held(ordinal, obj, stream, value, self.held.marks)

    def _sorted(self, first: int) -> list[tuple[float, int, int]]:
        """Score, newest tuple and number of every object of the window that begins at `first`, best first."""
        values: dict[int, list[list[float]]] = {}
        newest: dict[int, int] = {}
        for ordinal, obj, stream, value in zip(*(column.tolist() for column in self.held[:4]), strict=True):
            if ordinal >= first:
                values.setdefault(obj, [[] for _ in range(self.plan.streams)])[stream].append(value)
                newest[obj] = ordinal
        return sorted(((self._score(seen), newest[obj], obj) for obj, seen in values.items()), reverse=True)

    def _score(self, seen: list[list[float]]) -> float:
        each = [self._aggregate(values) if values else 0.0 for values in seen]
        if self.plan.combine == _MAX:
            return max(each)
        return _added(each) / len(each) if self.plan.combine == _MEAN else _added(each)

    def _aggregate(self, values: list[float]) -> float:
        if self.plan.aggregate == _ADDED:
            return _added(values)
        return max(values) if self.plan.aggregate == _LARGEST else values[-1]

    def _make_way(self, begin: int, tuples: Tuples) -> None:
        raise AssertionError("there is always room")

    def _finish(self, begin: int, tuples: Tuples) -> None:
        self._expire(0)

    def _reach(self) -> int:
        return int(self.held.marks[_REACH])

    @property
    def candidates(self) -> int:
        return len(self.held.ordinal)

    @property
    def repeated(self) -> int:
        return int(self.held.marks[_REPEATED])

    def _parts(self) -> dict[str, Any]:
        return {"held": self.held, "objects": self.objects, "top": self.top}

    def _set_parts(self, parts: dict[str, Any]) -> None:
        self.held, self.objects, self.top = parts["held"], parts["objects"], parts["top"]

    def check_invariants(self) -> None:
        ordinal, marks = self.held.ordinal, self.held.marks
        shown = f"tuples {list(zip(*(column.tolist() for column in self.held[:4]), strict=True))}, marks {marks.tolist()}"
        assert (np.diff(ordinal) > 0).all(), f"out of order: {shown}"
        assert ((ordinal >= marks[_REACH]) & (ordinal < marks[_TAKEN])).all(), f"outside the window: {shown}"
        for obj in np.unique(self.held.obj):
            newest = ordinal[self.held.obj == obj].max()
            assert newest == self.objects.last[obj] >= self.objects.life[obj], f"object {obj} is newer or older: {shown}"


def _added(values: list[float]) -> float:
    """From the first on, one by one, as `sum` does not from Python 3.12 on."""
    total = 0.0
    for value in values:
        total += value
    return total

"""What the two approximate algorithms across streams have in common: a sample of the objects, and when it is asked.

A sample tells in which streams objects are seen, and how soon they come again (`samples` and `returns` in
`kernels.across`): at most 2048 objects, whatever the window. What is expected of objects is estimated from it anew when a
64th of the window has come, at least 64 tuples; answers depend on the tuples alone, as sweeps and estimates happen at
ordinals that they determine.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from skyband.algorithms.across.contract import AcrossPlan
from skyband.algorithms.across.eaa import Instances
from skyband.kernels.across import instances as kernel
from skyband.kernels.across import samples
from skyband.kernels.across.returns import no_returns
from skyband.kernels.across.tables import Tuples

_PACE = 64


class Progress(NamedTuple):
    """How far the sample is."""

    sampled: np.ndarray  # int64 [1]: ordinal after the last tuple that it has seen
    first: np.ndarray  # int64 [1]: ordinal of the first tuple of the window that it was asked about last


class Guessing(Instances):
    """Instances of which some that might still rank are forgotten."""

    def __init__(self, plan: AcrossPlan, pace: int, levels: int = 0) -> None:
        super().__init__(plan, pace, levels)
        self.sample = samples.no_sample(plan.streams)
        self.returns = no_returns(plan.streams, plan.repeats == 1)
        self.progress = Progress(np.zeros(1, np.int64), np.zeros(1, np.int64))

    @abstractmethod
    def _believe(self) -> None:
        """Hand what is expected to the kernel, with room for as many instances as there is for instances."""

    @abstractmethod
    def _estimate(self, first: int, now: int, passed: float) -> None:
        """Say anew what is to be expected, in the window from `first` up to `now`; so many windows have passed since."""

    def _begin(self, ordinal: int) -> None:
        super()._begin(ordinal)
        self.held.marks[kernel.REFRESH] = ordinal + _PACE
        self.progress.sampled[0] = self.progress.first[0] = ordinal

    def _make_way(self, begin: int, tuples: Tuples) -> None:
        marks, room = self.held.marks, len(self.held.ordinal)
        if marks[kernel.TAKEN] >= marks[kernel.REFRESH]:
            self._finish(begin, tuples)
            first, now = int(marks[kernel.REACH]), int(marks[kernel.TAKEN])
            samples.widen(self.sample, first, now)
            self._estimate(first, now, (first - int(self.progress.first[0])) / max(now - first, 1))
            self.progress.first[0] = first
            marks[kernel.REFRESH] = now + max(_PACE, (now - first) // 64)
        super()._make_way(begin, tuples)
        if len(self.held.ordinal) > room:
            self._believe()

    def _finish(self, begin: int, tuples: Tuples) -> None:
        start, taken = int(self.progress.sampled[0]), int(self.held.marks[kernel.TAKEN])
        samples.see(self.sample, self.returns, tuples, begin, start, taken)
        self.progress.sampled[0] = taken

    @property
    def candidates(self) -> int:
        return int(self.held.marks[kernel.STOP])

    def alive(self) -> np.ndarray:
        """As the contract says; an object that was forgotten may still have a floor."""
        alive = super().alive()
        alive[self.held.floor_obj[: self.held.marks[kernel.FLOORS]]] = True
        return alive

    def _sketches(self) -> dict[str, Any]:
        """Parts whose size does not depend on the window."""
        return {"sample": self.sample, "returns": self.returns, "progress": self.progress}

    def figures(self) -> dict[str, Any]:
        sketch_bytes = sum(array.nbytes for part in self._sketches().values() for array in part)
        return super().figures() | {"sketch_bytes": sketch_bytes}

    def _parts(self) -> dict[str, Any]:
        return super()._parts() | self._sketches()

    def _set_parts(self, parts: dict[str, Any]) -> None:
        super()._set_parts(parts)
        for name in self._sketches():
            setattr(self, name, parts[name])
        self._believe()

"""What a lane asks of an algorithm that ranks objects across unsynchronized streams.

Tuples come with consecutive ordinals, in the order their windows see them; objects are small whole numbers, given out by the
lane. The clauses, and who checks them (O: against the oracle, C: by the family's contract tests, R: by the lane):

 1. An object's score in a window is what its tuples there give: in each stream the aggregate of its values, 0 where it has
    none, combined over the streams in their order. Objects rank by score, then by their newest tuple there that counts. (O)
 2. Of an object's tuples in one stream only the first `repeats` during its life count; a life goes on while each of its
    tuples that count shares a window with the one before. Others hold a place in the window, and are counted. (O)
 3. Windows come sorted by end and never move backwards. Values are at least 0 and at most `high` of their stream. (R)
 4. The answers do not depend on how tuples and windows are cut into calls. (C)
 5. The arrays handed in are neither kept nor written to. (C)
 6. `snapshot` then `restore`, between any two calls, continues as if nothing had happened. (C)
 7. Memory depends on the window, never on how long the stream has run. (C)
 8. `check_invariants` asserts every structural property and shows the state when one is broken. (C)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skyband.algorithms.contract import read_only
from skyband.kernels.across.tables import ANY_NUMBER, Answers, Objects, Ranking, Rule, Tuples, no_objects, no_ranking
from skyband.kernels.tables import Windows
from skyband.layout import Layout, alike, check, check_built_alike, extents_of, grows, reading, whole_number
from skyband.state import pack, unpack

_ROOM = 1 << 16  # places in one round of Answers
OBJECTS = grows("objects", objects=Objects._fields)
"""Extents of what every structure knows of its objects."""


@dataclass(frozen=True)
class AcrossPlan:
    """What is asked of one structure; the codes are those of `kernels.across.tables`."""

    k: int
    combine: int
    aggregate: int
    repeats: int  # ANY_NUMBER: no bound is known
    high: tuple[float, ...]  # the largest weighted value of each stream; inf: not known

    @property
    def streams(self) -> int:
        return len(self.high)

    def rule(self) -> Rule:
        """The same for kernels."""
        return Rule(np.array(self.high, float), self.combine, self.aggregate, min(self.repeats, ANY_NUMBER), self.k)


class Round(NamedTuple):
    """A round of answers: those of windows[start:stop]."""

    start: int
    stop: int
    answers: Answers


class Across(ABC):
    """One structure for one query. Subclasses keep named tuples of arrays in `_parts`."""

    growing: ClassVar[Mapping[str, str]] = {}  # of the fields of a snapshot those whose extents the plan does not fix

    def __init__(self, plan: AcrossPlan) -> None:
        self.plan = plan
        self.rule = plan.rule()
        self.objects: Objects = no_objects(16, plan.streams)
        self.top: Ranking = no_ranking(plan.k)
        self.next = -1  # ordinal of the next tuple; -1: none has come

    def advance(self, begin: int, tuples: Tuples, windows: Windows, objects: int) -> Iterator[Round]:
        """Take tuples, whose first has the ordinal `begin`, and answer `windows`, in rounds; object numbers are below
        `objects`. The iterator must be exhausted: it does the work."""
        if self.next < 0:
            self._begin(begin)
        tuples = Tuples(*(read_only(column) for column in tuples))
        while len(self.objects.last) < objects:
            self._more_objects()
        asked, last = len(windows.end), begin + len(tuples.obj)
        room = max(min(_ROOM, asked * self.plan.k), self.plan.k)
        answers = Answers(
            np.zeros(asked, np.int64),
            np.zeros(asked, np.int64),
            np.empty(room),
            np.empty(room, np.int64),
            np.empty(room, np.int64),
        )
        start = 0
        while start < asked:
            stop, used = start, 0
            while stop < asked:
                stop, used = self._run(begin, tuples, windows, stop, used, answers)
                if stop < asked and used + self.plan.k > room:
                    break
                if stop < asked:
                    self._make_way(begin, tuples)
            yield Round(start, stop, answers)
            start = stop
        while not self._take(begin, tuples, last):
            self._make_way(begin, tuples)
        self._finish(begin, tuples)
        self.next = last

    @abstractmethod
    def _begin(self, ordinal: int) -> None:
        """The first tuple has this ordinal."""

    @abstractmethod
    def _more_objects(self) -> None:
        """Twice the room for objects."""

    @abstractmethod
    def _run(self, begin: int, tuples: Tuples, windows: Windows, start: int, used: int, answers: Answers) -> tuple[int, int]:
        """Answer windows from `start` on while there is room; the first one not answered, and places of answers used."""

    @abstractmethod
    def _take(self, begin: int, tuples: Tuples, end: int) -> bool:
        """Take tuples up to `end`; False when something is wanting for the next one."""

    @abstractmethod
    def _make_way(self, begin: int, tuples: Tuples) -> None:
        """See to what the kernel was wanting: room, in most cases."""

    def _finish(self, begin: int, tuples: Tuples) -> None:
        """All tuples have been taken."""
        return

    def alive(self) -> np.ndarray:
        """Which object numbers are in use: the others' keys may be forgotten."""
        alive: np.ndarray = self.objects.last >= self._reach()
        alive[self.top.obj[: self.top.size[0]]] = True
        return alive

    @abstractmethod
    def _reach(self) -> int:
        """Ordinal of the first tuple that a coming window may hold."""

    @property
    @abstractmethod
    def candidates(self) -> int:
        """What is held because it may still rank, in the paper's units: tuples or instances."""

    @property
    @abstractmethod
    def repeated(self) -> int:
        """Tuples that counted for nothing, being too many of their object and stream."""

    @property
    def learns_from_windows(self) -> bool:
        """Does what is held depend on the windows answered? Then it is to be asked about all of them."""
        return False

    @property
    def estimated_precision(self) -> float | None:
        """The share of the ranks that are right, as far as can be told; None: all, or it cannot."""
        return None

    @abstractmethod
    def _parts(self) -> dict[str, Any]:
        """Everything remembered: named tuples of arrays, by name."""

    @abstractmethod
    def _set_parts(self, parts: dict[str, Any]) -> None:
        """Take up what `_parts` gave."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(array.nbytes for part in self._parts().values() for array in part)

    def figures(self) -> dict[str, Any]:
        """What else `stats` should say."""
        return {"objects": int(np.count_nonzero(self.alive())), "repeated": self.repeated}

    @abstractmethod
    def check_invariants(self) -> None:
        """AssertionError, with the state in its message, when a structural property does not hold."""

    def snapshot(self) -> bytes:
        """Everything remembered, as bytes of `skyband.state`."""
        arrays = self._arrays()
        header = {"next": self.next, "made_for": self._made_for(), "extents": extents_of(self.layout(), arrays)}
        return pack(type(self).__name__, header, arrays)

    def _arrays(self) -> dict[str, np.ndarray]:
        return {f"{name}.{field}": array for name, part in self._parts().items() for field, array in part._asdict().items()}

    def layout(self) -> Layout:
        """What a snapshot holds."""
        return alike(self._arrays(), {**OBJECTS, **self.growing})

    def _made_for(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self.plan).items()}

    def restore(self, data: bytes) -> None:
        """Take up what `snapshot` of the same class and plan wrote."""
        header, arrays = unpack(type(self).__name__, data)
        with reading(type(self).__name__):
            check_built_alike(header["made_for"], self._made_for())
            check(self.layout(), arrays, header["extents"])
            self.next = whole_number(header, "next")
        parts = {
            name: type(part)(**{field: arrays[f"{name}.{field}"] for field in part._fields})
            for name, part in self._parts().items()
        }
        self._set_parts(parts)


def grown(part: Any, axis_of: dict[str, int], room: int, blank: dict[str, Any]) -> Any:
    """A named tuple of arrays with `room` places along the axis that `axis_of` gives; new places hold `blank`, or 0."""
    fields = {}
    for name, axis in axis_of.items():
        old = getattr(part, name)
        shape = list(old.shape)
        shape[axis] = room
        fields[name] = np.full(shape, blank.get(name, 0), old.dtype)
        fields[name][tuple(slice(length) for length in old.shape)] = old
    return part._replace(**fields)


def more_objects(objects: Objects) -> Objects:
    """Twice the room, those new not alive."""
    axis_of = dict.fromkeys(Objects._fields, 0)
    return grown(objects, axis_of, 2 * len(objects.last), {"life": -1, "last": -1, "head": -1})

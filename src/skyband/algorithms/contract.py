"""What the driver asks of a ranked algorithm.

A ranked algorithm answers the queries of one plan over one stream of scores. It knows nothing of columns,
time or emission: rows are scores with consecutive *ordinals*, windows are intervals of ordinals.

The clauses, and who checks them (O: against the oracle, C: by the contract suite, R: by the driver):

 1. Scores come turned so that larger is better; rows rank by `kernels.order.outranks`. NaN never ranks,
    infinities do. (O)
 2. The rows of consecutive `advance` calls have consecutive ordinals, and end where the last window ends.
    Rows that no later window holds may be left out; everything before the gap is then out of every window. (R)
 3. Windows come sorted by end; those of one query never move backwards. A window's answer is its best
    min(k, rows with a score) rows, best first, or SAME if that equals the query's answer before. A structure that
    `tells_changes` answers the queries marked in `changes` by what differs from the answer before. (O)
 4. The answers do not depend on how rows and windows are cut into calls. (C)
 5. The arrays handed in are neither kept nor written to. (C)
 6. `snapshot` then `restore`, between any two calls, continues as if nothing had happened. (C)
 7. Memory depends on the rows of the widest window, never on how long the stream has run. (C)
 8. `check_invariants` asserts every structural property and shows the state when one is broken. (C)
 9. A structure that `deletes` drops no row of a window that has a score, so that rows can be taken out of every window
    between two calls: from then on answers are those of a stream in which they had no score. (O)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skyband.kernels.tables import NO_RANKS, Ceilings, Panes, Results, Tops, Windows
from skyband.layout import Layout, alike, check, check_built_alike, extents_of, reading, whole_number
from skyband.state import pack, unpack

_ROOM = 1 << 16  # places in one round of Results
UNKNOWN_CEILINGS = Ceilings(0, np.zeros(0))


@dataclass(frozen=True)
class Plan:
    """What is asked of one structure: parallel tuples, one entry a query.

    `sizes` and `slides` are in rows; both are None for time windows, whose rows are not known beforehand. `whole`: every row
    that has a score is asked for, and the ks say nothing.
    """

    ks: tuple[int, ...]
    sizes: tuple[int, ...] | None
    slides: tuple[int, ...] | None
    whole: bool = False

    @property
    def largest_k(self) -> int:
        return max(self.ks)

    @property
    def largest_size(self) -> int | None:
        return None if self.sizes is None else max(self.sizes)


def read_only(scores: np.ndarray) -> np.ndarray:
    """A contiguous view nobody can write through: one compiled kernel serves every caller, and clause 5 holds."""
    view = np.ascontiguousarray(scores).view()
    view.flags.writeable = False
    return view


class Answers(NamedTuple):
    """A round of results: those of windows[start:stop]."""

    start: int
    stop: int
    results: Results


class Ranked(ABC):
    """One structure over one score. Subclasses fill `_state`, a named tuple of arrays, and `_run` over it."""

    shares: ClassVar[bool] = False  # serves plans of several queries
    wants_panes: ClassVar[bool] = False  # needs `panes` in advance()
    tells_changes: ClassVar[bool] = False  # takes `changes` in advance()
    growing: ClassVar[Mapping[str, str]] = {}  # of the fields of a snapshot those whose extents the plan does not fix
    deletes: ClassVar[bool] = False  # has `delete`
    window_bytes: ClassVar[int] = 0  # of memory for every window between a row's first and its last, however few rows there are
    _state: Any  # a NamedTuple of numpy arrays: all there is to remember besides `tops` and `next`
    _ceilings: Ceilings  # of the rows being taken
    _changes: np.ndarray  # bool: which queries' answers are told by what differs

    @classmethod
    def for_plan(cls, plan: Plan, **options: Any) -> Ranked:
        """The structure that suits a plan."""
        return cls(plan, **options)

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.ks = np.array(plan.ks, np.int64)
        self.next = 0  # ordinal of the next row
        queries, k = len(plan.ks), plan.largest_k
        self.tops = Tops(np.zeros((queries, k)), np.zeros((queries, k), np.int64), np.zeros(queries, np.int64))
        self._state = self._empty()

    def advance(
        self,
        begin: int,
        scores: np.ndarray,
        windows: Windows,
        panes: Panes | None = None,
        ceilings: Ceilings = UNKNOWN_CEILINGS,
        changes: np.ndarray | None = None,
    ) -> Iterator[Answers]:
        """Take the rows `scores`, whose first has the ordinal `begin`, and answer `windows`, in rounds.

        `ceilings` is what is known of the scores already; it may save work and changes no answer. `changes` marks the queries
        whose answers are to be told by what differs, if the structure `tells_changes`. The iterator must be exhausted: it
        does the work.
        """
        assert changes is None or self.tells_changes
        scores = read_only(scores)
        last = begin + len(scores)
        asked = len(windows.query)
        most = self._largest_answer(scores) * (1 if changes is None else 2)
        room = max(min(_ROOM, asked * most), most)
        ranks = NO_RANKS if changes is None else np.empty(room, np.int64)
        results = Results(np.zeros(asked, np.int64), np.zeros(asked, np.int64), np.empty(room), np.empty(room, np.int64), ranks)
        start = 0
        self.start(begin, scores, windows, panes, ceilings, np.zeros(len(self.ks), bool) if changes is None else changes)
        while start < asked:
            stop = self._run(begin, scores, windows, panes, start, results)
            yield Answers(start, stop, results)
            start = stop
        self.next = last

    def start(
        self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None, ceilings: Ceilings, changes: np.ndarray
    ) -> None:
        """What comes before the first `_run` of an advance."""
        self._ceilings, self._changes = ceilings, changes
        if begin > self.next:
            self._state = self._empty()
            self.next = begin
        self._prepare(begin, scores, windows, panes)

    def _largest_answer(self, scores: np.ndarray) -> int:
        """How many ranks an answer may have once these rows have come."""
        return self.plan.largest_k

    @abstractmethod
    def _empty(self) -> Any:
        """A state that remembers no row. Called on construction and when every row has left (clause 2)."""

    def _widen_tops(self, ranks: int) -> None:
        """Room for so many ranks, where answers have no fixed length."""
        missing = ranks - self.tops.score.shape[1]
        if missing > 0:
            score, ordinal = (np.pad(column, ((0, 0), (0, missing))) for column in self.tops[:2])
            self.tops = Tops(score, ordinal, self.tops.count)

    def _prepare(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None) -> None:
        """Make room in the state for what is coming, before the first `_run` of an advance."""
        return

    @abstractmethod
    def _run(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None, start: int, results: Results) -> int:
        """Take rows and answer windows from `start` on, until all are answered or `results` is full.

        Returns the number of the first window not answered. Must leave `tops` and the state so that a next
        `_run` (with an emptied `results`) goes on there.
        """

    def delete(self, ordinals: np.ndarray, windows: Windows) -> Results:
        """Rows are in no window any more, if they were in one; the answers of `windows`, the last of each query in whose
        answer such a row stood, without them."""
        raise AssertionError(f"{type(self).__name__} cannot delete rows")

    @property
    @abstractmethod
    def candidates(self) -> int:
        """How many rows the structure holds because they may still rank."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(array.nbytes for array in (*self._state, *self.tops))

    @property
    def missed_at_most(self) -> float:
        """How many rows that ranked were missed so far, at most, on average over streams in random order; 0: exact."""
        return 0.0

    def figures(self) -> dict[str, Any]:
        """What else `stats` should say of it."""
        return {}

    @abstractmethod
    def check_invariants(self) -> None:
        """AssertionError, with the state in its message, when a structural property does not hold."""

    def snapshot(self) -> bytes:
        """Everything remembered, as bytes of `skyband.state`."""
        arrays = self._arrays()
        header = {"next": self.next, "made_for": self._made_for(), "extents": extents_of(self.layout(), arrays)}
        return pack(type(self).__name__, header, arrays)

    def _arrays(self) -> dict[str, np.ndarray]:
        arrays = {f"state.{name}": array for name, array in self._state._asdict().items()}
        return arrays | {f"tops.{name}": array for name, array in self.tops._asdict().items()}

    def layout(self) -> Layout:
        """What a snapshot holds."""
        return alike(self._arrays(), self.growing)

    def _made_for(self) -> dict[str, Any]:
        """What the structure was built for, as JSON holds it; subclasses add their options."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self.plan).items()}

    def restore(self, data: bytes) -> None:
        """Take up what `snapshot` of the same class and plan wrote."""
        header, arrays = unpack(type(self).__name__, data)
        with reading(type(self).__name__):
            check_built_alike(header["made_for"], self._made_for())
            check(self.layout(), arrays, header["extents"])
            self.next = whole_number(header, "next")
        self._state = type(self._state)(**{name: arrays[f"state.{name}"] for name in self._state._fields})
        self.tops = Tops(**{name: arrays[f"tops.{name}"] for name in Tops._fields})

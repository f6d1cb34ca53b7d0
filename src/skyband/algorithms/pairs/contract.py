"""What the driver asks of a structure that keeps the best pairs of rows.

It sees rows with consecutive *ordinals*: of each row the columns that count when it is the older row `a` of a pair, those that
count when it is the newer one `b`, and which of the two it may be. Clauses as in `contract`, and:

 1. A pair's score is turned so that larger is better. Pairs rank by score, then later `a`, then later `b`; a score that is
    NaN never ranks, infinities do.
 2. Rows come once each, windows in the order of their end; a window [first, end) is answered when the rows before its end
    have come, with its best min(k, pairs with a score) pairs, or SAME if that equals the query's answer before.
 3. `reach[w]` bounds from below the first row of every window from w on, those of later calls included.
 4. Queries come and go between calls. One that is added sees pairs of later rows only: its windows never begin before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from skyband.kernels.expression import BLOCK, Program
from skyband.kernels.pairs import coarse as pairs_coarse
from skyband.kernels.pairs import distance as pairs_distance
from skyband.kernels.pairs import score as pairs_score
from skyband.kernels.pairs.run import PairResults
from skyband.kernels.pairs.score import Scorer
from skyband.kernels.pairs.state import MUST_READ, NOT_WATCHED, Answers
from skyband.kernels.tables import Windows
from skyband.layout import Layout, check, check_built_alike, extents_of, reading, whole_number
from skyband.state import pack, unpack
from skyband.window import pairs_among

METRICS = {"l1": pairs_distance.L1, "l2": pairs_distance.L2, "product": pairs_distance.PRODUCT}
WEIGHTED = {"l1": pairs_distance.WEIGHTED_L1, "l2": pairs_distance.WEIGHTED_L2, "max": pairs_distance.LARGEST}
Plain: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]
_ROOM = 1 << 16  # places in one round of results
_NO_STEPS = Program(*(np.zeros(0, np.int64) for _ in range(5)))


@dataclass(frozen=True)
class Searched:
    """A distance over the first columns of both rows that tells a score, but for rounding: it is `factor` times the distance
    or, with `root`, its root; negative where `negated`."""

    kind: str  # "l1": Σ wⱼ |aⱼ - bⱼ|, "l2": Σ wⱼ (aⱼ - bⱼ)², "max": the largest wⱼ |aⱼ - bⱼ|, "product": Π |aⱼ - bⱼ|
    weights: tuple[float, ...]  # positive; 1 of a product
    factor: float = 1.0
    root: bool = False
    negated: bool = False

    @property
    def code(self) -> int:
        """What kernels search for."""
        plain = self.kind != "max" and set(self.weights) == {1.0}
        return METRICS[self.kind] if plain else WEIGHTED[self.kind]


@dataclass(frozen=True, eq=False)
class Scoring:
    """How pairs are scored: a distance, or register code in two parts, the first of which needs the newer row alone.

    Places of the code: older columns, the result, then registers: newer columns, constants, others.
    """

    order: str
    older: int  # columns of the older row
    newer: int
    metric: str = ""  # of METRICS; empty: register code
    before: Program = field(default=_NO_STEPS)
    program: Program = field(default=_NO_STEPS)
    constants: tuple[float, ...] = ()
    registers: int = 0  # besides those of newer columns and constants
    plain: Plain | None = None  # the same in NumPy: older columns [columns, rows], the newer row's [columns], to scores
    searched: Searched | None = None  # what tells the scores of code
    still: tuple[int, ...] = ()  # rows of memory, the result being the first, that depend on the newer row alone

    @property
    def search(self) -> Searched | None:
        """What pairs can be searched by; None: nothing but their scores."""
        return Searched(self.metric, (1.0,) * self.older) if self.metric else self.searched

    @property
    def nearest(self) -> bool:
        """Are the smallest of these distances the best?"""
        return (self.order == "asc") != (self.search is not None and self.search.negated)

    @property
    def unwritten(self) -> bool:
        """Is it compared where it is computed, over as many rows as one likes?"""
        return self.search is not None and len(self.search.weights) <= pairs_distance.UNWRITTEN

    @property
    def coarse(self) -> int:
        """Columns by which rows are searched in float32 first."""
        search = self.search
        if search is None or search.kind == "product" or not (self.nearest and self.unwritten):
            return 0
        weighed = (pairs_coarse.LEAST_WEIGHT <= weight <= pairs_coarse.MOST_WEIGHT for weight in search.weights)
        return len(search.weights) if all(weighed) else 0

    @property
    def _reads_registers_whole(self) -> bool:
        """Does a step read more than the first number of a register that keeps its value?"""
        still = {self.older + row for row in self.still}
        for operation, _, *places in zip(*self.program, strict=True):
            read = places[::2] if operation in pairs_score.READ_ONCE else places  # a step of two operands repeats the first
            if still.intersection(read):
                return True
        return False

    def scorer(self) -> Scorer:
        """What kernels score with."""
        registers = 0 if self.metric else self.newer + len(self.constants) + self.registers
        memory = np.zeros((1 + registers, BLOCK))
        for register, constant in zip(memory[1 + self.newer :], self.constants, strict=False):
            register.fill(constant)
        marks = np.zeros(pairs_score.MARKS, np.int64)
        marks[pairs_score.KIND] = METRICS.get(self.metric, pairs_distance.EXPRESSION)
        search, shape = self.search, np.zeros(pairs_distance.SHAPE)
        marks[pairs_score.SEARCH] = pairs_distance.EXPRESSION if search is None else search.code
        marks[pairs_score.WIDTH] = BLOCK if self._reads_registers_whole else 1
        sign = np.array([1.0 if self.order == "desc" else -1.0, -1.0 if self.nearest else 1.0])
        if search is not None:
            shape[: pairs_distance.MARGIN] = search.factor, search.root, bool(self.metric)
        weights = np.array(() if search is None else search.weights)
        still = np.zeros(len(memory), np.uint8)
        still[list(self.still)] = 1
        coarse = np.stack([np.zeros(self.coarse), weights[: self.coarse]]).astype(np.float32)
        rooms = (np.zeros(self.newer), coarse, memory[0], memory, np.zeros((len(memory), 2)), np.zeros(BLOCK, np.int64), still)
        return Scorer(marks, sign, weights, shape, *rooms, np.stack(self.before, axis=1), np.stack(self.program, axis=1))


class Answered(NamedTuple):
    """A round of results: those of windows[start:stop]."""

    start: int
    stop: int
    results: PairResults


def answers_layout() -> dict[str, str]:
    """The fields `answers.*` of a snapshot, as `layout.fields` takes them."""
    texts = dict.fromkeys(Answers._fields, "int64 queries")
    texts |= {"score": "float64 queries width", "a": "int64 queries width", "b": "int64 queries width"}
    return {f"answers.{name}": text for name, text in texts.items()}


def empty_answers(queries: int = 0, k: int = 1) -> Answers:
    """Answers without a pair."""
    score, a, b = np.zeros((queries, k)), np.zeros((queries, k), np.int64), np.zeros((queries, k), np.int64)
    count, ks, most, bounded, first, mark, changed = (np.zeros(queries, np.int64) for _ in range(7))
    oldest = np.full(queries, np.iinfo(np.int64).max)
    return Answers(score, a, b, count, ks, most, bounded, first, mark, oldest, changed)


def with_query(answers: Answers, k: int, most: int, watched: bool, first: int, mark: int) -> Answers:
    """The same and one more query, which has no pair yet and holds `most` of them in the end."""
    room = max(answers.score.shape[1], most)
    grown = empty_answers(len(answers.k) + 1, room)
    for old, new in zip(answers, grown, strict=True):
        if old.ndim == 2:
            new[:-1, : old.shape[1]] = old
        else:
            new[:-1] = old
    grown.k[-1], grown.most[-1], grown.first[-1], grown.mark[-1] = k, most, first, mark if watched else NOT_WATCHED
    return grown


def with_room(answers: Answers, k: np.ndarray, most: np.ndarray) -> Answers:
    """The same with room for more pairs of each query; what it holds is read anew."""
    grown = empty_answers(len(k), max(answers.score.shape[1], int(most.max(initial=1))))
    for old, new in zip(answers, grown, strict=True):
        if old.ndim == 2:
            new[:, : old.shape[1]] = old
        else:
            new[:] = old
    grown.changed[grown.most != most] = MUST_READ
    grown.k[:], grown.most[:] = k, most
    return grown


def without_query(answers: Answers, at: int) -> Answers:
    """The same without one."""
    return Answers(*(np.delete(column, at, axis=0) for column in answers))


class PairStructure(ABC):
    """One structure over one pair score."""

    shares: ClassVar[bool] = True  # serves queries with windows of different sizes

    def __init__(self, scoring: Scoring) -> None:
        self.scoring = scoring
        self.next = 0  # ordinal of the next row

    @property
    @abstractmethod
    def answers(self) -> Answers:
        """What each query's pairs are now; of a watched one perhaps ahead of its last window."""

    def begin_at(self, ordinal: int) -> None:
        """Let the first row have this ordinal."""
        self.next = ordinal

    @abstractmethod
    def add(self, k: int, *, watched: bool, first: int) -> None:
        """Take up a query whose windows begin at `first` or later. `watched`: its answer is kept up from row to row, else
        it is read when a window is to be answered."""

    def expect(self, asked: list[int], rows: int) -> None:
        """No more than `rows` rows are held at any time of the next `advance`. A query may ask for more pairs than there are:
        it has been given room for some, and gets more now if these rows have more pairs. Until then none was left out, so that
        what is held is complete for a larger k."""
        k = np.array([pairs_among(rows, each) for each in asked], np.int64)
        if (k > self.answers.k).any():
            self._widen(np.maximum(k, self.answers.k))

    @abstractmethod
    def _widen(self, k: np.ndarray) -> None:
        """Let queries have answers of so many pairs."""

    @abstractmethod
    def remove(self, at: int) -> None:
        """Stop answering a query; later ones move up."""

    @abstractmethod
    def advance(
        self, older: np.ndarray, newer: np.ndarray, sides: np.ndarray, windows: Windows, reach: np.ndarray
    ) -> Iterator[Answered]:
        """Take rows (float64 [columns, rows], uint8 [rows]) and answer windows, in rounds. The iterator must be exhausted."""

    def _results(self, asked: int) -> PairResults:
        k = max(int(self.answers.k.max(initial=0)), 1)
        room = max(min(_ROOM, asked * k), k)
        count = np.zeros(asked, np.int64), np.zeros(asked, np.int64)
        return PairResults(*count, np.empty(room), np.empty(room, np.int64), np.empty(room, np.int64))

    @property
    @abstractmethod
    def candidates(self) -> int:
        """Pairs held because they may still rank."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of all arrays held."""

    def figures(self) -> dict[str, Any]:
        """What else `stats` should say of it."""
        return {}

    @abstractmethod
    def check_invariants(self) -> None:
        """AssertionError, with the state in its message, when a structural property does not hold."""

    @abstractmethod
    def layout(self) -> Layout:
        """What a snapshot holds."""

    def _packed(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
        """A snapshot of what `layout` says."""
        own = {"next": self.next, "made_for": self._made_for(), "extents": extents_of(self.layout(), arrays)}
        return pack(type(self).__name__, header | own, arrays)

    def _made_for(self) -> list[int | str]:
        """What the structure was built for, as JSON holds it."""
        return [self.scoring.older, self.scoring.newer, self.scoring.order]

    def _unpacked(self, data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Header and arrays of a snapshot of one built alike; nothing is taken up yet."""
        header, arrays = unpack(type(self).__name__, data)
        with reading(type(self).__name__):
            check_built_alike(header["made_for"], self._made_for())
            check(self._layout_of(arrays), arrays, header["extents"])
            whole_number(header, "next")
        return header, arrays

    def _layout_of(self, arrays: dict[str, np.ndarray]) -> Layout:
        """That of a snapshot with these arrays, where some may be absent."""
        return self.layout()

    @abstractmethod
    def snapshot(self) -> bytes:
        """Everything remembered, as bytes of `skyband.state`."""

    @abstractmethod
    def restore(self, data: bytes) -> None:
        """Take up what `snapshot` of one built alike wrote, its queries included."""

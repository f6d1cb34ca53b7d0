"""One of many queries over the same attributes, and the scores of all of them as kernels read them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from skyband.algorithms.spatial.coded import codes_of, joined, taken_apart, without
from skyband.kernels.spatial import questions
from skyband.kernels.tables import CHANGES
from skyband.scores.expression import Call, Number, Tree
from skyband.scores.formulas import Distance, Linear

UNKNOWN = Call("log", (Number(-1.0),))
POINTS_A_CELL = 100  # that a grid over the window is made for: fewer cells are sooner searched, up to a point
MOST_CELLS = 1 << 16
FEW_CELLS = 64  # that cost next to nothing, however small the window


@dataclass(frozen=True)
class Asked:
    """One query of a crowd. `heard`: every window counts, not only the last of a batch. An expression as its score needs a
    core that is filled from the window; so does a region, outside of which rows have no score."""

    score: Linear | Distance | Call
    order: str
    k: int
    size: int
    slide: int
    core: str
    filter: str | None = None
    heard: bool = True
    options: dict[str, Any] = field(default_factory=dict)  # gamma, sigma, rule, buffer, spare
    region: tuple[tuple[str, float, float], ...] = ()  # attribute, low, high; ends included
    condition: Tree | None = None  # rows that do not meet it have no score
    above: float = math.nan  # a threshold query's bound, below which rows are asked for where the order is "asc"
    emission: int = CHANGES  # what its windows give; of a threshold query

    @property
    def wanted(self) -> int:
        """Rows that are looked for when its core is filled from the window."""
        return self.k + math.ceil(self.k * self.options.get("spare", 0.0))

    @property
    def code(self) -> Call | None:
        """What has to be computed as an expression, if anything."""
        if self.condition is not None:
            tree = self.score if isinstance(self.score, Call) else self.score.tree
            return Call("where", (self.condition, tree, UNKNOWN))
        return self.score if isinstance(self.score, Call) else None

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns its score reads, in the order they are added up."""
        if isinstance(self.score, Call):
            return self.score.columns()
        pairs = self.score.weights if isinstance(self.score, Linear) else self.score.point
        return tuple(name for name, _ in pairs)


def questions_of(asked: list[Asked], attributes: tuple[str, ...]) -> questions.Questions:
    """The queries' scores over the attributes, as the kernels read them."""
    place = {name: number for number, name in enumerate(attributes)}
    shape = (len(asked), len(attributes))
    kind, sign, used = np.zeros(len(asked), np.int64), np.ones(len(asked)), np.zeros(len(asked), np.int64)
    point, weight, order = np.zeros(shape), np.ones(shape), np.zeros(shape, np.int64)
    low, high, bound = np.full(shape, -np.inf), np.full(shape, np.inf), np.zeros(shape, np.int64)
    bounds = np.zeros(len(asked), np.int64)
    for number, one in enumerate(asked):
        sign[number] = -1.0 if one.order == "asc" else 1.0
        used[number] = len(one.attributes)
        order[number, : used[number]] = [place[name] for name in one.attributes]
        for at, (name, least, most) in enumerate(one.region):
            bound[number, at] = place[name]
            low[number, place[name]], high[number, place[name]] = least, most
        bounds[number] = len(one.region)
        kind[number] = _kind(one)
        if isinstance(one.score, Call):
            continue
        if isinstance(one.score, Linear):
            given, weights = one.score.weights, one.score.weights
        else:
            given, weights = one.score.point, one.score.weights or ()
        for name, value in given:
            point[number, place[name]] = value
        for name, value in weights:
            weight[number, place[name]] = value
    trees = [one.code for one in asked]
    outer: list[Call | None] = [None] * len(trees)
    inner: list[Call | None] = [None] * (len(trees) * len(attributes))
    for number, tree in enumerate(trees):
        if tree is not None and asked[number].condition is None and (apart := taken_apart(tree)) is not None:
            outer[number], parts = apart
            for name, part in parts.items():
                inner[number * len(attributes) + place[name]] = part
    codes = codes_of(trees, place), codes_of(outer, place, blocks=False), codes_of(inner, place, blocks=False)
    return questions.Questions(kind, sign, point, weight, order, used, low, high, bound, bounds, *codes)


def _alone(one: Asked) -> Asked:
    """The same score without a condition."""
    return one if one.condition is None else replace(one, condition=None)


def _kind(one: Asked) -> int:
    if one.code is not None:
        return questions.CODE
    if isinstance(one.score, Distance):
        return questions.DISTANCE_L2 if one.score.metric == "l2" else questions.DISTANCE_L1
    return questions.LINEAR


_COLUMNS = questions.Questions._fields[:-3]  # one row a query
_CODES = questions.Questions._fields[-3:]  # which lie one behind the other


def _joined(some: questions.Questions, more: questions.Questions) -> questions.Questions:
    """Those of both."""
    columns = [np.concatenate([getattr(some, name), getattr(more, name)]) for name in _COLUMNS]
    codes = [joined(getattr(some, name), getattr(more, name)) for name in _CODES]
    return questions.Questions._make([*columns, *codes])


def _without(known: questions.Questions, number: int) -> questions.Questions:
    """The same without one of them."""
    columns, attributes = [np.delete(getattr(known, name), number, axis=0) for name in _COLUMNS], known.order.shape[1]
    codes = [without(known.codes, number, number + 1), without(known.outer, number, number + 1)]
    codes.append(without(known.inner, number * attributes, (number + 1) * attributes))
    return questions.Questions._make([*columns, *codes])


class Asking:
    """What is derived from the queries asked, once for each set of them. `known`: their scores, where they are known, and
    `alone`, what these are without a condition."""

    def __init__(
        self,
        asked: list[Asked],
        attributes: tuple[str, ...],
        known: questions.Questions | None = None,
        alone: questions.Questions | None = None,
    ) -> None:
        self._asked, self._attributes = asked, attributes
        self.questions = questions_of(asked, attributes) if known is None else known
        self._alone = alone

    @property
    def scores(self) -> questions.Questions:
        """The scores whatever a row has to meet besides."""
        if self._alone is None:
            conditions = any(one.condition is not None for one in self._asked)
            self._alone = questions_of(list(map(_alone, self._asked)), self._attributes) if conditions else self.questions
        return self._alone

    @cached_property
    def windows(self) -> set[tuple[int, int]]:
        """Their sizes and slides."""
        return {(one.size, one.slide) for one in self._asked}

    @cached_property
    def has_expressions(self) -> bool:
        """Is a score one?"""
        return any(isinstance(one.score, Call) for one in self._asked)

    @cached_property
    def is_plain(self) -> bool:
        """Can scores be computed many at a time?"""
        return not (self.questions.kind == questions.CODE).any() and not self.questions.bounds.any()

    @cached_property
    def is_exact(self) -> bool:
        """Does no query miss a row?"""
        return all(one.core != "probabilistic" for one in self._asked)

    @cached_property
    def largest_number(self) -> float:
        """Of all points and weights."""
        numbers = (self.questions.point, self.questions.weight)
        return float(max(np.abs(table).max(initial=0.0) for table in numbers))

    def with_last(self, asked: list[Asked], attributes: tuple[str, ...]) -> Asking:
        """The same of queries of which the last has just come."""
        known, alone = _joined(self.questions, questions_of(asked[-1:], attributes)), self._alone
        if alone is self.questions and asked[-1].condition is None:
            alone = known
        elif alone is not None:
            alone = _joined(alone, questions_of([_alone(asked[-1])], attributes))
        return Asking(asked, attributes, known, alone)

    def without(self, number: int, asked: list[Asked], attributes: tuple[str, ...]) -> Asking:
        """The same of queries from which one has just gone."""
        known, alone = _without(self.questions, number), self._alone
        if alone is not None:
            alone = known if alone is self.questions else _without(alone, number)
        return Asking(asked, attributes, known, alone)

    def oldest_needed(self, seen: int) -> int:
        """Of so many rows, the first in the last window of any query: an answer stands until the next one ends."""
        return max(min((seen // slide * slide - size for size, slide in self.windows), default=seen), 0)


def resolution(size: int, dimensions: int) -> int:
    """Cells along each of the attributes for windows of so many rows: at least two, unless that makes more cells than rows.
    In so many dimensions there is one, and a search looks at the whole window."""
    cells = min(max(size / POINTS_A_CELL, 1), MOST_CELLS)
    along = max(round(cells ** (1 / dimensions)), 2)
    while along > 1 and along**dimensions > min(max(size, FEW_CELLS), MOST_CELLS):
        along -= 1
    return along

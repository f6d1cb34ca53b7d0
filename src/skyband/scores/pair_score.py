"""What pairs of rows are ranked by: expressions over `a.` (the older row) and `b.` (the newer one), and distances.

    pair_distance(["x", "y"])            √Σ (a.x - b.x)², the columns' differences combined
    "abs(a.bid - b.bid) / a.volume"      anything over columns of either side; it need not be symmetric

A `where` restricts pairs. What it asks of one side alone decides which rows are taken up at all, as `a` or as `b`; what it
asks of both becomes part of the score: it is asked of those pairs alone whose score would matter. Texts can be compared, as in
`a.venue != b.venue`: equal ones stand for equal numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from skyband.errors import QueryError
from skyband.scores.evaluation import Lowering, evaluate
from skyband.scores.expression import Call, Column, Number, Tree, without_texts
from skyband.scores.formulas import Bounds, region
from skyband.scores.pair_search import NEWER, OLDER, Search, apart, search_of, squared
from skyband.scores.parser import parse

if TYPE_CHECKING:
    from skyband.algorithms.pairs.contract import Plain, Scoring
    from skyband.kernels.expression import Program

METRICS = ("l1", "l2", "product")

_UNKNOWN = Call("/", (Number(0.0), Number(0.0)))  # no score


@dataclass(frozen=True)
class PairDistance:
    """How far two rows are apart: Σ |aᵢ-bᵢ| for "l1", √Σ (aᵢ-bᵢ)² for "l2", Π |aᵢ-bᵢ| for "product". Made by
    `pair_distance`."""

    columns: tuple[str, ...]
    metric: str = "l2"

    def __post_init__(self) -> None:
        given: Any = self.columns
        if isinstance(given, str | Mapping | set | frozenset) or not isinstance(given, Iterable):
            raise QueryError(
                f"pair_distance takes a list of column names, got {given!r}; write ['x', 'y'], or, with weights, an expression "
                "such as '2 * abs(a.x - b.x) + abs(a.y - b.y)'"
            )
        object.__setattr__(self, "columns", tuple(given))
        if not self.columns or any(not isinstance(name, str) or not name for name in self.columns):
            raise QueryError(f"pair_distance needs the names of one or more columns, got {self.columns!r}; write ['x', 'y']")
        if twice := [name for name in self.columns if self.columns.count(name) > 1]:
            raise QueryError(f"pair_distance names the column {twice[0]!r} twice; name each column once")
        if self.metric not in METRICS:
            raise QueryError(f"pair_distance metric {self.metric!r} is not known; use one of {', '.join(map(repr, METRICS))}")

    @property
    def tree(self) -> Tree:
        apart = [Call("-", (Column(OLDER + name), Column(NEWER + name))) for name in self.columns]
        terms: list[Tree] = [Call("*", (one, one)) if self.metric == "l2" else Call("abs", (one,)) for one in apart]
        whole = terms[0] if len(terms) == 1 else Call("*" if self.metric == "product" else "+", tuple(terms))
        return Call("sqrt", (whole,)) if self.metric == "l2" else whole


PairScore: TypeAlias = str | PairDistance
PairWhere: TypeAlias = str | Bounds


def pair_distance(columns: Iterable[str], metric: str = "l2") -> PairDistance:
    """The distance between the two rows of a pair, for `TopKPairs`: the closest by default, with `order="desc"` the furthest.

    >>> str(pair_distance(["x", "y"], metric="l1").tree)
    'abs(a.x - b.x) + abs(a.y - b.y)'
    """
    return PairDistance(columns, metric)  # type: ignore[arg-type]


def score_tree(score: PairScore) -> Tree:
    """The expression tree of a pair score; QueryError for what is none."""
    if isinstance(score, PairDistance):
        return score.tree
    if not isinstance(score, str):
        raise QueryError(f"a pair's score is an expression over a. and b. or pair_distance(), got {score!r}")
    return _sided(parse(score))


def where_tree(where: PairWhere | None) -> Tree | None:
    """The expression tree of a condition on pairs. A region's column without a side is meant on both."""
    if where is None:
        return None
    if isinstance(where, str):
        return _sided(parse(where))
    if not isinstance(where, Mapping):
        raise QueryError(f"where is a boolean expression over a. and b., or a region {{'a.x': (low, high)}}; got {where!r}")
    bounds: dict[str, tuple[float | None, float | None]] = {}
    for name, ends in where.items():
        sided = isinstance(name, str) and "." in name  # of a side there is not, `_sided` says so
        bounds |= {name: ends} if sided else {f"{side}{name}": ends for side in (OLDER, NEWER)}
    return _sided(region(bounds).tree, plainly=True)


def _sided(tree: Tree, *, plainly: bool = False) -> Tree:
    """The tree, if all its columns have a side. `plainly`: names are written without backticks, as in regions."""
    for name in tree.columns():
        if not name.startswith((OLDER, NEWER)):
            side, dot, rest = name.partition(".")
            said = f"names the side {side!r}" if dot else f"names the column {name!r} without a side"
            older, newer = _on_both_sides(rest or name, plainly)
            called = f"; if a column is called {name!r}, {' or '.join(_on_both_sides(name, plainly))}" if dot else ""
            raise QueryError(f"it {said}; write {older} for the older row of the pair or {newer} for the newer one{called}")
    return tree


def _on_both_sides(name: str, plainly: bool) -> list[str]:
    return [side + name if plainly else str(Column(side + name)) for side in (OLDER, NEWER)]


@dataclass(frozen=True)
class PairDoor:
    """How rows become pairs with scores: equal for queries that can share a structure."""

    score: Tree
    where: Tree | None
    order: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The stream's columns that are needed, each once."""
        return tuple(dict.fromkeys(bare(name) for tree in self._trees for name in tree.columns()))

    @property
    def _trees(self) -> list[Tree]:
        return [self.score] if self.where is None else [self.score, self.where]

    @property
    def reads(self) -> tuple[str, ...]:
        """The same, but a comparison with a text is a column of its own, here and below."""
        return tuple(dict.fromkeys(bare(name) for tree in self._trees for name in without_texts(tree).columns()))

    @property
    def scored(self) -> tuple[str, ...]:
        """Those that the score reads."""
        return tuple(dict.fromkeys(bare(name) for name in without_texts(self.score).columns()))

    def side_condition(self, side: str) -> Tree | None:
        """What `where` asks of rows of one side alone, over the stream's columns."""
        parts = [_of_row(without_texts(part)) for part in _conjuncts(self.where) if _sides(part) == {side}]
        return _all(parts)

    @property
    def pair_condition(self) -> Tree | None:
        """What it asks of both."""
        return _all([without_texts(part) for part in _conjuncts(self.where) if len(_sides(part)) != 1])

    @property
    def metric(self) -> tuple[str, tuple[str, ...]] | None:
        """The distance that the score is, and its columns, where nothing else is asked of pairs; None: it is no distance."""
        return None if self.pair_condition is not None else _metric(self.score)

    @property
    def search(self) -> Search | None:
        """The distance that tells the score, whatever is asked of pairs besides; None: pairs are to be scored one by one."""
        return search_of(without_texts(self.score))

    def scoring(self) -> tuple[Scoring, tuple[str, ...], tuple[str, ...]]:
        """What a structure scores with; the columns of older rows and of newer rows it is to be given, those that pairs are
        searched by first."""
        from skyband.algorithms.pairs.contract import Scoring, Searched

        if (distance := self.metric) is not None:
            metric, columns = distance
            plain = _in_numpy(self.score, [OLDER + name for name in columns], [NEWER + name for name in columns])
            return Scoring(self.order, len(columns), len(columns), metric, plain=plain), columns, columns
        condition, tree = self.pair_condition, without_texts(self.score)
        if condition is not None:
            tree = Call("where", (condition, tree, _UNKNOWN))
        if not isinstance(tree, Call):
            tree = Call("neg", (Call("neg", (tree,)),))  # register code has at least one step
        search = self.search
        by: Searched | None = None
        first = () if search is None else search.columns
        if search is not None:
            by = Searched(search.kind, search.weights, search.factor, search.root, search.negated)
        lowering = _PairLowering(tree, first)
        older, newer = lowering.columns, lowering.fixed
        halves, plain = lowering.halves(), _in_numpy(tree, older, newer)
        scoring = Scoring(self.order, len(older), len(newer), "", *halves, plain, by, lowering.still_rows)
        return scoring, tuple(map(bare, older)), tuple(map(bare, newer))


def _in_numpy(tree: Tree, older: Iterable[str], newer: Iterable[str]) -> Plain:
    """The tree as a function of older rows and one newer row."""

    def plain(older_rows: np.ndarray, newer_row: np.ndarray) -> np.ndarray:
        rows = older_rows.shape[1]
        columns = dict(zip(older, older_rows, strict=True))
        columns |= {name: np.full(rows, value) for name, value in zip(newer, newer_row, strict=True)}
        return evaluate(tree, columns, rows)

    return plain


def bare(name: str) -> str:
    """A column's name without its side."""
    return name[len(OLDER) :]


def _sides(tree: Tree) -> set[str]:
    return {name[: len(OLDER)] for name in tree.columns()}


def _conjuncts(tree: Tree | None) -> list[Tree]:
    """Conditions that must all be true for the whole to be."""
    if tree is None:
        return []
    if isinstance(tree, Call) and tree.op == "and":
        return [part for argument in tree.args for part in _conjuncts(argument)]
    return [tree]


def _all(parts: list[Tree]) -> Tree | None:
    return Call("and", tuple(parts)) if len(parts) > 1 else parts[0] if parts else None


def _of_row(tree: Tree) -> Tree:
    """The same over columns without their side."""
    if isinstance(tree, Column):
        return Column(bare(tree.name))
    return Call(tree.op, tuple(_of_row(argument) for argument in tree.args)) if isinstance(tree, Call) else tree


def _metric(tree: Tree) -> tuple[str, tuple[str, ...]] | None:
    """Which distance a tree computes, to the last bit."""
    if isinstance(tree, Call) and tree.op == "sqrt":
        squares = _terms(tree.args[0], "+")
        found = [squared(term) for term in squares]
        return None if None in found else ("l2", tuple(name for name in found if name is not None))
    for metric, op in (("l1", "+"), ("product", "*")):
        found = [apart(term) for term in _terms(tree, op)]
        if None not in found:
            return metric, tuple(name for name in found if name is not None)
    return None


def _terms(tree: Tree, op: str) -> tuple[Tree, ...]:
    return tree.args if isinstance(tree, Call) and tree.op == op else (tree,)


_DIFFERENCE = "difference"  # an operation that only pairs have: abs(x - y) in one step
_EITHER_WAY = ("+", "*", _DIFFERENCE)  # operands may change places


class _PairLowering(Lowering):
    """Register code whose columns are those of the older rows; those of the newer one are constants that change from row to
    row, and steps that need nothing else are written apart, to be run once a row. Of each side the columns named in `first`,
    without a side, come first."""

    def __init__(self, tree: Call, first: tuple[str, ...] = ()) -> None:
        from skyband.kernels.pairs.score import DIFFERENCE

        self.names = tuple(dict.fromkeys([side + name for side in (OLDER, NEWER) for name in first] + list(tree.columns())))
        self.fixed = tuple(name for name in self.names if name.startswith(NEWER))
        super().__init__(tree)
        self.opcodes = {**self.opcodes, _DIFFERENCE: DIFFERENCE}
        moving, fixed = len(self.columns), len(self.fixed)
        self.place_of |= {Column(name): moving + 1 + at for at, name in enumerate(self.fixed)}
        self.place_of |= {number: moving + 1 + fixed + at for number, at in self.constants.items()}
        self.first_register = moving + 1 + fixed + len(self.constants)
        self.still = set(range(moving + 1, self.first_register))  # places that keep their value for all older rows
        self.before: list[tuple[int, int, int, int, int]] = []

    def _moving(self, tree: Call) -> tuple[str, ...]:
        return tuple(name for name in self.names if name.startswith(OLDER))

    def halves(self) -> tuple[Program, Program, tuple[float, ...], int]:
        """Both parts, the constants, and how many registers there are besides."""
        whole = self.finished()
        return self._program(self.before), whole.program, whole.constants, whole.registers

    @property
    def still_rows(self) -> tuple[int, ...]:
        """Which registers keep their value, the result being number 0."""
        return tuple(sorted(place - len(self.columns) for place in self.still))

    def _step(self, op: str, part: Call | None, *places: int) -> int:
        if part is self.tree or not self.still.issuperset(places):
            return super()._step(op, part, *places)
        target = self.first_register + self.registers
        self.registers += 1
        self.still.add(target)
        self.before.append(self._code(op, target, places))
        return target

    def _place(self, tree: Tree) -> int:
        inner = tree.args[0] if isinstance(tree, Call) and tree.op == "abs" and tree not in self.place_of else None
        if not isinstance(inner, Call) or inner.op != "-" or len(inner.args) != 2:
            return super()._place(tree)
        if inner in self.place_of or self.uses[inner] > 1:  # its value is wanted itself
            return super()._place(tree)
        assert isinstance(tree, Call)
        place = self._step(_DIFFERENCE, tree, *[self._place(argument) for argument in inner.args])
        self.uses[inner] = 0
        self._read(*inner.args)
        self.place_of[tree] = place
        return place

    def _code(self, op: str, target: int, places: tuple[int, ...]) -> tuple[int, int, int, int, int]:
        if op in _EITHER_WAY and places[0] in self.still:
            places = places[::-1]  # a second operand that keeps its value is read once
        return super()._code(op, target, places)

    def _release(self, place: int) -> None:
        if place not in self.still:
            super()._release(place)

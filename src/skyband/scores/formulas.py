"""Scores and regions given by their parameters instead of a text: linear, product, distance, region.

Each keeps its parameters, because some algorithms can use them (a linear score is monotone, a distance has a
nearest cell), and has the expression tree that defines its value to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TypeAlias

from skyband.errors import QueryError
from skyband.scores.expression import Call, Column, Number, Tree

Pairs: TypeAlias = tuple[tuple[str, float], ...]
Bounds: TypeAlias = Mapping[str, tuple[float | None, float | None]]

METRICS = ("l1", "l2")


@dataclass(frozen=True)
class Linear:
    """Σ wᵢ·xᵢ, added up in the order given. Made by `linear`."""

    weights: Pairs

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _pairs(self.weights, "linear", "weight", "{'x1': 0.3, 'x2': 0.7}"))

    @property
    def tree(self) -> Tree:
        return _sum([_times(weight, Column(name)) for name, weight in self.weights])


@dataclass(frozen=True)
class Product:
    """Π (aᵢ + xᵢ), multiplied in the order given. Made by `product`."""

    offsets: Pairs

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", _pairs(self.offsets, "product", "offset", "{'x1': 0.5, 'x2': 0.5}"))

    @property
    def tree(self) -> Tree:
        factors = [Call("+", (Number(offset), Column(name))) for name, offset in self.offsets]
        return factors[0] if len(factors) == 1 else Call("*", tuple(factors))


@dataclass(frozen=True)
class Distance:
    """How far a row lies from a point: √Σ wᵢ·(xᵢ-pᵢ)² for "l2", Σ wᵢ·|xᵢ-pᵢ| for "l1". Made by `distance`."""

    point: Pairs
    metric: str = "l2"
    weights: Pairs | None = None  # in the order of `point`; None: all are 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", _pairs(self.point, "distance", "coordinate", "{'x': 3.0, 'y': 4.0}"))
        if self.metric not in METRICS:
            raise QueryError(f"distance metric {self.metric!r} is not known; use one of {', '.join(map(repr, METRICS))}")
        if self.weights is not None:
            given = dict(_pairs(self.weights, "distance", "weight", "{'x': 1.0, 'y': 0.5}"))
            names = [name for name, _ in self.point]
            if foreign := [name for name in given if name not in names]:
                raise QueryError(f"distance weights name {foreign[0]!r}, no coordinate of the point; weigh {names} only")
            if missing := [name for name in names if name not in given]:
                raise QueryError(f"distance weights lack {missing[0]!r}; give a weight for each of {names}, 1.0 for no change")
            if negative := [(name, weight) for name, weight in given.items() if weight < 0]:
                name, weight = negative[0]
                raise QueryError(f"distance weight of {name!r} is {weight}; a distance needs weights of at least 0")
            object.__setattr__(self, "weights", tuple((name, given[name]) for name in names))

    @property
    def tree(self) -> Tree:
        weights = dict(self.weights or ())
        terms: list[Tree] = []
        for name, coordinate in self.point:
            apart = Call("-", (Column(name), Number(coordinate)))
            term = Call("abs", (apart,)) if self.metric == "l1" else Call("*", (apart, apart))
            terms.append(_times(weights.get(name, 1.0), term))
        return _sum(terms) if self.metric == "l1" else Call("sqrt", (_sum(terms),))


@dataclass(frozen=True)
class Region:
    """The rows whose columns lie between bounds, ends included. Made by `region`.

    An open end is None. A row with a null in a column of the region lies outside of it.
    """

    bounds: tuple[tuple[str, float | None, float | None], ...]

    def __post_init__(self) -> None:
        if not self.bounds:
            raise QueryError("a region needs at least one column, got none; write {'x': (low, high)}, or leave it out")
        checked = [(_name(name, "a region"), _end(name, low), _end(name, high)) for name, low, high in self.bounds]
        for name, low, high in checked:
            if low is not None and high is not None and low > high:
                raise QueryError(f"the region of {name!r} is empty: low {low} is above high {high}; write (low, high)")
        object.__setattr__(self, "bounds", tuple(checked))

    @property
    def tree(self) -> Tree:
        conditions: list[Tree] = []
        for name, low, high in self.bounds:
            if low is not None:
                conditions.append(Call(">=", (Column(name), Number(low))))
            if high is not None:
                conditions.append(Call("<=", (Column(name), Number(high))))
            if low is None and high is None:  # any value, but a value
                conditions.append(Call("==", (Column(name), Column(name))))
        return conditions[0] if len(conditions) == 1 else Call("and", tuple(conditions))


def linear(weights: Mapping[str, float]) -> Linear:
    """The weighted sum of columns: `linear({"x1": 0.3, "x2": 0.7})`.

    >>> str(linear({"x1": 0.3, "x2": 0.7}).tree)
    '0.3 * x1 + 0.7 * x2'
    """
    return Linear(_items(weights, "linear", "{'x1': 0.3, 'x2': 0.7}"))


def product(offsets: Mapping[str, float]) -> Product:
    """The product of columns, each moved by an offset: `product({"x1": 0.5, "x2": 0.5})`.

    >>> str(product({"x1": 0.5, "x2": 1}).tree)
    '(0.5 + x1) * (1 + x2)'
    """
    return Product(_items(offsets, "product", "{'x1': 0.5, 'x2': 0.5}"))


def distance(point: Mapping[str, float], metric: str = "l2", weights: Mapping[str, float] | None = None) -> Distance:
    """The distance of a row from a point; rank it with `order="asc"` for the nearest.

    >>> str(distance({"x": 3, "y": 4}, metric="l1").tree)
    'abs(x - 3) + abs(y - 4)'
    """
    weighed = None if weights is None else _items(weights, "distance", "{'x': 1.0, 'y': 0.5}")
    return Distance(_items(point, "distance", "{'x': 3.0, 'y': 4.0}"), metric, weighed)


def region(bounds: Bounds) -> Region:
    """The constraint region `{"x": (low, high), "y": (None, 5)}`: ends included, None is open."""
    ends: list[tuple[str, float | None, float | None]] = []
    for name, pair in bounds.items():
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise QueryError(f"the region of {name!r} must be a pair (low, high), got {pair!r}; None leaves an end open")
        ends.append((name, pair[0], pair[1]))
    return Region(tuple(ends))


def _sum(terms: list[Tree]) -> Tree:
    return terms[0] if len(terms) == 1 else Call("+", tuple(terms))


def _times(weight: float, term: Tree) -> Tree:
    """1·x is x to the last bit, and the same score as the column alone."""
    return term if weight == 1.0 else Call("*", (Number(weight), term))


def _items(given: Mapping[str, float], what: str, example: str) -> Pairs:
    if not isinstance(given, Mapping):
        raise QueryError(f"{what} takes a mapping from column names to numbers, got {given!r}; write {what}({example})")
    return tuple(given.items())


def _pairs(given: Pairs, what: str, role: str, example: str) -> Pairs:
    """Names and finite numbers, each name once."""
    if not given:
        raise QueryError(f"{what} needs a {role} for at least one column, got none; write {what}({example})")
    pairs = tuple((_name(name, what), _number(value, f"{what} {role} of {name!r}")) for name, value in given)
    names = [name for name, _ in pairs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise QueryError(f"{what} names the column {twice[0]!r} twice; give each column one {role}")
    for name, value in pairs:
        if not math.isfinite(value):
            raise QueryError(f"{what} {role} of {name!r} is {value}; give a finite number")
    return pairs


def _name(name: object, what: str) -> str:
    if not isinstance(name, str) or not name:
        raise QueryError(f"{what} needs column names as text, got {name!r}")
    return name


def _number(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise QueryError(f"{what} must be a number, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise QueryError(f"{what} is {value}, beyond what a float64 holds; give a smaller number") from None


def _end(name: str, value: object) -> float | None:
    """An end of a region: None, finite or infinite."""
    if value is None:
        return None
    number = _number(value, f"the bound of {name!r}")
    if math.isnan(number):
        raise QueryError(f"the bound of {name!r} is NaN, which nothing can be compared with; use None for an open end")
    return number

"""What rows are ranked by, and which rows are let in.

A score is a column's name, an arithmetic expression, one of `linear`, `product` and `distance`, or a callable
from columns to an array. All but the callable have an expression tree, and scores with the same tree are the
same score. A `where` is a boolean expression or a region; a row passes when its value is true, neither false
nor unknown.

    expression.py   trees and their canonical text          parser.py    text to tree
    formulas.py     linear, product, distance, region       binding.py   a tree or callable meets the columns
    evaluation.py   the arithmetic, in NumPy and in Numba; how unknown values are treated
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from skyband.errors import QueryError, StateError
from skyband.scores.binding import BoundScore, ScoreFunction, bind_callable, bind_tree
from skyband.scores.expression import Call, Column, Number, Tree
from skyband.scores.formulas import Bounds, Distance, Linear, Product, Region, distance, linear, product, region
from skyband.scores.parser import parse

__all__ = [
    "BoundScore",
    "Distance",
    "Linear",
    "Product",
    "Region",
    "Score",
    "Where",
    "as_tree",
    "bind",
    "bind_where",
    "check_score",
    "check_where",
    "distance",
    "linear",
    "product",
    "region",
    "score_from_json",
    "score_key",
    "score_to_json",
    "where_key",
    "where_tree",
]

Score: TypeAlias = str | Linear | Product | Distance | ScoreFunction
Where: TypeAlias = str | Region | Bounds


def as_tree(score: Score | Tree) -> Tree | None:
    """The expression tree of a score; None for a callable. QueryError for what is no score."""
    if isinstance(score, Number | Column | Call):
        return score
    if isinstance(score, str):
        return parse(score)
    if isinstance(score, Linear | Product | Distance):
        return score.tree
    if callable(score):
        return None
    raise QueryError(f"a score is a column's name, an expression, linear(), product(), distance() or a callable; got {score!r}")


def where_tree(where: Where) -> Tree:
    """The expression tree of a `where`."""
    if isinstance(where, str):
        return parse(where)
    if isinstance(where, Region):
        return where.tree
    if isinstance(where, Mapping):
        return region(where).tree
    raise QueryError(f"where is a region {{'x': (low, high)}} or a boolean expression; got {where!r}")


def check_score(score: Score, query: str) -> None:
    """QueryError, naming the query, when `score` cannot be one."""
    try:
        as_tree(score)
    except QueryError as error:
        raise QueryError(f"query {query!r}: score: {error}") from None


def check_where(where: Where | None, query: str) -> None:
    """QueryError, naming the query, when `where` cannot be one."""
    try:
        where_key(where)
    except QueryError as error:
        raise QueryError(f"query {query!r}: where: {error}") from None


def score_key(score: Score | Tree) -> Hashable:
    """Equal for two scores that are the same: by tree, or for callables by identity."""
    tree = as_tree(score)
    return ("callable", id(score)) if tree is None else tree


def where_key(where: Where | None) -> Tree | None:
    """Equal for two conditions that are the same; None where there is none."""
    return None if where is None else where_tree(where)


def bind(score: Score | Tree, schema: pa.Schema) -> BoundScore:
    """Check that `schema` has every column the score needs, as numbers; SchemaError otherwise."""
    tree = as_tree(score)
    if tree is not None:
        return bind_tree(tree, schema, "score")
    assert callable(score)
    return bind_callable(score, schema)


def bind_where(where: Where, schema: pa.Schema) -> BoundScore:
    """The same for a condition. A row passes when its value is neither 0 nor NaN: see `BoundScore.passes`."""
    return bind_tree(where_tree(where), schema, "condition")


def score_to_json(score: Score) -> dict[str, Any]:
    """A score as JSON-able data. A callable leaves only its name: `score_from_json` must be given it back."""
    if isinstance(score, str):
        return {"expression": score}
    if isinstance(score, Linear):
        return {"linear": dict(score.weights)}
    if isinstance(score, Product):
        return {"product": dict(score.offsets)}
    if isinstance(score, Distance):
        weights = None if score.weights is None else dict(score.weights)
        return {"distance": {"point": dict(score.point), "metric": score.metric, "weights": weights}}
    return {"callable": getattr(score, "__qualname__", type(score).__qualname__)}


_READERS: dict[str, Callable[[Any], Score]] = {
    "expression": str,
    "linear": linear,
    "product": product,
    "distance": lambda given: distance(**given),
}


def score_from_json(document: Mapping[str, Any], query: str, callables: Mapping[str, ScoreFunction]) -> Score:
    """What `score_to_json` wrote. A callable is taken from `callables`, by the name of its query."""
    if len(document) == 1:
        ((kind, content),) = document.items()
        if kind in _READERS:
            return _READERS[kind](content)
        if kind == "callable":
            if not callable(callables.get(query)):
                raise StateError(
                    f"the score of query {query!r} was the callable {content!r}, which no file can hold; "
                    f"give it back with callables={{{query!r}: {content}}}"
                )
            return callables[query]
    kinds = ", ".join(map(repr, [*_READERS, "callable"]))
    raise StateError(f"query {query!r}: {dict(document)!r} is not a saved score; it must have one key of {kinds}")

"""What a crowd reads of a query: which attributes, how they rank and which rows count; and with whom a query may share one."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

from skyband.algorithms import settled
from skyband.lanes.base import Gathers
from skyband.query import Query, RankedQuery, Threshold, TopK
from skyband.scores.expression import Call, Column, Tree, without_texts
from skyband.scores.formulas import Distance, Linear
from skyband.scores.score import as_tree, where_key, where_tree

MOST_ATTRIBUTES = 6  # more make a search open too many cells


def crowd_key(query: RankedQuery, algorithm: str, window: tuple[bool, int, int]) -> Hashable | None:
    """Queries of one key share a lane; None for one that needs another. `window`: is it one of time, its size and slide.

    A crowd takes cores and filters over count windows whose score is `linear` or `distance`. With a grid, they must agree
    in all that the walk through it relies on; one that is filled from the window takes any window, any expression, a `where`.
    So does one of thresholds.
    """
    if algorithm == "auto":
        return None
    named, options = settled(algorithm)
    if "core" not in named.options:
        return None
    if named.family == "spatial":
        return ("crowd", isinstance(query, Threshold), frozenset(attributes_of(query)), algorithm, window)
    if window[0] or query.emit == "snapshots" or query.where is not None or not isinstance(query.score, Linear | Distance):
        return None
    if "grid" not in options:
        return ("crowd", frozenset(attributes_of(query)))
    return ("crowd", frozenset(attributes_of(query)), algorithm, window)


def auto_key(query: Query, window: tuple[bool, int, int]) -> Gathers | None:
    """What crowds, filled from the window or of thresholds, a query may be in that leaves the algorithm to us; None for
    others."""
    if not isinstance(query, TopK | Threshold) or query.algorithm != "auto" or query.error > 0:
        return None
    if isinstance(query.score, str) and (tree := as_tree(query.score)) is not None and not tree.columns():
        return None  # a score alike for all rows: no cell can be left out
    attributes = () if callable(query.score) else attributes_of(query)
    if not 1 <= len(attributes) <= MOST_ATTRIBUTES:
        return None
    return Gathers(frozenset(attributes), window, isinstance(query, Threshold))


def attributes_of(query: RankedQuery) -> tuple[str, ...]:
    """The columns that a query's score and `where` read, in the order of their names; comparisons with texts among them."""
    if isinstance(query.score, Linear) and query.where is None:  # thousands are asked more than once: without their trees
        return tuple(sorted(name for name, _ in query.score.weights))
    trees = [as_tree(query.score), where_key(query.where)]
    return tuple(sorted({name for tree in trees if tree is not None for name in without_texts(tree).columns()}))


def ranking_of(query: RankedQuery) -> Linear | Distance | Call:
    """A score as a crowd takes it: a formula it knows, or an expression."""
    if isinstance(query.score, Linear | Distance):
        return query.score
    tree = as_tree(query.score)
    if isinstance(tree, Column):
        return Linear(((tree.name, 1.0),))
    assert isinstance(tree, Call)
    plain = without_texts(tree)
    return plain if isinstance(plain, Call) else Linear(((plain.columns()[0], 1.0),))


def region_of(query: RankedQuery) -> tuple[tuple[str, float, float], ...]:
    """The region that a query's rows lie in: column, low, high; ends included."""
    if not isinstance(query.where, Mapping):
        return ()
    return tuple(
        (name, -math.inf if low is None else low, math.inf if high is None else high)
        for name, (low, high) in query.where.items()
    )


def condition_of(query: RankedQuery) -> Tree | None:
    """The condition that its `where` is."""
    return without_texts(where_tree(query.where)) if isinstance(query.where, str) else None

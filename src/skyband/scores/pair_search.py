"""Which distance tells a pair's score: what lets pairs be searched for instead of scored one by one.

    2 * abs(a.x - b.x) + abs(a.y - b.y)         Σ wⱼ |aⱼ - bⱼ|, in any order and with any parentheses
    max(abs(a.x - b.x), abs(a.y - b.y) / 3)     the largest wⱼ |aⱼ - bⱼ|
    (a.x - b.x) ** 2 + 2 * (a.y - b.y) ** 2     Σ wⱼ (aⱼ - bⱼ)², or its root
    abs(a.x - b.x) * abs(a.y - b.y)             Π |aⱼ - bⱼ|

and each of these negated, or once multiplied with or divided by a constant. Two ways of computing the same sum differ by
rounding, so that a distance found here says which scores may matter and the score is computed as it is written. Forms in which
more than the last bits could differ are left alone: constants within a product, constants of constants, sums within weights,
where one way overflows and the other does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from skyband.scores.expression import Call, Column, Number, Tree

OLDER, NEWER = "a.", "b."
_MOST = 32  # columns for which the margin for rounding holds
_LEAST_WEIGHT, _LARGEST_WEIGHT = 1e-300, 1e300


@dataclass(frozen=True)
class Search:
    """A distance: see `algorithms.pairs.contract.Searched`."""

    kind: str
    columns: tuple[str, ...]
    weights: tuple[float, ...]
    factor: float = 1.0
    root: bool = False
    negated: bool = False


def search_of(tree: Tree) -> Search | None:
    """The distance that tells the scores of a tree, or None."""
    factor, root, negated = 1.0, False, False
    while isinstance(tree, Call) and not root:
        if tree.op == "neg":
            negated, tree = not negated, tree.args[0]
        elif tree.op == "sqrt":
            root, tree = True, tree.args[0]
        elif factor == 1.0 and (scaled := _scaled(tree)) is not None:
            factor, tree = scaled
            negated, factor = negated != (factor < 0.0), abs(factor)
        else:
            break
    found = _sum(tree, squared, "l2", "+") or (None if root else _of_differences(tree))
    if found is None or not _LEAST_WEIGHT <= factor <= _LARGEST_WEIGHT:
        return None
    kind, columns, weights = found
    if len(set(columns)) < len(columns) or len(columns) > _MOST:
        return None
    if any(not _LEAST_WEIGHT <= weight <= _LARGEST_WEIGHT for weight in weights):
        return None
    return Search(kind, columns, weights, factor, root, negated)


_Found = tuple[str, tuple[str, ...], tuple[float, ...]]


def _of_differences(tree: Tree) -> _Found | None:
    found = _sum(tree, apart, "l1", "+") or _sum(tree, apart, "max", "max")
    if found is None and isinstance(tree, Call) and tree.op == "*":
        columns = [apart(part) for part in tree.args]
        if None not in columns:
            return "product", tuple(name for name in columns if name is not None), (1.0,) * len(columns)
    return found


def _sum(tree: Tree, leaf: Callable[[Tree], str | None], kind: str, op: str) -> _Found | None:
    """A sum (or maximum) of leaves, each of one column and with a weight."""
    columns, weights = [], []
    for part in _parts(tree, op):
        weight, rest = (1.0, part) if leaf(part) is not None else _scaled(part) or (0.0, part)
        name = leaf(rest)
        if name is None or not weight > 0.0:
            return None
        columns.append(name)
        weights.append(weight)
    return kind, tuple(columns), tuple(weights)


def _parts(tree: Tree, op: str) -> list[Tree]:
    if isinstance(tree, Call) and tree.op == op:
        return [part for argument in tree.args for part in _parts(argument, op)]
    return [tree]


def _scaled(tree: Tree) -> tuple[float, Tree] | None:
    """c and t of c * t, t * c or t / (1 / c)."""
    if not isinstance(tree, Call) or len(tree.args) != 2 or tree.op not in ("*", "/"):
        return None
    first, second = (_number(part) for part in tree.args)
    if tree.op == "*" and first is not None and second is None:
        return first, tree.args[1]
    if first is None and second is not None and second != 0.0:
        return second if tree.op == "*" else 1.0 / second, tree.args[0]
    return None


def _number(tree: Tree) -> float | None:
    if isinstance(tree, Call) and tree.op == "neg" and isinstance(tree.args[0], Number):
        return -tree.args[0].value
    return tree.value if isinstance(tree, Number) else None


def apart(tree: Tree) -> str | None:
    """The column of |a.x - b.x|."""
    return difference(tree.args[0]) if isinstance(tree, Call) and tree.op == "abs" else None


def squared(tree: Tree) -> str | None:
    """The column of (a.x - b.x)²."""
    if not isinstance(tree, Call) or len(tree.args) != 2 or tree.op not in ("*", "**"):
        return None
    first, second = tree.args
    same = first == second if tree.op == "*" else second == Number(2.0)
    return difference(first) if same else None


def difference(tree: Tree) -> str | None:
    """The column of a.x - b.x or b.x - a.x."""
    if not isinstance(tree, Call) or tree.op != "-" or len(tree.args) != 2:
        return None
    first, second = tree.args
    if not isinstance(first, Column) or not isinstance(second, Column):
        return None
    bare = first.name[len(OLDER) :]
    same, both = bare == second.name[len(OLDER) :], {first.name[:2], second.name[:2]} == {OLDER, NEWER}
    return bare if same and both else None

"""Expressions run for one row are those of the definition, and run for a box bound every row in it."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skyband.algorithms.spatial.asked import codes_of
from skyband.kernels.spatial.code import HIGH, LOW, UNKNOWN, bounds_of, value_of
from skyband.scores.evaluation import evaluate
from skyband.scores.expression import Call, Column, Number, Tree
from skyband.scores.parser import parse

INF = math.inf
PLACE = {"x": 0, "y": 1}
numbers = st.sampled_from([0.0, -0.0, 1.0, 2.0, -1.0, 0.5, -3.5, 1e-300, 7.25, -1e12, 1e200])
ends = st.one_of(numbers, st.floats(allow_nan=False), st.sampled_from([INF, -INF]))
ONE = ["neg", "not", "abs", "sqrt", "exp", "log", "log1p", "sin", "cos", "floor", "ceil"]
TWO = ["+", "-", "*", "/", "%", "**", "<", "<=", ">", ">=", "==", "!=", "and", "or", "min", "max"]


@numba.njit(error_model="numpy")
def values(codes, rows, out):  # type: ignore[no-untyped-def]
    for i in range(rows.shape[0]):
        out[i] = value_of(codes, 0, rows[i])


trees: st.SearchStrategy[Tree] = st.recursive(
    st.one_of(st.sampled_from([Column("x"), Column("y")]), st.builds(Number, numbers)),
    lambda parts: st.one_of(
        st.builds(lambda op, a: Call(op, (a,)), st.sampled_from(ONE), parts),
        st.builds(lambda op, a, b: Call(op, (a, b)), st.sampled_from(TWO), parts, parts),
        st.builds(lambda a: Call("**", (a, Number(2.0))), parts),
        st.builds(lambda a, b, c: Call("where", (a, b, c)), parts, parts, parts),
    ),
    max_leaves=8,
)
calls = trees.filter(lambda tree: isinstance(tree, Call))


def within(low: float, high: float, share: float) -> float:
    """A number between two, both included."""
    if share in (0.0, 1.0) or low == high:
        return high if share == 1.0 else low
    low, high = max(low, -1.7e308), min(high, 1.7e308)
    return min(max(low * (1 - share) + high * share, low), high)


@given(calls, ends, ends, ends, ends, st.lists(st.tuples(*[st.sampled_from([0.0, 0.1, 0.5, 0.77, 1.0])] * 2), min_size=1))
@example(parse("x % y"), -3.0, 5.0, 1.0, INF, [(0.0, 1.0), (0.5, 0.5)])
@example(parse("sin(x) + cos(y)"), 0.0, 3.0, -1.0, 7.0, [(0.5, 0.1), (1.0, 1.0)])
@example(parse("x ** 3 - x ** -1"), -2.0, 2.0, 0.0, 0.0, [(0.5, 0.0), (0.1, 0.0)])
@example(parse("where(x > 1 and y < 2, x * y, log(-1))"), 0.0, 1.0, 0.0, 1.0, [(1.0, 1.0)])
def test_values_are_those_of_the_definition_and_bounds_hold(
    tree: Call, a: float, b: float, c: float, d: float, shares: list[tuple[float, float]]
) -> None:
    low, high = np.array([min(a, b), min(c, d)]), np.array([max(a, b), max(c, d)])
    rows = np.array([[within(low[axis], high[axis], share[axis]) for axis in range(2)] for share in shares])
    codes = codes_of([tree], PLACE)
    found = np.empty(len(rows))
    values(codes, rows, found)
    right = evaluate(tree, {"x": rows[:, 0], "y": rows[:, 1]}, len(rows))
    assert np.array_equal(found, right, equal_nan=True)
    out = np.empty(3)
    bounds_of(codes, 0, low, high, out)
    for value in right:
        if math.isnan(value):
            assert out[UNKNOWN] == 1.0
        else:
            assert out[LOW] <= value <= out[HIGH]


@pytest.mark.parametrize(
    ("text", "low", "high", "bounds"),
    [
        ("x * y", (1.0, 2.0), (3.0, 5.0), (2.0, 15.0)),
        ("(x - 2) ** 2", (1.0, 0.0), (5.0, 0.0), (0.0, 9.0)),
        ("abs(x) - y", (-3.0, 0.0), (1.0, 2.0), (-2.0, 3.0)),
        ("x / y", (1.0, 2.0), (8.0, 4.0), (0.25, 4.0)),
        ("where(x > 1, y, 7)", (2.0, 0.0), (3.0, 1.0), (0.0, 1.0)),
        ("min(x, y) + max(x, y)", (0.0, 5.0), (1.0, 6.0), (5.0, 7.0)),
        ("x * (-1 % 7)", (1.0, 0.0), (3.0, 0.0), (6.0, 18.0)),
        ("sqrt(x)", (-4.0, 0.0), (9.0, 0.0), (0.0, 3.0)),
        ("x > 2 or y < 0", (3.0, 1.0), (4.0, 2.0), (1.0, 1.0)),
        ("floor(sin(x)) + ceil(cos(y))", (4.0, -1.0), (5.0, 1.0), (0.0, 0.0)),
    ],
)
def test_bounds_are_tight_where_an_expression_rises_or_falls(
    text: str, low: tuple[float, float], high: tuple[float, float], bounds: tuple[float, float]
) -> None:
    tree = parse(text)
    assert isinstance(tree, Call)
    out = np.empty(3)
    bounds_of(codes_of([tree], PLACE), 0, np.array(low), np.array(high), out)
    assert (out[LOW], out[HIGH]) == bounds and out[UNKNOWN] == (1.0 if text.startswith("sqrt") else 0.0)


def test_the_codes_of_several_queries_lie_side_by_side() -> None:
    trees = [parse("x + 1"), None, parse("y * y - 2")]
    codes = codes_of([tree if isinstance(tree, Call) else None for tree in trees], PLACE)
    assert codes.begin.tolist() == [0, 1, 1, 3] and codes.constant.tolist() == [1.0, 2.0]
    out = np.empty(3)
    bounds_of(codes, 2, np.array([0.0, 3.0]), np.array([0.0, 4.0]), out)
    assert (out[LOW], out[HIGH]) == (7.0, 14.0)

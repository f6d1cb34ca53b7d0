"""Expressions that fall apart are bounded rightly, in blocks they are what they are row by row, in crowds they are exact."""

from __future__ import annotations

import itertools
import math

import numba
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skyband.algorithms.spatial.asked import Asked, questions_of
from skyband.algorithms.spatial.coded import codes_of, taken_apart
from skyband.algorithms.spatial.crowd import Crowd
from skyband.algorithms.spatial.extent import Extent
from skyband.kernels.spatial import grid as grid_kernel
from skyband.kernels.spatial.apart import NEARLY, WHOLE, best_apart, falls_away, no_apart, take_apart
from skyband.kernels.spatial.code import value_of
from skyband.kernels.spatial.code_blocks import values_of, values_of_word
from skyband.kernels.spatial.grid import FIRST, STOP
from skyband.scores.evaluation import evaluate
from skyband.scores.expression import Call
from skyband.scores.parser import parse
from test_code import calls, numbers

NAMES = ("x", "y")
APART = [
    "0.3 * x ** 2 + 0.7 * y ** 2",
    "0.3 * x ** 2 - 2 * y",
    "(x - 2) ** 2 + 3 * (y - 1) ** 2",
    "(0.5 + x) * (0.25 + y)",
    "sqrt(abs(x)) + log1p(abs(y))",
    "max(x, 3) - min(2, y ** 3)",
    "x * y + x",
    "x / (1 + abs(y))",
    "(abs(x) + 1) ** 1.5 * exp(y)",
    "exp(x / 9 + y)",
    "1 + x + x ** 2 + y",
    "floor(x) + ceil(y / 3)",
    "where(x > 1, x, 0.5) + y",
    "-x - abs(y)",
]


def call(text: str) -> Call:
    tree = parse(text)
    assert isinstance(tree, Call)
    return tree


@pytest.mark.parametrize(
    ("text", "outer", "parts"),
    [
        ("2 * x ** 2 + 3 * y ** 2", "x + y", {"x": "2 * x ** 2", "y": "3 * y ** 2"}),
        ("1 + x + x ** 2 + y", "x + y", {"x": "1 + x + x ** 2"}),
        ("y + x + x ** 2", "y + x + x ** 2", {}),
        ("x * y + x", "x * y + x", {}),
        ("sqrt(log(x) * (y - 2))", "sqrt(x * y)", {"x": "log(x)", "y": "y - 2"}),
        ("x ** 2 + 2", "x ** 2 + 2", {}),
    ],
)
def test_what_reads_one_attribute_is_one_function(text: str, outer: str, parts: dict[str, str]) -> None:
    found = taken_apart(call(text))
    assert found is not None and str(found[0]) == outer and {name: str(part) for name, part in found[1].items()} == parts


@numba.njit(error_model="numpy")
def bests(grid, questions, box, out):  # type: ignore[no-untyped-def]
    """How it falls apart, whether terms fall away from the best, where that is; and the best of each cell of the box."""
    apart = no_apart(2, grid.edge.shape[1] - 1)
    how = take_apart(grid, questions, 0, box, apart)
    if how == WHOLE:
        return how, False, apart.best
    at = np.zeros(2, np.int64)
    for at[0] in range(box[FIRST, 0], box[STOP, 0]):
        for at[1] in range(box[FIRST, 1], box[STOP, 1]):
            out[at[0], at[1]] = best_apart(questions, 0, how, apart, at)
    return how, falls_away(apart, box), apart.best


def check_bounds(tree: Call, order: str, ends: list[float], shares: list[float]) -> int:
    """Every row scores at most the best of its cell, which no other row is above; how the tree falls apart."""
    low, high = np.minimum(ends[:2], ends[2:]), np.maximum(ends[:2], ends[2:])
    questions = questions_of([Asked(tree, order, 1, 9, 1, "sma")], NAMES)
    grid, out = grid_kernel.empty_grid(low, high, 3, 1), np.empty((3, 3))
    grid.edge[:, 0], grid.edge[:, -1] = low, high
    how, falls, start = bests(grid, questions, np.array([[0, 0], [3, 3]]), out)
    if how == WHOLE:
        return how
    places = [np.append(low[axis] + (high[axis] - low[axis]) * np.array(shares), grid.edge[axis]) for axis in range(2)]
    rows = np.array([row for row in itertools.product(*places) if np.isfinite(row).all()]).reshape(-1, 2)
    rows = np.clip(rows, low, high)
    scores = evaluate(tree, dict(zip(NAMES, rows.T, strict=True)), len(rows)) * (-1.0 if order == "asc" else 1.0)
    assert not np.isnan(scores).any()
    at = np.stack(np.unravel_index(grid_kernel.cells_of(grid, rows), (3, 3)))
    assert (scores <= out[tuple(at)]).all(), (str(tree), rows[scores > out[tuple(at)]], how)
    if falls:  # then the best cell is reached from any other without a step to a worse one
        assert out[tuple(start)] == out.max()
        for i, j in itertools.product(range(3), range(3)):
            towards = (i + np.sign(start[0] - i), j + np.sign(start[1] - j))
            assert out[towards[0], j] >= out[i, j] and out[i, towards[1]] >= out[i, j]
    return how


finite = st.one_of(numbers, st.floats(-10, 10))


@given(
    st.one_of(calls, st.sampled_from([call(text) for text in APART])),
    st.sampled_from(["asc", "desc"]),
    st.lists(finite, min_size=4, max_size=4),
    st.lists(st.floats(0, 1), max_size=5),
)
@example(call("x * y"), "desc", [-1.0, 0.0, 2.0, 3.0], [0.5])
@example(call("where(1, x, y) * x"), "desc", [-1.0, 0.0, 2.0, 3.0], [0.5])
def test_no_row_scores_more_than_the_best_of_its_cell(tree: Call, order: str, ends: list[float], shares: list[float]) -> None:
    if tree.columns():
        check_bounds(tree, order, ends, shares)


@pytest.mark.parametrize("text", APART)
def test_expressions_as_people_write_them_fall_apart(text: str) -> None:
    for order in ("asc", "desc"):
        how = check_bounds(call(text), order, [0.0, 0.0, 5.0, 4.0], [0.1, 0.5, 0.9])
        assert how != WHOLE and (how == NEARLY) == text.startswith("exp"), text


@numba.njit(error_model="numpy")
def run_both(codes, rows, one, many, word):  # type: ignore[no-untyped-def]
    for i in range(rows.shape[0]):
        one[i] = -1.5 * value_of(codes, 0, rows[i])
    values_of(codes, 0, -1.5, rows, 1, rows.shape[0], many)
    return values_of_word(codes, np.full(codes.begin.size - 1, -1.5), 0, rows[0], word)


@given(calls, st.integers(1, 300), st.integers(0, 5))
def test_blocks_give_what_single_rows_give(tree: Call, count: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    rows = np.where(generator.random((count, 2)) < 0.2, generator.choice([0.0, -1.0, math.nan, math.inf], (count, 2)), 0.0)
    rows += generator.normal(size=(count, 2))
    codes, one, many, word = codes_of([tree] * 3, {"x": 0, "y": 1}), np.empty(count), np.empty(count), np.empty(64)
    assert codes.alike.tolist() == [1]
    assert run_both(codes, rows, one, many, word) == 3
    assert np.array_equal(one[1:], many[:-1], equal_nan=True)
    assert np.array_equal(word[:3], one[:1].repeat(3), equal_nan=True)


@pytest.mark.parametrize("core", ["tma", "sma"])
@pytest.mark.parametrize("spread", [1.0, -1.0, 0.0], ids=["positive", "negative", "around nought"])
def test_crowds_of_expressions_are_exact_while_queries_come_and_go(core: str, spread: float) -> None:
    """More than a word of the same steps, some others among them that break a word in two, weighted sums too."""
    generator, crowd = np.random.default_rng(3), Crowd(NAMES, 5)
    k, size, slide = 4, 300, 20
    asked: list[Asked] = []

    def add(count: int, texts: list[str]) -> None:
        for _ in range(count):
            a, b = generator.uniform(0.1, 2, 2)
            text = texts[generator.integers(len(texts))].replace("A", repr(float(a))).replace("B", repr(float(b)))
            order = "desc" if generator.random() < 0.8 else "asc"
            asked.append(Asked(call(text), order, k, size, slide, core))
            crowd.add(asked[-1])

    add(140, ["A * x ** 2 + B * y ** 2"])
    window, since = np.zeros((2, 0)), [0] * len(asked)
    for cycle in range(60):
        if cycle in (25, 40):
            before = len(asked)
            add(3 if cycle == 25 else 5, [*APART, "A * x + B * y", "(A + x) * (B + y)"])
            since += [window.shape[1]] * (len(asked) - before)
        if cycle in (30, 35, 50):
            for number in (cycle, 0):
                crowd.remove(number)
                del asked[number], since[number]
        rows = generator.random((2, slide)) + (min(spread, 0.0) if spread else -0.5)
        rows[:, generator.random(slide) < 0.1] = np.round(rows[:, :1], 1)  # ties
        window = np.concatenate([window, rows], axis=1)
        for query, _, results in crowd.push(rows):
            for at, number in enumerate(query.tolist()):
                span = slice(int(results.begin[at]), int(results.begin[at] + results.size[at]))
                count = span.stop - span.start
                crowd.tops.score[number, :count] = results.score[span]
                crowd.tops.ordinal[number, :count] = results.ordinal[span]
                crowd.tops.count[number] = count
        end = window.shape[1]
        for number, one in enumerate(asked):
            first = max(end - size, since[number])
            assert isinstance(one.score, Call)
            scores = evaluate(one.score, dict(zip(NAMES, window[:, first:], strict=True)), end - first)
            scores = -scores if one.order == "asc" else scores
            right = np.lexsort((-np.arange(end - first), -scores))[: min(k, end - first)]
            count = int(crowd.tops.count[number])
            assert crowd.tops.ordinal[number, :count].tolist() == (first + right).tolist(), (cycle, number, str(one.score))
            assert np.array_equal(crowd.tops.score[number, :count], scores[right])
        if cycle % 10 == 9:
            crowd.check_invariants()


def test_cells_reach_little_farther_than_rows_and_not_past_nought() -> None:
    """Rows of one spread widen a grid by hardly more than they go beyond it; rows that drift do so ever more rarely."""
    extent, generator = Extent(), np.random.default_rng(1)
    rows = generator.random((2, 1000))
    extent.take(rows, 0, 0)
    extent.fit()
    found = extent.range
    assert found is not None
    edge = found.T.copy()
    for _ in range(200):
        extent.widen(generator.random((2, 1000)), edge)
    assert (edge[:, 0] >= 0).all() and (edge[:, -1] < 1.003).all()
    times = sum(extent.widen(rows + step / 1000, edge) for step in range(1000))
    assert times < 40

"""The grid that indexes queries: no row that could rank is missed, and scores are those of the expression trees."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.algorithms.spatial.asked import codes_of
from skyband.kernels.spatial.grid import Grid, cell_of, cells_of, empty_grid, forget
from skyband.kernels.spatial.query_grid import best_in_cell, monitor
from skyband.kernels.spatial.questions import BLOCK, DISTANCE_L1, DISTANCE_L2, LINEAR, Questions, score_of, scores_of
from skyband.kernels.spatial.screening import largest_of, passing, set_screen
from skyband.scores.score import Distance, Linear, bind, distance, linear

INF, NAN = math.inf, math.nan
KINDS = {"l2": DISTANCE_L2, "l1": DISTANCE_L1}


@numba.njit(error_model="numpy")
def one_by_one(grid, questions, q, rows, cells, scores):  # type: ignore[no-untyped-def]
    """The kernels that only other kernels can call."""
    for i in range(rows.shape[0]):
        row = rows[i]
        cells[i] = cell_of(grid, row)
        scores[i] = score_of(questions, q, row)


# --- plain definitions ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """A score over attributes named by their number, and which way it is ranked."""

    score: Distance | Linear
    sign: float

    @property
    def terms(self) -> list[tuple[int, float, float]]:
        """Attribute, point and weight, in the order of the sum."""
        if isinstance(self.score, Linear):
            return [(int(name), 0.0, weight) for name, weight in self.score.weights]
        weights = dict(self.score.weights or ())
        return [(int(name), point, weights.get(name, 1.0)) for name, point in self.score.point]

    @property
    def kind(self) -> int:
        return LINEAR if isinstance(self.score, Linear) else KINDS[self.score.metric]

    def turned(self, row: Any) -> float:
        """The turned score of a row, in Python's floats."""
        parts = []
        for axis, point, weight in self.terms:
            x = float(row[axis])
            if isinstance(self.score, Linear):
                parts.append(weight * x)
            else:
                parts.append(weight * (abs(x - point) if self.score.metric == "l1" else (x - point) * (x - point)))
        total = parts[0]
        for part in parts[1:]:
            total += part
        return self.sign * (math.sqrt(total) if self.kind == DISTANCE_L2 else total)


def tabled(asked: list[Question], dimensions: int) -> Questions:
    """The questions as arrays."""
    shape = len(asked), dimensions
    point, weight, order = np.zeros(shape), np.zeros(shape), np.full(shape, -1)
    for q, question in enumerate(asked):
        for place, (axis, at, w) in enumerate(question.terms):
            order[q, place], point[q, axis], weight[q, axis] = axis, at, w
    kind, used = np.array([question.kind for question in asked]), np.array([len(question.terms) for question in asked])
    open_ends = np.full_like(point, -INF), np.full_like(point, INF), np.zeros_like(order), np.zeros_like(used)
    sign = np.array([question.sign for question in asked])
    codes = [codes_of([None] * len(asked) * width, {}) for width in (1, 1, dimensions)]
    return Questions(kind, sign, point, weight, order, used, *open_ends, *codes)


def corners(grid: Grid, cell: int) -> list[tuple[float, float]]:
    """The bounds of a cell, attribute by attribute."""
    resolution = grid.edge.shape[1] - 1
    at = np.unravel_index(cell, (resolution,) * len(grid.low))
    return [(float(edges[c]), float(edges[c + 1])) for edges, c in zip(grid.edge, at, strict=True)]


def best_of(question: Question, bounds: list[tuple[float, float]]) -> float:
    """The best score among the corners of a cell and the places nearest to the point; NaN is none."""
    point = {axis: at for axis, at, _ in question.terms}
    places = [{low, min(max(point.get(axis, 0.0), low), high), high} for axis, (low, high) in enumerate(bounds)]
    scores = [question.turned(row) for row in itertools.product(*places)]
    return max((score for score in scores if not math.isnan(score)), default=-INF)


def monitored(grid: Grid, q: int) -> set[int]:
    return {int(cell) for cell in np.flatnonzero(grid.members[:, q // 64] >> np.uint64(q % 64) & np.uint64(1))}


# --- strategies -----------------------------------------------------------------------------------------------

small = st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 0.1, 0.7]) | st.floats(-4, 4)
finite = small | st.floats(allow_nan=False, allow_infinity=False)
anything = small | st.floats()


@st.composite
def asked(draw: st.DrawFn, dimensions: int, numbers: st.SearchStrategy[float] = finite) -> Question:
    axes = draw(st.permutations(range(dimensions)))[: draw(st.integers(1, dimensions))]
    values = {str(axis): draw(numbers) for axis in axes}
    sign = draw(st.sampled_from([1.0, -1.0]))
    if draw(st.booleans()):
        return Question(linear(values), sign)
    weights = {name: abs(draw(numbers)) for name in values} if draw(st.booleans()) else None
    return Question(distance(values, draw(st.sampled_from(["l1", "l2"])), weights), sign)


@st.composite
def grids(draw: st.DrawFn, dimensions: int, queries: int, numbers: st.SearchStrategy[float] = finite) -> Grid:
    resolution = draw(st.integers(1, {1: 9, 2: 5, 3: 4}.get(dimensions, 2)))
    bounds = [sorted((draw(numbers), draw(numbers))) for _ in range(dimensions)]
    return empty_grid(np.array([low for low, _ in bounds]), np.array([high for _, high in bounds]), resolution, queries)


@st.composite
def rows_near(draw: st.DrawFn, grid: Grid) -> np.ndarray:
    """Rows anywhere, on the borders of cells, and a step beside them."""
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        row = []
        for edges in grid.edge:
            edge = draw(st.sampled_from(list(edges)))
            row.append(draw(st.sampled_from([edge, np.nextafter(edge, INF), np.nextafter(edge, -INF)]) | anything))
        rows.append(row)
    return np.array(rows, np.float64)


dimension = st.integers(1, 3) | st.integers(4, 10)

# --- cells ----------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(st.data(), dimension)
def test_a_row_falls_into_the_cell_between_whose_edges_it_lies(data: st.DataObject, dimensions: int) -> None:
    grid = data.draw(grids(dimensions, 1))
    rows = data.draw(rows_near(grid))
    rows = rows[~np.isnan(rows).any(axis=1)]
    at = [np.searchsorted(edges[1:-1], x, side="right") for edges, x in zip(grid.edge, rows.T, strict=True)]
    assert cells_of(grid, rows).tolist() == np.ravel_multi_index(at, (grid.edge.shape[1] - 1,) * dimensions).tolist()


def test_cells_are_of_equal_size() -> None:
    grid = empty_grid(np.array([0.0, -3.0]), np.array([1.0, 4.0]), 10, 1)
    np.testing.assert_allclose(grid.edge[0, 1:-1], np.arange(1, 10) / 10, rtol=1e-15)
    np.testing.assert_allclose(grid.edge[1, 1:-1], -3 + 0.7 * np.arange(1, 10), rtol=1e-14)
    assert (grid.edge[:, 0] == -INF).all() and (grid.edge[:, -1] == INF).all()


LARGEST, LEAST = np.finfo(np.float64).max, 5e-324


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (0.0, -0.0), (-0.0, 0.0), (0.0, LEAST), (-LARGEST, LARGEST)])
def test_bounds_may_be_as_narrow_or_as_wide_as_can_be(low: float, high: float) -> None:
    grid = empty_grid(np.array([low]), np.array([high]), 4, 1)
    below, above = math.nextafter(low, -INF), math.nextafter(high, INF)
    rows = np.array([-INF, -LARGEST, low - 1, below, low, high, above, high + 1, LARGEST, INF])
    cells = cells_of(grid, rows[:, None])
    assert cells[0] == 0 and cells[-1] == 3 and (np.diff(cells[np.argsort(rows, kind="stable")]) >= 0).all()
    assert cells.tolist() == np.searchsorted(grid.edge[0, 1:-1], rows, side="right").tolist()


@pytest.mark.parametrize(("low", "high", "resolution"), [(1.0, 0.0, 4), (0.0, INF, 4), (NAN, 1.0, 4), (0.0, 1.0, 0)])
def test_a_grid_without_bounds_is_refused(low: float, high: float, resolution: int) -> None:
    with pytest.raises(ValueError, match="finite bounds"):
        empty_grid(np.array([low]), np.array([high]), resolution, 1)


# --- which cells are monitored --------------------------------------------------------------------------------


@settings(max_examples=400, deadline=None)
@given(st.data(), dimension)
def test_no_row_that_reaches_the_threshold_is_missed(data: st.DataObject, dimensions: int) -> None:
    question = data.draw(asked(dimensions))
    grid = data.draw(grids(dimensions, 1))
    rows = data.draw(rows_near(grid))
    scores = [question.turned(row) for row in rows]
    exact = [score for score in scores if not math.isnan(score)]
    threshold = data.draw(st.sampled_from([*exact, -INF]) | anything)
    questions = tabled([question], dimensions)

    count = monitor(grid, questions, 0, threshold)

    cells = cells_of(grid, rows)
    assert count == len(monitored(grid, 0))
    assert {int(cell) for cell, score in zip(cells, scores, strict=True) if score >= threshold} <= monitored(grid, 0)
    for cell, score in zip(cells, scores, strict=True):
        assert math.isnan(score) or score <= best_in_cell(grid, questions, 0, cell)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(1, 3))
def test_the_best_of_a_cell_is_reached_in_it(data: st.DataObject, dimensions: int) -> None:
    question = data.draw(asked(dimensions, small))
    grid = data.draw(grids(dimensions, 1, small))
    questions = tabled([question], dimensions)
    for cell in range(len(grid.members)):
        assert best_in_cell(grid, questions, 0, cell) == best_of(question, corners(grid, cell))


@settings(max_examples=120, deadline=None)
@given(st.data(), st.integers(1, 3))
def test_monitored_are_exactly_the_cells_that_can_reach_the_threshold(data: st.DataObject, dimensions: int) -> None:
    """Thresholds rise and fall, queries come and go: no bit is left behind, and none of another query changes."""
    held = data.draw(st.sampled_from([3, 64, 130]))
    places = data.draw(st.lists(st.integers(0, held - 1), min_size=1, max_size=3, unique=True))
    grid = data.draw(grids(dimensions, held))
    asked_now: dict[int, Question] = {q: data.draw(asked(dimensions)) for q in places}
    expected = np.zeros_like(grid.members)

    for _ in range(data.draw(st.integers(1, 6))):
        q = data.draw(st.sampled_from(places))
        bit = np.uint64(1) << np.uint64(q % 64)
        expected[:, q // 64] &= ~bit
        if data.draw(st.integers(0, 3)) == 0:
            forget(grid, q)
            asked_now[q] = data.draw(asked(dimensions))
        else:
            idle = Question(linear({"0": 1.0}), 1.0)
            questions = tabled([asked_now.get(place, idle) for place in range(held)], dimensions)
            bests = [best_in_cell(grid, questions, q, cell) for cell in range(len(grid.members))]
            threshold = data.draw(st.sampled_from(bests) | anything)
            count = monitor(grid, questions, q, threshold)
            reached = np.array([best >= threshold for best in bests])
            expected[reached, q // 64] |= bit
            assert count == reached.sum()
        assert (grid.members == expected).all()


SHAPES = [
    # the nearest rows; the weighted attribute distance; the weighted sum (figure 7); the farthest rows
    (
        Question(distance({"0": 4.0, "1": 3.0}), -1.0),
        -2.1,
        """
        ........
        ........
        ...##...
        ..####..
        .######.
        .######.
        ..####..
        ...##...
        """,
    ),
    (
        Question(distance({"0": 4.5, "1": 3.5}, "l1", {"0": 1.0, "1": 2.0}), -1.0),
        -2.2,
        """
        ........
        ........
        ........
        ...###..
        ..#####.
        ...###..
        ........
        ........
        """,
    ),
    (
        Question(linear({"0": 1.0, "1": 1.0}), 1.0),
        10.5,
        """
        ########
        ...#####
        ....####
        .....###
        ......##
        .......#
        .......#
        .......#
        """,
    ),
    (
        Question(distance({"0": 4.0, "1": 4.0}), 1.0),
        4.0,
        """
        ########
        ##....##
        #......#
        #......#
        #......#
        #......#
        ##....##
        ########
        """,
    ),
]


@pytest.mark.parametrize(("question", "threshold", "picture"), SHAPES)
def test_the_monitored_cells_of_an_eight_by_eight_grid(question: Question, threshold: float, picture: str) -> None:
    """A cell is one unit wide; the first attribute runs to the right, the second one up."""
    grid = empty_grid(np.zeros(2), np.full(2, 8.0), 8, 1)
    monitor(grid, tabled([question], 2), 0, threshold)
    cells = monitored(grid, 0)
    lines = ["".join("#" if x * 8 + y in cells else "." for x in range(8)) for y in range(7, -1, -1)]
    assert lines == picture.split()


@pytest.mark.parametrize("question", [question for question, _, _ in SHAPES])
def test_an_index_that_was_changed_is_one_that_was_not(question: Question) -> None:
    """The last threshold alone counts, wherever earlier ones had the query look; so does what it asked before."""
    changed = empty_grid(np.zeros(2), np.full(2, 8.0), 8, 1)
    other = Question(distance({"1": 7.5, "0": 0.5}), -1.0)
    for threshold in question.sign * np.array([0.0, 6.0, 2.0, 0.5, 4.0, 1.0, 12.0, 1.5]):
        fresh = empty_grid(np.zeros(2), np.full(2, 8.0), 8, 1)
        count = monitor(fresh, tabled([question], 2), 0, threshold)
        assert monitor(changed, tabled([other], 2), 0, -1.5) == 6
        assert monitor(changed, tabled([question], 2), 0, threshold) == count
        assert (changed.members == fresh.members).all() and (changed.box == fresh.box).all()
        if threshold == 4.0:
            forget(changed, 0)
            assert not changed.members.any() and not changed.box.any()


def test_opposite_infinities_in_a_sum_hide_no_row() -> None:
    """The last cell of the first attribute has no end; the second attribute's terms overflow in all of its first cell."""
    question = Question(linear({"0": 1.0, "1": 1e308}), 1.0)
    grid = empty_grid(np.array([0.0, -300.0]), np.array([1.0, -100.0]), 2, 1)
    row = np.array([[5.0, -250.0]])
    assert question.turned(row[0]) == -INF
    (cell,) = cells_of(grid, row)
    assert best_in_cell(grid, tabled([question], 2), 0, cell) == -INF
    assert monitor(grid, tabled([question], 2), 0, -INF) == 4
    backwards = Question(linear({"1": 1e308, "0": 1.0}), 1.0)
    assert best_in_cell(grid, tabled([backwards], 2), 0, cell) == -INF


def test_few_queries_see_a_row_when_each_asks_for_what_is_near() -> None:
    rng = np.random.default_rng(3)
    rows, points = rng.random((2000, 2)), rng.random((200, 2))
    grid = empty_grid(np.zeros(2), np.ones(2), 10, len(points))
    nearest = [Question(distance({"0": x, "1": y}), -1.0) for x, y in points.tolist()]
    questions = tabled(nearest, 2)
    share = [monitor(grid, questions, q, -0.05) / 100 for q in range(len(points))]
    apart = np.linalg.norm(rows[:, None] - points, axis=2)
    cells = cells_of(grid, rows)
    seen = np.array([[cell in monitored(grid, q) for q in range(0, len(points), 20)] for cell in cells])
    assert seen[apart[:, ::20] < 0.05 - 1e-12].all()
    assert max(share) <= 0.04 + 0.02 and np.mean(share) < 0.04 and seen.mean() < 0.06


# --- screening ------------------------------------------------------------------------------------------------


@numba.njit(error_model="numpy")
def screened(questions, bound, bits, rows, shown):  # type: ignore[no-untyped-def]
    """What the kernels let pass: the word of each row."""
    screen, totals = np.zeros((1, 2 + rows.shape[1], 64)), np.empty(64)
    for q in range(bound.shape[0]):
        set_screen(screen, questions, q, bound[q])
    for i in range(rows.shape[0]):
        shown[i] = passing(screen[0], bits, rows[i], largest_of(rows[i]), totals)


@settings(max_examples=200, deadline=None)
@given(st.data(), dimension)
def test_no_query_whose_bound_a_row_reaches_is_screened_out(data: st.DataObject, dimensions: int) -> None:
    asked_now = data.draw(st.lists(asked(dimensions), min_size=1, max_size=12), label="questions")
    questions, count = tabled(asked_now, dimensions), len(asked_now)
    bits = data.draw(st.integers(0, (1 << count) - 1) | st.just((1 << count) - 1), label="who monitors the cell")
    rows = np.array([[data.draw(anything) for _ in range(dimensions)] for _ in range(3)])
    near = [question.turned(row) for question, row in zip(asked_now, itertools.cycle(rows), strict=False)]
    bound = np.array([score if data.draw(st.booleans()) else data.draw(st.floats(allow_nan=False)) for score in near])
    shown = np.zeros(3, np.uint64)
    screened(questions, bound, np.uint64(bits), rows, shown)
    for row, word in zip(rows, shown.tolist(), strict=True):
        assert word & ~bits == 0
        for q, question in enumerate(asked_now):
            reaches = bits >> q & 1 and question.turned(row) >= bound[q]
            assert not reaches or word >> q & 1, f"{question} of {row}: {question.turned(row)}, bound {bound[q]}"


@pytest.mark.parametrize("bits", [(1 << 64) - 1, 0b1011], ids=["many", "few"])
def test_weighted_sums_are_screened_and_nothing_else_is(bits: int) -> None:
    weights = np.random.default_rng(4).random((64, 2)).tolist()
    sums = [Question(linear({"0": a, "1": b}), 1.0) for a, b in weights]
    sums[1] = Question(distance({"0": 5.0, "1": 5.0}), -1.0)
    rows, shown = np.array([[0.5, 0.5], [0.1, 0.2]]), np.zeros(2, np.uint64)
    screened(tabled(sums, 2), np.full(64, 0.4), np.uint64(bits), rows, shown)
    for row, word in zip(rows, shown.tolist(), strict=True):
        right = sum(1 << q for q, one in enumerate(sums) if q == 1 or one.turned(row) >= 0.4)
        assert word == right & bits


# --- scores ---------------------------------------------------------------------------------------------------


def same_bits(x: np.ndarray, y: np.ndarray) -> bool:
    """The same numbers to the last bit; one NaN is as good as another."""
    unknown = np.isnan(x) & np.isnan(y)
    return bool((unknown | (x.view(np.int64) == y.view(np.int64))).all())


@settings(max_examples=200, deadline=None)
@given(st.data(), dimension, st.integers(0, 2**32))
def test_scores_are_those_of_the_expression_tree(data: st.DataObject, dimensions: int, seed: int) -> None:
    question = data.draw(asked(dimensions))
    count = data.draw(st.integers(1, 20) | st.sampled_from([BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5]))
    rng = np.random.default_rng(seed)
    rows = rng.normal(0, 2, (dimensions, count))
    for _ in range(data.draw(st.integers(0, 5))):
        rows[rng.integers(dimensions), rng.integers(count)] = data.draw(st.sampled_from([NAN, INF, -INF, -0.0]) | anything)
    begin = data.draw(st.integers(0, count))
    stop = data.draw(st.integers(begin, count))
    names = data.draw(st.permutations(range(dimensions)))
    table = pa.table({str(axis): rows[axis] for axis in names})
    expected = question.sign * bind(question.score, table.schema).evaluate(table)
    questions = tabled([Question(linear({"0": 2.0}), 1.0), question], dimensions)

    out = np.full(count + 1, 7.25)
    scores_of(questions, 1, rows, begin, stop, out)
    assert same_bits(out[: stop - begin], expected[begin:stop])
    assert (out[stop - begin :] == 7.25).all()

    grid = empty_grid(np.full(dimensions, -2.0), np.full(dimensions, 2.0), 2, 2)
    lying = np.ascontiguousarray(rows.T)
    cells, scores = np.empty(count, np.int64), np.empty(count)
    one_by_one(grid, questions, 1, lying, cells, scores)
    assert same_bits(scores, expected)
    assert (cells == cells_of(grid, lying)).all() and (cells == cells_of(grid, rows.T)).all()


def test_a_sum_of_negative_zeros_stays_negative() -> None:
    questions = tabled([Question(linear({"0": 1.0, "1": 1.0}), 1.0)], 2)
    out = np.empty(1)
    scores_of(questions, 0, np.array([[-0.0], [-0.0]]), 0, 1, out)
    assert out[0] == 0.0 and np.signbit(out[0])

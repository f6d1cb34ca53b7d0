"""TMA, SMA, CPM/w and SNN: cores filled from a grid over the window's points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from skyband.algorithms.ranked.arena import held
from skyband.algorithms.spatial.crowd import Asked, Crowd, resolution
from skyband.algorithms.spatial.tsl import TSL
from skyband.changes import Emitted
from skyband.kernels.emission import CHANGES, emit
from skyband.kernels.ranked import bands, pruning
from skyband.kernels.spatial import point_grid
from skyband.kernels.spatial.grid import cells_in, empty_grid
from skyband.kernels.spatial.points import COUNT, EFFORT, add_points, drop_points, empty_points
from skyband.kernels.spatial.questions import scores_of
from skyband.scores.formulas import Distance, Linear

EXAMPLE = [3.0, 1.0, 2.0, 7.0, 5.0, 9.0, 4.0, 7.5, 6.0, 11.0, 10.0]  # scores of TODS15's figure 1, smaller is better


def made(core: str, attributes: tuple[str, ...], grid: int) -> Any:
    """A structure for queries with this core."""
    return TSL(attributes) if core == "tsl" else Crowd(attributes, grid)


def push(crowd: Crowd, rows: np.ndarray) -> None:
    """Take rows and bring the tops up to date."""
    for query, ends, results in crowd.push(rows):
        out = Emitted.room(2 * crowd.tops.score.shape[1] * len(query))
        emit(query, ends, 0, len(query), results, np.full(len(crowd.asked), CHANGES), crowd.tops, out)


def nearest(core: str, k: int, size: int, slide: int = 1) -> Asked:
    return Asked(sb.distance({"x": 0.0}), "asc", k, size, slide, core)


TABLE_II = """
step | CPM/w top | threshold | SNN skyband | threshold
1    | o1        | s1        | o1          | s1
2    | o2        | s1        | o2          | s1
3    | o2        | s1        | o2 o3       | s1
4    | o2        | s1        | o2 o3       | s1
5    | o2        | s1        | o2 o3       | s1
6    | o2        | s1        | o2 o3       | s1
7    | o2        | s1        | o2 o3       | s1
8    | o3        | s3        | o3          | s1
9    | o7        | s7        | o7          | s7
10   | o7        | s7        | o7          | s7
11   | o7        | s7        | o7          | s7
"""


def test_table_ii_step_by_step() -> None:
    """Tops and skybands as printed. CPM/w's threshold of indexing is printed, which lags behind the score of rank k that we
    compare with; at a recomputation both are the same."""
    crowds = {core: Crowd(("x",), grid=2) for core in ("tma", "sma")}
    for core, crowd in crowds.items():
        crowd.add(nearest(core, 1, 6))
    for line in TABLE_II.strip().splitlines()[1:]:
        step, cpm, _, snn, snn_threshold = (part.strip() for part in line.split("|"))
        found = {}
        for core, crowd in crowds.items():
            push(crowd, np.array([[EXAMPLE[int(step) - 1]]]))
            found[core] = " ".join(f"o{ordinal + 1}" for ordinal in held(crowd.state, 0).ordinal)
        assert (found["tma"], found["sma"]) == (cpm, snn), line
        threshold = -crowds["sma"].state.levels[0, bands.THRESHOLD]
        assert threshold == EXAMPLE[int(snn_threshold[1:]) - 1], line
        top = -crowds["tma"].state.levels[0, bands.THRESHOLD]
        assert top == EXAMPLE[int(cpm[1:]) - 1], line
    assert crowds["tma"].searches == 2 and crowds["sma"].searches == 1


def test_arrivals_come_before_expirations_so_that_a_lucky_arrival_saves_a_search() -> None:
    for newcomer, searches in ((0.5, 0), (9.5, 1)):
        crowd = Crowd(("x",), grid=2)
        crowd.add(nearest("tma", 1, 4, slide=2))
        push(crowd, np.array([[1.0, 5.0, 6.0, 7.0]]))
        push(crowd, np.array([[newcomer, 8.0]]))  # the nearest, row 0, leaves with this slide
        assert crowd.searches == searches


def test_rows_to_spare_make_searches_rare_and_change_no_answer() -> None:
    rows = np.random.default_rng(2).random((2, 40_000))
    searches = []
    for spare in (0.0, 0.5, 2.0):
        crowd = Crowd(("x", "y"), grid=resolution(2000, 2))
        for x in range(1, 6):
            asked = Asked(sb.linear({"x": float(x), "y": 3.0}), "desc", 10, 2000, 20, "sma", options={"spare": spare})
            crowd.add(asked)
            assert asked.wanted == 10 * (1 + spare)
        push(crowd, rows)
        crowd.check_invariants()
        for x, ordinals in zip(range(1, 6), crowd.tops.ordinal, strict=True):
            assert ordinals.tolist() == (38_000 + np.argsort(-(x * rows[0] + 3.0 * rows[1])[-2000:])[:10]).tolist()
        searches.append(crowd.searches)
    assert searches[0] > 4 * searches[1] and searches[1] > searches[2], searches


# --- the search ------------------------------------------------------------------------------------------

values = st.sampled_from([0.0, 1.0, 2.0, 2.5, 7.0, -3.0, np.nan]) | st.floats(-10, 10)


@st.composite
def scores(draw: st.DrawFn, attributes: str) -> Linear | Distance:
    used = draw(st.lists(st.sampled_from(attributes), min_size=1, max_size=len(attributes), unique=True))
    numbers = {name: draw(st.floats(-3, 3)) for name in used}
    kind = draw(st.sampled_from(["linear", "l1", "l2"]))
    if kind == "linear":
        return sb.linear(numbers)
    weights = {name: draw(st.floats(0, 2)) for name in used} if draw(st.booleans()) else None
    return sb.distance(numbers, metric=kind, weights=weights)


@given(data=st.data())
def test_the_search_finds_the_best_rows_of_any_part_of_the_window(data: st.DataObject) -> None:
    from skyband.algorithms.spatial.asked import questions_of

    attributes = "abc"[: data.draw(st.integers(1, 3))]
    count = data.draw(st.integers(0, 25))
    rows = np.array([[data.draw(values) for _ in range(count)] for _ in attributes]).reshape(len(attributes), count)
    order = data.draw(st.sampled_from(["asc", "desc"]))
    asked = Asked(data.draw(scores(attributes)), order, 1, 100, 1, "sma")
    questions = questions_of([asked], tuple(attributes))
    grid = empty_grid(np.full(len(attributes), -4.0), np.full(len(attributes), 6.0), data.draw(st.integers(1, 4)), 1)
    points = add_points(empty_points(len(attributes), 40, len(grid.members)), cells_in(grid, rows), rows, 0)
    dropped = data.draw(st.integers(0, count))
    drop_points(points, dropped)
    first, stop = dropped + data.draw(st.integers(0, 3)), data.draw(st.integers(0, count))
    k = data.draw(st.integers(1, 6))
    best, ordinal = np.empty(k), np.empty(k, np.int64)
    cells = len(grid.members)
    found = point_grid.search(
        points, grid, questions, 0, first, stop, k, best, ordinal, np.empty(cells), np.empty(cells, np.int64)
    )
    out = np.empty(count)
    scores_of(questions, 0, rows, 0, count, out)
    right = sorted((-out[row], -row) for row in range(first, stop) if not np.isnan(out[row]))[:k]
    assert list(zip(best[:found].tolist(), ordinal[:found].tolist(), strict=True)) == [(-a, -b) for a, b in right]


@pytest.mark.parametrize("wanted", [point_grid.FEW, point_grid.FEW + 1, 700, 2999])
def test_a_search_for_many_rows_finds_them_in_order(wanted: int) -> None:
    from skyband.algorithms.spatial.asked import questions_of

    rows = np.random.default_rng(wanted).integers(0, 40, (2, 3000)) / 40  # many are alike
    questions = questions_of([Asked(sb.linear({"x": 1.0, "y": 0.5}), "desc", 1, 3000, 1, "sma")], ("x", "y"))
    grid = empty_grid(np.zeros(2), np.ones(2), 5, 1)
    points = add_points(empty_points(2, 4000, 25), cells_in(grid, rows), rows, 0)
    room = point_grid.room_for(wanted)
    score, ordinal = np.empty(room), np.empty(room, np.int64)
    heap = (np.empty(25), np.empty(25, np.int64))
    assert point_grid.search(points, grid, questions, 0, 0, 3000, wanted, score, ordinal, *heap) == wanted
    right = np.lexsort((-np.arange(3000), -(rows[0] + 0.5 * rows[1])))[:wanted]
    assert ordinal[:wanted].tolist() == right.tolist()


def test_the_search_opens_few_cells() -> None:
    rows = np.random.default_rng(1).random((2, 20_000))
    crowd = Crowd(("x", "y"), grid=resolution(20_000, 2))
    crowd.add(Asked(sb.linear({"x": 1.0, "y": 2.0}), "desc", 5, 20_000, 1000, "tma"))
    push(crowd, rows)
    assert crowd._index is not None
    grid, indexed, _ = crowd._index
    assert 0 < indexed.cells[0] < len(grid.members) / 20


# --- grids that rows grow out of, streams of every kind ------------------------------------------------------


@pytest.mark.parametrize("core", ["tma", "sma"])
@pytest.mark.parametrize("stream", ["drifting", "growing", "constant", "infinite"])
def test_answers_stay_those_of_sorting_when_the_range_changes(core: str, stream: str) -> None:
    generator = np.random.default_rng(7)
    noise = generator.random((2, 3000))
    rows = {
        "drifting": noise + np.arange(3000) / 200,
        "growing": noise * np.arange(3000) / 10,
        "constant": np.full((2, 3000), 0.25),
        "infinite": np.where(generator.random((2, 3000)) < 0.01, np.inf, noise),
    }[stream]
    crowd = Crowd(("x", "y"), grid=6)
    scores: list[Any] = [sb.linear({"x": 1.0, "y": -0.5}), sb.distance({"x": 3.0, "y": 3.0}), sb.linear({"y": 2.0})]
    for score, order in zip(scores, ("desc", "asc", "asc"), strict=True):
        crowd.add(Asked(score, order, 7, 400, 3, core))
    for begin in range(0, 3000, 150):
        push(crowd, rows[:, begin : begin + 150])
        crowd.check_invariants()
        if begin == 1500:
            again = Crowd(("x", "y"), grid=6)
            for one in crowd.asked:
                again.add(one)
            again.restore(crowd.snapshot())
            crowd = again
        end = (begin + 150) // 3 * 3
        first = max(end - 400, 0)
        x, y = rows[:, first:end]
        with np.errstate(invalid="ignore"):
            turned = [x + -0.5 * y, -np.sqrt((x - 3.0) * (x - 3.0) + (y - 3.0) * (y - 3.0)), -(2.0 * y)]
        for number, score in enumerate(turned):
            ranked = np.lexsort((-np.arange(len(score)), -score))
            wanted = [first + row for row in ranked if not np.isnan(score[row])][:7]
            assert crowd.tops.ordinal[number, : crowd.tops.count[number]].tolist() == wanted


@pytest.mark.parametrize("core", ["tma", "sma", "tsl"])
@pytest.mark.parametrize(
    ("k", "size", "slide", "scores"),
    [
        (2, 3, 1, [0.0, -np.inf, -np.inf, np.nan]),
        (2, 2, 2, [-np.inf, 0.0, -np.inf, -np.inf]),
        (2, 4, 2, [np.nan, 1.0, 5.0, 4.0, 3.0, 2.0, np.nan, -np.inf, np.nan, -np.inf]),
    ],
)
def test_the_worst_score_there_is_ranks_too(core: str, k: int, size: int, slide: int, scores: list[float]) -> None:
    crowd = made(core, ("x",), grid=2)
    crowd.add(Asked(sb.linear({"x": 1.0}), "desc", k, size, slide, core))
    for seen, score in enumerate(scores, 1):
        push(crowd, np.array([[score]]))
        end = seen // slide * slide
        held_rows = [(-scores[row], -row) for row in range(max(end - size, 0), end) if not np.isnan(scores[row])]
        assert crowd.tops.ordinal[0, : crowd.tops.count[0]].tolist() == [-row for _, row in sorted(held_rows)[:k]], seen


@pytest.mark.parametrize("slide", [1, 10])
def test_where_scores_fall_more_rows_are_looked_for_and_searches_become_rare(slide: int) -> None:
    """All columns fall together, in a window by ten times their noise: every answer loses its best rows all the time."""
    generator = np.random.default_rng(1)
    rows = generator.random((3, 24_000)) - np.arange(24_000) / 400
    crowd = Crowd(("a", "b", "c"), grid=resolution(4000, 3))
    weights = generator.random((6, 3))
    for a, b, c in weights.tolist():
        crowd.add(Asked(sb.linear({"a": a, "b": b, "c": c}), "desc", 5, 4000, slide, "sma", options={"spare": 0.5}))
    for begin in range(0, 24_000, 800):
        push(crowd, rows[:, begin : begin + 800])
        crowd.check_invariants()
        first, end = max(begin + 800 - 4000, 0), begin + 800
        for number, score in enumerate(weights @ rows[:, first:end]):
            assert crowd.tops.ordinal[number].tolist() == (first + np.argsort(-score)[:5]).tolist()
    assert crowd.searches < 6 * 24_000 / 100, f"{crowd.searches} searches of 6 queries while 24,000 rows fell"
    found, bounds = crowd._extent.range, crowd._extent.bounds
    assert found is not None and bounds is not None and (bounds[1] - bounds[0] <= 3 * (found[1] - found[0])).all()
    steady = np.random.default_rng(2).random((3, 24_000)) + rows[:, -1:]  # it does no longer fall
    push(crowd, steady)
    push(crowd, steady - 1e-9)
    assert crowd.state.query[:, pruning.WANTED].max() < 200


def test_cells_that_spikes_left_empty_are_not_looked_at_one_after_the_other() -> None:
    """Two spikes stretch the grid, so that all other rows fall into the farthest cells: an expression is bounded over a few
    empty ones, then all rows are scored, which costs less."""
    generator = np.random.default_rng(1)
    x, y = -np.arange(30_000.0), generator.random(30_000)
    x[[9_000, 25_000]] = 1e9, 2e9
    asked = [
        sb.TopK(name=f"q{at}", k=5, score=f"x * {at + 1} + abs(y - 0.5)", window=sb.CountWindow(20_000, 500))
        for at in range(20)
    ]
    monitor = sb.Monitor(asked)
    for begin in range(0, 29_500, 500):
        monitor.push({"x": x[begin : begin + 500], "y": y[begin : begin + 500]})
    crowd: Any = monitor._lanes[0].structure  # type: ignore[attr-defined]
    effort, searches = crowd._points.marks[EFFORT], crowd.searches
    monitor.push({"x": x[29_500:], "y": y[29_500:]})
    cells = np.count_nonzero(crowd._points.ring[:, COUNT])
    assert crowd.searches > searches and cells < 60 and len(crowd._points.ring) > 190
    assert (crowd._points.marks[EFFORT] - effort) / (crowd.searches - searches) <= 20_500 + 16 * (cells + 20)  # 20 were empty
    for at in range(20):
        score = x[10_000:] * (at + 1) + np.abs(y[10_000:] - 0.5)
        assert monitor.top(f"q{at}")["seq"].to_pylist() == (10_000 + np.argsort(-score)[:5]).tolist()


# --- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ({"algorithm": "sma", "score": lambda columns: columns["x"]}, "whose rise and fall"),
        ({"algorithm": "tma", "score": "3"}, "whose rise and fall"),
        ({"algorithm": "strict+strict(grid=3)", "score": "x * y"}, "linear() or distance()"),
        ({"algorithm": "snn", "score": sb.linear({"x": 1.0})}, "needs a score given by distance()"),
        ({"algorithm": "relaxed+strict(grid=3)", "window": sb.TimeWindow(10, 1)}, "CountWindow"),
        ({"algorithm": "relaxed+strict(grid=3)", "where": {"x": (0, 1)}}, "no where"),
        ({"algorithm": "relaxed+strict(grid=3)", "emit": "snapshots"}, "another emit"),
        ({"algorithm": "sma(grid=0)"}, "1 to 1000"),
        ({"algorithm": "sma(spare=-1)"}, "0 to 100"),
        ({"algorithm": "tma(spare=1)"}, "not an option"),
    ],
)
def test_what_a_grid_cannot_answer_is_refused_where_it_is_asked(given_: dict[str, Any], text: str) -> None:
    asked: dict[str, Any] = {"k": 2, "score": sb.distance({"x": 0.0, "y": 0.0}), "window": sb.CountWindow(10), **given_}
    with pytest.raises(sb.QueryError) as problem:
        sb.TopK(name="q", **asked)
    assert text in str(problem.value)


@pytest.mark.parametrize(("size", "slide"), [(8000, 4000), (4000, 4000), (6000, 1500)])
@pytest.mark.parametrize("order", ["desc", "asc"])
def test_a_first_window_of_many_rows_makes_no_skyband_large(size: int, slide: int, order: str) -> None:
    generator, names = np.random.default_rng(4), ("x", "y")
    crowd, weights = Crowd(names, 6), generator.random((70, 2))
    scores = [sb.linear(dict(zip(names, one, strict=True))) for one in weights.tolist()]
    crowd.add(*(Asked(one, order, 20, size, slide, "sma", options={"spare": 0.5}) for one in scores))
    room = crowd.state.marks[:, bands.ROOM].copy()
    rows = np.round(generator.random((2, 5 * size)), 2)  # many are equal
    best: list[list[int]] = [[] for _ in scores]
    for begin in range(0, rows.shape[1], slide // 2):
        push(crowd, rows[:, begin : begin + slide // 2])
        crowd.check_invariants()
        if begin + slide // 2 == slide:
            assert (crowd.state.marks[:, bands.ROOM] == room).all()
        if crowd.seen % slide == 0:  # a window ends: until the next does, its answer stays
            since = max(crowd.seen - size, 0)
            window = rows[:, since : crowd.seen]
            turned = [(0.0 + a * window[0] + b * window[1]) * (1 if order == "desc" else -1) for a, b in weights]
            best = [(since + np.lexsort((np.arange(len(one)), one))[::-1][:20]).tolist() for one in turned]
        for number, wanted in enumerate(best):
            assert crowd.tops.ordinal[number, : crowd.tops.count[number]].tolist() == wanted

"""The K-skyband of pairs: against all pairs sorted, between algorithms, the paper's worked example, what a query may say."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from skyband.algorithms import TABLE, build_pairs
from skyband.algorithms.pairs.contract import PairStructure, Scoring
from skyband.kernels.pairs import state as pairs_state
from skyband.kernels.pairs import tree as pairs_tree
from skyband.kernels.tables import SAME
from skyband.schedule import count_windows, in_order_of_end
from skyband.scores.pair_score import PairDoor, score_tree, where_tree

HERE = Path(__file__).parent
EXACT = [entry.name for entry in TABLE if entry.family == "pairs" and entry.exact]
FAST = ["scase", "pairs-ta"]
Query = tuple[int, int, int]  # size, slide, k
Answer = tuple[int, int, list[tuple[float, int, int]]]  # query, end, (turned score, a, b) by rank


def scores_of(points: np.ndarray, b: int, a: slice, metric: str) -> np.ndarray:
    """The distance of row b to older ones, column by column from the left."""
    apart = np.abs(points[:, a] - points[:, b : b + 1])
    terms = apart * apart if metric == "l2" else apart
    total = terms[0]
    for term in terms[1:]:
        total = total * term if metric == "product" else total + term
    return np.sqrt(total) if metric == "l2" else total


def expected(points: np.ndarray, metric: str, order: str, queries: list[Query]) -> list[Answer]:
    """Every answer, by sorting all pairs of every window."""
    sign = 1.0 if order == "desc" else -1.0
    with np.errstate(all="ignore"):
        turned = [sign * scores_of(points, b, slice(0, b), metric) for b in range(points.shape[1])]
    found: list[Answer] = []
    for q, (size, slide, k) in enumerate(queries):
        for end in range(slide, points.shape[1] + 1, slide):
            first = max(end - size, 0)
            pairs = [(turned[b][a], a, b) for b in range(first, end) for a in range(first, b) if not math.isnan(turned[b][a])]
            pairs.sort(key=lambda pair: (-pair[0], -pair[1], -pair[2]))
            found.append((q, end, [(float(score), a, b) for score, a, b in pairs[:k]]))
    return sorted(found, key=lambda answer: (answer[1], answer[0]))


def feed(
    structure: PairStructure,
    points: np.ndarray,
    queries: list[Query],
    cuts: list[int],
    check: bool = True,
    before: list[Answer] | None = None,
) -> list[Answer]:
    """Hand rows over in pieces; every answer, SAME resolved, which may mean one of those `before`."""
    last: dict[int, list[tuple[float, int, int]]] = {q: [] for q in range(len(queries))}
    last |= {q: top for q, _, top in before or []}
    answers: list[Answer] = []
    for upto in [*cuts, points.shape[1]]:
        fed = structure.next
        if upto <= fed:
            continue
        windows = in_order_of_end(
            [count_windows(q, size, slide, 0, fed, upto, last_only=False) for q, (size, slide, _) in enumerate(queries)]
        )
        ahead = min((upto // slide + 1) * slide - size for size, slide, _ in queries)
        reach = np.minimum.accumulate(np.append(windows.first, max(ahead, 0))[::-1])[::-1].copy()
        rows = np.ascontiguousarray(points[:, fed:upto])
        lent = rows.copy()
        sides = np.where(np.isnan(rows).any(axis=0), 0, 3).astype(np.uint8)
        for start, stop, results in structure.advance(lent, lent, sides, windows, reach):
            for at in range(start, stop):
                q = int(windows.query[at])
                if results.size[at] != SAME:
                    span = slice(int(results.begin[at]), int(results.begin[at] + results.size[at]))
                    columns = (results.score[span].tolist(), results.a[span].tolist(), results.b[span].tolist())
                    last[q] = list(zip(*columns, strict=True))
                answers.append((q, int(windows.end[at]), last[q]))
        assert np.array_equal(lent, rows, equal_nan=True), "the rows were written to"
        if check:
            structure.check_invariants()
    return answers


def made(name: str, columns: int, metric: str, order: str, queries: list[Query], **options: Any) -> PairStructure:
    def plain(older: np.ndarray, newer: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return scores_of(np.column_stack([older, newer]), older.shape[1], slice(0, older.shape[1]), metric)

    structure = build_pairs(name, Scoring(order, columns, columns, metric, plain=plain), **options)
    for _, _, k in queries:
        structure.add(k, watched=True, first=0)
    return structure


values = st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.5, -1.0, 1e-170, 1e200, math.inf, -math.inf, math.nan])


@pytest.mark.parametrize("name", EXACT)
@given(data=st.data())
def test_answers_are_those_of_sorting_all_pairs(name: str, data: st.DataObject) -> None:
    columns, rows = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 30))
    points = np.array(data.draw(st.lists(st.lists(values, min_size=rows, max_size=rows), min_size=columns, max_size=columns)))
    metric, order = data.draw(st.sampled_from(["l1", "l2", "product"])), data.draw(st.sampled_from(["asc", "desc"]))
    size = data.draw(st.integers(1, 20))
    queries = [(size, data.draw(st.integers(1, size)), data.draw(st.integers(1, 12)))]
    if build_pairs(name, Scoring(order, 1, 1, metric, plain=lambda a, b: a[0])).shares and data.draw(st.booleans()):
        queries += [(size + 3, 2, 4), (max(size - 3, 1), 1, 20)]
    answers = expected(points, metric, order, queries)
    cuts = sorted(data.draw(st.lists(st.integers(0, rows), max_size=4)))
    assert feed(made(name, columns, metric, order, queries), points, queries, cuts) == answers
    assert feed(made(name, columns, metric, order, queries), points, queries, list(range(1, rows))) == answers


def points_of(shape: str, columns: int, rows: int, seed: int = 0) -> np.ndarray:
    g = np.random.default_rng(seed)
    if shape == "uniform":
        return g.random((columns, rows))
    if shape == "correlated":
        return g.random(rows) + 0.05 * g.standard_normal((columns, rows))
    if shape == "anticorrelated":
        points = g.random((columns, rows))
        return points - points.mean(axis=0) + 0.5 + 0.02 * g.standard_normal(rows)
    if shape == "tied":
        return g.integers(0, 4, (columns, rows)).astype(float)
    if shape == "drifting":
        return np.arange(rows) * 1e-3 + 0.01 * g.random((columns, rows))
    assert shape == "falling apart"  # every pair is better than all before it
    return np.tile(np.arange(rows, dtype=float) ** 2, (columns, 1))


SHAPES = ("uniform", "correlated", "anticorrelated", "tied", "drifting")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("metric", ["l1", "l2", "product"])
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_rows_in_boxes_give_the_answers_of_a_scan(shape: str, metric: str, order: str) -> None:
    k = 1 if (shape, order) == ("drifting", "desc") else 8  # old pairs are the best there: k of every row stay
    points, queries = points_of(shape, 3, 5200, 1), [(4000, 13, k), (1500, 50, 1), (100, 100, k)]
    boxes = made("pairs-ta", 3, metric, order, queries)
    scan = made("scase", 3, metric, order, queries)
    assert feed(boxes, points, queries, [900, 901, 3000, 4500], check=False) == feed(scan, points, queries, [4100], check=False)
    assert boxes.candidates == scan.candidates
    if scan.candidates < 1000:  # where old pairs are the best, nearly all stay, and checking each takes long
        boxes.check_invariants()
    if shape == "uniform" and metric == "l1" and order == "asc":
        assert boxes.figures()["scored"] < scan.figures()["scored"] / 2
    if shape == "uniform" and metric == "l1" and order == "desc":  # few blocks reach far enough: a scan passes over the others
        assert scan.figures()["scored"] < 5200 * 4000 / 4


@pytest.mark.parametrize("shape", (*SHAPES, "falling apart"))
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pairs_that_join_late_are_not_missed(shape: str, order: str) -> None:
    """Long enough for rows to grow old, against the rival that looks at every pair when it comes."""
    rows = 420 if shape in ("drifting", "falling apart") else 1100  # where old pairs are the best the rival takes long
    points, queries = points_of(shape, 2, rows, 4), [(700, 1, 3), (300, 7, 12), (90, 5, 5), (1000, 50, 30)]
    slow = feed(made("pairs-basic", 2, "l1", order, queries), points, queries, [], check=False)
    for name in FAST:
        assert feed(made(name, 2, "l1", order, queries), points, queries, [140, 141, 400], check=False) == slow


ODD = ("a.x - 2 * b.y", "abs(a.x - b.x) / abs(a.y - b.y)", "where(a.v == b.v, a.x * b.y, abs(a.y - b.y))")


@pytest.mark.parametrize("score", ODD)
@pytest.mark.parametrize("where", [None, "a.v == 0", "b.v == 0", "a.v == 0 and b.v > 7", "a.v != b.v and a.v < 3"])
def test_the_same_of_scores_that_are_not_symmetric(score: str, where: str | None) -> None:
    g = np.random.default_rng(8)
    rows = {"x": g.random(2600), "y": np.round(g.random(2600), 2), "v": g.integers(0, 40 if where == "a.v == 0" else 9, 2600)}
    tables = []
    for name in ("scase", "pairs-basic"):
        queries = [
            sb.TopKPairs(name=f"q{k}", k=k, score=score, where=where, window=sb.CountWindow(n, s), algorithm=name, order=order)
            for k, n, s, order in ((3, 900, 1, "asc"), (8, 300, 20, "asc"), (5, 600, 3, "desc"))
        ]
        monitor = sb.Monitor(queries)
        tables.append([monitor.push({key: column[i : i + 700] for key, column in rows.items()}) for i in range(0, 2600, 700)])
    assert sum(len(table) for table in tables[0]) > 50
    assert tables[0] == tables[1]


@pytest.mark.parametrize("name", EXACT)
def test_pairs_that_get_better_and_better_or_worse_and_worse(name: str) -> None:
    for order in ("asc", "desc"):
        points, queries = points_of("falling apart", 1, 60), [(40, 3, 7)]
        answers = expected(points, "l1", order, queries)
        assert feed(made(name, 1, "l1", order, queries), points, queries, [20, 41]) == answers
        assert feed(made(name, 1, "l1", order, queries), -points, queries, [5]) == expected(-points, "l1", order, queries)


@pytest.mark.parametrize("name", FAST)
def test_bands_that_outgrow_their_room(name: str) -> None:
    """Where the best pairs are the oldest, K of nearly every row stay: far more than there is room for at first."""
    points, queries = np.sqrt(np.cumsum(1.0 / np.arange(1, 261)))[None, :], [(180, 65, 40)]
    structure = made(name, 1, "l1", "desc", queries)
    assert feed(structure, points, queries, [100], check=False) == expected(points, "l1", "desc", queries)
    assert structure.candidates > 1000


@pytest.mark.parametrize("name", [name for name in EXACT if name != "pairs-oracle"])
@given(data=st.data())
def test_a_snapshot_at_any_point_goes_on(name: str, data: st.DataObject) -> None:
    points, queries = points_of("tied", 2, 40, data.draw(st.integers(0, 5))), [(15, 4, 6)]
    cut = data.draw(st.integers(1, 39))
    one = made(name, 2, "l1", "asc", queries)
    before = feed(one, points[:, :cut], queries, [])
    other = made(name, 2, "l1", "asc", [])
    other.restore(bytes(bytearray(one.snapshot())))
    other.check_invariants()
    rest = feed(one, points, queries, [], before=before)
    assert before + rest == expected(points, "l1", "asc", queries)
    assert feed(other, points, queries, [], before=before) == rest


@pytest.mark.parametrize("rows", [3000, 6000])
def test_a_snapshot_with_rows_in_boxes_goes_on(rows: int) -> None:
    points, queries = points_of("uniform", 2, rows + 1000), [(2500, 1, 10)]
    one, other = made("pairs-ta", 2, "l1", "asc", queries), made("pairs-ta", 2, "l1", "asc", [])
    feed(one, points[:, :rows], queries, [], check=False)
    other.restore(one.snapshot())
    assert feed(one, points, queries, [], check=False)[-1] == feed(other, points, queries, [], check=False)[-1]
    other.check_invariants()


def test_answers_are_the_same_by_tree_and_by_list() -> None:
    for shape in SHAPES:
        points, queries = points_of(shape, 2, 700, 2), [(500, 1, 20), (60, 3, 7), (300, 10, 40)]
        by_list = made("scase", 2, "l1", "asc", queries)
        by_tree = made("scase", 2, "l1", "asc", queries, answering="tree")
        assert feed(by_list, points, queries, [], check=False) == feed(by_tree, points, queries, [333], check=False)


# --- the paper's worked example ---------------------------------------------------------------------------------

# Figures 3 and 4: the 2-skyband p1 to p8, where pair i has the age i; scores that give the tree the text describes
FIGURE_3 = """
pair   p8  p7  p5  p6  p4  p1  p3  p2
age     8   7   5   6   4   1   3   2
score   1   2   3   4   5   6   7   8
"""


def test_the_tree_of_figure_4_and_example_1() -> None:
    names, ages, scores = (line.split()[1:] for line in FIGURE_3.split("\n")[1:4])
    structure: Any = made("scase", 1, "l1", "asc", [(10, 1, 2)])
    state = structure._state
    for place, (age, score) in enumerate(zip(ages, scores, strict=True)):
        state.band.score[place], state.band.a[place], state.band.b[place] = -float(score), 100 - int(age), 200
    state.marks[pairs_state.BAND] = len(names)
    pairs_tree.build(state)
    nodes = {names[state.tree.place[n]]: n for n in range(len(names))}
    tree = {
        name: tuple(
            names[state.tree.place[child]] if child >= 0 else None for child in (state.tree.left[n], state.tree.right[n])
        )
        for name, n in nodes.items()
    }
    assert state.tree.place[0] == names.index("p1")
    assert tree == {
        "p1": ("p5", "p2"), "p5": ("p7", "p6"), "p7": ("p8", None), "p8": (None, None), "p6": (None, None),
        "p2": ("p4", "p3"), "p3": (None, None), "p4": (None, None),
    }  # fmt: skip
    count = pairs_tree.find(state, 2, 100 - 7)  # the top-2 pairs of the last 7 rows
    assert [names[place] for place in state.tree.found[:count]] == ["p7", "p5"]


def test_the_skyband_is_as_small_as_theory_says() -> None:
    """A pair of age x outranks the x²/2 younger ones with probability 2/x²: K + 2K ln(N / √(2K)) pairs are expected."""
    size, k = 2000, 10
    structure = made("scase", 2, "l1", "asc", [(size, 500, k)])
    counts = []
    for seed in range(4):
        structure = made("scase", 2, "l1", "asc", [(size, 500, k)])
        feed(structure, points_of("uniform", 2, 2 * size, seed), [(size, 500, k)], [], check=False)
        counts.append(structure.candidates)
    k = int(structure._state.marks[pairs_state.K])  # type: ignore[attr-defined]
    theory = k + 2 * k * math.log(size / math.sqrt(2 * k))
    assert abs(np.mean(counts) / theory - 1) < 0.25, (counts, theory)


# --- scores -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("abs(a.x - b.x)", ("l1", ("x",))),
        ("abs(b.x - a.x) + abs(a.y - b.y)", ("l1", ("x", "y"))),
        ("abs(a.x - b.x) * abs(a.y - b.y) * abs(b.z - a.z)", ("product", ("x", "y", "z"))),
        ("sqrt((a.x - b.x) ** 2 + (b.y - a.y) * (b.y - a.y))", ("l2", ("x", "y"))),
        ("abs(a.x - b.y)", None),
        ("abs(a.x - a.x)", None),
        ("abs(a.x - b.x) - abs(a.y - b.y)", None),
        ("(a.x - b.x) * (a.y - b.y)", None),
        ("sqrt(abs(a.x - b.x))", None),
        ("a.x", None),
    ],
)
def test_distances_are_recognized(text: str, metric: Any) -> None:
    assert PairDoor(score_tree(text), None, "asc").metric == metric


def test_what_is_asked_of_one_side_is_told_from_what_is_asked_of_both() -> None:
    door = PairDoor(score_tree("a.x - b.x"), where_tree("a.v > 1 and (b.v < 2 and a.v != b.v) and b.x > 0"), "asc")
    assert str(door.side_condition("a.")) == "v > 1"
    assert str(door.side_condition("b.")) == "v < 2 and x > 0"
    assert str(door.pair_condition) == "a.v != b.v"
    assert door.columns == ("x", "v") and door.scored == ("x",)


def test_a_condition_on_one_side_saves_the_work_of_the_others_pairs() -> None:
    scored = {}
    for name, where in (("all", None), ("older", "a.v < 1"), ("newer", "b.v < 1"), ("neither", "a.v < 1 and b.v < 1")):
        monitor = sb.Monitor(
            [sb.TopKPairs(name="q", k=3, score="abs(a.x - b.x) + a.v", where=where, window=sb.CountWindow(200))]
        )
        monitor.push({"x": np.arange(1000) % 37, "v": np.arange(1000) % 10})
        scored[name] = monitor.stats("q")["scored"]
    assert scored["older"] < scored["all"] / 8 and scored["newer"] < scored["all"] / 8
    assert scored["neither"] < scored["all"] / 80


# --- what a query may say ---------------------------------------------------------------------------------------

WINDOW = sb.CountWindow(10)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"score": "abs(a.x - x)"}, "'x' without a side; write a.x"),
        ({"score": "abs(a.x - c.x)"}, "names the side 'c'; write a.x"),
        ({"score": "abs(a.x - b.x"}, "score: "),
        ({"score": lambda columns: 0}, "expression over a. and b."),
        ({"where": "x > 1"}, "where: it names the column 'x' without a side"),
        ({"where": {"a.x": (3, 1)}}, "is empty"),
        ({"where": 3}, "boolean expression"),
        ({"where": {"c.x": (0, 1)}}, "where: it names the side 'c'; write a.x"),
        ({"score": "abs(a.`PM2.5` - b.x)"}, "in backticks as a whole, as in `a.PM2.5`"),
        ({"score": "abs(`PM2.5` - b.x)"}, "if a column is called 'PM2.5', `a.PM2.5` or `b.PM2.5`"),
        ({"score": "`air quality`"}, "without a side; write `a.air quality` for the older row"),
        ({"where": {"PM2.5": (0, 1)}}, "if a column is called 'PM2.5', a.PM2.5 or b.PM2.5"),
        ({"k": 0}, "at least 1"),
        ({"k": 2.5}, "whole number"),
        ({"order": "up"}, "order must be one of"),
        ({"emit": "all"}, "emit must be one of"),
        ({"name": ""}, "needs a name"),
        ({"algorithm": "strict"}, "does not rank pairs"),
        ({"algorithm": "nonsense"}, "unknown algorithm"),
        ({"algorithm": "supreme"}, "answers nothing"),
        ({"algorithm": "pairs-ta", "score": "a.x * b.x"}, "needs a score that is a distance"),
        ({"algorithm": "pairs-ta", "score": "abs(a.x - b.x) - 1"}, "needs a score that is a distance"),
    ],
)
def test_a_wrong_query_is_refused_where_it_is_written(change: dict[str, Any], says: str) -> None:
    right: dict[str, Any] = {"name": "q", "k": 1, "score": sb.pair_distance(["x"]), "window": WINDOW}
    sb.TopKPairs(**right)
    with pytest.raises(sb.QueryError, match=says.replace(".", r"\.")):
        sb.TopKPairs(**{**right, **change})


@pytest.mark.parametrize(
    ("columns", "metric", "says"),
    [
        ([], "l1", "one or more columns"),
        ("x", "l1", "list of column names"),
        ({"x": 2.0, "y": 1.0}, "l1", "with weights, an expression"),
        ({"x", "y", "z"}, "l1", "list of column names"),
        (["x", "x"], "l1", "twice"),
        (["x"], "l3", "not known"),
        ([3], "l1", "names of one or more"),
    ],
)
def test_a_wrong_distance_is_refused(columns: Any, metric: str, says: str) -> None:
    with pytest.raises(sb.QueryError, match=says):
        sb.pair_distance(columns, metric)


def test_a_ranked_query_cannot_name_an_algorithm_for_pairs() -> None:
    with pytest.raises(sb.QueryError, match="ranks pairs of rows"):
        sb.TopK(name="q", k=1, score="x", window=WINDOW, algorithm="scase")


def test_columns_that_are_not_there_are_refused_and_nothing_changes() -> None:
    monitor = sb.Monitor([sb.TopKPairs(name="q", k=1, score="abs(a.x - b.z)", window=WINDOW)])
    with pytest.raises(sb.SchemaError, match="needs the column 'z'"):
        monitor.push({"x": [1.0, 2.0]})
    monitor.push({"x": [1.0, 2.0], "z": [5.0, 3.0]})
    assert monitor.top("q").column("score").to_pylist() == [2.0]
    with pytest.raises(sb.SchemaError, match="needs the column 'w'"):
        monitor.add(sb.TopKPairs(name="r", k=1, score="a.x - b.x", where="a.w > b.x", window=WINDOW))
    assert list(monitor.queries) == ["q"]


def test_text_is_no_number() -> None:
    monitor = sb.Monitor([sb.TopKPairs(name="q", k=1, score=sb.pair_distance(["x"]), window=WINDOW)])
    with pytest.raises(sb.SchemaError, match="as a number, but it is of type string"):
        monitor.push({"x": ["one", "two"]})


def test_more_pairs_asked_for_than_there_can_be() -> None:
    """All of them rank, and a window of one row has none."""
    many = sb.TopKPairs(name="many", k=10**9, score=sb.pair_distance(["x"], "l1"), window=sb.CountWindow(4))
    lone = sb.TopKPairs(name="lone", k=5, score=sb.pair_distance(["x"], "l1"), window=sb.CountWindow(1))
    monitor = sb.Monitor([many, lone])
    monitor.push({"x": [1.0, 2.0, 4.0, 8.0, 16.0]})
    assert monitor.top("many").column("score").to_pylist() == [2.0, 4.0, 6.0, 8.0, 12.0, 14.0]
    assert monitor.top("lone").num_rows == 0


def test_a_query_survives_json() -> None:
    query = sb.TopKPairs(
        name="q", k=3, score=sb.pair_distance(["x"], "product"), window=sb.TimeWindow("1 minute", "1 s"), where={"x": (0, None)}
    )
    from skyband.query import query_from_json

    assert query_from_json(query.to_json(), {}) == query


CASES = """
import numpy as np
from test_pairs_skyband import EXACT, expected, feed, made, points_of
assert __import__("numba").config.DISABLE_JIT
for name in EXACT:
    for shape in ("uniform", "tied"):
        points, queries = points_of(shape, 2, 50), [(20, 3, 4)]
        for metric in ("l1", "l2", "product"):
            answers = expected(points, metric, "asc", queries)
            assert feed(made(name, 2, metric, "asc", queries), points, queries, [7, 31]) == answers
    print(name)
"""


def test_every_algorithm_as_plain_python() -> None:
    """Kernels without compilation check every index and cannot write to read-only arrays."""
    paths = [str(HERE), str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run([sys.executable, "-c", CASES], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == EXACT

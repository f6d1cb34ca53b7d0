"""TSL: sorted lists, the threshold algorithm and views of k_max rows, against sorting and against a plain model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skyband as sb
from played import events_of, reloaded, top_of
from skyband.algorithms.spatial.asked import Asked
from skyband.algorithms.spatial.tsl import TSL, most_rows
from skyband.kernels.ranked.pruning import Answers
from skyband.kernels.spatial import sorted_lists
from skyband.kernels.spatial import tsl as kernel
from skyband.scores.expression import Call
from skyband.scores.formulas import Linear
from skyband.scores.score import as_tree
from test_crowd import ATTRIBUTES, Watched, batches, turned
from test_many_queries import Question, come_and_go


class WatchedTSL(Watched):
    """TSL in the place of a crowd: its windows are those of sorting."""

    crowd: Any

    def __init__(self) -> None:
        super().__init__(grid=0)
        self.crowd = TSL(ATTRIBUTES)

    def continued(self) -> None:
        fresh = TSL(ATTRIBUTES)
        for asked in self.crowd.asked:
            fresh.add(asked)
        fresh.restore(bytes(bytearray(self.crowd.snapshot())))
        assert fresh.snapshot() == self.crowd.snapshot()
        self.crowd = fresh
        fresh.check_invariants()


@st.composite
def linears(draw: st.DrawFn) -> Linear:
    """Any signs, some weights 0, some attributes not used."""
    names = draw(st.permutations(ATTRIBUTES))[: draw(st.integers(1, len(ATTRIBUTES)))]
    return sb.linear({name: draw(st.sampled_from([1.0, 0.5, -1.0, -2.0, 0.1, 0.0])) for name in names})


@st.composite
def questions(draw: st.DrawFn, size: int, slide: int) -> Asked:
    k = draw(st.integers(1, 6) | st.just(size + 1))
    return Asked(draw(linears()), draw(st.sampled_from(["asc", "desc"])), k, size, slide, "tsl")


@st.composite
def spans(draw: st.DrawFn) -> tuple[int, int]:
    """Size and slide, often with views smaller than the window."""
    size = draw(st.integers(1, 60))
    return size, draw(st.just(1) | st.integers(1, min(size, 7)) | st.integers(1, size))


# --- against sorting the window -------------------------------------------------------------------


@settings(max_examples=150)
@given(data=st.data())
def test_every_window_is_that_of_sorting(data: st.DataObject) -> None:
    watched = WatchedTSL()
    size, slide = data.draw(spans(), label="size and slide")
    for _ in range(data.draw(st.integers(1, 4), label="queries")):
        watched.add(data.draw(questions(size, slide)))
    for rows in data.draw(st.lists(batches(120), max_size=4), label="batches"):
        watched.push(rows)


@settings(max_examples=120)
@given(data=st.data())
def test_queries_come_and_go_and_snapshots_continue(data: st.DataObject) -> None:
    watched = WatchedTSL()
    size, slide = data.draw(spans(), label="size and slide")
    for _ in range(data.draw(st.integers(2, 9), label="calls")):
        asked = watched.crowd.asked
        call = data.draw(st.sampled_from(["add", "push", "push", "remove", "restore"]), label="call")
        if call == "add" and len(asked) < 5:
            watched.add(data.draw(questions(size, slide)))
        elif call == "remove" and asked:
            watched.remove(data.draw(st.integers(0, len(asked) - 1), label="number"))
        elif call == "restore":
            watched.continued()
        elif call == "push":
            watched.push(data.draw(batches(), label="rows"))
    watched.push(data.draw(batches(), label="rows"))


@settings(max_examples=50)
@given(data=st.data())
def test_batches_do_not_matter(data: st.DataObject) -> None:
    """One row at a time, all at once, or cut anywhere: the same answers, views and refills."""
    size, slide = data.draw(spans(), label="size and slide")
    asked = [data.draw(questions(size, slide)) for _ in range(data.draw(st.integers(1, 3), label="queries"))]
    rows = data.draw(batches(150), label="rows")
    cuts = sorted(data.draw(st.lists(st.integers(0, rows.shape[1]), max_size=6), label="cuts"))
    held = []
    for places in ([], cuts, list(range(1, rows.shape[1]))):
        watched = WatchedTSL()
        for one in asked:
            watched.add(one)
        for begin, stop in zip([0, *places], [*places, rows.shape[1]], strict=True):
            watched.push(rows[:, begin:stop])
        crowd = watched.crowd
        held.append((watched.last, [crowd.candidates(at) for at in range(len(asked))], crowd.searches))
    assert held[0] == held[1] == held[2]


@settings(max_examples=40)
@given(answers=st.integers(1, 4), room=st.integers(1, 3), data=st.data())
def test_answers_in_many_rounds(answers: int, room: int, data: st.DataObject) -> None:
    watched = WatchedTSL()
    size, slide = data.draw(spans(), label="size and slide")
    for _ in range(data.draw(st.integers(1, 5), label="queries")):
        watched.add(data.draw(questions(size, slide)))

    def tiny(tsl: TSL) -> Answers:
        places = room * tsl.tops.score.shape[1]
        columns = [np.empty(answers, np.int64) for _ in range(4)]
        return Answers(*columns, np.empty(places), np.empty(places, np.int64), np.zeros(2, np.int64))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TSL, "_answers", tiny)
        for rows in data.draw(st.lists(batches(), max_size=3), label="batches"):
            watched.push(rows)


@pytest.mark.parametrize(("size", "slide"), [(1000, 7), (1000, 100), (1000, 1000), (300, 1)])
@pytest.mark.parametrize("stream", ["random", "falling", "rising", "growing", "constant", "tied", "infinite"])
def test_long_streams(size: int, slide: int, stream: str) -> None:
    """Many merges, drops and refills, at sizes where lists are walked in several turns."""
    generator = np.random.default_rng(1)
    drift = np.arange(4000.0) / 100
    rows = {
        "random": generator.random((3, 4000)),
        "falling": generator.random((3, 4000)) - drift,
        "rising": generator.random((3, 4000)) + drift,
        "growing": generator.random((3, 4000)) * drift,
        "constant": np.full((3, 4000), 0.25),
        "tied": generator.integers(0, 3, (3, 4000)).astype(float),
        "infinite": np.where(generator.random((3, 4000)) < 0.01, math.inf, generator.random((3, 4000))),
    }[stream]
    watched = WatchedTSL()
    for weights, k, order in (((1.0, 0.5, 2.0), 5, "desc"), ((1.0, -0.5, 0.0), 20, "asc"), ((0.0, -1.0, -1.0), 1, "desc")):
        watched.add(Asked(sb.linear(dict(zip("xyz", weights, strict=True))), order, k, size, slide, "tsl"))
    for begin in range(0, 4000, 450):
        watched.push(rows[:, begin : begin + 450])
    if stream in ("random", "falling") and slide < size:
        assert watched.crowd.searches > 0


# --- against a plain model ------------------------------------------------------------------------


class PlainTSL:
    """Section 3.2 with lists: a view of k to k_max rows, arrivals, then expirations, then perhaps a refill."""

    def __init__(self, k: int, most: int, size: int) -> None:
        self.k, self.most, self.size = k, most, size
        self.view: list[tuple[float, int]] = []
        self.rows: list[tuple[float, int]] = []  # of the window, those with a score
        self.refills = 0
        self.dropped = False  # some row of the window is not in the view

    def cycle(self, scores: Sequence[float], begin: int) -> None:
        for row, score in enumerate(scores, begin):
            if math.isnan(score):
                continue
            self.rows.append((score, row))
            if not self.dropped or (score, row) > min(self.view):
                self.view.append((score, row))
            if len(self.view) > self.most:
                self.view.remove(min(self.view))
            self.dropped = self.dropped or len(self.view) == self.most
        first = begin + len(scores) - self.size
        self.rows = [entry for entry in self.rows if entry[1] >= first]
        self.view = [entry for entry in self.view if entry[1] >= first]
        if len(self.view) < self.k and self.dropped:
            self.refills += 1
            self.view = sorted(self.rows, reverse=True)[: self.most]
            self.dropped = len(self.view) == self.most


@pytest.mark.parametrize("temper", ["random", "falling", "without some"])
@pytest.mark.parametrize(("k", "size", "slide"), [(1, 30, 1), (3, 40, 3), (20, 200, 10), (5, 50, 50)])
def test_views_are_those_of_the_paper(temper: str, k: int, size: int, slide: int) -> None:
    generator = np.random.default_rng(2)
    rows = generator.random((3, 2000))
    if temper == "falling":
        rows -= np.arange(2000) / 500
    if temper == "without some":
        rows[generator.random((3, 2000)) < 0.1] = math.nan
    asked = Asked(sb.linear({"x": 1.0, "z": -0.5}), "desc", k, size, slide, "tsl")
    tsl, plain = TSL(ATTRIBUTES), PlainTSL(k, most_rows(k), size)
    tsl.add(asked)
    values = turned(asked, rows)
    for begin in range(0, 2000 - slide + 1, slide):
        list(tsl.push(rows[:, begin : begin + slide]))
        plain.cycle(values[begin : begin + slide].tolist(), begin)
        assert (tsl.candidates(0), tsl.searches) == (len(plain.view), plain.refills), begin
    assert plain.refills > 0


VIEW = """
row score | view (k = 1, k_max = 4, window of 6 rows)
 0     5  | 0
 1     9  | 1 0
 2     3  | 1 0 2
 3     1  | 1 0 2 3
 4     8  | 1 4 0 2
 5     2  | 1 4 0 2
 6     0  | 1 4 2
 7     0  | 4 2
 8     0  | 4
 9     0  | 4
10     0  | 5 10 9 8
11     7  | 11 10 9
"""


def test_a_view_step_by_step() -> None:
    """Row 3 is pushed out by row 4, row 5 never enters, and both are missed: the view runs dry when row 4 leaves, and TA
    finds row 5 among the rows seen long before. Row 11 comes before row 5 goes, so that row 8 is lost."""
    tsl = TSL(("x",))
    tsl.add(Asked(sb.linear({"x": 1.0}), "desc", 1, 6, 1, "tsl"))
    for line in VIEW.strip().splitlines()[1:]:
        given_, wanted = line.split("|")
        list(tsl.push(np.array([[float(given_.split()[1])]])))
        assert tsl.views.ordinal[: tsl.candidates(0)].tolist() == [int(row) for row in wanted.split()], line
    assert tsl.searches == 1


def test_k_max_is_as_the_paper_tuned_it() -> None:
    assert [most_rows(k) for k in (1, 5, 10, 20, 50, 100)] == [4, 10, 20, 30, 70, 120]
    assert all(k < most_rows(k) <= most_rows(k + 1) for k in range(1, 3000))


# --- the threshold algorithm ----------------------------------------------------------------------


@pytest.mark.parametrize("signs", [(1.0, 1.0, 1.0), (1.0, -1.0, 0.5), (-1.0, 0.0, -2.0)])
def test_the_threshold_algorithm_takes_few_rows(signs: tuple[float, ...]) -> None:
    rows = np.random.default_rng(3).random((3, 50_000))
    tsl = TSL(ATTRIBUTES)
    tsl.add(Asked(sb.linear(dict(zip("xyz", signs, strict=True))), "desc", 5, 50_000, 1000, "tsl"))
    list(tsl.push(rows))
    assert tsl._lists is not None
    span = np.empty((3, 2, 2), np.int64)
    kernel.fill(tsl.views, tsl.questions, 0, tsl._lists, 0, span, np.empty((3, 2)), np.empty(3, np.int64))
    left = (span[:, :, 1] - span[:, :, 0]).sum(axis=1)
    for axis, sign in enumerate(signs):
        share = 1 - left[axis] / 50_000
        assert share == 0 if sign == 0 else sorted_lists.STEP / 50_000 <= share < 0.2
    tsl.check_invariants()


# --- through the monitor --------------------------------------------------------------------------


@given(data=st.data())
def test_a_monitor_answers_as_the_meaning_says(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 12))
    window = (size, data.draw(st.integers(1, size)))
    asked = [
        Question(
            f"q{number}",
            "linear",
            (data.draw(st.sampled_from([0.0, 1.0, 2.5])), data.draw(st.sampled_from([0.5, 1.5, -2.0]))),
            k=data.draw(st.integers(1, 4)),
            order=data.draw(st.sampled_from(["asc", "desc"])),
            emit=data.draw(st.sampled_from(["changes", "arrivals", "none"])),
            algorithm="tsl",
            where=None,
            window=window,
        )
        for number in range(data.draw(st.integers(1, 4)))
    ]
    come_and_go(data, asked)


def test_all_algorithms_over_points_agree() -> None:
    generator = np.random.default_rng(5)
    rows = dict(zip("xyz", generator.random((3, 5000)), strict=True))
    weights = generator.normal(size=(20, 3))
    found = []
    for algorithm in ("tsl", "tma", "sma"):
        monitor = sb.Monitor(
            [
                sb.TopK(
                    name=f"q{number}",
                    k=1 + number,
                    score=sb.linear(dict(zip("xyz", one, strict=True))),
                    window=sb.CountWindow(700, slide=30),
                    algorithm=algorithm,
                )
                for number, one in enumerate(weights.tolist())
            ]
        )
        parts = [monitor.push({name: column[at : at + 333] for name, column in rows.items()}) for at in range(0, 5000, 333)]
        found.append([events_of(part) for part in parts])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("k", [5, 12, 13, 20, 150])
def test_a_time_window_holds_more_rows_than_it_is_long(k: int) -> None:
    rows, asked = np.random.default_rng(k).random((2, 1500)), {"k": k, "score": sb.linear({"x": 1.0, "y": 0.5})}
    monitor = sb.Monitor(time="t")
    for algorithm in ("tsl", "oracle"):
        monitor.add(sb.TopK(name=algorithm, window=sb.TimeWindow(10, 1), algorithm=algorithm, **asked))
    for tick in range(30):
        x, y = rows[:, 50 * tick : 50 * tick + 50]
        monitor.push({"t": np.full(50, tick), "x": x, "y": y})
        assert monitor.top("tsl").equals(monitor.top("oracle"))
    assert len(monitor.top("tsl")) == k


def check_ticks(ticks: list[tuple[int, int]], emit: Any) -> None:
    """Windows of 1000, every 10, over so many rows at such a time, the last of them 10 later: so their slide closes. They
    score less and less: views run dry."""
    generator, asked = np.random.default_rng(3), {"k": 2, "score": sb.linear({"x": 1.0, "y": 0.5}), "emit": emit}
    monitor = sb.Monitor(time="t")
    for algorithm in ("tsl", "oracle"):
        monitor.add(sb.TopK(name=algorithm, window=sb.TimeWindow(1000, 10), algorithm=algorithm, **asked))
    for number, (rows, time) in enumerate(ticks):
        x, y = generator.random((2, rows)) / (1 + number)
        monitor.push({"t": np.append(np.full(rows - 1, time), time + 10), "x": x, "y": y})
        assert monitor.top("tsl").equals(monitor.top("oracle")), number
    for lane in monitor._lanes:
        if isinstance(structure := getattr(lane, "structure", None), TSL):
            structure.check_invariants()
            assert structure.searches > 0


def test_a_time_window_grows_beyond_what_its_lists_have_room_for() -> None:
    """Its rows so far move to longer lists, under their own ordinals."""
    check_ticks([(50 + 20 * number, 100 * number) for number in range(40)], "changes")


def test_a_slide_longer_than_ever_comes_when_a_full_time_window_has_left() -> None:
    """The longer lists are made for the rows that stay, not for those that were there."""
    busy = [(300, 10 * number) for number in range(100)]
    check_ticks([*busy, *((count, 5000 + 600 * at) for at, count in enumerate((2000, 2, 2000, 2, 2)))], "none")


@pytest.mark.parametrize("text", ["(0.5 + x) * (0.25 + y)", "0.5 * x ** 2 + 2.0 * y ** 2 - z"])
def test_expressions_are_bounded_by_what_is_left_of_the_lists(text: str) -> None:
    """Of any signs: squares rise at both ends of a list, products where both factors are negative too."""
    tsl, rows = TSL(ATTRIBUTES), np.random.default_rng(7).normal(size=(3, 2000))
    tree = as_tree(text)
    assert isinstance(tree, Call)
    tsl.add(Asked(tree, "desc", 5, 300, 20, "tsl"))
    for begin in range(0, 2000, 20):
        list(tsl.push(rows[:, begin : begin + 20]))
        tsl.check_invariants()
    x, y, z = rows[:, -300:]
    values = (0.5 + x) * (0.25 + y) if text.startswith("(") else 0.5 * x**2 + 2.0 * y**2 - z
    assert tsl.views.ordinal[:5].tolist() == (1700 + np.argsort(-values)[:5]).tolist() and tsl.searches > 0


SCORES = [
    "x",
    "x * y - z",
    "log(x) + abs(y - 1)",
    "min(x, y) * -z",
    "(x > 0) * y",
    "x % 0.7",
    "sin(x) / y",
    sb.product({"x": 0.5, "z": 0.25}),
    sb.distance({"x": 0.5, "y": 1.0}),
    sb.distance({"x": 0.5, "y": 1.0}, metric="l1"),
    sb.linear({"x": 1.0, "z": 0.0}),
]
REGIONS = [None, {"x": (0.0, 1.0)}, {"z": (None, 0.5), "y": (None, None)}, "y > 0 or z > 0", "not (z > 0)", "tag == 'a'"]


@settings(max_examples=60)
@given(data=st.data())
def test_any_score_without_choices_and_any_region(data: st.DataObject) -> None:
    """As the oracle says it, rows that lack a number among them."""
    size = data.draw(st.integers(2, 40), label="size")
    window = sb.CountWindow(size, slide=data.draw(st.integers(1, size), label="slide"))
    queries: list[sb.TopK] = []
    for at in range(data.draw(st.integers(1, 3), label="queries")):
        asked: dict[str, Any] = {
            "k": data.draw(st.integers(1, 4)),
            "score": data.draw(st.sampled_from(SCORES)),
            "order": data.draw(st.sampled_from(["asc", "desc"])),
            "where": data.draw(st.sampled_from(REGIONS)),
        }
        queries += [sb.TopK(name=f"{name}{at}", window=window, algorithm=name, **asked) for name in ("tsl", "oracle")]
    monitor = sb.Monitor(queries)
    generator = np.random.default_rng(data.draw(st.integers(0, 99), label="seed"))
    odd = data.draw(st.sampled_from([0.0, 0.1, 0.6]), label="share of odd numbers")
    for _ in range(4):
        rows = generator.choice([generator.normal(size=60), generator.integers(-1, 3, 60)], axis=0)
        columns = np.stack([rows, generator.normal(size=60), generator.integers(-2, 3, 60).astype(float)])
        strange = generator.random(columns.shape) < odd
        columns[strange] = generator.choice([math.nan, math.inf, -math.inf, 0.0], strange.sum())
        tags = generator.choice(["a", "b"], 60)
        monitor.push(dict(zip("xyz", columns, strict=True)) | {"tag": tags})
        for at in range(len(queries) // 2):
            assert top_of(monitor, f"tsl{at}") == top_of(monitor, f"oracle{at}")
            assert monitor.stats(f"tsl{at}")["nulls"] == monitor.stats(f"oracle{at}")["nulls"]
        for lane in monitor._lanes:
            lane.structure.check_invariants()  # type: ignore[attr-defined]
        monitor = reloaded(monitor)


# --- what is held, bad input ----------------------------------------------------------------------


def test_what_is_held_does_not_grow_with_the_stream() -> None:
    tsl, generator = TSL(ATTRIBUTES), np.random.default_rng(6)
    for number in range(5):
        tsl.add(Asked(sb.linear({"x": 1.0, "y": number - 2.0}), "desc", 3, 200, 10, "tsl"))
    held = []
    for _ in range(6):
        list(tsl.push(generator.random((3, 2000))))
        held.append((tsl.nbytes, len(tsl.snapshot()), len(tsl.needed())))
    assert len({(nbytes, needed) for nbytes, _, needed in held}) == 1 and held[0][2] == 200
    assert max(size for _, size, _ in held) < 1.1 * held[0][1]


def test_choices_are_refused_by_the_structure_too() -> None:
    tree = as_tree("where(x > 0, x, y)")
    assert isinstance(tree, Call)
    with pytest.raises(sb.QueryError, match=r"without where\(\), and, or"):
        TSL(("x", "y")).add(Asked(tree, "asc", 3, 20, 1, "tsl"))


def test_a_state_for_other_queries_is_refused() -> None:
    saved = TSL(("x",))
    saved.add(Asked(sb.linear({"x": 1.0}), "desc", 3, 20, 1, "tsl"))
    other = TSL(("x",))
    other.add(Asked(sb.linear({"x": 1.0}), "desc", 4, 20, 1, "tsl"))
    for target in (other, TSL(("x",)), TSL(("y",))):
        with pytest.raises(sb.StateError, match="other queries"):
            target.restore(saved.snapshot())


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ({"score": "where(x > 0, x, y)"}, "needs a score without where(), and, or"),
        ({"score": "x * (x > 0 or y > 0)"}, "needs a score without where(), and, or"),
        ({"score": lambda rows: rows["x"]}, "needs a score whose rise and fall over the columns can be told"),
        ({"score": "3"}, "needs a score whose rise and fall over the columns can be told"),
        ({"algorithm": "tsl(grid=3)"}, "'grid' is not an option of 'tsl'"),
    ],
)
def test_what_it_cannot_answer_is_refused_where_it_is_asked(given_: dict[str, Any], text: str) -> None:
    asked: dict[str, Any] = {"k": 2, "score": sb.linear({"x": 1.0}), "window": sb.CountWindow(10), "algorithm": "tsl", **given_}
    with pytest.raises(sb.QueryError) as problem:
        sb.TopK(name="q", **asked)
    assert text in str(problem.value)

"""Shared views: many queries over one score equal the sorted window, whatever the stream does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skyband as sb
from harness import Answer, answers_of, feed, plan_of
from skyband.algorithms import build
from skyband.algorithms.contract import Plan
from skyband.algorithms.ranked.shared import SharedViews
from skyband.kernels.live import live_rows
from skyband.kernels.ranked.ladder import LEAF, TAKEN
from skyband.kernels.tables import SAME, Ceilings, Windows
from skyband.schedule import all_count_windows, count_windows, in_order_of_end

Query = tuple[int, int, int]


@st.composite
def queries(draw: st.DrawFn, largest: int = 300) -> Query:
    size = draw(st.integers(1, largest))
    return size, draw(st.integers(1, size)), draw(st.integers(1, 20))


SCORES = st.one_of(
    st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0]), st.integers(-3, 3).map(float), st.floats(-1, 1, allow_nan=False)
)

STREAMS = {
    "uniform": lambda i: np.random.default_rng(5).random(len(i)),
    "few values": lambda i: np.random.default_rng(6).integers(0, 4, len(i)).astype(float),
    "constant": lambda i: np.full(len(i), 7.0),
    "rising": lambda i: i.astype(float),
    "falling": lambda i: -i.astype(float),
    "sine": lambda i: np.sin(i / 700.0),
    "saw": lambda i: (i % 997).astype(float),
    "never a score": lambda i: np.full(len(i), np.nan),
    "lowest of all": lambda i: np.full(len(i), -np.inf),
}

MIXED: tuple[Query, ...] = ((2000, 37, 5), (700, 7, 12), (90, 90, 3), (64, 1, 100), (1, 1, 1), (1500, 1000, 2), (3000, 450, 9))


def by_end(answers: list[Answer]) -> list[Answer]:
    """Answers in one order whatever the cuts: by end, then by query."""
    return sorted(answers, key=lambda answer: (answer[1], answer[0]))


@settings(max_examples=150, deadline=None)
@given(st.lists(SCORES, max_size=400), st.lists(queries(), min_size=1, max_size=6), st.data())
def test_equals_the_sorted_window(scores: list[float], asked: list[Query], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(scores)), max_size=5)))
    ref = answers_of("oracle", np.array(scores), *asked)
    comp = answers_of("shared", np.array(scores), *asked, cuts=cuts)
    assert by_end(comp) == by_end(ref)
    told = feed(build("shared", plan_of(*asked)), np.array(scores, float), cuts, changes=True)
    assert by_end(told) == by_end(ref)


@pytest.mark.parametrize("changes", [False, True], ids=["whole", "changes"])
@pytest.mark.parametrize("stream", STREAMS)
def test_every_kind_of_stream(stream: str, changes: bool) -> None:
    scores = STREAMS[stream](np.arange(8000))
    ref = answers_of("oracle", scores, *MIXED)
    shared = build("shared", plan_of(*MIXED))
    comp = feed(shared, scores, [1, 2, 1000, 1001, 5555], changes=changes)
    shared.check_invariants()
    assert by_end(comp) == by_end(ref)


@pytest.mark.parametrize("stream", ["uniform", "few values", "sine"])
def test_what_changes_in_small_slides_of_large_windows(stream: str) -> None:
    """Most windows change in a row or two, found without looking at the others."""
    scores = STREAMS[stream](np.arange(6000))
    asked = ((1000, 10, 100), (1500, 15, 60), (2000, 3, 7))
    told = feed(build("shared", plan_of(*asked)), scores, [2999], changes=True)
    assert by_end(told) == by_end(answers_of("oracle", scores, *asked))


@pytest.mark.parametrize("stream", ["uniform", "falling", "sine", "few values", "saw"])
def test_invariants_hold_all_the_way(stream: str) -> None:
    scores = STREAMS[stream](np.arange(6000))
    scores[::11] = np.nan
    shared = build("shared", plan_of(*MIXED))
    for upto in range(0, 6001, 499):
        feed(shared, scores[:upto])
        shared.check_invariants()


@pytest.mark.parametrize("ahead", [0, 300])
@pytest.mark.parametrize("stream", STREAMS)
def test_what_is_known_of_the_scores_changes_no_answer(stream: str, ahead: int) -> None:
    """Blocks below the floor are passed over; of the first `ahead` rows of each call nothing is known."""
    scores = STREAMS[stream](np.arange(8000))
    scores[1234:1300] = np.inf
    scores[::700] = np.nan
    size, slide, k = 2000, 37, 5
    tops: dict[str, list[list[int]]] = {"shared": [], "oracle": []}
    for name, found in tops.items():
        algorithm, begin = build(name, plan_of((size, slide, k))), 0
        for stop in (slide * 40, slide * 41, slide * 150, slide * 216):
            windows = count_windows(0, size, slide, 0, begin, stop, last_only=False)
            ceilings = Ceilings(ahead, live_rows(scores[begin + ahead : stop], k, False)[2])
            for start, until, results in algorithm.advance(begin, scores[begin:stop], windows, None, ceilings):
                for at in range(start, until):
                    span = slice(results.begin[at], results.begin[at] + max(0, results.size[at]))
                    found.append(results.ordinal[span].tolist() if results.size[at] != SAME else found[-1])
            begin = stop
    assert tops["shared"] == tops["oracle"]


@pytest.mark.parametrize("windows", [[(5000, 500)], [(5000, 1), (1000, 1000), (4100, 4100), (300, 300), (3000, 700)]])
@pytest.mark.parametrize("stream", STREAMS)
def test_rows_that_no_window_asks_for_change_no_answer(stream: str, windows: list[tuple[int, int]]) -> None:
    """Where only the last window of each push is answered, rows that the others of a push outrank are passed over."""
    asked = [
        sb.TopK(name=str(at), k=7 - at, score="x", window=sb.CountWindow(size, slide), emit="none", algorithm="shared")
        for at, (size, slide) in enumerate(windows)
    ]
    monitor, scores, seen, idle = sb.Monitor(asked), STREAMS[stream](np.arange(26_000)).astype(float), 0, 0
    scores[::701] = np.nan
    for rows in (4000, 1, 2050, 700, 1249, 5000, 37, 3963, 9000):
        monitor.push({"x": scores[seen : seen + rows]})
        seen += rows
        structure = monitor._lanes[0].structure  # type: ignore[attr-defined]
        structure.check_invariants()
        ring, taken = structure._state.ring, int(structure._state.cells[TAKEN])
        held = np.arange(max(0, taken - len(ring)), taken)
        idle += int((np.isnan(ring[held & (len(ring) - 1)]) & ~np.isnan(scores[held])).sum())
        for query in asked:
            assert isinstance(query.window, sb.CountWindow)
            end = seen // query.window.slide * query.window.slide
            first = max(end - query.window.size, 0)
            inside = np.arange(first, end)[~np.isnan(scores[first:end])]
            best = inside[np.lexsort((-inside, -scores[inside]))][: query.k]
            assert monitor.top(query.name)["seq"].to_pylist() == best.tolist(), (query, seen)
    assert idle > 0 or stream in ("falling", "never a score")


@given(
    st.lists(st.tuples(st.integers(1, 300), st.sampled_from([-1.0, -0.001, 0.0, 0.5])), min_size=1, max_size=12), queries(900)
)
@settings(max_examples=60, deadline=None)
def test_falling_runs_of_any_length(runs: list[tuple[int, float]], asked: Query) -> None:
    """A refill that begins with a falling run takes it as it is; rows behind it may be as good or better."""
    scores = np.concatenate([np.arange(length) * step for length, step in runs])
    assert by_end(answers_of("shared", scores, asked)) == by_end(answers_of("oracle", scores, asked))


def test_the_ladder_is_used() -> None:
    """A falling stream refills the view again and again, from leaves, nodes above them and both raw ends."""
    scores = -np.arange(30_000.0)
    asked = ((16_000, 900, 10), (2500, 333, 4))
    shared = build("shared", plan_of(*asked))
    comp = feed(shared, scores, cuts=[7000])
    shared.check_invariants()
    assert isinstance(shared, SharedViews)
    assert len(shared._state.node_count) >= 2 * 16_000 // int(shared._state.cells[LEAF])
    assert by_end(comp) == by_end(answers_of("oracle", scores, *asked))


@pytest.mark.parametrize("stream", ["uniform", "falling", "sine", "few values"])
def test_snapshot_in_the_middle(stream: str) -> None:
    scores = STREAMS[stream](np.arange(7000))
    for cut in (0, 1, 36, 2048, 5003):
        shared = build("shared", plan_of(*MIXED))
        before = feed(shared, scores[:cut])
        again = build("shared", plan_of(*MIXED))
        again.restore(shared.snapshot())
        again.check_invariants()
        assert by_end(before + feed(again, scores)) == by_end(answers_of("oracle", scores, *MIXED))


def test_results_come_in_rounds() -> None:
    """More answers than fit into one round of results: each round goes on where the last one stopped."""
    scores = np.arange(4000.0) % 1013
    asked = ((500, 1, 60), (300, 2, 100))
    assert by_end(answers_of("shared", scores, *asked)) == by_end(answers_of("oracle", scores, *asked))


def test_nothing_new_is_same() -> None:
    scores = np.array([9.0, 8.0, *[1.0] * 50])
    shared = build("shared", plan_of((60, 1, 2)))
    ends = np.arange(1, 53)
    windows = Windows(np.zeros(52, np.int64), ends, np.zeros(52, np.int64), ends, np.ones(52, bool))
    (answers,) = shared.advance(0, scores, windows)
    assert answers.results.size.tolist() == [1, 2, *[SAME] * 50]


def test_windows_of_unknown_size() -> None:
    """Time windows: widths vary, the ring grows with them, and rows are kept for the query that is asked rarely."""
    generator = np.random.default_rng(3)
    scores = generator.integers(0, 500, 20_000).astype(float)
    ends = np.unique(np.concatenate([generator.integers(1, 20_000, 120), [20_000]]))
    plan = Plan(ks=(7, 3), sizes=None, slides=None)
    rows: list[tuple[int, int, int]] = []
    firsts = [0, 0]
    for number, end in enumerate(ends.tolist()):
        for query in (0,) if number % 9 and end < 20_000 else (0, 1):
            firsts[query] = int(max(firsts[query], end - generator.integers(1, 9000)))
            rows.append((query, firsts[query], end))
    shared, oracle = build("shared", plan), build("oracle", plan)
    for part in np.array_split(np.arange(len(rows)), 15):
        query, first, end = (np.array([rows[i][column] for i in part], np.int64) for column in range(3))
        windows = Windows(query, end, first, end, np.ones(len(part), bool))
        told: list[list[tuple[list[float], list[int]]]] = []
        for algorithm in (shared, oracle):
            begin = algorithm.next
            last = [(top[:count].tolist(), row[:count].tolist()) for top, row, count in zip(*algorithm.tops, strict=True)]
            told.append([])
            for start, stop, results in algorithm.advance(begin, scores[begin : int(end[-1])], windows):
                for at in range(start, stop):
                    if results.size[at] != SAME:
                        span = slice(results.begin[at], results.begin[at] + results.size[at])
                        last[query[at]] = (results.score[span].tolist(), results.ordinal[span].tolist())
                    told[-1].append(last[query[at]])
            assert last == [
                (top[:count].tolist(), row[:count].tolist()) for top, row, count in zip(*algorithm.tops, strict=True)
            ]
        assert told[0] == told[1]
        shared.check_invariants()


def test_a_gap_forgets_everything() -> None:
    """Rows no window holds are left out: what was known is out of every window."""
    shared = build("shared", plan_of((4, 4, 2)))

    def ask(begin: int, scores: list[float], first: int) -> list[int]:
        end = begin + len(scores)
        windows = Windows(*(np.array([value]) for value in (0, end // 4, first, end, True)))
        for answers in shared.advance(begin, np.array(scores), windows):
            assert answers.results.size[0] != SAME
        return shared.tops.ordinal[0, : shared.tops.count[0]].tolist()

    assert ask(0, [5.0, 6.0, 7.0, 8.0], 0) == [3, 2]
    assert ask(96, [1.0, 2.0, np.nan, 0.0], 96) == [97, 96]
    assert ask(196, [np.nan] * 4, 196) == []


def test_memory_does_not_grow_with_the_stream() -> None:
    scores = np.random.default_rng(0).random(60_000)
    asked = ((3000, 30, 10), (500, 5, 20))
    shared = build("shared", plan_of(*asked))
    feed(shared, scores[:6000])
    held = shared.nbytes
    feed(shared, scores)
    assert shared.nbytes == held
    assert shared.candidates < 3000


def test_check_invariants_sees_a_wrong_view() -> None:
    shared = build("shared", plan_of((100, 10, 5)))
    feed(shared, np.random.default_rng(0).random(200))
    shared.check_invariants()
    shared._state.ranking[:2] = shared._state.ranking[1::-1]
    with pytest.raises(AssertionError):
        shared.check_invariants()


@given(st.lists(st.tuples(queries(3000), st.booleans()), min_size=2, max_size=5), *[st.integers(0, 5000)] * 3)
@settings(max_examples=60, deadline=None)
def test_windows_of_many_queries_are_listed_in_order(asked: list[tuple[Query, bool]], since: int, more: int, rows: int) -> None:
    """In one pass, and as if each query's windows were listed and all of them sorted."""
    spans, report = [(size, slide) for (size, slide, _), _ in asked], [told for _, told in asked]
    after, upto = since + more, since + more + rows
    comp = all_count_windows(spans, report, since, after, upto)
    each = [count_windows(q, *span, since, after, upto, last_only=not report[q]) for q, span in enumerate(spans)]
    ref = in_order_of_end(each)
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(comp, ref, strict=True))

"""The numbered clauses of `skyband.algorithms.contract`, for every ranked algorithm in the table, found by itself.

The expected answers are made here, by keeping a sorted list: no code is shared with what is checked. That inputs are
not written to is checked on read-only arrays as well, in test_without_jit.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streams
from harness import Answer, feed, floats, plan_of
from skyband.algorithms import TABLE, build, entry, load
from skyband.algorithms.contract import Plan, Ranked
from skyband.errors import StateError
from skyband.kernels.tables import SAME, Panes, Windows

RANKED = [row.name for row in TABLE if row.family == "ranked" and row.exact]
each_algorithm = pytest.mark.parametrize("name", RANKED)
each_over_time = pytest.mark.parametrize("name", [name for name in RANKED if "time" in entry(name).windows])

Triple = tuple[int, int, int]  # size, slide, k
Top = tuple[tuple[float, ...], tuple[int, ...]]  # scores, ordinals
GARBAGE = 1e300


def tops_of(scores: Sequence[float], bounds: list[tuple[int, int]], k: int) -> list[Top]:
    """The best k rows of each interval of rows; neither bound ever moves back."""
    window: list[tuple[float, int]] = []  # best first: (-score, -ordinal)
    begin = stop = 0
    found = []
    for first, end in bounds:
        for at in range(stop, end):
            if not math.isnan(scores[at]):
                insort(window, (-scores[at], -at))
        for at in range(begin, first):
            if not math.isnan(scores[at]):
                del window[bisect_left(window, (-scores[at], -at))]
        begin, stop = first, end
        best = window[:k]
        found.append((tuple(-score for score, _ in best), tuple(-ordinal for _, ordinal in best)))
    return found


def expected(scores: Sequence[float], *queries: Triple) -> list[Answer]:
    """Every answer of these count queries, in order of end, then of query."""
    found: list[Answer] = []
    for query, (size, slide, k) in enumerate(queries):
        ends = range(slide, len(scores) + 1, slide)
        bounds = [(max(end - size, 0), end) for end in ends]
        found += [(query, end, *top) for end, top in zip(ends, tops_of(scores, bounds, k), strict=True)]
    return sorted(found, key=lambda answer: (answer[1], answer[0]))


def served(name: str, queries: Sequence[Triple]) -> list[Triple]:
    """As many of the queries as one structure of this algorithm takes."""
    return list(queries) if load(name).shares else [queries[0]]


def made(name: str, queries: Sequence[Triple]) -> Ranked:
    return build(name, plan_of(*queries))


def continued(name: str, algorithm: Ranked) -> Ranked:
    """A fresh structure with this one's state, carried over as bytes."""
    fresh = build(name, algorithm.plan)
    fresh.restore(bytes(bytearray(algorithm.snapshot())))
    fresh.check_invariants()
    return fresh


def fed_in_pieces(algorithm: Ranked, scores: np.ndarray, cuts: Sequence[int]) -> list[Answer]:
    """All answers, the invariants checked after every call, and every array spoilt after it was handed over."""
    answers = []
    for upto in [*cuts, len(scores)]:
        lent = scores[:upto].copy()
        answers += feed(algorithm, lent)
        assert np.array_equal(lent, scores[:upto], equal_nan=True), "the scores were written to"
        lent[:] = GARBAGE
        algorithm.check_invariants()
    return answers


triples = st.tuples(streams.windows(), st.integers(1, 8)).map(lambda drawn: (*drawn[0], drawn[1]))


# --- clauses 1, 3, 4, 5, 8: answers, whatever the cuts, from borrowed arrays ---------------------------


@each_algorithm
@given(drawn=streams.scores(), queries=st.lists(triples, min_size=1, max_size=4), data=st.data())
def test_answers_are_those_of_sorting_however_cut(
    name: str, drawn: list[float | None], queries: list[Triple], data: st.DataObject
) -> None:
    scores, queries = floats(drawn), served(name, queries)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(scores)), max_size=8), label="cuts"))
    answers = expected(scores.tolist(), *queries)
    assert feed(made(name, queries), scores) == answers
    assert fed_in_pieces(made(name, queries), scores, cuts) == answers
    assert fed_in_pieces(made(name, queries), scores, range(1, len(scores))) == answers


LONGER = [(200, 1, 5), (200, 7, 20), (150, 150, 9), (64, 10, 100), (97, 13, 1)]


@each_algorithm
@pytest.mark.parametrize("shape", sorted(streams.SHAPES))
def test_longer_streams_of_every_shape(name: str, shape: str) -> None:
    scores = streams.shaped(shape, 900)
    for query in LONGER:
        assert fed_in_pieces(made(name, [query]), scores, streams.cuts_of(900)) == longer_answers(shape, query), query
    if load(name).shares:
        assert fed_in_pieces(made(name, LONGER), scores, streams.cuts_of(900, seed=1)) == longer_answers(shape, *LONGER)


@cache
def longer_answers(shape: str, *queries: Triple) -> list[Answer]:
    """What every algorithm must say."""
    return expected(streams.shaped(shape, 900).tolist(), *queries)


@cache
def larger_stream(query: Triple) -> tuple[np.ndarray, list[Answer]]:
    """Random scores with ties and NaN, and the answers that all algorithms must agree on."""
    size, slide, _ = query
    scores = streams.shaped("random", max(size * 3 if slide > 1 else size * 2, 3000), seed=5)
    scores[::11] = np.round(scores[::11], 1)
    scores[::31] = math.nan
    return scores, expected(scores.tolist(), query)


@each_algorithm
@pytest.mark.parametrize("query", [(5000, 100, 50), (1000, 1, 100), (4000, 4000, 3), (999, 70, 1200)], ids=str)
def test_all_algorithms_agree_on_a_larger_stream(name: str, query: Triple) -> None:
    scores, answers = larger_stream(query)
    assert feed(made(name, [query]), scores) == answers


@pytest.mark.slow
@each_algorithm
@pytest.mark.parametrize("shape", sorted(streams.SHAPES))
def test_long_streams_of_every_shape(name: str, shape: str) -> None:
    scores, cuts = streams.shaped(shape, 30_000, seed=2), streams.cuts_of(30_000)[:200]
    for query in [(5000, 10, 50), (3000, 1, 10), (4096, 1000, 300), (1777, 100, 7)]:
        assert fed_in_pieces(made(name, [query]), scores, cuts) == expected(scores.tolist(), query), query


# --- clauses 2, 3 on windows of uneven numbers of rows, as time gives them -----------------------------


def time_windows(times: Sequence[int], size: int, slide: int) -> list[tuple[int, int, int]]:
    """(number, first, end) of every window to report over sorted times: those with rows and the first one without."""
    found, end, held = [], None, False
    while True:
        if held:
            end += slide
        else:
            after = bisect_left(times, end) if end is not None else 0
            if after == len(times):
                return found
            end = (times[after] // slide + 1) * slide
        first, stop = bisect_left(times, end - size), bisect_left(times, end)
        held = stop > first
        found.append((end // slide, first, stop))


def time_panes(times: Sequence[int], size: int, slide: int, begin: int, stop: int) -> Panes:
    """Runs of rows of the same windows."""
    keys = [(times[at] // slide + 1, (times[at] + size) // slide + 1) for at in range(begin, stop)]
    starts = [at for at in range(len(keys)) if at == 0 or keys[at] != keys[at - 1]]
    columns = [[begin + at for at in starts], [keys[at][0] for at in starts], [keys[at][1] for at in starts]]
    return Panes(*(np.array(column, np.int64) for column in columns))


def asked(windows: Sequence[tuple[int, int, int]], report: bool = True) -> Windows:
    number, first, end = (np.array(column, np.int64) for column in zip(*windows, strict=True))
    return Windows(np.zeros(len(windows), np.int64), number, first, end, np.full(len(windows), report))


def current(algorithm: Ranked) -> Top:
    count = int(algorithm.tops.count[0])
    return tuple(algorithm.tops.score[0, :count].tolist()), tuple(algorithm.tops.ordinal[0, :count].tolist())


def answer_windows(
    name: str, scores: np.ndarray, times: list[int], size: int, slide: int, k: int, together: int, report: bool = True
) -> list[Top]:
    """The answers over time windows, `together` of them asked at once; only the last of each call unless `report`."""
    algorithm = build(name, Plan(ks=(k,), sizes=None, slides=None))
    windows, answers = time_windows(times, size, slide), []
    for at in range(0, len(windows), together):
        part = windows[at : at + together]
        begin, stop = algorithm.next, part[-1][2]
        panes = time_panes(times, size, slide, begin, stop) if algorithm.wants_panes else None
        for start, until, results in algorithm.advance(begin, scores[begin:stop].copy(), asked(part, report), panes):
            for place in range(start, until):
                if not report:
                    continue
                if results.size[place] == SAME:
                    answers.append(answers[-1] if answers else ((), ()))
                else:
                    span = slice(int(results.begin[place]), int(results.begin[place] + results.size[place]))
                    answers.append((tuple(results.score[span].tolist()), tuple(results.ordinal[span].tolist())))
        algorithm.check_invariants()
        if report:
            assert current(algorithm) == answers[-1]
        else:
            answers.append(current(algorithm))
        algorithm = continued(name, algorithm) if at % 2 else algorithm
    return answers


@each_over_time
@given(drawn=streams.scores(), window=streams.windows(), k=st.integers(1, 6), together=st.integers(1, 9), data=st.data())
def test_windows_of_uneven_numbers_of_rows(
    name: str, drawn: list[float | None], window: tuple[int, int], k: int, together: int, data: st.DataObject
) -> None:
    scores, times = floats(drawn), sorted(data.draw(streams.times(len(drawn)), label="times"))
    bounds = [(first, end) for _, first, end in time_windows(times, *window)]
    answers = tops_of(scores.tolist(), bounds, k)
    assert answer_windows(name, scores, times, *window, k, together) == answers
    last = [answers[min(at + together, len(answers)) - 1] for at in range(0, len(answers), together)]
    assert answer_windows(name, scores, times, *window, k, together, report=False) == last


@each_over_time
@pytest.mark.parametrize("shape", sorted(streams.SHAPES))
def test_longer_streams_in_bursts_and_gaps(name: str, shape: str) -> None:
    scores, times, answers = bursts_and_gaps(shape)
    for (size, slide, k), tops in answers.items():
        assert answer_windows(name, scores, times, size, slide, k, 17) == tops, (size, slide, k)


@cache
def bursts_and_gaps(shape: str) -> tuple[np.ndarray, list[int], dict[Triple, list[Top]]]:
    """Scores, times, and the answers of some windows: the same for every algorithm."""
    scores, answers = streams.shaped(shape, 1200, seed=3), {}
    times = sorted(np.random.default_rng(4).choice(np.repeat([1, 5, 5, 5, 11, 700, 703, 1500], 150), 1200).tolist())
    times = [time + at // 3 for at, time in enumerate(times)]
    for size, slide, k in [(90, 10, 5), (70, 30, 40), (333, 1, 3), (5, 5, 2)]:
        bounds = [(first, end) for _, first, end in time_windows(times, size, slide)]
        answers[size, slide, k] = tops_of(scores.tolist(), bounds, k)
    return scores, times, answers


@each_algorithm
def test_rows_before_a_gap_are_forgotten(name: str) -> None:
    """Clause 2: rows that no later window holds may be left out."""
    scores = streams.shaped("random", 400, seed=6)
    size, slide, _ = query = (40, 10, 6)
    algorithm = made(name, [query])
    feed(algorithm, scores[:100])
    begin, end = 260, 300
    windows = asked([(end // slide, begin, end)])
    panes = time_panes(range(400), size, slide, begin, end) if algorithm.wants_panes else None
    for _ in algorithm.advance(begin, scores[begin:end].copy(), windows, panes):
        pass
    algorithm.check_invariants()
    answers = [answer for answer in expected(scores.tolist(), query) if answer[1] >= end]
    assert (0, end, *current(algorithm)) == answers[0]
    assert feed(algorithm, scores) == answers[1:]


@each_algorithm
def test_a_gap_before_rows_without_a_score_empties_the_answer(name: str) -> None:
    scores = np.concatenate([streams.shaped("random", 100, seed=6), np.full(200, math.nan)])
    algorithm = made(name, [(40, 10, 6)])
    feed(algorithm, scores[:100])
    assert current(algorithm)[1]
    windows = asked([(30, 260, 300)])
    panes = time_panes(range(300), 40, 10, 260, 300) if algorithm.wants_panes else None
    for _ in algorithm.advance(260, scores[260:300].copy(), windows, panes):
        pass
    assert current(algorithm) == ((), ())


# --- clause 6: snapshots --------------------------------------------------------------------------------


RESTORED = ["random", "tied", "falling", "infinite"]


@each_algorithm
@pytest.mark.parametrize("shape", RESTORED)
def test_a_snapshot_at_every_point_continues_equally(name: str, shape: str) -> None:
    """One structure is restored at every point; another goes on, and from every fourth point, of each shape others, a restored
    one goes on to the end."""
    scores = streams.shaped(shape, 70, seed=8)
    queries = served(name, [(17, 3, 4), (23, 1, 6), (10, 10, 2)])
    answers = expected(scores.tolist(), *queries)
    carried, running, given_out = made(name, queries), made(name, queries), 0
    for upto in range(len(scores) + 1):
        if upto % len(RESTORED) == RESTORED.index(shape):
            rest = feed(continued(name, running), scores)
            assert rest == answers[given_out:], f"restored after {upto} rows"
        new = feed(running, scores[:upto])
        assert feed(carried, scores[:upto]) == new
        carried = continued(name, carried)
        given_out += len(new)
    assert given_out == len(answers)


@each_algorithm
def test_a_snapshot_changes_nothing(name: str) -> None:
    scores = streams.shaped("tied", 60, seed=9)
    algorithm = made(name, [(20, 3, 4)])
    feed(algorithm, scores[:30])
    assert algorithm.snapshot() == algorithm.snapshot()
    assert continued(name, algorithm).snapshot() == algorithm.snapshot()


def other_than(name: str) -> str:
    return next(other for other in RANKED if load(other) is not load(name))


@each_algorithm
def test_a_damaged_or_foreign_snapshot_is_refused(name: str) -> None:
    scores = streams.shaped("random", 60, seed=10)
    algorithm = made(name, [(20, 3, 4)])
    feed(algorithm, scores[:33])
    good = algorithm.snapshot()
    bad = [b"", b"\0" * 200, good[:-1], good[: len(good) // 2], good[:20], made(other_than(name), [(20, 3, 4)]).snapshot()]
    bad += [good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :] for at in range(0, len(good), max(1, len(good) // 40))]
    target = continued(name, algorithm)
    for data in bad:
        with pytest.raises(StateError):
            target.restore(data)
    assert feed(target, scores) == feed(algorithm, scores), "a refused snapshot left a mark"


# --- clause 7: memory ------------------------------------------------------------------------------------


@each_algorithm
@pytest.mark.parametrize("shape", ["random", "rising", "falling", "sinusoidal", "constant", "nan-ridden"])
def test_memory_depends_on_the_window_not_on_the_stream(name: str, shape: str) -> None:
    size, slide, k = 200, 4, 10
    scores = streams.shaped(shape, 30 * size)
    algorithm = made(name, [(size, slide, k)])
    held = []
    for windows in range(1, 31):
        feed(algorithm, scores[: windows * size], cuts=range((windows - 1) * size, windows * size, 37))
        held.append((algorithm.nbytes, len(algorithm.snapshot()), algorithm.candidates))
    early = [max(column) for column in zip(*held[:3], strict=True)]
    late = [max(column) for column in zip(*held[3:], strict=True)]
    assert late[0] <= 2 * early[0], f"bytes grew from {early[0]} to {late[0]}"
    assert late[1] <= 2 * early[1] + 1000, f"snapshots grew from {early[1]} to {late[1]}"
    # some drop a row that has left only when they come across it again
    assert late[2] <= size + 2 * k, f"{late[2]} candidates for a window of {size}"


@pytest.mark.parametrize(("name", "other"), [("strict", "strict"), ("sap", "sap-equal")])
def test_a_snapshot_goes_only_into_a_structure_built_alike(name: str, other: str) -> None:
    """Another plan, or the same class with other options, would read the arrays as something they are not."""
    saved = build(name, plan_of((20, 3, 4))).snapshot()
    alike = plan_of((20, 3, 4)) if name != other else plan_of((50, 3, 9))
    with pytest.raises(StateError, match="made for"):
        build(other, alike).restore(saved)

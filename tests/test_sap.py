"""SAP against the oracle, in every variant, and the worked examples of TKDE17 as text tables."""

from __future__ import annotations

import itertools
import math
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, rankdata

import skyband as sb
from harness import answers_of, feed, plan_of
from skyband.algorithms import build
from skyband.algorithms.contract import Plan, Ranked
from skyband.algorithms.ranked.sap import SAP
from skyband.errors import QueryError
from skyband.kernels.sap import state as at
from skyband.kernels.sap.front import newer_best
from skyband.kernels.sap.partition import largest_length, unit_length
from skyband.kernels.sap.ranksum import critical_values, eta_of, evaluate, largest_accepted, rank_sum, zeta_max, zeta_star
from skyband.kernels.tables import SAME, Windows

SHAPES = {
    "any": lambda rng, i: rng.random(len(i)),
    "rising": lambda rng, i: i * 1.0,
    "falling": lambda rng, i: -i * 1.0,
    "constant": lambda rng, i: np.zeros(len(i)),
    "tied": lambda rng, i: rng.integers(0, 4, len(i)) * 1.0,
    "sine": lambda rng, i: np.sin(i / 9),
    "sawtooth": lambda rng, i: -(i % 23) + i / 1000,
    "valley": lambda rng, i: np.abs(i - len(i) / 2),
    "mostly missing": lambda rng, i: np.where(rng.random(len(i)) < 0.7, np.nan, rng.random(len(i))),
    "extremes": lambda rng, i: rng.choice([-np.inf, np.inf, 0.0, 1.0, np.nan], len(i)),
    "falling, noisy": lambda rng, i: -i + 20 * rng.random(len(i)),
}
policies = st.sampled_from(["equal", "dynamic", "enhanced"])
variants = st.fixed_dictionaries(
    {
        "policy": policies,
        "formation": st.sampled_from(["delayed", "proactive", "eager"]),
        "meaningful": st.sampled_from(["savl", "sorted"]),
        "partitions": st.sampled_from([None, 2, 3, 6, 12]),
    }
)


@st.composite
def streams(draw: st.DrawFn) -> np.ndarray:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    length = draw(st.integers(1, 260))
    shapes = draw(st.lists(st.sampled_from(sorted(SHAPES)), min_size=1, max_size=2))
    return np.concatenate([SHAPES[shape](rng, np.arange(length)) for shape in shapes])


@st.composite
def queries(draw: st.DrawFn) -> tuple[int, int, int]:
    size = draw(st.integers(1, 90))
    slide = draw(st.integers(1, min(size, draw(st.sampled_from([2, 5, 90])))))
    return size, slide, draw(st.integers(1, 9) | st.integers(10, 40))


@settings(max_examples=250, deadline=None)
@given(streams(), queries(), variants, st.lists(st.integers(0, 520), max_size=6))
def test_equals_sorting_the_window(scores: np.ndarray, query: tuple[int, int, int], options: dict, cuts: list[int]) -> None:
    sap = SAP(plan_of(query), **options)
    answers = []
    for cut in sorted({min(cut, len(scores)) for cut in cuts} | {len(scores)}):
        answers += feed(sap, scores[:cut])
        sap.check_invariants()
    assert answers == answers_of("oracle", scores, query)


@settings(max_examples=40, deadline=None)
@given(streams(), queries(), variants, st.integers(0, 520))
def test_continues_from_a_snapshot(scores: np.ndarray, query: tuple[int, int, int], options: dict, cut: int) -> None:
    cut = min(cut, len(scores))
    sap, again = SAP(plan_of(query), **options), SAP(plan_of(query), **options)
    before = feed(sap, scores[:cut])
    again.restore(sap.snapshot())
    assert before + feed(again, scores) == answers_of("oracle", scores, query)
    again.check_invariants()


def _top(algorithm: Ranked) -> tuple[list[float], list[int]]:
    count = algorithm.tops.count[0]
    return algorithm.tops.score[0, :count].tolist(), algorithm.tops.ordinal[0, :count].tolist()


@settings(max_examples=80, deadline=None)
@given(streams(), st.integers(1, 12), variants, st.integers(1, 60), st.integers(1, 20), st.integers(0, 2**32), st.booleans())
def test_time_windows(scores: np.ndarray, k: int, options: dict, size: int, slide: int, seed: int, last_only: bool) -> None:
    """Bursts, silences and empty windows; rows that no window holds are left out; only some windows are reported."""
    rng = np.random.default_rng(seed)
    slide = min(slide, size)
    times = np.cumsum(rng.choice([0, 0, 1, 3, 4 * size], len(scores), p=[0.5, 0.2, 0.2, 0.09, 0.01]))
    ends = np.arange(slide, times[-1] + size + 2 * slide, slide)
    firsts, stops = np.searchsorted(times, ends - size), np.searchsorted(times, ends)
    plan = Plan(ks=(k,), sizes=None, slides=None)
    sap, oracle = SAP(plan, **options), build("oracle", plan)
    at_window = 0
    while at_window < len(ends):
        upto = at_window + int(rng.integers(1, 12))
        chosen = np.arange(at_window, min(upto, len(ends)))[-1 if last_only else 0 :]
        number, reported = ends[chosen] // slide, np.full(len(chosen), not last_only)
        asked = Windows(np.zeros_like(number), number, firsts[chosen], stops[chosen], reported)
        tops = []
        for algorithm in (sap, oracle):
            begin = max(algorithm.next, int(asked.first[0]))
            last, heard = _top(algorithm), []
            for start, stop, results in algorithm.advance(begin, scores[begin : int(asked.end[-1])], asked):
                for window in range(start, stop):
                    if results.size[window] != SAME:
                        span = slice(results.begin[window], results.begin[window] + results.size[window])
                        last = (results.score[span].tolist(), results.ordinal[span].tolist())
                    heard.append(last)
            tops.append(([] if last_only else heard, _top(algorithm)))
        assert tops[0] == tops[1]
        sap.check_invariants()
        at_window = upto


def test_one_row_at_a_time_equals_all_at_once() -> None:
    scores = np.sin(np.arange(700) / 40) + np.random.default_rng(1).random(700) / 10
    one_by_one = answers_of("sap", scores, (200, 1, 5), cuts=range(1, 700))
    assert one_by_one == answers_of("sap", scores, (200, 1, 5)) == answers_of("oracle", scores, (200, 1, 5))


# --- worked examples -----------------------------------------------------------------------------------------------

FIGURE_3 = """
    P_0   95 92 80
    P_1   87 79 60
    P_2   91 82 70
    P_3   88 75 74
    P_4   84 78 77
"""


def _rows(table: str) -> np.ndarray:
    return np.array([float(word) for line in table.split("\n") for word in line.split()[1:]])


def _candidates(sap: SAP) -> dict[float, int]:
    head, state = sap._state.head, sap._state
    held = int(head[at.CANDIDATES])
    return dict(zip(state.candidate_score[:held].tolist(), state.candidate_dominators[:held].tolist(), strict=True))


def test_group_dominance_number_of_figure_3() -> None:
    """79, the k-th of P_1, is dominated by 91 and 82, 88, and 84: rho = 4 >= k = 2, so M_1 is empty."""
    scores = _rows(FIGURE_3)
    assert sum(scores[6:] > 79) == 4
    sap = SAP(plan_of((15, 1, 2)), policy="equal", partitions=5)
    feed(sap, scores)
    dominating, bar = newer_best(sap._state, sap._rules, 6, 79.0, 4)
    assert (dominating, bar) == (2, np.nextafter(88.0, 89.0))  # counted no further than k
    assert 79.0 not in _candidates(sap)
    later = SAP(plan_of((12, 1, 2)), policy="equal", partitions=4)
    feed(later, np.concatenate([scores[3:], [50.0] * 4]))  # P_1 has left and P_2 leads, which 88 and 84 dominate as well
    assert later._state.head[at.FRONT_BEGIN] == 3 and len(later._state.links) == 0, "nothing was ever formed"


FIGURE_4 = """
    C before   95:0 92:0 91:0 88:0 84:0 78:0
    P_5        90 86
    C after    91:0 90:0 88:1 86:0
"""


def test_refine_by_merge_of_figure_4() -> None:
    """One pass over C and P_5^k: 88 is outranked by 90; 84 and 78 by both, and go; 95 and 92 have left the window."""
    before, after = (
        {float(score): int(above) for score, above in (word.split(":") for word in line.split()[2:])}
        for line in FIGURE_4.strip().split("\n")[::2]
    )
    sap = SAP(plan_of((15, 1, 2)), policy="equal", partitions=5)
    feed(sap, _rows(FIGURE_3))
    assert _candidates(sap) == before
    feed(sap, np.concatenate([_rows(FIGURE_3), [86.0, 90.0, 61.0]]))
    assert _candidates(sap) == after


# --- numbers -------------------------------------------------------------------------------------------------------


def test_parameters() -> None:
    assert eta_of(10) == pytest.approx(2.5)
    assert eta_of(100) == pytest.approx(1.348, abs=1e-3)
    for k in (1, 7, 100, 1000):
        eta, star = eta_of(k), zeta_star(k)
        assert (eta * k - k) / math.sqrt(eta * k) == pytest.approx(3)
        assert star == pytest.approx(eta * k)
        assert (zeta_max(k) - star) / math.sqrt(star) == pytest.approx(3)
        n = 10**6
        assert (n - largest_length(n, eta)) / largest_length(n, eta) == pytest.approx(eta, rel=1e-3)


@pytest.mark.parametrize(
    ("n", "s", "k", "policy", "partitions", "length"),
    [
        (10**6, 1, 100, at.ENHANCED, 0, 10_000),  # sqrt(n k)
        (10**6, 1000, 100, at.DYNAMIC, 0, 32_000),  # sqrt(n s) = 31623, in slides
        (10**6, 10**4, 10, at.EQUAL, 0, 10**5),  # figure 6: ten partitions
        (10**6, 3 * 10**5, 10, at.EQUAL, 0, 3 * 10**5),  # n / m* <= 2 s: a slide each
        (100, 1, 90, at.DYNAMIC, 0, 95),
        (100, 7, 90, at.EQUAL, 50, 91),  # at least k rows, in slides
        (10**6, 1000, 100, at.EQUAL, 25, 40_000),
    ],
)
def test_unit_length(n: int, s: int, k: int, policy: int, partitions: int, length: int) -> None:
    assert unit_length(n, s, k, policy, partitions) == length


def test_rank_sum_shares_ranks_of_ties() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        ours, theirs = np.sort(rng.integers(0, 6, 7))[::-1] * 1.0, np.sort(rng.integers(0, 6, 9))[::-1] * 1.0
        assert rank_sum(ours, 7, theirs, 9) == rankdata(np.concatenate([ours, theirs]))[:7].sum()


@pytest.mark.parametrize(("n1", "n2", "accepted"), [(3, 5, 20), (4, 6, 31), (5, 5, 37), (8, 8, 86), (1, 3, 4)])
def test_critical_values_of_the_printed_tables(n1: int, n2: int, accepted: float) -> None:
    assert largest_accepted(n1, n2) == accepted


@pytest.mark.parametrize(("n1", "n2"), [(3, 7), (5, 14), (9, 24)])
def test_critical_values_against_scipy(n1: int, n2: int) -> None:
    def p_value(total: int) -> float:
        ranks = list(range(1, n1 + 1))
        for i in reversed(range(n1)):  # the set of ranks with this sum: lift the largest first
            lift = min(total - sum(ranks), n2)
            ranks[i] += lift
        rest = sorted(set(range(1, n1 + n2 + 1)) - set(ranks))
        assert sum(ranks) == total
        return float(mannwhitneyu(ranks, rest, alternative="greater", method="exact").pvalue)

    accepted = int(critical_values(9)[n1, n2])
    assert p_value(accepted + 1) <= 0.025 < p_value(accepted)


def test_critical_values_are_computed_once_for_all_queries() -> None:
    critical_values(9)
    start = process_time()
    for _ in range(100):
        critical_values(9)
    assert process_time() - start < 0.1  # 7 seconds otherwise


def test_normal_approximation_from_ten_on() -> None:
    ours, theirs = np.arange(20, 10, -1.0), np.arange(25, 0, -1.0)
    u, n1, n2 = 0.0, 10, 25
    u = sum((a > b) + 0.5 * (a == b) for a, b in itertools.product(ours, theirs))
    z = (u - n1 * n2 / 2) / math.sqrt(n1 * n2 * (n1 + n2 + 1) / 12)
    assert evaluate(ours, n1, theirs, n2, critical_values(10)) == pytest.approx(z - 1.959964)


# --- policies ------------------------------------------------------------------------------------------------------


def _partition_lengths(sap: SAP) -> list[int]:
    head, state = sap._state.head, sap._state
    numbers = np.arange(head[at.PARTITION], head[at.PARTITION] + head[at.PARTITION_COUNT]) % len(state.partitions)
    return (state.partitions[numbers, at.PARTITION_END] - state.partitions[numbers, at.PARTITION_BEGIN]).tolist()


def test_dynamic_partitions_are_small_where_scores_rise_and_large_where_they_fall() -> None:
    rising, falling = SAP(plan_of((4000, 1, 10)), policy="dynamic"), SAP(plan_of((4000, 1, 10)), policy="dynamic")
    feed(rising, np.arange(9000.0), [4000])
    feed(falling, -np.arange(9000.0), [4000])
    unit = unit_length(4000, 1, 10, at.DYNAMIC, 0)
    assert set(_partition_lengths(rising)) == {unit}
    assert max(_partition_lengths(falling)) > 3 * unit
    assert max(_partition_lengths(falling)) <= largest_length(4000, eta_of(10))


def _share_of_k_units(sap: SAP) -> float:
    head, state = sap._state.head, sap._state
    return float(state.units[np.arange(head[at.FRONT_UNIT], head[at.UNIT]) % len(state.units), at.UNIT_IS_K].mean())


def test_units_are_labelled_by_trend() -> None:
    steady, falling = SAP(plan_of((4000, 10, 10))), SAP(plan_of((4000, 10, 10)))
    feed(steady, np.random.default_rng(0).random(12_000))
    feed(falling, -np.arange(12_000.0))
    assert _share_of_k_units(steady) < 0.6
    assert _share_of_k_units(falling) == 1.0
    assert falling._state.head[at.SECOND_PHASE] >= 0
    assert len(steady._state.links) == 0, "steady scores never need a stack"


def test_delay_forms_less_than_eager() -> None:
    scores = np.sin(np.arange(6000) / 500) + np.random.default_rng(0).random(6000) / 50
    held = {}
    for formation in ("delayed", "eager"):
        sap = SAP(plan_of((2000, 5, 10)), policy="equal", formation=formation)
        feed(sap, scores)
        held[formation] = sap.candidates
    assert held["delayed"] < held["eager"]


def test_memory_does_not_grow_with_the_stream() -> None:
    for shape in ("any", "rising", "falling", "sine"):
        sap = SAP(plan_of((500, 3, 8)))
        seen = []
        for step in range(1, 40):
            scores = SHAPES[shape](np.random.default_rng(step), np.arange(step * 600))
            feed(sap, scores)
            seen.append(sap.nbytes)
        assert seen[-1] == seen[10], shape


@pytest.mark.parametrize(("size", "slide", "k"), [(10**12, 1, 3), (2**61, 3, 3), (2**61, 100, 1)])
def test_a_window_far_larger_than_the_stream_takes_memory_for_the_stream(size: int, slide: int, k: int) -> None:
    window, names = sb.CountWindow(size, slide=slide), ("sap", "sap-equal", "sap-proactive", "auto", "oracle")
    monitor = sb.Monitor([sb.TopK(name=name, k=k, score="x", window=window, algorithm=name) for name in names])
    rng = np.random.default_rng(5)
    for rows in (1, 7, 1000, 20):
        monitor.push({"x": rng.integers(0, 50, rows)})
        assert all(monitor.top(name) == monitor.top("oracle") for name in names)
    assert all(monitor.stats(name)["bytes"] < 10**6 for name in names)


def test_refuses_what_it_cannot_do() -> None:
    with pytest.raises(QueryError, match="one query"):
        SAP(plan_of((10, 1, 2), (20, 1, 2)))
    with pytest.raises(QueryError, match="policy 'best'"):
        SAP(plan_of((10, 1, 2)), policy="best")
    with pytest.raises(QueryError, match="at least 1"):
        SAP(plan_of((10, 1, 2)), partitions=0)


def test_auto_is_sap_for_the_best_row_of_every_window() -> None:
    scores = SHAPES["falling, noisy"](np.random.default_rng(5), np.arange(400))
    for k, emit, window, chosen in (
        (1, "changes", sb.CountWindow(250, 100), "sap"),
        (1, "changes", sb.CountWindow(250, 99), "shared"),  # it passes over windows without a change as well
        (9, "snapshots", sb.CountWindow(1), "shared"),
        (2, "changes", sb.CountWindow(250, 100), "shared"),
        (1, "none", sb.CountWindow(250, 100), "shared"),
        (1, "changes", sb.TimeWindow(250, 100), "shared"),
    ):
        asked = [sb.TopK(name=name, k=k, score="x", window=window, emit=emit, algorithm=name) for name in ("auto", "oracle")]
        told = []
        for query in asked:
            monitor = sb.Monitor([query], time="t")
            rows = monitor.push({"x": scores, "t": np.arange(400)})
            told.append((rows.drop_columns("query"), monitor.top(query.name)))
            assert monitor.stats(query.name)["algorithm"] == ("oracle" if query.name == "oracle" else chosen)
        assert told[0] == told[1]

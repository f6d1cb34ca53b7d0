"""The candidate limit of PA against TODS15's table V, its own definition in exact fractions, and random streams."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.algorithms.ranked.candidate_limit import candidate_limit, least_window, practice_probability, prunes, rank_bound
from skyband.errors import QueryError

TABLE_V = """
    n \\ k     1   2   5  10  20  50 100 200 500
    1000      18  21  26  32  40  56  72  91 106
    10000     22  25  30  37  46  65  86 116 172
    100000    25  28  34  41  51  72  95 128 192
    1000000   28  32  38  46  56  78 103 138 207
"""
DEFINITION = """
    n \\ k     1   2   5  10  20  50 100 200 500
    1000      18  21  26  32  41  57  74  94 109
    10000     22  25  31  37  47  66  89 120 180
    100000    25  28  34  42  52  73  97 131 200
    1000000   28  32  38  46  57  79 105 141 214
"""


# -- the paper's text, written down in exact numbers -----------------------------------------------------------


def equation_9(l: int, n: int, k: int) -> Fraction:  # noqa: E741
    terms = (
        Fraction(math.comb(n - 1, last - 1) * math.comb(n - 1, l - 1), math.comb(2 * n - 2, l + last - 2))
        for last in range(1, min(k, n) + 1)
    )
    return Fraction(n * n, 4 * n - 2) * sum(terms)


def equation_7(l: int, n: int, k: int) -> Fraction:  # noqa: E741
    """p_theory: the chances of ranking at each single step, summed."""
    total = Fraction(0)
    for step in range(1, n):
        for rank in range(1, k + 1):
            for better_arrived in range(min(rank - 1, step) + 1):
                better_dropped = l - rank + better_arrived
                if 0 <= better_dropped <= step:
                    dropped = Fraction(
                        math.comb(l - 1, better_dropped) * math.comb(n - l, step - better_dropped), math.comb(n - 1, step)
                    )
                    ways = math.comb(l - 1 + better_arrived, better_arrived)
                    ways *= math.comb(n - l + step - better_arrived, step - better_arrived)
                    total += dropped * Fraction(n * ways, (n + step) * math.comb(n + step - 1, step))
    return total


def exceeds(bound_of: tuple[int, int], rank: int) -> bool:
    """rank > L without a root: footnote 4 says rank (2n + 2) - a > sqrt(square)."""
    n, k = bound_of
    square = 3 * (-8 * k**2 * n + 4 * k**2 + 8 * k * n**2 + 4 * k * n - 4 * k - 5 * n**2 - 2 * n + 3)
    left = rank * (2 * n + 2) - (3 * n - 4 * k + 2 * k * n + 3)
    return left > 0 and left**2 > square


def limit_by_definition(k: int, n: int, sigma: Fraction) -> int:
    """Definition 4.5, from the last rank up: ignore a rank as long as it is above L and the sum stays below sigma."""
    ignored, rank = Fraction(0), n
    while rank > k and exceeds((n, k), rank) and ignored + equation_9(rank, n, k) < sigma:
        ignored += equation_9(rank, n, k)
        rank -= 1
    return rank - k


def limit_by_table(k: int, n: int, sigma: Fraction) -> int:
    """The stopping rule, from the first rank above L down."""
    rank = next(rank for rank in range(k + 1, n + 2) if rank > n or exceeds((n, k), rank))
    while rank <= n and equation_9(rank, n, k) >= sigma / 2:
        rank += 1
    return rank - 1 - k


# -- the published numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "table"), [("table", TABLE_V), ("definition", DEFINITION)])
def test_published_limits(rule: str, table: str) -> None:
    head, *lines = table.strip().splitlines()
    ks = [int(k) for k in head.split()[3:]]
    shown = [head.strip()]
    for line in lines:
        n = int(line.split()[0])
        shown.append(f"{n:<8d}" + "".join(f"{candidate_limit(k, n, 0.001, rule):4d}" for k in ks))
    assert "\n".join(shown).split() == table.split()


def test_the_definition_is_the_default() -> None:
    assert candidate_limit(500, 10**6, 0.001) == 214


# -- where dominated rows are dropped --------------------------------------------------------------------------


def held_above(rows: int, k: int) -> list[Fraction]:
    """The chances that 0, 1, ... of so many rows are outranked by fewer than k newer ones, over all orders of arrival."""
    counts = [0] * (rows + 1)
    for arrived in permutations(range(rows)):  # of the row of each rank
        counts[sum(sum(arrived[better] > arrived[rank] for better in range(rank)) < k for rank in range(rows))] += 1
    return [Fraction(count, math.factorial(rows)) for count in counts]


@pytest.mark.parametrize("sigma", [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("n", [2, 4, 6, 7])
def test_the_swept_limit_is_the_fewest_rows_that_keep_the_promise(n: int, sigma: Fraction) -> None:
    """By going through every order of the rows above one that arrives."""
    above = {(rows, k): held_above(rows, k) for rows in range(n) for k in range(1, n)}
    for k in range(1, n):
        matters = [min(equation_9(rank, n, k), Fraction(1)) if exceeds((n, k), rank) else 1 for rank in range(1, n + 1)]
        for limit in range(n - k + 1):
            met = (sum(above[rank - 1, k][k + limit :], Fraction(0)) * matters[rank - 1] for rank in range(1, n + 1))
            if sum(met, Fraction(0)) < sigma:
                break
        assert candidate_limit(k, n, float(sigma), "swept") == limit, k


@settings(max_examples=60)
@given(k=st.integers(1, 300), more=st.integers(1, 10**6), sigma=st.floats(1e-6, 0.9))
def test_fewer_rows_are_held_where_dominated_ones_are_dropped(k: int, more: int, sigma: float) -> None:
    assert 0 <= candidate_limit(k, k + more, sigma, "swept") <= candidate_limit(k, k + more, sigma)


# -- the definition in exact numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 12, 25, 40])
def test_practice_probability_is_equation_9(n: int) -> None:
    for k in range(1, n + 2):
        for rank in range(1, n + 1):
            assert practice_probability(rank, n, k) == pytest.approx(float(equation_9(rank, n, k)), rel=1e-12, abs=0)


@pytest.mark.parametrize(("n", "k"), [(400, 3), (1000, 40), (600, 590)])
def test_practice_probability_is_accurate_in_the_far_tail(n: int, k: int) -> None:
    for rank in (k, k + 1, (k + n) // 2, n - 1, n):
        ref = float(equation_9(rank, n, k))
        assert practice_probability(rank, n, k) == pytest.approx(ref, rel=1e-10, abs=1e-300)


def test_a_rank_without_hope_has_probability_0_and_one_without_doubt_half_n() -> None:
    assert practice_probability(10**9, 10**9, 5) == 0
    assert practice_probability(1, 10**9, 10**5) == 10**9 / 2


@pytest.mark.parametrize("n", range(1, 120))
def test_rank_bound_is_footnote_4(n: int) -> None:
    for k in range(1, n + 1):
        whole = math.floor(rank_bound(n, k))
        assert k <= whole <= n
        assert exceeds((n, k), whole + 1) and not exceeds((n, k), whole)
    assert rank_bound(n, n) == rank_bound(n, n + 1) == n


@pytest.mark.parametrize("n", [2, 3, 5, 8, 13])
def test_practice_probability_bounds_equation_7_above_the_rank_bound(n: int) -> None:
    for k in range(1, n):
        for rank in range(k + 1, n + 1):
            if rank > rank_bound(n, k):
                assert equation_9(rank, n, k) >= equation_7(rank, n, k)


@settings(max_examples=120, deadline=None)
@given(st.integers(2, 90), st.data())
def test_limits_follow_their_rules_in_exact_numbers(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, n - 1))
    sigma = data.draw(st.sampled_from([1e-12, 1e-6, 1e-3, 0.05, 0.5, 0.99]) | st.floats(1e-12, 0.99))
    assert candidate_limit(k, n, sigma) == limit_by_definition(k, n, Fraction(sigma))
    assert candidate_limit(k, n, sigma, "table") == limit_by_table(k, n, Fraction(sigma))


@pytest.mark.parametrize(("n", "k", "sigma"), [(1000, 4, 1e-9), (1000, 60, 0.001), (2000, 20, 0.5), (300, 280, 0.001)])
def test_limits_follow_their_rules_in_larger_windows(n: int, k: int, sigma: float) -> None:
    kept = k + candidate_limit(k, n, sigma)
    bounds = [equation_9(rank, n, k) for rank in range(kept, min(n, kept + 150) + 1)]  # the rest: below 1e-30
    assert sum(bounds) >= sigma > sum(bounds[1:]) + Fraction(1, 10**30)
    last = k + candidate_limit(k, n, sigma, "table")
    assert equation_9(last, n, k) >= sigma / 2
    assert last == n or equation_9(last + 1, n, k) < sigma / 2


def tail_sums(n: int, k: int, first: int, ranks: int, lasts: int) -> np.ndarray:
    """Sums of equation (9) from `first`, from `first + 1`, … on, over `ranks` ranks and the `lasts` largest l', by sums of
    logarithms in extended precision.
    """
    top = first + ranks + k

    def log_falling(start: int) -> np.ndarray:  # of start (start - 1) … (start - j + 1) for every j
        return np.concatenate(([0], np.cumsum(np.log(np.arange(start, start - top, -1, dtype=np.longdouble)))))

    rows, both, factorial = log_falling(n - 1), log_falling(2 * n - 2), np.zeros(top + 1, np.longdouble)
    factorial[1:] = np.cumsum(np.log(np.arange(1, top + 1, dtype=np.longdouble)))
    last = np.arange(max(1, k - lasts + 1), k + 1)
    bounds = np.zeros(ranks)
    for place in range(ranks):
        rank = first + place
        ways = rows[last - 1] - factorial[last - 1] + rows[rank - 1] - factorial[rank - 1]
        ways -= both[rank + last - 2] - factorial[rank + last - 2]
        bounds[place] = n * n / (4 * n - 2) * np.exp(ways.astype(float)).sum()
    return np.cumsum(bounds[::-1])[::-1]


@pytest.mark.parametrize("sigma", [1e-12, 0.001, 0.5])
@pytest.mark.parametrize(("k", "ranks", "lasts"), [(1, 100, 1), (100, 200, 100), (5000, 600, 2500), (100_000, 1500, 4000)])
def test_a_window_of_a_thousand_million_rows_obeys_the_definition(k: int, ranks: int, lasts: int, sigma: float) -> None:
    kept = k + candidate_limit(k, 10**9, sigma)
    with_last_kept, without = tail_sums(10**9, k, kept, ranks, lasts)[:2]
    assert without < sigma <= with_last_kept
    assert without > sigma / 4  # the sum was not cut short


# -- how the limit moves ---------------------------------------------------------------------------------------

errors = st.floats(1e-12, 0.5)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3000), st.lists(st.integers(1, 10**9) | st.integers(1, 5000), min_size=2, max_size=5), errors)
def test_larger_windows_need_no_fewer_candidates(k: int, sizes: list[int], sigma: float) -> None:
    for rule in ("definition", "table"):
        limits = [candidate_limit(k, n, sigma, rule) for n in sorted(sizes)]
        assert all(smaller <= larger for smaller, larger in pairwise(limits))
        assert all(0 <= limit <= max(0, n - k) for n, limit in zip(sorted(sizes), limits, strict=True))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3000), st.integers(1, 10**9) | st.integers(1, 5000), st.lists(errors, min_size=2, max_size=5))
def test_smaller_errors_need_no_fewer_candidates(k: int, n: int, sigmas: list[float]) -> None:
    limits = [candidate_limit(k, n, sigma) for sigma in sorted(sigmas)]
    assert all(stricter >= looser for stricter, looser in pairwise(limits))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 3000), min_size=2, max_size=5), st.integers(1, 10**9) | st.integers(1, 5000), errors)
def test_a_larger_k_keeps_no_fewer_ranks(ks: list[int], n: int, sigma: float) -> None:
    kept = [min(n, k + candidate_limit(k, n, sigma)) for k in sorted(ks)]
    assert all(smaller <= larger for smaller, larger in pairwise(kept))


@given(st.integers(1, 50), st.integers(1, 50))
def test_a_window_that_k_rows_fill_has_no_candidates(n: int, more: int) -> None:
    assert candidate_limit(n, n, 0.001) == candidate_limit(n + more, n, 0.001) == 0
    assert not prunes(n, n, 0.001) and not prunes(n + more, n, 0.001)


@pytest.mark.parametrize("sigma", [1e-12, 0.001, 0.5])
@pytest.mark.parametrize("k", [1, 2, 10, 75])
def test_windows_prune_from_the_least_one_on(k: int, sigma: float) -> None:
    least = least_window(k, sigma)
    for n in range(1, 2 * least):
        assert prunes(k, n, sigma) == (n >= least)
        assert n >= least or candidate_limit(k, n, sigma) == max(0, n - k)


def test_the_least_window_of_a_large_k() -> None:
    least = least_window(10**5, 0.001)
    assert prunes(10**5, least, 0.001) and not prunes(10**5, least - 1, 0.001)


# -- random streams --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3])
def test_rows_of_a_random_stream_rank_as_rarely_as_promised(k: int) -> None:
    """The last of n rows enters with rank l; n - 1 rows follow it. Before it leaves, its chance to rank is that of
    equation (8); ever after its arrival, at most that of equation (9).
    """
    n, streams = 20, 120_000
    scores = np.random.default_rng(7).random((streams, 2 * n - 1))
    row = scores[:, n - 1 : n]
    outranked_by = np.cumsum(np.pad(scores > row, ((0, 0), (1, 0))), axis=1)  # among the first rows of the stream
    ranks = outranked_by[:, n:] - outranked_by[:, :n] + 1  # in each of the n windows that hold the row
    entered = ranks[:, 0]
    at_last, ever = ranks[:, -1] <= k, (ranks[:, 1:] <= k).any(axis=1)
    for rank in range(1, n + 1):
        these = entered == rank
        bound = practice_probability(rank, n, k)
        chance = bound * 2 / n
        noise = 5 * math.sqrt(chance * (1 - chance) / these.sum()) + 1e-3
        assert abs(at_last[these].mean() - chance) < noise
        if rank > rank_bound(n, k):
            noise = 5 * math.sqrt(min(bound, 0.25) / these.sum())
            assert ever[these].mean() <= bound + noise


@pytest.mark.parametrize(("k", "sigma"), [(1, 0.5), (3, 0.3)])
def test_ignored_rows_that_would_have_ranked_are_as_few_as_promised(k: int, sigma: float) -> None:
    n, rows = 60, 120_000
    kept = k + candidate_limit(k, n, sigma)
    assert kept < n
    scores = np.random.default_rng(11).random(rows)
    windows = np.lib.stride_tricks.sliding_window_view(scores, n)
    entered = (windows > windows[:, -1:]).sum(axis=1) + 1  # the rank of row n - 1 + i in its first window
    kth = -np.partition(-windows, k - 1, axis=1)[:, k - 1]
    worst_kth = np.lib.stride_tricks.sliding_window_view(kth, n).min(axis=1)  # over the n windows that hold the row
    lost = (entered[: len(worst_kth)] > kept) & (scores[n - 1 :][: len(worst_kth)] >= worst_kth)
    promised = sigma / n * len(lost)
    assert 0 < lost.sum() <= promised  # some are, or this would prove nothing


# -- what is refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.0, 1.0, -0.1, 7, math.nan, math.inf])
def test_a_sigma_outside_0_and_1_is_refused(sigma: float) -> None:
    for ask in (
        lambda: candidate_limit(10, 100, sigma),
        lambda: candidate_limit(100, 10, sigma),
        lambda: prunes(10, 100, sigma),
        lambda: least_window(10, sigma),
    ):
        with pytest.raises(QueryError, match=rf"above 0 and below 1, got {sigma}; .* take 0.001"):
            ask()


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(QueryError, match="'paper' is unknown; choose one of: swept, definition, table"):
        candidate_limit(10, 100, 0.001, "paper")


@pytest.mark.parametrize("value", [0, -3, 2.5, True])
def test_sizes_that_count_nothing_are_refused(value: int) -> None:
    for what, ask in (
        ("k", lambda: candidate_limit(value, 100, 0.001)),
        ("window size n", lambda: candidate_limit(10, value, 0.001)),
        ("k", lambda: prunes(value, 100, 0.001)),
        ("k", lambda: least_window(value, 0.001)),
        ("rank l", lambda: practice_probability(value, 100, 10)),
        ("window size n", lambda: practice_probability(10, value, 10)),
        ("k", lambda: practice_probability(10, 100, value)),
        ("window size n", lambda: rank_bound(value, 10)),
        ("k", lambda: rank_bound(100, value)),
    ):
        with pytest.raises(QueryError, match=rf"^{what} must be (at least 1|a whole number), got {value}; give an integer"):
            ask()


def test_a_rank_outside_the_window_is_refused() -> None:
    with pytest.raises(QueryError, match="at most the window size n = 100, got 101"):
        practice_probability(101, 100, 10)


def test_numpy_numbers_serve_as_well() -> None:
    assert candidate_limit(np.int32(100), np.int64(10**9), np.float64(0.001)) == candidate_limit(100, 10**9, 0.001)
    assert rank_bound(np.int64(10**9), np.int64(10**5)) == rank_bound(10**9, 10**5)

"""How many candidates a probabilistic k-skyband keeps: the rows that enter with too poor a rank are ignored.

In a random-order stream a row that enters a window of n rows with rank l is at its best just before it leaves, when
only newer rows are left beside it. Then it is among the best k if fewer than k of the n - 1 newer rows outrank it, and
n/2 times that chance bounds the chance that it ever is, for every rank above a bound L. Ranks are kept until the
bounds of all the ignored ones sum to less than sigma: each rank is as likely as any other, so an arriving row is lost
with a chance below sigma / n, and sigma N / n rows are lost in N arrivals at most, on average.

Where rows that k newer ones outrank are dropped (the rule "swept", ours), what is counted are not ranks but the rows
held above an arriving one. Of those that rank above it, the one of rank j is held with the chance k / j, whatever becomes
of the others: fewer than k of the j - 1 above it are newer. So a row of rank l meets at least m held rows with a chance
that can be computed, and m is enough when these chances, times the bounds of the ranks, sum to less than sigma: the same
promise with fewer rows.

Paper: TODS15 4.1.1 (theorem 4.4, definition 4.5, footnote 4, table V). Guarantee: none for streams that are not in
random order. Cost: O(sqrt(k)) whatever n, about 0.1 ms for k = 100 and 1 ms for k = 10^5, 0.4 and 30 ms for "swept"; a
repeated question is looked up. Relative accuracy about 1e-11, at n = 10^9 too.

Glossary: l a row's rank on arrival, l' a rank just before it leaves, sigma the promised error, L `rank_bound`,
p_practice `practice_probability`, limit `candidate_limit`.

Deviations: equation (9) has C(2n-2, l+l'-2) below the line. It is n/2 times a probability, P(Z >= l), of the number Z
of n older rows that outrank the k-th best of n - 1 newer ones (negative hypergeometric); one run of ratios gives it
for all ranks at once, without large factorials. The rule "definition" sums the bounds over the ignored ranks to the
end, where the paper cuts by a stopping rule ("table") that is a few candidates short for larger k.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache

import numpy as np

from skyband.errors import QueryError

RULES = ("swept", "definition", "table")

_MORE, _MORE_INDEXED = 2.0, 1.5  # times as many rows as a core that does not sweep may be let in by one that does
_VANISHED = 800.0  # exp(-800) is no float, nor is n/2 times it
_UNHEARD = 1e-6  # of sigma: ranks that together can lose no more are not looked at
_NEGLIGIBLE = 40.0  # exp(-40) is lost beside 1


def candidate_limit(k: int, n: int, sigma: float, rule: str = "definition") -> int:
    """How many candidates besides the k best ranks a probabilistic k-skyband over a window of n rows keeps.

    "definition": the fewest such that the bounds of the ignored ranks sum to less than sigma. "table": up to the first
    rank whose own bound is below sigma / 2, as in table V. "swept": as the definition, where dominated rows are dropped. Never
    above n - k, where nothing is ignored (see `prunes`); 0 where k rows fill the window.

    >>> [candidate_limit(100, 10_000, 0.001, rule) for rule in ("definition", "table", "swept")]
    [89, 86, 67]
    """
    k, n = _count("k", k), _count("window size n", n)
    if not 0 < sigma < 1:
        raise QueryError(
            f"sigma must be above 0 and below 1, got {sigma!r}; it is the mean number of results lost per n arrivals: "
            "take 0.001 as the paper does, or an exact algorithm if none may be lost"
        )
    if rule not in RULES:
        raise QueryError(f"rule of the candidate limit {rule!r} is unknown; choose one of: {', '.join(RULES)}")
    return _limit(k, n, float(sigma), rule) if k < n else 0


def prunes(k: int, n: int, sigma: float) -> bool:
    """Whether any rank is ignored. If not, the window is kept whole: exact, and no smaller than the window."""
    return candidate_limit(k, n, sigma) < n - k


def sweeping_pays(k: int, n: int, sigma: float, indexed: bool = False) -> bool:
    """Whether a core that drops dominated rows lets in at most twice as many rows as one that does not. For a few k it lets in
    far more: k (1 + ln(r/k)) of the best r rows are not dominated, give or take some that weigh much where k is small.

    `indexed`: rows are shown to a query by cells. A lower threshold reaches more of them, so that each row let in costs more.

    >>> [k for k in (1, 3, 9, 27, 81) if sweeping_pays(k, 40_000, 0.001)]
    [9, 27, 81]
    >>> [k for k in (1, 3, 9, 27, 81) if sweeping_pays(k, 40_000, 0.001, indexed=True)]
    [27, 81]
    """
    if not k < n:
        return False
    reached = k * math.exp(candidate_limit(k, n, sigma, "swept") / k)
    return reached <= (_MORE_INDEXED if indexed else _MORE) * (k + candidate_limit(k, n, sigma))


def least_window(k: int, sigma: float) -> int:
    """The smallest window in which any rank is ignored; `prunes` holds from it on.

    >>> least_window(1, 0.001), least_window(100, 0.001)
    (8, 116)
    """
    k = _count("k", k)
    most = k + 1
    while not prunes(k, most, sigma):
        most *= 2
    sizes = range(k + 1, most + 1)
    return sizes[bisect_left(sizes, True, key=lambda n: prunes(k, n, sigma))]


def practice_probability(l: int, n: int, k: int) -> float:  # noqa: E741
    """p_practice, equation (9): bounds the chance that a row entering with rank l > L ever is among the best k.

    A bound, so it may exceed 1: n/2 for a k that fills the window.
    """
    rank, n, k = _count("rank l", l), _count("window size n", n), _count("k", k)
    if rank > n:
        raise QueryError(f"rank l must be at most the window size n = {n}, got {rank}; no row of the window ranks lower")
    if k >= n:
        return n / 2
    first, outranking = _outranking(n, k)
    if rank < first:
        return n / 2
    place = rank - first
    return n / 2 * float(outranking[place]) if place < len(outranking) else 0.0


def rank_bound(n: int, k: int) -> float:
    """L, footnote 4: p_practice is a bound for the ranks above it. About k + 1.5 + sqrt(6 k) for k << n, n for k >= n.

    Where k is just below n it may exceed n, by less than half a rank.
    """
    n, k = _count("window size n", n), _count("k", k)
    k = min(k, n)
    square = 3 * (-8 * k * k * n + 4 * k * k + 8 * k * n * n + 4 * k * n - 4 * k - 5 * n * n - 2 * n + 3)
    return (3 * n - 4 * k + 2 * k * n + 3 + math.sqrt(square)) / (2 * n + 2)


@lru_cache(maxsize=1024)
def _limit(k: int, n: int, sigma: float, rule: str) -> int:
    first, outranking = _outranking(n, k)
    bounds = n / 2 * outranking
    if rule == "swept":
        return _swept(k, n, sigma, first, bounds)
    # what ignoring a rank and all after it may lose; the table's rule takes the bounds to halve from rank to rank
    losses = 2 * bounds if rule == "table" else np.cumsum(bounds[::-1])[::-1]
    # they fall with the rank, so the ranks that must be kept are the first ones
    kept = max(first - 1 + int(np.count_nonzero(losses >= sigma)), math.floor(rank_bound(n, k)))
    return min(kept, n) - k


def _swept(k: int, n: int, sigma: float, first: int, bounds: np.ndarray) -> int:
    """The fewest candidates that are not dominated, so that rows with as many above them are lost with less than sigma."""
    most = _limit(k, n, sigma, "definition")  # of l - 1 rows above no more than l - 1 are held
    losses = np.cumsum(bounds[::-1])[::-1]
    ranks = np.arange(first, first + len(bounds))
    chance = np.where(ranks > rank_bound(n, k), np.minimum(bounds, 1.0), 1.0)
    last = min(n, first - 1 + int(np.count_nonzero(losses >= _UNHEARD * sigma)))  # ranks after it: taken to be lost
    held = np.zeros(most + 1)  # chances that so many of the rows above are held, besides the k best; the last: as many, or more
    held[0] = 1.0
    met = np.zeros(most + 1)  # the same for all ranks, times the chance that it matters
    for rank in range(k + 1, last + 1):
        met += chance[rank - first] * held
        moved = held * (k / rank)
        held -= moved
        held[1:] += moved[:-1]
        held[-1] += moved[-1]
    lost = np.cumsum(met[::-1])[::-1] + _UNHEARD * sigma
    return int(np.argmax(lost < sigma)) if lost[-1] < sigma else most


@lru_cache(maxsize=2)
def _outranking(n: int, k: int) -> tuple[int, np.ndarray]:
    """P(Z >= l) for l = first, first + 1, …: the chance that at least l of n older rows outrank the k-th of n - 1 newer.

    1 before, 0 after, as far as floats can tell: Z is within x of k but for a chance of exp(-x² / (4k + 2x)) above and
    exp(-x² / 4k) below (Hoeffding 1963, section 6, for the newer rows among the best k + l).
    """
    first = max(0, k - math.ceil(math.sqrt(4 * _NEGLIGIBLE * k)))
    last = min(n, k + math.ceil(_VANISHED + math.sqrt(_VANISHED * (_VANISHED + 4 * k))))
    z = np.arange(first, last, dtype=np.float64)
    ratios = (z + k) / (z + 1) * ((n - z) / (2 * n - 1 - k - z))  # P(Z = z + 1) / P(Z = z)
    logs = np.concatenate(([0.0], np.cumsum(np.log(ratios))))
    chances = np.exp(logs - logs.max())
    sums = np.cumsum(chances[::-1])[::-1]  # from the smallest on, so that small sums are accurate too
    sums /= sums[0]
    sums.flags.writeable = False
    return first, sums


def _count(what: str, value: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise QueryError(f"{what} must be a whole number, got {value!r}; give an integer from 1 on")
    if value < 1:
        raise QueryError(f"{what} must be at least 1, got {value}; give an integer from 1 on")
    return value.__index__()

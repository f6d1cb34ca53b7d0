"""The rank-sum test of dynamic partitioning: does the current partition tend to score higher than the window?

The best rows of the current partition and the best rows of the interval before it are ranked together; when the
partition's ranks sum to more than chance allows, many of its rows will still matter when it reaches the front, so
it should not grow further. TKDE17 sections 2.2 and 4.2, equation (2); two-sided, alpha = 0.05. Below k = 10 the
critical values are exact (computed, not looked up), from 10 on the normal approximation is used. Equal scores
share their mean rank.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from skyband.kernels.jit import lean

ALPHA = 0.05
UPPER_QUANTILE = 1.959963984540054  # of the normal distribution at 1 - ALPHA / 2
EXACT_BELOW = 10


def eta_of(k: int) -> float:
    """The solution of (eta k - k) / sqrt(eta k) = 3 (theorem 1)."""
    return ((3 + math.sqrt(9 + 4 * k)) / 2) ** 2 / k


def zeta_star(k: int) -> float:
    """The solution of (zeta - k) / sqrt(zeta) = 3 (theorem 3): eta k."""
    return eta_of(k) * k


def zeta_max(k: int) -> float:
    """The solution of (zeta - zeta*) / sqrt(zeta*) = 3 (theorem 3)."""
    return zeta_star(k) + 3 * math.sqrt(zeta_star(k))


def largest_accepted(n1: int, n2: int) -> float:
    """T_up: the least t such that the rank sum of n1 among n1 + n2 exceeds t with probability at most ALPHA / 2."""
    top = n1 * (n1 + 2 * n2 + 1) // 2  # the largest sum: n1 last ranks
    ways = [[0] * (top + 1) for _ in range(n1 + 1)]
    ways[0][0] = 1
    for rank in range(1, n1 + n2 + 1):
        for chosen in range(min(rank, n1), 0, -1):
            for total in range(top, rank - 1, -1):
                ways[chosen][total] += ways[chosen - 1][total - rank]
    allowed = math.comb(n1 + n2, n1) * ALPHA / 2
    above, accepted = 0, top
    while accepted > 0 and above + ways[n1][accepted] <= allowed:
        above += ways[n1][accepted]
        accepted -= 1
    return float(accepted)


def critical_values(k: int) -> np.ndarray:
    """T_up for every pair of sample sizes the test can meet; empty where the normal approximation serves."""
    return _exact_values(k) if k < EXACT_BELOW else np.zeros((0, 0))


@lru_cache(maxsize=EXACT_BELOW)  # 75 ms for k = 9: of each query, again when its state is taken up
def _exact_values(k: int) -> np.ndarray:
    sample = math.ceil(zeta_star(k))
    table = np.zeros((k + 1, sample + 1))
    for n1 in range(1, k + 1):
        for n2 in range(1, sample + 1):
            table[n1, n2] = largest_accepted(n1, n2)
    return table


@lean
def rank_sum(ours, our_count, theirs, their_count):
    """R_1: the sum of our ranks when both samples (best first) are ranked together, the smallest score first."""
    i, j = our_count - 1, their_count - 1
    passed, total = 0, 0.0
    while i >= 0:
        value = ours[i] if j < 0 or ours[i] <= theirs[j] else theirs[j]
        our_ties = their_ties = 0
        while i >= 0 and ours[i] == value:
            our_ties += 1
            i -= 1
        while j >= 0 and theirs[j] == value:
            their_ties += 1
            j -= 1
        total += our_ties * (passed + (our_ties + their_ties + 1) / 2)
        passed += our_ties + their_ties
    return total


@lean
def evaluate(ours, our_count, theirs, their_count, critical):
    """The evaluation function of equation (2): above zero, our scores tend to be larger."""
    if our_count == 0 or their_count == 0:
        return -1.0
    ranks = rank_sum(ours, our_count, theirs, their_count)
    if critical.shape[0] > 0:
        return ranks - critical[our_count, their_count]
    both = our_count + their_count + 1
    return (ranks - our_count * both / 2) / np.sqrt(our_count * their_count * both / 12) - UPPER_QUANTILE

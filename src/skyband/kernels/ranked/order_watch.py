"""Is the stream in random order? Two rank tests on a few hundred scores, for algorithms that are fast only if it is.

Neighbours that resemble each other (a sensor, a ramp) or avoid each other (alternation) betray themselves in the recent
scores alone; a slow drift does not, but it sets the recent scores apart from those of the whole window. Only ranks count,
so any distribution of scores may come, and change: what matters is whether every order of the rows is equally likely.

TODS15 section 4.1.3 (last paragraph) names such a watch as future work and leaves it open. `serial_z` is von Neumann's
ratio on ranks (Bartels 1982), `drift_z` the rank-sum test; equal scores share their mean rank, and the variances are the
exact ones over all orders of the ranks at hand, tied or not. They look at all ranks alike: a drift that is slight beside the
noise goes unseen though it may decide who is among the best few, so no answer may depend on them. Rows without a score
(NaN) are left out, infinities rank.
Cost: one sort of m and one of 2m scores per look.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.jit import jit

SAMPLE = 256  # recent scores, and scores spread over the window, that one look compares
FEWEST = 16  # fewer scores than this say nothing

# Two tests at every look, a look every SAMPLE rows: 10**6 rows in random order are 2 * 3906 chances of 6.8e-6 (both tails)
# each, together 0.053 false alarms. From 4.37 on they are fewer than 0.1.
LEVEL = 4.5

EVEN_KURTOSIS = 1.8  # of ranks without ties


@jit
def scored(scores):
    """The scores that are not NaN, in their order."""
    kept, count = np.empty(len(scores)), 0
    for score in scores:
        if not np.isnan(score):
            kept[count] = score
            count += 1
    return kept[:count]


@jit
def centred_ranks(scores):
    """Every score's rank minus the mean rank; ties share the mean of theirs. O(m log m)."""
    count = len(scores)
    order = np.argsort(scores)
    ranks = np.empty(count)
    first = 0
    while first < count:
        end = first + 1
        while end < count and scores[order[end]] == scores[order[first]]:
            end += 1
        for place in range(first, end):
            ranks[order[place]] = (first + end - count) / 2
        first = end
    return ranks


@jit
def power_sums(ranks):
    """The sums of the centred ranks' second and fourth powers."""
    squares = fourths = 0.0
    for rank in ranks:
        square = rank * rank
        squares += square
        fourths += square * square
    return squares, fourths


@jit
def pulled_in(z, skewness):
    """The normal deviate as rare as `z`, if it varies like a gamma variable of this skewness (Wilson and Hilferty 1931).

    Where almost all scores are equal, few rows decide and z jumps like a Poisson count: two of them side by side by
    chance would be eight deviations. Never further out than z itself.
    """
    if skewness <= 0.0:
        return z
    far = abs(z)
    near = 6.0 / skewness * ((0.5 * skewness * far + 1.0) ** (1.0 / 3.0) - 1.0) + skewness / 6.0
    return np.copysign(min(far, near), z)


@jit
def serial_z(recent):
    """How much neighbours resemble each other (above 0) or avoid each other (below), in standard deviations.

    0.0 if fewer than FEWEST rows have a score, or all the same. O(m log m).
    """
    kept = scored(recent)
    count = len(kept)
    if count < FEWEST:
        return 0.0
    ranks = centred_ranks(kept)
    squares, fourths = power_sums(ranks)
    if squares == 0.0:
        return 0.0
    steps = 0.0
    for i in range(1, count):
        step = ranks[i] - ranks[i - 1]
        steps += step * step
    # Over all orders of the ranks, `steps` has mean 2 squares and this variance; without ties it is Bartels' (1982).
    kurtosis = count * fourths / (squares * squares)
    deviation = squares * np.sqrt((4 * count - 6 - 2 * kurtosis) / (count * (count - 1)))
    # A sum of products of neighbours is skewed by the square of the ranks' own skewness, and long-tailed even where that
    # is none (few high, few low, the rest equal). The kurtosis covers both; without ties there is nothing to correct.
    return pulled_in((2.0 * squares - steps) / deviation, (kurtosis - EVEN_KURTOSIS) / np.sqrt(count))


@jit
def drift_z(recent, spread):
    """How much higher (above 0) or lower the recent scores are than those spread over the window, in standard deviations.

    0.0 if fewer than FEWEST rows of either have a score, or all the same. O(m log m).
    """
    ours, theirs = scored(recent), scored(spread)
    our_count, their_count = len(ours), len(theirs)
    if our_count < FEWEST or their_count < FEWEST:
        return 0.0
    ranks = centred_ranks(np.concatenate((ours, theirs)))
    squares, fourths = power_sums(ranks)
    if squares == 0.0:
        return 0.0
    total = 0.0
    for i in range(our_count):
        total += ranks[i]
    count = our_count + their_count
    deviation = np.sqrt(squares * our_count * their_count / (count * (count - 1.0)))
    # The sum of a few ranks out of many is as skewed as they are; that of one half mirrors the other half's and is not.
    kurtosis = count * fourths / (squares * squares)
    lopsided = abs(their_count - our_count) / np.sqrt(float(our_count) * their_count * count)
    return pulled_in(total / deviation, np.sqrt(max(0.0, kurtosis - EVEN_KURTOSIS)) * lopsided)


@jit
def looks_ordered(recent, spread, level):
    """Whether the stream does not look like one in random order: either test is further out than `level`. O(m log m)."""
    return abs(serial_z(recent)) > level or abs(drift_z(recent, spread)) > level

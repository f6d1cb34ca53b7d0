"""What an instance promises: time among the best k. Where there is room for so many instances only, or so large a share of the
answers should be right, those that promise most are kept (ours).

What an instance promises is the chance that it comes to rank, times the root of the time it has. One whose object was seen
in all streams ranks, or will, for a while, if fewer than k newer objects outrank it before it ends: those that do now, and as
many more as are to be expected of the rank it has. Any other may be raised: that an object seen in m streams is seen in
another is as likely as it was for others of the same age and m in the time left; what it then has is what values are like. A
score at the rank k is enough then, one at the rank k + ahead is not, in between it may be. Going from objects seen everywhere
to those seen once gives the chances of all scores, in one table for each m.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skyband.kernels.across_tables import MAX, MEAN
from skyband.kernels.jit import lean, tiny

AGES = 16  # two for each halving of the age, the last being the window's
QUANTILES = 16
LATE = 0.1  # an instance that will rank only when others have left has so much of its time then
GRID = 64  # scores of the table, from 0 to what is enough


class Budget(NamedTuple):
    """How many instances may be held, and what is known of those to come."""

    on: int  # 0: nothing is told by promises
    most: int  # 0: as many as there are
    spare: int  # places that are made free at a time
    ahead: int
    alone: np.ndarray  # float64 [streams + 1, AGES + 1]: share of objects seen in m streams and in no other before an age
    values: np.ndarray  # float64 [QUANTILES]: what values are like
    reached: np.ndarray  # float64 [streams + 1, GRID]: room for the table
    expected: np.ndarray  # float64 [streams + 1, GRID]: the same, of objects just about to be seen in another stream
    worth: np.ndarray  # float64 [2, instances]: room; before: in how many ranks newer objects outrank it


@tiny
def age_of(age, span):
    """Which age it is."""
    if age * 256 <= span:
        return 0
    return min(AGES + math.floor(2.0 * math.log2(age / span)), AGES - 1)


@tiny
def _enough(score, bar, enough):
    """How surely a score ranks."""
    if score >= enough:
        return 1.0
    return 0.0 if score <= bar else (score - bar) / (enough - bar)


@tiny
def _looked_up(table, m, score, enough):
    if score >= enough:
        return 1.0
    place = score / enough * (GRID - 1)
    low = min(int(place), GRID - 2)
    return table[m, low] + (place - low) * (table[m, low + 1] - table[m, low])


@lean
def _fill_table(budget, streams, combine, bar, enough):
    """The chance to rank of an object seen in m streams, the last just now, and of one to be seen in one more, by score."""
    for i in range(GRID):
        budget.reached[streams, i] = _enough(enough * i / (GRID - 1), bar, enough)
    for m in range(streams - 1, 0, -1):
        chance = 1.0 - budget.alone[m, AGES]
        for i in range(GRID):
            score, total = enough * i / (GRID - 1), 0.0
            for j in range(QUANTILES):
                value = budget.values[j] / streams if combine == MEAN else budget.values[j]
                then = max(score, value) if combine == MAX else score + value
                total += _looked_up(budget.reached, m + 1, then, enough)
            budget.expected[m, i] = total / QUANTILES
            budget.reached[m, i] = chance * total / QUANTILES + (1.0 - chance) * _enough(score, bar, enough)


@lean
def objects_above(level, size, score):
    """How many of the first `size` levels, which fall, are above the score."""
    low, high = 0, size
    while low < high:
        middle = (low + high) >> 1
        if level[middle] > score:
            low = middle + 1
        else:
            high = middle
    return low


@lean
def _lasts(rank, newer, k, share):
    """The chance that fewer than k newer objects outrank an instance when it ends, `newer` of which do now; with so many above
    it in the window, as many more are expected as come in the share of a window that it has left."""
    if rank < k:
        return 1.0
    mean = rank * share
    term = total = math.exp(-mean)
    for i in range(1, k - newer):
        term *= mean / i
        total += term
    return LATE * min(total, 1.0) if newer < k else 0.0


@lean
def _worth_of(held, objects, at, reach, now, k, size, bar, enough, budget):
    """What an instance promises; only the time that no older instance of its object covers counts."""
    obj, streams = held.obj[at], held.values.shape[1]
    older = held.older[at]
    while older >= 0 and held.ordinal[older] >= reach and held.best[older] != held.best[older]:
        older = held.older[older]
    left, span = held.ordinal[at] - reach + 1, max(now - reach, 1)
    covered = older >= 0 and held.ordinal[older] >= reach
    own = held.ordinal[at] - held.ordinal[older] if covered else left
    seen = 0
    for x in range(streams):
        seen += objects.count[obj, x] > 0
    score = held.current[at]
    chance = _lasts(objects_above(held.level, size, score), int(budget.worth[0, at]), k, left / span)
    if seen < streams:
        age = now - objects.last[obj]
        before, after = budget.alone[seen, age_of(age, span)], budget.alone[seen, 1 + age_of(min(age + left, span), span)]
        more = 1.0 - after / before if before > 0.0 else 0.0
        chance = more * _looked_up(budget.expected, seen, score, enough) + (1.0 - more) * chance
    return chance * math.sqrt(own / span)


@lean
def _nth_smallest(values, count, n):
    """The value that would be at place n if the first `count` were sorted; they are moved about."""
    low, high = 0, count - 1
    while low < high:
        pivot, i, j = values[(low + high) >> 1], low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if n <= j:
            high = j
        elif n >= i:
            low = i
        else:
            break
    return values[n]


@lean
def weigh(held, objects, first, stop, now, reach, size, rule, budget):
    """Write down in budget.worth[0] what the instances in the places [first, stop) promise, but for those that are pruned (best
    is NaN); `size` objects stand in held.level, best first."""
    k, streams = rule.k, held.values.shape[1]
    enough = held.level[k - 1] if size >= k else 0.0
    bar = held.level[min(k + budget.ahead, size) - 1] if size > k else enough
    if enough > 0.0:
        _fill_table(budget, streams, rule.combine, bar, enough)
    for at in range(first, stop):
        if held.best[at] == held.best[at]:
            budget.worth[0, at] = _worth_of(held, objects, at, reach, now, k, size, bar, enough, budget)


@lean
def forget_least(held, first, stop, budget):
    """Of the instances in the places [first, stop) that are not pruned, prune those that promise least until no more than
    allowed are left."""
    count = 0
    for at in range(first, stop):
        if held.best[at] == held.best[at]:
            budget.worth[1, count] = budget.worth[0, at]
            count += 1
    surplus = count - (budget.most - budget.spare)
    if surplus <= 0:
        return
    cut = _nth_smallest(budget.worth[1], count, surplus)
    for ties in range(2):  # those below the cut, then, the oldest first, those at it
        for at in range(first, stop):
            if held.best[at] == held.best[at]:
                worth = budget.worth[0, at]
                if worth < cut or (ties == 1 and surplus > 0 and worth == cut):
                    held.best[at] = np.nan
                    surplus -= 1


@lean
def stand_on_instances(held, stop):
    """Make the `stop` instances the floors: those forgotten stand no more, and what they stood above may rank again."""
    for at in range(stop):
        held.floor_time[at], held.floor_obj[at], held.floor[at] = held.ordinal[at], held.obj[at], held.current[at]
    return stop

"""What an instance promises: time among the best k, by the time it has to be held for it (ours).

An instance ranks while fewer than k objects outrank it. Newer ones that do stay, older ones leave, more are to come; so its
score tells what share of its time it ranks, as far as no older instance of its object does. If its object may come again it may
be raised, too: how soon that is, and to what, is told by others of its class (`across.returns`). A promise is that time among
the best by the time it is held, at best: 1 of one that ranks, next to 0 of one that waits long for a small chance. Keeping
whatever promises more than a threshold loses least for what it holds, be the threshold given, told by the room there is, or
found out.

What a score is worth to an object of a class, just seen, is worked out on a grid of scores from the classes of which no more is
to come to those of which most is, whenever the score at the rank k has changed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skyband.kernels.across.returns import QUANTILES, Outlook, class_after, class_of, gap_of
from skyband.kernels.across.tables import LARGEST, MAX, MEAN
from skyband.kernels.jit import lean, tiny

GRID = 64  # scores of the table, from 0 to the best finite one there is; the last place is for all that score as much or more
SIGHT = 2  # times k: ranks beyond k that are told apart
_MOMENTS = 6  # of an instance's time that are looked at
_CHANGED = 1.0 / 64.0  # by so large a share the score at the rank k may change before the table is worked out anew
_LARGEST = np.finfo(np.float64).max
TOP, ENOUGH = 0, 1  # places in Promises.filled


class Promises(NamedTuple):
    """What is known of instances to come, and how many may be held."""

    on: int  # 0: nothing is told by promises
    most: int  # instances that may be held; 0: as many as there are
    spare: int  # places that are made free at a time
    threshold: np.ndarray  # float64 [1]: an instance that promises less is forgotten
    sets: np.ndarray  # see `across_returns.Returns`
    outlook: Outlook
    ranking: np.ndarray  # float64 [classes, GRID]: the share of its time that an object ranks, just seen; of class 0: as it is
    raised: np.ndarray  # float64 [classes, GRID]: the same, of one just about to be seen again
    filled: np.ndarray  # float64 [2]: the best score and that at the rank k, for which this was worked out; both finite
    worth: np.ndarray  # float64 [2, instances]: room; before: how many newer objects outrank it


@tiny
def _looked_up(table, which, score, top):
    if score >= top:  # infinite ones, too
        return table[which, GRID - 1]
    place = score / top * (GRID - 1)
    low = min(int(place), GRID - 2)
    return table[which, low] + (place - low) * (table[which, low + 1] - table[which, low])


@tiny
def _is_below(k, mean, variance):
    """The chance that a whole number with this mean and variance is below k (logistic in place of normal)."""
    if variance <= 0.0:
        return 1.0 if mean < k else 0.0
    return 1.0 / (1.0 + math.exp(-1.702 * (k - 0.5 - mean) / math.sqrt(variance)))


@lean
def _share_ranked(k, newer, older, coming, begin):
    """The share of its time in which fewer than k objects outrank an instance, from the share `begin` of it on: `newer` stay,
    `older` leave and others come evenly."""
    if newer >= (1 + SIGHT) * k:
        return 0.0
    total = 0.0
    for i in range(_MOMENTS):
        then = begin + (1.0 - begin) * (i + 0.5) / _MOMENTS
        mean = newer + older * (1.0 - then) + coming * then
        total += _is_below(k, mean, older * (1.0 - then) * then + coming * then)
    return (1.0 - begin) * total / _MOMENTS


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


@tiny
def _with(score, value, streams, rule):
    """The score with one more value; of one that may not add to its stream's, what it is above the streams' mean."""
    if rule.combine == MAX:
        return max(score, value)
    if rule.combine == MEAN:
        value /= streams
    return score + (max(value - score / streams, 0.0) if rule.aggregate == LARGEST and rule.repeats > 1 else value)


@lean
def _best_finite(level, size):
    """The best finite score above 0; 1 where there is none."""
    at = 0
    while at < size and level[at] == np.inf:
        at += 1
    return level[at] if at < size and level[at] > 0.0 else 1.0


@tiny
def _score_at_k(level, size, k):
    """The score at the rank k; an infinite one counts as the largest finite one, so that it can be compared by differences."""
    return min(level[k - 1], _LARGEST) if size >= k else 0.0


@lean
def _fill(promises, level, size, rule):
    """Work out what scores are worth."""
    outlook, ranking = promises.outlook, promises.ranking
    (classes, streams), sets = outlook.share.shape, promises.sets[0]
    top = _best_finite(level, size)
    promises.filled[TOP], promises.filled[ENOUGH] = top, _score_at_k(level, size, rule.k)
    for i in range(GRID):
        above = objects_above(level, size, top * (i / (GRID - 1)) if i < GRID - 1 else np.inf)
        ranking[0, i] = _share_ranked(rule.k, 0, above, above, 0.0)
    for c in range(classes - 1, 0, -1):
        for i in range(GRID):
            ranking[c, i] = ranking[0, i]
        if sets and c == classes - 1:
            continue
        for i in range(GRID - 1, -1, -1):  # where a class comes after itself, higher scores are known by then
            total = 0.0
            for x in range(streams):
                if outlook.share[c, x] > 0.0:
                    after = class_after(sets, c, x)
                    for q in range(QUANTILES):
                        score = _with(top * (i / (GRID - 1)), outlook.value[x, q], streams, rule)
                        total += outlook.share[c, x] * _looked_up(ranking, after, score, top)
            promises.raised[c, i] = total / QUANTILES
            ranking[c, i] = outlook.chance[c] * total / QUANTILES + (1.0 - outlook.chance[c]) * ranking[0, i]


@lean
def refill(promises, level, size, rule):
    """Work out anew what scores are worth, if that has changed; `size` objects stand in `level`, best first."""
    enough, filled = _score_at_k(level, size, rule.k), promises.filled
    if abs(enough - filled[ENOUGH]) > _CHANGED * filled[ENOUGH] or _best_finite(level, size) > filled[TOP]:
        _fill(promises, level, size, rule)


@lean
def promise_of(held, objects, at, reach, now, size, rule, promises):
    """What an instance promises, if those older and pruned (best is NaN) are gone; `size` objects stand in held.level."""
    obj, streams = held.obj[at], held.values.shape[1]
    older = held.older[at]
    while older >= 0 and held.ordinal[older] >= reach and held.best[older] != held.best[older]:
        older = held.older[older]
    left, span = held.ordinal[at] - reach + 1, max(now - reach, 1)
    covered = held.ordinal[older] - reach + 1 if older >= 0 and held.ordinal[older] >= reach else 0
    score, newer = held.current[at], int(promises.worth[0, at])
    rank = max(objects_above(held.level, size, score), newer)
    promise = _share_ranked(rule.k, newer, rank - newer, rank * left / span, covered / left)
    story, comes = 0, False
    for x in range(streams):
        count = objects.count[obj, x]
        story += (1 << x if count > 0 else 0) if promises.sets[0] else count
        comes |= count < rule.repeats
    if comes:
        which = class_of(promises.sets[0], story)
        raised = promises.outlook.soon[which, gap_of(now - objects.last[obj])] * (left - covered)
        raised *= _looked_up(promises.raised, which, score, promises.filled[TOP])
        promise += (1.0 - promise) * raised / (1.0 + raised)
    return promise


@lean
def nth_smallest(values, count, n):
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
def stand_on_instances(held, stop):
    """Make the `stop` instances the floors: those forgotten stand no more, and what they stood above may rank again."""
    for at in range(stop):
        held.floor_time[at], held.floor_obj[at], held.floor[at] = held.ordinal[at], held.obj[at], held.current[at]
    return stop

"""What a threshold on promises would lose, told by objects that are kept all the same (ours).

One object in so many is a *witness*: its instances are pruned only where that is certain, and the least that each has promised
is remembered. Whenever one ranks, that least says which thresholds would have lost it before; so the witnesses that have ranked
tell of every threshold at once what share of the ranks it would lose, and the boldest that loses little enough can be taken
without being tried. While nothing is forgotten, every object is a witness.

Most instances promise next to nothing. So that they do not fill the memory, of those that fall far below the threshold only
every second, fourth or eighth witness's are kept, and stand for as many; of a memory that is given they take a part, and are
as few as fit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skyband.kernels.across.promise import nth_smallest, promise_of
from skyband.kernels.jit import lean, tiny

STEPS = 64  # thresholds that are told apart, four for each halving of the promise
LEAST = 2.0 ** (-STEPS / 4)

# places in Witnesses.tally, after those of the steps
RANKED = STEPS  # ranks of witnesses' instances in windows answered
LOST = STEPS + 1  # those of them that were forgotten, had they not been witnesses'
DISTINCT = STEPS + 2  # the instances in these ranks, each once
TALLY = STEPS + 3

ONE_IN = 8  # objects is a witness
DEEPEST = 3  # of witnesses' instances far below the threshold one in 2^depth is kept
_BOTTOM = 24  # no witness is so deep
_TOO_LITTLE = -1.0  # in Promises.worth
_DEPTH = 2  # bits of Instances.doubted from this one on: how deep it has been


class Witnesses(NamedTuple):
    """What witnesses tell."""

    on: int  # 0: there are none
    places: int  # of a memory, that are theirs
    tally: np.ndarray  # float64 [TALLY]: first, ranks of instances by the least they had promised before


@tiny
def is_witness(life, depth):
    """One life in so many, chosen at random but the same way every time."""
    return depth < _BOTTOM and ((life & 0xFFFFFFFF) * 1640531527 >> 20) & ((ONE_IN << depth) - 1) == 0


@tiny
def step_of(promise):
    """Which step a promise is on: the first ones are the largest promises."""
    if promise <= LEAST:
        return STEPS - 1
    return min(max(int(-4.0 * math.log2(promise)), 0), STEPS - 1)


@tiny
def depth_of(promise, threshold):
    """How far a promise is below the threshold: by up to a quarter, a sixteenth, a 64th of it, or more."""
    depth, edge = 0, threshold / 4
    while depth < DEEPEST and promise < edge:
        depth, edge = depth + 1, edge / 4
    return depth


@lean
def forget_unpromising(held, objects, first, stop, reach, now, size, rule, promises, witnesses):
    """Of the instances in the places [first, stop) that are not pruned (best is NaN), prune those that promise too little, the
    oldest first: what one leaves to do may be what the next is kept for."""
    threshold = promises.threshold[0]
    for at in range(first, stop):
        if held.best[at] == held.best[at]:
            promise = promise_of(held, objects, at, reach, now, size, rule, promises)
            held.least[at] = min(held.least[at], promise)
            if promise < threshold:
                _doubt(held, objects, at, depth_of(promise, threshold), witnesses.on)


@lean
def forget_least(held, objects, first, stop, reach, now, size, rule, promises, witnesses):
    """Of the instances in the places [first, stop) that are not pruned (best is NaN), prune those that promise least until no
    more than allowed are left, of which some places are witnesses': as deep that no more are taken."""
    count, worth = 0, promises.worth
    for at in range(first, stop):
        if held.best[at] == held.best[at]:
            worth[0, at] = worth[1, count] = promise_of(held, objects, at, reach, now, size, rule, promises)
            held.least[at] = min(held.least[at], worth[0, at])
            count += 1
    surplus = count - (promises.most - promises.spare)
    if surplus <= 0:
        return
    surplus += witnesses.places
    cut = nth_smallest(worth[1], count, surplus)
    for ties in range(2):  # those below the cut, then, the oldest first, those at it
        for at in range(first, stop):
            is_least = worth[0, at] < cut or (ties == 1 and surplus > 0 and worth[0, at] == cut)
            if held.best[at] == held.best[at] and worth[0, at] >= 0.0 and is_least:
                worth[0, at] = _TOO_LITTLE
                surplus -= 1
    depth = _depth_for(held, objects, first, stop, worth, witnesses.places)
    for at in range(first, stop):
        if held.best[at] == held.best[at] and worth[0, at] == _TOO_LITTLE:
            _doubt(held, objects, at, depth, witnesses.on)


@lean
def _depth_for(held, objects, first, stop, worth, places):
    """The least depth of which no more witnesses are among those that promise too little than there are places."""
    depth = 0
    while depth < _BOTTOM:
        count = 0
        for at in range(first, stop):
            if held.best[at] == held.best[at] and worth[0, at] == _TOO_LITTLE:
                count += is_witness(objects.life[held.obj[at]], max(np.int64(held.doubted[at]) >> _DEPTH, depth))
        if count <= places:
            break
        depth += 1
    return depth


@tiny
def _doubt(held, objects, at, depth, witnessing):
    """Prune an instance that promises too little, or keep it as a witness's, of its depth at least."""
    depth = max(np.int64(held.doubted[at]) >> _DEPTH, depth)
    if witnessing and is_witness(objects.life[held.obj[at]], depth):
        held.doubted[at] = (held.doubted[at] & 2) | 1 | (depth << _DEPTH)
    else:
        held.best[at] = np.nan


@lean
def count_ranked(held, objects, top, witnesses):
    """Take down which instances rank in a window, and what they had promised: all that were never doubted, and as many as a
    witness stands for."""
    tally = witnesses.tally
    for rank in range(top.size[0]):
        at = objects.head[top.obj[rank]]
        while at >= 0 and held.ordinal[at] > top.time[rank]:
            at = held.older[at]
        if at >= 0 and held.ordinal[at] == top.time[rank]:
            doubted = held.doubted[at] & 1
            weight = 1.0 * (ONE_IN << (np.int64(held.doubted[at]) >> _DEPTH)) if doubted else 1.0
            tally[step_of(held.least[at])] += weight
            tally[RANKED] += weight
            tally[LOST] += weight * doubted
            tally[DISTINCT] += held.doubted[at] & 2 == 0
            held.doubted[at] |= 2


def telling(lost: float) -> float:
    """How many instances must have ranked to tell whether so large a share of the ranks is lost, at most."""
    return ONE_IN / lost


def boldest(tally: np.ndarray, lost: float) -> float:
    """The largest threshold that loses no more than so large a share of the ranks, even if the next to rank were a witness that
    would be lost, and what it stands for; 0 where none does."""
    ranks, distinct = tally[RANKED], tally[DISTINCT]
    beyond = np.append(np.cumsum(tally[:STEPS][::-1])[::-1][1:], 0.0) / ranks  # lost, if what is on this step is not
    enough = np.flatnonzero(beyond * distinct + ONE_IN <= lost * (distinct + ONE_IN))
    if len(enough) == 0 or enough[0] == STEPS - 1:
        return 0.0
    return float(2.0 ** (-(enough[0] + 1) / 4))

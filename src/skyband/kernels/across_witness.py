"""What a threshold on promises would lose, told by objects that are kept all the same (ours).

One object in so many is a *witness*: its instances are pruned only where that is certain, and the least that each has promised
is remembered. Whenever one ranks, that least says which thresholds would have lost it before; so the witnesses that have ranked
tell of every threshold at once what share of the ranks it would lose, and the boldest that loses little enough can be taken
without being tried. While nothing is forgotten, every object is a witness.

Most instances promise next to nothing. So that they do not fill the memory, of those that fall far below the threshold only
every second, fourth or eighth witness's are kept, and stand for as many.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skyband.kernels.jit import lean, tiny

STEPS = 64  # thresholds that are told apart, four for each halving of the promise

# places in Witnesses.tally, after those of the steps
RANKED = STEPS  # ranks of witnesses' instances in windows answered
LOST = STEPS + 1  # those of them that were forgotten, had they not been witnesses'
DISTINCT = STEPS + 2  # the instances in these ranks, each once
TALLY = STEPS + 3

DEEPEST = 3  # of witnesses' instances far below the threshold one in 2^depth is kept
_DEPTH = 2  # bits of Instances.doubted from this one on: how deep it has been


class Witnesses(NamedTuple):
    """Which objects are witnesses, and what they tell."""

    on: int  # 0: nobody asked for a precision
    threshold: np.ndarray  # float64 [1]: an instance that promises less is forgotten; 0: none is
    one_in: np.ndarray  # int64 [1]: one object in so many is a witness
    tally: np.ndarray  # float64 [TALLY]: first, ranks of witnesses' instances by the least they had promised before


@tiny
def is_witness(life, one_in):
    """One life in so many, chosen at random but the same way every time."""
    return ((life & 0xFFFFFFFF) * 1640531527 >> 20) % one_in == 0


@tiny
def step_of(promise):
    """Which step a promise is on: the first ones are the largest promises."""
    if promise <= 2.0 ** (-STEPS / 4):
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
def forget_unpromising(held, objects, first, stop, promise, witnesses):
    """Of the instances in the places [first, stop) that are not pruned (best is NaN), prune those that promise too little."""
    threshold = witnesses.threshold[0]
    for at in range(first, stop):
        if held.best[at] == held.best[at]:
            held.least[at] = min(held.least[at], promise[at])
            if promise[at] < threshold:
                depth = max(np.int64(held.doubted[at]) >> _DEPTH, depth_of(promise[at], threshold))
                if is_witness(objects.life[held.obj[at]], witnesses.one_in[0] << depth):
                    held.doubted[at] = (held.doubted[at] & 2) | 1 | (depth << _DEPTH)
                else:
                    held.best[at] = np.nan


@lean
def count_witnesses(held, objects, top, witnesses):
    """Take down which witnesses rank in a window, and what they had promised."""
    tally = witnesses.tally
    for rank in range(top.size[0]):
        obj = top.obj[rank]
        if is_witness(objects.life[obj], witnesses.one_in[0]):
            at = objects.head[obj]
            while at >= 0 and held.ordinal[at] > top.time[rank]:
                at = held.older[at]
            if at >= 0 and held.ordinal[at] == top.time[rank]:
                weight = 1.0 * (1 << (np.int64(held.doubted[at]) >> _DEPTH))
                tally[step_of(held.least[at])] += weight
                tally[RANKED] += weight
                tally[LOST] += weight * (held.doubted[at] & 1)
                tally[DISTINCT] += held.doubted[at] & 2 == 0
                held.doubted[at] |= 2


def boldest(tally: np.ndarray, lost: float) -> float:
    """The largest threshold that loses no more than so large a share of the ranks, even if the next witness were lost; 0 where
    none does."""
    ranks, distinct = tally[RANKED], tally[DISTINCT]
    beyond = np.append(np.cumsum(tally[:STEPS][::-1])[::-1][1:], 0.0) / ranks  # lost, if what is on this step is not
    enough = np.flatnonzero(beyond * distinct + 1.0 <= lost * (distinct + 2.0))
    if len(enough) == 0 or enough[0] == STEPS - 1:
        return 0.0
    return float(2.0 ** (-(enough[0] + 1) / 4))

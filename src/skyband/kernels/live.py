"""Rows that can still win: fewer than k newer rows rank above them."""

from __future__ import annotations

import numpy as np

from skyband.kernels.jit import jit, lean
from skyband.kernels.tables import BLOCK

PART = 32  # rows passed over at once when none reaches the floor, in a block where some do
STOP, FOUND, DUE, UNKNOWN = 0, 1, 2, 3  # of a walk: rows left, rows found, found when the floor is due to rise, NaNs met


@jit
def live_rows(scores, k, settled):
    """Places of the rows (oldest first in `scores`) that fewer than k newer rows outrank, in increasing order; how
    many scores are NaN; and a ceiling for each block of rows, as `tables.Ceilings` have it. `settled`: nobody asks for a
    window that ends before the last of the rows, so that blocks without a live row are of no use.

    A walk from the newest row to the oldest, above a floor that k newer rows reach. The floor is worked out again, from
    the best k it knew and the latest taken, when half of k more were taken, or twice as many as the last time if the
    latest k of those were the best: then the stream falls, and every row is live whatever the floor. Some rows below
    the true floor stay, none above it is lost, and a row costs O(1). NaN is never live.
    """
    places = np.empty(scores.shape[0] + 1, np.int64)
    ceilings = np.empty((scores.shape[0] + BLOCK - 1) // BLOCK)
    best = np.empty(3 * k)  # the k best known, then the latest taken
    known = 0
    progress = np.zeros(4, np.int64)
    progress[STOP] = scores.shape[0]
    progress[DUE] = k
    seen = 0  # rows found that the floor knows of
    floor = -np.inf
    _walk(scores, places, ceilings, progress, floor, settled)
    while progress[STOP] > 0:
        found = progress[FOUND]
        latest = min(found - seen, 2 * k)
        for i in range(latest):
            best[known + i] = scores[places[found - latest + i]]
        floor = _raise(best, known + latest, k)
        low = 0
        for i in range(found - min(latest, k), found):
            low += scores[places[i]] < floor
        progress[DUE] = found + (2 * (found - seen) if low == 0 and known > 0 else max(k, 16) // 2)
        known, seen = k, found
        # a row at the k-th best is outranked by those k newer ones: only what is above it is live
        floor = np.nextafter(floor, np.inf)
        _walk(scores, places, ceilings, progress, floor, settled)
    return places[: progress[FOUND]][::-1], progress[UNKNOWN], ceilings


@lean
def _raise(best, count, k):
    """Move the best k of `count` numbers to the front, in any order. Returns the least of them. O(count) expected."""
    low, stop = 0, count
    while stop - low > 1:
        pivot = _middle(best[low], best[(low + stop) >> 1], best[stop - 1])
        part = best[low:stop]
        above = np.uint64(0)  # unsigned, and a view from 0 on: no check for negative indices
        for i in range(part.size):  # swapped without a branch, which would be guessed wrong every other time
            here = part[i]
            part[i] = part[above]
            part[above] = here
            above += np.uint64(here > pivot)
        equal = above
        for i in range(np.int64(above), part.size):
            here = part[i]
            part[i] = part[equal]
            part[equal] = here
            equal += np.uint64(here == pivot)
        if k <= low + np.int64(above):
            stop = low + np.int64(above)
        elif k > low + np.int64(equal):
            low += np.int64(equal)
        else:
            return pivot
    return best[k - 1]


@lean
def _middle(a, b, c):
    """The second of three numbers by size."""
    return max(min(a, b), min(max(a, b), c))


@jit
def _count_below(scores, begin, stop, floor):
    """Of scores[begin:stop], how many are below the floor. Vectorized; downwards, as the walk goes: a reader that turns
    around in every block is three times slower, because memory is not fetched ahead of it."""
    below = 0
    for i in range(np.uint64(stop - begin)):
        below += scores[np.uint64(stop - 1) - i] < floor
    return below


@jit
def _ceiling(scores, places, start, stop):
    """The least number above the scores at places[start:stop], which are not empty; NaN if there is none."""
    best = scores[places[start]]
    for i in range(start + 1, stop):
        best = max(best, scores[places[i]])
    return np.nextafter(best, np.inf) if best < np.inf else np.nan


@jit
def _walk(scores, places, ceilings, progress, floor, settled):
    """Go on from newer to older rows until none is left or the floor is due to rise."""
    stop, found, unknown = progress[STOP], progress[FOUND], 0
    while stop > 0 and found < progress[DUE]:
        block = (stop - 1) // BLOCK
        begin = block * BLOCK
        ceilings[block] = -np.inf if settled else floor
        if _count_below(scores, begin, stop, floor) == stop - begin:
            stop = begin
            continue
        found_before, unknown_before = found, unknown  # few blocks: a row reaches the floor, or is NaN
        while stop > begin:
            start = max(begin, stop - PART)
            below = _count_below(scores, start, stop, floor)
            if below < stop - start:
                unknown += stop - start - below + found
                for i in range(stop - 1, start - 1, -1):  # without a branch: written anyway, kept if it reaches the floor
                    places[found] = i
                    found += scores[i] >= floor
                unknown -= found
            stop = start
        ceilings[block] = _ceiling(scores, places, found_before, found) if unknown == unknown_before else np.nan
    progress[STOP], progress[FOUND] = stop, found
    progress[UNKNOWN] += unknown

"""Rows that can still win: fewer than k newer rows rank above them."""

from __future__ import annotations

import numpy as np

from skyband.kernels.best import keep_best, worst
from skyband.kernels.jit import jit

BLOCK = 256  # rows passed over at once when none reaches the floor
STOP, FOUND, SEEN, UNKNOWN = 0, 1, 2, 3  # of a walk: rows left, rows found, of those the rows the floor knows of, NaNs met


@jit
def live_rows(scores, k):
    """Places of the rows (oldest first in `scores`) that fewer than k newer rows outrank, in increasing order; and
    how many scores are NaN.

    A walk from the newest row to the oldest, above a floor that k newer rows reach. The floor is worked out again
    whenever as many more rows were taken as half of k and an eighth of all before, from the best k it knew and the
    latest taken. Some rows below the true floor stay (few of a random stream; of a falling one all rows are live
    anyway), none above it is lost, and a row costs O(1). NaN is never live.
    """
    places = np.empty(scores.shape[0] + 1, np.int64)
    best, ordinal = np.empty(3 * k), np.empty(3 * k, np.int64)  # the k best known, then the latest taken
    known = 0
    progress = np.zeros(4, np.int64)
    progress[STOP] = scores.shape[0]
    floor = -np.inf
    while progress[STOP] > 0:
        found, seen = progress[FOUND], progress[SEEN]
        if found - seen >= _patience(k, found):
            latest = min(found - seen, 2 * k)
            for i in range(latest):
                place = places[found - latest + i]
                best[known + i], ordinal[known + i] = scores[place], place
            known += latest
            if known > k:
                keep_best(best, ordinal, known, k)
                known = k
            if known == k:
                # a row at the k-th best is outranked by those k newer ones: only what is above it is live
                floor = np.nextafter(best[worst(best, ordinal, k)], np.inf)
            progress[SEEN] = found
        _walk(scores, k, places, progress, floor)
    return places[: progress[FOUND]][::-1], progress[UNKNOWN]


@jit
def _patience(k, found):
    """How many rows may be taken before the floor is worked out again."""
    return max(k, 16) // 2 + found // 8 if found >= k else k


@jit
def _walk(scores, k, places, progress, floor):
    """Go on from newer to older rows until none is left or the floor is due to rise."""
    stop, found, unknown = progress[STOP], progress[FOUND], 0
    due = progress[SEEN] + _patience(k, found)
    while stop > 0 and found < due:
        begin = max(stop - BLOCK, 0)
        block = scores[begin:stop]  # indices from 0 on: the comparison is vectorized
        below = 0
        for i in range(block.size):
            below += block[i] < floor
        if below < block.size:  # few blocks: a row reaches the floor, or is NaN
            before = found
            for i in range(block.size - 1, -1, -1):  # without a branch: written anyway, kept if it reaches the floor
                places[found] = begin + i
                found += block[i] >= floor
            unknown += block.size - below - (found - before)
        stop = begin
    progress[STOP], progress[FOUND] = stop, found
    progress[UNKNOWN] += unknown

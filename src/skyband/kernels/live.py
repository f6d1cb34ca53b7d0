"""Rows that can still win: fewer than k newer rows rank above them."""

from __future__ import annotations

import numpy as np

from skyband.kernels.best import any_at_least, keep_best, worst
from skyband.kernels.jit import jit

WIDE, BLOCK = 512, 16  # rows passed over at once when none reaches the floor; rows looked at one by one when one does
# of a walk: rows left, rows found, of those the rows the floor knows of, whether the floor is set, NaNs met
STOP, FOUND, SEEN, FULL, UNKNOWN = 0, 1, 2, 3, 4


@jit
def live_rows(scores, k):
    """Places of the rows (oldest first in `scores`) that fewer than k newer rows outrank, in increasing order; and
    how many scores are NaN.

    A walk from the newest row to the oldest, above a floor: the k-th best of the rows taken, as of the last time it
    was worked out, which is whenever as many more were taken as half of k and an eighth of all before. Some rows below
    the true floor stay (few of a random stream; of a falling one all rows are live anyway), none above it is lost, and
    a row costs O(1). NaN is never live.
    """
    places = np.empty(4 * k + 2 * WIDE, np.int64)
    best, ordinal = np.empty(2 * k), np.empty(2 * k, np.int64)  # the k best taken, then those taken since
    progress = np.zeros(5, np.int64)
    progress[STOP] = scores.shape[0]
    floor = -np.inf
    while progress[STOP] > 0:
        found, seen = progress[FOUND], progress[SEEN]
        if found - seen >= _patience(k, found):
            kept = min(seen, k)
            if kept + found - seen > best.shape[0]:
                best, ordinal = _widened(best, ordinal, kept, 2 * (kept + found - seen))
            for i in range(found - seen):
                ordinal[kept + i] = places[seen + i]
                best[kept + i] = scores[places[seen + i]]
            keep_best(best, ordinal, kept + found - seen, min(k, found))
            progress[SEEN] = found
            if found >= k:
                floor = best[worst(best, ordinal, k)]
                progress[FULL] = 1
        if found + WIDE > places.shape[0]:
            wider = np.empty(2 * places.shape[0], np.int64)
            wider[:found] = places[:found]
            places = wider
        _walk(scores, k, places, progress, floor)
    return places[: progress[FOUND]][::-1].copy(), progress[UNKNOWN]


@jit
def _patience(k, found):
    """How many rows may be taken before the floor is worked out again."""
    return max(k, 16) // 2 + found // 8 if found >= k else k


@jit
def _widened(best, ordinal, kept, room):
    wide_best, wide_ordinal = np.empty(room), np.empty(room, np.int64)
    wide_best[:kept] = best[:kept]
    wide_ordinal[:kept] = ordinal[:kept]
    return wide_best, wide_ordinal


@jit
def _walk(scores, k, places, progress, floor):
    """Go on from newer to older rows until none is left, the floor is due to rise, or `places` could overflow."""
    stop, found, full, unknown = progress[STOP], progress[FOUND], progress[FULL] == 1, 0
    due = progress[SEEN] + _patience(k, found)
    while stop > 0 and found < due and found + WIDE <= places.shape[0]:
        wide_begin = max(stop - WIDE, 0)
        hits = 0
        block = scores[wide_begin:stop]
        for i in range(block.size):
            hits += block[i] >= floor
            unknown += block[i] != block[i]
        if hits == 0:
            stop = wide_begin
        while stop > wide_begin:
            begin = max(stop - BLOCK, wide_begin)
            if any_at_least(scores, begin, stop, floor):
                for i in range(stop - 1, begin - 1, -1):
                    # once k newer rows reach the floor, a row at the floor is outranked k times
                    if scores[i] > floor or (not full and scores[i] == floor):
                        places[found] = i
                        found += 1
            stop = begin
    progress[STOP], progress[FOUND] = stop, found
    progress[UNKNOWN] += unknown

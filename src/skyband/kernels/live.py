"""Rows that can still win: fewer than k newer rows rank above them."""

from __future__ import annotations

import numpy as np

from skyband.kernels.best import any_at_least, keep_best, worst
from skyband.kernels.jit import jit

WIDE, BLOCK = 512, 32  # rows passed over at once when none reaches the floor; rows looked at one by one when one does
STOP, FOUND, COUNT, FULL = 0, 1, 2, 3  # of a walk's progress: rows left, rows found, rows in the buffer, floor is reached


@jit
def live_rows(scores, k):
    """Places of the rows (oldest first in `scores`) that fewer than k newer rows outrank, in increasing order.

    One walk from the newest row to the oldest, above a floor that is the k-th best so far and rises each time
    k more rows were taken: a few rows below the true floor may stay, none above it is lost. NaN is never live.
    O(1) a row.
    """
    places = np.empty(4 * k + 2 * WIDE, np.int64)
    best, ordinal = np.empty(2 * k), np.empty(2 * k, np.int64)
    progress = np.zeros(4, np.int64)
    progress[STOP] = scores.shape[0]
    floor = -np.inf
    while progress[STOP] > 0:
        if progress[FOUND] + WIDE > places.shape[0]:
            wider = np.empty(2 * places.shape[0], np.int64)
            wider[: progress[FOUND]] = places[: progress[FOUND]]
            places = wider
        floor = _walk(scores, k, places, best, ordinal, progress, floor)
    return places[: progress[FOUND]][::-1].copy()


@jit
def _walk(scores, k, places, best, ordinal, progress, floor):
    """Go on from newer to older rows until none is left or `places` could overflow. Returns the floor."""
    stop, found, count, full = progress[STOP], progress[FOUND], progress[COUNT], progress[FULL] == 1
    while stop > 0 and found + WIDE <= places.shape[0]:
        wide_begin = max(stop - WIDE, 0)
        if not any_at_least(scores, wide_begin, stop, floor):
            stop = wide_begin
        while stop > wide_begin:
            begin = max(stop - BLOCK, wide_begin)
            if any_at_least(scores, begin, stop, floor):
                for i in range(stop - 1, begin - 1, -1):
                    # once k newer rows reach the floor, a row at the floor is outranked k times
                    if scores[i] > floor or (not full and scores[i] == floor):
                        places[found] = i
                        found += 1
                        best[count] = scores[i]
                        ordinal[count] = i
                        count += 1
                        if count == 2 * k:
                            keep_best(best, ordinal, count, k)
                            count = k
                            floor = best[worst(best, ordinal, count)]
                            full = True
            stop = begin
    progress[STOP], progress[FOUND], progress[COUNT], progress[FULL] = stop, found, count, full
    return floor

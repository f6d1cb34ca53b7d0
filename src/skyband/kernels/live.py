"""Rows that can still win: fewer than k newer rows rank above them."""

from __future__ import annotations

import numpy as np

from skyband.kernels.best import BLOCK, keep_best, worst
from skyband.kernels.jit import jit

STOP, FOUND, COUNT, FULL = 0, 1, 2, 3  # of a walk's progress: rows left, rows found, rows in the buffer, floor is reached


@jit
def live_rows(scores, k):
    """Places of the rows (oldest first in `scores`) that fewer than k newer rows outrank, in increasing order.

    One walk from the newest row to the oldest, above a floor that is the k-th best so far and rises each time
    k more rows were taken: a few rows below the true floor may stay, none above it is lost. NaN is never live.
    O(1) a row.
    """
    places = np.empty(4 * k + 1024, np.int64)
    best, ordinal = np.empty(2 * k), np.empty(2 * k, np.int64)
    progress = np.zeros(4, np.int64)
    progress[STOP] = scores.shape[0]
    floor = -np.inf
    while progress[STOP] > 0:
        if progress[FOUND] + BLOCK > places.shape[0]:
            wider = np.empty(2 * places.shape[0], np.int64)
            wider[: progress[FOUND]] = places[: progress[FOUND]]
            places = wider
        floor = _walk(scores, k, places, best, ordinal, progress, floor)
    return places[: progress[FOUND]][::-1].copy()


@jit
def _walk(scores, k, places, best, ordinal, progress, floor):
    """Go on from newer to older rows until none is left or `places` could overflow. Returns the floor."""
    stop, found, count, full = progress[STOP], progress[FOUND], progress[COUNT], progress[FULL] == 1
    while stop > 0 and found + BLOCK <= places.shape[0]:
        begin = max(stop - BLOCK, 0)
        block = scores[begin:stop]  # indices from 0 on: the comparison is vectorized
        hits = 0
        for j in range(block.size):
            hits += block[j] >= floor
        if hits > 0:
            for j in range(block.size - 1, -1, -1):
                # once k newer rows reach the floor, a row at the floor is outranked k times
                if block[j] > floor or (not full and block[j] == floor):
                    places[found] = begin + j
                    found += 1
                    best[count] = block[j]
                    ordinal[count] = begin + j
                    count += 1
                    if count == 2 * k:
                        keep_best(best, ordinal, count, k)
                        count = k
                        floor = best[worst(best, ordinal, count)]
                        full = True
        stop = begin
    progress[STOP], progress[FOUND], progress[COUNT], progress[FULL] = stop, found, count, full
    return floor

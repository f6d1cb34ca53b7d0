"""The windows that close while rows come in, of many queries, in the order in which they close."""

from __future__ import annotations

import numpy as np

from skyband.kernels.jit import jit

ROWS = 2048  # listed at once: what is written for so many stays in the cache


@jit
def list_windows(sizes, slides, report, since, after, upto, query, number, first, end, told):
    """The windows with after < end <= upto over rows from `since` on, by end, then by query, into the five columns.

    A query marked in `report` has all of them, others only their last. Sorted by counting: O(rows + windows + queries for
    every ROWS rows).
    """
    place = np.empty(ROWS + 1, np.int64)
    begin = 0
    for low in range(after, upto, ROWS):
        high = min(low + ROWS, upto)
        place[:] = 0
        for q in range(sizes.shape[0]):
            slide = slides[q]
            for n in range(_from(slide, report[q], low, upto), high // slide + 1):
                place[n * slide - low] += 1
        for at in range(ROWS + 1):
            begin, place[at] = begin + place[at], begin
        for q in range(sizes.shape[0]):
            slide = slides[q]
            for n in range(_from(slide, report[q], low, upto), high // slide + 1):
                at = place[n * slide - low]
                place[n * slide - low] += 1
                query[at], number[at], first[at], end[at] = q, n, max(n * slide - sizes[q], since), n * slide
                told[at] = report[q]


@jit
def _from(slide, report, low, upto):
    """The number of the first window to list that ends behind `low`."""
    return low // slide + 1 if report else max(low // slide + 1, upto // slide)

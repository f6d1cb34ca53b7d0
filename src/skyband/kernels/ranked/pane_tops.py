"""The best k rows of each pane, by a floor guessed from the panes before.

Most panes are like the one before them, so that the floor which that one's best reach lets few rows through: one vectorized
comparison a row. Where fewer than k rows of a pane reach it, the pane is gathered again without one; where that happens
again and again, as scores fall, or far too many do, as they rise, guessing rests for longer and longer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.best import BLOCK, any_at_least, finish, keep_best, worst
from skyband.kernels.jit import jit, lean
from skyband.kernels.sap.rows import gather

# places in PaneTops.marks
FAILURES = 0  # floors that were too high or far too low, one after the other
REST = 1  # panes to gather without a floor
MARKS = 2

TOGETHER = 8 * BLOCK  # rows compared with the floor at once
_LONGEST_REST = 30  # panes


class PaneTops(NamedTuple):
    """Which rows the numbered best ones are, and what is known of the panes to come."""

    ordinals: np.ndarray  # int64 [power of two]: the ordinal of row r of pane p in place (p k + r) & (length - 1)
    floor: np.ndarray  # float64 [1]: the score that more than k rows of the next pane should reach; -inf: nothing is known
    marks: np.ndarray  # int64 [MARKS]


@lean
def _gathered(scores, begin, stop, shift, floor, score, ordinal, keep):
    """Gather the rows scores[begin:stop] into an empty buffer. Returns how many it has, at least the best `keep` at or above
    the floor, and whether it was full before."""
    count, overflown = 0, False
    newest_first = scores[begin] <= scores[stop - 1]  # the better end: if scores rise, the rest cannot reach the floor
    while begin < stop:
        low = max(stop - TOGETHER, begin) if newest_first else begin
        high = stop if newest_first else min(begin + TOGETHER, stop)
        if any_at_least(scores, low, high, floor):
            floor, count, reduced = gather(scores, low, high, shift, floor, score, ordinal, count, keep)
            overflown |= reduced
            if newest_first and reduced:
                floor = np.nextafter(floor, np.inf)  # what is left is older than all that is held: ties lose
        if newest_first:
            stop = low
        else:
            begin = high
    return count, overflown


@jit
def best_of_panes(tops, scores, shift, cuts, number, k, keep, best):
    """Write the best k rows of the panes that begin at the ordinals `cuts`, the first of which has the given number, into
    `best`: pane by pane, worst first, so that of equal scores the newer one comes later; NaN where a pane has fewer.

    The first of the scores has the ordinal `shift`. `keep`: rank of the row that sets the next pane's floor.
    """
    marks, ordinals, mask = tops.marks, tops.ordinals, tops.ordinals.shape[0] - 1
    score, ordinal = np.empty(2 * keep + BLOCK), np.empty(2 * keep + BLOCK, np.int64)
    for at in range(cuts.shape[0]):
        begin = cuts[at] - shift
        stop = cuts[at + 1] - shift if at + 1 < cuts.shape[0] else scores.shape[0]
        guessing = marks[REST] == 0
        floor = tops.floor[0] if guessing else -np.inf
        marks[REST] -= not guessing
        count = 0
        if marks[REST] == 0:
            count, overflown = _gathered(scores, begin, stop, shift, floor, score, ordinal, keep)
            if floor > -np.inf and (count < k or overflown):  # too high or too low
                marks[FAILURES] += 1
                marks[REST] = min((1 << min(marks[FAILURES], 10)) - 2, _LONGEST_REST)
                if count < k:
                    floor = -np.inf
                    if marks[REST] == 0:
                        count, _ = _gathered(scores, begin, stop, shift, floor, score, ordinal, keep)
            elif floor > -np.inf:
                marks[FAILURES] = 0
        if marks[REST] > 0:  # nobody asks for a floor of this pane: fewer rows are held, and the floor within it rises sooner
            if count < k:
                few = slice(0, 2 * k)
                count, _ = _gathered(scores, begin, stop, shift, floor, score[few], ordinal[few], k)
        elif count >= keep:
            keep_best(score, ordinal, count, keep)
            count = keep
            tops.floor[0] = score[worst(score, ordinal, count)]
        elif floor == -np.inf:
            tops.floor[0] = -np.inf
        count = finish(score, ordinal, count, k)
        first = (number + at) * k
        for rank in range(k):
            place = k - 1 - rank
            best[at * k + place] = score[rank] if rank < count else np.nan
            ordinals[(first + place) & mask] = ordinal[rank] if rank < count else -1


@lean
def _number(ordinal, slide, odd, k):
    """The number of the first row of the pane that holds an ordinal."""
    pane = ordinal // slide
    if odd > 0:
        pane = 2 * pane + (ordinal - pane * slide >= odd)
    return pane * k


@jit
def number_windows(first, end, slide, odd, k, numbered_first, numbered_end):
    """Windows over the numbered rows, of those over all rows. A window begins `odd` rows behind a slide's beginning."""
    for at in range(first.shape[0]):
        numbered_first[at], numbered_end[at] = _number(first[at], slide, odd, k), _number(end[at], slide, odd, k)


@jit
def give_ordinals(tops, results, start, stop):
    """In the answers of windows[start:stop] put ordinals in the place of numbers."""
    mask = tops.ordinals.shape[0] - 1
    for at in range(start, stop):
        for place in range(results.begin[at], results.begin[at] + max(results.size[at], 0)):
            results.ordinal[place] = tops.ordinals[results.ordinal[place] & mask]

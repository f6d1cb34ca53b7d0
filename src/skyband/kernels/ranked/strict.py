"""The K-skyband as sorted arrays: insert, count dominators, drop, expire, read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.best import shift_down
from skyband.kernels.jit import jit
from skyband.kernels.tops import hand_out, hand_out_same, has_room

# places in Skyband.marks
HEAD = 0  # place of the best candidate
STOP = 1  # place after the worst candidate
TAKEN = 2  # ordinal after the last row taken
SWEPT = 3  # TAKEN when expired candidates were last removed
MARKS = 4

NEVER = np.iinfo(np.int64).max


class Skyband(NamedTuple):
    """Candidates in the places [HEAD, STOP), best first. Expired ones may wait there to be swept out."""

    score: np.ndarray  # float64 [room]
    ordinal: np.ndarray  # int64 [room]
    dominators: np.ndarray  # int32 [room]: newer rows that outrank it, always below the largest k
    marks: np.ndarray  # int64 [MARKS]
    since: np.ndarray  # float64 [queries]: best score since the query's last window; NaN: no row with a score
    oldest: np.ndarray  # int64 [queries]: oldest row of the query's last answer, NEVER if it was empty
    reach: np.ndarray  # int64 [queries]: first row of the query's last window


@jit
def sweep(skyband):
    """Remove the expired candidates and move the others to the front of the arrays. O(candidates)."""
    marks, ordinal = skyband.marks, skyband.ordinal
    needed = skyband.reach.min()
    kept = 0
    for place in range(marks[HEAD], marks[STOP]):
        if ordinal[place] >= needed:
            skyband.score[kept] = skyband.score[place]
            ordinal[kept] = ordinal[place]
            skyband.dominators[kept] = skyband.dominators[place]
            kept += 1
    marks[HEAD] = 0
    marks[STOP] = kept
    marks[SWEPT] = marks[TAKEN]


@jit
def _place_of(score, new_score, head, stop):
    """The first place whose candidate the newest row outranks."""
    while head < stop:
        middle = (head + stop) >> 1
        if score[middle] > new_score:
            head = middle + 1
        else:
            stop = middle
    return head


@jit
def _insert(score, ordinal, dominators, place, stop, new_score, new_ordinal, limit):
    """Put the newest row in its place, count it as a dominator of everything below, drop what reaches the limit.

    Needs a free place at `stop`; returns the new one. The places it counts in are the places it shifts: a candidate is
    touched at most `limit` times before it is dropped, so a row costs O(limit) amortized, whatever the data.
    """
    below = dominators[place:stop]
    dropped = 0
    for i in range(below.size):
        below[i] += 1
        dropped += below[i] >= limit
    gap = stop  # the first place that falls free
    if dropped > 0:
        gap = place
        while dominators[gap] < limit:
            gap += 1
    shift_down(score, place, gap, new_score)
    shift_down(ordinal, place, gap, new_ordinal)
    shift_down(dominators, place, gap, 0)
    if dropped > 1:
        kept = gap + 1
        for i in range(gap + 1, stop):
            if dominators[i] < limit:
                score[kept], ordinal[kept], dominators[kept] = score[i], ordinal[i], dominators[i]
                kept += 1
    return stop + 1 - dropped


@jit
def _take(score, ordinal, dominators, marks, scores, begin, end, limit):
    """Take the rows up to the ordinal `end`, or until the arrays are full. Returns the best score, NaN if there is none."""
    room = score.shape[0]
    best = np.nan
    row, head, stop = marks[TAKEN], marks[HEAD], marks[STOP]
    while row < end:
        new_score = scores[row - begin]
        if new_score == new_score:
            if stop == room:
                break
            if head == stop or score[stop - 1] > new_score:
                score[stop], ordinal[stop], dominators[stop] = new_score, row, 0
                stop += 1
            else:
                place = _place_of(score, new_score, head, stop)
                stop = _insert(score, ordinal, dominators, place, stop, new_score, row, limit)
            if not best >= new_score:
                best = new_score
        row += 1
    marks[STOP], marks[TAKEN] = stop, row
    return best


@jit
def _read(score, ordinal, head, stop, k, first, answer_score, answer_ordinal):
    """The k best candidates at or after `first`. Returns how many, and the oldest of them."""
    count, oldest = 0, NEVER
    for place in range(head, stop):
        if ordinal[place] >= first:
            answer_score[count], answer_ordinal[count] = score[place], ordinal[place]
            oldest = min(oldest, ordinal[place])
            count += 1
            if count == k:
                break
    return count, oldest


@jit
def run(skyband, tops, ks, begin, scores, windows, start, used, results):
    """Take rows and answer windows from `start` on. Returns (windows answered, places of results used, need of room).

    With slide 1 this loop turns once a row: it works on arrays, because handing over the whole state costs more than
    most of its steps.
    """
    score, ordinal, dominators, marks = skyband.score, skyband.ordinal, skyband.dominators, skyband.marks
    since, oldest, reach = skyband.since, skyband.oldest, skyband.reach
    queries, limit, room = ks.shape[0], ks.max(), score.shape[0]
    answer_score, answer_ordinal = np.empty(limit), np.empty(limit, np.int64)
    marks[TAKEN] = max(marks[TAKEN], begin)
    for at in range(start, windows.query.shape[0]):
        query, first, end = windows.query[at], windows.first[at], windows.end[at]
        k = ks[query]
        if not has_room(results, used, k):
            return at, used, False

        # expired candidates at the top are stepped over; all are swept out when as many rows came as are held
        reach[query] = first
        needed = first
        for other in range(queries):
            needed = min(needed, reach[other])
        while marks[HEAD] < marks[STOP] and ordinal[marks[HEAD]] < needed:
            marks[HEAD] += 1
        if marks[TAKEN] - marks[SWEPT] > marks[STOP] - marks[HEAD]:
            sweep(skyband)

        marks[TAKEN] = max(marks[TAKEN], min(needed, end))  # earlier rows are in no window still to come
        while marks[TAKEN] < end:
            if marks[STOP] == room:
                sweep(skyband)
                if marks[STOP] >= room - room // 4:  # otherwise sweeping would have to happen too often
                    return at, used, True
            best = _take(score, ordinal, dominators, marks, scores, begin, end, limit)
            for other in range(queries):
                if not since[other] >= best and best == best:
                    since[other] = best

        entered = since[query] >= tops.score[query, k - 1] if tops.count[query] == k else not np.isnan(since[query])
        if entered or oldest[query] < first:
            count, oldest[query] = _read(score, ordinal, marks[HEAD], marks[STOP], k, first, answer_score, answer_ordinal)
            used = hand_out(tops, query, results, at, used, windows.report[at], answer_score, answer_ordinal, count)
        else:
            hand_out_same(results, at)
        since[query] = np.nan
    return windows.query.shape[0], used, False

"""Bands: the rows of one query that may still rank, sorted, best first; many bands share one arena.

A band lies in the places [BEGIN, BEGIN + ROOM) of the arena and fills [HEAD, STOP) of them. Its first k rows are the
top-k of what it holds, the others are the candidates. Four kinds differ in what they drop:

    STRICT         a row that k newer rows of the band outrank, at once
    RELAXED        the same rows, but only when the candidates have grown by a share: rows are not counted as they come
    PROBABILISTIC  the lowest row, when there are more candidates than a limit; rows below a threshold are not let in
    LIMITED        both what a strict and what a probabilistic band drops

Rows come newest first or *late*: older than some that are held (they waited in a buffer). No band lies in the first
places of the arena, as many as the largest k: a sweep writes there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.jit import lean, tiny
from skyband.kernels.order import outranks

STRICT, RELAXED, PROBABILISTIC, LIMITED = 0, 1, 2, 3

# columns of marks
BEGIN = 0  # first place in the arena
ROOM = 1  # places
HEAD = 2  # place of the best row
STOP = 3  # place after the worst
K = 4
KIND = 5
LIMIT = 6  # relaxed: candidates at which dominated rows are swept out; probabilistic: most candidates
LEAST = 7  # probabilistic: with fewer candidates every row is let in again; negative: a lost row changes no threshold
OLDEST = 8  # no row of the top-k is older (of the band, if probabilistic); NEVER when there is none
REACH = 9  # rows before this ordinal have left the window
MARKS = 10

# columns of levels
THRESHOLD = 0  # probabilistic: scores below are not let in
SHARE = 1  # relaxed: the pruning coefficient; probabilistic: how far a loss lowers the threshold
PASSED = 2  # probabilistic: the highest threshold since this was set; no row above it was passed over or cut off
PASSED_BEFORE = 3  # the same of rows before that are still in the window, for those who look after it
LEVELS = 4

NEVER = np.iinfo(np.int64).max
FAR = 2.0**62  # more candidates than there can be


class Rows(NamedTuple):
    """The arena's columns. Kernels take them one by one: unpacking a tuple costs more than most of what they do."""

    score: np.ndarray  # float64
    ordinal: np.ndarray  # int64
    count: np.ndarray  # int32, of dominators: newer rows of the band that outrank it; -1 - c: c, and those not counted yet


@tiny
def has_places(marks, b, count):
    """Are there free places for so many more rows, on either side?"""
    return marks[b, STOP] - marks[b, HEAD] + count <= marks[b, ROOM]


@tiny
def floor_of(scores, marks, b):
    """The score of rank k; -inf while the band holds fewer rows."""
    last = marks[b, HEAD] + marks[b, K] - 1
    return scores[last] if last < marks[b, STOP] else -np.inf


@tiny
def place_of(scores, ordinals, marks, b, score, ordinal):
    """The first place whose row the new one outranks. O(log rows)."""
    low, high = marks[b, HEAD], marks[b, STOP]
    while low < high:
        middle = (low + high) >> 1
        if outranks(scores[middle], ordinals[middle], score, ordinal):
            low = middle + 1
        else:
            high = middle
    return low


@tiny
def _up(column, begin, stop):
    """Move the rows in [begin, stop) one place towards the worse end."""
    last, count, one = np.uint64(stop), np.uint64(stop - begin), np.uint64(1)  # no sign to check: this is one memmove
    for i in range(count):
        column[last - i] = column[last - i - one]


@tiny
def _down(column, begin, stop):
    """Move the rows in [begin, stop) one place towards the better end."""
    first, count, one = np.uint64(begin), np.uint64(max(stop - begin, 0)), np.uint64(1)
    for i in range(count):
        column[first + i - one] = column[first + i]


@lean
def _settle(scores, ordinals, counts, marks, b):
    """Move the band to the middle of its room."""
    head, stop = marks[b, HEAD], marks[b, STOP]
    begin = marks[b, BEGIN] + (marks[b, ROOM] - (stop - head)) // 2
    if begin < head:
        for i in range(stop - head):
            _put(scores, ordinals, counts, begin + i, scores[head + i], ordinals[head + i], counts[head + i])
    else:
        for i in range(stop - head - 1, -1, -1):
            _put(scores, ordinals, counts, begin + i, scores[head + i], ordinals[head + i], counts[head + i])
    marks[b, HEAD], marks[b, STOP] = begin, begin + stop - head


@lean
def _open(scores, ordinals, counts, marks, b, place):
    """Free a place for a row that ranks at `place`, moving the shorter side; returns the place. Needs one free place."""
    begin, end = marks[b, BEGIN], marks[b, BEGIN] + marks[b, ROOM]
    better = place - marks[b, HEAD] < marks[b, STOP] - place
    if marks[b, HEAD] == begin if better else marks[b, STOP] == end:
        # the shorter side is at its wall: the middle is paid for by the rows that then fit on both sides
        rank = place - marks[b, HEAD]
        _settle(scores, ordinals, counts, marks, b)
        place = marks[b, HEAD] + rank
    if marks[b, STOP] == end or (better and marks[b, HEAD] > begin):
        head = marks[b, HEAD]
        _down(scores, head, place)
        _down(ordinals, head, place)
        _down(counts, head, place)
        marks[b, HEAD] = head - 1
        return place - 1
    stop = marks[b, STOP]
    _up(scores, place, stop)
    _up(ordinals, place, stop)
    _up(counts, place, stop)
    marks[b, STOP] = stop + 1
    return place


@tiny
def _put(scores, ordinals, counts, place, score, ordinal, dominators):
    scores[place], ordinals[place], counts[place] = score, ordinal, dominators


@lean
def _newer(ordinals, counts, begin, stop, ordinal, counted):
    """How many rows in [begin, stop) are newer; only those whose dominators are counted, if so asked."""
    found, first = 0, np.uint64(begin)
    least = 0 if counted else np.iinfo(np.int32).min
    for i in range(np.uint64(stop) - first):
        found += (ordinals[first + i] > ordinal) & (counts[first + i] >= least)
    return found


@lean
def _drop_dominated(scores, ordinals, counts, marks, b, begin):
    """Close the gaps left by rows from the place `begin` on that have k dominators."""
    kept = begin
    for i in range(begin, marks[b, STOP]):
        if counts[i] < marks[b, K]:
            if kept < i:
                _put(scores, ordinals, counts, kept, scores[i], ordinals[i], counts[i])
            kept += 1
    marks[b, STOP] = kept


@lean
def offer_strict(scores, ordinals, counts, marks, b, score, ordinal, late):
    """Take a row, count it as a dominator of the older rows below it, drop what has k. Returns its rank from 0, or -1.

    O(log rows + k) amortized: a row is touched at most k times before it is dropped.
    """
    place, k = place_of(scores, ordinals, marks, b, score, ordinal), marks[b, K]
    own = dropped = 0
    below = counts[place : marks[b, STOP]]
    if late:
        own = _newer(ordinals, counts, marks[b, HEAD], place, ordinal, False)
        if own >= k:
            return -1
        for i in range(below.size):
            below[i] += ordinals[place + i] < ordinal
            dropped += below[i] >= k
    else:
        for i in range(below.size):
            below[i] += 1
            dropped += below[i] >= k
    if dropped > 0:  # the first place that falls free is the gap to shift into
        gap = place
        while counts[gap] < k:
            gap += 1
        _up(scores, place, gap)
        _up(ordinals, place, gap)
        _up(counts, place, gap)
        if dropped > 1:
            _drop_dominated(scores, ordinals, counts, marks, b, gap + 1)
    else:
        place = _open(scores, ordinals, counts, marks, b, place)
    _put(scores, ordinals, counts, place, score, ordinal, own)
    return place - marks[b, HEAD]


@lean
def offer_relaxed(scores, ordinals, counts, marks, levels, b, score, ordinal, late):
    """Take a row uncounted; sweep when there are too many candidates. Returns its rank from 0, or -1.

    O(log rows + rows to shift), and a sweep each SHARE of the candidates.
    """
    place = place_of(scores, ordinals, marks, b, score, ordinal)
    own = 0
    if late:  # of a row that comes late, older ones may be counted already: what they cannot be told, it is told now
        own = _newer(ordinals, counts, marks[b, HEAD], place, ordinal, True)
        if own >= marks[b, K]:
            return -1
    place = _open(scores, ordinals, counts, marks, b, place)
    _put(scores, ordinals, counts, place, score, ordinal, -1 - own)
    rank = place - marks[b, HEAD]
    if marks[b, STOP] - marks[b, HEAD] - marks[b, K] >= marks[b, LIMIT]:
        sweep(scores, ordinals, counts, marks, b)
        candidates = max(marks[b, STOP] - marks[b, HEAD] - marks[b, K], 0)
        marks[b, LIMIT] = np.int64(min(np.ceil((1 + levels[b, SHARE]) * candidates - 1e-9), FAR))
    return rank


@lean
def sweep(scores, ordinals, counts, marks, b):
    """Drop every row that k newer ones of the band outrank or that has left the window. O(rows + uncounted * k).

    One walk from the best row down: a counted row gains as dominators the uncounted ones passed that are newer; only
    the k newest of those matter. They are listed, increasing, in the first places of the arena.
    """
    k = marks[b, K]
    passed = 0
    kept = marks[b, HEAD]
    for i in range(marks[b, HEAD], marks[b, STOP]):
        ordinal, dominators = ordinals[i], counts[i]
        uncounted = dominators < 0
        if uncounted:
            dominators = -1 - dominators
        if passed > 0:
            dominators += passed if ordinal < ordinals[0] else newer_listed(ordinals, passed, ordinal)
        if dominators >= k or ordinal < marks[b, REACH]:
            continue
        _put(scores, ordinals, counts, kept, scores[i], ordinal, dominators)
        kept += 1
        if uncounted:
            passed = list_newest(ordinals, passed, k, ordinal)
    marks[b, STOP] = kept


@lean
def newer_listed(ordinals, count, ordinal):
    """How many of the ordinals listed at the arena's beginning, `count` increasing ones, are newer. O(log count)."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if ordinals[middle] > ordinal:
            high = middle
        else:
            low = middle + 1
    return count - low


@lean
def list_newest(ordinals, count, room, ordinal):
    """Keep `ordinal` among the `room` newest at the arena's beginning; returns how many are kept."""
    if count == room:
        if ordinal < ordinals[0]:
            return count
        at = 0
        while at + 1 < count and ordinals[at + 1] < ordinal:
            ordinals[at] = ordinals[at + 1]
            at += 1
        ordinals[at] = ordinal
        return count
    at = count
    while at > 0 and ordinals[at - 1] > ordinal:
        ordinals[at] = ordinals[at - 1]
        at -= 1
    ordinals[at] = ordinal
    return count + 1


@tiny
def lower(scores, marks, levels, b):
    """A row was lost (TODS15 algorithm 2): too few candidates let everything in again, otherwise the threshold goes down by a
    share of what the two lowest candidates differ by."""
    if marks[b, LEAST] < 0:
        return
    candidates = marks[b, STOP] - marks[b, HEAD] - marks[b, K]
    last = marks[b, STOP] - 1
    if candidates >= max(marks[b, LEAST], 2) and scores[last] > -np.inf and scores[last - 1] < np.inf:
        levels[b, THRESHOLD] -= levels[b, SHARE] * (scores[last - 1] - scores[last])
    else:
        levels[b, THRESHOLD] = -np.inf


@tiny
def _cut(scores, marks, levels, b):
    """Hold no more candidates than the limit; with as many, the lowest is the threshold (TODS15 algorithm 1)."""
    candidates = marks[b, STOP] - marks[b, HEAD] - marks[b, K]
    if candidates >= marks[b, LIMIT]:
        if candidates > marks[b, LIMIT]:
            marks[b, STOP] -= 1
        levels[b, THRESHOLD] = scores[marks[b, STOP] - 1]
        levels[b, PASSED] = max(levels[b, PASSED], levels[b, THRESHOLD])


@tiny
def offer_probabilistic(scores, ordinals, counts, marks, levels, b, score, ordinal):
    """Take a row that reaches the threshold. Returns its rank from 0. O(log rows + rows)."""
    place = _open(scores, ordinals, counts, marks, b, place_of(scores, ordinals, marks, b, score, ordinal))
    _put(scores, ordinals, counts, place, score, ordinal, 0)
    _cut(scores, marks, levels, b)
    return place - marks[b, HEAD]


@lean
def offer_limited(scores, ordinals, counts, marks, levels, b, score, ordinal, late):
    """Take a row that reaches the threshold, drop what k newer rows outrank: a row that is lost as if it had left. Returns its
    rank from 0, or -1. O(log rows + rows)."""
    before = marks[b, STOP] - marks[b, HEAD]
    rank = offer_strict(scores, ordinals, counts, marks, b, score, ordinal, late)
    if rank >= 0:
        for _ in range(before + 1 - (marks[b, STOP] - marks[b, HEAD])):
            lower(scores, marks, levels, b)
        _cut(scores, marks, levels, b)
    return rank


@tiny
def offer(scores, ordinals, counts, marks, levels, b, score, ordinal, late):
    """Take a row with a score, `late` if newer ones are held already; needs a free place. Returns its rank among the
    band's rows, from 0, or -1 if it can never rank."""
    kind = marks[b, KIND]
    if kind == STRICT:
        rank = offer_strict(scores, ordinals, counts, marks, b, score, ordinal, late)
    elif kind == RELAXED:
        rank = offer_relaxed(scores, ordinals, counts, marks, levels, b, score, ordinal, late)
    elif kind == PROBABILISTIC:
        rank = offer_probabilistic(scores, ordinals, counts, marks, levels, b, score, ordinal)
    else:
        rank = offer_limited(scores, ordinals, counts, marks, levels, b, score, ordinal, late)
    if rank >= 0 and (rank < marks[b, K] or kind >= PROBABILISTIC):
        marks[b, OLDEST] = min(marks[b, OLDEST], ordinal)
    return rank


@tiny
def expire(scores, ordinals, counts, marks, levels, b, first):
    """Rows before the ordinal `first` have left the window. Returns whether the top-k lost one. O(k) for each lost."""
    marks[b, REACH] = max(marks[b, REACH], first)
    if marks[b, OLDEST] >= first:
        return False
    if marks[b, KIND] >= PROBABILISTIC:
        return _expire_anywhere(scores, ordinals, counts, marks, levels, b, first)
    return _expire_top(scores, ordinals, counts, marks, b, first)


@lean
def _expire_top(scores, ordinals, counts, marks, b, first):
    """Drop the expired rows among the first k until there are none: better ones move towards them, so that a row
    costs O(k) however many candidates there are. Expired candidates wait for the sweep (lemma 4.8: not dominated, they
    would be among the first k)."""
    head, stop, k = marks[b, HEAD], marks[b, STOP], marks[b, K]
    lost = False
    while True:
        kept = min(head + k, stop)
        oldest = NEVER
        for i in range(kept - 1, head - 1, -1):
            if ordinals[i] >= first:
                kept -= 1
                oldest = min(oldest, ordinals[i])
                if kept > i:
                    _put(scores, ordinals, counts, kept, scores[i], ordinals[i], counts[i])
        if kept == head:
            break
        head, lost = kept, True
    marks[b, HEAD], marks[b, OLDEST] = head, oldest
    return lost


@tiny
def _expire_anywhere(scores, ordinals, counts, marks, levels, b, first):
    """Drop every expired row, wherever it stands, and lower the threshold for each."""
    last_of_top = marks[b, HEAD] + marks[b, K]
    lost = False
    while marks[b, OLDEST] < first:
        gone, oldest, place = marks[b, OLDEST], NEVER, -1
        head = np.uint64(marks[b, HEAD])
        for i in range(np.uint64(marks[b, STOP]) - head):  # without a branch, so that it is vectorized
            ordinal = ordinals[head + i]
            oldest = min(oldest, ordinal if ordinal > gone else NEVER)
            place = max(place, np.int64(i) if ordinal == gone else -1)
        marks[b, OLDEST] = oldest
        if place < 0:  # it had been dropped before
            continue
        place += marks[b, HEAD]
        lost |= place < last_of_top
        _down(scores, place + 1, marks[b, STOP])
        _down(ordinals, place + 1, marks[b, STOP])
        _down(counts, place + 1, marks[b, STOP])
        marks[b, STOP] -= 1
        lower(scores, marks, levels, b)
    return lost

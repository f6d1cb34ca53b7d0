"""The rows of the window sorted by each attribute, and steps down such a list from either end.

A list is in two runs: one of most rows, and one of those that came since it was last brought up to date. A cycle's
arrivals, sorted, are merged into the second; when that has grown beyond a limit it is merged into the first, and rows
that have left the window are dropped. Until then they stay, and are passed over by their ordinal. SIGMOD06 section 3.2
keeps d sorted lists entry by entry.

Cost of a cycle of r rows, for each attribute: O(r + limit) and a share of O(n) / (limit / r); least at limit = √(2 n r).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.jit import lean, tiny
from skyband.kernels.order import outranks
from skyband.kernels.spatial.questions import score_of

SETTLED, FRESH = 0, 1  # runs of a list
LOW, HIGH = 0, 1  # its ends: of the least and of the greatest values
STEP = 64  # rows taken from a list in a round


class Lists(NamedTuple):
    """A list for each of d attributes: the run r of list i fills count[i, r] places from r * size on, values increasing.
    A row without a value, NaN, is in no list of that attribute. `size`: the most rows a window may hold."""

    rows: np.ndarray  # float64 [size, d]: the attributes of row r are at r % size
    value: np.ndarray  # float64 [d, size + limit + slide]
    ordinal: np.ndarray  # int64 [d, size + limit + slide]
    count: np.ndarray  # int64 [d, 2]


def empty_lists(dimensions: int, size: int, slide: int) -> Lists:
    """Lists for windows of `size` rows and cycles of at most `slide`."""
    room = size + fresh_limit(size, slide) + slide
    return Lists(
        np.empty((size, dimensions)),
        np.empty((dimensions, room)),
        np.empty((dimensions, room), np.int64),
        np.zeros((dimensions, 2), np.int64),
    )


def fresh_limit(size: int, slide: int) -> int:
    """Rows beyond which the second run is merged into the first."""
    return min(int(np.sqrt(2.0 * size * slide)), size)


# a cycle's rows come -----------------------------------------------------------------------------------------


@lean
def _merge(value, ordinal, count, begin, other_value, other_ordinal, other_begin, other_count):
    """Merge the other run into the one of `count` places from `begin` on, from behind."""
    i, j = begin + count - 1, other_begin + other_count - 1
    to = i + other_count
    while j >= other_begin:
        if i >= begin and value[i] > other_value[j]:
            value[to], ordinal[to] = value[i], ordinal[i]
            i -= 1
        else:
            value[to], ordinal[to] = other_value[j], other_ordinal[j]
            j -= 1
        to -= 1


@lean
def _drop(value, ordinal, begin, count, first):
    """Leave the rows before the ordinal `first` out of a run; returns how many there are."""
    to = begin
    for at in range(begin, begin + count):
        value[to], ordinal[to] = value[at], ordinal[at]
        to += ordinal[at] >= first
    return to - begin


@lean
def enter(lists, columns, order, start, length, begin, first, limit, sorted_value, sorted_ordinal):
    """Take the rows columns[:, start : start + length], whose first has the ordinal `begin`. `order` [d, ...] says, at the
    same places, which of them comes when they are sorted; NaN last. Rows before `first` have left then."""
    size = lists.rows.shape[0]
    for axis in range(lists.count.shape[0]):
        value, ordinal = lists.value[axis], lists.ordinal[axis]
        for i in range(length):
            lists.rows[(begin + i) % size, axis] = columns[axis, start + i]
        known = 0
        for i in range(length):
            row = order[axis, start + i]
            x = columns[axis, start + row]
            if x != x:
                break
            sorted_value[i], sorted_ordinal[i] = x, begin + row
            known += 1
        _merge(value, ordinal, lists.count[axis, FRESH], size, sorted_value, sorted_ordinal, 0, known)
        lists.count[axis, FRESH] += known
        if lists.count[axis, FRESH] > limit:
            settled = _drop(value, ordinal, 0, lists.count[axis, SETTLED], first)
            fresh = _drop(value, ordinal, size, lists.count[axis, FRESH], first)
            _merge(value, ordinal, settled, 0, value, ordinal, size, fresh)
            lists.count[axis, SETTLED], lists.count[axis, FRESH] = settled + fresh, 0


# walking down --------------------------------------------------------------------------------------------------


@lean
def begin_walk(lists, span, edge):
    """Let span [d, run, end] hold the places of every list, and edge [d, end] its outermost values."""
    for axis in range(lists.count.shape[0]):
        for run in range(2):
            span[axis, run, LOW] = run * lists.rows.shape[0]
            span[axis, run, HIGH] = span[axis, run, LOW] + lists.count[axis, run]
        edge[axis, LOW] = edge[axis, HIGH] = 0.0
        narrow(lists, span, axis, edge)


@tiny
def _outer(lists, span, axis, end):
    """The run that holds the outermost of the places left, or -1 where there are none."""
    if span[axis, SETTLED, LOW] == span[axis, SETTLED, HIGH]:
        return FRESH if span[axis, FRESH, LOW] < span[axis, FRESH, HIGH] else -1
    if span[axis, FRESH, LOW] == span[axis, FRESH, HIGH]:
        return SETTLED
    if end == LOW:
        settled, fresh = lists.value[axis, span[axis, SETTLED, LOW]], lists.value[axis, span[axis, FRESH, LOW]]
        return SETTLED if settled <= fresh else FRESH
    settled, fresh = lists.value[axis, span[axis, SETTLED, HIGH] - 1], lists.value[axis, span[axis, FRESH, HIGH] - 1]
    return SETTLED if settled >= fresh else FRESH


@lean
def narrow(lists, span, axis, edge):
    """Let `edge` hold the least and the greatest value among the places left. False where there are none."""
    low = _outer(lists, span, axis, LOW)
    if low < 0:
        return False
    edge[axis, LOW] = lists.value[axis, span[axis, low, LOW]]
    high = _outer(lists, span, axis, HIGH)
    edge[axis, HIGH] = lists.value[axis, span[axis, high, HIGH] - 1]
    return True


@lean
def keep(score, ordinal, begin, count, room, new_score, new_ordinal):
    """Put a row among the best `room`, from place `begin` on, best first, unless it is there; returns how many there are."""
    low, high = begin, begin + count
    while low < high:
        middle = (low + high) >> 1
        if outranks(new_score, new_ordinal, score[middle], ordinal[middle]):
            high = middle
        else:
            low = middle + 1
    if (low > begin and ordinal[low - 1] == new_ordinal) or low == begin + room:
        return count
    count = min(count, room - 1)
    for at in range(begin + count, low, -1):
        score[at], ordinal[at] = score[at - 1], ordinal[at - 1]
    score[low], ordinal[low] = new_score, new_ordinal
    return count + 1


@lean
def visit(lists, span, axis, end, questions, q, first, score, ordinal, begin, count, room):
    """Take up to STEP rows from an end of a list, the outermost first, and keep the best for query q of those from the
    ordinal `first` on. Returns how many are kept. `first` is not before the window."""
    size = lists.rows.shape[0]
    ring = first - first % size  # rows of the window are in two turns of the ring at most
    run = _outer(lists, span, axis, end)
    at, step = (span[axis, run, LOW], 1) if end == LOW else (span[axis, run, HIGH] - 1, -1)
    taken = min(STEP, span[axis, run, HIGH] - span[axis, run, LOW])
    for _ in range(taken):
        row = lists.ordinal[axis, at]
        at += step
        if row >= first:
            place = row - ring
            place -= size if place >= size else 0
            new = score_of(questions, q, lists.rows[place])
            if new == new and (count < room or new >= score[begin + count - 1]):
                count = keep(score, ordinal, begin, count, room, new, row)
    if end == LOW:
        span[axis, run, LOW] += taken
    else:
        span[axis, run, HIGH] -= taken
    return count

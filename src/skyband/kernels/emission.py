"""Consecutive top-k's to result rows: who entered, who left, or the whole top."""

from __future__ import annotations

import numpy as np

from skyband.kernels.jit import jit
from skyband.kernels.order import outranks
from skyband.kernels.tables import ARRIVALS, CHANGES, NOTHING, SAME, SNAPSHOTS

ENTER, LEAVE, TOP = 0, 1, 2  # codes of Emitted.event


@jit
def count_events(query, start, stop, size, emission, reported_count):
    """An upper bound of the result rows of windows[start:stop]."""
    held = reported_count.copy()
    total = 0
    for at in range(start, stop):
        q = query[at]
        before = held[q]
        if size[at] < SAME:
            total += SAME - size[at]
            continue
        if size[at] != SAME:
            held[q] = size[at]
        if emission[q] == SNAPSHOTS:
            total += held[q]
        elif emission[q] != NOTHING and size[at] != SAME:
            total += before + held[q]
    return total


@jit
def emit(query, value, start, stop, results, emission, reported, out):
    """Write the result rows of windows[start:stop] into `out`, bring `reported` up to date; returns how many.

    `value` is what each window is called in its result rows. Leaves come first, in their old ranks' order, then
    enters by rank. A query's answer is compared where it lies in `results`; only its last is copied out. What is told as
    changes is passed on as it is, and `reported` not brought up to date: so must all answers of such a query be told, none
    of whose windows gives a snapshot.
    """
    k = reported.score.shape[1]
    new_score, new_ordinal = results.score, results.ordinal
    kept_score, kept_ordinal = reported.score.reshape(-1), reported.ordinal.reshape(-1)
    count = reported.count
    place = np.full(count.shape[0], -1)  # where in `results` a query's last answer begins
    leaves, enters = np.empty(k, np.int64), np.empty(k, np.int64)
    n = 0
    for at in range(start, stop):
        q, size, begin = query[at], results.size[at], results.begin[at]
        if size < SAME:
            for i in range(begin, begin + SAME - size):
                rank = results.rank[i]
                if rank > 0 or emission[q] == CHANGES:
                    event = ENTER if rank > 0 else LEAVE
                    _write(out, n, q, value[at], event, rank, new_score[i], new_ordinal[i])
                    n += 1
            continue
        if size != SAME:
            if emission[q] == CHANGES or emission[q] == ARRIVALS:
                if place[q] >= 0:
                    old_score, old_ordinal, old = new_score, new_ordinal, place[q]
                else:
                    old_score, old_ordinal, old = kept_score, kept_ordinal, q * k
                left, entered = _differences(
                    new_score, new_ordinal, begin, size, old_score, old_ordinal, old, count[q], leaves, enters
                )
                if emission[q] == CHANGES:
                    for i in range(left):
                        r = old + leaves[i]
                        _write(out, n, q, value[at], LEAVE, 0, old_score[r], old_ordinal[r])
                        n += 1
                for i in range(entered):
                    r = begin + enters[i]
                    _write(out, n, q, value[at], ENTER, enters[i] + 1, new_score[r], new_ordinal[r])
                    n += 1
            place[q], count[q] = begin, size
        if emission[q] == SNAPSHOTS:
            for rank in range(count[q]):
                if place[q] >= 0:
                    score, ordinal = new_score[place[q] + rank], new_ordinal[place[q] + rank]
                else:
                    score, ordinal = kept_score[q * k + rank], kept_ordinal[q * k + rank]
                _write(out, n, q, value[at], TOP, rank + 1, score, ordinal)
                n += 1
    for q in range(count.shape[0]):
        if place[q] >= 0:
            for rank in range(count[q]):
                kept_score[q * k + rank] = new_score[place[q] + rank]
                kept_ordinal[q * k + rank] = new_ordinal[place[q] + rank]
    return n


@jit
def _differences(new_score, new_ordinal, new, new_count, old_score, old_ordinal, old, old_count, leaves, enters):
    """Ranks only in the old run and ranks only in the new one, by one walk down both. Returns how many of each."""
    i = j = left = entered = 0
    while i < new_count and j < old_count:
        if new_ordinal[new + i] == old_ordinal[old + j]:
            i += 1
            j += 1
        elif outranks(new_score[new + i], new_ordinal[new + i], old_score[old + j], old_ordinal[old + j]):
            enters[entered] = i
            entered += 1
            i += 1
        else:
            leaves[left] = j
            left += 1
            j += 1
    while i < new_count:
        enters[entered] = i
        entered += 1
        i += 1
    while j < old_count:
        leaves[left] = j
        left += 1
        j += 1
    return left, entered


@jit
def _write(out, n, query, value, event, rank, score, ordinal):
    out.query[n] = query
    out.window_end[n] = value
    out.event[n] = event
    out.rank[n] = rank
    out.score[n] = score
    out.ordinal[n] = ordinal

"""Consecutive top-k's to result rows: who entered, who left, or the whole top."""

from __future__ import annotations

from skyband.kernels.jit import jit
from skyband.kernels.order import outranks
from skyband.kernels.tables import SAME

ENTER, LEAVE, TOP = 0, 1, 2  # codes of Emitted.event
NOTHING, CHANGES, SNAPSHOTS, ARRIVALS = 0, 1, 2, 3  # codes of a query's emission


@jit
def count_events(query, start, stop, size, emission, reported_count):
    """An upper bound of the result rows of windows[start:stop]."""
    held = reported_count.copy()
    total = 0
    for at in range(start, stop):
        q = query[at]
        before = held[q]
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
    enters by rank. Both lists are sorted by rank, so the rows in one but not the other are found in one walk.
    """
    n = 0
    for at in range(start, stop):
        q = query[at]
        size = results.size[at]
        old_score, old_ordinal = reported.score[q], reported.ordinal[q]
        old_count = reported.count[q]
        new_score = results.score[results.begin[at] :]
        new_ordinal = results.ordinal[results.begin[at] :]
        if size != SAME:
            if emission[q] == CHANGES or emission[q] == ARRIVALS:
                if emission[q] == CHANGES:
                    i = 0
                    for r in range(old_count):
                        while i < size and outranks(new_score[i], new_ordinal[i], old_score[r], old_ordinal[r]):
                            i += 1
                        if i < size and new_ordinal[i] == old_ordinal[r]:
                            continue
                        n = _write(out, n, q, value[at], LEAVE, 0, old_score[r], old_ordinal[r])
                i = 0
                for r in range(size):
                    while i < old_count and outranks(old_score[i], old_ordinal[i], new_score[r], new_ordinal[r]):
                        i += 1
                    if i < old_count and old_ordinal[i] == new_ordinal[r]:
                        continue
                    n = _write(out, n, q, value[at], ENTER, r + 1, new_score[r], new_ordinal[r])
            for r in range(size):
                reported.score[q, r] = new_score[r]
                reported.ordinal[q, r] = new_ordinal[r]
            reported.count[q] = size
        if emission[q] == SNAPSHOTS:
            for r in range(reported.count[q]):
                n = _write(out, n, q, value[at], TOP, r + 1, reported.score[q, r], reported.ordinal[q, r])
    return n


@jit
def _write(out, n, query, value, event, rank, score, ordinal):
    out.query[n] = query
    out.window_end[n] = value
    out.event[n] = event
    out.rank[n] = rank
    out.score[n] = score
    out.ordinal[n] = ordinal
    return n + 1

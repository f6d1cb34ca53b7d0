"""Rows that are taken out of their windows before they expire (SIGMOD06 section 7)."""

from __future__ import annotations

import numpy as np

from skyband.kernels.jit import jit, lean
from skyband.kernels.ranked.bands import HEAD, NEVER, OLDEST, STOP, K
from skyband.kernels.ranked.pruning import CORE, FILLED, LEFT, NONE, TOUCHED
from skyband.kernels.spatial.crowd_index import plan_query
from skyband.kernels.spatial.point_grid import search


@lean
def _remove(scores, ordinals, counts, marks, b, gone, base):
    """Take the rows out that are marked in gone[ordinal - base], wherever they stand; returns how many. For bands whose rows
    do not count each other. O(rows)."""
    kept, oldest = marks[b, HEAD], NEVER
    for i in range(marks[b, HEAD], marks[b, STOP]):
        if ordinals[i] >= base and gone[ordinals[i] - base]:
            continue
        scores[kept], ordinals[kept], counts[kept] = scores[i], ordinals[i], counts[i]
        oldest = min(oldest, ordinals[i])
        kept += 1
    removed = marks[b, STOP] - kept
    marks[b, STOP], marks[b, OLDEST] = kept, oldest
    return removed


@jit
def delete(pruners, questions, grid, points, indexed, calendar, first, end, seen, gone, base, tops, answers):
    """Take rows, which are out of the points already and marked in gone[ordinal - base], out of the top-k's that hold them.
    The window that ended last, [first, end), is answered again where it held one; the next is searched for where a row is
    missing. Answers name it as the only one."""
    marks, query = pruners.marks, pruners.query
    scores, ordinals, counts = pruners.rows
    keys, cells = np.empty(points.seen.size), np.empty(points.seen.size, np.int64)
    waiting = 0
    for q in range(query.shape[0]):
        waiting += indexed.waits[q]
    for q in range(query.shape[0]):
        core = query[q, CORE]
        if _remove(scores, ordinals, counts, marks, core, gone, base) > 0:
            query[q, FILLED] = NONE  # a window of the same rows may end next, which it was filled for before
            plan_query(pruners, calendar, q)
            if not indexed.waits[q]:
                indexed.waits[q], query[q, TOUCHED] = True, seen
                indexed.waiting[waiting] = q
                waiting += 1
        answered = False
        for i in range(tops.count[q]):
            answered |= tops.ordinal[q, i] >= base and gone[tops.ordinal[q, i] - base]
        if answered:
            n, used, k = answers.used[0], answers.used[1], marks[core, K]
            since = max(first, query[q, LEFT])
            score, ordinal = answers.score[used : used + k], answers.ordinal[used : used + k]
            count = search(points, grid, questions, q, since, end, k, score, ordinal, keys, cells)
            answers.query[n], answers.window[n], answers.begin[n], answers.size[n] = q, 0, used, count
            answers.used[0], answers.used[1] = n + 1, used + count

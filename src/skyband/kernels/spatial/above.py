"""Every row of the window with a score, ranked: merge what comes in, drop what has left."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.best import merge, sort_best
from skyband.kernels.jit import jit
from skyband.kernels.tops import hand_out, hand_out_same, has_room

COUNT, TAKEN, OLDEST = 0, 1, 2  # places in Kept.marks: rows held, ordinal after the last row taken, ordinal of the oldest
MARKS = 3
NEVER = np.iinfo(np.int64).max


class Kept(NamedTuple):
    """The rows held, best first."""

    score: np.ndarray  # float64 [room]
    ordinal: np.ndarray  # int64 [room]
    marks: np.ndarray  # int64 [MARKS]


@jit
def _expire(kept, first):
    """Drop the rows before the ordinal `first`. O(rows)."""
    held, oldest = 0, NEVER
    for i in range(kept.marks[COUNT]):
        if kept.ordinal[i] >= first:
            kept.score[held], kept.ordinal[held] = kept.score[i], kept.ordinal[i]
            oldest = min(oldest, kept.ordinal[i])
            held += 1
    kept.marks[COUNT], kept.marks[OLDEST] = held, oldest


@jit
def run(kept, tops, begin, scores, windows, start, most, results):
    """Take rows and answer windows from `start` on; returns the first one not answered. No answer has more than `most`
    rows. O(rows held) for a window that differs from the one before, O(log rows) for each row that came in."""
    marks = kept.marks
    room = kept.score.shape[0]
    new_score, new_ordinal = np.empty(room), np.empty(room, np.int64)
    all_score, all_ordinal = np.empty(room), np.empty(room, np.int64)
    marks[TAKEN] = max(marks[TAKEN], begin)
    used = 0
    for at in range(start, windows.query.shape[0]):
        first, end = windows.first[at], windows.end[at]
        if not has_room(results, used, most):
            return at
        changed = marks[OLDEST] < first or tops.count[0] != marks[COUNT]  # the latter after a gap that emptied it
        if marks[OLDEST] < first:
            _expire(kept, first)
        new = 0
        for row in range(max(marks[TAKEN], first), end):
            if scores[row - begin] == scores[row - begin]:
                new_score[new], new_ordinal[new] = scores[row - begin], row
                new += 1
        marks[TAKEN] = max(marks[TAKEN], end)
        if new > 0:
            marks[OLDEST] = min(marks[OLDEST], new_ordinal[0])
            sort_best(new_score, new_ordinal, new)
            count = merge(kept.score, kept.ordinal, marks[COUNT], new_score, new_ordinal, new, all_score, all_ordinal, room)
            kept.score[:count], kept.ordinal[:count] = all_score[:count], all_ordinal[:count]
            marks[COUNT] = count
        if new > 0 or changed:
            used = hand_out(tops, 0, results, at, used, windows.report[at], kept.score, kept.ordinal, marks[COUNT])
        else:
            hand_out_same(results, at)
    return windows.query.shape[0]

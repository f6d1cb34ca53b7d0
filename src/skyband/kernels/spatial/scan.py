"""Many queries with scores of their own over the same rows: every query over all rows, its scores computed many at a time.

Rows come, and windows are written down, as in `crowd`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.jit import jit
from skyband.kernels.ranked.following import follow
from skyband.kernels.ranked.pruning import BUFFER, DONE, FILTER, LEFT, NONE, SEARCH, WANTED, fill, filled_for, set_wanted, take
from skyband.kernels.spatial.point_grid import room_for, search_all
from skyband.kernels.spatial.points import EFFORT
from skyband.kernels.spatial.questions import BLOCK, scores_of

# places in progress
QUERY = 0  # being taken
WINDOW = 1  # its next one
SCORED = 2  # the query whose scores are at hand, or NONE
WAITED = 3  # the first row that leaves its buffer
SEARCHES = 4  # how often a core was filled from the window
PROGRESS = 5


class Slides(NamedTuple):
    """The windows that end in a run of rows, for each kind of window asked."""

    kind: np.ndarray  # int64 [queries]: which kind a query has
    begin: np.ndarray  # int64 [kinds + 1]: where the windows of each kind begin
    first: np.ndarray  # int64 [windows]
    end: np.ndarray  # int64 [windows]


@jit
def scan(
    pruners, questions, slides, points,
    rows, rows_from, begin, stop, progress, scored, apart, scored_seen, apart_seen, answers,
):  # fmt: skip
    """Every query over all rows. `scored`, `apart`: room for the scores of twice and once as many rows, and the same to read
    only: `follow` is compiled for such. Returns DONE, ANSWERS_FULL or a band that needs room."""
    block = np.empty(BLOCK)
    scores, ordinals, counts = pruners.rows
    marks, levels, query = pruners.marks, pruners.levels, pruners.query
    for q in range(progress[QUERY], query.shape[0]):
        length = query[q, BUFFER] if query[q, FILTER] != NONE else 0
        since = max(begin - length, query[q, LEFT]) if length > 0 else begin
        joined = length < stop - begin  # rows that leave the buffer are among those that arrive, or just before them
        leaving = scored_seen if joined else apart_seen
        if progress[SCORED] != q:
            if joined:
                scores_of(questions, q, rows, since - rows_from, stop - rows_from, scored)
            else:
                scores_of(questions, q, rows, begin - rows_from, stop - rows_from, scored)
                scores_of(questions, q, rows, since - rows_from, max(stop - length, since) - rows_from, apart)
            progress[WAITED] = since
            progress[SCORED], progress[WINDOW] = q, 0
        arriving_from = progress[WAITED] if joined else begin
        kind = slides.kind[q]
        first = slides.first[slides.begin[kind] : slides.begin[kind + 1]]
        end = slides.end[slides.begin[kind] : slides.begin[kind + 1]]
        while True:
            at, status = follow(
                pruners, q, first, end, progress[WINDOW], scored_seen, arriving_from, leaving, progress[WAITED], True, answers
            )
            progress[WINDOW] = at
            if status != SEARCH:
                break
            wanted, effort = query[q, WANTED], points.marks[EFFORT]
            best_score, best_ordinal = np.empty(room_for(wanted)), np.empty(room_for(wanted), np.int64)
            since = max(first[at], query[q, LEFT])  # without a filter: the first row it has seen
            count = search_all(points, questions, q, since, end[at], wanted, best_score, best_ordinal, block)
            fill(pruners, q, best_score, best_ordinal, count, filled_for(first[at], end[at]))
            came = end[at] - (end[at - 1] if at > 0 else begin)
            set_wanted(marks, query, q, first[at], end[at], came, points.marks[EFFORT] - effort)
            progress[SEARCHES] += 1
        if status == DONE:  # rows after the last window's end
            status = take(
                scores, ordinals, counts, marks, levels, query, q,
                stop, scored_seen, arriving_from, leaving, progress[WAITED], False,
            )  # fmt: skip
        if status != DONE:
            progress[QUERY] = q
            return status
    progress[QUERY], progress[SCORED] = 0, NONE
    return DONE

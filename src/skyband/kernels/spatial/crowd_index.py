"""Which rows the queries of a crowd want to see: each monitors the cells of a grid where a row may reach its threshold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.jit import jit, lean, tiny
from skyband.kernels.ranked.bands import HEAD, OLDEST, STOP, THRESHOLD, floor_of
from skyband.kernels.ranked.pruning import CORE, FILTER, NONE, SIZE
from skyband.kernels.spatial.calendar import BY_ROW, BY_WINDOW, plan
from skyband.kernels.spatial.query_grid import monitor
from skyband.kernels.spatial.screening import is_screened, set_screen

PATIENCE = 128  # rows scored in vain that cost as much as indexing a query anew
SCREENED = 4096  # the same where a row is screened first, which costs less
MOST_PATIENCE = 1 << 20  # the same where that has been of no use time and again
MARGIN = 0.3  # by how much of the distance from the middle row held to the threshold more is monitored


class Indexed(NamedTuple):
    """How each query is indexed."""

    threshold: np.ndarray  # float64: it monitors every cell where a row may score as much
    cells: np.ndarray  # int64: how many those are
    vain: np.ndarray  # int64: rows it was shown since that it had no use for
    patience: np.ndarray  # int64: how many those may be, beside as many as it monitors cells
    waits: np.ndarray  # bool: it is in `waiting`
    waiting: np.ndarray  # int64 [queries]: those whose top-k may have changed since their last window
    screen: np.ndarray  # float64 [words, 2 + d, 64]: that threshold, or a higher one that it needs now (`screening`)


@lean
def plan_query(pruners, calendar, q):
    """Bring the calendar up to date after query q has changed."""
    query, marks = pruners.query, pruners.marks
    core, sieve = query[q, CORE], query[q, FILTER]
    if sieve != NONE:
        plan(calendar, 2 * q + BY_ROW, marks[sieve, OLDEST])
    plan(calendar, 2 * q + (BY_ROW if query[q, SIZE] > 0 else BY_WINDOW), marks[core, OLDEST])


@tiny
def threshold_of(pruners, q):
    """A row below it cannot matter to query q (TODS15 6.1): PA's threshold, or the filter's rank k."""
    core, sieve = pruners.query[q, CORE], pruners.query[q, FILTER]
    if sieve == NONE:
        return pruners.levels[core, THRESHOLD]
    return floor_of(pruners.rows.score, pruners.marks, sieve)


@tiny
def needs_index(pruners, indexed, q):
    """Does the query need more cells than it monitors, or have those cost more than indexing it anew?"""
    return threshold_of(pruners, q) < indexed.threshold[q] or _in_vain(indexed, q)


@tiny
def _in_vain(indexed, q):
    return indexed.vain[q] > indexed.patience[q] + indexed.cells[q]


@jit
def index_query(pruners, questions, grid, indexed, q):
    """Monitor what the query needs, and some more, so that a threshold that sinks a little asks for nothing.

    Where most rows fall into cells that it needs, as a few values far from all others make them do, it goes on to see rows in
    vain: once it has been indexed anew for nothing, it waits twice as long for the next time."""
    patience, before, in_vain = indexed.patience[q], indexed.cells[q], _in_vain(indexed, q)
    threshold, core = threshold_of(pruners, q), pruners.query[q, CORE]
    middle = (pruners.marks[core, HEAD] + pruners.marks[core, STOP]) // 2
    if threshold > -np.inf and middle > pruners.marks[core, HEAD]:  # not the best, which may be far from all others; nor none
        spread = pruners.rows.score[middle] - threshold
        if 0.0 < spread < np.inf:  # rows that a filter let through before may be lower
            threshold -= MARGIN * spread
    indexed.threshold[q], indexed.vain[q] = threshold, 0
    indexed.cells[q] = monitor(grid, questions, q, threshold)
    set_screen(indexed.screen, questions, q, threshold)
    if in_vain:
        patience = min(2 * patience, MOST_PATIENCE) if 4 * indexed.cells[q] > 3 * before else 0
    indexed.patience[q] = max(patience, _usual_patience(indexed, q))


@tiny
def _usual_patience(indexed, q):
    return SCREENED if is_screened(indexed.screen, q) else PATIENCE


@jit
def begin_index(pruners, questions, grid, indexed, calendar):
    """Let every query monitor what its threshold asks for, and enter what it will lose into the calendar."""
    for q in range(pruners.query.shape[0]):
        indexed.threshold[q], indexed.vain[q] = threshold_of(pruners, q), 0
        indexed.cells[q] = monitor(grid, questions, q, indexed.threshold[q])
        set_screen(indexed.screen, questions, q, indexed.threshold[q])
        indexed.patience[q] = _usual_patience(indexed, q)
        plan_query(pruners, calendar, q)

"""Rows that some of many queries can rank: of each pane, at least the k best by every query.

Rows of a pane enter and leave all windows together, so nothing but its k best by a query can ever rank for it. Sorting a pane
by a thousand scores would cost more than sending it; so each query has a *guess*, a score that some more than k rows of a pane
are expected to reach. A row is scored only where some query can reach its guess within the row's cell of a coarse grid, and is
a contender for the queries whose guess it reaches. A query that at least k rows of a pane have reached has its k best among
them. For one that fewer reached, all rows of the pane are scored, and the guess is lowered; one that too many reached has the
best of them chosen, and the guess raised. So a guess costs time where it is wrong, and never a row.

Scores are those of `questions`, bit for bit, and steps are rounded monotonically: no margin is needed. Rows outside the grid,
and those without a number for an attribute, are scored always.

Cost: O(d) a row; O(queries), vectorized, for a row in a cell that some query reaches, and for all of a pane whose guesses fail.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.best import collect, finish
from skyband.kernels.jit import jit, lean
from skyband.kernels.spatial.grid import FIRST, STOP, cells_in, line_of, next_line, region_box
from skyband.kernels.spatial.query_grid import best_along, best_terms, bounding_box
from skyband.kernels.spatial.questions import LINEAR, scores_of

OUTSIDE = -1  # in place of a row's cell: it is scored, whatever the grid says


class Guesses(NamedTuple):
    """What each of u queries expects of a pane."""

    level: np.ndarray  # float64 [u]: rows that score as much are contenders; inf before the first pane
    k: np.ndarray  # int64 [u]: rows that must reach it; 0 where it is a bound of the query's own
    aim: np.ndarray  # int64 [u]: rows that it is set for, at least k
    raised: np.ndarray  # int64 [1]: how often one was since the cells were opened


class Panes(NamedTuple):
    """Rows by pane; those of a pane in the order of time."""

    rows: np.ndarray  # float64 [d, n]
    time: np.ndarray  # int64 [n]
    cell: np.ndarray  # int64 [n]: of the grid, or OUTSIDE
    begin: np.ndarray  # int64 [panes + 1]


@jit
def place_rows(grid, rows, cell):
    """Write the cell of each row (float64 [d, n]), or OUTSIDE; how many are."""
    edge = grid.edge
    within = np.ones(cell.size, np.bool_)
    cell[:] = cells_in(grid, rows)
    for axis in range(rows.shape[0]):
        low, high, x = edge[axis, 0], edge[axis, -1], rows[axis]
        for i in range(cell.size):
            within[i] &= low <= x[i] <= high
    outside = 0
    for i in range(cell.size):
        outside += not within[i]
        cell[i] = cell[i] if within[i] else OUTSIDE
    return outside


@jit
def mark_odd(rows, cell, moderate, keep):
    """Set `keep` for rows outside the grid with an attribute that is unknown, infinite or so large that arithmetic may be."""
    for i in range(cell.size):
        if cell[i] == OUTSIDE:
            for axis in range(rows.shape[0]):
                keep[i] |= not abs(rows[axis, i]) < moderate


@jit
def open_cells(grid, questions, q, level, opened):
    """Mark the cells in which a row can score as much as `level` for query q, which has no CODE."""
    kind, sign, order = questions.kind[q], questions.sign[q], questions.order[q, : questions.used[q]]
    terms = best_terms(grid, questions, q)
    dimensions, resolution = terms.shape
    box = np.zeros((2, dimensions), np.int64)
    region_box(grid, questions, q, box)
    if not bounding_box(kind, sign, order, terms, level, box):
        return
    last = dimensions - 1
    first = box[FIRST, last]
    best = np.empty(box[STOP, last] - first)
    at = box[FIRST].copy()
    while True:
        best_along(kind, sign, order, terms, at, last, first, best)
        line = line_of(at, resolution) + first
        for c in range(best.size):
            opened[line + c] |= best[c] >= level
        if not next_line(at, box):
            return


@lean
def _score(questions, q, rows, begin, stop, out):
    """Turned scores of rows[:, begin:stop]; NaN outside the query's region."""
    scores_of(questions, q, rows, begin, stop, out)
    for place in range(questions.bounds[q]):
        axis = questions.bound[q, place]
        low, high, x = questions.low[q, axis], questions.high[q, axis], rows[axis, begin:stop]
        for i in range(x.size):
            out[i] = out[i] if low <= x[i] <= high else np.nan


@lean
def _reach(questions, q, rows, count, level, scores, reached):
    """Mark the rows of rows[:, :count] that reach the level; how many."""
    hits = 0
    used = questions.used[q]
    if questions.kind[q] == LINEAR and questions.bounds[q] == 0 and used <= 4:
        # the commonest: scores are compared where they are computed, and never written. A weight of 0 for what is not used
        # changes no finite score, and rows without one are marked anyway
        order, weight, sign = questions.order[q], questions.weight[q], questions.sign[q]
        a, wa = order[0], sign * weight[order[0]]
        b, wb = (order[1], sign * weight[order[1]]) if used > 1 else (a, 0.0)
        c, wc = (order[2], sign * weight[order[2]]) if used > 2 else (a, 0.0)
        d, wd = (order[3], sign * weight[order[3]]) if used > 3 else (a, 0.0)
        xa, xb, xc, xd = rows[a, :count], rows[b, :count], rows[c, :count], rows[d, :count]
        for i in range(count):
            hit = wa * xa[i] + wb * xb[i] + wc * xc[i] + wd * xd[i] >= level
            reached[i] |= hit
            hits += hit
        return hits
    _score(questions, q, rows, 0, count, scores)
    for i in range(count):
        hit = scores[i] >= level
        reached[i] |= hit
        hits += hit
    return hits


@lean
def _show(panes, begin, stop, opened, shown, place):
    """Copy the rows of a pane whose cells are open, or that are outside the grid, to `shown`; how many they are."""
    count = 0
    for i in range(begin, stop):
        cell = panes.cell[i]
        if cell == OUTSIDE or opened[cell]:
            for axis in range(shown.shape[0]):
                shown[axis, count] = panes.rows[axis, i]
            place[count] = i
            count += 1
    return count


@lean
def _mark_best(scores, count, time, place, level, k, aim, best_score, best_place, keep):
    """Mark the best k of some rows, and those that nobody can tell from the last of these by score and time. Returns the score
    of the last of the best `aim`, -inf where there are fewer."""
    _, found = collect(scores, 0, count, 0, level, best_score, best_place, 0, aim)
    found = finish(best_score, best_place, found, aim)
    if found < k:
        for i in range(count):
            keep[place[i]] |= scores[i] >= level
        return -np.inf
    last, since = best_score[k - 1], time[place[best_place[k - 1]]]
    for i in range(count):
        if scores[i] >= last:
            keep[place[i]] |= scores[i] > last or time[place[i]] >= since
    return best_score[aim - 1] if found == aim else -np.inf


@jit
def mark_contenders(questions, guesses, grid, opened, panes, settled, keep):
    """Set `keep` for the rows that can rank for some query. Guesses are made for panes of `settled` rows: what fewer than half,
    or more than twice as many, make of them changes none."""
    widest = 0
    for p in range(panes.begin.size - 1):
        widest = max(widest, panes.begin[p + 1] - panes.begin[p])
    shown, place = np.empty((panes.rows.shape[0], widest)), np.empty(widest, np.int64)
    scores, reached, before = np.empty(widest), np.empty(widest, np.bool_), np.empty(widest, np.bool_)
    most = 2 * guesses.aim.max()
    best_score, best_place = np.empty(most), np.empty(most, np.int64)
    whole = np.empty(widest, np.int64)
    for p in range(panes.begin.size - 1):
        begin, stop = panes.begin[p], panes.begin[p + 1]
        if stop - begin <= guesses.k.min():
            keep[begin:stop] = True
            continue
        usual = settled <= 2 * (stop - begin) and stop - begin <= 2 * settled
        count = _show(panes, begin, stop, opened, shown, place)
        for i in range(stop - begin):
            whole[i] = begin + i
        reached[:count] = False
        for q in range(guesses.k.size):
            level, k, aim = guesses.level[q], guesses.k[q], guesses.aim[q]
            before[:count] = reached[:count]
            hits = _reach(questions, q, shown, count, level, scores, reached)
            if hits < k:
                _score(questions, q, panes.rows, begin, stop, scores)
                lower = _mark_best(scores, stop - begin, panes.time, whole, -np.inf, k, aim, best_score, best_place, keep)
                if usual:
                    guesses.level[q] = lower
                    open_cells(grid, questions, q, lower, opened)
            elif hits > 2 * aim and k > 0:
                reached[:count] = before[:count]
                _score(questions, q, shown, 0, count, scores)
                higher = _mark_best(scores, count, panes.time, place, level, k, aim, best_score, best_place, keep)
                if usual and higher > level:
                    guesses.level[q] = higher
                    guesses.raised[0] += 1
        for i in range(count):
            if reached[i]:
                keep[place[i]] = True

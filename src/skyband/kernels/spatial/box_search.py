"""The best rows of the window for a query that monitors few cells: all of these are looked at, in the order in which they lie.

A query that has lost a row from its answer finds the next one nearly always above the threshold by which it is indexed, in one
of the cells that it monitors. So there is no heap, and rows below the threshold are not kept. While a cell is read, the next
one is asked for: which it is, is known.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.best import finish
from skyband.kernels.jit import jit, lean
from skyband.kernels.spatial.apart import SUM, WHOLE, Apart, falls_away, no_apart, take_apart
from skyband.kernels.spatial.fetching import fetch
from skyband.kernels.spatial.grid import FIRST, STOP, line_of
from skyband.kernels.spatial.point_grid import best_of, open_cell
from skyband.kernels.spatial.points import COUNT, HEAD, PART
from skyband.kernels.spatial.query_grid import best_terms
from skyband.kernels.spatial.questions import BLOCK, CODE, LINEAR

_LINES = 4  # of a box, for each monitored cell in it, that may be looked at
_FETCHED = 1024  # bytes of a cell that are asked for: once it is read from end to end, the processor sees what follows
_OF_A_LINE = 64  # bytes of memory that come together


@lean
def _fetch_cell(points, cell):
    begin = (points.ring[cell, PART] + points.ring[cell, HEAD]) * points.rows.shape[1]
    for at in range(0, min(_FETCHED // 8, points.ring[cell, COUNT] * points.rows.shape[1]), _OF_A_LINE // 8):
        fetch(points.rows, begin + at)


@jit
def _cells_above(grid, questions, q, threshold, lines, found, best):
    """Write the cells of the query's box in which a row may score the threshold, line after line from its best corner on, and
    their best scores; returns how many, or -1 where scores do not fall from a corner on."""
    box = grid.box[q]
    dimensions, resolution = box.shape[1], grid.edge.shape[1] - 1
    kind, sign, order = questions.kind[q], questions.sign[q], questions.order[q, : questions.used[q]]
    start, step = np.empty(dimensions, np.int64), np.empty(dimensions, np.int64)
    if kind == CODE:
        apart = no_apart(dimensions, resolution)
        how = take_apart(grid, questions, q, box, apart)
        if how == WHOLE or not falls_away(apart, box):
            return -1
        terms = apart.term
    else:
        how, terms = SUM, best_terms(grid, questions, q)
        apart = Apart(terms, best, start, best, best)  # is not looked at
    for axis in range(dimensions):
        rises = sign * questions.weight[q, axis] > 0.0 if how == SUM else apart.best[axis] > box[FIRST, axis]
        start[axis], step[axis] = (box[STOP, axis] - 1, -1) if rises else (box[FIRST, axis], 1)
        if how != SUM and start[axis] != apart.best[axis]:
            return -1
    at, last, count = start.copy(), dimensions - 1, 0
    for _ in range(lines):
        at[last] = start[last]
        line = line_of(at, resolution)
        while box[FIRST, last] <= at[last] < box[STOP, last]:
            value = best_of(questions, q, how, kind, sign, order, terms, apart, at)
            if value < threshold:  # along the line cells only get worse
                break
            found[count], best[count] = line + at[last], value
            count += 1
            at[last] += step[last]
        axis = last - 1
        while axis >= 0:
            at[axis] += step[axis]
            if box[FIRST, axis] <= at[axis] < box[STOP, axis]:
                break
            at[axis] = start[axis]
            axis -= 1
    return count


@jit
def search_box(points, grid, questions, q, threshold, cells, first, stop, wanted, score, ordinal, keys, reached):
    """`point_grid.search` for a weighted sum, or an expression that falls apart, that monitors so many `cells`, all in which a
    row may score the threshold. Returns -1 when that will not do: rows below the threshold are among the best, the box has too
    many lines, or scores in it do not fall from a corner on."""
    box = grid.box[q]
    lines = 1
    for axis in range(box.shape[1] - 1):
        lines *= box[STOP, axis] - box[FIRST, axis]
    if questions.kind[q] not in (LINEAR, CODE) or questions.bounds[q] > 0:
        return -1
    if not -np.inf < threshold or not 0 < lines <= _LINES * cells:
        return -1
    found = _cells_above(grid, questions, q, threshold, lines, reached, keys)
    block, floor, count = np.empty(BLOCK), threshold, 0
    for i in range(found):
        if i + 1 < found:
            _fetch_cell(points, reached[i + 1])
        if keys[i] >= floor:
            cell = reached[i]
            floor, count = open_cell(points, questions, q, cell, first, stop, block, score, ordinal, floor, count, wanted)
    count = finish(score, ordinal, count, wanted)
    return count if count == wanted else -1

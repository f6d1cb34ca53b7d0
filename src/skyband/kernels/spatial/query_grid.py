"""A regular grid over the attributes that says which queries a row can interest, by the cell it falls into.

A query names a threshold, and monitors the cells in which a row could score as much. An arriving row is then shown
only to the queries of its cell. Thresholds may rise without the grid being told: a query that monitors too many cells
sees rows in vain, but misses none. TODS15 sections 2 (figures 2 and 3: lazy re-indexing) and 6.1 (figure 7).

Guarantee: a row whose turned score, as computed, is at least the threshold lies in a monitored cell. No margin is needed for
that: in a formula every step is rounded monotonically, so its value at the best corner of a cell bounds its values in the cell,
rounding included.

Memory: a bit per cell and query. Deviations: outermost cells reach to infinity, so that no row is outside;
a linear query, or one for the farthest rows, therefore monitors outermost cells whatever its threshold: give it bounds
a cell wider than its rows. A cell holds a set of bits instead of a list, so that re-indexing moves nothing.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.jit import jit, tiny
from skyband.kernels.spatial.apart import WHOLE, best_apart, bounding_box_apart, no_apart, take_apart
from skyband.kernels.spatial.grid import (
    FIRST,
    STOP,
    WORD_BITS,
    WORD_SHIFT,
    forget,
    highest,
    line_of,
    longest_side,
    lowest,
    next_line,
    region_box,
    watch,
    watch_box,
)
from skyband.kernels.spatial.questions import CODE, LINEAR, NOTHING, best_in_box, term_of, turned


@tiny
def _best_term(questions, q, axis, low, high):
    """The best of an attribute's terms over low <= x <= high, computed as that of a row there."""
    kind, sign = questions.kind[q], questions.sign[q]
    point, weight = questions.point[q, axis], questions.weight[q, axis]
    if weight == 0.0:
        return 0.0  # at infinity the term is NaN, and such a row never ranks
    if kind == LINEAR:
        return term_of(kind, high if sign * weight > 0.0 else low, point, weight)
    if sign > 0.0:
        return max(term_of(kind, low, point, weight), term_of(kind, high, point, weight))
    return term_of(kind, min(max(point, low), high), point, weight)


@jit
def best_terms(grid, questions, q):
    """The best term of every attribute in use and coordinate: float64 [d, resolution]."""
    edge = grid.edge
    terms = np.zeros((edge.shape[0], edge.shape[1] - 1))
    for axis in questions.order[q, : questions.used[q]]:
        for c in range(terms.shape[1]):
            low, high = lowest(grid, questions, q, axis, c), highest(grid, questions, q, axis, c)
            terms[axis, c] = _best_term(questions, q, axis, low, high)
    return terms


@jit
def best_along(kind, sign, order, terms, at, along, first, best):
    """Write the best turned scores of the cells that differ from `at` in the attribute `along` only: from `first` on.

    The sums are those of `score_of`, of the terms of `best_terms`. Loops over cells are vectorized.
    """
    worst = -sign * np.inf
    best[:] = NOTHING
    for axis in order:
        if axis == along:
            changing = terms[axis, first : first + best.size]
            for c in range(best.size):
                best[c] += changing[c]
        else:
            term = terms[axis, at[axis]]
            for c in range(best.size):
                best[c] += term
        # inf - inf: one of the two no row of the cell can escape, so that its sum is NaN or the worse infinity
        for c in range(best.size):
            best[c] = worst if best[c] != best[c] else best[c]
    for c in range(best.size):
        best[c] = turned(kind, sign, best[c])


@tiny
def best_at(kind, sign, order, terms, at):
    """The best turned score that a row in the cell at coordinates `at` can have, of the terms of `best_terms`; never NaN."""
    total = NOTHING
    for place in range(order.size):
        total += terms[order[place], at[order[place]]]
        if total != total:
            total = -sign * np.inf  # as in `best_along`
    return turned(kind, sign, total)


@jit
def best_in_cells(grid, questions, q, box, low, high, out):
    """The best turned score that a row in the cells of a box can have for query q, which has CODE; NaN when none has one.
    `low`, `high`, `out`: room, float64 [d] and [3]."""
    for axis in range(low.size):
        low[axis] = lowest(grid, questions, q, axis, box[FIRST, axis])
        high[axis] = highest(grid, questions, q, axis, box[STOP, axis] - 1)
    return best_in_box(questions, q, low, high, out)


@jit
def best_in_cell(grid, questions, q, cell):
    """The best turned score, as computed, that a row in the cell can have for query q, which has no CODE; never NaN.
    O(d)."""
    dimensions, resolution = grid.low.size, grid.edge.shape[1] - 1
    order = questions.order[q, : questions.used[q]]
    terms = np.zeros((dimensions, 1))
    for axis in range(dimensions - 1, -1, -1):
        c = cell % resolution
        cell //= resolution
        low, high = lowest(grid, questions, q, axis, c), highest(grid, questions, q, axis, c)
        terms[axis, 0] = _best_term(questions, q, axis, low, high)
    best = np.empty(1)
    best_along(questions.kind[q], questions.sign[q], order, terms, np.zeros(dimensions, np.int64), 0, 0, best)
    return best[0]


@jit
def bounding_box(kind, sign, order, terms, threshold, box):
    """Cut the box down to the smallest that holds all of its cells whose best is at least the threshold. False when there
    is none.

    A coordinate belongs to it if the cell does in which it meets the best coordinates of the other attributes.
    """
    resolution = terms.shape[1]
    at = box[FIRST].copy()
    for axis in order:
        for c in range(box[FIRST, axis] + 1, box[STOP, axis]):
            if sign * terms[axis, c] > sign * terms[axis, at[axis]]:
                at[axis] = c
    best = np.empty(resolution)
    for axis in order:
        best_along(kind, sign, order, terms, at, axis, 0, best)
        if not best[at[axis]] >= threshold:
            return False
        while not best[box[FIRST, axis]] >= threshold:
            box[FIRST, axis] += 1
        while not best[box[STOP, axis] - 1] >= threshold:
            box[STOP, axis] -= 1
    return True


@jit
def monitor(grid, questions, q, threshold):
    """Let query q monitor exactly the cells whose best is at least the threshold. Returns their number.

    O(d² · resolution + d · cells) with the cells of the box around those monitored before or from now on. With CODE that does
    not fall apart: halves of halves of the grid are looked at, as long as they hold both.
    """
    if questions.kind[q] == CODE:
        return _monitor_code(grid, questions, q, threshold)
    kind, sign, order = questions.kind[q], questions.sign[q], questions.order[q, : questions.used[q]]
    terms = best_terms(grid, questions, q)
    dimensions, resolution = terms.shape
    old = grid.box[q]
    new = np.zeros((2, dimensions), np.int64)
    region_box(grid, questions, q, new)
    if not bounding_box(kind, sign, order, terms, threshold, new):
        forget(grid, q)
        return 0
    both = _around(old, new)
    word, bit = q >> WORD_SHIFT, np.uint64(1) << np.uint64(q & (WORD_BITS - 1))
    last = dimensions - 1
    first = both[FIRST, last]
    best = np.empty(both[STOP, last] - first)
    at = both[FIRST].copy()
    monitored = 0
    while True:
        best_along(kind, sign, order, terms, at, last, first, best)
        line = line_of(at, resolution) + first
        for c in range(best.size):
            wanted = best[c] >= threshold
            watch(grid, line + c, word, bit, wanted)
            monitored += wanted
        if not next_line(at, both):
            break
    grid.box[q] = new
    return monitored


@jit
def _around(old, new):
    """The box around both; the old one may be none."""
    both = new.copy()
    if old[STOP, 0] > 0:
        for axis in range(new.shape[1]):
            both[FIRST, axis] = min(old[FIRST, axis], new[FIRST, axis])
            both[STOP, axis] = max(old[STOP, axis], new[STOP, axis])
    return both


@jit
def _monitor_code(grid, questions, q, threshold):
    dimensions, resolution = grid.edge.shape[0], grid.edge.shape[1] - 1
    new, apart = np.zeros((2, dimensions), np.int64), no_apart(dimensions, resolution)
    region_box(grid, questions, q, new)
    how = take_apart(grid, questions, q, new, apart)
    if how == WHOLE:
        return _monitor_by_halves(grid, questions, q, threshold)
    if not bounding_box_apart(questions, q, how, apart, threshold, new):
        forget(grid, q)
        return 0
    both = _around(grid.box[q], new)
    word, bit = q >> WORD_SHIFT, np.uint64(1) << np.uint64(q & (WORD_BITS - 1))
    last, at, monitored = dimensions - 1, both[FIRST].copy(), 0
    while True:
        line, inside = line_of(at, resolution), True
        for axis in range(last):
            inside = inside and new[FIRST, axis] <= at[axis] < new[STOP, axis]
        for c in range(both[FIRST, last], both[STOP, last]):
            at[last] = c
            wanted = inside and new[FIRST, last] <= c < new[STOP, last]
            wanted = wanted and best_apart(questions, q, how, apart, at) >= threshold
            watch(grid, line + c, word, bit, wanted)
            monitored += wanted
        if not next_line(at, both):
            break
    grid.box[q] = new
    return monitored


@jit
def _monitor_by_halves(grid, questions, q, threshold):
    forget(grid, q)
    dimensions, resolution = grid.edge.shape[0], grid.edge.shape[1] - 1
    word, bit = q >> WORD_SHIFT, np.uint64(1) << np.uint64(q & (WORD_BITS - 1))
    low, high, out = np.empty(dimensions), np.empty(dimensions), np.empty(3)
    halvings = 0  # that leave one cell of a line: each leaves a half waiting
    while 1 << halvings < resolution:
        halvings += 1
    waiting = np.empty((halvings * dimensions + 1, 2, dimensions), np.int64)
    at = np.empty(dimensions, np.int64)
    box, around = np.empty((2, dimensions), np.int64), np.empty((2, dimensions), np.int64)
    around[FIRST], around[STOP] = resolution, 0
    region_box(grid, questions, q, waiting[0])
    count, monitored = 1, 0
    while count > 0:
        count -= 1
        box[:] = waiting[count]
        if not best_in_cells(grid, questions, q, box, low, high, out) >= threshold:
            continue
        axis = longest_side(box)
        worst = out[0] if questions.sign[q] > 0.0 else -out[1]
        if worst < threshold and box[STOP, axis] - box[FIRST, axis] > 1:
            middle = (box[FIRST, axis] + box[STOP, axis]) // 2
            waiting[count], waiting[count + 1] = box, box
            waiting[count, STOP, axis] = waiting[count + 1, FIRST, axis] = middle
            count += 2
            continue
        monitored += watch_box(grid, box, at, word, bit, True)
        for axis in range(dimensions):
            around[FIRST, axis] = min(around[FIRST, axis], box[FIRST, axis])
            around[STOP, axis] = max(around[STOP, axis], box[STOP, axis])
    if monitored > 0:
        grid.box[q] = around
    return monitored

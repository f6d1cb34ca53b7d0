"""A regular grid over the attributes that says which queries a row can interest, by the cell it falls into.

A query names a threshold, and monitors the cells in which a row could score as much. An arriving row is then shown
only to the queries of its cell. Thresholds may rise without the grid being told: a query that monitors too many cells
sees rows in vain, but misses none. TODS15 sections 2 (figures 2 and 3: lazy re-indexing) and 6.1 (figure 7).

Guarantee: a row whose turned score, as computed, is at
least the threshold lies in a monitored cell. No margin is needed for that: in a formula every step is rounded
monotonically, so its value at the best corner of a cell bounds its values in the cell, rounding included.

Memory: a bit per cell and query (`room`). Deviations: outermost cells reach to infinity, so that no row is outside;
a linear query, or one for the farthest rows, therefore monitors outermost cells whatever its threshold: give it bounds
a cell wider than its rows. A cell holds a set of bits instead of a list, so that re-indexing moves nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, overload

from skyband.kernels.jit import jit, tiny
from skyband.kernels.questions import CODE, LINEAR, NOTHING, best_in_box, term_of, turned

FIRST, STOP = 0, 1  # places in Grid.box

_HALVINGS = 12  # that leave one of 1000 cells

WORD_BITS = 64
WORD_SHIFT = 6  # log2(WORD_BITS)
INFINITY_BITS = 0x7FF0000000000000  # of a float64


class Grid(NamedTuple):
    """resolution ** d cells, numbered with the last attribute running fastest, and who monitors them."""

    low: np.ndarray  # float64 [d]: where the first cells would begin if they did not reach to -inf
    scale: np.ndarray  # float64 [d]: cells per unit
    edge: np.ndarray  # float64 [d, resolution + 1]: coordinate c holds edge[c] <= x <= edge[c + 1]; outer ones infinite
    members: np.ndarray  # uint64 [cells, words]: bit q % 64 of word q // 64 is set where query q monitors the cell
    box: np.ndarray  # int64 [u, 2, d]: coordinates from FIRST up to STOP outside of which no bit of the query is set


def room(dimensions: int, resolution: int, queries: int) -> int:
    """Bytes that `members` takes."""
    return int(resolution) ** dimensions * -(-queries // WORD_BITS) * (WORD_BITS // 8)


def empty_grid(low: np.ndarray, high: np.ndarray, resolution: int, queries: int) -> Grid:
    """A grid that divides each attribute from `low` to `high` into `resolution` cells, monitored by nobody."""
    low, high = np.array(low, np.float64), np.array(high, np.float64)
    if resolution < 1 or not (np.isfinite(low) & np.isfinite(high) & (low <= high)).all():
        raise ValueError(f"a grid needs finite bounds, low <= high, and a cell; got {low}, {high}, resolution {resolution}")
    edge = np.empty((low.size, resolution + 1))
    with np.errstate(all="ignore"):
        # infinite where low is high: what is above it is in the last cell; abs() because 0 - 0 may be -0
        scale = 1.0 / np.abs(high / resolution - low / resolution)
        _find_edges(low, scale, edge)
    members = np.zeros((resolution**low.size, -(-queries // WORD_BITS)), np.uint64)
    return Grid(low, scale, edge, members, np.zeros((queries, 2, low.size), np.int64))


@tiny
def _coordinate(x, low, scale, resolution):
    """The cell of x along one attribute. Never falls while x rises, infinities included; NaN is in the first cell."""
    place = (x - low) * scale
    place = place if place > 0.0 else 0.0
    last = resolution - 1.0
    return np.int64(place if place < last else last)


@jit
def _find_edges(low, scale, edge):
    """edge[i, c]: the least number whose coordinate is c or more, found among all float64, so that rounding is told."""
    resolution = edge.shape[1] - 1
    bits = np.zeros(1, np.int64)
    number = bits.view(np.float64)
    for axis in range(low.size):
        edge[axis, 0], edge[axis, resolution] = -np.inf, np.inf
        for c in range(1, resolution):
            # positions in the order of all float64: that of x >= 0 is its bits, that of -x is minus that
            below, above = -INFINITY_BITS, INFINITY_BITS
            while above - 1 > below:
                middle = (below >> 1) + (above >> 1) + (below & above & 1)
                bits[0] = abs(middle)
                x = number[0] if middle >= 0 else -number[0]
                if _coordinate(x, low[axis], scale[axis], resolution) >= c:
                    above = middle
                else:
                    below = middle
            bits[0] = abs(above)
            edge[axis, c] = number[0] if above >= 0 else -number[0]


@tiny
def cell_of(grid, x):
    """The number of the cell the row x (float64 [d]) falls into; of a row with a NaN, of some cell."""
    resolution = grid.edge.shape[1] - 1
    cell = np.int64(0)
    for axis in range(x.shape[0]):
        cell = cell * resolution + _coordinate(x[axis], grid.low[axis], grid.scale[axis], resolution)
    return cell


@jit
def cells_of(grid, rows):
    """The same for every row of rows (float64 [n, d], of any layout)."""
    cells = np.empty(rows.shape[0], np.int64)
    for row in range(rows.shape[0]):
        cells[row] = cell_of(grid, rows[row])
    return cells


# which cells a query monitors -------------------------------------------------------------------------------


@jit
def region_box(grid, questions, q, box):
    """Write the coordinates of the cells that query q's region reaches into."""
    resolution = grid.edge.shape[1] - 1
    box[FIRST], box[STOP] = 0, resolution
    for place in range(questions.bounds[q]):
        axis = questions.bound[q, place]
        low, scale = grid.low[axis], grid.scale[axis]
        box[FIRST, axis] = _coordinate(questions.low[q, axis], low, scale, resolution)
        box[STOP, axis] = _coordinate(questions.high[q, axis], low, scale, resolution) + 1


@tiny
def _lowest(grid, questions, q, axis, c):
    """The least number an attribute can have in the cells of a coordinate, within the query's region."""
    return min(max(grid.edge[axis, c], questions.low[q, axis]), questions.high[q, axis])


@tiny
def _highest(grid, questions, q, axis, c):
    return max(min(grid.edge[axis, c + 1], questions.high[q, axis]), questions.low[q, axis])


@jit
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
def _best_terms(grid, questions, q):
    """The best term of every attribute in use and coordinate: float64 [d, resolution]."""
    edge = grid.edge
    terms = np.zeros((edge.shape[0], edge.shape[1] - 1))
    for axis in questions.order[q, : questions.used[q]]:
        for c in range(terms.shape[1]):
            low, high = _lowest(grid, questions, q, axis, c), _highest(grid, questions, q, axis, c)
            terms[axis, c] = _best_term(questions, q, axis, low, high)
    return terms


@jit
def _best_along(kind, sign, order, terms, at, along, first, best):
    """Write the best turned scores of the cells that differ from `at` in the attribute `along` only: from `first` on.

    The sums are those of `score_of`, of the terms of `_best_terms`. Loops over cells are vectorized.
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


@jit
def best_in_cells(grid, questions, q, box, low, high, out):
    """The best turned score that a row in the cells of a box can have for query q, which has CODE; NaN when none
    has one. `low`, `high`, `out`:
    room, float64 [d] and [3]."""
    for axis in range(low.size):
        low[axis] = _lowest(grid, questions, q, axis, box[FIRST, axis])
        high[axis] = _highest(grid, questions, q, axis, box[STOP, axis] - 1)
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
        low, high = _lowest(grid, questions, q, axis, c), _highest(grid, questions, q, axis, c)
        terms[axis, 0] = _best_term(questions, q, axis, low, high)
    best = np.empty(1)
    _best_along(questions.kind[q], questions.sign[q], order, terms, np.zeros(dimensions, np.int64), 0, 0, best)
    return best[0]


@jit
def _bounding_box(kind, sign, order, terms, threshold, box):
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
        _best_along(kind, sign, order, terms, at, axis, 0, best)
        if not best[at[axis]] >= threshold:
            return False
        while not best[box[FIRST, axis]] >= threshold:
            box[FIRST, axis] += 1
        while not best[box[STOP, axis] - 1] >= threshold:
            box[STOP, axis] -= 1
    return True


@jit
def _next_line(at, box):
    """Move `at` to the next line of cells along the last attribute within the box. False behind the last one."""
    for axis in range(at.size - 2, -1, -1):
        at[axis] += 1
        if at[axis] < box[STOP, axis]:
            return True
        at[axis] = box[FIRST, axis]
    return False


@jit
def _line(at, resolution):
    """The number of the first cell of the line that `at` lies on."""
    cell = np.int64(0)
    for axis in range(at.size - 1):
        cell = (cell + at[axis]) * resolution
    return cell


@jit
def monitor(grid, questions, q, threshold):
    """Let query q monitor exactly the cells whose best is at least the threshold. Returns their number.

    O(d² · resolution + d · cells) with the cells of the box around those monitored before or from now on. With CODE: of
    halves of halves of the grid, those that a row can score as much in, O(log cells) for each cell monitored.
    """
    if questions.kind[q] == CODE:
        return _monitor_by_halves(grid, questions, q, threshold)
    kind, sign, order = questions.kind[q], questions.sign[q], questions.order[q, : questions.used[q]]
    terms = _best_terms(grid, questions, q)
    dimensions, resolution = terms.shape
    old = grid.box[q]
    new = np.zeros((2, dimensions), np.int64)
    region_box(grid, questions, q, new)
    if not _bounding_box(kind, sign, order, terms, threshold, new):
        forget(grid, q)
        return 0
    both = new.copy()
    if old[STOP, 0] > 0:
        for axis in range(dimensions):
            both[FIRST, axis] = min(old[FIRST, axis], new[FIRST, axis])
            both[STOP, axis] = max(old[STOP, axis], new[STOP, axis])
    members = grid.members
    word, bit = q >> WORD_SHIFT, np.uint64(1) << np.uint64(q & (WORD_BITS - 1))
    last = dimensions - 1
    first = both[FIRST, last]
    best = np.empty(both[STOP, last] - first)
    at = both[FIRST].copy()
    monitored = 0
    while True:
        _best_along(kind, sign, order, terms, at, last, first, best)
        line = _line(at, resolution) + first
        for c in range(best.size):
            wanted = best[c] >= threshold
            bits = members[line + c, word]
            members[line + c, word] = bits | bit if wanted else bits & ~bit
            monitored += wanted
        if not _next_line(at, both):
            break
    grid.box[q] = new
    return monitored


@jit
def longest_side(box):
    """The attribute along which a box has the most cells."""
    longest = 0
    for axis in range(1, box.shape[1]):
        if box[STOP, axis] - box[FIRST, axis] > box[STOP, longest] - box[FIRST, longest]:
            longest = axis
    return longest


@jit
def _monitor_by_halves(grid, questions, q, threshold):
    forget(grid, q)
    dimensions, resolution = grid.edge.shape[0], grid.edge.shape[1] - 1
    word, bit = q >> WORD_SHIFT, np.uint64(1) << np.uint64(q & (WORD_BITS - 1))
    low, high, out = np.empty(dimensions), np.empty(dimensions), np.empty(3)
    waiting = np.empty((_HALVINGS * dimensions + 2, 2, dimensions), np.int64)
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
        if box[STOP, axis] - box[FIRST, axis] > 1:
            middle = (box[FIRST, axis] + box[STOP, axis]) // 2
            waiting[count], waiting[count + 1] = box, box
            waiting[count, STOP, axis] = waiting[count + 1, FIRST, axis] = middle
            count += 2
            continue
        cell = np.int64(0)
        for axis in range(dimensions):
            cell = cell * resolution + box[FIRST, axis]
            around[FIRST, axis] = min(around[FIRST, axis], box[FIRST, axis])
            around[STOP, axis] = max(around[STOP, axis], box[STOP, axis])
        grid.members[cell, word] |= bit
        monitored += 1
    if monitored > 0:
        grid.box[q] = around
    return monitored


@jit
def forget(grid, q):
    """Let query q monitor no cell; afterwards its number may be given to another question. O(cells of its box)."""
    box = grid.box[q]
    if box[STOP, 0] == 0:
        return
    resolution = grid.edge.shape[1] - 1
    word, others = q >> WORD_SHIFT, ~(np.uint64(1) << np.uint64(q & (WORD_BITS - 1)))
    last = box.shape[1] - 1
    at = box[FIRST].copy()
    while True:
        line = _line(at, resolution)
        for c in range(box[FIRST, last], box[STOP, last]):
            grid.members[line + c, word] &= others
        if not _next_line(at, box):
            break
    box[:] = 0


@intrinsic
def _trailing_zeros(typingctx, bits):
    """One instruction; `bits` must not be 0."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


def _lowest_bit(bits):
    """The place of the lowest bit set."""
    return (int(bits) & -int(bits)).bit_length() - 1


@overload(_lowest_bit)
def _compiled_lowest_bit(bits):
    return lambda bits: _trailing_zeros(bits)


@tiny
def next_member(members, cell, q):
    """The first query after q that monitors the cell, or -1: begin with q = -1. O(1 + words without a query)."""
    start = q + 1
    word = start >> WORD_SHIFT
    if word >= members.shape[1]:
        return -1
    bits = members[cell, word] >> np.uint64(start & (WORD_BITS - 1))
    while bits == 0:
        word += 1
        if word == members.shape[1]:
            return -1
        start = word << WORD_SHIFT
        bits = members[cell, word]
    return start + _lowest_bit(bits)

"""A regular grid over the attributes: which cell a row falls into, and which queries monitor it.

Memory: a bit per cell and query. A cell holds a set of bits instead of a list, so that nothing is moved when a query
comes to monitor other cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, overload

from skyband.kernels.jit import jit, tiny

FIRST, STOP = 0, 1  # places in Grid.box

WORD_BITS = 64
WORD_SHIFT = 6  # log2(WORD_BITS)
INFINITY_BITS = 0x7FF0000000000000  # of a float64


class Grid(NamedTuple):
    """resolution ** d cells, numbered with the last attribute running fastest, and who monitors them."""

    low: np.ndarray  # float64 [d]: where the first cells would begin if they did not reach to -inf
    scale: np.ndarray  # float64 [d]: cells per unit
    edge: np.ndarray  # float64 [d, resolution + 1]: coordinate c holds edge[c] <= x <= edge[c + 1]; outer ones infinite
    members: np.ndarray  # uint64 [cells, words]: bit q % 64 of word q // 64 is set where query q monitors the cell
    watchers: np.ndarray  # int64 [cells]: how many queries monitor it
    box: np.ndarray  # int64 [u, 2, d]: coordinates from FIRST up to STOP outside of which no bit of the query is set
    inside: np.ndarray  # int64 [2, d]: the same, outside of which no row of the window is


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
    cells = resolution**low.size
    members, watchers = np.zeros((cells, -(-queries // WORD_BITS)), np.uint64), np.zeros(cells, np.int64)
    inside = np.array([[0] * low.size, [resolution] * low.size], np.int64)
    return Grid(low, scale, edge, members, watchers, np.zeros((queries, 2, low.size), np.int64), inside)


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


@jit
def cells_in(grid, rows):
    """The same for every row of rows (float64 [d, n]), an attribute at a time: each loop is vectorized."""
    resolution = grid.edge.shape[1] - 1
    cells = np.zeros(rows.shape[1], np.int64)
    for axis in range(rows.shape[0]):
        low, scale, x = grid.low[axis], grid.scale[axis], rows[axis]
        for i in range(cells.size):
            cells[i] = cells[i] * resolution + _coordinate(x[i], low, scale, resolution)
    return cells


@jit
def box_of(grid, found, box):
    """Write the coordinates of the cells that rows of a range, float64 [2, d], may fall into."""
    resolution = grid.edge.shape[1] - 1
    for axis in range(grid.low.size):
        low, scale = grid.low[axis], grid.scale[axis]
        box[FIRST, axis] = _coordinate(found[0, axis], low, scale, resolution)
        box[STOP, axis] = _coordinate(found[1, axis], low, scale, resolution) + 1


@jit
def rows_box(grid, questions, q, box):
    """Write the coordinates of the cells that query q's region reaches into and rows may be in. False when there are none."""
    region_box(grid, questions, q, box)
    for axis in range(box.shape[1]):
        box[FIRST, axis] = max(box[FIRST, axis], grid.inside[FIRST, axis])
        box[STOP, axis] = min(box[STOP, axis], grid.inside[STOP, axis])
        if box[FIRST, axis] >= box[STOP, axis]:
            return False
    return True


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
def lowest(grid, questions, q, axis, c):
    """The least number an attribute can have in the cells of a coordinate, within the query's region."""
    return min(max(grid.edge[axis, c], questions.low[q, axis]), questions.high[q, axis])


@tiny
def highest(grid, questions, q, axis, c):
    """The greatest one."""
    return max(min(grid.edge[axis, c + 1], questions.high[q, axis]), questions.low[q, axis])


@jit
def longest_side(box):
    """The attribute along which a box has the most cells."""
    longest = 0
    for axis in range(1, box.shape[1]):
        if box[STOP, axis] - box[FIRST, axis] > box[STOP, longest] - box[FIRST, longest]:
            longest = axis
    return longest


@jit
def next_line(at, box):
    """Move `at` to the next line of cells along the last attribute within the box. False behind the last one."""
    for axis in range(at.size - 2, -1, -1):
        at[axis] += 1
        if at[axis] < box[STOP, axis]:
            return True
        at[axis] = box[FIRST, axis]
    return False


@jit
def line_of(at, resolution):
    """The number of the first cell of the line that `at` lies on."""
    cell = np.int64(0)
    for axis in range(at.size - 1):
        cell = (cell + at[axis]) * resolution
    return cell


@tiny
def watch(grid, cell, word, bit, wanted):
    """Set the bit of a query in a cell, or clear it."""
    bits = grid.members[cell, word]
    grid.members[cell, word] = bits | bit if wanted else bits & ~bit
    grid.watchers[cell] += wanted - np.int64((bits & bit) != 0)


@jit
def watch_box(grid, box, at, word, bit, wanted):
    """The same in all cells of a box; returns how many those are. `at`: room, int64 [d]."""
    resolution = grid.edge.shape[1] - 1
    at[:] = box[FIRST]
    last, count = at.size - 1, 0
    while True:
        line = line_of(at, resolution)
        for c in range(box[FIRST, last], box[STOP, last]):
            watch(grid, line + c, word, bit, wanted)
            count += 1
        if not next_line(at, box):
            return count


@jit
def forget(grid, q):
    """Let query q monitor no cell; afterwards its number may be given to another question. O(cells of its box)."""
    box = grid.box[q]
    if box[STOP, 0] == 0:
        return
    bit = np.uint64(1) << np.uint64(q & (WORD_BITS - 1))
    watch_box(grid, box, np.empty(box.shape[1], np.int64), q >> WORD_SHIFT, bit, False)
    box[:] = 0


@intrinsic
def _trailing_zeros(typingctx, bits):
    """One instruction; `bits` must not be 0."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


def lowest_bit(bits):
    """The place of the lowest bit set."""
    return (int(bits) & -int(bits)).bit_length() - 1


@overload(lowest_bit)
def _compiled_lowest_bit(bits):
    return lambda bits: _trailing_zeros(bits)


@intrinsic
def _population(typingctx, bits):
    """One instruction."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


def count_bits(bits):
    """How many bits are set."""
    return int(bits).bit_count()


@overload(count_bits)
def _compiled_count_bits(bits):
    return lambda bits: _population(bits)

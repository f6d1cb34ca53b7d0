"""The rows of the window by the cell of a grid they fall into, and the best of them for a query, cell by cell.

The search visits cells from the best on: a cell that is reached from a better neighbour waits in a heap by the best score
a row in it can have, and no cell is opened that cannot hold a better row than the k found. SIGMOD06 sections 4.1, 4.2
(figure 6). Where a function falls on both sides of a point, as a distance does, steps lead away from that point; where
it rises on both sides, from every corner towards it. Any other function is bounded over boxes of cells, which are halved
until one cell is left. A query with a region looks at the cells the region reaches into only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.grid import FIRST, STOP, cell_of, longest_side, region_box
from skyband.kernels.jit import jit, lean
from skyband.kernels.order import outranks
from skyband.kernels.pruning import next_at_least
from skyband.kernels.query_grid import best_in_cell, best_in_cells
from skyband.kernels.questions import CODE, LINEAR, score_of, scores_of

NONE = -1

OLDEST = 0  # in Points.marks: ordinal of the oldest row in a list
STAMP = 1  # number of the last search
NEXT = 2  # ordinal of the next row to come


class Points(NamedTuple):
    """Rows in a ring, row r in the slot r % ring, and a list of slots for each cell, oldest first."""

    rows: np.ndarray  # float64 [d, ring]
    ordinal: np.ndarray  # int64 [ring]; NONE for a row that was deleted
    cell: np.ndarray  # int64 [ring]
    after: np.ndarray  # int64 [ring]: slot of the next row in the same cell, or NONE
    first: np.ndarray  # int64 [cells]: slot of the oldest row, or NONE
    last: np.ndarray  # int64 [cells]: slot of the newest; of no meaning where there is none
    seen: np.ndarray  # int64 [cells]: number of the search that last reached the cell
    marks: np.ndarray  # int64 [3]


@jit
def add_points(points, grid, rows, begin):
    """Enter rows (float64 [d, n]), whose first has the ordinal `begin`. O(d) a row."""
    here = np.empty(rows.shape[0])
    ring = points.ordinal.shape[0]
    for i in range(rows.shape[1]):
        slot = (begin + i) % ring
        for axis in range(here.shape[0]):
            here[axis] = rows[axis, i]
            points.rows[axis, slot] = here[axis]
        cell = cell_of(grid, here)
        points.ordinal[slot], points.cell[slot], points.after[slot] = begin + i, cell, NONE
        if points.first[cell] == NONE:
            points.first[cell] = slot
        else:
            points.after[points.last[cell]] = slot
        points.last[cell] = slot
    points.marks[NEXT] = begin + rows.shape[1]


@jit
def delete_points(points, ordinals):
    """Let rows that are still in a list be found no more; True for each that was there."""
    ring = points.ordinal.shape[0]
    found = np.zeros(ordinals.shape[0], np.bool_)
    for i in range(ordinals.shape[0]):
        if points.marks[OLDEST] <= ordinals[i] < points.marks[NEXT] and points.ordinal[ordinals[i] % ring] == ordinals[i]:
            points.ordinal[ordinals[i] % ring] = NONE
            found[i] = True
    return found


@jit
def drop_points(points, before):
    """Take the rows before the ordinal out of their lists. O(1) a row: they are the first of their cell."""
    ring = points.ordinal.shape[0]
    for row in range(points.marks[OLDEST], before):
        slot = row % ring
        points.first[points.cell[slot]] = points.after[slot]
    points.marks[OLDEST] = max(points.marks[OLDEST], before)


@lean
def _push(keys, cells, count, key, cell):
    """Put a cell into the heap; returns how many it holds."""
    at = count
    while at > 0 and keys[(at - 1) >> 1] < key:
        keys[at], cells[at] = keys[(at - 1) >> 1], cells[(at - 1) >> 1]
        at = (at - 1) >> 1
    keys[at], cells[at] = key, cell
    return count + 1


@lean
def _pop(keys, cells, count):
    """Take the best cell, which is at place 0, out of the heap; returns how many are left."""
    count -= 1
    key, cell = keys[count], cells[count]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= key:
            break
        keys[at], cells[at] = keys[child], cells[child]
        at = child
    keys[at], cells[at] = key, cell
    return count


@lean
def _keep(score, ordinal, count, room, new_score, new_ordinal):
    """Insert a row into the best `room` found so far, best first; returns how many there are."""
    if count == room:
        if not outranks(new_score, new_ordinal, score[count - 1], ordinal[count - 1]):
            return count
        count -= 1
    at = count
    while at > 0 and outranks(new_score, new_ordinal, score[at - 1], ordinal[at - 1]):
        score[at], ordinal[at] = score[at - 1], ordinal[at - 1]
        at -= 1
    score[at], ordinal[at] = new_score, new_ordinal
    return count + 1


@jit
def _turning_points(grid, questions, q, box, pivot):
    """Write the coordinates, within the box of the query's region, at which its function turns, or, where it does not,
    those of its best end. Returns True when it falls away from them, False when it rises (the farthest rows are asked
    for)."""
    kind, sign = questions.kind[q], questions.sign[q]
    for axis in range(pivot.shape[0]):
        pivot[axis] = box[FIRST, axis]
    for place in range(questions.used[q]):
        axis = questions.order[q, place]
        if kind == LINEAR:
            pivot[axis] = box[STOP, axis] - 1 if sign * questions.weight[q, axis] > 0.0 else box[FIRST, axis]
        else:
            for c in range(box[FIRST, axis] + 1, box[STOP, axis]):
                pivot[axis] += questions.point[q, axis] >= grid.edge[axis, c]
    return kind == LINEAR or sign < 0.0


@lean
def _open_cell(points, questions, q, cell, first, stop, here, best_score, best_ordinal, count):
    """Take the rows [first, stop) of a cell among the best found; returns how many these are."""
    room = best_score.shape[0]
    slot = points.first[cell]
    while slot != NONE:
        ordinal = points.ordinal[slot]
        if ordinal >= stop:
            break
        if ordinal >= first:
            for axis in range(here.shape[0]):
                here[axis] = points.rows[axis, slot]
            score = score_of(questions, q, here)
            if score == score and (count < room or score >= best_score[count - 1]):
                count = _keep(best_score, best_ordinal, count, room, score, ordinal)
        slot = points.after[slot]
    return count


@jit
def search(points, grid, questions, q, first, stop, best_score, best_ordinal, keys, cells):
    """The best of the rows [first, stop) for query q, as many as `best_score` has room for, best first; returns how many.

    `keys` and `cells` are room for a heap of all cells. Opens only cells that can hold one of them.
    """
    if questions.kind[q] == CODE:
        return _search_by_halves(points, grid, questions, q, first, stop, best_score, best_ordinal, keys, cells)
    dimensions, resolution = grid.low.size, grid.edge.shape[1] - 1
    room = best_score.shape[0]
    points.marks[STAMP] += 1
    stamp = points.marks[STAMP]
    pivot, at, here = np.zeros(dimensions, np.int64), np.zeros(dimensions, np.int64), np.empty(dimensions)
    box = np.empty((2, dimensions), np.int64)
    region_box(grid, questions, q, box)
    outwards = _turning_points(grid, questions, q, box, pivot)
    waiting = 0
    for corner in range(1 if outwards else 1 << dimensions):
        cell = 0
        for axis in range(dimensions):
            start = box[STOP, axis] - 1 if corner >> axis & 1 else box[FIRST, axis]
            cell = cell * resolution + (pivot[axis] if outwards else start)
        if points.seen[cell] != stamp:
            points.seen[cell] = stamp
            waiting = _push(keys, cells, waiting, best_in_cell(grid, questions, q, cell), cell)
    count = 0
    while waiting > 0 and (count < room or keys[0] >= best_score[count - 1]):
        cell = cells[0]
        waiting = _pop(keys, cells, waiting)
        count = _open_cell(points, questions, q, cell, first, stop, here, best_score, best_ordinal, count)
        rest = cell
        for axis in range(dimensions - 1, -1, -1):
            at[axis] = rest % resolution
            rest //= resolution
        stride = 1
        for axis in range(dimensions - 1, -1, -1):
            below = at[axis] <= pivot[axis] if outwards else at[axis] > pivot[axis]
            above = at[axis] >= pivot[axis] if outwards else at[axis] < pivot[axis]
            if below and at[axis] > box[FIRST, axis] and points.seen[cell - stride] != stamp:
                points.seen[cell - stride] = stamp
                waiting = _push(keys, cells, waiting, best_in_cell(grid, questions, q, cell - stride), cell - stride)
            if above and at[axis] < box[STOP, axis] - 1 and points.seen[cell + stride] != stamp:
                points.seen[cell + stride] = stamp
                waiting = _push(keys, cells, waiting, best_in_cell(grid, questions, q, cell + stride), cell + stride)
            stride *= resolution
    return count


@jit
def _search_by_halves(points, grid, questions, q, first, stop, best_score, best_ordinal, keys, boxes):
    """The same for any function: of a box of cells that may hold the best row left, halves are looked at."""
    dimensions, resolution = grid.low.size, grid.edge.shape[1] - 1
    room = best_score.shape[0]
    low, high, out, here = np.empty(dimensions), np.empty(dimensions), np.empty(3), np.empty(dimensions)
    known = np.empty((64, 2, dimensions), np.int64)
    region_box(grid, questions, q, known[0])
    made, waiting, count = 1, 0, 0
    best = best_in_cells(grid, questions, q, known[0], low, high, out)
    if best == best:
        waiting = _push(keys, boxes, 0, best, 0)
    while waiting > 0 and (count < room or keys[0] >= best_score[count - 1]):
        number = boxes[0]
        waiting = _pop(keys, boxes, waiting)
        axis = longest_side(known[number])
        if known[number, STOP, axis] - known[number, FIRST, axis] == 1:
            cell = np.int64(0)
            for axis in range(dimensions):
                cell = cell * resolution + known[number, FIRST, axis]
            count = _open_cell(points, questions, q, cell, first, stop, here, best_score, best_ordinal, count)
            continue
        if made == known.shape[0]:
            wider = np.empty((2 * made, 2, dimensions), np.int64)
            wider[:made] = known
            known = wider
        middle = (known[number, FIRST, axis] + known[number, STOP, axis]) // 2
        known[made] = known[number]
        known[made, FIRST, axis] = known[number, STOP, axis] = middle
        for half in (number, made):
            best = best_in_cells(grid, questions, q, known[half], low, high, out)
            if best == best:  # else no row there has a score
                waiting = _push(keys, boxes, waiting, best, half)
        made += 1
    return count


@jit
def search_all(points, questions, q, first, stop, best_score, best_ordinal, block):
    """The same as `search`, by looking at all of these rows, for a query without CODE and region. `block`: room, float64
    [BLOCK]."""
    ring, room = points.ordinal.shape[0], best_score.shape[0]
    count, row = 0, max(first, points.marks[OLDEST])
    while row < stop:
        slot = row % ring
        rows = min(min(block.shape[0], stop - row), ring - slot)
        scores_of(questions, q, points.rows, slot, slot + rows, block)
        at = 0
        while True:
            floor = best_score[count - 1] if count == room else -np.inf
            at = next_at_least(block, at, rows, floor)
            if at == rows:
                break
            if points.ordinal[slot + at] == row + at:  # else it was deleted
                count = _keep(best_score, best_ordinal, count, room, block[at], row + at)
            at += 1
        row += rows
    return count


def empty_points(dimensions: int, ring: int, cells: int) -> Points:
    """No rows, with room for `ring` of them."""
    lists = [np.full(room, NONE, np.int64) for room in (ring, cells, cells)]
    return Points(
        rows=np.zeros((dimensions, ring)),
        ordinal=np.zeros(ring, np.int64),
        cell=np.zeros(ring, np.int64),
        after=lists[0],
        first=lists[1],
        last=lists[2],
        seen=np.zeros(cells, np.int64),
        marks=np.zeros(3, np.int64),
    )

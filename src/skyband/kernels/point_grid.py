"""The rows of the window by the cell of a grid they fall into, and the best of them for a query, cell by cell.

The search visits cells from the best on: a cell that is reached from a better neighbour waits in a heap by the best score
a row in it can have, and no cell is opened that cannot hold a better row than the k found. SIGMOD06 sections 4.1, 4.2
(figure 6). Where a function falls on both sides of a point, as a distance does, steps lead away from that point; where
it rises on both sides, from every corner towards it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.jit import jit, lean
from skyband.kernels.order import outranks
from skyband.kernels.query_grid import LINEAR, best_in_cell, cell_of, score_of

NONE = -1

OLDEST = 0  # in Points.marks: ordinal of the oldest row in a list
STAMP = 1  # number of the last search


class Points(NamedTuple):
    """Rows in a ring, row r in the slot r % ring, and a list of slots for each cell, oldest first."""

    rows: np.ndarray  # float64 [d, ring]
    ordinal: np.ndarray  # int64 [ring]
    cell: np.ndarray  # int64 [ring]
    after: np.ndarray  # int64 [ring]: slot of the next row in the same cell, or NONE
    first: np.ndarray  # int64 [cells]: slot of the oldest row, or NONE
    last: np.ndarray  # int64 [cells]: slot of the newest; of no meaning where there is none
    seen: np.ndarray  # int64 [cells]: number of the search that last reached the cell
    marks: np.ndarray  # int64 [2]


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
def _turning_points(grid, questions, q, pivot):
    """Write the coordinates at which query q's function turns, or, where it does not, those of its best end. Returns True
    when it falls away from them, False when it rises (the farthest rows are asked for)."""
    resolution = grid.edge.shape[1] - 1
    kind, sign = questions.kind[q], questions.sign[q]
    for axis in range(pivot.shape[0]):
        pivot[axis] = 0
    for place in range(questions.used[q]):
        axis = questions.order[q, place]
        if kind == LINEAR:
            pivot[axis] = resolution - 1 if sign * questions.weight[q, axis] > 0.0 else 0
        else:
            for c in range(1, resolution):
                pivot[axis] += questions.point[q, axis] >= grid.edge[axis, c]
    return kind == LINEAR or sign < 0.0


@jit
def search(points, grid, questions, q, first, stop, best_score, best_ordinal, keys, cells):
    """The best of the rows [first, stop) for query q, as many as `best_score` has room for, best first; returns how many.

    `keys` and `cells` are room for a heap of all cells. Opens only cells that can hold one of them.
    """
    dimensions, resolution = grid.low.size, grid.edge.shape[1] - 1
    room = best_score.shape[0]
    points.marks[STAMP] += 1
    stamp = points.marks[STAMP]
    pivot, at, here = np.zeros(dimensions, np.int64), np.zeros(dimensions, np.int64), np.empty(dimensions)
    outwards = _turning_points(grid, questions, q, pivot)
    waiting = 0
    for corner in range(1 if outwards else 1 << dimensions):
        cell = 0
        for axis in range(dimensions):
            start = pivot[axis] if outwards else (resolution - 1) * (corner >> axis & 1)
            cell = cell * resolution + start
        if points.seen[cell] != stamp:
            points.seen[cell] = stamp
            waiting = _push(keys, cells, waiting, best_in_cell(grid, questions, q, cell), cell)
    count = 0
    while waiting > 0 and (count < room or keys[0] >= best_score[count - 1]):
        cell = cells[0]
        waiting = _pop(keys, cells, waiting)
        slot = points.first[cell]
        while slot != NONE:
            ordinal = points.ordinal[slot]
            if ordinal >= stop:
                break
            if ordinal >= first:
                for axis in range(dimensions):
                    here[axis] = points.rows[axis, slot]
                score = score_of(questions, q, here)
                if score == score and (count < room or score >= best_score[count - 1]):
                    count = _keep(best_score, best_ordinal, count, room, score, ordinal)
            slot = points.after[slot]
        rest = cell
        for axis in range(dimensions - 1, -1, -1):
            at[axis] = rest % resolution
            rest //= resolution
        stride = 1
        for axis in range(dimensions - 1, -1, -1):
            below = at[axis] <= pivot[axis] if outwards else at[axis] > pivot[axis]
            above = at[axis] >= pivot[axis] if outwards else at[axis] < pivot[axis]
            if below and at[axis] > 0 and points.seen[cell - stride] != stamp:
                points.seen[cell - stride] = stamp
                waiting = _push(keys, cells, waiting, best_in_cell(grid, questions, q, cell - stride), cell - stride)
            if above and at[axis] < resolution - 1 and points.seen[cell + stride] != stamp:
                points.seen[cell + stride] = stamp
                waiting = _push(keys, cells, waiting, best_in_cell(grid, questions, q, cell + stride), cell + stride)
            stride *= resolution
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
        marks=np.zeros(2, np.int64),
    )

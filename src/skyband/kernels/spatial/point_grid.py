"""The best rows of the window for a query, cell by cell of a grid.

The search visits cells from the best on: a cell that is reached from a better neighbour waits in a heap by the best score
a row in it can have, and no cell is opened that cannot hold a better row than the k found. SIGMOD06 sections 4.1, 4.2
(figure 6). Where a function falls on both sides of a point, as a distance does, steps lead away from that point; where
it rises on both sides, from every corner towards it. Any other function is bounded over boxes of cells, which are halved
until one cell is left. A query with a region looks at the cells the region reaches into only.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.best import finish, take_best
from skyband.kernels.jit import jit, lean, tiny
from skyband.kernels.order import outranks
from skyband.kernels.ranked.pruning import next_at_least
from skyband.kernels.spatial.apart import SUM, WHOLE, Apart, best_apart, falls_away, no_apart, take_apart
from skyband.kernels.spatial.code_blocks import takes_blocks, values_of
from skyband.kernels.spatial.grid import FIRST, STOP, longest_side, rows_box
from skyband.kernels.spatial.points import COUNT, EFFORT, PART, ROOM, STAMP, place_of
from skyband.kernels.spatial.query_grid import best_at, best_in_cells, best_terms
from skyband.kernels.spatial.questions import BLOCK, CODE, LINEAR, score_of, scores_by

_CELL = 16  # rows that could be looked at instead of a cell's bound
_BOUND = 1000  # rows that an expression is run for, many at a time, while it is bounded over one cell and its neighbours
_AT_LEAST = 16  # cells that any search may look at
FEW = 128  # rows looked for that are kept in order as they are found; more are collected, and sorted at the end


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


@tiny
def room_for(wanted):
    """Places that a search for so many rows needs."""
    return wanted if wanted <= FEW else 2 * wanted


@lean
def _keep(score, ordinal, floor, count, wanted, new_score, new_ordinal):
    """Take a row at or above the floor among the best found so far. Returns the floor, below which no row is wanted any more,
    and how many there are."""
    if score.shape[0] > wanted:
        return take_best(new_score, new_ordinal, floor, score, ordinal, count, wanted)
    if count == wanted:
        if not outranks(new_score, new_ordinal, score[count - 1], ordinal[count - 1]):
            return floor, count
        count -= 1
    at = count
    while at > 0 and outranks(new_score, new_ordinal, score[at - 1], ordinal[at - 1]):
        score[at], ordinal[at] = score[at - 1], ordinal[at - 1]
        at -= 1
    score[at], ordinal[at] = new_score, new_ordinal
    count += 1
    return (score[count - 1] if count == wanted else floor), count


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
def _in_line(order, d):
    """Are terms added in the order in which attributes stand in a row?"""
    for place in range(order.size):
        if order[place] != place:
            return False
    return order.size == d


@tiny
def _sums_of_rows(flat, d, weight, sign, begin, stop, out):
    """Weighted sums of rows that stand side by side, added as `scores_by` does, where their length is known beforehand: then
    they are vectorized. False where it is not."""
    if d == 2:
        v, w = weight[0], weight[1]
        for i in range(np.uint64(stop - begin)):
            at = np.uint64(2) * (np.uint64(begin) + i)
            out[i] = sign * (v * flat[at] + w * flat[at + np.uint64(1)])
    elif d == 3:
        v, w, u = weight[0], weight[1], weight[2]
        for i in range(np.uint64(stop - begin)):
            at = np.uint64(3) * (np.uint64(begin) + i)
            out[i] = sign * (v * flat[at] + w * flat[at + np.uint64(1)] + u * flat[at + np.uint64(2)])
    elif d == 4:
        v, w, u, t = weight[0], weight[1], weight[2], weight[3]
        for i in range(np.uint64(stop - begin)):
            at = np.uint64(4) * (np.uint64(begin) + i)
            two = v * flat[at] + w * flat[at + np.uint64(1)]
            out[i] = sign * (two + u * flat[at + np.uint64(2)] + t * flat[at + np.uint64(3)])
    else:
        return False
    return True


@tiny
def _take_scores(scores, scored, ordinals, begin, first, stop, score, ordinal, floor, count, wanted):
    """Take those of so many rows, at the places from `begin` on, that arrived in [first, stop) among the best found."""
    at = np.int64(0)
    while True:
        at = next_at_least(scores, at, scored, floor)
        if at == scored:
            return floor, count
        row = ordinals[begin + at]
        if first <= row < stop:
            floor, count = _keep(score, ordinal, floor, count, wanted, scores[at], row)
        at += 1


@lean
def _take_run(
    rows, ordinals, kind, sign, order, point, weight, begin, stop_at, first, stop, block, score, ordinal, floor, count, wanted
):
    """Take those of the rows at the places [begin, stop_at) that arrived in [first, stop) among the best found; returns the
    floor and how many these are. `block`: room, float64 [BLOCK]."""
    d = rows.shape[1]
    plain = kind == LINEAR and _in_line(order, d)
    flat = rows.reshape(-1)
    while begin < stop_at:
        end = min(begin + BLOCK, stop_at)
        if not (plain and _sums_of_rows(flat, d, weight, sign, begin, end, block)):
            scores_by(kind, sign, order, point, weight, rows.T, begin, end, block)
        floor, count = _take_scores(block, end - begin, ordinals, begin, first, stop, score, ordinal, floor, count, wanted)
        begin = end
    return floor, count


@lean
def _take_code(rows, ordinals, codes, q, sign, begin, stop_at, first, stop, block, score, ordinal, floor, count, wanted):
    """`_take_run` for an expression."""
    while begin < stop_at:
        end = min(begin + BLOCK, stop_at)
        values_of(codes, q, sign, rows, begin, end, block)
        floor, count = _take_scores(block, end - begin, ordinals, begin, first, stop, score, ordinal, floor, count, wanted)
        begin = end
    return floor, count


@tiny
def open_cell(points, questions, q, cell, first, stop, block, score, ordinal, floor, count, wanted):
    """Take the rows [first, stop) of a cell among the best found; returns the floor and how many these are."""
    ring, rows, ordinals = points.ring, points.rows, points.ordinal
    held = ring[cell, COUNT]
    points.marks[EFFORT] += held + _CELL
    if held > 0 and questions.kind[q] == CODE and questions.bounds[q] == 0 and takes_blocks(questions.codes):
        begin, wall = place_of(ring, cell, 0), ring[cell, PART] + ring[cell, ROOM]
        straight = min(held, wall - begin)
        for part in range(2 if straight < held else 1):
            start = begin if part == 0 else wall - ring[cell, ROOM]
            end = begin + straight if part == 0 else start + held - straight
            floor, count = _take_code(
                rows, ordinals, questions.codes, q, questions.sign[q],
                start, end, first, stop, block, score, ordinal, floor, count, wanted,
            )  # fmt: skip
        return floor, count
    if held > 0 and questions.kind[q] != CODE and questions.bounds[q] == 0:
        kind, sign, order = questions.kind[q], questions.sign[q], questions.order[q, : questions.used[q]]
        point, weight = questions.point[q], questions.weight[q]
        begin, wall = place_of(ring, cell, 0), ring[cell, PART] + ring[cell, ROOM]
        straight = min(held, wall - begin)
        floor, count = _take_run(
            rows, ordinals, kind, sign, order, point, weight,
            begin, begin + straight, first, stop, block, score, ordinal, floor, count, wanted,
        )  # fmt: skip
        if straight < held:
            floor, count = _take_run(
                rows, ordinals, kind, sign, order, point, weight,
                wall - ring[cell, ROOM], begin + held - ring[cell, ROOM],
                first, stop, block, score, ordinal, floor, count, wanted,
            )  # fmt: skip
        return floor, count
    for i in range(held):
        place = place_of(ring, cell, i)
        if first <= ordinals[place] < stop:
            found = score_of(questions, q, rows[place])
            if found >= floor:
                floor, count = _keep(score, ordinal, floor, count, wanted, found, ordinals[place])
    return floor, count


@tiny
def best_of(questions, q, how, kind, sign, order, terms, apart, at):
    """The best turned score that a row in the cell at the coordinates can have."""
    return best_at(kind, sign, order, terms, at) if how == SUM else best_apart(questions, q, how, apart, at)


@tiny
def _looks(questions, q, first, stop):
    """How many cells or boxes a search may look at before it scores all rows, which then costs no more than it has: among
    values far from most others, nearly all cells are empty, and come before those that hold the rows."""
    if questions.kind[q] == CODE and questions.bounds[q] == 0 and takes_blocks(questions.codes):
        return max((stop - first) // _BOUND, _AT_LEAST)
    return np.iinfo(np.int64).max


@jit
def search(points, grid, questions, q, first, stop, wanted, score, ordinal, keys, cells):
    """The best `wanted` of the rows [first, stop) for query q, best first; returns how many there are. `score` and `ordinal`
    have room for them (`room_for`), `keys` and `cells` for a heap of all cells. Opens only cells that can hold one of them."""
    dimensions, resolution = grid.low.size, grid.edge.shape[1] - 1
    box = np.empty((2, dimensions), np.int64)
    if not rows_box(grid, questions, q, box):
        return 0
    kind, sign, order = questions.kind[q], questions.sign[q], questions.order[q, : questions.used[q]]
    pivot, at, block = np.zeros(dimensions, np.int64), np.zeros(dimensions, np.int64), np.empty(BLOCK)
    if kind == CODE:
        apart, outwards = no_apart(dimensions, resolution), True
        how = take_apart(grid, questions, q, box, apart)
        if how == WHOLE or not falls_away(apart, box):
            return _search_by_halves(points, grid, questions, q, first, stop, wanted, score, ordinal, keys, cells)
        terms, pivot = apart.term, apart.best
    else:
        how, terms = SUM, best_terms(grid, questions, q)
        outwards = _turning_points(grid, questions, q, box, pivot)
        apart = Apart(terms, block, pivot, block, block)  # is not looked at
    points.marks[STAMP] += 1
    stamp = points.marks[STAMP]
    sides = 0  # attributes along which there is more than one cell: there are cells enough for a corner each
    for axis in range(dimensions):
        sides += box[STOP, axis] - box[FIRST, axis] > 1
    waiting = 0
    for corner in range(1 if outwards else 1 << sides):
        cell, rest = np.int64(0), corner
        for axis in range(dimensions):
            at[axis] = pivot[axis] if outwards else box[FIRST, axis]
            if not outwards and box[STOP, axis] - box[FIRST, axis] > 1:
                at[axis] = box[STOP, axis] - 1 if rest & 1 else at[axis]
                rest >>= 1
            cell = cell * resolution + at[axis]
        if points.seen[cell] != stamp:
            points.seen[cell] = stamp
            best = best_of(questions, q, how, kind, sign, order, terms, apart, at)
            waiting = _push(keys, cells, waiting, best, cell)
    floor, count, left = -np.inf, 0, _looks(questions, q, first, stop)
    while waiting > 0 and keys[0] >= floor:
        left -= 1
        if left < 0:
            return search_all(points, questions, q, first, stop, wanted, score, ordinal, block)
        cell = cells[0]
        waiting = _pop(keys, cells, waiting)
        floor, count = open_cell(points, questions, q, cell, first, stop, block, score, ordinal, floor, count, wanted)
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
                at[axis] -= 1
                best = best_of(questions, q, how, kind, sign, order, terms, apart, at)
                waiting = _push(keys, cells, waiting, best, cell - stride)
                at[axis] += 1
            if above and at[axis] < box[STOP, axis] - 1 and points.seen[cell + stride] != stamp:
                points.seen[cell + stride] = stamp
                at[axis] += 1
                best = best_of(questions, q, how, kind, sign, order, terms, apart, at)
                waiting = _push(keys, cells, waiting, best, cell + stride)
                at[axis] -= 1
            stride *= resolution
    return finish(score, ordinal, count, wanted)


@jit
def _search_by_halves(points, grid, questions, q, first, stop, wanted, score, ordinal, keys, boxes):
    """The same for any function: of a box of cells that may hold the best row left, halves are looked at."""
    dimensions, resolution = grid.low.size, grid.edge.shape[1] - 1
    low, high, out = np.empty(dimensions), np.empty(dimensions), np.empty(3)
    block = np.empty(BLOCK)
    known = np.empty((64, 2, dimensions), np.int64)
    if not rows_box(grid, questions, q, known[0]):
        return 0
    made, waiting, floor, count = 1, 0, -np.inf, 0
    best = best_in_cells(grid, questions, q, known[0], low, high, out)
    if best == best:
        waiting = _push(keys, boxes, 0, best, 0)
    left = _looks(questions, q, first, stop)
    while waiting > 0 and keys[0] >= floor:
        left -= 1
        if left < 0:
            return search_all(points, questions, q, first, stop, wanted, score, ordinal, block)
        number = boxes[0]
        waiting = _pop(keys, boxes, waiting)
        axis = longest_side(known[number])
        if known[number, STOP, axis] - known[number, FIRST, axis] == 1:
            cell = np.int64(0)
            for axis in range(dimensions):
                cell = cell * resolution + known[number, FIRST, axis]
            floor, count = open_cell(points, questions, q, cell, first, stop, block, score, ordinal, floor, count, wanted)
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
    return finish(score, ordinal, count, wanted)


@jit
def search_all(points, questions, q, first, stop, wanted, score, ordinal, block):
    """The same as `search`, in whatever cells, for a query without region. `block`: room, float64 [BLOCK]."""
    floor, count = -np.inf, 0
    for cell in range(points.ring.shape[0]):
        if points.ring[cell, COUNT] > 0:
            floor, count = open_cell(points, questions, q, cell, first, stop, block, score, ordinal, floor, count, wanted)
    return finish(score, ordinal, count, wanted)

"""The rows of the window by the cell of a grid they fall into.

The rows of a cell stand side by side, in a ring of its own, so that a search reads memory as it lies. All rings are parts
of one arena. A ring that is full moves to the arena's end and gets half as much room again; when the arena is full all
of them are laid out anew (`with_room`). Rows come and go by arrival: the oldest of a cell goes first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.jit import jit, lean, tiny
from skyband.kernels.spatial.fetching import fetch

OLDEST = 0  # in Points.marks: ordinal of the oldest row held
STAMP = 1  # number of the last search
NEXT = 2  # ordinal of the next row to come
USED = 3  # places of the arena that have been given to rings
EFFORT = 4  # rows that searches have looked at, and what opening cells cost besides, in rows
MARKS = 5

# columns of Points.ring
PART = 0  # first place in the arena
ROOM = 1  # places
HEAD = 2  # place of the oldest row, from the first on: < room, or 0
COUNT = 3  # rows
FIELDS = 4

_LEAST = 4  # rows that a ring has room for
_AHEAD = 8  # rows by which the places that a row will be written to are asked for beforehand; their rings by twice as many


class Points(NamedTuple):
    """Rows by cell, those of a cell oldest first."""

    rows: np.ndarray  # float64 [arena, d]: a row that comes, or goes, touches one place of memory
    ordinal: np.ndarray  # int64 [arena]: ~r where row r was deleted
    cell: np.ndarray  # int32 [longest window]: of row r at r % its length
    ring: np.ndarray  # int64 [cells, FIELDS]
    seen: np.ndarray  # int64 [cells]: number of the search that last reached the cell
    marks: np.ndarray  # int64 [MARKS]


def empty_points(dimensions: int, window: int, cells: int) -> Points:
    """No rows; at most `window` of them may be there at a time."""
    arena = np.zeros((0, dimensions)), np.zeros(0, np.int64)
    ring, seen = np.zeros((cells, FIELDS), np.int64), np.zeros(cells, np.int64)
    return Points(*arena, np.zeros(window, np.int32), ring, seen, np.zeros(MARKS, np.int64))


@tiny
def place_of(ring, cell, i):
    """Where in the arena the i-th oldest row of a cell stands."""
    at = ring[cell, HEAD] + i
    return ring[cell, PART] + (at if at < ring[cell, ROOM] else at - ring[cell, ROOM])


@lean
def _copy_ring(points, cell, rows, ordinal, part):
    """Write the rows of a cell, from the oldest on, to the places from `part` on."""
    for i in range(points.ring[cell, COUNT]):
        place = place_of(points.ring, cell, i)
        ordinal[part + i] = points.ordinal[place]
        for axis in range(rows.shape[1]):
            rows[part + i, axis] = points.rows[place, axis]


@lean
def _widen(points, cell):
    """Move a cell's ring to where it has more room. False when the arena has none."""
    room, used = points.ring[cell, ROOM], points.marks[USED]
    wider = room + (room >> 1) + _LEAST
    if used + wider > points.ordinal.shape[0]:
        return False
    _copy_ring(points, cell, points.rows, points.ordinal, used)
    points.ring[cell, PART], points.ring[cell, ROOM], points.ring[cell, HEAD] = used, wider, 0
    points.marks[USED] = used + wider
    return True


@jit
def _enter(points, cells, rows, begin, first):
    """Enter rows[:, first:], of which rows[:, 0] has the ordinal `begin`, as long as there is room; returns where it ended."""
    ring, window = points.ring, points.cell.shape[0]
    slot = (begin + first) % window
    dimensions, last = rows.shape[0], rows.shape[1] - 1
    for i in range(first, rows.shape[1]):
        fetch(ring, cells[min(i + 2 * _AHEAD, last)] * ring.shape[1])
        ahead = cells[min(i + _AHEAD, last)]
        place = place_of(ring, ahead, ring[ahead, COUNT])
        fetch(points.ordinal, place)
        fetch(points.rows, place * dimensions)
        cell = cells[i]
        if ring[cell, COUNT] == ring[cell, ROOM] and not _widen(points, cell):
            return i
        place = place_of(ring, cell, ring[cell, COUNT])
        for axis in range(rows.shape[0]):
            points.rows[place, axis] = rows[axis, i]
        points.ordinal[place] = begin + i
        points.cell[slot] = cell
        ring[cell, COUNT] += 1
        slot = slot + 1 if slot + 1 < window else 0
    return rows.shape[1]


@jit
def _lay_out(points, wider):
    """Copy every ring to its part of a new arena, from the oldest row on."""
    for cell in range(points.ring.shape[0]):
        _copy_ring(points, cell, wider.rows, wider.ordinal, wider.ring[cell, PART])


def with_room(points: Points, more: int) -> Points:
    """The same rows with room for about so many more of them; O(rows)."""
    count = points.ring[:, COUNT]
    room = np.where(count > 0, count + (count >> 2) + _LEAST, 0)
    used = int(room.sum())
    arena = used + used // 3 + more + _LEAST
    ring = np.stack([np.cumsum(room) - room, room, np.zeros_like(room), count], axis=1)
    rows, ordinal = np.empty((arena, points.rows.shape[1])), np.empty(arena, np.int64)
    wider = points._replace(rows=rows, ordinal=ordinal, ring=ring)
    _lay_out(points, wider)
    wider.marks[USED] = used
    return wider


def with_window(points: Points, window: int) -> Points:
    """The same rows, where so many may be there at a time; O(rows)."""
    ordinal = np.arange(points.marks[OLDEST], points.marks[NEXT])
    cell = np.zeros(window, np.int32)
    cell[ordinal % window] = points.cell[ordinal % len(points.cell)]
    return points._replace(cell=cell)


def add_points(points: Points, cells: np.ndarray, rows: np.ndarray, begin: int) -> Points:
    """Enter rows (float64 [d, n]), whose first has the ordinal `begin`, into their cells. O(d) a row."""
    done = _enter(points, cells, rows, begin, 0)
    while done < rows.shape[1]:
        points = with_room(points, 2 * (rows.shape[1] - done))
        done = _enter(points, cells, rows, begin, done)
    points.marks[NEXT] = begin + done
    return points


@jit
def drop_points(points, before):
    """Let the rows before the ordinal go. O(1) a row: they are the first of their cell."""
    window = points.cell.shape[0]
    ring, slot = points.ring, points.marks[OLDEST] % window
    for _ in range(points.marks[OLDEST], before):
        cell = points.cell[slot]
        head = ring[cell, HEAD] + 1
        ring[cell, HEAD] = head if head < ring[cell, ROOM] else 0
        ring[cell, COUNT] -= 1
        slot = slot + 1 if slot + 1 < window else 0
    points.marks[OLDEST] = max(points.marks[OLDEST], before)


@jit
def delete_points(points, ordinals):
    """Let rows be found no more; True for each that was there. O(log of the cell's rows) each."""
    found = np.zeros(ordinals.shape[0], np.bool_)
    for i in range(ordinals.shape[0]):
        row = ordinals[i]
        if not points.marks[OLDEST] <= row < points.marks[NEXT]:
            continue
        cell = points.cell[row % points.cell.shape[0]]
        low, high = np.int64(0), points.ring[cell, COUNT]
        while low < high:  # the first that is not older; deleted ones keep their place
            middle = (low + high) >> 1
            there = points.ordinal[place_of(points.ring, cell, middle)]
            if (there if there >= 0 else ~there) < row:
                low = middle + 1
            else:
                high = middle
        place = place_of(points.ring, cell, low)
        if points.ordinal[place] == row:
            points.ordinal[place] = ~row
            found[i] = True
    return found


@jit
def read_window(points, rows, deleted):
    """Write all rows held, from the oldest on, to rows (float64 [d, n]), and which of them were deleted."""
    taken = np.zeros(points.ring.shape[0], np.int64)
    for i in range(rows.shape[1]):
        cell = points.cell[(points.marks[OLDEST] + i) % points.cell.shape[0]]
        place = place_of(points.ring, cell, taken[cell])
        taken[cell] += 1
        deleted[i] = points.ordinal[place] < 0
        for axis in range(rows.shape[0]):
            rows[axis, i] = points.rows[place, axis]

"""The rows of the window by the cell of a grid they fall into.

The rows of a cell stand side by side, in a ring of its own, so that a search reads memory as it lies. All rings are parts
of one arena. A ring that is full moves to the arena's end and gets half as much room again; when the arena is full all
of them are laid out anew (`with_room`). Rows come and go by arrival: the oldest of a cell goes first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.grid import cell_of
from skyband.kernels.jit import jit, lean

OLDEST = 0  # in Points.marks: ordinal of the oldest row held
STAMP = 1  # number of the last search
NEXT = 2  # ordinal of the next row to come
USED = 3  # places of the arena that have been given to rings

_LEAST = 4  # rows that a ring has room for


class Points(NamedTuple):
    """Rows by cell, those of a cell oldest first from `head` on, in a ring of `room` places from `part` on."""

    rows: np.ndarray  # float64 [d, arena]
    ordinal: np.ndarray  # int64 [arena]: ~r where row r was deleted
    cell: np.ndarray  # int32 [longest window]: of row r at r % its length
    part: np.ndarray  # int64 [cells]
    room: np.ndarray  # int64 [cells]
    head: np.ndarray  # int64 [cells]: < room, or 0
    count: np.ndarray  # int64 [cells]
    seen: np.ndarray  # int64 [cells]: number of the search that last reached the cell
    marks: np.ndarray  # int64 [4]


def empty_points(dimensions: int, window: int, cells: int) -> Points:
    """No rows; at most `window` of them may be there at a time."""
    part, room, head, count, seen = np.zeros((5, cells), np.int64)
    arena = np.zeros((dimensions, 0)), np.zeros(0, np.int64)
    return Points(*arena, np.zeros(window, np.int32), part, room, head, count, seen, np.zeros(4, np.int64))


@lean
def place_of(points, cell, i):
    """Where in the arena the i-th oldest row of a cell stands."""
    at = points.head[cell] + i
    return points.part[cell] + (at if at < points.room[cell] else at - points.room[cell])


@lean
def _widen(points, cell):
    """Move a cell's ring to where it has more room. False when the arena has none."""
    part, room, head, count = points.part[cell], points.room[cell], points.head[cell], points.count[cell]
    wider = room + (room >> 1) + _LEAST
    used = points.marks[USED]
    if used + wider > points.ordinal.shape[0]:
        return False
    for i in range(count):
        old = part + (head + i if head + i < room else head + i - room)
        points.ordinal[used + i] = points.ordinal[old]
        for axis in range(points.rows.shape[0]):
            points.rows[axis, used + i] = points.rows[axis, old]
    points.part[cell], points.room[cell], points.head[cell] = used, wider, 0
    points.marks[USED] = used + wider
    return True


@jit
def _enter(points, grid, rows, begin, first):
    """Enter rows[:, first:], of which rows[:, 0] has the ordinal `begin`, as long as there is room; returns where it ended."""
    here = np.empty(rows.shape[0])
    window = points.cell.shape[0]
    for i in range(first, rows.shape[1]):
        for axis in range(here.shape[0]):
            here[axis] = rows[axis, i]
        cell = cell_of(grid, here)
        if points.count[cell] == points.room[cell] and not _widen(points, cell):
            return i
        place = place_of(points, cell, points.count[cell])
        for axis in range(here.shape[0]):
            points.rows[axis, place] = here[axis]
        points.ordinal[place] = begin + i
        points.cell[(begin + i) % window] = cell
        points.count[cell] += 1
    return rows.shape[1]


@jit
def _lay_out(points, wider):
    """Copy every ring to its part of a new arena, from the oldest row on."""
    for cell in range(points.count.shape[0]):
        part = wider.part[cell]
        for i in range(points.count[cell]):
            old = place_of(points, cell, i)
            wider.ordinal[part + i] = points.ordinal[old]
            for axis in range(points.rows.shape[0]):
                wider.rows[axis, part + i] = points.rows[axis, old]


def with_room(points: Points, more: int) -> Points:
    """The same rows with room for about so many more of them; O(rows)."""
    room = np.where(points.count > 0, points.count + (points.count >> 2) + _LEAST, 0)
    used = int(room.sum())
    arena = used + used // 3 + more + _LEAST
    wider = points._replace(
        rows=np.empty((len(points.rows), arena)),
        ordinal=np.empty(arena, np.int64),
        part=np.cumsum(room) - room,
        room=room,
        head=np.zeros_like(points.head),
    )
    _lay_out(points, wider)
    wider.marks[USED] = used
    return wider


def add_points(points: Points, grid: tuple[np.ndarray, ...], rows: np.ndarray, begin: int) -> Points:
    """Enter rows (float64 [d, n]), whose first has the ordinal `begin`. O(d) a row."""
    done = _enter(points, grid, rows, begin, 0)
    while done < rows.shape[1]:
        points = with_room(points, 2 * (rows.shape[1] - done))
        done = _enter(points, grid, rows, begin, done)
    points.marks[NEXT] = begin + done
    return points


@jit
def drop_points(points, before):
    """Let the rows before the ordinal go. O(1) a row: they are the first of their cell."""
    window = points.cell.shape[0]
    for row in range(points.marks[OLDEST], before):
        cell = points.cell[row % window]
        head = points.head[cell] + 1
        points.head[cell] = head if head < points.room[cell] else 0
        points.count[cell] -= 1
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
        low, high = np.int64(0), points.count[cell]
        while low < high:  # the first that is not older; deleted ones keep their place
            middle = (low + high) >> 1
            there = points.ordinal[place_of(points, cell, middle)]
            if (there if there >= 0 else ~there) < row:
                low = middle + 1
            else:
                high = middle
        place = place_of(points, cell, low)
        if points.ordinal[place] == row:
            points.ordinal[place] = ~row
            found[i] = True
    return found


@jit
def read_window(points, rows, deleted):
    """Write all rows held, from the oldest on, to rows (float64 [d, n]), and which of them were deleted."""
    taken = np.zeros(points.count.shape[0], np.int64)
    for i in range(rows.shape[1]):
        cell = points.cell[(points.marks[OLDEST] + i) % points.cell.shape[0]]
        place = place_of(points, cell, taken[cell])
        taken[cell] += 1
        deleted[i] = points.ordinal[place] < 0
        for axis in range(rows.shape[0]):
            rows[axis, i] = points.rows[axis, place]

"""What must hold of a crowd's grid, whatever has happened: asked by tests, told with the values that break it."""

from __future__ import annotations

import numpy as np

from skyband.kernels import bands, point_grid, pruning
from skyband.kernels.bands import NEVER, THRESHOLD, K
from skyband.kernels.calendar import Calendar
from skyband.kernels.crowd import Indexed
from skyband.kernels.grid import FIRST, STOP, Grid, cells_of
from skyband.kernels.pruning import NONE, Pruners

_WORD = 64


def check_points(points: point_grid.Points, grid: Grid) -> None:
    """Every row of the window is in the list of its cell, each list from the oldest row on, and nothing else is in one. A
    deleted row stays in its list, nameless."""
    ring = len(points.ordinal)
    rows = np.arange(int(points.marks[point_grid.OLDEST]), int(points.marks[point_grid.NEXT]))
    slots = rows % ring
    there = points.ordinal[slots]
    assert ((there == rows) | (there == NONE)).all(), f"slots of rows {rows[(there != rows) & (there != NONE)]} hold others"
    cells = cells_of(grid, np.ascontiguousarray(points.rows[:, slots].T))
    assert (points.cell[slots] == cells).all(), f"rows {rows[points.cell[slots] != cells]} are noted for another cell"
    for cell, first in enumerate(points.first):
        listed: list[int] = []
        slot = int(first)
        while slot != NONE and len(listed) <= len(rows):
            listed.append(slot)
            slot = int(points.after[slot])
        mine = slots[cells == cell].tolist()
        assert listed == mine, f"cell {cell} lists the slots {listed}, its rows are in {mine}"
        assert not mine or int(points.last[cell]) == mine[-1], f"cell {cell} ends with {points.last[cell]}, not {mine[-1]}"


def check_monitored(state: Pruners, grid: Grid, indexed: Indexed, best: np.ndarray) -> None:
    """Every query monitors the cells whose best, [queries, cells], reaches the threshold it is indexed with, which is no higher
    than the one it needs; and its box holds all the cells it monitors."""
    resolution, dimensions = grid.edge.shape[1] - 1, len(grid.low)
    for q in range(len(state.query)):
        monitors = (grid.members[:, q // _WORD] >> np.uint64(q % _WORD) & np.uint64(1)).astype(bool)
        missing = np.flatnonzero((best[q] >= indexed.threshold[q]) & ~monitors)
        assert len(missing) == 0, f"query {q}, indexed with {indexed.threshold[q]}, does not monitor the cells {missing}"
        needed = _needed(state, q)
        assert indexed.threshold[q] <= needed, f"query {q} is indexed with {indexed.threshold[q]} and needs {needed}"
        at = np.array(np.unravel_index(np.flatnonzero(monitors), (resolution,) * dimensions))
        inside = (at >= grid.box[q, FIRST][:, None]) & (at < grid.box[q, STOP][:, None])
        assert inside.all(), f"query {q} monitors cells outside of its box {grid.box[q].tolist()}"


def _needed(state: Pruners, q: int) -> float:
    """The score below which a row cannot matter to a query."""
    core, sieve = state.query[q, pruning.CORE], state.query[q, pruning.FILTER]
    if sieve == NONE:
        return float(state.levels[core, THRESHOLD])
    head, stop, k = state.marks[sieve, bands.HEAD], state.marks[sieve, bands.STOP], state.marks[sieve, K]
    return float(state.rows.score[head + k - 1]) if stop - head >= k else -np.inf


def check_calendar(calendar: Calendar, indexed: Indexed) -> None:
    """Entries are in the lists of the rows they are due at, linked both ways; who waits for an answer is listed once."""
    listed = []
    for slot, first in enumerate(calendar.head):
        before, entry = NONE, int(first)
        while entry != NONE:
            assert calendar.due[entry] % len(calendar.head) == slot, (
                f"entry {entry}, due {calendar.due[entry]}, is in list {slot}"
            )
            assert calendar.before[entry] == before, f"entry {entry} follows {before}, not {calendar.before[entry]}"
            listed.append(entry)
            before, entry = entry, int(calendar.after[entry])
    due = np.flatnonzero(calendar.due != NEVER).tolist()
    assert sorted(listed) == due, f"entries {listed} are listed, {due} are due"
    waiting = np.flatnonzero(indexed.waits).tolist()
    assert sorted(indexed.waiting[: len(waiting)].tolist()) == waiting, f"{indexed.waiting} are listed, {waiting} wait"

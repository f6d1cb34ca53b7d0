"""What must hold of a crowd's grid, whatever has happened: asked by tests, told with the values that break it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from skyband.kernels.ranked import bands, pruning
from skyband.kernels.ranked.bands import NEVER, THRESHOLD, K
from skyband.kernels.ranked.pruning import NONE, Pruners
from skyband.kernels.spatial.calendar import BY_ROW, BY_WINDOW, Calendar
from skyband.kernels.spatial.crowd_index import Indexed
from skyband.kernels.spatial.grid import FIRST, STOP, WORD_BITS, Grid, cells_of
from skyband.kernels.spatial.points import NEXT, OLDEST, USED, Points
from skyband.kernels.spatial.screening import BOUND


def check_points(points: Points, grid: Grid) -> None:
    """Every row of the window is in the ring of its cell, from the oldest row on, and nothing else is in one; rings do not
    overlap. A deleted row stays where it is, as ~row."""
    begin, end = int(points.marks[OLDEST]), int(points.marks[NEXT])
    rings = [(part, part + room) for part, room, _, _ in points.ring.tolist() if room]
    rings.sort()
    apart = all(stop <= start for (_, stop), (start, _) in pairwise(rings))
    assert apart and (not rings or rings[-1][1] <= points.marks[USED] <= len(points.ordinal)), f"rings overlap: {rings}"
    held: list[int] = []
    for cell, (part, room, head, count) in enumerate(points.ring.tolist()):
        assert 0 <= count <= room and (head < room or head == 0), f"cell {cell}: {count} rows from {head} on, room for {room}"
        places = part + (head + np.arange(count)) % max(room, 1)
        ordinals = points.ordinal[places]
        rows = np.where(ordinals < 0, ~ordinals, ordinals)
        assert (np.diff(rows) > 0).all(), f"cell {cell} holds the rows {rows}, not by age"
        assert (points.cell[rows % len(points.cell)] == cell).all(), f"some of {rows} are noted for another cell than {cell}"
        there = cells_of(grid, points.rows[places])
        assert (there == cell).all(), f"of the rows {rows} in cell {cell}, {rows[there != cell]} belong elsewhere"
        held += rows.tolist()
    assert sorted(held) == list(range(begin, end)), f"rings hold {sorted(held)}, not all of [{begin}, {end})"


def check_monitored(state: Pruners, grid: Grid, indexed: Indexed, best: np.ndarray) -> None:
    """Every query monitors the cells whose best, [queries, cells], reaches the threshold it is indexed with, which is no higher
    than the one it needs; its box holds all the cells it monitors, and rows are screened by that threshold."""
    resolution, dimensions = grid.edge.shape[1] - 1, len(grid.low)
    monitoring = np.array([sum(int(word).bit_count() for word in words) for words in grid.members])
    assert (monitoring == grid.watchers).all(), f"cells are monitored by {monitoring} queries, counted as {grid.watchers}"
    for q in range(len(state.query)):
        monitors = (grid.members[:, q // WORD_BITS] >> np.uint64(q % WORD_BITS) & np.uint64(1)).astype(bool)
        missing = np.flatnonzero((best[q] >= indexed.threshold[q]) & ~monitors)
        assert len(missing) == 0, f"query {q}, indexed with {indexed.threshold[q]}, does not monitor the cells {missing}"
        needed = _needed(state, q)
        assert indexed.threshold[q] <= needed, f"query {q} is indexed with {indexed.threshold[q]} and needs {needed}"
        screened = indexed.screen[q // WORD_BITS, BOUND, q % WORD_BITS]
        assert np.isnan(screened) or screened == indexed.threshold[q], f"query {q} is screened by {screened}"
        at = coordinates(np.flatnonzero(monitors), resolution, dimensions)
        inside = (at >= grid.box[q, FIRST][:, None]) & (at < grid.box[q, STOP][:, None])
        assert inside.all(), f"query {q} monitors cells outside of its box {grid.box[q].tolist()}"


def coordinates(cells: np.ndarray, resolution: int, dimensions: int) -> np.ndarray:
    """Where in a grid cells lie: int64 [dimensions, cells]. `np.unravel_index` has a limit of 64 dimensions."""
    at = np.empty((dimensions, len(cells)), np.int64)
    for axis in range(dimensions - 1, -1, -1):
        cells, at[axis] = np.divmod(cells, resolution)
    return at


def _needed(state: Pruners, q: int) -> float:
    """The score below which a row cannot matter to a query."""
    core, sieve = state.query[q, pruning.CORE], state.query[q, pruning.FILTER]
    if sieve == NONE:
        return float(state.levels[core, THRESHOLD])
    head, stop, k = state.marks[sieve, bands.HEAD], state.marks[sieve, bands.STOP], state.marks[sieve, K]
    return float(state.rows.score[head + k - 1]) if stop - head >= k else -np.inf


def check_calendar(state: Pruners, calendar: Calendar, indexed: Indexed) -> None:
    """Entries are in the lists of the rows they stand at, linked both ways, none at one that has left; a query that does not
    wait for an answer is entered at its oldest row, or before; who waits is listed once."""
    listed = []
    ring = calendar.head.shape[1]
    for kind, heads in enumerate(calendar.head):
        for slot in np.flatnonzero(heads != NONE).tolist():
            before, entry = NONE, int(heads[slot])
            while entry != NONE:
                row = int(calendar.row[entry])
                assert row % ring == slot and entry % 2 == kind, f"entry {entry}, of row {row}, is in list {kind}, {slot}"
                assert row >= calendar.passed[kind], f"entry {entry} stands at {row}, before {calendar.passed}"
                assert calendar.before[entry] == before, f"entry {entry} follows {before}, not {calendar.before[entry]}"
                listed.append(entry)
                before, entry = entry, int(calendar.after[entry])
    entered = np.flatnonzero(calendar.row != NEVER).tolist()
    assert sorted(listed) == entered, f"entries {listed} are listed, {entered} are entered"
    for q in np.flatnonzero(~indexed.waits).tolist():
        core, sieve = state.query[q, [pruning.CORE, pruning.FILTER]].tolist()
        held = [
            (core, BY_ROW if state.query[q, pruning.SIZE] > 0 else BY_WINDOW),
            *([(sieve, BY_ROW)] if sieve != NONE else []),
        ]
        for band, kind in held:
            row, oldest = int(calendar.row[2 * q + kind]), int(state.marks[band, bands.OLDEST])
            assert row <= oldest, f"query {q} holds {oldest} and is entered at {row}"
    waiting = np.flatnonzero(indexed.waits).tolist()
    assert sorted(indexed.waiting[: len(waiting)].tolist()) == waiting, f"{indexed.waiting} are listed, {waiting} wait"

"""Queries that come to a grid and leave it while the others stay indexed: nothing is found out about these anew.

One that comes takes a copy of what is one entry a query, and the indexing of its own cells. When one leaves, the bits of those
after it move up: a pass over the sets of all cells, O(cells * queries / 64).
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.ranked.bands import NEVER
from skyband.kernels.spatial.calendar import NONE, Calendar
from skyband.kernels.spatial.crowd_index import Indexed
from skyband.kernels.spatial.grid import WORD_BITS, Grid, forget
from skyband.kernels.spatial.screening import WEIGHTS, empty_screen

Index = tuple[Grid, Indexed, Calendar]


def with_one(grid: Grid, indexed: Indexed, calendar: Calendar) -> Index:
    """All of them with room for one query more, which is not indexed yet, and waits for no answer."""
    columns = [np.append(column, np.zeros(1, column.dtype)) for column in indexed[:-1]]
    wider = Indexed._make([*columns, screen_with_one(indexed.screen, len(grid.box))])
    after, before = (np.append(column, [NONE, NONE]) for column in (calendar.after, calendar.before))
    longer = calendar._replace(after=after, before=before, row=np.append(calendar.row, [NEVER, NEVER]))
    return grid_with_one(grid), wider, longer


def without(grid: Grid, indexed: Indexed, calendar: Calendar, number: int) -> Index:
    """All of them without one query."""
    threshold, cells, vain, patience, waits = (np.delete(column, number) for column in indexed[:5])
    waiting = np.zeros(len(waits), np.int64)
    waiting[: np.count_nonzero(waits)] = np.flatnonzero(waits)
    left = Indexed(threshold, cells, vain, patience, waits, waiting, screen_without(indexed.screen, number, len(grid.box)))
    return grid_without(grid, number), left, _calendar_without(calendar, number)


def grid_with_one(grid: Grid) -> Grid:
    """With a query more, which monitors no cell yet."""
    queries = len(grid.box)
    wider = grid._replace(box=np.concatenate([grid.box, np.zeros((1, *grid.box.shape[1:]), np.int64)]))
    if queries % WORD_BITS:
        return wider
    word = np.zeros((len(grid.members), 1), np.uint64)
    return wider._replace(members=np.concatenate([grid.members, word], axis=1))


def grid_without(grid: Grid, number: int) -> Grid:
    """Without a query; those after it move up."""
    forget(grid, number)
    members, (word, place) = grid.members.copy(), divmod(number, WORD_BITS)
    later = grid.members[:, word:] >> np.uint64(1)
    later[:, :-1] |= grid.members[:, word + 1 :] << np.uint64(WORD_BITS - 1)
    before = np.uint64((1 << place) - 1)  # the bits of the word that stay where they are
    later[:, 0] = (grid.members[:, word] & before) | (later[:, 0] & ~before)
    members[:, word:] = later
    words = -(-(len(grid.box) - 1) // WORD_BITS)
    return grid._replace(box=np.delete(grid.box, number, axis=0), members=np.ascontiguousarray(members[:, :words]))


def screen_with_one(screen: np.ndarray, queries: int) -> np.ndarray:
    """What so many queries are screened by, and one more, which lets every row pass."""
    if queries % WORD_BITS:
        return screen
    return np.concatenate([screen, empty_screen(1, screen.shape[1] - WEIGHTS)])


def screen_without(screen: np.ndarray, number: int, queries: int) -> np.ndarray:
    """What so many queries are screened by, without one of them."""
    made = empty_screen(queries, screen.shape[1] - WEIGHTS)[: -(-(queries - 1) // WORD_BITS)]
    kept = np.delete(np.arange(queries), number)
    word, place = np.divmod(np.arange(queries - 1), WORD_BITS)
    made[word, :, place] = screen[kept // WORD_BITS, :, kept % WORD_BITS]
    return made


def _calendar_without(calendar: Calendar, number: int) -> Calendar:
    """The same entries, of queries whose numbers have changed."""
    heads, ring = calendar.head.reshape(-1), calendar.head.shape[1]
    stands = np.flatnonzero(calendar.row != NEVER)
    heads[(stands & 1) * ring + calendar.row[stands] % ring] = NONE
    row = np.delete(calendar.row, [2 * number, 2 * number + 1])
    after, before = np.full(len(row), NONE, np.int64), np.full(len(row), NONE, np.int64)
    stands = np.flatnonzero(row != NEVER)
    slot = (stands & 1) * ring + row[stands] % ring
    order = np.argsort(slot, kind="stable")
    entry, slot = stands[order], slot[order]
    same = slot[1:] == slot[:-1]
    after[entry[:-1][same]], before[entry[1:][same]] = entry[1:][same], entry[:-1][same]
    first = np.append(True, ~same)[: len(entry)]
    heads[slot[first]] = entry[first]
    return Calendar(calendar.head, after, before, row, calendar.passed)

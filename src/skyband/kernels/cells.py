"""The best k rows of each cell: what a run of rows is reduced to before it travels.

A cell is a group's rows of one pane: they enter and leave every window together, so only the best k of them can
ever rank. Rows come in any order; of equal scores the later time ranks first, then the larger tie.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.best import collect_from_better_end
from skyband.kernels.best import keep_best as select
from skyband.kernels.jit import jit


class Keys(NamedTuple):
    """What rows are ranked by: the turned score (larger is better, NaN never ranks), then time, then tie."""

    score: np.ndarray  # float64
    time: np.ndarray  # int64
    tie: np.ndarray  # int64


@jit
def number_cells(group, pane, cell):
    """Give each distinct (group, pane) a number, in order of appearance, and write it to `cell`; how many there are.

    Open addressing in a table kept at most half full. Rows of one cell come in runs, so the last one is tried first.
    """
    rows = group.size
    room = 64
    table = np.full(room, -1, np.int64)  # a row of the cell, by which its number is found
    cells = 0
    last = -1
    for i in range(rows):
        if last >= 0 and group[i] == group[last] and pane[i] == pane[last]:
            cell[i] = cell[last]
            last = i
            continue
        last = i
        place = _place(table, group, pane, group[i], pane[i])
        if table[place] >= 0:
            cell[i] = cell[table[place]]
            continue
        table[place] = i
        cell[i] = cells
        cells += 1
        if 2 * cells > room:
            room *= 4
            old = table
            table = np.full(room, -1, np.int64)
            for first in old:
                if first >= 0:
                    table[_place(table, group, pane, group[first], pane[first])] = first
    return cells


@jit
def _place(table, group, pane, g, p):
    """Where (g, p) is in the table, or the empty place where it belongs."""
    mixed = np.uint64(p) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(g) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed ^= mixed >> np.uint64(32)
    mask = np.uint64(table.size - 1)
    at = mixed & mask
    while True:
        first = table[at]
        if first < 0 or (group[first] == g and pane[first] == p):
            return at
        at = (at + np.uint64(1)) & mask


@jit
def _ranks_before(keys, i, j):
    if keys.score[i] != keys.score[j]:
        return keys.score[i] > keys.score[j]
    if keys.time[i] != keys.time[j]:
        return keys.time[i] > keys.time[j]
    return keys.tie[i] > keys.tie[j]


@jit
def _sink(heap, low, at, size, keys):
    """Let a row of the heap at heap[low:low+size], whose root is its worst row, sink to where it belongs."""
    row = heap[low + at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _ranks_before(keys, heap[low + child], heap[low + child + 1]):
            child += 1
        if not _ranks_before(keys, row, heap[low + child]):
            break
        heap[low + at] = heap[low + child]
        at = child
    heap[low + at] = row


@jit
def _in_cells(cell, cells):
    """Rows by cell, in their order: cell c has order[start[c]:start[c + 1]]. Where rows come so, `order` is empty: it would
    be 0, 1, 2, …"""
    start = np.zeros(cells + 1, np.int64)
    sorted_ = True
    for i in range(cell.size):
        start[cell[i] + 1] += 1
        sorted_ &= i == 0 or cell[i] >= cell[i - 1]
    for c in range(cells):
        start[c + 1] += start[c]
    order = np.empty(0 if sorted_ else cell.size, np.int64)
    if not sorted_:
        next_ = start[:cells].copy()
        for i in range(cell.size):
            order[next_[cell[i]]] = i
            next_[cell[i]] += 1
    return start, order


@jit
def _keep_newest(level, count, keys, wanted, keep):
    """Set `keep` for the best `wanted` of the rows level[:count], all of one score; the worst of them."""
    for at in range(wanted // 2 - 1, -1, -1):
        _sink(level, 0, at, wanted, keys)
    for i in range(wanted, count):
        if _ranks_before(keys, level[i], level[0]):
            level[0] = level[i]
            _sink(level, 0, 0, wanted, keys)
    for i in range(wanted):
        keep[level[i]] = True
    return level[0]


@jit
def keep_best(cell, cells, keys, k, keep):
    """Set `keep` for the best k rows of each cell, and give the worst of them, -1 where all are kept.

    Of a cell the k-th best score is found first (`best.collect`), O(1) a row; time and tie matter only among the rows that
    have it, O(log k) each.
    """
    start, order = _in_cells(cell, cells)
    moved = order.size > 0
    score = keys.score[order] if moved else keys.score
    widest = 0
    for c in range(cells):
        widest = max(widest, start[c + 1] - start[c])
    room = min(2 * k, widest) + 1 if widest > k else 0
    best, ordinal = np.empty(room), np.empty(room, np.int64)
    level = np.empty(widest if room else 0, np.int64)
    worst = np.full(cells, -1, np.int64)
    for c in range(cells):
        low, stop = start[c], start[c + 1]
        held = 0
        if stop - low > k:
            _, held = collect_from_better_end(score, low, stop, 0, -np.inf, best, ordinal, 0, k)
        if held < k:
            for i in range(low, stop):
                if not np.isnan(score[i]):
                    keep[order[i] if moved else i] = True
            continue
        if held > k:
            select(best, ordinal, held, k)
        least = best[:k].min()
        above = count = 0
        for i in range(stop - 1, low - 1, -1):  # the newest of equals mostly come last: they are met first
            if score[i] > least:
                keep[order[i] if moved else i] = True
                above += 1
            elif score[i] == least:
                level[count] = order[i] if moved else i
                count += 1
        worst[c] = _keep_newest(level, count, keys, k - above, keep)
    return worst


@jit
def keep_level(cell, worst, keys, keep):
    """Set `keep` for the rows that only the tie can tell from the worst kept row of their cell."""
    for i in range(cell.size):
        last = worst[cell[i]]
        if last >= 0 and not keep[i] and keys.score[i] == keys.score[last] and keys.time[i] == keys.time[last]:
            keep[i] = True


@jit
def number_panes(time, slide, cuts, pane):
    """Write the number of each row's pane. `cuts`: where, within a slide, windows begin; increasing, none at 0.

    Between two cuts every row enters and leaves all windows together. Slide m holds the panes from m·(cuts + 1) on.
    """
    number, begin = 0, 0
    for i in range(time.size):
        # mostly it is the slide of the row before, and nothing is divided; unsigned, as the way to another may be too far
        if time[i] < begin or np.uint64(time[i]) - np.uint64(begin) >= np.uint64(slide):
            number = time[i] // slide
            begin = number * slide
        within = time[i] - begin
        part = 0
        while part < cuts.size and cuts[part] <= within:
            part += 1
        pane[i] = number * (cuts.size + 1) + part

"""The time order that all queries of a crowd share: which of them lose a row when one leaves, by that row.

TODS15 section 6 keeps a common time tree; here a ring of lists, one for each row that may be held, so that an entry costs O(1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.jit import tiny
from skyband.kernels.ranked.bands import NEVER

NONE = -1
BY_ROW, BY_WINDOW = 0, 1  # rows leave one with each that comes, or when a window ends


class Calendar(NamedTuple):
    """Which queries hold which row as their oldest. Query q has the entry 2q + BY_ROW for what its filter, or else its
    probabilistic core, holds, and 2q + BY_WINDOW for the top-k of any other core. An entry may stand at an older row."""

    head: np.ndarray  # int64 [2, ring]: first entry of the ordinal modulo the ring, which is longer than rows are held
    after: np.ndarray  # int64 [entries]: the next entry of that row, or NONE
    before: np.ndarray  # int64 [entries]: the one before, or NONE
    row: np.ndarray  # int64 [entries]: the ordinal, NEVER if it is in no list
    passed: np.ndarray  # int64 [2]: rows before this ordinal have left; no entry stands there


def empty_calendar(ring: int, queries: int, by_row: int, by_window: int) -> Calendar:
    """No entries; rows before these ordinals have left."""
    after, before = (np.full(2 * queries, NONE, np.int64) for _ in range(2))
    never, passed = np.full(2 * queries, NEVER, np.int64), np.array([by_row, by_window], np.int64)
    return Calendar(np.full((2, ring), NONE, np.int64), after, before, never, np.maximum(passed, 0))


@tiny
def unlink(calendar, entry):
    """Take the entry out of its list, if it is in one."""
    row = calendar.row[entry]
    if row == NEVER:
        return
    after, before = calendar.after[entry], calendar.before[entry]
    if before == NONE:
        calendar.head[entry & 1, row % calendar.head.shape[1]] = after
    else:
        calendar.after[before] = after
    if after != NONE:
        calendar.before[after] = before
    calendar.row[entry] = NEVER


@tiny
def _link(calendar, entry, row):
    slot = row % calendar.head.shape[1]
    first = calendar.head[entry & 1, slot]
    calendar.after[entry], calendar.before[entry], calendar.row[entry] = first, NONE, row
    if first != NONE:
        calendar.before[first] = entry
    calendar.head[entry & 1, slot] = entry


@tiny
def plan(calendar, entry, row):
    """See to it that the entry stands at the row, or at an older one that is still held."""
    if row == NEVER or calendar.row[entry] <= row:
        return
    unlink(calendar, entry)
    _link(calendar, entry, max(row, calendar.passed[entry & 1]))

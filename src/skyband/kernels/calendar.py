"""The time order that all queries of a crowd share: which of them lose a row, by the row whose arrival makes it leave.

TODS15 section 6 keeps a common time tree; here a ring of lists, one for each coming row, so that an entry costs O(1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.bands import NEVER
from skyband.kernels.jit import tiny

NONE = -1


class Calendar(NamedTuple):
    """Which queries have a row that leaves, by the row whose arrival makes it leave. One entry a query for what its
    filter, or else its probabilistic core, holds, one for the top-k of any other core. An entry may be early."""

    head: np.ndarray  # int64 [ring]: first entry of the row number modulo the ring
    after: np.ndarray  # int64 [entries]: the next entry of that row, or NONE
    before: np.ndarray  # int64 [entries]: the one before, or NONE
    due: np.ndarray  # int64 [entries]: the row, NEVER if it is in no list


@tiny
def unlink(calendar, entry):
    """Take the entry out of its list, if it is in one."""
    due = calendar.due[entry]
    if due == NEVER:
        return
    after, before = calendar.after[entry], calendar.before[entry]
    if before == NONE:
        calendar.head[due % calendar.head.shape[0]] = after
    else:
        calendar.after[before] = after
    if after != NONE:
        calendar.before[after] = before
    calendar.due[entry] = NEVER


@tiny
def _link(calendar, entry, due):
    slot = due % calendar.head.shape[0]
    first = calendar.head[slot]
    calendar.after[entry], calendar.before[entry], calendar.due[entry] = first, NONE, due
    if first != NONE:
        calendar.before[first] = entry
    calendar.head[slot] = entry


@tiny
def plan(calendar, entry, due, row):
    """See to it that the entry comes up at `due`, or earlier, but after `row`."""
    if due == NEVER or calendar.due[entry] <= due:
        return
    unlink(calendar, entry)
    _link(calendar, entry, max(due, row + 1))

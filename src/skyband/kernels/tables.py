"""Named tuples of arrays: what the driver hands to a kernel and what it gets back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SAME = -1
"""In Results.size: this window's top-k is that of the query's window before it."""

NO_RANKS = np.zeros(0, np.int64)

NOTHING, CHANGES, SNAPSHOTS, ARRIVALS = 0, 1, 2, 3
"""Codes of what the windows of a query give: its `emit`."""


class Windows(NamedTuple):
    """Windows to answer, as intervals of ordinals, sorted by `end` (then by query).

    For each query, `first`, `end` and `number` never decrease.
    """

    query: np.ndarray  # int64: which query of the plan
    number: np.ndarray  # int64: the window's number: its end divided by the query's slide
    first: np.ndarray  # int64: ordinal of the first row it holds
    end: np.ndarray  # int64: ordinal after the last row it holds
    report: np.ndarray  # bool: write the answer into Results (else only into Tops)


class Panes(NamedTuple):
    """Runs of rows that enter and leave the windows of one query together.

    Pane i holds the ordinals from begin[i] up to begin[i + 1] (the last one: up to the end of the rows
    handed over) and belongs to the windows numbered from enter[i] up to, not including, leave[i].
    """

    begin: np.ndarray  # int64, increasing
    enter: np.ndarray  # int64, non-decreasing
    leave: np.ndarray  # int64, non-decreasing, always > enter


BLOCK = 256
"""Rows that share a ceiling."""


class Ceilings(NamedTuple):
    """What is known of rows before they are ranked: the scores of block i are all numbers below limit[i].

    Block i is the BLOCK rows from place `ahead` + i * BLOCK on; of rows before the first block and behind the last
    nothing is known. Where limit[i] is -inf no row of the block can rank in a window that is or will be asked for: they
    may be taken for rows without a score.
    """

    ahead: int
    limit: np.ndarray  # float64 [blocks]; NaN: nothing is known


class Tops(NamedTuple):
    """The answer of each query's last window: rank r of query q is score[q, r], ordinal[q, r]."""

    score: np.ndarray  # float64 [queries, largest k]
    ordinal: np.ndarray  # int64 [queries, largest k]
    count: np.ndarray  # int64 [queries]: ranks filled


class Results(NamedTuple):
    """Answers of consecutive windows: window i fills size[i] ranks from begin[i] on, best first.

    Where what differs from the query's answer before is told instead, the size is SAME minus the number of entries: the rows
    that are in the top-k no more, by their old rank, then those that are in it now, by rank.
    """

    begin: np.ndarray  # int64 [windows]
    size: np.ndarray  # int64 [windows]: ranks, SAME, or less
    score: np.ndarray  # float64 [room]
    ordinal: np.ndarray  # int64 [room]
    rank: np.ndarray = NO_RANKS  # int64 [room], of what differs: ranks from 1; 0 for a row that is out

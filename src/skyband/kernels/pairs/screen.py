"""Which blocks of older rows hold nothing for the next few new rows: found out ahead, by as many threads as there are.

A new row is held against limits that mostly rise from row to row: a block in which it reaches none of them now need not be
looked at when the row's turn comes, if the limit then is no lower. What is found is a hint: a block without one is scored as
ever. Blocks are read once for all of these rows, while they lie in the cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.expression import BLOCK
from skyband.kernels.jit import lean, tiny
from skyband.kernels.pairs.coarse import any_near, meet_coarsely
from skyband.kernels.pairs.distance import EXPRESSION, level_of
from skyband.kernels.pairs.score import APART, SEARCH, meet, promising
from skyband.kernels.pairs.state import SEGMENTS
from skyband.kernels.pairs.zones import bound, may_matter

FIRST, ROWS, UPTO = 0, 1, 2  # places in Screen.marks
MARKS = 3


class Screen(NamedTuple):
    """What is known of some coming rows. Block i is the BLOCK places of the tail from i * BLOCK on."""

    marks: np.ndarray  # int64 [MARKS]: the ordinal of the first of these rows, how many they are, places that were looked at
    limit: np.ndarray  # float64 [blocks]: what scores were held against
    hits: np.ndarray  # uint8 [rows, blocks]: 1 where one may have reached it


def no_screen(rows: int = 0, blocks: int = 0) -> Screen:
    """Room for so many rows; nothing is known of them."""
    return Screen(np.zeros(MARKS, np.int64), np.zeros(blocks), np.zeros((rows, blocks), np.uint8))


@lean
def lay_limits(marks, segments, screen):
    """Read the least limit of every whole block of rows that share limits."""
    blocks = segments.begin[0] // BLOCK
    screen.marks[UPTO] = blocks * BLOCK
    limits = screen.limit
    for block in range(blocks):
        limits[block] = np.inf
    for j in range(1, marks[SEGMENTS]):
        end = min(segments.begin[j - 1], screen.marks[UPTO])
        for block in range(max(segments.begin[j], 0) // BLOCK, (end + BLOCK - 1) // BLOCK):
            if segments.limit[j] < limits[block]:  # never true of NaN, which lets none in
                limits[block] = segments.limit[j]


@lean
def look_ahead(scorer, tail, newer, row, low, high, head, screen):
    """Hold the rows of `newer` from `row` on against the blocks [low, high)."""
    columns = tail.columns
    rows = screen.marks[ROWS]
    search, sign = scorer.marks[SEARCH], scorer.sign[APART]
    if search == EXPRESSION:  # to begin with a new row costs as much as a block
        for r in range(rows):
            meet(scorer, columns, newer, row + r)
            for block in range(low, high):
                begin = max(head, block * BLOCK)
                count = (block + 1) * BLOCK - begin
                hit = may_matter(scorer, tail.low[block], tail.high[block], screen.limit[block])
                screen.hits[r, block] = hit and promising(scorer, columns, begin, count, screen.limit[block])
        return
    for block in range(low, high):
        begin = max(head, block * BLOCK)
        count, level = (block + 1) * BLOCK - begin, level_of(search, scorer.shape, sign, screen.limit[block])
        for r in range(rows):
            for j in range(len(scorer.weights)):
                scorer.newer[j] = newer[j, row + r]
            best = bound(search, sign, scorer.newer, scorer.weights, tail.low[block], tail.high[block])
            meet_coarsely(scorer, tail.origin)
            screen.hits[r, block] = not best < level and any_near(search, tail, begin, count, scorer, level)


@tiny
def is_clear(known, limits, hits, row, begin, stop, limit):
    """Is it known that no score of the row with ordinal `row` and the places [begin, stop) of the tail reaches `limit`?"""
    r = row - known[FIRST]
    if r >= known[ROWS] or stop > known[UPTO]:
        return False
    for block in range(begin // BLOCK, (stop + BLOCK - 1) // BLOCK):
        if hits[r, block] or not limits[block] <= limit:
            return False
    return True

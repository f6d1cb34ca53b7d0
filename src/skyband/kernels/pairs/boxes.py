"""Older rows in boxes: where a score is monotone in each column's difference, whole boxes of rows are passed over.

Rows that are no longer young leave the tail in *runs* of consecutive rows, and two runs of equal size become one of twice
the size, so that there are few runs and old ones are long. Within a run rows are halved again and again across the widest
column; every half has a box, the least and greatest value of each column. A run has one limit, that of its newest row: a
box whose best possible score lies below it holds no row that matters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.jit import lean
from skyband.kernels.pairs.band import lay_segments, limit_of, merge
from skyband.kernels.pairs.distance import any_apart, level_of
from skyband.kernels.pairs.score import APART, SEARCH, fill, reaching
from skyband.kernels.pairs.state import BAND, DONE, HEAD, LEAF, NEXT, OUT_OF_ROOM, PENDING, REACH, RUN, RUNS, RUNS_HEAD, SCORED
from skyband.kernels.pairs.zones import bound

LEAF_ROWS = 64

BEGIN, ROWS, NODE, NEWEST = 0, 1, 2, 3  # of a run: its first row's place, rows, place of its boxes, newest ordinal
FIELDS = 4

BOXED = 0  # places in Boxes.marks: rows of the shortest run, 0 when rows are never boxed
VISITED = 1  # boxes looked at so far
MARKS = 2


class Boxes(NamedTuple):
    """Runs, oldest first, one behind the other. Box i of a run lies at NODE + i: 1 is the whole, 2 i and 2 i + 1 its halves."""

    columns: np.ndarray  # float64 [older columns, room]
    ordinal: np.ndarray  # int64 [room]
    runs: np.ndarray  # int64 [room for runs, FIELDS]
    limit: np.ndarray  # float64 [room for runs]
    low: np.ndarray  # float64 [2 * leaves, searched columns], by box
    high: np.ndarray  # float64 [2 * leaves, searched columns]
    marks: np.ndarray  # int64 [MARKS]


@lean
def merge_all(state, boxes):
    """Let the waiting pairs join the band, then read all limits off its staircase."""
    merge(state)
    lay_again(state, boxes)


@lean
def lay_again(state, boxes):
    """Read the limits of segments and runs off the staircase."""
    step = lay_segments(state)
    for r in range(state.marks[RUNS] - 1, state.marks[RUNS_HEAD] - 1, -1):
        newest = boxes.runs[r, NEWEST]
        while step > 0 and state.kth[step - 1] >= newest:
            step -= 1
        boxes.limit[r] = limit_of(state, newest, step)


@lean
def search(state, boxes, scorer):
    """Score the new row with the rows of all runs that can matter, from where marks[RUN] and marks[LEAF] stand."""
    marks = state.marks
    while marks[RUN] < marks[RUNS] - marks[RUNS_HEAD]:
        r = marks[RUNS] - 1 - marks[RUN]
        if boxes.runs[r, NEWEST] < marks[REACH]:
            break
        if not _search_run(state, boxes, scorer, r):
            return OUT_OF_ROOM
        marks[RUN] += 1
        marks[LEAF] = 0
    return DONE


@lean
def _search_run(state, boxes, scorer, r):
    """False when the band had no room; what was done stands in marks[LEAF]."""
    marks, pending = state.marks, state.pending
    rows = np.int64(LEAF_ROWS)  # no constant: loops over it are not compiled once more
    begin, leaves, first_node = boxes.runs[r, BEGIN], boxes.runs[r, ROWS] // rows, boxes.runs[r, NODE]
    sign, visited, search, apart = scorer.sign[0], 0, scorer.marks[SEARCH], scorer.sign[APART]
    newer, weights, limit = scorer.newer, scorer.weights, boxes.limit[r]
    level = level_of(search, scorer.shape, apart, limit)
    node = 1
    while node:
        visited += 1
        low, high = boxes.low[first_node + node], boxes.high[first_node + node]
        if bound(search, apart, newer, weights, low, high) < level or level != level:
            node = _behind(node)
            continue
        if node < leaves:
            node *= 2
            continue
        leaf = node - leaves
        if leaf >= marks[LEAF]:
            place = begin + leaf * rows
            marks[SCORED] += rows
            if any_apart(search, boxes.columns, place, rows, newer, weights, scorer.buffer, apart, level):
                if marks[PENDING] + rows > len(pending.score):
                    if marks[BAND] + marks[PENDING] > len(state.band.score):
                        return False
                    merge_all(state, boxes)
                    limit = boxes.limit[r]
                    level = level_of(search, scorer.shape, apart, limit)
                    continue
                fill(scorer, boxes.columns, place, rows)
                wait, newest, reach = marks[PENDING], marks[NEXT], marks[REACH]
                for hit in scorer.hits[: reaching(sign, scorer.buffer, scorer.hits, rows, limit)]:
                    a = boxes.ordinal[place + hit]
                    if a >= reach:
                        pending.score[wait], pending.a[wait], pending.b[wait] = sign * scorer.buffer[hit], a, newest
                        wait += 1
                marks[PENDING] = wait
            marks[LEAF] = leaf + 1
        node = _behind(node)
    boxes.marks[VISITED] += visited
    return True


@lean
def _behind(node):
    """The box after this one and all within it, or 0."""
    while node & 1:
        node >>= 1
    return node + 1 if node else 0


# -- runs --------------------------------------------------------------------------------------------------------


@lean
def box_oldest(state, boxes, longest):
    """Move the oldest rows of the tail into a run, joined with the runs before it that are as long, up to `longest` rows.
    There is room for them. Returns the run, which is to be sorted."""
    marks, tail, runs, rows = state.marks, state.tail, boxes.runs, boxes.marks[BOXED]
    r = marks[RUNS]
    begin, node = 0, 0
    if r > marks[RUNS_HEAD]:
        begin = runs[r - 1, BEGIN] + runs[r - 1, ROWS]
        node = runs[r - 1, NODE] + 2 * (runs[r - 1, ROWS] // LEAF_ROWS)
    head = marks[HEAD]
    for i in range(rows):
        for j in range(boxes.columns.shape[0]):
            boxes.columns[j, begin + i] = tail.columns[j, head + i]
        boxes.ordinal[begin + i] = tail.ordinal[head + i]
    newest = tail.ordinal[head + rows - 1]
    marks[HEAD] = head + rows
    while r > marks[RUNS_HEAD] and runs[r - 1, ROWS] == rows and 2 * rows <= longest:
        r -= 1
        begin, node, rows = runs[r, BEGIN], runs[r, NODE], 2 * rows
    runs[r, BEGIN], runs[r, ROWS], runs[r, NODE], runs[r, NEWEST] = begin, rows, node, newest
    marks[RUNS] = r + 1
    return r


@lean
def sort_run(boxes, r, keys, items, columns, ordinals):
    """Order the rows of a run by halving, and make its boxes. The last four are room for as many rows."""
    begin, rows, first_node = boxes.runs[r, BEGIN], boxes.runs[r, ROWS], boxes.runs[r, NODE]
    leaves, d, searched = rows // LEAF_ROWS, boxes.columns.shape[0], boxes.low.shape[1]
    for i in range(rows):
        items[i] = i
        ordinals[i] = boxes.ordinal[begin + i]
        for j in range(d):
            columns[j, i] = boxes.columns[j, begin + i]
    for node in range(1, 2 * leaves):
        level = node
        span = rows
        while level > 1:
            level >>= 1
            span >>= 1
        at = (node * span) - rows  # nodes of a level lie side by side; the first has the number rows / span
        low, high = boxes.low[first_node + node], boxes.high[first_node + node]
        widest, spread = 0, -1.0
        for j in range(searched):
            low[j], high[j] = np.inf, -np.inf
            for i in range(at, at + span):
                value = columns[j, items[i]]
                low[j], high[j] = min(low[j], value), max(high[j], value)
            if high[j] - low[j] > spread:
                widest, spread = j, high[j] - low[j]
        if node < leaves:
            for i in range(at, at + span):
                keys[i] = columns[widest, items[i]]
            _halve(keys, items, at, at + span)
    for i in range(rows):
        boxes.ordinal[begin + i] = ordinals[items[i]]
        for j in range(d):
            boxes.columns[j, begin + i] = columns[j, items[i]]


@lean
def _halve(keys, items, begin, end):
    """Move the smaller half of the keys, and their items, to the front (Hoare's selection)."""
    middle, low, high = (begin + end) >> 1, begin, end - 1
    while low < high:
        pivot, i, j = keys[(low + high) >> 1], low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                key, item = keys[i], items[i]
                keys[i], items[i] = keys[j], items[j]
                keys[j], items[j] = key, item
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return

"""The rows of the widest window and a ladder over them: what all queries of one score share.

The scores lie in a ring. The stream is cut into leaves of LEAF rows; the ladder keeps the best rows of every
complete leaf, of every aligned pair of leaves, of every four, and so on up to the whole ring: a binary heap whose
node h covers what 2h and 2h + 1 cover together. The best rows of any interval are then in at most two nodes of
each rung and in the raw rows at its two ends. Leaves are ranked when somebody first asks, so that a stream on
which nobody asks costs nothing but the copy into the ring; and a question after a long time reads the raw rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.best import collect_from_better_end, finish, merge
from skyband.kernels.jit import jit
from skyband.kernels.order import outranks

# places in SharedState.cells
TAKEN = 0  # ordinal of the next row to take; -1: no row was ever offered
LEAF = 1  # rows in a leaf: a power of two; the whole ring when there is no ladder
ORIGIN = 2  # no row before this ordinal is in the ring
RANKED = 3  # leaves up to this ordinal are in the ladder, as far as the ring still holds their rows
SCANNED = 4  # rows read raw instead of ranking leaves, since leaves were last ranked
CELLS = 5

ROOT = 1  # the heap's top node
MOST_RUNGS = 64


class SharedState(NamedTuple):
    """All that the shared views remember. One row of `views` a query, with the columns of `kernels.ranked.views`."""

    cells: np.ndarray  # int64 [CELLS]
    ring: np.ndarray  # float64 [power of two]: row o at o & (len - 1); NaN where no row has been
    node_score: np.ndarray  # float64 [2 * leaves, keep]: the best rows under each node, best first; empty: no ladder
    node_ordinal: np.ndarray  # int64, alike
    node_count: np.ndarray  # int64 [2 * leaves]
    views: np.ndarray  # int64 [queries, columns]
    ranking: np.ndarray  # int32: places of every view's rows in its queue, best first, from views[q, RANKS] on
    queue_score: np.ndarray  # float64: every view's rows in the order of arrival, from views[q, HEAD] to views[q, TAIL]
    queue_ordinal: np.ndarray  # int64, alike
    watch_floor: np.ndarray  # float64 [queries]: the views' floors, ascending
    watch_query: np.ndarray  # int64 [queries]: whose floor that is


@jit
def merge_in(score, ordinal, count, more_score, more_ordinal, more, keep):
    """Merge a sorted run into another in place, keeping the best `keep`. Returns how many there are.

    (score, ordinal) needs room for count + more rows. Stops where nothing is left to move.
    """
    i, j = count - 1, more - 1
    place = count + more - 1
    while j >= 0:
        if i >= 0 and outranks(more_score[j], more_ordinal[j], score[i], ordinal[i]):
            score[place], ordinal[place] = score[i], ordinal[i]
            i -= 1
        else:
            score[place], ordinal[place] = more_score[j], more_ordinal[j]
            j -= 1
        place -= 1
    return min(count + more, keep)


@jit
def _rank_leaf(state, stop, buffer_score, buffer_ordinal):
    """Rank the complete leaf that ends before the ordinal `stop`, then every node it completes. O(leaf + keep)."""
    leaf = state.cells[LEAF]
    keep = state.node_score.shape[1]
    leaves = state.node_count.shape[0] // 2
    begin = stop - leaf
    place = begin & (state.ring.shape[0] - 1)
    _, count = collect_from_better_end(
        state.ring, place, place + leaf, begin - place, -np.inf, buffer_score, buffer_ordinal, 0, keep
    )
    count = finish(buffer_score, buffer_ordinal, count, keep)
    node = leaves + ((begin // leaf) & (leaves - 1))
    state.node_score[node, :count] = buffer_score[:count]
    state.node_ordinal[node, :count] = buffer_ordinal[:count]
    state.node_count[node] = count
    while node > ROOT and node & 1:  # a right child completes its parent
        left, right, node = node - 1, node, node >> 1
        state.node_count[node] = merge(
            state.node_score[left], state.node_ordinal[left], state.node_count[left],
            state.node_score[right], state.node_ordinal[right], state.node_count[right],
            state.node_score[node], state.node_ordinal[node], keep,
        )  # fmt: skip


@jit
def _rank_leaves(state, buffer_score, buffer_ordinal):
    """Rank the complete leaves that are not in the ladder yet and whose rows are still all there."""
    leaf = state.cells[LEAF]
    taken = state.cells[TAKEN]
    begin = max(state.cells[RANKED], -(-(taken - state.ring.shape[0]) // leaf) * leaf)
    for stop in range(begin + leaf, taken + 1, leaf):
        _rank_leaf(state, stop, buffer_score, buffer_ordinal)
    state.cells[RANKED] = taken // leaf * leaf


@jit
def _nodes_over(leaves, begin, stop, nodes):
    """The nodes that together cover the leaves [begin, stop), small ones first. Returns how many."""
    found = 0
    while begin < stop:
        if begin & 1:
            nodes[found] = leaves + (begin & (leaves - 1))
            found += 1
            begin += 1
        if stop & 1:
            stop -= 1
            nodes[found] = leaves + (stop & (leaves - 1))
            found += 1
        begin >>= 1
        stop >>= 1
        leaves >>= 1
    return found


@jit
def _above(score, ordinal, count, floor, floor_ordinal):
    """How many of a sorted run outrank the floor: often none."""
    low, high = 0, count
    if count > 0 and not outranks(score[0], ordinal[0], floor, floor_ordinal):
        return 0
    while low < high:
        middle = (low + high) // 2
        if outranks(score[middle], ordinal[middle], floor, floor_ordinal):
            low = middle + 1
        else:
            high = middle
    return low


@jit
def _collect_rows(state, begin, stop, floor, buffer_score, buffer_ordinal, count, keep):
    """`collect_from_better_end` over the ordinals [begin, stop), whose rows may go around the end of the ring."""
    size = state.ring.shape[0]
    while begin < stop:
        place = begin & (size - 1)
        length = min(stop - begin, size - place)
        floor, count = collect_from_better_end(
            state.ring, place, place + length, begin - place, floor, buffer_score, buffer_ordinal, count, keep
        )
        begin += length
    return floor, count


@jit
def _take_falling(state, first, end, keep, score, ordinal):
    """Take rows from `first` on into (score, ordinal) as long as each is below the one before: they are sorted as they
    come. Returns how many, at most `keep`."""
    mask = state.ring.shape[0] - 1
    last = np.inf
    count = 0
    while count < keep and first + count < end and state.ring[(first + count) & mask] < last:
        last = state.ring[(first + count) & mask]
        score[count], ordinal[count] = last, first + count
        count += 1
    return count


@jit
def _is_ranking_due(state, rows):
    """Rank the leaves, or read `rows` raw this once? A leaf costs several times its rows' reading to rank, which pays
    when questions come often: raw reading is for those that come after a long time, as long as it has not yet read
    as many rows as wait to be ranked. So neither costs more than twice what the better of them would have."""
    cells = state.cells
    if cells[SCANNED] + rows <= cells[TAKEN] - cells[RANKED]:
        cells[SCANNED] += rows
        return False
    cells[SCANNED] = 0
    return True


@jit
def best_of(state, first, end, keep, score, ordinal, buffer_score, buffer_ordinal):
    """The best `keep` rows of [first, end) into (score, ordinal), sorted. Returns how many there are.

    All rows up to `end` are taken. `keep` is at most what a node keeps; the two runs have room for twice that.
    O(LEAF + keep log(leaves)); O(LEAF + keep) on a falling stream, whose best rows are the oldest, in order: with those
    at hand, no node has anything to add.
    """
    leaf = state.cells[LEAF]
    leaves = state.node_count.shape[0] // 2
    count = _take_falling(state, first, end, keep, score, ordinal)
    first += count
    begin, stop = -(-first // leaf), end // leaf
    front_stop = back_begin = end
    if leaves > 0 and begin < stop and _is_ranking_due(state, end - first):
        _rank_leaves(state, buffer_score, buffer_ordinal)
        nodes = np.empty(2 * MOST_RUNGS, np.int64)
        for i in range(_nodes_over(leaves, begin, stop, nodes) - 1, -1, -1):  # large ones first: the floor is soon high
            node = nodes[i]
            more = min(keep, state.node_count[node])
            if count == keep:
                more = _above(state.node_score[node], state.node_ordinal[node], more, score[keep - 1], ordinal[keep - 1])
            if more > 0:
                count = merge_in(score, ordinal, count, state.node_score[node], state.node_ordinal[node], more, keep)
        front_stop, back_begin = begin * leaf, stop * leaf
    floor = score[keep - 1] if count == keep else -np.inf
    floor, found = _collect_rows(state, first, front_stop, floor, buffer_score, buffer_ordinal, 0, keep)
    floor, found = _collect_rows(state, back_begin, end, floor, buffer_score, buffer_ordinal, found, keep)
    found = finish(buffer_score, buffer_ordinal, found, keep)
    return merge_in(score, ordinal, count, buffer_score, buffer_ordinal, found, keep)


@jit
def move_rows(old, new):
    """Bring the rows of one state's ring into another's empty, larger one. Its ladder is empty."""
    taken = old.cells[TAKEN]
    begin = max(old.cells[ORIGIN], taken - old.ring.shape[0])
    for ordinal in range(begin, taken):
        new.ring[ordinal & (new.ring.shape[0] - 1)] = old.ring[ordinal & (old.ring.shape[0] - 1)]
    new.cells[ORIGIN] = begin
    new.cells[RANKED] = -(-begin // new.cells[LEAF]) * new.cells[LEAF]


@jit
def rows_needed(windows, reach, last):
    """Rows the ring must hold to answer `windows` and then, the rows up to `last` taken, whatever comes: the widest of them,
    and all rows from the first row of any query's last window on. `reach` holds those first rows and is moved on."""
    widest = 0
    for at in range(windows.query.shape[0]):
        reach[windows.query[at]] = windows.first[at]
        widest = max(widest, windows.end[at] - windows.first[at])
    return max(widest, last - reach.min())

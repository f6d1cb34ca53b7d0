"""MinTopK's super list: candidates in rank order, and for every future window a pointer to the last of its predicted top-k.

Let R_w be the predicted result set of window w: the best k of the rows held that window w will still hold. All rows held
belong to the window being answered (`CURRENT`), and rows leave in the order they came, so a row's place in R_w is decided
by its `leave` alone, and three facts carry everything below:

- R_w draws on fewer rows as w grows: the pointers' rows never rank higher for a later window, full windows (those with k
  rows) come before the others, and a new row enters all windows from some number on.
- A row is in R_w for the last windows of its life or for none: it is a candidate while it is in R_(leave-1).
- A window has k rows exactly if the k-th newest row with a score leaves after it: `recent` holds those k `leave`s.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.best import collect, finish
from skyband.kernels.jit import jit
from skyband.kernels.order import outranks
from skyband.kernels.tops import hand_out, hand_out_same, has_room

# places in SuperList.marks
CURRENT = 0  # number of the window being answered, or of the last one answered
TAKEN = 1  # ordinal after the last row taken
HELD = 2  # candidates in the list
FREE = 3  # first node of the free list, NONE if the pool is used up
UNFILLED = 4  # number of the first window with fewer than k rows
NEWEST = 5  # place in `recent` of the newest row's leave
CHANGED = 6  # 1: the current window's top-k is not the one handed out last
MARKS = 7

SHORT = 16  # runs of pointers up to this length are turned one by one
ENDS = 0  # this node is both ends of the list: better than the best, worse than the worst
NONE = -1
NEVER = np.iinfo(np.int64).max  # to be compared with window numbers: their difference may be an overflow
LONG_AGO = np.iinfo(np.int64).min


class SuperList(NamedTuple):
    """Nodes of a doubly linked list, best first, in a pool; windows in rings, window w in the place w & (ring size - 1)."""

    score: np.ndarray  # float64 [nodes]
    ordinal: np.ndarray  # int64 [nodes]
    leave: np.ndarray  # int64 [nodes]: number of the first window that no longer holds the row
    better: np.ndarray  # int32 [nodes]
    worse: np.ndarray  # int32 [nodes]; in a free node: the next free one
    bound: np.ndarray  # int32 [ring]: the node of the last of R_w, for CURRENT <= w < UNFILLED (the papers' lbp)
    leaving: np.ndarray  # int32 [ring]: candidates whose leave is w
    recent: np.ndarray  # int64 [k]: leaves of the newest k rows with a score
    marks: np.ndarray  # int64 [MARKS]


@jit
def _unlink(leave, better, worse, leaving, marks, node):
    """Take a candidate out of the list and give its node back to the pool."""
    leaving[leave[node] & (leaving.shape[0] - 1)] -= 1
    above, below = better[node], worse[node]
    worse[above] = below
    better[below] = above
    worse[node] = marks[FREE]
    marks[FREE] = node
    marks[HELD] -= 1


@jit
def _move_to(superlist, number):
    """Make `number` the current window: remove the candidates that have left. They are found from the best on, and
    when windows go by one by one all of them are among the best k."""
    marks, leaving = superlist.marks, superlist.leaving
    ring = leaving.shape[0]
    gone = 0
    for w in range(marks[CURRENT] + 1, min(number, marks[CURRENT] + ring) + 1):
        gone += leaving[w & (ring - 1)]
    marks[CURRENT] = number
    if gone > 0:
        marks[CHANGED] = 1
    leave, better, worse = superlist.leave, superlist.better, superlist.worse
    node = worse[ENDS]
    while gone > 0:
        following = worse[node]
        if leave[node] <= number:
            _unlink(leave, better, worse, leaving, marks, node)
            gone -= 1
        node = following


@jit
def _first_entered(bound, scores, ordinals, current, full_stop, score, ordinal):
    """The first window from the current one on whose predicted top-k the row enters; `full_stop` if no full one.

    Searched from the last full window backwards in doubling steps: most rows enter few windows.
    """
    mask = bound.shape[0] - 1
    low, high = current, full_stop  # the row enters every full window from high on, and none before low
    step = 1
    while low < high:
        probe = max(high - step, low)
        node = bound[probe & mask]
        if not outranks(score, ordinal, scores[node], ordinals[node]):
            low = probe + 1
            break
        high = probe
        step *= 2
    while low < high:
        middle = low + ((high - low) >> 1)
        node = bound[middle & mask]
        if outranks(score, ordinal, scores[node], ordinals[node]):
            high = middle
        else:
            low = middle + 1
    return high


@jit
def _fill(block, node):
    for i in range(block.size):
        block[i] = node


@jit
def _replaced(bound, place, stop, node, replacement):
    """Turn the pointers bound[place:stop] from `node` to `replacement` as far as they are at `node`; returns how far.

    Pointers at one row are neighbours, so the last of a block tells of them all: long runs are filled by vectorized
    passes over blocks that double and then halve.
    """
    short = min(stop, place + SHORT)
    while place < short and bound[place] == node:
        bound[place] = replacement
        place += 1
    if place < short:
        return place
    length = SHORT
    while place + length <= stop and bound[place + length - 1] == node:
        _fill(bound[place : place + length], replacement)
        place += length
        length *= 2
    while length > 1:
        length //= 2
        if place + length <= stop and bound[place + length - 1] == node:
            _fill(bound[place : place + length], replacement)
            place += length
    return place


@jit
def _push_out(leave, better, worse, bound, leaving, marks, entered, full_stop):
    """In each full window a row has just entered, the last row falls out: its pointer moves to the next better row that
    the window will hold. A row that falls out of its last window is no candidate any more."""
    ring = bound.shape[0]
    window = entered
    while window < full_stop:  # once, or twice where the ring's end is crossed
        place = window & (ring - 1)
        shift = window - place  # window number of place 0
        run_stop = min(ring, full_stop - shift)
        while place < run_stop:
            node = bound[place]
            replacement = better[node]
            while place < run_stop and bound[place] == node:
                while leave[replacement] <= shift + place:
                    replacement = better[replacement]
                stop = min(shift + run_stop, leave[replacement]) - shift  # in this order: NEVER may be among them
                place = _replaced(bound, place, stop, node, replacement)
            if leave[node] == shift + place:
                _unlink(leave, better, worse, leaving, marks, node)
        window = shift + place


@jit
def _enter(superlist, score, ordinal, leaves):
    """Let a row of the newest pane into the windows whose predicted top-k it belongs to, up to the window `leaves`.
    False when there is none."""
    scores, ordinals, leave, marks = superlist.score, superlist.ordinal, superlist.leave, superlist.marks
    better, worse, bound, leaving = superlist.better, superlist.worse, superlist.bound, superlist.leaving
    mask = bound.shape[0] - 1
    current, unfilled = marks[CURRENT], marks[UNFILLED]
    full_stop = max(unfilled, current)
    entered = _first_entered(bound, scores, ordinals, current, full_stop, score, ordinal)
    if entered >= leaves:
        return False

    # its place lies between the pointers of the windows before `entered` and from there on: at most k steps up
    above = better[bound[entered & mask]] if entered < full_stop else better[ENDS]
    while above != ENDS and outranks(score, ordinal, scores[above], ordinals[above]):
        above = better[above]
    below = worse[above]
    node = marks[FREE]
    marks[FREE] = worse[node]
    marks[HELD] += 1
    scores[node], ordinals[node], leave[node] = score, ordinal, leaves
    better[node], worse[node] = above, below
    worse[above] = node
    better[below] = node
    leaving[leaves & mask] += 1

    _push_out(leave, better, worse, bound, leaving, marks, entered, full_stop)
    if entered == current:
        marks[CHANGED] = 1
    if unfilled < leaves:  # otherwise the newest k rows leave with this one already
        recent = superlist.recent
        newest = marks[NEWEST] + 1 if marks[NEWEST] + 1 < recent.shape[0] else 0
        recent[newest] = leaves
        marks[NEWEST] = newest
        marks[UNFILLED] = recent[newest + 1 if newest + 1 < recent.shape[0] else 0]
        # these have exactly k rows now, so the worst of all is their last
        for w in range(full_stop, max(full_stop, marks[UNFILLED])):
            bound[w & mask] = better[ENDS]
    return True


@jit
def _take_pane(superlist, scores, begin, stop, shift, leave, best_score, best_ordinal):
    """Take the rows scores[begin:stop], whose ordinals are their places plus `shift`: the best k of them, best first."""
    if stop - begin == 1:
        if scores[begin] == scores[begin]:
            _enter(superlist, scores[begin], begin + shift, leave)
        return
    k = superlist.recent.shape[0]
    _, count = collect(scores, begin, stop, shift, -np.inf, best_score, best_ordinal, 0, k)
    count = finish(best_score, best_ordinal, count, k)
    for i in range(count):
        if not _enter(superlist, best_score[i], best_ordinal[i], leave):
            break  # the others rank lower and leave with it


@jit
def _read(superlist, score, ordinal):
    """The predicted top-k of the current window: the first k candidates."""
    k = superlist.recent.shape[0]
    node = superlist.worse[ENDS]
    count = 0
    while node != ENDS and count < k:
        score[count], ordinal[count] = superlist.score[node], superlist.ordinal[node]
        count += 1
        node = superlist.worse[node]
    return count


@jit
def run(superlist, tops, begin, scores, windows, panes, start, used, results):
    """Take panes and answer windows from `start` on. Returns (windows answered, places of results used, nodes wanted)."""
    marks, leaving = superlist.marks, superlist.leaving
    k = superlist.recent.shape[0]
    score, ordinal = np.empty(2 * k), np.empty(2 * k, np.int64)
    last_row = begin + scores.shape[0]
    marks[TAKEN] = max(marks[TAKEN], begin)
    pane = np.searchsorted(panes.begin, marks[TAKEN], side="right") - 1
    for at in range(start, windows.query.shape[0]):
        if not has_room(results, used, k):
            return at, used, 0
        number, end = windows.number[at], windows.end[at]
        if number == marks[CURRENT] + 1 and leaving[number & (leaving.shape[0] - 1)] == 0:
            marks[CURRENT] = number  # nothing to let go of, as with most slides of one row
        elif number > marks[CURRENT]:
            _move_to(superlist, number)
        while marks[TAKEN] < end:
            pane_end = panes.begin[pane + 1] if pane + 1 < panes.begin.shape[0] else last_row
            stop = min(pane_end, end)
            if panes.leave[pane] > number:
                wanted = min(k, stop - marks[TAKEN])
                if marks[HELD] + wanted >= superlist.score.shape[0]:
                    return at, used, wanted
                _take_pane(superlist, scores, marks[TAKEN] - begin, stop - begin, begin, panes.leave[pane], score, ordinal)
            marks[TAKEN] = stop
            if stop == pane_end:
                pane += 1
        if marks[CHANGED] != 0:
            count = _read(superlist, score, ordinal)
            used = hand_out(tops, 0, results, at, used, windows.report[at], score, ordinal, count)
            marks[CHANGED] = 0
        else:
            hand_out_same(results, at)
    return windows.query.shape[0], used, 0

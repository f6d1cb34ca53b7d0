"""Windows of panes by two stacks: the best k of the newer panes by adding, those of the older panes by undoing.

Back: the sorted lists of the newest panes, and the best k of them all. Front: the older panes, of which only the best k
of those not yet gone are kept, with a log that tells how to make it the best k without the oldest pane.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.best import collect, finish, merge, shift_down
from skyband.kernels.jit import jit
from skyband.kernels.order import outranks
from skyband.kernels.tops import hand_out, hand_out_same, has_room

# places in Stacks.marks
TAKEN = 0  # ordinal after the last row taken
FRONT = 1  # rows in the front's best
BACK = 2  # rows in the back's best
LISTED = 3  # rows in the back's lists
PANES = 4  # panes in the back
ENTRIES = 5  # log: panes that changed the front's best
ENTERED = 6  # log: rows that entered it
EVICTED = 7  # log: rows that they pushed out of it
FRONT_LEAVE = 8  # the front is empty from this window on
OLDEST = 9  # oldest row of the answer handed out last
FRESH = 10  # 1: no answer has been handed out from this state
MARKS = 11

DONE, WANT_LISTS, WANT_LOG = 0, 1, 2  # why a run came back
NEVER = np.iinfo(np.int64).max
LONG_AGO = np.iinfo(np.int64).min


class Stacks(NamedTuple):
    """Both stacks. Panes without a ranked row are in neither."""

    front_score: np.ndarray  # float64 [k]: best of the front's panes still in the window, best first
    front_ordinal: np.ndarray  # int64 [k]
    back_score: np.ndarray  # float64 [k]: best of the back, best first
    back_ordinal: np.ndarray  # int64 [k]
    list_score: np.ndarray  # float64 [rows]: the back's panes one after the other, each best first
    list_ordinal: np.ndarray  # int64 [rows]
    pane_begin: np.ndarray  # int64 [panes]: where the pane's list begins
    pane_leave: np.ndarray  # int64 [panes]: number of the first window that does not hold it
    entry_leave: np.ndarray  # int64 [log]: leave of the pane, the oldest pane last
    entry_entered: np.ndarray  # int64 [log]: where its places begin in entered_at
    entry_evicted: np.ndarray  # int64 [log]: where its rows begin in evicted_*
    entered_at: np.ndarray  # int64 [log]: places in the front's best that it took, from the lowest ranked up
    evicted_score: np.ndarray  # float64 [log]: rows it pushed out, best first
    evicted_ordinal: np.ndarray  # int64 [log]
    marks: np.ndarray  # int64 [MARKS]


@jit
def _entering(best_score, best_ordinal, count, score, ordinal, rows):
    """How many of a sorted list get among the best k: as many as outrank whom they would push out. O(entering)."""
    k = best_score.shape[0]
    entering = 0
    while entering < min(rows, k):
        last = k - 1 - entering
        if last < count and not outranks(score[entering], ordinal[entering], best_score[last], best_ordinal[last]):
            break
        entering += 1
    return entering


@jit
def _insert(best_score, best_ordinal, count, score, ordinal):
    """Put one row that enters into the best k. Returns its place."""
    low, high = 0, min(count, best_score.shape[0] - 1)
    last = high
    while low < high:
        middle = (low + high) >> 1
        if outranks(score, ordinal, best_score[middle], best_ordinal[middle]):
            high = middle
        else:
            low = middle + 1
    shift_down(best_score, low, last, score)
    shift_down(best_ordinal, low, last, ordinal)
    return low


@jit
def _merge_in(best_score, best_ordinal, count, score, ordinal, entering, places):
    """Merge the first `entering` of a sorted list into the best k, from the bottom up; note their places in `places`
    unless that is empty. Returns the new count."""
    new_count = min(best_score.shape[0], count + entering)
    if entering == 1:
        place = _insert(best_score, best_ordinal, count, score[0], ordinal[0])
        if places.size > 0:
            places[0] = place
        return new_count
    old = new_count - entering - 1
    place = new_count - 1
    noted = 0
    for row in range(entering - 1, -1, -1):
        row_score, row_ordinal = score[row], ordinal[row]
        while old >= 0 and outranks(row_score, row_ordinal, best_score[old], best_ordinal[old]):
            best_score[place], best_ordinal[place] = best_score[old], best_ordinal[old]
            old -= 1
            place -= 1
        best_score[place], best_ordinal[place] = row_score, row_ordinal
        if places.size > 0:
            places[noted] = place
            noted += 1
        place -= 1
    return new_count


@jit
def _log_pane(stacks, begin, stop, leave):
    """Merge a pane's list into the front's best and log how to undo it. False when the log is full."""
    marks = stacks.marks
    score, ordinal = stacks.list_score[begin:stop], stacks.list_ordinal[begin:stop]
    count = marks[FRONT]
    entering = _entering(stacks.front_score, stacks.front_ordinal, count, score, ordinal, stop - begin)
    if entering == 0:
        return True
    entry, entered, evicted = marks[ENTRIES], marks[ENTERED], marks[EVICTED]
    if entered + entering > stacks.entered_at.shape[0]:
        return False
    stacks.entry_leave[entry], stacks.entry_entered[entry], stacks.entry_evicted[entry] = leave, entered, evicted
    for place in range(stacks.front_score.shape[0] - entering, count):
        stacks.evicted_score[evicted], stacks.evicted_ordinal[evicted] = stacks.front_score[place], stacks.front_ordinal[place]
        evicted += 1
    places = stacks.entered_at[entered : entered + entering]
    marks[FRONT] = _merge_in(stacks.front_score, stacks.front_ordinal, count, score, ordinal, entering, places)
    marks[ENTRIES], marks[ENTERED], marks[EVICTED] = entry + 1, entered + entering, evicted
    return True


@jit
def _move_up(target, source):
    for i in range(source.size):  # between views, counted from 0: this is vectorized
        target[i] = source[i]


@jit
def undo_pane(stacks):
    """Take the oldest logged pane's rows out of the front's best and put back those it pushed out. O(k)."""
    marks, score, ordinal = stacks.marks, stacks.front_score, stacks.front_ordinal
    entry = marks[ENTRIES] - 1
    entered, evicted = stacks.entry_entered[entry], stacks.entry_evicted[entry]
    entered_at = stacks.entered_at
    count = entered_at[marks[ENTERED] - 1]  # the highest ranked one was logged last
    for gone in range(marks[ENTERED] - 1, entered - 1, -1):
        begin = entered_at[gone] + 1
        stop = entered_at[gone - 1] if gone > entered else marks[FRONT]
        _move_up(score[count:], score[begin:stop])
        _move_up(ordinal[count:], ordinal[begin:stop])
        count += stop - begin
    for row in range(evicted, marks[EVICTED]):
        score[count], ordinal[count] = stacks.evicted_score[row], stacks.evicted_ordinal[row]
        count += 1
    marks[FRONT], marks[ENTRIES], marks[ENTERED], marks[EVICTED] = count, entry, entered, evicted


@jit
def _clear_front(stacks):
    marks = stacks.marks
    marks[FRONT] = marks[ENTRIES] = marks[ENTERED] = marks[EVICTED] = 0


@jit
def _flip(stacks, number):
    """Make the back's panes that window `number` holds the front, newest first. False when the log is too short."""
    marks = stacks.marks
    _clear_front(stacks)
    front_score, list_score = stacks.front_score, stacks.list_score
    pane_begin, pane_leave = stacks.pane_begin, stacks.pane_leave
    k = front_score.shape[0]
    stop = marks[LISTED]
    pane = marks[PANES] - 1
    while pane >= 0 and pane_leave[pane] > number:
        begin = pane_begin[pane]
        # most older panes do not rank; on equal scores the newer row, in the front already, wins
        ranks = marks[FRONT] < k or list_score[begin] > front_score[k - 1]
        if ranks and not _log_pane(stacks, begin, stop, pane_leave[pane]):
            return False
        stop = begin
        pane -= 1
    marks[FRONT_LEAVE] = stacks.pane_leave[marks[PANES] - 1]
    marks[BACK] = marks[LISTED] = marks[PANES] = 0
    return True


@jit
def _expire(stacks, number):
    """Let go of the panes that window `number` does not hold. False when the log is too short for a flip."""
    marks = stacks.marks
    if number < marks[FRONT_LEAVE]:
        while marks[ENTRIES] > 0 and stacks.entry_leave[marks[ENTRIES] - 1] <= number:
            undo_pane(stacks)
    elif marks[PANES] > 0 and stacks.pane_leave[0] <= number:
        return _flip(stacks, number)
    else:
        _clear_front(stacks)
    return True


@jit
def _higher(best, score):
    """The larger of two scores, either of which may be NaN for none."""
    return best if best >= score or score != score else score


@jit
def _push_single_rows(
    list_score, list_ordinal, pane_begin, pane_leave, back_score, back_ordinal, marks,
    scores, shift, begins, leaves, pane, row, stop,
):  # fmt: skip
    """Put panes of one row on the back, up to the first that is longer or the row `stop`. Returns the next pane, the
    next row and the best score, NaN if no row had one."""
    k = back_score.shape[0]
    listed, held, count = marks[LISTED], marks[PANES], marks[BACK]
    known = begins.shape[0]
    best = np.nan
    while row < stop and (row + 1 == stop or (pane + 1 < known and begins[pane + 1] == row + 1)):
        score = scores[row - shift]
        if score == score:
            list_score[listed], list_ordinal[listed] = score, row
            pane_begin[held], pane_leave[held] = listed, leaves[pane]
            listed += 1
            held += 1
            if count < k or score >= back_score[k - 1]:  # the newest row wins ties
                _insert(back_score, back_ordinal, count, score, row)
                count = min(count + 1, k)
            if not best >= score:
                best = score
        row += 1
        pane += 1
    marks[LISTED], marks[PANES], marks[BACK] = listed, held, count
    return pane, row, best


@jit
def _push_pane(stacks, scores, begin, stop, shift, leave):
    """Put the pane scores[begin:stop] on the back, reduced to its best k. Returns its best score, NaN if it has none."""
    marks = stacks.marks
    listed = marks[LISTED]
    k = stacks.back_score.shape[0]
    room = min(2 * k, stop - begin)  # twice what stays, as far as the pane has rows: `_lists_fit` left room for that
    score, ordinal = stacks.list_score[listed : listed + room], stacks.list_ordinal[listed : listed + room]
    _, count = collect(scores, begin, stop, shift, -np.inf, score, ordinal, 0, k)
    count = finish(score, ordinal, count, k)
    if count == 0:
        return np.nan
    pane = marks[PANES]
    stacks.pane_begin[pane], stacks.pane_leave[pane] = listed, leave
    marks[PANES] = pane + 1
    marks[LISTED] = listed + count
    entering = _entering(stacks.back_score, stacks.back_ordinal, marks[BACK], score, ordinal, count)
    if entering > 0:
        nowhere = stacks.entered_at[:0]
        marks[BACK] = _merge_in(stacks.back_score, stacks.back_ordinal, marks[BACK], score, ordinal, entering, nowhere)
    return score[0]


@jit
def run(stacks, tops, begin, scores, windows, panes, start, used, results):
    """Take panes and answer windows from `start` on. Returns (windows answered, places of results used, why it stopped).

    With slide 1 this loop turns once a row: what a window needs only now and then is in functions of its own, and the
    rest works on arrays, because handing over the whole state costs more than the work.
    """
    marks, entry_leave, pane_leave = stacks.marks, stacks.entry_leave, stacks.pane_leave
    list_score, list_ordinal, pane_begin = stacks.list_score, stacks.list_ordinal, stacks.pane_begin
    back_score, back_ordinal = stacks.back_score, stacks.back_ordinal
    begins, leaves, known = panes.begin, panes.leave, panes.begin.shape[0]
    k = back_score.shape[0]
    score, ordinal = np.empty(k), np.empty(k, np.int64)
    row = max(marks[TAKEN], begin)
    pane = max(np.searchsorted(begins, row, side="right") - 1, 0)
    for at in range(start, windows.query.shape[0]):
        if not has_room(results, used, k):
            return at, used, DONE
        number, end = windows.number[at], windows.end[at]
        front_gone = marks[ENTRIES] > 0 and entry_leave[marks[ENTRIES] - 1] <= number
        back_gone = marks[PANES] > 0 and pane_leave[0] <= number
        if (front_gone or back_gone) and not _expire(stacks, number):
            return at, used, WANT_LOG

        while row < end and leaves[pane] <= number:  # panes that no window still to come holds
            pane += 1
            row = min(begins[pane], end) if pane < known else end
        pane_stop = pane + 1
        while pane_stop < known and begins[pane_stop] < end:
            pane_stop += 1
        # a pane's list is its best k, and up to 2k while it is made
        rows = min(end - row, (pane_stop - pane + 1) * k)
        if marks[LISTED] + rows > list_score.shape[0] or marks[PANES] + pane_stop - pane > pane_leave.shape[0]:
            marks[TAKEN] = row
            return at, used, WANT_LISTS
        best = np.nan
        while row < end:
            pane, row, highest = _push_single_rows(
                list_score, list_ordinal, pane_begin, pane_leave, back_score, back_ordinal, marks,
                scores, begin, begins, leaves, pane, row, end,
            )  # fmt: skip
            best = _higher(best, highest)
            if row < end:
                stop = min(begins[pane + 1], end) if pane + 1 < known else end
                best = _higher(best, _push_pane(stacks, scores, row - begin, stop - begin, begin, leaves[pane]))
                row = stop
                pane += 1
        marks[TAKEN] = row

        floor = tops.score[0, k - 1] if tops.count[0] == k else -np.inf
        if marks[FRESH] != 0 or marks[OLDEST] < windows.first[at] or best >= floor:
            count = merge(
                stacks.front_score, stacks.front_ordinal, marks[FRONT], back_score, back_ordinal, marks[BACK], score, ordinal, k
            )
            used = hand_out(tops, 0, results, at, used, windows.report[at], score, ordinal, count)
            marks[OLDEST] = ordinal[:count].min() if count > 0 else NEVER
            marks[FRESH] = 0
        else:
            hand_out_same(results, at)
    return windows.query.shape[0], used, DONE

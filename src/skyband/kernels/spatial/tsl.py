"""Views of the best rows of the window, one a query, kept cycle by cycle and refilled from sorted lists.

A view holds the best k' rows, k <= k' <= k_max. All arrivals of a cycle are scored for every query and those that outrank
the view's last row enter it; then what has left the window leaves the views; views of fewer than k rows are filled by
the threshold algorithm: rows are taken from the lists, in turns, from the better end of each, until k_max are found that
outrank whatever is left. SIGMOD06 section 3.2 (TSL); the views are Yi et al.'s, ICDE 2003.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.jit import jit, lean
from skyband.kernels.ranked.pruning import ANSWERS_FULL, DONE, next_at_least
from skyband.kernels.spatial.code_blocks import takes_blocks, values_of
from skyband.kernels.spatial.questions import CODE, best_in_box, score_of, scores_of
from skyband.kernels.spatial.sorted_lists import HIGH, LOW, begin_walk, enter, keep, narrow, visit

# columns of Views.marks
BEGIN = 0  # where its rows begin
COUNT = 1  # how many there are: k'
MOST = 2  # how many there may be: k_max
K = 3
SINCE = 4  # ordinal of the first row the query sees
WHOLE = 5  # 1: it holds all rows of the window that have a score
OLDEST = 6  # no row of it is older
CHANGED = 7  # 1: its first k rows are not those of the last answer
MARKS = 8

# places in progress
CYCLE = 0  # which is being taken
STAGE = 1  # TAKING or ANSWERING
QUERY = 2  # the next to answer
REFILLS = 3  # how often a view was filled
PROGRESS = 4
TAKING, ANSWERING = 0, 1

BLOCK = 1024  # rows scored at a time: their scores stay in the fastest cache
FEW = 16  # rows up to this number are scored one by one


class Views(NamedTuple):
    """The views of all queries, one behind the other; rows of each best first."""

    score: np.ndarray  # float64
    ordinal: np.ndarray  # int64
    marks: np.ndarray  # int64 [queries, MARKS]


# arrivals, then expirations -----------------------------------------------------------------------------------


@lean
def _floor(views, q):
    """A row that scores less does not enter the view."""
    count = views.marks[q, COUNT]
    return -np.inf if views.marks[q, WHOLE] else views.score[views.marks[q, BEGIN] + count - 1]


@lean
def _offer(views, q, scores, start, length, begin):
    """Offer scores[start:length], of rows from the ordinal `begin` + start on, to a view."""
    marks = views.marks
    floor = _floor(views, q)
    at = next_at_least(scores, start, length, floor)
    while at < length:
        row = begin + at
        count = marks[q, COUNT]
        marks[q, OLDEST] = row if count == 0 else marks[q, OLDEST]
        marks[q, COUNT] = keep(views.score, views.ordinal, marks[q, BEGIN], count, marks[q, MOST], scores[at], row)
        if marks[q, COUNT] == marks[q, MOST]:
            marks[q, WHOLE] = 0  # from now on rows are dropped
        if count < marks[q, K] or scores[at] >= views.score[marks[q, BEGIN] + marks[q, K] - 1]:
            marks[q, CHANGED] = 1
        floor = _floor(views, q)
        at = next_at_least(scores, at + 1, length, floor)


@lean
def _score_few(questions, q, columns, start, length, here, scores):
    for i in range(length):
        for axis in range(here.shape[0]):
            here[axis] = columns[axis, start + i]
        scores[i] = score_of(questions, q, here)


@jit
def _arrive(views, questions, columns, start, length, begin, here, scores):
    """Score the rows columns[:, start : start + length] for every query, and let those that outrank its last enter."""
    for q in range(views.marks.shape[0]):
        for at in range(0, length, BLOCK):
            part = min(BLOCK, length - at)
            seen = min(max(views.marks[q, SINCE] - begin - at, 0), part)
            if questions.kind[q] == CODE and takes_blocks(questions.codes):
                values_of(questions.codes, q, questions.sign[q], columns.T, start + at, start + at + part, scores)
            elif part <= FEW or questions.kind[q] == CODE:
                _score_few(questions, q, columns, start + at, part, here, scores)
            else:
                scores_of(questions, q, columns, start + at, start + at + part, scores)
            _offer(views, q, scores, seen, part, begin + at)


@lean
def _expire(views, q, first):
    """Leave the rows before the ordinal `first` out of a view."""
    marks = views.marks
    if marks[q, COUNT] == 0 or marks[q, OLDEST] >= first:
        return
    begin, stop = marks[q, BEGIN], marks[q, BEGIN] + marks[q, COUNT]
    to, oldest = begin, views.ordinal[begin]
    for at in range(begin, stop):
        row = views.ordinal[at]
        if row >= first:
            oldest = min(oldest, row) if to > begin else row
            views.score[to], views.ordinal[to] = views.score[at], row
            to += 1
        elif at - begin < marks[q, K]:
            marks[q, CHANGED] = 1
    marks[q, COUNT], marks[q, OLDEST] = to - begin, oldest


# the threshold algorithm ----------------------------------------------------------------------------------------


@jit
def _best_left(questions, q, edge, out):
    """The best score, as computed, of a row whose attributes are all between the edges: in a sum every step is rounded
    monotonically. A weight of 0 adds nothing: at infinity the term is NaN, and such a row never ranks."""
    if questions.kind[q] == CODE:
        best = best_in_box(questions, q, edge[:, LOW].copy(), edge[:, HIGH].copy(), out)
        return best if best == best else -np.inf
    sign, total = questions.sign[q], -0.0
    for place in range(questions.used[q]):
        axis = questions.order[q, place]
        weight = questions.weight[q, axis]
        if weight != 0.0:
            total += weight * (edge[axis, HIGH] if sign * weight > 0.0 else edge[axis, LOW])
            if total != total:  # inf - inf: no row escapes the worse of the two, so that its score is that or NaN
                total = -sign * np.inf
    return sign * total


@jit
def _better_end(questions, q, axis, edge, out):
    """From which end of a list rows are taken: the one where the best row there can be would lie."""
    if questions.kind[q] != CODE:
        return HIGH if questions.sign[q] * questions.weight[q, axis] > 0.0 else LOW
    low, high = edge[axis, LOW], edge[axis, HIGH]
    edge[axis, HIGH] = low
    at_low = _best_left(questions, q, edge, out)
    edge[axis, LOW] = edge[axis, HIGH] = high
    at_high = _best_left(questions, q, edge, out)
    edge[axis, LOW] = low
    return HIGH if at_high >= at_low else LOW


@lean
def _lists_of(questions, q, walked):
    """Write down the lists that say something about query q's score; returns how many. A weight of 0 says nothing."""
    count = 0
    for place in range(questions.used[q]):
        axis = questions.order[q, place]
        if questions.weight[q, axis] != 0.0:
            walked[count] = axis
            count += 1
    if count == 0:  # any list will do
        walked[0], count = questions.order[q, 0], 1
    return count


@jit
def fill(views, questions, q, lists, first, span, edge, walked):
    """Make the best rows from the ordinal `first` on the view of query q.

    A row that is not yet seen is, in each attribute, among what is left of its list: the best score such a box can hold is
    the threshold. A row of equal score may be newer, so what is found has to be above it. Rows that have a score are in
    all lists: when one comes to its end, they have all been seen.
    """
    marks = views.marks
    first = max(first, marks[q, SINCE])
    begin, most = marks[q, BEGIN], marks[q, MOST]
    count = 0
    out = np.empty(3)
    begin_walk(lists, span, edge)
    lists_walked = _lists_of(questions, q, walked)
    left = True
    for place in range(lists_walked):
        left = left and lists.count[walked[place]].sum() > 0
    while left:
        for place in range(lists_walked):
            axis = walked[place]
            end = _better_end(questions, q, axis, edge, out)
            count = visit(lists, span, axis, end, questions, q, first, views.score, views.ordinal, begin, count, most)
            if not narrow(lists, span, axis, edge):
                left = False
                break
        if left and count == most and views.score[begin + count - 1] > _best_left(questions, q, edge, out):
            break
    marks[q, COUNT], marks[q, WHOLE], marks[q, CHANGED] = count, count < most, 1
    for at in range(begin, begin + count):
        marks[q, OLDEST] = views.ordinal[at] if at == begin else min(marks[q, OLDEST], views.ordinal[at])


# cycles -----------------------------------------------------------------------------------------------------------


@lean
def _answer(views, progress, answers):
    """Write down the window being answered for every view that changed. Returns DONE or ANSWERS_FULL."""
    marks = views.marks
    for q in range(progress[QUERY], marks.shape[0]):
        if not marks[q, CHANGED]:
            continue
        n, used = answers.used[0], answers.used[1]
        count = min(marks[q, COUNT], marks[q, K])
        if n == answers.query.shape[0] or used + count > answers.score.shape[0]:
            progress[QUERY] = q
            return ANSWERS_FULL
        for rank in range(count):
            answers.score[used + rank] = views.score[marks[q, BEGIN] + rank]
            answers.ordinal[used + rank] = views.ordinal[marks[q, BEGIN] + rank]
        answers.query[n], answers.window[n], answers.begin[n], answers.size[n] = q, progress[CYCLE], used, count
        answers.used[0], answers.used[1] = n + 1, used + count
        marks[q, CHANGED] = 0
    progress[QUERY] = 0
    return DONE


@jit
def run(views, questions, lists, columns, order, begin, first, end, limit, progress, answers):
    """Take the rows of one cycle after the other: cycle i ends with the window [first[i], end[i]). `order` sorts each
    attribute's values within a cycle, NaN last. The first row has the ordinal `begin`. Answers name a window by its place.
    Returns DONE or ANSWERS_FULL: then call it again."""
    dimensions, longest, start = columns.shape[0], 0, begin
    for cycle in range(end.shape[0]):
        longest = max(longest, end[cycle] - start)
        start = end[cycle]
    here, scores = np.empty(dimensions), np.empty(min(longest, BLOCK))
    sorted_value, sorted_ordinal = np.empty(longest), np.empty(longest, np.int64)
    span, walked = np.empty((dimensions, 2, 2), np.int64), np.empty(dimensions, np.int64)
    edge = np.empty((dimensions, 2))
    while progress[CYCLE] < end.shape[0]:
        cycle = progress[CYCLE]
        if progress[STAGE] == TAKING:
            since = end[cycle - 1] if cycle > 0 else begin
            start, length = since - begin, end[cycle] - since
            _arrive(views, questions, columns, start, length, since, here, scores)
            enter(lists, columns, order, start, length, since, first[cycle], limit, sorted_value, sorted_ordinal)
            for q in range(views.marks.shape[0]):
                _expire(views, q, first[cycle])
                if views.marks[q, COUNT] < views.marks[q, K] and not views.marks[q, WHOLE]:
                    fill(views, questions, q, lists, first[cycle], span, edge, walked)
                    progress[REFILLS] += 1
            progress[STAGE] = ANSWERING
        if _answer(views, progress, answers) != DONE:
            return ANSWERS_FULL
        progress[STAGE] = TAKING
        progress[CYCLE] += 1
    return DONE

"""Rows in, answers out: each new row is scored with the older ones, then the windows it completes are answered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.expression import BLOCK
from skyband.kernels.jit import lean
from skyband.kernels.pairs_band import (
    asks_for,
    drop_expired,
    offer_waiting,
    read_linear,
)
from skyband.kernels.pairs_boxes import BOXED, lay_again, merge_all, search
from skyband.kernels.pairs_score import fill, meet, promising
from skyband.kernels.pairs_state import (
    BAND,
    BY_TREE,
    DONE,
    FLOOR,
    FRESH_HEAD,
    FRESH_STOP,
    FRONT,
    HEAD,
    IDLE,
    LEAF,
    MUST_READ,
    NEXT,
    NOT_WATCHED,
    OUT_OF_ROOM,
    PENDING,
    REACH,
    RUN,
    SCAN,
    SCORED,
    SOFT,
    STOP,
    TAU,
    TREE,
    USED,
    WINDOW,
    YOUNG,
)
from skyband.kernels.pairs_tree import build, find
from skyband.kernels.pairs_young import settle
from skyband.kernels.tables import SAME

OLDER, NEWER = 1, 2  # bits of a row's sides: what it may be in a pair

RESULTS_FULL, BAND_FULL, TAIL_FULL, BOX_DUE = 1, OUT_OF_ROOM, 3, 4  # why `run` returns, or DONE


class PairResults(NamedTuple):
    """Answers of consecutive windows: window i fills size[i] ranks from begin[i] on, best first."""

    begin: np.ndarray  # int64 [windows]
    size: np.ndarray  # int64 [windows]: ranks, or SAME
    score: np.ndarray  # float64 [room]
    a: np.ndarray  # int64 [room]
    b: np.ndarray  # int64 [room]


@lean
def run(state, boxes, scorer, reverse, begin, older, newer, sides, windows, reach, results):
    """Take rows and answer windows, from where marks[NEXT] and marks[WINDOW] stand, until all is done or something is
    full; returns which. reach[w]: no window from w on holds rows before it."""
    marks = state.marks
    while True:
        w = marks[WINDOW]
        last = w == len(windows.query)
        stop = begin + older.shape[1] if last else windows.end[w]
        marks[REACH] = max(marks[REACH], reach[w])
        while marks[NEXT] < stop:
            code = _take(state, boxes, scorer, reverse, older, newer, sides, marks[NEXT] - begin)
            if code != DONE:
                return code
        if last:
            return DONE
        q, used = windows.query[w], marks[USED]
        if used + state.answers.k[q] > len(results.score):
            return RESULTS_FULL
        anew = _must_read(state.answers, q, windows.first[w])
        if anew:
            code = settle(state, boxes, reverse, 0)
            if code != DONE:
                return code
        changed = _answer(state, q, windows.first[w], anew)
        results.begin[w], results.size[w] = used, SAME
        if changed and windows.report[w]:
            marks[USED] = hand_out(state.answers, q, results, w, used)
        marks[WINDOW] = w + 1


@lean
def hand_out(answers, q, results, w, used):
    """Write a query's answer into the results of a window; returns the places used by then."""
    count = min(answers.count[q], answers.k[q])
    for r in range(count):
        results.score[used + r] = answers.score[q, r]
        results.a[used + r] = answers.a[q, r]
        results.b[used + r] = answers.b[q, r]
    results.size[w] = count
    return used + count


@lean
def _take(state, boxes, scorer, reverse, older, newer, sides, row):
    """Form the pairs of one row with older ones, then let it be an older one itself."""
    marks, tail, fresh = state.marks, state.tail, state.fresh
    if marks[SCAN] == IDLE:
        code = _get_ready(state, boxes, reverse)
        if code != DONE:
            return code
        if sides[row] & NEWER:
            meet(scorer, tail.columns, newer, row)
            marks[SCAN], marks[RUN], marks[LEAF] = marks[STOP], 0, 0
    if sides[row] & NEWER:
        code = _scan(state, boxes, scorer)
        if code == DONE and boxes.marks[BOXED]:
            code = search(state, boxes, scorer)
        if code != DONE:
            return code
        place = marks[FRESH_STOP]
        for j in range(newer.shape[0]):
            fresh.columns[j, place] = newer[j, row]
        fresh.ordinal[place] = marks[NEXT]
        marks[FRESH_STOP] = place + 1
    if sides[row] & OLDER:
        place = marks[STOP]
        for j in range(older.shape[0]):
            tail.columns[j, place] = older[j, row]
        tail.ordinal[place], tail.early[place] = marks[NEXT], 0
        marks[STOP] = place + 1
    marks[NEXT] += 1
    marks[SCAN] = IDLE
    return DONE


@lean
def _get_ready(state, boxes, reverse):
    """Before a row comes: let pairs join, old rows go, young ones be settled, and see that there is room."""
    marks, tail = state.marks, state.tail
    if marks[PENDING] > marks[SOFT]:
        if marks[BAND] + marks[PENDING] > len(state.band.score):
            return BAND_FULL
        merge_all(state, boxes)
    while marks[HEAD] < marks[STOP] and tail.ordinal[marks[HEAD]] < marks[REACH]:
        marks[HEAD] += 1
    if marks[FRONT] < marks[HEAD]:
        marks[FRONT] = marks[HEAD]
        state.levels[TAU] = -np.inf
        lay_again(state, boxes)
    if marks[STOP] > marks[FRONT]:
        keep = marks[YOUNG]
        if _floor(state) == -np.inf:  # an answer takes up any pair: none can be put off
            keep = 0
        if marks[STOP] - marks[FRONT] >= 2 * keep:
            code = settle(state, boxes, reverse, keep)
            if code != DONE:
                return code
    if marks[FRESH_STOP] == len(state.fresh.ordinal):
        _move_fresh(state)
        if marks[FRESH_STOP] == len(state.fresh.ordinal):  # few rows may be older ones: the young ones reach far back
            code = settle(state, boxes, reverse, 0)
            if code != DONE:
                return code
            _move_fresh(state)
    if boxes.marks[BOXED] and marks[STOP] - marks[HEAD] >= 2 * boxes.marks[BOXED]:
        return BOX_DUE
    return TAIL_FULL if marks[STOP] == len(tail.ordinal) else DONE


@lean
def _floor(state):
    """Note the least score that any watched answer may take up: -inf where one takes any, inf where none is watched."""
    answers, floor = state.answers, np.inf
    for q in range(len(answers.k)):
        if answers.mark[q] != NOT_WATCHED:
            floor = min(floor, asks_for(answers, q))
    state.levels[FLOOR] = floor
    return floor


@lean
def _move_fresh(state):
    """Move the fresh rows that a young row may be paired with to the front of their arrays."""
    marks, fresh, kept = state.marks, state.fresh, 0
    front = state.tail.ordinal[marks[FRONT]] if marks[FRONT] < marks[STOP] else marks[NEXT]
    for place in range(marks[FRESH_HEAD], marks[FRESH_STOP]):
        if fresh.ordinal[place] > front:
            for j in range(fresh.columns.shape[0]):
                fresh.columns[j, kept] = fresh.columns[j, place]
            fresh.ordinal[kept] = fresh.ordinal[place]
            kept += 1
    marks[FRESH_HEAD], marks[FRESH_STOP] = 0, kept


@lean
def _scan(state, boxes, scorer):
    """Score the new row with the tail, from where marks[SCAN] stands; pairs that may matter wait. With young rows, only
    those that an answer may take up do."""
    marks, segments, tail, pending = state.marks, state.segments, state.tail, state.pending
    place, j = marks[SCAN], 0
    while place > marks[HEAD]:
        if place > marks[FRONT]:
            begin, limit = max(marks[FRONT], place - BLOCK), state.levels[FLOOR]
        elif place > segments.begin[0]:
            begin, limit = max(segments.begin[0], marks[HEAD]), segments.own[place - 1 - segments.begin[0]]  # the lowest
        else:
            while segments.begin[j] >= place:
                j += 1
            begin, limit = max(max(segments.begin[j], marks[HEAD]), place - BLOCK), segments.limit[j]
        found = promising(scorer, tail.columns, begin, place - begin, limit)
        if found:
            if marks[PENDING] + found > len(pending.score):
                marks[SCAN] = place
                if marks[BAND] + marks[PENDING] > len(state.band.score):
                    return BAND_FULL
                merge_all(state, boxes)
                j = 0
                continue
            fill(scorer, tail.columns, begin, place - begin)
            _let_wait(state, scorer, begin, place, limit)
        marks[SCORED] += place - begin
        place = begin
    marks[SCAN] = place
    return DONE


@lean
def _let_wait(state, scorer, begin, stop, limit):
    """Of the rows just scored, let the pairs wait that reach the limit, or where each has one of its own, that."""
    marks, ordinal, pending = state.marks, state.tail.ordinal, state.pending
    sign, newest, wait = scorer.sign[0], marks[NEXT], marks[PENDING]
    young, own = begin >= marks[FRONT], marks[FRONT] > begin >= state.segments.begin[0]
    for place in range(begin, stop):
        turned = sign * scorer.buffer[place - begin]
        if own:
            limit = state.segments.own[place - state.segments.begin[0]]
        if turned >= limit:
            pending.score[wait], pending.a[wait], pending.b[wait] = turned, ordinal[place], newest
            wait += 1
            if young:
                state.tail.early[place] = 1
    marks[PENDING] = wait


# -- answers -----------------------------------------------------------------------------------------------------


@lean
def _must_read(answers, q, first):
    """Let a query's answer go on to the window that begins at `first`. True when it has to be read anew: a watched one,
    when too few pairs are left of it; any other each time."""
    if answers.mark[q] == NOT_WATCHED:
        return True
    drop_expired(answers, q, first)
    return answers.changed[q] == MUST_READ


@lean
def _answer(state, q, first, anew):
    """Bring a query's answer up to date. True if it may have changed since the window before."""
    answers = state.answers
    watched = answers.mark[q] != NOT_WATCHED
    if anew:
        _read(state, q, first)
        answers.mark[q] = 0
    offer_waiting(state, q)
    if not watched:
        answers.mark[q] = NOT_WATCHED
    changed = anew or answers.changed[q] != 0
    answers.changed[q] = 0
    return changed


@lean
def _read(state, q, first):
    if state.marks[BY_TREE]:
        read_tree(state, q, first)
    else:
        read_linear(state, q, first)


@lean
def read_tree(state, q, first):
    """The best k pairs of the band with `a` from `first` on, by the tree, which is made where it is missing."""
    if not state.marks[TREE]:
        build(state)
    answers, band = state.answers, state.band
    count, oldest = find(state, answers.most[q], first), np.iinfo(np.int64).max
    for r in range(count):
        place = state.tree.found[r]
        answers.score[q, r], answers.a[q, r], answers.b[q, r] = band.score[place], band.a[place], band.b[place]
        oldest = min(oldest, band.a[place])
    answers.count[q], answers.oldest[q], answers.first[q] = count, oldest, first
    answers.bounded[q] = count == answers.most[q]

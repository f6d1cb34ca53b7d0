"""Rows in, answers out: each new row is scored with the older ones, then the windows it completes are answered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.expression import BLOCK
from skyband.kernels.jit import lean
from skyband.kernels.pairs_band import (
    BAND,
    BY_TREE,
    HEAD,
    IDLE,
    LAID,
    LEAF,
    NEXT,
    NOT_WATCHED,
    PENDING,
    REACH,
    RUN,
    SCAN,
    SCORED,
    SOFT,
    STOP,
    TREE,
    USED,
    WINDOW,
    drop_expired,
    offer_waiting,
    read_linear,
)
from skyband.kernels.pairs_boxes import BOXED, OUT_OF_ROOM, lay_again, merge_all, search
from skyband.kernels.pairs_score import fill, meet, promising, score
from skyband.kernels.pairs_tree import build, find
from skyband.kernels.tables import SAME

_MOST_UNLAID = 64  # newest rows without a limit, where hardly any pair joins
OLDER, NEWER = 1, 2  # bits of a row's sides: what it may be in a pair

DONE, RESULTS_FULL, BAND_FULL, TAIL_FULL, BOX_DUE = 0, 1, OUT_OF_ROOM, 3, 4  # why `run` returns


class PairResults(NamedTuple):
    """Answers of consecutive windows: window i fills size[i] ranks from begin[i] on, best first."""

    begin: np.ndarray  # int64 [windows]
    size: np.ndarray  # int64 [windows]: ranks, or SAME
    score: np.ndarray  # float64 [room]
    a: np.ndarray  # int64 [room]
    b: np.ndarray  # int64 [room]


@lean
def run(state, boxes, scorer, begin, older, newer, sides, windows, reach, results):
    """Take rows and answer windows, from where marks[NEXT] and marks[WINDOW] stand, until all is done or something is
    full; returns which. reach[w]: no window from w on holds rows before it."""
    marks = state.marks
    while True:
        w = marks[WINDOW]
        last = w == len(windows.query)
        stop = begin + older.shape[1] if last else windows.end[w]
        marks[REACH] = max(marks[REACH], reach[w])
        while marks[NEXT] < stop:
            code = _take(state, boxes, scorer, older, newer, sides, marks[NEXT] - begin)
            if code != DONE:
                return code
        if last:
            return DONE
        q, used = windows.query[w], marks[USED]
        if used + state.answers.k[q] > len(results.score):
            return RESULTS_FULL
        changed = answer(state, q, windows.first[w])
        results.begin[w], results.size[w] = used, SAME
        if changed and windows.report[w]:
            marks[USED] = hand_out(state.answers, q, results, w, used)
        marks[WINDOW] = w + 1


@lean
def hand_out(answers, q, results, w, used):
    """Write a query's answer into the results of a window; returns the places used by then."""
    count = answers.count[q]
    for r in range(count):
        results.score[used + r] = answers.score[q, r]
        results.a[used + r] = answers.a[q, r]
        results.b[used + r] = answers.b[q, r]
    results.size[w] = count
    return used + count


@lean
def _take(state, boxes, scorer, older, newer, sides, row):
    """Form the pairs of one row with older ones, then let it be an older one itself."""
    marks, tail = state.marks, state.tail
    if marks[SCAN] == IDLE:
        if marks[PENDING] > marks[SOFT]:
            if marks[BAND] + marks[PENDING] > len(state.band.score):
                return BAND_FULL
            merge_all(state, boxes)
        while marks[HEAD] < marks[STOP] and tail.ordinal[marks[HEAD]] < marks[REACH]:
            marks[HEAD] += 1
        if marks[STOP] - marks[LAID] > _MOST_UNLAID:
            lay_again(state, boxes)
        if boxes.marks[BOXED] and marks[STOP] - marks[HEAD] >= 2 * boxes.marks[BOXED]:
            return BOX_DUE
        if marks[STOP] == len(tail.ordinal):
            return TAIL_FULL
        if sides[row] & NEWER:
            meet(scorer, tail.columns, newer, row)
            marks[SCAN], marks[RUN], marks[LEAF] = marks[STOP], 0, 0
    if sides[row] & NEWER:
        code = _scan(state, boxes, scorer)
        if code != DONE:
            return code
        if boxes.marks[BOXED]:
            code = search(state, boxes, scorer)
            if code != DONE:
                return code
    if sides[row] & OLDER:
        place = marks[STOP]
        for j in range(older.shape[0]):
            tail.columns[j, place] = older[j, row]
        tail.ordinal[place] = marks[NEXT]
        marks[STOP] = place + 1
    marks[NEXT] += 1
    marks[SCAN] = IDLE
    return DONE


@lean
def _scan(state, boxes, scorer):
    """Score the new row with the tail, from where marks[SCAN] stands; pairs that may matter wait."""
    marks, segments, tail, pending = state.marks, state.segments, state.tail, state.pending
    sign, place, j = scorer.sign[0], marks[SCAN], 0
    while place > marks[HEAD]:
        if place > segments.begin[0]:
            begin = max(max(segments.begin[0], marks[HEAD]), place - BLOCK)
            if marks[PENDING] + place - begin > len(pending.score):
                marks[SCAN] = place
                if marks[BAND] + marks[PENDING] > len(state.band.score):
                    return BAND_FULL
                merge_all(state, boxes)
                continue
            _scan_young(state, scorer, begin, place)
            place = begin
            continue
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
            wait, newest = marks[PENDING], marks[NEXT]
            for i in range(place - begin):
                turned = sign * scorer.buffer[i]
                if turned >= limit:
                    pending.score[wait], pending.a[wait], pending.b[wait] = turned, tail.ordinal[begin + i], newest
                    wait += 1
            marks[PENDING] = wait
        marks[SCORED] += place - begin
        place = begin
    marks[SCAN] = place
    return DONE


@lean
def _scan_young(state, scorer, begin, place):
    """The same for a stretch of the newest rows, each against its own limit."""
    marks, young, ordinal, pending = state.marks, state.segments.young, state.tail.ordinal, state.pending
    sign, newest, wait = scorer.sign[0], marks[NEXT], marks[PENDING]
    score(scorer, state.tail.columns, begin, place - begin)
    first = state.segments.begin[0]
    for at in range(begin, min(place, marks[LAID])):
        turned = sign * scorer.buffer[at - begin]
        if turned >= young[at - first]:
            pending.score[wait], pending.a[wait], pending.b[wait] = turned, ordinal[at], newest
            wait += 1
    for at in range(max(begin, marks[LAID]), place):
        turned = sign * scorer.buffer[at - begin]
        if turned == turned:
            pending.score[wait], pending.a[wait], pending.b[wait] = turned, ordinal[at], newest
            wait += 1
    marks[PENDING] = wait
    marks[SCORED] += place - begin


@lean
def answer(state, q, first):
    """Bring a query's answer to the window that begins at `first`. True if it may have changed.

    A watched query loses what has left and is shown what is new; only when it has lost a pair of a full answer is it read
    anew. Any other is read each time.
    """
    answers = state.answers
    if answers.mark[q] == NOT_WATCHED:
        _read(state, q, first)
        answers.mark[q] = 0
        offer_waiting(state, q)
        answers.mark[q] = NOT_WATCHED
        return True
    full = answers.count[q] == answers.k[q]
    dropped = drop_expired(answers, q, first)
    if dropped and full:
        _read(state, q, first)
        answers.mark[q] = 0
    offer_waiting(state, q)
    changed = dropped or answers.changed[q] == 1
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
    count, oldest = find(state, answers.k[q], first), np.iinfo(np.int64).max
    for r in range(count):
        place = state.tree.found[r]
        answers.score[q, r], answers.a[q, r], answers.b[q, r] = band.score[place], band.a[place], band.b[place]
        oldest = min(oldest, band.a[place])
    answers.count[q], answers.oldest[q], answers.first[q] = count, oldest, first

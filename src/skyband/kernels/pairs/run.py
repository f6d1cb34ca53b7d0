"""Rows in, answers out: each new row is scored with the older ones, then the windows it completes are answered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.expression import BLOCK
from skyband.kernels.jit import lean, never_inlined, tiny
from skyband.kernels.pairs.band import (
    asks_for,
    drop_expired,
    offer_waiting,
    read_linear,
)
from skyband.kernels.pairs.boxes import BOXED, lay_again, merge_all, search
from skyband.kernels.pairs.coarse import any_near, coarsen, meet_coarsely
from skyband.kernels.pairs.distance import EXPRESSION, level_of
from skyband.kernels.pairs.score import APART, FINE, SEARCH, TURN, fill, meet, promising, reaching
from skyband.kernels.pairs.screen import is_clear
from skyband.kernels.pairs.state import (
    BAND,
    BY_TREE,
    DONE,
    FLOOR,
    FRONT,
    HEAD,
    IDLE,
    LEAF,
    MET,
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
from skyband.kernels.pairs.tree import build, find
from skyband.kernels.pairs.young import drop_oldest, note_met, scan_newest, settle
from skyband.kernels.pairs.zones import begin_zone, may_matter, widen
from skyband.kernels.tables import SAME

OLDER, NEWER = 1, 2  # bits of a row's sides: what it may be in a pair

RESULTS_FULL, BAND_FULL, TAIL_FULL, BOX_DUE, PAUSED = 1, OUT_OF_ROOM, 3, 4, 5  # why `run` returns, or DONE


class PairResults(NamedTuple):
    """Answers of consecutive windows: window i fills size[i] ranks from begin[i] on, best first."""

    begin: np.ndarray  # int64 [windows]
    size: np.ndarray  # int64 [windows]: ranks, or SAME
    score: np.ndarray  # float64 [room]
    a: np.ndarray  # int64 [room]
    b: np.ndarray  # int64 [room]


@lean
def run(state, boxes, scorer, screen, pause, begin, older, newer, sides, windows, reach, results):
    """Take rows and answer windows, from where marks[NEXT] and marks[WINDOW] stand, until all is done, something is
    full, or the row with the ordinal `pause` comes; returns which. reach[w]: no window from w on holds rows before it.

    Steps that every row takes are handed the arrays they need: all there is are 600 words, as costly as scoring 500 rows."""
    marks, tail, young, answers = state.marks, state.tail, state.young, state.answers
    while True:
        w = marks[WINDOW]
        last = w == len(windows.query)
        stop = begin + older.shape[1] if last else windows.end[w]
        marks[REACH] = max(marks[REACH], reach[w])
        while marks[NEXT] < stop:
            row = marks[NEXT] - begin
            if marks[NEXT] == pause:
                return PAUSED
            if marks[SCAN] == IDLE:
                while marks[HEAD] < marks[STOP] and tail.ordinal[marks[HEAD]] < marks[REACH]:
                    marks[HEAD] += 1
                # while an answer takes up any pair, none can be put off
                keep = marks[YOUNG] if _floor(answers, state.levels) > -np.inf else 0
                if _is_due(marks, tail.ordinal, young.b, boxes.marks, keep):
                    code = _get_ready(state, boxes, keep)
                    if code != DONE:
                        return code
                if sides[row] & NEWER:
                    meet(scorer, tail.columns, newer, row)
                    meet_coarsely(scorer, tail.origin)
                    marks[SCAN], marks[RUN], marks[LEAF] = marks[STOP], 0, 0
            if sides[row] & NEWER:
                while _scan(marks, state.levels, state.segments, tail, young, state.pending, scorer, screen) == OUT_OF_ROOM:
                    if marks[BAND] + marks[PENDING] > len(state.band.score):
                        return BAND_FULL
                    merge_all(state, boxes)
                if boxes.marks[BOXED]:
                    code = search(state, boxes, scorer)
                    if code != DONE:
                        return code
            _append(marks, tail, young, older, sides[row], row)
        if last:
            return DONE
        q, used = windows.query[w], marks[USED]
        if used + answers.k[q] > len(results.score):
            return RESULTS_FULL
        watched, anew = answers.mark[q] != NOT_WATCHED, _must_read(answers, q, windows.first[w])
        if anew:
            code = settle(state, boxes, 0)
            if code != DONE:
                return code
            _read(state, q, windows.first[w])
        if answers.mark[q] != marks[PENDING]:
            offer_waiting(answers, state.pending, state.shown, marks, state.levels, q)
        if not watched:
            answers.mark[q] = NOT_WATCHED
        results.begin[w], results.size[w] = used, SAME
        if (anew or answers.changed[q] != 0) and windows.report[w]:
            marks[USED] = hand_out(answers, q, results, w, used)
        answers.changed[q] = 0
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


@tiny
def _append(marks, tail, young, older, side, row):
    """Let a row that has been paired with older ones be one itself."""
    if side & NEWER:
        note_met(marks, young)
    if side & OLDER:
        place = marks[STOP]
        for j in range(older.shape[0]):
            tail.columns[j, place] = older[j, row]
        tail.ordinal[place] = marks[NEXT]
        low, high = tail.low[place // BLOCK], tail.high[place // BLOCK]
        if place % BLOCK == 0:
            begin_zone(low, high)
        widen(low, high, tail.columns, place)
        coarsen(tail, place)
        marks[STOP] = place + 1
    marks[NEXT] += 1
    marks[SCAN] = IDLE


@tiny
def _is_due(marks, ordinal, met, boxed, keep):
    """Is there anything to do before a row comes? Handing over all there is costs as much as scoring hundreds of rows."""
    due = marks[PENDING] > marks[SOFT] or marks[FRONT] < marks[HEAD] or marks[STOP] == len(ordinal)
    due |= marks[STOP] > marks[FRONT] and marks[STOP] - marks[FRONT] >= 2 * keep
    return due or marks[MET] == len(met) or (boxed[BOXED] and marks[STOP] - marks[HEAD] >= 2 * boxed[BOXED])


@lean
def _get_ready(state, boxes, keep):
    """Before a row comes: let pairs join, rows that have left be forgotten, young ones be settled until `keep` are left, and
    see that there is room."""
    never_inlined()
    marks, tail = state.marks, state.tail
    if marks[PENDING] > marks[SOFT]:
        if marks[BAND] + marks[PENDING] > len(state.band.score):
            return BAND_FULL
        merge_all(state, boxes)
    if marks[FRONT] < marks[HEAD]:
        drop_oldest(marks, state.young, marks[HEAD] - marks[FRONT])
        state.levels[TAU] = -np.inf
        lay_again(state, boxes)
    if marks[STOP] > marks[FRONT] and marks[STOP] - marks[FRONT] >= 2 * keep:
        code = settle(state, boxes, keep)
        if code != DONE:
            return code
    if marks[MET] == len(state.young.b):  # few rows may be older ones: the young ones reach far back
        code = settle(state, boxes, 0)
        if code != DONE:
            return code
    if boxes.marks[BOXED] and marks[STOP] - marks[HEAD] >= 2 * boxes.marks[BOXED]:
        return BOX_DUE
    return TAIL_FULL if marks[STOP] == len(tail.ordinal) else DONE


@tiny
def _floor(answers, levels):
    """Note the least score that any watched answer may take up: -inf where one takes any, inf where none is watched."""
    floor = np.inf
    for q in range(len(answers.k)):
        if answers.mark[q] != NOT_WATCHED:
            floor = min(floor, asks_for(answers, q))
    levels[FLOOR] = floor
    return floor


@tiny
def _scan(marks, levels, segments, tail, young, pending, scorer, screen):
    """Score the new row with the tail, from where marks[SCAN] stands; pairs that may matter wait. After the newest rows, each
    segment has one limit. OUT_OF_ROOM when no more may wait."""
    search, sign = scorer.marks[SEARCH], scorer.sign[APART]
    place, j, fine = marks[SCAN], 1, marks[STOP]  # down to `fine` in small steps: a score reaches the limit somewhere
    if place > segments.begin[0] and place > marks[HEAD]:
        begin = scan_newest(marks, levels, segments, tail, young, pending, scorer)
        if begin < 0:
            return OUT_OF_ROOM
        marks[SCORED] += place - begin
        place = begin
    if place > marks[HEAD] and not may_matter(scorer, segments.low[0], segments.high[0], segments.limit[0]):
        place = marks[HEAD]
    while place > marks[HEAD]:
        while segments.begin[j] >= place:
            j += 1
        begin, limit = max(segments.begin[j], marks[HEAD]), segments.limit[j]
        if not may_matter(scorer, segments.low[j], segments.high[j], limit):
            place = begin
            continue
        if is_clear(screen.marks, screen.limit, screen.hits, marks[NEXT], begin, place, limit):
            hit = False
        elif search == EXPRESSION:
            hit = promising(scorer, tail.columns, begin, place - begin, limit)
        else:
            if place > fine:
                begin = max(begin, place - FINE)
            hit = any_near(search, tail, begin, place - begin, scorer, level_of(search, scorer.shape, sign, limit))
            if hit and place - begin > FINE:
                fine = begin
                continue
        if hit and not _let_wait(marks, tail, pending, scorer, begin, place, limit):
            marks[SCAN] = place
            return OUT_OF_ROOM
        marks[SCORED] += place - begin
        place = begin
    marks[SCAN] = place
    return DONE


@lean
def _let_wait(marks, tail, pending, scorer, begin, stop, limit):
    """Of these rows, at most a block, let the pairs wait that reach the limit. False, and none waits, when there is no room for
    them."""
    never_inlined()
    fill(scorer, tail.columns, begin, stop - begin)
    found = reaching(scorer.sign[TURN], scorer.buffer, scorer.hits, stop - begin, limit)
    wait = marks[PENDING]
    if wait + found > len(pending.score):
        return False
    for hit in scorer.hits[:found]:
        pending.score[wait], pending.b[wait] = scorer.sign[TURN] * scorer.buffer[hit], marks[NEXT]
        pending.a[wait] = tail.ordinal[begin + hit]
        wait += 1
    marks[PENDING] = wait
    return True


# -- answers -----------------------------------------------------------------------------------------------------


@tiny
def _must_read(answers, q, first):
    """Let a query's answer go on to the window that begins at `first`. True when it has to be read anew: a watched one,
    when too few pairs are left of it; any other each time."""
    if answers.mark[q] == NOT_WATCHED:
        return True
    drop_expired(answers, q, first)
    return answers.changed[q] == MUST_READ


@lean
def _read(state, q, first):
    if state.marks[BY_TREE]:
        read_tree(state, q, first)
    else:
        read_linear(state, q, first)
    state.answers.mark[q] = 0


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

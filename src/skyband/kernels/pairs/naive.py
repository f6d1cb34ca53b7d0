"""The naive rival: of each row the K best pairs with older rows, all of them in one sorted list."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.expression import BLOCK
from skyband.kernels.jit import lean
from skyband.kernels.pairs.run import NEWER, OLDER, RESULTS_FULL, TAIL_FULL, hand_out
from skyband.kernels.pairs.score import meet, score
from skyband.kernels.pairs.state import DONE, Answers, Pairs, Tail, above
from skyband.kernels.tables import SAME

# places in marks
K, HEAD, STOP, LISTED, NEXT, REACH, WINDOW, USED = range(8)
MARKS = 8


class Naive(NamedTuple):
    """Rows in the places [HEAD, STOP): every row, as each has a list."""

    tail: Tail  # of the older row's columns
    newer: np.ndarray  # float64 [newer columns, room]
    sides: np.ndarray  # uint8 [room]
    best: Pairs  # [room, K]: the best pairs of the row at a place with older rows; `b` is unused
    count: np.ndarray  # int64 [room]: how many
    pairs: Pairs  # [room * K]: all of them, sorted
    answers: Answers
    marks: np.ndarray  # int64 [MARKS]


@lean
def run(state, scorer, begin, older, newer, sides, windows, reach, results):
    """As `pairs_run.run`."""
    marks = state.marks
    while True:
        w = marks[WINDOW]
        last = w == len(windows.query)
        stop = begin + older.shape[1] if last else windows.end[w]
        if marks[REACH] < reach[w]:
            marks[REACH] = reach[w]
            _expire(state, scorer)
        while marks[NEXT] < stop:
            row = marks[NEXT] - begin
            if marks[STOP] == len(state.count):
                return TAIL_FULL
            place = marks[STOP]
            while marks[HEAD] < place and state.tail.ordinal[marks[HEAD]] < marks[REACH]:
                marks[HEAD] += 1
            for j in range(older.shape[0]):
                state.tail.columns[j, place] = older[j, row]
            for j in range(newer.shape[0]):
                state.newer[j, place] = newer[j, row]
            state.tail.ordinal[place], state.sides[place] = marks[NEXT], sides[row]
            _find_best(state, scorer, place)
            for i in range(state.count[place]):
                _insert(state, state.best.score[place, i], state.best.a[place, i], marks[NEXT])
            marks[STOP] = place + 1
            marks[NEXT] += 1
        if last:
            return DONE
        q, used = windows.query[w], marks[USED]
        if used + state.answers.k[q] > len(results.score):
            return RESULTS_FULL
        _read(state, q, windows.first[w])
        results.begin[w], results.size[w] = used, SAME
        if windows.report[w]:
            marks[USED] = hand_out(state.answers, q, results, w, used)
        marks[WINDOW] = w + 1


@lean
def _find_best(state, scorer, place):
    """Score the row at `place` with all older ones and keep the K best pairs."""
    marks, tail, count = state.marks, state.tail, 0
    scores, partners, k = state.best.score[place], state.best.a[place], marks[K]
    if state.sides[place] & NEWER:
        meet(scorer, tail.columns, state.newer, place)
        for begin in range(marks[HEAD], place, BLOCK):
            rows = min(BLOCK, place - begin)
            score(scorer, tail.columns, begin, rows)
            for i in range(rows):
                turned, a = scorer.sign[0] * scorer.buffer[i], tail.ordinal[begin + i]
                if turned != turned or not state.sides[begin + i] & OLDER:
                    continue
                if count == k and turned < scores[k - 1]:
                    continue
                at = count if count < k else k - 1  # rows come from the oldest on: of equal scores the newer goes first
                while at > 0 and scores[at - 1] <= turned:
                    scores[at], partners[at] = scores[at - 1], partners[at - 1]
                    at -= 1
                scores[at], partners[at] = turned, a
                count = min(count + 1, k)
    state.count[place] = count


@lean
def _insert(state, turned, a, b):
    pairs, marks = state.pairs, state.marks
    at = marks[LISTED]
    while at > 0 and above(turned, a, b, pairs.score[at - 1], pairs.a[at - 1], pairs.b[at - 1]):
        pairs.score[at], pairs.a[at], pairs.b[at] = pairs.score[at - 1], pairs.a[at - 1], pairs.b[at - 1]
        at -= 1
    pairs.score[at], pairs.a[at], pairs.b[at] = turned, a, b
    marks[LISTED] += 1


@lean
def _expire(state, scorer):
    """Delete the pairs of rows that have left; every row that was paired with one finds its best pairs anew."""
    marks, tail, pairs, reach = state.marks, state.tail, state.pairs, state.marks[REACH]
    while marks[HEAD] < marks[STOP] and tail.ordinal[marks[HEAD]] < reach:
        marks[HEAD] += 1
    kept = 0
    for at in range(marks[LISTED]):
        if pairs.a[at] >= reach:
            pairs.score[kept], pairs.a[kept], pairs.b[kept] = pairs.score[at], pairs.a[at], pairs.b[at]
            kept += 1
    marks[LISTED] = kept
    for place in range(marks[HEAD], marks[STOP]):
        left, full = False, state.count[place] == marks[K]
        for i in range(state.count[place]):
            left |= state.best.a[place, i] < reach
        if not left:
            continue
        still = 0
        for i in range(state.count[place]):
            still += state.best.a[place, i] >= reach
        _find_best(state, scorer, place)
        if not full:
            continue  # no pair was left out before
        for i in range(still, state.count[place]):  # the others are in the list already
            _insert(state, state.best.score[place, i], state.best.a[place, i], tail.ordinal[place])


@lean
def _read(state, q, first):
    """The best k pairs with `a` from `first` on."""
    answers, pairs, count = state.answers, state.pairs, 0
    for at in range(state.marks[LISTED]):
        if count == answers.k[q]:
            break
        if pairs.a[at] >= first:
            answers.score[q, count], answers.a[q, count], answers.b[q, count] = pairs.score[at], pairs.a[at], pairs.b[at]
            count += 1
    answers.count[q], answers.first[q] = count, first

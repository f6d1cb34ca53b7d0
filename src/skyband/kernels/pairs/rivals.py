"""What the K-skyband of pairs is measured against: scores alone (supreme), and dominance without a staircase (basic)."""

from __future__ import annotations

from skyband.kernels.expression import BLOCK
from skyband.kernels.jit import lean
from skyband.kernels.pairs.band import read_linear
from skyband.kernels.pairs.run import BAND_FULL, NEWER, OLDER, RESULTS_FULL, TAIL_FULL, hand_out, read_tree
from skyband.kernels.pairs.score import meet, score
from skyband.kernels.pairs.state import BAND, DONE, FRONT, HEAD, IDLE, NEXT, REACH, SCAN, SCORED, STOP, USED, WINDOW, K, above
from skyband.kernels.tables import SAME


@lean
def run(state, basic, scorer, begin, older, newer, sides, windows, reach, results):
    """As `pairs_run.run`, but every pair is scored and, where `basic`, held against the band by itself; otherwise no pair
    is kept and no window has an answer."""
    marks = state.marks
    while True:
        w = marks[WINDOW]
        last = w == len(windows.query)
        stop = begin + older.shape[1] if last else windows.end[w]
        if marks[REACH] < reach[w]:
            marks[REACH] = reach[w]
            if basic:
                _drop_expired(state)
        while marks[NEXT] < stop:
            code = _take(state, basic, scorer, older, newer, sides, marks[NEXT] - begin)
            if code != DONE:
                return code
        if last:
            return DONE
        q, used = windows.query[w], marks[USED]
        results.begin[w], results.size[w] = used, SAME
        if basic:
            if used + state.answers.k[q] > len(results.score):
                return RESULTS_FULL
            read_linear(state, q, windows.first[w])
            if windows.report[w]:
                marks[USED] = hand_out(state.answers, q, results, w, used)
        marks[WINDOW] = w + 1


@lean
def _take(state, basic, scorer, older, newer, sides, row):
    marks, tail = state.marks, state.tail
    if marks[SCAN] == IDLE:
        while marks[HEAD] < marks[STOP] and tail.ordinal[marks[HEAD]] < marks[REACH]:
            marks[HEAD] += 1
        if marks[STOP] == len(tail.ordinal):
            return TAIL_FULL
        if sides[row] & NEWER:
            meet(scorer, tail.columns, newer, row)
            marks[SCAN] = marks[STOP]
    if sides[row] & NEWER:
        place = marks[SCAN]
        while place > marks[HEAD]:
            begin = max(marks[HEAD], place - BLOCK)
            if basic and marks[BAND] + place - begin > len(state.band.score):
                marks[SCAN] = place
                return BAND_FULL
            score(scorer, tail.columns, begin, place - begin)
            if basic:
                sign = scorer.sign[0]
                for i in range(place - begin):
                    _hold_against(state, sign * scorer.buffer[i], tail.ordinal[begin + i], marks[NEXT])
            marks[SCORED] += place - begin
            place = begin
        marks[SCAN] = place
    if sides[row] & OLDER:
        place = marks[STOP]
        for j in range(older.shape[0]):
            tail.columns[j, place] = older[j, row]
        tail.ordinal[place] = marks[NEXT]
        marks[STOP] = marks[FRONT] = place + 1
    marks[NEXT] += 1
    marks[SCAN] = IDLE
    return DONE


@lean
def _hold_against(state, turned, a, b):
    """Count a new pair's dominators down the band; with fewer than K it goes in, and counts as one of those below it.
    `kth` holds how many dominators each pair of the band has."""
    marks, band, dominators = state.marks, state.band, state.kth
    if turned != turned:
        return
    k, count, place, found = marks[K], marks[BAND], 0, 0
    while place < count and above(band.score[place], band.a[place], band.b[place], turned, a, b):
        found += band.a[place] >= a
        if found == k:
            return
        place += 1
    for i in range(count, place, -1):
        band.score[i], band.a[i], band.b[i] = band.score[i - 1], band.a[i - 1], band.b[i - 1]
        dominators[i] = dominators[i - 1]
    band.score[place], band.a[place], band.b[place], dominators[place] = turned, a, b, found
    kept = place + 1
    for i in range(place + 1, count + 1):
        dominators[i] += band.a[i] <= a
        if dominators[i] < k:
            band.score[kept], band.a[kept], band.b[kept] = band.score[i], band.a[i], band.b[i]
            dominators[kept] = dominators[i]
            kept += 1
    marks[BAND] = kept


@lean
def _drop_expired(state):
    """Take pairs whose older row has left out of the band; who remains was not dominated by them."""
    marks, band, kept = state.marks, state.band, 0
    for place in range(marks[BAND]):
        if band.a[place] >= marks[REACH]:
            band.score[kept], band.a[kept], band.b[kept] = band.score[place], band.a[place], band.b[place]
            state.kth[kept] = state.kth[place]
            kept += 1
    marks[BAND] = kept


@lean
def read_often(state, q, first, times, by_tree):
    """Read a query's answer many times, so that what is measured is the reading."""
    for _ in range(times):
        if by_tree:
            read_tree(state, q, first)
        else:
            read_linear(state, q, first)

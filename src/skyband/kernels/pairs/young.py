"""The newest rows: scored with a new row in one go, and settled when others have come after them.

A young row's pairs with newer rows join the band late, as most would not stay for long; see `kernels.pairs.band`. Their scores
are kept until then, so that none is computed twice.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.jit import lean, never_inlined, tiny
from skyband.kernels.pairs.band import limit_of, push, replace_least, step_of
from skyband.kernels.pairs.boxes import lay_again, merge_all
from skyband.kernels.pairs.score import FINE, TURN, score
from skyband.kernels.pairs.state import BAND, DONE, FLOOR, FRONT, GUESS, HEAD, MET, NEXT, OUT_OF_ROOM, PENDING, STOP, TAU, K

_FEW = 8  # rows whose pairs bar hardly any
_STRETCH = 32  # scores looked through one by one where some matter; slices, as places from 0 on are read in one go


@tiny
def scan_newest(marks, levels, segments, tail, young, pending, scorer):
    """Score the new row with the young rows and with those settled ones that have limits of their own. Pairs wait that reach
    these, or what an answer asks for. Returns the place of the oldest of these rows, or -1 when no more pairs may wait."""
    begin, first, stop = max(segments.begin[0], marks[HEAD]), marks[FRONT], marks[STOP]
    score(scorer, tail.columns, begin, stop - begin)
    sign, settled, wait = scorer.sign[TURN], first - begin, marks[PENDING]
    turned, scores = young.score[marks[MET], : stop - first], scorer.buffer[settled : stop - begin]
    some, floor = False, levels[FLOOR]
    for s in range(len(turned)):
        turned[s] = sign * scores[s]
        some |= turned[s] >= floor
    own = segments.own[begin - segments.begin[0] : first - segments.begin[0]]
    found = _reaching(sign, scorer.buffer[:settled], own, scorer.hits, 0)
    if wait + found + (len(turned) if some else 0) > len(pending.score):
        return -1
    for hit in scorer.hits[:found]:
        _let_wait(pending, wait, sign * scorer.buffer[hit], tail.ordinal[begin + hit], marks[NEXT])
        wait += 1
    if some:
        for s in range(len(turned)):
            if turned[s] >= floor:
                _let_wait(pending, wait, turned[s], tail.ordinal[first + s], marks[NEXT])
                turned[s] = np.nan
                wait += 1
    marks[PENDING] = wait
    return begin


@tiny
def _let_wait(pending, at, score, a, b):
    pending.score[at], pending.a[at], pending.b[at] = score, a, b


@tiny
def _reaching(sign, scores, limits, hits, found):
    """Note the places of the scores that, turned, reach each its limit, behind the first `found` of `hits`; how many these are
    then. In most stretches there is none."""
    for begin in range(0, len(scores), FINE):
        end = min(begin + FINE, len(scores))
        some, x, low = False, scores[begin:end], limits[begin:end]
        for i in range(end - begin):
            some |= sign * x[i] >= low[i]
        if some:
            for i in range(end - begin):
                hits[found] = begin + i
                found += sign * x[i] >= low[i]
    return found


@tiny
def note_met(marks, young):
    """The new row has met the young ones, before it becomes one itself."""
    if marks[STOP] > marks[FRONT]:
        young.b[marks[MET]], young.width[marks[MET]] = marks[NEXT], marks[STOP] - marks[FRONT]
        marks[MET] += 1


@lean
def drop_oldest(marks, young, count):
    """Let the oldest young rows be young no more, whatever is kept of their pairs."""
    kept = 0
    for i in range(marks[MET]):
        left = young.width[i] - count
        if left > 0:
            old, new = young.score[i, count : count + left], young.score[kept]
            for s in range(left):
                new[s] = old[s]
            young.b[kept], young.width[kept] = young.b[i], left
            kept += 1
    marks[MET] = kept
    marks[FRONT] += count


@lean
def settle(state, boxes, keep):
    """Settle the oldest young rows until `keep` are left, half of them at a time: the K best pairs of the other half bar
    most of theirs. Whatever was begun may be begun again."""
    never_inlined()
    marks = state.marks
    if marks[STOP] - marks[FRONT] <= keep:
        return DONE
    while marks[STOP] - marks[FRONT] > keep:
        held = marks[STOP] - marks[FRONT]
        left = max(keep, held >> 1)
        state.levels[TAU] = -np.inf
        if left > _FEW:
            state.levels[TAU] = _best_of_young(marks, state.levels, state.young, held - left)
        elif keep == 0:
            left = 0
        if not _settle_rows(state, boxes, held - left):
            return OUT_OF_ROOM
        drop_oldest(marks, state.young, held - left)
    lay_again(state, boxes)
    return DONE


@lean
def _best_of_young(marks, levels, young, first):
    """The K-th best score among the pairs of the young rows from the `first` on, or -inf. Twice as many are looked for, to know
    the next time from which score on to look: where fewer than K reach it then, all are looked at."""
    never_inlined()
    best, k = young.best, marks[K]
    held = _gather_best(marks, young, first, levels[GUESS])
    if held < k and levels[GUESS] > -np.inf:
        held = _gather_best(marks, young, first, -np.inf)
    levels[GUESS] = best[0] if held >= k else -np.inf
    while held > k:
        held -= 1
        replace_least(best, held, best[held])
    return best[0] if held == k else -np.inf


@lean
def _gather_best(marks, young, first, least):
    """Make a heap of the best scores that reach `least`; how many these are."""
    never_inlined()
    best, held = young.best, 0
    for i in range(marks[MET]):
        for begin in range(first, young.width[i], _STRETCH):
            scores, some = young.score[i, begin : min(begin + _STRETCH, young.width[i])], False
            for s in range(len(scores)):
                some |= scores[s] >= least
            if not some:
                continue
            for s in range(len(scores)):
                if scores[s] >= least:
                    if held < len(best):
                        push(best, held, scores[s])
                        held += 1
                    else:
                        replace_least(best, held, scores[s])
                    if held == len(best):
                        least = best[0]
    return held


@lean
def _settle_rows(state, boxes, count):
    """Let those pairs of the `count` oldest young rows wait that the limits for their ages let in. False when the band has no
    room."""
    never_inlined()
    marks, young, pending = state.marks, state.young, state.pending
    _lay_limits(state, count)
    for i in range(marks[MET]):
        width = min(young.width[i], count)
        for begin in range(0, width, _STRETCH):
            end, some = min(begin + _STRETCH, width), False
            scores, limits = young.score[i, begin:end], young.limit[begin:end]
            for s in range(len(scores)):
                some |= scores[s] >= limits[s]
            s = 0 if some else len(scores)
            while s < len(scores):
                if scores[s] >= limits[s]:
                    if marks[PENDING] == len(pending.score):
                        if marks[BAND] + marks[PENDING] > len(state.band.score):
                            return False
                        merge_all(state, boxes)
                        _lay_limits(state, count)
                        continue
                    a = state.tail.ordinal[marks[FRONT] + begin + s]
                    _let_wait(pending, marks[PENDING], scores[s], a, young.b[i])
                    scores[s] = np.nan
                    marks[PENDING] += 1
                s += 1
    return True


@lean
def _lay_limits(state, count):
    """Read the limits of the `count` oldest young rows off the staircase."""
    marks, ordinal = state.marks, state.tail.ordinal
    step = step_of(state, ordinal[marks[FRONT]])
    for s in range(count):
        a = ordinal[marks[FRONT] + s]
        while step < marks[BAND] and state.kth[step] < a:
            step += 1
        state.young.limit[s] = limit_of(state, a, step)

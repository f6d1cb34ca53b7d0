"""The K-skyband of pairs and its K-staircase: pairs wait unsorted, then join in one pass.

A pair is (score, a, b): its turned score and the ordinals of its older and its newer row. Pairs rank by score, then later
`a`, then later `b`. A pair lives as long as `a`, so that K pairs ranked above it whose `a` is no older bar it for good.

Of the newest rows, the *young* ones, pairs join the band late: most would not stay for long. A pair of a young row with a
newer one is looked at when it comes only as far as a watched answer may take it up; its score is kept. When the row has grown
old, it is *settled*: those of its pairs join that neither the staircase bars nor the K best pairs among the rows that are still
young. Whoever reads the band settles all first.

The staircase is kept beside the band: `kth` of a pair is the K-th latest `a` among the pairs down to it. A new pair is
dominated when the pair just above its place has a `kth` no older than its own `a`. As `kth` only rises down the band, the
older rows of a new row's pairs fall into segments, each with a limit that a score must reach to matter.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.expression import BLOCK
from skyband.kernels.jit import lean, tiny
from skyband.kernels.pairs.state import (
    BAND,
    BEST,
    BEST_FROM,
    BEST_UPTO,
    FRONT,
    HEAD,
    MERGES,
    MUST_READ,
    NONE,
    NOT_WATCHED,
    OWN,
    PENDING,
    REACH,
    SEEN_ALL,
    SEGMENTS,
    SOFT,
    SPAN,
    TAU,
    TREE,
    K,
    above,
)
from skyband.kernels.pairs.zones import begin_zone, join_zones, zone_of

_FEW = 32  # pairs that may wait before a small band is rebuilt


@lean
def merge(state):
    """Let the waiting pairs join: sort them, merge, drop whoever has K dominators or has left. The joint rebuild of
    skyband and staircase, O(pairs log K). The band must have room for all of them. Limits are to be read off it again."""
    marks, band, pending = state.marks, state.band, state.pending
    waiting = marks[PENDING]
    _offer_rest(state)
    _sort(pending, waiting)
    _offer_all(state)
    held, place = marks[BAND] - 1, marks[BAND] + waiting - 1
    coming = waiting - 1
    while coming >= 0:
        if held >= 0 and not above(
            band.score[held], band.a[held], band.b[held], pending.score[coming], pending.a[coming], pending.b[coming]
        ):
            band.score[place], band.a[place], band.b[place] = band.score[held], band.a[held], band.b[held]
            held -= 1
        else:
            band.score[place], band.a[place] = pending.score[coming], pending.a[coming]
            band.b[place] = pending.b[coming]
            coming -= 1
        place -= 1
    marks[PENDING] = 0
    marks[BEST_FROM] = marks[BEST_UPTO] = 0
    _stairs(state, marks[BAND] + waiting)
    marks[TREE] = 0
    marks[MERGES] += 1
    marks[SOFT] = min(marks[BAND] // 4 + _FEW, len(pending.score) - BLOCK)


@lean
def _stairs(state, total):
    """Walk the first `total` pairs in the order of rank; keep those with fewer than K dominators, note each step."""
    marks, band, heap, kth = state.marks, state.band, state.heap, state.kth
    k, reach, size, kept = marks[K], marks[REACH], 0, 0
    for place in range(total):
        a = band.a[place]
        if a < reach:
            continue
        if size < k:
            push(heap, size, a)
            size += 1
        elif heap[0] >= a:
            continue
        else:
            replace_least(heap, size, a)
        band.score[kept] = band.score[place]
        band.a[kept] = a
        band.b[kept] = band.b[place]
        kth[kept] = heap[0] if size == k else NONE
        kept += 1
    marks[BAND] = kept


@tiny
def push(heap, size, value):
    """Add to a heap whose least value comes first."""
    place = size
    while place > 0:
        parent = (place - 1) >> 1
        if heap[parent] <= value:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = value


@tiny
def replace_least(heap, size, value):
    """Put a value in the place of the least."""
    place, child = 0, 1
    while child < size:
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    heap[place] = value


@tiny
def _next(score):
    """What a pair must reach that would rank below one of this score if they tied."""
    return np.nextafter(score, np.inf) if score < np.inf else np.nan


@lean
def limit_of(state, newest, place):
    """The limit for pairs whose `a` is at most `newest`; `place` is the first in the band whose `kth` is no older."""
    tau = state.levels[TAU]  # a pair that ties with the K-th best of young rows ranks below it
    least = _next(tau) if tau > -np.inf else tau
    if place == state.marks[BAND]:
        return least
    score = state.band.score[place]
    if newest < state.band.a[place]:  # even a pair that ties with this one ranks below it
        score = _next(score)
    return least if score < least else score


@lean
def step_of(state, newest):
    """The first place in the band whose `kth` is no older than `newest`."""
    low, high = 0, state.marks[BAND]
    while low < high:
        middle = (low + high) >> 1
        if state.kth[middle] >= newest:
            high = middle
        else:
            low = middle + 1
    return low


@tiny
def _lined_up(place):
    """This place, or one shortly before it, at the beginning of a line of the cache: rows are then read faster."""
    return place & ~15


@lean
def lay_segments(state):
    """Cut the settled rows into segments, growing from the newest on, and read limits off the staircase.
    Returns the step it has come to."""
    marks, segments, ordinal = state.marks, state.segments, state.tail.ordinal
    front, step_down = marks[FRONT], marks[BAND]
    begin = max(_lined_up(front - marks[OWN] + 15), min(marks[HEAD], front))
    segments.begin[0], segments.limit[0] = begin, np.inf
    begin_zone(segments.low[0], segments.high[0])
    limit, same, tied = 0.0, -1, False  # the limit is that of the row after it where nothing has changed
    for place in range(front - 1, begin - 1, -1):
        newest = ordinal[place]
        while step_down > 0 and state.kth[step_down - 1] >= newest:
            step_down -= 1
        ties = step_down < marks[BAND] and newest < state.band.a[step_down]
        if same != step_down or tied != ties:
            limit, same, tied = limit_of(state, newest, step_down), step_down, ties
        segments.own[place - begin] = limit
    place, count, step = begin, 1, marks[OWN]
    while place > marks[HEAD]:
        newest, end = ordinal[place - 1], place
        while step_down > 0 and state.kth[step_down - 1] >= newest:
            step_down -= 1
        place = _lined_up(place - step)
        segments.begin[count], segments.limit[count] = place, limit_of(state, newest, step_down)
        if segments.limit[count] < segments.limit[0]:  # never true of NaN
            segments.limit[0] = segments.limit[count]
        zone_of(state.tail, max(place, marks[HEAD]), end, segments.low[count], segments.high[count])
        join_zones(segments.low[0], segments.high[0], segments.low[count], segments.high[count])
        count += 1
        step = min(2 * step, marks[SPAN])
    marks[SEGMENTS] = count
    return step_down


@lean
def _sort(pairs, count):
    """Sort the first `count` pairs by rank, in place: a heap for the worst case would cost more than these few need."""
    score, a, b = pairs.score, pairs.a, pairs.b
    gap = 1
    while gap < count:
        gap = 3 * gap + 1
    while gap > 1:  # Shell's sort: gaps 1, 4, 13, 40, ...
        gap //= 3
        for i in range(gap, count):
            s, p, q, j = score[i], a[i], b[i], i
            while j >= gap and above(s, p, q, score[j - gap], a[j - gap], b[j - gap]):
                score[j], a[j], b[j] = score[j - gap], a[j - gap], b[j - gap]
                j -= gap
            score[j], a[j], b[j] = s, p, q


# -- answers -----------------------------------------------------------------------------------------------------


@lean
def offer(answers, q, pairs, count):
    """Show a query the first `count` of some pairs, in the order of rank: it takes up those that rank in one walk up."""
    most, held, first, bounded = answers.most[q], answers.count[q], answers.first[q], answers.bounded[q]
    scores, older, newer = answers.score[q], answers.a[q], answers.b[q]
    upto, taken = 0, 0
    while upto < count:
        score, a, b = pairs.score[upto], pairs.a[upto], pairs.b[upto]
        if bounded and (held == 0 or not above(score, a, b, scores[held - 1], older[held - 1], newer[held - 1])):
            break
        taken += a >= first
        upto += 1
    rank, place, highest = held - 1, held + taken - 1, most
    for i in range(upto - 1, -1, -1):
        score, a, b = pairs.score[i], pairs.a[i], pairs.b[i]
        if a < first:
            continue
        while rank >= 0 and above(score, a, b, scores[rank], older[rank], newer[rank]):
            if place < most:
                scores[place], older[place], newer[place] = scores[rank], older[rank], newer[rank]
            rank, place = rank - 1, place - 1
        if place < most:
            scores[place], older[place], newer[place] = score, a, b
            answers.oldest[q] = min(answers.oldest[q], a)
        highest, place = place, place - 1
    answers.count[q] = min(held + taken, most)
    answers.bounded[q] |= answers.count[q] == most
    if highest < answers.k[q]:
        answers.changed[q] = max(answers.changed[q], 1)


@tiny
def asks_for(answers, q):
    """No pair of a lower score is taken up by a query."""
    count = answers.count[q]
    return answers.score[q, count - 1] if answers.bounded[q] and count > 0 else -np.inf


@lean
def _offer_rest(state):
    """Before waiting pairs are sorted: show each query that has seen some of them the others."""
    answers, count = state.answers, state.marks[PENDING]
    for q in range(len(answers.k)):
        if 0 < answers.mark[q] < count:
            offer_waiting(answers, state.pending, state.shown, state.marks, state.levels, q)
        if answers.mark[q] == count:
            answers.mark[q] = SEEN_ALL


@lean
def _offer_all(state):
    """After they are sorted: show them to all the others, best first."""
    answers, pending, count = state.answers, state.pending, state.marks[PENDING]
    for q in range(len(answers.k)):
        if answers.mark[q] == 0:
            offer(answers, q, pending, count)
        if answers.mark[q] != NOT_WATCHED:
            answers.mark[q] = 0


@lean
def offer_waiting(answers, pending, shown, marks, levels, q):
    """Show a query the pairs that wait since it was last shown some. `shown`: room for as many as it is shown at once."""
    begin, upto = answers.mark[q], marks[PENDING]
    answers.mark[q] = upto
    if begin == upto:
        return
    if marks[BEST_FROM] != begin or marks[BEST_UPTO] != upto:
        best = -np.inf
        for i in range(begin, upto):
            best = max(best, pending.score[i])
        levels[BEST], marks[BEST_FROM], marks[BEST_UPTO] = best, begin, upto
    if levels[BEST] < asks_for(answers, q):
        return
    some, floor = 0, asks_for(answers, q)
    for i in range(begin, upto):
        if pending.score[i] >= floor:
            shown.score[some], shown.a[some], shown.b[some] = pending.score[i], pending.a[i], pending.b[i]
            some += 1
        if some == len(shown.score) or (i + 1 == upto and some > 0):
            _sort(shown, some)
            offer(answers, q, shown, some)
            some, floor = 0, asks_for(answers, q)


@lean
def drop_expired(answers, q, first):
    """Take the pairs that have left out of an answer."""
    answers.first[q] = first
    if answers.oldest[q] >= first:
        return
    kept, oldest, k = 0, np.iinfo(np.int64).max, answers.k[q]
    for r in range(answers.count[q]):
        a = answers.a[q, r]
        if a >= first:
            answers.score[q, kept], answers.a[q, kept], answers.b[q, kept] = answers.score[q, r], a, answers.b[q, r]
            oldest = min(oldest, a)
            kept += 1
        elif r < k:
            answers.changed[q] = max(answers.changed[q], 1)
    answers.count[q], answers.oldest[q] = kept, oldest
    if kept < k and answers.bounded[q]:
        answers.changed[q] = MUST_READ


@lean
def read_linear(state, q, first):
    """The best pairs of the band with `a` from `first` on: down the band until they are found."""
    band, answers, most, count = state.band, state.answers, state.answers.most[q], 0
    oldest = np.iinfo(np.int64).max
    for place in range(state.marks[BAND]):
        a = band.a[place]
        if a >= first:
            answers.score[q, count], answers.a[q, count], answers.b[q, count] = band.score[place], a, band.b[place]
            oldest = min(oldest, a)
            count += 1
            if count == most:
                break
    answers.count[q], answers.oldest[q], answers.first[q] = count, oldest, first
    answers.bounded[q] = count == most

"""Candidate pruning: rows go through a query's filter, if it has one, into its core, and windows are answered.

The core is a band over the window, the filter a band over the last `BUFFER` rows. A row that enters a filtered query is
offered to the filter; only if it ranks among the filter's k does it go on to the core at once. Otherwise it waits, and
when it leaves the buffer it goes on unless k newer rows of the filter outrank it. Few rows touch a band whose filter or
core is probabilistic: the others are passed over at the speed of a comparison.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.jit import lean, tiny
from skyband.kernels.ranked.bands import (
    BEGIN,
    HEAD,
    KIND,
    LIMIT,
    NEVER,
    OLDEST,
    PASSED,
    PASSED_BEFORE,
    ROOM,
    STOP,
    STRICT,
    THRESHOLD,
    K,
    Rows,
    expire,
    floor_of,
    has_places,
    list_newest,
    newer_listed,
    offer,
    place_of,
)

# columns of Pruners.query
CORE = 0  # its band
FILTER = 1  # its filter's band, or NONE
SIZE = 2  # rows of the window, where a probabilistic core counts them itself; else 0
BUFFER = 3  # rows of the buffer
TAKEN = 4  # ordinal of the next row
LEFT = 5  # ordinal of the next row to leave the buffer
TOUCHED = 6  # the row whose coming changed the top-k since the last answer, plus 1; 0: none did
UNEVEN = 7  # 1: windows of any number of rows, so the buffer may have to give rows back early
REFILLS = 8  # a core that is filled from the window again (SIGMOD06); 1: it holds every row that may rank, 2: it may not
FILLED = 9  # the window it was last filled for, as `filled_for` tells it
WANTED = 10  # rows that filling it looks for: k, and some to spare
CHECKED = 11  # 1: stop where a row that a probabilistic core passed over may rank
LEAST_WANTED = 12  # rows that filling it looks for at least
SEARCHED = 13  # rows that had come when it was last filled
COLUMNS = 14

NONE = -1
FEW_MORE = 4  # rows that sma's skyband may hold besides those wanted and k more before it is cut back to the former
OFTEN = 4  # times the rows that came since the last search that one may cost, before rows are looked for more rarely
MANY_WANTED = 1024  # rows that are looked for at most,
SHARE_WANTED = 64  # or the window divided by this

# what a run may end with
DONE, ANSWERS_FULL, SEARCH, DOUBT = -1, -2, -3, -4  # or the number of a band that needs room


class Pruners(NamedTuple):
    """All queries of a structure: which bands they have, and the bands."""

    rows: Rows
    marks: np.ndarray  # int64 [bands, bands.MARKS]
    levels: np.ndarray  # float64 [bands, bands.LEVELS]
    query: np.ndarray  # int64 [queries, COLUMNS]


class Answers(NamedTuple):
    """Windows whose top-k may have changed, as they are found; answer i fills size[i] ranks from begin[i] on."""

    query: np.ndarray  # int64
    window: np.ndarray  # int64: its place among the windows handed over
    begin: np.ndarray  # int64
    size: np.ndarray  # int64
    score: np.ndarray  # float64
    ordinal: np.ndarray  # int64
    used: np.ndarray  # int64 [2]: answers written, ranks written


@lean
def mark_held(ordinals, marks, base, held):
    """Set held[row - base] for every row of the bands from the ordinal `base` on."""
    for b in range(marks.shape[0]):
        for i in range(marks[b, HEAD], marks[b, STOP]):
            if ordinals[i] >= base:
                held[ordinals[i] - base] = True


@tiny
def crowded(marks, query, q):
    """A band of the query without room for what one step may add, or DONE."""
    core, sieve = query[q, CORE], query[q, FILTER]
    if sieve == NONE:
        return DONE if has_places(marks, core, 1) else core
    if not has_places(marks, core, 2):  # one row that arrives, one that leaves the buffer
        return core
    return DONE if has_places(marks, sieve, 1) else sieve


@lean
def _holds(scores, ordinals, marks, b, score, ordinal):
    """Is the row in the band?"""
    place = place_of(scores, ordinals, marks, b, score, ordinal)
    return place < marks[b, STOP] and ordinals[place] == ordinal


@tiny
def is_outranked(scores, marks, sieve, score):
    """Do k rows of the filter outrank one that waited? It holds newer rows only. A row without a score is outranked."""
    last = marks[sieve, HEAD] + marks[sieve, K] - 1
    return score != score or (last < marks[sieve, STOP] and scores[last] >= score)


@lean
def leave_buffer(scores, ordinals, counts, marks, levels, core, row, score):
    """The second attempt of a row that waited and is not outranked; True if it enters the top-k."""
    if _holds(scores, ordinals, marks, core, score, row):
        return False
    rank = offer(scores, ordinals, counts, marks, levels, core, score, row, True)
    return 0 <= rank < marks[core, K]


@lean
def step(scores, ordinals, counts, marks, levels, query, q, row, score, leaving_score):
    """Row `row` arrives; the one BUFFER rows before it leaves the buffer. A score that is NaN, or below what the query
    can use, changes nothing. Needs a free place in each band. Returns whether the top-k changed."""
    core, sieve = query[q, CORE], query[q, FILTER]
    touched = False
    if sieve == NONE:
        if query[q, SIZE] > 0:
            touched = expire(scores, ordinals, counts, marks, levels, core, row + 1 - query[q, SIZE])
        if score >= levels[core, THRESHOLD]:
            rank = offer(scores, ordinals, counts, marks, levels, core, score, row, False)
            touched |= 0 <= rank < marks[core, K]
        return touched
    left = row - query[q, BUFFER]
    if left >= query[q, LEFT]:
        expire(scores, ordinals, counts, marks, levels, sieve, left + 1)
        if not is_outranked(scores, marks, sieve, leaving_score):
            touched = leave_buffer(scores, ordinals, counts, marks, levels, core, left, leaving_score)
        query[q, LEFT] = left + 1
    if score >= levels[sieve, THRESHOLD]:
        rank = offer(scores, ordinals, counts, marks, levels, sieve, score, row, False)
        if 0 <= rank < marks[sieve, K]:
            rank = offer(scores, ordinals, counts, marks, levels, core, score, row, False)
            touched |= 0 <= rank < marks[core, K]
    return touched


@tiny
def next_at_least(scores, begin, stop, floor):
    """The first place in [begin, stop) with a score at or above the floor; `stop` if there is none."""
    at, end = np.uint64(begin), np.uint64(max(begin, stop))  # no view and no sign to check: this is vectorized and cheap
    block = np.uint64(32)
    while at + block <= end:
        hits = 0
        for i in range(block):
            hits += scores[at + i] >= floor
        if hits > 0:
            break
        at += block
    while at < end and not scores[at] >= floor:
        at += np.uint64(1)
    return np.int64(at)


@tiny
def _next_row(scores, marks, levels, query, q, row, upto, arriving, arriving_from, leaving, leaving_from):
    """The first row in [row, upto) whose arrival can change a band, or `upto`."""
    sieve = query[q, FILTER]
    band, span = (query[q, CORE], query[q, SIZE]) if sieve == NONE else (sieve, query[q, BUFFER])
    if span > 0 and marks[band, OLDEST] < NEVER - span:
        upto = min(upto, max(marks[band, OLDEST] + span, row))  # when its oldest row leaves
    found = arriving_from + next_at_least(arriving, row - arriving_from, upto - arriving_from, levels[band, THRESHOLD])
    if sieve != NONE:
        # a row below the filter's rank k is outranked by k newer ones; at that score too, but that is looked at again
        begin = max(row - span, query[q, LEFT])
        stop = found - span
        if begin < stop:
            floor = floor_of(scores, marks, sieve)
            left = leaving_from + next_at_least(leaving, begin - leaving_from, stop - leaving_from, floor)
            found = min(found, left + span)
    return found


@tiny
def _may_miss(scores, marks, levels, core):
    """May a row that a probabilistic core passed over, or cut off, rank? Not while rank k is as high as any of those in the
    window: one as high was cut off before the rows that are now as high as it came, or below them, being older."""
    return floor_of(scores, marks, core) < max(levels[core, PASSED], levels[core, PASSED_BEFORE])


@lean
def take(scores, ordinals, counts, marks, levels, query, q, upto, arriving, arriving_from, leaving, leaving_from, touching):
    """Take the rows up to the ordinal `upto`; if `touching`, only until one changes the top-k. arriving[i] is the score of
    the row arriving_from + i; likewise `leaving`, for rows that leave the buffer. Returns DONE, a band that needs room, or
    DOUBT after the row with which one that was passed over may rank."""
    row, length, filtered = query[q, TAKEN], query[q, BUFFER], query[q, FILTER] != NONE
    chosen = filtered or query[q, SIZE] > 0 or query[q, REFILLS] > 0  # few rows matter: go from one to the next
    status = DONE
    while row < upto:
        if chosen:
            row = _next_row(scores, marks, levels, query, q, row, upto, arriving, arriving_from, leaving, leaving_from)
            if row == upto:
                break
        score = arriving[row - arriving_from]
        if chosen or score == score:
            status = crowded(marks, query, q)
            if status != DONE:
                break
            leaving_score = np.nan
            if filtered and row - length >= query[q, LEFT]:
                leaving_score = leaving[row - length - leaving_from]
            touched = step(scores, ordinals, counts, marks, levels, query, q, row, score, leaving_score)
            if touched:
                first = query[q, TOUCHED] == 0
                if first:
                    query[q, TOUCHED] = row + 1
                # rank k goes down only where the top-k changes; a threshold is never above it when it is set
                if query[q, CHECKED] > 0 and _may_miss(scores, marks, levels, query[q, CORE]):
                    status = DOUBT
                if status == DOUBT or (touching and first):
                    row += 1
                    break
        row += 1
    query[q, TAKEN] = row
    if filtered:
        query[q, LEFT] = max(query[q, LEFT], row - length)
    return status


@lean
def read(pruners, q, score, ordinal):
    """Copy the top-k as it stands; returns how many rows it has."""
    core = pruners.query[q, CORE]
    head = pruners.marks[core, HEAD]
    count = min(pruners.marks[core, STOP] - head, pruners.marks[core, K])
    for i in range(count):
        score[i], ordinal[i] = pruners.rows.score[head + i], pruners.rows.ordinal[head + i]
    return count


@tiny
def filled_for(first, end):
    """A number that tells the window from all others: both of its ends never decrease."""
    return max(first, 0) + end


@tiny
def _cut_back(scores, marks, levels, query, q):
    """Leave a core the best of its rows, as many as filling it looks for, and let no worse ones in."""
    core = query[q, CORE]
    query[q, REFILLS] = 2
    marks[core, STOP] = marks[core, HEAD] + query[q, WANTED]
    levels[core, THRESHOLD] = scores[marks[core, STOP] - 1]


@lean
def made_room(scores, marks, levels, query, q, first):
    """Cut a full core back before its window, from the ordinal `first` on, is answered, which would do it: so it need not
    grow with all rows of a first window. False where it would not, or where the top-k is to lose rows by then."""
    core = query[q, CORE]
    held = marks[core, STOP] - marks[core, HEAD]
    if query[q, REFILLS] == 0 or marks[core, KIND] != STRICT or marks[core, OLDEST] < first or held <= query[q, WANTED]:
        return False
    if query[q, REFILLS] == 2 and held <= marks[core, LIMIT]:
        return False
    _cut_back(scores, marks, levels, query, q)
    return True


@lean
def ready(scores, marks, levels, query, q, first, end):
    """Can the window [first, end) be answered, rows before it having expired? False: the core has to be filled from it first.
    For cores that are."""
    core = query[q, CORE]
    held = marks[core, STOP] - marks[core, HEAD]
    whole = query[q, REFILLS] == 1 and marks[core, KIND] == STRICT  # a top-k alone drops rows unasked
    if held < marks[core, K] and not whole and query[q, FILLED] != filled_for(first, end):
        return False
    if query[q, WANTED] > query[q, LEAST_WANTED] and end - query[q, SEARCHED] > OFTEN * query[q, WANTED]:
        query[q, WANTED] = max(query[q, WANTED] // 2, query[q, LEAST_WANTED])  # they are not used up any more
        query[q, SEARCHED] = end
        marks[core, LIMIT] = query[q, WANTED] + marks[core, K] + FEW_MORE
    # the first answer, when it holds all rows so far, or a threshold from long ago that lets too many in
    loose = query[q, REFILLS] == 1 or (marks[core, KIND] == STRICT and held > marks[core, LIMIT])
    if held >= query[q, WANTED] and loose:
        _cut_back(scores, marks, levels, query, q)
    return True


@lean
def fill(pruners, q, score, ordinal, count, window):
    """Make the rows found for a window, best first, all that the core holds, but for those that k newer ones outrank; its
    threshold is the score of the last of them, as of now and not of later top-k's, unless there were too few."""
    scores, ordinals, counts = pruners.rows
    marks, core = pruners.marks, pruners.query[q, CORE]
    head, k = marks[core, BEGIN] + (marks[core, ROOM] - count) // 2, marks[core, K]
    oldest, stop, listed = NEVER, head, 0
    for i in range(count):
        dominators = newer_listed(ordinals, listed, ordinal[i])  # one left out would have had its dominators among these
        if dominators < k:
            scores[stop], ordinals[stop], counts[stop] = score[i], ordinal[i], dominators
            listed = list_newest(ordinals, listed, k, ordinal[i])
            oldest = min(oldest, ordinal[i])
            stop += 1
    if marks[core, KIND] == STRICT:
        marks[core, LIMIT] = pruners.query[q, WANTED] + k + FEW_MORE
    marks[core, HEAD], marks[core, STOP], marks[core, OLDEST] = head, stop, oldest
    pruners.query[q, FILLED] = window
    enough = count == pruners.query[q, WANTED]
    pruners.query[q, REFILLS] = 1 + enough
    pruners.levels[core, THRESHOLD] = score[count - 1] if enough else -np.inf


@tiny
def set_wanted(marks, query, q, first, end, step, effort):
    """After query q was filled for the window [first, end), `step` rows after the one before: where rows are to spare, look for
    more of them as long as a search costs far more than the rows that came since the last one, as where scores fall with time
    and each is used up from the top. `ready` says when that is over. `effort`: of the search, in rows."""
    gap, least = end - query[q, SEARCHED], query[q, LEAST_WANTED]
    query[q, SEARCHED] = end
    most = min(max(MANY_WANTED, (end - first) // SHARE_WANTED), end - first)
    if least > marks[query[q, CORE], K] and effort > OFTEN * gap and most > OFTEN * step:  # more than a few windows lose
        query[q, WANTED] = max(min(2 * query[q, WANTED], most), least)


def answers_room(windows: int, score: np.ndarray, ordinal: np.ndarray) -> Answers:
    """Room for the answers of so many windows, their ranks in the arrays given."""
    query, window, begin, size = (np.empty(windows, np.int64) for _ in range(4))
    return Answers(query, window, begin, size, score, ordinal, np.zeros(2, np.int64))

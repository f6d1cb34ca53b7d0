"""The windows of one query: its rows are taken up to the end of each, and those whose top-k may have changed are answered."""

from __future__ import annotations

from skyband.kernels.jit import jit, lean
from skyband.kernels.ranked.bands import OLDEST, ROOM, THRESHOLD, K, expire, has_places, offer
from skyband.kernels.ranked.pruning import (
    ANSWERS_FULL,
    BUFFER,
    CORE,
    DONE,
    DOUBT,
    FILTER,
    LEFT,
    REFILLS,
    SEARCH,
    SIZE,
    TOUCHED,
    UNEVEN,
    WANTED,
    crowded,
    is_outranked,
    leave_buffer,
    read,
    ready,
    take,
)


@lean
def _give_back(scores, ordinals, counts, marks, levels, query, q, upto, leaving, leaving_from):
    """Rows before the ordinal `upto` leave the buffer early. Returns DONE or a band that needs room."""
    core, sieve = query[q, CORE], query[q, FILTER]
    while query[q, LEFT] < upto:
        status = crowded(marks, query, q)
        if status != DONE:
            return status
        left = query[q, LEFT]
        expire(scores, ordinals, counts, marks, levels, sieve, left + 1)
        score = leaving[left - leaving_from]
        if not is_outranked(scores, marks, sieve, score):
            leave_buffer(scores, ordinals, counts, marks, levels, core, left, score)
        query[q, LEFT] = left + 1
    return DONE


@lean
def _first_above(column, begin, value):
    """The first place from `begin` on with an entry above the value; the column does not decrease. It is near."""
    stop, step = begin, 1
    while stop < column.shape[0] and column[stop] <= value:
        begin = stop + 1
        stop += step
        step *= 2
    stop = min(stop, column.shape[0])
    while begin < stop:
        middle = (begin + stop) >> 1
        if column[middle] > value:
            stop = middle
        else:
            begin = middle + 1
    return begin


@jit
def follow(pruners, q, first, end, start, arriving, arriving_from, leaving, leaving_from, written, answers):
    """Take the rows of the windows from `start` on and answer those whose top-k may have changed, if `written`.

    Returns (the first window not gone through, DONE | ANSWERS_FULL | SEARCH | DOUBT | a band that needs room).
    """
    scores, ordinals, counts = pruners.rows
    marks, levels, query, asked = pruners.marks, pruners.levels, pruners.query, end.shape[0]
    core, uneven = query[q, CORE], query[q, UNEVEN] == 1
    at = start
    while at < asked:
        due = at  # the first window that may differ from the one before
        if query[q, TOUCHED] == 0 and not uneven:
            due = asked if query[q, SIZE] > 0 else _first_above(first, at, marks[core, OLDEST])
            if due > at:
                status = take(
                    scores, ordinals, counts, marks, levels, query, q,
                    end[due - 1], arriving, arriving_from, leaving, leaving_from, True,
                )  # fmt: skip
                if query[q, TOUCHED] > 0:
                    due = min(due, _first_above(end, at, query[q, TOUCHED] - 1))
                if status != DONE:
                    return due if status == DOUBT else at, status
        at = due
        if at == asked:
            break
        if answers.used[0] == answers.query.shape[0] or answers.used[1] + marks[core, K] > answers.score.shape[0]:
            return at, ANSWERS_FULL
        status = take(
            scores, ordinals, counts, marks, levels, query, q, end[at], arriving, arriving_from, leaving, leaving_from, False
        )
        if status == DONE and uneven:
            back = min(first[at] + query[q, BUFFER] - 1, end[at])
            status = _give_back(scores, ordinals, counts, marks, levels, query, q, back, leaving, leaving_from)
        if status != DONE:
            return at, status
        if query[q, SIZE] == 0:
            expire(scores, ordinals, counts, marks, levels, core, first[at])
            if query[q, REFILLS] > 0 and not ready(scores, marks, levels, query, q, first[at], end[at]):
                query[q, TOUCHED] = end[at]  # comes back to this window
                return at, SEARCH if marks[core, ROOM] >= query[q, WANTED] else core
        query[q, TOUCHED] = 0
        if written:
            n, used = answers.used[0], answers.used[1]
            count = read(pruners, q, answers.score[used:], answers.ordinal[used:])
            answers.query[n], answers.window[n], answers.begin[n], answers.size[n] = q, at, used, count
            answers.used[0], answers.used[1] = n + 1, used + count
        at += 1
    return asked, DONE


@jit
def refill(scores, ordinals, counts, marks, levels, band, given, given_from, places):
    """Offer the rows at `places` of `given`, oldest first, to a band; returns how many it has taken when it is full."""
    for i in range(places.shape[0]):
        if not has_places(marks, band, 1):
            return i
        score = given[places[i]]
        if score >= levels[band, THRESHOLD]:
            offer(scores, ordinals, counts, marks, levels, band, score, given_from + places[i], False)
    return places.shape[0]

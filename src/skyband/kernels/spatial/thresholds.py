"""Many threshold queries over the same rows: a row is shown only to the queries that monitor its cell of a grid.

A row that scores above a query's bound goes into a log, in the order of arrival, and with the next window into the query's
answer, which is ranked. The log's oldest entries say who loses a row. Result rows are written as windows end. SIGMOD06
section 7: the cells that a query monitors are those whose best score is above its bound, once and for all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.best import sort_best
from skyband.kernels.emission import ENTER, LEAVE, TOP
from skyband.kernels.jit import allocating, jit, lean, tiny
from skyband.kernels.order import outranks
from skyband.kernels.spatial.grid import WORD_BITS, lowest_bit
from skyband.kernels.spatial.query_grid import monitor
from skyband.kernels.spatial.questions import score_of
from skyband.kernels.spatial.screening import largest_of, passing, set_screen
from skyband.kernels.tables import CHANGES, NOTHING, SNAPSHOTS

# columns of Kept.marks
BEGIN = 0  # first place in the arena
ROOM = 1  # places
COUNT = 2  # rows of the answer
NEWEST = 3  # the last entry of the log that is not in the answer yet, or NONE
NEW = 4  # how many those are
WAITS = 5  # 1: rows have come or gone since it was last answered
MARKS = 6

# places in progress
ROW = 0  # ordinal of the next row
WINDOW = 1  # the next one to be answered
WAITING = 2  # how many queries wait for an answer
ANSWERED = 3  # how many of them were looked at for this window
STILL = 4  # how many of those wait on
WHOLE = 5  # how many of the queries that are told whole answers were, for this window
NEEDED = 6  # room that was missing
PROGRESS = 7

DONE, EVENTS_FULL, LOG_FULL, ARENA_FULL = -1, -2, -3, -4  # what a run may end with
NONE = -1
HEAD, STOP = 0, 1  # places in Log.marks


class Kept(NamedTuple):
    """The answers of all queries, each best first in its part of one arena."""

    score: np.ndarray  # float64
    ordinal: np.ndarray  # int64
    marks: np.ndarray  # int64 [queries, MARKS]
    bound: np.ndarray  # float64 [queries]: turned; rows above it are let in
    told: np.ndarray  # int64 [queries]: what its windows give, a code of `tables`


class Log(NamedTuple):
    """Who let which row in, in the order of arrival: the entries [HEAD, STOP)."""

    query: np.ndarray  # int64
    ordinal: np.ndarray  # int64
    score: np.ndarray  # float64; NaN where the row was deleted before it was in an answer
    before: np.ndarray  # int64: the entry before of the same query, if neither is in the answer yet
    marks: np.ndarray  # int64 [2]


class Told(NamedTuple):
    """Result rows: columns of `changes.Emitted`, windows by their place; and how many there are."""

    query: np.ndarray
    window: np.ndarray
    event: np.ndarray
    rank: np.ndarray
    score: np.ndarray
    ordinal: np.ndarray
    used: np.ndarray  # int64 [1]


# who monitors what ------------------------------------------------------------------------------------------------


@jit
def begin_index(kept, questions, grid, screen):
    """Let every query monitor the cells in which a row may score above its bound, and screen rows by that."""
    for q in range(kept.bound.shape[0]):
        monitor(grid, questions, q, np.nextafter(kept.bound[q], np.inf))
        set_screen(screen, questions, q, kept.bound[q])


# rows ---------------------------------------------------------------------------------------------------------------


@lean
def _wait(kept, waiting, progress, q):
    if kept.marks[q, WAITS] == 0:
        kept.marks[q, WAITS] = 1
        waiting[progress[WAITING]] = q
        progress[WAITING] += 1


@lean
def _let_in(kept, log, waiting, progress, q, row, score):
    """Enter a row into the log. Needs a free place there."""
    at = log.marks[STOP]
    log.query[at], log.ordinal[at], log.score[at] = q, row, score
    log.before[at] = kept.marks[q, NEWEST]
    kept.marks[q, NEWEST] = at
    kept.marks[q, NEW] += 1
    log.marks[STOP] = at + 1
    _wait(kept, waiting, progress, q)


@lean
def _show(kept, log, questions, members, screen, here, cell, row, totals, waiting, progress):
    """Show a row to the queries that monitor its cell."""
    largest = largest_of(here)
    for word in range(members.shape[1]):
        bits = members[cell, word]
        if bits != 0:
            bits = passing(screen[word], bits, here, largest, totals)
        while bits != 0:
            q = word * WORD_BITS + lowest_bit(bits)
            bits &= bits - np.uint64(1)
            score = score_of(questions, q, here)
            if score > kept.bound[q]:
                _let_in(kept, log, waiting, progress, q, row, score)


# answers --------------------------------------------------------------------------------------------------------------


@tiny
def _write(told, q, window, event, rank, score, ordinal):
    n = told.used[0]
    told.query[n], told.window[n], told.event[n] = q, window, event
    told.rank[n], told.score[n], told.ordinal[n] = rank, score, ordinal
    told.used[0] = n + 1


@lean
def _widen(kept, q, wanted, end):
    """Move an answer to the arena's end, where it has room for so many rows. False when the arena has not."""
    score, ordinal, marks = kept.score, kept.ordinal, kept.marks
    if end[0] + wanted > score.shape[0]:
        return False
    begin = marks[q, BEGIN]
    for i in range(marks[q, COUNT]):
        score[end[0] + i], ordinal[end[0] + i] = score[begin + i], ordinal[begin + i]
    marks[q, BEGIN], marks[q, ROOM] = end[0], wanted
    end[0] += wanted
    return True


@lean
def _drop(kept, q, first, gone, base, window, leaves, told):
    """Leave the rows before the ordinal `first`, and those marked in gone[ordinal - base], out of an answer; as result rows, if
    `leaves`. Returns how many went."""
    score, ordinal = kept.score, kept.ordinal
    begin, stop = kept.marks[q, BEGIN], kept.marks[q, BEGIN] + kept.marks[q, COUNT]
    to = begin
    for at in range(begin, stop):
        row = ordinal[at]
        if row >= first and not (row >= base and row - base < gone.shape[0] and gone[row - base]):
            score[to], ordinal[to] = score[at], row
            to += 1
        elif leaves:
            _write(told, q, window, LEAVE, 0, score[at], row)
    kept.marks[q, COUNT] = to - begin
    return stop - to


@allocating
def _enter(kept, log, q, first, window, told):
    """Put the rows that came since, from the ordinal `first` on, into an answer; as result rows, if the query is told of
    them. Needs room for them."""
    marks, new = kept.marks, kept.marks[q, NEW]
    new_score, new_ordinal = np.empty(new), np.empty(new, np.int64)
    at, count = marks[q, NEWEST], 0
    while at >= log.marks[HEAD]:
        if log.ordinal[at] >= first and log.score[at] == log.score[at]:
            new_score[count], new_ordinal[count] = log.score[at], log.ordinal[at]
            count += 1
        at = log.before[at]
    marks[q, NEWEST], marks[q, NEW] = NONE, 0
    sort_best(new_score, new_ordinal, count)
    rank = np.empty(count, np.int64)
    score, ordinal, begin = kept.score, kept.ordinal, marks[q, BEGIN]
    old, to, fresh = begin + marks[q, COUNT] - 1, begin + marks[q, COUNT] + count - 1, count - 1
    while fresh >= 0:  # from behind: nothing that is yet to be compared is written over
        if old >= begin and not outranks(score[old], ordinal[old], new_score[fresh], new_ordinal[fresh]):
            score[to], ordinal[to] = score[old], ordinal[old]
            old -= 1
        else:
            score[to], ordinal[to], rank[fresh] = new_score[fresh], new_ordinal[fresh], to - begin + 1
            fresh -= 1
        to -= 1
    marks[q, COUNT] += count
    if kept.told[q] != NOTHING and kept.told[q] != SNAPSHOTS:
        for i in range(count):
            _write(told, q, window, ENTER, rank[i], new_score[i], new_ordinal[i])


@lean
def _tell_whole(kept, q, window, told):
    begin = kept.marks[q, BEGIN]
    for i in range(kept.marks[q, COUNT]):
        _write(told, q, window, TOP, i + 1, kept.score[begin + i], kept.ordinal[begin + i])


@lean
def _has_room(kept, q, told, progress):
    """Is there room for all result rows of a window?"""
    progress[NEEDED] = kept.marks[q, COUNT] + kept.marks[q, NEW]
    return told.used[0] + progress[NEEDED] <= told.query.shape[0]


@jit
def _answer(kept, log, snapshots, first, window, last, waiting, end, progress, told):
    """Answer a window for the queries that wait; of those that are told nothing, only the `last`. Returns DONE, EVENTS_FULL
    or ARENA_FULL."""
    marks, nobody = kept.marks, np.zeros(0, np.bool_)
    while progress[ANSWERED] < progress[WAITING]:
        q = waiting[progress[ANSWERED]]
        if kept.told[q] == NOTHING and not last:
            waiting[progress[STILL]] = q
            progress[STILL] += 1
            progress[ANSWERED] += 1
            continue
        if kept.told[q] != NOTHING and not _has_room(kept, q, told, progress):
            return EVENTS_FULL
        wanted = marks[q, COUNT] + marks[q, NEW]
        if wanted > marks[q, ROOM] and not _widen(kept, q, wanted + (wanted >> 1), end):
            progress[NEEDED] = wanted + (wanted >> 1)
            return ARENA_FULL
        _drop(kept, q, first, nobody, 0, window, kept.told[q] == CHANGES, told)
        if marks[q, NEW] > 0:
            _enter(kept, log, q, first, window, told)
        marks[q, WAITS] = 0
        progress[ANSWERED] += 1
    while progress[WHOLE] < snapshots.shape[0]:
        q = snapshots[progress[WHOLE]]
        if not _has_room(kept, q, told, progress):
            return EVENTS_FULL
        _tell_whole(kept, q, window, told)
        progress[WHOLE] += 1
    progress[WAITING] = progress[STILL]
    progress[ANSWERED] = progress[STILL] = progress[WHOLE] = 0
    return DONE


@jit
def run(kept, log, questions, grid, screen, snapshots, first, end, begin, rows, cells, waiting, free, progress, told):
    """Take rows, float64 [d, n], from the ordinal `begin` on, and answer the windows [first[i], end[i]) that end with them.

    `snapshots`: the queries that are told every whole answer; `free`: the end of what the arena has given away. Returns DONE,
    or what is full: called again with more room it goes on there.
    """
    stop = begin + rows.shape[1]
    here, totals = np.empty(rows.shape[0]), np.empty(WORD_BITS)
    watchers, members = grid.watchers, grid.members
    while True:
        at = progress[WINDOW]
        upto = end[at] if at < end.shape[0] else stop
        while progress[ROW] < upto:
            row = progress[ROW]
            while row < upto and watchers[cells[row - begin]] == 0:
                row += 1
            progress[ROW] = row
            if row == upto:
                break
            cell = cells[row - begin]
            if log.marks[STOP] + watchers[cell] > log.query.shape[0]:
                progress[NEEDED] = watchers[cell]
                return LOG_FULL
            for axis in range(rows.shape[0]):
                here[axis] = rows[axis, row - begin]
            _show(kept, log, questions, members, screen, here, cell, row, totals, waiting, progress)
            progress[ROW] = row + 1
        if at == end.shape[0]:
            return DONE
        while log.marks[HEAD] < log.marks[STOP] and log.ordinal[log.marks[HEAD]] < first[at]:
            _wait(kept, waiting, progress, log.query[log.marks[HEAD]])
            log.marks[HEAD] += 1
        if progress[WAITING] > 0 or snapshots.shape[0] > 0:
            last = at == end.shape[0] - 1
            status = _answer(kept, log, snapshots, first[at], at, last, waiting, free, progress, told)
            if status != DONE:
                return status
        progress[WINDOW] = at + 1


@jit
def delete(kept, log, gone, base, touched, told):
    """Take rows out that are marked in gone[ordinal - base], of answers and of the log. The last window is answered again where
    it held one: what left it, or all of it. `touched`: room, bool [queries]. Needs room for as many result rows as answers
    have rows."""
    touched[:] = False
    for at in range(log.marks[HEAD], log.marks[STOP]):
        row = log.ordinal[at]
        if row >= base and row - base < gone.shape[0] and gone[row - base]:
            touched[log.query[at]] = True
            log.score[at] = np.nan
    for q in range(touched.shape[0]):
        if touched[q] and _drop(kept, q, -1, gone, base, 0, kept.told[q] == CHANGES, told) > 0 and kept.told[q] == SNAPSHOTS:
            _tell_whole(kept, q, 0, told)

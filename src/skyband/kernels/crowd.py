"""Many queries with scores of their own over the same rows: a row is shown only to the queries that monitor its cell of a
grid.

`walk` takes the rows [begin, stop) and writes down the windows whose top-k may have changed. Rows come as attributes,
float64 [d, rows], from the ordinal `rows_from` on, which is at most the first that may leave a buffer. When an answer or
a band finds no room it stops and says so; called again it goes on there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.bands import HEAD, NEVER, OLDEST, ROOM, THRESHOLD, K, expire, floor_of
from skyband.kernels.calendar import plan, unlink
from skyband.kernels.grid import next_member
from skyband.kernels.jit import jit, lean, tiny
from skyband.kernels.point_grid import search, search_box
from skyband.kernels.pruning import (
    ANSWERS_FULL,
    BUFFER,
    CORE,
    DONE,
    FILTER,
    LEFT,
    NONE,
    REFILLS,
    SEARCH,
    SIZE,
    TAKEN,
    TOUCHED,
    WANTED,
    crowded,
    fill,
    read,
    ready,
    step,
)
from skyband.kernels.query_grid import monitor
from skyband.kernels.questions import LINEAR, score_of

# places in progress
ROW = 0  # being taken
STAGE = 1  # what of it is next
MEMBER = 2  # the query last looked at in this stage
WAITING = 3  # how many queries wait for an answer
SEARCHES = 4  # how often a core was filled from the window
PROGRESS = 5

PATIENCE = 128  # rows scored in vain that cost as much as indexing a query anew
SCREENED = 4096  # the same where a row is screened first, which costs less
SLACK = 1e-13  # of a sum's terms: far more than rounding may take from it, far less than tells rows apart
MARGIN = 0.1  # by how much of the distance from the best row to the threshold more is monitored

LOSING, LEAVING, ARRIVING, ANSWERING = 0, 1, 2, 3  # stages of a row
INDEX = -4  # a query has to be indexed anew


class Indexed(NamedTuple):
    """How each query is indexed."""

    threshold: np.ndarray  # float64: it monitors every cell where a row may score as much
    cells: np.ndarray  # int64: how many those are
    vain: np.ndarray  # int64: rows it was shown since that it had no use for
    waits: np.ndarray  # bool: it is in `waiting`
    waiting: np.ndarray  # int64 [queries]: those whose top-k may have changed since their last window
    screen: np.ndarray  # float64 [queries, 1 + d]: that threshold and the turned weights, side by side; NaN where not linear


@lean
def plan_query(pruners, calendar, q, size, slide, row):
    """Bring the calendar up to date after query q has changed at `row`."""
    query, marks = pruners.query, pruners.marks
    core, sieve = query[q, CORE], query[q, FILTER]
    if sieve != NONE and marks[sieve, OLDEST] != NEVER:
        plan(calendar, 2 * q, marks[sieve, OLDEST] + query[q, BUFFER], row)
    if marks[core, OLDEST] == NEVER:
        return
    if query[q, SIZE] > 0:
        plan(calendar, 2 * q, marks[core, OLDEST] + size, row)
    else:  # the last row of the first slide whose window no longer holds it
        plan(calendar, 2 * q + 1, (marks[core, OLDEST] + size) // slide * slide + slide - 1, row)


@tiny
def threshold_of(pruners, q):
    """A row below it cannot matter to query q (TODS15 6.1): PA's threshold, or the filter's rank k."""
    core, sieve = pruners.query[q, CORE], pruners.query[q, FILTER]
    if sieve == NONE:
        return pruners.levels[core, THRESHOLD]
    return floor_of(pruners.rows.score, pruners.marks, sieve)


@tiny
def _needs_index(pruners, indexed, q):
    """Does the query need more cells than it monitors, or have those cost more than indexing it anew?"""
    patience = PATIENCE if np.isnan(indexed.screen[q, 0]) else SCREENED
    return threshold_of(pruners, q) < indexed.threshold[q] or indexed.vain[q] > patience + indexed.cells[q]


@lean
def _set_screen(questions, indexed, q):
    """Note side by side what `_passes` looks at for every row in the query's cells."""
    screen = indexed.screen[q]
    screen[:] = 0.0
    if questions.kind[q] != LINEAR:
        screen[0] = np.nan
        return
    screen[0] = indexed.threshold[q]
    for place in range(questions.used[q]):
        axis = questions.order[q, place]
        screen[1 + axis] = questions.sign[q] * questions.weight[q, axis]


@tiny
def _passes(screen, q, x):
    """Can the row score as much as the threshold that query q is indexed with? Sums of the same terms in any order differ by
    less than the slack; what is not a number passes."""
    total, extent = 0.0, 0.0
    for axis in range(x.shape[0]):
        term = screen[q, 1 + axis] * x[axis]
        total += term
        extent += abs(term)
    return not total + SLACK * extent < screen[q, 0]


@jit
def index_query(pruners, questions, grid, indexed, q):
    """Monitor what the query needs, and some more, so that a threshold that sinks a little asks for nothing."""
    threshold = threshold_of(pruners, q)
    if threshold > -np.inf:
        spread = pruners.rows.score[pruners.marks[pruners.query[q, CORE], HEAD]] - threshold
        if spread < np.inf:
            threshold -= MARGIN * spread
    indexed.threshold[q], indexed.vain[q] = threshold, 0
    indexed.cells[q] = monitor(grid, questions, q, threshold)
    _set_screen(questions, indexed, q)


@jit
def begin_index(pruners, questions, grid, indexed, calendar, size, slide, row):
    """Let every query monitor what its threshold asks for, and enter what it will lose into the calendar, from `row` on."""
    for q in range(pruners.query.shape[0]):
        indexed.threshold[q], indexed.vain[q] = threshold_of(pruners, q), 0
        indexed.cells[q] = monitor(grid, questions, q, indexed.threshold[q])
        _set_screen(questions, indexed, q)
        plan_query(pruners, calendar, q, size, slide, row - 1)


@lean
def _note(pruners, indexed, calendar, progress, q, size, slide, row, touched):
    """After a step of query q. Returns whether it has to be indexed anew before anything else."""
    progress[MEMBER] = q
    if touched and not indexed.waits[q]:
        indexed.waits[q] = True
        pruners.query[q, TOUCHED] = row + 1
        indexed.waiting[progress[WAITING]] = q
        progress[WAITING] += 1
    plan_query(pruners, calendar, q, size, slide, row)
    return _needs_index(pruners, indexed, q)


@tiny
def _next_shown(members, screen, vain, cell, q, x):
    """The first query after q that monitors the cell and whose screen the row passes, or -1; the others saw it in vain."""
    q = next_member(members, cell, q)
    while q >= 0 and not _passes(screen, q, x):
        vain[q] += 1
        q = next_member(members, cell, q)
    return q


@lean
def _lose(pruners, questions, indexed, calendar, size, slide, row, there, leaves, progress):
    """The rows that leave when `row` comes. Returns DONE, INDEX or a band that needs room."""
    scores, ordinals, counts = pruners.rows
    marks, levels, query = pruners.marks, pruners.levels, pruners.query
    slot = row % calendar.head.shape[0]
    while calendar.head[slot] != NONE:
        entry = calendar.head[slot]
        q = entry >> 1
        status = crowded(marks, query, q)
        if status != DONE:
            return status
        unlink(calendar, entry)
        if entry & 1:  # a row has left the top-k; seen to when the window is answered
            touched = marks[query[q, CORE], OLDEST] < row + 1 - size
        else:
            leaving_score = score_of(questions, q, there) if leaves else np.nan
            touched = step(scores, ordinals, counts, marks, levels, query, q, row, np.nan, leaving_score)
        if _note(pruners, indexed, calendar, progress, q, size, slide, row, touched):
            return INDEX
    return DONE


@lean
def _show(pruners, questions, grid, indexed, calendar, size, slide, row, here, there, cell, leaves, arriving, progress):
    """Show the row that leaves the buffer, or the one that arrives, to the queries that monitor its cell. Returns as
    `_lose`."""
    scores, ordinals, counts = pruners.rows
    marks, levels, query, members = pruners.marks, pruners.levels, pruners.query, grid.members
    shown = here if arriving else there
    q = _next_shown(members, indexed.screen, indexed.vain, cell, progress[MEMBER], shown)
    while q >= 0:
        score, used = np.nan, False
        if arriving:
            score = score_of(questions, q, here)
            band = query[q, CORE] if query[q, FILTER] == NONE else query[q, FILTER]
            wanted = score >= levels[band, THRESHOLD]
            used = wanted and score >= threshold_of(pruners, q)
        else:
            wanted = row - query[q, BUFFER] >= query[q, LEFT] and score_of(questions, q, there) >= threshold_of(pruners, q)
            used = wanted
        if not used:
            indexed.vain[q] += 1
        if wanted:
            status = crowded(marks, query, q)
            if status != DONE:
                return status
            leaving_score = score_of(questions, q, there) if leaves else np.nan
            touched = step(scores, ordinals, counts, marks, levels, query, q, row, score, leaving_score)
            if _note(pruners, indexed, calendar, progress, q, size, slide, row, touched):
                return INDEX
        progress[MEMBER] = q
        q = _next_shown(members, indexed.screen, indexed.vain, cell, q, shown)
    return DONE


@lean
def _answer(pruners, indexed, calendar, size, slide, row, progress, answers):
    """Answer the window that ends with `row` for the queries that wait. Returns DONE, ANSWERS_FULL, SEARCH when the one in
    progress[MEMBER] has to be filled from the window first, or its band when that has no room for it."""
    scores, ordinals, counts = pruners.rows
    marks, levels, query = pruners.marks, pruners.levels, pruners.query
    while progress[WAITING] > 0:
        q = indexed.waiting[progress[WAITING] - 1]
        core = query[q, CORE]
        if answers.used[0] == answers.query.shape[0] or answers.used[1] + marks[core, K] > answers.score.shape[0]:
            return ANSWERS_FULL
        if query[q, SIZE] == 0:
            expire(scores, ordinals, counts, marks, levels, core, row + 1 - size)
            if query[q, REFILLS] > 0 and not ready(scores, marks, levels, query, q, row + 1):
                progress[MEMBER] = q
                return SEARCH if marks[core, ROOM] >= query[q, WANTED] else core
            plan_query(pruners, calendar, q, size, slide, row)
        n, used = answers.used[0], answers.used[1]
        count = read(pruners, q, answers.score[used:], answers.ordinal[used:])
        answers.query[n], answers.window[n], answers.begin[n], answers.size[n] = q, row + 1, used, count
        answers.used[0], answers.used[1] = n + 1, used + count
        indexed.waits[q], query[q, TOUCHED] = False, 0
        progress[WAITING] -= 1
    return DONE


@tiny
def _next_busy(calendar, watchers, cells, row, at, stop):
    """The first row from `row` on, which stands at cells[at], that some query loses a row at or that falls into a cell which
    some query monitors; `stop` when there is none before."""
    slot = row % calendar.head.shape[0]
    while row < stop and calendar.head[slot] == NONE and watchers[cells[at]] == 0:
        row += 1
        at += 1
        slot = slot + 1 if slot + 1 < calendar.head.shape[0] else 0
    return row


@lean
def _walk(
    pruners, questions, grid, indexed, calendar, size, slide, rows, cells, rows_from, stop, here, there, progress, answers
):
    """`walk`, up to where a query has to be indexed anew, which is said in progress[MEMBER]."""
    length = pruners.query[0, BUFFER]
    filtered = pruners.query[0, FILTER] != NONE
    while progress[ROW] < stop:
        row = progress[ROW]
        if progress[STAGE] == LOSING and not filtered:
            # most rows concern nobody; the last of a slide is answered whatever it is
            last = min(row // slide * slide + slide, stop) - 1
            row = _next_busy(calendar, grid.watchers, cells, row, row - rows_from, last)
            progress[ROW] = row
        leaves = filtered and row - length >= rows_from
        at = row - rows_from
        for axis in range(here.shape[0]):
            here[axis] = rows[axis, at]
            if leaves:
                there[axis] = rows[axis, at - length]
        status = DONE
        if progress[STAGE] == LOSING:
            # calls hand over all tables by value: whom a row does not concern is not called
            if calendar.head[row % calendar.head.shape[0]] != NONE:
                status = _lose(pruners, questions, indexed, calendar, size, slide, row, there, leaves, progress)
                if status != DONE:
                    return status
            progress[STAGE], progress[MEMBER] = LEAVING, NONE
        if progress[STAGE] == LEAVING:
            if leaves:
                status = _show(
                    pruners, questions, grid, indexed, calendar, size, slide, row,
                    here, there, cells[at - length], leaves, False, progress,
                )  # fmt: skip
                if status != DONE:
                    return status
            progress[STAGE], progress[MEMBER] = ARRIVING, NONE
        if progress[STAGE] == ARRIVING and progress[MEMBER] == NONE:
            q = _next_shown(grid.members, indexed.screen, indexed.vain, cells[at], NONE, here)
            if q >= 0:
                progress[MEMBER] = q - 1  # before it
            else:
                progress[STAGE] = ANSWERING
        if progress[STAGE] == ARRIVING:
            status = _show(
                pruners, questions, grid, indexed, calendar, size, slide, row,
                here, there, cells[at], leaves, True, progress,
            )  # fmt: skip
            if status != DONE:
                return status
            progress[STAGE] = ANSWERING
        if (row + 1) % slide == 0:
            status = _answer(pruners, indexed, calendar, size, slide, row, progress, answers)
            if status != DONE:
                return status
        progress[STAGE] = LOSING
        progress[ROW] = row + 1
    pruners.query[:, TAKEN] = stop
    return DONE


@jit
def walk(pruners, questions, grid, points, indexed, calendar, size, slide, rows, cells, rows_from, stop, progress, answers):
    """Each row to the queries that monitor its cell; all have windows of `size` rows and the same slide and buffer. `cells`:
    of the rows.

    Answers name the end of their window. Returns DONE, ANSWERS_FULL or a band that needs room.
    """
    here, there = np.empty(rows.shape[0]), np.empty(rows.shape[0])
    most = 1
    for q in range(pruners.query.shape[0]):
        most = max(most, pruners.query[q, WANTED])
    best_score, best_ordinal = np.empty(most), np.empty(most, np.int64)
    keys, reached = np.empty(points.seen.size), np.empty(points.seen.size, np.int64)
    while True:
        status = _walk(
            pruners,
            questions,
            grid,
            indexed,
            calendar,
            size,
            slide,
            rows,
            cells,
            rows_from,
            stop,
            here,
            there,
            progress,
            answers,
        )
        q = progress[MEMBER]
        if status == SEARCH:
            wanted = pruners.query[q, WANTED]
            end = progress[ROW] + 1
            first = max(end - size, pruners.query[q, LEFT])  # without a filter: the first row it has seen
            score, ordinal = best_score[:wanted], best_ordinal[:wanted]
            known, cells_known = indexed.threshold[q], indexed.cells[q]
            count = search_box(points, grid, questions, q, known, cells_known, first, end, score, ordinal)
            if count < 0:
                count = search(points, grid, questions, q, first, end, score, ordinal, keys, reached)
            fill(pruners, q, best_score, best_ordinal, count, end)
            progress[SEARCHES] += 1
            if _needs_index(pruners, indexed, q):
                index_query(pruners, questions, grid, indexed, q)
        elif status == INDEX:
            index_query(pruners, questions, grid, indexed, q)
        else:
            return status

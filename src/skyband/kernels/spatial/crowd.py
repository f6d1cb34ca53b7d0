"""Many queries with scores of their own over the same rows: a row is shown only to the queries that monitor its cell of a
grid.

`walk` takes rows and writes down the windows whose top-k may have changed: intervals of ordinals, neither end of which ever
decreases. Rows come as attributes, float64 [d, rows], from the ordinal `rows_from` on, which is at most the first that may
leave a buffer. When an answer or a band finds no room it stops and says so; called again it goes on there.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.jit import jit, lean, tiny
from skyband.kernels.ranked.bands import OLDEST, ROOM, THRESHOLD, K, expire
from skyband.kernels.ranked.pruning import (
    ANSWERS_FULL,
    BUFFER,
    CORE,
    DONE,
    FILTER,
    LEAST_WANTED,
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
    filled_for,
    made_room,
    read,
    ready,
    set_wanted,
    step,
)
from skyband.kernels.spatial.box_search import search_box
from skyband.kernels.spatial.calendar import BY_ROW, BY_WINDOW, plan, unlink
from skyband.kernels.spatial.code_blocks import UNLIKE
from skyband.kernels.spatial.crowd_index import index_query, needs_index, plan_query, threshold_of
from skyband.kernels.spatial.grid import WORD_BITS, WORD_SHIFT, count_bits, lowest_bit
from skyband.kernels.spatial.point_grid import FEW, room_for, search
from skyband.kernels.spatial.points import EFFORT
from skyband.kernels.spatial.questions import score_of
from skyband.kernels.spatial.screening import largest_of, passing, passing_alike

# places in progress
ROW = 0  # being taken
STAGE = 1  # what of it is next
MEMBER = 2  # the query last looked at in this stage
WAITING = 3  # how many queries wait for an answer
SEARCHES = 4  # how often a core was filled from the window
WINDOW = 5  # the next one to be answered
COMING = 6  # the first row of the one after those, as far as is known; else bands.NEVER
PROGRESS = 7

LOSING, LEAVING, ARRIVING = 0, 1, 2  # stages of a row
INDEX = -4  # a query has to be indexed anew
_DENSE = 8  # queries of a word from which on all are counted at once


@tiny
def _wait(pruners, indexed, progress, q, row):
    """Query q waits for an answer, since `row` came."""
    if not indexed.waits[q]:
        indexed.waits[q] = True
        pruners.query[q, TOUCHED] = row + 1
        indexed.waiting[progress[WAITING]] = q
        progress[WAITING] += 1


@lean
def _note(pruners, indexed, calendar, progress, q, row, touched):
    """After a step of query q. Returns whether it has to be indexed anew before anything else."""
    progress[MEMBER] = q
    if touched:
        _wait(pruners, indexed, progress, q, row)
    plan_query(pruners, calendar, q)
    return needs_index(pruners, indexed, q)


@tiny
def _count_vain(vain, first, bits):
    """Queries saw a row in vain: those of a word in the bits, which begin with the query `first`."""
    if count_bits(bits) >= _DENSE:
        for i in range(np.uint64(min(WORD_BITS, vain.shape[0] - first))):  # vectorized
            vain[np.uint64(first) + i] += np.int64(bits >> i & np.uint64(1))
        return
    while bits != 0:
        vain[first + lowest_bit(bits)] += 1
        bits &= bits - np.uint64(1)


@lean
def _next_shown(members, codes, sign, screen, vain, cell, q, x, largest, totals):
    """The queries of the first word after query q of which some monitor the cell and may have use for the row: the word, and
    who. The others saw it in vain."""
    word = (q + 1) >> WORD_SHIFT
    if word < members.shape[1]:
        bits = members[cell, word] >> np.uint64((q + 1) & (WORD_BITS - 1)) << np.uint64((q + 1) & (WORD_BITS - 1))
        while True:
            if bits != 0:
                if codes.alike[word] == UNLIKE:
                    shown = passing(screen[word], bits, x, largest, totals)
                else:
                    shown = passing_alike(codes, sign, screen[word], word, bits, x, totals)
                _count_vain(vain, word * WORD_BITS, bits ^ shown)
                if shown != 0:
                    return word, shown
            word += 1
            if word == members.shape[1]:
                break
            bits = members[cell, word]
    return word, np.uint64(0)


@lean
def _lose(pruners, questions, indexed, calendar, row, left, there, leaves, progress):
    """The row `left`, which leaves when `row` comes, to the queries that hold it. Returns DONE, INDEX or a band that needs
    room."""
    scores, ordinals, counts = pruners.rows
    marks, levels, query = pruners.marks, pruners.levels, pruners.query
    slot = left % calendar.head.shape[1]
    calendar.passed[BY_ROW] = left + 1
    while calendar.head[BY_ROW, slot] != NONE:
        entry = calendar.head[BY_ROW, slot]
        q = entry >> 1
        status = crowded(marks, query, q)
        if status != DONE:
            return status
        unlink(calendar, entry)
        leaving_score = score_of(questions, q, there) if leaves else np.nan
        touched = step(scores, ordinals, counts, marks, levels, query, q, row, np.nan, leaving_score)
        if _note(pruners, indexed, calendar, progress, q, row, touched):
            return INDEX
    return DONE


@lean
def _part(pruners, indexed, calendar, left, slot, first, end, progress):
    """The row `left`, at that slot, is before the window [first, end): queries that hold it wait for an answer."""
    marks, query = pruners.marks, pruners.query
    calendar.passed[BY_WINDOW] = left + 1
    while calendar.head[BY_WINDOW, slot] != NONE:
        entry = calendar.head[BY_WINDOW, slot]
        q = entry >> 1
        unlink(calendar, entry)
        if marks[query[q, CORE], OLDEST] < first:
            _wait(pruners, indexed, progress, q, end - 1)  # and is entered again when it is answered
        else:
            plan(calendar, entry, marks[query[q, CORE], OLDEST])


@lean
def _show(
    pruners, questions, grid, indexed, calendar, first, row,
    here, there, cell, leaves, arriving, word, bits, largest, totals, progress,
):  # fmt: skip
    """Show the row that leaves the buffer, or the one that arrives, to the queries that monitor its cell, from those of a word
    on. `first`: of the window that is answered next. Returns as `_lose`."""
    scores, ordinals, counts = pruners.rows
    marks, levels, query, members = pruners.marks, pruners.levels, pruners.query, grid.members
    shown = here if arriving else there
    while bits != 0:
        q = word * WORD_BITS + lowest_bit(bits)
        bits &= bits - np.uint64(1)
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
            if status != DONE and not made_room(scores, marks, levels, query, q, first):
                return status
            leaving_score = score_of(questions, q, there) if leaves else np.nan
            touched = step(scores, ordinals, counts, marks, levels, query, q, row, score, leaving_score)
            if _note(pruners, indexed, calendar, progress, q, row, touched):
                return INDEX
        progress[MEMBER] = q
        if bits == 0:
            last = word * WORD_BITS + WORD_BITS - 1
            word, bits = _next_shown(
                members, questions.codes, questions.sign, indexed.screen, indexed.vain, cell, last, shown, largest, totals
            )
    return DONE


@lean
def _answer(pruners, indexed, calendar, first, end, progress, answers):
    """Answer the window [first, end) for the queries that wait. Returns DONE, ANSWERS_FULL, SEARCH when the one in
    progress[MEMBER] has to be filled from the window first, or its band when that has no room for it."""
    scores, ordinals, counts = pruners.rows
    marks, levels, query = pruners.marks, pruners.levels, pruners.query
    while progress[WAITING] > 0:
        q = indexed.waiting[progress[WAITING] - 1]
        core = query[q, CORE]
        if answers.used[0] == answers.query.shape[0] or answers.used[1] + marks[core, K] > answers.score.shape[0]:
            return ANSWERS_FULL
        if query[q, SIZE] == 0:
            expire(scores, ordinals, counts, marks, levels, core, first)
            if query[q, REFILLS] > 0 and not ready(scores, marks, levels, query, q, first, end):
                progress[MEMBER] = q
                return SEARCH if marks[core, ROOM] >= query[q, WANTED] else core
            plan_query(pruners, calendar, q)
        n, used = answers.used[0], answers.used[1]
        count = read(pruners, q, answers.score[used:], answers.ordinal[used:])
        answers.query[n], answers.window[n], answers.begin[n], answers.size[n] = q, progress[WINDOW], used, count
        answers.used[0], answers.used[1] = n + 1, used + count
        indexed.waits[q], query[q, TOUCHED] = False, 0
        progress[WAITING] -= 1
    return DONE


@tiny
def _next_busy(leaving, span, watchers, cells, row, at, stop):
    """The first row from `row` on, which stands at cells[at], that some query loses a row at or that falls into a cell which
    some query monitors; `stop` when there is none before. `leaving`: the lists of rows that leave `span` rows later, if any
    do."""
    if span == 0:
        while row < stop and watchers[cells[at]] == 0:
            row += 1
            at += 1
        return row
    slot = (row - span) % leaving.shape[0]
    while row < stop and leaving[slot] == NONE and watchers[cells[at]] == 0:
        row += 1
        at += 1
        slot = slot + 1 if slot + 1 < leaving.shape[0] else 0
    return row


@tiny
def _take_rows(
    pruners, questions, grid, indexed, calendar, first, rows, cells, rows_from, upto, here, there, totals, progress
):  # fmt: skip
    """Take the rows before the ordinal `upto`. Returns as `_lose`."""
    filtered = pruners.query[0, FILTER] != NONE
    span = pruners.query[0, BUFFER] if filtered else pruners.query[0, SIZE]  # rows leave one by one so many later, or 0
    while progress[ROW] < upto:
        row = progress[ROW]
        if progress[STAGE] == LOSING and not filtered:  # most rows concern nobody
            row = _next_busy(calendar.head[BY_ROW], span, grid.watchers, cells, row, row - rows_from, upto)
            progress[ROW] = row
            if row == upto:
                break
        leaves = filtered and row - span >= rows_from
        at = row - rows_from
        for axis in range(here.shape[0]):
            here[axis] = rows[axis, at]
            if leaves:
                there[axis] = rows[axis, at - span]
        status = DONE
        if progress[STAGE] == LOSING:
            # calls hand over all tables by value: whom a row does not concern is not called
            if span > 0 and row >= span and calendar.head[BY_ROW, (row - span) % calendar.head.shape[1]] != NONE:
                status = _lose(pruners, questions, indexed, calendar, row, row - span, there, leaves, progress)
                if status != DONE:
                    return status
            progress[STAGE], progress[MEMBER] = LEAVING, NONE
        if progress[STAGE] == LEAVING:
            if leaves:
                cell, largest = cells[at - span], largest_of(there)
                word, bits = _next_shown(
                    grid.members, questions.codes, questions.sign, indexed.screen, indexed.vain,
                    cell, progress[MEMBER], there, largest, totals,
                )  # fmt: skip
                status = _show(
                    pruners, questions, grid, indexed, calendar, first, row,
                    here, there, cell, leaves, False, word, bits, largest, totals, progress,
                )  # fmt: skip
                if status != DONE:
                    return status
            progress[STAGE], progress[MEMBER] = ARRIVING, NONE
        cell, largest = cells[at], largest_of(here)
        word, bits = _next_shown(
            grid.members, questions.codes, questions.sign, indexed.screen, indexed.vain,
            cell, progress[MEMBER], here, largest, totals,
        )  # fmt: skip
        if bits != 0:
            status = _show(
                pruners, questions, grid, indexed, calendar, first, row,
                here, there, cell, leaves, True, word, bits, largest, totals, progress,
            )  # fmt: skip
            if status != DONE:
                return status
        progress[STAGE] = LOSING
        progress[ROW] = row + 1
    return DONE


@lean
def _walk(
    pruners, questions, grid, indexed, calendar,
    first, end, rows, cells, rows_from, stop, here, there, totals, progress, answers,
):  # fmt: skip
    """`walk`, up to where a query has to be indexed anew, or filled, which is said in progress[MEMBER]."""
    ring = calendar.head.shape[1]
    left = calendar.passed[BY_WINDOW]
    slot = left % ring
    while True:
        at = progress[WINDOW]
        upto = end[at] if at < end.shape[0] else stop
        if progress[ROW] < upto:
            begins = first[at] if at < end.shape[0] else progress[COMING]
            status = _take_rows(
                pruners, questions, grid, indexed, calendar, begins, rows, cells, rows_from, upto, here, there, totals, progress
            )
            if status != DONE:
                return status
        if at == end.shape[0]:
            break
        if first[at] > left + ring:  # more rows have left than can be held
            left = first[at] - ring
            slot = left % ring
        while left < first[at]:
            if calendar.head[BY_WINDOW, slot] != NONE:
                _part(pruners, indexed, calendar, left, slot, first[at], end[at], progress)
            left += 1
            slot = slot + 1 if slot + 1 < ring else 0
        calendar.passed[BY_WINDOW] = left
        if progress[WAITING] > 0:
            status = _answer(pruners, indexed, calendar, first[at], end[at], progress, answers)
            if status != DONE:
                return status
        progress[WINDOW] = at + 1
    pruners.query[:, TAKEN] = stop
    return DONE


@jit
def walk(
    pruners, questions, grid, points, indexed, calendar, first, end, rows, cells, rows_from, stop, progress, answers
):  # fmt: skip
    """Each row up to the ordinal `stop` to the queries that monitor its cell, and the windows [first[i], end[i]) which end with
    them: all queries have the same windows and the same buffer. `cells`: of the rows.

    Answers name a window by its place. Returns DONE, ANSWERS_FULL or a band that needs room.
    """
    here, there, totals = np.empty(rows.shape[0]), np.empty(rows.shape[0]), np.empty(WORD_BITS)
    begin, best_score, best_ordinal = progress[ROW], np.empty(FEW), np.empty(FEW, np.int64)
    keys, reached = np.empty(points.seen.size), np.empty(points.seen.size, np.int64)
    while True:
        status = _walk(
            pruners, questions, grid, indexed, calendar,
            first, end, rows, cells, rows_from, stop, here, there, totals, progress, answers,
        )  # fmt: skip
        q = progress[MEMBER]
        if status == SEARCH:
            wanted, at = pruners.query[q, WANTED], progress[WINDOW]
            since = max(first[at], pruners.query[q, LEFT])  # without a filter: the first row it has seen
            room, effort = room_for(wanted), points.marks[EFFORT]
            if best_score.size < room:
                best_score, best_ordinal = np.empty(2 * room), np.empty(2 * room, np.int64)
            score, ordinal, count = best_score[:room], best_ordinal[:room], -1
            if wanted == pruners.query[q, LEAST_WANTED]:  # else scores fall, and what is monitored is left behind
                known, cells_known = indexed.threshold[q], indexed.cells[q]
                count = search_box(
                    points, grid, questions, q, known, cells_known, since, end[at], wanted, score, ordinal, keys, reached
                )  # fmt: skip
            if count < 0:
                count = search(points, grid, questions, q, since, end[at], wanted, score, ordinal, keys, reached)
            fill(pruners, q, score, ordinal, count, filled_for(first[at], end[at]))
            came = end[at] - (end[at - 1] if at > 0 else begin)
            set_wanted(pruners.marks, pruners.query, q, first[at], end[at], came, points.marks[EFFORT] - effort)
            progress[SEARCHES] += 1
            if needs_index(pruners, indexed, q):
                index_query(pruners, questions, grid, indexed, q)
        elif status == INDEX:
            index_query(pruners, questions, grid, indexed, q)
        else:
            return status

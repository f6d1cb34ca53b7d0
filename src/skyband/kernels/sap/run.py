"""SAP from rows to answers: take rows, move the front, answer windows.

As long as no row of the last answer has left and no new row reaches its k-th score, windows have the same answer: such a
quiet stretch of windows is passed over at once, its rows taken as one run.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.best import BLOCK, any_at_least, collect, first_at_least
from skyband.kernels.jit import jit, lean
from skyband.kernels.sap.answer import NEEDS_ROOM, carry_over, complete, copy_run, oldest_of
from skyband.kernels.sap.front import advance_front, form_next_ahead
from skyband.kernels.sap.partition import end_unit, measure, take_rows
from skyband.kernels.sap.state import (
    ANSWERED,
    BUILDING,
    CANDIDATES,
    CURRENT_BEGIN,
    CURRENT_COUNT,
    CURRENT_UNIT,
    FIRST,
    FRONT_BEGIN,
    FRONT_COUNT,
    FRONT_END,
    FRONT_FORMED,
    FRONT_FROM,
    FRONT_MEANINGFUL,
    FRONT_UNIT,
    FRONT_UNIT_STOP,
    HEAP_COUNT,
    NEXT,
    NOBODY,
    PARTITION,
    PARTITION_COUNT,
    PROACTIVE,
    SECOND_PHASE,
    TAU,
    TOP_OLDEST,
    UNIT,
    UNIT_BEGIN,
    UNIT_COUNT,
    UNIT_FRESH,
    UNIT_LENGTH,
    UNIT_SORTED,
    WANT,
    Spare,
)
from skyband.kernels.tops import hand_out_same, hand_out_written, has_room

SHORT = 4  # times k: new rows up to which an answer is made from the last one; of more rows too many would enter


@lean
def forget_all(state, ordinal):
    """Every row has left: begin again with the row `ordinal`."""
    head = state.head
    head[NEXT] = head[FRONT_BEGIN] = head[FRONT_END] = head[CURRENT_BEGIN] = head[UNIT_BEGIN] = ordinal
    head[FRONT_FROM] = head[FIRST] = ordinal
    head[FRONT_COUNT] = head[FRONT_MEANINGFUL] = head[HEAP_COUNT] = head[CANDIDATES] = 0
    head[CURRENT_COUNT] = head[UNIT_COUNT] = head[UNIT_SORTED] = 0
    head[FRONT_FORMED] = 1
    head[PARTITION] += head[PARTITION_COUNT]
    head[PARTITION_COUNT] = 0
    head[CURRENT_UNIT] = head[FRONT_UNIT] = head[FRONT_UNIT_STOP] = head[UNIT]
    head[SECOND_PHASE] = head[BUILDING] = -1
    head[UNIT_FRESH] = 1
    state.levels[TAU] = -np.inf


@lean
def lacks_room(state, rules):
    """True when closing two partitions might not fit."""
    head = state.head
    return (
        head[CANDIDATES] + 2 * rules.k > state.candidate_score.shape[0]
        or head[PARTITION_COUNT] + 2 > state.partitions.shape[0]
        or head[UNIT] - head[FRONT_UNIT] + 2 > state.units.shape[0]
    )


@lean
def quiet_until(firsts, ends, at, oldest, row, stop, scores, begin, floor):
    """The first window from `at` on whose answer may be another one, or that reaches the row `stop`: all windows before it
    hold the oldest row of the last answer, and none of their rows from `row` on is at or above the floor."""
    low, step = at, 1  # windows before low qualify; most often many do, or none
    while low + step <= firsts.shape[0] and firsts[low + step - 1] <= oldest and ends[low + step - 1] < stop:
        low += step
        step *= 2
    high = min(low + step - 1, firsts.shape[0])
    while low < high:
        middle = (low + high) >> 1
        if firsts[middle] <= oldest and ends[middle] < stop:
            low = middle + 1
        else:
            high = middle
    if low == at:
        return at
    hit = first_at_least(scores, row - begin, ends[low - 1] - begin, floor) + begin
    low, high = at, low
    while low < high:
        middle = (low + high) >> 1
        if ends[middle] <= hit:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def run(state, rules, tops, begin, scores, windows, start, results):
    """Take rows and answer windows from `start` on. Stops when results are full or, with WANT set, for room."""
    k = rules.k
    room = max(state.unit_score.shape[0], k + rules.keep, 2 * k + BLOCK)
    spare = Spare(np.empty(room), np.empty(room, np.int64))
    fresh = Spare(np.empty(2 * k + 1), np.empty(2 * k + 1, np.int64))
    unsaid = Spare(np.empty(k), np.empty(k, np.int64))
    return answer_windows(state, rules, tops, begin, scores, windows, start, results, spare, fresh, unsaid)


@lean
def answer_windows(state, rules, tops, begin, scores, windows, start, results, spare, fresh_rows, unsaid):
    """`run` with the room it needs: for new rows of a window, and for an answer that is not reported.

    The loop touches plain arrays only: handing the whole state to a function costs more than a quiet window does.
    """
    head, levels, k = state.head, state.levels, rules.k
    ring, unit_score, unit_ordinal = state.ring, state.unit_score, state.unit_ordinal
    firsts, ends, top_count = windows.first, windows.end, tops.count
    last_score, last_ordinal = tops.score[0], tops.ordinal[0]  # the last answer: soon a part of `results`, where it was written
    proactive = rules.formation == PROACTIVE
    used = 0
    fresh_score, fresh_ordinal = fresh_rows.score, fresh_rows.ordinal
    floor = last_score[k - 1] if top_count[0] == k else -np.inf
    at = start
    while at < firsts.shape[0]:
        first, end = firsts[at], ends[at]
        unit_stop = head[UNIT_BEGIN] + head[UNIT_LENGTH]
        if first <= head[TOP_OLDEST] < NOBODY and end < unit_stop and not proactive:
            quiet = quiet_until(firsts, ends, at, head[TOP_OLDEST], max(head[ANSWERED], first), unit_stop, scores, begin, floor)
            if quiet > at:
                head[FIRST], head[ANSWERED] = firsts[quiet - 1], ends[quiet - 1]
                if head[NEXT] < head[ANSWERED]:
                    take_rows(
                        head, levels, ring, unit_score, unit_ordinal, rules.keep, scores, head[NEXT] - begin,
                        head[ANSWERED] - begin, begin,
                    )  # fmt: skip
                for same in range(at, quiet):
                    hand_out_same(results, same)
                at = quiet
                continue
        slid = first - head[FIRST]
        if first >= head[NEXT]:
            forget_all(state, first)
            measure(state, rules, first, end, windows.number[at])
        head[FIRST] = first
        while head[NEXT] < end:
            unit_stop = head[UNIT_BEGIN] + head[UNIT_LENGTH]
            stop = min(end, unit_stop)
            if stop == unit_stop and lacks_room(state, rules):
                head[WANT] = 1
                break
            take_rows(head, levels, ring, unit_score, unit_ordinal, rules.keep, scores, head[NEXT] - begin, stop - begin, begin)
            if stop == unit_stop and end_unit(state, rules, spare, stop):
                advance_front(state, rules, spare)
                measure(state, rules, first, end, windows.number[at])
        if head[WANT]:
            break
        if proactive and slid > 0:
            form_next_ahead(state, rules, spare, slid)
        new = max(head[ANSWERED], first)
        all_there = head[TOP_OLDEST] >= first  # no row of the last answer has left
        if all_there and not any_at_least(scores, new - begin, end - begin, floor):
            hand_out_same(results, at)
            head[ANSWERED] = end
            at += 1
            continue
        if not has_room(results, used, k):
            break
        if windows.report[at]:
            score, ordinal = results.score[used : used + k], results.ordinal[used : used + k]
        else:
            score, ordinal = unsaid.score, unsaid.ordinal
        count, above_score, above_ordinal = 0, np.inf, NOBODY  # nothing is known to rank above what is looked for
        full = top_count[0] == k
        carried = (full or all_there) and end - new <= SHORT * k
        if carried:
            _, fresh = collect(scores, new - begin, end - begin, begin, floor, fresh_score, fresh_ordinal, 0, k)
            count = carry_over(
                last_score, last_ordinal, top_count[0], first, fresh_score, fresh_ordinal, fresh, score, ordinal, k
            )
            if full:
                above_score, above_ordinal = floor, last_ordinal[k - 1]
        if count < k and (full or not carried):
            closing = first > head[CURRENT_BEGIN]
            if closing and lacks_room(state, rules):
                count = NEEDS_ROOM
            else:
                count = complete(state, rules, spare, score, ordinal, count, above_score, above_ordinal)
            if count == NEEDS_ROOM:
                head[WANT] = 1
                break
            if head[CURRENT_BEGIN] == end:  # the window had reached the current partition
                measure(state, rules, first, end, windows.number[at])
        top_count[0] = count
        if windows.report[at]:
            last_score, last_ordinal = score, ordinal
            used = hand_out_written(results, at, used, count)
        else:
            hand_out_same(results, at)
            last_score, last_ordinal = tops.score[0], tops.ordinal[0]
            copy_run(score, ordinal, 0, count, last_score, last_ordinal, 0)
        head[TOP_OLDEST] = oldest_of(ordinal, count)
        head[ANSWERED] = end
        floor = score[k - 1] if count == k else -np.inf
        at += 1
    copy_run(last_score, last_ordinal, 0, top_count[0], tops.score[0], tops.ordinal[0], 0)
    return at

"""SAP from rows to answers: take rows, move the front, merge the best of front, candidates and current partition.

An answer is a merge, best first, of four sorted lists: the front's known rows, the candidates of the partitions
behind it, the current partition's finished units and its unfinished unit. Two of them may hide rows below a known
level: the front below its k-th best (delay policy: its meaningful objects are formed only when the merge comes to
that level, so never when its group dominance number reaches k), the unfinished unit below tau (it is then gathered
afresh). As long as no row of the last answer has left, the merge is not needed: only new rows can enter.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.best import any_at_least, collect, finish, merge
from skyband.kernels.jit import jit, lean
from skyband.kernels.order import outranks
from skyband.kernels.sap_front import (
    CANDIDATE,
    CURRENT,
    NONE,
    UNFINISHED,
    advance_front,
    form_front,
    form_next_ahead,
    form_second_phase,
)
from skyband.kernels.sap_partition import end_unit, gather_unit_afresh, measure, sort_unit, take_rows
from skyband.kernels.sap_rows import take_few
from skyband.kernels.sap_savl import (
    drop_expired_tops,
    heap_of,
    pop_top,
)
from skyband.kernels.sap_state import (
    ANSWERED,
    BUILDING,
    CANDIDATES,
    CURRENT_BEGIN,
    CURRENT_COUNT,
    CURRENT_UNIT,
    ENHANCED,
    FIRST,
    FRONT_BEGIN,
    FRONT_COUNT,
    FRONT_END,
    FRONT_FORMED,
    FRONT_FROM,
    FRONT_KTH,
    FRONT_KTH_SCORE,
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
    UNIT_STOP,
    WANT,
)
from skyband.kernels.tops import hand_out, hand_out_same, has_room

FROM_STACKS = 4  # besides sap_front's sources: the next row is popped from the front's stacks
NEEDS_ROOM = -1
FEW = 32  # rows that are taken one by one


@jit
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
def top_k(state, rules, score, ordinal):
    """Write the window's answer into (score, ordinal); how many rows, or NEEDS_ROOM."""
    head, levels = state.head, state.levels
    first, k = head[FIRST], rules.k
    if first > head[FRONT_END]:
        if first > head[CURRENT_BEGIN]:
            end_unit(state, rules, head[NEXT])
        advance_front(state, rules)
    if head[UNIT_SORTED] < head[UNIT_COUNT]:
        sort_unit(state)
    listed = 0
    for i in range(head[FRONT_COUNT]):
        if state.front_ordinal[i] >= first:
            state.front_score[listed], state.front_ordinal[listed] = state.front_score[i], state.front_ordinal[i]
            listed += 1
    head[FRONT_COUNT] = listed
    heap = heap_of(state)
    candidate_score, candidate_ordinal = state.candidate_score, state.candidate_ordinal
    current_score, current_ordinal = state.current_score, state.current_ordinal
    unit_score, unit_ordinal = state.unit_score, state.unit_ordinal
    front_score, front_ordinal = state.front_score, state.front_ordinal
    number = head[FRONT_UNIT]
    unit_seen = number == head[SECOND_PHASE] and first < state.units[number % state.units.shape[0], UNIT_STOP]
    unit_unseen = rules.policy == ENHANCED and state.links.shape[0] > 0 and not unit_seen
    f = c = p = u = n = 0
    while n < k:
        s, o, source = -np.inf, -1, NONE
        if c < head[CANDIDATES]:
            s, o, source = candidate_score[c], candidate_ordinal[c], CANDIDATE
        if p < head[CURRENT_COUNT] and outranks(current_score[p], current_ordinal[p], s, o):
            s, o, source = current_score[p], current_ordinal[p], CURRENT
        if u < head[UNIT_SORTED]:
            if outranks(unit_score[u], unit_ordinal[u], s, o):
                s, o, source = unit_score[u], unit_ordinal[u], UNFINISHED
        elif (
            head[UNIT_FRESH] == 0
            and head[NEXT] > head[UNIT_BEGIN]
            and s < levels[TAU]
            and (f == head[FRONT_COUNT] or front_score[f] < levels[TAU])
        ):
            gather_unit_afresh(state, rules)
            sort_unit(state)
            continue
        listed = head[FRONT_COUNT]
        if f < listed:
            before = n
            while f < listed and n < k and outranks(front_score[f], front_ordinal[f], s, o):
                score[n], ordinal[n] = front_score[f], front_ordinal[f]
                f += 1
                n += 1
            if n > before:
                continue
        elif first < head[FRONT_END]:
            if head[FRONT_FORMED] == 0:
                if source == NONE or outranks(levels[FRONT_KTH_SCORE], head[FRONT_KTH], s, o):
                    if state.links.shape[0] == 0:
                        return NEEDS_ROOM
                    form_front(state, rules)
                    continue
            else:
                if unit_unseen:
                    form_second_phase(state, rules)
                    unit_unseen = False
                if drop_expired_tops(heap, first) and outranks(heap.score[0], heap.ordinal[0], s, o):
                    s, o, source = heap.score[0], heap.ordinal[0], FROM_STACKS
                    pop_top(heap)
                    front_score[f], front_ordinal[f] = s, o
                    f += 1
                    head[FRONT_COUNT] = f
        if source == NONE:
            break
        c += source == CANDIDATE
        p += source == CURRENT
        u += source == UNFINISHED
        score[n], ordinal[n] = s, o
        n += 1
    return n


@lean
def _oldest(ordinal, count):
    oldest = NOBODY
    for i in range(count):
        oldest = min(oldest, ordinal[i])
    return oldest


@jit
def run(state, rules, tops, begin, scores, windows, start, results):
    """Take rows and answer windows from `start` on. Stops when results are full or, with WANT set, for room.

    The loop touches plain arrays only: handing the whole state to a function costs more than a quiet window does.
    """
    head, levels, k = state.head, state.levels, rules.k
    ring, unit_score, unit_ordinal = state.ring, state.unit_score, state.unit_ordinal
    firsts, ends, top_score, top_ordinal, top_count = windows.first, windows.end, tops.score[0], tops.ordinal[0], tops.count
    proactive = rules.formation == PROACTIVE
    used = 0
    score, ordinal = np.empty(k), np.empty(k, np.int64)
    fresh_score, fresh_ordinal = np.empty(2 * k + 1), np.empty(2 * k + 1, np.int64)
    floor = top_score[k - 1] if top_count[0] == k else -np.inf
    for at in range(start, firsts.shape[0]):
        first, end = firsts[at], ends[at]
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
                return at
            if stop - head[NEXT] <= FEW:
                count, place = head[UNIT_COUNT], head[NEXT] - begin
                place, count = take_few(scores, place, stop - begin, begin, ring, levels[TAU], unit_score, unit_ordinal, count)
                head[UNIT_COUNT], head[NEXT] = count, place + begin
            if head[NEXT] < stop:
                take_rows(state, rules, scores, head[NEXT] - begin, stop - begin, begin)
            if stop == unit_stop and end_unit(state, rules, stop):
                advance_front(state, rules)
                measure(state, rules, first, end, windows.number[at])
        if proactive and slid > 0:
            form_next_ahead(state, rules, slid)
        new = max(head[ANSWERED], first)
        all_there = head[TOP_OLDEST] >= first  # no row of the last answer has left
        if all_there and not any_at_least(scores, new - begin, end - begin, floor):
            hand_out_same(results, at)
            head[ANSWERED] = end
            continue
        if not has_room(results, used, k):
            return at
        if all_there and end - new <= 4 * k:
            _, fresh = collect(scores, new - begin, end - begin, begin, floor, fresh_score, fresh_ordinal, 0, k)
            fresh = finish(fresh_score, fresh_ordinal, fresh, k)
            count = merge(top_score, top_ordinal, top_count[0], fresh_score, fresh_ordinal, fresh, score, ordinal, k)
        else:
            closing = first > head[CURRENT_BEGIN]
            count = NEEDS_ROOM if closing and lacks_room(state, rules) else top_k(state, rules, score, ordinal)
            if count == NEEDS_ROOM:
                head[WANT] = 1
                return at
            if head[CURRENT_BEGIN] == end:  # the window had reached the current partition
                measure(state, rules, first, end, windows.number[at])
        used = hand_out(tops, 0, results, at, used, windows.report[at], score, ordinal, count)
        head[TOP_OLDEST] = _oldest(ordinal, count)
        head[ANSWERED] = end
        floor = score[k - 1] if count == k else -np.inf
    return firsts.shape[0]

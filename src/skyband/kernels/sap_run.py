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
from skyband.kernels.jit import jit
from skyband.kernels.order import outranks
from skyband.kernels.sap_partition import end_unit, gather_unit_afresh, measure, sort_unit, take_rows
from skyband.kernels.sap_rows import take_few
from skyband.kernels.sap_savl import (
    begin_build,
    consume,
    continue_build,
    drop_all_expired_tops,
    drop_expired_tops,
    pop_top,
    scan,
)
from skyband.kernels.sap_state import (
    AHEAD,
    ANSWERED,
    BUILDING,
    CANDIDATES,
    CURRENT_BEGIN,
    CURRENT_COUNT,
    CURRENT_UNIT,
    EAGER,
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
    NOW,
    PARTITION,
    PARTITION_BEGIN,
    PARTITION_COUNT,
    PARTITION_END,
    PARTITION_KTH,
    PARTITION_UNIT,
    PARTITION_UNIT_STOP,
    PARTITION_WHOLE,
    PROACTIVE,
    SECOND_PHASE,
    TAU,
    TOP_OLDEST,
    UNIT,
    UNIT_BEGIN,
    UNIT_COUNT,
    UNIT_FRESH,
    UNIT_IS_K,
    UNIT_KEPT,
    UNIT_LENGTH,
    UNIT_SORTED,
    UNIT_START,
    UNIT_STOP,
    WAITING,
    WANT,
)
from skyband.kernels.tops import hand_out, hand_out_same, has_room

NONE, FRONT, CANDIDATE, CURRENT, UNFINISHED = range(5)  # where the next row of an answer comes from
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


@jit
def lacks_room(state, rules):
    """True when closing two partitions might not fit."""
    head = state.head
    return (
        head[CANDIDATES] + 2 * rules.k > state.candidate_score.shape[0]
        or head[PARTITION_COUNT] + 2 > state.partitions.shape[0]
        or head[UNIT] - head[FRONT_UNIT] + 2 > state.units.shape[0]
    )


@jit
def newer_best(state, rules, after, known_score, known_ordinal):
    """Of the best k rows from `after` on: how many outrank `known` (the group dominance number rho, up to k), and the
    bar of global pruning: just above the k-th of them (F_theta), as an older row of equal score loses."""
    head = state.head
    c = p = u = found = dominating = 0
    bar = -np.inf
    while found < rules.k:
        while c < head[CANDIDATES] and state.candidate_ordinal[c] < after:
            c += 1
        score, ordinal, source = -np.inf, -1, NONE
        if c < head[CANDIDATES]:
            score, ordinal, source = state.candidate_score[c], state.candidate_ordinal[c], CANDIDATE
        if p < head[CURRENT_COUNT] and outranks(state.current_score[p], state.current_ordinal[p], score, ordinal):
            score, ordinal, source = state.current_score[p], state.current_ordinal[p], CURRENT
        if u < head[UNIT_SORTED] and outranks(state.unit_score[u], state.unit_ordinal[u], score, ordinal):
            score, ordinal, source = state.unit_score[u], state.unit_ordinal[u], UNFINISHED
        if source == NONE:
            break
        c += source == CANDIDATE
        p += source == CURRENT
        u += source == UNFINISHED
        found += 1
        if outranks(score, ordinal, known_score, known_ordinal):
            dominating += 1
        if found == rules.k:
            bar = np.nextafter(score, np.inf)
    return dominating, bar


@jit
def continue_front(state, rules, build):
    """Scan what is left of the front and hand its S-AVL over."""
    head = state.head
    continue_build(
        state, rules, build, head[FIRST], head[FRONT_BEGIN], head[FRONT_UNIT], head[FRONT_UNIT_STOP],
        state.levels[FRONT_KTH_SCORE], head[FRONT_KTH], head[FRONT_END],
    )  # fmt: skip
    consume(state, build)
    head[FRONT_FORMED] = 1


@jit
def advance_front(state, rules):
    """Let the closed partition that lost its first rows be the front; its candidates become the front's list."""
    head = state.head
    first = head[FIRST]
    row = -1
    while head[PARTITION_COUNT] > 0 and first > head[FRONT_END]:
        row = head[PARTITION] % state.partitions.shape[0]
        head[FRONT_BEGIN], head[FRONT_END] = state.partitions[row, PARTITION_BEGIN], state.partitions[row, PARTITION_END]
        head[PARTITION] += 1
        head[PARTITION_COUNT] -= 1
    if row < 0:
        return
    record = state.partitions[row]
    end = head[FRONT_END]
    n = listed = 0
    for i in range(head[CANDIDATES]):
        ordinal = state.candidate_ordinal[i]
        if ordinal >= end:
            state.candidate_score[n], state.candidate_ordinal[n] = state.candidate_score[i], ordinal
            state.candidate_dominators[n] = state.candidate_dominators[i]
            n += 1
        elif ordinal >= first:
            state.front_score[listed], state.front_ordinal[listed] = state.candidate_score[i], ordinal
            listed += 1
    head[CANDIDATES], head[FRONT_COUNT] = n, listed
    head[FRONT_KTH], state.levels[FRONT_KTH_SCORE] = record[PARTITION_KTH], state.partition_kth[row]
    head[FRONT_UNIT], head[FRONT_UNIT_STOP] = record[PARTITION_UNIT], record[PARTITION_UNIT_STOP]
    head[FRONT_FORMED] = record[PARTITION_WHOLE]
    head[FRONT_FROM] = head[FRONT_BEGIN]
    head[FRONT_MEANINGFUL] = head[HEAP_COUNT] = 0
    head[SECOND_PHASE] = -1
    if head[FRONT_FORMED] == 0 and rules.formation == EAGER:
        consume(state, WAITING + row)
        head[FRONT_FORMED] = 1
    if head[BUILDING] >= 0 and head[BUILDING] < end:
        if head[BUILDING] == head[FRONT_BEGIN] and head[FRONT_FORMED] == 0:
            continue_front(state, rules, AHEAD)
        head[BUILDING] = -1


@jit
def form_front(state, rules):
    """Form M_0 now: the merge came to the front's k-th best row and is not done."""
    head = state.head
    kth_score, kth = state.levels[FRONT_KTH_SCORE], head[FRONT_KTH]
    dominating, bar = newer_best(state, rules, head[FRONT_END], kth_score, kth)
    begin_build(state, NOW, rules.k - dominating, bar, head[FRONT_END])
    head[FRONT_FROM] = head[FIRST]
    continue_front(state, rules, NOW)


@jit
def form_next_ahead(state, rules, budget):
    """Amortized proactive formation: while the front slides out, scan as many rows of the partition behind it."""
    head = state.head
    if head[PARTITION_COUNT] == 0:
        return
    row = head[PARTITION] % state.partitions.shape[0]
    record = state.partitions[row]
    if record[PARTITION_WHOLE] == 1 or record[PARTITION_BEGIN] < head[FIRST]:
        return
    if head[BUILDING] != record[PARTITION_BEGIN]:
        sort_unit(state)
        kth_score, kth, end = state.partition_kth[row], record[PARTITION_KTH], record[PARTITION_END]
        dominating, bar = newer_best(state, rules, end, kth_score, kth)
        begin_build(state, AHEAD, rules.k - dominating, bar, end)
        head[BUILDING] = record[PARTITION_BEGIN]
    continue_build(
        state, rules, AHEAD, head[FIRST], record[PARTITION_BEGIN], record[PARTITION_UNIT], record[PARTITION_UNIT_STOP],
        state.partition_kth[row], record[PARTITION_KTH], budget,
    )  # fmt: skip


@jit
def form_second_phase(state, rules):
    """UBSA's second phase: the window has reached a k-unit, so its rows below its k best get their own S-AVL.

    Until a unit loses rows, its k best outrank all its others; so none of those can rank, and forming them only
    now keeps the rows taken from the stacks in order.
    """
    head = state.head
    first, rows = head[FIRST], state.units.shape[0]
    while head[FRONT_UNIT] < head[FRONT_UNIT_STOP] and state.units[head[FRONT_UNIT] % rows, UNIT_STOP] <= first:
        head[FRONT_UNIT] += 1
    number = head[FRONT_UNIT]
    if number >= head[FRONT_UNIT_STOP] or number == head[SECOND_PHASE]:
        return
    row = number % rows
    record = state.units[row]
    if record[UNIT_START] >= first:
        return
    head[SECOND_PHASE] = number
    kept = record[UNIT_KEPT]
    if record[UNIT_IS_K] == 0 or kept < rules.k:
        return
    known_score, known_ordinal = state.unit_top_score[row, kept - 1], state.unit_top_ordinal[row, kept - 1]
    dominating, bar = newer_best(state, rules, head[FRONT_END], known_score, known_ordinal)
    if dominating >= rules.k:
        return
    drop_all_expired_tops(state, first)
    begin_build(state, NOW, rules.k - dominating, bar, record[UNIT_STOP])
    scan(state, rules, NOW, first, record[UNIT_STOP], known_score, known_ordinal)
    consume(state, NOW)


@jit
def top_k(state, rules, score, ordinal):
    """Write the window's answer into (score, ordinal); how many rows, or NEEDS_ROOM."""
    head, levels = state.head, state.levels
    first, k = head[FIRST], rules.k
    advance_front(state, rules)
    if first > head[FRONT_END]:
        end_unit(state, rules, head[NEXT])
        advance_front(state, rules)
    sort_unit(state)
    listed = 0
    for i in range(head[FRONT_COUNT]):
        if state.front_ordinal[i] >= first:
            state.front_score[listed], state.front_ordinal[listed] = state.front_score[i], state.front_ordinal[i]
            listed += 1
    head[FRONT_COUNT] = listed
    f = c = p = u = n = 0
    while n < k:
        s, o, source = -np.inf, -1, NONE
        if c < head[CANDIDATES]:
            s, o, source = state.candidate_score[c], state.candidate_ordinal[c], CANDIDATE
        if p < head[CURRENT_COUNT] and outranks(state.current_score[p], state.current_ordinal[p], s, o):
            s, o, source = state.current_score[p], state.current_ordinal[p], CURRENT
        if u < head[UNIT_SORTED]:
            if outranks(state.unit_score[u], state.unit_ordinal[u], s, o):
                s, o, source = state.unit_score[u], state.unit_ordinal[u], UNFINISHED
        elif head[UNIT_FRESH] == 0 and head[NEXT] > head[UNIT_BEGIN] and s < levels[TAU] and (
            f == head[FRONT_COUNT] or state.front_score[f] < levels[TAU]
        ):
            gather_unit_afresh(state, rules)
            sort_unit(state)
            continue
        if f < head[FRONT_COUNT]:
            if outranks(state.front_score[f], state.front_ordinal[f], s, o):
                s, o, source = state.front_score[f], state.front_ordinal[f], FRONT
                f += 1
        elif first < head[FRONT_END]:
            if head[FRONT_FORMED] == 0:
                if source == NONE or outranks(levels[FRONT_KTH_SCORE], head[FRONT_KTH], s, o):
                    if state.links.shape[0] == 0:
                        return NEEDS_ROOM
                    form_front(state, rules)
                    continue
            else:
                if state.links.shape[0] > 0:
                    form_second_phase(state, rules)
                if drop_expired_tops(state, first) and outranks(state.heap_score[0], state.heap_ordinal[0], s, o):
                    s, o, source = state.heap_score[0], state.heap_ordinal[0], FRONT
                    pop_top(state)
                    state.front_score[f], state.front_ordinal[f] = s, o
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


@jit
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
                taken, head[UNIT_COUNT] = take_few(
                    scores, head[NEXT] - begin, stop - begin, begin, ring, levels[TAU], unit_score, unit_ordinal, head[UNIT_COUNT]
                )
                head[NEXT] = taken + begin
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
            count = NEEDS_ROOM if lacks_room(state, rules) else top_k(state, rules, score, ordinal)
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

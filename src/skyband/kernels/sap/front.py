"""The front partition: which one it is, and forming its meaningful objects at the moment the rules say (TKDE17 5).

A closed partition becomes the front when the window begins to take rows from it. Its candidates then leave C for the
front's own list. Its other rows are formed into an S-AVL when an answer asks for them, while the partition before it
slides out, or when it was closed; with units, in two phases (UBSA).
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.jit import lean
from skyband.kernels.order import outranks
from skyband.kernels.sap.partition import sort_unit
from skyband.kernels.sap.savl import (
    begin_build,
    consume,
    continue_build,
    drop_all_expired_tops,
    heap_of,
    scan,
    stacks_of,
)
from skyband.kernels.sap.state import (
    AHEAD,
    BUILDING,
    CANDIDATES,
    CURRENT_COUNT,
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
    NOW,
    PARTITION,
    PARTITION_BEGIN,
    PARTITION_COUNT,
    PARTITION_END,
    PARTITION_KTH,
    PARTITION_UNIT,
    PARTITION_UNIT_STOP,
    PARTITION_WHOLE,
    SECOND_PHASE,
    UNIT_IS_K,
    UNIT_KEPT,
    UNIT_SORTED,
    UNIT_START,
    UNIT_STOP,
    WAITING,
)

NONE, CANDIDATE, CURRENT, UNFINISHED = range(4)  # where the next best row comes from


@lean
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


@lean
def continue_front(state, rules, spare, build):
    """Scan what is left of the front and hand its S-AVL over."""
    head = state.head
    continue_build(
        state, rules, spare, build, head[FIRST], head[FRONT_BEGIN], head[FRONT_UNIT], head[FRONT_UNIT_STOP],
        state.levels[FRONT_KTH_SCORE], head[FRONT_KTH], head[FRONT_END],
    )  # fmt: skip
    consume(state, build)
    head[FRONT_FORMED] = 1


@lean
def advance_front(state, rules, spare):
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
            continue_front(state, rules, spare, AHEAD)
        head[BUILDING] = -1


@lean
def form_front(state, rules, spare):
    """Form M_0 now: the merge came to the front's k-th best row and is not done."""
    head = state.head
    kth_score, kth = state.levels[FRONT_KTH_SCORE], head[FRONT_KTH]
    dominating, bar = newer_best(state, rules, head[FRONT_END], kth_score, kth)
    begin_build(state, NOW, rules.k - dominating, bar, head[FRONT_END])
    head[FRONT_FROM] = head[FIRST]
    continue_front(state, rules, spare, NOW)


@lean
def form_next_ahead(state, rules, spare, budget):
    """Amortized proactive formation: while the front slides out, scan as many rows of the partition behind it."""
    head = state.head
    if head[PARTITION_COUNT] == 0:
        return
    row = head[PARTITION] % state.partitions.shape[0]
    record = state.partitions[row]
    if record[PARTITION_WHOLE] == 1 or record[PARTITION_BEGIN] < head[FIRST]:
        return
    if head[BUILDING] != record[PARTITION_BEGIN]:
        sort_unit(state, spare)
        kth_score, kth, end = state.partition_kth[row], record[PARTITION_KTH], record[PARTITION_END]
        dominating, bar = newer_best(state, rules, end, kth_score, kth)
        begin_build(state, AHEAD, rules.k - dominating, bar, end)
        head[BUILDING] = record[PARTITION_BEGIN]
    continue_build(
        state, rules, spare, AHEAD, head[FIRST], record[PARTITION_BEGIN], record[PARTITION_UNIT], record[PARTITION_UNIT_STOP],
        state.partition_kth[row], record[PARTITION_KTH], budget,
    )  # fmt: skip


@lean
def form_second_phase(state, rules, spare):
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
    drop_all_expired_tops(heap_of(state), first)
    begin_build(state, NOW, rules.k - dominating, bar, record[UNIT_STOP])
    scan(stacks_of(state), rules, spare, NOW, first, record[UNIT_STOP], known_score, known_ordinal)
    consume(state, NOW)

"""The current partition: units, their best rows, where the partition ends, and merging it into the candidates.

Rows are gathered unit by unit; a unit's k best are merged into P_m^k. The policy then says whether the partition
goes on. When it is closed, P_m^k is merged into the candidate set C in one pass that also counts, for every older
candidate, how many rows of P_m^k outrank it, and drops it at k (TKDE17 3.1, figure 4).

TBUI (4.3, algorithm 2 as the errata read it) keeps a threshold tau from unit to unit. All policies gather with it; only
the enhanced one labels units by it. A unit that fills the buffer of 2 zeta* rows above tau is in an uptrend: tau rises to
its zeta*-th best. A unit with fewer than k rows above tau is in a downtrend. Deviation: it is then gathered again at once
from the raw rows, which gives its exact k best and the new tau, instead of initializing tau during the next unit.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.best import keep_best, merge, sort_best, worst
from skyband.kernels.jit import lean
from skyband.kernels.order import outranks
from skyband.kernels.sap.ranksum import evaluate
from skyband.kernels.sap.rows import FEW, PIECE, copy_list, gather, gather_rows, store, take_few
from skyband.kernels.sap.savl import begin_build, continue_build
from skyband.kernels.sap.state import (
    CANDIDATES,
    CURRENT_BEGIN,
    CURRENT_COUNT,
    CURRENT_UNIT,
    EAGER,
    ENHANCED,
    EQUAL,
    FIRST,
    LARGEST,
    NEXT,
    PARTITION,
    PARTITION_BEGIN,
    PARTITION_COUNT,
    PARTITION_END,
    PARTITION_KTH,
    PARTITION_UNIT,
    PARTITION_UNIT_STOP,
    PARTITION_WHOLE,
    STEP_NEXT,
    STEP_NUMBER,
    STEP_ROWS,
    TAU,
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
    WINDOW_ROWS,
)


@lean
def unit_length(n, s, k, policy, partitions):
    """l_min, or the size of an equal partition: a multiple of the slide that holds at least k rows."""
    least = max(s, k)
    if partitions > 0:
        length = n / partitions
    elif policy == EQUAL:
        length = n / np.ceil(np.sqrt(n / least))  # n / m*
        if length <= 2 * s:
            length = float(s)
    else:
        length = np.sqrt(float(n) * least)
    slides = max(np.int64(np.round(length / s)), (least + s - 1) // s)
    return slides * s


@lean
def largest_length(n, eta):
    """l_max, the solution of (n - l_max) / l_max = eta."""
    return np.int64(n / (1 + eta))


@lean
def measure(state, rules, first, end, number):
    """Set the sizes of the partition that begins: for time windows (appendix A) from the rows seen lately."""
    head = state.head
    n, s = rules.size, rules.slide
    if n == 0:
        n, s = max(end - first, 1), head[STEP_ROWS]
        if number > head[STEP_NUMBER]:
            if head[NEXT] > head[STEP_NEXT] and head[STEP_NUMBER] >= 0:
                s = max((head[NEXT] - head[STEP_NEXT]) // (number - head[STEP_NUMBER]), 1)
            head[STEP_NUMBER], head[STEP_NEXT] = number, head[NEXT]
    head[WINDOW_ROWS], head[STEP_ROWS] = n, s
    head[UNIT_LENGTH] = unit_length(n, s, rules.k, rules.policy, rules.partitions)
    head[LARGEST] = largest_length(n, rules.eta)


@lean
def take_rows(head, levels, ring, unit_score, unit_ordinal, keep, scores, begin, stop, shift):
    """Store scores[begin:stop] and gather those that may be among the unit's best. Takes the arrays it needs one by one:
    this is done at least once a slide, and handing over the whole state costs as much as a hundred rows."""
    tau, count = levels[TAU], head[UNIT_COUNT]
    if stop - begin <= FEW:
        begin, count = take_few(scores, begin, stop, shift, ring, tau, unit_score, unit_ordinal, count)
    while begin < stop:
        piece = min(begin + PIECE, stop)
        store(ring, begin + shift, scores, begin, piece)
        tau, count, reduced = gather(scores, begin, piece, shift, tau, unit_score, unit_ordinal, count, keep)
        if reduced:
            head[UNIT_SORTED] = 0
        begin = piece
    levels[TAU], head[UNIT_COUNT], head[NEXT] = tau, count, stop + shift


@lean
def sort_unit(state, spare):
    """Sort the unfinished unit's buffer; what came since the last time is sorted alone and merged in."""
    head = state.head
    count, ready = head[UNIT_COUNT], head[UNIT_SORTED]
    score, ordinal = state.unit_score, state.unit_ordinal
    if ready == count:
        return
    if ready == 0:
        sort_best(score, ordinal, count)
    else:
        late = count - ready
        late_score, late_ordinal = spare.score, spare.ordinal
        copy_list(score[ready:], ordinal[ready:], late_score, late_ordinal, late)
        sort_best(late_score, late_ordinal, late)
        place = count
        while late > 0:
            place -= 1
            if ready > 0 and outranks(late_score[late - 1], late_ordinal[late - 1], score[ready - 1], ordinal[ready - 1]):
                ready -= 1
                score[place], ordinal[place] = score[ready], ordinal[ready]
            else:
                late -= 1
                score[place], ordinal[place] = late_score[late], late_ordinal[late]
    head[UNIT_SORTED] = count


@lean
def gather_unit_afresh(state, rules):
    """Forget tau and gather the unfinished unit again from the raw rows."""
    head = state.head
    low = max(head[UNIT_BEGIN], head[FIRST])
    state.levels[TAU], head[UNIT_COUNT] = gather_rows(
        state.ring, low, head[NEXT], -np.inf, state.unit_score, state.unit_ordinal, rules.keep
    )
    head[UNIT_SORTED] = 0
    head[UNIT_FRESH] = 1


@lean
def refine(state, rules):
    """Merge P_m^k into C, in place. O(|C| + k).

    From the worst row on, every row goes as far back as there is room for; then what is left closes up to the front.
    """
    head, k = state.head, rules.k
    held, ours, first = head[CANDIDATES], head[CURRENT_COUNT], head[FIRST]
    score, ordinal, dominators = state.candidate_score, state.candidate_ordinal, state.candidate_dominators
    our_score, our_ordinal = state.current_score, state.current_ordinal
    i, j, begin, stop = held - 1, ours - 1, held + ours, held + ours
    while i >= 0 or j >= 0:
        if i >= 0 and (j < 0 or outranks(our_score[j], our_ordinal[j], score[i], ordinal[i])):
            s, o, d = score[i], ordinal[i], dominators[i] + j + 1
            i -= 1
        else:
            s, o, d = our_score[j], our_ordinal[j], 0
            j -= 1
        if d < k and o >= first:
            begin -= 1
            score[begin], ordinal[begin], dominators[begin] = s, o, d
    head[CANDIDATES] = stop - begin
    for n in range(stop - begin):
        score[n], ordinal[n], dominators[n] = score[begin + n], ordinal[begin + n], dominators[begin + n]


@lean
def seal(state, rules, spare, end):
    """Close the current partition at `end`: into C and to the back of the queue. The next one begins there."""
    head = state.head
    refine(state, rules)
    rows = state.partitions.shape[0]
    row = (head[PARTITION] + head[PARTITION_COUNT]) % rows
    record = state.partitions[row]
    record[PARTITION_BEGIN], record[PARTITION_END] = head[CURRENT_BEGIN], end
    whole = head[CURRENT_COUNT] < rules.k
    record[PARTITION_WHOLE] = 1 if whole else 0
    record[PARTITION_KTH] = -1 if whole else state.current_ordinal[rules.k - 1]
    state.partition_kth[row] = -np.inf if whole else state.current_score[rules.k - 1]
    record[PARTITION_UNIT], record[PARTITION_UNIT_STOP] = head[CURRENT_UNIT], head[UNIT]
    head[PARTITION_COUNT] += 1
    if rules.formation == EAGER and not whole:
        build = WAITING + row
        begin_build(state, build, rules.k, -np.inf, end)
        continue_build(
            state, rules, spare, build, head[FIRST], head[CURRENT_BEGIN], head[CURRENT_UNIT], head[UNIT],
            state.partition_kth[row], record[PARTITION_KTH], end,
        )  # fmt: skip
    head[CURRENT_BEGIN] = end
    head[CURRENT_UNIT] = head[UNIT]
    head[CURRENT_COUNT] = 0


@lean
def proper(state, rules, spare, count, length):
    """The rank-sum test: may a partition of this length, whose best rows are the first of `spare`, go on?"""
    head = state.head
    oldest = head[NEXT] - head[WINDOW_ROWS] + length
    theirs = spare.score[rules.k :]
    n = 0
    for i in range(head[CANDIDATES]):
        if n == rules.keep:
            break
        if state.candidate_ordinal[i] >= oldest:
            theirs[n] = state.candidate_score[i]
            n += 1
    return evaluate(spare.score, count, theirs, n, rules.critical) <= 0


@lean
def record_unit(state, end, downtrend):
    """Enter the finished unit into L_i: a k-unit for now; it disqualifies its predecessor unless scores fell."""
    head = state.head
    rows = state.units.shape[0]
    number, kept = head[UNIT], head[UNIT_COUNT]
    row = number % rows
    record = state.units[row]
    record[UNIT_START], record[UNIT_STOP], record[UNIT_IS_K], record[UNIT_KEPT] = head[UNIT_BEGIN], end, 1, kept
    best = -np.inf
    for i in range(kept):
        best = max(best, state.unit_score[i])
    state.unit_best[row] = best
    copy_list(state.unit_score, state.unit_ordinal, state.unit_top_score[row], state.unit_top_ordinal[row], kept)
    if not downtrend and number > head[CURRENT_UNIT]:
        state.units[(number - 1) % rows, UNIT_IS_K] = 0
    head[UNIT] += 1


@lean
def keep_unit_best(state, k):
    """Reduce the finished unit's buffer to its best k, in any order but for the worst, which is put last. Returns how many."""
    head, score, ordinal = state.head, state.unit_score, state.unit_ordinal
    kept = min(head[UNIT_COUNT], k)
    keep_best(score, ordinal, head[UNIT_COUNT], kept)
    if kept > 0:
        place, last = worst(score, ordinal, kept), kept - 1
        score[place], score[last] = score[last], score[place]
        ordinal[place], ordinal[last] = ordinal[last], ordinal[place]
    head[UNIT_COUNT] = kept
    return kept


@lean
def merge_unit(state, spare, kept, k):
    """Write the k best of the current partition, the finished unit among it, into `spare`. Returns how many.

    Only rows of the unit that rank above the k-th so far are put in order; they are fewer with every unit.
    """
    head, score, ordinal = state.head, state.unit_score, state.unit_ordinal
    held = head[CURRENT_COUNT]
    bar_score, bar = -np.inf, np.int64(-1)
    if held == k:
        bar_score, bar = state.current_score[k - 1], state.current_ordinal[k - 1]
    new_score, new_ordinal = spare.score[k:], spare.ordinal[k:]
    new = 0
    for i in range(kept):
        new_score[new], new_ordinal[new] = score[i], ordinal[i]
        new += outranks(score[i], ordinal[i], bar_score, bar)
    sort_best(new_score, new_ordinal, new)
    return merge(state.current_score, state.current_ordinal, held, new_score, new_ordinal, new, spare.score, spare.ordinal, k)


@lean
def end_unit(state, rules, spare, end):
    """Finish the unit [UNIT_BEGIN, end) and let the policy decide; True when a partition was closed.

    A unit is ended before its time when the window has reached the current partition, which is then closed here.
    """
    head, k = state.head, rules.k
    closing = end < head[UNIT_BEGIN] + head[UNIT_LENGTH]
    score, ordinal = state.unit_score, state.unit_ordinal
    sealed = False
    if end > head[UNIT_BEGIN]:
        if head[UNIT_COUNT] < k and head[UNIT_FRESH] == 0:
            gather_unit_afresh(state, rules)
        downtrend = head[UNIT_FRESH] == 1
        if downtrend:
            if head[UNIT_COUNT] > rules.keep:
                keep_best(score, ordinal, head[UNIT_COUNT], rules.keep)
                head[UNIT_COUNT] = rules.keep
            full = head[UNIT_COUNT] == rules.keep
            state.levels[TAU] = score[worst(score, ordinal, rules.keep)] if full else -np.inf
        kept = keep_unit_best(state, k)
        both = merge_unit(state, spare, kept, k)
        length = end - head[CURRENT_BEGIN]
        grown = head[UNIT_BEGIN] > head[CURRENT_BEGIN] and not closing
        if grown and (length > head[LARGEST] or not proper(state, rules, spare, both, length)):
            seal(state, rules, spare, head[UNIT_BEGIN])
            sealed = True
            both = kept
            copy_list(score, ordinal, spare.score, spare.ordinal, both)
            sort_best(spare.score, spare.ordinal, both)
        copy_list(spare.score, spare.ordinal, state.current_score, state.current_ordinal, both)
        head[CURRENT_COUNT] = both
        if rules.policy == ENHANCED:
            record_unit(state, end, downtrend)
    if rules.policy == EQUAL or closing:
        seal(state, rules, spare, end)
        sealed = True
    head[UNIT_BEGIN] = end
    head[UNIT_COUNT] = head[UNIT_SORTED] = 0
    head[UNIT_FRESH] = 1 if state.levels[TAU] == -np.inf else 0
    return sealed

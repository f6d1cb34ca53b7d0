"""SAP's answers: what is left of the last one, the new rows that enter it, and a merge for what is missing.

Of the rows that rank above the last answer's k-th row, those that are still in the window are known: they are the last
answer's own and the new ones. So only rows below it have to be looked for, and each list is entered at that place.
They come, best first, from four sorted lists: the front's known rows, the candidates of the partitions behind it, the
current partition's finished units and its unfinished unit. Two of them may hide rows below a known level: the front below
its k-th best (delay policy: its meaningful objects are formed only when the merge comes to that level, so never when its
group dominance number reaches k), the unfinished unit below tau (it is then gathered afresh). The unfinished unit is
sorted only when one of its rows since the last time may be the next.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.best import finish, shift_down
from skyband.kernels.jit import lean, tiny
from skyband.kernels.order import outranks
from skyband.kernels.sap.front import (
    CANDIDATE,
    CURRENT,
    NONE,
    UNFINISHED,
    advance_front,
    form_front,
    form_second_phase,
)
from skyband.kernels.sap.partition import end_unit, gather_unit_afresh, sort_unit
from skyband.kernels.sap.savl import drop_expired_tops, heap_of, pop_run
from skyband.kernels.sap.state import (
    CANDIDATES,
    CURRENT_BEGIN,
    CURRENT_COUNT,
    ENHANCED,
    FIRST,
    FRONT_COUNT,
    FRONT_END,
    FRONT_FORMED,
    FRONT_KTH,
    FRONT_KTH_SCORE,
    FRONT_UNIT,
    NEXT,
    NOBODY,
    SECOND_PHASE,
    TAU,
    UNIT_BEGIN,
    UNIT_COUNT,
    UNIT_FRESH,
    UNIT_SORTED,
    UNIT_STOP,
)

FRONT = 4  # besides sap_front's sources: the next row is the front's
NEEDS_ROOM = -1
ONE_BY_ONE = 4  # new rows up to which each is put in its place; more are sorted and merged


@lean
def place_below(score, ordinal, count, above_score, above_ordinal):
    """The first place of a sorted list whose row ranks below the row `above`; most often it is one of the ends."""
    low, high = 0, count
    if count > 0 and outranks(above_score, above_ordinal, score[0], ordinal[0]):
        return 0
    if count > 0 and not outranks(above_score, above_ordinal, score[count - 1], ordinal[count - 1]):
        return count
    while low < high:
        middle = (low + high) >> 1
        if outranks(above_score, above_ordinal, score[middle], ordinal[middle]):
            high = middle
        else:
            low = middle + 1
    return low


@lean
def oldest_of(ordinal, count):
    """The least ordinal of a list, NOBODY if it is empty."""
    oldest = NOBODY
    for i in range(count):
        oldest = min(oldest, ordinal[i])
    return oldest


@lean
def copy_live(score, ordinal, count, first, live_score, live_ordinal):
    """Copy the rows of a list that have not expired. Returns how many there are."""
    skip = 0
    while skip < count and ordinal[skip] < first:
        skip += 1
    left = count - skip
    from_score, from_ordinal = score[skip:count], ordinal[skip:count]  # views: the loops are vectorized
    gone = 0
    for i in range(left):
        gone += from_ordinal[i] < first
    if gone == 0:
        for i in range(left):
            live_score[i] = from_score[i]
        for i in range(left):
            live_ordinal[i] = from_ordinal[i]
        return left
    n = 0
    for i in range(left):
        live_score[n], live_ordinal[n] = from_score[i], from_ordinal[i]
        n += from_ordinal[i] >= first
    return n


@lean
def copy_run(score, ordinal, start, stop, target_score, target_ordinal, place):
    """Copy the rows [start, stop) to another list, from `place` on. Returns the place after them."""
    count = stop - start
    from_score, from_ordinal = score[start:stop], ordinal[start:stop]  # views: the loops are vectorized
    to_score, to_ordinal = target_score[place : place + count], target_ordinal[place : place + count]
    for i in range(count):
        to_score[i] = from_score[i]
    for i in range(count):
        to_ordinal[i] = from_ordinal[i]
    return place + count


@lean
def merge_runs(score, ordinal, start, count, fresh_score, fresh_ordinal, fresh, answer_score, answer_ordinal, k):
    """Merge the rows [start, count) of a list with the sorted new rows, at most k rows. Returns how many.

    New rows mostly stand side by side, above all others where scores rise; what lies between two of them is copied at once.
    """
    a, b, n = start, 0, 0
    while n < k and b < fresh:
        above = a + place_below(score[a:], ordinal[a:], count - a, fresh_score[b], fresh_ordinal[b])
        n = copy_run(score, ordinal, a, min(above, a + k - n), answer_score, answer_ordinal, n)
        a = above
        while n < k and b < fresh and (a == count or outranks(fresh_score[b], fresh_ordinal[b], score[a], ordinal[a])):
            answer_score[n], answer_ordinal[n] = fresh_score[b], fresh_ordinal[b]
            b += 1
            n += 1
    return copy_run(score, ordinal, a, min(count, a + k - n), answer_score, answer_ordinal, n)


@lean
def merge_live(score, ordinal, count, first, fresh_score, fresh_ordinal, fresh, answer_score, answer_ordinal, k):
    """Merge what is left of a list with the sorted new rows, at most k rows. Returns how many."""
    a = b = n = 0
    while a < count and ordinal[a] < first:
        a += 1
    if oldest_of(ordinal[a:], count - a) >= first:
        return merge_runs(score, ordinal, a, count, fresh_score, fresh_ordinal, fresh, answer_score, answer_ordinal, k)
    while n < k:
        while a < count and ordinal[a] < first:
            a += 1
        if a < count and (b == fresh or outranks(score[a], ordinal[a], fresh_score[b], fresh_ordinal[b])):
            answer_score[n], answer_ordinal[n] = score[a], ordinal[a]
            a += 1
        elif b < fresh:
            answer_score[n], answer_ordinal[n] = fresh_score[b], fresh_ordinal[b]
            b += 1
        else:
            break
        n += 1
    return n


@lean
def enter(score, ordinal, count, new_score, new_ordinal, k):
    """Put a new row in its place in a list of the k best. Returns how many there are now."""
    place = place_below(score, ordinal, count, new_score, new_ordinal)
    if place == k:
        return count
    count = min(count + 1, k)
    shift_down(score, place, count - 1, new_score)
    shift_down(ordinal, place, count - 1, new_ordinal)
    return count


@tiny
def carry_over(score, ordinal, count, first, fresh_score, fresh_ordinal, fresh, answer_score, answer_ordinal, k):
    """The last answer without expired rows, with the new ones that rank above its last row: at most k. Returns how many."""
    if fresh > ONE_BY_ONE:
        fresh = finish(fresh_score, fresh_ordinal, fresh, k)
        return merge_live(score, ordinal, count, first, fresh_score, fresh_ordinal, fresh, answer_score, answer_ordinal, k)
    n = copy_live(score, ordinal, count, first, answer_score, answer_ordinal)
    for i in range(fresh):
        n = enter(answer_score, answer_ordinal, n, fresh_score[i], fresh_ordinal[i], k)
    return n


@lean
def forget_expired(state):
    """Take the expired rows out of the front's list."""
    head = state.head
    head[FRONT_COUNT] = copy_live(
        state.front_score, state.front_ordinal, head[FRONT_COUNT], head[FIRST], state.front_score, state.front_ordinal
    )


@lean
def any_between(score, begin, stop, low, high):
    """True when some row of score[begin:stop] is neither below `low` nor above `high`."""
    part = score[begin:stop]  # a view: the loop is vectorized
    hits = 0
    for i in range(part.size):
        hits += (part[i] >= low) & (part[i] <= high)
    return hits > 0


@tiny
def complete(state, rules, spare, score, ordinal, n, last_score, last_ordinal):
    """Write the rows that rank below the row `last` behind the first n of (score, ordinal), up to k.

    The first n must be the rows of the window that rank at or above `last`. Returns how many rows
    there are then, or NEEDS_ROOM.
    """
    head, levels = state.head, state.levels
    first, k = head[FIRST], rules.k
    if first > head[FRONT_END]:
        if first > head[CURRENT_BEGIN]:
            end_unit(state, rules, spare, head[NEXT])
        advance_front(state, rules, spare)
    if n == 0:
        sort_unit(state, spare)
    candidate_score, candidate_ordinal = state.candidate_score, state.candidate_ordinal
    current_score, current_ordinal = state.current_score, state.current_ordinal
    unit_score, unit_ordinal = state.unit_score, state.unit_ordinal
    front_score, front_ordinal = state.front_score, state.front_ordinal
    heap = heap_of(state)
    number = head[FRONT_UNIT]
    unit_seen = number == head[SECOND_PHASE] and first < state.units[number % state.units.shape[0], UNIT_STOP]
    unit_unseen = rules.policy == ENHANCED and state.links.shape[0] > 0 and not unit_seen
    f = place_below(front_score, front_ordinal, head[FRONT_COUNT], last_score, last_ordinal)
    c = place_below(candidate_score, candidate_ordinal, head[CANDIDATES], last_score, last_ordinal)
    p = place_below(current_score, current_ordinal, head[CURRENT_COUNT], last_score, last_ordinal)
    u = place_below(unit_score, unit_ordinal, head[UNIT_SORTED], last_score, last_ordinal)
    while n < k:
        s, o, source = -np.inf, -1, NONE
        if c < head[CANDIDATES]:
            s, o, source = candidate_score[c], candidate_ordinal[c], CANDIDATE
        if p < head[CURRENT_COUNT] and outranks(current_score[p], current_ordinal[p], s, o):
            s, o, source = current_score[p], current_ordinal[p], CURRENT
        if u < head[UNIT_SORTED] and outranks(unit_score[u], unit_ordinal[u], s, o):
            s, o, source = unit_score[u], unit_ordinal[u], UNFINISHED
        while f < head[FRONT_COUNT] and front_ordinal[f] < first:
            f += 1
        if f < head[FRONT_COUNT] and outranks(front_score[f], front_ordinal[f], s, o):
            s, o, source = front_score[f], front_ordinal[f], FRONT
        ready, held = head[UNIT_SORTED], head[UNIT_COUNT]
        hidden = u == ready and head[UNIT_FRESH] == 0 and head[NEXT] > head[UNIT_BEGIN] and s < levels[TAU]
        if hidden or (ready < held and any_between(unit_score, ready, held, s, last_score)):
            if hidden:
                gather_unit_afresh(state, rules)
            sort_unit(state, spare)
            u = place_below(unit_score, unit_ordinal, head[UNIT_SORTED], last_score, last_ordinal)
            continue
        if f == head[FRONT_COUNT] and first < head[FRONT_END]:
            if head[FRONT_FORMED] == 0:
                if source == NONE or outranks(levels[FRONT_KTH_SCORE], head[FRONT_KTH], s, o):
                    if state.links.shape[0] == 0:
                        return NEEDS_ROOM
                    sort_unit(state, spare)
                    u = place_below(unit_score, unit_ordinal, head[UNIT_SORTED], last_score, last_ordinal)
                    form_front(state, rules, spare)
                    continue
            else:
                if unit_unseen:
                    sort_unit(state, spare)
                    u = place_below(unit_score, unit_ordinal, head[UNIT_SORTED], last_score, last_ordinal)
                    form_second_phase(state, rules, spare)
                    unit_unseen = False
                before = n
                while n < k and drop_expired_tops(heap, first) and outranks(heap.score[0], heap.ordinal[0], s, o):
                    if f == front_score.shape[0]:
                        forget_expired(state)
                        f = head[FRONT_COUNT]
                    f, n = pop_run(
                        heap, first, s, o, front_score, front_ordinal, f, score, ordinal, n, last_score, last_ordinal, k
                    )
                    head[FRONT_COUNT] = f
                if n > before:
                    last_score, last_ordinal = score[n - 1], ordinal[n - 1]
                    continue
        if source == NONE:
            break
        c += source == CANDIDATE
        p += source == CURRENT
        u += source == UNFINISHED
        f += source == FRONT
        score[n], ordinal[n] = s, o
        last_score, last_ordinal = s, o
        n += 1
    return n

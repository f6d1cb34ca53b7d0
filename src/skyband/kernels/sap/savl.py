"""S-AVL: the meaningful objects of a partition, in stacks whose tops form a search tree (TKDE17 5.1, appendix C).

A partition is scanned from its newest row to its oldest. Global pruning leaves out rows that k newer rows of later
partitions outrank (F_theta); local pruning those that all k - rho stack tops outrank. What is left goes onto the
stack with the largest top below it, so rows rise from bottom to top of a stack while they get older, and a row that
expires is always a top. A popped row is replaced by the next of its stack.

Deviations. While building, pushing never changes the order of the tops, so the AVL tree is a sorted array; while
consuming only the best top is ever taken, so it is a binary heap. Stacks are chains of distances beside the raw
rows: no node is allocated. With `SORTED` (algorithm 1 without S-AVL) there is one chain, best first, built by plain
insertion. Where the slide is known and larger than the number of stacks, each slide is first reduced to its best
k - rho rows (appendix C); they leave together, so they are pushed best first, or put on one stack worst first if they are
above all tops.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.best import BLOCK, finish, shift_down, sort_best
from skyband.kernels.jit import lean, tiny
from skyband.kernels.order import outranks
from skyband.kernels.sap.rows import contiguous_before, gather_rows
from skyband.kernels.sap.state import (
    BUILD_LIMIT,
    BUILD_POSITION,
    BUILD_PUSHED,
    BUILD_STACKS,
    FRONT_MEANINGFUL,
    HEAP_COUNT,
    SORTED,
    UNIT_IS_K,
    UNIT_KEPT,
    UNIT_START,
    Heap,
    Stacks,
)


@lean
def stacks_of(state):
    """What building needs of the state."""
    return Stacks(state.stack_score, state.stack_ordinal, state.builds, state.bars, state.ring, state.links)


@lean
def heap_of(state):
    """What consuming needs of the state."""
    return Heap(state.head, state.heap_score, state.heap_ordinal, state.ring, state.links)


@lean
def begin_build(state, build, limit, bar, position):
    """An empty S-AVL of at most `limit` stacks, for rows before `position` that are not below the bar."""
    state.builds[build, BUILD_STACKS] = 0
    state.builds[build, BUILD_LIMIT] = limit
    state.builds[build, BUILD_PUSHED] = 0
    state.builds[build, BUILD_POSITION] = position
    state.bars[build] = bar


@tiny
def put_on_stack(tops, below, count, limit, links, mask, score, ordinal):
    """Put a row, older than all before (or of their slide and worse), on the stack where it belongs. Returns how many stacks
    there are now and the place of its stack, or -1 when all `limit` tops outrank it: it is pruned."""
    smaller = count  # how many tops the row is above
    if count > 0 and score <= tops[count - 1]:
        low, smaller = 0, count - 1
        while low < smaller:
            middle = (low + smaller) // 2
            if tops[middle] < score:
                low = middle + 1
            else:
                smaller = middle
    if count < limit:
        shift_down(tops, smaller, count, score)
        shift_down(below, smaller, count, ordinal)
        links[ordinal & mask] = 0
        return count + 1, smaller
    if smaller > 0:
        links[ordinal & mask] = below[smaller - 1] - ordinal
        tops[smaller - 1], below[smaller - 1] = score, ordinal
    return count, smaller - 1


@lean
def push(stacks, build, score, ordinal):
    """Put a row where it belongs, or prune it."""
    tops, limit, before = stacks.score[build], stacks.builds[build, BUILD_LIMIT], stacks.builds[build, BUILD_STACKS]
    count, place = put_on_stack(
        tops, stacks.ordinal[build], before, limit, stacks.links, stacks.ring.shape[0] - 1, score, ordinal
    )
    stacks.builds[build, BUILD_STACKS] = count
    stacks.builds[build, BUILD_PUSHED] += place >= 0
    if count == limit and (place == 0 or before < limit):  # the least top is another one
        stacks.bars[build] = max(stacks.bars[build], np.nextafter(tops[0], np.inf))


@lean
def push_all(stacks, build, begin, stop, known_score, known_ordinal):
    """Push the rows [begin, stop), which lie side by side in the ring, newest first."""
    ring, links, tops, below = stacks.ring, stacks.links, stacks.score[build], stacks.ordinal[build]
    mask = ring.shape[0] - 1
    count, limit, bar = stacks.builds[build, BUILD_STACKS], stacks.builds[build, BUILD_LIMIT], stacks.bars[build]
    pushed = 0
    for ordinal in range(stop - 1, begin - 1, -1):
        score = ring[ordinal & mask]
        if score >= bar and outranks(known_score, known_ordinal, score, ordinal):
            before = count
            count, place = put_on_stack(tops, below, count, limit, links, mask, score, ordinal)
            pushed += place >= 0
            if count == limit and (place == 0 or before < limit):
                bar = max(bar, np.nextafter(tops[0], np.inf))
    stacks.builds[build, BUILD_STACKS], stacks.bars[build] = count, bar
    stacks.builds[build, BUILD_PUSHED] += pushed


@lean
def insert_sorted(stacks, build, score, ordinal):
    """The same without stacks: one chain, best first. A row behind `limit` others, all newer, is pruned."""
    ring, links = stacks.ring, stacks.links
    mask = ring.shape[0] - 1
    tops, below = stacks.score[build], stacks.ordinal[build]
    links[ordinal & mask] = 0
    if stacks.builds[build, BUILD_STACKS] == 0 or score > tops[0]:
        if stacks.builds[build, BUILD_STACKS] > 0:
            links[ordinal & mask] = below[0] - ordinal
        tops[0], below[0] = score, ordinal
        stacks.builds[build, BUILD_STACKS] = 1
    else:
        before, passed = below[0], 1
        while True:
            if passed == stacks.builds[build, BUILD_LIMIT]:
                stacks.bars[build] = max(stacks.bars[build], np.nextafter(ring[before & mask], np.inf))
                return
            step = links[before & mask]
            if step == 0 or ring[(before + step) & mask] < score:
                break
            before += step
            passed += 1
        if step != 0:
            links[ordinal & mask] = before + step - ordinal
        links[before & mask] = ordinal - before
    stacks.builds[build, BUILD_PUSHED] += 1


@lean
def take_in(stacks, rules, build, score, ordinal):
    """Push or insert, as the rules say."""
    if rules.meaningful == SORTED:
        insert_sorted(stacks, build, score, ordinal)
    else:
        push(stacks, build, score, ordinal)


@lean
def push_slide(stacks, rules, build, score, ordinal):
    """Push what is left of a slide, sorted best first, or prune it.

    As its rows leave together, it may lie on a stack worst first, too. Where all of it is above all tops, as where scores fall,
    it is put on the best top like that: so it is taken from one stack again, in order.
    """
    stop = score.shape[0]
    while stop > 0 and score[stop - 1] < stacks.bars[build]:
        stop -= 1
    held = stacks.builds[build, BUILD_STACKS]
    if stop == 0 or rules.meaningful == SORTED or held == 0 or score[stop - 1] <= stacks.score[build, held - 1]:
        for i in range(stop):
            if score[i] >= stacks.bars[build]:
                take_in(stacks, rules, build, score[i], ordinal[i])
        return
    links, mask = stacks.links, stacks.ring.shape[0] - 1
    below = stacks.ordinal[build, held - 1]
    for i in range(stop - 1, -1, -1):
        links[ordinal[i] & mask] = below - ordinal[i]
        below = ordinal[i]
    stacks.score[build, held - 1], stacks.ordinal[build, held - 1] = score[0], ordinal[0]
    stacks.builds[build, BUILD_PUSHED] += stop
    if held == 1 and stacks.builds[build, BUILD_LIMIT] == 1:  # the least top is another one
        stacks.bars[build] = max(stacks.bars[build], np.nextafter(score[0], np.inf))


@lean
def slide_begin(rules, stop):
    """Where the run of rows before `stop` that enter and leave together begins (count windows)."""
    last = stop - 1
    odd = -rules.size % rules.slide  # windows begin at multiples of the slide plus this
    return max(last // rules.slide * rules.slide, (last - odd) // rules.slide * rules.slide + odd)


@lean
def scan(stacks, rules, spare, build, low, high, known_score, known_ordinal):
    """Push the rows [low, high), newest first, leaving out those known already: that rank at or above `known`."""
    ring = stacks.ring
    mask = ring.shape[0] - 1
    limit = stacks.builds[build, BUILD_LIMIT]
    if limit <= 0:
        return
    if rules.slide > limit:
        slide_score, slide_ordinal = spare.score[: 2 * limit + BLOCK], spare.ordinal[: 2 * limit + BLOCK]
        while low < high:
            begin = max(low, slide_begin(rules, high))
            _, count = gather_rows(ring, begin, high, stacks.bars[build], slide_score, slide_ordinal, limit)
            count = finish(slide_score, slide_ordinal, count, limit)
            skip = 0
            while skip < count and not outranks(known_score, known_ordinal, slide_score[skip], slide_ordinal[skip]):
                skip += 1
            push_slide(stacks, rules, build, slide_score[skip:count], slide_ordinal[skip:count])
            high = begin
        return
    while low < high:
        begin = contiguous_before(ring, high, low, BLOCK)
        bar = stacks.bars[build]
        block = ring[begin & mask : (begin & mask) + high - begin]  # a view: the loop is vectorized
        hits = 0
        for t in range(block.shape[0]):
            hits += block[t] >= bar
        if hits > 0 and rules.meaningful == SORTED:
            for ordinal in range(high - 1, begin - 1, -1):
                score = ring[ordinal & mask]
                if score >= stacks.bars[build] and outranks(known_score, known_ordinal, score, ordinal):
                    insert_sorted(stacks, build, score, ordinal)
        elif hits > 0:
            push_all(stacks, build, begin, high, known_score, known_ordinal)
        high = begin


@lean
def push_unit_top(state, stacks, rules, spare, build, row, first, known_score, known_ordinal):
    """Push U_v^k of the k-unit in row `row` of the unit table, newest first."""
    kept = state.units[row, UNIT_KEPT]
    age, newest_first = spare.score, spare.ordinal
    for i in range(kept):
        age[i], newest_first[i] = state.unit_top_ordinal[row, i], i
    sort_best(age, newest_first, kept)
    for i in newest_first[:kept]:
        score, ordinal = state.unit_top_score[row, i], state.unit_top_ordinal[row, i]
        if ordinal >= first and score >= stacks.bars[build] and outranks(known_score, known_ordinal, score, ordinal):
            take_in(stacks, rules, build, score, ordinal)


@lean
def continue_build(state, rules, spare, build, first, begin, unit, unit_stop, known_score, known_ordinal, budget):
    """Scan on towards the partition's beginning, about `budget` rows; True when it is done.

    With units (UBSA, 5.2: its first phase), a non-k-unit whose best is not above the threshold is skipped
    unscanned, and of a k-unit only its k best are pushed; its other rows follow when the window reaches it.
    """
    stacks = stacks_of(state)
    low = max(begin, first)
    position = state.builds[build, BUILD_POSITION]
    if state.builds[build, BUILD_LIMIT] <= 0:
        position = low
    while position > low and budget > 0:
        stop = low
        while unit_stop > unit and state.units[(unit_stop - 1) % state.units.shape[0], UNIT_START] >= position:
            unit_stop -= 1
        if unit_stop > unit:
            row = (unit_stop - 1) % state.units.shape[0]
            stop = max(low, state.units[row, UNIT_START])
            if state.units[row, UNIT_IS_K] == 1:
                push_unit_top(state, stacks, rules, spare, build, row, first, known_score, known_ordinal)
                budget -= state.units[row, UNIT_KEPT]
                position = stop
                continue
            if state.unit_best[row] < state.bars[build]:
                position = stop
                continue
        if position - stop > budget:
            stop = position - budget
        scan(stacks, rules, spare, build, stop, position, known_score, known_ordinal)
        budget -= position - stop
        position = stop
    state.builds[build, BUILD_POSITION] = position
    return position <= low


@lean
def _sift_up(heap, place):
    score, ordinal = heap.score, heap.ordinal
    while place > 0:
        parent = (place - 1) // 2
        if not outranks(score[place], ordinal[place], score[parent], ordinal[parent]):
            return
        score[place], score[parent] = score[parent], score[place]
        ordinal[place], ordinal[parent] = ordinal[parent], ordinal[place]
        place = parent


@lean
def _sift_down(heap, place):
    score, ordinal, count = heap.score, heap.ordinal, heap.head[HEAP_COUNT]
    while True:
        child = 2 * place + 1
        if child >= count:
            return
        if child + 1 < count and outranks(score[child + 1], ordinal[child + 1], score[child], ordinal[child]):
            child += 1
        if not outranks(score[child], ordinal[child], score[place], ordinal[place]):
            return
        score[place], score[child] = score[child], score[place]
        ordinal[place], ordinal[child] = ordinal[child], ordinal[place]
        place = child


@lean
def consume(state, build):
    """Hand a built S-AVL over to the front's heap of stack tops."""
    heap = heap_of(state)
    for i in range(state.builds[build, BUILD_STACKS]):
        place = state.head[HEAP_COUNT]
        heap.score[place], heap.ordinal[place] = state.stack_score[build, i], state.stack_ordinal[build, i]
        state.head[HEAP_COUNT] = place + 1
        _sift_up(heap, place)
    state.head[FRONT_MEANINGFUL] += state.builds[build, BUILD_PUSHED]
    state.builds[build, BUILD_STACKS] = 0
    state.builds[build, BUILD_PUSHED] = 0


@lean
def pop_top(heap):
    """Take the best top off; the next of its stack takes its place."""
    head = heap.head
    ordinal = heap.ordinal[0]
    step = heap.links[ordinal & (heap.ring.shape[0] - 1)]
    if step != 0:
        heap.ordinal[0] = ordinal + step
        heap.score[0] = heap.ring[(ordinal + step) & (heap.ring.shape[0] - 1)]
    else:
        head[HEAP_COUNT] -= 1
        heap.score[0], heap.ordinal[0] = heap.score[head[HEAP_COUNT]], heap.ordinal[head[HEAP_COUNT]]
    head[FRONT_MEANINGFUL] -= 1
    _sift_down(heap, 0)


@tiny
def pop_run(
    heap, first, score, ordinal, front_score, front_ordinal, f, answer_score, answer_ordinal, n, last_score, last_ordinal, k
):
    """Pop rows of the best top's stack as long as they outrank all other tops and the row (score, ordinal).

    Those that have not expired go to the front's list, from place f on, and those below the row `last` also to the answer, from
    place n on; both lists, of which the answer takes k rows, have room for one. Returns (f, n).
    """
    head, ring, links, count = heap.head, heap.ring, heap.links, heap.head[HEAP_COUNT]
    mask, room = ring.shape[0] - 1, front_score.shape[0]
    for child in range(1, min(count, 3)):  # one of them is the best of the other tops
        if outranks(heap.score[child], heap.ordinal[child], score, ordinal):
            score, ordinal = heap.score[child], heap.ordinal[child]
    top_score, top = heap.score[0], heap.ordinal[0]
    popped, step = 0, 1
    while step != 0 and n < k and f < room and outranks(top_score, top, score, ordinal):
        if top >= first:
            front_score[f], front_ordinal[f] = top_score, top
            f += 1
            if outranks(last_score, last_ordinal, top_score, top):  # else it is among the first n already
                answer_score[n], answer_ordinal[n] = top_score, top
                n += 1
        popped += 1
        step = links[top & mask]
        top += step
        top_score = ring[top & mask]
    head[FRONT_MEANINGFUL] -= popped
    if step == 0:
        head[HEAP_COUNT] = count - 1
        top_score, top = heap.score[count - 1], heap.ordinal[count - 1]
    heap.score[0], heap.ordinal[0] = top_score, top
    _sift_down(heap, 0)
    return f, n


@lean
def drop_expired_tops(heap, first):
    """Leave no expired top at the heap's best place. Returns whether a row is left."""
    while heap.head[HEAP_COUNT] > 0 and heap.ordinal[0] < first:
        pop_top(heap)
    return heap.head[HEAP_COUNT] > 0


@lean
def drop_all_expired_tops(heap, first):
    """Leave no expired top anywhere: room for another unit's stacks."""
    mask = heap.ring.shape[0] - 1
    count = heap.head[HEAP_COUNT]
    heap.head[HEAP_COUNT] = 0
    for i in range(count):
        ordinal = heap.ordinal[i]
        alive = ordinal >= first
        while not alive:
            heap.head[FRONT_MEANINGFUL] -= 1
            step = heap.links[ordinal & mask]
            if step == 0:
                break
            ordinal += step
            alive = ordinal >= first
        if alive:
            place = heap.head[HEAP_COUNT]
            heap.ordinal[place], heap.score[place] = ordinal, heap.ring[ordinal & mask]
            heap.head[HEAP_COUNT] = place + 1
            _sift_up(heap, place)

"""Views: for every query the best rows of its window, all of them down to a floor.

A row is compared with the lowest floor of all views; one that passes is put into the queue of each view whose
floor it reaches (the floors are kept sorted: the watch list), and waits there until the view's next window. Then
the rows at the queue's head that left are taken out of the view, and those that wait at its tail are put in.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.best import sort_best
from skyband.kernels.jit import jit
from skyband.kernels.ladder import TAKEN, best_of, merge_in
from skyband.kernels.tables import BLOCK
from skyband.kernels.tops import hand_out_same
from skyband.kernels.view_size import (
    FEW,
    buffer_room,
    queue_room,
    steady_capacity,
    trend_capacity,
    trim_limit,
    view_room,
    waiting_room,
)

# columns of SharedState.views
START = 0  # place of the view's first row in view_score, view_ordinal
COUNT = 1  # rows in it
FIRST = 2  # first ordinal of the query's last window
FLOOR_ORDINAL = 3  # the floor is this row: the view holds all rows of the window from it up; COMPLETE: all rows
QUEUE_START = 4  # the view's part of queue_score, queue_ordinal begins here
HEAD = 5  # place in the queue of the oldest row that may be in the view (a row below the floor is not)
WAITING = 6  # place in the queue of the first row not sorted into the view yet
TAIL = 7  # place behind the queue's newest row
CAPACITY = 8  # rows to keep at the next trim
DIRTY = 9  # 1: the top-k may differ from tops in any rank
BEHIND = 10  # 1: tops does not have this view's last answer yet, which is still the view's first k rows
WATCH = 11  # the view's place in the watch list
QUIET = 12  # windows since the last refill
COLUMNS = 13

ALL = np.iinfo(np.int64).max // 2  # as a rank: behind the last
COMPLETE = -1  # in FLOOR_ORDINAL: nothing is below the floor
TREND = 16  # a view that is refilled again within so many windows is on a falling stream: it takes more rows at once
LEAVING = 4  # if more rows than this left, they are taken out in one pass over the view
MANY = 2 * FEW  # a view is passed over, too, when after so many single steps there are still rows to take out
OVERRUN = 16  # a single view that is offered so many times k rows before its next window is filled anew there instead
RUN = 64  # rows compared with the lowest floor at once
SHORT = 4  # runs up to this length are compared one by one


@jit
def _set_floor(state, query, floor, floor_ordinal):
    """Give a view a new floor and move it to its place in the watch list."""
    view, watch_floor, watch_query = state.views, state.watch_floor, state.watch_query
    view[query, FLOOR_ORDINAL] = floor_ordinal
    place = view[query, WATCH]
    while place > 0 and watch_floor[place - 1] > floor:
        watch_floor[place], watch_query[place] = watch_floor[place - 1], watch_query[place - 1]
        view[watch_query[place], WATCH] = place
        place -= 1
    last = watch_floor.shape[0] - 1
    while place < last and watch_floor[place + 1] < floor:
        watch_floor[place], watch_query[place] = watch_floor[place + 1], watch_query[place + 1]
        view[watch_query[place], WATCH] = place
        place += 1
    watch_floor[place], watch_query[place] = floor, query
    view[query, WATCH] = place


@jit
def _trim(state, query, k):
    """Cut a view that has grown too long back to its capacity."""
    capacity = state.views[query, CAPACITY]
    if state.views[query, COUNT] > trim_limit(k, capacity):
        last = state.views[query, START] + capacity - 1
        state.views[query, COUNT] = capacity
        _set_floor(state, query, state.view_score[last], state.view_ordinal[last])


@jit
def _drop_left(score, ordinal, start, stop, first):
    """Take all rows that left out of [start, stop). Returns the new stop. O(rows of the view)."""
    kept = start
    for i in range(start, stop):
        score[kept], ordinal[kept] = score[i], ordinal[i]
        kept += ordinal[i] >= first
    return kept


@jit
def _merge_waiting(state, query, k, first, buffer_score, buffer_ordinal):
    """Take out all rows of a view that are older than `first` and take in those that wait. O(rows of the view)."""
    views = state.views
    head, start = views[query, HEAD], views[query, START]
    while head < views[query, TAIL] and state.queue_ordinal[head] < first:
        head += 1
    views[query, HEAD] = head
    count = _drop_left(state.view_score, state.view_ordinal, start, start + views[query, COUNT], first) - start
    rising, taken = True, 0
    for i in range(views[query, WAITING], views[query, TAIL]):
        if state.queue_ordinal[i] >= first:
            buffer_score[taken], buffer_ordinal[taken] = state.queue_score[i], state.queue_ordinal[i]
            rising = rising and (taken == 0 or buffer_score[taken] >= buffer_score[taken - 1])
            taken += 1
    if rising:  # newest best: the order is known
        for i in range(taken // 2):
            mirror = taken - 1 - i
            buffer_score[i], buffer_score[mirror] = buffer_score[mirror], buffer_score[i]
            buffer_ordinal[i], buffer_ordinal[mirror] = buffer_ordinal[mirror], buffer_ordinal[i]
    else:
        sort_best(buffer_score, buffer_ordinal, taken)
    stop = start + view_room(k)
    views[query, COUNT] = merge_in(
        state.view_score[start:stop], state.view_ordinal[start:stop], count, buffer_score, buffer_ordinal, taken, count + taken
    )
    views[query, WAITING] = views[query, TAIL]
    views[query, DIRTY] = 1
    _trim(state, query, k)


@jit
def _shorten_queue(state, query):
    """Move the queue to the front of its part, without the rows that fell below the floor. No row may wait."""
    views = state.views
    floor, floor_ordinal = state.watch_floor[views[query, WATCH]], views[query, FLOOR_ORDINAL]
    kept = views[query, QUEUE_START]
    for i in range(views[query, HEAD], views[query, TAIL]):
        score, ordinal = state.queue_score[i], state.queue_ordinal[i]
        state.queue_score[kept], state.queue_ordinal[kept] = score, ordinal
        kept += score > floor or (score == floor and ordinal >= floor_ordinal)
    views[query, HEAD] = views[query, QUEUE_START]
    views[query, WAITING] = views[query, TAIL] = kept


@jit
def _offer(views, watch_floor, watch_query, queue_score, queue_ordinal, rooms, ends, score, ordinal, full):
    """Let a row wait at every view whose floor it reaches. Returns how many have no room left: they are in `full`."""
    filled = 0
    place = 0
    while place < watch_floor.shape[0] and score >= watch_floor[place]:
        query = watch_query[place]
        tail = views[query, TAIL]
        queue_score[tail] = score
        queue_ordinal[tail] = ordinal
        tail += 1
        views[query, TAIL] = tail
        if (tail - views[query, WAITING] == rooms[query]) | (tail == ends[query]):
            full[filled] = query
            filled += 1
        place += 1
    return filled


@jit
def _copy_rows(ring, place, scores, source, length, floor):
    """Copy rows into the ring. Returns how many reach the floor."""
    hits = 0
    for i in range(np.uint64(length)):
        score = scores[np.uint64(source) + i]
        ring[np.uint64(place) + i] = score
        hits += score >= floor
    return hits


@jit
def _rows_below(ceilings, at, length, floor):
    """Of the `length` rows from the place `at` on, how many at their beginning are below the floor for certain."""
    if at < 0:  # rows before the first block
        return 0
    block = at // BLOCK
    while block < ceilings.shape[0] and ceilings[block] <= floor and block * BLOCK < at + length:
        block += 1
    return max(0, min(block * BLOCK - at, length))


@jit
def _copy(source, start, target, place, length):
    for i in range(np.uint64(length)):
        target[np.uint64(place) + i] = source[np.uint64(start) + i]


@jit
def _update(views, score, ordinal, queue_score, queue_ordinal, query, first, floor):
    """Take out the few rows that left and put in the few that wait. Returns the best changed rank, or ALL.

    A row that leaves makes a hole; the hole moves to where a waiting row belongs, so that only the rows between
    the two places move. Without a row that left the hole is behind the last row, without one that waits it goes
    there. The row that leaves is the oldest, so the last of its score; one that comes is the newest, so the first.
    Both places are found by counting: vectorized, and without branches to guess wrong. No calls, no early exits:
    with either, the compiler counts references to all five arrays on every call, at a third of its time.
    """
    start = views[query, START]
    stop = start + views[query, COUNT]
    floor_ordinal = views[query, FLOOR_ORDINAL]
    best = ALL
    head, sorted_end, tail = views[query, HEAD], views[query, WAITING], views[query, TAIL]
    at = sorted_end
    for i in range(sorted_end, tail if queue_ordinal[sorted_end] < first else sorted_end):
        at += queue_ordinal[i] < first
    passed = at if at > sorted_end else head  # rows that left before they ever came in
    leaving = True
    rounds = 0
    while (leaving | (at < tail)) & (rounds < MANY):
        below = True
        while below:  # rows that fell below the floor are not in the view
            leaving = (head < sorted_end) & (queue_ordinal[head] < first)
            below = leaving & (
                (queue_score[head] < floor) | ((queue_score[head] == floor) & (queue_ordinal[head] < floor_ordinal))
            )
            head += below
        coming = at < tail
        if leaving | coming:
            old = queue_score[head]
            new = queue_score[at]
            not_below = 0
            above = 0
            for i in range(np.uint64(stop - start)):
                not_below += score[np.uint64(start) + i] >= old
                above += score[np.uint64(start) + i] > new
            hole = start + not_below - 1 if leaving else stop
            place = start + above if coming else stop
            for i in range(np.uint64(hole - place if hole > place else 0)):  # the hole moves up
                score[np.uint64(hole) - i] = score[np.uint64(hole - 1) - i]
                ordinal[np.uint64(hole) - i] = ordinal[np.uint64(hole - 1) - i]
            for i in range(np.uint64(hole + 1), np.uint64(place)):  # or down
                score[i - np.uint64(1)] = score[i]
                ordinal[i - np.uint64(1)] = ordinal[i]
            place -= place > hole
            best = min(best, hole - start if leaving else ALL, place - start if coming else ALL)
            stop += np.int64(coming) - np.int64(leaving)
            if coming:
                score[place] = new
                ordinal[place] = queue_ordinal[at]
            at += coming
            head += leaving
        rounds += 1
    kept = start
    for i in range(start, stop if leaving else start):  # too many left: take out all at once
        score[kept], ordinal[kept] = score[i], ordinal[i]
        kept += ordinal[i] >= first
    for i in range(head, tail if leaving else head):
        head += queue_ordinal[i] < first
    if leaving:
        best = 0
        stop = kept
    views[query, COUNT] = stop - start
    views[query, HEAD] = max(head, passed)
    views[query, WAITING] = tail
    return best


@jit
def _catch_up(views, score, ordinal, tops, query, k):
    """Write a view's answer into tops, unless it is there. Once a run, or before the view changes between windows."""
    if views[query, BEHIND]:
        views[query, BEHIND] = 0
        count = min(k, views[query, COUNT])
        tops.count[query] = count
        _copy(score, views[query, START], tops.score[query], 0, count)
        _copy(ordinal, views[query, START], tops.ordinal[query], 0, count)


@jit
def _refill(state, query, k, first, end, score, ordinal, buffer_score, buffer_ordinal):
    """Too few rows are left above the floor: fetch the best of the window anew, and lower the floor to them."""
    views = state.views
    capacity = trend_capacity(k) if views[query, QUIET] < TREND else steady_capacity(k)
    count = best_of(state, first, end, capacity, score, ordinal, buffer_score, buffer_ordinal)
    _copy(score, 0, state.view_score, views[query, START], count)
    _copy(ordinal, 0, state.view_ordinal, views[query, START], count)
    views[query, COUNT] = count
    views[query, CAPACITY] = capacity
    views[query, QUIET] = 0
    if count == capacity:
        _set_floor(state, query, score[count - 1], ordinal[count - 1])
    else:
        _set_floor(state, query, -np.inf, COMPLETE)
    falling = True
    for i in range(count):
        falling = falling and (i == 0 or ordinal[i] > -ordinal[i - 1])
        ordinal[i] = -ordinal[i]
    if not falling:
        sort_best(ordinal, score, count)  # oldest first
    head = views[query, QUEUE_START]
    for i in range(count):
        state.queue_score[head + i], state.queue_ordinal[head + i] = score[i], -ordinal[i]
    views[query, HEAD] = head
    views[query, WAITING] = views[query, TAIL] = head + count


@jit
def answer_windows(state, tops, ks, begin, scores, ceilings, ahead, windows, start, results):
    """Take rows and answer windows[start:] until all are answered or `results` is full.

    `ceilings` and `ahead` are those of `tables.Ceilings`. Returns the first window not answered.
    """
    cells, ring, views, score, ordinal = state.cells, state.ring, state.views, state.view_score, state.view_ordinal
    watch_floor, watch_query = state.watch_floor, state.watch_query
    queue_score, queue_ordinal = state.queue_score, state.queue_ordinal
    places = buffer_room(ks.max())
    run_score, run_ordinal = np.empty(places), np.empty(places, np.int64)
    buffer_score, buffer_ordinal = np.empty(places), np.empty(places, np.int64)
    full, rooms, ends = np.empty_like(ks), np.empty_like(ks), np.empty_like(ks)
    for query in range(ks.shape[0]):
        rooms[query] = waiting_room(ks[query])
        ends[query] = views[query, QUEUE_START] + queue_room(ks[query])
    mask = ring.shape[0] - 1
    taken = cells[TAKEN]
    room = results.score.shape[0]
    used = 0
    at = start
    while at < windows.query.shape[0]:
        query, first, end = windows.query[at], windows.first[at], windows.end[at]
        k = ks[query]
        if used + k > room:
            break
        offered = 0
        leap = False
        while taken < end:
            place = taken & mask
            length = min(end - taken, ring.shape[0] - place)
            floor = watch_floor[0]
            unwatched = length if leap else 0
            if length > SHORT and not leap:
                unwatched = _rows_below(ceilings, taken - begin - ahead, length, floor)
            if unwatched > 0:
                _copy(scores, taken - begin, ring, place, unwatched)
                taken += unwatched
                cells[TAKEN] = taken
                continue
            length = min(RUN, length)
            hits = length
            if length > SHORT:
                hits = _copy_rows(ring, place, scores, taken - begin, length, floor)
            if hits > 0:
                for i in range(length):
                    row_score = scores[taken - begin + i]
                    ring[place + i] = row_score
                    if row_score >= floor:
                        filled = _offer(
                            views, watch_floor, watch_query, queue_score, queue_ordinal, rooms, ends, row_score, taken + i, full
                        )
                        for j in range(filled):  # only now: floors that move would upset the offering
                            _catch_up(views, score, ordinal, tops, full[j], ks[full[j]])
                            _merge_waiting(state, full[j], ks[full[j]], views[full[j], FIRST], buffer_score, buffer_ordinal)
                            if views[full[j], TAIL] == ends[full[j]]:
                                _shorten_queue(state, full[j])
            taken += length
            cells[TAKEN] = taken
            offered += hits
            # a rising stream, and nobody asks for long: most rows would be pushed out again before anyone looks
            leap = ks.shape[0] == 1 and offered > OVERRUN * k and end - taken > OVERRUN * k
        views[query, QUIET] += 1
        best = ALL
        source = views[query, START]
        head, waiting, tail = views[query, HEAD], views[query, WAITING], views[query, TAIL]
        # where fewer than k rows are left there is no use in taking out the others
        spent = views[query, FLOOR_ORDINAL] != COMPLETE and (tail - head < k or queue_ordinal[tail - k] < first)
        if leap or spent:
            _refill(state, query, k, first, end, run_score, run_ordinal, buffer_score, buffer_ordinal)
            best = 0
        elif tail - waiting > FEW or (tail - head > LEAVING and queue_ordinal[head + LEAVING] < first):
            _merge_waiting(state, query, k, first, buffer_score, buffer_ordinal)
        elif tail > waiting or (tail > head and queue_ordinal[head] < first):
            best = _update(views, score, ordinal, queue_score, queue_ordinal, query, first, watch_floor[views[query, WATCH]])
        views[query, FIRST] = first
        count = views[query, COUNT]
        if count < k and views[query, FLOOR_ORDINAL] != COMPLETE:
            _refill(state, query, k, first, end, run_score, run_ordinal, buffer_score, buffer_ordinal)
            best = 0
        elif count > trim_limit(k, views[query, CAPACITY]):
            _trim(state, query, k)
        if views[query, DIRTY]:
            views[query, DIRTY] = 0
            best = 0
        if best < k:
            views[query, BEHIND] = 1
        if best < k and windows.report[at]:
            count = min(k, views[query, COUNT])
            results.begin[at] = used
            results.size[at] = count
            _copy(score, source, results.score, used, count)
            _copy(ordinal, source, results.ordinal, used, count)
            used += count
        else:
            hand_out_same(results, at)
        at += 1
    for query in range(ks.shape[0]):
        _catch_up(views, score, ordinal, tops, query, ks[query])
    return at

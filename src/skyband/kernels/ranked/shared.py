"""Views of many queries over one score: rows are offered to them, windows answered from them.

A row is compared with the lowest floor of all views; one that passes is put into the queue of each view whose
floor it reaches (the floors are kept sorted: the watch list), and waits there until the view's next window. Then
the rows at the queue's head that left are taken out of the view, and those that wait at its tail are put in.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.jit import jit
from skyband.kernels.ranked.ladder import TAKEN, best_of
from skyband.kernels.ranked.view_size import (
    FEW,
    buffer_room,
    queue_room,
    steady_capacity,
    trend_capacity,
    trim_limit,
    waiting_room,
)
from skyband.kernels.ranked.views import (
    ALL,
    BEHIND,
    CAPACITY,
    COMPLETE,
    COUNT,
    DIRTY,
    END,
    FIRST,
    FLOOR_ORDINAL,
    HEAD,
    QUEUE_START,
    QUIET,
    TAIL,
    WAITING,
    WATCH,
    catch_up,
    copy_best,
    count_gone_from_top,
    fill_view,
    merge_waiting,
    set_floor,
    shorten_queue,
    take_from_top,
    tell_differences,
    tell_gone_from_top,
    tell_update,
    trim,
    update,
)
from skyband.kernels.tables import BLOCK, SAME
from skyband.kernels.tops import hand_out_same

TREND = 16  # a view that is refilled again within so many windows is on a falling stream: it takes more rows at once
OVERRUN = 16  # a single view that is offered so many times k rows before its next window is filled anew there instead
RUN = 64  # rows compared with the lowest floor at once
SHORT = 4  # runs up to this length are compared one by one


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
def _put_away(scores, source, ring, place, length, ceilings, at):
    """Copy rows that nobody watches into the ring; those that no window asks for count as rows without a score, which costs
    half as much."""
    done = 0
    while done < length:
        block = (at + done) // BLOCK
        count = min((block + 1) * BLOCK - at, length) - done
        if 0 <= block < ceilings.shape[0] and ceilings[block] == -np.inf:
            for i in range(np.uint64(count)):
                ring[np.uint64(place + done) + i] = np.nan
        else:
            for i in range(np.uint64(count)):
                ring[np.uint64(place + done) + i] = scores[np.uint64(source + done) + i]
        done += count


@jit
def _refill(state, query, k, first, end, score, ordinal, buffer_score, buffer_ordinal):
    """Too few rows are left above the floor: fetch the best of the window anew, and lower the floor to them."""
    views = state.views
    capacity = trend_capacity(k) if views[query, QUIET] < TREND else steady_capacity(k)
    count = best_of(state, first, end, capacity, score, ordinal, buffer_score, buffer_ordinal)
    views[query, CAPACITY] = capacity
    views[query, QUIET] = 0
    views[query, DIRTY] = 1
    if count == capacity:
        set_floor(state, query, score[count - 1], ordinal[count - 1])
    else:
        set_floor(state, query, -np.inf, COMPLETE)
    fill_view(state, query, count, score, ordinal, buffer_score, buffer_ordinal)


@jit
def _pass_over(state, begin, scores, ceilings, ahead, windows, at, results):
    """Answer the windows from `at` on that have the answer of the one before, as no row of the only view leaves it and none
    reaches its floor before they end; takes their rows. No row may wait. Returns the first window that may differ."""
    cells, ring, views = state.cells, state.ring, state.views
    head, taken, mask = views[0, HEAD], cells[TAKEN], ring.shape[0] - 1
    stop = windows.query.shape[0]
    if head < views[0, TAIL]:
        stop = at + np.searchsorted(windows.first[at:], state.queue_ordinal[head], side="right")
    floor, end = state.watch_floor[0], windows.end[stop - 1] if stop > at else taken
    while taken < end:
        place = taken & mask
        length = min(end - taken, ring.shape[0] - place)
        below = _rows_below(ceilings, taken - begin - ahead, length, floor)
        if below > 0:
            _put_away(scores, taken - begin, ring, place, below, ceilings, taken - begin - ahead)
            taken += below
            continue
        length = min(RUN, length)
        if _copy_rows(ring, place, scores, taken - begin, length, floor) == 0:
            taken += length
            continue
        while scores[taken - begin] < floor or np.isnan(scores[taken - begin]):
            taken += 1
        break
    cells[TAKEN] = taken
    answered = at
    while answered < stop and windows.end[answered] <= taken:
        hand_out_same(results, answered)
        answered += 1
    if answered > at:
        views[0, QUIET] += answered - at
        views[0, FIRST], views[0, END] = windows.first[answered - 1], windows.end[answered - 1]
    return answered


@jit
def answer_windows(state, tops, ks, begin, scores, ceilings, ahead, upto, windows, start, changes, results, last):
    """Take rows and answer windows[start:] until all are answered or `results` is full. When all are answered, the rows
    before `upto` that are left are taken; `last`: no others follow, and `tops` is brought up to date.

    `ceilings` and `ahead` are those of `tables.Ceilings`; the answers of a query marked in `changes` are told by what
    differs. Returns the first window not answered.
    """
    cells, ring, views, ranking = state.cells, state.ring, state.views, state.ranking
    watch_floor, watch_query = state.watch_floor, state.watch_query
    queue_score, queue_ordinal = state.queue_score, state.queue_ordinal
    places = buffer_room(ks.max())
    run_score, run_ordinal = np.empty(places), np.empty(places, np.int64)
    buffer_score, buffer_ordinal = np.empty(places), np.empty(places, np.int64)
    came = np.empty(2 * FEW + 1, np.int64)
    full, rooms, ends = np.empty_like(ks), np.empty_like(ks), np.empty_like(ks)
    for query in range(ks.shape[0]):
        rooms[query] = waiting_room(ks[query])
        ends[query] = views[query, QUEUE_START] + queue_room(ks[query])
    mask = ring.shape[0] - 1
    taken = cells[TAKEN]
    room = results.score.shape[0]
    used = 0
    at = start
    asked = windows.query.shape[0]
    alone = ks.shape[0] == 1
    while at < asked or taken < upto:
        if alone and at + 1 < asked and views[0, TAIL] == views[0, WAITING] and views[0, DIRTY] == 0:
            head = views[0, HEAD]
            stay = head == views[0, TAIL] or queue_ordinal[head] >= windows.first[at + 1]
            if stay and taken < windows.end[at + 1] and not scores[taken - begin] >= watch_floor[0]:
                at = _pass_over(state, begin, scores, ceilings, ahead, windows, at, results)
                taken = cells[TAKEN]
                if at == asked:
                    continue
        query, first, end = 0, 0, upto
        if at < asked:
            query, first, end = windows.query[at], windows.first[at], windows.end[at]
        k = ks[query]
        if used + (2 * k if changes[query] else k) > room:
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
                _put_away(scores, taken - begin, ring, place, unwatched, ceilings, taken - begin - ahead)
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
                            catch_up(state, tops, full[j], ks[full[j]])
                            merge_waiting(state, full[j], ks[full[j]], views[full[j], FIRST], buffer_score, buffer_ordinal)
                            if views[full[j], TAIL] == ends[full[j]]:
                                shorten_queue(state, full[j])
            taken += length
            cells[TAKEN] = taken
            offered += hits
            # a rising stream, and nobody asks for long: most rows would be pushed out again before anyone looks
            leap = ks.shape[0] == 1 and offered > OVERRUN * k and end - taken > OVERRUN * k
        if at == asked:
            break
        views[query, QUIET] += 1
        held, head, waiting, tail = views[query, COUNT], views[query, HEAD], views[query, WAITING], views[query, TAIL]
        complete = views[query, FLOOR_ORDINAL] == COMPLETE
        best, gone = ALL, 0
        many = leap | (tail - waiting > FEW) | (first > views[query, END])
        views[query, END] = end
        if tail == waiting and not many and views[query, DIRTY] == 0 and tail > head and queue_ordinal[head] < first:
            floor = watch_floor[views[query, WATCH]]
            gone = count_gone_from_top(views, ranking, queue_score, queue_ordinal, query, first, floor)
            gone = gone if complete or held - gone >= k else 0
        if gone > 0:
            take_from_top(views, queue_ordinal, query, gone, first)
            best = 0
        elif many or (tail - head > FEW and queue_ordinal[head + FEW] < first):
            if changes[query]:
                catch_up(state, tops, query, k)
            # where fewer than k rows are left there is no use in taking out the others
            if leap or (not complete and (tail - head < k or queue_ordinal[tail - k] < first)):
                _refill(state, query, k, first, end, run_score, run_ordinal, buffer_score, buffer_ordinal)
            else:
                merge_waiting(state, query, k, first, buffer_score, buffer_ordinal)
        elif tail > waiting or (tail > head and queue_ordinal[head] < first):
            if changes[query] and held < k + FEW and not complete:
                catch_up(state, tops, query, k)  # there may be a refill to compare with it
            floor = watch_floor[views[query, WATCH]]
            best = update(views, ranking, queue_score, queue_ordinal, query, first, floor, came)
        views[query, FIRST] = first
        count = views[query, COUNT]
        if count < k and views[query, FLOOR_ORDINAL] != COMPLETE:
            _refill(state, query, k, first, end, run_score, run_ordinal, buffer_score, buffer_ordinal)
        elif count > trim_limit(k, views[query, CAPACITY]):
            trim(state, query, k)
        dirty = views[query, DIRTY] != 0
        views[query, DIRTY] = 0
        if not (dirty or best < k):
            hand_out_same(results, at)
        elif not windows.report[at]:
            hand_out_same(results, at)
            views[query, BEHIND] = 1
        elif changes[query]:
            if dirty:
                entries = tell_differences(state, tops, query, k, results, used)
            elif gone > 0:
                entries = tell_gone_from_top(views, ranking, queue_score, queue_ordinal, query, k, gone, results, used)
            else:
                before = (held, head, waiting)
                entries = tell_update(views, ranking, queue_score, queue_ordinal, query, k, before, came, results, used)
            results.begin[at] = used
            results.size[at] = SAME - entries
            used += entries
            views[query, BEHIND] = 1
        else:
            count = min(k, views[query, COUNT])
            copy_best(views, ranking, queue_score, queue_ordinal, query, count, results.score, results.ordinal, used)
            results.begin[at] = used
            results.size[at] = count
            used += count
            views[query, BEHIND] = 1
        at += 1
    for query in range(ks.shape[0] if last and at == asked else 0):
        catch_up(state, tops, query, ks[query])
    return at

"""A view: all rows of one query's window from a floor up, in the order of arrival, and their ranking.

The rows lie in a *queue*; the *ranking* holds their places in it, best first. So a row that comes or goes moves a few
small numbers, and its rank is found by counting, vectorized, without branches to guess wrong: as the queue is in the
order of arrival, of equal scores the later place ranks first. Rows that fell below the floor stay in the queue until it is
shortened; none of them ever ranks above a row of the view, so counting need not know of them. Behind the queue's last row
all scores are NaN.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.best import sort_best
from skyband.kernels.jit import jit, lean, tiny
from skyband.kernels.order import outranks
from skyband.kernels.ranked.view_size import FEW, trim_limit

# columns of SharedState.views
RANKS = 0  # the best row's place in `ranking`; places in front of it, back to RANKS_START, are those of rows that left
COUNT = 1  # rows in it
FIRST = 2  # first ordinal of the query's last window
FLOOR_ORDINAL = 3  # the floor is this row: the view holds all rows of the window from it up; COMPLETE: all rows
QUEUE_START = 4  # the view's part of queue_score, queue_ordinal begins here; places in the ranking count from it
HEAD = 5  # place in the queue of the oldest row that may be in the view (a row below the floor is not)
WAITING = 6  # place in the queue of the first row not ranked yet
TAIL = 7  # place behind the queue's newest row
CAPACITY = 8  # rows to keep at the next trim
DIRTY = 9  # 1: the top-k may differ from tops in any rank
BEHIND = 10  # 1: tops does not have this view's last answer yet, which is still the view's best k rows
WATCH = 11  # the view's place in the watch list
QUIET = 12  # windows since the last refill
END = 13  # the query's last window ended here: no row that waits is older
RANKS_START = 14  # the view's part of `ranking` begins here
COLUMNS = 16  # a power of two, two lines of the cache

ALL = np.iinfo(np.int64).max // 2  # as a rank: behind the last
SPAN = 32  # places behind a view's part of the ranking and of the queue: so far may be read; a power of two
COMPLETE = -1  # in FLOOR_ORDINAL: nothing is below the floor


@tiny
def _spans(length):
    """The next multiple of SPAN."""
    return (length + SPAN - 1) // SPAN * SPAN


@lean
def set_floor(state, query, floor, floor_ordinal):
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


@tiny
def settle(views, ranking, query):
    """Move a view's ranking to the front of its part, where there is room for more rows. O(rows of the view), vectorized."""
    ranks, start = views[query, RANKS], views[query, RANKS_START]
    if ranks > start:
        views[query, RANKS] = start
        for i in range(views[query, COUNT]):
            ranking[start + i] = ranking[ranks + i]


@lean
def trim(state, query, k):
    """Cut a view that has grown too long back to its capacity."""
    views = state.views
    capacity = views[query, CAPACITY]
    if views[query, COUNT] > trim_limit(k, capacity):
        last = views[query, QUEUE_START] + state.ranking[views[query, RANKS] + capacity - 1]
        views[query, COUNT] = capacity
        set_floor(state, query, state.queue_score[last], state.queue_ordinal[last])


@jit
def merge_waiting(state, query, k, first, buffer_score, buffer_place):
    """Take out all rows of a view that are older than `first` and take in those that wait. O(rows of the view)."""
    views, ranking, queue_score, queue_ordinal = state.views, state.ranking, state.queue_score, state.queue_ordinal
    settle(views, ranking, query)
    base, ranks = views[query, QUEUE_START], views[query, RANKS]
    waiting, tail = views[query, WAITING], views[query, TAIL]
    head = views[query, HEAD]
    while head < tail and queue_ordinal[head] < first:
        head += 1
    views[query, HEAD] = head
    oldest, count = head - base, 0
    for i in range(ranks, ranks + views[query, COUNT]):
        place = ranking[i]
        ranking[ranks + count] = place
        count += place >= oldest
    taken = 0
    for place in range(max(waiting, head), tail):
        buffer_score[taken], buffer_place[taken] = queue_score[place], place - base
        taken += 1
    sort_best(buffer_score, buffer_place, taken)
    i, j = ranks + count - 1, taken - 1
    while j >= 0:  # from the worst up, until nothing is left to move; one that waited is newer
        if i >= ranks and buffer_score[j] >= queue_score[base + ranking[i]]:
            ranking[i + j + 1] = ranking[i]
            i -= 1
        else:
            ranking[i + j + 1] = buffer_place[j]
            j -= 1
    views[query, COUNT] = count + taken
    views[query, WAITING] = tail
    views[query, DIRTY] = 1
    trim(state, query, k)


@jit
def shorten_queue(state, query):
    """Move the queue to the front of its part, without the rows that fell below the floor. No row may wait."""
    views = state.views
    floor, floor_ordinal = state.watch_floor[views[query, WATCH]], views[query, FLOOR_ORDINAL]
    base, head, tail = views[query, QUEUE_START], views[query, HEAD], views[query, TAIL]
    moved = np.empty(tail - head, np.int64)  # where each row went
    kept = base
    for i in range(head, tail):
        score, ordinal = state.queue_score[i], state.queue_ordinal[i]
        state.queue_score[kept], state.queue_ordinal[kept] = score, ordinal
        moved[i - head] = kept - base
        kept += score > floor or (score == floor and ordinal >= floor_ordinal)
    for i in range(views[query, RANKS], views[query, RANKS] + views[query, COUNT]):
        state.ranking[i] = moved[state.ranking[i] - (head - base)]
    state.queue_score[kept:tail] = np.nan
    views[query, HEAD] = base
    views[query, WAITING] = views[query, TAIL] = kept


@jit
def fill_view(state, query, count, score, ordinal, keys, order):
    """Make (score, ordinal)[:count], best first, the rows of a view. `keys` and `order` are buffers."""
    views, ranks, head = state.views, state.views[query, RANKS_START], state.views[query, QUEUE_START]
    views[query, RANKS] = ranks
    for i in range(count):
        keys[i], order[i] = ordinal[0] - ordinal[i], i
    sort_best(keys, order, count)  # oldest first
    for i in range(count):
        rank = order[i]
        state.queue_score[head + i], state.queue_ordinal[head + i] = score[rank], ordinal[rank]
        state.ranking[ranks + rank] = i
    state.queue_score[head + count : max(views[query, TAIL], head + count)] = np.nan
    views[query, COUNT] = count
    views[query, HEAD] = head
    views[query, WAITING] = views[query, TAIL] = head + count


@tiny
def update(views, ranking, queue_score, queue_ordinal, query, first, floor, came):
    """Put in the few rows that wait, none of which has left, and take out the few that left. Returns the best changed rank,
    or ALL; came[i] becomes the rank of the i-th row that waited, came[FEW + i] what that of the i-th that left was, or ALL
    for one that was not in the view.

    Loops run on to the next multiple of SPAN, over places behind the last row: so they have no remainder to guess.
    """
    if views[query, TAIL] > views[query, WAITING]:
        settle(views, ranking, query)
    ranks, base, count = views[query, RANKS], views[query, QUEUE_START], views[query, COUNT]
    head, waiting, tail = views[query, HEAD], views[query, WAITING], views[query, TAIL]
    floor_ordinal = views[query, FLOOR_ORDINAL]
    best = ALL
    for at in range(waiting, tail):
        new = queue_score[at]
        rank = 0  # the newest: first of its score
        for i in range(np.uint64(_spans(tail - head))):
            rank += queue_score[np.uint64(head) + i] > new
        for i in range(at + 1, tail):  # not in the ranking yet
            rank -= queue_score[i] > new
        moves = np.uint64(_spans(count - rank))
        last = np.uint64(ranks + rank) + moves
        for i in range(moves):
            ranking[last - i] = ranking[last - np.uint64(1) - i]
        ranking[ranks + rank] = at - base
        for i in range(at - waiting):
            came[i] += rank <= came[i]
        came[at - waiting] = rank
        count += 1
        best = min(best, rank)
    oldest = head
    while (head < waiting) & (queue_ordinal[head] < first):
        old = queue_score[head]
        was = ALL
        if (old > floor) | ((old == floor) & (queue_ordinal[head] >= floor_ordinal)):
            rank = -1  # the oldest: last of its score
            for i in range(np.uint64(_spans(tail - head))):
                rank += queue_score[np.uint64(head) + i] >= old
            gap = np.uint64(ranks + rank)
            for i in range(np.uint64(_spans(count - 1 - rank))):
                ranking[gap + i] = ranking[gap + i + np.uint64(1)]
            was = rank
            for i in range(tail - waiting):
                was -= came[i] < rank
                came[i] -= rank < came[i]
            for i in range(oldest, head):
                was += queue_score[i] > old
            count -= 1
            best = min(best, rank)
        came[FEW + head - oldest] = was
        head += 1
    views[query, COUNT] = count
    views[query, HEAD] = head
    views[query, WAITING] = tail
    return best


@tiny
def count_gone_from_top(views, ranking, queue_score, queue_ordinal, query, first, floor):
    """How many rows of a view are older than `first`, if they are its best ones, as on a falling stream; 0 if they are not.
    O(rows that left)."""
    ranks, base = views[query, RANKS], views[query, QUEUE_START]
    at, gone, floor_ordinal = views[query, HEAD], 0, views[query, FLOOR_ORDINAL]
    while (at < views[query, TAIL]) & (queue_ordinal[at] < first):
        score = queue_score[at]
        if (score > floor) | ((score == floor) & (queue_ordinal[at] >= floor_ordinal)):
            if queue_ordinal[base + ranking[ranks + gone]] >= first:
                return 0
            gone += 1
        at += 1
    return gone


@tiny
def take_from_top(views, queue_ordinal, query, gone, first):
    """Take the best `gone` rows out of a view, which are all that are older than `first`. O(rows that left)."""
    head = views[query, HEAD]
    while (head < views[query, TAIL]) & (queue_ordinal[head] < first):
        head += 1
    views[query, HEAD] = head
    views[query, RANKS] += gone
    views[query, COUNT] -= gone


@tiny
def tell_gone_from_top(views, ranking, queue_score, queue_ordinal, query, k, gone, results, used):
    """What `take_from_top` changed in the top k, into results[used:]. Returns how many entries. O(gone)."""
    ranks, base, count = views[query, RANKS], views[query, QUEUE_START], views[query, COUNT]
    top_before, top = min(k, count + gone), min(k, count)
    left = min(gone, top_before)
    stayed = top_before - left
    n = used
    for i in range(ranks - gone, ranks - gone + left):
        place = base + ranking[i]
        results.rank[n], results.score[n], results.ordinal[n] = 0, queue_score[place], queue_ordinal[place]
        n += 1
    for rank in range(stayed, top):
        place = base + ranking[ranks + rank]
        results.rank[n], results.score[n], results.ordinal[n] = rank + 1, queue_score[place], queue_ordinal[place]
        n += 1
    return n - used


@tiny
def _put_leave(results, begin, place, score, ordinal):
    """Put a row that left among results[begin:place], sorted best first."""
    while place > begin and outranks(score, ordinal, results.score[place - 1], results.ordinal[place - 1]):
        results.score[place], results.ordinal[place] = results.score[place - 1], results.ordinal[place - 1]
        place -= 1
    results.score[place], results.ordinal[place] = score, ordinal


@tiny
def _put_enter(results, begin, place, rank, score, ordinal):
    """Put a row that entered among results[begin:place], sorted by rank."""
    while place > begin and results.rank[place - 1] > rank:
        results.score[place], results.ordinal[place] = results.score[place - 1], results.ordinal[place - 1]
        results.rank[place] = results.rank[place - 1]
        place -= 1
    results.rank[place], results.score[place], results.ordinal[place] = rank, score, ordinal


@tiny
def tell_update(views, ranking, queue_score, queue_ordinal, query, k, before, came, results, used):
    """What an `update` changed in the top k, into results[used:]. Returns how many entries.

    `before` are the columns COUNT, HEAD and WAITING from before, `came` the ranks from it. Old rows keep their order: those
    that moved into the top are its last old ones, those that were pushed out of it the first old ones behind it.
    """
    held, old_head, waiting = before
    ranks, base, count = views[query, RANKS], views[query, QUEUE_START], views[query, COUNT]
    n = used
    for i in range(views[query, HEAD] - old_head):
        if came[FEW + i] < k:
            _put_leave(results, used, n, queue_score[old_head + i], queue_ordinal[old_head + i])
            n += 1
    entered = 0
    for i in range(views[query, TAIL] - waiting):
        entered += came[i] < k
    top = min(k, count)
    moved_in = (top - entered) - (min(k, held) - (n - used))
    at = ranks + k
    while moved_in < 0:
        place = base + ranking[at]
        if place < waiting:
            _put_leave(results, used, n, queue_score[place], queue_ordinal[place])
            n += 1
            moved_in += 1
        at += 1
    for i in range(used, n):
        results.rank[i] = 0
    enters = n
    for i in range(views[query, TAIL] - waiting):
        if came[i] < k:
            _put_enter(results, enters, n, came[i] + 1, queue_score[waiting + i], queue_ordinal[waiting + i])
            n += 1
    at = ranks + top - 1
    while moved_in > 0:
        place = base + ranking[at]
        if place < waiting:
            _put_enter(results, enters, n, at - ranks + 1, queue_score[place], queue_ordinal[place])
            n += 1
            moved_in -= 1
        at -= 1
    return n - used


@lean
def tell_differences(state, tops, query, k, results, used):
    """How a view's best k rows differ from the answer in `tops`, into results[used:]. Returns how many entries. O(k)."""
    queue_score, queue_ordinal, ranking = state.queue_score, state.queue_ordinal, state.ranking
    ranks, base = state.views[query, RANKS], state.views[query, QUEUE_START]
    count, held = min(k, state.views[query, COUNT]), tops.count[query]
    i = j = left = entered = 0
    enters = used + held
    while i < count or j < held:
        place = base + ranking[ranks + i] if i < count else base
        if i < count and j < held and queue_ordinal[place] == tops.ordinal[query, j]:
            i += 1
            j += 1
        elif i < count and (
            j == held or outranks(queue_score[place], queue_ordinal[place], tops.score[query, j], tops.ordinal[query, j])
        ):
            at = enters + entered
            results.rank[at], results.score[at], results.ordinal[at] = i + 1, queue_score[place], queue_ordinal[place]
            entered += 1
            i += 1
        else:
            at = used + left
            results.rank[at], results.score[at], results.ordinal[at] = 0, tops.score[query, j], tops.ordinal[query, j]
            left += 1
            j += 1
    for i in range(entered):
        to, at = used + left + i, enters + i
        results.rank[to], results.score[to], results.ordinal[to] = results.rank[at], results.score[at], results.ordinal[at]
    return left + entered


@tiny
def copy_best(views, ranking, queue_score, queue_ordinal, query, count, score, ordinal, used):
    """Copy a view's best `count` rows to (score, ordinal)[used:]."""
    ranks, base = views[query, RANKS], views[query, QUEUE_START]
    for i in range(np.uint64(count)):
        place = np.uint64(base + ranking[np.uint64(ranks) + i])
        score[np.uint64(used) + i] = queue_score[place]
        ordinal[np.uint64(used) + i] = queue_ordinal[place]


@lean
def catch_up(state, tops, query, k):
    """Write a view's answer into tops, unless it is there. Once a run, or before the view changes between windows."""
    views, ranking = state.views, state.ranking
    if views[query, BEHIND]:
        views[query, BEHIND] = 0
        count, score, ordinal = min(k, views[query, COUNT]), tops.score[query], tops.ordinal[query]
        tops.count[query] = count
        copy_best(views, ranking, state.queue_score, state.queue_ordinal, query, count, score, ordinal, 0)

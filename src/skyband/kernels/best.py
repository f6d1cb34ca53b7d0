"""The best k of a run of rows: collect above a rising floor, select, sort, merge.

Rows are pairs of parallel arrays (score, ordinal). Everything here ranks by `order.outranks`.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.jit import allocating, lean
from skyband.kernels.order import outranks

BLOCK = 64  # rows compared with the floor at once; a block without a hit costs one vectorized pass
SMALL = 24  # runs up to this length are sorted by insertion
SAMPLE = 16  # rows that say where a selection may lie
CLOSE = 6  # rows in question for which another look at all would cost more than sorting them
LOOKS = 8  # at all rows, for a level between two of the sample


@lean
def _swap(score, ordinal, i, j):
    score[i], score[j] = score[j], score[i]
    ordinal[i], ordinal[j] = ordinal[j], ordinal[i]


@lean
def shift_down(column, place, gap, new):
    """Move column[place:gap] one place down and put `new` in `place`."""
    run = column[place : gap + 1]  # a view: indices from 0 need no check for negative ones, so this is vectorized
    for i in range(run.size - 1, 0, -1):
        run[i] = run[i - 1]
    run[0] = new


@lean
def _insertion_sort(score, ordinal, low, stop):
    for i in range(low + 1, stop):
        s, o = score[i], ordinal[i]
        j = i
        while j > low and outranks(s, o, score[j - 1], ordinal[j - 1]):
            score[j], ordinal[j] = score[j - 1], ordinal[j - 1]
            j -= 1
        score[j], ordinal[j] = s, o


@lean
def _partition(score, ordinal, low, stop):
    """Split [low, stop) around a median of three; returns the pivot's final place."""
    middle = (low + stop) // 2
    last = stop - 1
    if outranks(score[middle], ordinal[middle], score[low], ordinal[low]):
        _swap(score, ordinal, middle, low)
    if outranks(score[last], ordinal[last], score[low], ordinal[low]):
        _swap(score, ordinal, last, low)
    if outranks(score[last], ordinal[last], score[middle], ordinal[middle]):
        _swap(score, ordinal, last, middle)
    s, o = score[middle], ordinal[middle]
    _swap(score, ordinal, middle, last)
    part_score, part_ordinal = score[low:stop], ordinal[low:stop]
    place = np.uint64(0)  # unsigned, and views from 0 on: no check for negative indices
    for i in range(last - low):
        here, own = part_score[i], part_ordinal[i]  # swapped without a branch, which would be guessed wrong every other time
        part_score[i], part_ordinal[i] = part_score[place], part_ordinal[place]
        part_score[place], part_ordinal[place] = here, own
        place += np.uint64((here > s) | ((here == s) & (own > o)))
    split = low + np.int64(place)
    _swap(score, ordinal, split, last)
    return split


@lean
def _is_ranked(score, ordinal, count):
    """True when the first `count` rows stand best first already, as rows of a falling stream do. Mostly found out at once."""
    i = 1
    while i < count and outranks(score[i - 1], ordinal[i - 1], score[i], ordinal[i]):
        i += 1
    return i >= count


@lean
def _turn_if_reversed(score, ordinal, count):
    """True when the first `count` rows stood worst first, as rows of a rising stream do: they are turned around."""
    i = 1
    while i < count and outranks(score[i], ordinal[i], score[i - 1], ordinal[i - 1]):
        i += 1
    if i < count:
        return False
    for i in range(count // 2):
        _swap(score, ordinal, i, count - 1 - i)
    return True


@lean
def _count_at_least(score, count, level):
    """How many of the first `count` rows are at or above the level. One vectorized pass."""
    part = score[:count]
    found = 0
    for i in range(part.size):
        found += part[i] >= level
    return found


@lean
def _close_up(score, ordinal, count, level):
    """Move the rows at or above the level to the front. Every row is written, and written over unless it counts."""
    part_score, part_ordinal = score[:count], ordinal[:count]
    kept = np.uint64(0)  # unsigned: no check for negative indices
    for i in range(part_score.size):
        here = part_score[i]
        part_score[kept], part_ordinal[kept] = here, part_ordinal[i]
        kept += np.uint64(here >= level)


@lean
def _all_tied(score, low, stop):
    part = score[low:stop]
    tied = 0
    for i in range(part.size):
        tied += part[i] == part[0]
    return tied == part.size


@lean
def _keep_newest(score, ordinal, low, stop, keep):
    """Of the rows [low, stop), whose scores are equal, move the newest to [low, keep): ordinals differ, so halving finds
    them."""
    part_score, part_ordinal = score[low:stop], ordinal[low:stop]
    oldest = newest = part_ordinal[0]
    for i in range(part_ordinal.size):
        oldest, newest = min(oldest, part_ordinal[i]), max(newest, part_ordinal[i])
    level, above, found = oldest, newest + 1, part_ordinal.size
    while found != keep - low:
        middle = (level + above) >> 1
        found = 0
        for i in range(part_ordinal.size):
            found += part_ordinal[i] >= middle
        if found >= keep - low:
            level = middle
        else:
            above = middle
    kept = np.uint64(0)
    for i in range(part_ordinal.size):
        own = part_ordinal[i]
        part_score[kept], part_ordinal[kept] = part_score[i], own
        kept += np.uint64(own >= level)


@lean
def _narrow(score, ordinal, count, keep):
    """Move the best rows of the first `count` to the front so that only of the rows [low, stop) it is not known which belong
    to the best `keep`, those before being better and those behind worse. Returns (low, stop).

    Levels are tried until about `keep` rows reach one: counting those is a vectorized pass, where splitting the rows around
    a pivot writes each of them many times. A sample tells the levels, whatever the scores; then halves between two of it.
    """
    for i in range(1, SAMPLE):
        _swap(score, ordinal, i, i * (count // SAMPLE))
    _insertion_sort(score, ordinal, 0, SAMPLE)
    low, stop = 0, count  # rows at or above `ceiling`, and at or above `level`
    level, ceiling = -np.inf, np.inf
    better, worse = 0, SAMPLE
    while better < worse and stop > keep:
        middle = (better + worse) >> 1
        found = _count_at_least(score, count, score[middle])
        if found >= keep:
            level, stop, worse = score[middle], found, middle
        else:
            ceiling, low, better = score[middle], found, middle + 1
    for _ in range(LOOKS):
        half = level + 0.5 * (ceiling - level)
        if stop == keep or stop - low <= CLOSE or not level < half < ceiling:
            break
        found = _count_at_least(score, count, half)
        if found >= keep:
            level, stop = half, found
        else:
            ceiling, low = half, found
    if stop < count:
        _close_up(score, ordinal, count, level)
    if low > 0 and stop > keep:
        back = stop
        for i in range(stop - 1, -1, -1):
            if score[i] < ceiling:
                back -= 1
                _swap(score, ordinal, i, back)
    return low, stop


@lean
def keep_best(score, ordinal, count, keep):
    """Move the best `keep` of the first `count` rows to the front, in any order. O(count) expected."""
    if keep <= 0 or keep >= count or _is_ranked(score, ordinal, count):
        return
    low, stop = 0, count
    if count > 2 * SMALL:
        low, stop = _narrow(score, ordinal, count, keep)
        if stop - low > SMALL and keep < stop and _all_tied(score, low, stop):
            _keep_newest(score, ordinal, low, stop, keep)
            return
    while keep < stop and stop - low > SMALL:
        place = _partition(score, ordinal, low, stop)
        if place > keep:
            stop = place
        elif place < keep:
            low = place + 1
        else:
            return
    if low < keep < stop:
        _insertion_sort(score, ordinal, low, stop)


@allocating
def _quicksort(score, ordinal, count):
    stack = np.empty((64, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, count
    depth = 1
    while depth > 0:
        depth -= 1
        low, stop = stack[depth, 0], stack[depth, 1]
        while stop - low > SMALL:
            place = _partition(score, ordinal, low, stop)
            if place - low < stop - place - 1:  # the larger side waits: the stack stays logarithmic
                stack[depth, 0], stack[depth, 1] = place + 1, stop
                stop = place
            else:
                stack[depth, 0], stack[depth, 1] = low, place
                low = place + 1
            depth += 1
        _insertion_sort(score, ordinal, low, stop)


@lean
def sort_best(score, ordinal, count):
    """Sort the first `count` rows, best first. O(count log count) expected."""
    if count <= SMALL:
        _insertion_sort(score, ordinal, 0, count)
    elif not _is_ranked(score, ordinal, count) and not _turn_if_reversed(score, ordinal, count):
        _quicksort(score, ordinal, count)


@lean
def worst(score, ordinal, count):
    """Place of the lowest ranked of the first `count` rows."""
    place = 0
    for i in range(1, count):
        if outranks(score[place], ordinal[place], score[i], ordinal[i]):
            place = i
    return place


@lean
def take_best(score, ordinal, floor, best_score, best_ordinal, count, keep):
    """Put a row at or above the floor into the buffer; a full one is first reduced, which raises the floor."""
    if count == best_score.shape[0]:
        keep_best(best_score, best_ordinal, count, keep)
        count = keep
        floor = best_score[worst(best_score, best_ordinal, count)]
        if score < floor:
            return floor, count
    best_score[count] = score
    best_ordinal[count] = ordinal
    return floor, count + 1


@lean
def collect(scores, begin, stop, ordinal_shift, floor, best_score, best_ordinal, count, keep):
    """Take the rows scores[begin:stop] (oldest first) that can be among the best `keep` collected so far.

    Row i has the ordinal i + ordinal_shift. The buffer (room for more than `keep`; twice that makes it
    O(1) a row) holds `count` rows, all at or above `floor`; whenever it is full the best `keep` stay and
    the floor rises to the least of them. Rows at the floor are taken: newer rows win ties.
    Start with floor = -inf, count = 0. Returns (floor, count): the buffer is unsorted and holds at least
    the best min(keep, rows with a score). Cost: one vectorized comparison a row, O(1) more for a hit.
    """
    i = begin
    while i < stop:
        block_end = min(i + BLOCK, stop)
        block = scores[i:block_end]  # a view: indices from 0 need no check for negative ones, so this is vectorized
        hits = 0
        for j in range(block.size):
            hits += block[j] >= floor
        if hits > 0:
            for j in range(i, block_end):
                if scores[j] >= floor:
                    floor, count = take_best(scores[j], j + ordinal_shift, floor, best_score, best_ordinal, count, keep)
        i = block_end
    return floor, count


@lean
def collect_from_better_end(scores, begin, stop, ordinal_shift, floor, best_score, best_ordinal, count, keep):
    """`collect`, from the newest row to the oldest unless the oldest is the better one: on a rising run the floor is then
    high at once, and in a run of equal scores the rows that win come first.

    Rows at the floor are taken, as some collected before may be older still; which of them stay is decided by the order of
    rows. Where nothing was, those that made the floor are all newer, and only rows above it are taken."""
    if stop - begin < 2 * BLOCK or not scores[stop - 1] >= scores[begin]:
        return collect(scores, begin, stop, ordinal_shift, floor, best_score, best_ordinal, count, keep)
    newer = count == 0 and floor == -np.inf
    bar = floor
    end = stop
    while end > begin:
        start = max(end - BLOCK, begin)
        if any_at_least(scores, start, end, bar):
            for j in range(end - 1, start - 1, -1):
                if scores[j] >= bar:
                    floor, count = take_best(scores[j], j + ordinal_shift, floor, best_score, best_ordinal, count, keep)
                    bar = np.nextafter(floor, np.inf) if newer and floor > -np.inf else floor
        end = start
    return floor, count


@lean
def finish(best_score, best_ordinal, count, keep):
    """Reduce a collected buffer to its best `keep`, sorted best first. Returns how many there are."""
    if count > keep:
        keep_best(best_score, best_ordinal, count, keep)
        count = keep
    sort_best(best_score, best_ordinal, count)
    return count


@lean
def merge(a_score, a_ordinal, a_count, b_score, b_ordinal, b_count, score, ordinal, keep):
    """Merge two sorted runs into (score, ordinal), at most `keep` rows. Returns how many were written."""
    a = b = n = 0
    while n < keep and (a < a_count or b < b_count):
        if b == b_count or (a < a_count and outranks(a_score[a], a_ordinal[a], b_score[b], b_ordinal[b])):
            score[n], ordinal[n] = a_score[a], a_ordinal[a]
            a += 1
        else:
            score[n], ordinal[n] = b_score[b], b_ordinal[b]
            b += 1
        n += 1
    return n


@lean
def any_at_least(scores, begin, stop, floor):
    """True when some row of scores[begin:stop] is at or above the floor. One vectorized pass."""
    i = begin
    while i < stop:
        block_end = min(i + 8 * BLOCK, stop)
        block = scores[i:block_end]
        hits = 0
        for j in range(block.size):
            hits += block[j] >= floor
        if hits > 0:
            return True
        i = block_end
    return False


@lean
def first_at_least(scores, begin, stop, floor):
    """Place of the first row of scores[begin:stop] that is at or above the floor; `stop` if there is none."""
    i = begin
    while i < stop:
        block_end = min(i + 4 * BLOCK, stop)
        if any_at_least(scores, i, block_end, floor):
            while not any_at_least(scores, i, min(i + BLOCK // 2, stop), floor):
                i += BLOCK // 2
            while not scores[i] >= floor:
                i += 1
            return i
        i = block_end
    return stop

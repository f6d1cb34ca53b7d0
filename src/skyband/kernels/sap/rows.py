"""The raw rows of the window: store them in the ring, and gather the best of a run of them.

A run is gathered in pieces that lie in cache and do not wrap around the ring. Each piece is read from its better
end: if scores rise, the newest rows come first and set a floor that the rest of the piece cannot reach; so rising,
falling and constant runs all cost one vectorized comparison a row.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.best import BLOCK, keep_best, worst
from skyband.kernels.jit import lean, tiny

PIECE = 4096  # rows read at once
FEW = 32  # rows taken one by one


@lean
def store(ring, ordinal, scores, begin, stop):
    """Copy scores[begin:stop], whose first row has the given ordinal, into the ring."""
    mask = ring.shape[0] - 1
    while begin < stop:
        place = ordinal & mask
        n = min(stop - begin, ring.shape[0] - place)
        target, source = ring[place : place + n], scores[begin : begin + n]  # views: the loop is vectorized
        for i in range(n):
            target[i] = source[i]
        begin += n
        ordinal += n


@lean
def copy_list(score, ordinal, target_score, target_ordinal, count):
    """Copy the first `count` rows of a list."""
    for i in range(count):
        target_score[i], target_ordinal[i] = score[i], ordinal[i]


@lean
def contiguous_before(ring, stop, low, most):
    """The least ordinal >= low from which the rows before `stop`, at most `most`, lie side by side in the ring."""
    last = stop - 1
    return max(low, stop - most, last - (last & (ring.shape[0] - 1)))


@lean
def contiguous_after(ring, begin, high, most):
    """The greatest ordinal <= high up to which the rows from `begin` on, at most `most`, lie side by side."""
    return min(high, begin + most, begin - (begin & (ring.shape[0] - 1)) + ring.shape[0])


@tiny
def append_hits(scores, low, n, shift, bar, score, ordinal, count):
    """Append the rows of scores[low : low + n] at or above the bar to a buffer with room for them all. Returns how many rows it
    has. Every row is written, and written over unless it counts: guessing which counts costs more."""
    part, new_score, new_ordinal = scores[low : low + n], score[count:], ordinal[count:]
    hits = np.uint64(0)  # unsigned: no check for negative indices
    for t in range(n):
        new_ordinal[hits] = low + t
        hits += np.uint64(part[t] >= bar)
    found = np.int64(hits)
    for t in range(found):
        new_score[t] = scores[new_ordinal[t]]
        new_ordinal[t] += shift
    return count + found


@lean
def gather(scores, begin, stop, ordinal_shift, floor, score, ordinal, count, keep):
    """`best.collect` that reads the piece scores[begin:stop] from its better end.

    Returns (floor, count, reduced): `reduced` tells that the buffer was full at least once and lost its order.
    """
    room = score.shape[0]
    newest_first = stop - begin > BLOCK and scores[begin] <= scores[stop - 1]
    bar = floor
    reduced = False
    done, rows = 0, stop - begin
    while done < rows:
        n = min(BLOCK, rows - done)
        low = stop - done - n if newest_first else begin + done
        done += n
        block = scores[low : low + n]  # a view: the loop is vectorized
        hits = 0
        for t in range(n):
            hits += block[t] >= bar
        if hits == 0:
            continue
        if count + n <= room:
            count = append_hits(scores, low, n, ordinal_shift, bar, score, ordinal, count)
            continue
        for t in range(n):
            j = low + n - 1 - t if newest_first else low + t
            if scores[j] >= bar:
                if count == room:
                    keep_best(score, ordinal, count, keep)
                    count = keep
                    reduced = True
                    least = worst(score, ordinal, count)
                    floor = bar = score[least]
                    if newest_first and ordinal[least] > j + ordinal_shift:
                        bar = np.nextafter(floor, np.inf)  # what is left of the piece is older: ties lose
                    if scores[j] < bar:
                        continue
                score[count] = scores[j]
                ordinal[count] = j + ordinal_shift
                count += 1
    return floor, count, reduced


@lean
def take_few(scores, begin, stop, ordinal_shift, ring, floor, score, ordinal, count):
    """Store a few rows and append those at or above the floor. Returns (rows taken, count): stops when the buffer is full."""
    mask = ring.shape[0] - 1
    for i in range(begin, stop):
        value = scores[i]
        if value >= floor:
            if count == score.shape[0]:
                return i, count
            score[count], ordinal[count] = value, i + ordinal_shift
            count += 1
        ring[(i + ordinal_shift) & mask] = value
    return stop, count


@lean
def gather_rows(ring, low, high, floor, score, ordinal, keep):
    """Gather the rows [low, high) of the ring into an empty buffer. Returns (floor, count)."""
    count = 0
    mask = ring.shape[0] - 1
    while low < high:
        stop = contiguous_after(ring, low, high, PIECE)
        place = low & mask
        floor, count, _ = gather(ring, place, place + stop - low, low - place, floor, score, ordinal, count, keep)
        low = stop
    return floor, count

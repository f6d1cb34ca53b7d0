"""Distinct objects of each stream in a sliding window, of their unions and intersections, in a fixed room.

Objects whose hash ends in so many zeros are the sample, the same objects in every stream; of each, the ordinal of its last
tuple in every stream is kept. Those seen from an ordinal on are a window's sample, whatever window is asked for, and what
part of it was seen in which streams is what part of all objects was. When the room is full, what has expired goes and then,
if need be, one more zero is asked for; when little is left, one less.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.jit import jit, lean

ROOM = 1 << 12
MOST = ROOM // 2  # objects held
LEVELS = 64

COUNT, LEVEL = 0, 1  # places in Sample.marks


class Sample(NamedTuple):
    """A hash table of the objects in the sample."""

    hash: np.ndarray  # uint64 [ROOM]
    last: np.ndarray  # int64 [ROOM, streams]: ordinal of the object's last tuple there; -1: none
    used: np.ndarray  # uint8 [ROOM]
    since: np.ndarray  # int64 [LEVELS]: from this ordinal on all objects with so many zeros have been held
    marks: np.ndarray  # int64 [2]: objects held, zeros asked for


def no_sample(streams: int) -> Sample:
    """Nothing has been seen."""
    hashes, last = np.zeros(ROOM, np.uint64), np.full((ROOM, streams), -1, np.int64)
    return Sample(hashes, last, np.zeros(ROOM, np.uint8), np.zeros(LEVELS, np.int64), np.zeros(2, np.int64))


@lean
def _slot(sample, hash):
    at = (hash >> np.uint64(32)) & np.uint64(ROOM - 1)
    while sample.used[at] and sample.hash[at] != hash:
        at = (at + np.uint64(1)) & np.uint64(ROOM - 1)
    return at


@lean
def _is_in(hash, level):
    return hash & ((np.uint64(1) << np.uint64(level)) - np.uint64(1)) == np.uint64(0)


@jit
def keep_since(sample, first):
    """Forget objects not seen from the ordinal `first` on, and those with fewer zeros than are asked for."""
    hashes, last, used = sample.hash.copy(), sample.last.copy(), sample.used.copy()
    sample.used[:] = 0
    count = 0
    for at in range(ROOM):
        if used[at] and _is_in(hashes[at], sample.marks[LEVEL]) and last[at].max() >= first:
            slot = _slot(sample, hashes[at])
            sample.used[slot], sample.hash[slot] = 1, hashes[at]
            sample.last[slot] = last[at]
            count += 1
    sample.marks[COUNT] = count


@jit
def see(sample, stream, hash, reach, begin, start, stop):
    """Take note of the tuples with the ordinals from `start` up to `stop`, the first in the arrays having `begin`."""
    marks = sample.marks
    for ordinal in range(start, stop):
        row = ordinal - begin
        if stream[row] < 0 or not _is_in(hash[row], marks[LEVEL]):
            continue
        slot = _slot(sample, hash[row])
        if not sample.used[slot]:
            sample.used[slot], sample.hash[slot] = 1, hash[row]
            sample.last[slot] = -1
            marks[COUNT] += 1
        sample.last[slot, stream[row]] = ordinal
        if marks[COUNT] > MOST:
            keep_since(sample, reach[row])
            while marks[COUNT] > MOST - MOST // 4:
                sample.since[marks[LEVEL]] = np.iinfo(np.int64).max
                marks[LEVEL] += 1
                keep_since(sample, reach[row])


@jit
def widen(sample, first, now):
    """Ask for one zero less where few objects are left of the window that begins at `first`; `now` is the next ordinal."""
    keep_since(sample, first)
    if sample.marks[COUNT] < MOST // 8 and sample.marks[LEVEL] > 0:
        sample.marks[LEVEL] -= 1
        sample.since[sample.marks[LEVEL]] = now


@lean
def level_for(sample, first):
    """Zeros of the largest sample that is whole for the window that begins at `first`."""
    level = sample.marks[LEVEL]
    while sample.since[level] > first:
        level += 1
    return level


@jit
def count_sets(sample, first):
    """How many objects of the sample were seen in exactly which streams, by the bits of the set."""
    streams = sample.last.shape[1]
    counts = np.zeros(1 << streams)
    level = level_for(sample, first)
    for at in range(ROOM):
        if sample.used[at] and _is_in(sample.hash[at], level):
            seen = 0
            for x in range(streams):
                if sample.last[at, x] >= first:
                    seen |= 1 << x
            counts[seen] += 1
    return counts


@jit
def count_pairs(sample, first):
    """How many objects of the sample were seen in both of two streams; in one of them, on the diagonal."""
    streams = sample.last.shape[1]
    counts = np.zeros((streams, streams))
    level = level_for(sample, first)
    for at in range(ROOM):
        if sample.used[at] and _is_in(sample.hash[at], level):
            for x in range(streams):
                if sample.last[at, x] >= first:
                    for y in range(streams):
                        counts[x, y] += sample.last[at, y] >= first
    return counts

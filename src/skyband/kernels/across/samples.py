"""Distinct objects of each stream in a sliding window, of their unions and intersections, in a fixed room.

Objects whose hash ends in so many zeros are the sample, the same objects in every stream; of each, the ordinal of its last
tuple in every stream is kept. Those seen from an ordinal on are a window's sample, whatever window is asked for, and what
part of it was seen in which streams is what part of all objects was. When the room is full, what has expired goes and then,
if need be, one more zero is asked for; when little is left, one less. Which of them come again, and how soon, is noted on
the way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.across.returns import class_of, gap_of, note, note_value
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
    story: np.ndarray  # int64 [ROOM]: what was seen of it during its life: the bits of its streams, or how often it came
    since: np.ndarray  # int64 [LEVELS]: from this ordinal on all objects with so many zeros have been held
    marks: np.ndarray  # int64 [2]: objects held, zeros asked for


def no_sample(streams: int) -> Sample:
    """Nothing has been seen."""
    hashes, last = np.zeros(ROOM, np.uint64), np.full((ROOM, streams), -1, np.int64)
    used, story = np.zeros(ROOM, np.uint8), np.zeros(ROOM, np.int64)
    return Sample(hashes, last, used, story, np.zeros(LEVELS, np.int64), np.zeros(2, np.int64))


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
    hashes, last, used, story = sample.hash.copy(), sample.last.copy(), sample.used.copy(), sample.story.copy()
    sample.used[:] = 0
    count = 0
    for at in range(ROOM):
        if used[at] and _is_in(hashes[at], sample.marks[LEVEL]) and last[at].max() >= first:
            slot = _slot(sample, hashes[at])
            sample.used[slot], sample.hash[slot] = 1, hashes[at]
            sample.last[slot], sample.story[slot] = last[at], story[at]
            count += 1
    sample.marks[COUNT] = count


@jit
def see(sample, returns, tuples, begin, start, stop):
    """Take note of the tuples with the ordinals from `start` up to `stop`, the first in the arrays having `begin`."""
    marks = sample.marks
    for ordinal in range(start, stop):
        row = ordinal - begin
        stream, hash, reach = tuples.stream[row], tuples.hash[row], tuples.reach[row]
        if stream < 0:
            continue
        note_value(returns, stream, tuples.value[row])
        if not _is_in(hash, marks[LEVEL]):
            continue
        slot = _slot(sample, hash)
        if not sample.used[slot]:
            sample.used[slot], sample.hash[slot] = 1, hash
            sample.last[slot], sample.story[slot] = -1, 0
            marks[COUNT] += 1
        before = sample.last[slot].max()
        if before < reach:
            sample.story[slot] = 0
        elif returns.sets[0] and sample.story[slot] >> stream & 1:
            continue  # once in a stream is all that counts
        else:
            note(returns, sample.story[slot], stream, ordinal - before, 2.0 ** marks[LEVEL])
        sample.story[slot] = sample.story[slot] | 1 << stream if returns.sets[0] else sample.story[slot] + 1
        sample.last[slot, stream] = ordinal
        if marks[COUNT] > MOST:
            keep_since(sample, reach)
            while marks[COUNT] > MOST - MOST // 4:
                sample.since[marks[LEVEL]] = np.iinfo(np.int64).max
                marks[LEVEL] += 1
                keep_since(sample, reach)


@jit
def waiting(sample, returns, first, now):
    """Of each class, the objects of the window that begins at `first` whose last tuple is so long ago, and how many each of
    them stands for."""
    level = level_for(sample, first)
    open_, unit = np.zeros(returns.gaps.shape), 2.0**level
    for at in range(ROOM):
        last = sample.last[at].max()
        if sample.used[at] and _is_in(sample.hash[at], level) and last >= first:
            open_[class_of(returns.sets[0], sample.story[at]), gap_of(now - last)] += unit
    return open_, unit


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

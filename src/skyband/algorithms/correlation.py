"""How likely an object seen in some streams is to be seen in another, while it is in the window.

    Pr(seen in y | seen in all of I) = |∩ of I and y| / |∩ of I|

Sizes of intersections come from those of unions by inclusion and exclusion: |a ∩ b| = |a| + |b| - |a ∪ b|, and so on; those of
unions from sketches that forget as the window moves on (`kernels.sketches`). An intersection of several streams is the
difference of large estimates: where it does not stand out from their error, what is known of fewer of the streams is taken
instead. With more than JOINT streams only pairs are looked at.

Paper: CIKM09 4; errata: the printed sign of the intersection is reversed. Memory: 80 KB a stream, whatever the window.
Deviation: no maintained library serves, as theirs do not forget; the mean number of occurrences of an object in a stream
(tuples by distinct objects) stands for the paper's estimate of repetitions from self-join sizes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels import sketches

JOINT = 6  # streams of which all sets are looked at
_WIDTH, _MOST_STRETCHES = 256, 512
_ERROR = 0.78 / sketches.MAPS**0.5


class Sketches(NamedTuple):
    """What has been seen where."""

    bits: np.ndarray  # int64 [streams, MAPS, BITS]: ordinal of the last tuple that set the bit; -1: none has
    width: np.ndarray  # int64 [1]: ordinals that are counted together
    stretch: np.ndarray  # int64 [stretches]: ordinals by `width`, increasing, of those a coming window may hold
    tuples: np.ndarray  # int64 [stretches, streams]: tuples with these ordinals


def no_sketches(streams: int) -> Sketches:
    """Nothing has been seen."""
    bits = np.full((streams, sketches.MAPS, sketches.BITS), -1, np.int64)
    return Sketches(bits, np.full(1, _WIDTH), np.zeros(0, np.int64), np.zeros((0, streams), np.int64))


def seen(held: Sketches, stream: np.ndarray, hashes: np.ndarray, begin: int, start: int, stop: int) -> Sketches:
    """The same, having seen the tuples from the ordinal `start` up to `stop`; the arrays' first has `begin`."""
    if stop == start:
        return held
    sketches.mark_seen(held.bits, stream, hashes, begin, start, stop)
    some, streams = stream[start - begin : stop - begin], held.bits.shape[0]
    number = np.arange(start, stop) // held.width[0]
    counts = np.zeros((int(number[-1] - number[0]) + 1, streams), np.int64)
    np.add.at(counts, (number[some >= 0] - number[0], some[some >= 0]), 1)
    fresh = np.arange(number[0], number[-1] + 1)
    return _joined(held, np.concatenate([held.stretch, fresh]), np.concatenate([held.tuples, counts]))


def _joined(held: Sketches, stretch: np.ndarray, tuples: np.ndarray) -> Sketches:
    """The same with these counts, those of equal stretches added up."""
    if len(stretch) == 0:
        return held._replace(stretch=stretch, tuples=tuples)
    stretch, first = np.unique(stretch, return_index=True)
    return held._replace(stretch=stretch, tuples=np.add.reduceat(tuples, first, axis=0))


def forgotten(held: Sketches, first: int) -> Sketches:
    """The same without stretches before the ordinal `first`; where there are many, they become twice as wide."""
    kept = (held.stretch + 1) * held.width[0] > first
    held = held._replace(stretch=held.stretch[kept], tuples=held.tuples[kept])
    while len(held.stretch) > _MOST_STRETCHES:
        held = _joined(held._replace(width=held.width * 2), held.stretch // 2, held.tuples)
    return held


def occurrences(held: Sketches, first: int) -> np.ndarray:
    """How often an object that is seen in a stream is seen there, on average, in the window that begins at `first`."""
    distinct = np.array([sketches.union_size(held.bits, 1 << x, first) for x in range(held.bits.shape[0])])
    tuples = held.tuples[(held.stretch + 1) * held.width[0] > first].sum(axis=0)
    return np.maximum(tuples / np.maximum(distinct, 1.0), 1.0)


def chances(held: Sketches, first: int) -> np.ndarray:
    """[sets of streams seen, streams]: how likely an object is to be seen in a stream too; [streams, streams], by one stream
    seen, where there are more than JOINT."""
    streams = held.bits.shape[0]
    if streams > JOINT:
        return _pairs(held, first)
    unions = sketches.union_sizes(held.bits, first)
    sets = 1 << streams
    joint = np.zeros(sets)
    for some in range(1, sets):
        part = some
        while part:  # every subset of `some`
            joint[some] += unions[part] if part.bit_count() % 2 else -unions[part]
            part = (part - 1) & some
    table = np.ones((sets, streams))
    for some in sorted(range(1, sets), key=int.bit_count):
        members = [x for x in range(streams) if some >> x & 1]
        clear = len(members) == 1 or joint[some] > 2 * _ERROR * unions[some]
        for y in range(streams):
            if some >> y & 1:
                continue
            fewer = [table[some & ~(1 << x), y] for x in members] if len(members) > 1 else [1.0]
            if clear and joint[some] > 0:
                table[some, y] = min(max(joint[some | 1 << y] / joint[some], 0.0), 1.0)
            else:
                table[some, y] = max(fewer)
    return table


def _pairs(held: Sketches, first: int) -> np.ndarray:
    streams = held.bits.shape[0]
    alone = [sketches.union_size(held.bits, 1 << x, first) for x in range(streams)]
    table = np.ones((streams, streams))
    for x in range(streams):
        for y in range(x):
            both = max(alone[x] + alone[y] - sketches.union_size(held.bits, 1 << x | 1 << y, first), 0.0)
            table[x, y], table[y, x] = (min(both / max(alone[z], 1.0), 1.0) for z in (x, y))
    return table

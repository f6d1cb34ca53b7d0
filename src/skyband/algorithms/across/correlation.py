"""How likely an object seen in some streams is to be seen in another, while it is in the window.

    Pr(seen in y | seen in all of I) = |∩ of I and y| / |∩ of I|

Counts come from a sample of the objects that is the same in every stream and forgets as the window moves on
(`kernels.across.samples`): at most 2048 objects, all of them where the window has no more. Of sets seen too seldom to tell,
what is known of fewer of their streams is taken. With more than JOINT streams only pairs are looked at.

Paper: CIKM09 4. Memory: 32 KB and 32 KB a stream, whatever the window. Deviations: the paper's bitmaps (FM) count unions, and
intersections are what remains of large estimates: with 1024 maps, 256 KB a stream, chances of 0.13 came out between 0.16 and
0.44 over 1000 tuples. Coordinated sampling (as in adaptive sampling and theta sketches) counts intersections themselves, in
less room; libraries of it do not forget. The mean number of occurrences of an object in a stream (tuples by distinct objects)
stands for the paper's estimate of repetitions from self-join sizes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.across import samples

JOINT = 8  # streams of which all sets are looked at
_WIDTH, _MOST_STRETCHES = 256, 512
_TELLING = 8  # objects of the sample from which a share is told


class Stretches(NamedTuple):
    """How many tuples came when."""

    width: np.ndarray  # int64 [1]: ordinals that are counted together
    number: np.ndarray  # int64 [stretches]: ordinals by `width`, increasing, of those a coming window may hold
    tuples: np.ndarray  # int64 [stretches, streams]: tuples with these ordinals


def no_stretches(streams: int) -> Stretches:
    """No tuple has come."""
    return Stretches(np.full(1, _WIDTH), np.zeros(0, np.int64), np.zeros((0, streams), np.int64))


def counted(held: Stretches, stream: np.ndarray, start: int) -> Stretches:
    """The same, with tuples of these streams (-1: of none) from the ordinal `start` on."""
    if len(stream) == 0:
        return held
    number = np.arange(start, start + len(stream)) // held.width[0]
    counts = np.zeros((int(number[-1] - number[0]) + 1, held.tuples.shape[1]), np.int64)
    some = stream >= 0
    np.add.at(counts, (number[some] - number[0], stream[some]), 1)
    fresh = np.arange(number[0], number[-1] + 1)
    return _joined(held, np.concatenate([held.number, fresh]), np.concatenate([held.tuples, counts]))


def _joined(held: Stretches, number: np.ndarray, tuples: np.ndarray) -> Stretches:
    """The same with these counts, those of equal stretches added up."""
    if len(number) == 0:
        return held._replace(number=number, tuples=tuples)
    number, first = np.unique(number, return_index=True)
    return held._replace(number=number, tuples=np.add.reduceat(tuples, first, axis=0))


def forgotten(held: Stretches, first: int) -> Stretches:
    """The same without stretches before the ordinal `first`; where there are many, they become twice as wide."""
    kept = (held.number + 1) * held.width[0] > first
    held = held._replace(number=held.number[kept], tuples=held.tuples[kept])
    while len(held.number) > _MOST_STRETCHES:
        held = _joined(held._replace(width=held.width * 2), held.number // 2, held.tuples)
    return held


def distinct(sample: samples.Sample, first: int) -> np.ndarray:
    """About how many objects each stream has in the window that begins at `first`."""
    seen = np.diagonal(samples.count_pairs(sample, first))
    return np.ldexp(seen, int(samples.level_for(sample, first)))


def occurrences(sample: samples.Sample, stretches: Stretches, first: int) -> np.ndarray:
    """How often an object that is seen in a stream is seen there, on average, in the window that begins at `first`."""
    tuples = stretches.tuples[(stretches.number + 1) * stretches.width[0] > first].sum(axis=0)
    return np.maximum(tuples / np.maximum(distinct(sample, first), 1.0), 1.0)


def joint(sample: samples.Sample, first: int) -> np.ndarray:
    """How many objects of the sample were seen in all streams of a set, and perhaps in others, by the bits of the set."""
    counts = samples.count_sets(sample, first)
    for x in range(sample.last.shape[1]):
        by_bit = counts.reshape(-1, 2, 1 << x)
        by_bit[:, 0] += by_bit[:, 1]
    return counts


def chances(sample: samples.Sample, first: int) -> np.ndarray:
    """[sets of streams seen, streams]: how likely an object is to be seen in a stream too; [streams, streams], by one stream
    seen, where there are more than JOINT."""
    streams = sample.last.shape[1]
    if streams > JOINT:
        pairs = samples.count_pairs(sample, first)
        alone = np.diagonal(pairs)[:, None]
        return np.where(alone >= _TELLING, pairs / np.maximum(alone, 1.0), 1.0)
    seen = joint(sample, first)
    table = np.ones((1 << streams, streams))
    for some in sorted(range(1, 1 << streams), key=int.bit_count):
        fewer = [some & ~(1 << x) for x in range(streams) if some >> x & 1]
        for y in range(streams):
            if seen[some] >= _TELLING:
                table[some, y] = seen[some | 1 << y] / seen[some]
            elif some.bit_count() > 1:
                table[some, y] = max(table[part, y] for part in fewer if not part >> y & 1)
    return table

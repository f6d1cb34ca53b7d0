"""Distinct objects of each stream in a sliding window, and of unions of streams, in a fixed room (CIKM09 4).

Flajolet and Martin's bitmaps: an object's hash chooses a map and, with probability 2^-(i+1), the bit i of it; how many bits
from the lowest on are set tells how many objects came. A bit here is the ordinal of the last tuple that set it, so that a
window is the bits set since it began, whatever window is asked for; and the union of streams is the newest of their bits.
"""

from __future__ import annotations

import math

import numpy as np

from skyband.kernels.jit import jit, lean

MAPS = 256  # the estimate's standard error is 0.78 / sqrt(MAPS) = 5 %
BITS = 40
_MAP_BITS = 8
_PHI = 0.77351
_KAPPA = 1.75  # small counts (Scheuermann and Mauve)


@lean
def mark_seen(bits, stream, hash, begin, start, stop):
    """Set the bits of the tuples with the ordinals from `start` up to `stop`, the first tuple having `begin`."""
    for ordinal in range(start, stop):
        row = ordinal - begin
        x = stream[row]
        if x >= 0:
            left = hash[row]
            at = left & np.uint64(MAPS - 1)
            left >>= np.uint64(_MAP_BITS)
            bit = 0
            while bit < BITS - 1 and left & np.uint64(1) == np.uint64(0):
                left >>= np.uint64(1)
                bit += 1
            bits[x, at, bit] = ordinal


@lean
def union_size(bits, streams, first):
    """About how many objects were seen from the ordinal `first` on in the streams whose bits are set in `streams`."""
    total = 0
    for at in range(MAPS):
        bit, reached = 0, True
        while bit < BITS and reached:
            reached = False
            for x in range(bits.shape[0]):
                if streams >> x & 1 and bits[x, at, bit] >= first:
                    reached = True
                    break
            bit += reached
        total += bit
    mean = total / MAPS
    return MAPS / _PHI * (math.pow(2.0, mean) - math.pow(2.0, -_KAPPA * mean))


@jit
def union_sizes(bits, first):
    """The sizes of the unions of all sets of streams, by the bits of the set."""
    sets = 1 << bits.shape[0]
    sizes = np.zeros(sets)
    for streams in range(1, sets):
        sizes[streams] = union_size(bits, streams, first)
    return sizes

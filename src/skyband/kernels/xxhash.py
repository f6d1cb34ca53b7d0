"""Spark's `xxhash64`, value by value: XXH64 of each column in turn, seeded with the hash of those before; null leaves it so.

Every function goes on with the hashes in `found`, one a row, in place.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.jit import jit

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)


@jit
def _turned(number, bits):
    return (number << np.uint64(bits)) | (number >> np.uint64(64 - bits))


@jit
def _finished(found):
    found ^= found >> np.uint64(33)
    found *= _P2
    found ^= found >> np.uint64(29)
    found *= _P3
    return found ^ (found >> np.uint64(32))


@jit
def _with_eight(found, number):
    return _turned(found ^ (_turned(number * _P2, 31) * _P1), 27) * _P1 + _P4


@jit
def _with_four(found, number):
    return _turned(found ^ (number * _P1), 23) * _P2 + _P3


@jit
def _lane(lane, number):
    return _turned(lane + number * _P2, 31) * _P1


@jit
def _read(content, at, size):
    """`size` bytes as a number, the lowest first."""
    number = np.uint64(0)
    for i in range(size):
        number |= np.uint64(content[at + i]) << np.uint64(8 * i)
    return number


@jit
def hash_fours(values, valid, found):
    """Numbers of four bytes or less, as uint64 of which the lower half counts."""
    for i in range(found.size):
        if valid[i]:
            found[i] = _finished(_with_four(found[i] + _P5 + np.uint64(4), values[i] & np.uint64(0xFFFFFFFF)))


@jit
def hash_eights(values, valid, found):
    """Numbers of eight bytes, as uint64."""
    for i in range(found.size):
        if valid[i]:
            found[i] = _finished(_with_eight(found[i] + _P5 + np.uint64(8), values[i]))


@jit
def hash_bytes(content, begins, valid, found):
    """Texts: that of row i is content[begins[i] : begins[i + 1]]."""
    for i in range(found.size):
        if valid[i]:
            found[i] = _hash_text(content, begins[i], begins[i + 1], found[i])


@jit
def _hash_text(content, at, end, seed):
    length = np.uint64(end - at)
    if end - at >= 32:
        first, second, third, fourth = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
        while at + 32 <= end:
            first = _lane(first, _read(content, at, 8))
            second = _lane(second, _read(content, at + 8, 8))
            third = _lane(third, _read(content, at + 16, 8))
            fourth = _lane(fourth, _read(content, at + 24, 8))
            at += 32
        found = _turned(first, 1) + _turned(second, 7) + _turned(third, 12) + _turned(fourth, 18)
        for lane in (first, second, third, fourth):
            found = (found ^ _lane(np.uint64(0), lane)) * _P1 + _P4
    else:
        found = seed + _P5
    found += length
    while at + 8 <= end:
        found = _with_eight(found, _read(content, at, 8))
        at += 8
    if at + 4 <= end:
        found = _with_four(found, _read(content, at, 4))
        at += 4
    while at < end:
        found = _turned(found ^ (np.uint64(content[at]) * _P5), 11) * _P1
        at += 1
    return _finished(found)

"""Rows out of several chunks, by arrival number: found, then copied column by column, from wherever each lies.

A column is read at its addresses, as Arrow lays columns out: values one behind the other, or offsets into bytes (texts), and
a bit for each row where some are null. What must hold of the addresses is said by whoever makes them, in `skyband.lookup`.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from skyband.kernels.expression import pointer
from skyband.kernels.jit import jit

# places in what is known of a column of a chunk, uint64 [FIELDS]
VALUES = 0  # address of the first row's value, or of where its text begins; of bits, of all of them
VALID = 1  # address of the bits that say who is not null, or 0: all are
TEXT = 2  # address of the bytes of texts
BIT = 3  # place of the first row among bits
FIELDS = 4

BITS = 0  # the width of values of one bit each
_ROWS = 40  # bits that say which row of a chunk; those above say which chunk
_ALL = 1 << 60  # how long an array is said to be that is read by address


@jit
def _last_upto(numbers, value):
    """The place of the last of the increasing numbers that is at most `value`, or 0: halved without a branch, which would be
    mispredicted."""
    at, left = 0, len(numbers)
    while left > 1:
        half = left >> 1
        at += half * (numbers[at + half] <= value)
        left -= half
    return at


@jit
def locate(chunks, seq, owner, place):
    """Note the chunk of each row and its place there; False when one is in none. `chunks`: the first arrival number of each,
    its rows, and the address of their numbers, or 0 where they are consecutive."""
    for i in range(len(seq)):
        low = _last_upto(chunks[0], seq[i])
        at, rows = seq[i] - chunks[0, low], chunks[1, low]
        if chunks[2, low]:
            numbers = carray(pointer(chunks[2, low]), (rows,), np.int64)
            at = _last_upto(numbers, seq[i])
            if numbers[at] != seq[i]:
                return False
        if at < 0 or at >= rows:
            return False
        owner[i], place[i] = low, at
    return True


@jit
def locate_many(chunks, seq, low, table, owner, place):
    """The same where many rows are asked for of a short span of numbers: each chunk's rows are noted in `table`, which is all
    zeros and begins with the number `low`; then each row is looked up at once."""
    for chunk in range(chunks.shape[1]):
        first, rows = chunks[0, chunk], chunks[1, chunk]
        consecutive = chunks[2, chunk] == 0
        numbers = carray(pointer(chunks[2, chunk]), (0 if consecutive else rows,), np.int64)
        begin = max(low - first, 0) if consecutive else np.searchsorted(numbers, low)
        for at in range(begin, rows):
            number = (first + at if consecutive else numbers[at]) - low
            if number >= table.shape[0]:
                break
            table[number] = (chunk + 1) << _ROWS | at
    found = True
    for i in range(len(seq)):
        at = table[seq[i] - low]
        found &= at != 0
        owner[i], place[i] = (at >> _ROWS) - 1, at & ((1 << _ROWS) - 1)
    return found


@jit
def _bit(address, place):
    return (carray(pointer(address), (_ALL,), np.uint8)[place >> 3] >> (place & 7)) & 1


@jit
def copy_valid(where, owner, place, out):
    """Write the bits that say which rows are not null into `out`, where all are zero."""
    for i in range(len(owner)):
        address = where[owner[i], VALID]
        if address == 0 or _bit(address, np.int64(where[owner[i], BIT]) + place[i]):
            out[i >> 3] |= 1 << (i & 7)


@jit
def copy_values(where, width, owner, place, out):
    """Write the rows' values, of `width` bytes each, into `out`; BITS where all are zero."""
    if width == 8:
        words = out.view(np.int64)
        for i in range(len(owner)):
            words[i] = carray(pointer(where[owner[i], VALUES]), (_ALL,), np.int64)[place[i]]
    elif width == BITS:
        for i in range(len(owner)):
            if _bit(where[owner[i], VALUES], np.int64(where[owner[i], BIT]) + place[i]):
                out[i >> 3] |= 1 << (i & 7)
    else:
        for i in range(len(owner)):
            values = carray(pointer(where[owner[i], VALUES]), (_ALL,), np.uint8)
            for j in range(width):
                out[i * width + j] = values[place[i] * width + j]


@jit
def measure_texts(where, owner, place, offsets):
    """Write where the rows' texts begin and end, one behind the other; returns how many bytes they are. `offsets` is of the
    same kind as those of the chunks."""
    end = 0
    offsets[0] = 0
    for i in range(len(owner)):
        ends = carray(pointer(where[owner[i], VALUES]), (_ALL,), offsets.dtype)
        end += ends[place[i] + 1] - ends[place[i]]
        offsets[i + 1] = end
    return end


@jit
def copy_texts(where, owner, place, offsets, out):
    """Write the bytes of the rows' texts to where `measure_texts` says."""
    for i in range(len(owner)):
        ends = carray(pointer(where[owner[i], VALUES]), (_ALL,), offsets.dtype)
        text = carray(pointer(where[owner[i], TEXT]), (_ALL,), np.uint8)
        begin, target = ends[place[i]], offsets[i]
        for j in range(offsets[i + 1] - target):
            out[target + j] = text[begin + j]

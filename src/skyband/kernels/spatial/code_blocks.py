"""Register code run for a block of rows, or for one row by 64 queries that differ in nothing but their constants.

A step is done for all of a block before the next one begins, so that it is chosen once and vectorized; places are rows of
`Codes.room`. Every value is that of `code.value_of`, bit for bit.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.expression import OPCODES, apply
from skyband.kernels.jit import lean, never_inlined, tiny

_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE = (OPCODES[sign] for sign in ("+", "-", "*", "/"))

WIDTH = 128  # columns of Codes.room
MOST_PLACES = 1024  # of a code that is run so: those of more would take memory from each other
LANES = 64  # queries at a time: those of a word
UNLIKE = 0  # in Codes.alike: the queries of the word are not all expressions of the same steps


@tiny
def takes_blocks(codes):
    """Is there room to run these so?"""
    return codes.room.shape[1] > 0


@lean
def _run(codes, q, count):
    """All steps of query q over the first `count` columns of the room; returns the place of the result."""
    room, target, columns = codes.room, np.uint64(0), np.uint64(count)
    for at in range(codes.begin[q], codes.begin[q + 1]):
        operation, target = codes.step[at, 0], np.uint64(codes.step[at, 1])
        first, second = np.uint64(codes.step[at, 2]), np.uint64(codes.step[at, 3])
        if operation == _MULTIPLY:
            for i in range(columns):
                room[target, i] = room[first, i] * room[second, i]
        elif operation == _ADD:
            for i in range(columns):
                room[target, i] = room[first, i] + room[second, i]
        elif operation == _SUBTRACT:
            for i in range(columns):
                room[target, i] = room[first, i] - room[second, i]
        elif operation == _DIVIDE:
            for i in range(columns):
                room[target, i] = room[first, i] / room[second, i]
        else:
            third = codes.step[at, 4]
            apply(operation, room[target, :count], room[first, :count], room[second, :count], room[third, :count])
    return target


@lean
def values_of(codes, q, sign, rows, begin, stop, out):
    """Write the turned values of rows[begin:stop] (float64 [n, d]) for query q to out[:stop - begin]."""
    never_inlined()
    room, dimensions = codes.room, rows.shape[1]
    for at in range(codes.constant_begin[q], codes.constant_begin[q + 1]):
        room[dimensions + at - codes.constant_begin[q]] = codes.constant[at]
    for start in range(begin, stop, WIDTH):
        count = np.uint64(min(WIDTH, stop - start))
        for axis in range(np.uint64(dimensions)):
            for i in range(count):
                room[axis, i] = rows[np.uint64(start) + i, axis]
        result = _run(codes, q, np.int64(count))
        for i in range(count):
            out[np.uint64(start - begin) + i] = sign * room[result, i]


@lean
def values_of_word(codes, sign, word, x, out):
    """Write the turned values of the row x for all queries of a word, which are alike; returns how many these are. `sign`: of
    all queries."""
    never_inlined()
    room, dimensions, first = codes.room, x.shape[0], word * LANES
    count = np.uint64(min(LANES, sign.shape[0] - first))
    for axis in range(np.uint64(dimensions)):
        for i in range(count):
            room[axis, i] = x[axis]
    for place in range(np.uint64(codes.constant_begin[first + 1] - codes.constant_begin[first])):
        for i in range(count):
            room[np.uint64(dimensions) + place, i] = codes.lanes[word, place, i]
    result = _run(codes, first, np.int64(count))
    for i in range(count):
        out[i] = sign[np.uint64(first) + i] * room[result, i]
    return np.int64(count)

"""The score of a new row with each of many older ones: a block at a time, vectorized, whatever the score.

Distances have loops of their own; of a block none of whose pairs can matter the scores are counted and never written.
Any other score is register code (`kernels.expression`): the older rows' columns are read where they lie, the new row's
values fill registers, and what depends on the new row alone is computed once a row, before the first block.

Scores here are *plain*: a pair's turned score is `sign` times it, larger is better.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skyband.kernels.expression import BLOCK, Program, apply
from skyband.kernels.jit import lean

L1, L2, PRODUCT, EXPRESSION = 0, 1, 2, 3

KIND = 0  # places in Scorer.marks
MARKS = 1


class Scorer(NamedTuple):
    """How pairs are scored. The programs are empty for distances.

    Places of a program: the older rows' columns, then the rows of `memory`: the buffer, the new row's columns, constants,
    and what lies in between.
    """

    marks: np.ndarray  # int64 [MARKS]
    sign: np.ndarray  # float64 [1]: 1 or -1
    newer: np.ndarray  # float64 [newer columns]: the new row
    buffer: np.ndarray  # float64 [BLOCK]: plain scores of the block scored last; the first row of `memory`
    memory: np.ndarray  # float64 [registers, BLOCK]
    before: Program  # of what depends on the new row alone
    program: Program  # of all the rest


@lean
def meet(scorer, columns, newer, row):
    """Begin with a new row: column `row` of `newer`."""
    for j in range(newer.shape[0]):
        scorer.newer[j] = newer[j, row]
    if scorer.marks[KIND] == EXPRESSION:
        for j in range(newer.shape[0]):
            register = scorer.memory[1 + j]
            value = newer[j, row]
            for i in range(BLOCK):
                register[i] = value
        _run(scorer.before, columns, scorer.memory, 0, BLOCK)


@lean
def _run(program, columns, memory, begin, count):
    """Run register code over the `count` older rows from the place `begin` on."""
    older, end = columns.shape[0], begin + count
    for step in range(len(program.operation)):
        first, second, third = program.first[step], program.second[step], program.third[step]
        x = columns[first, begin:end] if first < older else memory[first - older, :count]
        y = columns[second, begin:end] if second < older else memory[second - older, :count]
        z = columns[third, begin:end] if third < older else memory[third - older, :count]
        apply(program.operation[step], memory[program.target[step] - older, :count], x, y, z)


@lean
def promising(scorer, columns, begin, count, limit):
    """How many of the `count` older rows from the place `begin` on have a turned score of at least `limit` with the new
    row; of L2, perhaps a few more. No score is NaN that counts, no `limit` that is NaN lets any in."""
    kind, sign = scorer.marks[KIND], scorer.sign[0]
    if kind == EXPRESSION:
        _run(scorer.program, columns, scorer.memory, begin, count)
        found, scores = 0, scorer.buffer[:count]
        for i in range(count):
            found += sign * scores[i] >= limit
        return found
    if kind == L1:
        return _count_l1(columns, begin, count, scorer.newer, scorer.buffer, sign, limit)
    if kind == PRODUCT:
        return _count_product(columns, begin, count, scorer.newer, scorer.buffer, sign, limit)
    return _count_l2(columns, begin, count, scorer.newer, scorer.buffer, sign, _of_squares(sign, limit))


@lean
def fill(scorer, columns, begin, count):
    """Write the plain scores of these rows into the buffer. An expression has done so in `promising`."""
    kind = scorer.marks[KIND]
    if kind == L1:
        _l1(columns, begin, count, columns.shape[0], scorer.newer, scorer.buffer)
    elif kind == PRODUCT:
        _product(columns, begin, count, columns.shape[0], scorer.newer, scorer.buffer)
    elif kind == L2:
        _squares(columns, begin, count, columns.shape[0], scorer.newer, scorer.buffer)
        scores = scorer.buffer[:count]
        for i in range(count):
            scores[i] = math.sqrt(scores[i])


@lean
def score(scorer, columns, begin, count):
    """Write the plain scores of these rows into the buffer, whatever the kind."""
    if scorer.marks[KIND] == EXPRESSION:
        _run(scorer.program, columns, scorer.memory, begin, count)
    else:
        fill(scorer, columns, begin, count)


@lean
def _of_squares(sign, limit):
    """A bound of sums of squares that no pair misses whose root reaches `limit`: the root rounds."""
    if limit != limit:
        return limit
    if sign < 0.0:
        return -(limit * limit * (1.0 + 1e-14) + 1e-323) if limit <= 0.0 else np.nan
    return limit * limit * (1.0 - 1e-14) - 1e-323 if limit > 0.0 else -np.inf


@lean
def _l1(columns, begin, count, upto, newer, out):
    """Sums of differences over the columns before `upto`, added from the left; two columns a pass."""
    o, end = out[:count], begin + count
    x, v = columns[0, begin:end], newer[0]
    if upto == 1:
        for i in range(count):
            o[i] = abs(x[i] - v)
        return
    y, w = columns[1, begin:end], newer[1]
    for i in range(count):
        o[i] = abs(x[i] - v) + abs(y[i] - w)
    for j in range(2, upto - 1, 2):
        x, v, y, w = columns[j, begin:end], newer[j], columns[j + 1, begin:end], newer[j + 1]
        for i in range(count):
            o[i] = o[i] + abs(x[i] - v) + abs(y[i] - w)
    if upto & 1:
        x, v = columns[upto - 1, begin:end], newer[upto - 1]
        for i in range(count):
            o[i] += abs(x[i] - v)


@lean
def _squares(columns, begin, count, upto, newer, out):
    """Sums of squares over the columns before `upto`."""
    o, end = out[:count], begin + count
    x, v = columns[0, begin:end], newer[0]
    for i in range(count):
        o[i] = (x[i] - v) * (x[i] - v)
    for j in range(1, upto):
        x, v = columns[j, begin:end], newer[j]
        for i in range(count):
            o[i] += (x[i] - v) * (x[i] - v)


@lean
def _product(columns, begin, count, upto, newer, out):
    """Products of differences over the columns before `upto`."""
    o, end = out[:count], begin + count
    x, v = columns[0, begin:end], newer[0]
    for i in range(count):
        o[i] = abs(x[i] - v)
    for j in range(1, upto):
        x, v = columns[j, begin:end], newer[j]
        for i in range(count):
            o[i] *= abs(x[i] - v)


@lean
def _count_l1(columns, begin, count, newer, out, sign, limit):
    """The last one or two columns are added and compared in one pass, without writing."""
    d, end, found = columns.shape[0], begin + count, 0
    x, v = columns[d - 1, begin:end], newer[d - 1]
    if d == 1:
        for i in range(count):
            found += sign * abs(x[i] - v) >= limit
        return found
    if d == 2:
        y, w = columns[0, begin:end], newer[0]
        for i in range(count):
            found += sign * (abs(y[i] - w) + abs(x[i] - v)) >= limit
        return found
    if d == 3:
        y, w, z, u = columns[0, begin:end], newer[0], columns[1, begin:end], newer[1]
        for i in range(count):
            found += sign * (abs(y[i] - w) + abs(z[i] - u) + abs(x[i] - v)) >= limit
        return found
    _l1(columns, begin, count, d - 2, newer, out)
    o, y, w = out[:count], columns[d - 2, begin:end], newer[d - 2]
    for i in range(count):
        found += sign * (o[i] + abs(y[i] - w) + abs(x[i] - v)) >= limit
    return found


@lean
def _count_l2(columns, begin, count, newer, out, sign, limit):
    d, end, found = columns.shape[0], begin + count, 0
    x, v = columns[d - 1, begin:end], newer[d - 1]
    if d == 1:
        for i in range(count):
            found += sign * ((x[i] - v) * (x[i] - v)) >= limit
        return found
    if d == 2:
        y, w = columns[0, begin:end], newer[0]
        for i in range(count):
            found += sign * ((y[i] - w) * (y[i] - w) + (x[i] - v) * (x[i] - v)) >= limit
        return found
    _squares(columns, begin, count, d - 2, newer, out)
    o, y, w = out[:count], columns[d - 2, begin:end], newer[d - 2]
    for i in range(count):
        found += sign * (o[i] + (y[i] - w) * (y[i] - w) + (x[i] - v) * (x[i] - v)) >= limit
    return found


@lean
def _count_product(columns, begin, count, newer, out, sign, limit):
    d, end, found = columns.shape[0], begin + count, 0
    x, v = columns[d - 1, begin:end], newer[d - 1]
    if d == 1:
        for i in range(count):
            found += sign * abs(x[i] - v) >= limit
        return found
    if d == 2:
        y, w = columns[0, begin:end], newer[0]
        for i in range(count):
            found += sign * (abs(y[i] - w) * abs(x[i] - v)) >= limit
        return found
    if d == 3:
        y, w, z, u = columns[0, begin:end], newer[0], columns[1, begin:end], newer[1]
        for i in range(count):
            found += sign * (abs(y[i] - w) * abs(z[i] - u) * abs(x[i] - v)) >= limit
        return found
    _product(columns, begin, count, d - 2, newer, out)
    o, y, w = out[:count], columns[d - 2, begin:end], newer[d - 2]
    for i in range(count):
        found += sign * (o[i] * abs(y[i] - w) * abs(x[i] - v)) >= limit
    return found

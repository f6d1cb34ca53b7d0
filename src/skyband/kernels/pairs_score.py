"""The score of a new row with each of many older ones: a block at a time, vectorized, whatever the score.

Distances have loops of their own; of a block none of whose pairs can matter the scores are compared and never written.
Any other score is register code (`kernels.expression`): the older rows' columns are read where they lie, the new row's
values fill registers, and what depends on the new row alone is computed once a row, before the first block.

Scores here are *plain*: a pair's turned score is `sign` times it, larger is better.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skyband.kernels.expression import BLOCK, Program, apply
from skyband.kernels.jit import lean, tiny

L1, L2, PRODUCT, EXPRESSION = 0, 1, 2, 3
UNWRITTEN = 4  # columns up to which a distance is compared where it is computed: `promising` then takes any number of rows
FINE = 128  # rows looked through one by one where a score is known to reach the limit

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
    hits: np.ndarray  # int64 [BLOCK]: places in the buffer
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
    """Has any of the `count` older rows from the place `begin` on a turned score of at least `limit` with the new row? Of L2,
    True perhaps a little below it. A score that is NaN counts for nothing, a `limit` that is NaN lets none in.

    The comparison is part of the loop that computes scores, and no score is written: this costs less than writing them.
    """
    kind, sign = scorer.marks[KIND], scorer.sign[0]
    if kind == EXPRESSION:
        _run(scorer.program, columns, scorer.memory, begin, count)
        hit, scores = False, scorer.buffer[:count]
        for i in range(count):
            hit |= sign * scores[i] >= limit
        return hit
    return any_apart(kind, columns, begin, count, scorer.newer, scorer.buffer, sign, limit)


@tiny
def any_apart(kind, columns, begin, count, newer, out, sign, limit):
    """`promising` of a distance, for callers to whom handing over a whole scorer costs too much."""
    if kind == L1:
        return _any_l1(columns, begin, count, newer, out, sign, limit)
    if kind == PRODUCT:
        return _any_product(columns, begin, count, newer, out, sign, limit)
    return _any_l2(columns, begin, count, newer, out, sign, _of_squares(sign, limit))


@lean
def reaching(sign, buffer, hits, count, limit):
    """Note which of the first `count` scores in the buffer reach `limit`, in `hits`; how many they are."""
    scores, found = buffer[:count], 0
    for i in range(count):
        hits[found] = i  # written in any case: a branch would cost more
        found += sign * scores[i] >= limit
    return found


@lean
def reaching_own(sign, buffer, hits, count, limits):
    """The same where each has a limit of its own."""
    scores, own, found = buffer[:count], limits[:count], 0
    for i in range(count):
        hits[found] = i
        found += sign * scores[i] >= own[i]
    return found


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
def _any_l1(columns, begin, count, newer, out, sign, limit):
    """Of more than four columns all but the last two are added up first; no more than a block then."""
    d, end, hit = columns.shape[0], begin + count, False
    x, v = columns[0, begin:end], newer[0]
    if d == 1:
        for i in range(count):
            hit |= sign * abs(x[i] - v) >= limit
        return hit
    y, w = columns[1, begin:end], newer[1]
    if d == 2:
        for i in range(count):
            hit |= sign * (abs(x[i] - v) + abs(y[i] - w)) >= limit
        return hit
    z, u = columns[2, begin:end], newer[2]
    if d == 3:
        for i in range(count):
            hit |= sign * (abs(x[i] - v) + abs(y[i] - w) + abs(z[i] - u)) >= limit
        return hit
    t, r = columns[3, begin:end], newer[3]
    if d == 4:
        for i in range(count):
            hit |= sign * (abs(x[i] - v) + abs(y[i] - w) + abs(z[i] - u) + abs(t[i] - r)) >= limit
        return hit
    _l1(columns, begin, count, d - 2, newer, out)
    o, x, v, y, w = out[:count], columns[d - 2, begin:end], newer[d - 2], columns[d - 1, begin:end], newer[d - 1]
    for i in range(count):
        hit |= sign * (o[i] + abs(x[i] - v) + abs(y[i] - w)) >= limit
    return hit


@lean
def _any_l2(columns, begin, count, newer, out, sign, limit):
    """As `_any_l1`, of sums of squares."""
    d, end, hit = columns.shape[0], begin + count, False
    x, v = columns[0, begin:end], newer[0]
    if d == 1:
        for i in range(count):
            hit |= sign * ((x[i] - v) * (x[i] - v)) >= limit
        return hit
    y, w = columns[1, begin:end], newer[1]
    if d == 2:
        for i in range(count):
            hit |= sign * ((x[i] - v) * (x[i] - v) + (y[i] - w) * (y[i] - w)) >= limit
        return hit
    z, u = columns[2, begin:end], newer[2]
    if d == 3:
        for i in range(count):
            hit |= sign * ((x[i] - v) * (x[i] - v) + (y[i] - w) * (y[i] - w) + (z[i] - u) * (z[i] - u)) >= limit
        return hit
    t, r = columns[3, begin:end], newer[3]
    if d == 4:
        for i in range(count):
            both = (x[i] - v) * (x[i] - v) + (y[i] - w) * (y[i] - w)
            hit |= sign * (both + (z[i] - u) * (z[i] - u) + (t[i] - r) * (t[i] - r)) >= limit
        return hit
    _squares(columns, begin, count, d - 2, newer, out)
    o, x, v, y, w = out[:count], columns[d - 2, begin:end], newer[d - 2], columns[d - 1, begin:end], newer[d - 1]
    for i in range(count):
        hit |= sign * (o[i] + (x[i] - v) * (x[i] - v) + (y[i] - w) * (y[i] - w)) >= limit
    return hit


@lean
def _any_product(columns, begin, count, newer, out, sign, limit):
    """As `_any_l1`, of products."""
    d, end, hit = columns.shape[0], begin + count, False
    x, v = columns[0, begin:end], newer[0]
    if d == 1:
        for i in range(count):
            hit |= sign * abs(x[i] - v) >= limit
        return hit
    y, w = columns[1, begin:end], newer[1]
    if d == 2:
        for i in range(count):
            hit |= sign * (abs(x[i] - v) * abs(y[i] - w)) >= limit
        return hit
    z, u = columns[2, begin:end], newer[2]
    if d == 3:
        for i in range(count):
            hit |= sign * (abs(x[i] - v) * abs(y[i] - w) * abs(z[i] - u)) >= limit
        return hit
    t, r = columns[3, begin:end], newer[3]
    if d == 4:
        for i in range(count):
            hit |= sign * (abs(x[i] - v) * abs(y[i] - w) * abs(z[i] - u) * abs(t[i] - r)) >= limit
        return hit
    _product(columns, begin, count, d - 2, newer, out)
    o, x, v, y, w = out[:count], columns[d - 2, begin:end], newer[d - 2], columns[d - 1, begin:end], newer[d - 1]
    for i in range(count):
        hit |= sign * (o[i] * abs(x[i] - v) * abs(y[i] - w)) >= limit
    return hit

"""The score of a new row with each of many older ones: a block at a time, vectorized, whatever the score.

Distances have loops of their own; of a block none of whose pairs can matter the scores are compared and never written.
Any other score is register code (`kernels.expression`): the older rows' columns are read where they lie, the new row's
values fill registers, and what depends on the new row alone is computed once a row, before the first block.

Many such scores are a distance in other words: weighted, scaled, negated, the largest difference, or restricted by a condition.
The distance is then *searched* for, by the loops of distances and by boxes, with a margin for what rounding may do; only where
it lets a score matter is the code run. What is compared with a limit, and told, is always the score as it is written.

Scores here are *plain*: a pair's turned score is `sign` times it, larger is better.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skyband.kernels.expression import BLOCK, OPCODES, Program, apply
from skyband.kernels.jit import lean, tiny
from skyband.kernels.pairs_weighted import any_largest, any_weighted_l1, any_weighted_l2

L1, L2, PRODUCT, EXPRESSION = 0, 1, 2, 3  # how scores are computed
WEIGHTED_L1, WEIGHTED_L2, LARGEST = 4, 5, 6  # what else is searched for; L2 and WEIGHTED_L2 by squares
UNWRITTEN = 4  # columns up to which a distance is compared where it is computed: `promising` then takes any number of rows
UNWRITTEN_WEIGHTED = 2  # the same of the kinds with weights
FINE = 128  # rows looked through one by one where a score is known to reach the limit

KIND, SEARCH, MET = 0, 1, 2  # places in Scorer.marks; SEARCH is EXPRESSION where nothing else is known than the code
MARKS = 3
TURN, APART = 0, 1  # places in Scorer.sign: 1 where larger scores, or larger distances, are better, or -1
FACTOR, ROOT, EXACT = 0, 1, 2  # places in Scorer.shape: the score is about FACTOR times the distance, or its root
SHAPE = 3

ADD, SUBTRACT, MULTIPLY, DIVIDE, ABS = OPCODES["+"], OPCODES["-"], OPCODES["*"], OPCODES["/"], OPCODES["abs"]

_MARGIN = 1e-14  # what rounding may do to a distance of up to 32 columns
_TINY = 1e-320  # and to the smallest numbers
_HUGE = np.finfo(np.float64).max


class Scorer(NamedTuple):
    """How pairs are scored. The programs are empty for distances.

    Places of a program: the older rows' columns, then the rows of `memory`: the buffer, the new row's columns, constants,
    and what lies in between.
    """

    marks: np.ndarray  # int64 [MARKS]
    sign: np.ndarray  # float64 [2]
    weights: np.ndarray  # float64 [searched columns]: they come first, of both rows
    shape: np.ndarray  # float64 [SHAPE]
    newer: np.ndarray  # float64 [newer columns]: the new row
    buffer: np.ndarray  # float64 [BLOCK]: plain scores of the block scored last; the first row of `memory`
    memory: np.ndarray  # float64 [registers, BLOCK]
    hits: np.ndarray  # int64 [BLOCK]: places in the buffer
    still: np.ndarray  # uint8 [registers]: 1 where a row of `memory` holds one number, which depends on the new row alone
    before: Program  # of what depends on the new row alone
    program: Program  # of all the rest


@lean
def meet(scorer, columns, newer, row, width):
    """Begin with a new row: column `row` of `newer`. It will be scored with up to `width` rows at a time."""
    for j in range(newer.shape[0]):
        scorer.newer[j] = newer[j, row]
    scorer.marks[MET] = 0
    if scorer.marks[SEARCH] == EXPRESSION:
        _prepare(scorer, columns, width)


@lean
def _prepare(scorer, columns, width):
    """Fill the registers that depend on the new row alone, for up to `width` rows at a time."""
    for j in range(len(scorer.newer)):
        register, value = scorer.memory[1 + j], scorer.newer[j]
        for i in range(width):
            register[i] = value
    _run(scorer.before, columns, scorer.memory, 0, width, 0, len(scorer.before.operation))
    scorer.marks[MET] = width


@lean
def _run_whole(scorer, columns, begin, count):
    """Compute the scores of these rows by the code, whatever was done before."""
    if scorer.marks[MET] < count:
        _prepare(scorer, columns, FINE if count <= FINE else BLOCK)
    _run(scorer.program, columns, scorer.memory, begin, count, 0, len(scorer.program.operation))


@lean
def _run(program, columns, memory, begin, count, from_step, upto):
    """Run steps of register code over the `count` older rows from the place `begin` on."""
    older, end = columns.shape[0], begin + count
    for step in range(from_step, upto):
        first, second, third = program.first[step], program.second[step], program.third[step]
        x = columns[first, begin:end] if first < older else memory[first - older, :count]
        y = columns[second, begin:end] if second < older else memory[second - older, :count]
        z = columns[third, begin:end] if third < older else memory[third - older, :count]
        apply(program.operation[step], memory[program.target[step] - older, :count], x, y, z)


@lean
def promising(scorer, columns, begin, count, limit):
    """Has any of the `count` older rows from the place `begin` on a turned score of at least `limit` with the new row? Where
    something else is searched for, True perhaps a little below it. A score that is NaN counts for nothing, a `limit` that is
    NaN lets none in.

    The comparison is part of the loop that computes scores, and no score is written: this costs less than writing them.
    """
    search, sign = scorer.marks[SEARCH], scorer.sign[APART]
    if search == EXPRESSION:
        last = len(scorer.program.operation) - 1
        _run(scorer.program, columns, scorer.memory, begin, count, 0, last)
        still, turn = scorer.still, scorer.sign[TURN]
        return _last_reaches(scorer.program, columns, scorer.memory, still, begin, count, last, turn, limit)
    level = level_of(search, scorer.shape, sign, limit)
    return any_apart(search, columns, begin, count, scorer.newer, scorer.weights, scorer.buffer, sign, level)


@lean
def _last_reaches(program, columns, memory, still, begin, count, step, sign, limit):
    """Does what the last step gives for any of these rows, turned by `sign`, reach `limit`? The commonest write nothing."""
    older, end, hit = columns.shape[0], begin + count, False
    operation, first, second = program.operation[step], program.first[step], program.second[step]
    x = columns[first, begin:end] if first < older else memory[first - older, :count]
    y = columns[second, begin:end] if second < older else memory[second - older, :count]
    if second >= older and still[second - older]:  # read once
        v = y[0]
        if operation == ADD:
            for i in range(count):
                hit |= sign * (x[i] + v) >= limit
            return hit
        if operation == SUBTRACT:
            for i in range(count):
                hit |= sign * (x[i] - v) >= limit
            return hit
        if operation == MULTIPLY:
            for i in range(count):
                hit |= sign * (x[i] * v) >= limit
            return hit
        if operation == DIVIDE:
            for i in range(count):
                hit |= sign * (x[i] / v) >= limit
            return hit
    if operation == ADD:
        for i in range(count):
            hit |= sign * (x[i] + y[i]) >= limit
    elif operation == SUBTRACT:
        for i in range(count):
            hit |= sign * (x[i] - y[i]) >= limit
    elif operation == MULTIPLY:
        for i in range(count):
            hit |= sign * (x[i] * y[i]) >= limit
    elif operation == DIVIDE:
        for i in range(count):
            hit |= sign * (x[i] / y[i]) >= limit
    elif operation == ABS:
        for i in range(count):
            hit |= sign * abs(x[i]) >= limit
    else:
        _run(program, columns, memory, begin, count, step, step + 1)
        scores = memory[0, :count]
        for i in range(count):
            hit |= sign * scores[i] >= limit
    return hit


@tiny
def any_apart(search, columns, begin, count, newer, weights, out, sign, level):
    """`promising` of a distance, for callers to whom handing over a whole scorer costs too much. `level`: see `level_of`."""
    d = len(weights)
    if search == L1:
        return _any_l1(columns, d, begin, count, newer, out, sign, level)
    if search == PRODUCT:
        return _any_product(columns, d, begin, count, newer, out, sign, level)
    if search == L2:
        return _any_l2(columns, d, begin, count, newer, out, sign, level)
    if search == WEIGHTED_L1:
        return any_weighted_l1(columns, begin, count, newer, weights, out, sign, level)
    if search == LARGEST:
        return any_largest(columns, begin, count, newer, weights, out, sign, level)
    return any_weighted_l2(columns, begin, count, newer, weights, out, sign, level)


@lean
def level_of(search, shape, sign, limit):
    """What a distance turned by `sign` reaches wherever the turned score reaches `limit`: of sums of squares, before the root.

    A score that is no more than searched for differs from FACTOR times the distance, or its root, by rounding: each step of
    either by its own last bit, the last one by the smallest numbers there are. Both overflow together, but for that."""
    if limit != limit:
        return limit
    if shape[EXACT]:
        return _of_squares(sign, limit) if search == L2 else limit
    if sign < 0.0:
        if limit > 0.0:
            return np.nan
        most = (-limit * (1.0 + _MARGIN) + _TINY) / shape[FACTOR] * (1.0 + _MARGIN) + _TINY
        return -(most * most * (1.0 + _MARGIN) + _TINY) if shape[ROOT] else -most
    least = (min(limit, _HUGE) * (1.0 - _MARGIN) - _TINY) / shape[FACTOR] * (1.0 - _MARGIN) - _TINY
    if shape[ROOT] and least > 0.0:
        least = least * least * (1.0 - _MARGIN) - _TINY
    return min(least, _HUGE * (1.0 - _MARGIN)) if least > 0.0 else -np.inf


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
    """Write the plain scores of these rows, of which `promising` was the last to see the scorer, into the buffer."""
    kind = scorer.marks[KIND]
    if kind == EXPRESSION:
        if scorer.marks[SEARCH] != EXPRESSION:
            _run_whole(scorer, columns, begin, count)
        else:
            last = len(scorer.program.operation) - 1
            _run(scorer.program, columns, scorer.memory, begin, count, last, last + 1)
    elif kind == L1:
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
        _run_whole(scorer, columns, begin, count)
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
def _any_l1(columns, d, begin, count, newer, out, sign, limit):
    """Of more than four columns all but the last two are added up first; no more than a block then."""
    end, hit = begin + count, False
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
def _any_l2(columns, d, begin, count, newer, out, sign, limit):
    """As `_any_l1`, of sums of squares."""
    end, hit = begin + count, False
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
def _any_product(columns, d, begin, count, newer, out, sign, limit):
    """As `_any_l1`, of products."""
    end, hit = begin + count, False
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

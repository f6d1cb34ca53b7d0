"""The score of a new row with each of many older ones: a block at a time, vectorized, whatever the score.

Distances have loops of their own (`kernels.pairs.distance`); any other score is register code (`kernels.expression`, and steps
of pairs alone here): the older rows' columns are read where they lie, the new row's values fill registers, and what depends on
the new row alone is computed once a row, before the first block. Of a block none of whose pairs can matter the scores are
compared and never written.

Many such scores are a distance in other words: weighted, scaled, negated, the largest difference, or restricted by a condition.
The distance is then *searched* for, by the loops of distances and by boxes, with a margin for what rounding may do; only where
it lets a score matter is the code run. What is compared with a limit, and told, is always the score as it is written.

Scores here are *plain*: a pair's turned score is `sign` times it, larger is better.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skyband.kernels.expression import BLOCK, OPCODES, apply
from skyband.kernels.jit import lean, never_inlined, tiny
from skyband.kernels.pairs.distance import EXPRESSION, write_apart

FINE = 128  # rows looked through one by one where a score is known to reach the limit

KIND, SEARCH, FILLED, WIDTH = 0, 1, 2, 3  # places in Scorer.marks; SEARCH is EXPRESSION where nothing else is known
MARKS = 4
TURN, APART = 0, 1  # places in Scorer.sign: 1 where larger scores, or larger distances, are better, or -1

OPERATION, TARGET, FIRST, SECOND, THIRD = range(5)  # of a step: see `expression.Program`

ADD, SUBTRACT, MULTIPLY, DIVIDE, ABS = OPCODES["+"], OPCODES["-"], OPCODES["*"], OPCODES["/"], OPCODES["abs"]
DIFFERENCE = len(OPCODES)  # an operation of pairs alone: abs(x - y)
READ_ONCE = (ADD, SUBTRACT, MULTIPLY, DIVIDE, DIFFERENCE)  # steps that read one number of a second operand that is `still`

_LEAST, _MOST = 1e-290, 1e290  # limits of quotients that can be told from products: with a margin, none is an infinity
_SLACK = 1e-307  # what the smallest products lose
_ROUNDING = 1e-15  # what the others may


class Scorer(NamedTuple):
    """How pairs are scored. The programs, a step a row, are empty for distances.

    Places of a program: the older rows' columns, then the rows of `memory`: the buffer, the new row's columns, constants,
    and what lies in between.
    """

    marks: np.ndarray  # int64 [MARKS]; WIDTH: numbers of a register that is `still`, 1 where no more are read
    sign: np.ndarray  # float64 [2]
    weights: np.ndarray  # float64 [searched columns]: they come first, of both rows
    shape: np.ndarray  # float64 [SHAPE]
    newer: np.ndarray  # float64 [newer columns]: the new row
    coarse: np.ndarray  # float32 [2, searched columns, or 0]: the new row's coarse values, weights (`kernels.pairs.coarse`)
    buffer: np.ndarray  # float64 [BLOCK]: plain scores of the block scored last; the first row of `memory`
    memory: np.ndarray  # float64 [registers, BLOCK]
    ranges: np.ndarray  # float64 [registers, 2]: the same of a whole zone (`kernels.pairs.zones`)
    hits: np.ndarray  # int64 [BLOCK]: places in the buffer
    still: np.ndarray  # uint8 [registers]: 1 where a row of `memory` holds one number, which depends on the new row alone
    before: np.ndarray  # int64 [steps, FIELDS]: of what depends on the new row alone
    program: np.ndarray  # int64 [steps, FIELDS]: of all the rest


@tiny
def meet(scorer, columns, newer, row):
    """Begin with a new row: column `row` of `newer`."""
    for j in range(newer.shape[0]):
        scorer.newer[j] = newer[j, row]
    scorer.marks[FILLED] = 0
    if scorer.marks[SEARCH] == EXPRESSION:
        _prepare(scorer, columns, BLOCK)


@lean
def _prepare(scorer, columns, rows):
    """Fill the registers that depend on the new row alone, for up to so many rows at a time."""
    never_inlined()
    width = min(rows, scorer.marks[WIDTH])
    for j in range(len(scorer.newer)):
        register, value = scorer.memory[1 + j], scorer.newer[j]
        for i in range(width):
            register[i] = value
    _run(scorer.before, columns, scorer.memory, scorer.still, 0, width)
    scorer.marks[FILLED] = rows


@tiny
def promising(scorer, columns, begin, count, limit):
    """Has any of the `count` older rows from the place `begin` on a turned score of at least `limit` with the new row? For
    scores that no distance tells: of others `any_apart` asks. A score that is NaN counts for nothing, a `limit` that is NaN
    lets none in.

    The comparison is part of the loop that computes scores, and no score is written: this costs less than writing them.
    """
    before, last = scorer.program[:-1], scorer.program[-1]
    if len(before):
        _run(before, columns, scorer.memory, scorer.still, begin, count)
    return _last_reaches(last, columns, scorer.memory, scorer.still, begin, count, scorer.sign[TURN], limit)


@tiny
def fill(scorer, columns, begin, count):
    """Write the plain scores of these rows, of which `promising` was the last to see the scorer, into the buffer."""
    if scorer.marks[SEARCH] != EXPRESSION:
        score(scorer, columns, begin, count)
    else:
        _run(scorer.program[-1:], columns, scorer.memory, scorer.still, begin, count)


@tiny
def score(scorer, columns, begin, count):
    """Write the plain scores of these rows, no more than a block, into the buffer, whatever the kind."""
    kind = scorer.marks[KIND]
    if kind != EXPRESSION:
        write_apart(kind, columns, begin, count, scorer.newer, scorer.weights, scorer.buffer)
        return
    if scorer.marks[FILLED] < count:
        _prepare(scorer, columns, FINE if count <= FINE else BLOCK)
    _run(scorer.program, columns, scorer.memory, scorer.still, begin, count)


@lean
def reaching(sign, buffer, hits, count, limit):
    """Note which of the first `count` scores in the buffer reach `limit`, in `hits`; how many they are."""
    scores, found = buffer[:count], 0
    for i in range(count):
        hits[found] = i  # written in any case: a branch would cost more
        found += sign * scores[i] >= limit
    return found


# -- register code -----------------------------------------------------------------------------------------------


@tiny
def _value(operation, x, y):
    """What the commonest operations give. As in `pairs.distance`, which one it is is known when this is compiled."""
    if operation == ADD:
        return x + y
    if operation == SUBTRACT:
        return x - y
    if operation == MULTIPLY:
        return x * y
    if operation == DIVIDE:
        return x / y
    return abs(x) if operation == ABS else abs(x - y)


@tiny
def _compute(operation, out, x, y, still):
    if still:
        v = y[0]  # read once
        for i in range(len(out)):
            out[i] = _value(operation, x[i], v)
    else:
        for i in range(len(out)):
            out[i] = _value(operation, x[i], y[i])


@lean
def _run(program, columns, memory, still, begin, count):
    """Run register code over the `count` older rows from the place `begin` on."""
    never_inlined()
    older, end = columns.shape[0], begin + count
    for step in range(len(program)):
        operation, first, second = program[step, OPERATION], program[step, FIRST], program[step, SECOND]
        x = columns[first, begin:end] if first < older else memory[first - older, :count]
        y = columns[second, begin:end] if second < older else memory[second - older, :count]
        out, stays = memory[program[step, TARGET] - older, :count], second >= older and still[second - older]
        if operation == DIFFERENCE:
            _compute(DIFFERENCE, out, x, y, stays)
        elif operation == SUBTRACT:
            _compute(SUBTRACT, out, x, y, stays)
        elif operation == ADD:
            _compute(ADD, out, x, y, stays)
        elif operation == MULTIPLY:
            _compute(MULTIPLY, out, x, y, stays)
        elif operation == DIVIDE:
            _compute(DIVIDE, out, x, y, stays)
        else:
            third = program[step, THIRD]
            z = columns[third, begin:end] if third < older else memory[third - older, :count]
            apply(operation, out, x, y, z)


@tiny
def _any(operation, x, y, still, sign, limit):
    hit = False
    if still:
        v = y[0]
        for i in range(len(x)):
            hit |= sign * _value(operation, x[i], v) >= limit
    else:
        for i in range(len(x)):
            hit |= sign * _value(operation, x[i], y[i]) >= limit
    return hit


@lean
def _last_reaches(step, columns, memory, still, begin, count, sign, limit):
    """Does what the last step gives for any of these rows, turned by `sign`, reach `limit`? The commonest write nothing."""
    never_inlined()
    older, end, operation, first, second = columns.shape[0], begin + count, step[OPERATION], step[FIRST], step[SECOND]
    x = columns[first, begin:end] if first < older else memory[first - older, :count]
    y = columns[second, begin:end] if second < older else memory[second - older, :count]
    stays = second >= older and still[second - older]
    if operation == ADD:
        return _any(ADD, x, y, stays, sign, limit)
    if operation == SUBTRACT:
        return _any(SUBTRACT, x, y, stays, sign, limit)
    if operation == MULTIPLY:
        return _any(MULTIPLY, x, y, stays, sign, limit)
    if operation == DIVIDE:
        if _LEAST <= abs(limit) <= _MOST and not stays:
            return _any_quotient(x, y, sign, limit)
        return _any(DIVIDE, x, y, stays, sign, limit)
    if operation == ABS:
        return _any(ABS, x, y, stays, sign, limit)
    if operation == DIFFERENCE:
        return _any(DIFFERENCE, x, y, stays, sign, limit)
    _run(step.reshape(1, -1), columns, memory, still, begin, count)
    scores, hit = memory[0, :count], False
    for i in range(count):
        hit |= sign * scores[i] >= limit
    return hit


@lean
def _any_quotient(x, y, sign, limit):
    """May any x / y reach `limit`? Told from products, which cost a third: true wherever one does, and perhaps a little below.
    With s the sign of y (of a zero too), x / y is s x / |y|, and reaches a limit only where s x comes up to |y| times it."""
    never_inlined()
    hit, low = False, limit * (1.0 - _ROUNDING) if limit > 0.0 else limit * (1.0 + _ROUNDING)
    for i in range(len(x)):
        hit |= sign * x[i] * math.copysign(1.0, y[i]) >= low * abs(y[i]) - _SLACK
    return hit

"""What older rows may score at most, told from the least and greatest values of their columns: whole stretches are passed over.

Every block of the tail has a *zone*, the range of each column. Over a zone a score is computed as it is written, but with
ranges instead of numbers: each step gives the range its results lie in. IEEE arithmetic is monotone, rounding included, so that
no score lies outside; where a step cannot say, its range is all numbers. Rows whose columns or scores are NaN never rank and do
not count.

A range whose low end is +0 holds no -0: that decides what may come of dividing by it.
"""

from __future__ import annotations

import math

import numpy as np

from skyband.kernels.expression import BLOCK, OPCODES
from skyband.kernels.jit import lean, never_inlined, tiny
from skyband.kernels.pairs.distance import EXPRESSION, L1, LARGEST, PRODUCT, WEIGHTED_L1, level_of
from skyband.kernels.pairs.score import (
    ABS,
    ADD,
    APART,
    DIFFERENCE,
    DIVIDE,
    FIRST,
    MULTIPLY,
    OPERATION,
    SEARCH,
    SECOND,
    SUBTRACT,
    TARGET,
    THIRD,
    TURN,
)

_NEGATE, _SQRT, _EXP, _SIN, _COS = (OPCODES[name] for name in ("neg", "sqrt", "exp", "sin", "cos"))
_FLOOR, _CEIL, _MIN, _MAX, _WHERE = (OPCODES[name] for name in ("floor", "ceil", "min", "max", "where"))
_LESS, _OR = OPCODES["<"], OPCODES["or"]  # the first and the last of those that say true or false


# -- zones -------------------------------------------------------------------------------------------------------


@lean
def begin_zone(low, high):
    """No row is in it."""
    for j in range(len(low)):
        low[j], high[j] = np.inf, -np.inf


@tiny
def widen(low, high, columns, place):
    """Let a zone hold the row at a place."""
    for j in range(len(low)):
        value = columns[j, place]
        if value < low[j]:  # never true of NaN
            low[j] = value
        if value > high[j]:
            high[j] = value


@lean
def zones_of(tail, head, stop):
    """Make the zones of all blocks anew; the rows lie in the places [head, stop)."""
    for block in range(head // BLOCK, len(tail.low)):
        begin_zone(tail.low[block], tail.high[block])
    for place in range(head, stop):
        widen(tail.low[place // BLOCK], tail.high[place // BLOCK], tail.columns, place)


@tiny
def join_zones(low, high, other_low, other_high):
    """Let a zone hold another."""
    for j in range(len(low)):
        low[j], high[j] = min(low[j], other_low[j]), max(high[j], other_high[j])


@lean
def zone_of(tail, begin, end, low, high):
    """Make a zone that holds all blocks with a row in the places [begin, end)."""
    begin_zone(low, high)
    for block in range(begin // BLOCK, (end + BLOCK - 1) // BLOCK):
        join_zones(low, high, tail.low[block], tail.high[block])


# -- distances ---------------------------------------------------------------------------------------------------


@lean
def bound(search, sign, newer, weights, low, high):
    """The best turned distance (of squares, before the root) a row in the zone may have from the new row. Rounding keeps order,
    so that no row exceeds it; NaN when it cannot be told."""
    total = 1.0 if search == PRODUCT else 0.0
    for j in range(len(weights)):
        value = newer[j]
        if sign < 0.0:
            apart = low[j] - value if value < low[j] else (value - high[j] if value > high[j] else 0.0)
        else:
            apart = max(abs(low[j] - value), abs(high[j] - value))
        if search in (L1, WEIGHTED_L1):
            total = total + weights[j] * apart
        elif search == PRODUCT:
            total = total * apart
        elif search == LARGEST:
            term = weights[j] * apart
            if term != term:
                return term
            total = max(total, term)
        else:
            total = total + weights[j] * (apart * apart)
    return sign * total


@tiny
def may_matter(scorer, low, high, limit):
    """May a row in the zone have a turned score of `limit` or more with the new row?"""
    if scorer.marks[SEARCH] == EXPRESSION:
        ranges, sign = scorer.ranges, scorer.sign[TURN]
        return may_reach(scorer.program, scorer.memory, scorer.still, ranges, low, high, sign, limit)
    search, sign = scorer.marks[SEARCH], scorer.sign[APART]
    level = level_of(search, scorer.shape, sign, limit)
    return not (level != level or bound(search, sign, scorer.newer, scorer.weights, low, high) < level)


# -- register code -----------------------------------------------------------------------------------------------


@lean
def may_reach(program, memory, still, ranges, low, high, sign, limit):
    """May a row in the zone have a score with the new row that, turned by `sign`, reaches `limit`? The new row's registers are
    filled. `ranges`: room, float64 [registers, 2]."""
    never_inlined()
    older, bottom, top = len(low), -np.inf, np.inf
    for step in range(len(program)):
        a, b = _range(program[step, FIRST], older, memory, still, ranges, low, high)
        c, d = _range(program[step, SECOND], older, memory, still, ranges, low, high)
        operation = program[step, OPERATION]
        if operation == _WHERE:
            e, f = _range(program[step, THIRD], older, memory, still, ranges, low, high)
            bottom, top = _hull(c, d, e, f)
        elif operation == MULTIPLY and program[step, FIRST] == program[step, SECOND]:
            bottom, top = _absolute(a, b)
            bottom, top = bottom * bottom, top * top
        else:
            bottom, top = _result(operation, a, b, c, d)
        if bottom != bottom:
            bottom = -np.inf
        if top != top:
            top = np.inf
        register = program[step, TARGET] - older
        ranges[register, 0], ranges[register, 1] = bottom, top
    return (top if sign > 0.0 else -bottom) >= limit


@tiny
def _range(place, older, memory, still, ranges, low, high):
    """What the numbers at a place of the code lie between."""
    if place < older:
        return (low[place] if low[place] != 0.0 else -0.0), high[place]
    if still[place - older]:
        return memory[place - older, 0], memory[place - older, 0]
    return ranges[place - older, 0], ranges[place - older, 1]


@tiny
def _signed_zero(low, clear):
    """A low end of 0, where `clear`: -0 cannot be."""
    return low if low != 0.0 else (0.0 if clear else -0.0)


@tiny
def _clear(value):
    """Is no -0 in a range with this low end?"""
    return math.copysign(1.0, value) > 0.0


@tiny
def _absolute(a, b):
    if a >= 0.0:
        return abs(a), b
    return (abs(b), -a) if b <= 0.0 else (0.0, max(-a, b))


@tiny
def _hull(c, d, e, f):
    """What lies in either range; one that is NaN stands for no score."""
    if c != c:
        return e, f
    if e != e:
        return c, d
    return _signed_zero(min(c, e), _clear(c) and _clear(e)), max(d, f)


@lean
def _result(operation, a, b, c, d):
    """The range of an operation's results, of operands between a and b, and c and d; NaN for an end that is not known."""
    if operation == ADD:
        return a + c, b + d
    if operation == SUBTRACT:
        return _signed_zero(a - d, False), b - c
    if operation == DIFFERENCE:
        low, high = a - d, b - c
        return (np.nan, np.nan) if low != low or high != high else _absolute(low, high)
    if operation == MULTIPLY:
        return _product(a, b, c, d)
    if operation == DIVIDE:
        return _quotient(a, b, c, d)
    if operation == ABS:
        return _absolute(a, b)
    if operation == _NEGATE:
        return _signed_zero(-b, False), -a
    if operation == _SQRT:
        return _signed_zero(math.sqrt(max(a, 0.0)), _clear(a)), math.sqrt(max(b, 0.0))
    if operation == _MIN:
        return _signed_zero(min(a, c), _clear(a) and _clear(c)), min(b, d)
    if operation == _MAX:
        return _signed_zero(max(a, c), _clear(a) and _clear(c)), max(b, d)
    if operation == _FLOOR:
        return _signed_zero(np.floor(a), False), np.floor(b)
    if operation == _CEIL:
        return _signed_zero(np.ceil(a), False), np.ceil(b)
    if _LESS <= operation <= _OR:
        return 0.0, 1.0
    if operation in (_SIN, _COS):
        return -1.0, 1.0
    return (0.0, np.nan) if operation == _EXP else (np.nan, np.nan)


@tiny
def _product(a, b, c, d):
    p, q, r, s = a * c, a * d, b * c, b * d
    if p != p or q != q or r != r or s != s:  # 0 times infinity
        return np.nan, np.nan
    return _signed_zero(min(min(p, q), min(r, s)), _clear(a) and _clear(c)), max(max(p, q), max(r, s))


@tiny
def _quotient(a, b, c, d):
    if d < 0.0:
        a, b, c, d = _signed_zero(-b, False), -a, -d, -c
    elif not _clear(c) or c != c:
        return np.nan, np.nan
    low, high = a / (d if a >= 0.0 else c), b / (c if b >= 0.0 else d)
    return _signed_zero(low, _clear(a)), high

"""Expressions that fall apart: F(g(x), h(y), …), of functions of one attribute each, put together so that the value never falls
while one of them rises, or never rises.

What each of the functions can be at most in a cell depends on the cell's place along one attribute alone. So it is found out
once a coordinate, and F of those bounds what rows of the cell may score: a weighted sum is the plainest case. That a value
never falls is told from the steps of F, by the signs of what they work on; they round monotonically, all but the C library's
functions, whose results are widened a little.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.expression import OPCODES
from skyband.kernels.jit import jit, lean, never_inlined, tiny
from skyband.kernels.spatial.code import HIGH, LOW, UNKNOWN, bound_step, bounds_of, load_row, value_of
from skyband.kernels.spatial.grid import FIRST, STOP, highest, lowest

_NEGATE, _ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _POWER = (OPCODES[sign] for sign in ("neg", "+", "-", "*", "/", "**"))
_ABS, _SQRT, _EXP, _LOG, _LOG1P = (OPCODES[name] for name in ("abs", "sqrt", "exp", "log", "log1p"))
_FLOOR, _CEIL, _MIN, _MAX, _WHERE = (OPCODES[name] for name in ("floor", "ceil", "min", "max", "where"))

WHOLE, EXACTLY, NEARLY, SUM = 0, 1, 2, 3  # does not fall apart; does, and is bounded by its value, or a little more; no CODE
_TURNS = 2.0  # of a step: it neither rises nor falls with an operand all over the box


class Apart(NamedTuple):
    """One query's bounds, by coordinates."""

    term: np.ndarray  # float64 [d, resolution]: the best that an attribute's function can be
    better: np.ndarray  # float64 [d]: 1.0 where more of it is better, -1.0 where less is, 0.0 where it does not matter
    best: np.ndarray  # int64 [d]: the coordinate of the best term
    row: np.ndarray  # float64 [d], room
    out: np.ndarray  # float64 [3], room


@jit
def no_apart(dimensions, resolution):
    """Room for one."""
    better, best = np.zeros(dimensions), np.zeros(dimensions, np.int64)
    return Apart(np.zeros((dimensions, resolution)), better, best, np.zeros(dimensions), np.empty(3))


@lean
def _tendency(operation, same, a, b, c, d, second):
    """Does a step rise (1.0) or fall (-1.0) with its first operand, of values in [a, b], or with its second, in [c, d]? 0.0: it
    has no second. `same`: the operands are one."""
    if operation == _NEGATE:
        return 0.0 if second else -1.0
    if operation in (_SQRT, _EXP, _LOG, _LOG1P, _FLOOR, _CEIL):
        return 0.0 if second else 1.0
    if operation == _ABS:
        return 0.0 if second else (1.0 if a >= 0.0 else (-1.0 if b <= 0.0 else _TURNS))
    if operation in (_ADD, _MIN, _MAX):
        return 1.0
    if operation == _SUBTRACT:
        return -1.0 if second else 1.0
    if operation == _MULTIPLY:
        low, high = (a, b) if second or same else (c, d)
        return 1.0 if low >= 0.0 else (-1.0 if high <= 0.0 else _TURNS)
    if operation == _DIVIDE and (c > 0.0 or d < 0.0):
        if second:
            return -1.0 if a >= 0.0 else (1.0 if b <= 0.0 else _TURNS)
        return 1.0 if c > 0.0 else -1.0
    if operation == _POWER and not second and c == d and (a > 0.0 or (a == 0.0 and c > 0.0)):
        return 1.0 if c > 0.0 else -1.0
    return _TURNS


@tiny
def _joined(one, other):
    """The tendency of both together."""
    if one == 0.0 or one == other:
        return other
    return one if other == 0.0 else _TURNS


@jit
def _tendencies(codes, q, low, high, better, out):
    """Write whether query q's F rises or falls with each attribute over the box, where it does either with all of them: EXACTLY
    or NEARLY, else WHOLE."""
    load_row(codes, q, low, LOW)
    load_row(codes, q, high, HIGH)
    scratch, dimensions = codes.scratch, low.shape[0]
    scratch[UNKNOWN, : dimensions + codes.constant_begin[q + 1] - codes.constant_begin[q]] = 0.0
    tendency = np.zeros((scratch.shape[1], dimensions))
    for axis in range(dimensions):
        tendency[axis, axis] = 1.0
    how, target = EXACTLY, 0
    for at in range(codes.begin[q], codes.begin[q + 1]):
        operation, target, first, second = codes.step[at, 0], codes.step[at, 1], codes.step[at, 2], codes.step[at, 3]
        if operation == _WHERE:
            return WHOLE
        a, b, c, d = scratch[LOW, first], scratch[HIGH, first], scratch[LOW, second], scratch[HIGH, second]
        by_first = _tendency(operation, first == second, a, b, c, d, False)
        by_second = _tendency(operation, first == second, a, b, c, d, True)
        for axis in range(dimensions):
            one = 0.0 if tendency[first, axis] == 0.0 else _turned(tendency[first, axis], by_first)
            other = 0.0 if tendency[second, axis] == 0.0 else _turned(tendency[second, axis], by_second)
            tendency[target, axis] = _joined(one, other)
            if tendency[target, axis] == _TURNS:
                return WHOLE
        if operation in (_EXP, _LOG, _LOG1P, _POWER):
            how = NEARLY
        bound_step(scratch, codes.step, at, out)
        scratch[LOW, target], scratch[HIGH, target], scratch[UNKNOWN, target] = out[LOW], out[HIGH], out[UNKNOWN]
    if out[UNKNOWN] > 0.0 or not out[LOW] <= out[HIGH]:
        return WHOLE
    better[:] = tendency[target]
    return how


@tiny
def _turned(one, by):
    return _TURNS if by == _TURNS else one * by


@jit
def take_apart(grid, questions, q, box, apart):
    """Write down how query q's expression is bounded in the cells of a box: EXACTLY or NEARLY, for `best_apart`; or WHOLE: it
    does not fall apart there. O(d · coordinates of the box)."""
    outer, inner = questions.outer, questions.inner
    if outer.begin[q] == outer.begin[q + 1]:
        return WHOLE
    dimensions, resolution = apart.term.shape
    low, high, out = np.zeros(dimensions), np.zeros(dimensions), apart.out
    least, most = np.zeros(dimensions), np.zeros(dimensions)
    bound = np.zeros((dimensions, resolution))  # of the other end
    for place in range(questions.used[q]):
        axis = questions.order[q, place]
        number = q * dimensions + axis
        is_attribute = inner.begin[number] == inner.begin[number + 1]
        least[axis], most[axis] = np.inf, -np.inf
        for c in range(box[FIRST, axis], box[STOP, axis]):
            low[axis], high[axis] = lowest(grid, questions, q, axis, c), highest(grid, questions, q, axis, c)
            out[LOW], out[HIGH], out[UNKNOWN] = low[axis], high[axis], 0.0
            if not is_attribute:
                bounds_of(inner, number, low, high, out)
            if out[UNKNOWN] > 0.0 or not out[LOW] <= out[HIGH]:
                return WHOLE
            bound[axis, c], apart.term[axis, c] = out[LOW], out[HIGH]
            least[axis], most[axis] = min(least[axis], out[LOW]), max(most[axis], out[HIGH])
        low[axis] = high[axis] = 0.0
    how = _tendencies(outer, q, least, most, apart.better, out)
    if how == WHOLE:
        return WHOLE
    for axis in range(dimensions):
        apart.better[axis] *= questions.sign[q]
        apart.best[axis] = box[FIRST, axis]
        if apart.better[axis] < 0.0:
            apart.term[axis] = bound[axis]
        for c in range(box[FIRST, axis] + 1, box[STOP, axis]):
            if apart.better[axis] * apart.term[axis, c] > apart.better[axis] * apart.term[axis, apart.best[axis]]:
                apart.best[axis] = c
    return how


@lean
def best_apart(questions, q, how, apart, at):
    """The best turned score that a row in the cell at coordinates `at` can have, of what `take_apart` wrote."""
    never_inlined()
    for axis in range(at.shape[0]):
        apart.row[axis] = apart.term[axis, at[axis]]
    if how == EXACTLY:
        return questions.sign[q] * value_of(questions.outer, q, apart.row)
    bounds_of(questions.outer, q, apart.row, apart.row, apart.out)
    return apart.out[HIGH] if questions.sign[q] > 0.0 else -apart.out[LOW]


@jit
def falls_away(apart, box):
    """Do terms along every attribute get no better with the distance from the best?"""
    for axis in range(box.shape[1]):
        better, best = apart.better[axis], apart.best[axis]
        for c in range(box[FIRST, axis] + 1, box[STOP, axis]):
            before, after = better * apart.term[axis, c - 1], better * apart.term[axis, c]
            if (after < before) if c <= best else (after > before):
                return False
    return True


@jit
def bounding_box_apart(questions, q, how, apart, threshold, box):
    """`query_grid.bounding_box` for an expression that falls apart."""
    at = apart.best.copy()
    for axis in range(at.size):
        at[axis] = apart.best[axis]
        if not best_apart(questions, q, how, apart, at) >= threshold:
            return False
        first, stop = box[FIRST, axis], box[STOP, axis]
        at[axis] = first
        while not best_apart(questions, q, how, apart, at) >= threshold:
            at[axis] += 1
        box[FIRST, axis] = at[axis]
        at[axis] = stop - 1
        while not best_apart(questions, q, how, apart, at) >= threshold:
            at[axis] -= 1
        box[STOP, axis] = at[axis] + 1
        at[axis] = apart.best[axis]
    return True

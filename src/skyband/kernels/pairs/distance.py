"""Distances between a new row and many older ones: loops of their own for each kind, all from one text.

What is `tiny` becomes part of its caller, with the constants it is handed: what is asked of `kind` is decided when a kernel is
compiled, and nothing is asked within a loop. Terms come from the left, as they are written.

Distances with weights, and the largest difference, are searched for only (`kernels.pairs.score`).
"""

from __future__ import annotations

import math

import numpy as np

from skyband.kernels.jit import lean, never_inlined, tiny

L1, L2, PRODUCT, EXPRESSION = 0, 1, 2, 3  # how scores are computed
WEIGHTED_L1, WEIGHTED_L2, LARGEST = 4, 5, 6  # what else is searched for; L2 and WEIGHTED_L2 by squares
UNWRITTEN = 4  # columns up to which a distance is compared where it is computed: `any_apart` then takes any number of rows

FACTOR, ROOT, EXACT = 0, 1, 2  # places in what says how a score is told by a distance: FACTOR times it, or its root
MARGIN = 3  # what coarse distances from the new row may lack (`kernels.pairs.coarse`)
SHAPE = 4

_MARGIN = 1e-14  # what rounding may do to a distance of up to 32 columns
_TINY = 1e-320  # and to the smallest numbers
_HUGE = np.finfo(np.float64).max


@tiny
def _term(kind, x, v, weight):
    """What one column's difference adds."""
    apart = abs(x - v)
    if kind in (L2, WEIGHTED_L2):
        apart = apart * apart
    return weight * apart if kind in (WEIGHTED_L1, WEIGHTED_L2, LARGEST) else apart


@tiny
def _with(kind, total, term):
    if kind == PRODUCT:
        return total * term
    if kind == LARGEST:
        return term if term > total else total
    return total + term


@tiny
def _write(kind, columns, begin, count, upto, newer, weights, out):
    """Distances over the columns before `upto`, two of them a pass."""
    o, end = out[:count], begin + count
    x, v, p = columns[0, begin:end], newer[0], weights[0]
    if upto == 1:
        for i in range(count):
            o[i] = _term(kind, x[i], v, p)
        return
    y, w, q = columns[1, begin:end], newer[1], weights[1]
    for i in range(count):
        o[i] = _with(kind, _term(kind, x[i], v, p), _term(kind, y[i], w, q))
    for j in range(2, upto - 1, 2):
        x, v, p, y, w, q = columns[j, begin:end], newer[j], weights[j], columns[j + 1, begin:end], newer[j + 1], weights[j + 1]
        for i in range(count):
            o[i] = _with(kind, _with(kind, o[i], _term(kind, x[i], v, p)), _term(kind, y[i], w, q))
    if upto & 1:
        x, v, p = columns[upto - 1, begin:end], newer[upto - 1], weights[upto - 1]
        for i in range(count):
            o[i] = _with(kind, o[i], _term(kind, x[i], v, p))


@tiny
def _any(kind, columns, begin, count, newer, weights, out, sign, level):
    """Does any distance, turned by `sign`, reach `level`? Up to UNWRITTEN columns none is written; of more, all but the last
    two are added up first, for no more rows than a block has."""
    d, end, hit = len(weights), begin + count, False
    x, v, p = columns[0, begin:end], newer[0], weights[0]
    if d == 1:
        for i in range(count):
            hit |= sign * _term(kind, x[i], v, p) >= level
        return hit
    y, w, q = columns[1, begin:end], newer[1], weights[1]
    if d == 2:
        for i in range(count):
            hit |= sign * _with(kind, _term(kind, x[i], v, p), _term(kind, y[i], w, q)) >= level
        return hit
    if d <= UNWRITTEN:
        z, u, r = columns[2, begin:end], newer[2], weights[2]
        if d == 3:
            for i in range(count):
                both = _with(kind, _term(kind, x[i], v, p), _term(kind, y[i], w, q))
                hit |= sign * _with(kind, both, _term(kind, z[i], u, r)) >= level
            return hit
        t, s, m = columns[3, begin:end], newer[3], weights[3]
        for i in range(count):
            both = _with(kind, _term(kind, x[i], v, p), _term(kind, y[i], w, q))
            hit |= sign * _with(kind, _with(kind, both, _term(kind, z[i], u, r)), _term(kind, t[i], s, m)) >= level
        return hit
    _write(kind, columns, begin, count, d - 2, newer, weights, out)
    o, x, v, p = out[:count], columns[d - 2, begin:end], newer[d - 2], weights[d - 2]
    y, w, q = columns[d - 1, begin:end], newer[d - 1], weights[d - 1]
    for i in range(count):
        hit |= sign * _with(kind, _with(kind, o[i], _term(kind, x[i], v, p)), _term(kind, y[i], w, q)) >= level
    return hit


@lean
def _any_l1(columns, begin, count, newer, weights, out, sign, level):
    return _any(L1, columns, begin, count, newer, weights, out, sign, level)


@lean
def _any_l2(columns, begin, count, newer, weights, out, sign, level):
    return _any(L2, columns, begin, count, newer, weights, out, sign, level)


@lean
def _any_product(columns, begin, count, newer, weights, out, sign, level):
    return _any(PRODUCT, columns, begin, count, newer, weights, out, sign, level)


@lean
def _any_weighted_l1(columns, begin, count, newer, weights, out, sign, level):
    return _any(WEIGHTED_L1, columns, begin, count, newer, weights, out, sign, level)


@lean
def _any_weighted_l2(columns, begin, count, newer, weights, out, sign, level):
    return _any(WEIGHTED_L2, columns, begin, count, newer, weights, out, sign, level)


@lean
def _any_largest(columns, begin, count, newer, weights, out, sign, level):
    return _any(LARGEST, columns, begin, count, newer, weights, out, sign, level)


@tiny
def any_apart(search, columns, begin, count, newer, weights, out, sign, level):
    """Is any of these rows so far from the new row that its distance, turned by `sign`, reaches `level` (see `level_of`)?"""
    if search == L1:
        return _any_l1(columns, begin, count, newer, weights, out, sign, level)
    if search == L2:
        return _any_l2(columns, begin, count, newer, weights, out, sign, level)
    if search == PRODUCT:
        return _any_product(columns, begin, count, newer, weights, out, sign, level)
    if search == WEIGHTED_L1:
        return _any_weighted_l1(columns, begin, count, newer, weights, out, sign, level)
    if search == WEIGHTED_L2:
        return _any_weighted_l2(columns, begin, count, newer, weights, out, sign, level)
    return _any_largest(columns, begin, count, newer, weights, out, sign, level)


@lean
def _write_l1(columns, begin, count, newer, weights, out):
    never_inlined()
    _write(L1, columns, begin, count, columns.shape[0], newer, weights, out)


@lean
def _write_l2(columns, begin, count, newer, weights, out):
    never_inlined()
    _write(L2, columns, begin, count, columns.shape[0], newer, weights, out)
    for i in range(count):
        out[i] = math.sqrt(out[i])


@lean
def _write_product(columns, begin, count, newer, weights, out):
    never_inlined()
    _write(PRODUCT, columns, begin, count, columns.shape[0], newer, weights, out)


@tiny
def write_apart(kind, columns, begin, count, newer, weights, out):
    """Write the distances of these rows, no more than a block, from the new row."""
    if kind == L1:
        _write_l1(columns, begin, count, newer, weights, out)
    elif kind == L2:
        _write_l2(columns, begin, count, newer, weights, out)
    else:
        _write_product(columns, begin, count, newer, weights, out)


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
def _of_squares(sign, limit):
    """A bound of sums of squares that no pair misses whose root reaches `limit`: the root rounds."""
    if sign < 0.0:
        return -(limit * limit * (1.0 + 1e-14) + 1e-323) if limit <= 0.0 else np.nan
    return limit * limit * (1.0 - 1e-14) - 1e-323 if limit > 0.0 else -np.inf

"""What many queries rank the same attributes by, and the scores that follow.

Scores are turned, so that larger is better: sign · value. A row outside a query's region has none (NaN).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skyband.kernels.jit import jit, lean, tiny
from skyband.kernels.spatial.code import Codes, bounds_of, value_of

DISTANCE_L2 = 0  # sqrt(sum of weight · (x - point)²)
DISTANCE_L1 = 1  # sum of weight · |x - point|
LINEAR = 2  # sum of weight · x
CODE = 3  # any expression

BLOCK = 1024  # rows scored at a time: their sums stay in the fastest cache
NOTHING = -0.0  # where a sum begins: added to anything, also to -0, it changes no bit


class Questions(NamedTuple):
    """What each of u queries ranks d attributes by. Points and weights are finite; a distance's weights at least 0."""

    kind: np.ndarray  # int64 [u]: DISTANCE_L2, DISTANCE_L1, LINEAR or CODE
    sign: np.ndarray  # float64 [u]: 1.0 where larger values are better, -1.0 where smaller ones are
    point: np.ndarray  # float64 [u, d]; of no meaning for LINEAR and CODE
    weight: np.ndarray  # float64 [u, d]; 1.0 for a distance without weights
    order: np.ndarray  # int64 [u, d]: first the attributes it uses, in the order their terms are added
    used: np.ndarray  # int64 [u]: how many those are, at least 1; what follows them in `order` is never read
    low: np.ndarray  # float64 [u, d]: of its region, ends included; -inf where it is open
    high: np.ndarray  # float64 [u, d]; inf where it is open
    bound: np.ndarray  # int64 [u, d]: first the attributes that its region says something of
    bounds: np.ndarray  # int64 [u]: how many those are
    codes: Codes
    outer: Codes  # of an expression that falls apart, over its functions of one attribute each (`apart`); of others no steps
    inner: Codes  # those functions, of query q and attribute i at q * d + i; no steps where it is the attribute itself


# scores -----------------------------------------------------------------------------------------------------


@tiny
def term_of(kind, x, point, weight):
    """What one attribute adds to the sum. A weight of 1 changes no bit."""
    if kind == LINEAR:
        return weight * x
    apart = x - point
    return weight * (apart * apart if kind == DISTANCE_L2 else abs(apart))


@tiny
def turned(kind, sign, total):
    """The turned score that a sum of terms amounts to."""
    return sign * (math.sqrt(total) if kind == DISTANCE_L2 else total)


@tiny
def score_of(questions, q, row):
    """The turned score of one row (float64 [d]) for query q: bit for bit that of the score's expression tree."""
    for place in range(questions.bounds[q]):
        axis = questions.bound[q, place]
        if not questions.low[q, axis] <= row[axis] <= questions.high[q, axis]:
            return np.nan
    kind = questions.kind[q]
    if kind == CODE:
        return questions.sign[q] * value_of(questions.codes, q, row)
    total = NOTHING
    for place in range(questions.used[q]):
        axis = questions.order[q, place]
        total += term_of(kind, row[axis], questions.point[q, axis], questions.weight[q, axis])
    return turned(kind, questions.sign[q], total)


@lean
def _add_terms(kind, x, point, weight, sums):
    """Add an attribute's terms to the sums. Each loop is vectorized."""
    if kind == LINEAR:
        for i in range(sums.size):
            sums[i] += weight * x[i]
    elif kind == DISTANCE_L1:
        for i in range(sums.size):
            sums[i] += weight * abs(x[i] - point)
    else:
        for i in range(sums.size):
            sums[i] += weight * ((x[i] - point) * (x[i] - point))


@lean
def scores_by(kind, sign, order, point, weight, rows, begin, stop, out):
    """`scores_of` for one query's own values: a call hands over few."""
    for start in range(begin, stop, BLOCK):
        end = min(start + BLOCK, stop)
        sums = out[start - begin : end - begin]
        sums[:] = NOTHING
        for place in range(order.size):
            axis = order[place]
            _add_terms(kind, rows[axis, start:end], point[axis], weight[axis], sums)
        if kind == DISTANCE_L2:
            for i in range(sums.size):
                sums[i] = sign * math.sqrt(sums[i])
        elif sign != 1.0:
            for i in range(sums.size):
                sums[i] = sign * sums[i]


@lean
def scores_of(questions, q, rows, begin, stop, out):
    """Write the turned scores of rows[:, begin:stop] (float64 [d, n]) for query q to out[:stop - begin], as `score_of`, the
    region left out. Not for CODE."""
    order = questions.order[q, : questions.used[q]]
    scores_by(questions.kind[q], questions.sign[q], order, questions.point[q], questions.weight[q], rows, begin, stop, out)


@jit
def best_in_box(questions, q, low, high, out):
    """The best turned score, as computed, that a row low <= x <= high can have for a query with CODE; NaN when none has
    one. `out`: room, float64 [3]."""
    bounds_of(questions.codes, q, low, high, out)
    if out[0] > out[1]:
        return np.nan
    return out[1] if questions.sign[q] > 0.0 else -out[0]

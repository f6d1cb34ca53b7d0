"""Older rows in numbers of half the size: twice as many are compared at a time, and half as much is read.

Where the nearest pairs are the best, a tail has *coarse* columns beside its columns: how far values lie from its origin, in
float32. Distances of these are held against a level that is a little looser, so that no pair is missed; whoever they let
through is scored as ever. Where that would be too many, distances are computed as ever too.

How much looser? A number rounded to float32 is off by at most e = 2⁻²⁴ of it, or by t = 2⁻¹⁵⁰. Take a pair whose distance, as
computed in float64, is at most L. In a column of weight w, let v be the new row's coarse value and D the true difference.

  - Rounding in float64 is 2⁻⁵³ a step: Σ w D <= L (1 + 2⁻⁵⁰), but for underflow. The older row's coarse value is at most
    |v| + D, but for rounding.
  - So the coarse values lie at most D + 1.001 e (2 |v| + D) + 2 t apart.
  - Their difference, the weight and its product, and the sum of up to 4 terms add 6 e at most, and t a product.

The coarse distance is thus at most (1 + 9 e) L + 3 e Σ w |v| + 3 t Σ (w + 1). The level is (1 + 32 e) (L + M), of which its own
rounding takes e, with M = 4 e Σ w |v| + 2⁻⁷⁰; w is at most 2²⁰. The largest difference is one term of such a sum. A sum of
squares is the square of a length, of which the triangle's inequality says the same with √w for w and √L for L; squaring doubles
what is relative. Squares that underflow are those of less than 2⁻⁵³⁷, which M covers, and in float32 they lose t (w + 1): the
level has 2⁻¹²⁰ more.

Coarse values are used where L < 2⁵⁰ and 4 M <= L (√L in squares). With w >= 2⁻²⁰, |v| is then at most 2⁹⁰ and D 2⁷⁰, in squares
2⁸⁰ and 2⁶⁰: nothing overflows. A row that is further away, infinite or NaN is in no such pair, whatever its coarse values are.
"""

from __future__ import annotations

import math

import numpy as np

from skyband.kernels.jit import lean, tiny
from skyband.kernels.pairs.distance import L2, MARGIN, WEIGHTED_L2, any_apart
from skyband.kernels.pairs.score import APART, SEARCH

LEAST_WEIGHT, MOST_WEIGHT = 2.0**-20, 2.0**20
_HUGE, _TINY, _LOST = 2.0**50, 2.0**-70, 2.0**-120
_PER_COLUMN, _LOOSER = 2.0**-22, 1.0 + 2.0**-19  # 4 e, 1 + 32 e
_SHARE = 4.0  # of L, that M is at most: few pairs are let through that do not matter
_NEAREST = np.float32(-1.0)


@tiny
def coarsen(tail, place):
    """Write the coarse values of the row at a place."""
    for j in range(tail.coarse.shape[0]):
        tail.coarse[j, place] = tail.columns[j, place] - tail.origin[j]


@lean
def coarsen_all(tail, stop):
    """Write those of all rows before `stop` anew, around the newest of them."""
    if stop == 0:
        return
    for j in range(tail.coarse.shape[0]):
        newest = tail.columns[j, stop - 1]
        tail.origin[j] = newest if abs(newest) < np.inf else 0.0
    for place in range(stop):
        coarsen(tail, place)


@tiny
def meet_coarsely(scorer, origin):
    """Begin with the new row that the scorer has."""
    margin, squares = _TINY, scorer.marks[SEARCH] in (L2, WEIGHTED_L2)
    for j in range(scorer.coarse.shape[1]):
        value, weight = scorer.newer[j] - origin[j], scorer.weights[j]
        scorer.coarse[0, j] = value
        margin += _PER_COLUMN * (math.sqrt(weight) if squares else weight) * abs(value)
    scorer.shape[MARGIN] = margin


@tiny
def any_near(search, tail, begin, count, scorer, level):
    """As `any_apart`, of the `count` rows of a tail from a place on; true perhaps where one falls a little short of `level`."""
    if tail.coarse.shape[0]:
        squares, margin = search in (L2, WEIGHTED_L2), scorer.shape[MARGIN]
        most = math.sqrt(-level) if squares else -level
        if _SHARE * margin <= most < _HUGE:  # never true of NaN
            most += margin
            loose = np.float32(-_LOOSER * (most * most + _LOST if squares else most))
            value, weights = scorer.coarse[0], scorer.coarse[1]
            return any_apart(search, tail.coarse, begin, count, value, weights, scorer.buffer, _NEAREST, loose)
    newer, weights, sign = scorer.newer, scorer.weights, scorer.sign[APART]
    return any_apart(search, tail.columns, begin, count, newer, weights, scorer.buffer, sign, level)

"""64 queries at a time: which of them a row may reach a bound of, where scores are weighted sums, or expressions that differ in
numbers only.

What queries are screened by lies side by side, 64 to a word as in a cell's set of bits, so that a row is held against all 64 by
vector instructions. Sums of the same terms in any order differ by less than the slack; a bound that is NaN lets every row pass.
Expressions are computed as they are, for all 64 at once; where those side by side do not have the same steps, every row passes.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.jit import lean, tiny
from skyband.kernels.spatial.code_blocks import UNLIKE, values_of_word
from skyband.kernels.spatial.grid import WORD_BITS, WORD_SHIFT, count_bits, lowest_bit
from skyband.kernels.spatial.questions import CODE, LINEAR

BOUND, SLACK, WEIGHTS = 0, 1, 2  # rows of a word's screen: bounds, what rounding may take from a sum of ones, turned weights
_ROUNDING = 1e-13  # of a sum's terms: far more than rounding may take from it, far less than tells rows apart
_MODERATE = 1e100  # numbers and weights beyond it may make sums overflow, and nothing is screened
_DENSE = 8  # of 64 queries from which on all are screened at once
_DENSE_CODE = 4  # the same of expressions; fewer are not screened: they are computed one by one anyway


def empty_screen(queries: int, dimensions: int) -> np.ndarray:
    """A screen that lets every row pass: float64 [words, 2 + d, 64]."""
    screen = np.zeros((-(-queries // WORD_BITS), WEIGHTS + dimensions, WORD_BITS))
    screen[:, BOUND] = np.nan
    return screen


@lean
def set_screen(screen, questions, q, bound):
    """Screen query q by a bound, if its score can be compared with it 64 at a time."""
    block, place = screen[q >> WORD_SHIFT], q & (WORD_BITS - 1)
    for row in range(block.shape[0]):
        block[row, place] = 0.0
    block[BOUND, place] = np.nan
    if questions.kind[q] == CODE and questions.codes.alike[q >> WORD_SHIFT] != UNLIKE:
        block[BOUND, place] = bound
        block[SLACK, place] = np.inf  # beside weighted sums, should one join the word, it passes
    if questions.kind[q] != LINEAR:
        return
    block[BOUND, place] = bound
    for at in range(questions.used[q]):
        axis = questions.order[q, at]
        block[WEIGHTS + axis, place] = questions.sign[q] * questions.weight[q, axis]
        block[SLACK, place] += _ROUNDING * abs(questions.weight[q, axis])
    if not block[SLACK, place] < _ROUNDING * _MODERATE:
        block[BOUND, place] = np.nan


@tiny
def is_screened(screen, q):
    """Can a row be held against query q's bound?"""
    bound = screen[q >> WORD_SHIFT, BOUND, q & (WORD_BITS - 1)]
    return bound == bound


@tiny
def largest_of(x):
    """The largest of a row's numbers, whatever their signs, or what cannot be compared."""
    largest = 0.0
    for axis in range(x.shape[0]):
        largest = abs(x[axis]) if not abs(x[axis]) <= largest else largest
    return largest


@lean
def passing_alike(codes, sign, block, word, bits, x, totals):
    """`passing` for a word of expressions that have the same steps. `sign`: of all queries' scores."""
    if count_bits(bits) < _DENSE_CODE:
        return bits
    count = values_of_word(codes, sign, word, x, totals)
    reached = np.uint64(0)
    for i in range(np.uint64(count)):
        reached |= np.uint64(not totals[i] < block[BOUND, i]) << i
    return bits & reached


@lean
def passing(block, bits, x, largest, totals):
    """Those of the queries in `bits`, of one word, whose bound the row may reach. `totals`: room, float64 [64]."""
    if not largest < _MODERATE:
        return bits
    if count_bits(bits) >= _DENSE:
        for i in range(WORD_BITS):
            totals[i] = block[SLACK, i] * largest
        for axis in range(x.shape[0]):
            for i in range(WORD_BITS):
                totals[i] += block[WEIGHTS + axis, i] * x[axis]
        reached = np.uint64(0)
        for i in range(WORD_BITS):
            reached |= np.uint64(not totals[i] < block[BOUND, i]) << np.uint64(i)
        return bits & reached
    left = bits
    while left != 0:
        place = lowest_bit(left)
        left &= left - np.uint64(1)
        total = block[SLACK, place] * largest
        for axis in range(x.shape[0]):
            total += block[WEIGHTS + axis, place] * x[axis]
        if total < block[BOUND, place]:
            bits ^= np.uint64(1) << np.uint64(place)
    return bits

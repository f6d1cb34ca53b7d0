"""What an instance may come to: at most, or as far as is likely (CIKM09 3.2.1 and 4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.across.promise import Promises
from skyband.kernels.across.tables import ADD, MAX, MEAN
from skyband.kernels.across.witness import Witnesses
from skyband.kernels.jit import lean, tiny

_EPSILON = 2.0**-52


class Guess(NamedTuple):
    """How scores to come are guessed, where they are."""

    on: int  # 0: every value to come may be the largest
    high: np.ndarray  # float64 [streams]: the largest value, or the largest that came where none is known
    chance: np.ndarray  # float64 [2^streams, streams] by the streams seen, or [streams, streams] by each of them
    often: np.ndarray  # float64 [streams]: occurrences of an object that is seen there
    margin: np.ndarray  # float64 [1]: added to every chance; from 1 on nothing is guessed
    witnesses: Witnesses
    promises: Promises


@tiny
def _total(total, value, combine):
    return max(total, value) if combine == MAX else total + value


@lean
def best_of(values, at, count, obj, rule):
    """What an instance may come to: in each stream the tuples it has, and as many of the largest value as may come."""
    total = 0.0
    streams = values.shape[1]
    for x in range(streams):
        value = values[at, x]
        left = rule.repeats - count[obj, x]
        if left > 0:
            if rule.aggregate == ADD:
                value += left * rule.high[x]
                if left > 1:  # adding one by one may round up each time
                    value *= 1.0 + (left + 2) * _EPSILON
            else:
                value = max(value, rule.high[x])
        total = _total(total, value, rule.combine)
    return total / streams if rule.combine == MEAN else total


@lean
def guess_of(values, at, count, obj, rule, guess):
    """What an instance may be expected to come to: in each stream a value to come counts as far as it is likely."""
    total = 0.0
    streams = values.shape[1]
    seen = 0
    for x in range(streams):
        if count[obj, x] > 0:
            seen |= 1 << x
    joint = guess.chance.shape[0] == 1 << streams
    for x in range(streams):
        value = values[at, x]
        left = float(rule.repeats - count[obj, x])
        if left > 0.0:
            if seen >> x & 1:
                likely = min(left, max(guess.often[x] - count[obj, x], 0.0))
            else:
                chance = 0.0
                if joint:
                    chance = guess.chance[seen, x]
                else:
                    for j in range(streams):
                        if seen >> j & 1:
                            chance = max(chance, guess.chance[j, x])
                likely = min(left, max(min(chance + guess.margin[0], 1.0), 0.0) * max(guess.often[x], 1.0))
            if likely > 0.0:  # nothing of an infinite value is nothing
                if rule.aggregate == ADD:
                    value += likely * guess.high[x]
                else:
                    value = max(value, min(likely, 1.0) * guess.high[x])
        total = _total(total, value, rule.combine)
    return total / streams if rule.combine == MEAN else total

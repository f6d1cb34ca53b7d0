"""Rows become old: the newest ones, the young, are settled when others have come after them.

A young row's pairs with newer rows join the band late, as most would not stay for long; see `kernels.pairs_band`.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.expression import BLOCK
from skyband.kernels.jit import lean
from skyband.kernels.pairs_band import limit_of, push, replace_least, step_of
from skyband.kernels.pairs_boxes import lay_again, merge_all
from skyband.kernels.pairs_score import fill, meet, promising
from skyband.kernels.pairs_state import (
    BAND,
    DONE,
    FRESH_HEAD,
    FRESH_STOP,
    FRONT,
    OUT_OF_ROOM,
    PENDING,
    SCORED,
    STOP,
    TAU,
    K,
    above,
)

_FEW = 8  # rows whose pairs bar hardly any


@lean
def settle(state, boxes, reverse, keep):
    """Settle the oldest young rows until `keep` are left, half of them at a time: the K best pairs of the other half bar
    most of theirs. Whatever was begun may be begun again."""
    marks = state.marks
    if marks[STOP] - marks[FRONT] <= keep:
        return DONE
    while marks[STOP] - marks[FRONT] > keep:
        left = max(keep, (marks[STOP] - marks[FRONT]) >> 1)
        state.levels[TAU] = -np.inf
        if left > _FEW:
            state.levels[TAU] = _best_of_young(state, reverse, marks[STOP] - left)
        elif keep == 0:
            left = 0
        while marks[STOP] - marks[FRONT] > left:
            if not _settle_row(state, boxes, reverse, marks[FRONT]):
                return OUT_OF_ROOM
            marks[FRONT] += 1
    lay_again(state, boxes)
    return DONE


@lean
def _settle_row(state, boxes, reverse, row):
    """Score a young row with the newer ones; let pairs wait that the limit for its age lets in, save those that have joined
    before. False when the band has no room."""
    marks, tail, fresh, pending = state.marks, state.tail, state.fresh, state.pending
    sign, a = reverse.sign[0], tail.ordinal[row]
    begin = _newer_than(state, a)
    if begin < marks[FRESH_STOP]:
        meet(reverse, fresh.columns, tail.columns, row)
    while begin < marks[FRESH_STOP]:
        count, limit = min(BLOCK, marks[FRESH_STOP] - begin), limit_of(state, a, step_of(state, a))
        found = promising(reverse, fresh.columns, begin, count, limit)
        if found:
            if marks[PENDING] + found > len(pending.score):
                tail.early[row] = 1  # what waits of this row must not join twice
                if marks[BAND] + marks[PENDING] > len(state.band.score):
                    return False
                merge_all(state, boxes)
                continue
            fill(reverse, fresh.columns, begin, count)
            for i in range(count):
                turned, b = sign * reverse.buffer[i], fresh.ordinal[begin + i]
                if turned >= limit and not (tail.early[row] and _has_joined(state, turned, a, b)):
                    wait = marks[PENDING]
                    pending.score[wait], pending.a[wait], pending.b[wait] = turned, a, b
                    marks[PENDING] = wait + 1
        marks[SCORED] += count
        begin += count
    return True


@lean
def _newer_than(state, a):
    """The place of the first fresh row newer than `a`."""
    low, high = state.marks[FRESH_HEAD], state.marks[FRESH_STOP]
    while low < high:
        middle = (low + high) >> 1
        if state.fresh.ordinal[middle] <= a:
            low = middle + 1
        else:
            high = middle
    return low


@lean
def _best_of_young(state, reverse, first):
    """The K-th best score among the pairs of the young rows from the place `first` on, or -inf."""
    marks, tail, best = state.marks, state.tail, state.best_young
    k, held, sign = marks[K], 0, reverse.sign[0]
    for row in range(first, marks[STOP]):
        begin = _newer_than(state, tail.ordinal[row])
        count = min(BLOCK, marks[FRESH_STOP] - begin)
        if count <= 0:
            continue
        meet(reverse, state.fresh.columns, tail.columns, row)
        limit = best[0] if held == k else -np.inf
        if promising(reverse, state.fresh.columns, begin, count, limit) == 0:
            continue
        fill(reverse, state.fresh.columns, begin, count)
        for i in range(count):
            turned = sign * reverse.buffer[i]
            if held < k:
                if turned == turned:
                    push(best, held, turned)
                    held += 1
            elif turned > best[0]:
                replace_least(best, k, turned)
    return best[0] if held == k else -np.inf


@lean
def _has_joined(state, turned, a, b):
    """Is the pair in the band, or does it wait?"""
    band, pending = state.band, state.pending
    for i in range(state.marks[PENDING]):
        if pending.a[i] == a and pending.b[i] == b:
            return True
    low, high = 0, state.marks[BAND]
    while low < high:
        middle = (low + high) >> 1
        if above(band.score[middle], band.a[middle], band.b[middle], turned, a, b):
            low = middle + 1
        else:
            high = middle
    return low < state.marks[BAND] and band.a[low] == a and band.b[low] == b

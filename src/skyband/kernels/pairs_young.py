"""Rows become old: the newest ones, the young, are settled when others have come after them.

A young row's pairs with newer rows join the band late, as most would not stay for long; see `kernels.pairs_band`.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.expression import BLOCK
from skyband.kernels.jit import lean
from skyband.kernels.pairs_band import limit_of, push, replace_least, step_of
from skyband.kernels.pairs_boxes import lay_again, merge_all
from skyband.kernels.pairs_score import APART, EXPRESSION, FINE, SEARCH, any_apart, fill, level_of, meet, promising, reaching
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
        if not _settle_rows(state, boxes, reverse, marks[STOP] - left):
            return OUT_OF_ROOM
    lay_again(state, boxes)
    return DONE


@lean
def _settle_rows(state, boxes, reverse, stop):
    """Score the young rows before the place `stop` with the newer ones; let pairs wait that the limit for their age lets in,
    save those that have joined before. False when the band has no room."""
    marks, tail, fresh, pending = state.marks, state.tail, state.fresh, state.pending
    search, sign, first = reverse.marks[SEARCH], reverse.sign[0], tail.ordinal[marks[FRONT]]
    columns, weights, buffer, apart = fresh.columns, reverse.weights, reverse.buffer, reverse.sign[APART]
    begin, step = _newer_than(state, first), step_of(state, first)
    while marks[FRONT] < stop:
        row = marks[FRONT]
        a = tail.ordinal[row]
        while begin < marks[FRESH_STOP] and fresh.ordinal[begin] <= a:
            begin += 1
        if begin < marks[FRESH_STOP]:
            meet(reverse, fresh.columns, tail.columns, row, FINE)
        at = begin
        while at < marks[FRESH_STOP]:
            while step < marks[BAND] and state.kth[step] < a:
                step += 1
            count, limit = min(FINE, marks[FRESH_STOP] - at), limit_of(state, a, step)
            if search == EXPRESSION:
                hit = promising(reverse, columns, at, count, limit)
            else:
                level = level_of(search, reverse.shape, apart, limit)
                hit = any_apart(search, columns, at, count, reverse.newer, weights, buffer, apart, level)
            if hit:
                fill(reverse, fresh.columns, at, count)
                found, wait = reaching(sign, reverse.buffer, reverse.hits, count, limit), marks[PENDING]
                if wait + found > len(pending.score):
                    tail.early[row] = 1  # what waits of this row must not join twice
                    if marks[BAND] + marks[PENDING] > len(state.band.score):
                        return False
                    merge_all(state, boxes)
                    step = step_of(state, a)
                    continue
                for i in reverse.hits[:found]:
                    turned, b = sign * reverse.buffer[i], fresh.ordinal[at + i]
                    if not (tail.early[row] and _has_joined(state, turned, a, b)):
                        pending.score[wait], pending.a[wait], pending.b[wait] = turned, a, b
                        wait += 1
                        marks[PENDING] = wait
            marks[SCORED] += count
            at += count
        marks[FRONT] = row + 1
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
    begin = _newer_than(state, tail.ordinal[first])
    for row in range(first, marks[STOP]):
        while begin < marks[FRESH_STOP] and state.fresh.ordinal[begin] <= tail.ordinal[row]:
            begin += 1
        count = min(BLOCK, marks[FRESH_STOP] - begin)
        if count <= 0:
            break
        meet(reverse, state.fresh.columns, tail.columns, row, count)
        limit = best[0] if held == k else -np.inf
        if not promising(reverse, state.fresh.columns, begin, count, limit):
            continue
        fill(reverse, state.fresh.columns, begin, count)
        for hit in reverse.hits[: reaching(sign, reverse.buffer, reverse.hits, count, limit)]:
            turned = sign * reverse.buffer[hit]
            if held < k:
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

"""Sorted lists that change all the time: runs of at most BLOCK entries, and for each list the order of its runs.

An entry is a value with an object's number; entries are sorted by both. Cost: O(log n + BLOCK) an insertion or deletion, a
step to the next smaller entry O(1). Blocks come from one pool.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.jit import lean, tiny

BLOCK = 128


class Blocks(NamedTuple):
    """The runs of all lists."""

    value: np.ndarray  # float64 [blocks, BLOCK], increasing
    obj: np.ndarray  # int64 [blocks, BLOCK], increasing among equal values
    size: np.ndarray  # int64 [blocks]
    order: np.ndarray  # int64 [lists, blocks]: a list's blocks, smallest entries first
    used: np.ndarray  # int64 [lists]: how many it has
    free: np.ndarray  # int64 [blocks]: blocks that no list has
    spare: np.ndarray  # int64 [1]: how many there are


def no_blocks(lists: int, blocks: int) -> Blocks:
    """Empty lists, with room for `blocks` runs."""
    value, obj = np.zeros((blocks, BLOCK)), np.zeros((blocks, BLOCK), np.int64)
    order, used = np.zeros((lists, blocks), np.int64), np.zeros(lists, np.int64)
    free = np.arange(blocks - 1, -1, -1, dtype=np.int64)
    return Blocks(value, obj, np.zeros(blocks, np.int64), order, used, free, np.array([blocks], np.int64))


def more_blocks(held: Blocks) -> Blocks:
    """The same lists, with twice the room."""
    old = len(held.size)
    fresh = no_blocks(len(held.used), 2 * old)
    for name in ("value", "obj", "size"):
        getattr(fresh, name)[:old] = getattr(held, name)
    fresh.order[:, :old], fresh.used[:] = held.order, held.used
    spare = int(held.spare[0])
    fresh.free[:old] = np.arange(2 * old - 1, old - 1, -1)
    fresh.free[old : old + spare] = held.free[:spare]
    fresh.spare[0] = old + spare
    return fresh


@tiny
def _below(value, obj, other_value, other_obj):
    return value < other_value or (value == other_value and obj < other_obj)


@lean
def _run_of(held, which, value, obj):
    """Number, in the list's order, of the first run whose last entry is not below (value, obj); the last run's if none is."""
    low, high = 0, held.used[which] - 1
    while low < high:
        middle = (low + high) >> 1
        block = held.order[which, middle]
        last = held.size[block] - 1
        if _below(held.value[block, last], held.obj[block, last], value, obj):
            low = middle + 1
        else:
            high = middle
    return low


@lean
def _place_in(held, block, value, obj):
    low, high = 0, held.size[block]
    while low < high:
        middle = (low + high) >> 1
        if _below(held.value[block, middle], held.obj[block, middle], value, obj):
            low = middle + 1
        else:
            high = middle
    return low


@lean
def _new_run(held, which, number):
    """Take a block out of the pool and make it a list's run of that number."""
    held.spare[0] -= 1
    block = held.free[held.spare[0]]
    for i in range(held.used[which], number, -1):
        held.order[which, i] = held.order[which, i - 1]
    held.order[which, number] = block
    held.used[which] += 1
    held.size[block] = 0
    return block


@lean
def insert(held, which, value, obj):
    """Add an entry to a list. Needs a block in the pool."""
    if held.used[which] == 0:
        _new_run(held, which, 0)
    number = _run_of(held, which, value, obj)
    block = held.order[which, number]
    if held.size[block] == BLOCK:
        half = BLOCK // 2
        upper = _new_run(held, which, number + 1)
        for i in range(half):
            held.value[upper, i], held.obj[upper, i] = held.value[block, half + i], held.obj[block, half + i]
        held.size[block] = held.size[upper] = half
        if _below(held.value[block, half - 1], held.obj[block, half - 1], value, obj):
            block = upper
    place = _place_in(held, block, value, obj)
    for i in range(held.size[block], place, -1):
        held.value[block, i], held.obj[block, i] = held.value[block, i - 1], held.obj[block, i - 1]
    held.value[block, place], held.obj[block, place] = value, obj
    held.size[block] += 1


@lean
def _drop_run(held, which, number):
    """Give a run back to the pool."""
    block = held.order[which, number]
    held.used[which] -= 1
    for i in range(number, held.used[which]):
        held.order[which, i] = held.order[which, i + 1]
    held.free[held.spare[0]] = block
    held.spare[0] += 1


@lean
def _join_next(held, which, number):
    """Join a run with the next one if half a block holds both."""
    if number < 0 or number + 1 >= held.used[which]:
        return
    block, after = held.order[which, number], held.order[which, number + 1]
    size, more = held.size[block], held.size[after]
    if size + more <= BLOCK // 2:
        for i in range(more):
            held.value[block, size + i], held.obj[block, size + i] = held.value[after, i], held.obj[after, i]
        held.size[block] = size + more
        _drop_run(held, which, number + 1)


@lean
def remove(held, which, value, obj):
    """Take an entry, which must be there, out of a list."""
    number = _run_of(held, which, value, obj)
    block = held.order[which, number]
    place = _place_in(held, block, value, obj)
    held.size[block] -= 1
    for i in range(place, held.size[block]):
        held.value[block, i], held.obj[block, i] = held.value[block, i + 1], held.obj[block, i + 1]
    if held.size[block] == 0:
        _drop_run(held, which, number)
    elif held.size[block] < BLOCK // 4:
        _join_next(held, which, number)
        _join_next(held, which, number - 1)

"""Sorted lists of the window's values, the view of the best objects, and what refills it (CIKM09 3.1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.across import sorted_blocks
from skyband.kernels.across.tables import (
    ADD,
    LARGEST,
    admits,
    combined,
    hand_out,
    insert_ranked,
    place_of_object,
    remove_ranked,
)
from skyband.kernels.jit import lean, tiny
from skyband.kernels.order import outranks
from skyband.kernels.tables import SAME

# places in Lists.marks
LEFT = 0  # ordinal of the oldest tuple held
TAKEN = 1  # ordinal after the last tuple taken
COUNTING = 2  # tuples held that count
REPEATED = 3  # tuples that counted for nothing, being too many of their object and stream
STALE = 4  # may the answer differ from the last one?
FLOOR_LAST = 5  # with `floor`: no object outside the view ranks above this
WALK = 6  # number of the last walk
REFILLS = 7  # how often the view was filled from the lists
READ = 8  # entries of the lists read for that
MARKS = 9

LOOK = 16  # tuples whose sums are made at a time


class Lists(NamedTuple):
    """The window: its tuples in a ring by ordinal, and the value of every object in every stream."""

    obj: np.ndarray  # int64 [ring]
    stream: np.ndarray  # int64 [ring]; -1: it does not count
    value: np.ndarray  # float64 [ring]
    next: np.ndarray  # int64 [ring]: ordinal of the next tuple of this object in this stream; -1: none yet
    since: np.ndarray  # float64 [ring]: what the tuples from this one on add up to, of the first `ahead` there; ADD only
    front: np.ndarray  # int64 [objects, streams]: ordinal of the oldest tuple there; -1: there is none
    back: np.ndarray  # int64 [objects, streams]: of the newest
    ahead: np.ndarray  # int64 [objects, streams]: of how many tuples, from the oldest on, it is known what follows adds up to
    whole: np.ndarray  # float64 [objects, streams]: what the tuples there aggregate to; 0 where there is none
    cursor: np.ndarray  # int64 [2, streams]: run and entry that the threshold algorithm has come to
    reached: np.ndarray  # float64 [1, streams]: the value there
    sums: np.ndarray  # float64 [LOOK]: room
    floor: np.ndarray  # float64 [1]: see FLOOR_LAST
    marks: np.ndarray  # int64 [MARKS]


@tiny
def _is_valid(held, obj):
    valid = False
    for x in range(held.front.shape[1]):
        valid = valid or held.front[obj, x] >= 0
    return valid


@lean
def _largest(held, front):
    """The largest of the tuples from the ordinal `front` on, linked by `next`."""
    mask = held.obj.shape[0] - 1
    total, at = held.value[front & mask], held.next[front & mask]
    while at >= 0:
        total = max(total, held.value[at & mask])
        at = held.next[at & mask]
    return total


@lean
def _look_ahead(held, obj, stream):
    """Add up what follows each of the oldest LOOK tuples there, in one pass over all of them: the next as many that leave
    need no other. Each sum begins with its own tuple, as if it were added up alone."""
    mask, sums = held.obj.shape[0] - 1, held.sums
    sums[:] = 0.0
    at, begun = held.front[obj, stream], 0
    while at >= 0:
        value = held.value[at & mask]
        if begun < LOOK:
            for i in range(begun):
                sums[i] += value
            sums[begun] = value
            begun += 1
        else:
            for i in range(LOOK):
                sums[i] += value
        at = held.next[at & mask]
    at = held.front[obj, stream]
    for i in range(begun):
        held.since[at & mask] = sums[i]
        at = held.next[at & mask]
    held.ahead[obj, stream] = begun


@lean
def _add_to_those_known(held, obj, stream, value):
    """A tuple follows those there: what is known to follow them is as much more."""
    mask, at = held.obj.shape[0] - 1, held.front[obj, stream]
    for _ in range(held.ahead[obj, stream]):
        held.since[at & mask] += value
        at = held.next[at & mask]


@lean
def _rerank(held, objects, view, rule, obj):
    """An object's score or newest tuple has changed: put it where it belongs in the view, or leave it out."""
    marks, size, most = held.marks, view.size[0], view.score.shape[0]
    place = place_of_object(view, size, obj) if objects.ranked[obj] else size
    if place < size:
        size = remove_ranked(view, size, place)
        objects.ranked[obj] = 0
        if place < rule.k:
            marks[STALE] = 1
    score, last = combined(held.whole, obj, rule.combine), objects.last[obj]
    if _is_valid(held, obj) and outranks(score, last, held.floor[0], marks[FLOOR_LAST]):
        place = size
        while place > 0 and outranks(score, last, view.score[place - 1], objects.last[view.obj[place - 1]]):
            place -= 1
        if size == most:  # the worst leaves: nothing outside ranks above it
            worst = view.obj[size - 1]
            if place == size:
                held.floor[0], marks[FLOOR_LAST] = score, last
                view.size[0] = size
                return
            held.floor[0], marks[FLOOR_LAST] = view.score[size - 1], objects.last[worst]
            objects.ranked[worst] = 0
        size = insert_ranked(view, size, most, place, score, obj, objects.life[obj], 0)
        objects.ranked[obj] = 1
        if place < rule.k:
            marks[STALE] = 1
    view.size[0] = size


@lean
def _expire(held, blocks, objects, view, rule, reach):
    """Let the tuples before the ordinal `reach` go; False when the lists have no room for what that changes."""
    marks, mask = held.marks, held.obj.shape[0] - 1
    stop = min(reach, marks[TAKEN])
    while marks[LEFT] < stop:
        if blocks.spare[0] < 1:
            return False
        at = marks[LEFT] & mask
        marks[LEFT] += 1
        stream = held.stream[at]
        if stream < 0:
            continue
        obj, old = held.obj[at], held.whole[held.obj[at], stream]
        marks[COUNTING] -= 1
        held.front[obj, stream] = held.next[at]
        new = old
        if held.next[at] < 0:
            new = 0.0
            sorted_blocks.remove(blocks, stream, old, obj)
        elif rule.aggregate == ADD or (rule.aggregate == LARGEST and held.value[at] == old):
            if rule.aggregate == ADD:
                held.ahead[obj, stream] -= 1
                if held.ahead[obj, stream] == 0:
                    _look_ahead(held, obj, stream)
                new = held.since[held.next[at] & mask]
            else:
                new = _largest(held, held.next[at])
            if new != old:
                sorted_blocks.remove(blocks, stream, old, obj)
                sorted_blocks.insert(blocks, stream, new, obj)
        held.whole[obj, stream] = new
        if objects.ranked[obj] and (new != old or held.next[at] < 0):
            _rerank(held, objects, view, rule, obj)
    return True


@lean
def _add(held, blocks, objects, view, rule, obj, stream, value, ordinal):
    """A tuple that counts."""
    mask = held.obj.shape[0] - 1
    at = ordinal & mask
    held.obj[at], held.stream[at], held.value[at], held.next[at] = obj, stream, value, -1
    held.marks[COUNTING] += 1
    new = value
    if held.front[obj, stream] >= 0:
        old = held.whole[obj, stream]
        held.next[held.back[obj, stream] & mask] = ordinal
        if rule.aggregate == LARGEST:
            new = max(old, value)
        elif rule.aggregate == ADD:
            _add_to_those_known(held, obj, stream, value)
            new = held.since[held.front[obj, stream] & mask]
        sorted_blocks.remove(blocks, stream, old, obj)
    else:
        held.front[obj, stream] = ordinal
        held.since[at], held.ahead[obj, stream] = value, 1
    held.back[obj, stream] = ordinal
    held.whole[obj, stream] = new
    sorted_blocks.insert(blocks, stream, new, obj)
    _rerank(held, objects, view, rule, obj)


@lean
def take(held, blocks, objects, view, tuples, begin, end, rule):
    """Take the tuples up to the ordinal `end`; False when there is no room for the next one."""
    marks, ring = held.marks, held.obj.shape[0]
    while marks[TAKEN] < end:
        ordinal = marks[TAKEN]
        row = ordinal - begin
        if not _expire(held, blocks, objects, view, rule, tuples.reach[row]):
            return False
        if ordinal - marks[LEFT] == ring or blocks.spare[0] < 2:
            return False
        obj, stream = tuples.obj[row], tuples.stream[row]
        if stream >= 0 and not admits(objects, obj, stream, ordinal, tuples.reach[row], rule.repeats):
            marks[REPEATED] += 1
            stream = -1
        marks[TAKEN] = ordinal + 1
        if stream < 0:
            held.stream[ordinal & (ring - 1)] = -1
        else:
            _add(held, blocks, objects, view, rule, obj, stream, tuples.value[row], ordinal)
    return True


@lean
def _next_entry(held, blocks, stream):
    """Step to the next smaller entry of a list; returns its object, -1 at the end."""
    if held.cursor[0, stream] < 0:
        return -1
    held.cursor[1, stream] -= 1
    if held.cursor[1, stream] < 0:
        held.cursor[0, stream] -= 1
        if held.cursor[0, stream] < 0:
            held.reached[0, stream] = 0.0
            return -1
        held.cursor[1, stream] = blocks.size[blocks.order[stream, held.cursor[0, stream]]] - 1
    block, at = blocks.order[stream, held.cursor[0, stream]], held.cursor[1, stream]
    held.reached[0, stream] = blocks.value[block, at]
    return blocks.obj[block, at]


@lean
def refill(held, blocks, objects, view, rule):
    """The threshold algorithm: read the lists from their largest values on, look every object met up in all lists, until
    no object that was not met can rank above the worst of the view."""
    marks, streams, most = held.marks, held.front.shape[1], view.score.shape[0]
    marks[WALK] += 1
    marks[REFILLS] += 1
    walk, size = marks[WALK], 0
    for rank in range(view.size[0]):
        objects.ranked[view.obj[rank]] = 0
    for x in range(streams):
        held.cursor[0, x], held.cursor[1, x] = blocks.used[x], 0
        held.reached[0, x] = np.inf
    going = True
    while going:
        going = False
        for x in range(streams):
            obj = _next_entry(held, blocks, x)
            if obj < 0:
                continue
            going = True
            marks[READ] += 1
            if objects.mark[obj] == walk:
                continue
            objects.mark[obj] = walk
            score, last = combined(held.whole, obj, rule.combine), objects.last[obj]
            place = size
            while place > 0 and outranks(score, last, view.score[place - 1], objects.last[view.obj[place - 1]]):
                place -= 1
            if place < most:
                if size == most:
                    objects.ranked[view.obj[most - 1]] = 0
                size = insert_ranked(view, size, most, place, score, obj, objects.life[obj], 0)
                objects.ranked[obj] = 1
        if size == most and view.score[most - 1] > combined(held.reached, 0, rule.combine):
            break
    view.size[0] = size
    if size == most:
        held.floor[0], marks[FLOOR_LAST] = view.score[size - 1], objects.last[view.obj[size - 1]]
    else:
        held.floor[0], marks[FLOOR_LAST] = -np.inf, -1
    marks[STALE] = 1


@lean
def run(held, blocks, objects, view, top, tuples, begin, windows, start, used, answers, rule, shown):
    """Take tuples and answer windows from `start` on. Returns (windows answered, places of answers used): all of them, or
    those before room is wanting. `shown` marks the objects of the last answer; `objects.ranked` those of the view."""
    marks, k = held.marks, rule.k
    for at in range(start, windows.end.shape[0]):
        first = windows.first[at]
        if used + k > answers.score.shape[0] or not take(held, blocks, objects, view, tuples, begin, windows.end[at], rule):
            return at, used
        if not _expire(held, blocks, objects, view, rule, first):
            return at, used
        if view.size[0] < k and held.floor[0] > -np.inf:
            refill(held, blocks, objects, view, rule)
        if marks[STALE]:
            used = hand_out(top, view, min(view.size[0], k), shown, answers, at, used, windows.report[at])
            marks[STALE] = 0
        else:
            answers.begin[at], answers.size[at] = used, SAME
    return windows.end.shape[0], used

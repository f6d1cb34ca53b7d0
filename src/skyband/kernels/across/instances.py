"""Instances of objects, the floors among them that matter, and the sweep that keeps the k dominance set (CIKM09 3.2).

Scores of instances only grow, so *how high the k best objects newer than t stand* only grows too, for every t: the k-th of
them is the level an instance of time t has to be able to reach. Levels need no counters and no lists of who dominates whom:
walking from the newest instance to the oldest with the best k objects met so far gives them all, and whoever cannot reach
its level is dominated by k objects.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.across.promise import objects_above, refill, stand_on_instances
from skyband.kernels.across.tables import (
    ANY_NUMBER,
    LARGEST,
    NEVER,
    admits,
    combined,
    hand_out,
    insert_ranked,
    place_of_object,
    remove_ranked,
)
from skyband.kernels.across.witness import count_ranked, forget_least, forget_unpromising
from skyband.kernels.across.worth import best_of, guess_of
from skyband.kernels.jit import lean, tiny
from skyband.kernels.order import outranks
from skyband.kernels.tables import SAME

# places in Instances.marks
STOP = 0  # place after the newest instance
FLOORS = 1  # place after the newest floor
KEPT = 2  # floors after the last weeding
TAKEN = 3  # ordinal after the last tuple taken
SINCE = 4  # tuples taken since the last sweep
REACH = 5  # ordinal of the first tuple that a coming window holds
REPEATED = 6  # tuples that counted for nothing, being too many of their object and stream
STALE = 7  # may the answer differ from the last one?
OLDEST = 8  # the last answer's scores hold until the window begins after this ordinal
WALK = 9  # number of the last walk
REFRESH = 10  # ordinal from which the chances are to be estimated anew
PACE = 11  # tuples between two sweeps, at least
MARKS = 12

LEAST_SWEEP = 16  # the usual PACE


class Instances(NamedTuple):
    """Instances in the places [0, STOP), oldest first; floors in [0, FLOORS), oldest first."""

    ordinal: np.ndarray  # int64 [room]: of the tuple that made it, increasing; it ends with that tuple
    obj: np.ndarray  # int64 [room]
    current: np.ndarray  # float64 [room]: what the object's tuples from this one on give
    best: np.ndarray  # float64 [room]: what it may still come to; NaN: it is pruned
    values: np.ndarray  # float64 [room, streams]: of the tuples from this one on
    older: np.ndarray  # int64 [room]: place of the object's next older instance; -1: there is none
    least: np.ndarray  # float64 [room]: the least it has promised, at most 1; where a precision is asked for
    doubted: np.ndarray  # uint8 [room]: bit 0: but for being a witness's it were forgotten; 1: it has ranked; others: its depth
    floor_time: np.ndarray  # int64 [3 room]: ordinal of an instance, increasing
    floor_obj: np.ndarray  # int64 [3 room]
    floor: np.ndarray  # float64 [3 room]: its score
    level: np.ndarray  # float64 [k, more where promises count]: how high the best objects met on a walk stand, highest first
    level_obj: np.ndarray  # int64 [the same]
    marks: np.ndarray  # int64 [MARKS]


# -- levels --------------------------------------------------------------------------------------------------------


@lean
def _raise_level(held, objects, size, k, obj, score, walk):
    """Let an object stand as high as `score` among the best k met on this walk; returns how many there are. Of equals the
    one with the newer tuple stands higher.

    Needs a score that reaches the k-th level.
    """
    level, level_obj, last = held.level, held.level_obj, objects.last
    if objects.mark[obj] == walk:
        place = 0
        while level_obj[place] != obj:
            place += 1
        if level[place] >= score:
            return size
        stop = place
    else:
        if size == k:
            if not outranks(score, last[obj], level[k - 1], last[level_obj[k - 1]]):
                return size
            objects.mark[level_obj[k - 1]] = 0
            stop = k - 1
        else:
            stop = size
            size += 1
        objects.mark[obj] = walk
    place = stop
    while place > 0 and outranks(score, last[obj], level[place - 1], last[level_obj[place - 1]]):
        level[place], level_obj[place] = level[place - 1], level_obj[place - 1]
        place -= 1
    level[place], level_obj[place] = score, obj
    return size


@lean
def weed_floors(held, objects, k, reach):
    """Leave only floors that fewer than k objects with newer instances outrank: their k-skyband, one entry an object and
    step. An object that is outranked by an equal may turn the tables by a new tuple, which sets its floors anew."""
    marks = held.marks
    marks[WALK] += 1
    walk, size = marks[WALK], 0
    stop = marks[FLOORS]
    kept = stop  # survivors are gathered at the far end first
    for i in range(stop - 1, -1, -1):
        if held.floor_time[i] < reach:
            break
        score, obj = held.floor[i], held.floor_obj[i]
        if size == k and outranks(held.level[k - 1], objects.last[held.level_obj[k - 1]], score, objects.last[obj]):
            continue
        if objects.mark[obj] == walk:  # a newer instance may stand as high: then this one is of no use
            place = 0
            while held.level_obj[place] != obj:
                place += 1
            if held.level[place] >= score:
                continue
        size = _raise_level(held, objects, size, k, obj, score, walk)
        kept -= 1
        held.floor_time[kept], held.floor_obj[kept], held.floor[kept] = held.floor_time[i], obj, score
    for i in range(stop - kept):
        held.floor_time[i] = held.floor_time[kept + i]
        held.floor_obj[i] = held.floor_obj[kept + i]
        held.floor[i] = held.floor[kept + i]
    marks[FLOORS] = marks[KEPT] = stop - kept


@lean
def _set_floor(held, time, obj, score):
    """Note how high an instance stands. Needs a free place."""
    low, high = 0, held.marks[FLOORS]
    stop = high
    while low < high:
        middle = (low + high) >> 1
        if held.floor_time[middle] < time:
            low = middle + 1
        else:
            high = middle
    if low < stop and held.floor_time[low] == time:
        held.floor[low] = score
        return
    for i in range(stop, low, -1):
        held.floor_time[i] = held.floor_time[i - 1]
        held.floor_obj[i] = held.floor_obj[i - 1]
        held.floor[i] = held.floor[i - 1]
    held.floor_time[low], held.floor_obj[low], held.floor[low] = time, obj, score
    held.marks[FLOORS] = stop + 1


# -- the sweep -----------------------------------------------------------------------------------------------------


@tiny
def _is_guessing(guess):
    """Is anything forgotten that might still rank? A full margin forgets nothing, whatever is known of values and repeats."""
    return guess.on != 0 and (guess.margin[0] < 1.0 or guess.promises.on != 0)


@lean
def _is_pruned(held, objects, at, level, rule, guess):
    """Can the instance no longer reach the level, or is it not expected to?"""
    certain = held.best[at] < level
    if certain or not _is_guessing(guess) or guess.promises.on:
        return certain
    return guess_of(held.values, at, objects.count, held.obj[at], rule, guess) < level


@lean
def sweep(held, objects, rule, guess):
    """Drop the instances that have expired and those that k newer objects outrank for good. O(instances)."""
    marks, k, wide, promises = held.marks, rule.k, held.level.shape[0], guess.promises
    marks[WALK] += 1
    walk, size, reach, now = marks[WALK], 0, marks[REACH], marks[TAKEN]
    stop = marks[STOP]
    first = stop
    while first > 0 and held.ordinal[first - 1] >= reach:
        first -= 1
        obj, score = held.obj[first], held.current[first]
        level = held.level[k - 1] if size >= k else -np.inf
        if _is_pruned(held, objects, first, level, rule, guess):
            held.best[first] = np.nan
            continue
        if promises.on:
            promises.worth[0, first] = objects_above(held.level, size, score)
        if size < wide or score >= held.level[wide - 1]:
            size = _raise_level(held, objects, size, wide, obj, score, walk)
    if promises.on:
        refill(promises, held.level, size, rule)
        if promises.most > 0:
            forget_least(held, objects, first, stop, reach, now, size, rule, promises, guess.witnesses)
        else:
            forget_unpromising(held, objects, first, stop, reach, now, size, rule, promises, guess.witnesses)
    for at in range(stop):
        objects.head[held.obj[at]] = -1
    if _is_guessing(guess) and rule.repeats == ANY_NUMBER:
        _forget_pruned(held, objects, first, stop)
    kept = 0
    for at in range(first, stop):
        if held.best[at] == held.best[at]:
            obj = held.obj[at]
            held.ordinal[kept], held.obj[kept], held.current[kept] = held.ordinal[at], obj, held.current[at]
            held.best[kept], held.least[kept], held.doubted[kept] = held.best[at], held.least[at], held.doubted[at]
            for x in range(held.values.shape[1]):
                held.values[kept, x] = held.values[at, x]
            held.older[kept] = objects.head[obj]
            objects.head[obj] = kept
            kept += 1
    marks[STOP], marks[SINCE] = kept, 0
    if promises.on:
        marks[FLOORS] = marks[KEPT] = stand_on_instances(held, kept)
        marks[STALE] = 1


@lean
def _forget_pruned(held, objects, first, stop):
    """An object that lost its last instance to a guess is not known any more: its next tuple begins a new life.

    Needs a rule by which every tuple counts: where only the first so many do, a new life would let in too many.
    """
    for at in range(first, stop):
        if held.best[at] == held.best[at]:
            objects.head[held.obj[at]] = 0
    for at in range(first, stop):
        if held.best[at] != held.best[at] and objects.head[held.obj[at]] == -1:
            objects.last[held.obj[at]] = -1
    for at in range(first, stop):
        objects.head[held.obj[at]] = -1


# -- tuples --------------------------------------------------------------------------------------------------------


@lean
def _add(held, objects, rule, obj, stream, value, ordinal, reach):
    """A tuple that counts: it raises the object's instances and makes a new one. Returns the object's score."""
    marks, values = held.marks, held.values
    at, newer = objects.head[obj], -1
    score = 0.0
    while at >= 0:
        if held.ordinal[at] < reach:  # expired, and all older ones too
            if newer >= 0:
                held.older[newer] = -1
            else:
                objects.head[obj] = -1
            break
        if rule.aggregate == LARGEST:
            values[at, stream] = max(values[at, stream], value)
        else:
            values[at, stream] += value
        score = combined(values, at, rule.combine)
        held.current[at] = score
        held.best[at] = best_of(values, at, objects.count, obj, rule)
        _set_floor(held, held.ordinal[at], obj, score)
        newer, at = at, held.older[at]
    new = marks[STOP]
    for x in range(values.shape[1]):
        values[new, x] = 0.0
    values[new, stream] = value
    alone = combined(values, new, rule.combine)
    held.ordinal[new], held.obj[new], held.current[new] = ordinal, obj, alone
    held.least[new], held.doubted[new] = 1.0, 0
    held.best[new] = best_of(values, new, objects.count, obj, rule)
    held.older[new] = objects.head[obj]
    objects.head[obj] = new
    marks[STOP] = new + 1
    _set_floor(held, ordinal, obj, alone)
    return score if newer >= 0 else alone


@lean
def take(held, objects, top, tuples, begin, end, rule, guess):
    """Take the tuples up to the ordinal `end`. Returns False when there is no room for the next one, or when chances are to
    be estimated anew first."""
    marks = held.marks
    room = held.ordinal.shape[0]
    while marks[TAKEN] < end:
        ordinal = marks[TAKEN]
        if guess.on and ordinal >= marks[REFRESH]:
            return False
        row = ordinal - begin
        stream = tuples.stream[row]
        marks[REACH] = max(marks[REACH], tuples.reach[row])
        if stream < 0:
            marks[TAKEN] = ordinal + 1
            continue
        if guess.promises.most == 0 and marks[SINCE] >= max(marks[PACE], marks[STOP] >> 3):
            sweep(held, objects, rule, guess)
        if marks[STOP] == room:
            return False
        obj, reach = tuples.obj[row], tuples.reach[row]
        if admits(objects, obj, stream, ordinal, reach, rule.repeats):
            if guess.on:
                guess.high[stream] = max(guess.high[stream], tuples.value[row])
            score = _add(held, objects, rule, obj, stream, tuples.value[row], ordinal, reach)
            size = top.size[0]
            if objects.ranked[obj] or size < rule.k or score >= top.score[size - 1]:
                marks[STALE] = 1
            marks[SINCE] += 1
            if guess.promises.most > 0 and marks[STOP] > guess.promises.most:
                sweep(held, objects, rule, guess)
            if marks[FLOORS] > 2 * marks[KEPT] + 4 * rule.k + 64 or marks[FLOORS] + marks[STOP] >= held.floor.shape[0]:
                weed_floors(held, objects, rule.k, marks[REACH])
        else:
            marks[REPEATED] += 1
        marks[TAKEN] = ordinal + 1
    return True


# -- answers -------------------------------------------------------------------------------------------------------


@lean
def _read(held, objects, found, k, first):
    """The best k objects of the window that begins at `first`, out of the floors. Returns how many there are."""
    marks = held.marks
    marks[WALK] += 1
    walk, size = marks[WALK], 0
    for i in range(marks[FLOORS]):
        score = held.floor[i]
        if held.floor_time[i] < first or (size == k and score < found.score[k - 1]):
            continue
        obj = held.floor_obj[i]
        last = objects.last[obj]
        if objects.mark[obj] == walk:  # an older instance of it stands there; it may be one that is not raised any more
            place = place_of_object(found, size, obj)
            if found.score[place] >= score:
                continue
            size = remove_ranked(found, size, place)
            objects.mark[obj] = 0
        place = size
        while place > 0 and outranks(score, last, found.score[place - 1], objects.last[found.obj[place - 1]]):
            place -= 1
        if place == k:
            continue
        if size == k:
            objects.mark[found.obj[k - 1]] = 0
        objects.mark[obj] = walk
        size = insert_ranked(found, size, k, place, score, obj, objects.life[obj], held.floor_time[i])
    return size


@lean
def run(held, objects, top, found, tuples, begin, windows, start, used, answers, rule, guess):
    """Take tuples and answer windows from `start` on. Returns (windows answered, places of answers used): all of them, or
    those before room, or chances, are wanting."""
    marks = held.marks
    for at in range(start, windows.end.shape[0]):
        first = windows.first[at]
        if used + rule.k > answers.score.shape[0] or not take(held, objects, top, tuples, begin, windows.end[at], rule, guess):
            return at, used
        marks[REACH] = max(marks[REACH], first)
        if marks[STALE] or marks[OLDEST] < first:
            size = _read(held, objects, found, rule.k, first)
            used = hand_out(top, found, size, objects.ranked, answers, at, used, windows.report[at])
            marks[STALE], marks[OLDEST] = 0, NEVER
            for rank in range(size):
                marks[OLDEST] = min(marks[OLDEST], top.time[rank])
        else:
            answers.begin[at], answers.size[at] = used, SAME
        if guess.witnesses.on:
            count_ranked(held, objects, top, guess.witnesses)
    return windows.end.shape[0], used

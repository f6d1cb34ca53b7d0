"""What the kernels of the across family have in common: tuples, objects, how values combine, how answers are handed out.

An object is a small whole number, a tuple says that an object had a value in a stream. Tuples have consecutive *ordinals*, in
the order their windows see them. A window is told by the ordinal of its first tuple.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.jit import lean, tiny
from skyband.kernels.tables import SAME

SUM, MEAN, MAX = 0, 1, 2  # how streams combine to a score
ADD, LARGEST, LATEST = 0, 1, 2  # how repeated occurrences in one stream combine to its value
ANY_NUMBER = 1 << 40  # of repetitions

NEVER = np.iinfo(np.int64).max


class Tuples(NamedTuple):
    """Tuples handed over, in the order of their ordinals."""

    obj: np.ndarray  # int64
    stream: np.ndarray  # int64; -1: holds a place in the window and counts for nothing
    value: np.ndarray  # float64, at least 0, weighted
    reach: np.ndarray  # int64, never decreasing: ordinal of the first tuple of the first window that holds this one
    hash: np.ndarray  # uint64: of the object's key; empty where nobody asks


class Rule(NamedTuple):
    """What is asked."""

    high: np.ndarray  # float64 [streams]: no weighted value is larger
    combine: int
    aggregate: int
    repeats: int  # tuples of an object in one stream that count, during its life
    k: int


class Objects(NamedTuple):
    """Objects by number. One lives as long as each of its tuples shares a window with the one before."""

    life: np.ndarray  # int64 [objects]: ordinal of the tuple that began its life
    last: np.ndarray  # int64 [objects]: ordinal of its newest tuple that counts; -1: it has none
    count: np.ndarray  # int64 [objects, streams]: tuples that counted during its life
    head: np.ndarray  # int64 [objects]: its newest instance; -1: it has none
    ranked: np.ndarray  # uint8 [objects]: is it in the last answer?
    mark: np.ndarray  # int64 [objects]: number of the last walk that met it


class Ranking(NamedTuple):
    """The last answer, best first, of `size[0]` ranks; the rest is room for the next one."""

    score: np.ndarray  # float64 [k]
    obj: np.ndarray  # int64 [k]
    life: np.ndarray  # int64 [k]
    time: np.ndarray  # int64 [k]: its score holds until the window begins after this ordinal
    size: np.ndarray  # int64 [1]


class Answers(NamedTuple):
    """Answers of consecutive windows: window i fills size[i] ranks from begin[i] on, best first."""

    begin: np.ndarray  # int64 [windows]
    size: np.ndarray  # int64 [windows]: ranks, or SAME
    score: np.ndarray  # float64 [room]
    obj: np.ndarray  # int64 [room]
    life: np.ndarray  # int64 [room]


def no_objects(room: int, streams: int) -> Objects:
    """Room for objects, none of which is alive."""
    whole = [np.full(room, start, np.int64) for start in (-1, -1, -1, 0)]
    count, ranked = np.zeros((room, streams), np.int64), np.zeros(room, np.uint8)
    return Objects(whole[0], whole[1], count, whole[2], ranked, whole[3])


def no_ranking(k: int) -> Ranking:
    """Room for k ranks."""
    return Ranking(np.zeros(k), np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(1, np.int64))


@tiny
def combined(values, at, combine):
    """The score that the streams' values in row `at` give; streams are added up in their order."""
    total = 0.0
    streams = values.shape[1]
    if combine == MAX:
        for x in range(streams):
            total = max(total, values[at, x])
        return total
    for x in range(streams):
        total += values[at, x]
    return total / streams if combine == MEAN else total


@tiny
def admits(objects, obj, stream, ordinal, reach, repeats):
    """Count a tuple of an object; False when it is one too many, and then counts for nothing.

    An object none of whose tuples shares a window with this one begins a new life, of which nothing is known.
    """
    if objects.last[obj] < reach:
        objects.life[obj] = ordinal
        objects.head[obj] = -1
        for x in range(objects.count.shape[1]):
            objects.count[obj, x] = 0
    if objects.count[obj, stream] >= repeats:
        return False
    objects.count[obj, stream] += 1
    objects.last[obj] = ordinal
    return True


@lean
def insert_ranked(ranking, size, k, place, score, obj, life, time):
    """Put an entry at `place`, moving those behind it down; returns the new size, at most k."""
    stop = size if size < k else k - 1
    for i in range(stop, place, -1):
        ranking.score[i] = ranking.score[i - 1]
        ranking.obj[i] = ranking.obj[i - 1]
        ranking.life[i] = ranking.life[i - 1]
        ranking.time[i] = ranking.time[i - 1]
    ranking.score[place], ranking.obj[place], ranking.life[place], ranking.time[place] = score, obj, life, time
    return min(size + 1, k)


@lean
def remove_ranked(ranking, size, place):
    """Take out the entry at `place`; returns the new size."""
    for i in range(place, size - 1):
        ranking.score[i] = ranking.score[i + 1]
        ranking.obj[i] = ranking.obj[i + 1]
        ranking.life[i] = ranking.life[i + 1]
        ranking.time[i] = ranking.time[i + 1]
    return size - 1


@lean
def place_of_object(ranking, size, obj):
    """Where an object stands; `size` when it does not."""
    place = 0
    while place < size and ranking.obj[place] != obj:
        place += 1
    return place


@lean
def hand_out(top, found, size, ranked, answers, at, used, report):
    """Make `found`[:size] the last answer, mark its objects in `ranked` and, if `report`, let it be that of window `at`.
    Returns the places of `answers` taken."""
    same = size == top.size[0]
    for rank in range(top.size[0]):
        ranked[top.obj[rank]] = 0
    for rank in range(size):
        same = same and top.score[rank] == found.score[rank] and top.life[rank] == found.life[rank]
        same = same and top.obj[rank] == found.obj[rank]
        top.score[rank], top.obj[rank] = found.score[rank], found.obj[rank]
        top.life[rank], top.time[rank] = found.life[rank], found.time[rank]
        ranked[found.obj[rank]] = 1
    top.size[0] = size
    answers.begin[at] = used
    if same or not report:
        answers.size[at] = SAME
        return used
    answers.size[at] = size
    for rank in range(size):
        answers.score[used + rank], answers.obj[used + rank] = top.score[rank], top.obj[rank]
        answers.life[used + rank] = top.life[rank]
    return used + size

"""What a skyband of pairs consists of, and pairs' one order. `kernels.pairs.band` says what must hold of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.jit import tiny

NONE = -1  # in Skyband.kth: fewer than K pairs down to here

# places in marks
K = 0  # the K of the skyband
HEAD = 1  # place of the oldest row in the tail that is still needed
STOP = 2  # place after its newest row
BAND = 3  # pairs in the band
PENDING = 4  # pairs that wait
SEGMENTS = 5
NEXT = 6  # ordinal of the next row
REACH = 7  # no coming window holds rows before this ordinal
SOFT = 8  # pairs that may wait before they are merged at the next row
SCAN = 9  # place in the tail down to which the current row has been scored, or IDLE
RUN = 10  # runs already searched for the current row (kernels.pairs.boxes)
LEAF = 11  # leaves of the next run already searched for it
RUNS = 12
RUNS_HEAD = 13  # the first run not dropped
BEST_FROM = 14  # `best` is that of the pairs waiting from here
BEST_UPTO = 15  # up to here
TREE = 16  # nodes of the tree over the band; 0: not built since the band changed
BY_TREE = 17  # 1: answers are read from the tree, 0: from the band
WINDOW = 18  # the next window to answer in the current call
USED = 19  # places used in its results
MERGES = 20  # how often waiting pairs have joined the band
SCORED = 21  # pairs scored so far
FRONT = 22  # place of the first young row in the tail; those before it are settled
YOUNG = 23  # rows that stay young when others are settled
MET = 24  # rows that have met the young ones: of Young.score in use
OWN = 25  # settled rows, the newest ones, of which each has a limit of its own
SPAN = 26  # rows of the longest segment
MARKS = 27

# places in levels
BEST = 0  # the best score among some of the pairs waiting
FLOOR = 1  # no watched answer takes up a pair of a lower score
TAU = 2  # the K-th best score among pairs of young rows, when some were last settled: it bars all settled rows
GUESS = 3  # as many again as K such scores reached this the last time
LEVELS = 4

IDLE = -1
DONE = 0  # what a step returns, or
OUT_OF_ROOM = 2  # when the band has no room for what it found
DEPTH = 64  # of a tree of pairs, at most
MUST_READ = 2  # in Answers.changed: too few pairs are left of a watched answer
NOT_WATCHED = -1  # in Answers.mark: read when asked, not kept up
SEEN_ALL = -2  # in Answers.mark, during a merge: has been shown every waiting pair


class Tail(NamedTuple):
    """Rows that may be the older one of a pair, oldest first, in the places [HEAD, STOP)."""

    columns: np.ndarray  # float64 [older columns, room]
    ordinal: np.ndarray  # int64 [room], increasing
    low: np.ndarray  # float64 [blocks, older columns]: no row of a block is below it in a column, NaN apart
    high: np.ndarray  # float64 [blocks, older columns]
    coarse: np.ndarray  # float32 [searched columns, or 0, room]: how far they lie from the origin (`kernels.pairs.coarse`)
    origin: np.ndarray  # float64 [the same columns]


class Young(NamedTuple):
    """The turned scores of pairs whose older row is young, until it is settled. Row i is that of the newer row b[i], oldest
    first; place s of it belongs to the s-th of the width[i] young rows there are of those that were young when it came. NaN:
    the pair has no score, or waits or has joined already."""

    score: np.ndarray  # float64 [room, room]
    b: np.ndarray  # int64 [room]
    width: np.ndarray  # int64 [room]: never decreasing
    limit: np.ndarray  # float64 [room]: room for the limits of rows that are settled
    best: np.ndarray  # float64 [2 K]: room for the best scores


class Pairs(NamedTuple):
    """Pairs, in parallel arrays."""

    score: np.ndarray  # float64: turned
    a: np.ndarray  # int64
    b: np.ndarray  # int64


class Segments(NamedTuple):
    """Stretches of the settled rows, newest first: segment j reaches from begin[j] up to begin[j - 1], the first one up to
    FRONT. A pair with one of its rows matters only if its score is at least limit[j]; in the first segment each row has a
    limit of its own."""

    begin: np.ndarray  # int64
    limit: np.ndarray  # float64; NaN: none matters; in the first place the least of all the others
    low: np.ndarray  # float64 [segments, older columns]: as in Tail; in the first place of all the others
    high: np.ndarray  # float64 [segments, older columns]
    own: np.ndarray  # float64 [BLOCK]: the limits of the rows from begin[0] on


class Answers(NamedTuple):
    """Each query's top-k and, if it is watched, some more: rank r of query q is score[q, r], a[q, r], b[q, r].

    A watched query holds the best `count` pairs whose `a` is at least first[q], among all but those waiting from mark[q] on;
    all there are, unless it is `bounded`. It is read anew when fewer than k are left of a bounded one.
    """

    score: np.ndarray  # float64 [queries, largest k]
    a: np.ndarray  # int64 [queries, largest k]
    b: np.ndarray  # int64 [queries, largest k]
    count: np.ndarray  # int64 [queries]
    k: np.ndarray  # int64 [queries]
    most: np.ndarray  # int64 [queries]: pairs it may hold, k or more
    bounded: np.ndarray  # int64 [queries]: 1 when there may be pairs below those it holds
    first: np.ndarray  # int64 [queries]: first row of its last window
    mark: np.ndarray  # int64 [queries], or NOT_WATCHED
    oldest: np.ndarray  # int64 [queries]: the oldest `a` among its pairs, at least
    changed: np.ndarray  # int64 [queries]: 1 when the best k have changed since the last window was answered, or MUST_READ


class Tree(NamedTuple):
    """A priority search tree over the band (kernels.pairs.tree). Node 0 is the root."""

    place: np.ndarray  # int64 [room]: the pair's place in the band
    left: np.ndarray  # int64 [room]: the child whose pairs rank above those of the other, or -1
    right: np.ndarray  # int64 [room]
    items: np.ndarray  # int64 [room]: room for building it
    work: np.ndarray  # int64 [6 * DEPTH]: room for a stack
    found: np.ndarray  # int64 [K + DEPTH]: room for an answer


class Skyband(NamedTuple):
    """All there is besides the rows searched by boxes."""

    tail: Tail
    young: Young
    band: Pairs  # in the order of rank
    kth: np.ndarray  # int64 [room of the band]: the staircase
    pending: Pairs  # pairs that wait, in the order they came
    shown: Pairs  # room for those of them that a query is shown at once, in the order of rank
    segments: Segments
    heap: np.ndarray  # int64 [K]: room for a merge
    answers: Answers
    tree: Tree
    levels: np.ndarray  # float64 [LEVELS]
    marks: np.ndarray  # int64 [MARKS]


@tiny
def above(score, a, b, other_score, other_a, other_b):
    """True when the first pair ranks above the second: pairs' one order."""
    if score != other_score:
        return score > other_score
    if a != other_a:
        return a > other_a
    return b > other_b

"""What SAP remembers, as arrays, and the names of their places.

Rows of the window live in `ring`, row `ordinal` at `ordinal & mask` (its length is a power of two). Everything
else points into it by ordinals. Numbered records (partitions, units) live in tables used as rings: record `number`
at `number % rows`. Symbols of the paper are given once, beside the fields.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

EQUAL, DYNAMIC, ENHANCED = range(3)  # partition policies (4.1, 4.2, 4.3)
DELAYED, PROACTIVE, EAGER = range(3)  # when meaningful objects are formed (5.1 and 6.2)
SAVL, SORTED = range(2)  # how meaningful objects are kept (5.1; algorithm 1 without S-AVL)

NOBODY = np.iinfo(np.int64).max  # as the oldest of no rows


class Rules(NamedTuple):
    """What was asked, as numbers; never changes."""

    k: int
    policy: int
    formation: int
    meaningful: int
    size: int  # n: rows of a count window; 0 when windows are of time
    slide: int  # s: rows of a slide; 0 when windows are of time
    partitions: int  # m, when the user fixes it; else 0
    keep: int  # zeta* = eta k, rounded up: rows a unit's buffer is reduced to, and the rank-sum test's sample of the interval
    eta: float
    critical: np.ndarray  # float64 [k + 1, keep + 1]: exact T_up below k = 10; else empty


class SapState(NamedTuple):
    """Sorted means best first. Counts and other scalars are in `head` and `levels`, by the names below."""

    head: np.ndarray  # int64 [HEAD]
    levels: np.ndarray  # float64 [LEVELS]
    ring: np.ndarray  # float64 [power of two]: the raw scores of the window
    links: np.ndarray  # int32 [as ring, or 0 while never needed]: distance to the next row of its stack, 0 at the bottom
    candidate_score: np.ndarray  # C without the front's and the current partition's: sorted
    candidate_ordinal: np.ndarray
    candidate_dominators: np.ndarray  # int64: candidates of later partitions that outrank it; always < k
    front_score: np.ndarray  # [2k]: rows of the front partition known to rank before all its others: sorted; some expired
    front_ordinal: np.ndarray
    current_score: np.ndarray  # [k]: P_m^k of the finished units of the current partition: sorted
    current_ordinal: np.ndarray
    unit_score: np.ndarray  # U^tau: rows of the unfinished unit at or above tau; the first UNIT_SORTED are sorted
    unit_ordinal: np.ndarray
    heap_score: np.ndarray  # [2k]: the tops of the front's stacks: a binary heap, best at place 0
    heap_ordinal: np.ndarray
    stack_score: np.ndarray  # [builds, k]: stack tops of each S-AVL being built or waiting: worst first
    stack_ordinal: np.ndarray
    builds: np.ndarray  # int64 [builds, BUILD_FIELDS]
    bars: np.ndarray  # float64 [builds]: rows below it are pruned (global and local pruning)
    partitions: np.ndarray  # int64 [rows, PARTITION_FIELDS]: the queue of closed partitions behind the front
    partition_kth: np.ndarray  # float64 [rows]: score of o_i^k
    units: np.ndarray  # int64 [rows, UNIT_FIELDS]: L_i of all partitions of the window (enhanced policy)
    unit_best: np.ndarray  # float64 [rows]: U_v^1
    unit_top_score: np.ndarray  # [rows, k]: U_v^k, the worst last, the others in any order
    unit_top_ordinal: np.ndarray


class Spare(NamedTuple):
    """Room for the rows a step puts aside; nothing is kept here from step to step."""

    score: np.ndarray
    ordinal: np.ndarray


class Stacks(NamedTuple):
    """The part of the state that building touches: small tuples are cheap to hand over."""

    score: np.ndarray
    ordinal: np.ndarray
    builds: np.ndarray
    bars: np.ndarray
    ring: np.ndarray
    links: np.ndarray


class Heap(NamedTuple):
    """The part of the state that consuming touches."""

    head: np.ndarray
    score: np.ndarray
    ordinal: np.ndarray
    ring: np.ndarray
    links: np.ndarray


(
    STARTED,  # 0 until the first row's ordinal is known
    NEXT,  # ordinal of the next row to take
    FIRST,  # first row of the window being answered or last answered
    ANSWERED,  # end of the last window answered
    TOP_OLDEST,  # least ordinal among the last answer (NOBODY: no rows; -1: look again)
    WANT,  # 1: the kernel stopped because an array is too small
    WINDOW_ROWS,  # n, as of the current partition's beginning
    STEP_ROWS,  # s, likewise
    STEP_NUMBER,  # time windows: window number and NEXT when STEP_ROWS was last measured
    STEP_NEXT,
    FRONT_BEGIN,  # P_0: its rows, as far as in the window, are [FIRST, FRONT_END)
    FRONT_END,
    FRONT_KTH,  # ordinal of o_0^k
    FRONT_COUNT,  # rows in front_score
    FRONT_FORMED,  # 1: all its other rows that matter are in the heap's stacks
    FRONT_FROM,  # the oldest row the stacks may hold
    FRONT_UNIT,  # number of the unit that holds FIRST, or of the front's first
    FRONT_UNIT_STOP,  # number after the front's last unit
    FRONT_MEANINGFUL,  # |M_0|: rows in the heap's stacks
    SECOND_PHASE,  # number of the last unit whose own S-AVL was formed
    HEAP_COUNT,
    PARTITION,  # number of the oldest partition in the queue
    PARTITION_COUNT,
    UNIT,  # number of the next unit to finish
    CANDIDATES,
    CURRENT_BEGIN,  # P_m: finished units are [CURRENT_BEGIN, UNIT_BEGIN)
    CURRENT_COUNT,
    CURRENT_UNIT,  # number of its first unit
    UNIT_BEGIN,  # the unfinished unit is [UNIT_BEGIN, NEXT)
    UNIT_COUNT,
    UNIT_SORTED,
    UNIT_FRESH,  # 1: tau is being initialized in this unit
    UNIT_LENGTH,  # l_min (equal policy: the size of a partition)
    LARGEST,  # l_max
    BUILDING,  # begin of the partition that build AHEAD belongs to, or -1
    HEAD,
) = range(36)

(
    TAU,  # rows of the unfinished unit below it are not in the buffer
    FRONT_KTH_SCORE,  # score of o_0^k
    LEVELS,
) = range(3)

PARTITION_BEGIN, PARTITION_END, PARTITION_KTH, PARTITION_WHOLE, PARTITION_UNIT, PARTITION_UNIT_STOP, PARTITION_FIELDS = range(7)
# PARTITION_KTH: ordinal of o_i^k; PARTITION_WHOLE: 1 when P_i^k holds all rows with a score

UNIT_START, UNIT_STOP, UNIT_IS_K, UNIT_KEPT, UNIT_FIELDS = range(5)  # UNIT_KEPT: |U_v^k|

NOW, AHEAD, WAITING = np.arange(3)  # builds: the front's; proactive formation's; from here one a partition (eager)
# (NumPy integers: numba would compile every function that takes a build once for each literal)
BUILD_STACKS, BUILD_LIMIT, BUILD_PUSHED, BUILD_POSITION, BUILD_FIELDS = range(5)
# BUILD_LIMIT: k - rho stacks at most; BUILD_POSITION: rows from here on are scanned

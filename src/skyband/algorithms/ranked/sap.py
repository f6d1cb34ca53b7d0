"""SAP: the window in partitions that fit the data, each with its own top-k (Zhu et al., TKDE 2017).

The window is cut into partitions. Of each, only the k best rows are candidates until it reaches the front of the
window and begins to lose them; only then may its other rows matter, and only those that fewer than k newer rows
outrank. So one partition at a time is looked at closely, and mostly not even that one: when k candidates of later
partitions outrank a partition's k-th best (its *group dominance number* rho is k or more), nothing else of it counts.

Policies for where a partition ends: `equal` (4.1), `dynamic` (4.2: grows by units of l_min rows while a rank-sum test
finds its best rows not larger than the window's, up to l_max), `enhanced` (4.3, 5.2: also labels units by a threshold
tau, so that most are never scanned). Forming the front's meaningful objects M_0: `delayed` until an answer needs them,
`proactive` (5.1, amortized, while the partition before it slides out), `eager` (6.2, when the partition is closed).
Kept in an S-AVL (`savl`, 5.1) or in one sorted list (`sorted`, algorithm 1 without S-AVL).

Glossary: n window, s slide, P_i partition i (P_0 front, P_m current), P_i^k its best k, o_i^k the worst of them,
U_v unit, C candidates, M_0 meaningful objects, F_theta the k-th best row after the front, eta, zeta*: theorems 1, 3.

Guarantee: exact. Cost: one vectorized comparison a row and O(log k) for a row that may matter; O(|C| + k) a partition;
O(k) a window whose answer changes. Memory: 8 bytes a row of the window (12 once stacks were needed) and
O(k sqrt(n / max(s, k))) candidates; where slides are long, only the best k rows of each are seen (`panes_first`).

Deviations, besides those of `kernels.sap.partition` and `kernels.sap.savl`: delayed formation waits until an answer
comes to o_0^k, which is later than "P_0 is at the front and rho < k"; candidates of the front leave C for its own list;
a partition the window has reached is closed early (small or bursty windows); time windows (appendix A) take n and s
from the rows seen when a partition begins.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from skyband.algorithms.contract import Plan, Ranked
from skyband.algorithms.ranked.panes_first import PanesFirst, has_long_slides
from skyband.algorithms.ranked.sap_check import check
from skyband.errors import QueryError
from skyband.kernels.sap import state as at
from skyband.kernels.sap.ranksum import critical_values, eta_of, zeta_max, zeta_star
from skyband.kernels.sap.run import forget_all, run
from skyband.kernels.sap.state import Rules, SapState
from skyband.kernels.tables import Panes, Results, Windows
from skyband.layout import grows

_POLICIES = {"equal": at.EQUAL, "dynamic": at.DYNAMIC, "enhanced": at.ENHANCED}
_FORMATIONS = {"delayed": at.DELAYED, "proactive": at.PROACTIVE, "eager": at.EAGER}
_MEANINGFUL = {"savl": at.SAVL, "sorted": at.SORTED}
_SMALLEST_RING = 64
_RING_AHEAD = 16  # times the rows to hold, up to a whole window: rows are seldom moved, and a window may never be full
_FEWEST_RECORDS = 4


def _choice(what: str, value: str, known: dict[str, int]) -> int:
    if value not in known:
        raise QueryError(f"SAP {what} {value!r} is unknown; choose one of: {', '.join(known)}")
    return known[value]


class SAP(Ranked):
    """One top-k query over partitions of its window."""

    growing = grows(
        "state",
        ring=("ring",),
        links=("links",),
        candidates=("candidate_score", "candidate_ordinal", "candidate_dominators"),
        builds=("stack_score", "stack_ordinal", "builds", "bars"),
        partitions=("partitions", "partition_kth"),
        units=("units", "unit_best", "unit_top_score", "unit_top_ordinal"),
    )

    @classmethod
    def for_plan(cls, plan: Plan, **options: Any) -> Ranked:
        """Behind panes where slides are long: no raw rows are kept then."""
        if has_long_slides(plan):
            return PanesFirst(plan, lambda reduced: cls(reduced, **options))
        return cls(plan, **options)

    def __init__(
        self,
        plan: Plan,
        policy: str = "enhanced",
        formation: str = "delayed",
        meaningful: str = "savl",
        partitions: int | None = None,
    ) -> None:
        if len(plan.ks) != 1:
            raise QueryError(f"SAP answers one query, got {len(plan.ks)}; build one SAP for each")
        if partitions is not None and partitions < 1:
            raise QueryError(f"SAP partitions must be at least 1, got {partitions}")
        k = plan.ks[0]
        self._rules = Rules(
            k=k,
            policy=_choice("policy", policy, _POLICIES),
            formation=_choice("formation", formation, _FORMATIONS),
            meaningful=_choice("meaningful", meaningful, _MEANINGFUL),
            size=plan.sizes[0] if plan.sizes else 0,
            slide=plan.slides[0] if plan.slides else 0,
            partitions=partitions or 0,
            keep=math.ceil(zeta_star(k)),
            eta=eta_of(k),
            critical=critical_values(k),
        )
        self._buffer = max(2 * self._rules.keep, math.ceil(zeta_max(k)))
        super().__init__(plan)

    def _made_for(self) -> dict[str, Any]:
        chosen = ("policy", "formation", "meaningful", "partitions")
        return super()._made_for() | {name: int(getattr(self._rules, name)) for name in chosen}

    def _empty(self) -> SapState:
        k, records = self._rules.k, _FEWEST_RECORDS
        builds = int(at.WAITING) + (records if self._rules.formation == at.EAGER else 0)
        linked = self._rules.formation != at.DELAYED
        candidates = (records + 1) * k

        def rows(*shape: int) -> tuple[np.ndarray, np.ndarray]:
            return np.zeros(shape), np.zeros(shape, np.int64)

        state = SapState(
            np.zeros(at.HEAD, np.int64),
            np.zeros(at.LEVELS),
            np.zeros(_SMALLEST_RING),
            np.zeros(_SMALLEST_RING if linked else 0, np.int32),
            *rows(candidates),
            np.zeros(candidates, np.int64),
            *rows(2 * k),
            *rows(k),
            *rows(self._buffer),
            *rows(2 * k),
            *rows(builds, k),
            np.zeros((builds, at.BUILD_FIELDS), np.int64),
            np.zeros(builds),
            np.zeros((records, at.PARTITION_FIELDS), np.int64),
            np.zeros(records),
            np.zeros((records, at.UNIT_FIELDS), np.int64),
            np.zeros(records),
            *rows(records, k),
        )
        state.head[at.TOP_OLDEST] = state.head[at.STEP_NUMBER] = -1
        state.head[at.STEP_ROWS] = 1
        return state

    def _prepare(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None) -> None:
        head = self._state.head
        if not head[at.STARTED]:
            forget_all(self._state, begin)
            head[at.STARTED], head[at.ANSWERED] = 1, begin
        if len(windows.first):
            self._make_ring_hold(self._oldest_needed(int(windows.first[0])), begin + len(scores))

    def _oldest_needed(self, first: int) -> int:
        """The oldest row that a window or a stack still refers to."""
        state = self._state
        head = state.head
        if first < head[at.FRONT_END] and head[at.HEAP_COUNT]:
            return min(first, int(head[at.FRONT_FROM]))
        if self._rules.formation != at.DELAYED and head[at.PARTITION_COUNT]:
            row = head[at.PARTITION] % len(state.partitions)
            return min(first, int(state.partitions[row, at.PARTITION_BEGIN]))
        return first

    def _make_ring_hold(self, oldest: int, stop: int) -> None:
        state = self._state
        before = room = len(state.ring)
        if room >= stop - oldest:
            return
        held, full = stop - oldest, self._rules.size + stop - int(state.head[at.NEXT])
        while room < max(held, min(full, _RING_AHEAD * held)):
            room *= 2
        ring, links = np.zeros(room), np.zeros(room if len(state.links) else 0, np.int32)
        begin, end = max(oldest, int(state.head[at.NEXT]) - before), int(state.head[at.NEXT])
        while begin < end:
            old, new = begin & (before - 1), begin & (room - 1)
            run = min(end - begin, before - old, room - new)
            ring[new : new + run] = state.ring[old : old + run]
            if len(links):
                links[new : new + run] = state.links[old : old + run]
            begin += run
        self._state = state._replace(ring=ring, links=links)

    def _make_room(self) -> None:
        """Double whatever table the kernel found full."""
        state, head, k = self._state, self._state.head, self._rules.k
        grown: dict[str, np.ndarray] = {}
        if head[at.CANDIDATES] + 2 * k > len(state.candidate_score):
            for name in ("candidate_score", "candidate_ordinal", "candidate_dominators"):
                column = getattr(state, name)
                grown[name] = np.concatenate([column, np.zeros_like(column)])
        if head[at.PARTITION_COUNT] + 2 > len(state.partitions):
            numbers = np.arange(head[at.PARTITION], head[at.PARTITION] + head[at.PARTITION_COUNT])
            rows = len(state.partitions)
            for name in ("partitions", "partition_kth"):
                grown[name] = _spread(getattr(state, name), 0, numbers, rows)
            if self._rules.formation == at.EAGER:
                for name in ("stack_score", "stack_ordinal", "builds", "bars"):
                    grown[name] = _spread(getattr(state, name), int(at.WAITING), numbers, rows)
        if head[at.UNIT] - head[at.FRONT_UNIT] + 2 > len(state.units):
            numbers = np.arange(head[at.FRONT_UNIT], head[at.UNIT])
            for name in ("units", "unit_best", "unit_top_score", "unit_top_ordinal"):
                grown[name] = _spread(getattr(state, name), 0, numbers, len(state.units))
        if not grown:
            grown["links"] = np.zeros(len(state.ring), np.int32)
        head[at.WANT] = 0
        self._state = state._replace(**grown)

    def _run(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None, start: int, results: Results) -> int:
        while True:
            stop = int(run(self._state, self._rules, self.tops, begin, scores, windows, start, results))
            if not self._state.head[at.WANT]:
                return stop
            self._make_room()
            if stop > start:
                return stop

    @property
    def candidates(self) -> int:
        """C and M_0, as the paper counts them: the lists of the partition in progress join C when it is complete."""
        head = self._state.head
        waiting = int(self._state.builds[:, at.BUILD_PUSHED].sum())
        listed = int((self._state.front_ordinal[: head[at.FRONT_COUNT]] >= head[at.FIRST]).sum())
        return waiting + listed + int(head[at.CANDIDATES]) + int(head[at.FRONT_MEANINGFUL])

    def check_invariants(self) -> None:
        check(self._state, self._rules)


def _spread(table: np.ndarray, fixed: int, numbers: np.ndarray, rows: int) -> np.ndarray:
    """A table with twice the rows: numbered records move to number % rows; the first `fixed` rows stay."""
    wider = np.zeros((fixed + 2 * rows, *table.shape[1:]), table.dtype)
    wider[:fixed] = table[:fixed]
    wider[fixed + numbers % (2 * rows)] = table[fixed + numbers % rows]
    return wider

"""What must hold of SAP's state between two calls, asserted by recounting from the raw rows.

Plain NumPy over the ring; the state is shown in the message of a broken assertion.
"""

from __future__ import annotations

import numpy as np

from skyband.kernels.sap import state as at
from skyband.kernels.sap.state import Rules, SapState

Row = tuple[float, int]  # ranks as Python compares tuples: by score, then the newer


class _View:
    """The state, with its lists as Python lists of rows."""

    def __init__(self, state: SapState, rules: Rules) -> None:
        self.state, self.rules, self.head = state, rules, state.head.tolist()

    def listed(self, name: str, count: int) -> list[Row]:
        scores, ordinals = getattr(self.state, f"{name}_score"), getattr(self.state, f"{name}_ordinal")
        return list(zip(scores[:count].tolist(), ordinals[:count].tolist(), strict=True))

    def rows(self, begin: int, stop: int) -> list[Row]:
        """The rows with a score of [begin, stop), best first."""
        ordinals = np.arange(begin, stop)
        scores = self.state.ring[ordinals & (len(self.state.ring) - 1)]
        return sorted(((s, o) for s, o in zip(scores.tolist(), ordinals.tolist(), strict=True) if s == s), reverse=True)

    def stacked(self) -> list[Row]:
        """The rows in the front's stacks."""
        mask, found = len(self.state.ring) - 1, []
        for top in self.state.heap_ordinal[: self.head[at.HEAP_COUNT]].tolist():
            step = 1
            while step:
                found.append((float(self.state.ring[top & mask]), top))
                step = int(self.state.links[top & mask])
                top += step
        return found


def check(state: SapState, rules: Rules) -> None:
    """AssertionError, with the state, when something does not hold."""
    view = _View(state, rules)
    _check_lists(view)
    _check_partitions(view)
    _check_candidates(view)
    _check_front(view)


def _check_lists(view: _View) -> None:
    head = view.head
    for name, count in (
        ("candidate", head[at.CANDIDATES]),
        ("front", head[at.FRONT_COUNT]),
        ("current", head[at.CURRENT_COUNT]),
        ("unit", head[at.UNIT_SORTED]),
    ):
        listed = view.listed(name, count)
        assert listed == sorted(listed, reverse=True), (f"{name} list is not sorted", listed, view.state)
    heap = view.listed("heap", head[at.HEAP_COUNT])
    for place in range(1, len(heap)):
        assert heap[place] < heap[(place - 1) // 2], ("heap order is broken", heap, view.state)


def _check_partitions(view: _View) -> None:
    """Partitions lie side by side from the front to the current one; each knows its best rows."""
    head, state, k = view.head, view.state, view.rules.k
    begin = head[at.FRONT_END]
    for number in range(head[at.PARTITION], head[at.PARTITION] + head[at.PARTITION_COUNT]):
        row = number % len(state.partitions)
        record = state.partitions[row].tolist()
        assert record[at.PARTITION_BEGIN] == begin < record[at.PARTITION_END], ("partitions are apart", record, state)
        begin = record[at.PARTITION_END]
        if record[at.PARTITION_BEGIN] >= head[at.FIRST] and not record[at.PARTITION_WHOLE]:
            kth = view.rows(record[at.PARTITION_BEGIN], begin)[k - 1]
            assert kth == (state.partition_kth[row], record[at.PARTITION_KTH]), ("a partition's k-th best is wrong", kth, state)
        numbers = np.arange(record[at.PARTITION_UNIT], record[at.PARTITION_UNIT_STOP])
        units = state.units[numbers % len(state.units)].tolist()
        if units:
            borders = [unit[at.UNIT_START] for unit in units] + [begin]
            stops = [unit[at.UNIT_STOP] for unit in units]
            assert borders[0] == record[at.PARTITION_BEGIN], ("units do not begin with their partition", units, state)
            assert borders[1:] == stops, ("units do not fill their partition", units, state)
    assert begin == head[at.CURRENT_BEGIN] <= head[at.UNIT_BEGIN] <= head[at.NEXT], ("current partition is elsewhere", state)
    first = head[at.FIRST]
    if head[at.CURRENT_BEGIN] >= first:
        current = view.rows(head[at.CURRENT_BEGIN], head[at.UNIT_BEGIN])[:k]
        assert view.listed("current", head[at.CURRENT_COUNT]) == current, ("current partition's best are wrong", current, state)
    if head[at.UNIT_BEGIN] >= first:
        unit = view.rows(head[at.UNIT_BEGIN], head[at.NEXT])
        known = [row for row in unit if row[0] >= state.levels[at.TAU]][:k]
        held = sorted(view.listed("unit", head[at.UNIT_COUNT]), reverse=True)[: len(known)]
        assert held == known, ("the unfinished unit misses rows above tau", known, state)


def _check_candidates(view: _View) -> None:
    """C holds every row of a waiting partition's best that fewer than k rows of later partitions' best outrank."""
    head, state, k = view.head, view.state, view.rules.k
    first = head[at.FIRST]
    expected: dict[Row, int] = {}
    for number in range(head[at.PARTITION], head[at.PARTITION] + head[at.PARTITION_COUNT]):
        begin, stop = state.partitions[number % len(state.partitions), : at.PARTITION_END + 1].tolist()
        if begin < first:  # it lost rows since its best were taken
            return
        best = view.rows(begin, stop)[:k]
        expected = {row: above + sum(new > row for new in best) for row, above in expected.items()}
        expected = {row: above for row, above in expected.items() if above < k} | dict.fromkeys(best, 0)
    held = dict(
        zip(
            view.listed("candidate", head[at.CANDIDATES]),
            state.candidate_dominators[: head[at.CANDIDATES]].tolist(),
            strict=True,
        )
    )
    assert held == expected, ("candidates or their dominators are wrong", expected, state)


def _check_front(view: _View) -> None:
    """No row of the front that fewer than k newer rows outrank is missing, once its meaningful objects are formed."""
    head, state, k = view.head, view.state, view.rules.k
    first, end = head[at.FIRST], head[at.FRONT_END]
    if first >= end:
        return
    front, newer = view.rows(first, end), view.rows(end, head[at.NEXT])
    held = set(view.listed("front", head[at.FRONT_COUNT]))
    if head[at.FRONT_FORMED]:
        stacked = view.stacked()
        assert len(stacked) == len(set(stacked)) == head[at.FRONT_MEANINGFUL], ("stacks hold a row twice", stacked, state)
        held |= set(stacked)
    for row in front:
        together = _slide_begin(view.rules, row[1])  # rows of one slide leave together: there age does not count
        dominators = sum(other > row for other in newer[:k]) + sum(other > row and other[1] >= together for other in front)
        known = head[at.FRONT_FORMED] or row >= (state.levels[at.FRONT_KTH_SCORE], head[at.FRONT_KTH])
        if dominators < k and known and not _second_phase_will_bring(view, row):
            assert row in held, ("a row of the front that may rank is missing", row, state)


def _slide_begin(rules: Rules, ordinal: int) -> int:
    if rules.slide == 0:
        return ordinal
    odd = -rules.size % rules.slide
    return max(ordinal // rules.slide * rules.slide, (ordinal - odd) // rules.slide * rules.slide + odd)


def _second_phase_will_bring(view: _View, row: Row) -> bool:
    """A row below its k-unit's best k, whose unit the window has not been seen to reach."""
    head, state, k = view.head, view.state, view.rules.k
    for number in range(head[at.FRONT_UNIT], head[at.FRONT_UNIT_STOP]):
        place = number % len(state.units)
        start, stop, is_k, kept = state.units[place].tolist()
        if start <= row[1] < stop and is_k and number > head[at.SECOND_PHASE] and kept == k:
            return row < (state.unit_top_score[place, k - 1], state.unit_top_ordinal[place, k - 1])
    return False

"""Sorted lists: keep every tuple of the window, each stream's values sorted, and a view of the best objects.

The view holds up to 2 k + 16 objects; whoever changes is put where it belongs in it, or left out if it ranks below all that
was ever turned away. When fewer than k are left it is filled again by the threshold algorithm: the lists are read from their
largest values on, every object met is looked up in all of them, until no other can rank above the worst of the view.

Paper: CIKM09 3.1, with the views of Yi et al.; repeated occurrences (section 5) by sum, maximum or the latest. Guarantee:
exact, for any range of values and any number of repetitions. Cost: O(log n + 128) a tuple, a refill now and then; where an
object is repeated in a stream, O(occurrences / 16) when one of them leaves if they are added up, O(occurrences) when the
largest does if that is asked for. Memory: every tuple of the window and the lists.

Repeated values are added up from the oldest tuple on, and rounding depends on where that begins: what leaves cannot be taken
off a sum again. So the sums that begin with each of the 16 oldest tuples are made in one pass over all of an object's in a
stream, later tuples are added to each, and the next pass is due when 16 have left.

Deviations: lists are runs of at most 128 entries; an object has one entry a stream, its aggregate, which is replaced when it
changes. The algorithm reads on while the worst of the view equals the threshold, as a newer object may tie.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skyband.algorithms.across.contract import Across, AcrossPlan, grown, more_objects
from skyband.kernels.across import lists as kernel
from skyband.kernels.across.sorted_blocks import more_blocks, no_blocks
from skyband.kernels.across.tables import ADD, MAX, MEAN, Answers, Tuples, no_ranking
from skyband.kernels.tables import Windows
from skyband.layout import grows

_RING = 64
_LISTED = ("obj", "stream", "value", "next", "since")
_BY_OBJECT = ("front", "back", "ahead", "whole")


class _Shown(NamedTuple):
    shown: np.ndarray


class SortedLists(Across):
    """The window's tuples, one sorted list a stream, one view."""

    growing = (
        grows("lists", ring=_LISTED, objects=_BY_OBJECT)
        | grows("blocks", blocks=("value", "obj", "size", "free"))
        | {"blocks.order": "* blocks", "shown.shown": "objects"}
    )

    def __init__(self, plan: AcrossPlan, view: int | None = None) -> None:
        super().__init__(plan)
        streams, room = plan.streams, len(self.objects.last)
        self.view = no_ranking(max(2 * plan.k + 16 if view is None else view, plan.k))
        self.blocks = no_blocks(streams, 4 * streams + 4)
        self.lists = kernel.Lists(
            obj=np.zeros(_RING, np.int64),
            stream=np.zeros(_RING, np.int64),
            value=np.zeros(_RING),
            next=np.zeros(_RING, np.int64),
            since=np.zeros(_RING),
            front=np.full((room, streams), -1, np.int64),
            back=np.full((room, streams), -1, np.int64),
            ahead=np.zeros((room, streams), np.int64),
            whole=np.zeros((room, streams)),
            cursor=np.zeros((2, streams), np.int64),
            reached=np.zeros((1, streams)),
            sums=np.zeros(kernel.LOOK),
            floor=np.array([-np.inf]),
            marks=np.zeros(kernel.MARKS, np.int64),
        )
        self.lists.marks[[kernel.STALE, kernel.FLOOR_LAST]] = 1, -1
        self.shown = np.zeros(room, np.uint8)  # objects of the last answer

    def _begin(self, ordinal: int) -> None:
        self.lists.marks[[kernel.LEFT, kernel.TAKEN]] = ordinal

    def _more_objects(self) -> None:
        self.objects = more_objects(self.objects)
        room = len(self.objects.last)
        self.lists = grown(self.lists, dict.fromkeys(_BY_OBJECT, 0), room, {"front": -1, "back": -1})
        self.shown = np.concatenate([self.shown, np.zeros(room - len(self.shown), np.uint8)])

    def _run(self, begin: int, tuples: Tuples, windows: Windows, start: int, used: int, answers: Answers) -> tuple[int, int]:
        stop, used = kernel.run(
            self.lists, self.blocks, self.objects, self.view, self.top, tuples, begin, windows, start, used, answers,
            self.rule, self.shown,
        )  # fmt: skip
        return int(stop), int(used)

    def _take(self, begin: int, tuples: Tuples, end: int) -> bool:
        return bool(kernel.take(self.lists, self.blocks, self.objects, self.view, tuples, begin, end, self.rule))

    def _make_way(self, begin: int, tuples: Tuples) -> None:
        if self.blocks.spare[0] < 2:
            self.blocks = more_blocks(self.blocks)
        left, taken = (int(self.lists.marks[mark]) for mark in (kernel.LEFT, kernel.TAKEN))
        ring = len(self.lists.obj)
        if taken - left == ring:
            held = np.arange(left, taken)
            columns = {}
            for name in _LISTED:
                old = getattr(self.lists, name)
                columns[name] = np.zeros(2 * ring, old.dtype)
                columns[name][held & (2 * ring - 1)] = old[held & (ring - 1)]
            self.lists = self.lists._replace(**columns)

    def _reach(self) -> int:
        return int(self.lists.marks[kernel.LEFT])

    @property
    def candidates(self) -> int:
        return int(self.lists.marks[kernel.COUNTING])

    @property
    def repeated(self) -> int:
        return int(self.lists.marks[kernel.REPEATED])

    def figures(self) -> dict[str, Any]:
        marks = self.lists.marks
        return super().figures() | {"refills": int(marks[kernel.REFILLS]), "entries_read": int(marks[kernel.READ])}

    def _parts(self) -> dict[str, Any]:
        shown = _Shown(self.shown)
        parts = {"lists": self.lists, "blocks": self.blocks, "objects": self.objects, "view": self.view, "top": self.top}
        return parts | {"shown": shown}

    def _set_parts(self, parts: dict[str, Any]) -> None:
        self.lists, self.blocks, self.objects = parts["lists"], parts["blocks"], parts["objects"]
        self.view, self.top, self.shown = parts["view"], parts["top"], parts["shown"].shown

    def check_invariants(self) -> None:
        lists, marks, objects = self.lists, self.lists.marks, self.objects
        left, taken, mask = int(marks[kernel.LEFT]), int(marks[kernel.TAKEN]), len(lists.obj) - 1
        live = [at for at in range(left, taken) if lists.stream[at & mask] >= 0]
        shown = f"tuples {[(at, int(lists.obj[at & mask]), int(lists.stream[at & mask])) for at in live]}"
        assert len(live) == marks[kernel.COUNTING], f"tuples miscounted: {shown}"
        chains: dict[tuple[int, int], list[int]] = {}
        for at in live:
            chains.setdefault((int(lists.obj[at & mask]), int(lists.stream[at & mask])), []).append(at)
        for (obj, stream), chain in chains.items():
            assert lists.front[obj, stream] == chain[0] and lists.back[obj, stream] == chain[-1], f"{obj, stream}: {shown}"
            linked = [int(lists.next[at & mask]) for at in chain]
            assert linked == [*chain[1:], -1], f"{obj, stream} linked as {linked}: {shown}"
            if self.plan.aggregate == ADD:
                self._check_sums(obj, stream, chain)
        present = {(int(obj), int(stream)) for obj, stream in zip(*np.nonzero(lists.front >= 0), strict=True)}
        assert present == set(chains), f"{present ^ set(chains)} in vain or not: {shown}"
        assert not lists.whole[lists.front < 0].any(), f"a value without tuples: {lists.whole}"
        for stream in range(self.plan.streams):
            entries = [
                (float(self.blocks.value[block, at]), int(self.blocks.obj[block, at]))
                for block in self.blocks.order[stream, : self.blocks.used[stream]]
                for at in range(int(self.blocks.size[block]))
            ]
            wanted = sorted((float(lists.whole[obj, stream]), obj) for obj, x in chains if x == stream)
            assert entries == wanted, f"list {stream} is {entries}, should be {wanted}"
        size = int(self.view.size[0])
        in_view = self.view.obj[:size].tolist()
        assert len(set(in_view)) == size and set(in_view) == set(np.flatnonzero(objects.ranked).tolist()), f"view {in_view}"
        keys = [(float(self.view.score[at]), int(objects.last[self.view.obj[at]])) for at in range(size)]
        assert keys == sorted(keys, reverse=True), f"the view is out of order: {keys}"
        floor = (float(lists.floor[0]), int(marks[kernel.FLOOR_LAST]))
        for obj in {obj for obj, _ in chains} - set(in_view):
            key = (self._score(obj), int(objects.last[obj]))
            assert key <= floor, f"object {obj} {key} ranks above the floor {floor}, and is not in the view {keys}"

    def _check_sums(self, obj: int, stream: int, chain: list[int]) -> None:
        """What follows the oldest tuples there is what adding it up gives, and the first of it is the whole."""
        lists, mask = self.lists, len(self.lists.obj) - 1
        ahead = int(lists.ahead[obj, stream])
        assert 1 <= ahead <= len(chain), f"{obj, stream} looks {ahead} ahead in {chain}"
        for number, at in enumerate(chain[:ahead]):
            total = float(lists.value[at & mask])
            for later in chain[number + 1 :]:
                total += float(lists.value[later & mask])
            assert total == lists.since[at & mask], f"{obj, stream} from {at} on: {lists.since[at & mask]}, should be {total}"
        assert lists.whole[obj, stream] == lists.since[chain[0] & mask], f"{obj, stream} is {lists.whole[obj, stream]}"

    def _score(self, obj: int) -> float:
        row = self.lists.whole[obj].tolist()
        if self.plan.combine == MAX:
            return max(row)
        total = 0.0
        for value in row:
            total += value
        return total / len(row) if self.plan.combine == MEAN else total

"""Very many queries over one score: dealt to several shared structures, which work side by side on the cores there are.

A query's answers depend on no other query, so that each part is exact for itself; what all parts do is read the rows, which is
little beside answering windows. The number of parts depends on the queries alone: a saved state can be taken up on any
machine.

While the answers of one round of windows are told, the next two are worked on: a part that is done with one goes on with the
other, whatever the other parts are at.

Paper, guarantee: those of `shared`. Cost: that of `shared`, divided by the cores; a part more is one vectorized comparison a
row more. Memory: that of `shared`, the rows of the widest window once a part, and the answers of three rounds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from skyband import threads
from skyband.algorithms.contract import UNKNOWN_CEILINGS, Answers, Plan, Ranked, read_only
from skyband.algorithms.ranked.shared import SharedViews
from skyband.kernels.parts import end_of_round, own_windows, put_in_order
from skyband.kernels.tables import NO_RANKS, Ceilings, Panes, Results, Windows
from skyband.layout import Layout, check, check_built_alike, extents_of, fields, reading, whole_number
from skyband.state import pack, unpack

QUERIES_A_PART = 50  # fewer are not worth reading all rows once more
MOST_PARTS = 8
_AHEAD = 2  # rounds worked on while one is told
_ROOM = 1 << 19  # places for the answers of one round
_ROOM_FOR_CHANGES = 1 << 21  # a few of them are used: answers are at most so long, and mostly some rows


def parts_for(queries: int) -> int:
    """Into how many parts so many queries are dealt: a power of two."""
    return min(MOST_PARTS, 1 << (max(1, queries // QUERIES_A_PART).bit_length() - 1))


class SharedParts(Ranked):
    """Queries dealt to several `SharedViews`."""

    shares = True
    tells_changes = True

    def __init__(self, plan: Plan) -> None:
        self._count = parts_for(len(plan.ks))
        self._queries = self._dealt(plan)
        self._part_of = np.empty(len(plan.ks), np.int64)
        self._number = np.empty(len(plan.ks), np.int64)  # of a query within its part
        for part, queries in enumerate(self._queries):
            self._part_of[queries], self._number[queries] = part, np.arange(len(queries))
        self.parts = [SharedViews(_chosen(plan, queries)) for queries in self._queries]
        self._rooms: dict[int, list[tuple[np.ndarray, ...]]] = {}  # for the answers of some rounds, by their places
        super().__init__(plan)

    def _dealt(self, plan: Plan) -> list[np.ndarray]:
        """The queries of each part. The smaller the slide the more windows: those alike are dealt in turn, there and back."""
        order = np.argsort(plan.slides, kind="stable") if plan.slides is not None else np.arange(len(plan.ks))
        turn = np.arange(len(order)) % (2 * self._count)
        part = np.minimum(turn, 2 * self._count - 1 - turn)
        return [np.sort(order[part == number]) for number in range(self._count)]

    def _empty(self) -> tuple[()]:
        """The parts remember everything, and forget it by themselves when all rows have left."""
        return ()

    def advance(
        self,
        begin: int,
        scores: np.ndarray,
        windows: Windows,
        panes: Panes | None = None,
        ceilings: Ceilings = UNKNOWN_CEILINGS,
        changes: np.ndarray | None = None,
    ) -> Iterator[Answers]:
        scores = read_only(scores)
        told = np.zeros(len(self.ks), bool) if changes is None else changes
        needs = np.where(told, 2 * self.ks, self.ks)
        room = max((_ROOM_FOR_CHANGES if told.all() else _ROOM) // self._count, 2 * int(needs.max()))
        turns = [_Turn(self, part, windows, begin, scores, ceilings, told) for part in range(self._count)]
        threads.begin([turn.prepare for turn in turns])()
        asked = len(windows.query)
        ends, sizes = np.empty(asked, np.int64), np.empty(asked, np.int64)
        rooms = self._rooms_for(self._count * room)
        used = np.empty(self._count, np.int64)

        under_way: deque[tuple[int, int, Results, threads.Begun]] = deque()
        start = number = 0

        def work_ahead() -> None:
            nonlocal start, number
            while start < asked and len(under_way) < _AHEAD:
                stop = int(end_of_round(windows, self._part_of, needs, start, room - int(needs.max()), used))
                score, ordinal, rank = rooms[number % len(rooms)]
                results = Results(ends, sizes, score, ordinal, NO_RANKS if changes is None else rank)
                tasks = [partial(turn.answer, start, stop, results, at * room, room) for at, turn in enumerate(turns)]
                before = under_way[-1][-1] if under_way else None
                under_way.append((start, stop, results, threads.begin(tasks, before)))
                start, number = stop, number + 1

        try:
            work_ahead()
            while under_way:
                first, stop, results, wait = under_way.popleft()
                wait()
                work_ahead()
                if not under_way:
                    self._finish(begin + len(scores))
                yield Answers(first, stop, results)
        finally:
            for *_, begun in under_way:
                begun.abandon()

    def _rooms_for(self, places: int) -> list[tuple[np.ndarray, ...]]:
        """Scores, ordinals and ranks of all rounds that are worked on or told; kept, because memory costs when it is first
        written to."""
        if places not in self._rooms:
            self._rooms = {places: [(np.empty(places), *np.empty((2, places), np.int64)) for _ in range(_AHEAD + 1)]}
        return self._rooms[places]

    def _finish(self, end: int) -> None:
        """All rows are taken: the answers of the parts are those of the whole."""
        self.next = end
        for queries, part in zip(self._queries, self.parts, strict=True):
            part.next = end
            width = part.tops.score.shape[1]
            self.tops.score[queries, :width], self.tops.ordinal[queries, :width] = part.tops.score, part.tops.ordinal
            self.tops.count[queries] = part.tops.count

    def _run(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None, start: int, results: Results) -> int:
        raise AssertionError("the parts answer")

    @property
    def candidates(self) -> int:
        return sum(part.candidates for part in self.parts)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts) + sum(array.nbytes for array in self.tops)

    def check_invariants(self) -> None:
        for part in self.parts:
            part.check_invariants()
            assert part.next == self.next, (part.next, self.next)

    def snapshot(self) -> bytes:
        parts = {f"part.{at}": np.frombuffer(part.snapshot(), np.uint8) for at, part in enumerate(self.parts)}
        header = {"next": self.next, "made_for": self._made_for(), "extents": extents_of(self.layout(), parts)}
        return pack(type(self).__name__, header, parts)

    def layout(self) -> Layout:
        return fields({f"part.{at}": f"uint8 {at}-bytes" for at in range(self._count)})

    def restore(self, data: bytes) -> None:
        header, arrays = unpack(type(self).__name__, data)
        with reading(type(self).__name__):
            check_built_alike(header["made_for"], self._made_for())
            check(self.layout(), arrays, header["extents"])
            end = whole_number(header, "next")
            for at, part in enumerate(self.parts):
                part.restore(arrays[f"part.{at}"].tobytes())
        self._finish(end)


class _Turn:
    """What one part does while rows are taken."""

    def __init__(
        self,
        whole: SharedParts,
        part: int,
        windows: Windows,
        begin: int,
        scores: np.ndarray,
        ceilings: Ceilings,
        told: np.ndarray,
    ) -> None:
        self.whole, self.part, self.windows = whole, part, windows
        self.rows = (begin, scores)
        self.ceilings, self.told = ceilings, told[whole._queries[part]]

    def prepare(self) -> None:
        """Find the part's windows and make room for its rows."""
        whole, windows = self.whole, self.windows
        places = np.empty(len(windows.query) + 1, np.int64)
        self.places = places[: own_windows(windows.query, whole._part_of, self.part, places)]
        own = [column[self.places] for column in windows]
        own[0] = whole._number[own[0]]
        self.own = Windows(*own)
        whole.parts[self.part].start(*self.rows, self.own, None, self.ceilings, self.told)

    def answer(self, start: int, stop: int, results: Results, offset: int, room: int) -> None:
        """Answer the part's windows among [start, stop); those that end the rows take all that are left."""
        first, last = np.searchsorted(self.places, (start, stop))
        answered = Windows(*[column[first:last] for column in self.own])
        begins, sizes = np.empty((2, last - first), np.int64)
        rooms = [column[offset : offset + room] if len(column) else column for column in results[2:]]
        own = Results(begins, sizes, *rooms)
        to_the_end = stop == len(self.windows.query)
        done = self.whole.parts[self.part].answer(*self.rows, answered, own, take_all=to_the_end)
        assert done == last - first, (done, first, last)
        put_in_order(results, self.places[first:last], own.begin, own.size, offset)


def _chosen(plan: Plan, queries: np.ndarray) -> Plan:
    """The plan of some of the queries."""
    columns = (plan.ks, plan.sizes, plan.slides)
    ks, sizes, slides = (None if one is None else tuple(one[query] for query in queries.tolist()) for one in columns)
    assert ks is not None
    return replace(plan, ks=ks, sizes=sizes, slides=slides)

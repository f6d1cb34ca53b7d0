"""The K-skyband of pairs: keep the pairs that fewer than K others dominate, and rows, of which any may be in a coming pair.

A new row is scored with every older row of the window, stretch by stretch. A pair lives as long as its older row, so one
that is outranked by K pairs with older rows no older than its own can never rank again. The K-staircase says, for the age of
a stretch, which score is worth looking at: in nearly all none is. There scores are compared where they are computed and never
written, which costs less than writing them, all that `supreme` does; those of nearest pairs first in float32, with a margin.
Pairs that may matter wait in a list; when it is long, they join the band in one pass that rebuilds band and staircase together.
Each query's answer is kept up from row to row, or read from the band when asked.

Paper: ICDE12 V-A (SCase, Algorithms 3 and 4), IV (answers). Guarantee: exact; no smaller set of pairs is.
Cost a row: O(N) scores, vectorized; O(√K) pairs that join, at O(log K) for every pair of the band now and then; O(1) a
query whose answer stays. In large windows scores are looked through ahead, for many new rows at once and on all cores
(`screening`). Memory: the rows' columns, of nearest pairs half as much again (`kernels.pairs.coarse`), and expected
O(K log(N/K)) pairs; never more than K for each row.

Deviations: the staircase is read once a block instead of by a binary search for each pair, and may be some rows behind, which
lets in a few pairs too many, never too few. Waiting pairs join together. Pairs of the newest rows join when the rows have grown
older; of the two halves of these, the K best pairs of the younger bar most of the older's, and until then a new pair is
held against the answers alone. Of the two lists of a continuous query the one by age is its oldest entry alone, and it holds
some pairs more than k, for which K is that much larger. One K serves all queries, and rises and falls with them: pairs of rows
from before a query with a larger k came are complete only for the smaller one, and the new query does not see them. TA's sorted
lists are boxes (`kernels.pairs.boxes`).

Glossary: N rows of the largest window, K the largest k, SKB the band, H the heap of a merge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from skyband.algorithms.contract import read_only
from skyband.algorithms.pairs.arrays import (
    room_for_boxes,
    room_for_pairs,
    room_for_segments,
    room_for_tail,
    room_for_tree,
    room_for_young,
)
from skyband.algorithms.pairs.check import check_skyband
from skyband.algorithms.pairs.contract import (
    Answered,
    PairStructure,
    Scoring,
    answers_layout,
    empty_answers,
    with_query,
    with_room,
    without_query,
)
from skyband.algorithms.pairs.screening import Screening
from skyband.kernels.expression import BLOCK
from skyband.kernels.pairs import boxes as boxing
from skyband.kernels.pairs import run as kernel
from skyband.kernels.pairs import state as band
from skyband.kernels.pairs.band import lay_segments
from skyband.kernels.pairs.boxes import Boxes
from skyband.kernels.pairs.coarse import coarsen_all
from skyband.kernels.pairs.state import DEPTH, Answers, Skyband
from skyband.kernels.pairs.young import settle
from skyband.kernels.pairs.zones import zones_of
from skyband.kernels.tables import Windows
from skyband.layout import Layout, fields

_FIRST_ROOM = 256
_SPARE = 4  # a tail has room for this share of its rows more, before it is moved to the front
_LEAST_YOUNG, _MOST_YOUNG = 64, 256  # rows that stay young when others are settled, by K; twice as many there may be
_OWN = 128  # settled rows with limits of their own; of scores that are written, as many as fill a block with the young ones
_BLOCKS = 4  # in the longest segment, of scores that are compared without being written
BOX_ROWS = 512  # rows of the shortest run
_SLACK, _LEAST_SLACK = 4, 4  # a watched answer holds a share more than k pairs, so that it is seldom read anew
_SHOWN = 256  # waiting pairs that a query is shown at once: each time its answer is walked up, be it of all pairs there are
_OF_RUNS = ("columns", "ordinal", "runs", "low", "high")  # of Boxes, to be written down
_LONGEST_SHARE = 4  # of all rows in runs, that one run may hold: rows that have left stay until their run has


class PairSkyband(PairStructure):
    """`access="scan"`: every older row is scored (SCase). `access="boxes"`: rows in boxes are passed over where a score
    cannot reach the limit (TA). `answering`: "linear" reads the band from the best pair on, "tree" a priority search tree."""

    def __init__(self, scoring: Scoring, access: str = "scan", answering: str = "linear") -> None:
        super().__init__(scoring)
        self.access, self.answering = access, answering
        marks = np.zeros(band.MARKS, np.int64)
        marks[band.K], marks[band.SCAN] = 1, band.IDLE
        marks[band.BY_TREE] = answering == "tree"
        marks[band.SPAN] = BLOCK * (_BLOCKS if scoring.unwritten else 1)
        self._state = Skyband(
            tail=room_for_tail(scoring.older, scoring.coarse, _FIRST_ROOM),
            young=room_for_young(1, 1),
            band=room_for_pairs(_FIRST_ROOM),
            kth=np.zeros(_FIRST_ROOM, np.int64),
            pending=room_for_pairs(4 * BLOCK),
            shown=room_for_pairs(_SHOWN),
            segments=room_for_segments(scoring.older, _FIRST_ROOM),
            heap=np.zeros(1, np.int64),
            answers=empty_answers(),
            tree=room_for_tree(_FIRST_ROOM, 1),
            levels=np.full(band.LEVELS, -np.inf),
            marks=marks,
        )
        self._boxes = self._room_for_runs(0 if access == "scan" else BOX_ROWS, 0)
        self._scorer = scoring.scorer()
        self._screening = Screening(scoring)
        self._lay_out(1)
        lay_segments(self._state)

    def begin_at(self, ordinal: int) -> None:
        super().begin_at(ordinal)
        self._state.marks[[band.NEXT, band.REACH]] = ordinal

    @property
    def answers(self) -> Answers:
        return self._state.answers

    # -- queries -------------------------------------------------------------------------------------------------

    def add(self, k: int, *, watched: bool, first: int) -> None:
        most = _most(k) if watched else k
        self._change(lambda answers: with_query(answers, k, most, watched, first, int(self._state.marks[band.PENDING])))

    def _widen(self, k: np.ndarray) -> None:
        most = np.where(self.answers.mark == band.NOT_WATCHED, k, np.array([_most(each) for each in k.tolist()]))
        self._state.levels[band.TAU] = -np.inf
        self._change(lambda answers: with_room(answers, k, most))

    def remove(self, at: int) -> None:
        self._change(lambda answers: without_query(answers, at))

    def _change(self, changed: Callable[[Answers], Answers]) -> None:
        """Go on with other queries. Where the largest k is then another, so is the staircase: all pairs that were put off join
        before, as the answers that there are may take some of them up."""
        k = int(changed(self.answers).most.max(initial=1))
        if k == self._state.marks[band.K]:
            self._state = self._state._replace(answers=changed(self.answers))
            return
        self._settle()
        self._state.marks[band.K] = k
        self._lay_out(k)
        self._state = self._state._replace(answers=changed(self.answers))
        self._merge()

    def _lay_out(self, k: int) -> None:
        """Make what depends on K."""
        young = min(max(_LEAST_YOUNG, 1 << (2 * k - 1).bit_length()), _MOST_YOUNG)
        own = _OWN if self.scoring.search is not None else BLOCK - 2 * young
        self._state.marks[[band.YOUNG, band.OWN]] = young, own
        tree = self._state.tree._replace(found=np.zeros(k + DEPTH, np.int64))
        self._state = self._state._replace(heap=np.zeros(k, np.int64), young=room_for_young(2 * young, k), tree=tree)

    def _merge(self) -> None:
        """Let the waiting pairs join now."""
        while self._state.marks[[band.BAND, band.PENDING]].sum() > len(self._state.band.score):
            self._grow_band()
        boxing.merge_all(self._state, self._boxes)

    def _settle(self) -> None:
        """Let the pairs of young rows join that are to stay, and all that wait."""
        while settle(self._state, self._boxes, 0) != band.DONE:
            self._grow_band()
        self._merge()

    # -- rows ----------------------------------------------------------------------------------------------------

    def advance(
        self, older: np.ndarray, newer: np.ndarray, sides: np.ndarray, windows: Windows, reach: np.ndarray
    ) -> Iterator[Answered]:
        older, newer, sides, reach = (read_only(array) for array in (older, newer, sides, reach))
        windows = Windows(*(read_only(column) for column in windows))
        begin, marks, start = self.next, self._state.marks, 0
        results = self._results(len(windows.query))
        marks[[band.WINDOW, band.USED]] = 0
        self._screening.forget()
        while True:
            code = self._run(begin, older, newer, sides, windows, reach, results)
            if code == kernel.PAUSED:
                continue
            if code == kernel.BAND_FULL:
                self._grow_band()
            elif code == kernel.TAIL_FULL:
                self._make_room()
            elif code == kernel.BOX_DUE:
                self._box()
            else:
                stop = int(marks[band.WINDOW])
                yield Answered(start, stop, results)
                if code == band.DONE:
                    break
                start, marks[band.USED] = stop, 0
        self.next = begin + older.shape[1]

    def _run(self, begin: int, older: np.ndarray, newer: np.ndarray, *windows: Any) -> int:
        """Go on until all is done or something is full; which."""
        state, screening = self._state, self._screening
        pause = screening.look_ahead(state, begin, newer)
        known = (self._boxes, self._scorer, screening.screen, pause)
        return int(kernel.run(state, *known, begin, older, newer, *windows))

    def _grow_band(self) -> None:
        state, held = self._state, int(self._state.marks[band.BAND])
        room = 2 * len(state.band.score) + int(state.marks[band.PENDING])
        pairs, kth = room_for_pairs(room), np.zeros(room, np.int64)
        for old, new in zip((*state.band, state.kth), (*pairs, kth), strict=True):
            new[:held] = old[:held]
        self._state = state._replace(band=pairs, kth=kth, tree=room_for_tree(room, len(state.heap)))
        self._state.marks[band.TREE] = 0

    def _make_room(self) -> None:
        """Move the tail's rows to the front, of longer arrays if they fill most of these."""
        tail, marks = self._state.tail, self._state.marks
        held = slice(int(marks[band.HEAD]), int(marks[band.STOP]))
        count = held.stop - held.start
        room = count + count // _SPARE + BLOCK
        if room > len(tail.ordinal):
            new = room_for_tail(self.scoring.older, self.scoring.coarse, room)
            self._state = self._state._replace(tail=new, segments=room_for_segments(self.scoring.older, room))
        else:
            new = tail
        new.columns[:, :count] = tail.columns[:, held]
        new.ordinal[:count] = tail.ordinal[held]
        marks[[band.HEAD, band.FRONT, band.STOP]] = 0, marks[band.FRONT] - held.start, count
        zones_of(new, 0, count)
        coarsen_all(new, count)
        self._screening.forget()
        boxing.lay_again(self._state, self._boxes)

    def _box(self) -> None:
        """Move the oldest rows of the tail into a run."""
        boxes, marks = self._boxes, self._state.marks
        while marks[band.RUNS_HEAD] < marks[band.RUNS] and self._run_at(band.RUNS_HEAD)[boxing.NEWEST] < marks[band.REACH]:
            marks[band.RUNS_HEAD] += 1
        runs = boxes.runs[marks[band.RUNS_HEAD] : marks[band.RUNS]]
        held = int(runs[:, boxing.ROWS].sum())
        end = int(runs[-1, boxing.BEGIN] + runs[-1, boxing.ROWS]) if len(runs) else 0
        if end + BOX_ROWS > len(boxes.ordinal) or marks[band.RUNS] + 1 > len(boxes.limit):
            self._boxes = boxes = self._with_runs_in_front(held + held // _SPARE + BOX_ROWS)
        r = int(boxing.box_oldest(self._state, boxes, max(held // _LONGEST_SHARE, BOX_ROWS)))
        rows = int(boxes.runs[r, boxing.ROWS])
        columns, items = np.empty((self.scoring.older, rows)), np.empty(rows, np.int64)
        boxing.sort_run(boxes, r, np.empty(rows), items, columns, np.empty(rows, np.int64))
        self._merge()

    def _run_at(self, mark: int) -> np.ndarray:
        run: np.ndarray = self._boxes.runs[self._state.marks[mark]]
        return run

    def _room_for_runs(self, boxed: int, rows: int) -> Boxes:
        search = self.scoring.search
        return room_for_boxes(self.scoring.older, 0 if search is None else len(search.weights), boxed, rows)

    def _with_runs_in_front(self, room: int) -> Boxes:
        """The same runs, without those that were dropped, in arrays that may be longer."""
        old, marks = self._boxes, self._state.marks
        runs = old.runs[marks[band.RUNS_HEAD] : marks[band.RUNS]]
        count = len(runs)
        new = self._room_for_runs(BOX_ROWS, max(room, int(runs[:, boxing.ROWS].sum())))
        if count:
            begin, rows = int(runs[0, boxing.BEGIN]), int(runs[:, boxing.ROWS].sum())
            node, nodes = int(runs[0, boxing.NODE]), 2 * rows // boxing.LEAF_ROWS
            new.columns[:, :rows] = old.columns[:, begin : begin + rows]
            new.ordinal[:rows] = old.ordinal[begin : begin + rows]
            new.low[:nodes], new.high[:nodes] = old.low[node : node + nodes], old.high[node : node + nodes]
            new.runs[:count], new.limit[:count] = runs, old.limit[marks[band.RUNS_HEAD] : marks[band.RUNS]]
            new.runs[:count, boxing.BEGIN] -= begin
            new.runs[:count, boxing.NODE] -= node
        new.marks[:] = old.marks
        marks[[band.RUNS_HEAD, band.RUNS]] = 0, count
        return new

    # -- what is held --------------------------------------------------------------------------------------------

    @property
    def candidates(self) -> int:
        self._settle()
        return int(self._state.marks[band.BAND])

    @property
    def nbytes(self) -> int:
        state = self._state
        named = (
            state.tail,
            state.young,
            state.band,
            state.pending,
            state.shown,
            state.segments,
            state.answers,
            state.tree,
            self._boxes,
            self._scorer,
        )
        return sum(array.nbytes for part in named for array in part) + state.kth.nbytes + state.heap.nbytes

    def figures(self) -> dict[str, Any]:
        """How many pairs were scored so far, and what is held of the window."""
        return {"scored": int(self._state.marks[band.SCORED])}

    def check_invariants(self) -> None:
        self._settle()
        check_skyband(self._state, self._boxes)

    # -- state ---------------------------------------------------------------------------------------------------

    def _parts(self) -> dict[str, Any]:
        """Arrays to write down, without free places, by name."""
        state, marks = self._state, self._state.marks
        held, pairs = slice(int(marks[band.HEAD]), int(marks[band.STOP])), slice(0, int(marks[band.BAND]))
        arrays = {"tail.columns": state.tail.columns[:, held], "tail.ordinal": state.tail.ordinal[held], "marks": marks}
        arrays["kth"] = state.kth[pairs]
        arrays |= {f"band.{name}": column[pairs] for name, column in state.band._asdict().items()}
        arrays |= {f"answers.{name}": column for name, column in state.answers._asdict().items()}
        if marks[band.RUNS]:
            arrays |= {f"boxes.{name}": getattr(self._boxes, name) for name in _OF_RUNS}
        return arrays

    def snapshot(self) -> bytes:
        self._settle()
        if self._state.marks[band.RUNS]:
            self._boxes = self._with_runs_in_front(0)
        return self._packed({}, self._parts())

    def _made_for(self) -> list[int | str]:
        return [*super()._made_for(), self.access]

    def layout(self) -> Layout:
        return self._layout(with_runs=bool(self._state.marks[band.RUNS]))

    def _layout_of(self, arrays: dict[str, np.ndarray]) -> Layout:
        return self._layout(with_runs="boxes.runs" in arrays)

    def _layout(self, *, with_runs: bool) -> Layout:
        own = {"tail.columns": "float64 older rows", "tail.ordinal": "int64 rows", "marks": "int64 marks"}
        own |= {"kth": "int64 pairs", "band.score": "float64 pairs", "band.a": "int64 pairs", "band.b": "int64 pairs"}
        if with_runs:
            own |= {"boxes.columns": "float64 older boxed", "boxes.ordinal": "int64 boxed", "boxes.runs": "int64 runs of_a_run"}
            own |= {"boxes.low": "float64 nodes searched", "boxes.high": "float64 nodes searched"}
        known = {"older": self.scoring.older, "searched": self._boxes.low.shape[1]}
        known |= {"marks": band.MARKS, "of_a_run": boxing.FIELDS}
        return fields(own | answers_layout(), **known)

    def restore(self, data: bytes) -> None:
        header, arrays = self._unpacked(data)
        marks, columns = self._state.marks.copy(), arrays["tail.columns"]
        marks[: band.YOUNG] = arrays["marks"][: band.YOUNG]
        rows, pairs = columns.shape[1], len(arrays["band.score"])
        room = rows + rows // _SPARE + BLOCK
        tail, k = room_for_tail(len(columns), self.scoring.coarse, room), int(marks[band.K])
        held = room_for_pairs(pairs + _FIRST_ROOM)
        tail.columns[:, :rows], tail.ordinal[:rows] = columns, arrays["tail.ordinal"]
        zones_of(tail, 0, rows)
        coarsen_all(tail, rows)
        kth = np.zeros(len(held.score), np.int64)
        for name, column in (*held._asdict().items(), ("kth", kth)):
            column[:pairs] = arrays[name if name == "kth" else f"band.{name}"]
        marks[[band.HEAD, band.FRONT, band.STOP]] = 0, rows, rows
        self._state = self._state._replace(
            tail=tail,
            band=held,
            kth=kth,
            segments=room_for_segments(len(columns), room),
            levels=np.full(band.LEVELS, -np.inf),
            answers=Answers(**{name: arrays[f"answers.{name}"] for name in Answers._fields}),
            tree=room_for_tree(len(held.score), k),
            marks=marks,
        )
        if "boxes.columns" in arrays:
            kept = {name: arrays[f"boxes.{name}"] for name in _OF_RUNS}
            self._boxes = self._boxes._replace(limit=np.zeros(len(kept["runs"])), **kept)
        self._lay_out(k)
        self.next = header["next"]
        self._merge()


def _most(k: int) -> int:
    """Pairs that a watched answer holds."""
    return k + max(k // _SLACK, _LEAST_SLACK)

"""The naive rival of the K-skyband of pairs: of each row its K best pairs with older rows, all in one sorted list.

When a row leaves, its pairs are deleted, and every row that was paired with it scores all older rows again. Paper: ICDE12 VI-B
(the better of its two naive ways; the other keeps all N² pairs). Guarantee: exact, for one window size: a shorter window would
need other lists. Cost a row: O(N K) to keep the list sorted, and about K rows that are scored anew. Memory: O(N K) pairs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from skyband.algorithms.contract import read_only
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
from skyband.kernels.pairs import naive as kernel
from skyband.kernels.pairs import run as pairs_run
from skyband.kernels.pairs import state as pairs_state
from skyband.kernels.pairs.state import Answers, Pairs, Tail
from skyband.kernels.tables import Windows
from skyband.layout import Layout, fields

_FIRST_ROOM = 256


class PairNaive(PairStructure):
    """Serves queries of one window size and slide; a list of K pairs for each row."""

    shares = False

    def __init__(self, scoring: Scoring) -> None:
        super().__init__(scoring)
        marks = np.zeros(kernel.MARKS, np.int64)
        marks[kernel.K] = 1
        self._state = _empty(scoring, _FIRST_ROOM, 1)._replace(marks=marks)
        self._scorer = scoring.scorer()

    def begin_at(self, ordinal: int) -> None:
        super().begin_at(ordinal)
        self._state.marks[[kernel.NEXT, kernel.REACH]] = ordinal

    @property
    def answers(self) -> Answers:
        return self._state.answers

    def add(self, k: int, *, watched: bool, first: int) -> None:
        assert self._state.marks[kernel.STOP] == 0, "a query joins before the first row"
        self._state.marks[kernel.K] = max(int(self._state.marks[kernel.K]), k)
        self._state = self._state._replace(answers=with_query(self.answers, k, k, False, first, 0))
        self._make_room()

    def expect(self, asked: list[int], rows: int) -> None:
        super().expect(asked, rows)
        # a row has no more pairs than there are others: lists grow with the rows, also where answers need not
        k = min(int(self.answers.k.max(initial=1)), rows)
        if k > self._state.marks[kernel.K]:
            self._state.marks[kernel.K] = k
            self._make_room()

    def _widen(self, k: np.ndarray) -> None:
        self._state = self._state._replace(answers=with_room(self.answers, k, k))

    def remove(self, at: int) -> None:
        self._state = self._state._replace(answers=without_query(self.answers, at))

    def advance(
        self, older: np.ndarray, newer: np.ndarray, sides: np.ndarray, windows: Windows, reach: np.ndarray
    ) -> Iterator[Answered]:
        older, newer, sides, reach = (read_only(array) for array in (older, newer, sides, reach))
        windows = Windows(*(read_only(column) for column in windows))
        begin, start, results = self.next, 0, self._results(len(windows.query))
        self._state.marks[[kernel.WINDOW, kernel.USED]] = 0
        while True:
            code = kernel.run(self._state, self._scorer, begin, older, newer, sides, windows, reach, results)
            if code == pairs_run.TAIL_FULL:
                self._make_room()
                continue
            stop = int(self._state.marks[kernel.WINDOW])
            yield Answered(start, stop, results)
            if code == pairs_state.DONE:
                break
            start, self._state.marks[kernel.USED] = stop, 0
        self.next = begin + older.shape[1]

    def _make_room(self) -> None:
        """Move the rows to the front, of longer arrays if they fill most of these."""
        old, marks = self._state, self._state.marks
        rows, listed = slice(int(marks[kernel.HEAD]), int(marks[kernel.STOP])), int(marks[kernel.LISTED])
        count = rows.stop - rows.start
        new = _empty(self.scoring, count + count // 4 + _FIRST_ROOM, int(marks[kernel.K]))
        new.tail.columns[:, :count], new.newer[:, :count] = old.tail.columns[:, rows], old.newer[:, rows]
        new.tail.ordinal[:count], new.sides[:count] = old.tail.ordinal[rows], old.sides[rows]
        new.count[:count] = old.count[rows]
        for before, after in ((old.best.score, new.best.score), (old.best.a, new.best.a)):
            after[:count, : before.shape[1]] = before[rows]
        for before, after in zip(old.pairs, new.pairs, strict=True):
            after[:listed] = before[:listed]
        marks[[kernel.HEAD, kernel.STOP]] = 0, count
        self._state = new._replace(answers=old.answers, marks=marks)

    @property
    def candidates(self) -> int:
        return int(self._state.marks[kernel.LISTED])

    @property
    def nbytes(self) -> int:
        state = self._state
        parts = (*state.tail, state.newer, state.sides, *state.best, state.count, *state.pairs, *state.answers)
        return sum(array.nbytes for array in parts)

    def check_invariants(self) -> None:
        marks, listed = self._state.marks, int(self._state.marks[kernel.LISTED])
        score, a, b = (column[:listed] for column in self._state.pairs)
        keys = list(zip((-score).tolist(), (-a).tolist(), (-b).tolist(), strict=True))
        assert keys == sorted(set(keys)), f"out of order or twice: {keys}"
        assert (a >= marks[kernel.REACH]).all() and (a < b).all(), keys
        rows = slice(int(marks[kernel.HEAD]), int(marks[kernel.STOP]))
        assert int(self._state.count[rows].sum()) == len(keys), (self._state.count[rows], keys)

    def snapshot(self) -> bytes:
        self._make_room()
        state = self._state
        arrays = {f"answers.{name}": column for name, column in state.answers._asdict().items()}
        arrays |= {"columns": state.tail.columns, "ordinal": state.tail.ordinal, "newer": state.newer, "sides": state.sides}
        arrays |= {"best.score": state.best.score, "best.a": state.best.a, "count": state.count, "marks": state.marks}
        arrays |= {f"pairs.{name}": column for name, column in state.pairs._asdict().items()}
        return self._packed({}, arrays)

    def layout(self) -> Layout:
        own = {"columns": "float64 older room", "ordinal": "int64 room", "newer": "float64 newer room", "sides": "uint8 room"}
        own |= {"best.score": "float64 room k", "best.a": "int64 room k", "count": "int64 room", "marks": "int64 marks"}
        own |= {"pairs.score": "float64 pairs", "pairs.a": "int64 pairs", "pairs.b": "int64 pairs"}
        known = {"older": self.scoring.older, "newer": self.scoring.newer, "marks": kernel.MARKS}
        return fields(own | answers_layout(), **known)

    def restore(self, data: bytes) -> None:
        header, arrays = self._unpacked(data)
        self._state = kernel.Naive(
            tail=_tail(arrays["columns"], arrays["ordinal"]),
            newer=arrays["newer"],
            sides=arrays["sides"],
            best=Pairs(arrays["best.score"], arrays["best.a"], arrays["best.a"][:0]),
            count=arrays["count"],
            pairs=Pairs(*(arrays[f"pairs.{name}"] for name in Pairs._fields)),
            answers=Answers(*(arrays[f"answers.{name}"] for name in Answers._fields)),
            marks=arrays["marks"],
        )
        self.next = header["next"]


def _tail(columns: np.ndarray, ordinal: np.ndarray) -> Tail:
    """Rows without zones or coarse columns."""
    none = np.zeros((0, len(columns)))
    return Tail(columns, ordinal, none, none, none.astype(np.float32), np.zeros(0))


def _empty(scoring: Scoring, room: int, k: int) -> kernel.Naive:
    def whole(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.int64)

    return kernel.Naive(
        tail=_tail(np.zeros((scoring.older, room)), whole(room)),
        newer=np.zeros((scoring.newer, room)),
        sides=np.zeros(room, np.uint8),
        best=Pairs(np.zeros((room, k)), whole(room, k), whole(0, k)),
        count=whole(room),
        pairs=Pairs(np.zeros(room * k), whole(room * k), whole(room * k)),
        answers=empty_answers(),
        marks=whole(kernel.MARKS),
    )

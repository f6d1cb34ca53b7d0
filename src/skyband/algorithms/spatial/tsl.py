"""TSL, the rival of TMA and SMA: every attribute's values in a sorted list, and a view of a few more than k rows a query.

All arrivals of a slide are scored for every query; those that outrank the last row of its view enter it. Rows that leave
the window leave the views, and a view of fewer than k rows is filled up to k_max by the threshold algorithm (Fagin's TA)
over the lists: rows come from each in turns, from its better end, until k_max are found that no row still unseen can
outrank.

Paper: SIGMOD06 section 3.2, with the views of Yi et al. (ICDE 2003) and k_max as fine-tuned in section 8. Guarantee: exact.
Cost a slide of r rows: O(r · queries · d) to score, O(r log r + √(n r)) a list, and a TA for each view that has run dry, of
about n (k_max/n)^(1/d) rows. Memory: the window's rows, an entry a row in each of d lists, k_max rows a query.

Deviations: a cycle is a slide, arrivals before expirations; lists are arrays of two runs, merged once a cycle
(`kernels.spatial.sorted_lists`), instead of trees; TA takes 64 rows of a list in a turn. Scores are `linear`, with any signs,
or any expression that has no value where an attribute of it has none: a row that lacks one is in no list of it. What is left of
the lists is bounded as a box is, which is fast where the score rises or falls with each attribute. A region or condition is
part of the expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from skyband.algorithms.spatial.asked import Asked
from skyband.algorithms.spatial.many import Many
from skyband.errors import QueryError, StateError
from skyband.kernels.ranked.pruning import DONE, Answers, answers_room
from skyband.kernels.spatial import questions
from skyband.kernels.spatial import tsl as kernel
from skyband.kernels.spatial.sorted_lists import FRESH, SETTLED, Lists, empty_lists, fresh_limit
from skyband.kernels.tables import Results, Tops
from skyband.layout import Layout, check, extents_of, fields, reading, whole_number
from skyband.scores.expression import Call, Column, Number, Tree, chooses
from skyband.scores.formulas import Distance
from skyband.state import pack, unpack

Round = tuple[np.ndarray, np.ndarray, Results]  # queries, their windows, answers
_ANSWERS = 1 << 14
_TUNED = {1: 4, 5: 10, 10: 20, 20: 30, 50: 70, 100: 120}  # k: k_max (SIGMOD06 section 8)
_FIELDS = {
    "rows": "float64 attributes waiting",
    "window": "float64 attributes window",
    "score": "float64 places",
    "ordinal": "int64 places",
    "marks": "int64 queries marks",
    "tops.score": "float64 queries ranks",
    "tops.ordinal": "int64 queries ranks",
    "tops.count": "int64 queries",
}


def most_rows(k: int) -> int:
    """k_max: as the paper tuned it, on straight lines in between, and beyond with the root of k."""
    if k <= max(_TUNED):
        return round(float(np.interp(k, list(_TUNED), list(_TUNED.values()))))
    return k + int(2 * np.sqrt(k))


def _as_expression(asked: Asked) -> Asked:
    """The query with nothing but a weighted sum or an expression as its score, and a condition in place of a region."""
    if isinstance(asked.score, Distance):
        tree = asked.score.tree
        assert isinstance(tree, Call)
        asked = replace(asked, score=tree)
    if not asked.region:
        return asked
    ends: list[Tree] = []
    for name, low, high in asked.region:
        ends += [Call(">=", (Column(name), Number(low))), Call("<=", (Column(name), Number(high)))]
    return replace(asked, region=(), condition=Call("and", tuple(ends)))


class TSL(Many):
    """Queries over the same attributes with the same window. `grid` has no meaning: there is none."""

    def __init__(self, attributes: tuple[str, ...], grid: int = 0) -> None:
        super().__init__(attributes)
        self.grid = 0
        self.rows = np.zeros((len(attributes), 0))  # those of the slide that has not ended
        self.views = kernel.Views(np.zeros(0), np.zeros(0, np.int64), np.zeros((0, kernel.MARKS), np.int64))
        self.tops = Tops(np.zeros((0, 0)), np.zeros((0, 0), np.int64), np.zeros(0, np.int64))
        self.searches = 0  # how often a view was filled
        self._lists: Lists | None = None  # made when rows come

    # -- queries -------------------------------------------------------------------------------------------------

    def add(self, *asked: Asked) -> None:
        """Take up queries: they see the rows from now on."""
        for one in asked:
            self._add(one)

    def _add(self, asked: Asked) -> None:
        asked = _as_expression(asked)
        if chooses(asked.score if isinstance(asked.score, Call) else asked.score.tree):
            raise QueryError(f"TSL ranks by scores without where(), and, or; got {asked.score!r}; use another algorithm")
        most = self._most_of(asked)
        marks = np.zeros((1, kernel.MARKS), np.int64)
        marks[0, [kernel.BEGIN, kernel.MOST, kernel.K]] = len(self.views.score), most, asked.k
        marks[0, [kernel.SINCE, kernel.WHOLE]] = self.seen, 1
        self.views = kernel.Views(
            np.concatenate([self.views.score, np.zeros(most)]),
            np.concatenate([self.views.ordinal, np.zeros(most, np.int64)]),
            np.concatenate([self.views.marks, marks]),
        )
        self._take_up(asked)
        old, k = self.tops, max(asked.k, self.tops.score.shape[1])
        more = ((0, 1), (0, k - old.score.shape[1]))
        self.tops = Tops(np.pad(old.score, more), np.pad(old.ordinal, more), np.append(old.count, 0))

    def _most_of(self, asked: Asked) -> int:
        """How many rows its view may hold: where the window has no more than k_max, every row, and none is dropped."""
        most = most_rows(asked.k)
        return most if most < asked.size else asked.size + asked.slide + 1

    def remove(self, number: int) -> None:
        """Forget a query and its view; those after it move up."""
        self._let_go(number)
        marks = self.views.marks
        begin, most = marks[number, [kernel.BEGIN, kernel.MOST]].tolist()
        places = slice(begin, begin + most)
        marks[number + 1 :, kernel.BEGIN] -= most
        self.views = kernel.Views(
            np.delete(self.views.score, places), np.delete(self.views.ordinal, places), np.delete(marks, number, axis=0)
        )
        self.tops = Tops(*(np.delete(column, number, axis=0) for column in self.tops))
        if not self.asked:
            self.rows, self._lists = np.zeros((len(self.attributes), 0)), None

    # -- rows ----------------------------------------------------------------------------------------------------

    def push(self, rows: np.ndarray) -> Iterator[Round]:
        """Take rows, float64 [attributes, rows]; in rounds, the windows whose top-k may have changed: queries, window
        ends and answers. The iterator must be exhausted, and `tops` brought up to date from it: it does the work."""
        before, self.seen = self.seen - self.rows.shape[1], self.seen + rows.shape[1]
        if not self.asked:
            return
        size, slide = self.asked[0].size, self.asked[0].slide
        if self._lists is None:
            self._lists = empty_lists(len(self.attributes), size, slide)
        end = np.arange(before // slide + 1, self.seen // slide + 1) * slide
        for query, place, results in self._cycles(rows, np.maximum(end - size, 0), end, fresh_limit(size, slide)):
            yield query, end[place], results

    def _cycles(self, rows: np.ndarray, first: np.ndarray, end: np.ndarray, limit: int) -> Iterator[Round]:
        """Take rows, and answer the windows of the ordinals first[i] <= row < end[i]: each ends a cycle. Rows after the last
        of them wait. Answers name windows by their places."""
        known = np.ascontiguousarray(np.concatenate([self.rows, rows], axis=1) if self.rows.shape[1] else rows)
        begin = self.seen - known.shape[1]
        stop = int(end[-1]) - begin if len(end) else 0
        self.rows = known[:, stop:].copy()
        order, at = np.empty(known.shape, np.int64), 0
        lengths = np.diff(end, prepend=begin)
        alike = lengths[0] if len(lengths) and (lengths == lengths[0]).all() else 0
        if alike:
            cycles = known[:, :stop].reshape(len(known), len(end), alike)
            order[:, :stop] = cycles.argsort(axis=2).reshape(len(known), stop)
        for length in () if alike else lengths.tolist():
            order[:, at : at + length] = known[:, at : at + length].argsort(axis=1)
            at += length
        progress = np.zeros(kernel.PROGRESS, np.int64)
        status = None
        while status != DONE:
            answers = self._answers()
            status = kernel.run(
                self.views, self.questions, self._lists, known, order, begin, first, end, limit, progress, answers
            )
            if written := int(answers.used[0]):
                yield answers.query[:written], answers.window[:written], Results(*answers[2:6])
        self.searches += int(progress[kernel.REFILLS])

    def _answers(self) -> Answers:
        room = max(4 * self.tops.score.shape[1], 1 << 16)
        return answers_room(_ANSWERS, np.empty(room), np.empty(room, np.int64))

    def _make_lists(self, window: np.ndarray, size: int, slide: int) -> None:
        """Make lists of the rows that came last before the slide that has not ended; `size` and `slide`: the most rows of a
        window and of a cycle."""
        self._lists = lists = empty_lists(len(self.attributes), size, slide)
        end = self.seen - self.rows.shape[1]
        ordinal = np.arange(end - window.shape[1], end)
        lists.rows[ordinal % size] = window.T
        for axis, column in enumerate(window):
            order = column.argsort()[: len(column) - np.isnan(column).sum()]
            lists.count[axis, SETTLED] = len(order)
            lists.value[axis, : len(order)], lists.ordinal[axis, : len(order)] = column[order], ordinal[order]

    def _restore_window(self, window: np.ndarray) -> None:
        size, slide = self.asked[0].size, self.asked[0].slide
        self._make_lists(window[:, -size:], size, slide)

    def _window(self) -> np.ndarray:
        """The rows that views may be filled from, oldest first, up to the last slide's end."""
        if self._lists is None:
            return np.zeros((len(self.attributes), 0))
        rows = np.arange(*self._live())
        return np.ascontiguousarray(self._lists.rows[rows % len(self._lists.rows)].T)

    def _live(self) -> tuple[int, int]:
        """The first row of the window that ended last, of those that any query sees, and its end."""
        end = self.seen - self.rows.shape[1]
        return max(end - self.asked[0].size, self._first), end

    @property
    def _first(self) -> int:
        """The first row that any query sees."""
        return int(self.views.marks[:, kernel.SINCE].min(initial=self.seen))

    # -- what is held --------------------------------------------------------------------------------------------

    refills = True

    def candidates(self, number: int) -> int:
        """Rows that a query's view holds."""
        return int(self.views.marks[number, kernel.COUNT])

    references = candidates

    def search_of(self, number: int) -> str:
        """What a view is filled from."""
        return "lists"

    def _score(self, number: int, rows: np.ndarray, out: np.ndarray) -> None:
        """Write the turned scores of rows [attributes, rows] for a query."""
        for at, row in enumerate(np.ascontiguousarray(rows.T)):
            out[at] = questions.score_of(self.questions, number, row)

    def needed(self, base: int = 0) -> np.ndarray:
        """Ordinals from `base` on of every row that is in an answer or may come into one, increasing."""
        if not self.asked:
            return np.zeros(0, np.int64)
        tops = self.in_tops()
        window = np.arange(max(self.seen - self.asked[0].size, self._first, base), self.seen)
        return np.union1d(tops[tops >= base], window)

    def in_tops(self) -> np.ndarray:
        """Ordinals in some query's last answer."""
        ranks = np.arange(self.tops.ordinal.shape[1])
        return self.tops.ordinal[ranks < self.tops.count[:, None]]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(array.nbytes for array in (self.rows, *self.views, *self.tops, *(self._lists or ())))

    def check_invariants(self) -> None:
        """AssertionError when a list is not sorted or lacks a row, or a view is not the best rows of the window."""
        if self._lists is None:
            return
        lists, size, (first, end) = self._lists, len(self._lists.rows), self._live()
        for axis in range(len(self.attributes)):
            found = []
            for run in (SETTLED, FRESH):
                places = slice(run * size, run * size + int(lists.count[axis, run]))
                value, ordinal = lists.value[axis, places], lists.ordinal[axis, places]
                assert (value[1:] >= value[:-1]).all(), f"run {run} of list {axis} is not sorted: {value}"
                live = ordinal >= first
                assert (value[live] == lists.rows[ordinal[live] % size, axis]).all(), f"list {axis} holds other values"
                found.append(ordinal[live])
            column = lists.rows[np.arange(first, end) % size, axis]
            wanted = first + np.flatnonzero(~np.isnan(column))
            assert np.array_equal(np.sort(np.concatenate(found)), wanted), f"list {axis} holds {found}, not {wanted}"
        for number, marks in enumerate(self.views.marks):
            self._check_view(number, marks, first, end)

    def _check_view(self, number: int, marks: np.ndarray, first: int, end: int) -> None:
        begin, count = marks[[kernel.BEGIN, kernel.COUNT]].tolist()
        score, ordinal = self.views.score[begin : begin + count], self.views.ordinal[begin : begin + count]
        first = max(first, int(marks[kernel.SINCE]))
        rows = np.ascontiguousarray(self._lists.rows[np.arange(first, end) % len(self._lists.rows)].T)  # type: ignore[union-attr]
        scores = np.empty(rows.shape[1])
        self._score(number, rows, scores)
        ranked = np.lexsort((-np.arange(len(scores)), -scores))[: (~np.isnan(scores)).sum()]
        state = f"view {number}, {marks}, of rows {first} to {end}: {ordinal}, {score}"
        assert np.array_equal(ordinal, first + ranked[:count]) and np.array_equal(score, scores[ranked[:count]]), state
        assert count <= marks[kernel.MOST] and (not count or marks[kernel.OLDEST] <= ordinal.min()), state
        assert count == len(ranked) if marks[kernel.WHOLE] else count >= marks[kernel.K], state

    # -- state ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Everything remembered, as bytes of `skyband.state`; the queries themselves are the caller's to keep."""
        arrays = {"rows": self.rows, "window": self._window(), **self.views._asdict()}
        arrays |= {f"tops.{name}": array for name, array in self.tops._asdict().items()}
        return pack("TSL", self._header() | {"extents": extents_of(self.layout(), arrays)}, arrays)

    def _header(self) -> dict[str, Any]:
        return {"seen": self.seen, "made_for": self._made_for()}

    def _restore_header(self, header: dict[str, Any]) -> None:
        self.seen = whole_number(header, "seen")

    def _made_for(self) -> list[Any]:
        return [list(self.attributes), [asked.k for asked in self.asked]]

    def layout(self) -> Layout:
        """What a snapshot holds."""
        known = {"attributes": len(self.attributes), "queries": len(self.asked), "places": len(self.views.score)}
        return fields(_FIELDS, **known, marks=kernel.MARKS)

    def restore(self, data: bytes) -> None:
        """Take up what `snapshot` of one with the same queries wrote."""
        header, arrays = unpack("TSL", data)
        with reading("TSL"):
            made_for = header["made_for"]
            if made_for != self._made_for():
                raise StateError(
                    f"this state was made for other queries, over {made_for[0]}; restore it with those it was made for"
                )
            check(self.layout(), arrays, header["extents"])
            self._restore_header(header)
        self.rows = arrays["rows"]
        self.views = kernel.Views(*(arrays[name] for name in kernel.Views._fields))
        self.tops = Tops(**{name: arrays[f"tops.{name}"] for name in Tops._fields})
        self._lists = None
        if self.asked:
            self._restore_window(arrays["window"])

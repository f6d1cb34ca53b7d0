"""Many threshold queries over the same attributes and windows: all rows above a bound, for each, by one grid.

A query monitors the cells of a grid in which a row may score above its bound, and is shown the rows that fall there. Those
above the bound are its answer until they leave the window; nothing else is kept, and nothing ever searched for. So there is
no difference between TMA, SMA and their like here.

Paper: SIGMOD06 section 7 (threshold queries). Guarantee: exact. Cost: for each query that monitors a row's cell, a score, or a
64th of a vectorized screening; O(m) for a window whose answer, of m rows, differs from the one before. Memory: the answers,
and a bit per cell and query. Deviations: cells hold sets of bits instead of lists; those who monitor a cell are screened 64
at a time; who loses a row is told by a log of the rows that were let in, instead of by the cells of rows that expire.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from skyband.algorithms.spatial.asked import Asked
from skyband.algorithms.spatial.crowd_check import coordinates
from skyband.algorithms.spatial.extent import Extent
from skyband.algorithms.spatial.many import Many
from skyband.algorithms.spatial.reindexed import grid_with_one, grid_without, screen_with_one, screen_without
from skyband.kernels.spatial import grid as grid_kernel
from skyband.kernels.spatial import query_grid
from skyband.kernels.spatial import thresholds as kernel
from skyband.kernels.spatial.screening import empty_screen, set_screen
from skyband.kernels.tables import SNAPSHOTS
from skyband.layout import Layout, check, extents_of, fields, reading, whole_number
from skyband.state import pack, unpack

__all__ = ["Asked", "Thresholds"]

PIECE = 1 << 14  # rows taken at once
CELLS = 1 << 12  # of a grid, about
_MOST_ALONG = 1000
_EVENTS = 1 << 16  # result rows written before they are handed on
_FIELDS = {
    "score": "float64 rows",
    "ordinal": "int64 rows",
    "marks": "int64 queries of_a_query",
    "log.query": "int64 entries",
    "log.ordinal": "int64 entries",
    "log.score": "float64 entries",
    "log.before": "int64 entries",
    "bounds": "float64 bounds bounded",
    "reach": "float64 reach reached",
}


def cells_along(dimensions: int) -> int:
    """Cells along each of the attributes."""
    along = min(max(round(CELLS ** (1 / dimensions)), 2), _MOST_ALONG)
    return along if along**dimensions <= 2 * CELLS else 1


class Thresholds(Many):
    """Queries over the same attributes with the same windows. `grid`: cells along each; None: as usual."""

    def __init__(self, attributes: tuple[str, ...], grid: int | None = None) -> None:
        super().__init__(attributes)
        self.grid = cells_along(len(attributes)) if grid is None else grid
        self.last = (0, 0)  # first row and end of the window answered last
        self._extent = Extent()
        self._index: tuple[grid_kernel.Grid, np.ndarray] | None = None  # who monitors what, and the screen
        self._kept = self._empty_answers(0)
        nothing = np.zeros(0, np.int64)
        self._log = kernel.Log(nothing, nothing, np.zeros(0), nothing, np.zeros(2, np.int64))

    @staticmethod
    def _empty_answers(queries: int) -> kernel.Kept:
        marks, told = np.zeros((queries, kernel.MARKS), np.int64), np.zeros(queries, np.int64)
        marks[:, kernel.NEWEST] = kernel.NONE
        return kernel.Kept(np.zeros(0), np.zeros(0, np.int64), marks, np.zeros(queries), told)

    # -- queries -------------------------------------------------------------------------------------------------

    def add(self, *asked: Asked) -> None:
        """Take up queries: they see the rows from now on."""
        kept, new, number = self._kept, self._empty_answers(len(asked)), len(self.asked)
        new.bound[:] = [-one.above if one.order == "asc" else one.above for one in asked]
        new.told[:] = [one.emission for one in asked]
        tables = {name: np.concatenate([getattr(kept, name), getattr(new, name)]) for name in ("marks", "bound", "told")}
        self._kept = kept._replace(**tables)
        for one in asked:
            self._take_up(one)
        if self._index is None:
            return
        grid, screen = self._index
        for at, bound in enumerate(new.bound.tolist(), number):
            grid, screen = grid_with_one(grid), screen_with_one(screen, at)
            query_grid.monitor(grid, self.questions, at, np.nextafter(bound, np.inf))
            set_screen(screen, self.questions, at, bound)
        self._index = grid, screen

    def take_over(self, asked: Asked, score: np.ndarray, ordinal: np.ndarray) -> None:
        """Take up a query that has seen all rows of the last window, and was told these of it, best first."""
        self.add(asked)
        number, rows, order = len(self.asked) - 1, len(score), np.argsort(ordinal)
        self._make_log_room(0)
        log = self._log
        at = log.ordinal.searchsorted(ordinal[order], "right")
        moved = np.arange(len(log.ordinal)) + at.searchsorted(np.arange(len(log.ordinal)), "right")
        moved = np.append(moved, kernel.NONE)  # where entries are now; what refers to none, last
        entries = (np.full(rows, number), ordinal[order], score[order], np.full(rows, kernel.NONE))
        columns = [np.insert(old, at, new) for old, new in zip((*log[:3], moved[log.before]), entries, strict=True)]
        newest = self._kept.marks[:, kernel.NEWEST]
        newest[:] = moved[newest]
        self._log = _log(columns)
        self._make_arena_room(rows)
        kept = self._kept
        begin = int((kept.marks[:, kernel.BEGIN] + kept.marks[:, kernel.ROOM]).max(initial=0))
        kept.score[begin : begin + rows], kept.ordinal[begin : begin + rows] = score, ordinal
        kept.marks[number, [kernel.BEGIN, kernel.ROOM, kernel.COUNT]] = begin, rows, rows

    def remove(self, number: int) -> None:
        """Forget a query and what it held; those after it move up."""
        self._let_go(number)
        self._make_log_room(0, self._log.query != number)
        log, kept = self._log, self._kept
        log.query[log.query > number] -= 1
        marks, bound, told = (np.delete(table, number, axis=0) for table in (kept.marks, kept.bound, kept.told))
        self._kept = kernel.Kept(kept.score, kept.ordinal, marks, bound, told)
        if self._index is not None:
            grid, screen = self._index
            self._index = grid_without(grid, number), screen_without(screen, number, len(kept.bound))

    # -- rows ----------------------------------------------------------------------------------------------------

    def take(self, rows: np.ndarray, first: np.ndarray, end: np.ndarray) -> Iterator[kernel.Told]:
        """Take rows, float64 [attributes, rows], and answer the windows of the ordinals first[i] <= row < end[i], which never
        decrease; the last ends with the rows, or before. Result rows, in rounds, windows by their places: those of a window in
        order, and those of a query by window. The iterator must be exhausted: it does the work."""
        rows = np.ascontiguousarray(rows)
        begin, stop, at = self.seen, self.seen + rows.shape[1], 0
        while at < len(end) or self.seen < stop:
            start, self.seen = self.seen, min(self.seen + PIECE, stop)
            upto = at + int(np.searchsorted(end[at:], self.seen, "right"))
            piece = np.ascontiguousarray(rows[:, start - begin : self.seen - begin])
            if self.asked and self.seen > 0:
                for told in self._take(piece, start, first[at:upto], end[at:upto]):
                    yield told._replace(window=told.window + at)
            if upto > at:
                self.last = int(first[upto - 1]), int(end[upto - 1])
            at = upto

    def _take(self, rows: np.ndarray, begin: int, first: np.ndarray, end: np.ndarray) -> Iterator[kernel.Told]:
        self._adapt_grid(rows, begin)
        assert self._index is not None
        grid, screen = self._index
        cells = grid_kernel.cells_in(grid, rows)
        progress = np.zeros(kernel.PROGRESS, np.int64)
        waiting = np.zeros(len(self.asked), np.int64)
        waits = np.flatnonzero(self._kept.marks[:, kernel.WAITS])
        waiting[: len(waits)] = waits
        progress[[kernel.ROW, kernel.WAITING]] = begin, len(waits)
        snapshots = np.flatnonzero(self._kept.told == SNAPSHOTS)
        told, status = _room(_EVENTS), kernel.EVENTS_FULL
        while status != kernel.DONE:
            free = np.array([int((self._kept.marks[:, kernel.BEGIN] + self._kept.marks[:, kernel.ROOM]).max(initial=0))])
            status = kernel.run(
                self._kept, self._log, self.questions, grid, screen, snapshots,
                first, end, begin, rows, cells, waiting, free, progress, told,
            )  # fmt: skip
            missing = int(progress[kernel.NEEDED])
            if status == kernel.LOG_FULL:
                self._make_log_room(missing)
            elif status == kernel.ARENA_FULL:
                self._make_arena_room(missing)
            elif told.used[0]:
                yield _written(told)
                told = _room(max(_EVENTS, missing))
            elif status == kernel.EVENTS_FULL:
                told = _room(max(_EVENTS, missing))

    def _adapt_grid(self, rows: np.ndarray, begin: int) -> None:
        """A grid over what rows range over, as they come to range farther, or less far."""
        extent = self._extent
        extent.take(rows, begin, self.last[0])
        if extent.bounds is None or not extent.fits():
            extent.fit()
            self._index = None
        if self._index is None:
            self._index = self._indexed()
        if extent.widen(rows, self._index[0].edge):
            kernel.begin_index(self._kept, self.questions, *self._index)

    def _indexed(self) -> tuple[grid_kernel.Grid, np.ndarray]:
        extent, queries = self._extent, len(self.asked)
        assert extent.bounds is not None
        grid = grid_kernel.empty_grid(extent.bounds[0], extent.bounds[1], self.grid, queries)
        if extent.reach is None:
            extent.reach = extent.bounds.copy()
        grid.edge[:, 0], grid.edge[:, -1] = extent.reach
        screen = empty_screen(queries, len(self.attributes))
        kernel.begin_index(self._kept, self.questions, grid, screen)
        return grid, screen

    def _make_log_room(self, more: int, stays: np.ndarray | None = None) -> None:
        """The same log with room for so many more entries; without those that do not stay."""
        log = self._log
        head, stop = log.marks.tolist()
        kept = np.arange(head, stop) if stays is None else head + np.flatnonzero(stays[head:stop])
        room = len(kept) if more == 0 else 2 * len(kept) + 4 * more
        moved = np.append(np.full(stop, kernel.NONE), kernel.NONE)  # where entries are now; what refers to none, last
        moved[kept] = np.arange(len(kept))
        columns = []
        for column in log[:4]:
            wider = np.zeros(room, column.dtype)
            wider[: len(kept)] = column[kept]
            columns.append(wider)
        columns[3][: len(kept)] = moved[columns[3][: len(kept)]]
        newest = self._kept.marks[:, kernel.NEWEST]
        newest[:] = moved[newest]
        self._log = _log(columns, len(kept))

    def _make_arena_room(self, more: int) -> None:
        """The same answers, each with some room, and so much at the arena's end."""
        kept, marks = self._kept, self._kept.marks.copy()
        count = marks[:, kernel.COUNT]
        room = count + (count >> 2)
        marks[:, kernel.BEGIN], marks[:, kernel.ROOM] = np.cumsum(room) - room, room
        whole = int(room.sum())
        score, ordinal = np.zeros(2 * whole + 2 * more), np.zeros(2 * whole + 2 * more, np.int64)
        for old, new in ((kept.score, score), (kept.ordinal, ordinal)):
            for (begin, held), to in zip(
                kept.marks[:, [kernel.BEGIN, kernel.COUNT]].tolist(), marks[:, kernel.BEGIN].tolist(), strict=True
            ):
                new[to : to + held] = old[begin : begin + held]
        self._kept = kept._replace(score=score, ordinal=ordinal, marks=marks)

    def delete(self, ordinals: np.ndarray) -> kernel.Told:
        """Rows are in no window any more; that which ended last is answered again: its result rows."""
        head, stop = self._log.marks.tolist()
        base = int(self._log.ordinal[head]) if stop > head else self.seen
        gone = np.zeros(max(self.seen - base, 0), bool)
        gone[ordinals[ordinals >= base] - base] = True
        told = _room(int(self._kept.marks[:, kernel.COUNT].sum()))
        kernel.delete(self._kept, self._log, gone, base, np.empty(len(self.asked), bool), told)
        return _written(told)

    # -- what is held --------------------------------------------------------------------------------------------

    refills = False

    def top(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Scores and ordinals of a query's last answer."""
        begin, count = self._kept.marks[number, [kernel.BEGIN, kernel.COUNT]].tolist()
        return self._kept.score[begin : begin + count].copy(), self._kept.ordinal[begin : begin + count].copy()

    def candidates(self, number: int) -> int:
        """Rows of a query's answer."""
        return int(self._kept.marks[number, kernel.COUNT])

    def all_candidates(self) -> np.ndarray:
        """The same for every query, at once."""
        return self._kept.marks[:, kernel.COUNT].copy()

    def search_of(self, number: int) -> str:
        """Which rows are scored for a query: "grid" where there are cells it need not monitor."""
        if self._index is None:
            if self._extent.bounds is None:
                return "scan"
            self._index = self._indexed()
        return "scan" if self._monitored(number).all() else "grid"

    def _monitored(self, number: int) -> np.ndarray:
        """Which cells a query monitors."""
        assert self._index is not None
        word, place = divmod(number, grid_kernel.WORD_BITS)
        monitored: np.ndarray = (self._index[0].members[:, word] >> np.uint64(place) & np.uint64(1)).astype(bool)
        return monitored

    def needed(self, base: int = 0) -> np.ndarray:
        """Ordinals from `base` on of every row that is in an answer, or will be, increasing."""
        head, stop = self._log.marks.tolist()
        let_in = self._log.ordinal[head:stop]  # in order
        return np.unique(let_in[let_in.searchsorted(base) :])

    def oldest_needed(self) -> int:
        """The first of them."""
        head, stop = self._log.marks.tolist()
        return int(self._log.ordinal[head]) if stop > head else self.seen

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        arrays = [*self._kept, *self._log]
        if self._index is not None:
            arrays += [*self._index[0], self._index[1]]
        return sum(array.nbytes for array in arrays)

    def check_invariants(self) -> None:
        """AssertionError when an answer is out of order or overlaps another, lacks an entry of the log, or a query does not
        monitor the cells it should."""
        marks, (head, stop) = self._kept.marks, self._log.marks.tolist()
        live, parts = slice(head, stop), sorted(marks[marks[:, kernel.ROOM] > 0][:, [kernel.BEGIN, kernel.ROOM]].tolist())
        overlap = [one for one, other in pairwise(parts) if sum(one) > other[0]]
        assert not overlap, f"answers overlap: {parts}"
        assert (np.diff(self._log.ordinal[live]) >= 0).all(), f"the log is out of order: {self._log.ordinal[live]}"
        for number, row in enumerate(marks):
            score, ordinal = self.top(number)
            ranked = (score[:-1] > score[1:]) | ((score[:-1] == score[1:]) & (ordinal[:-1] > ordinal[1:]))
            above = score > self._kept.bound[number]
            assert ranked.all() and above.all(), f"answer {number} is not ranked above its bound: {score}, {ordinal}"
            entries = self._log.ordinal[live][self._log.query[live] == number]
            assert np.isin(ordinal, entries).all(), f"answer {number} holds {ordinal}, the log only {entries}"
            assert row[kernel.COUNT] <= row[kernel.ROOM] and row[kernel.NEW] <= len(entries), f"answer {number}: {row}"
        if self._index is not None:
            cells = coordinates(np.arange(len(self._index[0].members)), self.grid, len(self.attributes))
            for number in range(len(self.asked)):
                self._check_monitored(number, cells)

    def _check_monitored(self, number: int, cells: np.ndarray) -> None:
        """`cells`: where each of the grid's cells lies, int64 [d, cells]."""
        assert self._index is not None
        grid, asked = self._index[0], self.asked[number]
        low, high, out = np.empty(len(cells)), np.empty(len(cells)), np.empty(3)
        region = np.empty((2, len(cells)), np.int64)
        grid_kernel.region_box(grid, self.questions, number, region)
        inside = ((cells >= region[0][:, None]) & (cells < region[1][:, None])).all(axis=0)
        upper = np.take_along_axis(grid.edge, cells + 1, axis=1)
        empty = (upper > grid.edge[:, -1:]).any(axis=0)  # no row is there
        watched = self._monitored(number)
        for cell in np.flatnonzero(inside & ~empty & ~watched).tolist():
            at = cells[:, cell]
            if asked.code is None:
                best = query_grid.best_in_cell(grid, self.questions, number, cell)
            else:
                best = query_grid.best_in_cells(grid, self.questions, number, np.stack([at, at + 1]), low, high, out)
            assert not best > self._kept.bound[number], f"{number} does not watch {cell}"

    # -- state ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Everything remembered, as bytes of `skyband.state`; the queries themselves are the caller's to keep."""
        self._make_log_room(0)
        self._make_arena_room(0)
        kept, log, extent = self._kept, self._log, self._extent
        arrays = {"score": kept.score, "ordinal": kept.ordinal, "marks": kept.marks}
        arrays |= {f"log.{name}": column for name, column in zip(log._fields[:4], log[:4], strict=True)}
        arrays["bounds"] = np.zeros((0, 0)) if extent.bounds is None else extent.bounds
        arrays["reach"] = np.zeros((0, 0)) if extent.reach is None else extent.reach
        header: dict[str, Any] = {"seen": self.seen, "last": list(self.last), "attributes": list(self.attributes)}
        return pack("Thresholds", header | {"extents": extents_of(self.layout(), arrays)}, arrays)

    def layout(self) -> Layout:
        """What a snapshot holds. Bounds and reach have no extent before there is a grid."""
        return fields(_FIELDS, queries=len(self.asked), of_a_query=kernel.MARKS)

    def restore(self, data: bytes) -> None:
        """Take up what `snapshot` of a structure with the same queries wrote."""
        header, arrays = unpack("Thresholds", data)
        with reading("Thresholds"):
            check(self.layout(), arrays, header["extents"])
            self.seen = whole_number(header, "seen")
            first, end = header["last"]
            self.last = int(first), int(end)
        self._kept = self._kept._replace(score=arrays["score"], ordinal=arrays["ordinal"], marks=arrays["marks"])
        columns = [arrays[f"log.{name}"] for name in kernel.Log._fields[:4]]
        self._log = _log(columns)
        extent = self._extent = Extent()
        extent.bounds = arrays["bounds"] if arrays["bounds"].size else None
        extent.reach = arrays["reach"] if arrays["reach"].size else None
        self._asking = self._index = None


def _log(columns: list[np.ndarray], entries: int | None = None) -> kernel.Log:
    marks = np.array([0, len(columns[0]) if entries is None else entries])
    return kernel.Log(columns[0], columns[1], columns[2], columns[3], marks)


def _room(rows: int) -> kernel.Told:
    whole = [np.empty(rows, np.int64) for _ in range(4)]
    return kernel.Told(whole[0], whole[1], np.empty(rows, np.int8), whole[2], np.empty(rows), whole[3], np.zeros(1, np.int64))


def _written(told: kernel.Told) -> kernel.Told:
    used = int(told.used[0])
    query, window, event, rank, score, ordinal = (column[:used] for column in told[:6])
    return kernel.Told(query, window, event, rank, score, ordinal, told.used)

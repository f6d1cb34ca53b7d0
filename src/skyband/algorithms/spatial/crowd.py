"""Many queries, each with a score of its own, over one stream of points, and perhaps a grid over these.

Without a grid every row is shown to every query (`scanned`). With one, a row is shown only to the queries that monitor its
cell, and a calendar says which queries lose a row when the next one comes.

Paper: TODS15 section 6 (query index), 6.1 (indexing thresholds). Guarantee: that of each query's core. Cost a row: the sum of
the queries' whose threshold the row's cell can reach.

Cores of SIGMOD06 are filled from the window's points, which are then kept by cell: TMA (section 4) holds the top-k and
searches when it has lost one, SMA (section 5) a skyband of the rows above its threshold and searches when it has fewer than
k. Both are exact; a search opens the cells that can hold one of the k best. Where most rows lie in cells that most queries
monitor, all are scanned, until cells are of use again. Memory: the points of the window besides. These take any expression as
a score, regions, and TMA deletions, which a core that has dropped rows cannot (SIGMOD06 section 7).

Deviations: a query that monitors cells in vain is indexed anew when that has cost more than the change; one that needs
more cells gets some more than it needs. The grid is laid over the range of the rows, and anew, in O(window), when the window
comes to range twice as far, or over a third of it (`extent`); cells at its edge reach to infinity, or, where the window is
kept, as far as its rows, and a search begins at the best of the cells that those range over. A skyband of SMA that has
grown to twice k is cut back to the k best, as after a search, when a window is answered, or before, when it has no room and its
top-k will not lose a row by then. With `spare`, which the paper does not have, SMA searches for
that share of k more rows: a skyband that begins with k rows falls below k as often as not when one next comes or goes, one
that begins with some to spare hardly ever. In a grid of one cell both are scanned, and filled by a look at the whole window: so
it is where two cells along each attribute would be more cells than rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from skyband.algorithms.ranked.arena import check_band, packed, with_room
from skyband.algorithms.spatial import scanned
from skyband.algorithms.spatial.asked import Asked, resolution
from skyband.algorithms.spatial.crowd_check import check_calendar, check_monitored, check_points, coordinates
from skyband.algorithms.spatial.extent import Extent
from skyband.algorithms.spatial.reindexed import Index, with_one, without
from skyband.algorithms.spatial.scanned import NO_POINTS, Round, Scanned
from skyband.kernels.ranked import bands, pruning
from skyband.kernels.spatial import crowd as kernel
from skyband.kernels.spatial import crowd_index, deletion, points, query_grid
from skyband.kernels.spatial import grid as grid_kernel
from skyband.kernels.spatial.calendar import empty_calendar
from skyband.kernels.spatial.screening import empty_screen
from skyband.kernels.tables import Results, Tops
from skyband.layout import Layout, check, extents_of, fields, reading, whole_number
from skyband.state import pack, unpack

__all__ = ["Asked", "Crowd", "resolution"]

_SHOWN = 0.5  # of rows to queries: where the cells let more through, a scan, which computes many scores at a time, costs less
_LOOK = 1 << 14  # rows after which that is looked at, or as many as there are cells; after a scan, twice as many each time
_WINDOWS = 4  # but after so many windows at the latest

_FIELDS = {
    "score": "float64 room",
    "ordinal": "int64 room",
    "count": "int32 room",
    "marks": "int64 bands of_a_band",
    "levels": "float64 bands levels",
    "query": "int64 queries of_a_query",
    "rows": "float64 attributes waiting",
    "bounds": "float64 bounds bounded",
    "reach": "float64 reach reached",
    "window": "float64 attributes window",
    "gone": "int64 gone",
    "tops.score": "float64 queries ranks",
    "tops.ordinal": "int64 queries ranks",
    "tops.count": "int64 queries",
}


class Crowd(Scanned):
    """Queries over the same attributes. `grid`: cells along each, 0 for none; with one, all have the same window and kind."""

    def __init__(self, attributes: tuple[str, ...], grid: int = 0) -> None:
        super().__init__(attributes, grid)
        self._index: Index | None = None
        self._extent = Extent()
        self._scans = False  # the cells are of no use: every row goes to every query
        self._patience, self._look_at = _LOOK, _LOOK  # for how many rows more, and from which one on that is looked at

    def _forget_index(self) -> None:
        super()._forget_index()
        self._index = None

    def _take_up(self, asked: Asked) -> None:
        keeps = self._index is not None and self._walks  # of rows that all queries see nothing is noted
        super()._take_up(asked)
        if not keeps or self._index is None:
            self._index = None
            return
        self._index = with_one(*self._index)
        crowd_index.index_query(self.state, self.questions, self._index[0], self._index[1], len(self.asked) - 1)

    def _let_go(self, number: int) -> None:
        keeps = self._index is not None and self._walks and len(self.asked) > 1
        super()._let_go(number)
        self._index = without(*self._index, number) if keeps and self._index is not None else None

    # -- rows ----------------------------------------------------------------------------------------------------

    def _take(self, rows: np.ndarray, rows_from: int, begin: int) -> Iterator[Round]:
        if not self.grid:
            return super()._take(rows, rows_from, begin)
        piece = rows[:, begin - rows_from :]
        looks = begin >= self._look_at and self.grid > 1 and self.refills and self.asking.is_plain
        fresh = looks and self._scans
        if fresh:
            self._scans, self._index = False, None
        self._adapt_grid(piece, begin)
        self._make_room(begin)
        if self._index is None:
            self._index = self._indexed(begin)
        cells = grid_kernel.cells_in(self._index[0], rows)
        self._keep_window(piece, cells[begin - rows_from :], begin)
        if looks:
            self._choose_search(begin, fresh)
        return self._walk(rows, cells, rows_from, begin) if self._walks else super()._take(rows, rows_from, begin)

    @property
    def _walks(self) -> bool:
        """Does a row go to the queries of its cell only? Where scores can be computed many at a time, not if there is one cell,
        or cells keep few rows from queries."""
        useless = self.grid == 1 or self._scans
        return self.grid > 0 and not (useless and self.refills and self.asking.is_plain)

    def _choose_search(self, begin: int, fresh: bool) -> None:
        """Scan from now on where the cells let too much through, as they do where a few values are far from all others, which
        then share a cell; and look again later. `fresh`: all have just been indexed."""
        assert self._index is not None
        if not fresh and self._shown() > _SHOWN:  # perhaps only because thresholds have risen since
            crowd_index.begin_index(self.state, self.questions, *self._index)
        self._scans = self._shown() > _SHOWN
        usual, most = max(_LOOK, len(self._index[0].members)), _WINDOWS * (self.seen - self._last_window(begin)[0])
        self._patience = max(min(2 * self._patience, most), usual) if self._scans else usual
        self._look_at = self.seen + self._patience

    def _shown(self) -> float:
        """The share of the window's rows that a query sees, on average."""
        assert self._index is not None
        rows = self._points.ring[:, points.COUNT]
        return float(rows @ self._index[0].watchers) / max(int(rows.sum()) * len(self.asked), 1)

    def _walk(self, rows: np.ndarray, cells: np.ndarray, rows_from: int, begin: int) -> Iterator[Round]:
        assert self._index is not None
        grid, indexed, calendar = self._index
        first, end, name = self._windows(begin)
        progress = np.zeros(kernel.PROGRESS, np.int64)
        progress[[kernel.ROW, kernel.MEMBER]] = begin, pruning.NONE
        progress[[kernel.WAITING, kernel.COMING]] = int(indexed.waits.sum()), self._coming()
        answers = self._answers()
        while True:
            status = kernel.walk(
                self.state, self.questions, grid, self._points, indexed, calendar,
                first, end, rows, cells, rows_from, self.seen, progress, answers,
            )  # fmt: skip
            written = int(answers.used[0])
            if written and status < 0:
                yield answers.query[:written], name[answers.window[:written]], Results(*answers[2:6])
                answers = self._answers()
            if status == pruning.DONE:
                self.searches += int(progress[kernel.SEARCHES])
                return
            if status >= 0:
                self.state = with_room(self.state, status)

    def _windows(self, begin: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The windows that end in the rows from `begin` up to `seen`: first row, end, and what they are called in answers."""
        size, slide = self.asked[0].size, self.asked[0].slide
        end = np.arange(begin // slide + 1, self.seen // slide + 1) * slide
        return end - size, end, end

    def _coming(self) -> int:
        """The first row of the window that ends next."""
        return (self.seen // self.asked[0].slide + 1) * self.asked[0].slide - self.asked[0].size

    def _last_window(self, seen: int) -> tuple[int, int]:
        """The window that had ended last when so many rows had come: its first row and its end."""
        end = seen // self.asked[0].slide * self.asked[0].slide
        return max(end - self.asked[0].size, 0), end

    def _most_rows(self) -> int:
        """The rows from the first of the window that ended last on, at most, a piece being taken."""
        return self.asked[0].size + self.asked[0].slide + 2 * scanned.WALKED

    def _make_room(self, begin: int) -> None:
        """Room for more rows than there have been: never more where windows hold so many rows."""
        return

    def _indexed(self, begin: int) -> Index:
        """The grid, every query indexed as it stands, and the calendar."""
        extent, queries = self._extent, len(self.asked)
        if extent.bounds is None:
            extent.fit()
        assert extent.bounds is not None
        grid = grid_kernel.empty_grid(extent.bounds[0], extent.bounds[1], self.grid, queries)
        if self.refills:
            if extent.reach is None:
                extent.reach = extent.bounds.copy()
            grid.edge[:, 0], grid.edge[:, -1] = extent.reach
            if self._points is NO_POINTS:
                self._points = points.empty_points(len(self.attributes), self._most_rows(), len(grid.members))
                self._points.marks[points.OLDEST] = begin
        indexed = crowd_index.Indexed(
            np.full(queries, -np.inf),
            np.zeros(queries, np.int64),
            np.zeros(queries, np.int64),
            np.zeros(queries, np.int64),
            self.state.query[:, pruning.TOUCHED] > 0,
            np.zeros(queries, np.int64),
            empty_screen(queries, len(self.attributes)),
        )
        touched = np.flatnonzero(indexed.waits)
        indexed.waiting[: len(touched)] = touched
        span = int(self.state.query[0, [pruning.SIZE, pruning.BUFFER]].max())
        calendar = empty_calendar(self._most_rows(), queries, begin - span, self._last_window(begin)[0])
        crowd_index.begin_index(self.state, self.questions, grid, indexed, calendar)
        return grid, indexed, calendar

    def _keep_window(self, piece: np.ndarray, cells: np.ndarray, begin: int) -> None:
        """Enter rows into the window that cores are filled from, and drop those that left it."""
        if not self.refills:
            return
        self._widen(piece)
        points.drop_points(self._points, self._last_window(begin)[0])  # which may be answered again
        self._points = points.add_points(self._points, cells, np.ascontiguousarray(piece), begin)

    def delete(self, ordinals: np.ndarray) -> Round:
        """Rows are in no window any more; that which ended last is answered again: queries, the window's end, answers. For a
        core that holds nothing but its top-k and is filled from the window (SIGMOD06 section 7)."""
        if self._index is None:
            self._index = self._indexed(self.seen)
        points.delete_points(self._points, ordinals)
        grid, indexed, calendar = self._index
        indexed.waits[:] = self.state.query[:, pruning.TOUCHED] > 0  # a scan answers who waits without telling the index
        first, end = self._last_window(self.seen)
        base = int(self._points.marks[points.OLDEST])
        gone = np.zeros(max(self.seen - base, 0), bool)
        gone[ordinals[ordinals >= base] - base] = True
        room = sum(asked.k for asked in self.asked)
        answers = pruning.answers_room(len(self.asked), np.empty(room), np.empty(room, np.int64))
        deletion.delete(
            self.state, self.questions, grid, self._points, indexed, calendar,
            first, end, self.seen, gone, base, self.tops, answers,
        )  # fmt: skip
        written = int(answers.used[0])
        return answers.query[:written], np.full(written, end), Results(*answers[2:6])

    def _adapt_grid(self, piece: np.ndarray, begin: int) -> None:
        """Lay the grid anew, in O(window), when the window has come to range over far more than it divides, or far less."""
        self._extent.take(piece, begin, self._last_window(begin)[0])
        if self._walks and not self._extent.fits():
            self._extent.fit()
            self._lay_anew(begin)

    def _lay_anew(self, begin: int) -> None:
        """Another grid over the rows before `begin`."""
        window, gone = self._window(begin)
        self._points = NO_POINTS
        self._forget_index()
        if self.refills:
            self._fill_points(window, begin, gone)

    def _fill_points(self, window: np.ndarray, end: int, gone: np.ndarray) -> None:
        """Enter the rows before the ordinal `end`, but for those `gone`, into an empty window."""
        begin = end - window.shape[1]
        self._index = self._indexed(end)
        self._widen(window)
        self._points.marks[points.OLDEST] = begin
        self._points = points.add_points(self._points, grid_kernel.cells_in(self._index[0], window), window, begin)
        points.delete_points(self._points, gone)

    def _widen(self, piece: np.ndarray) -> None:
        """Cells at the edge reach as far as rows do: when some go beyond, so does the edge, and queries are indexed
        anew."""
        assert self._index is not None
        grid, indexed, calendar = self._index
        if self._extent.widen(piece, grid.edge) and self._walks:
            crowd_index.begin_index(self.state, self.questions, grid, indexed, calendar)
        if (found := self._extent.whole_range) is not None:
            grid_kernel.box_of(grid, found, grid.inside)

    # -- what is held, state -------------------------------------------------------------------------------------

    def search_of(self, number: int) -> str:
        """Which rows are scored for a query: "grid" where there are cells it need not monitor."""
        if not self._walks or (self._index is None and self._extent.bounds is None):
            return "scan"
        if self._index is None:  # queries have come or gone: it is made before the next row anyway
            self._index = self._indexed(self.seen)
        grid, indexed, _ = self._index
        if indexed.cells[number] == len(grid.members):  # perhaps only because that has not cost much yet
            crowd_index.index_query(self.state, self.questions, grid, indexed, number)
        return "grid" if indexed.cells[number] < len(grid.members) else "scan"

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        arrays = [*self.state.rows, *self.state[1:], self.rows, *self.tops, *self._points]
        for table in self._index or ():
            arrays += table
        return sum(array.nbytes for array in arrays)

    def check_invariants(self) -> None:
        """AssertionError when a band, the window's points, what queries monitor or the calendar is not as it should be."""
        for number, asked in enumerate(self.asked):
            check_band(self.state, 2 * number, f"core of query {number}")
            if asked.filter is not None:
                check_band(self.state, 2 * number + 1, f"filter of query {number}")
        counts = [self.candidates(number) for number in range(len(self.asked))]
        assert self.all_candidates().tolist() == counts, f"candidates {self.all_candidates().tolist()}, counted {counts}"
        if self._index is None:
            return
        grid, indexed, calendar = self._index
        if self.refills:
            check_points(self._points, grid)
        if self._walks:
            cells = range(len(grid.members))
            best = [[self._best(grid, q, cell) for cell in cells] for q in range(len(self.asked))]
            check_monitored(self.state, grid, indexed, np.array(best))
            check_calendar(self.state, calendar, indexed)

    def _best(self, grid: grid_kernel.Grid, q: int, cell: int) -> float:
        """The best score a row in the cell can have for a query; NaN when it can have none."""
        at = coordinates(np.array([cell]), self.grid, len(self.attributes))[:, 0]
        if (grid.edge[np.arange(len(at)), at + 1] > grid.edge[:, -1]).any():
            return np.nan  # no row is there: all rows so far have the same number
        region = np.empty((2, len(at)), np.int64)
        grid_kernel.region_box(grid, self.questions, q, region)
        if (at < region[0]).any() or (at >= region[1]).any():
            return np.nan
        if self.asked[q].code is None:
            return float(query_grid.best_in_cell(grid, self.questions, q, cell))
        low, high, out = np.empty(len(at)), np.empty(len(at)), np.empty(3)
        return float(query_grid.best_in_cells(grid, self.questions, q, np.stack([at, at + 1]), low, high, out))

    def snapshot(self) -> bytes:
        """Everything remembered, as bytes of `skyband.state`; the queries themselves are the caller's to keep."""
        self.state = packed(self.state)
        window, gone = self._window(self.seen)
        arrays = dict(zip(bands.Rows._fields, self.state.rows, strict=True)) | {
            "marks": self.state.marks,
            "levels": self.state.levels,
            "query": self.state.query,
            "rows": self.rows,
            "bounds": np.zeros((0, 0)) if self._extent.bounds is None else self._extent.bounds,
            "reach": np.zeros((0, 0)) if self._extent.reach is None else self._extent.reach,
            "window": window,
            "gone": gone,
        }
        arrays |= {f"tops.{name}": array for name, array in self.tops._asdict().items()}
        return pack("Crowd", self._header() | {"extents": extents_of(self.layout(), arrays)}, arrays)

    def _header(self) -> dict[str, Any]:
        return {"seen": self.seen, "attributes": list(self.attributes), "grid": self.grid}

    def _restore_header(self, header: dict[str, Any]) -> None:
        self.seen = whole_number(header, "seen")

    def layout(self) -> Layout:
        """What a snapshot holds. Bounds and reach have no extent before there is a grid."""
        known = {"attributes": len(self.attributes), "queries": len(self.asked), "bands": 2 * len(self.asked)}
        known |= {"of_a_band": bands.MARKS, "levels": bands.LEVELS, "of_a_query": pruning.COLUMNS}
        return fields(_FIELDS, **known)

    def restore(self, data: bytes) -> None:
        """Take up what `snapshot` of a crowd with the same queries wrote."""
        header, arrays = unpack("Crowd", data)
        with reading("Crowd"):
            check(self.layout(), arrays, header["extents"])
            self._restore_header(header)
        self.rows = arrays["rows"]
        self.state = pruning.Pruners(
            bands.Rows(*(arrays[name] for name in bands.Rows._fields)), arrays["marks"], arrays["levels"], arrays["query"]
        )
        self.tops = Tops(**{name: arrays[f"tops.{name}"] for name in Tops._fields})
        self._extent = Extent()
        self._extent.bounds = arrays["bounds"] if arrays["bounds"].size else None
        self._extent.reach = arrays["reach"] if arrays["reach"].size else None
        self._forget_index()
        self._points = NO_POINTS
        self._restore_window(arrays["window"], arrays["gone"])

    def _restore_window(self, window: np.ndarray, gone: np.ndarray) -> None:
        if self.refills and self._extent.bounds is not None:
            self._extent.take(window, self.seen - window.shape[1], self.seen - window.shape[1])
            self._fill_points(window, self.seen, gone)

    def _window(self, seen: int) -> tuple[np.ndarray, np.ndarray]:
        """Attributes of the rows that cores may be filled from when so many have been taken, oldest first; and the ordinals of
        those that were deleted."""
        if self._points is not NO_POINTS:
            points.drop_points(self._points, self._last_window(seen)[0])
        begin = int(self._points.marks[points.OLDEST])
        count = int(self._points.marks[points.NEXT]) - begin
        rows, deleted = np.empty((len(self.attributes), count)), np.empty(count, bool)
        points.read_window(self._points, rows, deleted)
        return rows, begin + np.flatnonzero(deleted)

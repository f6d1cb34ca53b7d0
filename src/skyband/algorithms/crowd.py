"""Many queries, each with a score of its own, over one stream of points, and perhaps a grid over these.

Without a grid every row is shown to every query (`scanned`). With one, a row is shown only to the queries that monitor its
cell, and a calendar says which queries lose a row when the next one comes.

Paper: TODS15 section 6 (query index), 6.1 (indexing thresholds). Guarantee: that of each query's core. Cost a row: the sum of
the queries' whose threshold the row's cell can reach.

Cores of SIGMOD06 are filled from the window's points, which are then kept by cell: TMA (section 4) holds the top-k and
searches when it has lost one, SMA (section 5) a skyband of the rows above its threshold and searches when it has fewer than
k. Both are exact; a search opens the cells that can hold one of the k best. Memory: the points of the window besides. These
take any expression as a score, regions, and TMA deletions, which a core that has dropped rows cannot (SIGMOD06 section 7).

Deviations: a query that monitors cells in vain is indexed anew when that has cost more than the change; one that needs
more cells gets some more than it needs. The grid is laid over the first rows, and anew, in O(window), when rows come to range
twice as far; cells at its edge reach to infinity, or, where the window is kept, as far as its rows. A skyband of SMA that has
grown to twice k is cut back to the k best, as after a search. With `spare`, which the paper does not have, SMA searches for
that share of k more rows: a skyband that begins with k rows falls below k as often as not when one next comes or goes, one
that begins with some to spare hardly ever. In a grid of one cell both are scanned, and filled by a look at the whole window: so
it is where two cells along each attribute would be more cells than rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from skyband.algorithms.arena import check_band, packed, with_room
from skyband.algorithms.asked import Asked, resolution
from skyband.algorithms.crowd_check import check_calendar, check_monitored, check_points, coordinates
from skyband.algorithms.scanned import NO_POINTS, PIECE, WALKED, Round, Scanned
from skyband.kernels import bands, deletion, points, pruning, query_grid
from skyband.kernels import calendar as calendar_kernel
from skyband.kernels import crowd as kernel
from skyband.kernels import grid as grid_kernel
from skyband.kernels import scan as scan_kernel
from skyband.kernels.tables import Results, Tops
from skyband.layout import Layout, check, extents_of, fields, reading, whole_number
from skyband.state import pack, unpack

__all__ = ["Asked", "Crowd", "TimeCrowd", "resolution"]

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
        self._bounds: np.ndarray | None = None  # of the grid: [2, d]
        self._index: tuple[grid_kernel.Grid, kernel.Indexed, calendar_kernel.Calendar] | None = None
        self._reach: np.ndarray | None = None  # how far the grid's outermost cells reach then: [2, d]

    def _forget_index(self) -> None:
        super()._forget_index()
        self._index = None

    # -- rows ----------------------------------------------------------------------------------------------------

    def _take(self, rows: np.ndarray, rows_from: int, begin: int) -> Iterator[Round]:
        if not self.grid:
            return super()._take(rows, rows_from, begin)
        piece = rows[:, begin - rows_from :]
        self._adapt_grid(piece, begin)
        if self._index is None:
            self._index = self._indexed(piece if self.refills else rows, begin)
        cells = grid_kernel.cells_in(self._index[0], rows)
        self._keep_window(piece, cells[begin - rows_from :], begin)
        return self._walk(rows, cells, rows_from, begin) if self._walks else super()._take(rows, rows_from, begin)

    @property
    def _walks(self) -> bool:
        """Does a row go to the queries of its cell only? One cell is none, where scores can be computed many at a time."""
        return self.grid > 1 or (self.grid == 1 and not (self.refills and self.asking.is_plain))

    def _walk(self, rows: np.ndarray, cells: np.ndarray, rows_from: int, begin: int) -> Iterator[Round]:
        assert self._index is not None
        grid, indexed, calendar = self._index
        size, slide = self.asked[0].size, self.asked[0].slide
        progress = np.zeros(kernel.PROGRESS, np.int64)
        progress[[kernel.ROW, kernel.MEMBER]] = begin, pruning.NONE
        progress[kernel.WAITING] = int(indexed.waits.sum())
        answers = self._answers()
        while True:
            status = kernel.walk(
                self.state, self.questions, grid, self._points, indexed, calendar,
                size, slide, rows, cells, rows_from, self.seen, progress, answers,
            )  # fmt: skip
            written = int(answers.used[0])
            if written and status < 0:
                yield answers.query[:written], answers.window[:written], Results(*answers[2:6])
                answers = self._answers()
            if status == pruning.DONE:
                self.searches += int(progress[kernel.SEARCHES])
                return
            if status >= 0:
                self.state = with_room(self.state, status)

    def _indexed(self, rows: np.ndarray, begin: int) -> tuple[grid_kernel.Grid, kernel.Indexed, calendar_kernel.Calendar]:
        """The grid over the first rows' bounds, every query indexed as it stands, and the calendar."""
        if self._bounds is None:
            finite = [row[np.isfinite(row)] for row in rows]
            low = [row.min(initial=0.0 if len(row) == 0 else row[0]) for row in finite]
            high = [row.max(initial=0.0 if len(row) == 0 else row[0]) for row in finite]
            self._bounds = np.array([low, high])
        queries = len(self.asked)
        grid = grid_kernel.empty_grid(self._bounds[0], self._bounds[1], self.grid, queries)
        if self.refills:
            if self._reach is None:
                self._reach = self._bounds.copy()
            grid.edge[:, 0], grid.edge[:, -1] = self._reach
            if self._points is NO_POINTS:
                ring = self.asked[0].size + self.asked[0].slide + 2 * WALKED
                self._points = points.empty_points(len(self.attributes), ring, len(grid.members))
                self._points.marks[points.OLDEST] = begin
        indexed = kernel.Indexed(
            np.full(queries, -np.inf),
            np.zeros(queries, np.int64),
            np.zeros(queries, np.int64),
            self.state.query[:, pruning.TOUCHED] > 0,
            np.zeros(queries, np.int64),
            np.full((queries, 1 + len(self.attributes)), np.nan),
        )
        touched = np.flatnonzero(indexed.waits)
        indexed.waiting[: len(touched)] = touched
        size, slide = self.asked[0].size, self.asked[0].slide
        ring = size + slide + 2
        head, after, before = (np.full(room, pruning.NONE, np.int64) for room in (ring, 2 * queries, 2 * queries))
        calendar = calendar_kernel.Calendar(head, after, before, np.full(2 * queries, bands.NEVER, np.int64))
        kernel.begin_index(self.state, self.questions, grid, indexed, calendar, size, slide, begin)
        return grid, indexed, calendar

    def _keep_window(self, piece: np.ndarray, cells: np.ndarray, begin: int) -> None:
        """Enter rows into the window that cores are filled from, and drop those that left it."""
        if not self.refills:
            return
        size = self.asked[0].size
        self._widen(piece, begin)
        # a slide's rows more than the next window holds: the last one may be answered again
        points.drop_points(self._points, begin + 1 - size - self.asked[0].slide)
        self._points = points.add_points(self._points, cells, np.ascontiguousarray(piece), begin)

    def delete(self, ordinals: np.ndarray) -> Round:
        """Rows are in no window any more; those that ended last are answered again: queries, window ends, answers. For a
        core that holds nothing but its top-k and is filled from the window (SIGMOD06 section 7)."""
        if self._index is None:
            self._index = self._indexed(self.rows, self.seen)
        points.delete_points(self._points, ordinals)
        grid, indexed, calendar = self._index
        size, slide = self.asked[0].size, self.asked[0].slide
        base = int(self._points.marks[points.OLDEST])
        gone = np.zeros(max(self.seen - base, 0), bool)
        gone[ordinals[ordinals >= base] - base] = True
        room = sum(asked.k for asked in self.asked)
        answers = pruning.answers_room(len(self.asked), np.empty(room), np.empty(room, np.int64))
        deletion.delete(
            self.state, self.questions, grid, self._points, indexed, calendar,
            size, slide, self.seen, gone, base, self.tops, answers,
        )  # fmt: skip
        written = int(answers.used[0])
        return answers.query[:written], answers.window[:written], Results(*answers[2:6])

    def _adapt_grid(self, piece: np.ndarray, begin: int) -> None:
        """Lay the grid anew when rows have come to range twice as far as it reaches, on any attribute. O(window)."""
        if self._bounds is None:
            return
        low, high = piece.min(axis=1, initial=np.inf), piece.max(axis=1, initial=-np.inf)
        if (low >= self._bounds[0]).all() and (high <= self._bounds[1]).all():
            return
        finite = np.where(np.isfinite(piece), piece, np.nan)
        low = np.fmin(np.fmin.reduce(finite, axis=1, initial=np.inf), self._bounds[0])
        high = np.fmax(np.fmax.reduce(finite, axis=1, initial=-np.inf), self._bounds[1])
        with np.errstate(over="ignore"):
            if (high - low <= 2 * (self._bounds[1] - self._bounds[0])).all():
                return
        window, gone = self._window()
        self._bounds, self._reach, self._points = np.stack([low, high]), None, NO_POINTS
        self._forget_index()
        if self.refills:
            self._fill_points(window, begin, gone)

    def _fill_points(self, window: np.ndarray, end: int, gone: np.ndarray) -> None:
        """Enter the rows before the ordinal `end`, but for those `gone`, into an empty window."""
        begin = end - window.shape[1]
        self._index = self._indexed(window, end)
        self._widen(window, end)
        self._points.marks[points.OLDEST] = begin
        self._points = points.add_points(self._points, grid_kernel.cells_in(self._index[0], window), window, begin)
        points.delete_points(self._points, gone)

    def _widen(self, piece: np.ndarray, begin: int) -> None:
        """Cells at the edge reach as far as rows do: when some go beyond, so does the edge, and queries are indexed
        anew."""
        assert self._index is not None
        grid, indexed, calendar = self._index
        edge = grid.edge
        if (piece.min(axis=1, initial=np.inf) >= edge[:, 0]).all() and (
            piece.max(axis=1, initial=-np.inf) <= edge[:, -1]
        ).all():
            return
        low, high = np.fmin.reduce(piece, axis=1, initial=np.inf), np.fmax.reduce(piece, axis=1, initial=-np.inf)
        if (low >= edge[:, 0]).all() and (high <= edge[:, -1]).all():
            return
        with np.errstate(invalid="ignore"):  # edges at infinity
            slack = 0.05 * np.maximum(np.fmax(high, edge[:, -1]) - np.fmin(low, edge[:, 0]), 0)
            edge[:, 0] = np.where(low < edge[:, 0], low - slack, edge[:, 0])
            edge[:, -1] = np.where(high > edge[:, -1], high + slack, edge[:, -1])
        self._reach = np.stack([edge[:, 0], edge[:, -1]])
        size, slide = self.asked[0].size, self.asked[0].slide
        kernel.begin_index(self.state, self.questions, grid, indexed, calendar, size, slide, begin)

    # -- what is held, state -------------------------------------------------------------------------------------

    def search_of(self, number: int) -> str:
        """Which rows are scored for a query: "grid" where there are cells it need not monitor."""
        if not self._walks or (self._index is None and self._bounds is None):
            return "scan"
        if self._index is None:  # queries have come or gone: it is made before the next row anyway
            self._index = self._indexed(self.rows, self.seen)
        grid, indexed, _ = self._index
        if indexed.cells[number] == len(grid.members):  # perhaps only because that has not cost much yet
            kernel.index_query(self.state, self.questions, grid, indexed, number)
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
            check_calendar(calendar, indexed)

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
        window, gone = self._window()
        arrays = dict(zip(bands.Rows._fields, self.state.rows, strict=True)) | {
            "marks": self.state.marks,
            "levels": self.state.levels,
            "query": self.state.query,
            "rows": self.rows,
            "bounds": np.zeros((0, 0)) if self._bounds is None else self._bounds,
            "reach": np.zeros((0, 0)) if self._reach is None else self._reach,
            "window": window,
            "gone": gone,
        }
        arrays |= {f"tops.{name}": array for name, array in self.tops._asdict().items()}
        header = {"seen": self.seen, "attributes": list(self.attributes), "grid": self.grid}
        return pack("Crowd", header | {"extents": extents_of(self.layout(), arrays)}, arrays)

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
            self.seen = whole_number(header, "seen")
        self.rows = arrays["rows"]
        self.state = pruning.Pruners(
            bands.Rows(*(arrays[name] for name in bands.Rows._fields)), arrays["marks"], arrays["levels"], arrays["query"]
        )
        self.tops = Tops(**{name: arrays[f"tops.{name}"] for name in Tops._fields})
        self._bounds = arrays["bounds"] if arrays["bounds"].size else None
        self._reach = arrays["reach"] if arrays["reach"].size else None
        self._forget_index()
        self._points = NO_POINTS
        self._restore_window(arrays["window"], arrays["gone"])

    def _restore_window(self, window: np.ndarray, gone: np.ndarray) -> None:
        if self.refills and self._bounds is not None:
            self._fill_points(window, self.seen, gone)

    def _window(self) -> tuple[np.ndarray, np.ndarray]:
        """Attributes of the rows that cores may be filled from, oldest first; and the ordinals of those that were deleted."""
        begin = int(self._points.marks[points.OLDEST])
        count = int(self._points.marks[points.NEXT]) - begin
        rows, deleted = np.empty((len(self.attributes), count)), np.empty(count, bool)
        points.read_window(self._points, rows, deleted)
        return rows, begin + np.flatnonzero(deleted)


class TimeCrowd(Crowd):
    """Queries over the same attributes and windows that hold any number of rows: intervals of ordinals, told with the rows.

    A crowd in a grid of one cell, since more rely on windows of so many rows. Exact; O(1) a row and query, vectorized, and
    O(window) a search. Weighted sums and distances without regions only, which can be computed many rows at a time.
    """

    def __init__(self, attributes: tuple[str, ...]) -> None:
        super().__init__(attributes, grid=1)
        # all rows are in one cell: where they are found does not depend on how many a window holds
        self._points = points.empty_points(len(attributes), 1, 1)
        self._first, self._end = np.zeros(0, np.int64), np.zeros(0, np.int64)  # the windows being answered
        self._number = np.zeros(0, np.int64)  # and their places among those handed over

    def take(self, rows: np.ndarray, first: np.ndarray, end: np.ndarray, reach: int) -> Iterator[Round]:
        """Take rows, float64 [attributes, rows], and answer the windows of the ordinals first[i] <= row < end[i], which never
        decrease; the last ends with the rows, or before. In rounds: queries, numbers of windows, answers of those that may
        have changed. No window holds a row before the ordinal `reach`. Otherwise as `push`."""
        rows = np.ascontiguousarray(rows)
        points.drop_points(self._points, min(reach, self.seen))
        self._points = points.add_points(self._points, np.zeros(rows.shape[1], np.int64), rows, self.seen)
        begin, stop, at = self.seen, self.seen + rows.shape[1], 0
        while at < len(end) or self.seen < stop:
            # of windows that end with the same row, each is another matter: what was searched for one may not do for the next
            upto = at + int(np.searchsorted(end[at:], self.seen + PIECE, "right"))
            ends = end[at:upto]
            same = np.flatnonzero(ends[1:] == ends[:-1])
            upto = at + 1 + int(same[0]) if len(same) else upto
            start = self.seen
            self.seen = int(end[upto - 1]) if len(same) else min(start + PIECE, stop)
            self._first, self._end, self._number = first[at:upto], end[at:upto], np.arange(at, upto)
            self.state.query[:, pruning.FILLED] = pruning.NONE
            if self.asked:
                yield from Scanned._take(self, rows[:, start - begin : self.seen - begin].copy(), start, start)
            at = upto

    def push(self, rows: np.ndarray) -> Iterator[Round]:
        """Windows are not known from the rows: see `take`."""
        raise AssertionError("a crowd over windows of any number of rows is told which end with them")

    def _slides(self, begin: int) -> scan_kernel.Slides:
        """The windows being answered; of a query that is not heard, the last of them."""
        kind = np.array([0 if asked.heard else 1 for asked in self.asked], np.int64)
        first, end = (np.concatenate([column, column[-1:]]) for column in (self._first, self._end))
        return scan_kernel.Slides(kind, np.array([0, len(self._end), len(end)]), first, end)

    def _named(self, slides: scan_kernel.Slides, places: np.ndarray) -> np.ndarray:
        return np.concatenate([self._number, self._number[-1:]])[places]

    def _restore_window(self, window: np.ndarray, gone: np.ndarray) -> None:
        begin = self.seen - window.shape[1]
        self._points = points.empty_points(len(self.attributes), 1, 1)
        self._points.marks[points.OLDEST] = begin
        self._points = points.add_points(self._points, np.zeros(window.shape[1], np.int64), window, begin)

"""Which rows of a task some of many queries can rank: of every group and pane those among the best by one of them, and perhaps
some more. The others never travel.

What one micro-batch shows of scores is a good guess for the next (`kernels.spatial.contenders`), so a worker keeps its
contests. Guesses decide what is sent in vain, and nothing else: another worker, or one that is new, sends other rows and the
same results. Rows that may lack a score are sent, for the state that answers a query counts them; those that lack it for all
queries are not, and are counted here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from skyband.algorithms.contract import read_only
from skyband.lanes.crowd import MODERATE
from skyband.lanes.crowd_queries import MOST_ATTRIBUTES, attributes_of, ranking_of, region_of
from skyband.query import Query, RankedQuery, Threshold, TopK
from skyband.schedule import pane_cuts
from skyband.scores.binding import numbers
from skyband.scores.formulas import Distance, Linear
from skyband.spark.paces import Pace
from skyband.window import CountWindow

if TYPE_CHECKING:
    from skyband.kernels.spatial.grid import Grid

Array = np.ndarray
_ALONG = {1: 512, 2: 96, 3: 24, 4: 12, 5: 8, 6: 6}  # cells along each of so many attributes
_SPREAD = 3.0  # how many deviations more than k rows a guess is set for: one of a hundred fails on a random stream
_OUTSIDE = 0.1  # share of the rows outside the grid from which on it is laid anew
_WORTH = 0.5  # share of the rows that are sent from which on looking for them is not worth it
_LONGEST_REST = 64  # calls without a look
_MOST_KEPT = 16  # contests that a worker remembers


def contends(query: Query) -> bool:
    """Whether rows can be chosen for a query next to the data, among many others: by a weighted sum, a distance or a column,
    within a region or not, over time, where a pane is late or in time as a whole."""
    if not isinstance(query, TopK | Threshold) or isinstance(query.window, CountWindow) or isinstance(query.where, str):
        return False
    if callable(query.score) or not attributes_of(query):
        return False
    return isinstance(ranking_of(query), Linear | Distance)


def read_by_all(queries: Iterable[Query]) -> tuple[str, ...]:
    """Columns that the scores of all queries read: a row without a value in one of them has a score for none."""
    scores = [ranking_of(cast(RankedQuery, query)) for query in queries]
    pairs = [score.weights if isinstance(score, Linear) else cast(Distance, score).point for score in scores]
    return tuple(sorted(set.intersection(*({name for name, _ in one} for one in pairs))))


def lack(rows: pa.Table, names: Iterable[str]) -> Array:
    """Which rows have no value in one of these columns: bool."""
    found = np.zeros(len(rows), bool)
    for name in names:
        found |= np.isnan(numbers(rows.column(name)))
    return found


class Contest:
    """The queries of one shard."""

    def __init__(self, paces: Sequence[Pace]) -> None:
        self.rounds = [_Round(pace) for pace in paces if pace.queries]
        self.read = read_by_all(query for pace in paces for query in pace.queries)
        self.rest = self.waited = 0

    def contenders(self, rows: pa.Table, group: Array, time: Array) -> Array:
        """Which rows of a task some query can rank, or may lack a score for some but not for all: bool."""
        unknown = lack(rows, self.read)
        if self.waited < self.rest:
            self.waited += 1
            return ~unknown
        keep = np.zeros(len(rows), bool)
        columns: dict[str, Array] = {}
        for one in self.rounds:
            one.mark(rows, columns, group, time, keep)
        keep &= ~unknown
        self.waited = 0
        self.rest = min(2 * self.rest + 1, _LONGEST_REST) if np.count_nonzero(keep) > _WORTH * len(keep) else 0
        return keep


class _Round:
    """Those that close their windows together."""

    def __init__(self, pace: Pace) -> None:
        queries = cast(tuple[RankedQuery, ...], pace.queries)
        assert pace.slide is not None
        self.slide = pace.slide
        self.cuts = read_only(pane_cuts(pace.slide, [cast(int, query.window.size) for query in queries]))
        self.fields = [_Field(attributes, own) for attributes, own in _by_attributes(queries).items()]

    def mark(self, rows: pa.Table, columns: dict[str, Array], group: Array, time: Array, keep: Array) -> None:
        from skyband.kernels.cells import number_panes

        order: Array | None = None
        if (time[1:] < time[:-1]).any() or (group[1:] != group[:-1]).any():
            order = np.lexsort((time, group))
            group, time = group[order], time[order]
        pane = np.empty(len(time), np.int64)
        number_panes(read_only(time), self.slide, self.cuts, pane)
        ends = np.flatnonzero((pane[1:] != pane[:-1]) | (group[1:] != group[:-1])) + 1
        begin = np.concatenate([[0], ends, [len(time)]])
        marked = np.zeros(len(time), bool)
        for field in self.fields:
            points = np.empty((len(field.attributes), len(time)))
            for axis, name in enumerate(field.attributes):
                if name not in columns:
                    columns[name] = numbers(rows.column(name))
                points[axis] = columns[name] if order is None else columns[name][order]
            field.mark(points, time, begin, marked)
        keep[slice(None) if order is None else order] |= marked


def _by_attributes(queries: Sequence[RankedQuery]) -> dict[tuple[str, ...], list[RankedQuery]]:
    """Queries that share a grid: all of them, where their attributes are few; else those over the same ones."""
    every = tuple(sorted({name for query in queries for name in attributes_of(query)}))
    found: dict[tuple[str, ...], list[RankedQuery]] = {}
    for query in queries:
        found.setdefault(every if len(every) <= MOST_ATTRIBUTES else attributes_of(query), []).append(query)
    return found


class _Field:
    """Queries over the same attributes."""

    def __init__(self, attributes: tuple[str, ...], queries: Sequence[RankedQuery]) -> None:
        from skyband.algorithms.spatial.asked import Asked, questions_of
        from skyband.kernels.spatial.contenders import Guesses

        self.attributes = attributes
        asked = [Asked(ranking_of(one), one.order, 0, 0, 0, "", region=region_of(one)) for one in queries]
        self.questions = questions_of(asked, attributes)
        k = np.array([one.k if isinstance(one, TopK) else 0 for one in queries])
        bounds = [
            (-one.above if one.order == "asc" else one.above) if isinstance(one, Threshold) else np.inf for one in queries
        ]
        aim = k + np.ceil(_SPREAD * np.sqrt(k)).astype(np.int64)
        self.guesses = Guesses(np.array(bounds), k, aim, np.zeros(1, np.int64))
        self.bounds = read_only(np.array(bounds))
        self.moderate = MODERATE / max(abs(self.questions.point).max(), abs(self.questions.weight).max(), 1.0)
        self.grid: Grid | None = None
        self.opened = np.zeros(0, bool)  # cells in which some query can reach its guess
        self.usual = 0.0  # rows of a pane that guesses are made for

    def mark(self, points: Array, time: Array, begin: Array, keep: Array) -> None:
        """Set `keep` for the rows, by pane and in the order of time, that can rank, or that may lack a score."""
        from skyband.kernels.spatial.contenders import Panes, mark_contenders, mark_odd, place_rows

        grid = self.grid or self._lay_grid(points)
        cell = np.empty(len(time), np.int64)
        outside = place_rows(grid, points, cell)
        if outside:
            mark_odd(points, cell, self.moderate, keep)
        rows = np.diff(begin)
        usual = float((rows * rows).sum()) / len(time)
        if not self.usual <= 2 * usual <= 4 * self.usual:
            self.usual, self.guesses.level[:] = usual, self.bounds
            self._open(grid)
        panes = Panes(points, time, cell, begin)
        mark_contenders(self.questions, self.guesses, grid, self.opened, panes, self.usual, keep)
        if self.guesses.raised[0] > len(self.guesses.k) // 2:
            self._open(grid)
        if outside > _OUTSIDE * len(time):
            self.grid = None

    def _lay_grid(self, points: Array) -> Grid:
        """A grid over the range of the rows, what guesses need opened."""
        from skyband.kernels.spatial.grid import empty_grid

        plain = np.where(abs(points) < self.moderate, points, np.nan)
        low, high = np.fmin.reduce(plain, axis=1), np.fmax.reduce(plain, axis=1)
        low, high = np.nan_to_num(low), np.nan_to_num(high)
        self.grid = grid = empty_grid(low, high, _ALONG.get(len(self.attributes), 1), 0)
        grid.edge[:, 0], grid.edge[:, -1] = low, high  # what is beyond has no cell
        self._open(grid)
        return grid

    def _open(self, grid: Grid) -> None:
        """Open the cells in which some query can reach its guess, and no others."""
        from skyband.kernels.spatial.contenders import open_cells

        self.guesses.raised[0] = 0
        self.opened = np.zeros(len(grid.watchers), bool)
        for q in np.flatnonzero(self.guesses.level < np.inf).tolist():
            open_cells(grid, self.questions, q, self.guesses.level[q], self.opened)


_contests: OrderedDict[Hashable, Contest] = OrderedDict()


def contest_of(key: Hashable, paces: Sequence[Pace]) -> Contest:
    """The contest of that key, as this worker remembers it, or a new one."""
    found = _contests.pop(key, None) or Contest(paces)
    _contests[key] = found
    while len(_contests) > _MOST_KEPT:
        _contests.popitem(last=False)
    return found

"""Drives many preference queries over a window of points, cycle by cycle, and measures time, bytes and what is held.

A cycle is a slide: r arrivals, then r expirations, then the answers. As in SIGMOD06, queries come to a window that is full
and every one of them is computed then; only cycles after that are measured, and only the structure
(`skyband.algorithms.spatial.crowd` and `skyband.algorithms.spatial.tsl`, without a monitor), in the processor's time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, islice
from typing import Any

import numpy as np

import skyband as sb
from repro.experiment import Cell, Column, Experiment, Series, measured, walk
from repro.many import NAMES, rounds
from repro.points import PointSet
from skyband.algorithms.spatial.crowd import Asked, Crowd, resolution
from skyband.algorithms.spatial.tsl import TSL
from skyband.kernels.ranked import pruning
from skyband.kernels.spatial import point_grid
from skyband.kernels.spatial import tsl as tsl_kernel
from skyband.scores.score import as_tree

Structure = Any  # Crowd or TSL


@dataclass(frozen=True)
class Setting:
    """What one measurement is taken of. The defaults are SIGMOD06's, table 1."""

    data: PointSet
    core: str
    function: str = "linear"  # a key of FUNCTIONS
    k: int = 20
    size: int = 1_000_000
    arrivals: int = 10_000
    queries: int = 1000
    attributes: int = 4
    grid: int = 0  # cells along each attribute; 0: as many as usual

    def queries_asked(self, seed: int = 0) -> list[Asked]:
        """Its queries, with coefficients from [0, 1]."""
        names = NAMES[: self.attributes]
        weights = np.random.default_rng([seed, 1]).random((self.queries, self.attributes)).tolist()
        scores = [FUNCTIONS[self.function](dict(zip(names, one, strict=True))) for one in weights]
        return [Asked(score, "desc", self.k, self.size, self.arrivals, self.core) for score in scores]

    def structure(self) -> Structure:
        """What answers them, before anything is asked."""
        names = NAMES[: self.attributes]
        return TSL(names) if self.core == "tsl" else Crowd(names, self.grid or resolution(self.size, len(names)))


FUNCTIONS: Mapping[str, Callable[[dict[str, float]], Any]] = {
    "linear": sb.linear,
    "product": lambda given: as_tree(sb.product(given)),
    "quadratic": lambda given: as_tree(" + ".join(f"{value!r} * {name} ** 2" for name, value in given.items())),
}
"""Σ aᵢ xᵢ, Π (aᵢ + xᵢ) and Σ aᵢ xᵢ²."""


@lru_cache
def refused(core: str, function: str) -> str:
    """Why queries of this kind cannot be measured yet; empty when they can: a few of them are answered rightly."""
    rows = np.random.default_rng(0).random((2, 60))
    setting = Setting(PointSet("", "uniform", 20), core, function, k=3, size=20, arrivals=5, queries=2, attributes=2)
    try:
        structure = setting.structure()
        for one in setting.queries_asked():
            structure.add(one)
        for _ in rounds(structure, rows):
            pass
        window = dict(zip(NAMES, rows[:, -20:], strict=False))
        asked = np.random.default_rng([0, 1]).random((2, 2)).tolist()
        for number, coefficients in enumerate(asked):
            (a, x), (b, y) = zip(coefficients, window.values(), strict=True)
            scores = {"linear": a * x + b * y, "product": (a + x) * (b + y), "quadratic": a * x**2 + b * y**2}[function]
            if structure.tops.ordinal[number].tolist() != (40 + np.argsort(-scores)[:3]).tolist():
                return f"{core} does not rank by {function} scores"
    except (AttributeError, TypeError, KeyError, ValueError, sb.QueryError):
        return f"{core} takes no {function} scores"
    return ""


@dataclass(frozen=True)
class Line(Series):
    """A line of a table of preference queries. `algorithm` is a core."""


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    shrink: int = 1  # windows and arrivals are divided by it
    fewer: int = 1  # and the number of queries by this
    warm: int = 10  # cycles in which arrays find their sizes, not counted
    seconds: float = 5.0  # cycles are measured until so much time is spent,
    least: int = 5  # but at least so many
    most: int = 100  # and at most: the paper's runs
    streams: int = 60  # of which view sizes are the average


FULL = Effort()
QUICK = Effort(shrink=10, fewer=10, seconds=0.1, streams=6)


@dataclass(frozen=True, kw_only=True)
class Preferences(Experiment):
    """An experiment of preference queries. Columns: "d", "N" (with r = N/100), "r", "Q", "k", "grid"."""

    data: Mapping[str, PointSet]
    series: Mapping[str, Line]
    measure: Callable[[Setting, Effort], Any]  # gives what the series read: a Cost, or Held
    function: str = "linear"

    def setting(self, data: str, series: str, column: Column, effort: Effort) -> Setting:
        """The setting of one cell."""
        axis, value = column.axis, round(column.value)
        size = value if axis == "N" else Setting.size
        arrivals = value if axis == "r" else size // 100
        return Setting(
            data=self.data[data],
            core=self.series[series].algorithm,
            function=self.function,
            k=value if axis == "k" else Setting.k,
            size=size // effort.shrink,
            arrivals=max(arrivals // effort.shrink, 1),
            queries=(value if axis == "Q" else Setting.queries) // effort.fewer,
            attributes=value if axis == "d" else Setting.attributes,
            grid=value if axis == "grid" else 0,
        )


# -- a full window -------------------------------------------------------------------------------------------------


def begin_full(setting: Setting, window: np.ndarray, seed: int = 0) -> Structure:
    """What answers a setting's queries, which have come to a window that is full: each is computed, as a search would now."""
    structure, asked = setting.structure(), setting.queries_asked(seed)
    if isinstance(structure, TSL):
        for one in asked:
            structure.add(one)
        for _ in structure.push(window):  # while nothing leaves, views are the best k_max: what TA would find
            pass
        return structure
    structure.add(asked[0])  # lays the grid and keeps the window
    for _ in structure.push(window):
        pass
    grid, end = structure._index[0], structure.seen
    for one in asked[1:]:
        structure.add(one)
    structure.state.query[:, pruning.LEFT] = 0  # all see all of it
    score, ordinal = np.empty(setting.k), np.empty(setting.k, np.int64)
    keys, cells = np.empty(len(grid.members)), np.empty(len(grid.members), np.int64)
    for q in range(setting.queries):
        points, questions = structure._points, structure.questions
        window = (end - setting.size, end)
        found = point_grid.search(points, grid, questions, q, *window, setting.k, score, ordinal, keys, cells)
        pruning.fill(structure.state, q, score, ordinal, found, pruning.filled_for(*window))
    structure._forget_index()  # thresholds are others now
    return structure


def age(structure: TSL) -> None:
    """Leave as many rows in each view as it has in the long run.

    A view of i rows gains one as often as it loses one, i times in as many arrivals as the window has rows, and is sent back to
    k_max when it falls below k: so i rows are held with a probability that goes as (i - k + 1) / i.
    """
    rng, marks = np.random.default_rng(2), structure.views.marks
    for row in marks:
        spare = np.arange(1, row[tsl_kernel.MOST] - row[tsl_kernel.K] + 2)
        often = spare / (row[tsl_kernel.K] - 1 + spare)
        row[tsl_kernel.COUNT] = row[tsl_kernel.K] - 1 + rng.choice(spare, p=often / often.sum())
    marks[:, tsl_kernel.WHOLE] = 0


# -- measuring -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """What cycles cost."""

    milliseconds: float  # a cycle
    microseconds: float  # a cycle and query
    megabytes: float  # of all arrays held
    searches: float  # a cycle


def cost(setting: Setting, effort: Effort) -> Cost:
    """The mean of some cycles, some cycles after the queries have come."""
    rows = _points(setting.data, setting.size + (effort.warm + effort.most) * setting.arrivals, setting.attributes)
    structure = begin_full(setting, rows[:, : setting.size])
    pieces = (rows[:, at : at + setting.arrivals] for at in range(setting.size, rows.shape[1], setting.arrivals))
    if isinstance(structure, TSL):
        age(structure)
    _cycles(structure, islice(pieces, effort.warm), 0, effort.seconds)
    before = structure.searches
    taken = _cycles(structure, islice(pieces, effort.most), effort.least, effort.seconds)
    mean = float(np.mean(taken))
    searches = (structure.searches - before) / len(taken)
    return Cost(1e3 * mean, 1e6 * mean / setting.queries, structure.nbytes / 1e6, searches)


def _cycles(structure: Structure, arrivals: Iterable[np.ndarray], least: int, seconds: float) -> list[float]:
    """Seconds of each cycle, until so much time is spent; at least so many."""
    taken: list[float] = []
    for rows in arrivals:
        taken.append(sum(part for part, _, _ in rounds(structure, rows)))
        if len(taken) >= least and sum(taken) >= seconds:
            break
    return taken


@lru_cache(maxsize=1)
def _points(data: PointSet, rows: int, attributes: int) -> np.ndarray:
    return data.draw(rows, 0, attributes, 0)[0]


@dataclass(frozen=True)
class Held:
    """Rows in a query's view or skyband, average over 100 cycles, queries and streams; and by how much the average over one
    stream differs from that, as a standard deviation in per cent."""

    rows: float
    spread: float


CYCLES = 100


def held(setting: Setting, effort: Effort) -> Held:
    """As in the paper: 100 cycles from a full window on. What is held depends on k and r/N alone; queries over one stream hold
    nearly the same rows, so that many short streams say more than one long one."""
    small = replace(setting, size=20_000, arrivals=200, queries=20)
    averages = []
    for seed in range(effort.streams):
        rows = small.data.draw(small.size + CYCLES * small.arrivals, 0, small.attributes, seed)[0]
        structure = begin_full(small, rows[:, : small.size], seed)
        sizes = []
        for begin in accumulate([small.arrivals] * (CYCLES - 1), initial=small.size):
            for _ in rounds(structure, rows[:, begin : begin + small.arrivals]):
                pass
            sizes.append(np.mean([structure.candidates(q) for q in range(small.queries)]))
        averages.append(np.mean(sizes))
    mean = float(np.mean(averages))
    return Held(mean, 100 * float(np.std(averages)) / mean)


# -- running -------------------------------------------------------------------------------------------------------

Taken = dict[tuple[Any, Setting], Any]  # what was measured already; experiments share settings


def warm_up(experiment: Preferences) -> None:
    """Load every kernel once, so that no measurement pays for it."""
    tiny = Setting(PointSet("", "uniform", 400), "", experiment.function, k=3, size=400, arrivals=40, queries=3)
    for core in dict.fromkeys(line.algorithm for line in experiment.series.values()):
        if not refused(core, experiment.function):
            cost(replace(tiny, core=core), Effort(seconds=0))


def run(experiment: Preferences, effort: Effort, taken: Taken, step: Callable[[str], None]) -> list[Cell]:
    """Measure every cell; `step` is told of each column before it is measured."""
    warm_up(experiment)
    return walk(experiment, step, lambda data, name, column: _cell(experiment, effort, taken, data, name, column))


def _cell(experiment: Preferences, effort: Effort, taken: Taken, data: str, name: str, column: Column) -> Cell:
    line, setting = experiment.series[name], experiment.setting(data, name, column, effort)
    paper = experiment.figures.get(data, {}).get(name)
    reason = refused(setting.core, setting.function)
    ours = None if reason else measured(experiment, line, setting, effort, taken)
    printed = None if paper is None else paper[experiment.columns.index(column)]
    return Cell(data, name, column.axis, column.label, setting.size, setting.arrivals, setting.k, ours, printed, reason)

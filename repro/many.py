"""Drives many queries over one stream of points, every window answered, and measures time, what is held, and errors.

Queries ask for the k points nearest to theirs (`skyband.algorithms.spatial.crowd`, without a monitor). Time is the processor's
and begins when the first window is full: from then on a stream in random order costs the same row for row, so that a
share of a window is enough. Without an index queries do not meet, so that few of them cost as much each as many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from time import thread_time
from typing import Any

import numpy as np

import skyband as sb
from repro.experiment import Cell, Column, Experiment, Series, measured, walk
from repro.points import PointSet
from skyband.algorithms.spatial.crowd import Asked, Crowd
from skyband.changes import Emitted
from skyband.kernels.emission import ARRIVALS, emit

NAMES = tuple("abcdefghijkl")  # of the attributes
_SAMPLES = 5  # how often what is held is counted


@dataclass(frozen=True)
class Setting:
    """What one measurement is taken of. The defaults are TODS15's, table IX."""

    data: PointSet
    core: str = "probabilistic"
    filter: str | None = None
    k: int = 9
    size: int = 40_000
    queries: int = 400
    attributes: int = 2
    grid: int = 10  # cells along each attribute, 0 without an index
    buffer: int = 2_000
    gamma: float = 0.2
    sigma: float = 0.001

    def crowd(self, points: np.ndarray) -> Crowd:
        """Its queries around `points`, before the first row."""
        names = NAMES[: self.attributes]
        options: dict[str, Any] = {"gamma": self.gamma, "sigma": self.sigma}
        if self.filter is not None:
            options["buffer"] = self.buffer
        crowd = Crowd(names, self.grid)
        for point in points:
            score = sb.distance(dict(zip(names, point.tolist(), strict=True)))
            crowd.add(Asked(score, "asc", self.k, self.size, 1, self.core, self.filter, True, options))
        return crowd


@dataclass(frozen=True)
class Line(Series):
    """A line of a table of many queries. `algorithm` is a core, or core+filter."""

    indexed: bool = True
    half: bool = False  # the buffer is half the window (TODS15's RAPF2)
    sigma: float = 0.001
    axes: tuple[str, ...] = ()  # parameters that it is measured over; all where none is named


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    shrink: int = 1  # windows and buffers are divided by it
    fewer: int = 1  # and the number of queries by this
    share: float = 0.25  # of a window: rows measured once it is full
    rows: int = 10_000  # and at least so many
    tries: int = 3  # the best counts, as noise only ever adds
    seconds: float = 0.6  # but what took so long is not tried again
    iterations: int = 200  # of counting errors


FULL = Effort()
QUICK = Effort(shrink=5, fewer=4, rows=2_000, tries=1, iterations=10)


@dataclass(frozen=True, kw_only=True)
class ManyQueries(Experiment):
    """An experiment of many queries. Columns: "k", "d", "rho", "u", "b", "gamma", "n"."""

    data: Mapping[str, PointSet]
    series: Mapping[str, Line]
    measure: Callable[[Setting, Effort], Any]  # gives what the series read: a Cost, or Errors
    attributes: int = 2
    grid: int = 10
    size: int = 40_000
    queries: int = 400
    scanned: int = 50  # queries of a line that is not indexed

    def setting(self, data: str, series: str, column: Column, effort: Effort) -> Setting:
        """The setting of one cell."""
        line, axis, value = self.series[series], column.axis, round(column.value)
        core, _, sieve = line.algorithm.partition("+")
        size = (value if axis == "n" else self.size) // effort.shrink
        buffer = (value if axis == "b" else Setting.buffer) // effort.shrink
        queries = self.scanned if not line.indexed else value if axis == "u" else self.queries
        return Setting(
            data=self.data[data],
            core=core,
            filter=sieve or None,
            k=value if axis == "k" else Setting.k,
            size=size,
            queries=max(queries // effort.fewer, 1),
            attributes=value if axis == "d" else self.attributes,
            grid=0 if not line.indexed else value if axis == "rho" else 2 if axis == "d" else self.grid,
            buffer=size // 2 if line.half else buffer,
            gamma=column.value if axis == "gamma" else Setting.gamma,
            sigma=line.sigma,
        )


# -- driving -------------------------------------------------------------------------------------------------------


def rounds(crowd: Crowd, rows: np.ndarray) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """Push rows; for each round of answers its seconds, and queries and ordinals of the rows that came to rank."""
    code = np.full(len(crowd.asked), ARRIVALS, np.int64)
    answers = crowd.push(rows)
    while True:
        started = thread_time()
        answer = next(answers, None)
        taken = thread_time() - started
        if answer is None:
            yield taken, np.zeros(0, np.int64), np.zeros(0, np.int64)
            return
        query, end, results = answer
        out = Emitted.room(crowd.tops.score.shape[1] * len(query))
        rows_out = emit(query, end, 0, len(query), results, code, crowd.tops, out)
        yield taken, out.query[:rows_out].copy(), out.ordinal[:rows_out].copy()


@dataclass(frozen=True)
class Cost:
    """What queries cost once their windows are full."""

    nanoseconds: float  # a row and query
    references: float  # rows that a query's core and filter hold, average over queries and samples
    stored: float  # distinct rows held, the buffer's too, by query


def cost(setting: Setting, effort: Effort) -> Cost:
    """Fill the windows, then measure `effort.share` of a window more; short measurements several times."""
    began = thread_time()
    found = [_cost(setting, effort)]
    while len(found) < effort.tries and thread_time() - began < effort.seconds:
        found.append(_cost(setting, effort))
    return min(found, key=lambda one: one.nanoseconds)


def _cost(setting: Setting, effort: Effort) -> Cost:
    more = max(round(effort.share * setting.size), effort.rows)
    rows, points = setting.data.draw(setting.size + more, setting.queries, setting.attributes, 0)
    crowd = setting.crowd(points)
    for _ in rounds(crowd, rows[:, : setting.size]):
        pass
    seconds, references, stored = 0.0, [], []
    for piece in np.array_split(rows[:, setting.size :], _SAMPLES, axis=1):
        seconds += sum(taken for taken, _, _ in rounds(crowd, piece))
        references.append(np.mean([crowd.references(number) for number in range(setting.queries)]))
        stored.append(len(crowd.needed(crowd.seen - setting.size)) / setting.queries)
    return Cost(1e9 * seconds / more / setting.queries, float(np.mean(references)), float(np.mean(stored)))


# -- errors --------------------------------------------------------------------------------------------------------

WINDOWS = 25  # rows that come while errors are counted, in windows: N/n of TODS15, table IX


@dataclass(frozen=True)
class Errors:
    """Rows of a query's result stream missed (false negatives) and wrong (false positives): mean, 95 of 100, most."""

    missed: float
    missed_95: float
    missed_most: float
    wrong: float
    wrong_95: float
    wrong_most: float


def errors(setting: Setting, effort: Effort) -> Errors:
    """Errors of `effort.iterations` streams with their queries, against an exact algorithm on the same; of a tenth as
    many where rows follow the time, as errors are plenty there."""
    exact = replace(setting, core="relaxed", filter="probabilistic", buffer=(setting.size + 1) // 2, grid=0)
    counts = [
        differences(result_stream(setting, seed), _exact_stream(replace(exact, sigma=Setting.sigma), seed), setting.queries)
        for seed in range(max(effort.iterations // 10, 1) if setting.data.ordered else effort.iterations)
    ]
    missed, wrong = (np.concatenate(column) for column in zip(*counts, strict=True))
    return Errors(*(float(of(column)) for column in (missed, wrong) for of in (np.mean, _ninety_five, np.max)))


def _ninety_five(counts: np.ndarray) -> float:
    return float(np.quantile(counts, 0.95))


def result_stream(setting: Setting, seed: int) -> np.ndarray:
    """The result streams of a setting's queries: [query, row] for each row that ever ranks, once, sorted."""
    rows, points = setting.data.draw(WINDOWS * setting.size, setting.queries, setting.attributes, seed)
    crowd = setting.crowd(points)
    found = [query * rows.shape[1] + ordinal for _, query, ordinal in rounds(crowd, rows)]
    return np.stack(np.divmod(np.unique(np.concatenate(found)), rows.shape[1]))


_exact_stream = lru_cache(maxsize=FULL.iterations)(result_stream)


def differences(ours: np.ndarray, exact: np.ndarray, queries: int) -> tuple[np.ndarray, np.ndarray]:
    """For each query how many rows of the exact result stream are missed, and how many of ours are wrong."""
    width = 1 + max((int(stream[1].max()) for stream in (ours, exact) if stream.size), default=0)
    mine, true = (stream[0] * width + stream[1] for stream in (ours, exact))
    missed, wrong = np.setdiff1d(true, mine, assume_unique=True), np.setdiff1d(mine, true, assume_unique=True)
    return np.bincount(missed // width, minlength=queries), np.bincount(wrong // width, minlength=queries)


# -- running -------------------------------------------------------------------------------------------------------

Taken = dict[tuple[Any, Setting], Any]  # what was measured already; experiments share settings


def warm_up(experiment: ManyQueries) -> None:
    """Load every kernel once, so that no measurement pays for it."""
    tiny = Setting(PointSet("", "uniform", 60), k=3, size=60, queries=3, attributes=experiment.attributes, buffer=20)
    for algorithm, indexed in dict.fromkeys((line.algorithm, line.indexed) for line in experiment.series.values()):
        core, _, sieve = algorithm.partition("+")
        _cost(replace(tiny, core=core, filter=sieve or None, grid=2 if indexed else 0), Effort(rows=60))


def run(experiment: ManyQueries, effort: Effort, taken: Taken, step: Callable[[str], None]) -> list[Cell]:
    """Measure every cell; `step` is told of each column before it is measured."""
    warm_up(experiment)
    return walk(experiment, step, lambda data, name, column: _cell(experiment, effort, taken, data, name, column))


def _cell(experiment: ManyQueries, effort: Effort, taken: Taken, data: str, name: str, column: Column) -> Cell:
    line = experiment.series[name]
    reason = experiment.data[data].missing()
    if line.axes and column.axis not in line.axes:
        reason = f"{column.axis} plays no part"
    setting = experiment.setting(data, name, column, effort)
    ours = None if reason else measured(experiment, line, setting, effort, taken)
    return Cell(data, name, column.axis, column.label, setting.size, 1, setting.k, ours, None, reason)

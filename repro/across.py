"""Drives the algorithms across streams over tuples, every window answered, and measures what is held and how far answers err.

The structures are driven without a monitor. Evaluations are spread evenly, 50 of them, either while the first window fills or,
once it is full, over two more windows; runs with other seeds are averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.streams import real_folder
from repro.experiment import Cell, Column, Experiment, Series
from skyband.algorithms.across.contract import AcrossPlan
from skyband.algorithms.across.eaa import Instances
from skyband.algorithms.across.estimated import EstimatedInstances
from skyband.algorithms.across.promised import PromisedInstances
from skyband.kernels.across.tables import Tuples
from skyband.schedule import count_windows

EVALUATIONS = 50
RECENT = 50  # how many objects of another stream one is picked from (CIKM09's C)
_TRIES = 8  # to find an object that can be sent again, where one is wanted


@dataclass(frozen=True)
class TupleSet:
    """A data set of tuples."""

    label: str
    kind: str  # "synthetic", "soon", "late" (see `draw`) or "requests"
    size: int  # the default window
    stands_in: str = ""

    def missing(self) -> str:
        """Why it cannot be measured here; empty when it can."""
        return "needs SKYBAND_DATA" if self.kind == "requests" and real_folder() is None else ""

    def draw(self, setting: Setting, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Object, stream and value of each tuple, in the order they come. "synthetic": as the paper's figures have it; objects
        are picked again more often where "soon" or "late", among the most recent ones or up to a window apart."""
        if self.kind == "requests":
            return _requests(setting.streams, rows, seed)
        if self.kind == "synthetic":
            return correlated(setting.streams, rows, setting.xi, RECENT, 1, seed)
        share = setting.size // setting.streams if self.kind == "late" else setting.size // 20
        return correlated(setting.streams, rows, setting.xi, max(share, 1), _TRIES, seed)


@dataclass(frozen=True)
class Setting:
    """What one measurement is taken of; the defaults are CIKM09's, table 1."""

    data: TupleSet
    size: int = 1000
    streams: int = 3
    k: int = 10
    xi: float = 0.5
    full: bool = False  # evaluate once the first window is full, not while it fills
    windows: int = 3  # and until so many have passed
    asked: float = 0.0  # the precision asked for, where one is


@dataclass(frozen=True)
class Measurement:
    """Averages over all evaluations."""

    instances: float
    precision: float
    error: float
    relative: float = 0.0  # the same error as a share of the right score
    estimated: float = 1.0  # the precision as the algorithm tells it, at last


@dataclass(frozen=True)
class Line(Series):
    """A line of a table. `algorithm`: "sla", "eaa", "guess" (the paper's), "promises" (ours, told nothing), "ours", told to
    hold no more than `share` times what the paper's holds, or "asked", told the precision."""

    share: float = 1.0
    full: bool = False


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    seeds: int


FULL, QUICK = Effort(seeds=10), Effort(seeds=3)


@dataclass(frozen=True)
class AcrossStreams(Experiment):
    """Columns: "W" (window), "d" (streams), "k", "xi" (correlation), "p" (precision asked for). `room`: what the paper's
    approximate algorithm holds, a figure for each column, where it is printed."""

    data: Mapping[str, TupleSet]
    series: Mapping[str, Line]
    streams: int = 3
    k: int = 10
    xi: float = 0.5
    windows: int = 3
    room: tuple[float, ...] = ()

    def narrowed(self, columns: tuple[Column, ...]) -> AcrossStreams:
        room = tuple(self.room[self.columns.index(column)] for column in columns) if self.room else ()
        return replace(super().narrowed(columns), room=room)

    def setting(self, data: str, series: str, column: Column) -> Setting:
        """The setting of one cell."""
        source = self.data[data]
        plain = Setting(source, source.size, self.streams, self.k, self.xi, self.series[series].full, self.windows)
        name = {"W": "size", "d": "streams", "k": "k", "xi": "xi", "p": "asked"}[column.axis]
        return replace(plain, **{name: column.value if name in ("xi", "asked") else round(column.value)})


# -- tuples --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def correlated(
    streams: int, rows: int, xi: float, recent: int, tries: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CIKM09 6.1.1: with the probability `xi` an object is picked among the last `recent` of another stream, so often as
    `tries` says until one is not yet seen in its own; else, and where none was, it is a new one. Values are uniform."""
    generator = np.random.default_rng(seed)
    obj, stream = np.empty(rows, np.int64), generator.integers(0, streams, rows)
    again, value = generator.random(rows) < xi, generator.random(rows)
    sent: list[list[int]] = [[] for _ in range(streams)]
    known: list[set[int]] = [set() for _ in range(streams)]
    fresh = 0
    for row in range(rows):
        x, found = int(stream[row]), -1
        for _ in range(tries if again[row] and streams > 1 else 0):
            y = int(generator.integers(streams - 1))
            others = sent[y + (y >= x)]
            if others:
                picked = others[-1 - int(generator.integers(min(recent, len(others))))]
                if picked not in known[x]:
                    found = picked
                    break
        if found < 0:
            found, fresh = fresh, fresh + 1
        obj[row] = found
        sent[x].append(found)
        known[x].add(found)
    return obj, stream, value


_CHUNK = 5000  # milliseconds that are summed up, as the paper does


@lru_cache(maxsize=8)
def _requests(streams: int, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bytes that hosts fetched from a web site, as if its top folders were spread over so many servers: summed up over 5
    seconds, the largest being 1. A host seen again on a server counts as another, as in the paper."""
    obj, stream, value = _requests_of(streams)
    begin = (seed * 997) % max(len(obj) - rows, 1)
    part = slice(begin, begin + rows)
    return np.unique(obj[part], return_inverse=True)[1], stream[part], value[part]


@lru_cache(maxsize=8)
def _requests_of(streams: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    import pandas as pd
    import pyarrow.parquet as pq

    folder = real_folder()
    assert folder is not None
    log = pq.read_table(folder / "nasa_http_19950801.parquet", columns=["time", "host", "url", "bytes"]).to_pandas()
    folders = {name: number for number, name in enumerate(sorted(set(log["url"])))}
    log["server"] = [folders[url] % streams for url in log["url"]]
    log["chunk"] = log["time"].astype("datetime64[ms]").astype("int64") // _CHUNK
    summed = log.groupby(["chunk", "server", "host"], sort=True)["bytes"].sum().reset_index()
    summed["again"] = summed.groupby(["server", "host"]).cumcount()
    obj = pd.factorize(summed["host"] + "#" + summed["again"].astype(str))[0].astype(np.int64)
    value = summed["bytes"].to_numpy(float)
    return obj, summed["server"].to_numpy(np.int64), value / value.max()


# -- measuring -----------------------------------------------------------------------------------------------------


def _hashes(obj: np.ndarray) -> np.ndarray:
    mixed = (obj.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)


def evaluations(
    setting: Setting, algorithm: Instances, seed: int, *, tidied: bool = True
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Scores and objects of the answer, and what is held, at each evaluation: after a sweep if `tidied`, else as anyone would
    find it."""
    size = setting.size
    rows = setting.windows * size if setting.full else size
    steps = np.linspace(size if setting.full else 0, rows, EVALUATIONS + 1).astype(int)[1:]
    obj, stream, value = setting.data.draw(setting, rows, seed)
    hashes, objects, begin = _hashes(obj), int(obj.max()) + 1, 0
    for end in steps.tolist():
        part = slice(begin, end)
        reach = np.maximum(np.arange(begin, end) + 1 - size, 0)
        windows = count_windows(0, size, 1, 0, begin, end, last_only=False)
        for _ in algorithm.advance(begin, Tuples(obj[part], stream[part], value[part], reach, hashes[part]), windows, objects):
            pass
        if tidied:
            algorithm.tidy()
        count = int(algorithm.top.size[0])
        yield algorithm.top.score[:count].copy(), algorithm.top.obj[:count].copy(), algorithm.candidates
        begin = end


def _plan(setting: Setting) -> AcrossPlan:
    return AcrossPlan(min(setting.k, setting.size), 0, 0, 1, (1.0,) * setting.streams)


def _truth(setting: Setting, seed: int) -> tuple[tuple[np.ndarray, np.ndarray, int], ...]:
    return _exact(replace(setting, asked=0.0), seed)


@lru_cache(maxsize=256)
def _exact(setting: Setting, seed: int) -> tuple[tuple[np.ndarray, np.ndarray, int], ...]:
    return tuple(evaluations(setting, Instances(_plan(setting)), seed))


def exact(setting: Setting, effort: Effort) -> Measurement:
    """What EAA holds."""
    held = [found for seed in range(effort.seeds) for _, _, found in _truth(setting, seed)]
    return Measurement(float(np.mean(held)), 1.0, 0.0)


def estimated(setting: Setting, effort: Effort) -> Measurement:
    """What the paper's approximate algorithm holds, which prunes with every tuple, and how far it errs."""
    return _compared(setting, effort, lambda plan: EstimatedInstances(plan, pace=1), tidied=True)


def promised(setting: Setting, effort: Effort, **options: Any) -> Measurement:
    """The same of ours, counted as it is used."""
    return _compared(setting, effort, lambda plan: PromisedInstances(plan, **options), tidied=False)


def _compared(setting: Setting, effort: Effort, made: Callable[[AcrossPlan], Instances], *, tidied: bool) -> Measurement:
    held, right, error, relative, told = [], [], [], [], []
    for seed in range(effort.seeds):
        algorithm = made(_plan(setting))
        for (score, obj, _), (guess, guess_obj, count) in zip(
            _truth(setting, seed), evaluations(setting, algorithm, seed, tidied=tidied), strict=True
        ):
            held.append(count)
            right.append(len(np.intersect1d(obj, guess_obj)) / len(obj))
            shared = np.zeros(len(score))
            shared[: len(guess)] = guess[: len(score)]
            error.append(np.abs(score - shared).mean())
            relative.append((np.abs(score - shared) / np.where(score > 0, score, 1.0)).mean())
        told.append(algorithm.estimated_precision or 1.0)
    return Measurement(*(float(np.mean(column)) for column in (held, right, error, relative, told)))


Taken = dict[Any, Measurement]


def run(experiment: AcrossStreams, effort: Effort, taken: Taken, step: Callable[[str], None]) -> list[Cell]:
    """Measure every cell; `step` is told of each column before it is measured."""
    cells: list[Cell] = []
    for data, source in experiment.data.items():
        for place, column in enumerate(experiment.columns):
            step(f"{experiment.table}  {source.label}  {column.axis} = {column.label}")
            for name, line in experiment.series.items():
                setting = experiment.setting(data, name, column)
                printed = experiment.figures.get(data, {}).get(name)
                paper = None if printed is None else printed[place]
                reason = source.missing()
                if line.algorithm == "ours" and not experiment.room:
                    reason = "the paper prints no such figure"
                ours = None
                if not reason:
                    room = line.share * experiment.room[place] if line.algorithm == "ours" else 0.0
                    ours = line.scale * getattr(_measured(line, setting, effort, room, taken), line.quantity)
                where = (column.axis, column.label, setting.size, 1, setting.k)
                cells.append(Cell(data, name, *where, ours, paper, reason, column.value))
    return cells


def _measured(line: Line, setting: Setting, effort: Effort, room: float, taken: Taken) -> Measurement:
    key = (line.algorithm, setting, effort, room)
    if key not in taken:
        if line.algorithm == "sla":
            held = np.linspace(0, setting.size, EVALUATIONS + 1)[1:].mean() if not setting.full else setting.size
            taken[key] = Measurement(float(held), 1.0, 0.0)
        elif line.algorithm == "eaa":
            taken[key] = exact(setting, effort)
        elif line.algorithm == "guess":
            taken[key] = estimated(setting, effort)
        elif line.algorithm == "promises":
            taken[key] = promised(setting, effort)
        elif line.algorithm == "asked":
            taken[key] = promised(setting, Effort(min(effort.seeds, 4)), precision=setting.asked)
        else:
            taken[key] = promised(setting, effort, memory=round(room))
    return taken[key]

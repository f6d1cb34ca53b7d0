"""Drives the structures for pairs over streams of points, every window answered, and measures the time a new row takes.

Time is the processor's and begins when the window is full: from then on a stream in random order costs the same row for row.
A window of up to 10⁵ rows is filled as the stream would; of a larger one the oldest rows come without being paired among
themselves, so that 10¹⁰ pairs are scored before time is taken, and the pairs they would have left are not expected either
(`expected`). `basic`, which takes a hundred times as long, has the newest 2000 rows of a window come in pairs, which leaves it
a smaller band, to its advantage, and a tenth of the others' rows timed. `supreme` keeps no pairs, and scores from the start
what it would have to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Any

import numpy as np

from benchmarks.streams import real_folder
from repro.experiment import Cell, Column, Experiment, Series, measured, walk
from skyband.algorithms import build_pairs
from skyband.algorithms.pairs.contract import PairStructure
from skyband.kernels.pairs import run as pairs_run
from skyband.kernels.pairs import tree as pairs_tree
from skyband.kernels.pairs.rivals import read_often
from skyband.kernels.tables import Windows
from skyband.schedule import count_windows, in_order_of_end
from skyband.scores.pair_score import PairDoor, pair_distance, score_tree

NAMES = tuple("uvwxyz")  # of the attributes
SCORES = {"s1": ("l1", "asc"), "s2": ("l1", "desc"), "s3": ("product", "asc"), "s4": ("product", "desc")}
SENSOR = "abs(a.time - b.time) / (abs(a.temperature - b.temperature) * abs(a.humidity - b.humidity))"
_WARM = 1500  # rows after each of which windows are answered before time is taken
_SCORED = 10**10  # pairs that are scored at the most while a window is filled
_IN_PAIRS = {"supreme": _WARM, "pairs-basic": 2000, "pairs-naive": 10**9}  # rows that come in pairs then, of some algorithms
_TIMED = {"pairs-basic": 0.1}  # share of the others' rows that is timed


@dataclass(frozen=True)
class PairSet:
    """A data set whose rows are points, or a sensor's readings."""

    label: str
    kind: str  # "uniform", "correlated", "anticorrelated", or the readings of a "lab" or of "rooms"
    size: int  # the default window
    stands_in: str = ""
    largest: int = 10**7  # windows it has rows for

    @property
    def real(self) -> bool:
        """Are these readings of sensors?"""
        return self.kind in _READINGS

    def missing(self) -> str:
        """Why it cannot be measured here; empty when it can."""
        return "needs SKYBAND_DATA" if self.real and real_folder() is None else ""

    def draw(self, rows: int, attributes: int) -> np.ndarray:
        """Rows in the order they come, float64 [attributes, rows]."""
        if self.real:
            known = _READINGS[self.kind]()  # told again where they are too few, at later times
            place, told = np.arange(rows) % known.shape[1], np.arange(rows) // known.shape[1]
            drawn = known[:, place]
            drawn[0] += told * (known[0, -1] - known[0, 0] + 1.0)
            return drawn
        generator = np.random.default_rng(11)
        if self.kind == "uniform":
            return generator.random((attributes, rows))
        if self.kind == "correlated":
            return generator.random(rows) + 0.05 * generator.standard_normal((attributes, rows))
        points = generator.random((attributes, rows))
        points += (0.5 + 0.05 * generator.standard_normal(rows)) - points.mean(axis=0)
        return points

    def doors(self, scores: tuple[str, ...], attributes: int) -> list[PairDoor]:
        """The scores measured: their mean counts."""
        if self.real:
            return [PairDoor(score_tree(SENSOR), None, "asc")]
        names = NAMES[:attributes]
        return [PairDoor(pair_distance(names, metric).tree, None, order) for metric, order in (SCORES[name] for name in scores)]


def _rooms() -> np.ndarray:
    """Minute, temperature and humidity of rooms, in the order of time."""
    table = _read("berkeley_sdh_rooms_2013", ["timestamp", "temperature", "humidity"])
    minute = table["timestamp"].to_numpy().astype("datetime64[m]").astype(float)
    return _told(minute, table)


def _lab() -> np.ndarray:
    """The same of the lab's sensors, each half hour; the days set apart for tests follow the others."""
    table = _read("intel_lab_halfhourly", ["split", "halfhour", "temperature", "humidity"])
    half_hour, tests = table["halfhour"].to_numpy().astype(float), np.array(table["split"].to_pylist()) == "Test"
    return _told(30.0 * (half_hour + tests * (half_hour[~tests].max() + 1.0)), table)


def _read(name: str, columns: list[str]) -> Any:
    import pyarrow.parquet as pq

    folder = real_folder()
    assert folder is not None
    return pq.read_table(folder / f"{name}.parquet", columns=columns)


def _told(minute: np.ndarray, table: Any) -> np.ndarray:
    """Readings that lack nothing."""
    known = np.stack([minute, *(np.asarray(table[name].to_numpy(), float) for name in ("temperature", "humidity"))])
    return known[:, np.isfinite(known).all(axis=0)]


_READINGS = {"lab": _lab, "rooms": _rooms}


@dataclass(frozen=True)
class Setting:
    """What one measurement is taken of."""

    data: PairSet
    algorithm: str
    k: int = 20  # of the skyband, and of queries unless `asked` says otherwise
    size: int = 10_000
    attributes: int = 4
    scores: tuple[str, ...] = ("s1", "s2", "s3", "s4")
    queries: int = 1  # more than one: k and n are drawn at random up to these
    asked_k: int = 0
    asked_size: int = 0
    watched: bool = True
    answering: str = "linear"


@dataclass(frozen=True)
class Effort:
    """How much is measured: pairs scored after the window is full, and at least so many rows."""

    pairs: float
    rows: int
    shrink: int = 1  # windows are divided by it


FULL = Effort(pairs=4e7, rows=60)
QUICK = Effort(pairs=2e6, rows=20, shrink=10)


@dataclass(frozen=True)
class Cost:
    """What a new row costs."""

    microseconds: float  # a row; of query answering, a query
    pairs: float  # pairs held
    share: float  # pairs held, over those expected of scores that have nothing to do with age


def structures(setting: Setting) -> Iterator[PairStructure]:
    """The structures of a setting, one a score, their windows full; with the rows still to come as `rows`."""
    for door in setting.data.doors(setting.scores, setting.attributes):
        scoring, _, _ = door.scoring()
        options = {"answering": setting.answering} if setting.answering != "linear" else {}
        yield build_pairs(setting.algorithm, scoring, **options)


def asked(setting: Setting) -> list[tuple[int, int]]:
    """k and n of the queries."""
    k, size = setting.asked_k or setting.k, setting.asked_size or setting.size
    if setting.queries == 1:
        return [(k, size)]
    generator = np.random.default_rng(3)
    pairs = zip(generator.integers(1, k + 1, setting.queries), generator.integers(2, size + 1, setting.queries), strict=True)
    return [(k, size), *((int(a), int(b)) for a, b in pairs)][: setting.queries]


def feed(structure: PairStructure, rows: np.ndarray, fed: int, upto: int, queries: list[tuple[int, int]], size: int) -> float:
    """Hand over the rows from `fed` on and answer every query after each; seconds of all cores together."""
    piece = np.ascontiguousarray(rows[:, fed:upto])
    windows = in_order_of_end([count_windows(q, n, 1, 0, fed, upto, last_only=False) for q, (_, n) in enumerate(queries)])
    reach = np.minimum.accumulate(np.append(windows.first, max(upto + 1 - size, 0))[::-1])[::-1].copy()
    sides = np.full(upto - fed, pairs_run.OLDER | pairs_run.NEWER, np.uint8)
    started = process_time()
    for _ in structure.advance(piece, piece, sides, windows, reach):
        pass
    return process_time() - started


def in_pairs(setting: Setting) -> int:
    """How many rows of a full window came in pairs."""
    return min(_IN_PAIRS.get(setting.algorithm, _SCORED // setting.size), setting.size)


def fill(structure: PairStructure, rows: np.ndarray, setting: Setting, queries: list[tuple[int, int]]) -> None:
    """Let the window become full."""
    size = setting.size
    alone = size - in_pairs(setting)
    nothing = Windows(*(np.zeros(0, np.int64) for _ in range(4)), np.zeros(0, bool))
    for k, _ in queries:
        structure.add(k, watched=setting.watched, first=0)
    if setting.asked_k:  # the skyband is one for larger queries
        structure.add(setting.k, watched=False, first=0)
    unread = max(size - _WARM, alone) if setting.algorithm != "pairs-naive" else 0
    for first, last, side in ((0, alone, pairs_run.OLDER), (alone, unread, pairs_run.OLDER | pairs_run.NEWER)):
        for begin in range(first, last, 10_000):
            piece = np.ascontiguousarray(rows[:, begin : min(begin + 10_000, last)])
            sides = np.full(piece.shape[1], side, np.uint8)
            for _ in structure.advance(piece, piece, sides, nothing, np.zeros(1, np.int64)):
                pass
    for begin in range(unread, size, 500):
        feed(structure, rows, begin, min(begin + 500, size), queries[:1], size)


def update_cost(setting: Setting, effort: Effort) -> Cost:
    """Microseconds a new row takes, with all queries answered after it; the mean over the scores."""
    more = max(round(_TIMED.get(setting.algorithm, 1.0) * effort.pairs / setting.size), effort.rows)
    if setting.queries > 50:
        more = min(more, 200)
    rows = setting.data.draw(setting.size + more, setting.attributes)
    queries, seconds, held = asked(setting), [], []
    for structure in structures(setting):
        fill(structure, rows, setting, queries)
        taken = [
            feed(structure, rows, begin, min(begin + 100, setting.size + more), queries, setting.size)
            for begin in range(setting.size, setting.size + more, 100)
        ]
        seconds.append(sum(taken) / more)
        held.append(structure.candidates)
    # a watched answer holds some pairs more than k, and the skyband with it
    return Cost(1e6 * float(np.mean(seconds)), float(np.mean(held)), float(np.mean(held)) / expected(setting, structure))


def expected(setting: Setting, structure: PairStructure) -> float:
    """The expected size of a K-skyband: of the x pairs of age x each outranks the x²/2 younger ones with probability 2/x²; of
    an older row than came in pairs, at age w, w are there."""
    k, rows = float(structure.answers.most.max()), in_pairs(setting)
    return k + 2 * k * max(float(np.log(rows / np.sqrt(2 * k))) + 1.0 - rows / setting.size, 0.0)


def query_cost(setting: Setting, effort: Effort) -> Cost:
    """Microseconds a snapshot query takes, from the tree or from the list; the skyband stands still."""
    rows = setting.data.draw(setting.size, setting.attributes)
    k, size = asked(setting)[0]
    times = max(effort.rows * 50, 1000)
    seconds, held = [], []
    for structure in structures(replace(setting, algorithm="scase")):
        fill(structure, rows, setting, [(k, size)])
        held.append(structure.candidates)
        state: Any = structure._state  # type: ignore[attr-defined]
        pairs_tree.build(state)
        best = np.inf
        for _ in range(6):  # the first may load the kernel
            started = process_time()
            read_often(state, 0, setting.size - size, times, setting.answering == "tree")
            best = min(best, (process_time() - started) / times)
        seconds.append(best)
    return Cost(1e6 * float(np.mean(seconds)), float(np.mean(held)), 0.0)


@dataclass(frozen=True)
class PairLine(Series):
    """A line of a table: an algorithm and how its queries are answered."""

    watched: bool = True
    answering: str = "linear"
    only: tuple[str, ...] = ()  # parameters it is measured over; all where none is named
    largest: int = 10**7  # windows it is measured on
    largest_k: int = 10**7
    knows: bool = False  # is told k and n of the queries beforehand


@dataclass(frozen=True, kw_only=True)
class PairExperiment(Experiment):
    """An experiment on pairs. Columns: "K", "N", "d", "k", "n", "Q"."""

    data: Mapping[str, PairSet]
    series: Mapping[str, PairLine]
    measure: Callable[[Setting, Effort], Cost] = update_cost
    k: int = 20
    size: int = 10_000
    attributes: int = 4
    scores: tuple[str, ...] = ("s1", "s2", "s3", "s4")
    queries: int = 1
    asked_k: int = 0
    asked_size: int = 0
    axes: Mapping[str, str] = field(default_factory=lambda: {"K": "K", "N": "N, rows", "d": "attributes d", "Q": "queries"})

    def setting(self, data: str, series: str, column: Column, effort: Effort) -> Setting:
        """The setting of one cell."""
        line, axis, value = self.series[series], column.axis, round(column.value)
        size = max((value if axis == "N" else self.size) // effort.shrink, 200)
        asked_k = value if axis == "k" else self.asked_k
        asked_size = (value if axis == "n" else self.asked_size) // effort.shrink
        k = value if axis == "K" else self.k
        if line.knows:
            k, size, asked_k, asked_size = asked_k or k, asked_size or size, 0, 0
        return Setting(
            data=self.data[data],
            algorithm=line.algorithm,
            k=k,
            size=size,
            attributes=value if axis == "d" else self.attributes,
            scores=self.scores,
            queries=value if axis == "Q" else self.queries,
            asked_k=min(asked_k, k),
            asked_size=asked_size,
            watched=line.watched,
            answering=line.answering,
        )


Taken = dict[tuple[Any, Setting], Cost]  # what was measured already; experiments share settings


def run(experiment: PairExperiment, effort: Effort, taken: Taken, step: Callable[[str], None]) -> list[Cell]:
    """Measure every cell; `step` is told of each column before it is measured."""
    first = next(iter(experiment.data.values()))
    for line in experiment.series.values():  # load every kernel once
        tiny = Setting(replace(first, kind="uniform"), line.algorithm, 3, 60, 2, watched=line.watched, answering=line.answering)
        update_cost(tiny, Effort(pairs=0, rows=10))
    return walk(experiment, step, lambda data, name, column: _cell(experiment, effort, taken, data, name, column))


def _cell(experiment: PairExperiment, effort: Effort, taken: Taken, data: str, name: str, column: Column) -> Cell:
    line, reason = experiment.series[name], experiment.data[data].missing()
    setting = experiment.setting(data, name, column, effort)
    if line.only and column.axis not in line.only:
        reason = f"{column.axis} plays no part"
    if setting.size > experiment.data[data].largest:
        reason = f"has rows for windows of {experiment.data[data].largest:,}"
    if setting.size > line.largest:
        reason = f"takes too long beyond {line.largest:,} rows"
    if setting.k > line.largest_k:
        reason = f"takes too long beyond K = {line.largest_k}"
    ours = None if reason else measured(experiment, line, setting, effort, taken)
    return Cell(data, name, column.axis, column.label, setting.size, 1, setting.k, ours, None, reason)

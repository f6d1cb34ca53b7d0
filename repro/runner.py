"""Drives algorithms over streams, every window answered, and measures time, candidates and bytes.

Structures are driven through the contract, without a monitor: what is measured is the algorithm. Time is the
processor's, not the clock's, and begins when the first window is full. Candidates are counted whenever some slides
have passed, about twenty times a window, and averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import thread_time

import numpy as np

from repro.experiment import Cell, Column, OneQuery, Setting
from repro.streams import DataSet
from skyband.algorithms import build, entry
from skyband.algorithms.contract import Plan, Ranked
from skyband.algorithms.spatial.crowd import Asked, Crowd, resolution
from skyband.kernels.tables import Panes, Windows
from skyband.schedule import count_panes, count_windows
from skyband.scores.formulas import linear

SAMPLES_A_WINDOW = 20
_TIMED_PIECE = 50_000  # rows handed over at once where time is measured


@dataclass(frozen=True)
class Measurement:
    """What came out of one run, after the first window had filled."""

    seconds: float  # for a million rows
    candidates: float  # average over the windows sampled
    bytes: float  # of all arrays held, average over the same


@dataclass(frozen=True)
class Effort:
    """How much is measured: `rows` after the first window, unless a window or a cycle of the data is longer."""

    rows: int
    tries: int  # where time is measured and rows are few: the best counts, as noise only ever adds

    def rows_after(self, data: DataSet, size: int) -> int:
        """Rows to measure once a window of `size` is full; of periodic data a whole number of cycles."""
        rows = max(self.rows, size)
        return rows if not data.cycle else -(-rows // data.cycle) * data.cycle

    def tries_of(self, rows: int) -> int:
        """How often to time `rows` rows: more than the usual are steadier by themselves."""
        return max(min(2, self.tries), self.rows * self.tries // rows)


FULL = Effort(rows=500_000, tries=3)
QUICK = Effort(rows=150_000, tries=1)


class OnePoint:
    """An algorithm over points as one of scores: rows have one attribute, the score itself."""

    wants_panes = False

    def __init__(self, core: str, plan: Plan) -> None:
        assert plan.sizes is not None and plan.slides is not None
        self.plan, (k,), (size,), (slide,) = plan, plan.ks, plan.sizes, plan.slides
        self.crowd = Crowd(("score",), resolution(size, 1))
        self.crowd.add(Asked(linear({"score": 1.0}), "desc", k, size, slide, core))

    def advance(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None = None) -> Iterator[object]:
        """Take the next rows; the windows that end in them are answered, whichever are asked."""
        return self.crowd.push(scores[None, :])

    @property
    def candidates(self) -> int:
        """Rows of its skyband."""
        return self.crowd.candidates(0)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held, the window's points too."""
        return self.crowd.nbytes


def structure_of(setting: Setting) -> Ranked | OnePoint:
    """What answers a setting's query, before the first row."""
    plan = Plan(ks=(setting.k,), sizes=(setting.size,), slides=(setting.slide,))
    named = entry(setting.algorithm)
    if named.family == "spatial":
        return OnePoint(named.options["core"], plan)
    return build(setting.algorithm, plan, **dict(setting.options))


def pieces(structure: Ranked | OnePoint, scores: np.ndarray, rows: int) -> Iterator[tuple[int, float]]:
    """Hand `scores` over in pieces of about `rows` rows, whole slides each; the rows so far and the seconds of the piece."""
    plan = structure.plan
    assert plan.sizes is not None and plan.slides is not None
    size, slide = plan.sizes[0], plan.slides[0]
    step = max(rows // slide, 1) * slide
    last = len(scores) // slide * slide
    for begin in range(0, last, step):
        stop = min(begin + step, last)
        windows = count_windows(0, size, slide, 0, begin, stop, last_only=False)
        panes = count_panes(size, slide, begin, stop) if structure.wants_panes else None
        piece = scores[begin:stop]
        started = thread_time()
        for _ in structure.advance(begin, piece, windows, panes):
            pass
        yield stop, thread_time() - started


def measure(setting: Setting, scores: np.ndarray, *, piece: int) -> Measurement:
    """One run of a setting over `scores`, which are longer than its window."""
    structure = structure_of(setting)
    seconds, rows, done = 0.0, 0, 0
    candidates: list[int] = []
    held: list[int] = []
    for stop, taken in pieces(structure, scores, piece):
        if done >= setting.size:
            seconds, rows = seconds + taken, rows + stop - done
            candidates.append(structure.candidates)
            held.append(structure.nbytes)
        done = stop
    return Measurement(1e6 * seconds / rows, float(np.mean(candidates)), float(np.mean(held)))


def warm_up(experiment: OneQuery) -> None:
    """Load every kernel once, so that no measurement pays for it."""
    scores = np.concatenate([np.arange(500.0), -np.arange(1500.0)])
    for algorithm in dict.fromkeys(line.algorithm for line in experiment.series.values()):
        measure(Setting("", 200, 10, 5, algorithm), scores, piece=100)


Taken = dict[tuple[bool, Setting], Measurement]  # what was measured already; tables share settings


def run(experiment: OneQuery, effort: Effort, taken: Taken, step: Callable[[str], None]) -> list[Cell]:
    """Measure every cell; `step` is told of each column, and that it is done, before the next."""
    warm_up(experiment)
    cells: list[Cell] = []
    for data, source in experiment.data.items():
        for column in experiment.columns:
            step(f"{experiment.table}  {source.label}  {column.axis} = {column.label}")
            cells += _column(experiment, effort, taken, data, column)
    return cells


def _column(experiment: OneQuery, effort: Effort, taken: Taken, data: str, column: Column) -> list[Cell]:
    source = experiment.data[data]
    settings = {name: experiment.setting(data, name, column) for name in experiment.series}
    size = max(setting.size for setting in settings.values())
    reason = source.missing() or source.too_short_for(size)
    if not reason:
        wanted = [setting for setting in dict.fromkeys(settings.values()) if (experiment.timed, setting) not in taken]
        rows = effort.rows_after(source, size)
        piece = _TIMED_PIECE if experiment.timed else max(size // SAMPLES_A_WINDOW, 1)
        for _ in range(effort.tries_of(rows) if experiment.timed else 1):  # rivals take turns, so that a busy moment meets all
            for setting in wanted:
                found = measure(setting, source.scores(size + rows), piece=piece)
                before = taken.get((experiment.timed, setting), found)
                taken[experiment.timed, setting] = min(found, before, key=lambda one: one.seconds)
    place = experiment.columns.index(column)
    cells = []
    for name, setting in settings.items():
        line = experiment.series[name]
        paper = experiment.figures.get(data, {}).get(name)
        ours = None if reason else line.scale * getattr(taken[experiment.timed, setting], line.quantity)
        cells.append(
            Cell(
                data=data,
                series=name,
                axis=column.axis,
                column=column.label,
                size=setting.size,
                slide=setting.slide,
                k=setting.k,
                ours=ours,
                paper=None if paper is None else paper[place],
                reason=reason,
            )
        )
    return cells

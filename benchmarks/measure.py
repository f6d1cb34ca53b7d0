"""Rows per second of a query over a stream, beside `numpy.max` over the same array."""

from __future__ import annotations

import gc
from dataclasses import asdict, dataclass
from time import process_time
from typing import Any

import numpy as np

import skyband as sb
from skyband.algorithms import build
from skyband.algorithms.contract import Plan
from skyband.schedule import count_panes, count_windows


@dataclass(frozen=True)
class Setting:
    """What is measured."""

    data: str
    size: int
    slide: int
    k: int
    algorithm: str
    emit: str


@dataclass(frozen=True)
class Measurement:
    """What came out."""

    setting: Setting
    chosen: str
    rows: int  # measured; 0: the window did not fill in time
    seconds: float
    pace: float  # seconds a row of `numpy.max` over the same array, in the same run
    fill_seconds: float  # how long it took to fill the window, as far as it came
    candidates: int
    bytes: int

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds

    @property
    def ratio(self) -> float:
        """The time over that of `numpy.max`."""
        return self.seconds / self.rows / self.pace

    def as_json(self) -> dict[str, Any]:
        plain = asdict(self)
        speed = {name: getattr(self, name) if self.rows else None for name in ("rows_per_second", "ratio")}
        return plain.pop("setting") | plain | speed


def yardstick(scores: np.ndarray, tries: int = 5) -> float:
    """Seconds a row, of those the process had a core for, of `numpy.max` over the whole array, best of several."""
    best = float("inf")
    for _ in range(tries):
        begin = process_time()
        scores.max()
        best = min(best, process_time() - begin)
    return best / len(scores)


def monitor_of(setting: Setting) -> sb.Monitor:
    """A monitor with the one query."""
    window = sb.CountWindow(setting.size, setting.slide)
    query = sb.TopK(name="q", k=setting.k, score="x", window=window, algorithm=setting.algorithm, emit=setting.emit)
    return sb.Monitor([query])


def measure(setting: Setting, scores: np.ndarray, *, batch: int) -> Measurement:
    """Push `scores` in batches: first a window's worth, then timed until they end; those that are one push are timed whole.

    One query works on one core: what counts is the time the process had it for."""
    monitor = monitor_of(setting)
    gc.collect()
    start = -(-setting.size // batch) * batch if batch < len(scores) else 0
    began = begin = process_time()
    for at in range(0, len(scores), batch):
        if at == start:
            begin = process_time()
        monitor.push({"x": scores[at : at + batch]})
    seconds, rows = process_time() - begin, len(scores) - start
    stats = monitor.stats("q")
    return Measurement(
        setting=setting,
        chosen=stats["algorithm"],
        rows=rows,
        seconds=seconds,
        pace=yardstick(scores),
        fill_seconds=begin - began,
        candidates=stats["candidates"],
        bytes=stats["bytes"],
    )


def drive(setting: Setting, scores: np.ndarray, *, batch: int, budget: float) -> float:
    """Seconds a row, of those the process had a core for, of the structure alone, every window answered: what the papers time.

    The window is filled first, for at most twice the budget; then rows are timed until they end or the budget is spent.
    """
    structure = build(setting.algorithm, Plan((setting.k,), (setting.size,), (setting.slide,)))
    fed, begin, start = 0, process_time(), 0
    while fed < len(scores):
        if start == 0 and fed >= setting.size:
            start, begin = fed, process_time()
        elif process_time() - begin > (budget if start else 2 * budget):
            break
        windows = count_windows(0, setting.size, setting.slide, 0, fed, fed + batch, last_only=False)
        panes = count_panes(setting.size, setting.slide, fed, fed + batch) if structure.wants_panes else None
        for _ in structure.advance(fed, scores[fed : fed + batch], windows, panes):
            pass
        fed += batch
    return (process_time() - begin) / (fed - start)


def warm_up(algorithms: list[str]) -> None:
    """Load every kernel once, so that no measurement pays for it."""
    for algorithm in algorithms:
        for emit in ("none", "changes"):
            measure(Setting("", 100, 10, 5, algorithm, emit), np.arange(500.0), batch=100)

"""Rows per second of a query over a stream, beside `numpy.max` over the same array."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from time import perf_counter, process_time
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
    """What came out. `ratio` is the time over that of `numpy.max` over the same rows, in the same run."""

    setting: Setting
    chosen: str
    rows: int
    seconds: float
    rows_per_second: float
    ratio: float
    candidates: int
    bytes: int
    whole_windows: float  # how many windows' worth of rows were measured, after the first had filled

    def as_json(self) -> dict[str, Any]:
        plain = asdict(self)
        return plain.pop("setting") | plain


def yardstick(scores: np.ndarray, tries: int = 5, clock: Callable[[], float] = perf_counter) -> float:
    """Seconds a row of `numpy.max` over the whole array, best of several."""
    best = float("inf")
    for _ in range(tries):
        begin = clock()
        scores.max()
        best = min(best, clock() - begin)
    return best / len(scores)


def monitor_of(setting: Setting) -> sb.Monitor:
    """A monitor with the one query."""
    window = sb.CountWindow(setting.size, setting.slide)
    query = sb.TopK(name="q", k=setting.k, score="x", window=window, algorithm=setting.algorithm, emit=setting.emit)
    return sb.Monitor([query])


def measure(
    setting: Setting,
    scores: np.ndarray,
    *,
    batch: int,
    budget: float = np.inf,
    fill_budget: float = np.inf,
    clock: Callable[[], float] = perf_counter,
) -> Measurement:
    """Push `scores` in batches: first a window's worth, then timed until they end or `budget` seconds are over.

    Where even filling the window takes longer than `fill_budget`, the filling is what is timed.
    """
    monitor = monitor_of(setting)
    gc.collect()
    at, begin, start = 0, clock(), 0
    while at < len(scores):
        if start == 0 and at >= setting.size:
            start, begin = at, clock()  # the window is full: from here on it counts
        elif clock() - begin > (budget if start else fill_budget):
            break
        monitor.push({"x": scores[at : at + batch]})
        at += batch
    seconds = clock() - begin
    rows = min(at, len(scores)) - start
    stats = monitor.stats("q")
    return Measurement(
        setting=setting,
        chosen=stats["algorithm"],
        rows=rows,
        seconds=seconds,
        rows_per_second=rows / seconds,
        ratio=seconds / rows / yardstick(scores, clock=clock),
        candidates=stats["candidates"],
        bytes=stats["bytes"],
        whole_windows=rows / setting.size if start else 0.0,
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

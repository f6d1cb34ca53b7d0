"""Many queries over points: the grid against a scan by the same kernels, what `auto` makes of it, and ten thousand at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import skyband as sb
from benchmarks.figure import Figure
from skyband.algorithms import settled
from skyband.algorithms.choose import SPARE, choose_crowd
from skyband.algorithms.spatial.crowd import Asked, Crowd, resolution
from skyband.changes import Emitted
from skyband.kernels.emission import emit

CYCLES = 10
_NAMES = "abcdef"


def points(say: Callable[[str], None], *, quick: bool) -> Iterator[Figure]:
    """Figures of the spatial family that the promised numbers do not have."""
    size = 10**5 if quick else 10**6
    yield from ten_thousand(say, size)
    yield from crossing(say, size)


def crossing(say: Callable[[str], None], size: int) -> Iterator[Figure]:
    """What `auto` chooses beside the better of grid and scan, `sma` with rows to spare both: structures alone, cycles of
    size/100 rows."""
    generator = np.random.default_rng(7)
    for queries in (100, 1000, 5000):
        for dimensions in (2, 4, 6):
            for k in (1, 20, 100):
                setting = f"{queries} linear queries, d={dimensions}, k={k}, N={size:,}"
                say(setting)
                weights = generator.random((queries, dimensions))
                usual = resolution(size, dimensions)
                crowds = {"grid": _crowd(weights, k, size, usual), "scan": _crowd(weights, k, size, 1)}
                taken = _side_by_side(crowds, dimensions, size)
                named, options = settled(choose_crowd(queries) or "")
                assert named.name == "sma" and options["spare"] == SPARE
                chosen = "scan" if options.get("grid") == 1 else "grid"
                detail = ", ".join(f"{name} {1e3 * seconds:.2f} ms a cycle" for name, seconds in taken.items())
                ratio = taken[chosen] / min(taken.values())
                yield Figure(setting, "the better of grid and scan", 1.1, ratio, "× its time", detail=f"{detail}; {chosen}")


def _crowd(weights: np.ndarray, k: int, size: int, grid: int) -> Crowd:
    names = tuple(_NAMES[: weights.shape[1]])
    crowd = Crowd(names, grid)
    for one in weights.tolist():
        score = sb.linear(dict(zip(names, one, strict=True)))
        crowd.add(Asked(score, "desc", k, size, size // 100, "sma", options={"spare": SPARE}))
    return crowd


def _side_by_side(crowds: dict[str, Crowd], dimensions: int, size: int) -> dict[str, float]:
    """Seconds of the processor a cycle of each, windows full, the same rows for all in turns; the slowest third of the
    cycles, in which others were at work on the machine, left out."""
    generator = np.random.default_rng(8)
    for _ in range(11):
        rows = generator.random((dimensions, size // 10))
        for crowd in crowds.values():
            _push(crowd, rows)
    taken: dict[str, list[float]] = {name: [] for name in crowds}
    for _ in range(CYCLES):
        rows = generator.random((dimensions, size // 100))
        for name, crowd in crowds.items():
            begin = process_time()
            _push(crowd, rows)
            taken[name].append(process_time() - begin)
    return {name: float(np.mean(sorted(seconds)[: 2 * CYCLES // 3])) for name, seconds in taken.items()}


def _push(crowd: Crowd, rows: np.ndarray) -> None:
    """Take rows and bring the answers up to date, without result rows."""
    unheard = np.zeros(len(crowd.asked), np.int64)
    for query, ends, results in crowd.push(rows):
        emit(query, ends, 0, len(query), results, unheard, crowd.tops, Emitted.room(0))


def ten_thousand(say: Callable[[str], None], size: int) -> Iterator[Figure]:
    """Memory and speed of 10⁴ queries through a monitor: the best twenty rows, and all above a bound that about twenty rows
    of a window reach; over rows that count, and over time."""
    for kind in ("TopK", "Threshold"):
        for window in ("rows", "time"):
            what = f"10⁴ linear {kind} queries, d=4, N={size:,} ({window}), 20 rows each, changes"
            say(what)
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:  # that holds nothing of what went before
                rate, stats, held = fresh.submit(_pushed, kind, window, size).result()
            detail = f"{stats['bytes'] / 1e6:.0f} MB in the structure, {stats['bytes_per_query'] / 1e3:.1f} kB a query"
            yield Figure(what, "arrivals a second", 1e5, rate, "", False, f"{detail}; {stats['algorithm']}, {stats['search']}")
            most, end, before = held
            detail = f"{end:.0f} MB in the end, {before:.0f} before there was a query"
            yield Figure(what, "what the process holds at most", 1e3, most, "MB", detail=detail)


def _pushed(kind: str, window: str, size: int) -> tuple[float, dict[str, Any], tuple[float, float, float]]:
    """Arrivals a second once the window is full, what `stats` says of a query, and megabytes of the process: at most, in the
    end, and with nothing but what was imported. None of it is the benchmark's own but the rows of a push and its results."""
    before = _resident("VmRSS")
    queries, names, arrivals = 10**4, _NAMES[:4], size // 100
    generator = np.random.default_rng(9)
    weights = generator.random((queries, len(names)))
    bounds = _reached(weights, generator.random((len(names), 20_000)), 1 + 20_000 * 20 // size)
    asked: list[sb.TopK | sb.Threshold] = []
    for number, one in enumerate(weights.tolist()):
        given = {"name": f"q{number}", "score": sb.linear(dict(zip(names, one, strict=True)))}
        given["window"] = sb.CountWindow(size, arrivals) if window == "rows" else sb.TimeWindow(size, arrivals)
        asked.append(sb.TopK(k=20, **given) if kind == "TopK" else sb.Threshold(above=float(bounds[number]), **given))
    monitor = sb.Monitor(asked, time="t" if window == "time" else None)
    seconds = 0.0
    for cycle in range(110 + CYCLES):
        rows = dict(zip(names, generator.random((len(names), arrivals)), strict=True))
        rows["t"] = np.arange(cycle * arrivals, (cycle + 1) * arrivals)
        begin = perf_counter()
        monitor.push(rows)
        seconds += (perf_counter() - begin) * (cycle >= 110)
    held = _resident("VmHWM"), _resident("VmRSS"), before
    return CYCLES * arrivals / seconds, dict(monitor.stats("q0")), held


def _resident(line: str) -> float:
    """Megabytes of this process in memory, now (VmRSS) or at most so far (VmHWM)."""
    lines = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[line].split()[0]) * 1024 / 1e6


def _reached(weights: np.ndarray, rows: np.ndarray, number: int) -> np.ndarray:
    """The scores that so many of the rows reach, a few queries at a time: the process is to hold little else."""
    blocks = np.array_split(weights, 100)
    return np.concatenate([np.partition(block @ rows, -number, axis=1)[:, -number].copy() for block in blocks])

"""Many queries over points: the grid against a scan by the same kernels, what `auto` makes of it, and ten thousand at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np

import skyband as sb
from benchmarks.figure import Figure
from skyband.algorithms import settled
from skyband.algorithms.choose import SPARE, choose_crowd
from skyband.algorithms.crowd import Asked, Crowd, resolution
from skyband.changes import Emitted
from skyband.kernels.emission import emit

CYCLES = 10
_NAMES = "abcdef"


def points(say: Callable[[str], None], *, quick: bool) -> Iterator[Figure]:
    """Figures of the spatial family that the promised numbers do not have."""
    yield from crossing(say, 10**5 if quick else 10**6)
    yield ten_thousand(say, 10**5 if quick else 10**6)


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
                named, options = settled(choose_crowd(queries, dimensions, k, True) or "")
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
    """Seconds a cycle of each, windows full, the same rows for all in turns; the slowest third of the cycles, in which
    others were at work on the machine, left out."""
    generator = np.random.default_rng(8)
    for _ in range(11):
        rows = generator.random((dimensions, size // 10))
        for crowd in crowds.values():
            _push(crowd, rows)
    taken: dict[str, list[float]] = {name: [] for name in crowds}
    for _ in range(CYCLES):
        rows = generator.random((dimensions, size // 100))
        for name, crowd in crowds.items():
            begin = perf_counter()
            _push(crowd, rows)
            taken[name].append(perf_counter() - begin)
    return {name: float(np.mean(sorted(seconds)[: 2 * CYCLES // 3])) for name, seconds in taken.items()}


def _push(crowd: Crowd, rows: np.ndarray) -> None:
    """Take rows and bring the answers up to date, without result rows."""
    unheard = np.zeros(len(crowd.asked), np.int64)
    for query, ends, results in crowd.push(rows):
        emit(query, ends, 0, len(query), results, unheard, crowd.tops, Emitted.room(0))


def ten_thousand(say: Callable[[str], None], size: int) -> Figure:
    """Memory and speed of 10⁴ queries through a monitor."""
    queries, dimensions, k, arrivals = 10**4, 4, 20, size // 100
    say("10⁴ linear queries")
    generator = np.random.default_rng(9)
    names = _NAMES[:dimensions]
    asked = [
        sb.TopK(name=f"q{i}", k=k, score=sb.linear(dict(zip(names, one, strict=True))), window=sb.CountWindow(size, arrivals))
        for i, one in enumerate(generator.random((queries, dimensions)).tolist())
    ]
    monitor = sb.Monitor(asked)
    for _ in range(11):
        monitor.push(dict(zip(names, generator.random((dimensions, size // 10)), strict=True)))
    begin = perf_counter()
    for _ in range(CYCLES):
        monitor.push(dict(zip(names, generator.random((dimensions, arrivals)), strict=True)))
    rate = CYCLES * arrivals / (perf_counter() - begin)
    stats = monitor.stats("q0")
    detail = (
        f"{stats['bytes'] / 1e6:.0f} MB in the structure, {stats['bytes'] / queries / 1e3:.1f} kB a query; {stats['algorithm']}"
    )
    return Figure(f"10⁴ linear queries, d=4, N={size:,}, k=20, changes", "arrivals a second", 1e5, rate, "", False, detail)

"""Every algorithm over sizes, slides, k and data; and how far `auto` is from the best of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from time import process_time
from typing import Any

from benchmarks.measure import Measurement, Setting, measure, warm_up
from benchmarks.streams import names, stream

SIZES = (10**4, 10**5, 10**6)
KS = (1, 10, 100, 1000)
ALGORITHMS = ("strict", "mintopk", "panes", "sap-equal", "sap-dynamic", "sap", "shared", "auto")


def slides(size: int) -> list[int]:
    """The slides measured for a window size."""
    return sorted({1, 10, size // 1000, size // 10})


def settings(*, sizes: Iterable[int] = SIZES, ks: Iterable[int] = KS, emit: str = "changes") -> list[Setting]:
    """The cells of the grid; algorithms innermost, so that rivals are measured one after the other."""
    return [
        Setting(data, size, slide, k, algorithm, emit)
        for data in names()
        for size in sizes
        for slide in slides(size)
        for k in ks
        for algorithm in ALGORITHMS
    ]


def run(cells: list[Setting], progress: Callable[[Setting], None], *, budget: float, rounds: int) -> list[Measurement]:
    """Measure each cell for about `budget` seconds once its window has filled (at most four times that to fill it), in so many
    rounds over the algorithms of a question: the fastest of them counts, as noise only ever adds, and it comes and goes.

    Seconds are those the process had a core for: whatever else runs on it shows less, and one query is one thread's work.
    """
    warm_up(list(ALGORITHMS))
    results: list[Measurement] = []
    scores, key = None, None
    for question, group in groupby(cells, key=lambda cell: (cell.data, cell.size, cell.slide, cell.k)):
        data, size = question[:2]
        if key != (data, size):
            key = (data, size)
            scores = stream(data, max(3 * size, 10**6))
        assert scores is not None
        batch = max(2000, min(size // 5, 100_000))
        rivals = list(group)
        best: dict[Setting, Measurement] = {}
        for _ in range(rounds):
            for cell in rivals:
                progress(cell)
                share = budget / rounds
                found = measure(cell, scores, batch=batch, budget=share, fill_budget=4 * share, clock=process_time)
                if cell not in best or found.rows_per_second > best[cell].rows_per_second:
                    best[cell] = found
        results += [best[cell] for cell in rivals]
    return results


def auto_against_best(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For every cell: what `auto` chose, and its time over that of the fastest named algorithm."""
    cells: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in results:
        cells.setdefault((row["data"], row["size"], row["slide"], row["k"]), {})[row["algorithm"]] = row
    verdicts = []
    for (data, size, slide, k), rows in cells.items():
        if "auto" not in rows:
            continue
        named = {name: row for name, row in rows.items() if name != "auto"}
        best = max(named, key=lambda name: named[name]["rows_per_second"])
        chosen = rows["auto"]["chosen"]
        # the chosen algorithm was measured twice: the better of the two is its speed
        speed = max(rows["auto"]["rows_per_second"], named.get(chosen, rows["auto"])["rows_per_second"])
        verdicts.append(
            {
                "data": data,
                "size": size,
                "slide": slide,
                "k": k,
                "chosen": chosen,
                "best": best,
                "times_best": named[best]["rows_per_second"] / speed,
            }
        )
    return verdicts

"""Every algorithm over sizes, slides, k and data; and how far `auto` is from the best of them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import groupby
from time import process_time
from typing import Any

import numpy as np

import skyband as sb
from benchmarks.measure import Measurement, Setting, monitor_of, warm_up, yardstick
from benchmarks.streams import names, stream

SIZES = (10**4, 10**5, 10**6)
KS = (1, 10, 100, 1000)
ALGORITHMS = ("auto", "strict", "mintopk", "panes", "sap-equal", "sap-dynamic", "sap", "shared")
SLOWER = 4  # times the time `auto` takes, after which a rival is stopped
FILL_AT_LEAST = 0.1  # seconds that every rival has to fill its window
FILL_BATCH = 20_000  # rows after which a rival may be stopped while it fills its window


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


@dataclass
class Rival:
    """An algorithm at one question: a monitor whose window is full, and the seconds of each push since."""

    setting: Setting
    full: sb.Monitor | None  # None: filling the window took too long
    fill_seconds: float
    seconds: list[float] = field(default_factory=list)  # of each push, the least over all rounds
    stats: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def filled(cls, setting: Setting, scores: np.ndarray, limit: float) -> Rival:
        """Fill the window, unless that takes more than `limit` seconds."""
        monitor, begin = monitor_of(setting), process_time()
        for at in range(0, setting.size, FILL_BATCH):
            monitor.push({"x": scores[at : min(at + FILL_BATCH, setting.size)]})
            if process_time() - begin > limit:
                return cls(setting, None, process_time() - begin, stats=dict(monitor.stats("q")))
        return cls(setting, monitor, process_time() - begin)

    def take(self, batches: list[np.ndarray], limit: float) -> None:
        """Push the batches onto a copy of the full window, until they end or `limit` seconds are over."""
        assert self.full is not None
        monitor, total = deepcopy(self.full), 0.0
        for at, rows in enumerate(batches):
            begin = process_time()
            monitor.push({"x": rows})
            seconds = process_time() - begin
            if at == len(self.seconds):
                self.seconds.append(seconds)
            self.seconds[at] = min(self.seconds[at], seconds)
            total += seconds
            if total > limit:
                break
        self.stats = dict(monitor.stats("q"))

    def measured(self, batch: int, pace: float) -> Measurement:
        """What came out, by pushes of `batch` rows."""
        return Measurement(
            setting=self.setting,
            chosen=self.stats["algorithm"],
            rows=batch * len(self.seconds),
            seconds=sum(self.seconds),
            pace=pace,
            fill_seconds=self.fill_seconds,
            candidates=self.stats["candidates"],
            bytes=self.stats["bytes"],
        )


def run(cells: list[Setting], progress: Callable[[Setting], None], *, budget: float, rounds: int) -> list[Measurement]:
    """Measure every algorithm of a question over the same rows, which come once its window is full: as many as `auto`, which
    goes first, takes in `budget` seconds. In so many rounds each takes them anew; the least seconds of each push count, as
    noise only ever adds, and it comes and goes.

    A rival that takes several times as long is stopped, and one that takes several times as long to fill its window is left
    out: what it does before says little of what it would do then. Seconds are those the process had a core for: whatever
    else runs on it shows less, and one query is one thread's work.
    """
    warm_up(list(ALGORITHMS))
    results: list[Measurement] = []
    key: tuple[str, int] | None = None
    scores, pace = np.zeros(0), 0.0
    for question, group in groupby(cells, key=lambda cell: (cell.data, cell.size, cell.slide, cell.k)):
        data, size = question[:2]
        if key != (data, size):
            key = (data, size)
            scores = stream(data, max(3 * size, 10**6))
            pace = yardstick(scores)
        batch = max(2000, min(size // 5, 100_000))
        batches = [scores[at : at + batch] for at in range(size, len(scores) - batch + 1, batch)]
        rivals: list[Rival] = []
        fill_limit, time_limit = np.inf, budget
        for cell in group:
            progress(cell)
            rivals.append(Rival.filled(cell, scores, fill_limit))
            if len(rivals) == 1:
                fill_limit = max(SLOWER * rivals[0].fill_seconds, FILL_AT_LEAST)
        for _ in range(rounds):
            for rival in rivals:
                if rival.full is not None:
                    gc.collect()
                    rival.take(batches, time_limit)
                if rival is rivals[0]:
                    batches = batches[: len(rival.seconds)]
                    time_limit = SLOWER * budget
        results += [rival.measured(batch, pace) for rival in rivals]
    return results


def by_question(results: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, dict[str, Any]]]:
    """Results by data, size, slide and k, then by algorithm."""
    cells: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in results:
        cells.setdefault((row["data"], row["size"], row["slide"], row["k"]), {})[row["algorithm"]] = row
    return cells


def auto_against_best(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For every cell: what `auto` chose, and its time over that of the fastest named algorithm that filled its window."""
    verdicts = []
    for (data, size, slide, k), rows in by_question(results).items():
        named = {name: row for name, row in rows.items() if name != "auto" and row["rows_per_second"] is not None}
        if "auto" not in rows or not named:
            continue
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
                "left_out": [name for name, row in rows.items() if row["rows_per_second"] is None],
            }
        )
    return verdicts


def time_of(results: list[dict[str, Any]], algorithm: str, rival: str) -> list[dict[str, Any]]:
    """For every cell in which both filled their windows: the algorithm's time over the rival's."""
    shares = []
    for (data, size, slide, k), rows in by_question(results).items():
        ours, theirs = (rows.get(name, {}).get("rows_per_second") for name in (algorithm, rival))
        if ours is not None and theirs is not None:
            shares.append({"data": data, "size": size, "slide": slide, "k": k, "share": theirs / ours})
    return shares

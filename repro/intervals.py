"""CIKM09's figure 4: how many of n scores that lie in intervals of known width can still be the best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from repro.experiment import Cell, Column, Experiment

RUNS, QUICK_RUNS = 100, 10


@dataclass(frozen=True)
class Intervals(Experiment):
    """Columns: "n" (scores, intervals as wide as `width`) and "width" (of `size` scores)."""

    width: float = 0.1
    count: int = 1000

    def setting(self, column: Column) -> tuple[int, float]:
        """Scores and the width of their intervals."""
        return (round(column.value), self.width) if column.axis == "n" else (self.count, column.value)


def dominance_set(score: np.ndarray, best: np.ndarray) -> int:
    """How many entries, oldest first, no newer one's score exceeds the best of: k = 1."""
    newer = np.append(np.maximum.accumulate(score[::-1])[::-1][1:], -np.inf)
    return int(np.count_nonzero(newer <= best))


def measured(count: int, width: float, runs: int) -> tuple[float, float]:
    """The mean size of the skyline of exact scores and of that of intervals, over random scores."""
    exact, wide = [], []
    for seed in range(runs):
        score = np.random.default_rng(seed).random(count)
        exact.append(dominance_set(score, score))
        wide.append(dominance_set(score, np.minimum(score + width, 1.0)))
    return float(np.mean(exact)), float(np.mean(wide))


def run(experiment: Intervals, quick: bool, step: Callable[[str], None]) -> list[Cell]:
    """Measure every cell; `step` is told of each column before it is measured."""
    cells = []
    for data, source in experiment.data.items():
        for column in experiment.columns:
            step(f"{experiment.table}  {source.label}  {column.axis} = {column.label}")
            count, width = experiment.setting(column)
            sizes = measured(count, width, QUICK_RUNS if quick else RUNS)
            for name, size in zip(experiment.series, sizes, strict=True):
                cells.append(Cell(data, name, column.axis, column.label, count, 1, 1, size, None, value=column.value))
    return cells

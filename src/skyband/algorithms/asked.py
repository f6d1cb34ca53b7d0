"""One of many queries over the same attributes, and the scores of all of them as kernels read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skyband.formulas import Distance, Linear
from skyband.kernels import query_grid

POINTS_A_CELL = 32  # that a grid over the window is made for
MOST_CELLS = 1 << 16


@dataclass(frozen=True)
class Asked:
    """One query of a crowd. `heard`: every window counts, not only the last of a batch."""

    score: Linear | Distance
    order: str
    k: int
    size: int
    slide: int
    core: str
    filter: str | None = None
    heard: bool = True
    options: dict[str, Any] = field(default_factory=dict)  # gamma, sigma, rule, buffer

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns its score reads, in the order they are added up."""
        pairs = self.score.weights if isinstance(self.score, Linear) else self.score.point
        return tuple(name for name, _ in pairs)


def questions_of(asked: list[Asked], attributes: tuple[str, ...]) -> query_grid.Questions:
    """The queries' scores over the attributes, as the kernels read them."""
    place = {name: number for number, name in enumerate(attributes)}
    shape = (len(asked), len(attributes))
    kind, sign, used = np.zeros(len(asked), np.int64), np.ones(len(asked)), np.zeros(len(asked), np.int64)
    point, weight, order = np.zeros(shape), np.ones(shape), np.zeros(shape, np.int64)
    for number, one in enumerate(asked):
        sign[number] = -1.0 if one.order == "asc" else 1.0
        used[number] = len(one.attributes)
        order[number, : used[number]] = [place[name] for name in one.attributes]
        if isinstance(one.score, Linear):
            kind[number] = query_grid.LINEAR
            given, weights = one.score.weights, one.score.weights
        else:
            kind[number] = query_grid.DISTANCE_L2 if one.score.metric == "l2" else query_grid.DISTANCE_L1
            given, weights = one.score.point, one.score.weights or ()
        for name, value in given:
            point[number, place[name]] = value
        for name, value in weights:
            weight[number, place[name]] = value
    return query_grid.Questions(kind, sign, point, weight, order, used)


def resolution(size: int, dimensions: int) -> int:
    """Cells along each of the attributes for windows of so many rows."""
    cells = min(max(size / POINTS_A_CELL, 1), MOST_CELLS)
    return max(round(cells ** (1 / dimensions)), 2)

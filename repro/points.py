"""Data sets whose rows are points of the unit cube: generated as TODS15 and SIGMOD06 say, or what stands for the former's
sensors' readings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from benchmarks.streams import real_folder

_READINGS = ("TEMP", "DEWP", "PRES", "O3")  # of a weather and air station, every hour
_SPREAD = 0.1  # variance of a cluster along each dimension


@dataclass(frozen=True)
class PointSet:
    """A data set of points. A `draw` is repeated with the same seed: other seeds give other points."""

    label: str
    kind: str  # a key of _DRAWN
    size: int  # the default window
    stands_in: str = ""

    @property
    def real(self) -> bool:
        """Whether its points come from a file."""
        return self.kind in ("shuffled", "readings")

    @property
    def ordered(self) -> bool:
        """Whether its points follow the time: the second half of a window is then not like the first."""
        return self.kind == "readings"

    def missing(self) -> str:
        """Why it cannot be measured here; empty when it can."""
        return "needs SKYBAND_DATA" if self.real and real_folder() is None else ""

    def draw(self, rows: int, queries: int, attributes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows in the order they come, float64 [attributes, rows], and query points of the same kind, [queries, attributes]."""
        points, asked = _DRAWN[self.kind](np.random.default_rng(seed), rows, queries, attributes)
        return np.ascontiguousarray(points.T), asked


Drawn = tuple[np.ndarray, np.ndarray]  # [rows, attributes], [queries, attributes]


def _uniform(rng: np.random.Generator, rows: int, queries: int, attributes: int) -> Drawn:
    points = rng.random((rows + queries, attributes))
    return points[:rows], points[rows:]


def _clustered(rng: np.random.Generator, rows: int, queries: int, attributes: int) -> Drawn:
    """Gaussian around two random centres; points outside the cube are drawn again."""
    centres = rng.random((2, attributes))
    found = np.zeros((0, attributes))
    while len(found) < rows + queries:
        drawn = centres[rng.integers(2, size=rows + queries)]
        drawn = drawn + np.sqrt(_SPREAD) * rng.standard_normal(drawn.shape)
        inside = ((drawn >= 0) & (drawn <= 1)).all(axis=1)
        found = np.concatenate([found, drawn[inside]])
    return found[:rows], found[rows : rows + queries]


def _anticorrelated(rng: np.random.Generator, rows: int, queries: int, attributes: int) -> Drawn:
    """Near the plane through the middle across the diagonal: what one attribute gains its neighbour loses (Börzsönyi et al.,
    ICDE 2001). Points outside the cube are drawn again."""
    found = np.zeros((0, attributes))
    while len(found) < rows + queries:
        middle = 0.25 + 0.5 * rng.random((rows + queries, 12)).mean(axis=1)  # their normal variable: a mean of twelve
        reach = np.minimum(middle, 1.0 - middle)
        drawn = np.repeat(middle[:, None], attributes, axis=1)
        for attribute in range(attributes):
            moved = rng.uniform(-reach, reach)
            drawn[:, attribute] += moved
            drawn[:, (attribute + 1) % attributes] -= moved
        found = np.concatenate([found, drawn[((drawn >= 0) & (drawn <= 1)).all(axis=1)]])
    return found[:rows], found[rows : rows + queries]


def _shuffled(rng: np.random.Generator, rows: int, queries: int, attributes: int) -> Drawn:
    """Readings at random, none twice as long as there are enough of them."""
    known = _readings()[:, :attributes]
    points = known[rng.choice(len(known), rows + queries, replace=rows + queries > len(known))]
    return points[:rows], points[rows:]


def _in_order(rng: np.random.Generator, rows: int, queries: int, attributes: int) -> Drawn:
    """Readings in the order they were taken from a random one on, the first following the last; queries from anywhere."""
    known = _readings()[:, :attributes]
    begin = rng.integers(len(known))
    return known[(begin + np.arange(rows)) % len(known)], known[rng.choice(len(known), queries)]


_DRAWN: dict[str, Callable[[np.random.Generator, int, int, int], Drawn]] = {
    "uniform": _uniform,
    "clustered": _clustered,
    "anticorrelated": _anticorrelated,
    "shuffled": _shuffled,
    "readings": _in_order,
}


@lru_cache(maxsize=1)
def _readings() -> np.ndarray:
    """Complete readings of twelve stations in the order of time, each quantity brought to [0, 1]."""
    import pyarrow.parquet as pq

    folder = real_folder()
    if folder is None:
        raise SystemExit("readings of sensors are real data: set SKYBAND_DATA to the folder that holds them")
    table = pq.read_table(folder / "beijing_air_quality_prsa.parquet", columns=list(_READINGS))
    known = np.column_stack([np.asarray(table[name].to_numpy(), float) for name in _READINGS])
    known = known[np.isfinite(known).all(axis=1)]
    low, high = known.min(axis=0), known.max(axis=0)
    return np.asarray((known - low) / (high - low))

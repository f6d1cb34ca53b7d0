"""The events every system reads, as parquet files, and what the right answer is: the window, sorted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.spark.settings import FILES_A_BATCH, LEAST_BATCHES, PER_SECOND, ROWS_A_FILE, SECOND, Setting
from benchmarks.streams import stream

BEGIN = 1_704_067_200 * SECOND  # 2024-01-01, a multiple of every slide
SYMBOLS = pa.array([f"{a}{b}{c}" for a in "ABCDEFGH" for b in "KLMNOPQR" for c in "STUVWXYZ"])
SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us", tz="UTC"),
        "id": pa.int64(),
        "symbol": pa.string(),
        "price": pa.float64(),
        "score": pa.float64(),
    }
)
SPARK_SCHEMA = "ts timestamp, id long, symbol string, price double, score double"


@dataclass(frozen=True)
class Events:
    """`count` events in order of time, `per_second` of them in each second, their ids unique.

    `wave` is how many events a rise and fall of the sine takes; the papers' TIMEʳ has a million.
    """

    scores: str
    count: int
    per_second: int = PER_SECOND
    rows_a_file: int = ROWS_A_FILE
    wave: int = 10**6

    @classmethod
    def shortened(cls, scores: str, count: int) -> Events:
        """Whole files as `settings` has them; for few events smaller ones, so that there still are several micro-batches."""
        return cls(scores, count, rows_a_file=max(1, min(ROWS_A_FILE, count // (FILES_A_BATCH * LEAST_BATCHES))))

    @property
    def rows_a_batch(self) -> int:
        return self.rows_a_file * FILES_A_BATCH

    def table(self) -> pa.Table:
        """All events, in order."""
        rng = np.random.default_rng(11)
        at = np.arange(self.count)
        columns = [
            pa.array(BEGIN + at * SECOND // self.per_second).cast(SCHEMA.field("ts").type),
            pa.array(at * 7 + 1_000_003),
            SYMBOLS.take(pa.array(rng.integers(0, len(SYMBOLS), self.count))),
            pa.array(np.round(np.exp(rng.normal(3.0, 1.0, self.count)), 2)),
            pa.array(self._score(at)),
        ]
        return pa.Table.from_arrays(columns, schema=SCHEMA)

    def _score(self, at: np.ndarray) -> np.ndarray:
        if self.scores == "sine":
            return np.sin(np.pi * (at + 1) / self.wave)
        return stream(self.scores, self.count)

    def write(self, folder: Path) -> None:
        """The files, each a second younger than the one before: Spark takes them in that order."""
        folder.mkdir(parents=True)
        table = self.table()
        for number, at in enumerate(range(0, self.count, self.rows_a_file)):
            path = folder / f"{number:06d}.parquet"
            pq.write_table(table.slice(at, self.rows_a_file), path)
            os.utime(path, (1_704_067_200 + number, 1_704_067_200 + number))


@dataclass(frozen=True)
class Window:
    """One reported window: its end in microseconds, its best rows, the best first, and the best score left out."""

    end: int
    ids: np.ndarray
    scores: np.ndarray
    left_out: float = float("nan")


def sorted_windows(table: pa.Table, setting: Setting) -> Iterator[Window]:
    """Every window that the greatest time closes, by sorting it: larger score, then larger time, then larger id."""
    time = table["ts"].cast(pa.int64()).to_numpy()
    ids, scores = table["id"].to_numpy(), table["score"].to_numpy()
    size, slide = setting.size * SECOND, setting.slide * SECOND
    for end in range((time[0] // slide + 1) * slide, time[-1] + 1, slide):
        low, high = np.searchsorted(time, (end - size, end))
        order = low + np.lexsort((-ids[low:high], -time[low:high], -scores[low:high]))
        best, rest = order[: setting.k], order[setting.k :]
        yield Window(end, ids[best], scores[best], left_out=scores[rest[0]] if len(rest) else float("nan"))

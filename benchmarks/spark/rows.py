"""Rows with four attributes, as files for every system, and linear questions over them (SIGMOD06's setting)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

import skyband as sb
from benchmarks.spark.events import BEGIN
from benchmarks.spark.settings import FILES_A_BATCH, SECOND, Setting

ATTRIBUTES = ("a", "b", "c", "d")
DDL = "ts timestamp, id long, part int, " + ", ".join(f"{name} double" for name in ATTRIBUTES)
PARTS = 100
_FIRST_FILE = 1_704_067_200


@dataclass(frozen=True)
class Rows:
    """`count` rows in order of time, `per_second` of them in each second, in `batches` micro-batches.

    `hot` is the share of the rows that are of one of 100 parts; the others are of all parts alike.
    """

    count: int
    per_second: int
    batches: int
    hot: float = 0.0

    @property
    def rows_a_file(self) -> int:
        return -(-self.count // (self.batches * FILES_A_BATCH))

    def table(self) -> pa.Table:
        """All rows, in order."""
        rng = np.random.default_rng(21)
        at = np.arange(self.count)
        part = rng.integers(0, PARTS, self.count)
        part[rng.random(self.count) < self.hot] = 0
        attributes = {name: rng.random(self.count) for name in ATTRIBUTES}
        ts = pa.array(BEGIN + at * SECOND // self.per_second).cast(pa.timestamp("us", tz="UTC"))
        return pa.table({"ts": ts, "id": at, "part": part.astype(np.int32), **attributes})

    def write(self, folder: Path, kind: str = "parquet") -> Path:
        """The files, each a second younger than the one before: Spark takes them in that order."""
        folder.mkdir(parents=True)
        table = self.table()
        for number, at in enumerate(range(0, self.count, self.rows_a_file)):
            path, piece = folder / f"{number:06d}.{kind}", table.slice(at, self.rows_a_file)
            if kind == "parquet":
                pq.write_table(piece, path)
            else:
                _write_csv(piece, path)
            os.utime(path, (_FIRST_FILE + number,) * 2)
        return folder

    def write_shares(self, folder: Path, shares: int) -> list[Path]:
        """The same rows as so many CSV files, dealt out in turn, each in order."""
        folder.mkdir(parents=True)
        files = [folder / f"{number}.csv" for number in range(shares)]
        table = self.table()
        for number, file in enumerate(files):
            _write_csv(table.take(pa.array(np.arange(number, self.count, shares))), file)
        return files


def _write_csv(table: pa.Table, path: Path) -> None:
    """No quotes and no header, times without a zone: what every reader of CSV agrees on."""
    plain = table.set_column(0, "ts", table["ts"].cast(pa.timestamp("ms")).cast(pa.string()))
    csv.write_csv(plain, path, csv.WriteOptions(include_header=False, quoting_style="none"))


def weights(number: int) -> list[dict[str, float]]:
    """What linear scores weigh the attributes by; the first of many are those of few."""
    drawn = np.random.default_rng(22).random((number, len(ATTRIBUTES)))
    return [dict(zip(ATTRIBUTES, one, strict=True)) for one in drawn.round(6).tolist()]


def asked(number: int, setting: Setting, emit: str = "changes", per_second: int = 0) -> list[sb.TopK]:
    """As many linear queries of one window; of as many rows, if it is told how many a second has: these rows come so evenly
    that both hold the same."""
    window: sb.TimeWindow | sb.CountWindow = sb.TimeWindow(setting.size_text, setting.slide_text)
    if per_second:
        window = sb.CountWindow(setting.size * per_second, setting.slide * per_second)
    return [
        sb.TopK(name=f"q{i}", k=setting.k, score=sb.linear(one), window=window, emit=emit)
        for i, one in enumerate(weights(number))
    ]

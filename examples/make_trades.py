"""Writes examples/trades: a day of made-up trades as parquet files, for examples/trades.toml."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from skyband.demo import VENUES, trades


def main(rows: int = 200_000, files: int = 40) -> None:
    """Cut the day into files in the order of arrival."""
    folder = Path(__file__).with_name("trades")
    folder.mkdir(exist_ok=True)
    day = trades(rows)
    day = day.set_column(day.column_names.index("venue"), "venue", pa.array([VENUES[v] for v in day["venue"].to_pylist()]))
    day = day.add_column(0, "seq", pa.array(range(rows)))
    day = day.set_column(1, "ts", day["ts"].cast(pa.timestamp("us", "UTC")))
    began = int(time.time()) - files
    for number in range(files):
        start, end = number * rows // files, (number + 1) * rows // files
        file = folder / f"{number:03}.parquet"
        pq.write_table(day.slice(start, end - start), file)
        os.utime(file, (began + number, began + number))  # Spark reads files in the order of their times
    print(f"{rows:,} trades in {files} files under {folder}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

"""Writes a day of made-up trades: files under examples/trades for trades.toml and steered.toml, or a topic for kafka.toml.

python examples/make_trades.py                                 parquet files
python examples/make_trades.py --kafka 127.0.0.1:9092          JSON messages in the topic `trades`
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from skyband.console.demo import VENUES, trades

TOPIC = "trades"


def main() -> None:
    """Make the trades and write them where they are wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int, nargs="?", default=200_000)
    parser.add_argument("files", type=int, nargs="?", default=40)
    parser.add_argument("--kafka", metavar="SERVERS", help="write to a topic of this broker instead")
    asked = parser.parse_args()
    day = trades(asked.rows)
    day = day.set_column(day.column_names.index("venue"), "venue", pa.array([VENUES[v] for v in day["venue"].to_pylist()]))
    day = day.add_column(0, "seq", pa.array(range(asked.rows)))
    day = day.set_column(1, "ts", day["ts"].cast(pa.timestamp("us", "UTC")))
    if asked.kafka is None:
        write_files(day, asked.files)
    else:
        write_topic(day, asked.kafka)


def write_files(day: pa.Table, files: int) -> None:
    """Cut the day into files in the order of arrival."""
    folder = Path(__file__).with_name("trades")
    folder.mkdir(exist_ok=True)
    began = int(time.time()) - files
    for number in range(files):
        start, end = number * len(day) // files, (number + 1) * len(day) // files
        file = folder / f"{number:03}.parquet"
        pq.write_table(day.slice(start, end - start), file)
        os.utime(file, (began + number, began + number))  # Spark reads files in the order of their times
    print(f"{len(day):,} trades in {files} files under {folder}")


def write_topic(day: pa.Table, servers: str) -> None:
    """A message a trade, in one partition, so that they keep their order."""
    from confluent_kafka import Producer

    writer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for row in day.to_pylist():
        message = json.dumps({**row, "ts": row["ts"].isoformat()})
        while True:
            try:
                writer.produce(TOPIC, message, partition=0)
                break
            except BufferError:  # it holds only so many that the broker has not taken yet
                writer.poll(1)
    if writer.flush(60):
        raise SystemExit(f"the broker at {servers} has not taken all messages; is it there? ./run kafka start")
    print(f"{len(day):,} trades in the topic {TOPIC!r} of {servers}")


if __name__ == "__main__":
    main()

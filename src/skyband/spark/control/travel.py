"""What is sent to the shards: rows as Arrow bytes, one packet a bucket and Arrow batch, and commands as JSON bytes.

The greatest time of a task travels in a packet of its own, apart from the others, because Spark drops packets behind the
watermark and a row behind it whose slide is still open must count. Commands never move the watermark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.lanes import NEVER
from skyband.spark.arriving import conformed
from skyband.spark.control.command import Command
from skyband.spark.control.terms import Terms
from skyband.spark.packets import packets
from skyband.spark.watermark import Times
from skyband.state import table_from_bytes

PACKET = pa.schema(
    {
        "shard": pa.int32(),
        "mark": pa.timestamp("us", "UTC"),  # the greatest time of a task, in a packet of its own
        "latest": pa.int64(),  # the greatest time of the rows; never null, which pandas would round
        "null_times": pa.int64(),
        "rows": pa.binary(),  # time, tie, then the input's columns
        "commands": pa.binary(),
    }
)
"""Columns of what travels."""


def packed_rows(terms: Terms, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches with columns c0.., tie and bucket in; packets out."""
    latest, times = NEVER, Times(terms.scale, waits=terms.waits)
    numbered = pa.schema([field.with_name(f"c{i}") for i, field in enumerate(terms.schema)])
    for handed_out in batches:
        batch, missing = conformed(handed_out, numbered), 0
        time = np.zeros(batch.num_rows, np.int64)
        if terms.time is not None:
            column = batch.column(f"c{terms.schema.names.index(terms.time)}")
            known = times.countable(column)
            if known is not None:
                missing = int(len(known) - known.sum())
                batch = batch.filter(pa.array(known))
                column = batch.column(f"c{terms.schema.names.index(terms.time)}")
            time = column.cast(pa.int64()).to_numpy()
            latest = max(latest, int(time.max(initial=NEVER)))
        if missing:
            yield _packet(shard=0, null_times=missing)
        own = [batch.column(f"c{i}") for i in range(len(terms.schema))]
        table = pa.table([pa.array(time), batch.column("tie"), *own], names=["", "", *terms.schema.names])
        bucket = batch.column("bucket").to_numpy()
        for number in np.unique(bucket).tolist():
            places = np.flatnonzero(bucket == number)
            rows = table if len(places) == len(table) else table.take(pa.array(places))
            moment = int(time[places].max()) if terms.waits else NEVER
            for data in packets(rows):
                for shard in range(terms.shards):
                    yield _packet(shard=shard * terms.buckets + number, rows=data, latest=moment)
    times.check()
    yield _packet(shard=0)  # it is told of every micro-batch, because it keeps what the checkpoint was written for
    if latest > NEVER and terms.waits:
        yield _packet(shard=0, mark=terms.scale.mark(latest) * 1000)


def packed_commands(terms: Terms, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches with the columns command, time and order in; packets out, for every bucket of the shard that a command is for."""
    for batch in batches:
        texts, times, orders = (batch.column(name).to_pylist() for name in ("command", "time", "order"))
        by_shard: dict[int, list[Any]] = {}
        for command in map(Command, texts, times, orders):
            by_shard.setdefault(command.shard(terms.shards), []).append(command.to_json())
        for shard, commands in by_shard.items():
            for bucket in range(terms.buckets):
                yield _packet(shard=shard * terms.buckets + bucket, commands=json.dumps(commands).encode())
        yield _packet(shard=0)


def rows_of(data: bytes | pa.Buffer) -> pa.Table:
    """The rows of a packet."""
    return table_from_bytes(data)


def commands_of(data: bytes) -> list[Command]:
    """The commands of a packet."""
    return [Command(*one) for one in json.loads(data)]


def _packet(**values: Any) -> pa.RecordBatch:
    usual = {"latest": NEVER, "null_times": 0}
    return pa.record_batch([pa.array([values.get(one.name, usual.get(one.name))], one.type) for one in PACKET], schema=PACKET)

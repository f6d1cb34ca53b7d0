"""What tells rows of equal score and time apart: Spark's own hash of their content, found only for rows that can rank."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

import skyband as sb
from skyband.spark.plan import TIE, make_request
from skyband.spark.reduce import reduced
from skyband.spark.ties import content_hashes, is_hashed_here
from skyband.state import table_from_bytes

DDL = (
    "a boolean, b byte, c short, d int, e long, f float, g double, h date, i timestamp, j timestamp_ntz, k string, l binary, "
    "m decimal(18,3), n decimal(4,0)"
)


def _row(chance: random.Random) -> tuple[Any, ...]:
    """A row of DDL, now and then null, with every length of text that the hash treats in another way."""
    number = chance.choice([0, 1, -1, chance.getrandbits(30), -chance.getrandbits(30)])
    real = chance.choice([0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -chance.random() * 1e9])
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=chance.randint(-(10**15), 10**15))
    text = "".join(chance.choice("ab√∞ 0") for _ in range(chance.choice([*range(20), 31, 32, 33, 40, 63, 64, 65, 100])))
    values = [
        number % 2 == 0, number % 100, -(number % 30000), number, number * 2**31, real, real, moment.date(), moment, moment,
        text, text.encode(), Decimal(number).scaleb(-3), Decimal(number % 9999),
    ]  # fmt: skip
    return tuple(None if chance.random() < 0.15 else value for value in values)


def test_the_hash_is_that_of_spark(spark: SparkSession) -> None:
    chance = random.Random(7)
    rows = spark.createDataFrame([_row(chance) for _ in range(400)], DDL)
    assert is_hashed_here(field.dataType for field in rows.schema.fields)
    table = rows.withColumn("expected", F.xxhash64(*rows.columns)).toArrow()
    ref = table["expected"].to_numpy()
    comp = content_hashes(table.select(rows.columns).columns, len(table))
    assert comp.tolist() == ref.tolist()
    whole = table.select(rows.columns).combine_chunks()
    middle = [column.chunk(0).slice(5, 300) for column in whole.columns]  # begin in the middle of their buffers
    assert content_hashes(middle, 300).tolist() == ref[5:305].tolist()
    assert content_hashes(table.slice(0, 0).select(rows.columns).columns, 0).tolist() == []


@pytest.mark.parametrize(
    "kind", ["decimal(19,0)", "array<int>", "struct<x:int>", "interval day to second", "string collate UTF8_LCASE"]
)
def test_other_types_are_left_to_spark(kind: str) -> None:
    assert not is_hashed_here(field.dataType for field in StructType.fromDDL(f"x {kind}").fields)


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 8), st.sampled_from([0.0, 1.0, math.nan]), st.integers(0, 5)), min_size=1, max_size=40
    ),
    step=st.integers(1, 40),
    k=st.integers(1, 4),
    order=st.sampled_from(["asc", "desc"]),
)
def test_rows_that_only_the_tie_tells_apart_are_kept_as_if_it_were_known(
    rows: list[tuple[int, float, int]], step: int, k: int, order: str
) -> None:
    schema = pa.schema([("t", pa.int64()), ("x", pa.float64()), ("id", pa.int64())])
    queries = [
        sb.TopK(name=f"q{size}", k=k, score="x", order=order, window=sb.TimeWindow(size, 4), emit="snapshots")
        for size in (4, 6)
    ]
    plan = make_request(schema, queries, "t", 0, (), None).plan
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    table = pa.table(columns, schema=schema.empty_table().rename_columns(["c0", "c1", "c2"]).schema)
    told = table.append_column(TIE, pa.array(content_hashes(table.columns, len(table))))
    kept = [
        [
            row
            for part in reduced(plan, given.to_batches(max_chunksize=step))
            for data in part["rows"]
            if data.is_valid
            for row in table_from_bytes(data.as_buffer()).drop_columns(["c1"]).to_pylist()
        ]
        for given in (told, table)
    ]
    assert kept[0] == kept[1]

"""Result rows as users see them: flat ones with their groups beside the bounds, and the row itself as a struct.

Arrow makes a struct of columns without a look at the rows, while Catalyst writes each row once more for it, by a stage of code
of its own. So the worker that takes result rows out of their bytes packs them too, where every column goes by Arrow as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, FloatType, StructField, StructType

from skyband.spark.columns import goes_as_it_is, spark_schema, unpacked
from skyband.spark.flat import bound_names, result_schema
from skyband.spark.plan import Plan

Batches = Iterable[pa.RecordBatch]


def packs_itself(df: DataFrame, plan: Plan) -> bool:
    """Whether a worker can: not results of several kinds or put together from parts, types that Arrow does not know, names of
    which an Arrow struct can have only one, and groups whose zeros and NaNs are made alike."""
    if plan.identities or plan.merged or len(set(df.columns)) < len(df.columns):
        return False
    kinds = [field.dataType for field in df.schema.fields]
    return all(map(goes_as_it_is, kinds)) and not any(isinstance(kinds[i], DoubleType | FloatType) for i in plan.groups)


def packed_schema(df: DataFrame, plan: Plan) -> StructType:
    """The columns of results."""
    flat = spark_schema(result_schema(plan))
    own = [StructField(name, flat[f"c{i}"].dataType) for i, name in enumerate(df.columns)]
    happened = [flat[name] for name in _happened(plan)]
    groups = [own[i] for i in plan.groups]
    return StructType([happened[0], *groups, *happened[1:], StructField("row", StructType(own), nullable=False)])


def packing(df: DataFrame, plan: Plan) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a worker makes of result rows in their bytes."""
    names, happened, schema = df.columns, _happened(plan), packed_schema(df, plan).names
    groups = [f"c{i}" for i in plan.groups]

    def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for flat in unpacked(batches):
            row = pa.StructArray.from_arrays([flat.column(f"c{i}") for i in range(len(names))], names=names)
            columns = [flat.column(name) for name in (happened[0], *groups, *happened[1:])]
            yield pa.record_batch([*columns, row], names=schema)

    return packed


def _happened(plan: Plan) -> list[str]:
    return ["query", *bound_names(plan), "event", "rank", "score"]

"""How results travel out of the stateful step: one flat table for all kinds, its columns under numbered names.

query, window bounds, event, rank, score     what happened
c0, c1, …                                    the row
about, g0, g1, …                             only where pairs or objects are asked for: which of them a result row is
                                             about, and its group's values
a0, a1, …, b0, b1, …                         the rows of a pair
k3, …                                        the key of an object, under its column's number
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from skyband.errors import SchemaError
from skyband.spark.plan import Plan

Array = np.ndarray
IDENTITIES = ("row", "pair", "object")
"""What `about` counts."""


def result_schema(plan: Plan) -> pa.Schema:
    """Columns of the flat result."""
    kinds = [pa.int64(), pa.int64(), plan.time_type, plan.time_type]
    if len(bound_names(plan)) == 2:
        kinds = kinds[:2] if plan.paces[0].slide is None else kinds[2:]
    fields = [("query", pa.string()), *zip(bound_names(plan), kinds, strict=True)]
    fields += [("event", pa.string()), ("rank", pa.int32()), ("score", pa.float64()), *plan.schema]
    if plan.identities:
        fields += [("about", pa.int8()), *((f"g{at}", plan.schema.field(i).type) for at, i in enumerate(plan.groups))]
    if "pair" in plan.identities:
        fields += [(f"{side}{i}", field.type) for side in "ab" for i, field in enumerate(plan.schema)]
    return pa.schema([*fields, *((f"k{i}", plan.schema.field(i).type) for i in plan.key_columns)])


def bound_names(plan: Plan) -> list[str]:
    """Window bounds: of time or of counts; of both where queries of both kinds are asked."""
    if {pace.slide is None for pace in plan.paces} == {True, False}:
        return ["window_start", "window_end", "window_start_time", "window_end_time"]
    return ["window_start", "window_end"]


def time_bound(plan: Plan) -> str | None:
    """The column of window ends that are timestamps; None where there is none."""
    if not pa.types.is_timestamp(plan.time_type) or all(pace.slide is None for pace in plan.paces):
        return None
    return bound_names(plan)[-1]


def time_bounds(kind: pa.DataType, bound: Array) -> pa.Array:
    """Bounds of windows as times of the column's type; SchemaError when it cannot hold one."""
    try:
        return pa.array(bound).cast(kind)
    except pa.ArrowInvalid:
        raise SchemaError(
            f"windows around the rows have bounds from {bound.min()} to {bound.max()}, which the time column ({kind}) cannot "
            "hold; cast it to bigint before monitor()"
        ) from None


def starts_of(sizes: Mapping[str, int], query: pa.Array | pa.ChunkedArray, end: Array, *, counted: bool) -> Array:
    """Where windows begin that end at `end`, by the sizes of their queries; those of rows not before the first one."""
    if isinstance(query, pa.ChunkedArray):
        query = query.combine_chunks()
    names = query.dictionary_encode()
    size = np.array([sizes[name] for name in names.dictionary.to_pylist()], np.int64)
    start: Array = end - size[names.indices.to_numpy()]
    return np.maximum(start, 0) if counted else start


def bounds_of(
    plan: Plan, sizes: Mapping[str, int], query: pa.Array | pa.ChunkedArray, end: Array, *, counted: bool
) -> list[pa.Array]:
    """The bounds of windows that end at `end`."""
    start = starts_of(sizes, query, end, counted=counted)
    own = (
        [pa.array(start), pa.array(end)] if counted else [time_bounds(plan.time_type, start), time_bounds(plan.time_type, end)]
    )
    if len(bound_names(plan)) == 2:
        return own
    other = [pa.nulls(len(end), plan.time_type if counted else pa.int64())] * 2
    return own + other if counted else other + own

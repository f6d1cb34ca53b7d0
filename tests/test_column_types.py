"""Columns of any type beside the scored one: kept and given back as they were, or refused before anything changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import skyband as sb

TEXTS = pa.array(["a", "b", "c", "d"])
VIEWS = pa.array(["a", "b", None, "d"], pa.string_view())
CODED = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, None], pa.int8()), pa.array(["a", "b"], pa.string_view()))
ENDS = pa.array([0, 1, 2, 3, 4], pa.int32())
TENSORS = pa.ExtensionArray.from_storage(
    pa.fixed_shape_tensor(pa.int32(), (2,)), pa.array([[1, 2], [3, 4], [5, 6], [7, 8]], pa.list_(pa.int32(), 2))
)
DENSE = pa.UnionArray.from_dense(
    pa.array([0, 1, 0, 1], pa.int8()), pa.array([0, 0, 1, 1], pa.int32()), [pa.array([1, 2]), TEXTS.slice(0, 2)]
)
SPARSE = pa.UnionArray.from_sparse(pa.array([0, 1, 0, 1], pa.int8()), [pa.array([1, 2, 3, 4]), TEXTS])


class Celsius(pa.ExtensionType):
    """A type that nobody registers: a file is read without it."""

    def __init__(self) -> None:
        super().__init__(pa.float64(), "celsius")

    def __arrow_ext_serialize__(self) -> bytes:
        return b"degrees"

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Celsius:
        return cls()


def monitor() -> sb.Monitor:
    """Two queries about rows, one about pairs: result rows lack the columns of the others."""
    pairs = sb.TopKPairs(name="pairs", k=1, score="abs(a.x - b.x)", window=sb.CountWindow(3))
    return sb.Monitor([sb.TopK(name="best", k=2, score="x", window=sb.CountWindow(3)), pairs])


def in_struct(*columns: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays(list(columns), [f"f{at}" for at in range(len(columns))])


KEPT = {
    "tensor": TENSORS,
    "uuid": pa.array([bytes([at]) * 16 for at in range(4)], pa.binary(16)).cast(pa.uuid()),
    "unregistered": pa.ExtensionArray.from_storage(Celsius(), pa.array([1.5, None, 2.5, 3.5])),
    "periods": pa.array(pd.period_range("2026-01", periods=4, freq="M")),
    "interval": pa.array([(1, 2, 3)] * 4, pa.month_day_nano_interval()),
    "decimal": pa.array([1, 2, None, 4], pa.decimal128(10, 2)),
    "nulls": pa.nulls(4),
    "list of views": pa.ListArray.from_arrays(ENDS, VIEWS),
    "large list of views": pa.LargeListArray.from_arrays(ENDS, VIEWS),
    "fixed list of views": pa.FixedSizeListArray.from_arrays(VIEWS, 1),
    "list view": pa.array([[1], [], None, [2, 3]], pa.list_view(pa.int64())),
    "map of views": pa.MapArray.from_arrays(ENDS, TEXTS.cast(pa.string_view()), VIEWS),
    "struct of all": in_struct(VIEWS, CODED, pa.ListArray.from_arrays(ENDS, CODED), pa.array([b"", b"1", None, b"3"])),
    "dictionary of views": CODED,
    "list of dictionaries": pa.ListArray.from_arrays(ENDS, TEXTS.dictionary_encode()),
    "map of dictionaries": pa.MapArray.from_arrays(ENDS, TEXTS, TEXTS.dictionary_encode()),
    "binary views": pa.array([b"a", None, b"", b"d"], pa.binary_view()),
}


def values(column: Any) -> list[Any]:
    """What a column holds; a dictionary of views knows only how to be laid out."""
    if isinstance(column, pl.Series):
        return column.to_list()
    if pa.types.is_struct(column.type):
        names = [field.name for field in column.type]
        rows = zip(*(values(column.field(name)) for name in names), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]
    if pa.types.is_list(column.type) and pa.types.is_dictionary(column.type.value_type):
        return [[each] for each in values(column.values)]
    if pa.types.is_dictionary(column.type):
        found = column.dictionary.to_pylist()
        return [None if at is None else found[at] for at in column.indices.to_pylist()]
    return column.to_pylist()


def keep(batch: Any, expected: list[Any], tmp_path: Path) -> None:
    """`expected` comes out of every kind of result, of a batch pushed twice, the second time in pieces, and of a file."""
    one = monitor()
    changes = one.push(batch)
    entered = changes.filter(pa.array([row["event"] == "enter" and row["query"] == "best" for row in changes.to_pylist()]))
    for row in entered.to_pylist():
        assert row["p"] == expected[row["seq"] % 4]
    one.save(tmp_path / "state")
    for each in (one, sb.Monitor.load(tmp_path / "state")):
        each.push(batch[:1])
        each.push(batch[1:])
        assert each.top("best").column("p").to_pylist() == [expected[3], expected[1]][::-1]
        assert each.top("best").schema.field("p").type == one.top("best").schema.field("p").type
        pair = each.top("pairs").to_pylist()[0]
        assert (pair["a_p"], pair["b_p"]) == tuple(expected[pair[f"{side}_seq"] % 4] for side in "ab")
        assert each.push(batch[:0]).num_rows == 0


@pytest.mark.parametrize("kind", KEPT)
def test_a_column_is_kept_as_it_was(kind: str, tmp_path: Path) -> None:
    column = KEPT[kind]
    keep(pa.table({"x": [1.0, 5.0, 2.0, 3.0], "p": column}), values(column), tmp_path)


FRAMES = {
    "categorical": (pl.Categorical, ["a", "b", None, "d"]),
    "enum": (pl.Enum(["b", "a", "d"]), ["a", "b", None, "d"]),
    "list of texts": (pl.List(pl.String), [["a"], ["b", None], None, []]),
    "array of texts": (pl.Array(pl.String, 1), [["a"], ["b"], None, [None]]),
    "list of categoricals": (pl.List(pl.Categorical), [["a"], ["b", "a"], None, []]),
    "struct with texts": (pl.Struct({"u": pl.String, "n": pl.Int64}), [{"u": "a", "n": 1}, {"u": None, "n": 2}, None, None]),
    "struct with an enum": (pl.Struct({"u": pl.Enum(["a"])}), [{"u": "a"}, {"u": None}, {"u": "a"}, {"u": "a"}]),
    "list of structs": (pl.List(pl.Struct({"u": pl.List(pl.String)})), [[{"u": ["a"]}], [], None, [{"u": None}]]),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_column_of_a_polars_frame_is_kept_as_it_was(kind: str, tmp_path: Path) -> None:
    type_, rows = FRAMES[kind]
    keep(pl.DataFrame({"x": [1.0, 5.0, 2.0, 3.0], "p": pl.Series(rows, dtype=type_)}), rows, tmp_path)


def test_categories_may_differ_from_batch_to_batch() -> None:
    one = monitor()
    for texts in (["a", "b"], ["c", "a", None]):
        one.push(pl.DataFrame({"x": np.arange(len(texts)) * 1.0, "p": pl.Series(texts, dtype=pl.Categorical)}))
    assert one.top("best").column("p").to_pylist() == [None, "a"]
    condition = sb.TopK(name="only", k=2, score="x", window=sb.CountWindow(9), where="p == 'a'")
    one.add(condition)
    one.push(pl.DataFrame({"x": [1.0, 2.0, 3.0], "p": pl.Series(["b", "a", None], dtype=pl.Categorical)}))
    assert one.top("only").column("p").to_pylist() == ["a"]


REFUSED = {
    "dense union": DENSE,
    "sparse union": SPARSE,
    "struct holding a union": in_struct(DENSE),
    "list of unions": pa.ListArray.from_arrays(ENDS, SPARSE),
    "struct holding a tensor": in_struct(TENSORS),
    "run-end encoded": pa.RunEndEncodedArray.from_arrays([2, 4], pa.array([1, 2])),
    "dictionary of lists": pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1]), pa.array([["a"], ["b"]])),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_column_that_cannot_be_kept_is_refused_and_leaves_no_trace(kind: str) -> None:
    one = monitor()
    with pytest.raises(sb.SchemaError, match=r"column 'p' .* cannot be kept.*; cast or drop it before pushing"):
        one.push(pa.table({"x": [1.0, 5.0, 2.0, 3.0], "p": REFUSED[kind]}))
    assert one.push({"x": [1.0, 2.0]}).num_rows > 0

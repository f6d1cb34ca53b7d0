"""Whatever a user pushes, as one Arrow table: pyarrow, pandas, polars, anything with the Arrow C interfaces, a dict."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Any

import pyarrow as pa

from skyband.errors import SchemaError

_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


def to_table(batch: Any, known: pa.Schema | None = None) -> pa.Table:
    """The rows of `batch`, dictionary and view columns decoded, an unnamed pandas index left out.

    `known` is the schema of an earlier table: there is nothing to do to one that has it.
    """
    try:
        if isinstance(batch, pa.Table):
            table = batch
        elif isinstance(batch, pa.RecordBatch):
            table = pa.Table.from_batches([batch])
        elif isinstance(batch, Mapping):
            table = pa.table({str(name): _column(values) for name, values in batch.items()})
        elif hasattr(batch, "__arrow_c_stream__") or hasattr(batch, "__arrow_c_array__"):
            table = pa.table(batch)
        else:
            raise SchemaError(
                f"cannot read a batch of type {type(batch).__name__}; push a pyarrow Table or RecordBatch, "
                "a pandas or polars DataFrame, or a dict of columns"
            )
        if table.schema != known:
            table = _plain(table)
        elif table.schema.metadata is not None:
            table = table.replace_schema_metadata(None)
    except SchemaError:
        raise
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        raise SchemaError(
            f"cannot turn the batch into columns: {problem}; give equally long columns of one type each, no two of one name"
        ) from problem
    return table


def _plain(table: pa.Table) -> pa.Table:
    """Columns of plain types that may be null, each with a name of its own."""
    if table.schema.metadata and b"pandas" in table.schema.metadata:
        table = table.drop_columns([name for name in table.column_names if _PANDAS_INDEX.fullmatch(name)])
    table = table.replace_schema_metadata(None)
    names = table.column_names
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise SchemaError(f"the batch has several columns called {twice[0]!r}; rename them, columns are found by name")
    for place, field in enumerate(table.schema):
        plain = _plain_type(field.type)
        if plain != field.type or not field.nullable:
            table = table.set_column(place, pa.field(field.name, plain), _cast(field, table.column(place), plain))
    return table


def _cast(field: pa.Field, column: pa.ChunkedArray, plain: pa.DataType) -> pa.ChunkedArray:
    """The column laid out first, then decoded: Arrow cannot decode a dictionary of views."""
    try:
        return column.cast(_plain_type(field.type, decoded=False)).cast(plain)
    except pa.ArrowException as problem:
        raise SchemaError(
            f"the column {field.name!r} ({field.type}) cannot be kept as {plain}: {problem}; cast or drop it before pushing"
        ) from problem


def _plain_type(kind: pa.DataType, *, decoded: bool = True) -> pa.DataType:
    """The type a column is kept as, on every level: dictionaries are decoded (they differ from batch to batch), views of
    texts laid out; the latter alone, unless `decoded`."""
    types = pa.types

    def inner(field: pa.Field) -> pa.Field:
        return field.with_type(_plain_type(field.type, decoded=decoded))

    if types.is_dictionary(kind):
        values = _plain_type(kind.value_type, decoded=decoded)
        return values if decoded else pa.dictionary(kind.index_type, values, kind.ordered)
    if types.is_string_view(kind):
        return pa.string()
    if types.is_binary_view(kind):
        return pa.binary()
    if types.is_list(kind):
        return pa.list_(inner(kind.value_field))
    if types.is_large_list(kind):
        return pa.large_list(inner(kind.value_field))
    if types.is_fixed_size_list(kind):
        return pa.list_(inner(kind.value_field), kind.list_size)
    if types.is_map(kind):
        return pa.map_(inner(kind.key_field), inner(kind.item_field), kind.keys_sorted)
    return pa.struct([inner(field) for field in kind]) if types.is_struct(kind) else kind


def check_keepable(table: pa.Table) -> None:
    """SchemaError when a column is of a type whose rows cannot be kept, picked out and put beside others: tried with one."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        row = pa.table({name: column.slice(0, 1)})
        try:
            other = pa.table({f"not {name}": [0]})  # its row is null where this one is not
            both = pa.concat_tables([row.schema.empty_table(), other, row], promote_options="default")
            both.combine_chunks().take(pa.array([1, 0]))
        except pa.ArrowException as problem:
            raise SchemaError(
                f"rows of the column {name!r} ({column.type}) cannot be kept; cast or drop it before pushing"
            ) from problem


def _column(values: Any) -> Any:
    """A dict's value as pyarrow takes it."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    if isinstance(values, str | bytes | Set | Mapping) or not hasattr(values, "__len__"):
        raise SchemaError(f"a column must be an array or a list, got {values!r}; wrap a single row's values in lists")
    return pa.array(values)


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """`table` with its columns in the order of `schema`; SchemaError when names or types differ from it."""
    if table.schema == schema:
        return table
    have, want = set(table.column_names), set(schema.names)
    if missing := sorted(want - have):
        raise SchemaError(
            f"the batch lacks the column {missing[0]!r} that earlier batches had; every batch needs the columns {schema.names}"
        )
    if extra := sorted(have - want):
        raise SchemaError(
            f"the batch has a new column {extra[0]!r}; every batch needs the columns {schema.names}, no more and no less"
        )
    if table.column_names != schema.names:
        table = table.select(schema.names)
    for place, field in enumerate(schema):
        found = table.schema.field(place).type
        if found != field.type:
            if not pa.types.is_null(found):
                raise SchemaError(
                    f"the column {field.name!r} was {field.type} in earlier batches and is {found} in this one; "
                    f"{_remedy(table.column(place), field.type)}"
                )
            table = table.set_column(place, field, pa.nulls(len(table), field.type))
    return table.cast(schema)


def _remedy(column: pa.ChunkedArray, wanted: pa.DataType) -> str:
    """What to do about a column of another type than `wanted`, so that no value is lost."""
    fractions = pa.types.is_floating(column.type) and not pa.types.is_floating(wanted)
    try:
        if not fractions and column.cast(wanted) is not None:
            return f"cast it to {wanted} before pushing"
    except pa.ArrowException:  # not all values fit
        pass
    return f"begin anew and push it as {column.type} from the first batch on: {wanted} does not hold all its values"


def with_types_for_nulls(known: pa.Schema, found: pa.Schema) -> pa.Schema:
    """`known`, where a column that was all null so far, or whose extension type this process did not know when it loaded the
    stream's state, takes the type it has in `found`."""
    new = {one.name: one for one in found}
    return pa.schema([new[one.name] if one.name in new and _lacks_type(one, new[one.name]) else one for one in known])


def _lacks_type(known: pa.Field, found: pa.Field) -> bool:
    """Is the type of a column not known yet, and may it be that of `found`?"""
    if pa.types.is_null(known.type):
        return True
    kind, said = found.type, known.metadata or {}
    if not isinstance(kind, pa.ExtensionType) or known.type != kind.storage_type:
        return False
    named = (said.get(b"ARROW:extension:name"), said.get(b"ARROW:extension:metadata", b""))
    return named == (kind.extension_name.encode(), kind.__arrow_ext_serialize__())

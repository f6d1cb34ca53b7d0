"""A score meets the columns of a stream: checked once against their types, then evaluated batch by batch.

Only the columns a score names are converted, and a float64 column without nulls not even that: its values
are read where Arrow keeps them. Null becomes NaN, which is how scores say *unknown*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from skyband.errors import SchemaError
from skyband.evaluation import Array, compute
from skyband.expression import Tree

ScoreFunction: TypeAlias = Callable[[Mapping[str, Array]], Any]

_LISTED = 20  # column names shown in an error


@dataclass(frozen=True)
class BoundScore:
    """A score or condition whose columns are known to be there and to be numbers."""

    what: str  # "score" or "condition"
    name: str
    formula: Tree | ScoreFunction
    columns: tuple[str, ...]  # the columns it needs; of a callable, all there are

    def evaluate(self, table: pa.Table) -> Array:
        """The value of every row, NaN where unknown. May be a read-only view of the table: do not write to it."""
        if callable(self.formula):
            return _called(self.formula, self.name, table)
        columns = {name: table.column(name) for name in self.columns}
        if not all(is_numeric(column.type) for column in columns.values()):
            check_columns(self.what, self.name, self.columns, table.schema)  # a column that was all null has taken a type since
        return compute(self.formula, {name: numbers(column) for name, column in columns.items()}, table.num_rows)

    def passes(self, table: pa.Table) -> Array:
        """As a condition: which rows are let in, those whose value is neither false nor unknown."""
        values = self.evaluate(table)
        passing: Array = (values != 0.0) & ~np.isnan(values)
        return passing


def bind_tree(tree: Tree, schema: pa.Schema, what: str) -> BoundScore:
    """Bind an expression; SchemaError when a column is missing, ambiguous or no number."""
    bound = BoundScore(what, str(tree), tree, tree.columns())
    check_columns(what, bound.name, bound.columns, schema)
    return bound


def bind_callable(function: ScoreFunction, schema: pa.Schema) -> BoundScore:
    """Bind a callable, which may use any column."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return BoundScore("score", name, function, tuple(schema.names))


def is_numeric(kind: pa.DataType) -> bool:
    """Whether a column of this type can be computed with. An all-null column without a type can: it is all unknown."""
    types = pa.types
    return _is_machine_number(kind) or types.is_boolean(kind) or types.is_decimal(kind) or types.is_null(kind)


def numbers(column: pa.ChunkedArray) -> Array:
    """A numeric column as float64, null as NaN; a view of it where possible."""
    if column.null_count or not _is_machine_number(column.type):
        column = column.cast(pa.float64(), safe=False)
    # for arrays of few rows, NumPy's conversion costs a fraction of Arrow's
    arrays = [chunk.to_numpy(zero_copy_only=False).astype(np.float64, copy=False) for chunk in column.chunks]
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0), *arrays])


def _is_machine_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def check_columns(what: str, name: str, columns: Iterable[str], schema: pa.Schema) -> None:
    """SchemaError, naming the score or condition, when a column is missing, ambiguous or no number."""
    for column in columns:
        needs = f"the {what} {name!r} needs the column {column!r}"
        places = schema.get_all_field_indices(column)
        if not places:
            close = get_close_matches(column, schema.names, 3)
            hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
            raise SchemaError(f"{needs}, which the stream does not have; {hint}it has {_names(schema)}")
        if len(places) > 1:
            raise SchemaError(f"{needs}, and the stream has {len(places)} columns of that name; rename them")
        kind = schema.field(places[0]).type
        if not is_numeric(kind):
            raise SchemaError(f"{needs} as a number, but it is of type {kind}; {_remedy(kind)}")


def _names(schema: pa.Schema) -> str:
    shown = ", ".join(map(repr, schema.names[:_LISTED]))
    more = len(schema.names) - _LISTED
    return (shown or "no columns") + (f" and {more} more" if more > 0 else "")


def _remedy(kind: pa.DataType) -> str:
    if pa.types.is_temporal(kind):
        return "cast it to int64, or take the part you need (such as seconds) into a column of its own"
    if pa.types.is_nested(kind):
        return "take the number you need into a column of its own"
    return "cast it to float64 if it holds numbers, or use another column"


class Columns(Mapping[str, Array]):
    """A table's columns as read-only arrays, converted when first asked for: what a callable score is given.

    Integers, booleans and floats keep their own type while they have no nulls; with nulls, and for decimals,
    they are float64 with NaN. Everything else comes as Arrow's own conversion to NumPy gives it.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._arrays: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._arrays:
            if name not in self._table.column_names:
                raise KeyError(name)
            array = self._convert(self._table.column(name)).view()
            array.flags.writeable = False
            self._arrays[name] = array
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.column_names)

    def __len__(self) -> int:
        return int(self._table.num_columns)

    @staticmethod
    def _convert(column: pa.ChunkedArray) -> Array:
        if is_numeric(column.type) and (column.null_count or pa.types.is_decimal(column.type)):
            return numbers(column)
        if column.num_chunks == 1:
            return np.asarray(column.chunk(0).to_numpy(zero_copy_only=False))
        return np.asarray(column.to_numpy())


def _called(function: ScoreFunction, name: str, table: pa.Table) -> Array:
    """What a callable makes of a table, as float64, or SchemaError that names the callable."""
    try:
        given = function(Columns(table))
    except Exception as error:
        known = f"; the stream has {_names(table.schema)}" if isinstance(error, KeyError) else ""
        raise SchemaError(f"the callable score {name!r} failed with {type(error).__name__}: {error}{known}") from error
    if isinstance(given, np.ma.MaskedArray):
        given = np.ma.filled(given.astype(np.float64), np.nan)
    try:
        result = np.asarray(given)
        if result.dtype.kind not in "biufO":
            raise TypeError(f"values of type {result.dtype}")
        scores = result.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise SchemaError(f"the callable score {name!r} must return an array of numbers; got {error}") from error
    if scores.shape != (table.num_rows,):
        raise SchemaError(
            f"the callable score {name!r} returned shape {scores.shape} for {table.num_rows} rows; return one number per row"
        )
    return scores

"""A score meets the columns of a stream: checked once against their types, then evaluated batch by batch.

Only the columns a score names are converted, and a float64 column without nulls not even that: its values
are read where Arrow keeps them. Null becomes NaN, which is how scores say *unknown*. Texts are only ever compared: with a text
that the expression holds, which Arrow does, or with each other, for which equal ones of a batch are numbered alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.errors import SchemaError
from skyband.scores.evaluation import Array, compute
from skyband.scores.expression import EQUALITIES, Call, Column, Text, Tree, comparison, without_texts

ScoreFunction: TypeAlias = Callable[[Mapping[str, Array]], Any]

_FLOAT64 = pa.float64()
_LISTED = 20  # column names shown in an error
_EXACT, _EXACT_TENS = 1 << 53, 22  # whole numbers up to here, and powers of ten, are float64 to the last bit


@dataclass
class BoundScore:
    """A score or condition whose columns are known to be there and to be numbers."""

    what: str  # "score" or "condition"
    name: str
    formula: Tree | ScoreFunction
    columns: tuple[str, ...]  # the columns it needs; of a callable, all there are
    _numeric_in: pa.Schema | None = None  # a schema in which all of these are numbers

    def evaluate(self, table: pa.Table) -> Array:
        """The value of every row, NaN where unknown. May be a read-only view of the table: do not write to it."""
        if callable(self.formula):
            return _called(self.formula, self.name, table)
        schema = table.schema
        if schema == self._numeric_in or self._is_numeric(schema):
            self._numeric_in = schema
            return compute(self.formula, {name: numbers(table.column(name)) for name in self.columns}, table.num_rows)
        check_tree(self.what, self.formula, table.schema)  # a column that was all null has taken a type since
        plain = without_texts(self.formula)
        return compute(plain, column_values(plain.columns(), table), table.num_rows)

    def _is_numeric(self, schema: pa.Schema) -> bool:
        """Are all columns numbers, and none compared with a text, as one that is all null may be?"""
        assert not callable(self.formula)
        numeric = all(is_numeric(schema.field(name).type) for name in self.columns)
        return numeric and without_texts(self.formula).columns() == self.columns

    def passes(self, table: pa.Table) -> Array:
        """As a condition: which rows are let in, those whose value is neither false nor unknown."""
        values = self.evaluate(table)
        passing: Array = (values != 0.0) & ~np.isnan(values)
        return passing


def bind_tree(tree: Tree, schema: pa.Schema, what: str) -> BoundScore:
    """Bind an expression; SchemaError when a column is missing, ambiguous or no number."""
    check_tree(what, tree, schema)
    return BoundScore(what, str(tree), tree, tree.columns())


def bind_callable(function: ScoreFunction, schema: pa.Schema) -> BoundScore:
    """Bind a callable, which may use any column."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return BoundScore("score", name, function, tuple(schema.names))


def is_numeric(kind: pa.DataType) -> bool:
    """Whether a column of this type can be computed with. An all-null column without a type can: it is all unknown."""
    types = pa.types
    return _is_machine_number(kind) or types.is_boolean(kind) or types.is_decimal(kind) or types.is_null(kind)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type can be compared with a text."""
    types = pa.types
    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def column_values(names: Sequence[str], table: pa.Table) -> dict[str, Array]:
    """What columns of expressions without texts hold for the rows of a table."""
    known = {name: compared(name, table) for name in names if comparison(name) is not None}
    texts = [name for name in names if name not in known and is_text(table.schema.field(name).type)]
    known |= dict(zip(texts, _numbered([table.column(name) for name in texts]), strict=True))
    return known | {name: numbers(table.column(name)) for name in names if name not in known}


def compared(name: str, table: pa.Table) -> Array:
    """What a column made by `without_texts` holds: 1 where the comparison with the text is true, 0 or NaN elsewhere."""
    found = comparison(name)
    assert found is not None
    column, op, text = found
    values = table.column(column)
    if pa.types.is_null(values.type):
        return np.full(len(table), np.nan)
    same = pc.equal if op == "==" else pc.not_equal
    return numbers(same(values.cast(pa.large_string()), pa.scalar(text, pa.large_string())))


def _numbered(columns: list[pa.ChunkedArray]) -> list[Array]:
    """Texts of a batch by number: equal where they are equal, in whichever column; NaN where null."""
    if not columns:
        return []
    whole = pa.concat_arrays([chunk.cast(pa.large_string()) for column in columns for chunk in column.chunks])
    codes = whole.dictionary_encode().indices.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.split(codes, np.cumsum([len(column) for column in columns])[:-1])


def numbers(column: pa.ChunkedArray) -> Array:
    """A numeric column as float64, null as NaN; a view of it where possible."""
    if pa.types.is_decimal(column.type):
        return np.concatenate([np.empty(0), *(_nearest(chunk) for chunk in column.chunks)])
    if column.null_count or (column.type != _FLOAT64 and not _is_machine_number(column.type)):
        column = column.cast(_FLOAT64, safe=False)
    # for arrays of few rows, NumPy's conversion costs a fraction of Arrow's
    arrays = [chunk.to_numpy(zero_copy_only=False).astype(np.float64, copy=False) for chunk in column.chunks]
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0), *arrays])


def _nearest(decimals: pa.Array) -> Array:
    """The float64 nearest to each decimal, as its text is read: Arrow's own cast makes 2.5500000000000003 of 2.55."""
    kind = decimals.type
    if len(decimals) and pa.types.is_decimal128(kind) and 0 <= kind.scale <= _EXACT_TENS:
        halves = np.frombuffer(decimals.buffers()[1], np.int64).reshape(-1, 2)[
            decimals.offset : decimals.offset + len(decimals)
        ]
        low, high = halves.T
        if ((low >> 63 == high) & (low >= -_EXACT) & (low <= _EXACT)).all():  # a quotient of two exact numbers is the nearest
            values: Array = low / 10.0**kind.scale
            return values if not decimals.null_count else np.where(decimals.is_valid(), values, np.nan)
    return np.asarray(decimals.cast(pa.string()).cast(_FLOAT64).to_numpy(zero_copy_only=False), np.float64)


def _is_machine_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def check_tree(what: str, tree: Tree, schema: pa.Schema, bare: Callable[[str], str] = str) -> None:
    """SchemaError, naming the score or condition, when a column is missing, ambiguous, no number, or a text that is not
    compared with texts. `bare`: the name in the schema of a column in the tree."""
    _check(f"the {what} {str(tree)!r}", tree, schema, bare)


def _check(whose: str, tree: Tree, schema: pa.Schema, bare: Callable[[str], str]) -> None:
    if isinstance(tree, Column):
        kind = _kind(whose, bare(tree.name), schema)
        if not is_numeric(kind):
            needs = f"{whose} needs the column {bare(tree.name)!r} as a number"
            raise SchemaError(f"{needs}, but it is of type {kind}; {_remedy(kind)}")
    elif isinstance(tree, Call) and tree.op in EQUALITIES and all(isinstance(one, Column | Text) for one in tree.args):
        kinds = [_kind(whose, bare(one.name), schema) for one in tree.args if isinstance(one, Column)]
        textual = [is_text(kind) for kind in kinds if not pa.types.is_null(kind)]
        if len(kinds) < len(tree.args):
            if not all(textual):
                raise SchemaError(
                    f"{whose} compares a column of type {kinds[0]} with a text: {tree}; compare numbers with numbers, or "
                    "name a column that holds texts"
                )
        elif any(textual) and not all(textual):
            raise SchemaError(
                f"{whose} compares {kinds[0]} with {kinds[1]}: {tree}; compare texts with texts, numbers with numbers"
            )
        elif not any(textual):
            for argument in tree.args:
                _check(whose, argument, schema, bare)
    elif isinstance(tree, Call):
        for argument in tree.args:
            _check(whose, argument, schema, bare)


def _kind(whose: str, column: str, schema: pa.Schema) -> pa.DataType:
    """The type of a column; SchemaError when it is missing or ambiguous."""
    needs = f"{whose} needs the column {column!r}"
    places = schema.get_all_field_indices(column)
    if not places:
        close = get_close_matches(column, schema.names, 3)
        hint = field_meant(column, schema) or (f"did you mean {' or '.join(map(repr, close))}? " if close else "")
        raise SchemaError(f"{needs}, which the stream does not have; {hint}it has {_names(schema)}")
    if len(places) > 1:
        raise SchemaError(f"{needs}, and the stream has {len(places)} columns of that name; rename them")
    return schema.field(places[0]).type


def field_meant(column: str, schema: pa.Schema) -> str:
    """What to do about a name that says a field of a struct, or of a column whose type is not known; else nothing."""
    whole, _, field = column.partition(".")
    if not field or schema.names.count(whole) != 1:
        return ""
    kind = schema.field(whole).type
    return (
        f"take {field!r} out of {whole!r} into a column of its own; " if kind.id in (pa.lib.Type_STRUCT, pa.lib.Type_NA) else ""
    )


def _names(schema: pa.Schema) -> str:
    shown = ", ".join(map(repr, schema.names[:_LISTED]))
    more = len(schema.names) - _LISTED
    return (shown or "no columns") + (f" and {more} more" if more > 0 else "")


def _remedy(kind: pa.DataType) -> str:
    if pa.types.is_temporal(kind):
        return "cast it to int64, or take the part you need (such as seconds) into a column of its own"
    if pa.types.is_nested(kind):
        return "take the number you need into a column of its own"
    if is_text(kind):
        return "cast it to float64 if it holds numbers, or use another column: texts can only be compared, by == and !="
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
    except (TypeError, ValueError, OverflowError) as error:
        raise SchemaError(f"the callable score {name!r} must return an array of numbers; got {error}") from error
    if scores.shape != (table.num_rows,):
        raise SchemaError(
            f"the callable score {name!r} returned shape {scores.shape} for {table.num_rows} rows; return one number per row"
        )
    return scores

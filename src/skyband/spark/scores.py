"""Scores and conditions as Catalyst columns: the numbers the embedded engine computes, bit for bit.

`skyband.scores.evaluation` says what an expression means. Catalyst means other things: a null operand, a zero divisor,
NaN (equal to itself and larger than all), floor (an integer). Each operation is therefore written in terms that
agree with ours in every case, and run by the JVM at the speed of generated code. Two forms of a result do it:

    value    double;  unknown is NaN     what arithmetic gives and takes
    truth    boolean; unknown is null    what conditions give and take: SQL's three-valued and, or, not are ours

Texts are compared as they are, byte for byte; where a column has another collation, by Python.

What the JVM does not give to the last bit goes to Python, the whole expression in one Arrow UDF: exp, log,
log1p, sin, cos and ** (the C library's), and callables. So do expressions
too large for Catalyst, which has no `let`: x / y must be written with two copies of each operand, and what
nests such operations grows with every level. Both ways give the same numbers; only the speed differs.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from functools import lru_cache, reduce
from typing import TypeAlias, TypeGuard

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, DoubleType, StringType, StructType, UserDefinedType

from skyband.errors import SchemaError
from skyband.scores.binding import BoundScore, bind_callable, bind_tree
from skyband.scores.evaluation import evaluate, is_square
from skyband.scores.expression import COMPARISONS, EQUALITIES, Call, Column, Number, Text, Tree
from skyband.scores.score import Score, Where, as_tree, where_tree
from skyband.spark.columns import named

LARGEST_NATIVE = 300  # nodes that Catalyst meets while planning, repetitions included
DEEPEST_NATIVE = 20  # operations within operations
"""Past these Python computes the score. Catalyst walks expressions by recursion and generates code for every node:
sums of 40 columns are still faster than in Python, of 80 no longer, and of 160 overflow the JVM's stack."""

_Flat: TypeAlias = tuple[tuple[str, str | int], ...]


def score_column(score: Score | Tree, schema: StructType) -> SparkColumn:
    """The score of every row as a double, NaN where unknown, never null.

    SchemaError when `schema` lacks a column the score needs, has it twice, or has it as something else than a number.
    """
    tree = as_tree(score)
    if tree is None:
        assert callable(score)
        return _by_python(bind_callable(score, _arrow_schema(schema, "callable score", schema.names)))
    bound = _bound(tree, schema, "score")
    if is_native(tree, schema):
        return _Writer(schema).value(tree)
    return _by_python(bound)


def condition_column(where: Where | Tree, schema: StructType) -> SparkColumn:
    """Whether a row passes: true where the condition is neither false nor unknown, never null.

    SchemaError as of `score_column`.
    """
    tree = where if isinstance(where, Number | Text | Column | Call) else where_tree(where)
    bound = _bound(tree, schema, "condition")
    truth = _Writer(schema).truth(tree) if is_native(tree, schema) else _is_true(_by_python(bound))
    return F.coalesce(truth, F.lit(False))


def is_native(tree: Tree, schema: StructType) -> bool:
    """Whether the JVM computes the expression; Python does otherwise."""
    types = _types(schema)
    return not tree.columns() or (
        tree.size <= LARGEST_NATIVE
        and tree.depth <= DEEPEST_NATIVE
        and _size(tree) <= LARGEST_NATIVE
        and not any(_has_collation(types[name]) for name in tree.columns())
    )


# the schema -------------------------------------------------------------------------------------------------


def _bound(tree: Tree, schema: StructType, what: str) -> BoundScore:
    """The expression, its columns checked."""
    return bind_tree(tree, _arrow_schema(schema, f"{what} {str(tree)!r}", tree.columns()), what)


def _arrow_schema(schema: StructType, what: str, needed: Iterable[str]) -> pa.Schema:
    """The schema as Arrow sees it. Columns that Arrow has no type for may not be needed."""
    fields, needed = [], set(needed)
    same = same_to_spark(schema.names)
    for field in schema.fields:
        kind = _arrow_type(field.dataType)
        if field.name in needed:
            needs = f"the {what} needs the column {field.name!r}"
            check_name(needs, same[field.name])
            if kind is None:
                raise SchemaError(
                    f"{needs}, but Arrow has no type for {field.dataType.simpleString()}; "
                    "take the number you need into a column of its own and leave this one out"
                )
        fields.append(pa.field(field.name, pa.binary() if kind is None else kind))
    return pa.schema(fields)


def _arrow_type(kind: DataType) -> pa.DataType | None:
    if isinstance(kind, UserDefinedType):
        return None  # Arrow would show what it is stored as, which Catalyst does not compute with
    try:
        return to_arrow_type(kind, timezone="UTC")
    except PySparkException:
        return None


def same_to_spark(names: list[str]) -> dict[str, list[str]]:
    """For each name the columns that Spark finds by it, itself among them."""
    session = SparkSession.getActiveSession()
    exact = session is not None and session.conf.get("spark.sql.caseSensitive") == "true"
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name if exact else name.lower(), []).append(name)
    return {name: found[name if exact else name.lower()] for name in names}


def check_name(needs: str, same: list[str]) -> None:
    """SchemaError when Spark cannot tell which column is meant."""
    if len(set(same)) > 1:
        raise SchemaError(
            f"{needs}, and the stream has {', '.join(map(repr, same))}, which Spark takes for the same name; "
            "rename one, or set spark.sql.caseSensitive to true"
        )
    if len(same) > 1:
        raise SchemaError(f"{needs}, and the stream has {len(same)} columns of that name; rename them")


def _types(schema: StructType) -> dict[str, DataType]:
    return {field.name: field.dataType for field in schema.fields}


def _has_collation(kind: DataType) -> bool:
    """Whether Spark takes other texts for equal than we do."""
    return isinstance(kind, StringType) and not kind.isUTF8BinaryCollation()


# Python -----------------------------------------------------------------------------------------------------


def _by_python(bound: BoundScore) -> SparkColumn:
    """The score computed by the embedded engine, batch by batch."""
    names = bound.columns
    score = bound.formula if callable(bound.formula) else _flat(bound.formula)

    def evaluate_batch(*arrays: pa.Array) -> pa.Array:
        table = pa.table(dict(zip(names, arrays, strict=True)))
        if callable(score):
            return pa.array(bind_callable(score, table.schema).evaluate(table))
        return pa.array(BoundScore("score", "", _grown(score), names).evaluate(table))

    return _known_or_nan(F.arrow_udf(evaluate_batch, DoubleType())(*map(named, names)))


def _flat(tree: Tree) -> _Flat:
    """The tree in postfix order, operations with their number of operands: a deep tree is too deep for pickle."""
    if isinstance(tree, Number):
        return (("number", tree.value.hex()),)  # a text, because 0.0 and -0.0 are one key
    if isinstance(tree, Column):
        return (("column", tree.name),)
    if isinstance(tree, Text):
        return (("text", tree.value),)
    return (*[step for argument in tree.args for step in _flat(argument)], (tree.op, len(tree.args)))


@lru_cache(maxsize=1024)
def _grown(steps: _Flat) -> Tree:
    """The tree that `_flat` took apart."""
    grown: list[Tree] = []
    for what, operand in steps:
        if what == "number":
            grown.append(Number(float.fromhex(str(operand))))
        elif what == "column":
            grown.append(Column(str(operand)))
        elif what == "text":
            grown.append(Text(str(operand)))
        else:
            first = len(grown) - int(operand)
            grown[first:] = [Call(what, tuple(grown[first:]))]
    return grown[0]


# Catalyst ---------------------------------------------------------------------------------------------------


def _constant(tree: Tree) -> float | None:
    """The value of an expression without columns."""
    return None if isinstance(tree, Text) or tree.columns() else float(evaluate(tree, {}, 1)[0])


def _size(tree: Tree) -> float:
    """How many nodes Catalyst meets while it plans the value, roughly; infinite for what only Python computes."""
    constant = _constant(tree)
    if constant is not None:
        return math.inf if constant == 0 and math.copysign(1.0, constant) < 0 else 1  # to Catalyst -0 is the literal 0
    if isinstance(tree, Column | Text):
        return 1
    assert isinstance(tree, Call)
    if tree.op in _TRUTHS:
        return 2 * _truth_size(tree)
    if tree.op == "where":
        return 3 * _truth_size(tree.args[0]) + sum(map(_size, tree.args[1:])) + _NODES
    if tree.op not in _MEETINGS or (tree.op == "**" and not is_square(tree)):
        return math.inf
    meetings, sizes = _MEETINGS[tree.op], [_size(argument) for argument in tree.args]
    if len(sizes) == 1:
        return _NODES + meetings[0] * sizes[0]
    return reduce(lambda left, right: _NODES + meetings[0] * left + meetings[1] * right, sizes)


def _truth_size(tree: Tree) -> float:
    if not isinstance(tree, Call) or tree.op not in _TRUTHS:
        return _NODES + 2 * _size(tree)
    if tree.op in COMPARISONS:
        return _NODES + 2 * sum(map(_size, tree.args))
    return _NODES + sum(map(_truth_size, tree.args))


_NODES = 4
"""What an operation takes besides its operands."""
_MEETINGS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("+", "-", "*", "min", "max"), (1, 1)),
    **dict.fromkeys(("neg", "abs", "sqrt"), (1,)),
    **dict.fromkeys(("floor", "ceil"), (3,)),
    "/": (3, 3),
    "%": (10, 13),
    "**": (2, 0),
}
"""How often Catalyst meets each operand in what is written below for an operation: once for every copy, and in
its search for common parts twice within coalesce, nanvl and case. Each doubles the time of those around it."""


def _known_or_null(value: SparkColumn) -> SparkColumn:
    return F.nanvl(value, F.lit(None).cast("double"))


def _known_or_nan(value: SparkColumn) -> SparkColumn:
    return F.coalesce(value, F.lit(math.nan))


def _is_true(value: SparkColumn) -> SparkColumn:
    return _known_or_null(value) != 0.0


class _Writer:
    """Writes a tree as a Catalyst column, part by part."""

    def __init__(self, schema: StructType) -> None:
        self.types = _types(schema)

    def value(self, tree: Tree) -> SparkColumn:
        """A double; unknown is NaN."""
        constant = _constant(tree)
        if constant is not None:
            return F.lit(constant)
        if isinstance(tree, Column):
            column = named(tree.name)
            return _known_or_nan(column if isinstance(self.types[tree.name], DoubleType) else column.cast("double"))
        assert isinstance(tree, Call)
        if tree.op in _TRUTHS:
            return _known_or_nan(self.truth(tree).cast("double"))
        if tree.op == "where":
            condition, chosen, otherwise = self.truth(tree.args[0]), *map(self.value, tree.args[1:])
            return F.when(condition, chosen).when(~condition, otherwise).otherwise(F.lit(math.nan))
        if tree.op == "/":
            return reduce(self._divided, tree.args[1:], self.value(tree.args[0]))
        if tree.op in ("+", "*", "**"):
            return self._commuted(tree)
        values = [self.value(argument) for argument in tree.args]
        return _ONE[tree.op](values[0]) if len(values) == 1 else reduce(_TWO[tree.op], values)

    def truth(self, tree: Tree) -> SparkColumn:
        """A boolean; unknown is null."""
        if not isinstance(tree, Call) or tree.op not in _TRUTHS:
            return _is_true(self.value(tree))
        texts = [one for one in tree.args if self._is_text(one)] if tree.op in EQUALITIES else []
        if texts:  # then both are
            return _TRUTHS[tree.op](*[F.lit(one.value) if isinstance(one, Text) else named(one.name) for one in texts])
        if tree.op in COMPARISONS:
            return _TRUTHS[tree.op](*[_known_or_null(self.value(argument)) for argument in tree.args])
        truths = [self.truth(argument) for argument in tree.args]
        return ~truths[0] if tree.op == "not" else reduce(_TRUTHS[tree.op], truths)

    def _is_text(self, tree: Tree) -> TypeGuard[Text | Column]:
        return isinstance(tree, Text) or (isinstance(tree, Column) and isinstance(self.types[tree.name], StringType))

    def _commuted(self, tree: Call) -> SparkColumn:
        """Sums of sums and products of products, each kept apart from the one around it."""
        alike = ("+",) if tree.op == "+" else ("*", "**", "/")
        arguments = tree.args[:1] * 2 if tree.op == "**" else tree.args
        values = [self.value(argument) for argument in arguments]
        for place, argument in enumerate(arguments):
            if isinstance(argument, Call) and argument.op in alike:
                values[place] = _kept_apart(values[place])
        combined = operator.add if tree.op == "+" else operator.mul
        return reduce(lambda x, y: combined(_kept_apart(x), y), values[2:], combined(values[0], values[1]))

    def _divided(self, dividend: SparkColumn, divisor: Tree) -> SparkColumn:
        """try_divide is null for a zero divisor, where 1 / ±0 is what pow gives for the exponent -1: ±infinity."""
        by, constant = self.value(divisor), _constant(divisor)
        if constant == 0:
            return dividend * F.lit(math.copysign(math.inf, constant))
        quotient = F.try_divide(dividend, by)
        return quotient if constant is not None else F.coalesce(quotient, dividend * F.pow(by, F.lit(-1.0)))


def _floor(x: SparkColumn) -> SparkColumn:
    """Catalyst's floor is an integer: it has no -0, no infinity, and overflows."""
    nearest = F.rint(x)
    return nearest - F.when(nearest > x, F.lit(1.0)).otherwise(F.lit(0.0))


def _modulo(x: SparkColumn, y: SparkColumn) -> SparkColumn:
    """Java's % is fmod, and try_mod is null for a zero divisor; the rest is as in `skyband.scores.evaluation`."""
    rest = _known_or_nan(F.try_mod(x, y))
    zero = F.signum(y) * 0.0
    return F.when(rest == 0.0, zero).when((y < 0.0) != (rest < 0.0), rest + y).otherwise(rest)


def _kept_apart(x: SparkColumn) -> SparkColumn:
    """The same value, but no longer the same sum or product to Catalyst.

    It takes (x + y) + z and x + (y + z) for one expression, and where both occur in a plan it computes only one.
    """
    return F.negate(F.negate(x))


def _larger(x: SparkColumn, y: SparkColumn) -> SparkColumn:
    """Catalyst's greatest takes NaN for the largest and keeps the first of equal operands.

    But it takes greatest(x, y) and greatest(y, x) for one expression: so the second is marked, as least(y, NaN), which is y.
    """
    return F.greatest(x, F.least(y, F.lit(math.nan)))


_ONE: dict[str, Callable[[SparkColumn], SparkColumn]] = {
    "neg": operator.neg,
    "abs": F.abs,
    "sqrt": F.sqrt,
    "floor": _floor,
    "ceil": lambda x: -_floor(-x),
}
_TWO: dict[str, Callable[[SparkColumn, SparkColumn], SparkColumn]] = {
    "-": operator.sub,
    "%": _modulo,
    "max": lambda x, y: _kept_apart(_larger(x, y)),
    "min": lambda x, y: -_larger(-x, -y),
}
_TRUTHS: dict[str, Callable[..., SparkColumn]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "and": operator.and_,
    "or": operator.or_,
    "not": operator.invert,
}

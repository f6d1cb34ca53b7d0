"""Scores in Spark: the same number as the embedded engine's, bit for bit, whichever way it is computed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import CalendarIntervalType, DoubleType, StringType, StructField, StructType

from same_bits import assert_same_bits
from skyband.errors import QueryError, SchemaError
from skyband.scores.evaluation import evaluate
from skyband.scores.expression import ARITY, Call, Column, Number, Tree
from skyband.scores.parser import parse
from skyband.scores.score import bind, bind_where, distance, linear, product
from skyband.spark.scores import condition_column, is_native, score_column
from trees import EDGES, few, grown

NAN, INF = math.nan, math.inf


def adversarial() -> pa.Table:
    """Every edge value beside every other, common numbers, and nulls."""
    random = np.random.default_rng(7)
    edges = np.array([*EDGES, *(-x for x in EDGES), NAN])
    x, y = (grid.ravel() for grid in np.meshgrid(edges, edges))
    near = random.normal(0, 3, (2, 300))
    x, y = np.concatenate([x, near[0]]), np.concatenate([y, np.round(near[1], 1)])
    columns = {"x": x, "y": y, "z": random.permutation(x)}
    unknown = random.random((3, len(x))) < 0.03
    arrays = {name: pa.array(column, mask=mask) for (name, column), mask in zip(columns.items(), unknown, strict=True)}
    return pa.table({"place": np.arange(len(x)), **arrays})


ROWS = adversarial()


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> Iterator[DataFrame]:
    rows = spark.createDataFrame(ROWS).cache()
    yield rows
    rows.unpersist()


def selected(rows: DataFrame, columns: list[Any]) -> list[pa.ChunkedArray]:
    """The columns in the order of `place`, all computed by one job: Catalyst may share parts between them."""
    found = rows.select("place", *[column.alias(f"c{number}") for number, column in enumerate(columns)]).toArrow()
    found = found.sort_by("place")
    return [found.column(f"c{number}") for number in range(len(columns))]


def assert_scores_agree(rows: DataFrame, table: pa.Table, trees: list[Tree]) -> None:
    for tree, score in zip(trees, selected(rows, [score_column(tree, rows.schema) for tree in trees]), strict=True):
        about = f"{tree} ({'native' if is_native(tree, rows.schema) else 'Python'})"
        assert score.null_count == 0 and score.type == pa.float64()
        assert_same_bits(score.to_numpy(), np.asarray(bind(tree, table.schema).evaluate(table)), about)


def assert_conditions_agree(rows: DataFrame, table: pa.Table, trees: list[Tree]) -> None:
    for tree, passing in zip(trees, selected(rows, [condition_column(tree, rows.schema) for tree in trees]), strict=True):
        assert passing.null_count == 0 and passing.type == pa.bool_()
        values = bind(tree, table.schema).evaluate(table)
        assert passing.to_pylist() == ((values != 0) & ~np.isnan(values)).tolist(), str(tree)


# --- the same number ------------------------------------------------------------------------------------------

CONSTANTS = (0.0, -0.0, 3.0, -0.1, 5e-324, -1e300, INF, -INF)


def test_every_operation_agrees_on_every_pair_of_edges(frame: DataFrame) -> None:
    trees: list[Tree] = [
        Call(op, tuple(map(Column, "xyz"[:count]))) for op in ARITY for count in {ARITY[op][0], ARITY[op][1] or 3}
    ]
    assert_scores_agree(frame, ROWS, trees)
    assert_conditions_agree(frame, ROWS, trees)


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "%", "min", "max", "<", "=="])
def test_every_operation_agrees_with_a_constant_on_either_side(frame: DataFrame, op: str) -> None:
    x = Column("x")
    trees: list[Tree] = [Call(op, (x, Number(value))) for value in CONSTANTS]
    assert_scores_agree(frame, ROWS, trees + [Call(op, (Number(value), x)) for value in CONSTANTS])


TAKEN_FOR_ONE = """
    x + y + z                  | x + (y + z)              | z + y + x
    x * y * z                  | x * (y * z)              | z * y * x
    (x * y) ** 2 * z           | x * y * (x * y) * z      | x * x * y * y * z
    x / 0 * y * z              | x / 0 * (y * z)
    max(x, y)                  | max(y, x)
    min(x, y)                  | min(y, x)
    max(x, y, z)               | max(x, z, y)             | max(x, max(z, y))
    max(x, 0)                  | max(0, x)                | max(x, -0)
    min(x, 0)                  | min(0, x)                | -max(-x, 0)
    x * 0                      | x * -0
    x + 0                      | x - 0                    | x
    x + 1 + 2                  | x + (1 + 2)
"""


@pytest.mark.parametrize("line", TAKEN_FOR_ONE.strip().splitlines())
def test_expressions_that_catalyst_takes_for_one_are_kept_apart(frame: DataFrame, line: str) -> None:
    """Catalyst reorders sums, products and greatest(), and has one zero: harmless up to the last bit and the sign of 0."""
    trees = [parse(text) for text in line.split("|")]
    within = [Call("where", (Call("<", (Column("z"), Number(1.0))), one, other)) for one in trees for other in trees]
    signs = [Call("/", (Number(1.0), tree)) for tree in trees]
    assert_scores_agree(frame, ROWS, [*trees, *signs, *within])


@settings(
    max_examples=3,
    phases=[Phase.generate],  # an example is fifty trees: what fails is named, and need not be made smaller
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(trees=st.lists(st.recursive(few, grown, max_leaves=12), min_size=40, max_size=60))
def test_random_trees_agree_to_the_last_bit(frame: DataFrame, trees: list[Tree]) -> None:
    assert_scores_agree(frame, ROWS, trees)
    assert_conditions_agree(frame, ROWS, trees[:20])


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_the_session_s_error_mode_does_not_matter(spark: SparkSession, frame: DataFrame, ansi: str) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        assert_scores_agree(frame, ROWS, [parse(text) for text in ("x / y", "x % y", "floor(x) + ceil(y)", "1e308 * x * 10")])
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def test_the_parameters_of_a_score_give_its_tree(frame: DataFrame) -> None:
    scores: list[Any] = [
        "x",
        "-x",
        linear({"x": 0.3, "y": 0.7, "z": -1}),
        product({"x": 0.5, "y": 2}),
        distance({"x": 3.0, "y": 4.0}, weights={"x": 0.1, "y": 2.0}),
        distance({"x": 3.0, "y": 4.0}, metric="l1"),
    ]
    for score, found in zip(scores, selected(frame, [score_column(score, frame.schema) for score in scores]), strict=True):
        assert_same_bits(found.to_numpy(), np.asarray(bind(score, ROWS.schema).evaluate(ROWS)), score)


def test_conditions_are_never_null(frame: DataFrame) -> None:
    conditions: list[Any] = [{"x": (0, None)}, {"x": (-1, 1), "y": (None, None)}, "x < y or log(z) > 0", "1", "0/0"]
    found = selected(frame, [condition_column(where, frame.schema) for where in conditions])
    for where, passing in zip(conditions, found, strict=True):
        assert passing.to_pylist() == bind_where(where, ROWS.schema).passes(ROWS).tolist(), where
        assert frame.filter(condition_column(where, frame.schema)).count() == pa.compute.sum(passing).as_py()


# --- which way ------------------------------------------------------------------------------------------------

NATIVE = [
    "x",
    "x * y + z",
    "x / y",
    "(x - 1) ** 2",
    "where(x < y and not z, abs(x), sqrt(y))",
    "max(x, y, 0)",
    "x % 3",
    "log(2) * x",
]
PYTHON = ["log(x)", "x ** 0.5", "sin(x) + cos(y)", "x * -0", " % ".join("xyzxyz"), " / ".join("xyz" * 5)]


def test_common_scores_stay_in_the_jvm(frame: DataFrame) -> None:
    assert [text for text in NATIVE if not is_native(parse(text), frame.schema)] == []
    assert [text for text in PYTHON if is_native(parse(text), frame.schema)] == []
    assert_scores_agree(frame, ROWS, [parse(text) for text in NATIVE + PYTHON])


def nested(op: str, depth: int) -> Tree:
    tree: Tree = Column("x")
    for _ in range(depth):
        others = [Column("y"), Column("z")][: ARITY[op][0] - 1]
        tree = Call(op, (*others, tree) if op in ("+", "-", "*", "and", "or") else (tree, *others))
    return tree


@pytest.mark.parametrize("depth", [5, 30, 150])
def test_deep_trees_are_planned_and_computed(frame: DataFrame, depth: int) -> None:
    """Written without care, each level doubles the expression: thirty levels would never end."""
    assert_scores_agree(frame, ROWS, [nested(op, depth) for op in ARITY])


@pytest.mark.parametrize(("width", "native"), [(25, True), (1000, False)])
def test_wide_expressions_are_planned_and_computed(spark: SparkSession, width: int, native: bool) -> None:
    table = pa.table({"place": np.arange(3), **{f"c{i}": np.array([i + 0.1, 1 / (i + 1), -0.3 * i]) for i in range(width)}})
    columns = tuple(Column(f"c{i}") for i in range(width))
    trees = [linear({f"c{i}": 0.1 + i for i in range(width)}).tree, Call("min", columns)]
    rows = spark.createDataFrame(table)
    assert [is_native(tree, rows.schema) for tree in trees] == [native, native]
    assert_scores_agree(rows, table, trees)


# --- columns --------------------------------------------------------------------------------------------------

TYPES: dict[str, pa.Array] = {
    "truth": pa.array([True, False, None, True]),
    "byte": pa.array([1, -128, None, 127], pa.int8()),
    "short": pa.array([1, -(2**15), None, 3], pa.int16()),
    "int": pa.array([1, -(2**31), None, 3], pa.int32()),
    "long": pa.array([2**53 + 1, -(2**63), None, 2**63 - 1], pa.int64()),
    "float": pa.array([0.1, -0.0, None, NAN], pa.float32()),
    "double": pa.array([0.1, -0.0, None, 5e-324]),
    "money": pa.array([Decimal("0.07"), Decimal("-123456.79"), None, Decimal("1.15")], pa.decimal128(10, 2)),
    "big": pa.array([Decimal(f"{10**30 + 7}.1"), Decimal("0.3"), None, Decimal("-0.000001")], pa.decimal128(38, 6)),
    "cents": pa.array([Decimal("2.55"), Decimal("-2.78"), None, Decimal("0.58")], pa.decimal128(18, 2)),
    "many": pa.array([Decimal("0.7269596965610982145678"), Decimal("-0." + "9" * 37), None, Decimal(1)], pa.decimal128(38, 37)),
    "a.b": pa.array([1.0, None, 3.0, 4.0]),
    "a`b": pa.array([1.5, 2.5, None, 4.5]),
    "with space": pa.array([1, 2, 3, None]),
    "größe": pa.array([0.5, 0.25, 0.125, None]),
    "and": pa.array([1.0, 0.0, None, NAN]),
}


def test_every_numeric_type_and_every_name(spark: SparkSession) -> None:
    table = pa.table({"place": np.arange(4), **TYPES})
    columns = [Column(name) for name in TYPES]
    trees: list[Tree] = [*columns, *[Call("*", (column, Number(3.7))) for column in columns]]
    trees += [Call("exp", (column,)) for column in columns]
    trees += [Call("==", (Column("long"), Number(2.0**53))), Call("<", (Column("float"), Number(0.1)))]
    rows = spark.createDataFrame(table)
    assert rows.schema["money"].dataType.simpleString() == "decimal(10,2)"
    assert_scores_agree(rows, table, trees)


def test_a_column_without_a_type_is_all_unknown(spark: SparkSession) -> None:
    rows = spark.range(2).select(F.col("id").alias("place"), F.lit(None).alias("x"))
    (score, passing) = selected(rows, [score_column("x + 1", rows.schema), condition_column("x == x", rows.schema)])
    assert np.isnan(score.to_numpy()).all() and passing.to_pylist() == [False, False]


def fields(*names: str, **kinds: Any) -> StructType:
    plain = [StructField(name, DoubleType()) for name in names]
    return StructType(plain + [StructField(name, kind) for name, kind in kinds.items()])


WRONG: dict[str, tuple[Any, StructType, str]] = {
    "missing": ("price * volum", fields("price", "volume"), "needs the column 'volum', .* did you mean 'volume'"),
    "twice": ("x + 1", fields("x", "y", "x"), "2 columns of that name; rename them"),
    "by case": ("x + 1", fields("x", "X"), "'x', 'X', which Spark takes for the same name"),
    "text": ("x + 1", fields(x=StringType()), "'x' as a number, but it is of type string"),
    "nested": ("x + 1", fields(x=fields("y")), "take the number you need into a column of its own"),
    "interval": ("x + 1", fields(x=CalendarIntervalType()), "'x', but Arrow has no type for interval"),
    "interval for a callable": (lambda columns: columns["y"], fields("y", x=CalendarIntervalType()), "no type for interval"),
    "twice for a callable": (lambda columns: columns["y"], fields("y", "y"), "2 columns of that name"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_column_that_cannot_be_used_is_named(spark: SparkSession, case: str) -> None:
    score, schema, text = WRONG[case]
    with pytest.raises(SchemaError, match=text):
        score_column(score, schema)
    if isinstance(score, str):
        with pytest.raises(SchemaError, match=text):
            condition_column(score, schema)


def test_columns_a_score_does_not_need_may_be_of_any_type(spark: SparkSession) -> None:
    rows = spark.range(1).select(F.col("id").alias("place"), F.expr("make_interval(1)").alias("i"), F.lit(2.0).alias("x"))
    (score,) = selected(rows, [score_column("log(x)", rows.schema)])
    assert score.to_pylist() == [math.log(2.0)]


def test_names_that_differ_in_case_are_told_apart_when_spark_does(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        rows = spark.createDataFrame(pa.table({"place": [0], "x": [1.0], "X": [2.0]}))
        assert [found.to_pylist() for found in selected(rows, [score_column("x - X", rows.schema)])] == [[-1.0]]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_what_is_no_score_is_refused() -> None:
    with pytest.raises(QueryError, match="a score is"):
        score_column(3, fields("x"))  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="where is"):
        condition_column(3, fields("x"))  # type: ignore[arg-type]


# --- texts ----------------------------------------------------------------------------------------------------

TEXTS = ["v == 'a'", "v != w", "not (w == '' or 'it''s' == v)", "where(v == w, 1, 0) + (v != 'a')", "v == w and exp(x) > 1"]


def test_texts_are_compared_as_the_embedded_engine_compares_them(spark: SparkSession) -> None:
    texts = ["a", "A", "a ", "", "it's", "ü", None]
    pairs = [(v, w) for v in texts for w in texts]
    x = np.arange(len(pairs)) % 3 - 1.0
    table = pa.table({"place": np.arange(len(pairs)), "v": [v for v, _ in pairs], "w": [w for _, w in pairs], "x": x})
    rows, trees = spark.createDataFrame(table), [parse(text) for text in TEXTS]
    assert [is_native(tree, rows.schema) for tree in trees] == [True] * 4 + [False]
    assert_scores_agree(rows, table, trees)
    assert_conditions_agree(rows, table, trees)
    careless = rows.select("place", "x", *[F.collate(name, "UTF8_LCASE").alias(name) for name in ("v", "w")])
    assert not is_native(trees[0], careless.schema)
    assert_conditions_agree(careless, table, trees)


def test_texts_that_are_compared_with_numbers_are_refused() -> None:
    schema = fields("x", v=StringType())
    with pytest.raises(SchemaError, match="compares string with double: v == x"):
        condition_column("v == x", schema)
    with pytest.raises(SchemaError, match="'v' as a number, but it is of type string"):
        condition_column("v < x", schema)


# --- callables ------------------------------------------------------------------------------------------------


def test_a_callable_gets_all_columns_as_the_embedded_engine_gives_them(spark: SparkSession) -> None:
    table = pa.table({"place": np.arange(4), **TYPES, "name": ["a", "bb", None, "d"]})
    power = 3.0

    def score(columns: Any) -> Any:
        assert columns["place"].dtype == np.int64 and len(columns) == len(TYPES) + 2
        return columns["double"] ** power + columns["money"] - np.array([len(name or "") for name in columns["name"]])

    rows = spark.createDataFrame(table)
    (found,) = selected(rows, [score_column(score, rows.schema)])
    assert found.null_count == 0
    assert_same_bits(found.to_numpy(), bind(score, table.schema).evaluate(table), "callable")


def test_a_callable_that_fails_is_named(spark: SparkSession) -> None:
    rows = spark.range(3)
    with pytest.raises(Exception, match=r"callable score .* returned shape \(2,\) for \d rows"):
        rows.coalesce(1).select(score_column(lambda columns: columns["id"][:2], rows.schema)).toArrow()


def test_the_reference_is_the_plain_one() -> None:
    """What Spark is compared with here is compiled; on these rows it is what NumPy gives."""
    columns = {name: ROWS.column(name).to_numpy() for name in "xyz"}
    for text in NATIVE + PYTHON:
        assert_same_bits(np.asarray(bind(text, ROWS.schema).evaluate(ROWS)), evaluate(parse(text), columns), text)


def test_a_function_that_fails_is_named(frame: DataFrame) -> None:
    def broken(columns: Any) -> Any:
        raise ZeroDivisionError("nothing to divide by")

    with pytest.raises(PythonException, match=r"the callable score '\S*broken' failed with ZeroDivisionError: nothing to"):
        frame.select(score_column(broken, frame.schema)).collect()

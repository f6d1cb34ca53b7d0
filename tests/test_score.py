"""Scores: formulas, regions and callables, what they are saved as, and how they meet the columns of a stream."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fresh import run_python
from same_bits import assert_same_bits
from skyband.errors import QueryError, SchemaError, StateError
from skyband.scores.binding import Columns
from skyband.scores.parser import parse
from skyband.scores.score import (
    Distance,
    Linear,
    Product,
    Score,
    as_tree,
    bind,
    bind_where,
    distance,
    linear,
    product,
    region,
    score_from_json,
    score_key,
    score_to_json,
    where_key,
    where_tree,
)

NAN, INF = math.nan, math.inf

# --- linear, product, distance, regions --------------------------------------------------------------------


def test_formulas_have_trees() -> None:
    for made, text in (
        (linear({"x1": 0.3, "x2": -0.7, "PM2.5": 1}), "0.3 * x1 + -0.7 * x2 + `PM2.5`"),
        (linear({"x": 1.0}), "x"),
        (product({"x1": 0.5, "x2": -1}), "(0.5 + x1) * (-1 + x2)"),
        (product({"x1": 0}), "0 + x1"),
        (distance({"x": 3, "y": -4}), "sqrt((x - 3) * (x - 3) + (y - -4) * (y - -4))"),
        (distance({"x": 3.0}, metric="l1"), "abs(x - 3)"),
        (distance({"x": 3, "y": 4}, metric="l1", weights={"y": 2, "x": 1}), "abs(x - 3) + 2 * abs(y - 4)"),
        (distance({"x": 3}, weights={"x": 0.5}), "sqrt(0.5 * ((x - 3) * (x - 3)))"),
    ):
        assert str(as_tree(made)) == text and parse(text) == made.tree
        assert hash(made) == hash(read_again(made)) and made == read_again(made)


def read_again(made: Linear | Product | Distance) -> Score:
    """The same formula by way of JSON."""
    return score_from_json(json.loads(json.dumps(score_to_json(made))), "q", {})


def test_formulas_keep_their_parameters() -> None:
    assert linear({"x": 1, "y": np.float32(0.5)}).weights == (("x", 1.0), ("y", 0.5))
    assert product({"x": 1}).offsets == (("x", 1.0),)
    asked = distance({"x": 3, "y": 4}, metric="l1", weights={"y": 2, "x": 1})
    assert (asked.point, asked.metric, asked.weights) == ((("x", 3.0), ("y", 4.0)), "l1", (("x", 1.0), ("y", 2.0)))


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "linear of nothing": (lambda: linear({}), "at least one column"),
    "linear of a list": (lambda: linear(["x"]), "['x']"),  # type: ignore[arg-type]
    "linear nan": (lambda: linear({"x": NAN}), "weight of 'x' is nan; give a finite number"),
    "linear inf": (lambda: linear({"x": INF}), "weight of 'x' is inf"),
    "linear text": (lambda: linear({"x": "1"}), "weight of 'x' must be a number, got '1'"),  # type: ignore[dict-item]
    "linear truth": (lambda: linear({"x": True}), "True"),
    "linear huge": (lambda: linear({"x": 10**400}), "beyond what a float64 holds"),
    "linear no name": (lambda: linear({3: 1.0}), "got 3"),  # type: ignore[dict-item]
    "linear twice": (lambda: Linear((("x", 1.0), ("x", 2.0))), "'x' twice"),
    "product of nothing": (lambda: product({}), "at least one column"),
    "product nan": (lambda: product({"x": NAN}), "offset of 'x' is nan"),
    "distance of nothing": (lambda: distance({}), "at least one column"),
    "distance inf": (lambda: distance({"x": -INF}), "coordinate of 'x' is -inf"),
    "metric": (lambda: distance({"x": 1}, metric="l3"), "metric 'l3' is not known; use one of 'l1', 'l2'"),
    "weights foreign": (lambda: distance({"x": 1}, weights={"x": 1, "y": 1}), "'y'"),
    "weights missing": (lambda: distance({"x": 1, "y": 1}, weights={"x": 1}), "lack 'y'"),
    "weights negative": (lambda: distance({"x": 1}, weights={"x": -2}), "weight of 'x' is -2.0"),
    "weights nan": (lambda: distance({"x": 1}, weights={"x": NAN}), "weight of 'x' is nan"),
    "region of nothing": (lambda: where_tree({}), "at least one column"),
    "region turned": (lambda: where_tree({"x": (3, 1)}), "low 3.0 is above high 1.0"),
    "region nan": (lambda: where_tree({"x": (NAN, 1)}), "bound of 'x' is NaN"),
    "region of three": (lambda: where_tree({"x": (1, 2, 3)}), "pair (low, high), got (1, 2, 3)"),  # type: ignore[dict-item]
    "region of one": (lambda: where_tree({"x": 1}), "pair (low, high), got 1"),  # type: ignore[dict-item]
    "region text": (lambda: where_tree({"x": ("a", None)}), "must be a number, got 'a'"),  # type: ignore[dict-item]
    "where of no kind": (lambda: where_tree(3), "got 3"),  # type: ignore[arg-type]
    "score of no kind": (lambda: as_tree(3), "got 3"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_formula_that_cannot_be_is_refused_where_it_is_given(case: str) -> None:
    call, text = REFUSED[case]
    with pytest.raises(QueryError, match=re.escape(text)):
        call()


def test_regions_include_their_ends() -> None:
    assert (
        where_tree({"x": (1, 2), "y": (None, 5)})
        == parse("x >= 1 and x <= 2 and y <= 5")
        == region({"x": (1, 2), "y": (None, 5)}).tree
    )
    assert str(where_tree({"x": (None, None)})) == "x == x"
    table = pa.table({"x": [0.9, 1.0, 2.0, 2.1, None, NAN, INF], "y": [5.0, 5.0, 5.1, 0.0, 0.0, 0.0, -INF]})

    def passing(where: Any) -> list[int]:
        return np.flatnonzero(bind_where(where, table.schema).passes(table)).tolist()

    assert passing({"x": (1, 2)}) == [1, 2]
    assert passing({"x": (1, 2), "y": (None, 5)}) == [1]
    assert passing({"x": (None, INF)}) == passing({"x": (None, None)}) == [0, 1, 2, 3, 6]
    assert passing({"x": (INF, INF)}) == [6]
    assert passing("x > 1 or y > 5") == [2, 3, 6]
    assert passing("not x > 1") == [0, 1]
    assert passing("x - 1") == [0, 2, 3, 6]


# --- identity and saving -----------------------------------------------------------------------------------


def doubled(columns: Any) -> np.ndarray:
    return columns["x"] * 2


class Scaled:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, columns: Any) -> np.ndarray:
        return columns["x"] * self.factor


def test_two_spellings_of_a_score_are_one() -> None:
    assert score_key("2*x+y") == score_key("(2 * `x`) + y") == score_key(linear({"x": 2, "y": 1}))
    assert score_key("x") == score_key(linear({"x": 1})) != score_key("y")
    assert score_key(doubled) == score_key(doubled) != score_key(lambda columns: columns["x"] * 2)
    assert where_key({"x": (1, None)}) == where_key("x >= 1") and where_key(None) is None


@pytest.mark.parametrize(
    "score",
    ["price*volume", linear({"x": 0.1, "y": 1 / 3}), product({"x": 0.1}), distance({"x": 1, "y": 2}, "l1", {"x": 3, "y": 0})],
)
def test_a_score_survives_json(score: Any) -> None:
    assert score_from_json(json.loads(json.dumps(score_to_json(score))), "q", {}) == score


def test_a_callable_must_be_given_back() -> None:
    saved = json.loads(json.dumps(score_to_json(doubled)))
    assert saved == {"callable": "doubled"} and score_to_json(Scaled(2)) == {"callable": "Scaled"}
    assert score_from_json(saved, "hot", {"hot": doubled}) is doubled
    with pytest.raises(StateError, match=r"'hot'.*'doubled'.*callables="):
        score_from_json(saved, "hot", {"other": doubled})
    with pytest.raises(StateError, match="not a saved score"):
        score_from_json({"formula": "x"}, "hot", {})


# --- meeting columns ---------------------------------------------------------------------------------------


def test_a_bare_float_column_is_not_copied() -> None:
    array = pa.array(np.arange(100.0))
    table = pa.table({"x": array, "y": array})
    for part, numbers in ((table, np.arange(100.0)), (table.slice(10, 20), np.arange(10.0, 30.0))):
        found = bind("x", table.schema).evaluate(part)
        assert np.shares_memory(found, array.to_numpy()) and found.tolist() == numbers.tolist()
    given_columns = Columns(table)
    assert np.shares_memory(given_columns["x"], array.to_numpy()) and given_columns["x"] is given_columns["x"]


NUMERIC = {
    "float64": (pa.array([1.5, None, -2.0]), [1.5, NAN, -2.0]),
    "float32": (pa.array([1.5, None, 0.1], pa.float32()), [1.5, NAN, float(np.float32(0.1))]),
    "float16": (pa.array(np.array([1.5, 2.0, -0.5], np.float16)), [1.5, 2.0, -0.5]),
    "int64": (pa.array([1, None, 2**62 + 1]), [1.0, NAN, 2.0**62]),
    "int8": (pa.array([1, -128, 127], pa.int8()), [1.0, -128.0, 127.0]),
    "uint64": (pa.array([1, None, 2**64 - 1], pa.uint64()), [1.0, NAN, 2.0**64]),
    "bool": (pa.array([True, False, None]), [1.0, 0.0, NAN]),
    "decimal128": (pa.array([Decimal("1.25"), None, Decimal("-0.50")]), [1.25, NAN, -0.5]),
    "decimal256": (pa.array([Decimal("1.25"), None, Decimal("3.00")], pa.decimal256(50, 2)), [1.25, NAN, 3.0]),
    "null": (pa.nulls(3), [NAN, NAN, NAN]),
}


@pytest.mark.parametrize("kind", NUMERIC)
def test_numeric_columns_become_float64_and_null_becomes_nan(kind: str) -> None:
    array, expected = NUMERIC[kind]
    wanted = np.array(expected)
    whole = pa.table({"x": array})
    pieces = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 0), whole.slice(1, 2)])
    for table in (whole, pieces):
        assert_same_bits(bind("x", table.schema).evaluate(table), wanted, kind)
        assert_same_bits(bind("x + 0.5", table.schema).evaluate(table), wanted + 0.5, kind)
    empty = pa.table({"x": pa.chunked_array([], array.type)})
    assert bind("x", empty.schema).evaluate(empty).shape == bind("x * 2", empty.schema).evaluate(empty).shape == (0,)


DECIMALS = {
    "cents": pa.decimal128(22, 2),
    "of as many digits as there can be": pa.decimal128(38, 30),
    "smaller than tenths": pa.decimal128(38, 38),
    "of long type": pa.decimal256(60, 5),
    "whole": pa.decimal128(38, 0),
    "thousands": pa.decimal128(8, -3),
}


@pytest.mark.parametrize("kind", DECIMALS)
def test_a_decimal_is_the_number_that_its_text_is(kind: str) -> None:
    """So that 2.55 is 2.55, and inside bounds that say so."""
    scale = DECIMALS[kind].scale
    whole = [255, -278, 0, -1, 10**7 - 1, *(random.Random(scale).randrange(-(10**7), 10**7) for _ in range(200))]
    far = [2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63, -(2**63), 2**64 + 1, 10**19 + 7] if scale >= 0 else []
    for chosen in (whole, [*whole, *far]):
        values = [None, *(Decimal(one).scaleb(-scale) for one in chosen), None]
        array = pa.array([None, *values], DECIMALS[kind]).slice(1)
        wanted = np.array([NAN if one is None else float(str(one)) for one in values])
        assert_same_bits(bind("x", pa.schema({"x": array.type})).evaluate(pa.table({"x": array})), wanted, kind)


def test_a_decimal_on_the_bound_of_a_region_is_inside() -> None:
    rows = pa.table({"price": pa.array([Decimal("2.55"), Decimal("2.78")], pa.decimal128(10, 2))})
    assert bind_where({"price": (None, 2.55)}, rows.schema).passes(rows).tolist() == [True, False]
    assert bind_where("price == 2.78", rows.schema).passes(rows).tolist() == [False, True]


SCHEMA = pa.schema(
    {"price": pa.float64(), "volume": pa.int64(), "name": pa.string(), "at": pa.timestamp("us"), "tags": pa.list_(pa.int8())}
)
UNFIT: dict[str, tuple[Any, tuple[str, ...]]] = {
    "unknown, with a near one": ("prize * 2", ("'prize * 2'", "'prize'", "did you mean 'price'?", "'volume'")),
    "unknown, none near": ("x1", ("'x1'", "it has 'price', 'volume', 'name', 'at', 'tags'")),
    "text": ("price + name", ("'name'", "string", "cast it to float64")),
    "timestamp": ("at", ("'at'", "timestamp[us]", "cast it to int64")),
    "list": (linear({"tags": 1}), ("'tags'", "list<", "column of its own")),
}


@pytest.mark.parametrize("case", UNFIT)
def test_a_column_that_does_not_fit_is_named(case: str) -> None:
    score, texts = UNFIT[case]
    with pytest.raises(SchemaError) as caught:
        bind(score, SCHEMA)
    assert all(text in str(caught.value) for text in texts), caught.value


def test_other_misfits() -> None:
    with pytest.raises(SchemaError, match="2 columns of that name"):
        bind("x", pa.schema([("x", pa.int8()), ("x", pa.int8())]))
    with pytest.raises(SchemaError, match="the condition 'y > 1' needs the column 'y'"):
        bind_where("y > 1", SCHEMA)
    many = pa.schema({f"c{i}": pa.int8() for i in range(50)})
    with pytest.raises(SchemaError, match="and 30 more"):
        bind("zzz", many)
    was_null = bind("x", pa.schema({"x": pa.null()}))
    with pytest.raises(SchemaError, match="string"):
        was_null.evaluate(pa.table({"x": ["a"]}))


TABLE = pa.table(
    {
        "x": pa.chunked_array([[1.0, 2.0], [4.0]]),
        "n": pa.array([1, 2, 3], pa.int32()),
        "gaps": [1, None, 3],
        "name": ["a", None, "c"],
        "cost": [Decimal("0.5")] * 3,
    }
)


def test_a_callable_gets_lazy_read_only_columns() -> None:
    seen: dict[str, Any] = {}

    def own(columns: Any) -> np.ndarray:
        seen.update(columns)
        seen["names"] = list(columns)
        return columns["x"] + columns["n"]

    assert bind(own, TABLE.schema).evaluate(TABLE).tolist() == [2.0, 4.0, 7.0]
    assert seen["names"] == TABLE.column_names and "none" not in Columns(TABLE) and len(Columns(TABLE)) == 5
    assert {name: seen[name].dtype.str[1:] for name in TABLE.column_names} == {
        "x": "f8",
        "n": "i4",
        "gaps": "f8",
        "name": "O",
        "cost": "f8",
    }
    assert not any(seen[name].flags.writeable for name in TABLE.column_names)
    assert_same_bits(seen["gaps"], np.array([1.0, NAN, 3.0]), "gaps")
    untouched = Columns(TABLE)
    assert not untouched._arrays and untouched["n"].tolist() == [1, 2, 3] and list(untouched._arrays) == ["n"]


RETURNED: dict[str, tuple[Any, list[float]]] = {
    "integers": (np.arange(3), [0.0, 1.0, 2.0]),
    "truth": (np.array([True, False, True]), [1.0, 0.0, 1.0]),
    "list": ([1, 2.5, -1], [1.0, 2.5, -1.0]),
    "objects": (np.array([1, None, Decimal("2.5")], object), [1.0, NAN, 2.5]),
    "arrow": (pa.array([1.0, None, 2.0]), [1.0, NAN, 2.0]),
    "masked": (np.ma.masked_equal(np.array([1, 2, 3]), 2), [1.0, NAN, 3.0]),
}


@pytest.mark.parametrize("case", RETURNED)
def test_what_a_callable_returns_becomes_float64(case: str) -> None:
    returned, expected = RETURNED[case]
    assert_same_bits(bind(lambda columns: returned, TABLE.schema).evaluate(TABLE), np.array(expected), case)


def broken(columns: Any) -> np.ndarray:
    raise ZeroDivisionError("of my own making")


WRONG_CALLABLES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "raises": (broken, "'broken' failed with ZeroDivisionError: of my own making"),
    "asks for a column that is not there": (lambda columns: columns["z"], "KeyError: 'z'; the stream has 'x', 'n'"),
    "writes": (lambda columns: columns["x"].fill(0), "ValueError"),
    "too short": (lambda columns: columns["x"][:2], "shape (2,) for 3 rows"),
    "one number": (lambda columns: 1.0, "shape () for 3 rows"),
    "two columns": (lambda columns: np.zeros((3, 2)), "shape (3, 2)"),
    "nothing": (lambda columns: None, "shape ()"),
    "texts": (lambda columns: np.array(["1", "2", "3"]), "array of numbers"),
    "names": (lambda columns: columns["name"], "array of numbers"),
    "moments": (lambda columns: np.array([0, 1, 2], "datetime64[s]"), "datetime64[s]"),
    "complex": (lambda columns: columns["x"] * 1j, "complex128"),
    "beyond a float64": (lambda columns: np.array([10**400, 1, 2], object), "array of numbers"),
}


@pytest.mark.parametrize("case", WRONG_CALLABLES)
def test_a_callable_that_fails_is_named(case: str) -> None:
    function, text = WRONG_CALLABLES[case]
    with pytest.raises(SchemaError, match=re.escape(text)) as caught:
        bind(function, TABLE.schema).evaluate(TABLE)
    assert function.__qualname__ in str(caught.value)
    if case == "raises":
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


# --- the process ---


def test_parsing_and_binding_load_no_numba_and_a_bare_column_needs_none() -> None:
    code = """
import sys, pyarrow as pa
from skyband.scores.score import bind, linear
table = pa.table({"x": [1.0, 2.0]})
bind("x + 1", table.schema), linear({"x": 2})
print(bind("x", table.schema).evaluate(table).tolist(), "numba" in sys.modules)
"""
    assert run_python(code) == "[1.0, 2.0] False"

"""Scores: how expressions are read, what they mean, and that both compilers agree to the last bit."""

from __future__ import annotations

import json
import math
import random
import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skyband.errors import QueryError, SchemaError, StateError
from skyband.kernels.expression import BLOCK
from skyband.scores.binding import Columns
from skyband.scores.evaluation import compiled, compute, evaluate
from skyband.scores.expression import ARITY, DEEPEST, FUNCTIONS, Call, Column, Number, Tree
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

# --- reading -------------------------------------------------------------------------------------------


def shape(tree: Tree) -> str:
    """A tree with every operation in brackets."""
    return f"[{tree.op} {' '.join(map(shape, tree.args))}]" if isinstance(tree, Call) else str(tree)


READ = """
    price * volume                  [* price volume]
    a + b * c                       [+ a [* b c]]
    (a + b) * c                     [* [+ a b] c]
    a - b - c                       [- a b c]
    a - (b - c)                     [- a [- b c]]
    a - b + c                       [+ [- a b] c]
    a / b / c * d                   [* [/ a b c] d]
    a * b % c                       [% [* a b] c]
    a ** b ** c                     [** a [** b c]]
    (a ** b) ** c                   [** [** a b] c]
    -a ** b                         [neg [** a b]]
    (-a) ** b                       [** [neg a] b]
    a ** -b                         [** a [neg b]]
    -2                              -2
    -(2)                            [neg 2]
    --2                             [neg -2]
    -2 ** 2                         [neg [** 2 2]]
    2 ** -1                         [** 2 -1]
    2 ** -1 ** 2                    [** 2 [neg [** 1 2]]]
    a - -2                          [- a -2]
    -a * b                          [* [neg a] b]
    - a + + b                       [+ [neg a] b]
    a < b                           [< a b]
    a < b <= c                      [and [< a b] [<= b c]]
    a < b and b <= c                [and [< a b] [<= b c]]
    a == b != c > d                 [and [== a b] [!= b c] [> c d]]
    (a < b) < c                     [< [< a b] c]
    a + 1 < b * 2                   [< [+ a 1] [* b 2]]
    not a < b                       [not [< a b]]
    not a and b                     [and [not a] b]
    not not a                       [not [not a]]
    a or b and c                    [or a [and b c]]
    (a or b) and not c              [and [or a b] [not c]]
    a and (b and c)                 [and a [and b c]]
    where(a < 0, -a, a)             [where [< a 0] [neg a] a]
    max(a, b, c, 0)                 [max a b c 0]
    min + max(min, 1)               [+ min [max min 1]]
    log1p(x)                        [log1p x]
    a.x - b.x                       [- a.x b.x]
    a.x.y * 2                       [* a.x.y 2]
    `PM2.5` + `a``b`                [+ `PM2.5` `a``b`]
    `and` and `not`                 [and `and` `not`]
    `price`                         price
    größe * 2                       [* größe 2]
    1.5e3                           1500
    .5 + 1. + 1E-7 + 2e+20          [+ 0.5 1 1e-07 2e+20]
    1e999                           1e999
"""


@pytest.mark.parametrize(("text", "expected"), [re.split(r"\s{2,}", line.strip()) for line in READ.strip().splitlines()])
def test_precedence_and_names_are_those_of_python(text: str, expected: str) -> None:
    tree = parse(text)
    assert shape(tree) == expected
    assert parse(str(tree)) == tree


MISREAD = {
    "x * / 2": """
        expected a number, a column, a function or '(', found '/'
            x * / 2
                ^""",
    "(x + 1": """
        expected an operator or ')' to close the '(' at character 1, found the end
            (x + 1
                  ^""",
    "x + 1)": """
        expected an operator or the end, found ')'
            x + 1)
                 ^""",
    "unit price * 2": """
        expected an operator or the end, found 'price'; a column's name that is not a plain word goes in backticks
            unit price * 2
                 ^""",
    "PM2.5": """
        expected an operator or the end, found '.5'; a column's name that is not a plain word goes in backticks
            PM2.5
               ^""",
    "2 * cosh(x)": """
        'cosh' is not a function; did you mean 'cos'? expected one of abs, sqrt, exp, log, log1p, sin, cos, floor, \
ceil, min, max, where
            2 * cosh(x)
                ^""",
    "1 + sqrt(x, y)": """
        sqrt takes 1 argument, got 2
            1 + sqrt(x, y)
                ^""",
    "max(x)": """
        max takes 2 or more arguments, got 1
            max(x)
            ^""",
    "where(x > 1, 2)": """
        where takes 3 arguments, got 2
            where(x > 1, 2)
            ^""",
    "log(x y)": """
        expected an operator, ',' or ')' to close log(, found 'y'; a column's name that is not a plain word goes in backticks
            log(x y)
                  ^""",
    "x = 1": """
        '=' has no meaning here; write '==' to compare
            x = 1
              ^""",
    "x > 1 && y > 1": """
        '&&' has no meaning here; write 'and'
            x > 1 && y > 1
                  ^""",
    "x ^ 2": """
        '^' has no meaning here; write '**' for a power
            x ^ 2
              ^""",
    "x // 2": """
        '//' has no meaning here; write floor(a / b)
            x // 2
              ^""",
    "name == 'a": """
        "'" has no meaning here; close the text with a second quote
            name == 'a
                    ^""",
    "`open + 1": """
        '`' has no meaning here; close the column's name with a second backtick
            `open + 1
            ^""",
    "x + ``": """
        expected a column's name between the backticks
            x + ``
                ^""",
    "x not y": """
        expected an operator before 'not'; write not (a < b), or a != b
            x not y
              ^""",
    "x + not y": """
        expected a number, a column or '(' after '+'; put the 'not' in parentheses
            x + not y
                ^""",
    "x +\n  y *": """
        expected a number, a column, a function or '(', found the end
              y *
                 ^""",
    "x\t+\t$": """
        '$' has no meaning here; a column's name with such a character goes in backticks
            x\t+\t$
             \t \t^""",
}


@pytest.mark.parametrize("text", MISREAD)
def test_an_error_shows_the_place_and_what_was_expected(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    lines = [line.removeprefix(" " * 8) for line in MISREAD[text].splitlines()[1:]]
    assert str(caught.value).splitlines() == lines


@pytest.mark.parametrize("text", ["", "  \n "])
def test_nothing_is_no_expression(text: str) -> None:
    with pytest.raises(QueryError, match="expected an expression"):
        parse(text)


def test_a_long_line_is_shown_around_the_place() -> None:
    text = " + ".join(f"x{i}" for i in range(500)) + " + * + " + " + ".join(f"y{i}" for i in range(500))
    with pytest.raises(QueryError) as caught:
        parse(text)
    _, line, caret = str(caught.value).splitlines()
    assert len(line) < 120 and line[caret.index("^")] == "*" and line.count("…") == 2


TOO_DEEP: dict[str, str] = {
    "parentheses": "(" * 20_000 + "x" + ")" * 20_000,
    "minus": "-" * 20_000 + "x",
    "plus": "+" * 20_000 + "x",
    "not": "not " * 20_000 + "x",
    "power": "x ** " * 20_000 + "x",
    "functions": "abs(" * 20_000 + "x" + ")" * 20_000,
    "open": "(" * 20_000,
    "to and fro": "x - y + " * 10_000 + "x",
    "doubling": "0 < (" * 90 + "x" + ") < 1" * 90,
}


@pytest.mark.parametrize("case", TOO_DEEP)
def test_absurd_nesting_is_refused_in_words(case: str) -> None:
    with pytest.raises(QueryError, match="expected at most"):
        parse(TOO_DEEP[case])


def test_long_sums_are_flat() -> None:
    names = [f"x{i}" for i in range(5000)]
    tree = parse(" + ".join(names))
    assert tree.depth == 1 and tree.columns() == tuple(names) and parse(str(tree)) == tree
    columns = {name: np.array([float(i), -1.0]) for i, name in enumerate(names)}
    assert compute(tree, columns, 2).tolist() == [sum(range(5000)), -5000.0]


def test_trees_are_values() -> None:
    assert parse("a+b") == parse(" a + `b`") == Call("+", (Column("a"), Column("b")))
    assert len({parse("a + b"), parse("(a) + (b)"), parse("b + a")}) == 2
    assert parse("(a + b) + c") == parse("a + b + c") != parse("a + (b + c)")
    assert Number(0.0) != Number(-0.0) and parse("1 / -0") != parse("1 / 0")
    assert parse("b * a + b").columns() == ("b", "a")
    for wrong in (lambda: Number(NAN), lambda: Column(""), lambda: Call("cosh", (Number(1),)), lambda: Call("+", (Number(1),))):
        with pytest.raises(QueryError):
            wrong()


# --- random trees and adversarial numbers -----------------------------------------------------------------

EDGES = (
    *(
        0.0,
        1.0,
        2.0,
        3.0,
        0.5,
        0.1,
        1 / 3,
        10.0,
        708.5,
        709.78,
        710.0,
        745.2,
        math.pi,
        math.pi / 2,
        1e15,
        2.0**53,
        2.0**63,
        1e22,
    ),
    *(
        5e-324,
        2.2250738585072014e-308,
        2.225073858507201e-308,
        1e-300,
        1e-17,
        1e154,
        1.34e154,
        1e300,
        1.7976931348623157e308,
        INF,
    ),
)
values = (
    st.sampled_from([*EDGES, *(-x for x in EDGES), NAN])
    | st.floats(allow_subnormal=True)
    | st.floats(-5, 5)
    | st.integers(-4, 4).map(float)
)
names = st.sampled_from(["x", "y", "z", "a.x", "PM2.5", "and", "a`b", "max", "größe"]) | st.text(min_size=1, max_size=5)
leaves = st.builds(Number, st.floats(allow_nan=False) | st.integers(-3, 3)) | st.builds(Column, names)
few = st.builds(Number, values.filter(lambda x: x == x)) | st.sampled_from([Column("x"), Column("y"), Column("z")])


def grown(parts: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    def call(op: str) -> st.SearchStrategy[Tree]:
        least, most = ARITY[op]
        return st.lists(parts, min_size=least, max_size=most or 4).map(lambda args: Call(op, tuple(args)))

    return st.sampled_from(sorted(ARITY)).flatmap(call)


@settings(max_examples=300)
@given(st.recursive(leaves, grown, max_leaves=25))
@example(Call("neg", (Number(2),)))
@example(Call("**", (Number(-2), Call("neg", (Number(2),)))))
@example(Call("neg", (Call("**", (Number(2), Number(-0.0))),)))
@example(Call("<", (Call("<", (Column("x"), Column("y"))), Call("not", (Column("z"),)))))
def test_the_text_of_a_tree_parses_back_to_it(tree: Tree) -> None:
    text = str(tree)
    assert parse(text) == tree
    assert str(parse(text)) == text


def assert_same_bits(found: np.ndarray, expected: np.ndarray, about: object) -> None:
    """Equal bit for bit, so also in the sign of zero; any NaN equals any NaN."""
    assert found.dtype == expected.dtype == np.float64 and found.shape == expected.shape
    differ = (found.view(np.int64) != expected.view(np.int64)) & ~(np.isnan(found) & np.isnan(expected))
    assert not differ.any(), (str(about), np.flatnonzero(differ)[:5], found[differ][:5], expected[differ][:5])


@settings(max_examples=300)
@given(st.recursive(few, grown, max_leaves=20), st.lists(st.tuples(values, values, values), min_size=1, max_size=40))
def test_both_compilers_agree_to_the_last_bit(tree: Tree, rows: list[tuple[float, float, float]]) -> None:
    columns = dict(zip("xyz", np.array(rows).T.copy(), strict=True))
    assert_same_bits(compute(tree, columns, len(rows)), evaluate(tree, columns), tree)


@pytest.mark.parametrize("op", sorted(ARITY))
def test_every_operation_agrees_on_every_pair_of_edges(op: str) -> None:
    """All pairs of edge values, and enough random numbers of every magnitude to fill several blocks."""
    random = np.random.default_rng(1)
    edges = np.array([*EDGES, *(-x for x in EDGES), NAN])
    x, y = (grid.ravel() for grid in np.meshgrid(edges, edges))
    bits = random.integers(0, 2**64, (2, 2 * BLOCK), np.uint64, endpoint=False).view(np.float64)
    near = random.normal(0, 3, (2, 2 * BLOCK + 7))
    x, y = np.concatenate([x, bits[0], near[0], near[0]]), np.concatenate([y, bits[1], near[1], np.round(near[1])])
    z = random.permutation(x)
    least, most = ARITY[op]
    for count in {least, most or 3}:
        tree = Call(op, tuple(map(Column, "xyz"[:count])))
        columns = {name: array for name, array in zip("xyz", (x, y, z), strict=True) if name in tree.columns()}
        assert_same_bits(compute(tree, columns, len(x)), evaluate(tree, columns), tree)


@pytest.mark.parametrize(
    ("name", "function"), [(name, getattr(math, name)) for name in ("exp", "log", "log1p", "sin", "cos", "sqrt")]
)
def test_functions_are_those_of_the_c_library(name: str, function: Callable[[float], float]) -> None:
    x = np.random.default_rng(2).uniform(0, 50, 3000)
    assert compute(parse(f"{name}(x)"), {"x": x}, len(x)).tolist() == [function(value) for value in x.tolist()]


def test_python_agrees_where_it_gives_a_number() -> None:
    x, y = np.random.default_rng(3).uniform(-9, 9, (2, 3000))
    rows = list(zip(x.tolist(), y.tolist(), strict=True))
    for text, python in {
        "x % y": lambda x, y: x % y,
        "abs(x) ** y": lambda x, y: abs(x) ** y,
        "-x ** 2 + 3 * x / y - y": lambda x, y: -(x * x) + 3 * x / y - y,
        "x < y <= 4 or not x > -3": lambda x, y: float(x < y <= 4 or not x > -3),
        "where(x < y, floor(x), ceil(y))": lambda x, y: float(math.floor(x) if x < y else math.ceil(y)),
        "min(x, y, 1) + max(y, x, 2)": lambda x, y: min(x, y, 1) + max(y, x, 2),
    }.items():
        assert compute(parse(text), {"x": x, "y": y}, len(x)).tolist() == [python(*row) for row in rows], text


@pytest.mark.parametrize("rows", [0, 1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 5])
def test_any_number_of_rows(rows: int) -> None:
    x = np.arange(rows, dtype=np.float64)
    for text in ("x * 2 + 1", "(x - 3) * (x - 3) + (x - 3)", "7", "7 - 2"):
        assert_same_bits(compute(parse(text), {"x": x}, rows), evaluate(parse(text), {"x": x}, rows), text)


def test_equal_parts_are_computed_once_and_registers_are_reused() -> None:
    shared = compiled(parse("sqrt((x - 3) * (x - 3) + (y - 4) * (y - 4))"))
    assert len(shared.program.operation) == 6
    wide = compiled(parse(" + ".join(f"x{i} * 2" for i in range(300))))
    assert wide.registers <= 3 and len(wide.constants) == 1


def test_columns_of_other_layouts_are_read_rightly() -> None:
    every_second = np.arange(20.0)[::2]
    unaligned = np.frombuffer(b"?" + np.arange(10.0).tobytes(), np.uint8)[1:].view(np.float64)
    integers = np.arange(10)
    found = compute(parse("a + b * 10 + c * 100"), {"a": every_second, "b": unaligned, "c": integers}, 10)
    assert found.tolist() == [i * 2 + i * 10 + i * 100 for i in range(10)]
    with pytest.raises(ValueError, match="10 rows"):
        compute(parse("a + b"), {"a": np.zeros(9), "b": np.zeros(10)}, 10)


# --- what unknown means --------------------------------------------------------------------------------

MEANS = """
    x                       n       n
    x + 1                   n       n
    x * 0                   n       n
    x ** 0                  n       n
    1 ** x                  n       n
    x - x                   n       n
    abs(x)                  n       n
    floor(x)                n       n
    min(x, 1)               n       n
    min(1, x)               n       n
    max(1, 2, x)            n       n
    x < 1                   n       n
    x == x                  n       n
    x != x                  n       n
    x != 1                  n       n
    1 < 2 < x               n       n
    2 < 1 < x               n       0
    not x                   n       n
    x and 0                 n       0
    0 and x                 n       0
    x and 1                 n       n
    x and x                 n       n
    x or 1                  n       1
    1 or x                  n       1
    x or 0                  n       n
    x > 0 or x <= 0         n       n
    where(x, 1, 2)          n       n
    where(x > 0, 1, 2)      n       n
    where(1, 5, x)          n       5
    where(0, 5, x)          n       n
    x == x                  3       1
    not x                   3       0
    not x                   0       1
    not x                   -0      1
    x and 7                 -2      1
    x or 0                  -2      1
    where(x, 1, 2)          0.5     1
    where(x, 1, 2)          0       2
    (x > 1) + (x > 2)       3       2
    x / 0                   1       inf
    x / 0                   -1      -inf
    x / -0                  1       -inf
    x / 0                   0       n
    x % 0                   1       n
    x % 3                   -1      2
    x % -3                  1       -2
    x % 1e999               5       5
    x % 1e999               -5      inf
    x % 3                   inf     n
    sqrt(x)                 -1      n
    log(x)                  0       -inf
    log(x)                  -1      n
    log1p(x)                -1      -inf
    exp(x)                  1000    inf
    exp(x)                  -1000   0
    sin(x)                  inf     n
    x ** 0.5                -8      n
    x ** -1                 0       inf
    x ** -1                 -0      -inf
    x ** -2                 -0      inf
    x ** 3                  -1e200  -inf
    x ** 4                  -1e200  inf
    x ** 2                  3       9
    ceil(x)                 -0.5    -0
    x < 1e999               inf     0
    x <= 1e999              inf     1
    max(x, -0)              0       0
    min(-0, x)              0       -0
"""


@pytest.mark.parametrize(("text", "x", "expected"), [re.split(r"\s{2,}", line.strip()) for line in MEANS.strip().splitlines()])
def test_unknown_in_unknown_out(text: str, x: str, expected: str) -> None:
    given_x, wanted = (np.array([float(value.replace("n", "nan") if value == "n" else value)]) for value in (x, expected))
    tree = parse(text)
    assert_same_bits(evaluate(tree, {"x": given_x}), wanted, text)
    assert_same_bits(compute(tree, {"x": given_x}, 1), wanted, text)


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


# --- the process ---------------------------------------------------------------------------------------------


def run_python(code: str, **environment: str) -> str:
    import os

    source = str(Path(__file__).parent.parent / "src")
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": source, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_parsing_and_binding_load_no_numba_and_a_bare_column_needs_none() -> None:
    code = """
import sys, pyarrow as pa
from skyband.scores.score import bind, linear
table = pa.table({"x": [1.0, 2.0]})
bind("x + 1", table.schema), linear({"x": 2})
print(bind("x", table.schema).evaluate(table).tolist(), "numba" in sys.modules)
"""
    assert run_python(code) == "[1.0, 2.0] False"


def test_expressions_work_with_compilation_switched_off() -> None:
    code = """
import pyarrow as pa
from skyband.scores.score import bind
table = pa.table({"x": [1.0, None, 3.0]})
print(bind("where(x > 2, x ** 0.5, -x)", table.schema).evaluate(table).tolist())
"""
    assert run_python(code, NUMBA_DISABLE_JIT="1") == str([-1.0, NAN, 3**0.5])


def test_the_limits_of_this_file_are_those_of_the_language() -> None:
    from skyband.kernels.expression import OPCODES

    assert set(OPCODES) == set(ARITY) and set(FUNCTIONS) <= set(ARITY)
    tree: Tree = Column("x")
    for _ in range(DEEPEST):
        tree = Call("abs", (tree,))
    assert hash(tree) == hash(tree) and tree.columns() == ("x",) and str(tree).count("abs") == DEEPEST
    assert compute(tree, {"x": np.array([-1.0])}, 1).tolist() == [1.0]
    with pytest.raises(QueryError, match="expected at most"):
        Call("abs", (tree,))

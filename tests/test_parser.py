"""Expressions: how they are read, what is refused where, and that their texts say what they are."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skyband.errors import QueryError
from skyband.scores.evaluation import compute
from skyband.scores.expression import Call, Column, Number, Tree
from skyband.scores.parser import parse
from trees import NAN, grown, leaves


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

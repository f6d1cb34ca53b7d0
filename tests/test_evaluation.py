"""What expressions mean, and that both compilers agree to the last bit."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fresh import run_python
from same_bits import assert_same_bits
from skyband.errors import QueryError
from skyband.kernels.expression import BLOCK
from skyband.scores.evaluation import compiled, compute, evaluate
from skyband.scores.expression import ARITY, DEEPEST, FUNCTIONS, Call, Column, Tree
from skyband.scores.parser import parse
from trees import EDGES, NAN, few, grown, values


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


# --- the process ---


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

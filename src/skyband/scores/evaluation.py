"""The two compilers of expression trees: NumPy, plain enough to be the definition, and Numba, fast.

Both give the same float64, bit for bit (one NaN being as good as another). The rules:

* Everything is a float64. True is 1, false is 0; a number used as a condition is true when it is not 0.
* A null arrives as NaN and means *unknown*; so does the NaN of 0/0 or log(-1). Unknown in, unknown out:
  arithmetic, functions and comparisons with an unknown operand are unknown, also `x == x`, `x ** 0` and
  `min(x, y)`. Only logic can know more: `false and unknown` is false, `true or unknown` is true, and
  `where(c, a, b)` looks at `c` and the chosen value alone; it is unknown when `c` is.
* x/0 is an infinity, 0/0 and x%0 are unknown, `%` has the sign of the divisor as in Python.
* Of equal operands (0 and -0) min and max give the first. `x ** 2`, written so, is `x * x`.
* exp, log, log1p, sin, cos and ** are the C library's, with C99's results where Python's `math` raises.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skyband.scores.expression import Call, Column, Number, Tree

if TYPE_CHECKING:
    from skyband.kernels.expression import Program

Array = np.ndarray[Any, Any]


# NumPy ------------------------------------------------------------------------------------------------------


def evaluate(tree: Tree, columns: Mapping[str, Array], rows: int | None = None) -> Array:
    """The value of every row, by NumPy. `rows` is needed when `columns` is empty."""
    if rows is None:
        rows = len(next(iter(columns.values())))
    with np.errstate(all="ignore"):
        return np.array(np.broadcast_to(_value(tree, columns), (rows,)), np.float64)


def _value(tree: Tree, columns: Mapping[str, Array]) -> Array:
    """An array of one value per row, or of one value."""
    if isinstance(tree, Number):
        return np.array([tree.value])
    if isinstance(tree, Column):
        return np.asarray(columns[tree.name], np.float64)
    assert isinstance(tree, Call), "texts are compared before: without_texts"
    values = [_value(argument, columns) for argument in tree.args]
    if tree.op == "where":
        condition, chosen, otherwise = values
        return np.where(np.isnan(condition), np.nan, np.where(condition != 0, chosen, otherwise))
    if len(values) == 1:
        return _ONE[tree.op](values[0])
    if is_square(tree):
        return values[0] * values[0]
    return reduce(_TWO[tree.op], values)


def is_square(tree: Call) -> bool:
    """Is it x ** 2? That is computed as x * x wherever it is: products are rounded alike by all, powers are not."""
    return tree.op == "**" and tree.args[1] == Number(2.0)


def _known(result: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """The same, but unknown where an operand is."""
    return lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, result(x, y))


def _modulo(x: Array, y: Array) -> Array:
    rest = np.fmod(x, y)
    turned = np.where((y < 0) != (rest < 0), rest + y, rest)
    return np.where(rest == 0, np.copysign(0.0, y), turned)


def _and(x: Array, y: Array) -> Array:
    return np.where((x == 0) | (y == 0), 0.0, np.where(np.isnan(x) | np.isnan(y), np.nan, 1.0))


def _or(x: Array, y: Array) -> Array:
    return np.where((np.abs(x) > 0) | (np.abs(y) > 0), 1.0, np.where(np.isnan(x) | np.isnan(y), np.nan, 0.0))


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _log(x: float) -> float:
    return math.log(x) if x > 0 else (-math.inf if x == 0 else math.nan)


def _log1p(x: float) -> float:
    return math.log1p(x) if x > -1 else (-math.inf if x == -1 else math.nan)


def _sin(x: float) -> float:
    return math.nan if math.isinf(x) else math.sin(x)


def _cos(x: float) -> float:
    return math.nan if math.isinf(x) else math.cos(x)


def _power(x: float, y: float) -> float:
    if math.isnan(x) or math.isnan(y):
        return math.nan
    odd = math.fmod(y, 2.0) in (1.0, -1.0) if math.isfinite(y) else False
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and odd else math.inf
    except ValueError:  # zero to a negative power, or a negative number to a broken one
        return math.nan if x != 0 else (math.copysign(math.inf, x) if odd else math.inf)


def _one_by_one(function: Callable[..., float]) -> Callable[..., Array]:
    """A function of numbers mapped over arrays: NumPy's own may differ from the C library's in the last bit."""

    def mapped(*arrays: Array) -> Array:
        lists = [array.tolist() for array in np.broadcast_arrays(*arrays)]
        return np.fromiter(map(function, *lists), np.float64, len(lists[0]))

    return mapped


_ONE: dict[str, Callable[[Array], Array]] = {
    "neg": np.negative,
    "not": lambda x: np.where(np.isnan(x), np.nan, x == 0),
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": _one_by_one(_exp),
    "log": _one_by_one(_log),
    "log1p": _one_by_one(_log1p),
    "sin": _one_by_one(_sin),
    "cos": _one_by_one(_cos),
    "floor": np.floor,
    "ceil": np.ceil,
}
_TWO: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": _modulo,
    "**": _one_by_one(_power),
    "<": _known(np.less),
    "<=": _known(np.less_equal),
    ">": _known(np.greater),
    ">=": _known(np.greater_equal),
    "==": _known(np.equal),
    "!=": _known(np.not_equal),
    "and": _and,
    "or": _or,
    "min": _known(lambda x, y: np.where(y < x, y, x)),
    "max": _known(lambda x, y: np.where(y > x, y, x)),
}


# Numba ------------------------------------------------------------------------------------------------------


def compute(tree: Tree, columns: Mapping[str, Array], rows: int) -> Array:
    """The value of every row, by the Numba kernel. A bare column comes back as it is, not copied."""
    if isinstance(tree, Number):
        return np.full(rows, tree.value)
    if isinstance(tree, Column):
        return np.asarray(columns[tree.name], np.float64)
    from skyband.kernels.expression import COMPILED

    if not COMPILED:
        return evaluate(tree, columns, rows)
    code = compiled(tree)
    return code.run([columns[name] for name in code.columns], rows)


class Compiled(NamedTuple):
    """A tree as register code. Places are numbered: columns, the result, constants, other registers."""

    columns: tuple[str, ...]
    program: Program
    constants: tuple[float, ...]
    registers: int  # besides those of the constants

    def run(self, columns: Sequence[Array], rows: int) -> Array:
        """The value of every row; `columns` in the order of `self.columns`."""
        from skyband.kernels.expression import BLOCK, Places, run

        # the kernel gets addresses: each array must lie as it expects, and live in this frame until it is done
        sources = [_readable(column) for column in columns]
        if any(len(source) != rows for source in sources):
            raise ValueError(f"columns of lengths {[len(source) for source in sources]} do not hold {rows} rows each")
        result = np.empty(rows)
        memory = np.empty((len(self.constants) + self.registers, min(BLOCK, rows)))
        for register, constant in zip(memory, self.constants, strict=False):
            register.fill(constant)
        moving = [_address(array) for array in (*sources, result)]
        base, width = _address(memory), memory.strides[0]
        address = np.array(moving + [base + width * register for register in range(len(memory))], np.uint64)
        moves = np.array([1] * len(moving) + [0] * len(memory), np.int64)
        run(self.program, Places(address, moves), rows)
        return result


def _readable(column: Array) -> Array:
    """The column itself where a kernel can read it by address, else a copy."""
    array = np.ascontiguousarray(column, np.float64)
    return array if array.flags.aligned else array.copy()


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


@lru_cache(maxsize=1024)
def compiled(tree: Call) -> Compiled:
    """The register code of an operation. Equal parts of the tree are computed once."""
    return Lowering(tree).finished()


class Lowering:
    """Walks a tree depth first and writes one step per operation, handing out registers and taking them back."""

    def __init__(self, tree: Call) -> None:
        from skyband.kernels.expression import OPCODES

        self.tree = tree
        self.columns = self._moving(tree)
        self.uses: Counter[Tree] = Counter({tree: 1})  # how often a part's value is still to be read
        self.constants: dict[Number, int] = {}
        self._count(tree)
        self.place_of: dict[Tree, int] = {Column(name): place for place, name in enumerate(self.columns)}
        self.result = len(self.columns)
        self.place_of |= {number: self.result + 1 + place for number, place in self.constants.items()}
        self.first_register = self.result + 1 + len(self.constants)
        self.registers = 0
        self.free: list[int] = []
        self.steps: list[tuple[int, int, int, int, int]] = []
        self.opcodes = OPCODES

    def _moving(self, tree: Call) -> tuple[str, ...]:
        """The columns that are read row by row: all there are."""
        return tree.columns()

    def finished(self) -> Compiled:
        self._place(self.tree)
        program = self._program(self.steps)
        return Compiled(self.columns, program, tuple(number.value for number in self.constants), self.registers)

    def _program(self, steps: list[tuple[int, int, int, int, int]]) -> Program:
        from skyband.kernels.expression import Program

        return Program(*np.array(steps, np.int64).reshape(-1, 5).T.copy())

    def _count(self, tree: Call) -> None:
        for argument in tree.args:
            self.uses[argument] += 1
            if isinstance(argument, Number):
                self.constants.setdefault(argument, len(self.constants))
            elif isinstance(argument, Call) and self.uses[argument] == 1:
                self._count(argument)

    def _place(self, tree: Tree) -> int:
        """Where the value of `tree` lies, once the steps so far are done."""
        if tree in self.place_of:
            return self.place_of[tree]
        assert isinstance(tree, Call)
        if is_square(tree):
            place = self._step("*", tree, *[self._place(tree.args[0])] * 2)
            self._read(*tree.args)
        elif len(tree.args) > 1 and tree.op != "where":
            place = self._fold(tree)
        else:
            place = self._step(tree.op, tree, *[self._place(argument) for argument in tree.args])
            self._read(*tree.args)
        self.place_of[tree] = place
        return place

    def _fold(self, tree: Call) -> int:
        """`a + b + c` as two steps: each operand is computed when its turn comes, so few registers are needed."""
        place = self._place(tree.args[0])
        for number, argument in enumerate(tree.args[1:], 1):
            other = self._place(argument)
            before, place = place, self._step(tree.op, tree if number == len(tree.args) - 1 else None, place, other)
            self._read(argument)
            if number == 1:
                self._read(tree.args[0])
            else:
                self._release(before)
        return place

    def _step(self, op: str, part: Call | None, *places: int) -> int:
        """Write a step that computes `part` (None: something in between) and return where to."""
        if part is self.tree:
            target = self.result
        elif self.free:
            target = self.free.pop()
        else:
            target = self.first_register + self.registers
            self.registers += 1
        self.steps.append(self._code(op, target, places))
        return target

    def _code(self, op: str, target: int, places: tuple[int, ...]) -> tuple[int, int, int, int, int]:
        first, second, third = (*places, *[places[0]] * (3 - len(places)))
        return self.opcodes[op], target, first, second, third

    def _release(self, place: int) -> None:
        """The value of a register will not be read again."""
        self.free.append(place)

    def _read(self, *parts: Tree) -> None:
        """The parts have been read once; a register that will not be read again is free."""
        for part in parts:
            self.uses[part] -= 1
            if isinstance(part, Call) and self.uses[part] == 0:
                self._release(self.place_of[part])

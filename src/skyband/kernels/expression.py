"""The arithmetic of scores: one compiled loop that runs any expression, so none is ever compiled by itself.

An expression arrives as register code: each step names an operation, the place its result goes to and the
places of its operands. A place is the address of a block of float64: a stretch of a column or of the result,
which moves on with every block, or a register (a constant repeated, or something in between), which stays.
A block of rows runs through all steps before the next one begins, so registers stay in the fastest cache and
columns are read where they lie, without a copy.

Unknown (NaN) in, unknown out; see `skyband.scores.evaluation` for the rules, and for the same arithmetic in NumPy.
exp, log, log1p, sin, cos and pow are the C library's, called for one number at a time, as Python's `math`
does: a vectorized variant could differ in the last bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import carray, config, types  # type: ignore[attr-defined]
from numba.core import cgutils
from numba.extending import intrinsic

from skyband.kernels.jit import jit

COMPILED = not config.DISABLE_JIT  # type: ignore[attr-defined]
"""Whether `run` can be called: it works on addresses, which plain Python cannot."""

BLOCK = 1024
"""Rows in a block: a register is 8 KiB."""

OPERATIONS = (
    *("neg", "+", "-", "*", "/", "%", "**"),
    *("<", "<=", ">", ">=", "==", "!=", "not", "and", "or"),
    *("abs", "sqrt", "exp", "log", "log1p", "sin", "cos", "floor", "ceil", "min", "max", "where"),
)
OPCODES = {operation: code for code, operation in enumerate(OPERATIONS)}

_NEGATE, _ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _MODULO, _POWER = range(7)
_LESS, _LESS_EQUAL, _GREATER, _GREATER_EQUAL, _EQUAL, _NOT_EQUAL, _NOT, _AND, _OR = range(7, 16)
_ABS, _SQRT, _EXP, _LOG, _LOG1P, _SIN, _COS, _FLOOR, _CEIL, _MIN, _MAX, _WHERE = range(16, 28)

_BYTES = 8  # of a float64


class Program(NamedTuple):
    """Register code. Places are numbers of entries in the table of addresses that `run` is given."""

    operation: np.ndarray  # int64[steps]: an opcode
    target: np.ndarray  # int64[steps]: place of the result; never that of an operand, so that loops vectorize
    first: np.ndarray  # int64[steps]: place of the first operand
    second: np.ndarray  # int64[steps]: place of the second; an operation with fewer operands repeats the first
    third: np.ndarray  # int64[steps]: place of the third


class Places(NamedTuple):
    """Where the blocks lie."""

    address: np.ndarray  # uint64[places]: of the first block
    moves: np.ndarray  # int64[places]: 1 for a column or the result, 0 for a register


@intrinsic
def pointer(typingctx, address):
    """An address, as something carray() takes."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), generate


@intrinsic
def call_libm(typingctx, name, x, y):
    """The C library's function `name` of x, or for "pow" and "fmod" of x and y.

    Marked nobuiltin, so that LLVM neither folds the call nor swaps it for a vector library's.
    """
    if not isinstance(name, types.StringLiteral):
        return None  # numba asks again with the literal
    symbol = name.literal_value
    arity = 2 if symbol in ("pow", "fmod") else 1

    def generate(context, builder, signature, arguments):
        double = ir.DoubleType()
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(double, [double] * arity), symbol)
        function.attributes.add("nobuiltin")
        function.attributes.add("nounwind")
        return builder.call(function, arguments[1 : 1 + arity])

    return types.float64(name, types.float64, types.float64), generate


@jit
def _block(places, place, begin, rows):
    """The `rows` numbers at `place` that belong to the rows from `begin` on."""
    return carray(pointer(places.address[place] + np.uint64(places.moves[place] * begin * _BYTES)), (rows,), np.float64)


@jit
def modulo(x, y):
    """Python's %: the sign of the divisor."""
    rest = call_libm("fmod", x, y)
    if rest == 0.0:
        return math.copysign(0.0, y)
    return rest + y if (y < 0.0) != (rest < 0.0) else rest


@jit
def run(program, places, rows):
    """Run the program over all rows, block by block."""
    for begin in range(0, rows, BLOCK):
        count = min(BLOCK, rows - begin)
        for step in range(len(program.operation)):
            out = _block(places, program.target[step], begin, count)
            x = _block(places, program.first[step], begin, count)
            y = _block(places, program.second[step], begin, count)
            z = _block(places, program.third[step], begin, count)
            apply(program.operation[step], out, x, y, z)


@jit
def apply(operation, out, x, y, z):
    """One step: out[i] from x[i], y[i], z[i], as far as the operation takes them."""
    if operation <= _POWER:
        _arithmetic(operation, out, x, y)
    elif operation <= _OR:
        _logic(operation, out, x, y)
    else:
        _function(operation, out, x, y, z)


@jit
def _arithmetic(operation, out, x, y):
    if operation == _NEGATE:
        for i in range(len(out)):
            out[i] = -x[i]
    elif operation == _ADD:
        for i in range(len(out)):
            out[i] = x[i] + y[i]
    elif operation == _SUBTRACT:
        for i in range(len(out)):
            out[i] = x[i] - y[i]
    elif operation == _MULTIPLY:
        for i in range(len(out)):
            out[i] = x[i] * y[i]
    elif operation == _DIVIDE:
        for i in range(len(out)):
            out[i] = x[i] / y[i]
    elif operation == _MODULO:
        for i in range(len(out)):
            out[i] = modulo(x[i], y[i])
    elif operation == _POWER:
        for i in range(len(out)):
            # C says nan ** 0 and 1 ** nan are 1; here unknown in is unknown out
            unknown = x[i] != x[i] or y[i] != y[i]
            out[i] = np.nan if unknown else call_libm("pow", x[i], y[i])


@jit
def _logic(operation, out, x, y):
    if operation == _LESS:
        for i in range(len(out)):
            out[i] = np.nan if x[i] != x[i] or y[i] != y[i] else (1.0 if x[i] < y[i] else 0.0)
    elif operation == _LESS_EQUAL:
        for i in range(len(out)):
            out[i] = np.nan if x[i] != x[i] or y[i] != y[i] else (1.0 if x[i] <= y[i] else 0.0)
    elif operation == _GREATER:
        for i in range(len(out)):
            out[i] = np.nan if x[i] != x[i] or y[i] != y[i] else (1.0 if x[i] > y[i] else 0.0)
    elif operation == _GREATER_EQUAL:
        for i in range(len(out)):
            out[i] = np.nan if x[i] != x[i] or y[i] != y[i] else (1.0 if x[i] >= y[i] else 0.0)
    elif operation == _EQUAL:
        for i in range(len(out)):
            out[i] = np.nan if x[i] != x[i] or y[i] != y[i] else (1.0 if x[i] == y[i] else 0.0)
    elif operation == _NOT_EQUAL:
        for i in range(len(out)):
            out[i] = np.nan if x[i] != x[i] or y[i] != y[i] else (1.0 if x[i] != y[i] else 0.0)
    elif operation == _NOT:
        for i in range(len(out)):
            out[i] = np.nan if x[i] != x[i] else (1.0 if x[i] == 0.0 else 0.0)
    elif operation == _AND:
        for i in range(len(out)):
            unknown = x[i] != x[i] or y[i] != y[i]
            out[i] = 0.0 if x[i] == 0.0 or y[i] == 0.0 else (np.nan if unknown else 1.0)
    elif operation == _OR:
        for i in range(len(out)):
            unknown = x[i] != x[i] or y[i] != y[i]
            # abs(x) > 0 is false for NaN, as x != 0 is not
            out[i] = 1.0 if abs(x[i]) > 0.0 or abs(y[i]) > 0.0 else (np.nan if unknown else 0.0)


@jit
def _function(operation, out, x, y, z):
    if operation == _ABS:
        for i in range(len(out)):
            out[i] = abs(x[i])
    elif operation == _SQRT:
        for i in range(len(out)):
            out[i] = math.sqrt(x[i])
    elif operation == _EXP:
        for i in range(len(out)):
            out[i] = call_libm("exp", x[i], 0.0)
    elif operation == _LOG:
        for i in range(len(out)):
            out[i] = call_libm("log", x[i], 0.0)
    elif operation == _LOG1P:
        for i in range(len(out)):
            out[i] = call_libm("log1p", x[i], 0.0)
    elif operation == _SIN:
        for i in range(len(out)):
            out[i] = call_libm("sin", x[i], 0.0)
    elif operation == _COS:
        for i in range(len(out)):
            out[i] = call_libm("cos", x[i], 0.0)
    elif operation == _FLOOR:
        for i in range(len(out)):
            out[i] = np.floor(x[i])
    elif operation == _CEIL:
        for i in range(len(out)):
            out[i] = np.ceil(x[i])
    elif operation == _MIN:
        for i in range(len(out)):
            out[i] = np.nan if x[i] != x[i] or y[i] != y[i] else (y[i] if y[i] < x[i] else x[i])
    elif operation == _MAX:
        for i in range(len(out)):
            out[i] = np.nan if x[i] != x[i] or y[i] != y[i] else (y[i] if y[i] > x[i] else x[i])
    elif operation == _WHERE:
        for i in range(len(out)):
            out[i] = np.nan if x[i] != x[i] else (y[i] if x[i] != 0.0 else z[i])

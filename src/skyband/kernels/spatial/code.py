"""Register code of many expressions, run for one row, or for a whole box of rows at once.

Run for a box, every place holds an interval that all values there lie in, as computed: addition, multiplication and the
like are rounded monotonically, so the ends of an interval are those of the operands' ends; the C library's functions are
trusted to a few units in the last place. A value that may be unknown (NaN) is marked; an empty interval is unknown for
every row. Whatever the function, the result bounds it, which is all a search through boxes of rows needs: where an
expression rises or falls with each attribute and names it once, the bound is reached.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skyband.kernels.expression import OPCODES, call_libm, modulo
from skyband.kernels.jit import jit, lean

# in the order of OPCODES: arithmetic up to _POWER, what says true or false up to _OR, then functions
_NEGATE, _ADD, _SUBTRACT, _MULTIPLY, _DIVIDE, _MODULO, _POWER = (OPCODES[op] for op in ("neg", "+", "-", "*", "/", "%", "**"))
_LESS, _LESS_EQUAL, _GREATER, _GREATER_EQUAL, _EQUAL = (OPCODES[sign] for sign in ("<", "<=", ">", ">=", "=="))
_NOT, _AND, _OR = (OPCODES[name] for name in ("not", "and", "or"))
_ABS, _SQRT, _EXP, _LOG, _LOG1P, _SIN, _COS = (OPCODES[name] for name in ("abs", "sqrt", "exp", "log", "log1p", "sin", "cos"))
_FLOOR, _CEIL, _MIN, _MAX, _WHERE = (OPCODES[name] for name in ("floor", "ceil", "min", "max", "where"))

LOW, HIGH, UNKNOWN = 0, 1, 2  # rows of Codes.scratch while a box is run
_ULPS = 1e-15  # of a result, by which the C library may be off or not monotone
_PERIOD = 2 * math.pi


class Codes(NamedTuple):
    """The expressions of u queries over d attributes. Places of a query: attributes, its constants, its registers."""

    step: np.ndarray  # int64 [steps, 5]: opcode, place of the result, places of three operands
    begin: np.ndarray  # int64 [u + 1]: where a query's steps begin; none for one without code
    constant: np.ndarray  # float64
    constant_begin: np.ndarray  # int64 [u + 1]
    scratch: np.ndarray  # float64 [3, places]: room to run in
    alike: np.ndarray  # int64 [words]: 1 where 64 queries side by side have the same steps, and differ in constants alone
    lanes: np.ndarray  # float64 [words, constants, 64]: their constants
    room: np.ndarray  # float64 [places, columns]: to run many rows or queries in (`code_blocks`), or without columns


@lean
def load_row(codes, q, row, width):
    """Attributes and constants to their places, in the scratch row `width`."""
    scratch = codes.scratch
    for axis in range(row.shape[0]):
        scratch[width, axis] = row[axis]
    place = row.shape[0]
    for at in range(codes.constant_begin[q], codes.constant_begin[q + 1]):
        scratch[width, place] = codes.constant[at]
        place += 1


@lean
def value_of(codes, q, row):
    """The value of query q's expression for a row (float64 [d]): bit for bit that of `skyband.scores.evaluation`."""
    load_row(codes, q, row, 0)
    values = codes.scratch[0]
    result = np.nan
    for at in range(codes.begin[q], codes.begin[q + 1]):
        x, y, z = values[codes.step[at, 2]], values[codes.step[at, 3]], values[codes.step[at, 4]]
        result = _value(codes.step[at, 0], x, y, z)
        values[codes.step[at, 1]] = result
    return result


@lean
def _value(operation, x, y, z):
    if operation <= _POWER:
        return _arithmetic(operation, x, y)
    if operation <= _OR:
        return _logic(operation, x, y)
    return _function(operation, x, y, z)


@lean
def _arithmetic(operation, x, y):
    if operation == _NEGATE:
        return -x
    if operation == _ADD:
        return x + y
    if operation == _SUBTRACT:
        return x - y
    if operation == _MULTIPLY:
        return x * y
    if operation == _DIVIDE:
        return x / y
    if operation == _MODULO:
        return modulo(x, y)
    return np.nan if x != x or y != y else call_libm("pow", x, y)


@lean
def _logic(operation, x, y):
    unknown = x != x or y != y
    if operation == _NOT:
        return np.nan if x != x else 1.0 * (x == 0.0)
    if operation == _AND:
        return 0.0 if x == 0.0 or y == 0.0 else (np.nan if unknown else 1.0)
    if operation == _OR:
        return 1.0 if abs(x) > 0.0 or abs(y) > 0.0 else (np.nan if unknown else 0.0)
    if unknown:
        return np.nan
    if operation == _LESS:
        return 1.0 * (x < y)
    if operation == _LESS_EQUAL:
        return 1.0 * (x <= y)
    if operation == _GREATER:
        return 1.0 * (x > y)
    if operation == _GREATER_EQUAL:
        return 1.0 * (x >= y)
    if operation == _EQUAL:
        return 1.0 * (x == y)
    return 1.0 * (x != y)


@lean
def _function(operation, x, y, z):
    if operation == _ABS:
        return abs(x)
    if operation == _SQRT:
        return math.sqrt(x)
    if operation == _EXP:
        return call_libm("exp", x, 0.0)
    if operation == _LOG:
        return call_libm("log", x, 0.0)
    if operation == _LOG1P:
        return call_libm("log1p", x, 0.0)
    if operation == _SIN:
        return call_libm("sin", x, 0.0)
    if operation == _COS:
        return call_libm("cos", x, 0.0)
    if operation == _FLOOR:
        return np.floor(x)
    if operation == _CEIL:
        return np.ceil(x)
    if operation == _WHERE:
        return np.nan if x != x else (y if x != 0.0 else z)
    if x != x or y != y:
        return np.nan
    if operation == _MIN:
        return y if y < x else x
    return y if y > x else x


# a box of rows ----------------------------------------------------------------------------------------------


@jit
def bounds_of(codes, q, low, high, out):
    """Write to `out` (float64 [3]) the least and greatest value of query q's expression over the rows low <= x <= high, as
    far as they have one, and 1.0 if some row may have none. Least above greatest: none has one."""
    load_row(codes, q, low, LOW)
    load_row(codes, q, high, HIGH)
    scratch = codes.scratch
    scratch[UNKNOWN, : low.shape[0] + codes.constant_begin[q + 1] - codes.constant_begin[q]] = 0.0
    target = 0
    for at in range(codes.begin[q], codes.begin[q + 1]):
        target = codes.step[at, 1]
        bound_step(scratch, codes.step, at, out)
        scratch[LOW, target], scratch[HIGH, target], scratch[UNKNOWN, target] = out[LOW], out[HIGH], out[UNKNOWN]


@lean
def _set(out, low, high, unknown):
    out[LOW], out[HIGH], out[UNKNOWN] = low, high, unknown


@lean
def bound_step(scratch, step, at, out):
    """Write the interval of one step's result, and whether it may be unknown, from those of its operands."""
    operation, first, second, third = step[at, 0], step[at, 2], step[at, 3], step[at, 4]
    a, b, c, d = scratch[LOW, first], scratch[HIGH, first], scratch[LOW, second], scratch[HIGH, second]
    unknown = max(scratch[UNKNOWN, first], scratch[UNKNOWN, second])
    if operation in (_AND, _OR, _NOT):
        _bound_logic(operation, a, b, c, d, unknown, out)
    elif operation == _WHERE:
        _bound_choice(scratch, first, second, third, out)
    elif a > b or c > d:
        _set(out, np.inf, -np.inf, 1.0)
    elif operation <= _POWER:
        if operation == _POWER:
            _bound_power(a, b, c, d, unknown, out)
        elif operation == _MULTIPLY and first == second:
            least = 0.0 if a <= 0.0 <= b else min(a * a, b * b)
            _set(out, least, max(a * a, b * b), unknown)
        else:
            _bound_arithmetic(operation, a, b, c, d, unknown, out)
    elif operation <= _OR:
        _bound_comparison(operation, a, b, c, d, unknown, out)
    else:
        _bound_function(operation, a, b, c, d, unknown, out)


@lean
def _corners(p, q, r, s, unknown, out):
    """The hull of four numbers, those that are none left out."""
    low, high = np.inf, -np.inf
    if p == p:
        low, high = p, p
    if q == q:
        low, high = min(low, q), max(high, q)
    if r == r:
        low, high = min(low, r), max(high, r)
    if s == s:
        low, high = min(low, s), max(high, s)
    none = 1.0 if p != p or q != q or r != r or s != s else unknown
    _set(out, low, high, none)


@lean
def _include_zero(out):
    out[LOW], out[HIGH] = min(out[LOW], 0.0), max(out[HIGH], 0.0)


@lean
def _bound_arithmetic(operation, a, b, c, d, unknown, out):
    if operation == _NEGATE:
        _set(out, -b, -a, unknown)
    elif operation in (_ADD, _SUBTRACT):
        low, high = (a + c, b + d) if operation == _ADD else (a - d, b - c)
        opposite = low != low or high != high or (low == -np.inf and high == np.inf)  # infinities of both signs may meet
        _set(out, low if low == low else -np.inf, high if high == high else np.inf, 1.0 if opposite else unknown)
    elif operation == _MULTIPLY:
        _corners(a * c, a * d, b * c, b * d, unknown, out)
        if a <= 0.0 <= b or c <= 0.0 <= d:
            _include_zero(out)  # which no corner says when the other operand reaches to infinity
            if max(abs(a), abs(b)) == np.inf or max(abs(c), abs(d)) == np.inf:
                out[UNKNOWN] = 1.0
    elif operation == _DIVIDE:
        if c <= 0.0 <= d:
            _set(out, -np.inf, np.inf, 1.0 if a <= 0.0 <= b or max(abs(a), abs(b)) == np.inf else unknown)
        else:
            _corners(a / c, a / d, b / c, b / d, unknown, out)
            if max(abs(c), abs(d)) == np.inf:
                _include_zero(out)
                if max(abs(a), abs(b)) == np.inf:
                    out[UNKNOWN] = 1.0
    elif a == b and c == d and c != 0.0 and max(abs(a), abs(c)) < np.inf:  # of constants
        _set(out, modulo(a, c), modulo(a, c), unknown)
    else:  # modulo: the sign of the divisor, and no more than it
        _set(out, min(c, 0.0), max(d, 0.0), 1.0 if c <= 0.0 <= d or max(abs(a), abs(b)) == np.inf else unknown)


@lean
def _widened(low, high, unknown, out):
    """An interval whose ends the C library computed."""
    least, most = low - abs(low) * _ULPS, high + abs(high) * _ULPS
    _set(out, least if least == least else low, most if most == most else high, unknown)


@lean
def _bound_power(a, b, c, d, unknown, out):
    if a > 0.0 or (a == 0.0 and c > 0.0):  # y · log x is extreme in a corner
        p, q, r, s = call_libm("pow", a, c), call_libm("pow", a, d), call_libm("pow", b, c), call_libm("pow", b, d)
        _widened(min(min(p, q), min(r, s)), max(max(p, q), max(r, s)), unknown, out)
    elif c == d and c == np.floor(c) and 0.0 < c < 1e9:  # a whole power of numbers of any sign
        p, q = call_libm("pow", a, c), call_libm("pow", b, c)
        even = c == 2.0 * np.floor(c / 2.0)
        _widened(0.0 if even and b > 0.0 else min(p, q), max(p, q), unknown, out)
    else:
        _set(out, -np.inf, np.inf, 1.0)


@lean
def _truth(can_be_false, can_be_true, unknown, out):
    _set(out, 0.0 if can_be_false else 1.0, 1.0 if can_be_true else 0.0, unknown)


@lean
def _bound_comparison(operation, a, b, c, d, unknown, out):
    if operation == _LESS:
        _truth(b >= c, a < d, unknown, out)
    elif operation == _LESS_EQUAL:
        _truth(b > c, a <= d, unknown, out)
    elif operation == _GREATER:
        _truth(a <= d, b > c, unknown, out)
    elif operation == _GREATER_EQUAL:
        _truth(a < d, b >= c, unknown, out)
    else:
        can_be_equal, can_differ = a <= d and c <= b, not (a == b == c == d)
        if operation == _EQUAL:
            _truth(can_differ, can_be_equal, unknown, out)
        else:
            _truth(can_be_equal, can_differ, unknown, out)


@lean
def _bound_logic(operation, a, b, c, d, unknown, out):
    """Logic knows more than its operands: false and unknown is false, true or unknown is true."""
    first_zero, second_zero = a <= 0.0 <= b, c <= 0.0 <= d
    first_other, second_other = a <= b and not (a == b == 0.0), c <= d and not (c == d == 0.0)
    can_be_false, can_be_true = first_other, first_zero
    if operation == _AND:
        can_be_false, can_be_true = first_zero or second_zero, first_other and second_other
    elif operation == _OR:
        can_be_false, can_be_true = first_zero and second_zero, first_other or second_other
    _truth(can_be_false, can_be_true, unknown, out)


@lean
def _bound_choice(scratch, condition, chosen, otherwise, out):
    a, b = scratch[LOW, condition], scratch[HIGH, condition]
    low, high, unknown = np.inf, -np.inf, scratch[UNKNOWN, condition]
    if a <= b and not (a == b == 0.0):
        low, high = scratch[LOW, chosen], scratch[HIGH, chosen]
        unknown = max(unknown, scratch[UNKNOWN, chosen])
    if a <= 0.0 <= b:
        low, high = min(low, scratch[LOW, otherwise]), max(high, scratch[HIGH, otherwise])
        unknown = max(unknown, scratch[UNKNOWN, otherwise])
    _set(out, low, high, 1.0 if low > high else unknown)


@lean
def _bound_function(operation, a, b, c, d, unknown, out):
    if operation == _ABS:
        _set(out, 0.0 if a <= 0.0 <= b else min(abs(a), abs(b)), max(abs(a), abs(b)), unknown)
    elif operation == _FLOOR:
        _set(out, np.floor(a), np.floor(b), unknown)
    elif operation == _CEIL:
        _set(out, np.ceil(a), np.ceil(b), unknown)
    elif operation == _MIN:
        _set(out, min(a, c), min(b, d), unknown)
    elif operation == _MAX:
        _set(out, max(a, c), max(b, d), unknown)
    elif operation == _EXP:
        _widened(call_libm("exp", a, 0.0), call_libm("exp", b, 0.0), unknown, out)
    elif operation in (_SIN, _COS):
        _bound_wave(operation, a, b, unknown, out)
    else:
        _bound_from_floor(operation, a, b, unknown, out)


@lean
def _bound_from_floor(operation, a, b, unknown, out):
    """Functions that rise, and are unknown below some number."""
    floor = -1.0 if operation == _LOG1P else 0.0
    if b < floor:
        _set(out, np.inf, -np.inf, 1.0)
        return
    unknown = 1.0 if a < floor else unknown
    a = max(a, floor)
    if operation == _SQRT:
        _set(out, math.sqrt(a), math.sqrt(b), unknown)
    elif operation == _LOG:
        _widened(call_libm("log", a, 0.0), call_libm("log", b, 0.0), unknown, out)
    else:
        _widened(call_libm("log1p", a, 0.0), call_libm("log1p", b, 0.0), unknown, out)


@lean
def _bound_wave(operation, a, b, unknown, out):
    """1 or -1 where a crest or trough may lie between the ends; a little too readily."""
    if not b - a < _PERIOD or max(abs(a), abs(b)) > 1e6:
        _set(out, -1.0, 1.0, 1.0 if max(abs(a), abs(b)) == np.inf else unknown)
        return
    name_is_sin = operation == _SIN
    p = call_libm("sin", a, 0.0) if name_is_sin else call_libm("cos", a, 0.0)
    q = call_libm("sin", b, 0.0) if name_is_sin else call_libm("cos", b, 0.0)
    crest = math.pi / 2 if name_is_sin else 0.0
    slack = 1e-9
    low, high = min(p, q), max(p, q)
    if np.ceil((a - crest) / _PERIOD - slack) <= (b - crest) / _PERIOD + slack:
        high = 1.0
    if np.ceil((a - crest) / _PERIOD - 0.5 - slack) <= (b - crest) / _PERIOD - 0.5 + slack:
        low = -1.0
    _widened(low, high, unknown, out)
    out[LOW], out[HIGH] = max(out[LOW], -1.0), min(out[HIGH], 1.0)  # no wave is higher, as over a longer interval

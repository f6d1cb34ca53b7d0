"""The relations claims are made of. Each gives numbers, one a column or one for all, that a bound must not be below.

`of` and `than` are lines of one table: a cell for each column where there is a figure of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import exp, inf, log

from repro.experiment import Cell

Line = list[Cell]
Numbers = list[tuple[str, float]]  # (column, number)


@dataclass(frozen=True)
class Relation:
    """A named way to turn lines into numbers.

    `own`: has a meaning for the paper's figures alone. `absolute`: sets ours against the paper's, on the same data.
    """

    text: str
    numbers: Callable[[Line, Line], Numbers]
    own: bool = False
    absolute: bool = False


def _name(cell: Cell) -> str:
    return f"{cell.axis}={cell.column}"


def _ours(cell: Cell) -> float:
    assert cell.ours is not None
    return cell.ours


def _paper(cell: Cell) -> float:
    assert cell.paper is not None
    return cell.paper


def _at_most(of: Line, than: Line) -> Numbers:
    return [(_name(a), _ours(a) / _ours(b)) for a, b in zip(of, than, strict=True)]


def _at_most_printed(of: Line, than: Line) -> Numbers:
    return [(_name(cell), _ours(cell) / _paper(cell)) for cell in of]


def _off_printed(of: Line, than: Line) -> Numbers:
    return [(_name(cell), abs(_ours(cell) / _paper(cell) - 1)) for cell in of]


def _gains_as_printed(of: Line, than: Line) -> Numbers:
    pairs = zip(of, than, strict=True)
    return [(_name(a), (_ours(a) / _ours(b)) / (_paper(a) / _paper(b))) for a, b in pairs]


def _spread(line: Line) -> float:
    figures = [_ours(cell) for cell in line]
    return max(figures) / min(figures)


def _steadier(of: Line, than: Line) -> Numbers:
    if len(of) < 2:
        return []
    return [(f"{of[0].axis}: {_spread(of):.1f}× against {_spread(than):.1f}×", _spread(of) / _spread(than))]


def _fades(of: Line, than: Line) -> Numbers:
    numbers = [number for _, number in _at_most(of, than)]
    third = max(len(numbers) // 3, 1)
    if len(numbers) < 2:
        return []
    begin, end = mean(numbers[:third]), mean(numbers[-third:])
    return [(f"{begin:.2f} at first, {end:.2f} at last", begin / end)]


def _random_order(of: Line, than: Line) -> Numbers:
    numbers = []
    for cell in of:
        harmonic = sum(1 / i for i in range(cell.k + 1, cell.size + 1))
        numbers.append((_name(cell), abs(_ours(cell) / (cell.k * (1 + harmonic)) - 1)))
    return numbers


def _itself(of: Line, than: Line) -> Numbers:
    return [(_name(cell), _ours(cell)) for cell in of]


def _inverse(of: Line, than: Line) -> Numbers:
    return [(_name(cell), 1 / _ours(cell) if _ours(cell) else inf) for cell in of]


def _in_all(of: Line, than: Line) -> Numbers:
    ours, theirs = (sum(map(_ours, line)) for line in (of, than))
    return [(f"{ours:.3g} against {theirs:.3g}", ours / theirs)] if theirs else []


def _off_by(expected: float) -> Callable[[Line, Line], Numbers]:
    return lambda of, than: [(name, abs(number - expected)) for name, number in _at_most(of, than)]


def _grows(of: Line, than: Line) -> Numbers:
    return [(f"{_name(of[0])} to {of[-1].column}", _ours(of[-1]) / _ours(of[0]))] if len(of) > 1 else []


def _falls(of: Line, than: Line) -> Numbers:
    return [(f"{_name(a)} to {b.column}", _ours(b) / _ours(a)) for a, b in pairwise(of)]


def _shrinks(of: Line, than: Line) -> Numbers:
    return [(where, 1 / number) for where, number in _grows(of, than)]


def _least_at_last(of: Line, than: Line) -> Numbers:
    least = min(of, key=_ours)
    return [(f"least at {_name(least)}", _ours(of[-1]) / _ours(least))] if len(of) > 1 else []


def _least_at(column: str) -> Callable[[Line, Line], Numbers]:
    def numbers(of: Line, than: Line) -> Numbers:
        least = min(of, key=_ours)
        return [(f"least at {_name(least)}", _ours(cell) / _ours(least)) for cell in of if cell.column == column]

    return numbers


def _levels_off(of: Line, than: Line) -> Numbers:
    first, middle, last = (_ours(of[place]) for place in (0, len(of) // 2, -1))
    if len(of) < 3 or first <= middle:
        return []
    return [(f"{first:.3g}, {middle:.3g}, {last:.3g}", max(middle - last, 0.0) / (first - middle))]


def _gains_late(of: Line, than: Line) -> Numbers:
    middle = of[len(of) // 2]
    return [(f"{_name(middle)} to {of[-1].column}", _ours(middle) / _ours(of[-1]))] if len(of) > 2 else []


def _off_a_line(of: Line, than: Line) -> Numbers:
    """What a straight line, fitted by least squares over all columns, leaves unexplained; it must rise."""
    x, y = _places(of), [_ours(cell) for cell in of]
    if len(of) < 3:
        return []
    slope, left = _fitted(x, y)
    share = left / sum((value - sum(y) / len(y)) ** 2 for value in y) if slope > 0 else inf
    return [(f"{_name(of[0])} to {of[-1].column}, {slope:.3g} for each of {of[0].axis}", share)]


def _power(of: Line, than: Line) -> Numbers:
    """The power of the parameter that a line grows with, fitted over all columns."""
    if len(of) < 2:
        return []
    power, _ = _fitted([log(place) for place in _places(of)], [log(_ours(cell)) for cell in of])
    return [(f"{_name(of[0])} to {of[-1].column}", power)]


def _below_one(of: Line, than: Line) -> Numbers:
    return [(where, 1 - power) for where, power in _power(of, than)]


def _power_share(of: Line, than: Line) -> Numbers:
    pairs = zip(_power(of, than), _power(than, of), strict=True)
    return [(f"powers {one:.2f} and {other:.2f}", one / other) for (_, one), (_, other) in pairs]


def _places(line: Line) -> list[float]:
    assert all(cell.value is not None for cell in line)
    return [float(cell.value) for cell in line if cell.value is not None]


def _fitted(x: list[float], y: list[float]) -> tuple[float, float]:
    """The slope of the line nearest to the points, and the sum of squares that it leaves."""
    middle, height = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - middle) * (b - height) for a, b in zip(x, y, strict=True)) / sum((a - middle) ** 2 for a in x)
    return slope, sum((b - height - slope * (a - middle)) ** 2 for a, b in zip(x, y, strict=True))


def mean(numbers: list[float]) -> float:
    """The geometric mean: what is twice as much here and half as much there is the same."""
    return exp(sum(map(log, numbers)) / len(numbers))


RELATIONS: dict[str, Relation] = {
    "at most": Relation("{of} ÷ {than}", _at_most, own=True),
    "at most the paper's": Relation("{of} ÷ the paper's {of}", _at_most_printed, absolute=True),
    "off the paper's": Relation("{of} off the paper's {of}", _off_printed, absolute=True),
    "gains as the paper's": Relation("{of} ÷ {than}, over the same in the paper", _gains_as_printed),
    "steadier": Relation("largest ÷ smallest of {of}, over that of {than}", _steadier, own=True),
    "fades": Relation("{of} ÷ {than} in the first third of columns, over the last third", _fades, own=True),
    "itself": Relation("{of}", _itself, own=True),
    "at least one": Relation("1 ÷ {of}", _inverse, own=True),
    "in all": Relation("sum of {of} ÷ sum of {than}", _in_all, own=True),
    "a tenth more": Relation("{of} ÷ {than}, away from 1.1", _off_by(1.1), own=True),
    "grows": Relation("last ÷ first of {of}", _grows, own=True),
    "straight": Relation("what a straight line through all columns leaves unexplained of {of}", _off_a_line),
    "power": Relation("the power with which {of} grows, all columns", _power),
    "in proportion": Relation("1 − the power with which {of} grows, all columns", _below_one),
    "slower": Relation("the power with which {of} grows ÷ that of {than}, all columns", _power_share),
    "shrinks": Relation("first ÷ last of {of}", _shrinks, own=True),
    "falls": Relation("{of} ÷ the column before", _falls, own=True),
    "least at last": Relation("last ÷ least of {of}", _least_at_last, own=True),
    "least at 12": Relation("{of} at 12 ÷ least of {of}", _least_at("12"), own=True),
    "levels off": Relation("what {of} gains after the middle column, over what it gains before", _levels_off, own=True),
    "gains late": Relation("middle ÷ last of {of}", _gains_late, own=True),
    "random order": Relation("{of} off the expected size of a k-skyband, k (1 + H_n − H_k)", _random_order),
}

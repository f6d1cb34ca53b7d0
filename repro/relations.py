"""The relations claims are made of. Each gives numbers, one a column or one for all, that a bound must not be below.

`of` and `than` are lines of one table: a cell for each column where there is a figure of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log

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


def mean(numbers: list[float]) -> float:
    """The geometric mean: what is twice as much here and half as much there is the same."""
    return exp(sum(map(log, numbers)) / len(numbers))


RELATIONS: dict[str, Relation] = {
    "at most": Relation("{of} ÷ {than}", _at_most, own=True),
    "at most the paper's": Relation("{of} ÷ the paper's {of}", _at_most_printed, absolute=True),
    "gains as the paper's": Relation("{of} ÷ {than}, over the same in the paper", _gains_as_printed),
    "steadier": Relation("largest ÷ smallest of {of}, over that of {than}", _steadier, own=True),
    "fades": Relation("{of} ÷ {than} in the first third of columns, over the last third", _fades, own=True),
    "random order": Relation("{of} off the expected size of a k-skyband, k (1 + H_n − H_k)", _random_order),
}

"""What an experiment is: series (lines of a table) over columns (settings), on data sets, with the paper's figures.

`OneQuery` is one of one query and its scores; `repro.many` has those of many queries over points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from repro.streams import DataSet, Source

_E = TypeVar("_E", bound="Experiment")
_OPTIONS = {"m": "partitions"}  # parameters of an algorithm, and what it calls them


@dataclass(frozen=True)
class Setting:
    """What one measurement is taken of. `options` go to the algorithm."""

    data: str
    size: int
    slide: int
    k: int
    algorithm: str
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Column:
    """One setting of the table: the parameter that departs from the defaults, and how."""

    axis: str  # the parameter, as the experiment calls it
    label: str
    value: float
    quick: bool = False  # also part of a quick run


@dataclass(frozen=True)
class Series:
    """One line of the table: an algorithm and what is read off its measurement, a field of it."""

    algorithm: str
    quantity: str
    colour: str
    scale: float = 1.0  # what that is multiplied by
    detail: bool = False  # beyond what the paper shows: drawn lightly


@dataclass(frozen=True)
class Experiment:
    """A table of a paper. `figures[data][series]` are the paper's, one for each column, where it prints any."""

    name: str
    paper: str
    table: str
    title: str
    unit: str
    data: Mapping[str, Source]
    series: Mapping[str, Series]
    columns: tuple[Column, ...]
    figures: Mapping[str, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)
    reference: str = ""  # figures are shown relative to this series' mean: seconds depend on the machine
    recorded: str = ""  # the unit of the figures as they are recorded, where they are shown relative
    timed: bool = False  # time is what counts: long pieces, several tries
    logarithmic: bool = True  # the scale of its picture
    spaced: bool = False  # columns stand where their values are, so that a straight line is one; else side by side
    axes: Mapping[str, str] = field(default_factory=dict)  # what the parameters are called in pictures
    notes: tuple[str, ...] = field(default=())

    def narrowed(self: _E, columns: tuple[Column, ...]) -> _E:
        """The same with some of its columns only."""
        places = [self.columns.index(column) for column in columns]
        figures = {
            data: {name: tuple(line[place] for place in places) for name, line in lines.items()}
            for data, lines in self.figures.items()
        }
        return replace(self, columns=columns, figures=figures)

    def quick(self: _E) -> _E:
        """The same with the columns of a quick run."""
        return self.narrowed(tuple(column for column in self.columns if column.quick))


@dataclass(frozen=True)
class OneQuery(Experiment):
    """An experiment of one query. Columns: "n" (times the default window), "k", "s" (times the window), "m" (partitions)."""

    data: Mapping[str, DataSet]
    k: int = 100
    slide_share: float = 0.001

    def setting(self, data: str, series: str, column: Column) -> Setting:
        """The setting of one cell."""
        size, k, share = self.data[data].size, self.k, self.slide_share
        options: tuple[tuple[str, Any], ...] = ()
        if column.axis == "n":
            size = round(size * column.value)
        elif column.axis == "k":
            k = round(column.value)
        elif column.axis == "s":
            share = column.value
        else:
            options = ((_OPTIONS[column.axis], round(column.value)),)
        return Setting(data, size, max(1, round(share * size)), k, self.series[series].algorithm, options)


@dataclass(frozen=True)
class Cell:
    """One figure of a table: ours and the paper's, or why there is none."""

    data: str
    series: str
    axis: str
    column: str
    size: int
    slide: int
    k: int
    ours: float | None
    paper: float | None
    reason: str = ""
    value: float | None = None  # of the parameter, where it is a number


def walk(experiment: Any, step: Callable[[str], None], cell: Callable[[str, str, Any], Cell]) -> list[Cell]:
    """Every cell of an experiment, by data, column and series; `step` is told of each column before it is measured."""
    cells: list[Cell] = []
    for data, source in experiment.data.items():
        for column in experiment.columns:
            step(f"{experiment.table}  {source.label}  {column.axis} = {column.label}")
            cells += [cell(data, name, column) for name in experiment.series]
    return cells


def lines_of(cells: list[Cell], data: str, axes: tuple[str, ...] = (), columns: tuple[str, ...] = ()) -> dict[str, list[Cell]]:
    """The cells of one data set by series, in the order of the columns; of some axes or columns only, where named."""
    lines: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.data == data and (not axes or cell.axis in axes) and (not columns or cell.column in columns):
            lines.setdefault(cell.series, []).append(cell)
    return lines


def measured(experiment: Any, line: Any, setting: Any, effort: Any, taken: dict[Any, Any]) -> float:
    """What a line shows of a setting, which is measured once for all lines, and for all experiments that share it."""
    key = (experiment.measure, setting)
    if key not in taken:
        taken[key] = experiment.measure(setting, effort)
    return line.scale * getattr(taken[key], line.quantity)

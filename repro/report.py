"""Tables for people, JSON for the record."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from repro.claim import Claim
from repro.claims import CLAIMS, EXPERIMENTS, FAILS, HOLDS, OPEN, Verdict
from repro.experiment import Cell, Experiment, lines_of
from repro.relations import mean
from repro.streams import Source

_COLOUR = {HOLDS: "green", FAILS: "red", OPEN: "yellow"}
_WIDTH = 150  # tables are this wide where no terminal says otherwise
_COLUMNS = 17  # of figures that fit into it


def console() -> Console:
    """A console wide enough for a paper's table."""
    found = Console()
    return found if found.is_terminal and found.width >= _WIDTH else Console(width=_WIDTH)


def claims_table() -> Table:
    """Every claim: where it is made, what it says, what must hold."""
    table = Table("experiment", "claim", "says", "must hold", "on", title="What the papers claim", box=SIMPLE_HEAD)
    previous = ""
    for claim in CLAIMS:
        experiment = EXPERIMENTS[claim.experiment]
        shown = [experiment.data[name] for name in claim.data or experiment.data]
        on = "all data" if len(shown) == len(experiment.data) else ", ".join(data.label for data in shown)
        if previous not in ("", claim.experiment):
            table.add_section()
        table.add_row("" if claim.experiment == previous else claim.experiment, claim.name, claim.says, claim.wants, on)
        previous = claim.experiment
    return table


def data_table() -> Table:
    """Every data set: which stream is measured for it, and whether it is at hand."""
    table = Table("data", "stream measured", "default n", "", title="On which data", box=SIMPLE_HEAD)
    shown: dict[tuple[str, str], Source] = {}
    for experiment in EXPERIMENTS.values():
        shown |= {(experiment.paper, name): data for name, data in experiment.data.items()}
    for data in shown.values():
        missing = data.missing() or "[green]at hand[/]"
        table.add_row(data.label, data.stands_in or "as the paper says", f"{data.size:,}", missing)
    return table


def scale_of(experiment: Experiment, lines: dict[str, list[Cell]], *, paper: bool) -> float | None:
    """What figures of one data set are divided by: the mean of the reference series, if there is one."""
    if not experiment.reference:
        return 1.0
    cells = [cell for cell in lines[experiment.reference] if cell.ours is not None]
    figures = [figure for cell in cells if (figure := cell.paper if paper else cell.ours) is not None]
    return mean(figures) if figures else None


def _show(figure: float | None, scale: float | None) -> str:
    if figure is None or scale is None:
        return "·"
    value = figure / scale
    if 0 < value < 0.1:
        return f"{value:.2g}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 10 else f"{value:.2f}"


def _lines(experiment: Experiment, cells: list[Cell]) -> Iterator[RenderableType]:
    """A table for each data set: ours above the paper's."""
    for data, source in experiment.data.items():
        lines = lines_of(cells, data)
        title = source.label + (f" (stand-in: {source.stands_in})" if source.stands_in else "")
        reasons = [[cell.reason for cell in line if cell.reason] for line in lines.values()]
        if all(cell.ours is None for line in lines.values() for cell in line):
            yield Text(f"{title}: {reasons[0][0]}\n", style="yellow")
            continue
        yield Text(title, style="italic")
        for axes in _side_by_side(experiment):
            yield _table(experiment, lines, axes)


def _side_by_side(experiment: Experiment) -> list[tuple[str, ...]]:
    """The parameters, in order, as many in one table as it has room for."""
    counts = Counter(column.axis for column in experiment.columns)
    tables: list[tuple[str, ...]] = [()]
    for axis, count in counts.items():
        if tables[-1] and sum(counts[one] for one in tables[-1]) + count > _COLUMNS:
            tables.append(())
        tables[-1] += (axis,)
    return tables


def _table(experiment: Experiment, lines: dict[str, list[Cell]], axes: tuple[str, ...]) -> Table:
    """One data set over some of the parameters: ours above the paper's."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 0, 0, 1))
    table.add_column("")
    table.add_column("")
    previous = ""
    for column in (column for column in experiment.columns if column.axis in axes):
        head = f"{column.axis} =" if column.axis != previous else ""
        table.add_column(f"{head}\n{column.label}", justify="right")
        previous = column.axis
    ours, paper = (scale_of(experiment, lines, paper=paper) for paper in (False, True))
    for name, whole in lines.items():
        line = [cell for cell in whole if cell.axis in axes]
        table.add_row(name, "ours", *(_show(cell.ours, ours) for cell in line))
        if any(cell.paper is not None for cell in line):
            table.add_row("", "paper", *(_show(cell.paper, paper) for cell in line), style="dim")
    return table


def _verdicts(experiment: Experiment, claims: list[Claim], verdicts: list[Verdict]) -> Table:
    table = Table("claim", "must hold", "data", "measured", "paper's", "verdict", "why", title="Verdicts", box=SIMPLE_HEAD)
    for claim in claims:
        wants = claim.wants
        for verdict in (entry for entry in verdicts if entry.claim == claim.name):
            measured = "·" if verdict.measured is None else f"{verdict.measured:.3g}"
            printed = "" if verdict.printed is None else f"{verdict.printed:.3g}"
            label = experiment.data[verdict.data].label
            shown = Text(verdict.verdict, style=_COLOUR[verdict.verdict])
            table.add_row(claim.name if wants else "", wants, label, measured, printed, shown, verdict.reason)
            wants = ""
        table.add_section()
    return table


def outcome(experiment: Experiment, cells: list[Cell], claims: list[Claim], verdicts: list[Verdict]) -> Group:
    """All there is to say of an experiment."""
    unit = experiment.unit
    if experiment.reference:
        unit = f"time, as multiples of the mean of {experiment.reference} on the same data"
    head = Text(f"\n{experiment.paper}, {experiment.table}: {experiment.title} ({unit})", style="bold")
    notes = [Text(f"note: {note}", style="dim") for note in experiment.notes]
    return Group(head, *notes, Text(""), *_lines(experiment, cells), _verdicts(experiment, claims, verdicts))


def summary(verdicts: list[Verdict]) -> str:
    """How many claims hold, do not hold, cannot be compared."""
    counts = [(sum(entry.verdict == word for entry in verdicts), word) for word in (HOLDS, FAILS, OPEN)]
    return ", ".join(f"[{_COLOUR[word]}]{count} {word}[/]" for count, word in counts)


def write(
    folder: Path, experiment: Experiment, cells: list[Cell], verdicts: list[Verdict], shown: Group, *, quick: bool
) -> Path:
    """The outcome as JSON, and the tables as text beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "experiment": experiment.name,
        "paper": experiment.paper,
        "table": experiment.table,
        "title": experiment.title,
        "unit": experiment.recorded or experiment.unit,
        "quick": quick,
        "on": {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()},
        "verdicts": [verdict.as_json() for verdict in verdicts],
        "cells": [asdict(cell) for cell in cells],
    }
    path = folder / f"{experiment.name}.json"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    with path.with_suffix(".txt").open("w") as text:
        Console(file=text, width=_WIDTH).print(shown)
    return path

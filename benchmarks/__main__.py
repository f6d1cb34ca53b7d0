"""`./run bench [numbers|across|points|pairs|grid|spark|record]`: tables for people, JSON and pictures for the record."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks import across, grid, numbers, plot, record
from benchmarks.figure import Figure
from skyband.console import wide_console

RESULTS = Path(__file__).parent / "results"
app = typer.Typer(add_completion=False, no_args_is_help=False)
console = wide_console()
lines = Console(quiet=True)  # with --json: what programs read, on standard output; people's tables go to standard error then


def _to_programs() -> None:
    """From now on one JSON object a line."""
    global console, lines
    console, lines = Console(stderr=True), Console(soft_wrap=True, highlight=False, markup=False)


def _line(found: dict[str, Any]) -> None:
    lines.print(json.dumps(found, ensure_ascii=False), soft_wrap=True)


def _machine() -> dict[str, Any]:
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    return {"cores": os.cpu_count(), "machine": platform.machine()} | versions


def _write(name: str, document: dict[str, Any]) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"on": _machine()} | document, indent=1, ensure_ascii=False) + "\n")
    return path


@app.command("numbers")
def numbers_command(quick: Annotated[bool, typer.Option("--quick", help="shorter streams, rougher figures")] = False) -> None:
    """The promised figures, each beside its yardstick."""
    _show("Numbers to hold", "numbers", lambda say: numbers.figures(say, quick=quick), quick=quick)


@app.command("across")
def across_command(quick: Annotated[bool, typer.Option("--quick", help="shorter streams, rougher figures")] = False) -> None:
    """Of the promised figures, those of objects across streams."""
    _show("Across streams", "across", lambda say: across.across(say, quick=quick), quick=quick)


@app.command("points")
def points_command(quick: Annotated[bool, typer.Option("--quick", help="smaller windows, rougher figures")] = False) -> None:
    """Many queries over points: grid, scan and what auto makes of them; ten thousand queries at once."""
    from benchmarks.points import points

    _show("Points", "points", lambda say: points(say, quick=quick), quick=quick)


@app.command("pairs")
def pairs_command(quick: Annotated[bool, typer.Option("--quick", help="shorter streams, rougher figures")] = False) -> None:
    """Pairs of rows beside scores alone, and other figures of theirs."""
    from benchmarks.pairs import pair_figures

    _show("Pairs", "pairs", lambda say: pair_figures(say, Figure, quick=quick), quick=quick)


def _show(
    title: str,
    name: str,
    measured: Callable[[Callable[[str], None]], Iterable[Figure]],
    *,
    some: bool = False,
    quick: bool = False,
) -> None:
    """Figures as a table for people and a file for the record; where they are `some` of what the file has, the others stay.
    Rough ones have a file of their own."""
    name += "-quick" if quick else ""
    table = Table("what", "beside", "hold", "measured", "", "detail", title=title)
    found = []
    with console.status("warming up") as status:
        for figure in measured(lambda text: status.update(text)):
            found.append(figure)
            _line(figure.as_json())
            sign = "≤" if figure.at_most else "≥"
            mark = "" if not figure.hold else "[green]holds[/]" if figure.holds else "[red]missed[/]"
            hold = f"{sign} {figure.hold:g} {figure.unit}" if figure.hold else ""
            table.add_row(figure.what, figure.yardstick, hold, f"{figure.measured:.3g}", mark, figure.detail)
            console.log(f"{figure.what} / {figure.yardstick}: {figure.measured:.3g} {figure.unit} ({figure.detail})")
    console.print(table)
    figures = [figure.as_json() for figure in found]
    path = _write(name, {"figures": [*(_others(name, figures) if some else ()), *figures]})
    promised = [figure for figure in found if figure.hold]
    console.print(f"written to {path}; {sum(figure.holds for figure in promised)} of {len(promised)} hold")


def _others(name: str, figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the file has that is not measured here."""
    path, known = RESULTS / f"{name}.json", {(one["what"], one["yardstick"]) for one in figures}
    recorded = json.loads(path.read_text())["figures"] if path.exists() else []
    return [one for one in recorded if (one["what"], one["yardstick"]) not in known]


@app.command("grid")
def grid_command(
    emit: Annotated[
        str, typer.Option(help='"changes": every window is answered; "none": only the last of a batch')
    ] = "changes",
    budget: Annotated[float, typer.Option(help="seconds auto is measured in a round; the others take the same rows")] = 0.02,
    rounds: Annotated[int, typer.Option(min=1, help="how often the algorithms take turns; the fastest counts")] = 3,
    only: Annotated[str, typer.Option(help="only cells whose size:slide:k begins with this, as in 10000:1:")] = "",
) -> None:
    """Every algorithm over sizes, slides, k and data."""
    cells = [cell for cell in grid.settings(emit=emit) if f"{cell.size}:{cell.slide}:{cell.k}".startswith(only)]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("grid", total=len(cells))

        def step(cell: Any) -> None:
            bar.update(task, advance=1, description=f"{cell.data} n={cell.size} s={cell.slide} k={cell.k} {cell.algorithm}")

        results = [result.as_json() for result in grid.run(cells, step, budget=budget, rounds=rounds)]
    for result in results:
        _line(result)
    verdicts = grid.auto_against_best(results)
    shares = grid.time_of(results, "sap", "mintopk")
    document = {"cells": results, "auto": verdicts, "sap of mintopk": shares}
    path = _write(f"grid-{emit}{'-part' if only else ''}", document)
    worst = sorted(verdicts, key=lambda verdict: -verdict["times_best"])[:15]
    table = Table("data", "n", "s", "k", "auto chose", "best", "times the best's time", title="auto, worst cells")
    for verdict in worst:
        table.add_row(
            *(str(verdict[x]) for x in ("data", "size", "slide", "k", "chosen", "best")), f"{verdict['times_best']:.2f}"
        )
    console.print(table)
    within = sum(verdict["times_best"] <= 1.3 for verdict in verdicts)
    console.print(f"written to {path}; auto within 1.3 times of the best in {within} of {len(verdicts)} cells")
    left_out = [result for result in results if result["rows_per_second"] is None]
    console.print(f"{len(left_out)} of {len(results)} measurements are left out: their windows did not fill in time")
    slower = [share for share in shares if share["share"] > 1]
    worst_share = max(slower, key=lambda share: share["share"], default=None)
    console.print(f"sap is slower than mintopk in {len(slower)} of {len(shares)} cells; worst: {worst_share}")
    for picture in [] if only else plot.grid_pictures(results, RESULTS, emit):
        console.print(f"drawn {picture}")


@app.command("spark")
def spark_command(
    what: Annotated[
        str, typer.Argument(help="rivals (Spark's own and hand-written ways), queries, cores, skew, latency or flink")
    ] = "rivals",
    events: Annotated[
        int, typer.Option(min=1000, help="how many; a slow system gets fewer, and the table says so")
    ] = 5_000_000,
    settings: Annotated[str, typer.Option(help="which of A,B,C; all of them by default")] = "",
    scores: Annotated[str, typer.Option(help="which of uniform,sine,falling")] = "uniform,sine",
    systems: Annotated[str, typer.Option(help="names, as in skyband,driver-merge; all of them by default")] = "",
    repeat: Annotated[int, typer.Option(min=1, help="runs of each; the middle one counts")] = 1,
    check: Annotated[
        bool, typer.Option("--check", help="measure nothing: compare every system's windows with sorting")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="about a minute, rougher figures; not for rivals")] = False,
    queries: Annotated[str, typer.Option(help="for queries: how many, as in 1,1000")] = "",
    windows: Annotated[str, typer.Option(help="for queries: of time or of rows, which hold the same here")] = "time",
    rate: Annotated[int, typer.Option(min=1000, help="for latency: rows a second")] = 50_000,
) -> None:
    """skyband on Spark beside Spark's own ways, a hand-written one and Flink; many queries, cores, skew, latency."""
    from benchmarks.spark.command import compare, figures_of, measure  # needs pyspark, the other commands do not

    if what != "rivals":
        title, measured = figures_of(what, quick, queries, windows, rate)
        _show(title, f"spark-{what}{'-rows' if windows == 'rows' else ''}", measured, some=bool(queries), quick=quick)
    elif check:
        compare(console, settings, scores, systems)
    else:
        measure(console, RESULTS, _write, _line, events, settings, scores, systems, repeat)


@app.command("record")
def record_command() -> None:
    """Write docs/promises.md anew from the stored results."""
    record.PAGE.write_text(record.page(RESULTS))
    console.print(f"written to {record.PAGE}")


@app.callback(invoke_without_command=True)
def everything(
    context: typer.Context,
    as_json: Annotated[
        bool, typer.Option("--json", help="before a command: one JSON object a line; tables to standard error")
    ] = False,
) -> None:
    """Without a command: the promised figures."""
    if as_json:
        _to_programs()
    if context.invoked_subcommand is None:
        numbers_command(quick=False)


if __name__ == "__main__":
    app()

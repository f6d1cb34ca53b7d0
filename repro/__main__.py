"""`./run repro`: what the papers claim. `./run repro run [NAME …] [--quick]`: whether it holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from repro import across, intervals, many, pairs, preferences, record, report, runner
from repro.across import AcrossStreams
from repro.claims import EXPERIMENTS, Verdict, claims_of, judge
from repro.experiment import Cell, Experiment, OneQuery
from repro.intervals import Intervals
from repro.many import ManyQueries
from repro.pairs import PairExperiment
from repro.plot import picture
from repro.preferences import Preferences

RESULTS = Path(__file__).parent / "results"
app = typer.Typer(add_completion=False, help=__doc__)


def chosen(names: list[str]) -> list[Experiment]:
    """The experiments called, or beginning with, one of `names`; all where none is given."""
    for name in names:
        if not any(known.startswith(name) for known in EXPERIMENTS):
            raise typer.BadParameter(f"no experiment is called {name!r}; there are: {', '.join(EXPERIMENTS)}")
    return [entry for known, entry in EXPERIMENTS.items() if not names or known.startswith(tuple(names))]


class Measured:
    """Runs experiments; settings they share are measured once."""

    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self.one: runner.Taken = {}
        self.many: many.Taken = {}
        self.across: across.Taken = {}
        self.preferences: preferences.Taken = {}
        self.pairs: pairs.Taken = {}

    def cells(self, experiment: Experiment, step: Callable[[str], None]) -> list[Cell]:
        """Every cell of an experiment, by the runner for its kind."""
        if isinstance(experiment, ManyQueries):
            return many.run(experiment, many.QUICK if self.quick else many.FULL, self.many, step)
        if isinstance(experiment, AcrossStreams):
            return across.run(experiment, across.QUICK if self.quick else across.FULL, self.across, step)
        if isinstance(experiment, Intervals):
            return intervals.run(experiment, self.quick, step)
        if isinstance(experiment, Preferences):
            effort = preferences.QUICK if self.quick else preferences.FULL
            return preferences.run(experiment, effort, self.preferences, step)
        if isinstance(experiment, PairExperiment):
            return pairs.run(experiment, pairs.QUICK if self.quick else pairs.FULL, self.pairs, step)
        assert isinstance(experiment, OneQuery)
        return runner.run(experiment, runner.QUICK if self.quick else runner.FULL, self.one, step)


@app.command("run")
def run_command(
    names: Annotated[list[str] | None, typer.Argument(help="experiments, or how their names begin; default: all")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="some columns only, shorter streams, rougher figures")] = False,
    into: Annotated[Path | None, typer.Option(help="folder for JSON, tables and pictures")] = None,
) -> None:
    """Run experiments; say of each claim whether it holds."""
    folder = into or (RESULTS / "quick" if quick else RESULTS)
    experiments = [entry.quick() if quick else entry for entry in chosen(names or [])]
    console = report.console()
    measured = Measured(quick=quick)
    found: list[Verdict] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        total = sum(len(entry.data) * len(entry.columns) for entry in experiments)
        task = bar.add_task("compiling", total=total, completed=-1)
        for experiment in experiments:
            cells = measured.cells(experiment, lambda text: bar.update(task, advance=1, description=text))
            claims = claims_of(experiment.name)
            verdicts = [verdict for claim in claims for verdict in judge(claim, cells, experiment.data)]
            shown = report.outcome(experiment, cells, claims, verdicts)
            console.print(shown)
            path = report.write(folder, experiment, cells, verdicts, shown, quick=quick)
            console.print(f"written to {path}, drawn {picture(experiment, cells, folder)}")
            found += verdicts
        bar.update(task, completed=total, description="done")
    console.print(report.summary(found))
    if folder == RESULTS:
        record_command()


@app.command("record")
def record_command() -> None:
    """Write the page of all claims from the results that are stored."""
    record.PAGE.write_text(record.page(RESULTS))
    report.console().print(f"written to {record.PAGE}")


@app.callback(invoke_without_command=True)
def claims(context: typer.Context) -> None:
    """Without a command: every claim and the data it is checked on."""
    if context.invoked_subcommand is None:
        console = report.console()
        console.print(report.claims_table())
        console.print(report.data_table())
        console.print("`run` checks them all, `run NAME` some, `--quick` roughly; docs/experiments.md says what came out")


if __name__ == "__main__":
    app()

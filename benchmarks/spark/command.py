"""`./run bench spark`: what a person sees of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pyspark
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.figure import Figure
from benchmarks.spark import check, report
from benchmarks.spark.measure import Run
from benchmarks.spark.runner import chosen, measurements
from benchmarks.spark.settings import EVENTS, FILES_A_BATCH, PER_SECOND, ROWS_A_FILE, SETTINGS
from benchmarks.spark.systems import TABLE, session
from benchmarks.streams import SYNTHETIC


def figures_of(what: str, quick: bool, queries: str, windows: str, rate: int) -> tuple[str, Callable[..., Iterable[Figure]]]:
    """The title of a benchmark that gives figures, and what gives them."""
    from benchmarks.spark import flink, latency, spread
    from benchmarks.spark import queries as many

    try:
        counts = tuple(int(number) for number in queries.split(",") if number.strip())
    except ValueError:
        raise SystemExit(f"--queries must be whole numbers, as in 1,1000; got {queries!r}") from None
    if windows not in ("time", "rows"):
        raise SystemExit(f"--windows must be time or rows; got {windows!r}")
    known: dict[str, tuple[str, Callable[..., Iterable[Figure]]]] = {
        "queries": ("Many queries on one stream", partial(many.queries, quick=quick, counts=counts, windows=windows)),
        "cores": ("Cores", partial(spread.cores, quick=quick)),
        "skew": ("One hot group", partial(spread.skew, quick=quick)),
        "latency": ("From arrival to change row", partial(latency.latency, quick=quick, rows_a_second=rate)),
        "flink": ("Beside Flink", partial(flink.flink, quick=quick)),
    }
    if what not in known:
        raise SystemExit(f"{what!r} is not known; choose from rivals, {', '.join(known)}")
    return known[what]


def measure(
    console: Console,
    results: Path,
    write: Callable[[str, dict[str, Any]], Path],
    line: Callable[[dict[str, Any]], None],
    events: int,
    settings: str,
    scores: str,
    systems: str,
    repeat: int,
) -> None:
    """Measure, print the tables, write JSON and picture, `line` by line too; a run of less than everything goes to files of its
    own."""
    names, asked = chosen(systems, list(TABLE), "the system"), chosen(settings, list(SETTINGS), "the setting")
    streams = chosen(scores, list(SYNTHETIC), "the stream of scores")
    everything = (set(TABLE), set(SETTINGS), {"uniform", "sine"}, EVENTS)
    whole_record = (set(names), set(asked), set(streams), events) == everything
    runs: list[Run] = []
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rows]}"), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar, tempfile.TemporaryDirectory(prefix="skyband-bench-") as scratch:
        whole = bar.add_task("all runs", total=len(names) * len(asked) * len(streams) * repeat, rows="")
        one = bar.add_task("", total=None, rows="")

        def step(what: str, done: int, count: int) -> None:
            bar.update(one, description=what, completed=done, total=count, rows=f"{done:,} of {count:,} events")

        for run in measurements(names, asked, streams, events, repeat, Path(scratch), step):
            runs.append(run)
            line(run.as_json())
            bar.advance(whole)
            bar.reset(one)
            said = f"[red]{escape(run.failure)}[/]" if run.failure else f"{run.throughput:,.0f} events/s"
            console.log(f"{run.setting} {run.scores} {run.system}: {said}")
    console.print(report.runs_table(runs, events))
    figures = report.figures(runs)
    console.print(report.promises_table(figures))
    document = {
        "spark": pyspark.__version__,
        "events_a_second": PER_SECOND,
        "micro_batch": ROWS_A_FILE * FILES_A_BATCH,
        "figures": [figure.as_json() for figure in figures],
        "runs": [run.as_json() for run in runs],
    }
    name = "spark" if whole_record else "spark-part"
    path = write(name, document)
    promised = [figure for figure in figures if figure.hold]
    console.print(f"written to {path}; {sum(figure.holds for figure in promised)} of {len(promised)} hold")
    if any(not run.failure for run in runs):
        console.print(f"drawn {report.picture(runs, results / f'{name}.png')}")
    if any(run.failure for run in runs):
        raise SystemExit(1)


def compare(console: Console, settings: str, scores: str, systems: str) -> None:
    """Compare every system with sorting; leave with code 1 if one differs."""
    names, asked = chosen(systems, list(TABLE), "the system"), chosen(settings, list(SETTINGS), "the setting")
    streams = chosen(scores, list(SYNTHETIC), "the stream of scores")
    bad = []

    def tell(what: str, differences: list[str]) -> None:
        console.print(f"{escape(what)}: {'[red]DIFFERS[/]' if differences else '[green]equal to sorting[/]'}")
        for difference in differences:
            console.print(f"   {escape(difference)}")
        if differences:
            bad.append(what)

    with tempfile.TemporaryDirectory(prefix="skyband-bench-") as scratch, console.status("running"):
        spark = session(Path(scratch) / "local")
        try:
            check.check(
                spark,
                [TABLE[name] for name in names],
                [SETTINGS[name] for name in asked],
                [check.small(stream) for stream in streams],
                Path(scratch),
                tell,
            )
        finally:
            spark.stop()
    if bad:
        console.print(f"[red]{len(bad)} differ from sorting[/]: {escape('; '.join(bad))}")
        raise SystemExit(1)
    console.print("every system gives the windows that sorting gives")

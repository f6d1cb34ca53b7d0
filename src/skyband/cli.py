"""The command line: `skyband demo`, `skyband run JOB.toml`, `skyband algorithms`, `skyband bench`.

People get tables; programs get `--json`, one JSON object per line and nothing else on standard output.
A mistake costs a message and exit code 2, never a traceback.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer

import skyband
from skyband.errors import SkybandError

app = typer.Typer(
    name="skyband",
    help="Standing top-k questions over moving windows.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="One JSON object per line.")]


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        app()
    except SkybandError as problem:
        refuse(str(problem))


def refuse(message: str) -> NoReturn:
    """Say what is wrong and leave with code 2."""
    print(f"skyband: {message}", file=sys.stderr)
    raise SystemExit(2)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"skyband {skyband.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    pass


@app.command()
def demo(
    rows: Annotated[
        int | None,
        typer.Option(min=1, max=50_000_000, help="Trades to generate.", show_default="100,000; embedded: 1,000,000"),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Play the day in about this time; 0: at full speed.",
            show_default="20 in a terminal, 7 embedded; else 0",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another day.")] = 7,
    embedded: Annotated[bool, typer.Option("--embedded", help="In this process, without Spark.")] = False,
    as_json: Json = False,
) -> None:
    """Three standing questions on a day of generated trades, streamed through Spark, every answer checked at the end."""
    if not embedded:
        _need_spark()
        from skyband.console.jobs import play_demo

        raise typer.Exit(play_demo(rows or 100_000, seconds, seed, as_json))
    from rich.console import Console

    from skyband.console import demo as play
    from skyband.console.screen import JsonScreen, LiveScreen, PlainScreen

    console = Console(highlight=False)
    watched = console.is_terminal and not as_json
    screen = JsonScreen() if as_json else LiveScreen(console) if watched else PlainScreen(console)
    try:
        agreed = play.run(screen, rows or 1_000_000, seconds if seconds is not None else 7.0 if watched else 0.0, seed)
    finally:
        screen.close()
    if not agreed:
        print("skyband: the last windows differ from sorting them; please report this", file=sys.stderr)
        raise typer.Exit(1)


@app.command()
def run(
    job: Annotated[Path, typer.Argument(metavar="JOB.toml", help="Source, queries, sink and trigger of the stream.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the file, say what would be done, start nothing.")] = False,
    metrics: Annotated[
        int | None,
        typer.Option("--metrics", metavar="PORT", min=0, max=65535, help="Figures for Prometheus at this port; 0: any."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Answer the queries of a job file over a stream, on Spark. Ctrl-C ends it; its checkpoint goes on from there."""
    _need_spark()
    from skyband.console.jobs import show_plan, watch
    from skyband.spark.jobs.job import read_job

    described = read_job(job)
    if metrics is not None:
        described = replace(described, metrics=replace(described.metrics, port=metrics))
    if dry_run:
        show_plan(described, as_json)
    else:
        watch(described, as_json)


def _need_spark() -> None:
    if importlib.util.find_spec("pyspark") is None:
        refuse("this needs Spark, which is not installed; install it with: pip install 'skyband[spark]'")


@app.command()
def algorithms(as_json: Json = False) -> None:
    """Every algorithm: what it is called, where it was published, what it can do."""
    from skyband.console.screen import write_json

    rows = skyband.algorithms().to_pylist()
    if as_json:
        write_json(rows)
        return
    from rich import box
    from rich.table import Table

    from skyband.console import wide_console

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="dim", pad_edge=False, padding=(0, 1, 0, 0))
    for column in rows[0]:
        longest = max(len(word) for row in rows for word in str(row[column]).split())
        table.add_column(column, no_wrap=column in ("name", "family"), overflow="fold", min_width=longest)
    for row in rows:
        table.add_row(*("yes" if cell is True else "no" if cell is False else str(cell) for cell in row.values()))
    wide_console().print(table)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
def bench(context: typer.Context) -> None:
    """The benchmarks of a source checkout; arguments go to `python -m benchmarks`."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / "benchmarks" / "__main__.py").is_file():
        refuse("the benchmarks are not part of the installed package; run this from a source checkout, as ./run bench")
    raise typer.Exit(subprocess.call([sys.executable, "-m", "benchmarks", *context.args], cwd=checkout))

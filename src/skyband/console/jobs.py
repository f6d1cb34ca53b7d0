"""What `skyband run` and `skyband demo` do on Spark: show the plan, start the stream, watch it until it ends."""

from __future__ import annotations

import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from skyband.console import wide_console
from skyband.console.job_screen import JsonJobScreen, LiveJobScreen, PlainJobScreen
from skyband.console.screen import write_json
from skyband.spark.jobs.checks import check_surroundings
from skyband.spark.jobs.columns import check_columns
from skyband.spark.jobs.job import Job
from skyband.spark.jobs.words import describe

if TYPE_CHECKING:
    from skyband.spark.demo import Verdict


def show_plan(job: Job, as_json: bool) -> None:
    """The job in words, after the checks that need no Spark."""
    check_surroundings(job)
    check_columns(job)
    words = describe(job)
    if as_json:
        write_json([{"what": what, "how": how} for what, how in words])
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for what, how in words:
        table.add_row(Text(what), Text(how))
    wide_console().print(table)


def watch(job: Job, as_json: bool) -> None:
    """Run the job until its end or Ctrl-C, which ends it in good order; a second one ends it at once."""
    from skyband.spark.jobs.running import run_job

    shown = wide_console()
    screen = JsonJobScreen() if as_json else LiveJobScreen(shown) if shown.is_terminal else PlainJobScreen(shown)
    with Interruption() as stop:
        try:
            run_job(job, screen, stop)
        finally:
            screen.close()


def play_demo(rows: int, seconds: float | None, seed: int, as_json: bool) -> int:
    """The demo on Spark; the exit code says whether every answer was right."""
    from skyband.spark import demo

    shown = wide_console()
    watched = shown.is_terminal and not as_json
    screen = JsonJobScreen() if as_json else LiveJobScreen(shown) if watched else PlainJobScreen(shown, show_rows=False)
    with Interruption() as stop:
        try:
            verdicts = demo.run(screen, rows, seconds if seconds is not None else 20.0 if watched else 0.0, seed, stop)
        finally:
            screen.close()
    if verdicts is None:
        print("skyband: interrupted before the day was over, so nothing was checked", file=sys.stderr)
        return 130
    agreed = all(verdict.equal and verdict.late_equal for verdict in verdicts)
    if as_json:
        write_json(
            {
                "event": "checked",
                "query": verdict.question.query.name,
                "equal": verdict.equal and verdict.late_equal,
                "windows": verdict.windows,
                "rows": verdict.rows,
                "late": verdict.late,
            }
            for verdict in verdicts
        )
    else:
        _show_verdicts(shown, verdicts, agreed)
    return 0 if agreed else 1


def _show_verdicts(console: Console, verdicts: list[Verdict], agreed: bool) -> None:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="dim")
    table.add_column("question")
    for column in ("windows", "answers", "late rows"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("check", no_wrap=True)
    for verdict in verdicts:
        word = "equal" if verdict.equal and verdict.late_equal else "late rows differ" if verdict.equal else "answers differ"
        counts = (verdict.windows, verdict.rows, verdict.late)
        style = "green" if word == "equal" else "bold red"
        table.add_row(verdict.question.query.name, *(f"{count:,}" for count in counts), Text(word, style=style))
    console.print(Text(), table, Text(), sep="\n")
    check = "streamed result checked against a batch recomputation: "
    console.print(Text(check + ("equal" if agreed else "DIFFERENT"), style="green" if agreed else "bold red"))


class Flag(threading.Event):
    """An event that a signal handler may set. A plain one has a lock, which may be held by the very thread that the signal
    interrupts in `wait`: `set` would then wait for ever."""

    _STEP = 0.05  # seconds between two looks

    def __init__(self) -> None:
        super().__init__()
        self._asked = False

    def set(self) -> None:
        self._asked = True

    def is_set(self) -> bool:
        return self._asked

    def wait(self, timeout: float | None = None) -> bool:
        end = None if timeout is None else time.monotonic() + timeout
        while not self._asked and (end is None or time.monotonic() < end):
            time.sleep(self._STEP if end is None else max(0.0, min(self._STEP, end - time.monotonic())))
        return self._asked


class Interruption:
    """Ctrl-C, and SIGTERM alike, as an event: nothing is torn down half-way."""

    def __init__(self) -> None:
        self.stop = Flag()
        self.before: dict[int, Any] = {}

    def __enter__(self) -> threading.Event:
        for number in (signal.SIGINT, signal.SIGTERM):
            self.before[number] = signal.signal(number, self._asked)
        return self.stop

    def _asked(self, number: int, frame: Any) -> None:
        if self.stop.is_set():
            raise KeyboardInterrupt
        self.stop.set()

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

"""Where the demo is shown: a live screen in a terminal, plain lines elsewhere, or JSON lines for a program."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from skyband.console.demo import QUESTIONS, VENUES, Question, State, Verdict

_WIDE = 80  # columns from which two tables stand side by side
_TALL = 26  # lines from which every rank of the lower tables is shown
_LINES = 10  # progress lines where there is no terminal

_PREPARING = "making up trades, loading kernels (first run: compiling, a minute)"

Cell = Callable[[dict[str, Any]], str]

_CELLS: dict[str, Cell] = {
    "symbol": lambda row: str(row["symbol"]),
    "venue": lambda row: VENUES[row["venue"]],
    "time": lambda row: f"{row['ts']:%H:%M:%S}",
    "price": lambda row: f"{row['price']:,.2f}",
    "volume": lambda row: f"{row['volume']:,}",
    "value": lambda row: f"{row['score']:,.0f}",
    "basis points": lambda row: f"{row['score']:.3f}",
}
_SHOWN = {
    "hot": ("symbol", "venue", "time", "price", "volume", "value"),
    "tight": ("symbol", "time", "basis points"),
    "east": ("symbol", "time", "value"),
}
_LEFT = ("symbol", "venue")
_DROPPED_WHERE_NARROW = ("venue", "price", "volume")


class LiveScreen:
    """The current top of every question, redrawn in place, and a progress bar under it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.live = Live(console=console, transient=True, auto_refresh=False)
        self.waiting = console.status(f"[dim]{_PREPARING}[/]")
        self.drawn = 0.0

    def preparing(self) -> None:
        """Something that turns, for as long as it takes."""
        self.waiting.start()

    def moved(self, state: State, changes: pa.Table) -> None:
        """Redraw, but not more often than eyes follow."""
        if not self.live.is_started:
            self.waiting.stop()
            self.live.start()
        now = self.console.get_time()
        if now - self.drawn >= 1 / 12 or state.pushed == state.total:
            self.drawn = now
            self.live.update(self._picture(state), refresh=True)

    def close(self) -> None:
        """Give the terminal back, also when interrupted."""
        self.waiting.stop()
        self.live.stop()

    def finished(self, state: State, verdicts: list[Verdict]) -> None:
        """Leave the last tops and the verdicts on the screen."""
        self.close()
        self.console.print(tops(state, self.console.width), *closing(state, verdicts), sep="\n")

    def _picture(self, state: State) -> RenderableType:
        lines = None if self.console.height >= _TALL else 3
        return Group(tops(state, self.console.width, lines, mark=True), Text(), *_status(state))


class PlainScreen:
    """A line now and then, the tables at the end: for files, pipes and logs."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.lines = 0

    def preparing(self) -> None:
        """Say so."""
        self.console.print(_PREPARING, soft_wrap=True)

    def moved(self, state: State, changes: pa.Table) -> None:
        """One line for every tenth of the stream."""
        if state.pushed * _LINES >= state.total * (self.lines + 1):
            self.lines = state.pushed * _LINES // state.total
            share = f"{state.pushed / state.total:4.0%}"
            self.console.print(f"{share}  {_rate(state):>12}  {_counters(state)}", soft_wrap=True)

    def close(self) -> None:
        """Nothing to give back."""

    def finished(self, state: State, verdicts: list[Verdict]) -> None:
        """The last tops and the verdicts."""
        self.console.print("", tops(state, self.console.width), *closing(state, verdicts), sep="\n")


class JsonScreen:
    """One JSON object per line: every change row, at the end one line a question with its counters and the check."""

    def preparing(self) -> None:
        """Nothing to say to a program."""

    def moved(self, state: State, changes: pa.Table) -> None:
        """The change rows as they are."""
        write_json(changes.to_pylist())

    def close(self) -> None:
        """Nothing to give back."""

    def finished(self, state: State, verdicts: list[Verdict]) -> None:
        """Counters and verdicts."""
        write_json(
            {
                "query": verdict.question.query.name,
                "event": "checked",
                "equal": verdict.equal and verdict.late_equal,
                "window_rows": verdict.in_window,
                **state.stats(verdict.question.query.name),
            }
            for verdict in verdicts
        )


def write_json(records: Any) -> None:
    """Records to standard output, one JSON object a line; times in ISO form, numbers JSON cannot hold as null."""
    for record in records:
        sys.stdout.write(json.dumps(_plain(record), allow_nan=False, default=str) + "\n")
    sys.stdout.flush()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):  # entries of a map are tuples
        return [_plain(inner) for inner in value]
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


# -- pieces ----------------------------------------------------------------------------------------------------


def tops(state: State, width: int, lines: int | None = None, mark: bool = False) -> RenderableType:
    """The tops of all questions: the first on its own, the others beside each other where there is room."""
    first, *others = QUESTIONS
    if width < _WIDE:
        dropped = _DROPPED_WHERE_NARROW
        tables = [_top(question, state, lines, mark, dropped) for question in others]
        return Group(_top(first, state, None, mark, dropped), *(part for table in tables for part in (Text(), table)))
    tables = [_top(question, state, lines, mark) for question in others]
    beside = Table.grid(expand=False, padding=(0, 4, 0, 0))
    beside.add_row(*tables)
    return Group(_top(first, state, None, mark), Text(), beside)


def _top(question: Question, state: State, lines: int | None, mark: bool, dropped: tuple[str, ...] = ()) -> Table:
    name = question.query.name
    columns = [column for column in _SHOWN[name] if column not in dropped]
    table = Table(
        title=question.title, title_style="bold", title_justify="left", header_style="dim", box=box.SIMPLE_HEAD, show_edge=False
    )
    table.add_column("#", justify="right", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="left" if column in _LEFT else "right", no_wrap=True)
    entered = state.entered.get(name, set()) if mark else set()
    rows = state.monitor.top(name).to_pylist()[:lines]
    for row in rows:
        style = "bold green" if row["seq"] in entered else ""
        table.add_row(str(row["rank"]), *(_CELLS[column](row) for column in columns), style=style)
    shown = question.query.k if lines is None else min(lines, question.query.k)
    for _ in range(shown - len(rows)):
        table.add_row(*("" for _ in range(len(columns) + 1)))
    return table


def _status(state: State) -> list[RenderableType]:
    bar = Table.grid(expand=True, padding=(0, 2, 0, 0))
    bar.add_column(no_wrap=True)
    bar.add_column(ratio=1)
    bar.add_column(no_wrap=True)
    bar.add_column(no_wrap=True)
    share = f"{state.pushed / state.total:4.0%}"
    bar.add_row(f"{state.pushed:,} rows", ProgressBar(state.total, state.pushed), share, _rate(state))
    return [bar, Text(_counters(state), style="dim", no_wrap=True, overflow="ellipsis")]


def _rate(state: State) -> str:
    return f"{state.rate / 1e6:.1f} M rows/s" if state.rate >= 1e6 else f"{state.rate / 1e3:.0f} k rows/s"


def _counters(state: State) -> str:
    all_stats = [state.stats(question.query.name) for question in QUESTIONS]
    late, nulls = (max(stats[what] for stats in all_stats) for what in ("late", "nulls"))
    candidates = sum(stats["candidates"] for stats in all_stats)
    clock = state.watermark.astype(datetime)
    return f"watermark {clock:%H:%M:%S}  late {late:,}  null {nulls:,}  candidates {candidates:,}"


def closing(state: State, verdicts: list[Verdict]) -> list[RenderableType]:
    """What each question cost, and whether its last answer is the one sorting gives."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="dim")
    for column in ("question", "algorithm"):
        table.add_column(column, no_wrap=True)
    for column in ("late", "null", "candidates", "for rows", "kB"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("check")
    for verdict in verdicts:
        name = verdict.question.query.name
        stats = state.stats(name)
        counts = (stats["late"], stats["nulls"], stats["candidates"], verdict.in_window, stats["bytes"] // 1000)
        table.add_row(name, str(stats["algorithm"]), *(f"{count:,}" for count in counts), _word(verdict))
    pushed = Text(f"{state.total:,} rows in {state.busy:.2f} s of pushing, {_rate(state)}")
    if all(verdict.equal and verdict.late_equal for verdict in verdicts):
        return [Text(), table, Text(), pushed, Text("last windows checked against sorting: equal", style="green")]
    return [Text(), table, Text(), pushed, Text("last windows checked against sorting: DIFFERENT", style="bold red")]


def _word(verdict: Verdict) -> str:
    if not verdict.equal:
        return "[bold red]rows differ[/]"
    return "[green]equal[/]" if verdict.late_equal else "[bold red]late count differs[/]"

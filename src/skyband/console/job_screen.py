"""Where a job is shown: a live table in a terminal, a line now and then elsewhere, or JSON lines for a program."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from skyband.console.screen import write_json
from skyband.spark.jobs.board import rows_of, shown

if TYPE_CHECKING:
    import pyarrow as pa

    from skyband.spark.jobs.board import Board, Top
    from skyband.spark.progress import Figures

_BETWEEN_LINES = 3.0  # seconds, where there is no terminal
_FRAME = 6  # lines around the tables


class LiveJobScreen:
    """The current tops and the figures, redrawn in place."""

    wants_tops = True

    def __init__(self, console: Console) -> None:
        self.console = console
        self.waiting = console.status("")
        self.live = Live(console=console, transient=True, auto_refresh=False)
        self.last: RenderableType = Text()

    def stage(self, what: str) -> None:
        """Something that turns, for as long as it takes; under the picture once there is one."""
        if self.live.is_started:
            self.live.update(Group(self.last, Text(what, style="dim")), refresh=True)
            return
        self.waiting.update(f"[dim]{what}[/]")
        self.waiting.start()

    def offers(self, url: str) -> None:
        """A line above the picture."""
        self.console.print(f"figures for Prometheus: {url}", style="dim")

    def moved(self, figures: Figures, boards: Sequence[Board]) -> None:
        """Redraw."""
        if not self.live.is_started:
            self.waiting.stop()
            self.live.start()
        self.last = picture(figures, boards, self.console.height - _FRAME, self.console.width)
        self.live.update(self.last, refresh=True)

    def results(self, rows: pa.Table) -> None:
        """The board shows them."""

    def finished(self, figures: Figures, message: str) -> None:
        """Leave the last picture on the screen."""
        self.close()
        self.console.print(self.last)
        self.console.print(closing(figures, message), style="green")

    def close(self) -> None:
        """Give the terminal back, also when interrupted."""
        self.waiting.stop()
        self.live.stop()


class PlainJobScreen:
    """A line for a micro-batch, at most every few seconds; result rows of a console sink as they come."""

    wants_tops = False

    def __init__(self, console: Console, show_rows: bool = True) -> None:
        self.console, self.show_rows = console, show_rows
        self.said = -math.inf

    def stage(self, what: str) -> None:
        """Say so."""
        self.console.print(what, soft_wrap=True)

    def offers(self, url: str) -> None:
        """Say where."""
        self.console.print(f"figures for Prometheus: {url}", soft_wrap=True)

    def moved(self, figures: Figures, boards: Sequence[Board]) -> None:
        """A line, unless one was just written."""
        now = self.console.get_time()
        if now - self.said >= _BETWEEN_LINES:
            self.said = now
            self.console.print("  ".join(line.plain for line in lines(figures)), soft_wrap=True)

    def results(self, rows: pa.Table) -> None:
        """One line a row."""
        for result in rows_of(rows) if self.show_rows else []:
            cells = {name: value for name, value in result.items() if not isinstance(value, Mapping)}
            if len(cells) < len(result):  # else it answers a command
                own = shown(result)
                cells |= {f"row_{name}" if cells.get(name, value) != value else name: value for name, value in own.items()}
            text = "  ".join(f"{name}={cell(value)}" for name, value in cells.items() if value is not None)
            self.console.print(text, soft_wrap=True, markup=False)

    def finished(self, figures: Figures, message: str) -> None:
        """What was done."""
        self.console.print(closing(figures, message), soft_wrap=True)

    def close(self) -> None:
        """Nothing to give back."""


class JsonJobScreen:
    """One JSON object per line: progress after every micro-batch, result rows of a console sink, the end."""

    wants_tops = False

    def stage(self, what: str) -> None:
        """Nothing to say to a program."""

    def offers(self, url: str) -> None:
        """Where."""
        write_json([{"event": "metrics", "url": url}])

    def moved(self, figures: Figures, boards: Sequence[Board]) -> None:
        """The figures."""
        write_json([{"event": "progress", **figures.record()}])

    def results(self, rows: pa.Table) -> None:
        """Result rows as they are."""
        write_json(rows_of(rows))

    def finished(self, figures: Figures, message: str) -> None:
        """The last figures, and why there will be no more."""
        write_json([{"event": "finished", "reason": message, **figures.record()}])

    def close(self) -> None:
        """Nothing to give back."""


# -- pieces ----------------------------------------------------------------------------------------------------


def picture(figures: Figures, boards: Sequence[Board], height: int, width: int) -> RenderableType:
    """A table a query, as many rows as there is room for, and the figures."""
    asked = [(board, name) for board in boards for name in board.tops]
    room = max(height // max(len(asked), 1) - 3, 1)
    parts: list[RenderableType] = []
    for board, name in asked:
        tops = {group: top for group, top in board.tops[name].items() if top.entries}
        newest = max((top.end for top in tops.values()), default=None)
        title = f"{name}, window to {cell(newest)}" if newest is not None else f"{name}, no window has closed yet"
        parts += [Text(title, style="bold"), _table(board.groups, tops, room, width), Text()]
    return Group(*parts, *lines(figures))


def _table(groups: tuple[str, ...], tops: Mapping[tuple[Any, ...], Top], room: int, width: int) -> Table:
    table = Table(header_style="dim", box=box.SIMPLE_HEAD, show_edge=False)
    best = next(iter(tops.values())).entries[0].row if tops else {}
    columns = _shown_of([column for column in best if column not in groups], max(width // 14 - 2 - len(groups), 1))
    for group in groups:
        table.add_column(Text(group), no_wrap=True)
    for title in ("#", "score", *columns):
        table.add_column(Text(title), justify="right", no_wrap=True)
    ordered = sorted(tops.items(), key=lambda item: str(item[0]))[:room]
    each = max(room // max(len(ordered), 1), 1)
    for values, top in ordered:
        for rank, entry in enumerate(top.entries[:each], 1):
            cells = [
                *(values if rank == 1 else [""] * len(groups)),
                rank,
                entry.score,
                *(entry.row[column] for column in columns),
            ]
            table.add_row(*(Text(cell(value)) for value in cells), style="bold green" if entry.since == top.end else "")
    return table


def _shown_of(columns: list[str], most: int) -> list[str]:
    """The columns there is room for: of a pair's, as many of either row."""
    half = len(columns) // 2
    if [name[1:] for name in columns[:half]] == [name[1:] for name in columns[half:]] and most < len(columns):
        return columns[: max(most // 2, 1)] + columns[half : half + most // 2]
    return columns[:most]


def lines(figures: Figures) -> list[Text]:
    """The figures in two lines."""
    watermark = "not yet" if figures.watermark is None else cell(figures.watermark)
    lag = "" if figures.lag is None else f"  lag {span(figures.lag)}"
    first = f"{figures.rows:,} rows  {figures.rows_per_second:,.0f} rows/s  watermark {watermark}{lag}"
    late, nulls = (max(counts.values(), default=0) for counts in (figures.late, figures.nulls))
    batch = figures.batch if figures.batches else "–"
    second = f"batch {batch}  groups {figures.groups:,}  candidates {figures.candidates:,}  late {late:,}  null {nulls:,}"
    if figures.null_times:
        second += f"  without time {figures.null_times:,}"
    if figures.bad_rows:
        second += f"  bad {figures.bad_rows:,}" + (f" (last: {figures.last_bad})" if figures.last_bad else "")
    return [Text(first, no_wrap=True, overflow="ellipsis"), Text(second, style="dim", no_wrap=True, overflow="ellipsis")]


def closing(figures: Figures, message: str) -> str:
    """One line: why it ended and what was done."""
    counts = set(figures.late.values())
    if len(counts) > 1:
        late = "late: " + ", ".join(f"{count:,} for {name}" for name, count in figures.late.items())
    else:
        late = f"{max(counts):,} came late and were left out" if any(counts) else "none came late"
    bad = f"; {figures.bad_rows:,} did not fit the schema and were left out" if figures.bad_rows else ""
    return f"{message}: {figures.rows:,} rows in {figures.batches:,} micro-batches; {late}{bad}"


def cell(value: Any) -> str:
    """A value for people."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}" + (f".{value.microsecond // 1000:03}" if value.microsecond else "")
    if isinstance(value, float):
        return f"{value:,.2f}" if 1e3 <= abs(value) < 1e15 else f"{value:.6g}"
    return "" if value is None else str(value)


def span(length: timedelta) -> str:
    """A duration in its largest unit."""
    seconds = length.total_seconds()
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.1f} s"

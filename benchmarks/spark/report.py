"""The promises beside what was measured, the tables, and the picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.figure import Figure
from benchmarks.spark.measure import Run
from benchmarks.spark.settings import SETTINGS

MB = 1024 * 1024
COLOURS = {
    "skyband": "#1b4f9c",
    "skyband-changes": "#5b8fd1",
    "skyband-log": "#8fb3e0",
    "driver-merge": "#e6820e",
    "driver-merge-tuned": "#f0b36b",
    "two-stage": "#2a9d8f",
    "sliding": "#b5179e",
    "pass-through": "#757575",
    "pass-through-tuned": "#616161",
    "max": "#9e9e9e",
    "read": "#c4c4c4",
}


@dataclass(frozen=True)
class Promise:
    """`ours` in a setting against the best of `beside`.

    `of`: "throughput" (at least `hold` times theirs), "time" (for the same events, steady state), "wall" (process start
    to end) or "memory" (at most `hold` times theirs); or, beside nobody, "state" (at most `hold` kB of snapshots) or
    "growth" (the second half's largest state at most `hold` times the first half's). With a hold of 0 nothing is promised: it
    is told for comparison.
    """

    setting: str
    ours: str
    beside: tuple[str, ...]
    of: str
    hold: float


RIVALS = ("driver-merge", "two-stage", "sliding")
PROMISES = (
    Promise("A", "skyband", ("sliding",), "throughput", 20),
    Promise("A", "skyband", ("two-stage",), "throughput", 2.5),
    Promise("A", "skyband", ("driver-merge",), "throughput", 1),
    Promise("B", "skyband", ("sliding",), "throughput", 300),
    Promise("B", "skyband", ("two-stage",), "throughput", 30),
    Promise("B", "skyband", ("driver-merge",), "throughput", 1.3),
    Promise("C", "skyband", RIVALS, "throughput", 1),
    Promise("A", "skyband-changes", ("driver-merge",), "throughput", 1.1),
    *(Promise(setting, "skyband", ("driver-merge-tuned",), "throughput", 0) for setting in SETTINGS),
    Promise("A", "skyband-changes", ("skyband-log",), "throughput", 0),
    Promise("A", "skyband-changes", ("pass-through-tuned",), "time", 0),
    Promise("A", "skyband-changes", ("pass-through",), "time", 1.3),
    Promise("A", "skyband-changes", ("pass-through",), "memory", 1.4),
    *(Promise(setting, "skyband", ("driver-merge",), "wall", 1.3) for setting in SETTINGS),
    Promise("B", "skyband", (), "state", 300),
    Promise("B", "skyband", (), "growth", 1.2),
)
UNITS = {
    "throughput": "× its throughput",
    "time": "× its time",
    "wall": "× its wall time",
    "memory": "× its memory",
    "state": "kB",
    "growth": "× the first half's state",
}


def typical(runs: Iterable[Run]) -> dict[tuple[str, str, str], Run]:
    """Of the runs of the same thing the one with the middle throughput, by (system, setting, scores); failures only if
    there is nothing else."""
    same: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        same.setdefault((run.system, run.setting, run.scores), []).append(run)
    middle = {}
    for key, several in same.items():
        good = sorted((run for run in several if not run.failure), key=lambda run: run.throughput)
        middle[key] = good[len(good) // 2] if good else several[0]
    return middle


def figures(runs: Iterable[Run]) -> list[Figure]:
    """Every promise for which both sides were measured on the same scores."""
    found = []
    by_name = typical(runs)
    for scores in dict.fromkeys(scores for _, _, scores in by_name):
        for promise in PROMISES:
            ours = by_name.get((promise.ours, promise.setting, scores))
            theirs = [by_name.get((name, promise.setting, scores)) for name in promise.beside]
            if ours is None or ours.failure or any(run is None or run.failure for run in theirs):
                continue
            if promise.beside:
                best = max((run for run in theirs if run), key=lambda run: run.throughput)
                found.append(_beside(promise, scores, ours, best))
            elif ours.snapshot_bytes:
                found.append(_alone(promise, scores, ours))
    return found


def _alone(promise: Promise, scores: str, ours: Run) -> Figure:
    values = {"state": ours.snapshot_bytes / 1000, "growth": ours.snapshot_growth}
    return Figure(
        what=f"{promise.ours}, {promise.setting}, {scores}",
        yardstick="–",
        hold=promise.hold,
        measured=values[promise.of],
        unit=UNITS[promise.of],
        detail=f"{ours.snapshot_bytes / 1000:,.4g} kB of state",
    )


def _beside(promise: Promise, scores: str, ours: Run, theirs: Run) -> Figure:
    values = {
        "throughput": lambda run: run.throughput / 1000,
        "time": lambda run: 1e9 / run.throughput,
        "wall": lambda run: run.process_seconds,
        "memory": lambda run: run.peak_bytes / MB,
    }
    words = {"throughput": "thousand events/s", "time": "ns an event", "wall": "s", "memory": "MB"}
    mine, other = values[promise.of](ours), values[promise.of](theirs)
    return Figure(
        what=f"{promise.ours}, {promise.setting}, {scores}",
        yardstick=theirs.system,
        hold=promise.hold,
        measured=mine / other,
        unit=UNITS[promise.of],
        at_most=promise.of != "throughput",
        detail=f"{mine:,.4g} against {other:,.4g} {words[promise.of]}",
    )


def runs_table(runs: Iterable[Run], asked: int) -> Table:
    """What each system did, the fastest first, in every setting."""
    table = Table(title="Steady state and whole runs", caption=_caption(asked), caption_justify="left")
    for name in ("setting", "scores", "system"):
        table.add_column(name)
    for name in ("events", "events/s", "process s", "query s", "cpu s", "peak MB", "(JVM)", "state rows", "state MB"):
        table.add_column(name, justify="right")
    previous: tuple[str, str] | None = None
    for run in sorted(typical(runs).values(), key=lambda run: (run.scores != "uniform", run.setting, -run.throughput)):
        group = (run.setting, run.scores)
        if previous not in (None, group):
            table.add_section()
        previous = group
        events = f"{run.events:,}" + ("*" if run.events < asked else "")
        if run.failure:
            table.add_row(*group, run.system, events, f"[red]{run.failure.splitlines()[-1]}[/]")
            continue
        seconds = (f"{value:.1f}" for value in (run.process_seconds, run.query_seconds, run.cpu_seconds))
        memory = (f"{run.peak_bytes / MB:,.0f}", f"{run.peak_jvm_bytes / MB:,.0f}")
        state = (f"{run.state_rows:,}", f"{run.state_bytes / MB:.1f}") if run.state_rows else ("–", "–")
        table.add_row(*group, run.system, events, f"{run.throughput:,.0f}", *seconds, *memory, *state)
    return table


def _caption(asked: int) -> str:
    return (
        f"* fewer than {asked:,} events, in smaller micro-batches: all of them would take this system longer than a minute.\n"
        "events/s: the second half of the micro-batches. peak: largest sum of PSS over JVM and Python processes.\n"
        "state: as Spark's state operators report it; driver-merge keeps its panes in the driver, and loses them with it.\n"
        "driver-merge and pass-through run in a session as Spark comes, the tuned ones, as all others, in skyband's."
    )


def promises_table(found: Iterable[Figure]) -> Table:
    """Each promise, what was measured, and whether it holds."""
    table = Table("what", "beside", "hold", "measured", "", "detail", title="Spark: numbers to hold")
    for figure in found:
        sign = "≤" if figure.at_most else "≥"
        mark = "" if not figure.hold else "[green]holds[/]" if figure.holds else "[red]missed[/]"
        table.add_row(
            figure.what,
            figure.yardstick,
            f"{sign} {figure.hold:g} {figure.unit}" if figure.hold else figure.unit,
            f"{figure.measured:.3g}",
            mark,
            figure.detail,
        )
    return table


def picture(runs: Iterable[Run], path: Path) -> Path:
    """Events a second of every system: settings side by side, scores below each other."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    good = [run for run in typical(runs).values() if not run.failure]
    settings = [name for name in SETTINGS if any(run.setting == name for run in good)]
    streams = list(dict.fromkeys(run.scores for run in good))
    figure, axes = plt.subplots(
        len(streams), len(settings), figsize=(4.2 * len(settings), 2.9 * len(streams)), sharex=True, squeeze=False
    )
    for i, scores in enumerate(streams):
        for j, setting in enumerate(settings):
            axis: Any = axes[i][j]
            rows = [
                run
                for name in reversed(COLOURS)
                for run in good
                if (run.system, run.setting, run.scores) == (name, setting, scores)
            ]
            bars = axis.barh(
                [run.system for run in rows], [run.throughput for run in rows], color=[COLOURS[run.system] for run in rows]
            )
            axis.bar_label(bars, [_short(run.throughput) for run in rows], padding=3, fontsize=7)
            axis.set_xscale("log")
            axis.tick_params(labelsize=8)
            axis.grid(axis="x", alpha=0.25)
            axis.set_axisbelow(True)
            asked = SETTINGS[setting]
            axis.set_title(f"{scores}: {asked.size} s window, {asked.slide} s slide, k={asked.k}", fontsize=9)
            if i == len(streams) - 1:
                axis.set_xlabel("events per second", fontsize=8)
    shown = [run.throughput for run in good]
    axes[0][0].set_xlim(min(shown) / 5, 5 * max(shown))  # room for the longest bar's label; all axes share it
    figure.suptitle("Spark on two cores, steady state: every window of the k best events", fontsize=11)
    figure.tight_layout(rect=(0, 0, 1, 0.97))
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _short(value: float) -> str:
    return f"{value / 1e6:.2f} M" if value >= 1e6 else f"{value / 1e3:.3g} k"

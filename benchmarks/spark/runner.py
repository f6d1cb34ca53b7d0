"""All systems over all settings and scores: who runs on what, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.spark.events import Events
from benchmarks.spark.measure import Run, run
from benchmarks.spark.settings import SETTINGS
from benchmarks.spark.systems import TABLE, asked
from skyband.spark.warm import warm

TIMEOUT = 600.0


def chosen(text: str, known: Sequence[str], what: str) -> list[str]:
    """The names in a comma-separated list, all of them if it is empty; an unknown one is refused."""
    names = [name.strip() for name in text.split(",") if name.strip()] or list(known)
    for name in names:
        if name not in known:
            raise SystemExit(f"{what} {name!r} is not known; choose from {', '.join(known)}")
    return names


def measurements(
    systems: Sequence[str],
    settings: Sequence[str],
    scores: Sequence[str],
    events: int,
    repeat: int,
    scratch: Path,
    step: Callable[[str, int, int], None],
) -> Iterator[Run]:
    """Everything once, then everything again: what drifts on the machine meets all systems alike. Kernels are compiled before,
    so that no system is charged with what happens once on a machine.

    `step` hears what is running, how many events are through and how many there are.
    """
    step("compiling kernels", 0, 1)
    for name in settings:
        for emit in ("snapshots", "changes"):
            warm([asked(SETTINGS[name], emit)])
    for _ in range(repeat):
        for stream in scores:
            for setting in settings:
                for system in systems:
                    count = min(events, TABLE[system].caps.get(setting, events))
                    data = Events.shortened(stream, count)
                    files = scratch / f"{stream}-{count}"
                    what = f"{setting} {stream} {system}"
                    step(what, 0, count)
                    if not files.exists():
                        data.write(files)
                    yield run(
                        system,
                        SETTINGS[setting],
                        data,
                        files,
                        timeout=TIMEOUT,
                        step=lambda done, what=what, count=count: step(what, done, count),
                    )

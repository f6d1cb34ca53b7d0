"""Every system's windows, row for row, against sorting and so against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.spark.events import Events, Window, sorted_windows
from benchmarks.spark.settings import FILES_A_BATCH, Setting
from benchmarks.spark.systems import System, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = 24_000


def small(scores: str, count: int = EVENTS, batches: int = 10) -> Events:
    """Few events over a long time, in micro-batches that cut slides in two; the sine rises and falls several times."""
    return Events(scores, count, per_second=20, rows_a_file=count // (batches * FILES_A_BATCH) + 7, wave=count // 6)


def check(
    spark: SparkSession,
    systems: Iterable[System],
    settings: Iterable[Setting],
    streams: Iterable[Events],
    scratch: Path,
    tell: Callable[[str, list[str]], None],
) -> None:
    """Run every system on every stream and setting; `tell` hears what was run and what differs, nothing if nothing does."""
    settings = list(settings)
    systems = [system for system in systems if system.windows]
    for events in streams:
        files = scratch / f"events-{events.scores}"
        events.write(files)
        table = events.table()
        for setting in settings:
            expected = list(sorted_windows(table, setting))
            for system in systems:
                what = f"{system.name} {setting.name} {events.scores}"
                place = scratch / what.replace(" ", "-")
                start(system, spark, files, setting, place / "checkpoint", place / "out").awaitTermination()
                found = pq.read_table(place / "out")
                tell(f"{what}: {len(expected):,} windows", differences(found, expected, system.windows))


def differences(found: pa.Table, expected: list[Window], kind: str, at_most: int = 5) -> list[str]:
    """What the rows say otherwise than sorting does, in words; the first few."""
    wrong = []
    for difference in _differences(found, expected, kind):
        wrong.append(difference)
        if len(wrong) == at_most:
            break
    return wrong


def _differences(found: pa.Table, expected: list[Window], kind: str) -> Iterator[str]:
    end = found["window_end"].cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    ids = (found["id"] if "id" in found.column_names else pc.struct_field(found["row"], "id")).to_numpy()
    scores = found["score"].to_numpy()
    strangers = np.setdiff1d(end, [window.end for window in expected])
    if len(strangers):
        yield f"{len(strangers)} windows that sorting does not know, the first ends at {strangers[0]}"
    if kind == "changes":
        tops = _folded(end, found["event"].to_numpy(), ids, scores, expected)
    else:
        tops = _ranked(end, found["rank"].to_numpy(), ids, scores, expected)
    for window, top in zip(expected, tops, strict=True):
        yield from ([top] if isinstance(top, str) else against(window, top))


def against(expected: Window, found: Window) -> Iterator[str]:
    """Scores must be equal at every rank, and ids wherever no other score is the same: ties may go either way."""
    if not np.array_equal(expected.scores, found.scores):
        yield f"window {expected.end}: scores {found.scores} instead of {expected.scores}"
        return
    scores = expected.scores
    alone = scores != expected.left_out
    alone[1:] &= scores[1:] != scores[:-1]
    alone[:-1] &= scores[:-1] != scores[1:]
    if not np.array_equal(expected.ids[alone], found.ids[alone]) or len(np.unique(found.ids)) < len(found.ids):
        yield f"window {expected.end}: ids {found.ids} instead of {expected.ids}"


def _ranked(
    end: np.ndarray, rank: np.ndarray, ids: np.ndarray, scores: np.ndarray, expected: list[Window]
) -> Iterator[Window | str]:
    """The rows of each window in the order of their ranks, which must count 1, 2, 3, ..."""
    order = np.lexsort((rank, end))
    end, rank, ids, scores = end[order], rank[order], ids[order], scores[order]
    for window in expected:
        low, high = np.searchsorted(end, (window.end, window.end + 1))
        if not np.array_equal(rank[low:high], np.arange(1, high - low + 1)):
            yield f"window {window.end}: ranks {rank[low:high]}"
        else:
            yield Window(window.end, ids[low:high], scores[low:high])


def _folded(
    end: np.ndarray, event: np.ndarray, ids: np.ndarray, scores: np.ndarray, expected: list[Window]
) -> Iterator[Window | str]:
    """Enters and leaves added up to the top of each window; newer rows, which have larger ids, go first in a tie."""
    present: dict[int, float] = {}
    order = np.lexsort((event == "enter", end))  # in a window first who leaves, then who enters
    at, end = 0, end[order]
    for window in expected:
        until = int(np.searchsorted(end, window.end, side="right"))
        wrong = ""
        for place in order[at:until]:
            if (event[place] == "enter") == (ids[place] in present):
                wrong = (
                    f"window {window.end}: {event[place]} of {ids[place]}, which is {'' if ids[place] in present else 'not '}in"
                )
            if event[place] == "enter":
                present[ids[place]] = scores[place]
            else:
                present.pop(ids[place], None)
        at = until
        best = sorted(present, key=lambda one: (-present[one], -one))
        yield wrong or Window(window.end, np.array(best, dtype=np.int64), np.array([present[one] for one in best]))

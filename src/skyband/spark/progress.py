"""What a running stream reports after every micro-batch, as figures: rows, watermark, lag, candidates, late rows, nulls."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from skyband.spark.control.terms import Terms
from skyband.spark.pipeline import OBSERVED
from skyband.spark.plan import Plan

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Moment = datetime | int
"""A time: of a timestamp column, or a whole number in the unit of an integer column."""


@dataclass(frozen=True)
class Figures:
    """A stream so far. Sums are since its start here, everything else is of the last micro-batch."""

    batch: int = -1  # its number, counted since the checkpoint was new
    batches: int = 0
    rows: int = 0
    rows_per_second: float = 0.0
    watermark: Moment | None = None  # None: it has not moved yet
    newest: Moment | None = None  # the greatest time seen
    lag: timedelta | None = None  # of the greatest time behind the clock; None for times that are no timestamps
    groups: int = 0
    candidates: int = 0  # rows held because they may rank, in the groups of the last micro-batch
    state_bytes: int = 0
    null_times: int = 0
    late: Mapping[str, int] = field(default_factory=dict)  # by query
    nulls: Mapping[str, int] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """The figures for a program: plain values under their names."""
        plain = dict(vars(self))
        for name in ("watermark", "newest"):
            plain[name] = plain[name].isoformat() if isinstance(plain[name], datetime) else plain[name]
        plain["lag"] = None if self.lag is None else round(self.lag.total_seconds(), 3)
        plain["rows_per_second"] = round(self.rows_per_second, 1)
        return {**plain, "late": dict(self.late), "nulls": dict(self.nulls)}


def after(figures: Figures, progress: Any, plan: Plan | Terms) -> Figures:
    """The figures once a micro-batch has reported its progress (a `StreamingQueryProgress`)."""
    observed = progress.observedMetrics.get(f"{OBSERVED}{plan.digest}")
    seen: Mapping[str, int] = observed.asDict() if observed is not None else {}
    # without rows of its own a batch only moves windows on, and says nothing about the pace of rows
    pace = progress.processedRowsPerSecond if progress.numInputRows else figures.rows_per_second
    watermark, newest = (_moment(plan, progress.eventTime.get(name)) for name in ("watermark", "max"))
    newest = max((moment for moment in (figures.newest, newest) if moment is not None), default=None)
    states = progress.stateOperators
    return replace(
        figures,
        batch=progress.batchId,
        batches=figures.batches + 1,
        rows=figures.rows + seen.get("rows", 0),
        rows_per_second=pace,
        watermark=watermark,
        newest=newest,
        lag=max(datetime.now(UTC) - newest, timedelta(0)) if isinstance(newest, datetime) else None,
        groups=states[0].numRowsTotal if states else figures.groups,
        candidates=seen.get("candidates", 0) or figures.candidates,
        state_bytes=seen.get("state bytes", 0) or figures.state_bytes,
        null_times=figures.null_times + seen.get("null times", 0),
        late=_added(figures.late, seen, "late "),
        nulls=_added(figures.nulls, seen, "nulls "),
    )


def _added(before: Mapping[str, int], seen: Mapping[str, int], start: str) -> dict[str, int]:
    now = {name.removeprefix(start): count for name, count in seen.items() if name.startswith(start)}
    return {name: before.get(name, 0) + now.get(name, 0) for name in {**before, **now}}


def _moment(plan: Plan | Terms, text: str | None) -> Moment | None:
    """Spark reports times in milliseconds; an integer column's are what it took for milliseconds, times the tick."""
    if text is None or plan.time is None:
        return None
    moment = datetime.fromisoformat(text)
    if moment == _EPOCH:
        return None
    timed = str(plan.time_type).startswith("timestamp")
    return moment if timed else (moment - _EPOCH) // timedelta(milliseconds=1) * plan.tick


class ProgressListener(StreamingQueryListener):  # type: ignore[misc]
    """Follows one streaming query. Spark calls it from a thread of its own; `figures` may be read at any time."""

    def __init__(self, plan: Plan | Terms) -> None:
        self.plan = plan
        self.run: str | None = None  # the query's runId; until it is known every report is taken
        self.figures = Figures()
        self.ended = threading.Event()

    def onQueryStarted(self, event: Any) -> None:
        """Nothing has happened yet."""

    def onQueryProgress(self, event: Any) -> None:
        """Count what the micro-batch did."""
        if self.run in (None, str(event.progress.runId)):
            self.figures = after(self.figures, event.progress, self.plan)

    def onQueryIdle(self, event: Any) -> None:
        """No rows came."""

    def onQueryTerminated(self, event: Any) -> None:
        """All reports have come."""
        if self.run in (None, str(event.runId)):
            self.ended.set()

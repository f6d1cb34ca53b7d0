"""What a running stream reports after every micro-batch, as figures: rows, watermark, lag, state, and each query's own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from math import isnan
from typing import Any, TypeVar

from pyspark.sql.streaming.listener import StreamingQueryListener

from skyband.spark.control.terms import Terms
from skyband.spark.jobs.source import BAD
from skyband.spark.observed import BOUNDS, MISSED, OBSERVED, PRECISION, STANDING, WITNESS
from skyband.spark.plan import Plan
from skyband.spark.tallies import BY_QUERY, Bounds, Told, heard, heard_together, worst
from skyband.spark.watching.latency import MOST_QUERIES, Latencies, Sliding
from skyband.spark.watermark import Scale

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BY_QUERY = ("seen", "late", "nulls", "refusals", "results", "held", "sizes", "missed", "precision")
Number = TypeVar("Number", int, float)
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
    spare: int = 0  # states in the store that are of no group
    candidates: int = 0  # rows held because they may rank, in the groups of the last micro-batch
    state_bytes: int = 0  # of the snapshots that the last micro-batch wrote
    states: int = 0  # how many those are
    largest_state: int = 0  # bytes of the largest of them
    null_times: int = 0
    bad_rows: int = 0  # that did not fit the source's schema and were left out; no part of `rows`
    last_bad: str | None = None  # where the latest of them is, for a source of Kafka
    refused: int = 0  # rows with a key that is missing or that of a live row
    by_shard: Mapping[str, int] = field(default_factory=dict)  # queries that stand, of a stream whose queries come and go
    commands: int = 0
    refused_commands: int = 0
    seen: Mapping[str, int] = field(default_factory=dict)  # rows of the micro-batches in which a query stood, by query
    late: Mapping[str, int] = field(default_factory=dict)  # by query
    nulls: Mapping[str, int] = field(default_factory=dict)  # without those that are not counted
    refusals: Mapping[str, int] = field(default_factory=dict)  # rows that a query across streams has no object or stream for
    results: Mapping[str, int] = field(default_factory=dict)
    held: Mapping[str, int] = field(default_factory=dict)  # candidates by query; queries that share a structure share them
    missed: Mapping[str, float] = field(default_factory=dict)  # of approximate queries: rows that were missed, at most
    precision: Mapping[str, float] = field(default_factory=dict)  # of those across streams: the share that is right
    sizes: Mapping[str, int] = field(default_factory=dict)  # bytes of that structure, in the groups of the last micro-batch
    latencies: Latencies = field(default_factory=Latencies, compare=False, repr=False)  # up to now, not up to then

    @property
    def standing(self) -> int | None:
        """Queries that are answered, of a stream whose queries come and go; None where they do not."""
        return sum(self.by_shard.values()) if self.by_shard else None

    def record(self) -> dict[str, Any]:
        """The figures for a program: plain values under their names."""
        inner = (*_BY_QUERY, "latencies", "by_shard", "spare")
        plain = {name: value for name, value in vars(self).items() if name not in inner}
        for name in ("watermark", "newest"):
            plain[name] = plain[name].isoformat() if isinstance(plain[name], datetime) else plain[name]
        plain["lag"] = None if self.lag is None else round(self.lag.total_seconds(), 3)
        plain["rows_per_second"] = round(self.rows_per_second, 1)
        return {**plain, "standing": self.standing, "queries": {name: self._of(name) for name in self.late}}

    def _of(self, query: str) -> dict[str, Any]:
        return {
            "rows": self.seen.get(query, 0),
            "late": self.late[query],
            "nulls": self.nulls.get(query),
            "refused": self.refusals.get(query, 0),
            "results": self.results.get(query, 0),
            "candidates": self.held.get(query, 0),
            "bytes": self.sizes.get(query, 0),
            "missed_at_most": self.missed.get(query),
            "precision": self.precision.get(query),
            "emit_latency": _spans(self.latencies.emit.get(query)),
            "window_delay": _spans(self.latencies.window.get(query)),
        }


def _spans(sliding: Sliding | None) -> dict[str, float] | None:
    if sliding is None:
        return None
    found = sliding.quantiles()
    return None if isnan(found.p50) else {"p50": round(found.p50, 3), "p99": round(found.p99, 3)}


def after(figures: Figures, progress: Any, digest: str = "") -> Figures:
    """The figures once a micro-batch has reported its progress (a `StreamingQueryProgress`); of a plan's digest, or of all.

    A report of a batch that was counted, or of none (an idle stream says that it is there), changes nothing.
    """
    own = [name for name in progress.observedMetrics if name.startswith(f"{OBSERVED}{digest}") and not name.startswith(BAD)]
    reports = [observed(progress, name) for name in own]
    if not reports or progress.batchId <= figures.batch:
        return figures
    bad = observed(progress, BAD)

    def total(name: str) -> int:
        return sum(seen.get(name) or 0 for seen in reports)

    told = heard(text for seen in reports for text in seen.get(BY_QUERY) or ())
    for seen in reports:
        told = heard_together(told, seen)
    _note_latencies(figures.latencies, told, progress)
    # without rows of its own a batch only moves windows on, and says nothing about the pace of rows
    pace = progress.processedRowsPerSecond if progress.numInputRows else figures.rows_per_second
    watermark, newest = _moments(progress, reports)
    newest = max((moment for moment in (figures.newest, newest) if moment is not None), default=None)
    bounds = _bounds(reports)
    states = progress.stateOperators
    witness = max(seen.get(WITNESS) or 0 for seen in reports)
    spare = witness - 1 if witness else figures.spare
    return replace(
        figures,
        batch=progress.batchId,
        batches=figures.batches + 1,
        rows=figures.rows + total("rows"),
        rows_per_second=pace,
        watermark=watermark,
        newest=newest,
        lag=max(datetime.now(UTC) - newest, timedelta(0)) if isinstance(newest, datetime) else None,
        groups=max(_groups(states[0], total("states") or figures.groups) - spare, 0) if states else figures.groups,
        spare=spare,
        candidates=total("candidates") or figures.candidates,
        state_bytes=total("state bytes") or figures.state_bytes,
        states=total("states") or figures.states,
        largest_state=max(seen.get("largest state") or 0 for seen in reports) or figures.largest_state,
        null_times=figures.null_times + total("null times"),
        bad_rows=figures.bad_rows + bad.get("bad rows", 0),
        last_bad=bad.get("last bad") or figures.last_bad,
        by_shard={**figures.by_shard, **_standing(text for seen in reports for text in seen.get(STANDING) or ())},
        commands=figures.commands + total("commands"),
        refused_commands=figures.refused_commands + total("refused commands"),
        seen=_added(figures.seen, dict.fromkeys(told, total("rows"))),
        late=_added(figures.late, {name: one.late for name, one in told.items()}),
        nulls=_added(figures.nulls, {name: one.nulls for name, one in told.items() if one.nulls is not None}),
        refused=figures.refused + total("refused"),
        refusals=_added(figures.refusals, {name: one.refused for name, one in told.items() if one.refused}),
        results=_added(figures.results, {name: one.results for name, one in told.items()}),
        held=_newest(figures.held, {name: one.candidates for name, one in told.items()}),
        sizes=_newest(figures.sizes, {name: one.bytes for name, one in told.items()}),
        missed=_newest(figures.missed, {name: missed for name, (missed, _) in bounds.items() if missed is not None}),
        precision=_newest(figures.precision, {name: share for name, (_, share) in bounds.items() if share is not None}),
    )


def _groups(operator: Any, told: int) -> int:
    """States in the store. A log has many entries there, but all logs tell of themselves in every micro-batch."""
    return told if operator.operatorName.startswith("transformWithState") else operator.numRowsTotal


def observed(progress: Any, name: str) -> dict[str, Any]:
    """The metrics that a micro-batch reports under a name; none where it reports nothing.

    A client of Spark Connect gets them as a row of `values` and their `schema`.
    """
    row = progress.observedMetrics.get(name)
    found: dict[str, Any] = row.asDict() if row is not None else {}
    if set(found) == {"values", "schema"}:
        return dict(zip((field["name"] for field in found["schema"]["fields"]), found["values"], strict=True))
    return found


def _added(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    return _newest(before, {name: before.get(name, 0) + count for name, count in now.items()})


def _standing(said: Iterable[str]) -> dict[str, int]:
    """Queries by shard, of the shards that were called."""
    return {shard: int(count) for shard, count in (text.split() for text in said)}


def _bounds(reports: Iterable[Mapping[str, Any]]) -> Bounds:
    """What approximate answers of the micro-batch are worth."""
    found: Bounds = {}
    for seen in reports:
        own: Bounds = {}
        for text in seen.get(BOUNDS) or ():
            own = {**own, **{name: worst(said, own.get(name)) for name, said in json.loads(text).items()}}
        own |= {key.removeprefix(MISSED): (value, None) for key, value in seen.items() if key.startswith(MISSED)}
        own |= {key.removeprefix(PRECISION): (None, value) for key, value in seen.items() if key.startswith(PRECISION)}
        found = {**found, **{name: worst(said, found.get(name)) for name, said in own.items()}}
    return found


def _newest(before: Mapping[str, Number], now: Mapping[str, Number]) -> dict[str, Number]:
    """Figures by query; where queries come and go by the thousand, those of the ones heard of last."""
    found = {name: count for name, count in before.items() if name not in now} | dict(now)
    return dict(islice(found.items(), max(len(found) - MOST_QUERIES, 0), None))


def _note_latencies(latencies: Latencies, told: Mapping[str, Told], progress: Any) -> None:
    """When the micro-batch was committed is its trigger's time and how long it took, both by the driver's clock."""
    took = timedelta(milliseconds=(progress.durationMs or {}).get("triggerExecution", 0))
    committed = datetime.fromisoformat(progress.timestamp) + took
    for name, one in told.items():
        if one.results:
            delay = None if one.oldest is None else committed - (_EPOCH + timedelta(microseconds=one.oldest))
            window = None if delay is None else max(delay.total_seconds(), 0.0)
            latencies.add(name, one.results, took.total_seconds(), window)


def _moments(progress: Any, reports: list[dict[str, Any]]) -> tuple[Moment | None, Moment | None]:
    """The watermark, and the greatest time. Spark reports milliseconds; what those of an integer column stand for, the stream
    tells."""
    tick, behind = (max(seen.get(name) or 0 for seen in reports) for name in ("tick", "behind"))
    found: list[Moment | None] = []
    for name, more in (("watermark", 0), ("max", behind)):
        text = progress.eventTime.get(name)
        moment = _EPOCH if text is None else datetime.fromisoformat(text)
        if moment == _EPOCH:
            found.append(None)
        elif tick:
            scale = Scale(tick, integer=True)
            found.append(scale.time((moment - _EPOCH) // timedelta(milliseconds=1)) + more)
        else:
            found.append(moment)
    return found[0], found[1]


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
            self.figures = after(self.figures, event.progress, self.plan.digest)

    def onQueryIdle(self, event: Any) -> None:
        """No rows came."""

    def onQueryTerminated(self, event: Any) -> None:
        """All reports have come."""
        if self.run in (None, str(event.runId)):
            self.ended.set()


def figures_of(reports: Iterable[Any]) -> Figures:
    """The figures of a stream from its progress records, such as `query.recentProgress`."""
    figures = Figures()
    for report in reports:
        figures = after(figures, report)
    return figures

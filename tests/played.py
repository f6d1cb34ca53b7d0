"""Play a scenario on the monitor and on the reference, and bring both into one form to compare."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

import skyband as sb
from reference import Event, Reference, Row
from streams import Scenario, Step

EPOCH = datetime(1970, 1, 1)
RESULT_COLUMNS = ("query", "window_end", "window_end_time", "event", "rank", "score", "seq")
ROW = pa.schema([("t", pa.int64()), ("x", pa.float64()), ("y", pa.float64()), ("g", pa.int64()), ("tag", pa.string())])
UNITS = {"s": 1, "ms": 1000}


def batch_of(rows: Iterable[Row], unit: str | None = None) -> pa.Table:
    """Rows as a table; with a unit, `t` counts that unit in a timestamp column."""
    table = pa.Table.from_pylist(list(rows), ROW)
    if unit is None:
        return table
    return table.set_column(0, "t", table.column("t").cast(pa.timestamp(unit)))


def moment(time: int, unit: str | None) -> Any:
    """A time as advance() takes it."""
    return time if unit is None else EPOCH + timedelta(seconds=time / UNITS[unit])


def number(value: Any, unit: str | None) -> Any:
    """A time or a window's end as an integer in the time column's unit."""
    if not isinstance(value, datetime):
        return value
    assert unit is not None
    since = (value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value) - EPOCH
    ticks, rest = divmod(since, timedelta(seconds=1) / UNITS[unit])
    assert not rest
    return ticks


def comparable(value: Any) -> Any:
    """NaN equals itself here."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def plain(row: Row) -> tuple[tuple[str, Any], ...]:
    return tuple((name, comparable(value)) for name, value in row.items())


def events_of(table: pa.Table, unit: str | None = None) -> list[Event]:
    """A result table as the reference's events."""
    events = []
    for found in table.to_pylist():
        end = found["window_end"] if found["window_end"] is not None else found["window_end_time"]
        row = {name: number(value, unit) for name, value in found.items() if name not in RESULT_COLUMNS}
        events.append(
            Event(found["query"], number(end, unit), found["event"], found["rank"], found["score"], found["seq"], plain(row))
        )
    return events


def plain_events(events: Iterable[Event]) -> list[Event]:
    return [event._replace(row=plain(event.row)) for event in events]


def top_of(monitor: Any, name: str, unit: str | None = None) -> list[tuple[Any, ...]]:
    """(rank, score, seq, row) of the current top."""
    found = []
    for ranked in monitor.top(name).to_pylist():
        row = {column: number(value, unit) for column, value in ranked.items() if column not in ("rank", "score", "seq")}
        found.append((ranked["rank"], ranked["score"], ranked["seq"], plain(row)))
    return found


def reference_top(reference: Reference, name: str) -> list[tuple[Any, ...]]:
    top = reference.standing[name].top
    return [(rank, ranked.score, ranked.seq, plain(ranked.row)) for rank, ranked in enumerate(top, start=1)]


def monitor_of(scenario: Scenario, unit: str | None = None) -> Any:
    lateness = scenario.lateness if unit is None else f"{scenario.lateness} {unit}"
    queries = [question.query(unit) for question in scenario.questions]
    return sb.Monitor(queries, time=scenario.time, lateness=lateness) if scenario.time else sb.Monitor(queries)


def reference_of(scenario: Scenario) -> Reference:
    return Reference([question.asked() for question in scenario.questions], scenario.time, scenario.lateness)


def take(monitor: Any, step: Step, unit: str | None = None) -> list[Event]:
    """One call to the monitor; its events."""
    if step[0] == "push":
        return events_of(monitor.push(batch_of(step[1], unit)), unit)
    if step[0] == "advance":
        return events_of(monitor.advance(moment(step[1], unit)), unit)
    if step[0] == "flush":
        return events_of(monitor.flush(), unit)
    if step[0] == "add":
        monitor.add(step[1].query(unit))
    else:
        monitor.cancel(step[1])
    return []


def take_reference(reference: Reference, step: Step) -> list[Event]:
    """The same call to the reference."""
    if step[0] == "push":
        return plain_events(reference.push(step[1]))
    if step[0] == "advance":
        return plain_events(reference.advance(step[1]))
    if step[0] == "flush":
        return plain_events(reference.flush())
    if step[0] == "add":
        reference.add(step[1].asked())
    else:
        reference.cancel(step[1])
    return []


def by_query(events: Sequence[Event]) -> dict[str, list[Event]]:
    """The events of each query, in their order."""
    found: dict[str, list[Event]] = {}
    for event in events:
        found.setdefault(event.query, []).append(event)
    return found


def reloaded(monitor: Any, callables: Mapping[str, Any] | None = None) -> Any:
    """The monitor as it comes back from what is written down of it."""
    from skyband.saving import monitor_from_bytes, monitor_to_bytes

    return monitor_from_bytes(sb.Monitor, monitor_to_bytes(monitor), callables or {})

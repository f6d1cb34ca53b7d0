"""The monitor's meaning in plain Python: lists, dicts and `sorted`, one row at a time.

Nothing here is shared with the engine. A row is a dict; its score and its filter are Python functions of that dict.
Slow on purpose: every window is cut out of all rows ever accepted and sorted whole.

    stream    each row gets the next seq; the watermark is the greatest time so far minus lateness, row by row
    late      the end of the slide a row falls into is at or below the watermark before that row
    order     larger score (smaller for "asc"), then later time (time windows), then later arrival
    windows   end at multiples of slide; hold end - size <= position < end, position being time or seq
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Row = dict[str, Any]


class Ranked(NamedTuple):
    """A row with what ranks it."""

    score: float
    position: int  # its seq (count windows) or its time (time windows)
    seq: int
    row: Row


class Event(NamedTuple):
    """One row of what push, advance and flush give."""

    query: str
    window_end: int
    event: str  # "enter" | "leave" | "top"
    rank: int | None
    score: float
    seq: int
    row: Row


@dataclass(frozen=True)
class Asked:
    """A top-k query as plain parameters."""

    name: str
    k: int
    score: Callable[[Row], float | None]
    kind: str  # "count" | "time"
    size: int
    slide: int
    order: str = "desc"
    where: Callable[[Row], bool | None] | None = None
    emit: str = "changes"


@dataclass
class Standing:
    """A query and all that happened to it."""

    asked: Asked
    since: int  # arrivals before it was added
    rows: list[tuple[int, int, Row]] = field(default_factory=list)  # (position, seq, row) of every accepted row
    closed: int | None = None  # end of the last reported window
    predecessor_held_rows: bool = False
    late: int = 0
    nulls: int = 0
    top: list[Ranked] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)  # seqs that have ranked, ever
    reported: list[tuple[int, list[Ranked]]] = field(default_factory=list)  # every window with its ranked rows
    events: list[Event] = field(default_factory=list)  # not handed out yet


class Reference:
    """What a monitor must answer."""

    def __init__(self, queries: Iterable[Asked], time: str | None = None, lateness: int = 0) -> None:
        self.time, self.lateness = time, lateness
        self.arrived = 0
        self.greatest: int | None = None
        self.watermark: int | None = None
        self.standing: dict[str, Standing] = {}
        for asked in queries:
            self.add(asked)

    def add(self, asked: Asked) -> None:
        assert asked.name not in self.standing
        self.standing[asked.name] = Standing(asked, self.arrived)

    def cancel(self, name: str) -> None:
        del self.standing[name]

    def push(self, rows: Iterable[Row]) -> list[Event]:
        for row in rows:
            self._take(row)
        return self._hand_out()

    def advance(self, time: int) -> list[Event]:
        self._move_watermark(time)
        return self._hand_out()

    def flush(self) -> list[Event]:
        """Close every window that holds rows and the first empty one after them."""
        ends = []
        for standing in self._of_kind("time"):
            while (end := self._next_end(standing)) is not None:
                self._report(standing, end)
                ends.append(end)
        if ends:
            self.watermark = max(ends) if self.watermark is None else max(self.watermark, *ends)
        return self._hand_out()

    def _of_kind(self, kind: str) -> list[Standing]:
        return [standing for standing in self.standing.values() if standing.asked.kind == kind]

    def _take(self, row: Row) -> None:
        seq = self.arrived
        self.arrived += 1
        for standing in self._of_kind("count"):
            self._accept(standing, seq, seq, row)
            if self.arrived % standing.asked.slide == 0:
                self._report(standing, self.arrived)
        if self.time is None:
            return
        time = row[self.time]
        for standing in self._of_kind("time"):
            slide_end = (time // standing.asked.slide + 1) * standing.asked.slide
            if self.watermark is not None and slide_end <= self.watermark:
                standing.late += 1
            else:
                self._accept(standing, time, seq, row)
        self.greatest = time if self.greatest is None else max(self.greatest, time)
        self._move_watermark(self.greatest - self.lateness)

    def _accept(self, standing: Standing, position: int, seq: int, row: Row) -> None:
        standing.rows.append((position, seq, row))
        standing.nulls += _score(standing.asked, row) is None

    def _move_watermark(self, time: int) -> None:
        self.watermark = time if self.watermark is None else max(self.watermark, time)
        for standing in self._of_kind("time"):
            while (end := self._next_end(standing)) is not None and end <= self.watermark:
                self._report(standing, end)

    def _next_end(self, standing: Standing) -> int | None:
        """End of the next window to report: the successor of one that held rows, else the next that holds rows."""
        slide = standing.asked.slide
        if standing.predecessor_held_rows:
            assert standing.closed is not None
            return standing.closed + slide
        waiting = [position for position, _, _ in standing.rows if standing.closed is None or position >= standing.closed]
        return (min(waiting) // slide + 1) * slide if waiting else None

    def _report(self, standing: Standing, end: int) -> None:
        asked = standing.asked
        held = [entry for entry in standing.rows if end - asked.size <= entry[0] < end]
        ranked = sorted((r for r in (_rank(asked, *entry) for entry in held) if r is not None), key=_order(asked))
        before, standing.top = standing.top, ranked[: asked.k]
        standing.closed, standing.predecessor_held_rows = end, bool(held)
        standing.reported.append((end, standing.top))
        standing.events += [Event(asked.name, end, *event) for event in _changes(standing, before)]
        standing.seen |= {r.seq for r in standing.top}

    def _hand_out(self) -> list[Event]:
        """All events since the last call, the queries in the order of their registration."""
        events = [event for standing in self.standing.values() for event in standing.events]
        for standing in self.standing.values():
            standing.events = []
        return events


def _score(asked: Asked, row: Row) -> float | None:
    score = asked.score(row)
    return None if score is None or math.isnan(score) else score


def _rank(asked: Asked, position: int, seq: int, row: Row) -> Ranked | None:
    score = _score(asked, row)
    if score is None or (asked.where is not None and not asked.where(row)):
        return None
    return Ranked(score, position, seq, row)


def _order(asked: Asked) -> Callable[[Ranked], tuple[float, int, int]]:
    sign = -1 if asked.order == "desc" else 1
    return lambda r: (sign * r.score, -r.position, -r.seq)


def _changes(standing: Standing, before: list[Ranked]) -> list[tuple[str, int | None, float, int, Row]]:
    """What the query's emit mode says of its new top, `before` being the one of the window reported before."""
    top = list(enumerate(standing.top, start=1))
    if standing.asked.emit == "none":
        return []
    if standing.asked.emit == "snapshots":
        return [("top", rank, r.score, r.seq, r.row) for rank, r in top]
    if standing.asked.emit == "arrivals":
        return [("enter", rank, r.score, r.seq, r.row) for rank, r in top if r.seq not in standing.seen]
    now, then = {r.seq for r in standing.top}, {r.seq for r in before}
    leave = [("leave", None, r.score, r.seq, r.row) for r in before if r.seq not in now]
    enter = [("enter", rank, r.score, r.seq, r.row) for rank, r in top if r.seq not in then]
    return leave + enter

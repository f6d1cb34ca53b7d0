"""What a query across streams must answer, in plain Python: every window cut out of all tuples and sorted whole.

Nothing here is shared with the engine.

    life      an object's tuple that counts continues its life if some window holds it and the one before
    counts    the first `repeats` tuples of an object in a stream during its life
    value     of a stream: the sum, maximum or latest of the tuples in the window that count; 0 where there is none
    score     sum, mean, max or weighted sum of the values, streams in their order
    order     larger score, then newer newest tuple
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import reference
from reference import Event, Ranked, Reference, Row, Standing


class Fact(NamedTuple):
    """A tuple that counts."""

    position: int
    seq: int
    key: Any
    stream: Any
    value: float
    life: tuple[int, int]  # when its object's life began


@dataclass(frozen=True)
class Asked(reference.Asked):
    """A query across streams as plain parameters; rows have `key`, `stream` and `value`."""

    streams: tuple[Any, ...] = ()
    combine: Any = "sum"
    aggregate: str = "sum"
    repeats: int | None = None


def asked(name: str, k: int, kind: str, size: int, slide: int, streams: Sequence[Any], **more: Any) -> Asked:
    return Asked(name, k, lambda row: row["value"], kind, size, slide, streams=tuple(streams), **more)


def counting(query: Asked, rows: list[tuple[int, int, Row]]) -> list[Fact]:
    """The tuples that count, in order."""
    facts: list[Fact] = []
    newest: dict[Any, Fact] = {}
    counts: dict[Any, dict[Any, int]] = {}
    for position, seq, row in sorted(rows, key=lambda entry: entry[:2]):
        value, key, stream = row["value"], row["key"], row["stream"]
        if value is None or math.isnan(value):
            continue
        first_end = (position // query.slide + 1) * query.slide
        if key not in newest or newest[key].position < first_end - query.size:
            life, counts[key] = (position, seq), dict.fromkeys(query.streams, 0)
        else:
            life = newest[key].life
        if query.repeats is not None and counts[key][stream] >= query.repeats:
            continue
        counts[key][stream] += 1
        newest[key] = Fact(position, seq, key, stream, value, life)
        facts.append(newest[key])
    return facts


def ranked(query: Asked, facts: list[Fact]) -> list[tuple[float, Fact]]:
    """Objects of these tuples, best first: their score and newest tuple."""
    values: dict[Any, dict[Any, list[float]]] = {}
    newest: dict[Any, Fact] = {}
    for fact in facts:
        values.setdefault(fact.key, {}).setdefault(fact.stream, []).append(fact.value)
        newest[fact.key] = fact
    scored = [(score_of(query, values[key]), newest[key]) for key in values]
    return sorted(scored, key=lambda entry: (entry[0], entry[1].position, entry[1].seq), reverse=True)


def score_of(query: Asked, values: dict[Any, list[float]]) -> float:
    total = 0.0
    for stream in query.streams:
        value = 0.0
        seen = values.get(stream, [])
        if seen:
            value = max(seen) if query.aggregate == "max" else seen[-1]
            if query.aggregate == "sum":
                value = seen[0]
                for more in seen[1:]:
                    value += more
        if isinstance(query.combine, dict):
            # weights are applied to the values before anything is added up
            value = 0.0
            weighted = [query.combine[stream] * x if query.combine[stream] else 0.0 for x in seen]
            if weighted:
                value = max(weighted) if query.aggregate == "max" else weighted[-1]
                if query.aggregate == "sum":
                    value = weighted[0]
                    for more in weighted[1:]:
                        value += more
        total = max(total, value) if query.combine == "max" else total + value
    return total / len(query.streams) if query.combine == "mean" else total


class AcrossReference(Reference):
    """What a monitor of such queries must answer; an event's `seq` is the object's key."""

    def _report(self, standing: Standing, end: int) -> None:
        query = standing.asked
        assert isinstance(query, Asked)
        held = [entry for entry in standing.rows if end - query.size <= entry[0] < end]
        facts = counting(query, [entry for entry in standing.rows if entry[0] < end])
        objects = ranked(query, [fact for fact in facts if fact.position >= end - query.size])
        before = standing.top
        standing.top = [Ranked(score, fact.position, fact.key, {"key": fact.key}) for score, fact in objects[: query.k]]
        standing.closed, standing.predecessor_held_rows = end, bool(held)
        standing.reported.append((end, standing.top))
        lives = {fact.key: fact.life for _, fact in objects}
        fresh = {r.seq for r in standing.top if (r.seq, lives[r.seq]) not in standing.seen}
        standing.events += [Event(query.name, end, *event) for event in self._events(standing, before, fresh)]
        standing.seen |= {(r.seq, lives[r.seq]) for r in standing.top}

    def _events(self, standing: Standing, before: list[Ranked], fresh: set[Any]) -> list[tuple[Any, ...]]:
        if standing.asked.emit != "arrivals":
            return reference._changes(standing, before)
        top = enumerate(standing.top, start=1)
        return [("enter", rank, r.score, r.seq, r.row) for rank, r in top if r.seq in fresh]

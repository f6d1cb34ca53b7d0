"""Which query goes where: checked against the columns, then seated in a lane with those it can share one with."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skyband.algorithms import settled, with_error
from skyband.clock import Clock
from skyband.errors import QueryError
from skyband.lanes import CountLane, CrowdLane, Lane, Member, TimeLane, crowd_key
from skyband.query import Query, Threshold
from skyband.score import BoundScore, bind, bind_where, score_key, where_key
from skyband.window import CountWindow


@dataclass(frozen=True)
class Door:
    """How a row's columns become the score a lane sees: what is ranked, which way, which rows."""

    score: Hashable
    order: str
    where: Hashable
    above: float | None = None  # a threshold query's bound


@dataclass
class Place:
    """A query that has been checked against the columns and found its key: queries of one key may share a lane."""

    query: Query
    door: Door
    key: Hashable
    size: int
    slide: int
    algorithm: str

    @property
    def in_crowd(self) -> bool:
        return crowd_key(self.query, self.algorithm) is not None


def place(query: Query, schema: pa.Schema, clock: Clock | None) -> Place:
    """Check a query against the columns; SchemaError when it does not fit them. Changes nothing."""
    above = query.above if isinstance(query, Threshold) else None
    door = Door(score_key(query.score), query.order, where_key(query.where), above)
    algorithm = with_error(query.algorithm, query.error)
    bind(query.score, schema)
    if query.where is not None:
        bind_where(query.where, schema)
    if isinstance(query.window, CountWindow):
        size, slide = query.window.size, query.window.slide
        return Place(query, door, crowd_key(query, algorithm) or (door, "count", algorithm), size, slide, algorithm)
    assert clock is not None
    size = clock.length(query.window.size, f"the window size of query {query.name!r}")
    slide = clock.length(query.window.slide, f"the window slide of query {query.name!r}")
    return Place(query, door, (door, "time", slide, algorithm), size, slide, algorithm)


def seat(places: list[Place], since: int) -> list[tuple[Hashable, Door, Lane]]:
    """New lanes for queries, ready for the next row: one lane a key, where structures can be shared. Changes nothing.
    Those for a crowd are left out: they may join one that is there."""
    seated: list[tuple[Hashable, Door, Lane]] = []
    for one in places:
        if one.in_crowd:
            _check_memory(one)
            continue
        lane = next((x for key, _, x in seated if key == one.key and x.admits(one.algorithm)), None)
        if lane is None:
            kind = CountLane if isinstance(one.query.window, CountWindow) else TimeLane
            lane = kind(since, one.algorithm)
            seated.append((one.key, one.door, lane))
        lane.members.append(Member(one.query, one.size, one.slide))
    for _, _, lane in seated:
        try:
            lane.start()
        except QueryError:
            raise
        except (MemoryError, OverflowError, ValueError) as problem:
            names = ", ".join(repr(member.query.name) for member in lane.members)
            raise QueryError(
                f"there is not memory enough to answer {names}: {problem}; ask for a smaller k or window"
            ) from problem
    return seated


def _check_memory(one: Place) -> None:
    """QueryError when a crowd could not take the query up for want of memory."""
    rows = 8 * one.query.k + (one.size + one.slide if settled(one.algorithm)[0].family == "spatial" else 0)
    try:
        np.empty((rows, 8))
    except (MemoryError, ValueError) as problem:
        raise QueryError(
            f"there is not memory enough to answer {one.query.name!r}: {problem}; ask for a smaller k or window"
        ) from problem


def join_crowds(places: list[Place], lanes: list[tuple[Hashable, Door | None, Lane]], since: int) -> None:
    """Let the places for a crowd join theirs; add one to `lanes` where there is none."""
    for one in places:
        if not one.in_crowd:
            continue
        lane = next((x for key, _, x in lanes if key == one.key), None)
        if lane is None:
            lane = CrowdLane.of(one.query, one.algorithm, since)
            lanes.append((one.key, None, lane))
        assert isinstance(lane, CrowdLane)
        lane.join(Member(one.query, one.size, one.slide), one.algorithm)


def bind_place(one: Place, schema: pa.Schema, bound: dict[Hashable, BoundScore]) -> None:
    """Add what evaluates the place's score and `where` to `bound`."""
    bound[one.door.score] = bind(one.query.score, schema)
    if one.query.where is not None:
        bound[one.door.where] = bind_where(one.query.where, schema)

"""Which query goes where: checked against the columns, then seated in a lane with those it can share one with."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from skyband.algorithms import settled, with_error
from skyband.binding import check_columns
from skyband.clock import Clock
from skyband.errors import QueryError
from skyband.lanes import CountLane, CrowdLane, Door, Lane, PairCountLane, PairTimeLane, Place, TimeLane, crowd_key
from skyband.query import Query, Threshold, TopKPairs
from skyband.score import BoundScore, bind, bind_where, score_key, where_key
from skyband.window import CountWindow


def place(query: Query, schema: pa.Schema, clock: Clock | None) -> Place:
    """Check a query against the columns; SchemaError when it does not fit them. Changes nothing."""
    size, slide = window_lengths(query, clock)
    if isinstance(query, TopKPairs):
        return _pairs_place(query, schema, size, slide)
    above = query.above if isinstance(query, Threshold) else None
    door = Door(score_key(query.score), query.order, where_key(query.where), above)
    algorithm = with_error(query.algorithm, query.error)
    bind(query.score, schema)
    if query.where is not None:
        bind_where(query.where, schema)
    if (crowd := crowd_key(query, algorithm)) is not None:
        return Place(query, CrowdLane, crowd, size, slide, algorithm)
    if isinstance(query.window, CountWindow):
        return Place(query, CountLane, (door, "count", algorithm), size, slide, algorithm, door)
    return Place(query, TimeLane, (door, "time", slide, algorithm), size, slide, algorithm, door, timed=True)


def _pairs_place(query: TopKPairs, schema: pa.Schema, size: int, slide: int) -> Place:
    """The same for a query of pairs."""
    door = query.door
    check_columns("score", str(door.score), door.scored, schema)
    if door.where is not None:
        check_columns("condition", str(door.where), door.columns, schema)
    timed = not isinstance(query.window, CountWindow)
    key = ("pairs", door, slide if timed else None, query.algorithm)
    return Place(query, PairTimeLane if timed else PairCountLane, key, size, slide, query.algorithm, timed=timed)


def window_lengths(query: Query, clock: Clock | None) -> tuple[int, int]:
    """Size and slide of a query's window: in rows, or in the time column's unit."""
    if isinstance(query.window, CountWindow):
        return query.window.size, query.window.slide
    assert clock is not None
    size = clock.length(query.window.size, f"the window size of query {query.name!r}")
    return size, clock.length(query.window.slide, f"the window slide of query {query.name!r}")


def seat(places: list[Place], lanes: list[Lane], since: int) -> tuple[list[Lane], list[tuple[Lane, Place]]]:
    """Where queries go from the next row on: new lanes, ready for it, and which queries are to join which of `lanes`.
    Changes none of these."""
    new: list[Lane] = []
    joining: list[tuple[Lane, Place]] = []
    for one in places:
        if one.door is None:
            _check_memory(one)
        if (lane := _open_to(one, lanes)) is not None:
            joining.append((lane, one))
            continue
        if (lane := _open_to(one, new)) is None:
            with _memory_for([one.query]):
                lane = one.lane(one, since)
            new.append(lane)
        with _memory_for([one.query]):
            lane.join(one)
    for lane in new:
        with _memory_for([member.query for member in lane.members]):
            lane.start()
    return new, joining


def _open_to(one: Place, lanes: list[Lane]) -> Lane | None:
    return next((lane for lane in lanes if lane.key == one.key and lane.admits(one)), None)


@contextmanager
def _memory_for(queries: list[Query]) -> Iterator[None]:
    """QueryError in place of what is raised when there is not memory enough."""
    try:
        yield
    except QueryError:
        raise
    except (MemoryError, OverflowError, ValueError) as problem:
        names = ", ".join(repr(query.name) for query in queries)
        raise QueryError(f"there is not memory enough to answer {names}: {problem}; ask for a smaller k or window") from problem


def _check_memory(one: Place) -> None:
    """QueryError when a lane could not take the query up for want of memory."""
    spatial = one.algorithm != "auto" and settled(one.algorithm)[0].family == "spatial"
    rows = 8 * _most(one) + (one.size + one.slide if spatial else 0)
    with _memory_for([one.query]):
        np.empty((rows, 8))


def _most(one: Place) -> int:
    """How many rows, or pairs of them, an answer may have."""
    if isinstance(one.query, TopKPairs) and not one.timed:
        return min(one.query.k, one.size * (one.size - 1) // 2)
    return one.query.k


def bind_place(one: Place, schema: pa.Schema, bound: dict[Hashable, BoundScore]) -> None:
    """Add what evaluates the place's score and `where` to `bound`."""
    if one.door is None or isinstance(one.query, TopKPairs):
        return
    bound[one.door.score] = bind(one.query.score, schema)
    if one.query.where is not None:
        bound[one.door.where] = bind_where(one.query.where, schema)

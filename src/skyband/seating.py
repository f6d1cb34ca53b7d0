"""Which query goes where: checked against the columns, then seated in a lane with those it can share one with."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator
from contextlib import contextmanager
from typing import get_args

import numpy as np
import pyarrow as pa

from skyband.across_query import TopKAcross
from skyband.algorithms import TABLE, entry, load, settled, with_error
from skyband.clock import Clock
from skyband.errors import QueryError
from skyband.gathering import gathered
from skyband.lanes import (
    CountLane,
    CrowdLane,
    Door,
    Lane,
    PairCountLane,
    PairTimeLane,
    Place,
    ScoresLane,
    TimeLane,
    across_place,
    auto_key,
    crowd_key,
    crowd_lane,
    in_scores_lane,
)
from skyband.query import Query, Threshold, TopK, TopKPairs
from skyband.scores.binding import check_tree
from skyband.scores.pair_score import bare
from skyband.scores.score import BoundScore, as_tree, bind, bind_where, score_key, where_key
from skyband.window import CountWindow


def check_new(query: Query, there: Container[str], *, timed: bool, deletions: bool) -> None:
    """QueryError when a monitor cannot take a query up, whatever the columns: one that answers those called as in `there`,
    `timed` if it names a time column; `deletions`: rows may be deleted."""
    if not isinstance(query, get_args(Query)):
        raise QueryError(f"expected a query such as TopK, Threshold, TopKPairs or TopKAcross, got {query!r}")
    if query.name in there:
        raise QueryError(f"a query called {query.name!r} is there already; give this one another name or cancel that one first")
    if not isinstance(query.window, CountWindow) and not timed:
        raise QueryError(f"query {query.name!r} has a time window; name the time column: Monitor(..., time='...')")
    if deletions:
        deleting(query)


def place(query: Query, schema: pa.Schema, clock: Clock | None, *, deletions: bool = False) -> Place:
    """Check a query against the columns; SchemaError when it does not fit them. Changes nothing. `deletions`: rows may be
    deleted."""
    size, slide = window_lengths(query, clock)
    if isinstance(query, TopKAcross):
        return across_place(query, schema, size, slide)
    if isinstance(query, TopKPairs):
        return _pairs_place(query, schema, size, slide)
    above = query.above if isinstance(query, Threshold) else None
    door = Door(score_key(query.score), query.order, where_key(query.where), above)
    algorithm = deleting(query) if deletions else with_error(query.algorithm, query.error)
    alike = query.algorithm == "auto" and (isinstance(query, Threshold) or not deletions)
    bind(query.score, schema)
    if query.where is not None:
        bind_where(query.where, schema)
    timed = not isinstance(query.window, CountWindow)
    window = (timed, size, slide)
    if (crowd := crowd_key(query, algorithm, window)) is not None:
        return Place(query, crowd_lane(query, timed=timed), crowd, size, slide, algorithm, timed=timed, deletions=deletions)
    if in_scores_lane(query, algorithm):
        return Place(query, ScoresLane, "scores", size, slide, algorithm, door)
    gathers = auto_key(query, window) if alike else None
    if isinstance(query, Threshold) and algorithm == "auto":
        algorithm = "above"
    lane, key = (TimeLane, (door, "time", slide, algorithm)) if timed else (CountLane, (door, "count", algorithm))
    return Place(query, lane, key, size, slide, algorithm, door, timed=timed, gathers=gathers, deletions=deletions)


def deleting(query: Query) -> str:
    """The algorithm that answers a query while rows may be deleted; QueryError when none can."""
    what = f"query {query.name!r} stands in a monitor with key=, whose rows may be deleted, and"
    if not isinstance(query, TopK | Threshold):
        raise QueryError(f"{what} a {type(query).__name__} cannot do without rows it has dropped; ask it in another monitor")
    if isinstance(query, Threshold):  # whatever answers it drops no row
        return query.algorithm
    algorithm = "tma" if query.algorithm == "auto" else query.algorithm
    if not entry(algorithm).deletions:
        able = ", ".join(repr(row.name) for row in TABLE if row.deletions and row.name != "above")
        raise QueryError(f"{what} {algorithm!r} cannot do without rows it has dropped; use one of {able}, or 'auto'")
    if query.error > 0:
        raise QueryError(f"{what} that needs error=0")
    if "core" not in entry(algorithm).options:
        return algorithm
    tree = as_tree(query.score)
    if tree is None or not tree.columns():
        raise QueryError(f"{what} {algorithm!r} needs a score that is no callable and names a column, got {query.score!r}")
    return algorithm


def _pairs_place(query: TopKPairs, schema: pa.Schema, size: int, slide: int) -> Place:
    """The same for a query of pairs."""
    door = query.door
    check_tree("score", door.score, schema, bare)
    if door.where is not None:
        check_tree("condition", door.where, schema, bare)
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


def seat(places: list[Place], lanes: list[Lane], since: int) -> tuple[list[Lane], dict[Lane, list[Place]]]:
    """Where queries go from the next row on: new lanes, ready for it, and which queries are to join which of `lanes`.
    Changes none of these."""
    places = gathered(places, lanes)
    new: list[Lane] = []
    crowds: dict[Lane, list[Place]] = {}  # of these, crowds, which are taken up together
    joining: dict[Lane, list[Place]] = {}
    for one in places:
        _check_memory(one)
        if (lane := _open_to(one, lanes)) is not None:
            joining.setdefault(lane, []).append(one)
            continue
        if (lane := _open_to(one, new)) is None:
            with _memory_for([one.query]):
                lane = one.lane(one, since)
            new.append(lane)
        if isinstance(lane, CrowdLane):
            crowds.setdefault(lane, []).append(one)
            continue
        with _memory_for([one.query]):
            lane.join(one)
    for lane, together in crowds.items():
        with _memory_for([one.query for one in together]):
            lane.join(*together)
    for lane in new:
        with _memory_for([member.query for member in lane.members]):
            lane.start()
    return new, joining


_NO_SUCH_ARRAY = ("Maximum allowed", "array is too big")  # how NumPy begins to say that


def _open_to(one: Place, lanes: list[Lane]) -> Lane | None:
    return next((lane for lane in lanes if lane.key == one.key and lane.admits(one)), None)


@contextmanager
def _memory_for(queries: list[Query]) -> Iterator[None]:
    """QueryError in place of what is raised when there is not memory enough, or NumPy has no such arrays."""
    try:
        yield
    except (MemoryError, OverflowError, ValueError) as problem:
        if isinstance(problem, ValueError) and not str(problem).startswith(_NO_SUCH_ARRAY):
            raise
        names = ", ".join(repr(query.name) for query in queries)
        raise QueryError(f"there is not memory enough to answer {names}: {problem}; ask for a smaller k or window") from problem


def _check_memory(one: Place) -> None:
    """QueryError when a lane could not take the query up, or keep it over any rows, for want of memory."""
    with _memory_for([one.query]):
        if issubclass(one.lane, CrowdLane):
            spatial = one.algorithm != "auto" and settled(one.algorithm)[0].family == "spatial"
            k = one.query.k if one.timed else min(one.query.k, one.size)
            rows = 8 * k + (one.size + one.slide if spatial and not one.timed else 0)
            np.empty((rows, 8))
        elif one.timed and issubclass(one.lane, TimeLane) and one.algorithm != "auto":
            windows = 2 * (one.size // one.slide + 2)  # a ring has up to twice the places it needs
            np.empty(windows * load(one.algorithm).window_bytes, np.uint8)


def bind_place(one: Place, schema: pa.Schema, bound: dict[Hashable, BoundScore]) -> None:
    """Add what evaluates the place's score and `where` to `bound`."""
    if one.door is None or isinstance(one.query, TopKPairs | TopKAcross):
        return
    bound[one.door.score] = bind(one.query.score, schema)
    if one.query.where is not None:
        bound[one.door.where] = bind_where(one.query.where, schema)

"""What workers are told: the queries over numbered columns, and which of them move together.

On the way through Spark columns go by number: `c0, c1, …` are the input's own, `s0, s1, …` the distinct scores
(NaN outside a query's `where`), `t` is the time as a whole number, `tie` tells rows of equal score and time apart.
Queries with one slide form a *pace*: they close their windows together, so a row is late for all of them or none.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import gcd
from typing import Any, cast, get_args

import pyarrow as pa

from skyband.clock import Clock
from skyband.errors import QueryError, SchemaError
from skyband.expression import Column
from skyband.query import Query, RankedQuery, Threshold, TopK
from skyband.schedule import pane_cuts
from skyband.score import Score, Where, as_tree, score_key, where_key
from skyband.window import CountWindow, Duration, TimeWindow, duration, nanoseconds

TIME, TIE = "t", "tie"


@dataclass(frozen=True)
class Sieve:
    """Of rows in one pane only the best `k` by this score can rank, or those beyond a bound."""

    score: int  # its column is s{score}
    ascending: bool
    k: int
    above: float | None = None  # the bound of a threshold; `k` is of no meaning then


@dataclass(frozen=True)
class Pace:
    """Queries that close their windows together: of one slide, or all that count rows (`slide` None)."""

    slide: int | None
    queries: tuple[RankedQuery, ...]  # over numbered columns, durations as whole numbers
    cuts: tuple[int, ...] = ()  # where, within a slide, some window begins
    sieves: tuple[Sieve, ...] = ()

    @property
    def sizes(self) -> dict[str, int]:
        """The window size of each query, by name."""
        return {query.name: cast(int, query.window.size) for query in self.queries}


@dataclass(frozen=True)
class Plan:
    """Everything a worker needs, and nothing that only the driver has."""

    schema: pa.Schema  # of the input's columns, under their numbered names
    scores: int
    bare: tuple[int | None, ...]  # per score: the column it is, as it stands, so that it need not travel twice
    filtered: tuple[bool, ...]  # per score: has a `where`, so that m{i} says which scores are unknown
    time: int | None  # number of the time column
    arrival: bool  # tie is a column that gives the order of arrival
    groups: tuple[int, ...]
    tick: int  # one millisecond of Spark's watermark, in the time column's unit
    lateness: int  # in ticks
    paces: tuple[Pace, ...]
    marks: Mapping[str, str]  # what a checkpoint must agree with: a digest per query, and of the rest

    @property
    def group_types(self) -> dict[str, pa.DataType]:
        """What rows are brought together by: the group columns as g0, g1, …; one constant where there are none."""
        types = {f"g{at}": self.schema.field(i).type for at, i in enumerate(self.groups)}
        return types or {"g0": pa.int32()}

    @property
    def counts_rows(self) -> bool:
        """Some query counts rows: then every row must travel, for each moves the windows."""
        return any(pace.slide is None for pace in self.paces)

    @property
    def waits(self) -> bool:
        """Rows are held until the watermark passes them."""
        return not (self.arrival and all(pace.slide is None for pace in self.paces))

    @property
    def wakes(self) -> bool:
        """Groups must be called when others move the watermark. A single one moves it alone, by its own rows."""
        return self.waits and bool(self.groups)

    @property
    def digest(self) -> str:
        """Tells plans apart."""
        return digest(dict(self.marks))

    @staticmethod
    def score_of(query: RankedQuery) -> int:
        """The number of a rewritten query's score."""
        assert isinstance(query.score, str)
        return int(query.score.removeprefix("s"))

    @property
    def time_type(self) -> pa.DataType:
        return pa.int64() if self.time is None else self.schema.field(self.time).type


@dataclass(frozen=True)
class Request:
    """A plan, and what the driver must compute for it: the distinct scores, each with its `where`."""

    plan: Plan
    scores: tuple[tuple[Score, Where | None], ...]


def make_request(
    schema: pa.Schema,
    queries: Iterable[Query] | Query,
    time: str | None,
    lateness: Duration,
    groups: Iterable[str],
    arrival: str | None,
) -> Request:
    """Check what is asked against the input's columns; QueryError or SchemaError when it does not fit."""
    asked = _checked(queries)
    counting = [query for query in asked if isinstance(query.window, CountWindow)]
    if time is None and len(counting) < len(asked):
        name = next(query.name for query in asked if not isinstance(query.window, CountWindow))
        raise QueryError(f"query {name!r} has a time window; name the time column: monitor(..., time='...')")
    if counting and time is None and arrival is None:
        raise QueryError(
            f"query {counting[0].name!r} counts rows, so their order matters; name the column that gives the order of arrival "
            "(arrival='...', an offset or sequence number), or time='...' to count rows in the order of their time"
        )
    clock = None if time is None else Clock(known_column(schema, time, "time"), schema)
    check_arrival(schema, arrival)
    grouping = check_groups(schema, groups)
    distinct: dict[Any, int] = {}
    scores: list[tuple[Score, Where | None]] = []
    rewritten: list[RankedQuery] = []
    for query in asked:
        key = (score_key(query.score), where_key(query.where))
        if key not in distinct:
            distinct[key] = len(scores)
            scores.append((query.score, query.where))
        rewritten.append(_over_numbered_columns(query, distinct[key], clock))
    paces = _paces(rewritten)
    allowed, tick = ticks(clock, lateness, [pace.slide for pace in paces if pace.slide is not None])
    plan = Plan(
        schema=pa.schema([field.with_name(f"c{i}") for i, field in enumerate(schema)]),
        scores=len(scores),
        bare=tuple(_bare(score, where, schema) for score, where in scores),
        filtered=tuple(where is not None for _, where in scores),
        time=None if time is None else schema.names.index(time),
        arrival=arrival is not None,
        groups=tuple(schema.names.index(name) for name in grouping),
        tick=tick,
        lateness=allowed,
        paces=paces,
        marks=_marks(asked, schema, time, grouping, arrival),
    )
    return Request(plan, tuple(scores))


def _checked(queries: Iterable[Query] | Query) -> list[RankedQuery]:
    given: list[Query] = [queries] if isinstance(queries, get_args(Query)) else list(cast(Iterable[Query], queries))
    if not given:
        raise QueryError("there is nothing to answer: give at least one query, such as TopK(...)")
    asked: list[RankedQuery] = []
    names: set[str] = set()
    for query in given:
        if not isinstance(query, TopK | Threshold):
            raise QueryError(
                f"expected a TopK or a Threshold, got {query!r}; the pipeline on Spark answers these, a skyband.Monitor in one "
                "process every kind of query"
            )
        if query.name in names:
            raise QueryError(f"two queries are called {query.name!r}; give each a name of its own")
        names.add(query.name)
        asked.append(query)
    return asked


def check_arrival(schema: pa.Schema, arrival: str | None) -> str | None:
    """The arrival column; SchemaError when it cannot order rows."""
    if arrival is None:
        return None
    kind = schema.field(known_column(schema, arrival, "arrival")).type
    if not (pa.types.is_integer(kind) or pa.types.is_timestamp(kind)):
        raise SchemaError(
            f"the arrival column {arrival!r} is {kind}; it must be an integer or a timestamp, "
            "such as an offset or a sequence number"
        )
    return arrival


def check_groups(schema: pa.Schema, groups: Iterable[str]) -> tuple[str, ...]:
    """The group columns; SchemaError when rows cannot be grouped by one."""
    grouping = tuple(known_column(schema, name, "group_by") for name in groups)
    for name in grouping:
        if pa.types.is_nested(schema.field(name).type):
            raise SchemaError(
                f"group_by names {name!r}, which is a {schema.field(name).type}; "
                "group by one of its fields, as a column of its own"
            )
    return grouping


def known_column(schema: pa.Schema, name: str, what: str) -> str:
    """`name`; SchemaError when the input has no such column, or several."""
    found = schema.names.count(name) if isinstance(name, str) else 0
    if found == 1:
        return name
    if found > 1:
        raise SchemaError(f"{what} names {name!r}, and the input has {found} columns of that name; rename them")
    close = get_close_matches(str(name), schema.names, 3)
    hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
    has = ", ".join(map(repr, schema.names))
    raise SchemaError(f"{what} names {name!r}, which the input does not have; {hint}it has {has}")


def _bare(score: Score, where: Where | None, schema: pa.Schema) -> int | None:
    tree = as_tree(score)
    if where is not None or not isinstance(tree, Column) or schema.names.count(tree.name) != 1:
        return None
    place = schema.names.index(tree.name)
    return place if pa.types.is_float64(schema.field(place).type) else None


def _over_numbered_columns(query: RankedQuery, score: int, clock: Clock | None) -> RankedQuery:
    window = query.window
    if isinstance(window, TimeWindow):
        assert clock is not None
        size, slide = (
            clock.length(getattr(window, part), f"the window {part} of query {query.name!r}") for part in ("size", "slide")
        )
        window = TimeWindow(size, slide)
    return replace(query, score=f"s{score}", where=None, window=window)


def _paces(queries: list[RankedQuery]) -> tuple[Pace, ...]:
    by_slide: dict[int | None, list[RankedQuery]] = {}
    for query in queries:
        slide = query.window.slide if isinstance(query.window, TimeWindow) else None
        assert slide is None or isinstance(slide, int)
        by_slide.setdefault(slide, []).append(query)
    return tuple(
        Pace(None, tuple(_smallest_state(own))) if slide is None else _timed_pace(slide, _smallest_state(own))
        for slide, own in by_slide.items()
    )


def _smallest_state(queries: list[RankedQuery]) -> list[RankedQuery]:
    """`auto` as it is best here, where every micro-batch writes the state down: `strict` remembers least (measured: a
    quarter of `shared` at 600 panes and k=100, in the same time), but serves one query a structure. A query that would
    put up with an error gets the same: an exact answer is within it."""
    queries = [
        replace(query, error=0.0) if isinstance(query, TopK) and query.algorithm == "auto" else query for query in queries
    ]
    doors = Counter((query.score, query.order) for query in queries if query.algorithm == "auto")
    return [
        replace(query, algorithm="strict")
        if isinstance(query, TopK) and query.algorithm == "auto" and doors[query.score, query.order] == 1
        else query
        for query in queries
    ]


def _timed_pace(slide: int, queries: list[RankedQuery]) -> Pace:
    cuts = pane_cuts(slide, [cast(int, query.window.size) for query in queries]).tolist()
    best: dict[tuple[int, bool], int] = {}
    beyond: dict[tuple[int, bool], float] = {}
    for query in queries:
        way = (Plan.score_of(query), query.order == "asc")
        if isinstance(query, Threshold):
            lowest = max if way[1] else min
            beyond[way] = lowest(beyond.get(way, query.above), query.above)
        else:
            best[way] = max(best.get(way, 0), query.k)
    sieves = [Sieve(*way, k) for way, k in best.items()] + [Sieve(*way, 0, above) for way, above in beyond.items()]
    return Pace(slide, tuple(queries), tuple(cuts), tuple(sieves))


def ticks(clock: Clock | None, lateness: Duration, slides: list[int]) -> tuple[int, int]:
    """Lateness in ticks, and the tick: what one millisecond of Spark's watermark stands for.

    Spark counts watermarks in milliseconds. A timestamp's tick is a millisecond. An integer time has no unit, so its tick
    is the greatest step in which no window's end and no lateness is lost.
    """
    duration(lateness, "lateness")
    if (lateness if isinstance(lateness, int) else nanoseconds(lateness, "lateness")) < 0:
        raise QueryError(f"lateness must not be negative, got {lateness!r}")
    if clock is None:
        if lateness != 0:
            raise QueryError(f"lateness is {lateness!r}, but there is no time to be late by; name the time column: time='...'")
        return 0, 1
    allowed = clock.length(lateness, "lateness")
    if not clock.is_timestamp:
        tick = gcd(allowed, *slides) or 1
        return allowed // tick, tick
    tick = {"s": 1, "ms": 1, "us": 1000, "ns": 10**6}[clock.type.unit]
    if allowed % tick:
        raise QueryError(f"lateness is {lateness!r}, and Spark counts watermarks in milliseconds; use a whole number of them")
    return allowed // tick, tick


def _marks(
    queries: list[RankedQuery], schema: pa.Schema, time: str | None, groups: tuple[str, ...], arrival: str | None
) -> dict[str, str]:
    marks = {f"query {query.name!r}": digest(query.to_json()) for query in queries}
    marks["the input's columns"] = digest([[field.name, str(field.type)] for field in schema])
    marks["time, group_by and arrival"] = digest([time, groups, arrival])
    return marks


def digest(content: Any) -> str:
    """Tells contents apart."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """What changed between two sets of marks, in words; empty when nothing did."""
    gone = [f"{name} is gone" for name in then if name not in now]
    new = [f"{name} is new" for name in now if name not in then]
    changed = [f"{name} changed" for name in now if name in then and then[name] != now[name]]
    return ", ".join(gone + new + changed)

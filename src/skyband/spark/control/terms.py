"""What workers are told of a stream whose queries come and go, and the check of every query against it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from skyband.clock import Clock
from skyband.errors import QueryError, SchemaError
from skyband.query import Query, TopKAcross, TopKPairs
from skyband.seating import place, seat, window_lengths
from skyband.spark.marks import digest, make_marks, scale_mark
from skyband.spark.plan import checked_columns, checked_queries, checked_spread, known_column
from skyband.spark.stream import Stream
from skyband.spark.watermark import Scale, make_scale
from skyband.window import CountWindow

ROW, PAIR, OBJECT = "row", "pair", "object"
IDENTITIES = (ROW, PAIR, OBJECT)
"""Who a result row can be about."""

BUCKETS = 8
"""States that share the groups out among them. Fixed, since a checkpoint is laid out by it."""


def identity_of(query: Query) -> str:
    """Who the result rows of a query are about."""
    return query.identity if isinstance(query.identity, str) else OBJECT


@dataclass(frozen=True)
class Terms:
    """Fixed for the life of a checkpoint, but for `lateness`."""

    schema: pa.Schema  # of the input
    time: str | None
    scale: Scale  # how times stand in Spark's watermark, and the lateness
    groups: tuple[str, ...]
    arrival: bool  # ties are a column that gives the order of arrival
    timed: bool  # windows of time can be asked for
    counted: bool  # windows of rows can be asked for
    pairs: bool  # pairs can be asked for
    keys: tuple[str, ...]  # columns by which objects can be asked for
    dated: bool  # commands carry the time from which they hold
    shards: int  # that share the queries out among them; each has all rows
    buckets: int  # that share the groups out among them; each has all commands of its shard
    queries: tuple[Query, ...]  # asked from the start
    marks: Mapping[str, str]  # what a checkpoint must agree with

    @property
    def digest(self) -> str:
        """Tells streams apart."""
        return digest(dict(self.marks))

    @property
    def at_once(self) -> bool:
        """Windows of rows take rows as they come, in the order of their arrival column."""
        return self.arrival

    @property
    def holds(self) -> bool:
        """Rows wait until the watermark passes them."""
        return self.timed or (self.counted and not self.at_once)

    @property
    def waits(self) -> bool:
        """There is a watermark."""
        return self.time is not None

    @property
    def wakes(self) -> bool:
        """States must be called when others move the watermark."""
        return self.waits and bool(self.groups)

    @property
    def clock(self) -> Clock | None:
        """Reads the time column."""
        return None if self.time is None else Clock(self.time, self.schema)

    @property
    def time_type(self) -> pa.DataType:
        """Of window bounds."""
        return pa.int64() if self.time is None else self.schema.field(self.time).type

    @property
    def group_types(self) -> list[pa.DataType]:
        """Of the group columns."""
        return [self.schema.field(name).type for name in self.groups]

    @property
    def callables(self) -> dict[str, Callable[..., Any]]:
        """Scores that are functions: only queries asked from the start can have one."""
        scored = ((query.name, query.score) for query in self.queries)
        return {name: score for name, score in scored if callable(score)}

    def check(self, query: Query) -> None:
        """QueryError or SchemaError when the query cannot be asked of this stream. Changes nothing."""
        counts = isinstance(query.window, CountWindow)
        if counts and not self.counted:
            raise QueryError(
                f"query {query.name!r} counts rows, and this stream reports windows of time only; begin the stream with a "
                'query over a CountWindow (with emit="none", if its rows are not wanted) to have both'
            )
        if not counts and not self.timed:
            begin = "name the time column: monitor(..., time='...')" if self.time is None else "begin it with one over time"
            raise QueryError(f"query {query.name!r} has a time window, and this stream reports windows of rows only; {begin}")
        if isinstance(query, TopKPairs) and not self.pairs:
            raise QueryError(
                f"query {query.name!r} ranks pairs, and this stream reports rows only; begin the stream with a TopKPairs (with "
                'emit="none", if its pairs are not wanted) to have both'
            )
        if isinstance(query, TopKAcross) and query.key not in self.keys:
            known = f"objects by {', '.join(map(repr, self.keys))}" if self.keys else "no objects"
            raise QueryError(
                f"query {query.name!r} ranks objects by {query.key!r}, and this stream reports {known}; begin the stream with "
                'a TopKAcross over that key (with emit="none", if its objects are not wanted)'
            )
        seat([place(query, self.schema, self.clock)], [], 0)  # which also finds that there is not memory enough


def check_columns(schema: pa.Schema) -> None:
    """SchemaError when two columns have one name: a later query could not say which it means."""
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise SchemaError(f"the input has {schema.names.count(name)} columns called {name!r}; rename them")


def make_terms(schema: pa.Schema, queries: Iterable[Query] | Query, stream: Stream, *, dated: bool) -> Terms:
    """Check what is asked from the start against the input's columns; QueryError or SchemaError when it does not fit."""
    if stream.key is not None or stream.deletes is not None:
        raise QueryError(
            "a stream with commands cannot delete rows: a query that is added later would have to know which are gone; leave "
            "key= and deletes= out, or control="
        )
    time, arrival, asked = stream.time, stream.arrival, checked_queries(queries)
    check_columns(schema)
    clock = None if time is None else Clock(known_column(schema, time, "time"), schema)
    grouping = checked_columns(schema, arrival, stream.group_by)
    shards, buckets = checked_spread(1 if stream.shards is None else stream.shards), BUCKETS if grouping else 1
    counting = [query for query in asked if isinstance(query.window, CountWindow)]
    if clock is None and arrival is None:
        raise QueryError(
            "queries that come and go need an order of rows; name the time column (time='...'), or the column that gives the "
            "order of arrival (arrival='...', an offset or sequence number)"
        )
    slides = [window_lengths(query, clock)[1] for query in asked if query not in counting] if clock is not None else []
    waiting: list[int | None] = [None] if counting and arrival is None else []
    scale = make_scale(clock, stream.lateness, [*slides, *waiting])
    terms = Terms(
        schema=schema,
        time=time,
        scale=scale,
        groups=grouping,
        arrival=arrival is not None,
        timed=clock is not None and (not asked or len(counting) < len(asked)),
        counted=bool(counting) or clock is None,
        pairs=any(isinstance(query, TopKPairs) for query in asked),
        keys=tuple(dict.fromkeys(query.key for query in asked if isinstance(query, TopKAcross))),
        dated=dated,
        shards=shards,
        buckets=buckets,
        queries=tuple(asked),
        marks={
            **make_marks(asked, schema, [time, grouping, arrival], (), shards),
            **scale_mark(scale),
            "the commands' time": digest(dated),
            "the number of states": digest(buckets),
        },
    )
    for query in asked:
        terms.check(query)
    return terms

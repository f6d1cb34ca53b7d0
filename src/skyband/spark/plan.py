"""What workers are told: the queries, which of them move together, and which shard answers which.

On the way through Spark columns go by number: `c0, c1, …` are the input's own, `s0, s1, …` the distinct scores
(NaN outside a query's `where`), `t` is the time as a whole number, `tie` tells rows of equal score and time apart.
A few scores are columns, computed once a row by Catalyst, and shard 0 answers the queries on them, which sees only the best
rows of each pane. Queries on many scores, of pairs and across streams are answered by shards over the input's own columns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from math import gcd
from typing import cast, get_args

import pyarrow as pa

from skyband.clock import Clock
from skyband.errors import QueryError, SchemaError
from skyband.keys import LiveKeys
from skyband.query import Query, RankedQuery, Threshold, TopK, TopKAcross
from skyband.scores.binding import field_meant
from skyband.scores.expression import Column
from skyband.scores.score import Score, Where, as_tree, score_key, where_key
from skyband.seating import deleting, place
from skyband.spark.arriving import key_type
from skyband.spark.contest import read_by_all
from skyband.spark.marks import digest, make_marks, scale_mark
from skyband.spark.needs import Contenders
from skyband.spark.paces import Pace, score_of, scored_paces, slide_of
from skyband.spark.shards import BLOCK, MANY, SHARD, Shard, is_exact, is_merged, make_shards
from skyband.spark.watermark import Scale, make_scale
from skyband.window import CountWindow, Duration, TimeWindow

TIME, TIE, PART = "t", "tie", "part"
MOST_SPREAD = 256
_CHOSEN = "the choice of rows next to the data"  # a mark: which shard answers a query depends on it
RESERVED = ("#t", "#tie", BLOCK)
"""What shards over the input's own columns call the time, the tie and the part of a row."""


@dataclass(frozen=True)
class Plan:
    """Everything a worker needs, and nothing that only the driver has."""

    schema: pa.Schema  # of the input's columns, under their numbered names
    names: tuple[str, ...]  # what shards over them call them: their own names, where no two are alike
    scores: int
    bare: tuple[int | None, ...]  # per score: the column it is, as it stands, so that it need not travel twice
    filtered: tuple[bool, ...]  # per score: has a `where`, so that m{i} says which scores are unknown
    time: int | None  # number of the time column
    arrives: int | None  # number of the column that gives the order of arrival, which is the tie then
    groups: tuple[int, ...]
    scale: Scale  # how times stand in Spark's watermark, and the lateness
    paces: tuple[Pace, ...]  # of all queries; those on score columns are named in them
    shards: tuple[Shard, ...]  # besides shard 0, which answers those
    asked: tuple[Query, ...]  # queries of pairs and across streams, durations as whole numbers
    merged: Mapping[str, Query]  # those whose answers are put together from several shards'
    key: str | None  # the column by which rows are deleted
    deletes: int | None  # number of the column that says which rows are deletions
    marks: Mapping[str, str]  # what a checkpoint must agree with: a digest per query, and of the rest

    @property
    def group_types(self) -> dict[str, pa.DataType]:
        """What rows are brought together by: the group columns, as keys, as g0, g1, …; one constant where there are none; the
        shard."""
        types = {f"g{at}": key_type(self.schema.field(i).type) for at, i in enumerate(self.groups)}
        return (types or {"g0": pa.int32()}) | ({SHARD: pa.int32()} if self.shards else {})

    @property
    def arrival(self) -> bool:
        """A column gives the order of arrival."""
        return self.arrives is not None

    @property
    def counts_rows(self) -> bool:
        """Some query on a score column counts rows: then every row must travel, for each moves the windows."""
        return any(pace.slide is None and pace.queries for pace in self.paces)

    @property
    def ties_all(self) -> bool:
        """Every row's tie is needed, for all of them travel, or what does depends on it."""
        return self.counts_rows or any(not isinstance(shard.need, Contenders) for shard in self.shards)

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

    @property
    def time_type(self) -> pa.DataType:
        return pa.int64() if self.time is None else self.schema.field(self.time).type

    @cached_property
    def slots(self) -> int:
        """What is counted of rows besides their number: unknown values, for each score and each query of `asked`, then rows
        that a query across streams refuses, then those that lack a score for all queries of a shard."""
        return self.scores + len(self.asked) + len(self.across) + len(self.lacking)

    @cached_property
    def lacking(self) -> dict[int, tuple[str, ...]]:
        """By the address of a shard that is sent contenders: the columns that all its queries' scores read."""
        chosen = [shard for shard in self.shards if isinstance(shard.need, Contenders)]
        return {shard.address: read_by_all(query for pace in shard.paces for query in pace.queries) for shard in chosen}

    @cached_property
    def across(self) -> tuple[TopKAcross, ...]:
        """The queries across streams."""
        return tuple(query for query in self.asked if isinstance(query, TopKAcross))

    @cached_property
    def counts_of(self) -> dict[str, tuple[int, int | None, int | None]]:
        """By query: its pace, the slot of its unknown values and that of rows it refuses; None: these are not counted."""
        slides = [pace.slide for pace in self.paces]
        found: dict[str, tuple[int, int | None, int | None]] = {}
        for number, pace in enumerate(self.paces):
            found |= {query.name: (number, score_of(query), None) for query in cast(tuple[RankedQuery, ...], pace.queries)}
        for at, query in enumerate(self.asked):
            found[query.name] = (slides.index(slide_of(query)), self.scores + at, None)
        for at, query in enumerate(self.across):
            found[query.name] = (*found[query.name][:2], self.scores + len(self.asked) + at)
        first = self.slots - len(self.lacking)
        lacking = {address: first + at for at, address in enumerate(self.lacking)}
        for shard in self.shards:
            for number, pace in enumerate(shard.paces if shard.identity == "row" else ()):
                found |= {query.name: (number, lacking.get(shard.address), None) for query in pace.queries}
        return found

    @cached_property
    def by_address(self) -> dict[int, Shard]:
        """The shards by the value of the column `shard`."""
        return {shard.address: shard for shard in self.shards}

    @cached_property
    def key_columns(self) -> tuple[int, ...]:
        """Numbers of the columns that name objects."""
        return tuple(self.names.index(key) for key in dict.fromkeys(query.key for query in self.across))

    @cached_property
    def inexact(self) -> tuple[str, ...]:
        """Queries whose answers are approximate, by name; those across streams state a precision, others what may be missed."""
        paces = [*self.paces, *(pace for shard in self.shards for pace in shard.paces)]
        names = (query.name for pace in paces for query in pace.queries if not is_exact(query))
        return tuple(dict.fromkeys(names))

    @property
    def identities(self) -> tuple[str, ...]:
        """What results may be about, besides rows: "pair", "object"."""
        kinds = {"object" if isinstance(query, TopKAcross) else "pair" for query in self.asked}
        return tuple(sorted(kinds, reverse=True))


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
    *,
    key: str | None = None,
    deletes: str | None = None,
    spread: int = 1,
) -> Request:
    """Check what is asked against the input's columns; QueryError or SchemaError when it does not fit. `spread`: over how
    many states of a group the work on many scores, on pairs and across streams is spread."""
    asked = checked_queries(queries)
    if not asked:
        raise QueryError("there is nothing to answer: give at least one query, such as TopK(...)")
    _check_order(asked, time, arrival)
    clock = None if time is None else Clock(known_column(schema, time, "time"), schema)
    grouping = checked_columns(schema, arrival, groups)
    _check_deletions(schema, asked, key, deletes)
    spread = checked_spread(spread)
    whole = [_in_whole_numbers(query, clock) for query in asked]
    ranked = [query for query in whole if isinstance(query, TopK | Threshold)]
    distinct = {_ranking(query) for query in ranked}
    scored = [] if key is not None or len(distinct) > MANY else ranked
    rewritten, scores = _numbered(scored)
    apart = () if not scored else (TopK, Threshold)
    raw = [query for query in whole if not isinstance(query, apart)]
    names = _names(schema)
    if raw:
        _check_raw([query for query in asked if not isinstance(query, apart)], schema, names, clock)
    slides = tuple(dict.fromkeys(slide_of(query) for query in whole))
    if key is not None and None not in slides:
        slides = (gcd(*cast(tuple[int, ...], slides)),)  # one pace: whose row is live is a matter of all queries
    paces = scored_paces(slides, rewritten)
    scale = make_scale(clock, lateness, slides if arrival is None else [slide for slide in slides if slide is not None])
    numbers = tuple(schema.names.index(name) for name in grouping)
    counted = any(isinstance(query.window, CountWindow) for query in scored)
    shards = make_shards(raw, slides, len(schema), names, numbers, spread, keyed=key is not None, scored_counts=counted)
    others = tuple(query for query in raw if not isinstance(query, TopK | Threshold))
    more = {_CHOSEN: ""} if any(isinstance(shard.need, Contenders) for shard in shards) else {}
    more |= scale_mark(scale)
    plan = Plan(
        schema=pa.schema([field.with_name(f"c{i}") for i, field in enumerate(schema)]),
        names=names,
        scores=len(scores),
        bare=tuple(_bare(score, where, schema) for score, where in scores),
        filtered=tuple(where is not None for _, where in scores),
        time=None if time is None else schema.names.index(time),
        arrives=None if arrival is None else schema.names.index(arrival),
        groups=numbers,
        scale=scale,
        paces=paces,
        shards=shards,
        asked=others,
        merged={query.name: query for query in others if query.emit != "none" and is_merged(query, spread)},
        key=key,
        deletes=None if deletes is None else schema.names.index(deletes),
        marks=make_marks(asked, schema, [time, grouping, arrival], [key, deletes], spread if shards else None) | more,
    )
    return Request(plan, scores)


def _ranking(query: RankedQuery) -> Hashable:
    """Equal for queries that are ranked by one column."""
    return score_key(query.score), where_key(query.where)


def _numbered(queries: Iterable[RankedQuery]) -> tuple[list[RankedQuery], tuple[tuple[Score, Where | None], ...]]:
    """The queries, ranked by columns s0, s1, ... in place of their scores, and what the driver computes for those columns."""
    number: dict[Hashable, int] = {}
    scores: list[tuple[Score, Where | None]] = []
    rewritten: list[RankedQuery] = []
    for query in queries:
        at = number.setdefault(_ranking(query), len(scores))
        if at == len(scores):
            scores.append((query.score, query.where))
        rewritten.append(replace(query, score=f"s{at}", where=None))
    return rewritten, tuple(scores)


def checked_queries(queries: Iterable[Query] | Query) -> list[Query]:
    """The queries; QueryError when one is none, or two have one name."""
    asked = [cast(Query, queries)] if isinstance(queries, get_args(Query)) else queries
    if not isinstance(asked, Iterable):
        raise QueryError(f"expected queries such as TopK, Threshold, TopKPairs or TopKAcross, got {queries!r}")
    asked = list(asked)
    names: set[str] = set()
    for query in asked:
        if not isinstance(query, get_args(Query)):
            raise QueryError(f"expected a query such as TopK, Threshold, TopKPairs or TopKAcross, got {query!r}")
        if query.name in names:
            raise QueryError(f"two queries are called {query.name!r}; give each a name of its own")
        names.add(query.name)
    return asked


def _check_order(asked: list[Query], time: str | None, arrival: str | None) -> None:
    counting = [query for query in asked if isinstance(query.window, CountWindow)]
    if time is None and len(counting) < len(asked):
        name = next(query.name for query in asked if not isinstance(query.window, CountWindow))
        raise QueryError(f"query {name!r} has a time window; name the time column: monitor(..., time='...')")
    if counting and time is None and arrival is None:
        raise QueryError(
            f"query {counting[0].name!r} counts rows, so their order matters; name the column that gives the order of arrival "
            "(arrival='...', an offset or sequence number), or time='...' to count rows in the order of their time"
        )


def checked_columns(schema: pa.Schema, arrival: str | None, groups: Iterable[str]) -> tuple[str, ...]:
    """The group columns; SchemaError when they, or the column of arrival, cannot serve."""
    tie = None if arrival is None else known_column(schema, arrival, "arrival")
    if tie is not None and not (pa.types.is_integer(schema.field(tie).type) or pa.types.is_timestamp(schema.field(tie).type)):
        raise SchemaError(
            f"the arrival column {arrival!r} is {schema.field(tie).type}; it must be an integer or a timestamp, "
            "such as an offset or a sequence number"
        )
    grouping = tuple(known_column(schema, name, "group_by") for name in groups)
    for name in grouping:
        if pa.types.is_nested(schema.field(name).type):
            raise SchemaError(
                f"group_by names {name!r}, which is a {schema.field(name).type}; "
                "group by one of its fields, as a column of its own"
            )
    return grouping


def _check_deletions(schema: pa.Schema, asked: list[Query], key: str | None, deletes: str | None) -> None:
    if key is None and deletes is not None:
        raise QueryError(f"deletes={deletes!r} says which rows are deletions; name the column they find rows by: key='...'")
    if key is None:
        return
    if deletes is None:
        raise QueryError(
            f"key={key!r} is for deletions, and nothing says which rows are some; name a boolean column: deletes='...', or "
            "leave key out"
        )
    LiveKeys(known_column(schema, key, "key")).check(schema)
    if not pa.types.is_boolean(schema.field(known_column(schema, deletes, "deletes")).type):
        raise SchemaError(f"deletes names {deletes!r}, which is {schema.field(deletes).type}; it must be boolean: cast it")
    for query in asked:
        deleting(query)
        if isinstance(query.window, CountWindow) != isinstance(asked[0].window, CountWindow):
            raise QueryError(
                f"of the queries {asked[0].name!r} and {query.name!r} one has windows of time and the other of rows, and "
                f"key={key!r} says that rows may be deleted: which row is live would depend on how far the watermark is; ask "
                "each kind in a call of its own"
            )


def checked_spread(spread: int) -> int:
    """`spread` as a whole number; QueryError when it is none, or too large."""
    if isinstance(spread, bool) or not hasattr(spread, "__index__") or not 1 <= spread <= MOST_SPREAD:
        raise QueryError(f"shards must be a whole number from 1 to {MOST_SPREAD}, got {spread!r}")
    return spread.__index__()


def _names(schema: pa.Schema) -> tuple[str, ...]:
    """What shards over the input's columns call them. Two of one name are called by their number: no query can mean them."""
    return tuple(name if schema.names.count(name) == 1 else f"#c{i}" for i, name in enumerate(schema.names))


def _check_raw(queries: Iterable[Query], schema: pa.Schema, names: tuple[str, ...], clock: Clock | None) -> None:
    if taken := [name for name in names if name in RESERVED]:
        raise SchemaError(f"a column is called {taken[0]!r}, a name that is used within; rename it")
    named = pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
    for query in queries:
        if callable(getattr(query, "score", None)):
            raise QueryError(
                f"query {query.name!r} has a Python function for a score, one of more than {MANY} distinct scores, or of rows "
                "that may be deleted; write it as an expression"
            )
        place(query, named, clock)


def known_column(schema: pa.Schema, name: str, what: str) -> str:
    """`name`; SchemaError when the input has no such column, or several."""
    if not isinstance(name, str):
        raise SchemaError(f"{what} must be the name of a column, such as {schema.names[0]!r}, got {name!r}")
    found = schema.names.count(name)
    if found == 1:
        return name
    if found > 1:
        raise SchemaError(f"{what} names {name!r}, and the input has {found} columns of that name; rename them")
    alike = [one for one in schema.names if one.lower() == name.lower()]
    close = alike or get_close_matches(name, schema.names, 3)
    hint = field_meant(name, schema) or (f"did you mean {' or '.join(map(repr, close))}? " if close else "")
    has = ", ".join(map(repr, schema.names))
    raise SchemaError(f"{what} names {name!r}, which the input does not have; {hint}it has {has}")


def _bare(score: Score, where: Where | None, schema: pa.Schema) -> int | None:
    tree = as_tree(score)
    if where is not None or not isinstance(tree, Column) or schema.names.count(tree.name) != 1:
        return None
    place = schema.names.index(tree.name)
    return place if pa.types.is_float64(schema.field(place).type) else None


def _in_whole_numbers(query: Query, clock: Clock | None) -> Query:
    """The query with its window in the time column's unit."""
    window = query.window
    if not isinstance(window, TimeWindow):
        return query
    assert clock is not None
    size, slide = (
        clock.length(getattr(window, part), f"the window {part} of query {query.name!r}") for part in ("size", "slide")
    )
    return replace(query, window=TimeWindow(size, slide))

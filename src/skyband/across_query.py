"""The query over objects whose attributes arrive in separate streams."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from skyband.algorithms import settled
from skyband.asking import EMISSIONS, Fixed, check_asked, is_number, whole_k, window_from_json, window_to_json
from skyband.errors import QueryError
from skyband.window import Window

COMBINES = ("sum", "mean", "max")
AGGREGATES = ("sum", "max", "latest")
OUTSIDE = ("refuse", "skip")
MOST_STREAMS = 62

Range: TypeAlias = tuple[float | None, float | None]


@dataclass(frozen=True, kw_only=True)
class TopKAcross:
    """The k best objects whose attributes arrive in separate streams, at separate times.

    A row says that the object `key` had `value` in `stream`. An object's score in a window is what its rows there give: an
    attribute that was not seen, or has left the window, counts as 0.

    >>> from skyband import TimeWindow, TopKAcross
    >>> TopKAcross(
    ...     name="flows", k=20, key="flow", stream="router", value="bytes", streams=["r1", "r2", "r3"],
    ...     window=TimeWindow("5 minutes", slide="10 seconds"),
    ... ).combine
    'sum'

    key        the column that names the object: text, bytes, whole numbers, truth values, times
    stream     the column that says in which stream it was seen
    value      the column of numbers, none negative
    streams    the values of the column `stream`, texts or whole numbers, at most 62
    combine    "sum", "mean" (over all streams), "max", or a weighted sum {stream: weight}, no weight negative
    ranges     {stream: (low, high)}, or one (low, high) for all: values there are never outside; None: not known. A
               known `high` is what lets "eaa" forget objects that were not yet seen everywhere
    outside    a value outside its range: "refuse" the batch, or "skip" the row and count it
    aggregate  an object's rows in one stream: their "sum", "max" or the "latest"
    repeats    of an object's rows in one stream only the first so many count, the others are counted and left out; None:
               all count
    precision  the share of the answers that should be right, on average; None asks for exact answers
    order      "desc" alone: of the smallest scores too little is known
    emit, algorithm   as for `TopK`; algorithms "sla", "eaa", "eaa-approximate", "eaa-estimate" and "across-oracle"
    """

    name: str
    k: int
    key: str
    stream: str
    value: str
    streams: Sequence[Any]
    window: Window
    combine: str | Mapping[Any, float] = "sum"
    order: str = "desc"
    emit: str = "changes"
    algorithm: str = "auto"
    ranges: Mapping[Any, Range] | Range | None = None
    outside: str = "refuse"
    aggregate: str = "sum"
    repeats: int | None = None
    precision: float | None = None

    score: ClassVar[None] = None
    where: ClassVar[None] = None

    def __post_init__(self) -> None:
        check_asked(
            self.name,
            self.window,
            emit=(self.emit, EMISSIONS),
            aggregate=(self.aggregate, AGGREGATES),
            outside=(self.outside, OUTSIDE),
        )
        if self.order != "desc":
            raise self._wrong(
                f"order must be 'desc', got {self.order!r}: attributes that were not seen count as 0, so that the smallest "
                "scores are those of which least is known"
            )
        object.__setattr__(self, "k", whole_k(self.name, self.k, self.window))
        self._check_columns()
        self._check_streams()
        self._check_combine()
        self._check_ranges()
        if self.repeats is not None:
            if isinstance(self.repeats, bool) or not hasattr(self.repeats, "__index__") or self.repeats < 1:
                raise self._wrong(f"repeats must be a whole number of at least 1, or None; got {self.repeats!r}")
            object.__setattr__(self, "repeats", self.repeats.__index__())
        self._check_algorithm()

    def _wrong(self, what: str) -> QueryError:
        return QueryError(f"query {self.name!r}: {what}")

    def _check_columns(self) -> None:
        for what in ("key", "stream", "value"):
            column = getattr(self, what)
            if not isinstance(column, str) or not column:
                raise self._wrong(f"{what} must be the name of a column, got {column!r}")

    def _check_streams(self) -> None:
        if isinstance(self.streams, str | bytes) or not isinstance(self.streams, Sequence):
            raise self._wrong(f"streams must be a list of the values of the column {self.stream!r}, got {self.streams!r}")
        streams = tuple(self.streams)
        if not 1 <= len(streams) <= MOST_STREAMS:
            raise self._wrong(f"streams must be 1 to {MOST_STREAMS} values, got {len(streams)}")
        kinds = {str if isinstance(one, str) else int if _is_whole(one) else None for one in streams}
        if len(kinds) != 1 or None in kinds:
            raise self._wrong(f"streams must be all texts or all whole numbers, got {list(streams)!r}")
        if kinds == {int}:
            streams = tuple(int(one) for one in streams)
        if len(set(streams)) != len(streams):
            twice = next(one for one in streams if streams.count(one) > 1)
            raise self._wrong(f"streams names {twice!r} twice; name each once")
        object.__setattr__(self, "streams", streams)

    def _check_combine(self) -> None:
        if isinstance(self.combine, str):
            if self.combine not in COMBINES:
                raise self._wrong(
                    f"combine must be one of {', '.join(map(repr, COMBINES))} or weights {{stream: number}}, got "
                    f"{self.combine!r}; others may fall when an attribute rises, and could not be answered exactly"
                )
            return
        if not isinstance(self.combine, Mapping):
            raise self._wrong(
                f"combine must be a name or weights {{stream: number}}, got {self.combine!r}: of a function nobody knows "
                "whether a score rises with each attribute"
            )
        for stream, weight in self.combine.items():
            if stream not in self.streams:
                raise self._wrong(f"combine has a weight for {stream!r}, which is not one of {list(self.streams)}")
            if not is_number(weight) or not 0 <= weight < math.inf:
                raise self._wrong(
                    f"combine gives {stream!r} the weight {weight!r}; it must be a number of at least 0, so that a score never "
                    "falls when an attribute rises"
                )
        if missing := [stream for stream in self.streams if stream not in self.combine]:
            raise self._wrong(f"combine has no weight for {missing[0]!r}; give every stream one, 0 leaves it out")
        object.__setattr__(self, "combine", Fixed({stream: float(self.combine[stream]) for stream in self.streams}))

    def _check_ranges(self) -> None:
        ranges: dict[Any, Any] = {}
        if isinstance(self.ranges, Mapping):
            ranges = dict(self.ranges)
            if unknown := [stream for stream in ranges if stream not in self.streams]:
                raise self._wrong(f"ranges names {unknown[0]!r}, which is not one of {list(self.streams)}")
        elif self.ranges is not None:
            ranges = dict.fromkeys(self.streams, self.ranges)
        checked = {stream: self._range(stream, ranges.get(stream, (0.0, None))) for stream in self.streams}
        object.__setattr__(self, "ranges", Fixed(checked))

    def _range(self, stream: Any, span: Any) -> tuple[float, float | None]:
        what = f"the range of {stream!r} is {span!r}"
        if not isinstance(span, Sequence) or isinstance(span, str) or len(span) != 2:
            raise self._wrong(f"{what}; give (low, high), None where it is not known")
        for end in span:
            if end is not None and (not is_number(end) or math.isnan(end)):
                raise self._wrong(f"{what}; its ends must be numbers, or None")
        low = 0.0 if span[0] is None else float(span[0])
        high = math.inf if span[1] is None else float(span[1])
        if not 0 <= low <= high or low == math.inf:
            raise self._wrong(
                f"{what}; it must begin at 0 or above, and not end before: what is not seen counts as 0, and must not be "
                "better than what is; shift the values"
            )
        return low, None if high == math.inf else high

    def _check_algorithm(self) -> None:
        if self.precision is not None and (not is_number(self.precision) or not 0 < self.precision < 1):
            raise self._wrong(f"precision must be above 0 and below 1, or None for exact answers; got {self.precision!r}")
        if not isinstance(self.algorithm, str):
            raise self._wrong(f"algorithm must be a name of skyband.algorithms(), got {self.algorithm!r}")
        try:
            self._check_named()
        except QueryError as problem:
            raise self._wrong(str(problem)) from None

    def _check_named(self) -> None:
        named, options = settled(self.settled_algorithm)
        if named.family != "across":
            raise QueryError(
                f"{self.algorithm!r} does not rank objects across streams; use 'sla', 'eaa', 'eaa-approximate', "
                "'eaa-estimate', 'across-oracle' or 'auto'"
            )
        if self.precision is not None and named.exact:
            raise QueryError(f"precision={self.precision!r} asks for an approximate answer and {self.algorithm!r} is exact")
        if self.precision is not None and named.name != "eaa-approximate":
            raise QueryError(f"precision is for 'eaa-approximate', which finds out how to reach it, not for {self.algorithm!r}")
        if "memory" in options:
            if self.precision is not None:
                raise QueryError("what is kept follows from memory or from precision; give one of the two")
            if options["memory"] < self.k:
                raise QueryError(
                    f"memory={options['memory']} instances cannot hold the best {self.k} objects; ask for at least {self.k}"
                )
        if named.name not in ("sla", "across-oracle") and self.aggregate == "latest" and self.repeats != 1:
            raise QueryError(
                f"aggregate='latest' lets a later row lower a score, and {self.algorithm!r} relies on scores that only grow; "
                "use algorithm='sla', or repeats=1, or aggregate 'sum' or 'max'"
            )

    @property
    def settled_algorithm(self) -> str:
        """The algorithm to build: `auto` prunes where bounds are known that let it, and keeps the window where not."""
        if self.algorithm != "auto":
            return self.algorithm
        if self.precision is not None:
            return "eaa-approximate"
        assert isinstance(self.ranges, Mapping)
        bounded = self.repeats is not None and all(high is not None for _, high in self.ranges.values())
        return "eaa" if bounded and (self.aggregate != "latest" or self.repeats == 1) else "sla"

    @property
    def error(self) -> float:
        """The share of the answers that may be wrong, on average; 0: none."""
        return 0.0 if self.precision is None else 1.0 - self.precision

    @property
    def identity(self) -> Hashable:
        """Result rows are about objects."""
        return ("object", self.key)

    def to_json(self) -> dict[str, Any]:
        """The query as JSON-able values."""
        names = ("name", "k", "key", "stream", "value", "order", "emit", "algorithm", "outside", "aggregate", "repeats")
        plain = {name: getattr(self, name) for name in (*names, "precision")}
        assert isinstance(self.ranges, Mapping)
        combine = self.combine if isinstance(self.combine, str) else [self.combine[stream] for stream in self.streams]
        ranges = [list(self.ranges[stream]) for stream in self.streams]
        window = window_to_json(self.window)
        return {**plain, "streams": list(self.streams), "combine": combine, "ranges": ranges, "window": window}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> TopKAcross:
        """What `to_json` gave."""
        streams, combine = document["streams"], document["combine"]
        if not isinstance(combine, str):
            combine = dict(zip(streams, combine, strict=True))
        ranges = {stream: tuple(span) for stream, span in zip(streams, document["ranges"], strict=True)}
        return cls(**{**document, "combine": combine, "ranges": ranges, "window": window_from_json(document["window"])})


def _is_whole(value: object) -> bool:
    return is_number(value) and hasattr(value, "__index__")

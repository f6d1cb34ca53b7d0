"""What is asked. Queries are frozen, keyword-only and validated where they are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from skyband.across_query import TopKAcross
from skyband.algorithms import check, check_threshold, settled
from skyband.asking import (
    EMISSIONS,
    ORDERS,
    check_asked,
    frozen_where,
    is_number,
    where_to_json,
    whole_k,
    window_from_json,
    window_to_json,
)
from skyband.errors import QueryError
from skyband.pairs_query import TopKPairs
from skyband.scores.expression import chooses
from skyband.scores.formulas import Distance, Linear
from skyband.scores.score import Score, as_tree, check_score, check_where, score_from_json, score_to_json, where_key
from skyband.window import CountWindow, Window

__all__ = ["EMISSIONS", "ORDERS", "Query", "RankedQuery", "Threshold", "TopK", "TopKAcross", "TopKPairs", "query_from_json"]

_MOST_CELLS = 1 << 24  # of a grid

Region: TypeAlias = Mapping[str, tuple[float | None, float | None]]


@dataclass(frozen=True, kw_only=True)
class TopK:
    """The k best rows of a window.

    >>> from skyband import CountWindow, TopK
    >>> TopK(name="hot", k=10, score="price * volume", window=CountWindow(1000)).order
    'desc'

    name       what results and `Monitor.top` call the query
    score      a column name, an expression, `linear`, `product`, `distance`, or a callable: {column: array} to array
    window     a `CountWindow` or a `TimeWindow`
    order      "desc": the largest scores rank first; "asc": the smallest
    where      {"x": (low, high)} with ends included and None for open, or a boolean expression
    emit       "changes", "snapshots", "arrivals" or "none"
    algorithm  a name from `skyband.algorithms()`, perhaps with options as in "relaxed(gamma=0.5)", or "auto"
    error      how many rows that rank may be missed while a window's worth of rows comes in, on average, on a stream in
               random order; 0 asks for exact answers
    """

    name: str
    k: int
    score: Score
    window: Window
    order: str = "desc"
    where: Region | str | None = None
    emit: str = "changes"
    algorithm: str = "auto"
    error: float = 0.0

    identity: ClassVar[Hashable] = "row"

    def __post_init__(self) -> None:
        _check_common(self)
        object.__setattr__(self, "k", whole_k(self.name, self.k, self.window))
        if not is_number(self.error) or not 0 <= self.error < 1:
            raise QueryError(f"query {self.name!r}: error must be at least 0 and below 1, got {self.error!r}")
        object.__setattr__(self, "error", float(self.error))
        _check_named(self)
        try:
            check(self.algorithm, self.k, self.window.size if isinstance(self.window, CountWindow) else None, self.error)
        except QueryError as problem:
            raise QueryError(f"query {self.name!r}: {problem}") from None
        _check_points(self)

    def to_json(self) -> dict[str, Any]:
        """The query as JSON-able values; a callable score is named, not stored."""
        return _to_json(self, "k", "algorithm", "error")

    @classmethod
    def from_json(cls, document: dict[str, Any], callables: Mapping[str, Callable[..., Any]]) -> TopK:
        """What `to_json` gave. A score that was a function is taken from `callables`, by query name."""
        return cls(**_from_json(document, callables))


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Every row of a window that scores above a bound; below it, for `order="asc"`.

    >>> from skyband import CountWindow, Threshold
    >>> Threshold(name="hot", above=30.0, score="celsius", window=CountWindow(1000)).order
    'desc'

    above      the bound; a score equal to it is not above
    score, window, order, where, emit   as for `TopK`
    algorithm  "auto", "above", "oracle", or one that divides the columns' space by a grid: "tma", "sma", "cpm", "snn"
    """

    name: str
    above: float
    score: Score
    window: Window
    order: str = "desc"
    where: Region | str | None = None
    emit: str = "changes"
    algorithm: str = "auto"

    identity: ClassVar[Hashable] = "row"
    error: ClassVar[float] = 0.0
    k: ClassVar[int] = 1  # of no meaning: an answer is as long as it is

    def __post_init__(self) -> None:
        _check_common(self)
        if not is_number(self.above) or math.isnan(self.above):
            raise QueryError(f"query {self.name!r}: above must be a number, got {self.above!r}")
        try:
            object.__setattr__(self, "above", float(self.above))
        except OverflowError:
            raise QueryError(f"query {self.name!r}: above is beyond what a float64 holds; give a smaller number") from None
        _check_named(self)
        try:
            check_threshold(self.algorithm)
        except QueryError as problem:
            raise QueryError(f"query {self.name!r}: {problem}") from None
        _check_points(self)

    def to_json(self) -> dict[str, Any]:
        """The query as JSON-able values; a callable score is named, not stored."""
        return _to_json(self, "above", "algorithm")

    @classmethod
    def from_json(cls, document: dict[str, Any], callables: Mapping[str, Callable[..., Any]]) -> Threshold:
        """What `to_json` gave. A score that was a function is taken from `callables`, by query name."""
        return cls(**_from_json(document, callables))


RankedQuery: TypeAlias = TopK | Threshold
"""Those that rank rows by a score of each."""

Query: TypeAlias = TopK | Threshold | TopKPairs | TopKAcross


def query_from_json(document: dict[str, Any], callables: Mapping[str, Callable[..., Any]]) -> Query:
    """The query that `to_json` of any kind gave."""
    if "streams" in document:
        return TopKAcross.from_json(document)
    if "pair_score" in document:
        return TopKPairs.from_json(document)
    return (Threshold if "above" in document else TopK).from_json(document, callables)


def _to_json(query: TopK | Threshold, *own: str) -> dict[str, Any]:
    plain = {name: getattr(query, name) for name in ("name", "order", "emit", *own)}
    return {
        **plain,
        "where": where_to_json(query.where),
        "score": score_to_json(query.score),
        "window": window_to_json(query.window),
    }


def _from_json(document: dict[str, Any], callables: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
    score = score_from_json(document["score"], document["name"], callables)
    return {**document, "score": score, "window": window_from_json(document["window"])}


def _check_named(query: TopK | Threshold) -> None:
    if not isinstance(query.algorithm, str):
        raise QueryError(f"query {query.name!r}: algorithm must be a name of skyband.algorithms(), got {query.algorithm!r}")


def _check_points(query: TopK | Threshold) -> None:
    """What ranks points needs a score over attributes, and all that a crowd of queries has in common."""
    if query.algorithm in ("auto", "above"):
        return
    named, options = settled(query.algorithm)
    spatial = named.family == "spatial"
    if "grid" not in options and not spatial:
        return
    what = f"query {query.name!r}: algorithm={query.algorithm!r}"
    score, where = as_tree(query.score), where_key(query.where)
    if named.needs == "a distance score" and not isinstance(query.score, Distance):
        raise QueryError(f"{what} needs a score given by distance(), got {query.score!r}; use another algorithm, or 'auto'")
    if named.needs == "a score without choices" and score is not None and chooses(score):
        raise QueryError(
            f"{what} needs a score without where(), and, or, which may have a value though a column has none; "
            f"got {query.score!r}; say which rows count in where=, or use another algorithm, or 'auto'"
        )
    if not spatial and not isinstance(query.score, Linear | Distance):
        raise QueryError(
            f"{what} needs a score given by linear() or distance(), got {query.score!r}; use another algorithm, or 'auto'"
        )
    if score is None or not score.columns():
        raise QueryError(
            f"{what} needs a score whose rise and fall over the columns can be told, got {query.score!r}; "
            "use an expression over columns, another algorithm, or 'auto'"
        )
    if not spatial and (not isinstance(query.window, CountWindow) or query.emit == "snapshots" or where is not None):
        raise QueryError(f"{what} needs a CountWindow, no where, and another emit than 'snapshots'; use 'auto'")
    columns = {*score.columns(), *(where.columns() if where is not None else ())}
    if options.get("grid", 1) ** len(columns) > _MOST_CELLS:
        raise QueryError(
            f"{what} over {len(columns)} attributes makes a grid of too many cells; use fewer of either, or 'auto'"
        )


def _check_common(query: TopK | Threshold) -> None:
    """What is asked of every query about rows."""
    check_asked(query.name, query.window, order=(query.order, ORDERS), emit=(query.emit, EMISSIONS))
    check_score(query.score, query.name)
    check_where(query.where, query.name)
    object.__setattr__(query, "where", frozen_where(query.where))

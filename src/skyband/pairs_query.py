"""The query for pairs of rows. Frozen, keyword-only and validated where it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from skyband.algorithms import settled
from skyband.asking import (
    EMISSIONS,
    ORDERS,
    check_asked,
    frozen_where,
    where_to_json,
    whole_k,
    window_from_json,
    window_to_json,
)
from skyband.errors import QueryError
from skyband.scores.pair_score import PairDistance, PairDoor, PairScore, PairWhere, score_tree, where_tree
from skyband.window import Window


@dataclass(frozen=True, kw_only=True)
class TopKPairs:
    """The k best pairs of rows of a window. A pair is of two different rows: `a` is the older, `b` the newer one.

    >>> import skyband as sb
    >>> near = sb.TopKPairs(name="near", k=1, score=sb.pair_distance(["x", "y"]), window=sb.CountWindow(1000))
    >>> monitor = sb.Monitor([near])
    >>> changes = monitor.push({"x": [0.0, 5.0, 1.0], "y": [0.0, 5.0, 1.0]})
    >>> monitor.top("near").select(["a_seq", "b_seq"]).to_pylist()
    [{'a_seq': 0, 'b_seq': 2}]

    score      an expression over the columns of `a.` and `b.`, such as "abs(a.price - b.price)", or `pair_distance`; it need
               not be symmetric
    order      "asc": the smallest scores rank first, the default; "desc": the largest
    where      a boolean expression over a. and b., such as "a.venue != b.venue and a.kind == 'bid'", or {"a.x": (low, high)},
               where a column without a side is meant on both
    emit       "changes", "snapshots", "arrivals" or "none"
    algorithm  one of the family "pairs" of `skyband.algorithms()`, or "auto"
    """

    name: str
    k: int
    score: PairScore
    window: Window
    order: str = "asc"
    where: PairWhere | None = None
    emit: str = "changes"
    algorithm: str = "auto"

    error: ClassVar[float] = 0.0
    identity: ClassVar[str] = "pair"

    def __post_init__(self) -> None:
        check_asked(self.name, self.window, order=(self.order, ORDERS), emit=(self.emit, EMISSIONS))
        object.__setattr__(self, "k", whole_k(self.name, self.k))
        readers: list[tuple[str, Callable[[Any], object], Any]] = [
            ("score", score_tree, self.score),
            ("where", where_tree, self.where),
        ]
        for what, read, given in readers:
            try:
                read(given)
            except QueryError as problem:
                raise QueryError(f"query {self.name!r}: {what}: {problem}") from None
        object.__setattr__(self, "where", frozen_where(self.where))
        self._check_algorithm()

    def _check_algorithm(self) -> None:
        what = f"query {self.name!r}: algorithm={self.algorithm!r}"
        if not isinstance(self.algorithm, str):
            raise QueryError(f"{what} must be a name of skyband.algorithms()")
        if self.algorithm == "auto":
            return
        try:
            named, _ = settled(self.algorithm)
        except QueryError as problem:
            raise QueryError(f"query {self.name!r}: {problem}") from None
        if named.family != "pairs":
            raise QueryError(f"{what} does not rank pairs; choose one of the family 'pairs', or 'auto'")
        if not named.exact:
            raise QueryError(f"{what} computes scores and answers nothing, it is there to be measured; use 'scase', or 'auto'")
        if named.name == "pairs-ta" and self.door.metric is None and self.door.search is None:
            raise QueryError(
                f"{what} needs a score that is a distance: pair_distance(), or a sum, maximum or product of differences such "
                "as '2 * abs(a.x - b.x) + abs(a.y - b.y)'; use 'scase', or 'auto'"
            )

    @property
    def door(self) -> PairDoor:
        """How rows become pairs with scores: queries for which it is equal may share a structure."""
        return PairDoor(score_tree(self.score), where_tree(self.where), self.order)

    def to_json(self) -> dict[str, Any]:
        """The query as JSON-able values."""
        plain = {name: getattr(self, name) for name in ("name", "k", "order", "emit", "algorithm")}
        plain["where"] = where_to_json(self.where)
        score: Any = self.score
        if isinstance(score, PairDistance):
            score = {"columns": list(score.columns), "metric": score.metric}
        return {**plain, "pair_score": score, "window": window_to_json(self.window)}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> TopKPairs:
        """What `to_json` gave."""
        plain = dict(document)
        score = plain.pop("pair_score")
        if not isinstance(score, str):
            score = PairDistance(**score)
        return cls(**{**plain, "score": score, "window": window_from_json(document["window"])})

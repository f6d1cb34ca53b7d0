"""Queries that close their windows together, and what of a pane can rank for them.

Queries with one slide form a *pace*: a row is late for all of them or none. All that count rows are one more pace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

from skyband.query import Query, RankedQuery, Threshold, TopK
from skyband.schedule import pane_cuts
from skyband.window import CountWindow


@dataclass(frozen=True)
class Sieve:
    """Of rows in one pane only the best `k` by this score can rank, or those beyond a bound."""

    score: int  # its column is s{score}
    ascending: bool
    k: int
    above: float | None = None  # the bound of a threshold; `k` is of no meaning then


@dataclass(frozen=True)
class Pace:
    """Queries that close their windows together: of one slide, or all that count rows (`slide` None). Those of a stream with
    deletions may have several: their pace has the greatest that divides them all."""

    slide: int | None
    queries: tuple[Query, ...]  # durations as whole numbers
    cuts: tuple[int, ...] = ()  # where, within a slide, some window begins
    sieves: tuple[Sieve, ...] = ()

    def emptied(self, last: int) -> int:
        """The end of the last window that has something to report of rows up to the time `last`."""
        windows = {(cast(int, query.window.size), cast(int, query.window.slide)) for query in self.queries}
        return max(((last + size) // slide + 1) * slide for size, slide in windows)

    @property
    def sizes(self) -> dict[str, int]:
        """The window size of each query, by name."""
        return {query.name: cast(int, query.window.size) for query in self.queries}


def slide_of(query: Query) -> int | None:
    """Which pace a query, its durations in whole numbers, belongs to."""
    return None if isinstance(query.window, CountWindow) else cast(int, query.window.slide)


def by_slide(slides: Iterable[int | None], queries: Iterable[Query]) -> tuple[Pace, ...]:
    """A pace for each slide, in that order, of those queries that have it."""
    asked = list(queries)
    return tuple(Pace(slide, tuple(query for query in asked if slide_of(query) == slide)) for slide in slides)


def scored_paces(slides: Iterable[int | None], queries: Iterable[RankedQuery]) -> tuple[Pace, ...]:
    """The same for queries over score columns, with what of a pane can rank."""
    paces = [(pace.slide, smallest_state(cast(tuple[RankedQuery, ...], pace.queries))) for pace in by_slide(slides, queries)]
    return tuple(_timed(slide, own) if slide is not None and own else Pace(slide, tuple(own)) for slide, own in paces)


def smallest_state(queries: Iterable[RankedQuery]) -> list[RankedQuery]:
    """`auto` as it is best here, where every micro-batch writes the state down: `strict` remembers least (measured: a
    quarter of `shared` at 600 panes and k=100, in the same time), but serves one query a structure. A query that would
    put up with an error gets the same: an exact answer is within it."""
    queries = [exact(query) for query in queries]
    doors = Counter((query.score, query.order) for query in queries if isinstance(query, TopK) and query.algorithm == "auto")
    return [
        replace(query, algorithm="strict")
        if isinstance(query, TopK) and query.algorithm == "auto" and doors[query.score, query.order] == 1
        else query
        for query in queries
    ]


def exact(query: RankedQuery) -> RankedQuery:
    """A query that leaves the algorithm to us and would put up with an error, without it."""
    return replace(query, error=0.0) if isinstance(query, TopK) and query.algorithm == "auto" else query


def score_of(query: RankedQuery) -> int:
    """The number of a rewritten query's score."""
    assert isinstance(query.score, str)
    return int(query.score.removeprefix("s"))


def _timed(slide: int, queries: list[RankedQuery]) -> Pace:
    cuts = pane_cuts(slide, [cast(int, query.window.size) for query in queries]).tolist()
    best: dict[tuple[int, bool], int] = {}
    beyond: dict[tuple[int, bool], float] = {}
    for query in queries:
        way = (score_of(query), query.order == "asc")
        if isinstance(query, Threshold):
            lowest = max if way[1] else min
            beyond[way] = lowest(beyond.get(way, query.above), query.above)
        else:
            best[way] = max(best.get(way, 0), query.k)
    sieves = [Sieve(*way, k) for way, k in best.items()] + [Sieve(*way, 0, above) for way, above in beyond.items()]
    return Pace(slide, tuple(queries), tuple(cuts), tuple(sieves))

"""What a monitor must answer to queries for pairs, in plain Python: every window's rows are paired, scored and sorted.

Windows, late rows and activation are those of `reference`; nothing is shared with the engine.

    pair     two rows a, b of the window with a before b, by arrival (count windows) or by time, then arrival (time windows)
    order    better score, then later a, then later b
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reference import Asked, Event, Ranked, Reference, Row, Standing, _changes

PairFunction = Callable[[Row, Row], float | None]


@dataclass(frozen=True)
class AskedPairs(Asked):
    """A query for pairs as plain parameters: `score` and `where` are functions of two rows."""

    order: str = "asc"
    columns: tuple[str, ...] = ()  # those the score names: a row that lacks one is counted as null


class PairReference(Reference):
    """A reference whose `seq` and `row` are pairs of these."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._scores: dict[Asked, dict[tuple[int, int], float | None]] = {}

    def _accept(self, standing: Standing, position: int, seq: int, row: Row) -> None:
        asked = standing.asked
        assert isinstance(asked, AskedPairs)
        standing.rows.append((position, seq, row))
        standing.nulls += any(row[name] is None or math.isnan(row[name]) for name in asked.columns)

    def _report(self, standing: Standing, end: int) -> None:
        asked: Any = standing.asked
        held = sorted((*entry[:2], place) for place, entry in enumerate(standing.rows) if end - asked.size <= entry[0] < end)
        scores = self._scores.setdefault(standing.asked, {})
        found: list[tuple[float, int, int]] = []
        for later, (_, b, b_place) in enumerate(held):
            for earlier, (_, a, a_place) in enumerate(held[:later]):
                if (a, b) not in scores:
                    scores[a, b] = _score(asked, standing.rows[a_place][2], standing.rows[b_place][2])
                if (score := scores[a, b]) is not None:
                    found.append((score if asked.order == "asc" else -score, -earlier, -later))
        best = [(held[-earlier], held[-later]) for _, earlier, later in heapq.nsmallest(asked.k, found)]
        before = standing.top
        standing.top = [
            Ranked(scores[a, b], 0, (a, b), (standing.rows[a_place][2], standing.rows[b_place][2]))  # type: ignore[arg-type]
            for (_, a, a_place), (_, b, b_place) in best
        ]
        standing.closed, standing.predecessor_held_rows = end, bool(held)
        standing.reported.append((end, standing.top))
        standing.events += [Event(asked.name, end, *event) for event in _changes(standing, before)]
        standing.seen |= {r.seq for r in standing.top}


def _score(asked: Any, older: Row, newer: Row) -> float | None:
    score = asked.score(older, newer)
    if score is None or math.isnan(score) or (asked.where is not None and not asked.where(older, newer)):
        return None
    return float(score)


def l1(*columns: str) -> PairFunction:
    def score(a: Row, b: Row) -> float | None:
        return _folded([_minus(a[name], b[name]) for name in columns], lambda x, y: x + y)

    return score


def product(*columns: str) -> PairFunction:
    def score(a: Row, b: Row) -> float | None:
        return _folded([_minus(a[name], b[name]) for name in columns], lambda x, y: x * y)

    return score


def l2(*columns: str) -> PairFunction:
    def score(a: Row, b: Row) -> float | None:
        squares = [None if d is None else d * d for d in (_minus(a[name], b[name]) for name in columns)]
        total = _folded(squares, lambda x, y: x + y)
        return None if total is None else math.sqrt(total)

    return score


def _minus(x: float | None, y: float | None) -> float | None:
    return None if x is None or y is None else abs(x - y)


def _folded(values: list[float | None], together: Callable[[float, float], float]) -> float | None:
    total = values[0]
    for value in values[1:]:
        total = None if total is None or value is None else together(total, value)
    return None if total is None or math.isnan(total) else total


def over(x: float, y: float) -> float:
    """x / y as IEEE has it."""
    if y != 0:
        return x / y
    return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1.0, y)

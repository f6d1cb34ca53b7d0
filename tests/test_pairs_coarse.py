"""Distances in float32 are a screen: they let through every pair that reaches a level, at any magnitude, and few others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import skyband as sb
from skyband.algorithms.pairs.arrays import room_for_tail
from skyband.algorithms.pairs.contract import Scoring
from skyband.kernels.pairs.coarse import any_near, coarsen_all, meet_coarsely
from skyband.kernels.pairs.distance import level_of
from skyband.kernels.pairs.score import APART, SEARCH, TURN, Scorer, meet
from skyband.kernels.pairs.state import Tail
from skyband.scores.pair_score import PairDoor, score_tree

X, Y, Z, U = (f"abs(a.{name} - b.{name})" for name in "xyzu")
SCORES = (
    X,
    f"{X} + {Y}",
    f"{X} + {Y} + {Z}",
    f"{X} + {Y} + {Z} + {U}",
    "sqrt((a.x - b.x) ** 2 + (a.y - b.y) ** 2)",
    "sqrt((a.x - b.x) ** 2 + (a.y - b.y) ** 2 + (a.z - b.z) ** 2 + (a.u - b.u) ** 2)",
    f"0.3 * {X} + 900 * {Y}",
    "0.7 * sqrt((a.x - b.x) ** 2 / 3 + 2 * (a.y - b.y) ** 2 + (a.z - b.z) ** 2)",
    "(a.x - b.x) ** 2 * 1000000 + 0.000001 * (a.y - b.y) ** 2",
    f"max({X}, 0.7 * {Y}, 30 * {Z})",
)
SPECIAL = np.array(
    [0.0, -0.0, 1.0, np.pi, 1e-310, 5e-324, 1e-45, 1e-38, 3.4e38, 3.5e38, 1e30, 1e300, -1e300, np.inf, -np.inf, np.nan]
)
Drawn = dict[str, np.ndarray]


def streams(columns: int, rows: int) -> Drawn:
    """Values of every magnitude, close to each other and far apart; around and away from zero; equal ones."""
    g = np.random.default_rng(3)
    near = g.random((columns, rows))
    drawn = {
        f"scaled by {scale:g}": near * scale for scale in (1e-310, 1e-160, 1e-45, 1e-36, 1e-20, 1.0, 1e14, 1e25, 1e37, 1e160)
    }
    drawn |= {f"around {origin:g}": origin + near for origin in (1.7e9, -1e5, 1e16)}
    drawn["every magnitude"] = near * 10.0 ** g.integers(-60, 60, (columns, rows))
    drawn["last bits"] = 1.0 + g.integers(0, 9, (columns, rows)) * 2.0**-24
    drawn["last bits of float32"] = g.integers(0, 9, (columns, rows)) * (0.4 * 2.0**-149)
    drawn["tied"] = g.integers(0, 4, (columns, rows)) / 3
    drawn["special"] = SPECIAL[g.integers(0, len(SPECIAL), (columns, rows))]
    drawn["some special"] = np.where(g.random((columns, rows)) < 0.1, drawn["special"], near)
    return drawn


def screened(scoring: Scoring, points: np.ndarray) -> tuple[Tail, Scorer, np.ndarray]:
    """All rows but the last as a tail, the scorer that has met the last, and its plain scores with them."""
    older = points.shape[1] - 1
    tail, scorer = room_for_tail(scoring.older, scoring.coarse, older), scoring.scorer()
    tail.columns[:, :older] = points[:, :older]
    coarsen_all(tail, older)
    meet(scorer, tail.columns, points, older)
    meet_coarsely(scorer, tail.origin)
    assert scoring.plain is not None
    with np.errstate(all="ignore"):
        return tail, scorer, scoring.plain(points[:, :older], points[:, older])


def lets_through(tail: Tail, scorer: Scorer, place: int, limit: float) -> bool:
    search = int(scorer.marks[SEARCH])
    level = level_of(search, scorer.shape, scorer.sign[APART], limit)
    return bool(any_near(search, tail, place, 1, scorer, level))


@pytest.mark.parametrize("score", SCORES)
def test_no_pair_is_missed_that_reaches_its_limit(score: str) -> None:
    scoring, _, _ = PairDoor(score_tree(score), None, "asc").scoring()
    assert scoring.coarse == scoring.older
    for name, points in streams(scoring.older, 160).items():
        tail, scorer, scores = screened(scoring, points)
        for place in np.flatnonzero(~np.isnan(scores)).tolist():
            limit = scorer.sign[TURN] * scores[place]
            assert lets_through(tail, scorer, place, limit), (name, points[:, place], points[:, -1], limit)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("origin", [0.0, 1.7e9])
def test_few_pairs_are_let_through_that_do_not(score: str, origin: float) -> None:
    """Not even where values lie far from zero, as times do."""
    scoring, _, _ = PairDoor(score_tree(score), None, "asc").scoring()
    tail, scorer, scores = screened(scoring, origin + np.random.default_rng(4).random((scoring.older, 300)))
    assert not any(lets_through(tail, scorer, place, -0.999 * scores[place]) for place in range(299))


@pytest.mark.parametrize(
    ("score", "order", "coarse"),
    [
        (f"{X} + {Y}", "asc", 2),
        (f"-({X} + {Y})", "desc", 2),
        (f"{X} + {Y}", "desc", 0),  # the furthest: ranges tell most of these
        (f"{X} * {Y}", "asc", 0),  # what is small may be a large difference times a tiny one
        (f"1e7 * {X} + {Y}", "asc", 0),
        (f"1e-7 * {X} + {Y}", "asc", 0),
        ("a.x - b.x", "asc", 0),
        (f"{X} + {Y} + {Z} + {U} + abs(a.v - b.v)", "asc", 0),
    ],
)
def test_which_rows_are_held_twice(score: str, order: str, coarse: int) -> None:
    assert PairDoor(score_tree(score), None, order).scoring()[0].coarse == coarse


@pytest.mark.parametrize("score", [SCORES[1], SCORES[4], SCORES[6], SCORES[9]])
@pytest.mark.parametrize("name", ["scaled by 1", "scaled by 1e-36", "around 1.7e+09", "last bits", "some special", "special"])
def test_answers_are_those_of_sorting_all_pairs(score: str, name: str) -> None:
    points = streams(3, 500)[name]
    found: dict[str, Any] = {}
    for algorithm in ("pairs-oracle", "scase"):
        query = sb.TopKPairs(name="q", k=9, score=score, window=sb.CountWindow(400, 20), emit="snapshots", algorithm=algorithm)
        told = sb.Monitor([query]).push(dict(zip("xyz", points, strict=True)))
        found[algorithm] = told.select(["window_end", "rank", "score", "a_seq", "b_seq"])
    assert found["scase"] == found["pairs-oracle"]

"""Scores that a distance tells: which they are, and that searching for them changes no answer, not even among ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import skyband as sb
from skyband.algorithms.pairs import skyband as pairs_skyband
from skyband.kernels.pairs import boxes as pairs_boxes
from skyband.scores.pair_score import PairDoor, score_tree, where_tree

X, Y, Z = "abs(a.x - b.x)", "abs(a.y - b.y)", "abs(b.z - a.z)"
XX, YY = "(a.x - b.x) ** 2", "(b.y - a.y) * (b.y - a.y)"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"2 * {X} + {Y}", ("l1", "xy", (2.0, 1.0), 1.0, False, False)),
        (f"{X} + ({Y} + {Z} * 3)", ("l1", "xyz", (1.0, 1.0, 3.0), 1.0, False, False)),
        (f"({X} + {Y}) / 2", ("l1", "xy", (1.0, 1.0), 0.5, False, False)),
        (f"-({X} + {Y} / 4)", ("l1", "xy", (1.0, 0.25), 1.0, False, True)),
        (f"-3 * {X}", ("l1", "x", (1.0,), 3.0, False, True)),
        (f"max({X}, max(2 * {Y}, {Z}))", ("max", "xyz", (1.0, 2.0, 1.0), 1.0, False, False)),
        (f"{XX} + {YY}", ("l2", "xy", (1.0, 1.0), 1.0, False, False)),
        (f"0.5 * sqrt({XX} + 3 * ({YY}))", ("l2", "xy", (1.0, 3.0), 0.5, True, False)),
        (f"-({X} * {Y}) / 7", ("product", "xy", (1.0, 1.0), 1 / 7, False, True)),
        (f"{X} - {Y}", None),
        (f"-2 * {X} + {Y}", None),
        (f"0 * {X} + {Y}", None),
        (f"{X} + {YY}", None),
        (f"{X} + 1", None),
        (f"{X} + {X}", None),  # one column twice
        (f"2 * (0.5 * ({X} + {Y}))", None),  # the inner one may overflow where the outer does not
        (f"2 * {X} * {Y}", None),
        (f"sqrt(2 * ({XX} + {YY}))", None),
        (f"1e301 * {X} + {Y}", None),
        ("abs(a.x - b.y)", None),
        ("a.x", None),
        ("3", None),
    ],
)
def test_which_distance_tells_a_score(text: str, found: Any) -> None:
    search = PairDoor(score_tree(text), where_tree("a.v != b.v"), "asc").search
    given = None if search is None else (
        search.kind, "".join(search.columns), search.weights, search.factor, search.root, search.negated
    )  # fmt: skip
    assert given == found


WILD = np.array([0.0, 1.0, 2.0, 3.3, 1e-170, 1e-310, 5e-324, 1e160, 1e200, 1.7e308, -1.7e308, np.inf, -np.inf, np.nan])
SEARCHED = [
    f"0.3 * {X} + {Y}",
    f"-0.1 * ({X} * 3 + ({Y} / 7 + 0.3 * {Z}))",
    f"max({X}, 0.7 * {Y})",
    f"max({X}, {Y} / 3, {Z}) / 3",
    f"{XX} + {YY}",
    f"0.3 * sqrt({XX} / 3 + 2 * ({YY}) + (a.z - b.z) ** 2)",
    f"3 * ({X} * {Y})",
    f"{X} + {Y}",
    f"sqrt({XX} + {YY})",
]


def rows_of(shape: str, count: int) -> dict[str, np.ndarray]:
    g = np.random.default_rng(7)
    drawn = {
        "decimal": lambda: np.round(g.random(count), 2),
        "tied": lambda: g.integers(0, 9, count) / 8,
        "wild": lambda: WILD[g.integers(0, len(WILD), count)],
    }[shape]
    return {name: drawn() for name in "xyz"} | {"v": g.integers(0, 4, count)}


@pytest.mark.parametrize("score", SEARCHED)
@pytest.mark.parametrize("shape", ["decimal", "tied", "wild"])
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("where", [None, "a.v != b.v"])
def test_searching_changes_no_answer(
    score: str, shape: str, order: str, where: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs_skyband, "BOX_ROWS", 2 * pairs_boxes.LEAF_ROWS)
    rows = rows_of(shape, 700)
    answers: dict[str, list[Any]] = {}
    for algorithm in ("pairs-oracle", "scase", "pairs-ta"):
        query = sb.TopKPairs(
            name="q", k=12, score=score, order=order, where=where, window=sb.CountWindow(450), emit="none", algorithm=algorithm
        )
        monitor = sb.Monitor([query])
        tops = answers[algorithm] = []
        for begin, end in ((0, 380), (380, 640), (640, 700)):
            monitor.push({name: column[begin:end] for name, column in rows.items()})
            top = monitor.top("q")
            tops.append([top.column(name).to_pylist() for name in ("score", "a_seq", "b_seq")])
        if algorithm != "pairs-oracle":
            monitor._lanes[0].structure.check_invariants()  # type: ignore[attr-defined]
    assert answers["scase"] == answers["pairs-oracle"]
    assert answers["pairs-ta"] == answers["pairs-oracle"]


def test_a_condition_on_both_sides_leaves_most_pairs_alone() -> None:
    """Boxes are searched by the score; the condition is asked of those pairs alone that it lets in."""
    g = np.random.default_rng(2)
    rows = {"x": g.random(12_000), "y": g.random(12_000), "venue": [f"v{i}" for i in g.integers(0, 9, 12_000)]}
    scored = {}
    for algorithm in ("scase", "pairs-ta"):
        query = sb.TopKPairs(
            name="q", k=5, score=f"{X} + {Y}", where="a.venue != b.venue", window=sb.CountWindow(9000), algorithm=algorithm
        )
        monitor = sb.Monitor([query])
        monitor.push(rows)
        scored[algorithm] = monitor.stats("q")["scored"]
    assert scored["pairs-ta"] < scored["scase"] / 4


@pytest.mark.parametrize(
    ("score", "order", "rows", "chosen"),
    [
        (f"{X} + {Y}", "asc", 20_000, "scase"),
        (f"{X} + {Y}", "asc", 50_000, "pairs-ta"),
        (f"{X} + {Y}", "desc", 50_000, "scase"),
        (f"{X} + {Y}", "desc", 80_000, "pairs-ta"),
        (f"-({X} + {Y})", "desc", 50_000, "pairs-ta"),  # the nearest
        (f"-2 * max({X}, {Y})", "asc", 50_000, "scase"),  # the furthest
        (f"{X} * {Y}", "asc", 10**6, "scase"),
        (f"{X} * {Y}", "desc", 10**6, "pairs-ta"),
        (f"{X} - {Y}", "asc", 10**6, "scase"),
    ],
)
def test_what_auto_chooses(score: str, order: str, rows: int, chosen: str) -> None:
    where = "a.v != b.v"
    monitor = sb.Monitor([sb.TopKPairs(name="q", k=1, score=score, order=order, where=where, window=sb.CountWindow(rows))])
    monitor.push({name: [1.0, 2.0] for name in "xyv"})
    assert monitor.stats("q")["algorithm"] == chosen

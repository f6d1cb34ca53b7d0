"""Scores compared where they are computed: whatever the limit, none that reaches it is passed over, infinities included."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import skyband as sb
from skyband.kernels.pairs.score import meet, promising
from skyband.scores.pair_score import PairDoor, score_tree

MOST = float(np.finfo(float).max)
VALUES = (0.0, -0.0, 1.0, -3.0, 5e-324, -1e-300, 1e200, MOST, -math.inf, math.nan)
LIMITS = (-MOST, -1e290, -1.0, -1e-290, -5e-324, 0.0, 1e-290, 1.0, 1e290, MOST, math.inf)
LAST_STEPS = ("a.x / a.y", "b.x / a.y", "a.x / b.y", "a.x * a.y", "a.x + a.y", "a.x - b.y", "abs(a.x - b.y)", "max(a.x, b.y)")


@pytest.mark.parametrize("score", LAST_STEPS)
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_no_score_that_reaches_a_limit_is_passed_over(score: str, order: str) -> None:
    scoring, older, newer = PairDoor(score_tree(score), None, order).scoring()
    assert scoring.plain is not None
    scorer, sign = scoring.scorer(), 1.0 if order == "desc" else -1.0
    rows = dict(zip("xy", np.array(list(itertools.product(VALUES, VALUES))).T, strict=True))
    columns = np.ascontiguousarray([rows[name] for name in older])
    for new in (0.0, -2.0, 1e-310, math.inf):
        values = np.full(len(newer), new)
        meet(scorer, columns, values[:, None], 0)
        with np.errstate(all="ignore"):
            turned = sign * scoring.plain(columns, values)
        for place in np.flatnonzero(~np.isnan(turned)).tolist():
            reached = float(turned[place])
            for limit in (reached, math.nextafter(reached, -math.inf), *LIMITS):
                if limit <= reached:
                    assert promising(scorer, columns, place, 1, limit), (columns[:, place], new, limit)


def test_a_quotient_by_zero_ranks_among_many_by_zero() -> None:
    """One row of thousands gives the best score there is, all others the worst: pairs of the newest rows are held against the
    limit just above the worst."""
    x = -1.0 - np.random.default_rng(1).random(6000)
    x[1500] = -0.0
    query = sb.TopKPairs(name="q", k=3, score="1 / max(a.x, 0)", window=sb.CountWindow(5000, 1000), algorithm="scase")
    monitor = sb.Monitor([query])
    monitor.push({"x": x})
    top = monitor.top("q").select(["score", "a_seq", "b_seq"]).to_pylist()
    assert top == [{"score": -math.inf, "a_seq": 1500, "b_seq": newer} for newer in (5999, 5998, 5997)]

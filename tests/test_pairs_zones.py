"""What a zone of older rows may score: no row of it scores more, whatever the score, and zones out of reach cost nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from skyband.kernels.expression import BLOCK
from skyband.kernels.pairs.score import meet
from skyband.kernels.pairs.zones import begin_zone, may_matter, widen
from skyband.scores.pair_score import PairDoor, score_tree

SCORES = (
    "a.x - b.x",
    "abs(a.x - b.x) / (abs(a.y - b.y) * abs(a.z - b.z))",
    "a.x / a.y - b.z / a.z",
    "abs(a.x - b.x) + abs(a.y - b.y) - abs(a.z - b.z)",
    "(a.x - b.y) * (a.x - b.y) - a.z * -b.z",
    "where(a.x < b.x or a.y > 1, a.y * b.z, 1 / (a.z + b.x))",
    "1 / where(a.x >= b.y, sqrt(abs(a.z)), min(a.y, b.z))",
    "max(floor(a.x), ceil(-a.y)) / max(a.z, b.z)",
    "1 / (a.x * a.y) + exp(a.z - b.z) * sin(b.x)",
    "1 / abs(a.x) - 1 / (a.y - b.y) - log(a.z) % 3",
    "max(abs(a.x - b.x), 0.7 * abs(a.y - b.y))",
    "0.3 * sqrt((a.x - b.x) ** 2 + 2 * (a.y - b.y) ** 2)",
    "3 * (abs(a.x - b.x) * abs(a.z - b.z))",
)
values = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 2.25, -3.0, 1e-310, 1e200, -1e200, math.inf, -math.inf, math.nan])


@given(data=st.data(), score=st.sampled_from(SCORES), order=st.sampled_from(["asc", "desc"]))
def test_no_row_of_a_zone_scores_more_than_it_may(data: st.DataObject, score: str, order: str) -> None:
    scoring, older, newer = PairDoor(score_tree(score), None, order).scoring()
    row = st.lists(values, min_size=3, max_size=3)
    rows = np.array(data.draw(st.lists(row, min_size=1, max_size=5))).T
    new = np.array(data.draw(row))
    columns = np.ascontiguousarray(rows[["xyz".index(name) for name in older]])
    values_of_new = new[["xyz".index(name) for name in newer]]
    scorer, low, high = scoring.scorer(), np.zeros(len(columns)), np.zeros(len(columns))
    begin_zone(low, high)
    for place in range(columns.shape[1]):
        widen(low, high, columns, place)
    meet(scorer, columns, values_of_new[:, None], 0)
    assert scoring.plain is not None
    with np.errstate(all="ignore"):
        scores = scoring.plain(columns, values_of_new)
    for one in scores[~np.isnan(scores)]:
        assert may_matter(scorer, low, high, one if order == "desc" else -one)


def test_zeros_of_both_signs_stand_for_each_other_below_a_negative_divisor() -> None:
    """0 / -3 is -0, and 1 / -0 the smallest score there is: no zone with such a row may be passed over."""
    x = np.where(np.arange(6000) % BLOCK == 0, -0.0, -1.0 - np.random.default_rng(1).random(6000))
    x[1500] = 0.0
    found = {}
    for algorithm in ("scase", "pairs-basic"):
        window = sb.CountWindow(5000, 100)
        query = sb.TopKPairs(name="q", k=5, score="1 / (a.x / b.y)", window=window, algorithm=algorithm)
        found[algorithm] = sb.Monitor([query]).push({"x": x, "y": np.full(6000, -3.0)})
    assert found["scase"] == found["pairs-basic"]


@pytest.mark.parametrize("score", ["a.x - b.x", "abs(a.x - b.x) / (1 + a.y)", "where(a.y > 2, a.x, abs(a.x - b.x))"])
def test_zones_out_of_reach_are_passed_over(score: str) -> None:
    """Values that rise with time: what came long ago is too far away, and is not scored."""
    rows = {"x": np.arange(9000.0) % 8000 + np.random.default_rng(5).random(9000), "y": np.arange(9000) % 7 / 7}
    found = {}
    for algorithm in ("scase", "pairs-basic"):
        order = "desc" if score == "a.x - b.x" else "asc"
        window = sb.CountWindow(6000, 100)
        query = sb.TopKPairs(name="q", k=5, score=score, order=order, window=window, algorithm=algorithm)
        monitor = sb.Monitor([query])
        found[algorithm] = monitor.push(rows)
        if algorithm == "scase":
            assert monitor.stats("q")["scored"] < 9000 * 6000 / 5  # the newest thousand rows are always scored
    assert found["scase"] == found["pairs-basic"]

"""Rows that can still win: none is lost, few others stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyband.kernels.live import BLOCK, live_rows
from skyband.live import LiveRows

SCORES = st.lists(st.sampled_from([float("nan"), float("-inf"), float("inf"), *map(float, range(6))]), max_size=60)


@given(scores=SCORES, k=st.integers(1, 9))
def test_no_row_that_can_win_is_lost(scores: list[float], k: int) -> None:
    """A row can win while fewer than k newer rows rank above it; of equal scores the newer ranks above."""
    places, unknown = live_rows(np.array(scores, float), k)
    assert places.tolist() == sorted(set(places.tolist()))
    assert unknown == sum(score != score for score in scores)
    for place, score in enumerate(scores):
        above = sum(newer >= score for newer in scores[place + 1 :])
        if score == score and above < k:
            assert place in places
    assert not any(scores[place] != scores[place] for place in places)


@pytest.mark.parametrize(
    ("name", "scores", "most"),
    [
        ("random", np.random.default_rng(1).random(100_000), 2_000),
        ("constant", np.zeros(100_000), 2 * BLOCK),
        ("rising", np.arange(100_000.0), 2 * BLOCK),
    ],
)
def test_few_others_stay(name: str, scores: np.ndarray, most: int) -> None:
    places, _ = live_rows(scores, 50)
    assert 50 <= len(places) <= most, name


def test_what_is_kept_is_thinned_as_the_stream_runs() -> None:
    """A million rows come in thousands; what can still win of the last hundred thousand stays."""
    live = LiveRows(20, by_arrival=True)
    scores = np.random.default_rng(2).random(1_000_000)
    for begin in range(0, len(scores), 1000):
        live.extend(begin, None, scores[begin : begin + 1000], begin + 1000 - 100_000)
    assert live.count < 20_000
    window = scores[-100_000:]
    for place in np.argsort(window)[-20:]:
        assert len(scores) - 100_000 + place in live.seqs()

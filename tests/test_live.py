"""Rows that can still win: none is lost, few others stay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyband.kernels.live import live_rows
from skyband.kernels.tables import BLOCK
from skyband.live import LiveRows

SCORES = st.lists(st.sampled_from([float("nan"), float("-inf"), float("inf"), *map(float, range(6))]), max_size=60)


@given(scores=SCORES, k=st.integers(1, 9))
def test_no_row_that_can_win_is_lost(scores: list[float], k: int) -> None:
    """A row can win while fewer than k newer rows rank above it; of equal scores the newer ranks above."""
    places, unknown, _ = live_rows(np.array(scores, float), k, False)
    assert places.tolist() == sorted(set(places.tolist()))
    assert unknown == sum(score != score for score in scores)
    for place, score in enumerate(scores):
        above = sum(newer >= score for newer in scores[place + 1 :])
        if score == score and above < k:
            assert place in places
    assert not any(scores[place] != scores[place] for place in places)


@given(scores=SCORES, k=st.integers(1, 9), copies=st.integers(1, 20), seed=st.integers(0, 9))
def test_every_score_is_a_number_below_its_ceiling(scores: list[float], k: int, copies: int, seed: int) -> None:
    """Long enough for several blocks; a block of which nothing is known has the ceiling NaN."""
    values = np.repeat(np.array(scores, float), copies)
    np.random.default_rng(seed).shuffle(values)
    _, _, ceilings = live_rows(values, k, False)
    assert len(ceilings) == -(-len(values) // BLOCK)
    for block, ceiling in enumerate(ceilings):
        inside = values[block * BLOCK : (block + 1) * BLOCK]
        assert np.isnan(ceiling) or (inside < ceiling).all()


def test_ceilings_tell_quiet_blocks_from_others() -> None:
    """Far from the newest rows every block's ceiling is close to what its scores are, or to the floor there."""
    scores = np.random.default_rng(3).random(100_000)
    _, _, ceilings = live_rows(scores, 10, False)
    assert (ceilings[: len(ceilings) // 2] > 0.999).all() and (ceilings < 1.001).all()
    assert np.isnan(live_rows(np.array([1.0, np.nan]), 1, False)[2]).all()
    assert np.isnan(live_rows(np.array([1.0, np.inf]), 1, False)[2]).all()


def test_blocks_of_rows_that_cannot_win_are_told_from_others() -> None:
    """Where nobody asks for a window that ends earlier, they have no ceiling but that nothing of them is of use."""
    for scores in (np.random.default_rng(3).random(50_000), np.arange(5000.0), -np.arange(5000.0), np.full(5000, np.nan)):
        places, _, ceilings = live_rows(scores, 10, False)
        again, _, settled = live_rows(scores, 10, True)
        idle = ~np.isin(np.arange(len(ceilings)), places // BLOCK) & ~np.isnan(ceilings)
        assert np.array_equal(places, again) and np.array_equal(settled == -np.inf, idle)
        assert np.array_equal(settled[~idle], ceilings[~idle], equal_nan=True)


def test_rows_after_the_first_window_asked_for_outrank_nobody() -> None:
    """A row that later ones outrank may rank in a window that ends before them."""
    scores = np.concatenate([np.arange(1000.0), 5000.0 + np.arange(1000.0)])
    live = LiveRows(3, by_arrival=True)
    assert set(range(997, 1000)) <= set(live.walk(scores, 0, 1000).places)
    assert len(live.walk(scores, 0, 1000).ceilings.limit) == 3  # whole blocks
    for begin in (1000, 1500):  # nothing is known of windows that end later
        assert (live.walk(scores, begin, 1000).ceilings.limit > -np.inf).all()


def test_rows_of_no_later_window_are_only_counted() -> None:
    scores = np.array([np.nan, 5.0, np.nan, 1.0, 2.0, np.nan])
    walk = LiveRows(1, by_arrival=True).walk(scores, 3)
    assert 4 in walk.places and (walk.places >= 3).all()
    assert (walk.unknown, walk.ceilings.ahead) == (3, 3)


@pytest.mark.parametrize(
    ("name", "scores", "most"),
    [
        ("random", np.random.default_rng(1).random(100_000), 2_000),
        ("constant", np.zeros(100_000), 2 * BLOCK),
        ("rising", np.arange(100_000.0), 2 * BLOCK),
    ],
)
def test_few_others_stay(name: str, scores: np.ndarray, most: int) -> None:
    places, _, _ = live_rows(scores, 50, False)
    assert 50 <= len(places) <= most, name


def test_what_is_kept_is_thinned_as_the_stream_runs() -> None:
    """A million rows come in thousands; what can still win of the last hundred thousand stays."""
    live = LiveRows(20, by_arrival=True)
    scores = np.random.default_rng(2).random(1_000_000)
    for begin in range(0, len(scores), 1000):
        new = scores[begin : begin + 1000]
        live.extend(begin, None, new, live.walk(new).places, begin + 1000 - 100_000)
    assert live.count < 20_000
    window = scores[-100_000:]
    for place in np.argsort(window)[-20:]:
        assert len(scores) - 100_000 + place in live.seqs()


def test_rows_that_come_one_by_one_are_kept_in_few_chunks() -> None:
    """A falling stream, all of whose rows can still win."""
    live = LiveRows(5, by_arrival=True)
    for row in range(5000):
        new = np.array([-float(row)])
        live.extend(row, None, new, live.walk(new).places, row - 2000)
    assert live.seqs(4990).tolist() == list(range(4990, 5000)) and live.oldest is not None
    assert len(live._chunks) <= 60 and live.nbytes == 16 * live.count

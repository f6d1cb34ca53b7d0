"""The best rows of each cell, and the panes of rows, against sorting and plain arithmetic."""

from __future__ import annotations

from math import isnan

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skyband.algorithms.contract import read_only
from skyband.kernels.cells import Keys, keep_best, keep_level, number_cells, number_panes

SCORES = st.sampled_from([0.0, -0.0, 1.0, 2.5, -3.0, float("inf"), float("-inf"), float("nan")])
FAR = (1 << 63) - 1


@given(
    rows=st.lists(st.tuples(SCORES, st.integers(0, 4), st.integers(0, 3)), max_size=400),
    spread=st.floats(0, 5),
    k=st.integers(1, 12),
    seed=st.integers(0, 99),
    mixed=st.booleans(),
)
def test_the_best_of_each_cell_are_those_of_sorting(
    rows: list[tuple[float, int, int]], spread: float, k: int, seed: int, mixed: bool
) -> None:
    rng = np.random.default_rng(seed)
    noise = np.where(rng.random(len(rows)) < 0.7, rng.normal(0, spread, len(rows)), 0.0)
    score = np.array([one[0] for one in rows], np.float64) + noise  # some ties are left, and many are not
    time, group = (np.array([one[at] for one in rows], np.int64) for at in (1, 2))
    if not mixed:
        group.sort()
    tie = rng.permutation(len(rows)).astype(np.int64)
    cell, keep, level = np.empty(len(rows), np.int64), np.zeros(len(rows), bool), np.zeros(len(rows), bool)
    cells = number_cells(read_only(group), read_only(np.zeros(len(rows), np.int64)), cell)
    keep_best(read_only(cell), cells, Keys(read_only(score), read_only(time), read_only(tie)), k, keep)
    without = Keys(read_only(score), read_only(time), read_only(time))  # as where ties are not known yet
    keep_level(read_only(cell), read_only(keep_best(read_only(cell), cells, without, k, level)), without, level)
    for number in set(group.tolist()):
        own = [i for i in range(len(rows)) if group[i] == number and not isnan(score[i])]
        best = sorted(own, key=lambda i: (-score[i], -time[i], -tie[i]))[:k]
        assert set(np.flatnonzero(keep & (group == number)).tolist()) == set(best)
        assert set(np.flatnonzero(level & (group == number)).tolist()) >= set(best)


@given(
    times=st.lists(st.integers(-FAR - 1, FAR) | st.integers(-20, 20), max_size=50),
    slide=st.integers(2, 9) | st.sampled_from([1 << 62, FAR]),
    cuts=st.sets(st.integers(1, 8), max_size=3),
)
def test_panes_are_those_of_plain_arithmetic(times: list[int], slide: int, cuts: set[int]) -> None:
    own = sorted(cut for cut in cuts if cut < slide)
    times = [time for time in times if time // slide * slide >= -FAR - 1]  # slides that begin where a time can be
    pane = np.empty(len(times), np.int64)
    number_panes(read_only(np.array(times, np.int64)), slide, read_only(np.array(own, np.int64)), pane)
    expected = [time // slide * (len(own) + 1) + sum(cut <= time % slide for cut in own) for time in times]
    assert pane.tolist() == [(number + (1 << 63)) % (1 << 64) - (1 << 63) for number in expected]

"""Every algorithm on real streams: ties in runs, bursts and trends that no generator thinks of."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.streams import REAL, stream
from harness import answers_of
from skyband.algorithms import TABLE

ROWS = 12_000
NAMES = [entry.name for entry in TABLE if entry.family == "ranked" and entry.exact and entry.name != "oracle"]


@pytest.mark.data
@pytest.mark.parametrize("data", REAL)
@pytest.mark.parametrize("name", NAMES)
def test_equal_to_sorting_the_window(name: str, data: str) -> None:
    scores = stream(data, ROWS)
    scores[np.random.default_rng(3).random(ROWS) < 0.01] = np.nan
    question = (3000, 70, 25)
    assert answers_of(name, scores, question, cuts=(1, 5000)) == answers_of("oracle", scores, question)

"""The one-pass k-skyband: against sorting the window, and exactly the rows that can still rank."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streams
from harness import answers_of, feed, floats, plan_of
from skyband.algorithms import build
from skyband.algorithms.ranked.strict import Strict

triples = st.tuples(streams.windows(), st.integers(1, 25)).map(lambda drawn: (*drawn[0], drawn[1]))


def held(algorithm: Strict) -> list[int]:
    """The ordinals of the candidates, best first."""
    return algorithm._state.ordinal[: algorithm.candidates].tolist()


def skyband(scores: np.ndarray, first: int, end: int, k: int) -> list[int]:
    """By definition: the rows that fewer than k newer ones outrank."""
    rows = [row for row in range(first, end) if not math.isnan(scores[row])]
    kept = [row for row in rows if sum(scores[newer] >= scores[row] for newer in rows if newer > row) < k]
    return sorted(kept, key=lambda row: (scores[row], row), reverse=True)


@given(drawn=streams.scores(), queries=st.lists(triples, min_size=1, max_size=4), data=st.data())
def test_equals_sorting_the_window(drawn: list[float | None], queries: list[tuple[int, int, int]], data: st.DataObject) -> None:
    scores = floats(drawn)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(scores)), max_size=8), label="cuts"))
    assert answers_of("strict", scores, *queries, cuts=cuts) == answers_of("oracle", scores, *queries)


@given(drawn=streams.scores(), size=st.integers(1, 20), k=st.integers(1, 6))
def test_holds_the_skyband_and_nothing_else(drawn: list[float | None], size: int, k: int) -> None:
    scores = floats(drawn)
    algorithm = build("strict", plan_of((size, 1, k)))
    assert isinstance(algorithm, Strict)
    for end in range(1, len(scores) + 1):
        feed(algorithm, scores[:end])
        assert held(algorithm) == skyband(scores, max(end - size, 0), end, k)
        algorithm.check_invariants()


# TODS15, Figure 1: k = 1, n = 6, smaller scores win. Candidates after each arrival, best first.
FIGURE_1 = """
    arrives    candidates
    o1   3     o1
    o2   1     o2
    o3   2     o2 o3
    o4   7     o2 o3 o4
    o5   5     o2 o3 o5
    o6   9     o2 o3 o5 o6
    o7   4     o2 o3 o7
    o8   7.5   o3 o7 o8
    o9   6     o7 o9
    o10  11    o7 o9 o10
    o11  10    o7 o9 o11
"""


def test_the_stream_of_figure_1() -> None:
    table = [line.split() for line in FIGURE_1.strip().splitlines()[1:]]
    scores = np.array([-float(score) for _, score, *_ in table])
    algorithm = build("strict", plan_of((6, 1, 1)))
    assert isinstance(algorithm, Strict)
    for end, (name, _, *candidates) in enumerate(table, start=1):
        feed(algorithm, scores[:end])
        assert [f"o{ordinal + 1}" for ordinal in held(algorithm)] == candidates, name


def test_one_skyband_serves_smaller_windows_and_smaller_k() -> None:
    scores = streams.shaped("random", 2000, seed=1)
    queries = [(500, 10, 30), (40, 7, 3), (500, 500, 1), (123, 1, 17)]
    assert answers_of("strict", scores, *queries, cuts=[1, 2, 700]) == answers_of("oracle", scores, *queries)
    algorithm = build("strict", plan_of(*queries))
    feed(algorithm, scores)
    alone = build("strict", plan_of((500, 10, 30)))
    feed(alone, scores)
    assert algorithm.candidates <= 2 * alone.candidates


@pytest.mark.parametrize("shape, most", [("falling", 300), ("rising", 5), ("constant", 5), ("random", 60)])
def test_candidates_by_shape(shape: str, most: int) -> None:
    algorithm = build("strict", plan_of((300, 1, 5)))
    feed(algorithm, streams.shaped(shape, 3000))
    assert algorithm.candidates <= most
    assert algorithm.nbytes < 100 * most + 5000

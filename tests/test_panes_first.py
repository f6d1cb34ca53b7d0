"""Structures that are shown the best rows of each pane alone, against sorting; and where SAP is put behind panes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skyband as sb
import streams as drawn
from harness import answers_of, feed, plan_of
from skyband.algorithms import build
from skyband.algorithms.ranked.panes_first import LONG, PanesFirst
from skyband.algorithms.ranked.sap import SAP
from skyband.errors import StateError
from skyband.kernels.ranked.pane_tops import FAILURES, REST
from test_sap import policies, queries, streams

Query = tuple[int, int, int]


def behind_panes(query: Query, policy: str = "enhanced") -> PanesFirst:
    return PanesFirst(plan_of(query), lambda reduced: SAP(reduced, policy=policy))


@settings(max_examples=150, deadline=None)
@given(streams(), queries(), policies, st.lists(st.integers(0, 520), max_size=6))
def test_equals_sorting_the_window(scores: np.ndarray, query: Query, policy: str, cuts: list[int]) -> None:
    paned = behind_panes(query, policy)
    answers = []
    for cut in sorted({min(cut, len(scores)) for cut in cuts} | {len(scores)}):
        lent = scores[:cut].copy()
        answers += feed(paned, lent)
        lent[:] = 1e300
        paned.check_invariants()
    assert answers == answers_of("oracle", scores, query)


@settings(max_examples=40, deadline=None)
@given(streams(), queries(), st.integers(0, 520), st.integers(0, 40))
def test_continues_from_a_snapshot_and_begins_anywhere(scores: np.ndarray, query: Query, cut: int, start: int) -> None:
    cut, start = min(cut, len(scores)), min(start, len(scores))
    whole, paned, again = build("oracle", plan_of(query)), behind_panes(query), behind_panes(query)
    for algorithm in (whole, paned):
        algorithm.next = start
    before = feed(paned, scores[:cut], start=start)
    again.restore(paned.snapshot())
    assert before + feed(again, scores, start=start) == feed(whole, scores, start=start)


@pytest.mark.parametrize("shape", sorted(drawn.SHAPES))
def test_long_slides_put_sap_behind_panes(shape: str) -> None:
    """Windows that begin within a slide or at its beginning; a slide is compared with a floor in several pieces."""
    scores = drawn.shaped(shape, 9000)
    for query in ((2 * LONG, LONG, 1), (5 * LONG + 7, LONG, 1), (4 * LONG, 2 * LONG, 2), (3000, 1030, 2)):
        assert isinstance(build("sap", plan_of(query)), PanesFirst)
        assert answers_of("sap", scores, query, cuts=[100, 2500, 2501, 7000]) == answers_of("oracle", scores, query)
    assert not isinstance(build("sap", plan_of((4 * LONG, LONG - 1, 1))), PanesFirst)


def test_rows_left_out_between_windows() -> None:
    """With emit="none" only the last window of a push is asked for, and rows that none will hold are not handed over."""
    scores = np.random.default_rng(5).random(40 * LONG)
    window = sb.CountWindow(3 * LONG, LONG)
    asked = [sb.TopK(name=name, k=1, score="x", window=window, emit="none", algorithm=name) for name in ("sap", "oracle")]
    monitor = sb.Monitor(asked)
    for rows in np.split(scores, [200, 5 * LONG, 20 * LONG + 3, 21 * LONG]):
        monitor.push({"x": rows})
        assert monitor.top("sap").equals(monitor.top("oracle"))


def test_no_raw_rows_are_kept() -> None:
    query = (100 * LONG, LONG, 1)
    scores = -np.arange(150.0 * LONG)
    behind, alone = build("sap", plan_of(query)), SAP(plan_of(query))
    assert feed(behind, scores) == feed(alone, scores)
    assert 10 * behind.nbytes < alone.nbytes
    assert behind.candidates <= 101


@pytest.mark.parametrize("drift", [-1.0, 1e-9])
def test_guessing_rests_while_scores_drift_and_goes_on_afterwards(drift: float) -> None:
    paned = behind_panes((1000, 100, 2))
    scores = np.concatenate([drift * np.arange(2000.0), np.random.default_rng(1).random(8000)])
    feed(paned, scores[:2000])
    marks = paned._state.marks
    assert marks[FAILURES] >= 3
    assert marks[REST] > 0
    feed(paned, scores)
    assert paned._state.marks[FAILURES] <= 2
    assert paned._state.floor[0] > 0.5


def test_a_state_of_sap_alone_is_refused() -> None:
    query = (4 * LONG, LONG, 1)
    with pytest.raises(StateError, match="SAP"):
        build("sap", plan_of(query)).restore(SAP(plan_of(query)).snapshot())

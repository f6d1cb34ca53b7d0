"""Panes on two stacks: against sorting the window, and the memory of notes instead of lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streams
from harness import answers_of, feed, floats, plan_of
from skyband.algorithms import build
from skyband.algorithms.ranked.panes import TwoStackPanes
from skyband.kernels.ranked import panes as kernel


@given(drawn=streams.scores(), window=streams.windows(), k=st.integers(1, 25), data=st.data())
def test_equals_sorting_the_window(drawn: list[float | None], window: tuple[int, int], k: int, data: st.DataObject) -> None:
    scores = floats(drawn)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(scores)), max_size=8), label="cuts"))
    assert answers_of("panes", scores, (*window, k), cuts=cuts) == answers_of("oracle", scores, (*window, k))


@given(drawn=streams.scores(), window=streams.windows(), k=st.integers(1, 6))
def test_stacks_are_sound_after_every_slide(drawn: list[float | None], window: tuple[int, int], k: int) -> None:
    scores, (_, slide) = floats(drawn), window
    algorithm = build("panes", plan_of((*window, k)))
    for end in range(slide, len(scores) + 1, slide):
        feed(algorithm, scores[:end])
        algorithm.check_invariants()


def rows_of(scores: np.ndarray, count: int) -> list[float]:
    return scores[:count].tolist()


def test_a_flip_and_its_undoing() -> None:
    """The fifth slide makes the front: newest pane first, 70 65, then 92 60 (65 out), then 94 93 (92 70 out).
    The sixth undoes the pane 94 93, the seventh the pane 92 60."""
    slides = [[50, 40, 30], [94, 93, 20], [60, 92, 55], [70, 65, 61], [64, 72, 71], [62, 73, 89], [1, 2, 3], [4, 6, 5]]
    expected = [  # front, rows to take back, back
        ([], [], [50, 40]),
        ([], [], [50, 40, 94, 93]),
        ([], [], [50, 40, 94, 93, 92, 60]),
        ([], [], [50, 40, 94, 93, 92, 60, 70, 65]),
        ([94, 93], [65, 92, 70], [72, 71]),
        ([92, 70], [65], [72, 71, 89, 73]),
        ([70, 65], [], [72, 71, 89, 73, 3, 2]),
        ([], [], [72, 71, 89, 73, 3, 2, 6, 5]),
    ]
    scores = np.array(slides, float).reshape(-1)
    algorithm = build("panes", plan_of((12, 3, 2)))
    assert isinstance(algorithm, TwoStackPanes)
    for number, (front, back_again, back) in enumerate(expected, start=1):
        feed(algorithm, scores[: 3 * number])
        state, marks = algorithm._state, algorithm._state.marks
        assert rows_of(state.front_score, marks[kernel.FRONT]) == front, number
        assert rows_of(state.evicted_score, marks[kernel.EVICTED]) == back_again, number
        assert rows_of(state.list_score, marks[kernel.LISTED]) == back, number
        assert algorithm.candidates == len(front + back_again + back)
        algorithm.check_invariants()


@pytest.mark.parametrize("shape", ["rising", "falling", "random", "constant", "sinusoidal"])
def test_notes_take_less_than_a_list_for_every_suffix(shape: str) -> None:
    size, slide, k = 2000, 10, 200
    algorithm = build("panes", plan_of((size, slide, k)))
    scores = streams.shaped(shape, 3 * size)
    for end in range(slide, len(scores) + 1, 37 * slide):
        feed(algorithm, scores[:end])
        assert algorithm.candidates <= size
    assert algorithm.nbytes < 8 * size / slide * k


@pytest.mark.parametrize("query", [(600, 1, 40), (600, 7, 40), (64, 64, 3), (100, 30, 200)], ids=str)
def test_longer_streams(query: tuple[int, int, int]) -> None:
    for shape in sorted(streams.SHAPES):
        scores = streams.shaped(shape, 2000, seed=5)
        assert answers_of("panes", scores, query, cuts=[3, 1000]) == answers_of("oracle", scores, query), shape

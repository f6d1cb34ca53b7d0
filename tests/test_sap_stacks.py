"""The S-AVL of SAP: how rows come onto its stacks and are taken from them, as text tables."""

from __future__ import annotations

import numpy as np
import pytest

from harness import answers_of, feed, plan_of
from skyband.algorithms.ranked.sap import SAP
from skyband.kernels.sap import state as at
from skyband.kernels.sap.savl import begin_build, consume, heap_of, insert_sorted, pop_run, pop_top, push, push_slide, stacks_of


def _stacks(sap: SAP) -> list[list[float]]:
    state = sap._state
    mask, shown = len(state.ring) - 1, []
    for top in state.stack_ordinal[at.NOW, : state.builds[at.NOW, at.BUILD_STACKS]].tolist():
        stack, step = [], 1
        while step:
            stack.append(float(state.ring[top & mask]))
            step = int(state.links[top & mask])
            top += step
        shown.append(stack[::-1])
    return shown


FIGURE_8 = """
    30  |  30
    31  |  30 ; 31
    36  |  30 ; 31 ; 36
    34  |  30 ; 31 34 ; 36
    35  |  30 ; 31 34 35 ; 36
    29  |  30 ; 31 34 35 ; 36
    33  |  30 33 ; 31 34 35 ; 36
    28  |  30 33 ; 31 34 35 ; 36
"""


def test_stacks_of_figure_8() -> None:
    """k = 3, rho = 0, F_theta = 28: each row goes onto the stack with the largest top below it, or is pruned."""
    sap = SAP(plan_of((60, 1, 3)), formation="proactive")
    begin_build(sap._state, at.NOW, 3, np.nextafter(28.0, 29.0), 60)
    for age, line in enumerate(FIGURE_8.strip().split("\n")):
        score, shown = line.split("|")
        ordinal = 50 - age
        sap._state.ring[ordinal] = float(score)
        if float(score) >= sap._state.bars[at.NOW]:
            push(stacks_of(sap._state), at.NOW, float(score), ordinal)
        assert _stacks(sap) == [[float(word) for word in stack.split()] for stack in shown.split(";")]
    consume(sap._state, at.NOW)
    popped = []
    while sap._state.head[at.HEAP_COUNT]:
        popped.append(float(sap._state.heap_score[0]))
        pop_top(heap_of(sap._state))
    assert popped == [36, 35, 34, 33, 31, 30]
    assert sap._state.head[at.FRONT_MEANINGFUL] == 0


def test_plain_insertion_keeps_what_fewer_than_k_newer_outrank() -> None:
    sap = SAP(plan_of((60, 1, 2)), formation="proactive", meaningful="sorted")
    begin_build(sap._state, at.NOW, 2, -np.inf, 60)
    for ordinal, score in zip(range(50, 40, -1), [5, 3, 4, 1, 6, 5, 5.5, 2, 7, 6.5], strict=True):
        sap._state.ring[ordinal] = score
        if score >= sap._state.bars[at.NOW]:
            insert_sorted(stacks_of(sap._state), at.NOW, float(score), ordinal)
    assert _stacks(sap) == [[3, 4, 5, 5.5, 6, 6.5, 7]]


# slides of three rows, newest first, and the stacks after each: k = 3, so at most three
SLIDES = """
    20 22 21  |  20 ; 21 ; 22              each row is best of a stack
    35 31 33  |  20 ; 21 ; 22 31 33 35     all above all tops: one stack takes them
    41 47 44  |  20 ; 21 ; 22 31 33 35 41 44 47
    46 23 49  |  20 23 ; 21 46 ; 22 31 33 35 41 44 47 49   not all: each row where it belongs
"""


def _with_slides(rows: str) -> SAP:
    sap = SAP(plan_of((60, 4, 3)), formation="proactive")
    begin_build(sap._state, at.NOW, 3, -np.inf, 60)
    for age, line in enumerate(rows.strip().split("\n")):
        scores = np.array([float(word) for word in line.split("|")[0].split()])
        ordinals = 50 - 4 * age + np.arange(3)
        sap._state.ring[ordinals] = scores
        best_first = np.argsort(-scores)
        push_slide(stacks_of(sap._state), sap._rules, at.NOW, scores[best_first], ordinals[best_first])
        if "|" in line:
            shown = line.split("|")[1].split("  ")
            stacks = next(part for part in shown if part.strip())
            assert _stacks(sap) == [[float(word) for word in stack.split()] for stack in stacks.split(";")]
    return sap


def test_a_slide_above_all_tops_lies_on_one_stack() -> None:
    """As where scores fall: with a stack for each of its rows they would have to be put in order again when they are taken."""
    sap = _with_slides(SLIDES)
    assert sap._state.builds[at.NOW, at.BUILD_PUSHED] == 12
    consume(sap._state, at.NOW)
    assert sap._state.head[at.HEAP_COUNT] == 3


def test_rows_are_taken_from_a_stack_as_long_as_they_are_the_best() -> None:
    sap = _with_slides("20 22 21 \n 35 31 33 \n 41 47 44")
    consume(sap._state, at.NOW)
    heap, nobody = heap_of(sap._state), np.iinfo(np.int64).max
    front, answer = (np.zeros(9), np.zeros(9, np.int64)), (np.zeros(5), np.zeros(5, np.int64))
    # the best three have expired; of the others 35 is known; the answer lacks two rows; 21 is not above its other rows
    listed, count = pop_run(heap, 46, 21.0, 70, *front, 0, *answer, 3, 35.0, 46, 5)
    assert (listed, count) == (3, 5)
    assert front[0][:listed].tolist() == [35, 33, 31]
    assert answer[0][3:].tolist() == [33, 31]
    listed, count = pop_run(heap, 46, 21.0, 70, *front, 3, *answer, 3, np.inf, nobody, 5)
    assert front[0][3:listed].tolist() == answer[0][3:count].tolist() == [22]
    assert sorted(heap.score[: sap._state.head[at.HEAP_COUNT]].tolist()) == [20, 21]
    assert sap._state.head[at.FRONT_MEANINGFUL] == 2


@pytest.mark.parametrize("formation", ["delayed", "proactive", "eager"])
@pytest.mark.parametrize("levels", [3, 40, 10**6])
def test_long_slides_that_fall_and_rise(formation: str, levels: int) -> None:
    """Slides longer than there are stacks, with ties within and between them where levels are few."""
    wave = np.floor(levels * np.sin(np.arange(4000) / 150)) + np.random.default_rng(3).integers(0, 2, 4000)
    for query in ((600, 40, 7), (900, 50, 20), (310, 30, 9)):
        sap = SAP(plan_of(query), formation=formation)
        assert feed(sap, wave, [700, 1333]) == answers_of("oracle", wave, query), query
        sap.check_invariants()

"""Structural properties of a K-skyband of pairs, asserted one by one in plain NumPy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from skyband.kernels.pairs import boxes as boxing
from skyband.kernels.pairs import state as band
from skyband.kernels.pairs.boxes import Boxes
from skyband.kernels.pairs.state import Skyband


def check_skyband(state: Skyband, boxes: Boxes) -> None:
    """AssertionError, with the band in its message, when a property does not hold. No pair waits."""
    marks = state.marks
    count, k = int(marks[band.BAND]), int(marks[band.K])
    score, a, b = (column[:count] for column in state.band)
    shown = f"K={k}, reach {marks[band.REACH]}, pairs (score, a, b) {list(zip(score.tolist(), a.tolist(), b.tolist()))}"  # noqa: B905
    assert marks[band.FRONT] == marks[band.STOP], "a row is young"
    assert marks[band.PENDING] == 0 and marks[band.SCAN] == band.IDLE, shown
    assert not np.isnan(score).any() and (a < b).all() and (a >= marks[band.REACH]).all() and (b < marks[band.NEXT]).all(), (
        shown
    )
    keys = list(zip((-score).tolist(), (-a).tolist(), (-b).tolist(), strict=True))
    assert all(above < below for above, below in pairwise(keys)), f"out of order: {shown}"
    for place in range(count):
        down = np.sort(a[: place + 1])
        assert (a[:place] >= a[place]).sum() < k, f"the pair at {place} is dominated: {shown}"
        expected = down[-k] if len(down) >= k else band.NONE
        assert state.kth[place] == expected, f"step {place} is {state.kth[place]}, should be {expected}: {shown}"
    _check_tail(state, shown)
    _check_answers(state, shown)
    _check_boxes(state, boxes)


def _limit(state: Skyband, newest: int) -> float:
    """The least score of a pair with this `a` that K pairs of the band do not dominate, less what is tied with it."""
    held = [
        s for s, a in zip(*(column[: state.marks[band.BAND]].tolist() for column in state.band[:2]), strict=True) if a >= newest
    ]
    k = int(state.marks[band.K])
    return held[k - 1] if len(held) >= k else -np.inf


def _check_tail(state: Skyband, shown: str) -> None:
    marks, segments = state.marks, state.segments
    ordinal = state.tail.ordinal[marks[band.HEAD] : marks[band.STOP]]
    assert (ordinal[1:] > ordinal[:-1]).all() and (ordinal < marks[band.NEXT]).all(), ordinal
    count = int(marks[band.SEGMENTS])
    begin = segments.begin[:count]
    assert (begin[1:] < begin[:-1]).all() and begin[-1] <= marks[band.HEAD], begin
    limits = {int(begin[j - 1] - 1): segments.limit[j] for j in range(1, count)}
    limits |= {place: segments.own[place - begin[0]] for place in range(int(begin[0]), int(marks[band.FRONT]))}
    for place, limit in limits.items():
        if marks[band.HEAD] <= place < marks[band.STOP]:
            newest = int(state.tail.ordinal[place])
            true = _limit(state, newest)
            close = np.isnan(limit) or true <= limit <= np.nextafter(true, np.inf)
            assert close, f"rows up to {newest} have the limit {limit}, should be about {true}: {shown}"


def _check_answers(state: Skyband, shown: str) -> None:
    answers = state.answers
    for q, count in enumerate(answers.count.tolist()):
        score, a, b = (column[q, :count] for column in answers[:3])
        keys = list(zip((-score).tolist(), (-a).tolist(), (-b).tolist(), strict=True))
        assert all(above < below for above, below in pairwise(keys)), (q, keys)
        assert count <= answers.most[q] <= state.marks[band.K], (q, count, shown)
        assert (a >= answers.first[q]).all(), (q, a, answers.first[q])
        assert count == 0 or answers.oldest[q] <= a.min(), (q, a, answers.oldest[q])


def _check_boxes(state: Skyband, boxes: Boxes) -> None:
    runs = boxes.runs[state.marks[band.RUNS_HEAD] : state.marks[band.RUNS]]
    before, newest = None, -1
    for begin, rows, node, last in runs.tolist():
        assert before is None or begin == before, runs
        ordinal = boxes.ordinal[begin : begin + rows]
        assert ordinal.max() == last and ordinal.min() > newest and len(np.unique(ordinal)) == rows, runs
        before, newest = begin + rows, last
        leaves = rows // boxing.LEAF_ROWS
        assert leaves & (leaves - 1) == 0 and rows == leaves * boxing.LEAF_ROWS, runs
        for box in range(1, 2 * leaves):
            span = rows >> (box.bit_length() - 1)
            at = begin + box * span - rows
            held = boxes.columns[: boxes.low.shape[1], at : at + span]
            assert np.array_equal(boxes.low[node + box], held.min(axis=1)), (box, runs)
            assert np.array_equal(boxes.high[node + box], held.max(axis=1)), (box, runs)
    held = state.tail.ordinal[state.marks[band.HEAD] : state.marks[band.STOP]]
    assert len(held) == 0 or held[0] > newest, (held, runs)

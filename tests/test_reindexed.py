"""Queries that come and go while others stay indexed: what these monitor is as if all had been indexed anew."""

from __future__ import annotations

import numpy as np
import pytest

import skyband as sb
from skyband.algorithms.spatial.asked import Asked
from skyband.algorithms.spatial.crowd import Crowd
from skyband.algorithms.spatial.thresholds import Thresholds
from skyband.kernels.spatial.grid import WORD_BITS, Grid
from skyband.scores.expression import Call
from skyband.scores.score import as_tree

GENERATOR = np.random.default_rng(3)
COUNTS = [1, 2, WORD_BITS - 1, WORD_BITS, WORD_BITS + 1, 2 * WORD_BITS + 5]


def asked(core: str, number: int) -> Asked:
    x, y = GENERATOR.random(2).round(3).tolist()
    tree = as_tree(f"x * {x} + y * y * {y} + 1")
    assert isinstance(tree, Call)
    score = (sb.linear({"x": x, "y": y}), sb.distance({"y": y, "x": x}), tree)[number % 3]
    order = "asc" if number % 3 == 1 else "desc"
    above = 0.3 if order == "asc" else 0.9 * (x + y)
    region = (("x", 0.1, 0.8),) if number % 4 == 3 else ()
    return Asked(score, order, 2, 300, 20, core, region=region, above=above)


def monitored(grid: Grid) -> np.ndarray:
    """Which query monitors which cell."""
    bits = grid.members[:, :, None] >> np.arange(WORD_BITS, dtype=np.uint64) & np.uint64(1)
    return bits.reshape(len(grid.members), -1).astype(bool)


def pushed(structure: Crowd | Thresholds, rows: int) -> None:
    begin, points = structure.seen, GENERATOR.random((2, rows))
    if isinstance(structure, Crowd):
        list(structure.push(points))
        return
    end = np.arange(begin // 20 + 1, (begin + rows) // 20 + 1) * 20
    list(structure.take(points, np.maximum(end - 300, 0), end))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("core", ["tma", "sma", "above"])
def test_the_others_monitor_what_they_did(core: str, count: int) -> None:
    structure = Thresholds(("x", "y"), 6) if core == "above" else Crowd(("x", "y"), 6)
    for number in range(count):
        structure.add(asked(core, number))
    pushed(structure, 650)
    for step, gone in enumerate([count // 2, 0, None, None, count - 1, None, count // 3]):
        assert structure._index is not None
        before = monitored(structure._index[0])[:, : len(structure.asked)]
        if gone is None:
            structure.add(asked(core, step))
            wanted = before
        elif len(structure.asked) > 1:
            number = min(gone, len(structure.asked) - 1)
            structure.remove(number)
            wanted = np.delete(before, number, axis=1)
        else:
            continue
        grid = structure._index[0]
        after = monitored(grid)
        assert np.array_equal(after[:, : wanted.shape[1]], wanted)
        assert not after[:, len(structure.asked) :].any() and np.array_equal(after.sum(axis=1), grid.watchers)
        structure.check_invariants()
        pushed(structure, 37)
        structure.check_invariants()


def test_scores_of_queries_that_came_and_went_are_those_of_the_others() -> None:
    crowd = Crowd(("x", "y"), 4)
    for number in range(9):
        crowd.add(asked("sma", number))
    assert crowd.questions is not None
    for number in (8, 0, 3):
        crowd.remove(number)
        crowd.add(asked("sma", number))
        kept, crowd._asking = crowd.asking, None
        made = crowd.asking
        ours, theirs = kept.questions, made.questions
        tables = [name for name in ours._fields if name not in ("codes", "outer", "inner")]
        assert all(np.array_equal(getattr(ours, name), getattr(theirs, name)) for name in tables)
        for mine, other in ((ours.codes, theirs.codes), (ours.outer, theirs.outer), (ours.inner, theirs.inner)):
            assert all(np.array_equal(a, b) for a, b in zip(mine[:4], other[:4], strict=True))
            assert np.array_equal(mine.alike, other.alike)
            assert np.array_equal(mine.lanes[:, : other.lanes.shape[1]], other.lanes)
        for fact in ("windows", "has_expressions", "is_plain", "is_exact", "largest_number"):
            assert getattr(kept, fact) == getattr(made, fact)
        assert kept.questions.codes.scratch.shape[1] >= made.questions.codes.scratch.shape[1]

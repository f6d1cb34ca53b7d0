"""Queries that come, go and get more room between pushes, while pairs are put off: no other query loses one of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skyband as sb

ROWS = 1000
FAST = ("scase", "pairs-ta")
TOLD = ("query", "window_end", "score", "a_seq", "b_seq")
Answers = dict[tuple[str, int], list[tuple[float, int, int]]]


def asked(name: str, k: int, algorithm: str, window: sb.CountWindow, **more: Any) -> sb.TopKPairs:
    given = {"score": "abs(a.x - b.x)", "emit": "snapshots", **more}
    return sb.TopKPairs(name=name, k=k, window=window, algorithm=algorithm, **given)


def answers_of(algorithm: str, x: np.ndarray, cuts: list[int], window: sb.CountWindow, change: str, order: str) -> Answers:
    """Every window's pairs, of a query that stays and another with a larger k. What changes does so at every second cut: the
    other is added and cancelled in turns, or asks from the beginning for more pairs than there are."""
    stays, other = (asked(name, k, algorithm, window, order=order) for name, k in (("stays", 10), ("other", 40)))
    many = asked("many", 3000, algorithm, window, order=order)
    monitor = sb.Monitor({"add": [stays], "cancel": [stays, other], "room": [stays, many]}[change])
    here, found = change == "cancel", Answers()
    for turn, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(x)], strict=True)):
        if change != "room" and turn % 2:
            if here:
                monitor.cancel("other")
            else:
                monitor.add(other)
            here = not here
        told = monitor.push({"x": x[begin:end]})
        for query, at, *pair in zip(*(told.column(name).to_pylist() for name in TOLD), strict=True):
            found.setdefault((query, at), []).append(tuple(pair))
    return found


def stream(size: int, slide: int, order: str) -> tuple[np.ndarray, list[int]]:
    """Rows, and where they are cut into pushes."""
    generator = np.random.default_rng([size, slide, order == "desc"])
    return generator.random(ROWS), np.unique(generator.integers(1, ROWS, 8)).tolist()


@cache
def sorted_answers(size: int, slide: int, change: str, order: str) -> Answers:
    """What all algorithms must say."""
    return answers_of("pairs-oracle", *stream(size, slide, order), sb.CountWindow(size, slide), change, order)


@pytest.mark.parametrize("algorithm", FAST)
@pytest.mark.parametrize("change", ["add", "cancel", "room"])
@pytest.mark.parametrize(("size", "slide"), [(600, 50), (300, 200), (100, 7)])
def test_answers_are_kept_when_the_largest_k_changes(algorithm: str, change: str, size: int, slide: int) -> None:
    for order in ("asc", "desc"):
        x, cuts = stream(size, slide, order)
        found = answers_of(algorithm, x, cuts, sb.CountWindow(size, slide), change, order)
        assert found == sorted_answers(size, slide, change, order), cuts


@pytest.mark.parametrize("score", ["abs(a.x - b.x)", "abs(a.x - b.x) + 2 * abs(a.y - b.y)"])
def test_boxes_over_fewer_columns_than_a_row_has_are_loaded(score: str, tmp_path: Path) -> None:
    """The condition names a column that no box knows."""
    generator, found = np.random.default_rng(1), []
    rows = {"x": generator.random(5000), "y": generator.random(5000), "venue": generator.integers(0, 3, 5000)}
    query = asked("q", 5, "pairs-ta", sb.CountWindow(3000, 100), score=score, where="a.venue != b.venue")
    for stops in (False, True):
        monitor, tops = sb.Monitor([query]), []
        for begin in range(0, 5000, 1250):
            tops.append(monitor.push({name: column[begin : begin + 1250] for name, column in rows.items()}))
            if stops:
                monitor.save(tmp_path / "saved")
                monitor = sb.Monitor.load(tmp_path / "saved")
        found.append([top.to_pylist() for top in tops])
    assert found[0] == found[1]

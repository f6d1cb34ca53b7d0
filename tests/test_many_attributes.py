"""Scores over more attributes than a grid can divide: the answers of the oracle, in bounded time and memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import skyband as sb
from skyband.algorithms.spatial.asked import resolution
from skyband.lanes import CrowdLane

CASES = [
    ("linear", "desc", None),
    ("linear", "asc", {"c0": (0.2, None), "c3": (None, 0.9)}),
    ("nearest", "asc", None),
    ("farthest", "desc", None),
    ("farthest", "desc", {"c1": (0.1, 0.8)}),
    ("expression", "desc", "c0 > 0.1"),
]


def score_of(kind: str, names: list[str]) -> Any:
    if kind == "linear":
        return sb.linear({name: float(at % 3 - 1) + 0.5 for at, name in enumerate(names)})
    if kind == "expression":
        return " + ".join(f"{name} * {name}" for name in names)
    return sb.distance(dict.fromkeys(names, 0.4))


@pytest.mark.parametrize("attributes", [7, 12, 23, 30, 70])
@pytest.mark.parametrize("algorithm", ["tma", "sma", "tma(grid=1)", "auto"])
def test_answers_are_those_of_sorting(attributes: int, algorithm: str) -> None:
    names = [f"c{at}" for at in range(attributes)]
    queries: list[sb.TopK] = []
    for at, (kind, order, where) in enumerate(CASES):
        for name, chosen in ((f"q{at}", algorithm), (f"o{at}", "oracle")):
            window = sb.CountWindow(300, slide=20)
            queries.append(
                sb.TopK(name=name, k=5, score=score_of(kind, names), order=order, where=where, window=window, algorithm=chosen)
            )
    with_keys = algorithm not in ("sma",)
    monitor = sb.Monitor(queries, key="id" if with_keys else None)
    rows = np.random.default_rng(attributes).random((attributes, 1000))
    for begin in range(0, 1000, 200):
        batch: dict[str, Any] = dict(zip(names, rows[:, begin : begin + 200], strict=True))
        monitor.push(batch | {"id": np.arange(begin, begin + 200)})
        if with_keys:
            monitor.delete(monitor.top("q0")["id"].to_pylist() + monitor.top("q3")["id"].to_pylist()[:2])
        for at in range(len(CASES)):
            assert monitor.top(f"q{at}")["seq"].to_pylist() == monitor.top(f"o{at}")["seq"].to_pylist(), CASES[at]
    for lane in monitor._lanes:
        if isinstance(lane, CrowdLane):
            lane.structure.check_invariants()
            assert lane.nbytes < 20e6


@pytest.mark.parametrize("size", [1, 500, 10**4, 10**6])
def test_a_grid_has_no_more_cells_than_the_window_rows_or_few(size: int) -> None:
    for attributes in range(1, 200):
        assert 1 <= resolution(size, attributes) ** attributes <= min(max(size, 64), 1 << 16)
    assert resolution(size, 6) >= 2


def test_one_cell_is_not_too_many() -> None:
    asked: dict[str, Any] = {"name": "q", "k": 1, "window": sb.CountWindow(9), "score": score_of("linear", list("abcdefgh"))}
    wide = asked | {"score": score_of("linear", [f"c{at}" for at in range(40)])}
    sb.TopK(**wide, algorithm="tma(grid=1)")
    sb.TopK(**wide, algorithm="sma")
    sb.TopK(**asked, algorithm="tma(grid=8)")
    with pytest.raises(sb.QueryError, match="too many cells"):
        sb.TopK(**asked, algorithm="tma(grid=9)")

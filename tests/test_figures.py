"""What `stats` says of the memory a query takes and of the rows that are scored for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import skyband as sb

ROWS = dict(zip("xy", np.random.default_rng(1).random((2, 4000)), strict=True))


def asked(name: str, score: Any, algorithm: str = "auto", k: int = 5) -> sb.TopK:
    return sb.TopK(name=name, k=k, score=score, window=sb.CountWindow(2000, slide=50), algorithm=algorithm)


@pytest.mark.parametrize("algorithm", ["tma", "sma", "auto", "tsl", "relaxed", "oracle"])
def test_the_memory_of_a_query_is_its_share_of_what_is_held(algorithm: str) -> None:
    weights = np.random.default_rng(2).random((70, 2)).tolist()
    monitor = sb.Monitor([asked(f"q{at}", sb.linear({"x": v, "y": w}), algorithm) for at, (v, w) in enumerate(weights)])
    assert (monitor.stats("q0")["queries"], monitor.stats("q0")["bytes_per_query"]) == (1, 0)
    monitor.push(ROWS)
    shares = 1 if algorithm == "oracle" else 70
    for name in ("q0", "q69"):
        stats = monitor.stats(name)
        assert stats["queries"] == shares and stats["bytes_per_query"] == stats["bytes"] // shares > 0
    for at in range(60):
        monitor.cancel(f"q{at}")
    stats = monitor.stats("q69")
    assert stats["queries"] == min(shares, 10) and stats["bytes_per_query"] == stats["bytes"] // stats["queries"]


def test_cancelled_queries_have_no_share() -> None:
    monitor = sb.Monitor([asked("a", "x", "shared"), asked("b", "x", "shared", k=9)])
    monitor.push(ROWS)
    assert monitor.stats("a")["queries"] == 2
    monitor.cancel("b")
    assert monitor.stats("a")["queries"] == 1 and monitor.stats("a")["bytes_per_query"] == monitor.stats("a")["bytes"]


@pytest.mark.parametrize(
    ("score", "algorithm", "search"),
    [
        (sb.linear({"x": 1.0, "y": 0.5}), "tma", "grid"),
        (sb.distance({"x": 0.5, "y": 0.5}), "sma", "grid"),
        ("x * y", "sma", "grid"),
        ("x * y", "tma(grid=1)", "scan"),
        (sb.linear({"x": 1.0, "y": 0.5}), "tma(grid=1)", "scan"),
        ("x % 0.1 + y % 0.1", "tma", "scan"),
        ("x % 0.1 + y % 0.1", "sma", "scan"),
        ("sin(5000 * x) * cos(5000 * y)", "tma", "scan"),
        (sb.linear({"x": 1.0, "y": 0.5}), "tsl", "lists"),
        (lambda rows: rows["x"], "auto", "scan"),
        ("x * y", "auto", "scan"),
    ],
)
def test_it_is_said_when_every_row_is_scored(score: Any, algorithm: str, search: str) -> None:
    monitor = sb.Monitor([asked("q", score, algorithm)])
    assert monitor.stats("q")["search"] == "none"
    monitor.push(ROWS)
    assert monitor.stats("q")["search"] == search
    monitor.add(asked("late", "x * y", algorithm if algorithm != "tsl" else "tma"))
    assert monitor.stats("q")["search"] == search
    monitor.push({name: column[:300] for name, column in ROWS.items()})
    assert monitor.stats("q")["search"] == search
    monitor.cancel("late")
    assert monitor.stats("q")["search"] == search


def test_the_rows_kept_whole_are_told_of_the_monitor() -> None:
    monitor = sb.Monitor([asked("a", "x", "strict"), asked("b", "y", "strict")])
    assert [monitor.stats("a")[key] for key in ("rows_kept", "payload_bytes")] == [0, 0]
    monitor.push(ROWS | {"long": ["text" * 100] * 4000})
    monitor.shrink()
    told = monitor.stats("a")
    assert told["rows_kept"] == monitor.stats("b")["rows_kept"] < 1000
    assert told["payload_bytes"] == monitor.stats("b")["payload_bytes"] >= 400 * told["rows_kept"]
    assert max(told["candidates"], monitor.stats("b")["candidates"]) <= told["rows_kept"]
    assert told["bytes"] < told["payload_bytes"]


@pytest.mark.parametrize("algorithm", ["auto", "tma", "above"])
def test_a_query_that_no_row_has_come_for_has_all_that_others_have(algorithm: str) -> None:
    given: dict[str, Any] = {"name": "q", "score": "x", "window": sb.CountWindow(5), "algorithm": algorithm}
    query = sb.Threshold(above=0.5, **given) if algorithm == "above" else sb.TopK(k=1, **given)
    monitor = sb.Monitor([query], key="id")
    monitor.delete([1])
    waiting = monitor.stats("q")
    assert (waiting["deleted"], waiting["not_found"], waiting["search"]) == (0, 1, "none")
    monitor.push({"id": [1], "x": [1.0]})
    assert set(monitor.stats("q")) - {"searches"} == set(waiting)


def test_so_has_one_that_may_miss_rows() -> None:
    window = sb.CountWindow(100, 10)
    named = sb.TopK(name="named", k=3, score="x", window=window, algorithm="probabilistic")
    monitor = sb.Monitor([named, sb.TopK(name="error", k=3, score="x", window=window, error=0.01)])
    assert monitor.stats("named")["missed_at_most"] == monitor.stats("error")["missed_at_most"] == 0.0

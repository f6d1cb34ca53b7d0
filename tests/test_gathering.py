"""Which queries that leave the algorithm to us are answered together, and that it changes no answer."""

from __future__ import annotations

from typing import Any

import numpy as np

import skyband as sb
from played import reloaded
from skyband.algorithms import choose
from skyband.lanes import CrowdLane

CHOSEN = f"sma(spare={choose.SPARE})"
WINDOW = sb.CountWindow(200, slide=20)


def points(rows: int, seed: int = 0, columns: str = "xyz") -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {name: generator.random(rows) for name in columns}


def sums(count: int, prefix: str = "q", **more: Any) -> list[sb.TopK]:
    """Queries on so many distinct scores over x and y."""
    given: dict[str, Any] = {"k": 3, "window": WINDOW, **more}
    return [sb.TopK(name=f"{prefix}{i}", score=sb.linear({"x": i + 1.0, "y": 2.0}), **given) for i in range(count)]


def crowds(monitor: sb.Monitor) -> list[CrowdLane]:
    return [lane for lane in monitor._lanes if isinstance(lane, CrowdLane)]


def oracle(query: Any, name: str) -> sb.TopK:
    given = {field: getattr(query, field) for field in ("k", "score", "window", "order", "where", "emit")}
    return sb.TopK(name=name, algorithm="oracle", **given)


def test_queries_that_come_one_by_one_gather_once_there_are_many() -> None:
    monitor = sb.Monitor()
    queries = sums(choose.MANY + 10)
    for number, query in enumerate(queries):
        monitor.add(query)
        monitor.add(oracle(query, f"oracle{number}"))
        monitor.push(points(7, seed=number))
        if number == choose.MANY + 4:
            monitor = reloaded(monitor)
    (crowd,) = crowds(monitor)
    assert [member.query.name for member in crowd.members] == [query.name for query in queries[choose.MANY - 1 :]]
    assert {monitor.stats(query.name)["algorithm"] for query in queries[: choose.MANY - 1]} <= {"shared", "sap"}
    assert monitor.stats(queries[-1].name)["algorithm"] == CHOSEN
    monitor.push(points(450, seed=99))
    for number, query in enumerate(queries):
        assert monitor.top(query.name)["seq"].to_pylist() == monitor.top(f"oracle{number}")["seq"].to_pylist()


def test_queries_that_were_cancelled_or_have_another_window_do_not_count() -> None:
    monitor = sb.Monitor(sums(choose.MANY - 1))
    monitor.push(points(50))
    monitor.cancel("q0")
    monitor.add(sb.TopK(name="late", k=1, score=sb.linear({"x": -1.0, "y": 1.0}), window=WINDOW))
    monitor.add(sb.TopK(name="other", k=1, score=sb.linear({"x": -1.0, "y": 1.0}), window=sb.CountWindow(100)))
    monitor.push(points(50, seed=1))
    assert not crowds(monitor)
    monitor.add(sb.TopK(name="one more", k=1, score=sb.linear({"x": -2.0, "y": 1.0}), window=WINDOW))
    monitor.push(points(50, seed=2))
    assert [member.query.name for lane in crowds(monitor) for member in lane.members] == ["one more"]

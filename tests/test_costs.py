"""What a push must not cost: anything that grows with the window, or with the queries, when little has changed."""

from __future__ import annotations

import tracemalloc
from time import process_time
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import skyband as sb
from fresh import run_python

GENERATOR = np.random.default_rng(1)


def rows(begin: int, count: int) -> dict[str, np.ndarray]:
    x, y = GENERATOR.random((2, count))
    at = np.arange(begin, begin + count)
    return {"t": at, "id": at, "x": x, "y": y}


def cost(monitor: sb.Monitor, filled: int, count: int) -> float:
    """Seconds of a push of so many rows, most of the time, once the windows are full."""
    for begin in range(0, filled, 20_000):
        monitor.push(rows(begin, min(20_000, filled - begin)))
    taken = []
    for begin in range(filled, filled + 40 * count, count):
        more = rows(begin, count)
        start = process_time()
        monitor.push(more)
        taken.append(process_time() - start)
    return float(np.median(taken))


def scores(queries: int) -> list[Any]:
    return [sb.linear({"x": 1.0, "y": at / 100}) for at in range(queries)]


@pytest.mark.parametrize("queries", [1, 20])
def test_a_row_costs_about_as_much_over_a_day_by_the_second_as_over_so_many_rows(queries: int) -> None:
    taken, day = [], 86_400
    for window in (sb.CountWindow(day, 1), sb.TimeWindow(day, 1)):
        asked = [sb.TopK(name=f"q{at}", k=3, score=one, window=window) for at, one in enumerate(scores(queries))]
        taken.append(cost(sb.Monitor(asked, time="t"), day, 1))
    assert taken[1] < 8 * taken[0]


@pytest.mark.parametrize(("queries", "k"), [(1, 1000), (20, 3)])
def test_rows_that_wait_for_later_ones_cost_nothing(queries: int, k: int) -> None:
    taken = []
    for lateness in (1000, 1_000_000):
        asked = [
            sb.TopK(name=f"q{at}", k=k, score=one, window=sb.TimeWindow(1000, 100)) for at, one in enumerate(scores(queries))
        ]
        taken.append(cost(sb.Monitor(asked, time="t", lateness=lateness), lateness + 1000, 100))
    assert taken[1] < 5 * taken[0]


@pytest.mark.parametrize("bounded", [False, True])
def test_keyed_rows_that_stay_in_a_long_window_cost_nothing(bounded: bool) -> None:
    taken = []
    for size in (2000, 200_000):
        given: dict[str, Any] = {"name": "q", "score": "x + y", "window": sb.TimeWindow(size, 100)}
        query = sb.Threshold(above=1.99, **given) if bounded else sb.TopK(k=5, **given)
        taken.append(cost(sb.Monitor([query], time="t", key="id"), size, 100))
    assert taken[1] < 6 * taken[0]


@pytest.mark.parametrize("window", [sb.CountWindow(200_000, 100), sb.TimeWindow(200_000, 100)])
def test_which_new_rows_are_above_bounds_is_told_without_the_old_ones(window: sb.CountWindow | sb.TimeWindow) -> None:
    asked = [sb.Threshold(name=f"q{at}", above=0.9, score=one, window=window) for at, one in enumerate(scores(20))]
    monitor, taken = sb.Monitor(asked, time="t"), []
    monitor.push(rows(0, 200_000))
    monitor.push(rows(200_000, 100))
    (lane,) = monitor._lanes
    for base in (0, 200_000):
        start = process_time()
        for _ in range(5):
            found = lane.needed(base)
        taken.append(process_time() - start)
        assert 0 < len(found) <= (200_100 if base == 0 else 100) and found[0] >= base
    assert taken[1] < taken[0] / 5


@pytest.mark.parametrize("bounded", [False, True])
def test_one_query_that_comes_or_goes_costs_little_among_thousands(bounded: bool) -> None:
    weights, window = GENERATOR.random((1510, 4)), sb.CountWindow(20_000, 200)

    def query(at: int) -> sb.TopK | sb.Threshold:
        given: dict[str, Any] = {"name": f"q{at}", "window": window}
        given["score"] = sb.linear(dict(zip("abcd", weights[at].tolist(), strict=True)))
        return sb.Threshold(above=float(0.9 * weights[at].sum()), **given) if bounded else sb.TopK(k=5, **given)

    monitor = sb.Monitor([query(at) for at in range(1500)])
    monitor.push(dict(zip("abcd", GENERATOR.random((4, 20_000)), strict=True)))
    taken: dict[str, list[float]] = {"without": [], "with": []}
    for at in range(10):
        for change in taken:
            more = dict(zip("abcd", GENERATOR.random((4, 200)), strict=True))
            start = process_time()
            if change == "with":
                monitor.add(query(1500 + at))
                monitor.cancel(f"q{100 * at}")
            monitor.push(more)
            taken[change].append(process_time() - start)
    assert len(monitor._lanes) == 1
    assert np.median(taken["with"]) < 8 * np.median(taken["without"])


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("window", [sb.CountWindow(20_000, 10_000), sb.TimeWindow(20_000, 10_000)])
def test_rows_are_not_scored_for_each_query_of_a_crowd_at_once(window: sb.CountWindow | sb.TimeWindow, bounded: bool) -> None:
    def asked(count: int) -> list[sb.TopK | sb.Threshold]:
        given = [{"name": f"q{at}", "score": one, "window": window} for at, one in enumerate(scores(count))]
        return [sb.Threshold(above=1.9 + at / 100, **one) if bounded else sb.TopK(k=5, **one) for at, one in enumerate(given)]

    sb.Monitor(asked(40), time="t").push(rows(0, 20_000))  # kernels are loaded
    monitor, batch = sb.Monitor(asked(400), time="t"), rows(0, 20_000)
    tracemalloc.start()
    try:
        monitor.push(batch)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert monitor.stats("q0")["queries"] == 400
    assert most < 400 * len(batch["x"]) * 8 / 4


def test_one_query_for_very_many_rows_sets_no_memory_aside_for_the_others() -> None:
    """Which share its structure: forty have ten ranks each, not a million."""
    grown = run_python(
        """
import numpy as np, skyband as sb

def resident():
    return next(int(line.split()[1]) >> 10 for line in open("/proc/self/status") if line.startswith("VmRSS"))

few = [sb.TopK(name=f"q{at}", k=10, score="x", window=sb.CountWindow(1000)) for at in range(40)]
sb.Monitor(few).push({"x": np.arange(1000.0)})  # kernels are loaded
many = sb.TopK(name="many", k=1_000_000, score="x", window=sb.CountWindow(1_000_000))
monitor, before = sb.Monitor([*few, many]), resident()
monitor.push({"x": np.arange(1000.0)})
print(monitor.stats("many")["queries"], resident() - before)
"""
    )
    queries, megabytes = map(int, grown.split())
    assert queries == 41
    assert megabytes < 400  # 650 more, where each had room for a million


def test_an_answer_of_all_pairs_takes_up_those_of_a_new_row_together() -> None:
    """They are as many as the window has rows, the answer has nearly a hundred thousand: each took a walk up it by itself."""
    taken = []
    for emit in ("changes", "none"):
        window = sb.CountWindow(400, 50)
        query = sb.TopKPairs(name="q", k=10**9, score="abs(a.x - b.x)", window=window, emit=emit)
        taken.append(cost(sb.Monitor([query]), 400, 50))
    assert taken[0] < 6 * taken[1]


@pytest.mark.parametrize("text", [False, True])
def test_a_key_that_came_and_went_often_is_looked_up_as_one_that_never_did(text: bool) -> None:
    def lookups(updates: int) -> int:
        query = sb.TopK(name="q", k=1, score="x", window=sb.CountWindow(10_000))
        monitor, key = sb.Monitor([query], key="id"), "hot" if text else 7
        for at in range(updates):
            monitor.push({"id": [key], "x": [float(at)]})
            monitor.delete([key])
        with patch.object(monitor, "_alive", wraps=monitor._alive) as asked:
            monitor.push({"id": [key], "x": [0.0]})
            monitor.delete([key])
        return asked.call_count

    assert lookups(127) <= 2 * lookups(1) + 14  # once for each of 7 sorted pieces, which grow like powers of two


def test_a_row_is_deleted_without_sorting_all_that_were_before() -> None:
    before, query = 100_000, sb.TopK(name="q", k=1, score="x", window=sb.CountWindow(300_000, 100))
    monitor = sb.Monitor([query], key="id")
    monitor.push(rows(0, 300_000))
    monitor.delete(np.arange(1, 2 * before + 1, 2))
    monitor.delete([0])
    tracemalloc.start()
    try:
        monitor.delete([2])
        assert tracemalloc.get_traced_memory()[1] < 16 * before  # one copy of their arrival numbers; sorting them took four
    finally:
        tracemalloc.stop()

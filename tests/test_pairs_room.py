"""Room for answers follows the rows there are, not the k that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skyband as sb

EXACT = [row["name"] for row in sb.algorithms().to_pylist() if row["family"] == "pairs" and row["exact"]]
MANY = 10**9
WINDOW = sb.TimeWindow(150, 50)


def asked(name: str, k: int, **more: Any) -> sb.TopKPairs:
    given = {"score": "abs(a.x - b.x)", "window": WINDOW, **more}
    return sb.TopKPairs(name=name, k=k, **given)


def sorted_pairs(x: np.ndarray, rows: range, k: int) -> list[tuple[float, int, int]]:
    """The best pairs of these rows, by sorting all of them."""
    pairs = [(abs(float(x[a] - x[b])), -a, -b) for b in rows for a in rows if a < b]
    return [(score, -a, -b) for score, a, b in sorted(pairs)[:k]]


def top_of(monitor: sb.Monitor, name: str) -> list[tuple[float, int, int]]:
    return list(zip(*(monitor.top(name).column(column).to_pylist() for column in ("score", "a_seq", "b_seq")), strict=True))


@pytest.mark.parametrize("algorithm", EXACT)
@pytest.mark.parametrize("emit", ["changes", "none"])
def test_room_grows_with_the_rows(algorithm: str, emit: str, tmp_path: Path) -> None:
    """Many more pairs are asked for than the first rows have; a query with fewer joins, and a file lies in between."""
    x = np.random.default_rng(3).integers(0, 40, 460).astype(float)
    monitor = sb.Monitor([asked("all", MANY, algorithm=algorithm, emit=emit)], time="t")
    for begin, end in ((0, 3), (3, 60), (60, 61), (61, 200), (200, 330), (330, 460)):
        monitor.push({"x": x[begin:end], "t": np.arange(begin, end)})
        if begin == 61:
            monitor.save(tmp_path / "saved")
            monitor = sb.Monitor.load(tmp_path / "saved")
        closed = (end - 1) // 50 * 50
        rows = range(max(closed - 150, 0), closed)
        assert top_of(monitor, "all") == sorted_pairs(x, rows, MANY), rows


@pytest.mark.parametrize("algorithm", EXACT)
def test_a_row_may_have_all_the_best_pairs(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for all the pairs asked for long before there are as many rows. The newest row is in the best pairs."""
    monkeypatch.setattr("skyband.lanes.pairs._FEW_ROWS", 4)
    query = sb.TopKPairs(
        name="q", k=20, score="abs(a.x - b.x)", order="desc", window=sb.CountWindow(60, 5), algorithm=algorithm
    )
    monitor = sb.Monitor([query])
    for begin, end in ((0, 3), (3, 8), (8, 60)):
        monitor.push({"x": 1.5 ** np.arange(begin, end)})
    assert [pair[1:] for pair in top_of(monitor, "q")] == [(a, 59) for a in range(20)]


def test_some_queries_are_content_with_less() -> None:
    x = np.random.default_rng(4).random(600)
    queries = [asked("few", 7), asked("more", 4000, emit="none"), asked("all", MANY), asked("later", 9000)]
    monitor = sb.Monitor(queries[:3], time="t")
    for begin in range(0, 600, 75):
        if begin == 150:
            monitor.advance(150)
            monitor.add(queries[3])
        monitor.push({"x": x[begin : begin + 75], "t": np.arange(begin, begin + 75)})
    for query in queries:
        assert top_of(monitor, query.name) == sorted_pairs(x, range(400, 550), query.k)


@pytest.mark.parametrize("algorithm", EXACT)
@pytest.mark.parametrize("window", [WINDOW, sb.CountWindow(1_000_000)], ids=["time", "count"])
def test_a_few_rows_take_little_room_whatever_k(algorithm: str, window: Any) -> None:
    monitor = sb.Monitor([asked("q", MANY, algorithm=algorithm, window=window)], time="t")
    monitor.push({"x": [1.0, 2.0, 4.0], "t": [0, 1, 500]})
    assert monitor.top("q").num_rows == (0 if window is WINDOW else 3)
    assert monitor.stats("q")["bytes"] < 1 << 26


def test_an_absurd_k_of_a_time_window_is_refused() -> None:
    across = {"key": "id", "stream": "s", "value": "x", "streams": ["p", "q"]}
    for kind, more in ((sb.TopK, {"score": "x"}), (sb.TopKAcross, across)):
        kind(name="q", k=10**6, window=WINDOW, **more)  # type: ignore[arg-type]
        kind(name="q", k=MANY, window=sb.CountWindow(10), **more)  # type: ignore[arg-type]
        with pytest.raises(sb.QueryError, match=r"more than 1,000,000.*ask for fewer"):
            kind(name="q", k=MANY, window=WINDOW, **more)  # type: ignore[arg-type]

"""Looking ahead in windows of pairs, by several threads: the answers are those of rivals that look at every pair in turn."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import skyband as sb
from skyband import threads
from skyband.algorithms.pairs import screening as pairs_screening
from skyband.algorithms.pairs.skyband import PairSkyband
from skyband.kernels.expression import BLOCK
from skyband.kernels.pairs import screen as pairs_screen
from test_pairs_skyband import ODD, feed, made, points_of


@pytest.fixture(autouse=True)
def in_small_windows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A window of a block of rows is large enough, and rows are looked at by few."""
    monkeypatch.setattr(pairs_screening, "LEAST_ROWS", BLOCK)
    monkeypatch.setattr(pairs_screening, "AHEAD", 9)
    threads.use_at_most(2)
    yield
    threads.use_at_most(None)


@pytest.mark.parametrize("metric", ["l1", "l2", "product"])
@pytest.mark.parametrize(("shape", "order"), [("uniform", "asc"), ("uniform", "desc"), ("tied", "asc"), ("drifting", "asc")])
def test_looking_ahead_changes_no_answer(shape: str, order: str, metric: str) -> None:
    points, queries = points_of(shape, 2, 3700, 5), [(3000, 1, 4), (1500, 50, 11)]
    scan = made("scase", 2, metric, order, queries)
    assert isinstance(scan, PairSkyband)
    answers = feed(scan, points, queries, [2500, 2501, 3300], check=False)
    assert answers == feed(made("pairs-basic", 2, metric, order, queries), points, queries, [], check=False)
    assert scan._screening.screen.marks[pairs_screen.UPTO] >= BLOCK
    assert not scan._screening.screen.hits.all()


@pytest.mark.parametrize("score", ODD)
@pytest.mark.parametrize("where", [None, "b.v == 0", "a.v != b.v and a.v < 3"])
def test_the_same_of_any_score_through_a_monitor(score: str, where: str | None) -> None:
    g = np.random.default_rng(8)
    rows = {"x": g.random(5200), "y": np.round(g.random(5200), 2), "v": g.integers(0, 9, 5200)}
    tables = []
    for name in ("scase", "pairs-basic"):
        window = sb.CountWindow(4500, 20)
        monitor = sb.Monitor([sb.TopKPairs(name="q", k=5, score=score, where=where, window=window, algorithm=name)])
        tables.append([monitor.push({key: column[i : i + 1300] for key, column in rows.items()}) for i in range(0, 5200, 1300)])
    assert sum(len(table) for table in tables[0]) > 10
    assert tables[0] == tables[1]

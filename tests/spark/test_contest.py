"""Rows that some of many queries can rank, chosen next to the data: none is missed, whatever was guessed, and few are sent."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from skyband.spark import contest as contests
from skyband.spark.contest import Contest, contends
from skyband.spark.paces import by_slide

SLIDE = 10
VALUES = st.sampled_from([0.0, -0.0, 1.0, 1.0, 2.0, -3.0, 0.1, 0.2, 0.3, 1e200, -math.inf, math.inf, math.nan])


@st.composite
def questions(draw: st.DrawFn) -> Any:
    weights = {
        name: draw(st.sampled_from([1.0, -0.5, 0.3, 0.0])) for name in draw(st.permutations("xyz"))[: draw(st.integers(1, 3))]
    }
    metric = draw(st.sampled_from(["l1", "l2"]))
    score = draw(st.sampled_from(["x", sb.linear(weights), sb.distance({"x": 1.0, "y": 0.2}, metric=metric)]))
    where = draw(st.sampled_from([None, None, {"x": (0.0, 1.0)}, {"z": (None, 0.5)}, {"y": (None, None)}]))
    given = {"name": "q", "score": score, "where": where, "order": draw(st.sampled_from(["asc", "desc"]))}
    window = sb.TimeWindow(draw(st.sampled_from([10, 14, 30])), SLIDE)
    if draw(st.integers(0, 3)) == 0:
        return sb.Threshold(**given, window=window, above=draw(st.sampled_from([0.0, 0.5, 1.0])))
    return sb.TopK(**given, window=window, k=draw(st.integers(1, 3)))


def score_of(query: Any, row: dict[str, float]) -> float:
    """By plain arithmetic, larger is better; NaN where the row does not rank."""
    for name, (low, high) in dict(query.where or {}).items():
        if not (-math.inf if low is None else low) <= row[name] <= (math.inf if high is None else high):
            return math.nan
    score = query.score
    if isinstance(score, str):
        value = row[score]
    elif hasattr(score, "point"):
        apart = [row[name] - at for name, at in score.point]
        value = sum(map(abs, apart)) if score.metric == "l1" else math.sqrt(sum(one * one for one in apart))
    else:
        terms = [weight * row[name] for name, weight in score.weights]
        value = terms[0]
        for term in terms[1:]:
            value += term
    return -value if query.order == "asc" else value


def must_be_sent(queries: list[Any], rows: list[dict[str, Any]]) -> set[int]:
    """Rows that rank for some query among those of their group and pane, if ties that nobody knows are in their favour."""
    found = set()
    for query in queries:
        cuts = [0] if query.window.size % SLIDE == 0 else [0, SLIDE - query.window.size % SLIDE]
        panes: dict[Any, list[tuple[tuple[float, int], int]]] = {}
        for place, row in enumerate(rows):
            pane = (row["group"], row["t"] // SLIDE, max(cut for cut in cuts if cut <= row["t"] % SLIDE))
            score = score_of(query, row)
            if not math.isnan(score):
                panes.setdefault(pane, []).append(((score, row["t"]), place))
        for pane in panes.values():
            for (score, time), place in pane:
                if isinstance(query, sb.Threshold):
                    ranks = score > (-query.above if query.order == "asc" else query.above)
                else:
                    ranks = sum(other > (score, time) for other, _ in pane) < query.k
                found |= {place} if ranks else set()
    return found


@given(
    st.lists(questions(), min_size=1, max_size=6),
    st.lists(
        st.lists(st.tuples(st.integers(0, 25), st.integers(0, 1), VALUES, VALUES, VALUES), min_size=1, max_size=40),
        min_size=1,
        max_size=4,
    ),
)
def test_no_row_that_can_rank_or_lacks_a_score_is_left_out(queries: list[Any], calls: list[list[tuple[Any, ...]]]) -> None:
    contest = Contest(by_slide([SLIDE], queries))
    for call in calls:
        rows = [dict(zip(("t", "group", "x", "y", "z"), row, strict=True)) for row in call]
        table = pa.table({name: [row[name] for row in rows] for name in "xyz"})
        group, time = (np.array([row[name] for row in rows]) for name in ("group", "t"))
        sent = set(np.flatnonzero(contest.contenders(table, group, time)).tolist())
        unscored = []
        for query in queries:
            anywhere = replace(query, where=None)
            unscored.append({place for place, row in enumerate(rows) if math.isnan(score_of(anywhere, row))})
        told = set(np.flatnonzero(contests.lack(table, contest.read)).tolist())
        assert all(told <= one for one in unscored)  # counted for every query where they are
        assert must_be_sent(queries, rows) | (set().union(*unscored) - told) <= sent and not told & sent


def linear_queries(rng: np.random.Generator, number: int, k: int = 10) -> list[sb.TopK]:
    window = sb.TimeWindow(5 * SLIDE, SLIDE)
    weights = [dict(zip("xyz", row, strict=True)) for row in rng.random((number, 3)).tolist()]
    return [sb.TopK(name=f"q{i}", k=k, score=sb.linear(one), window=window) for i, one in enumerate(weights)]


@pytest.mark.parametrize("drift", [0.0, 0.5, -0.5])
def test_few_rows_are_sent_and_none_that_can_rank_is_left_out_however_scores_drift(drift: float) -> None:
    rng = np.random.default_rng(1)
    queries = linear_queries(rng, 100)
    contest = Contest(by_slide([SLIDE], queries))
    count, sent = 20_000, 0
    for call in range(6):
        time = np.sort(rng.integers(call * 10 * SLIDE, (call + 1) * 10 * SLIDE, count))
        points = rng.random((3, count)) + drift * call
        keep = contest.contenders(pa.table(dict(zip("xyz", points, strict=True))), np.zeros(count, np.int64), time)
        sent += int(keep.sum())
        for query in queries[::10]:
            score = sum(weight * points["xyz".index(name)] for name, weight in query.score.weights)
            for pane in range(call * 10, call * 10 + 10):
                own = np.flatnonzero(time // SLIDE == pane)
                assert keep[own[np.argsort(score[own])[-query.k :]]].all()
    assert sent < 0.12 * 6 * count


def test_groups_and_times_out_of_order_are_told_apart() -> None:
    rng = np.random.default_rng(2)
    queries = linear_queries(rng, 30, k=3)
    contest = Contest(by_slide([SLIDE], queries))
    time, group, points = rng.integers(0, 30, 5000), rng.integers(0, 3, 5000), rng.random((3, 5000))
    for _ in range(2):
        keep = contest.contenders(pa.table(dict(zip("xyz", points, strict=True))), group, time)
        for query in queries:
            score = sum(weight * points["xyz".index(name)] for name, weight in query.score.weights)
            for cell in range(9):
                own = np.flatnonzero((group == cell % 3) & (time // SLIDE == cell // 3))
                assert keep[own[np.argsort(score[own])[-3:]]].all()
        assert keep.mean() < 0.3


def test_where_most_rows_are_sent_anyway_they_are_not_looked_at() -> None:
    rng = np.random.default_rng(3)
    places = [dict(zip("xyz", row, strict=True)) for row in rng.random((100, 3)).tolist()]
    window = sb.TimeWindow(SLIDE, SLIDE)
    near = [sb.TopK(name=f"q{i}", k=20, score=sb.distance(at), order="asc", window=window) for i, at in enumerate(places)]
    contest = Contest(by_slide([SLIDE], near))
    rows = pa.table(dict(zip("xyz", rng.random((3, 1000)), strict=True)))
    where = np.zeros(1000, np.int64), np.arange(1000) // 100
    shares = [contest.contenders(rows, *where).mean() for _ in range(3)]
    assert 0.5 < shares[0] < 1
    assert shares[1] == 1 and 0.5 < shares[2] < 1


def test_which_queries_can_have_their_rows_chosen() -> None:
    time, count = sb.TimeWindow(10, 5), sb.CountWindow(10, 5)
    one = {"name": "q", "k": 1}
    assert contends(sb.TopK(**one, score=sb.linear({"x": 1.0}), window=time, where={"y": (0, 1)}))
    assert contends(sb.Threshold(name="q", above=1.0, score="x", window=time))
    assert not contends(sb.TopK(**one, score="x", window=count))
    assert not contends(sb.TopK(**one, score="x * y", window=time))
    assert not contends(sb.TopK(**one, score="x", window=time, where="y > 0"))
    assert not contends(sb.TopK(**one, score=lambda columns: columns["x"], window=time))
    assert not contends(sb.TopKPairs(**one, score="a.x - b.x", window=time))

"""Threshold queries: every row above a bound, against the meaning in plain Python (a top-k as long as it gets)."""

from __future__ import annotations

import math
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from played import batch_of, events_of, plain_events, reference_top, reloaded, top_of
from reference import Asked, Reference, Row
from skyband.algorithms import choose
from skyband.algorithms.spatial import thresholds

values = st.sampled_from([0.0, 1.0, 2.0, 3.0, -1.0, math.inf, -math.inf, math.nan, None])
ENDLESS = 10**9


@st.composite
def questions(draw: st.DrawFn) -> tuple[sb.Threshold, Asked]:
    kind = draw(st.sampled_from(["count", "time"]))
    size = draw(st.integers(1, 12))
    slide = draw(st.integers(1, size))
    given_: dict[str, Any] = {
        "order": draw(st.sampled_from(["desc", "asc"])),
        "emit": draw(st.sampled_from(["changes", "snapshots", "arrivals", "none"])),
    }
    above = draw(st.sampled_from([0.0, 1.0, -math.inf, math.inf, 2.5]))
    inside = draw(st.booleans())
    name = draw(st.sampled_from(["a", "b", "c", "d"]))
    given_["algorithm"] = draw(st.sampled_from(["auto", "auto", "above", "oracle", "tma", "sma(grid=3)"]))
    window = sb.CountWindow(size, slide) if kind == "count" else sb.TimeWindow(size, slide)
    query = sb.Threshold(name=name, above=above, score="x", window=window, where={"y": (0, 2)} if inside else None, **given_)

    def passes(row: Row) -> bool:
        if row["x"] is None or math.isnan(row["x"]):
            return False
        if inside and (row["y"] is None or not 0 <= row["y"] <= 2):
            return False
        return row["x"] > above if given_["order"] == "desc" else row["x"] < above

    asked = Asked(name, ENDLESS, lambda row: row["x"], kind, size, slide, given_["order"], passes, given_["emit"])
    return query, asked


@given(data=st.data(), many=st.integers(1, 3), piece=st.sampled_from([2, 1 << 14]), room=st.sampled_from([1, 1 << 16]))
def test_answers_are_those_of_the_meaning(data: st.DataObject, many: int, piece: int, room: int) -> None:
    with patch.multiple(choose, MANY=many, MANY_BOUNDS=many), patch.multiple(thresholds, PIECE=piece, _EVENTS=room):
        come_and_go(data)


def come_and_go(data: st.DataObject) -> None:
    drawn = data.draw(st.lists(questions(), min_size=1, max_size=4, unique_by=lambda pair: pair[0].name), label="queries")
    begin = data.draw(st.integers(0, len(drawn)), label="there at first")
    monitor = sb.Monitor([query for query, _ in drawn[:begin]], time="t", lateness=3)
    reference = Reference([asked for _, asked in drawn[:begin]], "t", 3)
    waiting, time = drawn[begin:], 0
    for _ in range(data.draw(st.integers(1, 7), label="calls")):
        call = data.draw(st.sampled_from(["push", "push", "push", "add", "cancel", "save", "flush"]))
        if call == "add" and waiting:
            query, asked = waiting.pop()
            monitor.add(query)
            reference.add(asked)
        elif call == "cancel" and monitor.queries:
            name = data.draw(st.sampled_from(sorted(monitor.queries)))
            monitor.cancel(name)
            reference.cancel(name)
        elif call == "save":
            monitor = reloaded(monitor)
        elif call == "flush":
            assert events_of(monitor.flush()) == plain_events(reference.flush())
        else:
            rows = []
            for x, y, step in data.draw(st.lists(st.tuples(values, values, st.integers(-3, 5)), max_size=12), label="rows"):
                time += step
                rows.append({"t": time, "x": x, "y": y, "g": None, "tag": None})
            assert events_of(monitor.push(batch_of(rows))) == plain_events(reference.push(rows))
        for name in monitor.queries:
            assert top_of(monitor, name) == reference_top(reference, name)
            standing = reference.standing[name]
            if standing.since < reference.arrived:
                stats = monitor.stats(name)
                assert (stats["late"], stats["nulls"]) == (standing.late, standing.nulls)
                named = monitor.queries[name].algorithm
                assert stats["algorithm"] in (("above", "tma") if named == "auto" else (named,))
        for lane in monitor._lanes:
            lane.structure.check_invariants()  # type: ignore[attr-defined]


def test_a_long_stream_beside_a_top_k_and_with_an_expression() -> None:
    generator = np.random.default_rng(3)
    data = {"p": generator.random(30_000), "v": generator.random(30_000)}
    hot = sb.Threshold(name="hot", above=0.9, score="p * v", window=sb.CountWindow(5000, slide=7))
    best = sb.TopK(name="best", k=5, score="p * v", window=sb.CountWindow(5000, slide=7))
    monitor = sb.Monitor([hot, best])
    folded = None
    for begin in range(0, 30_000, 1234):
        changes = monitor.push({name: column[begin : begin + 1234] for name, column in data.items()})
        folded = sb.fold(changes, folded)
    end = 30_000 // 7 * 7
    score = (data["p"] * data["v"])[end - 5000 : end]
    wanted = (end - 5000 + np.flatnonzero(score > 0.9)).tolist()
    top = monitor.top("hot")
    assert sorted(top["seq"].to_pylist()) == wanted and top["score"].to_pylist() == sorted(score[score > 0.9], reverse=True)
    assert sorted(row["seq"] for row in folded.to_pylist() if row["query"] == "hot") == wanted
    assert monitor.stats("hot")["candidates"] == len(wanted)


def test_everything_that_left_is_forgotten() -> None:
    monitor = sb.Monitor([sb.Threshold(name="q", above=0.0, score="x", window=sb.CountWindow(100), emit="none")])
    for _ in range(50):
        monitor.push({"x": np.ones(400)})
    monitor.shrink()
    assert monitor._store.count <= 101 and monitor.stats("q")["candidates"] == 100
    monitor.push({"x": -np.ones(400)})
    assert monitor.stats("q")["candidates"] == 0 and len(monitor.top("q")) == 0


def test_an_answer_that_has_been_long_may_become_short() -> None:
    monitor = sb.Monitor([sb.Threshold(name="q", above=0.5, score="x", window=sb.CountWindow(700, slide=7))])
    monitor.push({"x": np.ones(70_000)})
    for _ in range(100):
        monitor.push({"x": np.zeros(7)})
    assert len(monitor.top("q")) == 0


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ({"above": math.nan}, "above must be a number, got nan"),
        ({"above": "high"}, "'high'"),
        ({"above": True}, "True"),
        ({"name": ""}, "name"),
        ({"window": 5}, "CountWindow or a TimeWindow"),
        ({"emit": "all"}, "'snapshots'"),
        ({"score": "x +"}, "score"),
        ({"where": {"x": (3, 1)}}, "empty"),
    ],
)
def test_what_cannot_be_asked(given_: dict[str, Any], text: str) -> None:
    asked: dict[str, Any] = {"name": "q", "above": 1.0, "score": "x", "window": sb.CountWindow(5), **given_}
    with pytest.raises(sb.QueryError) as problem:
        sb.Threshold(**asked)
    assert text in str(problem.value)


def test_a_top_k_cannot_name_it_as_its_algorithm() -> None:
    with pytest.raises(sb.QueryError, match="answers Threshold queries"):
        sb.TopK(name="q", k=1, score="x", window=sb.CountWindow(5), algorithm="above")

"""Many queries with scores of their own in one monitor: crowds, against the meaning in plain Python."""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from played import events_of, plain_events, reloaded
from reference import Asked, Reference, Row
from skyband.algorithms import choose
from skyband.lanes import CrowdLane
from skyband.results import BOUNDS

EXACT = ["relaxed", "strict+strict", "strict+probabilistic", "relaxed+relaxed(gamma=0)", "relaxed+probabilistic(sigma=0.3)"]
INDEXED = [
    "relaxed+probabilistic(grid=3)",
    "strict+strict(grid=2)",
    "strict+relaxed(grid=4)",
    "sma",
    "sma(spare=0.5)",
    "tma(grid=3)",
    "sma(grid=1, spare=1)",
    "tma(grid=1)",
]
CHOSEN = f"sma(spare={choose.SPARE})"  # what `auto` makes of many scores
KINDS = ["l2", "l1", "linear", "product", "expression", "callable"]
numbers = st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.5, -1.0, math.inf, -math.inf, math.nan, None])


class Question:
    """A query of a crowd, and the same as plain parameters."""

    def __init__(self, name: str, kind: str, at: tuple[float, float], **asked: Any) -> None:
        self.name, self.kind, self.at, self.given = name, kind, at, asked

    def query(self) -> sb.TopK:
        x, y = self.at
        score = {
            "l2": sb.distance({"x": x, "y": y}),
            "l1": sb.distance({"y": y, "x": x}, metric="l1", weights={"x": 2.0, "y": 0.5}),
            "linear": sb.linear({"x": x, "y": y}),
            "product": sb.product({"x": x, "y": y}),
            "expression": f"{x} * x - abs(y - {y}) ** 2",
            "callable": _sum_of_both,
        }[self.kind]
        size, slide = self.given["window"]
        rest = {name: value for name, value in self.given.items() if name != "window"}
        rest["where"] = {None: None, "region": {"x": (0.5, 3.0), "tag": (2, None)}, "condition": "x < y or y == 2"}[
            rest["where"]
        ]
        return sb.TopK(name=self.name, score=score, window=sb.CountWindow(size, slide=slide), **rest)

    def score(self, row: Row) -> float | None:
        x, y = (math.nan if row[name] is None else row[name] for name in "xy")
        a, b = self.at
        if self.kind == "l2":
            return math.sqrt((x - a) * (x - a) + (y - b) * (y - b))
        if self.kind == "l1":
            return 0.5 * abs(y - b) + 2.0 * abs(x - a)
        if self.kind == "product":
            return (a + x) * (b + y)
        if self.kind == "expression":
            return a * x - abs(y - b) * abs(y - b)
        if self.kind == "callable":
            return x + y
        return a * x + b * y

    def let_in(self, row: Row) -> bool:
        x, y = (math.nan if row[name] is None else row[name] for name in "xy")
        return 0.5 <= x <= 3.0 and row["tag"] >= 2 if self.given["where"] == "region" else x < y or y == 2

    def asked(self) -> Asked:
        size, slide = self.given["window"]
        given = {name: self.given[name] for name in ("k", "order", "emit")}
        where = None if self.given["where"] is None else self.let_in
        return Asked(self.name, given["k"], self.score, "count", size, slide, given["order"], where, given["emit"])


def _sum_of_both(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        total: np.ndarray = columns["x"].astype(float) + columns["y"].astype(float)
    return total


@st.composite
def questions(draw: st.DrawFn, indexed: bool, named: str | None = None) -> list[Question]:
    size = draw(st.integers(1, 12))
    same = (size, draw(st.integers(1, size)))
    algorithm = named or draw(st.sampled_from(INDEXED))
    any_score = algorithm[:3] in ("sma", "tma", "aut")
    emissions = ["changes", "arrivals", "none"] + ["snapshots"] * (algorithm == "auto")
    found = []
    for number in range(draw(st.integers(1, 5))):
        own = draw(st.integers(1, 12))
        window = same if indexed else (own, draw(st.integers(1, own)))
        found.append(
            Question(
                f"q{number}",
                draw(st.sampled_from(KINDS[:-1] if any_score else ["l2", "l1", "linear"] if indexed else KINDS)),
                (draw(st.sampled_from([0.0, 1.0, 2.5])), draw(st.sampled_from([0.0, 1.5, -2.0]))),
                k=draw(st.integers(1, 4)),
                order=draw(st.sampled_from(["asc", "desc"])),
                emit=draw(st.sampled_from(emissions)),
                algorithm=algorithm if indexed else draw(st.sampled_from(EXACT)),
                window=window,
                where=draw(st.sampled_from([None, None, "region", "condition"])) if any_score or not indexed else None,
            )
        )
    return found


def table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, pa.schema([("x", pa.float64()), ("y", pa.float64()), ("tag", pa.int64())]))


@pytest.mark.parametrize("indexed", [False, True], ids=["scanned", "indexed"])
@given(data=st.data())
def test_answers_are_those_of_the_meaning_while_queries_come_and_go(indexed: bool, data: st.DataObject) -> None:
    come_and_go(data, data.draw(questions(indexed), label="queries"))


@given(data=st.data(), many=st.integers(1, 3))
def test_so_they_are_where_the_algorithm_is_left_to_us(data: st.DataObject, many: int) -> None:
    with patch.object(choose, "MANY", many):
        come_and_go(data, data.draw(questions(True, "auto"), label="queries"))


def come_and_go(data: st.DataObject, asked: list[Question]) -> None:
    begin = data.draw(st.integers(0, len(asked)), label="there at first")
    monitor = sb.Monitor([question.query() for question in asked[:begin]])
    reference = Reference([question.asked() for question in asked[:begin]])
    waiting, tag = asked[begin:], 0
    for _ in range(data.draw(st.integers(1, 6), label="calls")):
        call = data.draw(st.sampled_from(["push", "push", "push", "add", "cancel", "save"]))
        if call == "add" and waiting:
            question = waiting.pop()
            monitor.add(question.query())
            reference.add(question.asked())
        elif call == "cancel" and monitor.queries:
            name = data.draw(st.sampled_from(sorted(monitor.queries)))
            monitor.cancel(name)
            reference.cancel(name)
        elif call == "save":
            monitor = reloaded(monitor, dict.fromkeys(monitor.queries, _sum_of_both))
        else:
            drawn = data.draw(st.lists(st.tuples(numbers, numbers), max_size=15), label="rows")
            rows = [{"x": x, "y": y, "tag": tag + at} for at, (x, y) in enumerate(drawn)]
            tag += len(rows)
            assert events_of(monitor.push(table_of(rows))) == plain_events(reference.push(rows))
        for lane in crowds(monitor):
            lane.structure.check_invariants()
        for name in monitor.queries:
            top, standing = monitor.top(name), reference.standing[name]
            assert top["seq"].to_pylist() == [ranked.seq for ranked in standing.top]
            assert top["tag"].to_pylist() == [ranked.row["tag"] for ranked in standing.top] if tag else True
            if tag and standing.since < reference.arrived:
                stats = monitor.stats(name)
                assert (stats["rows"], stats["nulls"]) == (reference.arrived - standing.since, standing.nulls)


def near(number: int, algorithm: str, **more: Any) -> sb.TopK:
    point = {"x": (number * 7 % 11) / 11, "y": (number * 5 % 13) / 13}
    given: dict[str, Any] = {"k": 4, "window": sb.CountWindow(500), "order": "asc", "algorithm": algorithm, **more}
    return sb.TopK(name=f"near{number}", **{"score": sb.distance(point), **given})


def points(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {"x": generator.random(rows), "y": generator.random(rows), "id": np.arange(rows)}


def crowds(monitor: sb.Monitor) -> list[CrowdLane]:
    return [lane for lane in monitor._lanes if isinstance(lane, CrowdLane)]


def test_queries_of_one_kind_of_score_share_a_lane_and_an_object_is_stored_once() -> None:
    algorithms = ["relaxed", "relaxed+probabilistic", "probabilistic", "strict+strict"]
    monitor = sb.Monitor([near(i, algorithms[i % 4], emit="none") for i in range(40)])
    monitor.push(points(3000))
    (lane,) = crowds(monitor)
    assert len(lane.members) == 40 and len(monitor._lanes) == 1
    held = sum(lane.structure.references(at) for at in range(40))
    monitor.shrink()
    assert monitor._store.count == len(lane.structure.needed()) < held


def test_scores_of_any_form_share_a_lane_and_what_neither_takes_gets_its_own() -> None:
    product = sb.TopK(name="product", k=3, score="x * y", window=sb.CountWindow(100), algorithm="relaxed")
    queries = [
        near(0, "relaxed"),
        near(1, "relaxed", where={"x": (0.2, None)}),
        near(2, "relaxed", emit="snapshots"),
        near(3, "auto"),
        near(4, "strict"),
        product,
        sb.TopK(name="again", k=5, score="x * y", window=sb.CountWindow(300, slide=7), algorithm="relaxed+probabilistic"),
    ]
    monitor = sb.Monitor(queries)
    monitor.push(points(1200))
    assert [len(lane.members) for lane in crowds(monitor)] == [1, 3] and len(monitor._lanes) == 5
    assert len(crowds(monitor)[1].structure.attributes) == 2  # the two queries on x * y share one
    monitor.cancel("product")
    assert len(crowds(monitor)[1].structure.attributes) == 2
    monitor.cancel("again")
    assert len(crowds(monitor)[1].structure.attributes) == 1
    data = points(1200)
    for number in (0, 2, 3, 4):
        apart = np.sqrt((data["x"] - (number * 7 % 11) / 11) ** 2 + (data["y"] - (number * 5 % 13) / 13) ** 2)[700:]
        assert monitor.top(f"near{number}")["seq"].to_pylist() == (700 + np.argsort(apart)[:4]).tolist()


def test_many_scores_form_a_crowd_and_few_do_not() -> None:
    scores = [sb.linear({"x": float(i), "y": 1.0}) for i in range(choose.MANY)]
    queries = [sb.TopK(name=f"q{i}", k=3, score=score, window=sb.CountWindow(200, slide=20)) for i, score in enumerate(scores)]
    few = sb.Monitor(queries[:-1])
    few.push(points(100))
    assert len(few._lanes) == choose.MANY - 1 and few.stats("q0")["algorithm"] == "shared"
    monitor = sb.Monitor(queries)
    monitor.push(points(1000))
    assert len(monitor._lanes) == 1 and monitor.stats("q0")["algorithm"] == CHOSEN
    monitor.add(sb.TopK(name="late", k=2, score="x - y", window=sb.CountWindow(200, slide=20), where={"x": (0.5, None)}))
    monitor.add(sb.TopK(name="other", k=2, score="x - y", window=sb.CountWindow(100)))
    monitor.push(points(300, seed=1))
    assert len(monitor._lanes) == 2 and monitor.stats("other")["algorithm"] == "shared"
    assert monitor.stats("late")["algorithm"] == CHOSEN
    data = points(300, seed=1)
    score = np.where(data["x"] >= 0.5, data["x"] - data["y"], -9.0)[100:]
    assert monitor.top("late")["seq"].to_pylist() == (1100 + np.argsort(-score)[:2]).tolist()
    assert monitor.top("q7")["seq"].to_pylist() == (1100 + np.argsort(-(7 * data["x"] + data["y"])[100:])[:3]).tolist()


@pytest.mark.parametrize("window", [sb.CountWindow(3), sb.TimeWindow(3, 1)], ids=["count", "time"])
@pytest.mark.parametrize("bounded", [False, True], ids=["top", "threshold"])
def test_a_score_of_no_column_stays_out_of_a_crowd(window: Any, bounded: bool) -> None:
    """All rows that are let in tie, and the newest rank first."""
    where, many = {"x": (0.5, None)}, [near(i, "auto", window=window) for i in range(20)]
    if bounded:
        alone: Any = sb.Threshold(name="alone", above=0.0, score="2", window=window, where=where)
        many = [sb.Threshold(name=q.name, above=0.5, score=q.score, window=window) for q in many]  # type: ignore[misc]
    else:
        alone = sb.TopK(name="alone", k=2, score="2", window=window, where=where)
    monitor = sb.Monitor([*many, alone], time="t")
    monitor.push({"x": [0.0, 1.0, 1.0, 0.0, 1.0, 1.0], "y": np.zeros(6), "t": np.arange(6)})
    assert [len(lane.members) for lane in crowds(monitor)] == [20]
    monitor.advance(6)
    assert monitor.top("alone").select(["score", "t"]).to_pydict() == {"score": [2.0, 2.0], "t": [5, 4]}


def test_a_monitor_is_loaded_whose_first_score_has_left() -> None:
    names = ("a", "b", "c")
    asked = [
        sb.TopK(name=name, k=1, score=f"x * {i + 1}", window=sb.CountWindow(4), algorithm="relaxed")
        for i, name in enumerate(names)
    ]
    monitor = sb.Monitor(asked)
    monitor.push({"x": [3.0, 5.0]})
    monitor.cancel("a")
    monitor = reloaded(monitor, {})
    monitor.add(sb.TopK(name="d", k=1, score="x * 4", window=sb.CountWindow(4), algorithm="relaxed"))
    monitor.push({"x": [4.0, 1.0]})
    assert [monitor.top(name)["score"].to_pylist() for name in "bcd"] == [[10.0], [15.0], [16.0]]


def test_cancelling_frees_what_only_that_query_held() -> None:
    monitor = sb.Monitor([near(i, "relaxed+probabilistic") for i in range(20)])
    monitor.push(points(2000))
    before = monitor.stats("near0")["bytes"]
    for number in range(1, 20):
        monitor.cancel(f"near{number}")
    assert monitor.stats("near0")["bytes"] < before / 3
    assert [member.query.name for member in crowds(monitor)[0].members] == ["near0"]
    monitor.cancel("near0")
    assert not monitor._lanes


def test_each_object_arrives_once_also_after_it_left_the_top_and_came_back(tmp_path: Path) -> None:
    monitor = sb.Monitor([near(i, "relaxed", emit="arrivals", window=sb.CountWindow(60)) for i in range(3)])
    seen: set[tuple[str, int]] = set()
    data = points(4000)
    for begin in range(0, 4000, 97):
        found = monitor.push({name: column[begin : begin + 97] for name, column in data.items()})
        pairs = list(zip(found["query"].to_pylist(), found["seq"].to_pylist(), strict=True))
        assert not seen & set(pairs) and len(set(pairs)) == len(pairs)
        seen |= set(pairs)
        monitor.save(tmp_path / "state")
        monitor = sb.Monitor.load(tmp_path / "state")
    assert len(seen) > 300


def test_results_and_stats_carry_the_bound_of_what_is_not_exact() -> None:
    queries = [
        near(0, "probabilistic", error=0.01),
        near(1, "relaxed"),
        sb.TopK(name="any", k=2, score="x + y", window=sb.CountWindow(400), error=0.02),
        sb.TopK(name="exact", k=2, score="x + y", window=sb.CountWindow(400)),
    ]
    monitor = sb.Monitor(queries)
    found = monitor.push(points(4000))
    bounds = json.loads(found.schema.metadata[BOUNDS])
    assert set(bounds) == {"near0", "any"}
    assert bounds["near0"] == monitor.stats("near0")["missed_at_most"] == 0.01 * 4000 / 500
    assert bounds["any"] == monitor.stats("any")["missed_at_most"] <= 0.02 * 4000 / 400
    assert monitor.stats("any")["algorithm"] == "hybrid(sigma=0.02)"
    assert "missed_at_most" not in monitor.stats("exact") and "missed_at_most" not in monitor.stats("near1")
    assert sb.Monitor([queries[1]]).push(points(10)).schema.metadata is None
    for name in ("near0", "any"):
        assert json.loads(monitor.top(name).schema.metadata[BOUNDS]) == {name: bounds[name]}
    for name in ("near1", "exact"):
        assert monitor.top(name).schema.metadata is None


def test_a_top_carries_its_bound_before_rows_come_and_where_nothing_else_is_told() -> None:
    monitor = sb.Monitor([near(0, "probabilistic", error=0.01, emit="none")])
    assert json.loads(monitor.top("near0").schema.metadata[BOUNDS]) == {"near0": 0.0}
    monitor.push(points(4000))
    assert json.loads(monitor.top("near0").schema.metadata[BOUNDS]) == {"near0": 0.01 * 4000 / 500}


def test_a_probabilistic_query_misses_fewer_than_its_bound_on_random_order() -> None:
    data = points(20_000, seed=4)
    ask = [near(i, "probabilistic", error=0.1, emit="arrivals") for i in range(30)]
    exact = [near(i, "relaxed", emit="arrivals") for i in range(30)]
    found, right = (sb.Monitor(queries).push(data) for queries in (ask, exact))
    pairs, wanted = (set(zip(t["query"].to_pylist(), t["seq"].to_pylist(), strict=True)) for t in (found, right))
    assert len(wanted - pairs) / 30 <= 0.1 * 20_000 / 500
    assert len(pairs - wanted) / 30 <= 1.5 * 0.1 * 20_000 / 500


def test_what_cannot_be_scored_or_held_is_refused_before_anything_changes() -> None:
    monitor = sb.Monitor([near(0, "sma")])
    monitor.push({"x": pa.nulls(3), "y": [1.0, 2.0, 3.0]})
    with pytest.raises(sb.SchemaError, match="needs the column 'x' as a number"):
        monitor.push({"x": ["a", "b"], "y": [1.0, 2.0]})
    monitor.push({"x": [1.0, 2.0], "y": [1.0, 2.0]})
    assert monitor.top("near0")["seq"].to_pylist() == [3, 4]
    monitor.add(near(1, "relaxed", k=10**12, window=sb.CountWindow(10**13)))
    with pytest.raises(sb.QueryError, match="not memory enough to answer 'near1'"):
        monitor.push({"x": [1.0], "y": [1.0]})
    monitor.cancel("near1")
    monitor.push({"x": [0.0], "y": [0.0]})
    assert monitor.top("near0")["seq"].to_pylist() == [5, 3, 4]
    with pytest.raises(sb.QueryError, match="too many cells"):
        near(2, "probabilistic(grid=1000)", score=sb.linear(dict.fromkeys("abcd", 1.0)))


def test_arrivals_are_told_to_each_query_however_many_have_come_and_gone() -> None:
    def asked(name: str) -> sb.TopK:
        return sb.TopK(name=name, k=1, score="x", window=sb.CountWindow(9), algorithm="tma", emit="arrivals")

    monitor = sb.Monitor([asked("gone"), asked("old")], key="id")
    monitor.push({"x": [1.0, 2.0], "id": [0, 1]})
    monitor.cancel("gone")
    (lane,) = monitor._lanes
    assert isinstance(lane, CrowdLane)
    lane.next_uid, lane.ranked_limit, told = 1 << 19, 0, []  # as after half a million queries and thousands of arrivals
    for number in range(3):
        monitor.add(asked(f"new{number}"))
        told += events_of(monitor.push({"x": [3.0 + number], "id": [2 + number]}))
    monitor = reloaded(monitor)
    told += events_of(monitor.delete([4])) + events_of(monitor.delete([3])) + events_of(monitor.delete([2]))
    wanted = [(query, seq) for seq in (2, 3, 4) for query in ["old", *(f"new{i}" for i in range(seq - 1))]]
    assert [(event.query, event.seq) for event in told] == wanted


def test_a_score_that_overflows_to_no_number_is_counted() -> None:
    score = sb.distance({"x": 0.0, "y": 0.0}, weights={"x": 0.0, "y": 1.0})
    queries = [
        sb.TopK(name=name, k=1, score=score, order="asc", window=sb.CountWindow(5), algorithm=name)
        for name in ("relaxed", "sma", "shared")
    ]
    monitor = sb.Monitor(queries)
    monitor.push({"x": [1e200, 1.0, np.inf], "y": [1.0, 1.0, 1.0]})
    assert [monitor.stats(query.name)["nulls"] for query in queries] == [2, 2, 2]


@pytest.mark.parametrize("where", [None, {"y": (0.0, None)}, "y < x"])
@pytest.mark.parametrize("score", ["linear", "expression"])
def test_a_row_without_a_number_is_counted_at_once_for_all_queries(score: str, where: Any) -> None:
    def calls_of_push(queries: int) -> int:
        monitor = sb.Monitor(
            sb.TopK(
                name=f"q{i}",
                k=2,
                score=sb.linear({"x": i + 1.0, "y": 2.0}) if score == "linear" else f"x / (y + {i})",
                where=where,
                window=sb.CountWindow(100, slide=10),
            )
            for i in range(queries)
        )
        for _ in range(2):  # what is compiled first makes calls of its own
            monitor.push({"x": np.append(np.ones(9), np.nan), "y": np.ones(10)})
        calls = itertools.count()
        sys.setprofile(lambda *_: next(calls))
        try:
            monitor.push({"x": np.append(np.ones(9), np.nan), "y": np.ones(10)})
        finally:
            sys.setprofile(None)
        assert monitor.stats("q0")["nulls"] == 3
        return next(calls)

    few, many = calls_of_push(20), calls_of_push(220)
    assert many - few < 10 * 200

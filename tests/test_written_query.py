"""Queries as others write them: what `to_json` gave comes back, people's forms are read, every slip is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

import skyband as sb
from skyband.written_query import query_from_text

COUNT, TIME = sb.CountWindow(10, 2), sb.TimeWindow("10 s", "2 s")
ACROSS: dict[str, Any] = {"name": "c", "k": 1, "key": "o", "stream": "s", "value": "v", "window": TIME}


@pytest.mark.parametrize(
    "query",
    [
        sb.TopK(name="a", k=2, score="x + 1", window=COUNT, error=0.1),
        sb.TopK(name="a", k=2, score=sb.linear({"x": 1.0, "y": 2.0}), window=COUNT, algorithm="sap"),
        sb.TopK(name="a", k=2, score=sb.product({"x": 1.0}), window=TIME, where="x > 1", order="asc"),
        sb.TopK(name="a", k=2, score=sb.distance({"x": 1.0, "y": 2.0}, weights={"x": 2.0, "y": 1.0}), window=TIME),
        sb.TopK(name="a", k=2, score="x", window=TIME, where={"x": (None, 1), "y": (0, 2)}, emit="snapshots"),
        sb.Threshold(name="t", above=1, score=sb.distance({"x": 0.0}, metric="l1"), window=COUNT),
        sb.TopKPairs(name="p", k=1, score=sb.pair_distance(["x", "y"], metric="l1"), window=COUNT),
        sb.TopKPairs(name="p", k=1, score="abs(a.x - b.x)", window=TIME, where={"a.x": (0, None)}, order="desc"),
        sb.TopKAcross(**ACROSS, streams=[1, 2], combine={1: 0.5, 2: 1}, ranges=(0, 5), repeats=1),
        sb.TopKAcross(**ACROSS, streams=["1", "2"], combine="max", ranges={"1": (0, 3)}, aggregate="max", precision=0.9),
    ],
    ids=repr,
)
def test_what_a_query_says_of_itself_is_read_again(query: Any) -> None:
    assert query_from_text(json.dumps(query.to_json())) == query


@pytest.mark.parametrize(
    ("text", "query"),
    [
        (
            '{"name": "a", "k": 2, "score": "x", "window": {"rows": 10, "slide": 2}}',
            sb.TopK(name="a", k=2, score="x", window=COUNT),
        ),
        (
            '{"kind": "Threshold", "name": "a", "above": 2, "score": {"distance": {"x": 1}, "metric": "l1"}, '
            '"where": {"x": {"min": 1}}, "window": {"size": "10 s", "slide": "2 s"}}',
            sb.Threshold(name="a", above=2, score=sb.distance({"x": 1}, metric="l1"), where={"x": (1, None)}, window=TIME),
        ),
        (
            '{"kind": "TopKPairs", "name": "p", "k": 1, "score": {"columns": ["x"]}, "window": {"rows": 10, "slide": 2}}',
            sb.TopKPairs(name="p", k=1, score=sb.pair_distance(["x"]), window=COUNT),
        ),
        (
            '{"name": "c", "k": 1, "key": "o", "stream": "s", "value": "v", "streams": [1, 2], "combine": {"1": 0.5, "2": 1}, '
            '"ranges": [0, 5], "window": {"size": "10 s", "slide": "2 s"}}',
            sb.TopKAcross(**ACROSS, streams=[1, 2], combine={1: 0.5, 2: 1}, ranges=(0, 5)),
        ),
    ],
)
def test_what_people_write_is_read(text: str, query: Any) -> None:
    assert query_from_text(text) == query


def written(**changes: Any) -> str:
    return json.dumps({"name": "a", "k": 1, "score": "x", "window": {"rows": 3}} | changes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "written as JSON text, got 'None'"),
        ("", "and this is none"),
        ("[" * 100_000, "and this is none"),
        ("[]", "a JSON object"),
        ('{"name": "a", "name": "b"}', "'name' is said twice"),
        ("{}", "lacks 'name'; a TopK needs name, k, score, window"),
        ('{"name": "a", "streams": []}', "lacks 'k'; a TopKAcross needs"),
        (written(kind="Best"), "no kind of query called 'Best'; there are TopK"),
        (written(kind=[1]), "no kind of query"),
        (written(name=["a"]), "needs a name"),
        (written(scor="x"), "a TopK has no 'scor'; did you mean 'score'?"),
        (written(k=0), "k must be at least 1"),
        (written(k="many"), "k must be a whole number"),
        (written(score="x +"), "query 'a': score"),
        (written(score={"callable": "f"}), "score is a function"),
        (written(score={"linear": {"x": "y"}}), "must be a number"),
        (written(score={"linear": {"x": 1}, "product": {}}), "one of linear, product and distance"),
        (written(score={"linear": {"x": 1}, "metric": "l1"}), "one of linear, product and distance"),
        (written(score={"distance": {"x": 1}, "metric": 7}), "metric 7 is not known"),
        (written(score=7), "score is '7'"),
        (written(window=3), "window is '3'"),
        (written(window={"size": 3}), "window is"),
        (written(window={"count": [1, 2, 3]}), "window is"),
        (written(window={"rows": 3, "slide": 4}), "slide 4 exceeds its size 3"),
        (written(where=[1]), "where"),
        (written(where={"x": 3}), "the bounds of 'x'"),
        (written(where={"x": ["a", "b"]}), "query 'a'"),
        (written(order="up"), "order must be one of"),
        (written(algorithm="bad("), "unknown algorithm"),
        (written(kind="TopKPairs", score={"columns": "x"}), "list of column names"),
        (
            json.dumps({"name": "c", "k": 1, "key": "o", "stream": "s", "value": "v", "streams": {}, "window": {"rows": 3}}),
            "list",
        ),
    ],
)
def test_a_slip_is_an_error_that_names_it(text: Any, message: str) -> None:
    with pytest.raises(sb.QueryError) as caught:
        query_from_text(text)
    assert message in str(caught.value)

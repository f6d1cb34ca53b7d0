"""The [[query]] blocks of a job file: `kind` says which query it is, "top" unless told.

kind = "top"         name, k, score, window; where, order, emit, algorithm, error
kind = "threshold"   name, above, score, window; where, order, emit, algorithm
kind = "pairs"       name, k, score (a text, or { distance = ["x", "y"], metric = "l1" }), window; where, order, emit, algorithm
kind = "across"      name, k, key, stream, value, streams, window; combine, aggregate, repeats, ranges, outside, precision,
                     emit, algorithm
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skyband.errors import QueryError
from skyband.query import Query, Threshold, TopK, TopKAcross, TopKPairs
from skyband.scores.pair_score import pair_distance
from skyband.scores.score import Score, distance, linear, product
from skyband.spark.jobs.file import Section
from skyband.window import CountWindow, TimeWindow, Window

_ELSEWHERE = {"size": "window = { size = ..., slide = ... }", "slide": "window = { size = ..., slide = ... }"}


def read_queries(root: Section, *, required: bool = True) -> tuple[Query, ...]:
    """The file's queries; JobError names the line of whatever is wrong."""
    if "queries" in root.content:
        root.fail("queries are written as [[query]] blocks, one a query", "queries")
    given = root.take("query", list, example="a [[query]] block", required=required)
    if given is None:
        return ()
    if not given or not all(isinstance(one, dict) for one in given):
        root.fail("queries are written as [[query]] blocks, one a query", "query")
    queries = tuple(_query(Section(root.document, ("query", i), one, "[[query]]")) for i, one in enumerate(given))
    for i, query in enumerate(queries):
        if query.name in [other.name for other in queries[:i]]:
            message = f"two queries are called {query.name!r}; give each a name of its own"
            raise root.document.problem(("query", i, "name"), message)
    return queries


def _query(table: Section) -> Query:
    kind = table.take("kind", str, example='kind = "pairs"') or "top"
    if kind not in _KINDS:
        table.fail(f"kind = {kind!r} is not known; use one of {', '.join(map(repr, _KINDS))}", "kind")
    made, read = _KINDS[kind]
    given: dict[str, Any] = {"name": table.take("name", str, example='name = "hot"', required=True)}
    given |= {**read(table), "window": _window(table)}
    for key, example in (("order", '"asc"'), ("emit", '"snapshots"'), ("algorithm", '"auto"')):
        if key == "order" and made is TopKAcross:
            continue
        value = table.take(key, str, example=f"{key} = {example}")
        if value is not None:
            given[key] = value
    table.finish(_ELSEWHERE)
    try:
        return made(**given)
    except QueryError as problem:
        message = str(problem)
        start = f"query {given['name']!r}: "
        word = message.removeprefix(start).split(":")[0].split(" ")[0].split("=")[0]
        key = word if message.startswith(start) and word in given else "algorithm" if "algorithm" in message else "name"
        raise table.document.problem((*table.path, key), message) from None


def _top(table: Section) -> dict[str, Any]:
    given = {"k": _k(table), **_scored(table)}
    error = table.take("error", float, int, example="error = 0.1")
    return given if error is None else {**given, "error": error}


def _threshold(table: Section) -> dict[str, Any]:
    return {"above": table.take("above", float, int, example="above = 30.0", required=True), **_scored(table)}


def _scored(table: Section) -> dict[str, Any]:
    return {
        "score": _score(table, table.take("score", str, dict, example='score = "price * volume"', required=True)),
        "where": _where(table, table.take("where", str, dict, example='where = "venue == 3"')),
    }


def _pairs(table: Section) -> dict[str, Any]:
    score = table.take("score", str, dict, example='score = "abs(a.price - b.price)"', required=True)
    if isinstance(score, dict):
        form = Section(table.document, (*table.path, "score"), score, "score")
        columns = form.take("distance", list, example='score = { distance = ["x", "y"] }', required=True)
        metric = form.take("metric", str, example='metric = "l1"') or "l2"
        form.finish()
        score = form.attempt(lambda: pair_distance(columns, metric))
    where = _where(table, table.take("where", str, dict, example='where = "a.venue != b.venue"'))
    return {"k": _k(table), "score": score, "where": where}


def _across(table: Section) -> dict[str, Any]:
    given: dict[str, Any] = {"k": _k(table)}
    for key, example in (("key", "flow"), ("stream", "router"), ("value", "bytes")):
        given[key] = table.take(key, str, example=f'{key} = "{example}"', required=True)
    streams = given["streams"] = table.take("streams", list, example='streams = ["r1", "r2"]', required=True)
    optional: list[tuple[str, tuple[type, ...], str]] = [
        ("combine", (str, dict), 'combine = "mean"'),
        ("aggregate", (str,), 'aggregate = "max"'),
        ("repeats", (int,), "repeats = 3"),
        ("ranges", (list, dict), "ranges = [0, 100]"),
        ("outside", (str,), 'outside = "skip"'),
        ("precision", (float,), "precision = 0.9"),
    ]
    for key, kinds, example in optional:
        value = table.take(key, *kinds, example=example)
        if value is not None:
            given[key] = _by_stream(value, streams) if isinstance(value, dict) else value
    return given


def _by_stream(given: Mapping[str, Any], streams: list[Any]) -> dict[Any, Any]:
    """A table by stream: TOML's keys are texts, streams may be whole numbers."""
    known = {str(one): one for one in streams}
    return {known.get(name, name): value for name, value in given.items()}


def _k(table: Section) -> Any:
    return table.take("k", int, example="k = 10", required=True)


_KINDS: dict[str, tuple[Callable[..., Query], Callable[[Section], dict[str, Any]]]] = {
    "top": (TopK, _top),
    "threshold": (Threshold, _threshold),
    "pairs": (TopKPairs, _pairs),
    "across": (TopKAcross, _across),
}


def _window(table: Section) -> Window:
    example = 'window = { size = "60 seconds", slide = "1 second" } or { rows = 1000, slide = 10 }'
    content = table.take("window", dict, example=example, required=True)
    window = Section(table.document, (*table.path, "window"), content, "window")
    if "rows" in content:
        rows = window.take("rows", int, example="rows = 1000")
        slide = window.take("slide", int, example="slide = 10")
        window.finish({"size": "a window of time; a window of rows has rows and slide"})
        return window.attempt(lambda: CountWindow(rows, 1 if slide is None else slide))
    size = window.take("size", str, int, example='size = "60 seconds", or rows = 1000 to count rows', required=True)
    slide = window.take("slide", str, int, example='slide = "1 second"', required=True)
    window.finish()
    return window.attempt(lambda: TimeWindow(size, slide))


def _score(table: Section, given: Any) -> Score:
    """A text, or a table with one of linear, product and distance."""
    if isinstance(given, str):
        return given
    score = Section(table.document, (*table.path, "score"), given, "score")
    forms = {
        "linear": score.take("linear", dict, example="score = { linear = { x = 0.3, y = 0.7 } }"),
        "product": score.take("product", dict, example="score = { product = { x = 0.5 } }"),
        "distance": score.take("distance", dict, example="score = { distance = { x = 3.0, y = 4.0 } }"),
    }
    metric = score.take("metric", str, example='metric = "l1"')
    weights = score.take("weights", dict, example="weights = { x = 2.0 }")
    score.finish()
    chosen = [form for form, content in forms.items() if content is not None]
    if len(chosen) != 1:
        table.fail("a score's table has one of linear, product and distance; or write the score as a text", "score")
    content = forms[chosen[0]]
    if chosen[0] == "distance":
        return score.attempt(lambda: distance(content, metric=metric or "l2", weights=weights))
    if metric is not None or weights is not None:
        score.fail(f"metric and weights belong to distance; {chosen[0]} has neither")
    return score.attempt(lambda: (linear if chosen[0] == "linear" else product)(content))


def _where(table: Section, given: Any) -> Any:
    """A condition, or bounds: [low, high], or { min = ... } and { max = ... } for an open end."""
    if not isinstance(given, dict):
        return given
    bounds: dict[str, tuple[Any, Any]] = {}
    for column, span in given.items():
        low, high = (span.get("min"), span.get("max")) if isinstance(span, dict) else span if _is_pair(span) else (None, None)
        known = not isinstance(span, dict) or set(span) <= {"min", "max"}
        if not known or (low is None and high is None) or any(type(end) not in (int, float, type(None)) for end in (low, high)):
            message = f"the bounds of {column!r} must be [low, high], {{ min = low }} or {{ max = high }}; got {span!r}"
            table.fail(message, "where", column)
        bounds[column] = (low, high)
    return bounds


def _is_pair(span: Any) -> bool:
    return isinstance(span, list) and len(span) == 2

"""Queries as others write them: JSON objects from a file, a table or a message, read with an eye on every slip.

    {"name": "hot", "k": 10, "score": "price * volume", "window": {"size": "30 minutes", "slide": "1 minute"}}

The keys are the arguments of the query's class. `kind` names the class (TopK, Threshold, TopKPairs, TopKAcross); without it
`above` makes a Threshold, `streams` a TopKAcross, a score over `a.` and `b.` written as `pair_score` a TopKPairs, anything else
a TopK. What `to_json` of a query gives is read too. Every slip is a QueryError that says what was found and what is wanted;
nothing is ever executed, so that functions cannot come in this way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from difflib import get_close_matches
from typing import Any

from skyband.errors import QueryError, SkybandError
from skyband.query import Query, Threshold, TopK, TopKAcross, TopKPairs
from skyband.scores.pair_score import PairDistance
from skyband.scores.score import Score, distance, linear, product
from skyband.window import CountWindow, TimeWindow, Window

KINDS: dict[str, type[Query]] = {"TopK": TopK, "Threshold": Threshold, "TopKPairs": TopKPairs, "TopKAcross": TopKAcross}

_SHOWN = 80  # characters of a text in an error


def query_from_text(text: object) -> Query:
    """The query a JSON text describes; QueryError for anything else."""
    return query_from_document(document_from(text, "a query"))


def document_from(text: object, what: str) -> dict[str, Any]:
    """The JSON object in a text; QueryError when it is none."""
    if not isinstance(text, str):
        raise QueryError(f"{what} is written as JSON text, got {shown(text)}")
    try:
        document = json.loads(text, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as problem:
        raise QueryError(f"{what} is written as JSON, and this is none ({problem}): {shown(text)}") from None
    if not isinstance(document, dict):
        raise QueryError(f"{what} is written as a JSON object {{...}}, got {shown(text)}")
    return document


def query_from_document(document: object) -> Query:
    """The query that JSON-able values describe; QueryError when they describe none."""
    if not isinstance(document, Mapping):
        raise QueryError(f"a query is written as a JSON object {{...}}, got {shown(document)}")
    given = dict(document)
    kind = _kind(given)
    known = {field.name: field for field in fields(kind)}
    name = given.get("name")
    what = f"query {name!r}" if isinstance(name, str) and name else "the query"
    if kind is TopKPairs and "pair_score" in given and "score" not in given:
        given["score"] = given.pop("pair_score")
    for key in given:
        if key not in known:
            close = get_close_matches(key, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(known)}"
            raise QueryError(f"{what}: a {kind.__name__} has no {key!r}; {hint}")
    needed = [key for key, field in known.items() if field.default is MISSING]
    if missing := [key for key in needed if given.get(key) is None]:
        raise QueryError(f"{what} lacks {missing[0]!r}; a {kind.__name__} needs {', '.join(needed)}")
    try:
        given["window"] = _window(given["window"])
        if kind is TopKAcross:
            _read_streams(given)
        else:
            given["score"] = _pair_score(given["score"]) if kind is TopKPairs else _score(given["score"])
            given["where"] = _where(given.get("where"))
        return kind(**given)
    except SkybandError as problem:
        message = str(problem)
        raise QueryError(message if what in message else f"{what}: {message}") from None
    except (TypeError, ValueError, OverflowError, AttributeError) as problem:
        raise QueryError(f"{what} cannot be read ({problem}): {shown(document)}") from None


def shown(value: object) -> str:
    """A value as an error shows it: not at length."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"{next(key for key in keys if keys.count(key) > 1)!r} is said twice")
    return found


def _kind(given: dict[str, Any]) -> type[Query]:
    word = given.pop("kind", None)
    if word is None:
        return (
            Threshold
            if "above" in given
            else TopKAcross
            if "streams" in given
            else TopKPairs
            if "pair_score" in given
            else TopK
        )
    if not isinstance(word, str) or word not in KINDS:
        raise QueryError(f"there is no kind of query called {shown(word)}; there are {', '.join(KINDS)}")
    return KINDS[word]


def _window(given: Any) -> Window:
    """{"size": ..., "slide": ...} of time, {"rows": ..., "slide": ...}, {"time": [size, slide]}, {"count": [size, slide]}."""
    forms = 'write {"size": "30 minutes", "slide": "1 minute"} or {"rows": 1000, "slide": 10}'
    if isinstance(given, Mapping):
        keys = set(given)
        if keys == {"size", "slide"}:
            return TimeWindow(given["size"], given["slide"])
        if keys in ({"rows"}, {"rows", "slide"}):
            return CountWindow(given["rows"], given.get("slide", 1))
        if len(keys) == 1 and keys <= {"time", "count"}:
            ((kind, span),) = given.items()
            if isinstance(span, list | tuple) and len(span) == 2:
                return CountWindow(*span) if kind == "count" else TimeWindow(*span)
    raise QueryError(f"window is {shown(given)}; {forms}")


def _score(given: Any) -> Score:
    """A text, or one of {"expression": text}, {"linear": {...}}, {"product": {...}}, {"distance": {...}}."""
    if isinstance(given, str):
        return given
    if isinstance(given, Mapping):
        more = {key: given[key] for key in ("metric", "weights") if key in given}
        forms = [key for key in given if key not in more]
        if len(forms) == 1 and (forms[0] == "distance" or not more):
            (form,) = forms
            content = given[form]
            if form == "expression" and isinstance(content, str):
                return content
            if form in ("linear", "product") and isinstance(content, Mapping):
                return (linear if form == "linear" else product)(dict(content))
            if form == "distance" and isinstance(content, Mapping):
                if isinstance(content.get("point"), Mapping):
                    return distance(**content)
                return distance(dict(content), **more)
            if form == "callable":
                raise QueryError("score is a function, which cannot be written down; write an expression")
    raise QueryError(
        f"score is {shown(given)}; write an expression as a text, or an object with one of linear, product and distance"
    )


def _pair_score(given: Any) -> str | PairDistance:
    if isinstance(given, str):
        return given
    if isinstance(given, Mapping) and "columns" in given and set(given) <= {"columns", "metric"}:
        return PairDistance(**given)
    raise QueryError(
        f"score is {shown(given)}; write an expression over a. and b. as a text, or "
        '{"columns": ["x", "y"], "metric": "l2"} for the distance of the two rows'
    )


def _where(given: Any) -> Any:
    """A text, or bounds by column: [low, high], {"min": low} or {"max": high}."""
    if not isinstance(given, Mapping):
        return given
    bounds: dict[str, Any] = {}
    for column, span in given.items():
        if isinstance(span, Mapping) and span and set(span) <= {"min", "max"}:
            span = (span.get("min"), span.get("max"))
        if not isinstance(span, list | tuple) or len(span) != 2:
            raise QueryError(f'where: the bounds of {column!r} must be [low, high], {{"min": low}} or {{"max": high}}')
        bounds[column] = tuple(span)
    return bounds


def _read_streams(given: dict[str, Any]) -> None:
    """Weights and ranges by stream: as objects, whose keys JSON knows as texts only, or as lists in the order of streams."""
    streams = given["streams"]
    if not isinstance(streams, list | tuple):
        raise QueryError(f"streams must be a list of the values of the column {given['stream']!r}, got {shown(streams)}")
    for key in ("combine", "ranges"):
        value = given.get(key)
        if value is None:
            given.pop(key, None)
        elif isinstance(value, Mapping):
            by_text = {str(stream): stream for stream in streams}
            given[key] = {by_text.get(name, name): content for name, content in value.items()}
        elif isinstance(value, list) and not (key == "ranges" and len(value) == 2 and not isinstance(value[0], list | tuple)):
            if len(value) != len(streams):
                raise QueryError(f"{key} has {len(value)} entries for {len(streams)} streams; give one a stream")
            given[key] = dict(zip(streams, value, strict=True))
    if isinstance(given.get("ranges"), Mapping):
        given["ranges"] = {name: tuple(span) if isinstance(span, list) else span for name, span in given["ranges"].items()}
    elif isinstance(given.get("ranges"), list):
        given["ranges"] = tuple(given["ranges"])

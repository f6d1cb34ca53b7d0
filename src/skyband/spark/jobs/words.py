"""A job in words: what `--dry-run` shows. Nothing of Spark is started for it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from skyband.query import Query, Threshold, TopK, TopKAcross, TopKPairs
from skyband.scores.score import score_key, score_to_json, where_key
from skyband.spark.jobs.job import Job, Sink, Source
from skyband.window import CountWindow, Duration, nanoseconds

_EMITTED = {
    "changes": "who enters and who leaves",
    "snapshots": "every window's top",
    "arrivals": "each row once, when it first ranks",
    "none": "nothing is emitted",
}


def describe(job: Job) -> list[tuple[str, str]]:
    """Pairs of what and how, in the order a row meets them."""
    stream, trigger = job.stream, job.trigger
    when = "all that is there, then end" if trigger.available_now else f"every {trigger.every}" if trigger.every else "at once"
    words = [("job", f"{job.name} ({job.document.file})"), ("source", _end(job.source))]
    if job.source.schema:
        words.append(("columns", job.source.schema))
    if job.source.select:
        words.append(("select", ", ".join(job.source.select)))
    words += [
        ("time", stream.time or "none"),
        ("lateness", str(stream.lateness)),
        ("groups", ", ".join(stream.group_by) or "one for all rows"),
        ("arrival", stream.arrival or "none: rows of equal score and time rank by a hash of their content"),
    ]
    if stream.key is not None:
        words.append(("deletions", f"rows where {stream.deletes} delete the live row with their {stream.key}"))
    words += [(f"query {query.name}", _query(query)) for query in job.queries]
    if job.control is None:
        words += [("shared", line) for line in shared(job.queries)]
    else:
        words.append(("commands", f"{_end(job.control)}; queries come and go, so every row travels whole"))
    kept = job.checkpoint or "temporary, gone when the job ends"
    words += [("sink", _end(job.sink)), ("trigger", when), ("checkpoint", kept)]
    if job.metrics.port is not None:
        words.append(("metrics", f"for Prometheus at {job.metrics.host}:{job.metrics.port}"))
    if job.metrics.path is not None:
        words.append(("metrics", f"JSON lines to {job.metrics.path}"))
    return words + [("spark", f"{key} = {value}") for key, value in job.spark.items()]


def _end(end: Source | Sink) -> str:
    options = ", ".join(f"{key} = {value}" for key, value in end.options.items())
    return f"{end.format}{f' at {end.path}' if end.path else ''}{f' ({options})' if options else ''}"


def _query(query: Query) -> str:
    window = query.window
    if isinstance(window, CountWindow):
        of = f"of the last {window.size:,} rows, after every {window.slide:,}"
    else:
        of = f"of the last {window.size}, every {window.slide}"
    algorithm = "" if query.algorithm == "auto" else f", by {query.algorithm}"
    return f"{_asked(query)}, {of}: {_EMITTED[query.emit]}{algorithm}"


def _asked(query: Query) -> str:
    if isinstance(query, TopKAcross):
        combine = query.combine if isinstance(query.combine, str) else "weighted sum"
        streams = ", ".join(map(str, query.streams))
        return f"the {query.k} {query.key} with the largest {combine} of {query.value} over {query.stream} {streams}"
    which = "largest" if query.order == "desc" else "smallest"
    where = "" if query.where is None else f", where {_where(query)}"
    if isinstance(query, TopKPairs):
        return f"the {query.k} pairs with the {which} {query.door.score}{where}"
    if isinstance(query, Threshold):
        return f"all with {_score(query)} {'above' if query.order == 'desc' else 'below'} {query.above:g}{where}"
    return f"the {query.k} {which} {_score(query)}{where}"


def _score(query: TopK | Threshold) -> str:
    ((kind, content),) = score_to_json(query.score).items()
    return str(content) if kind == "expression" else f"{kind} {content}"


def _where(query: TopK | Threshold | TopKPairs) -> str:
    if not isinstance(query.where, Mapping):
        return str(query.where)
    spans = []
    for column, (low, high) in query.where.items():
        at_least = "" if low is None else f"{low:g} <= "
        spans.append(f"{at_least}{column}" + ("" if high is None else f" <= {high:g}"))
    return " and ".join(spans)


def shared(queries: Iterable[Query]) -> list[str]:
    """What is done once for several queries."""
    asked = list(queries)
    lines = [f"one scan of the source for {_names(asked)}"] if len(asked) > 1 else []
    for what, key in (("one score", _score_of), ("windows close together", _slide_of)):
        together: dict[Hashable, list[Query]] = {}
        for query in asked:
            together.setdefault(key(query), []).append(query)
        lines += [f"{what}: {_names(group)}" for group in together.values() if len(group) > 1]
    return lines or ["nothing: there is one query"]


def _names(queries: Iterable[Query]) -> str:
    return ", ".join(query.name for query in queries)


def _score_of(query: Query) -> Hashable:
    if isinstance(query, TopKAcross):
        return query.name
    return query.door if isinstance(query, TopKPairs) else (score_key(query.score), where_key(query.where))


def _slide_of(query: Query) -> Hashable:
    """Equal for queries that close their windows at the same moments; all that count rows move together."""
    if isinstance(query.window, CountWindow):
        return "rows"
    slide: Duration = query.window.slide
    return slide if isinstance(slide, int) else ("time", nanoseconds(slide, "slide"))

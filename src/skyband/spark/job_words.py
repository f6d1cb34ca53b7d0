"""A job in words: what `--dry-run` shows. Nothing of Spark is started for it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from skyband.query import TopK
from skyband.score import score_key, score_to_json, where_key
from skyband.spark.job import Job, Sink, Source
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
    words += [(f"query {query.name}", _query(query)) for query in job.queries]
    if job.control is None:
        words += [("shared", line) for line in shared(job.queries)]
    else:
        words.append(("commands", f"{_end(job.control)}; queries come and go, so every row travels whole"))
    kept = job.checkpoint or "temporary, gone when the job ends"
    words += [("sink", _end(job.sink)), ("trigger", when), ("checkpoint", kept)]
    return words + [("spark", f"{key} = {value}") for key, value in job.spark.items()]


def _end(end: Source | Sink) -> str:
    options = ", ".join(f"{key} = {value}" for key, value in end.options.items())
    return f"{end.format}{f' at {end.path}' if end.path else ''}{f' ({options})' if options else ''}"


def _query(query: TopK) -> str:
    which = "largest" if query.order == "desc" else "smallest"
    where = "" if query.where is None else f", where {_where(query)}"
    window = query.window
    if isinstance(window, CountWindow):
        of = f"of the last {window.size:,} rows, after every {window.slide:,}"
    else:
        of = f"of the last {window.size}, every {window.slide}"
    algorithm = "" if query.algorithm == "auto" else f", by {query.algorithm}"
    return f"the {query.k} {which} {_score(query)}{where}, {of}: {_EMITTED[query.emit]}{algorithm}"


def _score(query: TopK) -> str:
    ((kind, content),) = score_to_json(query.score).items()
    return str(content) if kind == "expression" else f"{kind} {content}"


def _where(query: TopK) -> str:
    if not isinstance(query.where, Mapping):
        return str(query.where)
    spans = []
    for column, (low, high) in query.where.items():
        at_least = "" if low is None else f"{low:g} <= "
        spans.append(f"{at_least}{column}" + ("" if high is None else f" <= {high:g}"))
    return " and ".join(spans)


def shared(queries: Iterable[TopK]) -> list[str]:
    """What is done once for several queries."""
    asked = list(queries)
    lines = [f"one scan of the source for {_names(asked)}"] if len(asked) > 1 else []
    for what, key in (("one score", _score_of), ("windows close together", _slide_of)):
        together: dict[Hashable, list[TopK]] = {}
        for query in asked:
            together.setdefault(key(query), []).append(query)
        lines += [f"{what}: {_names(group)}" for group in together.values() if len(group) > 1]
    return lines or ["nothing: there is one query"]


def _names(queries: Iterable[TopK]) -> str:
    return ", ".join(query.name for query in queries)


def _score_of(query: TopK) -> Hashable:
    return score_key(query.score), where_key(query.where)


def _slide_of(query: TopK) -> Hashable:
    """Equal for queries that close their windows at the same moments; all that count rows move together."""
    if isinstance(query.window, CountWindow):
        return "rows"
    slide: Duration = query.window.slide
    return slide if isinstance(slide, int) else ("time", nanoseconds(slide, "slide"))

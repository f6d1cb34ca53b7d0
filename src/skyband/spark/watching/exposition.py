"""Figures as Prometheus reads them: its text format, version 0.0.4.

A family is a line of HELP, a line of TYPE and its samples, one a line; families do not interleave. Counters only grow while
the process lives: a stream that is started again goes on counting, a micro-batch counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from math import inf, isnan
from typing import NamedTuple

from skyband.spark.progress import Figures, Moment
from skyband.spark.watching.latency import Latencies, Quantiles, Sliding

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Shown(NamedTuple):
    """A stream: what it is called, its figures, and whether it runs."""

    name: str
    figures: Figures
    runs: bool


class _OfStream(NamedTuple):
    """A figure of a whole stream; None is left out."""

    name: str
    kind: str
    help: str
    value: Callable[[Shown], float | None]


class _OfQuery(NamedTuple):
    """A figure of each query."""

    name: str
    kind: str
    help: str
    values: Callable[[Figures], Mapping[str, float]]


class _Spans(NamedTuple):
    """Quantiles of each query."""

    name: str
    help: str
    spans: Callable[[Latencies], Mapping[str, Sliding]]


def _seconds(moment: Moment | None) -> float | None:
    return moment.timestamp() if isinstance(moment, datetime) else moment


def _steered(shown: Shown, value: int) -> int | None:
    """A figure of streams that take commands."""
    return None if shown.figures.standing is None else value


_STREAMS = (
    _OfStream("skyband_up", "gauge", "1 while the stream runs.", lambda shown: shown.runs),
    _OfStream("skyband_batches_total", "counter", "Micro-batches done.", lambda shown: shown.figures.batches),
    _OfStream("skyband_rows_total", "counter", "Rows that came.", lambda shown: shown.figures.rows),
    _OfStream(
        "skyband_rows_without_time_total",
        "counter",
        "Rows left out because they had no time, or none that Spark can count.",
        lambda shown: shown.figures.null_times,
    ),
    _OfStream(
        "skyband_rows_with_bad_key_total",
        "counter",
        "Rows left out because their key was missing or that of a live row.",
        lambda shown: shown.figures.refused,
    ),
    _OfStream(
        "skyband_rows_per_second",
        "gauge",
        "Rows a second of processing in the last micro-batch that had rows.",
        lambda shown: shown.figures.rows_per_second,
    ),
    _OfStream(
        "skyband_watermark",
        "gauge",
        "Windows up to here are closed: seconds since 1970, or the time column's own unit where that is an integer.",
        lambda shown: _seconds(shown.figures.watermark),
    ),
    _OfStream(
        "skyband_lag_seconds",
        "gauge",
        "The clock minus the greatest time seen, when the last micro-batch ended.",
        lambda shown: None if shown.figures.lag is None else shown.figures.lag.total_seconds(),
    ),
    _OfStream("skyband_groups", "gauge", "States in the state store.", lambda shown: shown.figures.groups),
    _OfStream(
        "skyband_states_written", "gauge", "Snapshots that the last micro-batch wrote.", lambda shown: shown.figures.states
    ),
    _OfStream(
        "skyband_state_bytes", "gauge", "Bytes of the snapshots it wrote, together.", lambda shown: shown.figures.state_bytes
    ),
    _OfStream(
        "skyband_state_bytes_largest", "gauge", "Bytes of the largest of them.", lambda shown: shown.figures.largest_state
    ),
    _OfStream(
        "skyband_candidates",
        "gauge",
        "Rows held because they may still rank, in the groups that the last micro-batch answered.",
        lambda shown: shown.figures.candidates,
    ),
    _OfStream("skyband_queries", "gauge", "Queries answered, where they come and go.", lambda shown: shown.figures.standing),
    _OfStream(
        "skyband_commands_total", "counter", "Commands that came.", lambda shown: _steered(shown, shown.figures.commands)
    ),
    _OfStream(
        "skyband_refused_commands_total",
        "counter",
        "Commands that could not be obeyed.",
        lambda shown: _steered(shown, shown.figures.refused_commands),
    ),
)

_QUERIES = (
    _OfQuery(
        "skyband_query_rows_total", "counter", "Rows of the micro-batches in which it stood.", lambda figures: figures.seen
    ),
    _OfQuery(
        "skyband_late_rows_total", "counter", "Rows left out because their slide had closed.", lambda figures: figures.late
    ),
    _OfQuery(
        "skyband_null_scores_total", "counter", "Rows in time whose score was null or NaN.", lambda figures: figures.nulls
    ),
    _OfQuery(
        "skyband_refused_rows_total",
        "counter",
        "Rows that a query across streams has no object or no stream for.",
        lambda figures: figures.refusals,
    ),
    _OfQuery("skyband_result_rows_total", "counter", "Result rows.", lambda figures: figures.results),
    _OfQuery(
        "skyband_query_candidates",
        "gauge",
        "Rows held because they may still rank; queries that share a structure share them.",
        lambda figures: figures.held,
    ),
    _OfQuery(
        "skyband_missed_at_most",
        "gauge",
        "Of an approximate query: rows that ranked and were missed so far, at most, of the worst group.",
        lambda figures: figures.missed,
    ),
    _OfQuery(
        "skyband_precision",
        "gauge",
        "Of an approximate query across streams: the share of its answers that is right, of the worst group.",
        lambda figures: figures.precision,
    ),
    _OfQuery(
        "skyband_query_bytes",
        "gauge",
        "Bytes of the structure that answers it, in memory; queries that share one share them.",
        lambda figures: figures.sizes,
    ),
)

_SPANS = (
    _Spans(
        "skyband_emit_latency_seconds",
        "From the trigger that took a micro-batch's rows to its commit, over the result rows of the last 512 with any.",
        lambda latencies: latencies.emit,
    ),
    _Spans(
        "skyband_window_delay_seconds",
        "From the end of the earliest window a micro-batch closed to its commit, over the same result rows.",
        lambda latencies: latencies.window,
    ),
)


def text(streams: Iterable[Shown]) -> str:
    """Every figure of every stream."""
    shown = list(streams)
    return "".join(f"{line}\n" for line in _lines(shown))


def _lines(shown: list[Shown]) -> Iterator[str]:
    for one in _STREAMS:
        yield from _head(one.name, one.kind, one.help)
        for stream in shown:
            value = one.value(stream)
            if value is not None:
                yield sample(one.name, {"stream": stream.name}, value)
    for each in _QUERIES:
        yield from _head(each.name, each.kind, each.help)
        for stream in shown:
            for query, value in each.values(stream.figures).items():
                yield sample(each.name, {"stream": stream.name, "query": query}, value)
    for spans in _SPANS:
        yield from _head(spans.name, "summary", spans.help)
        for stream in shown:
            for query, sliding in dict(spans.spans(stream.figures.latencies)).items():
                yield from _summary(spans.name, {"stream": stream.name, "query": query}, sliding.quantiles())


def _head(name: str, kind: str, help: str) -> Iterator[str]:
    escaped = help.replace("\\", "\\\\").replace("\n", "\\n")
    yield f"# HELP {name} {escaped}"
    yield f"# TYPE {name} {kind}"


def _summary(name: str, labels: Mapping[str, str], found: Quantiles) -> Iterator[str]:
    yield sample(name, {**labels, "quantile": "0.5"}, found.p50)
    yield sample(name, {**labels, "quantile": "0.99"}, found.p99)
    yield sample(f"{name}_sum", labels, found.seconds)
    yield sample(f"{name}_count", labels, found.rows)


def sample(name: str, labels: Mapping[str, str], value: float) -> str:
    r"""One line: a name, labels whose values may be any text, a number.

    >>> sample("rows_total", {"query": 'the "best"'}, 3)
    'rows_total{query="the \\"best\\""} 3'
    """
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{shown}}} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if isnan(value):
        return "NaN"
    if value in (inf, -inf):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))

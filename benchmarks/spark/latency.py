"""From a row's arrival to its change row, at 50 thousand rows a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.figure import Figure
from benchmarks.spark.case import in_child

ROWS_A_SECOND = 50_000
_TIMEOUT = 300.0


def latency(say: Callable[[str], None], *, quick: bool, rows_a_second: int = ROWS_A_SECOND) -> Iterator[Figure]:
    """p50 and p99 of change rows ("enter"), in seconds.

    Windows of rows (the last 500 thousand, after every thousand) answer as soon as a micro-batch has the row. Windows of time
    (10 s, every second) answer when the second is over, which is half a second of the median: the delay after the
    window's end is shown beside it.
    """
    warm_up, seconds = (5, 12) if quick else (20, 60)
    for query in ("rows", "time"):
        say(f"windows of {query}: {warm_up + seconds} s at {rows_a_second:,} rows/s")
        job = {"query": query, "warm_up": warm_up, "seconds": seconds, "rows_a_second": rows_a_second}
        found = in_child("benchmarks.spark.latency_child", job, _TIMEOUT)
        detail = f"{found['taken']:,} rows in {found['batches']} micro-batches; {found['behind']:.1f} s behind at the end"
        if not found["spans"]:
            raise RuntimeError(f"no change row came after the warm-up: {detail}")
        for what, spans in (("a row's arrival", found["spans"]), ("its window's end", found["delays"])):
            for name, value in zip(("p50", "p99"), spans, strict=False):
                counted = f"{spans[2]:,} change rows; {detail}"
                beside = f"from {what} to its change row"
                yield Figure(f"windows of {query}, {rows_a_second:,} rows/s: {name}", beside, 0, value, "s", detail=counted)

"""Many linear queries over one stream: embedded, through Spark, and as so many streams of Spark's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.figure import Figure
from benchmarks.spark.case import Case, Outcome, outcome
from benchmarks.spark.rows import Rows
from benchmarks.spark.settings import Setting

COUNTS = (1, 10, 100, 1000, 10_000)
QUICK = (1, 1000)
NATIVE = 5  # streams of Spark's own that many more are extrapolated from
PROMISED = 1000
SETTING = Setting("points", 100, 1, 20)  # SIGMOD06: a hundredth of the window a cycle, k = 20, four attributes


def queries(
    say: Callable[[str], None], *, quick: bool, counts: tuple[int, ...] = (), windows: str = "time"
) -> Iterator[Figure]:
    """Rows a second of both, the promised ratios at 1000 queries, and what is left of one query's speed with more.

    `windows` of time, as Spark's own knows them, or of rows, which many queries share a grid over and of which every row must
    travel; on these rows both hold the same.
    """
    counts = counts or (QUICK if quick else COUNTS)
    # long enough for the JVM to have compiled most of what runs in the second half; Spark's own streams take half of the rows
    rows = Rows(240_000, 1000, 8) if quick else Rows(8_000_000, 10_000, 16)
    fewer = rows if quick else Rows(4_000_000, 10_000, 8)
    per_second = rows.per_second if windows == "rows" else 0
    with TemporaryDirectory(prefix="skyband-bench-") as scratch:
        say("writing the rows")
        files = rows.write(Path(scratch) / "rows")
        say(f"{NATIVE} streams of Spark's own")
        own = files if quick else fewer.write(Path(scratch) / "fewer")
        native = outcome(Case("native", NATIVE, SETTING, own, fewer.count))
        first: tuple[int, Outcome] | None = None
        for count in counts:
            say(f"{count:,} queries, embedded")
            alone = outcome(Case("embedded", count, SETTING, files, rows.count, per_second=per_second))
            say(f"{count:,} queries on Spark")
            spread = outcome(Case("skyband", count, SETTING, files, rows.count, per_second=per_second))
            if spread.told["results"] != alone.told["results"]:
                raise RuntimeError(f"{count} queries: {spread.told['results']} result rows on Spark, embedded {alone.told}")
            first = first or (count, spread)
            yield from _figures(count, rows, alone, spread, native)
            detail = f"{spread.rows_per_second:,.0f} rows/s; {spread.told['state_bytes'] / 1e6:.1f} MB of state"
            ratio = count * spread.rows_per_second / (first[0] * first[1].rows_per_second)
            beside = f"those of {first[0]:,}"
            yield Figure(f"{count:,} queries on Spark, answers a second", beside, 0, ratio, "×", False, detail)


def _figures(count: int, rows: Rows, alone: Outcome, spread: Outcome, native: Outcome) -> Iterator[Figure]:
    what = f"{count:,} linear queries, N={SETTING.size * rows.per_second:,}, k={SETTING.k}, 2 cores"
    promised = count == PROMISED
    extrapolated = native.rows_per_second * NATIVE / count
    detail = f"{spread.rows_per_second:,.0f} against {extrapolated:,.1f} rows/s"
    beside = f"{count:,} streams of Spark's own, from {NATIVE}"
    ratio = spread.rows_per_second / extrapolated
    yield Figure(what, beside, 50.0 if promised else 0.0, ratio, "× their throughput", False, detail)
    detail = (
        f"embedded {alone.rows_per_second:,.0f} rows/s by {alone.told['algorithm']}; {alone.told['results']:,} results each"
    )
    ratio = alone.rows_per_second / spread.rows_per_second
    yield Figure(what, "embedded, one core", 3.0 if promised else 0.0, ratio, "× its time", detail=detail)

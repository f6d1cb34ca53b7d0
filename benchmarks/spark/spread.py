"""What cores bring, and what one hot group costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.figure import Figure
from benchmarks.spark.case import Case, outcome
from benchmarks.spark.rows import PARTS, Rows
from benchmarks.spark.settings import Setting

SETTING = Setting("spread", 60, 1, 10)
HOT = 0.9


def cores(say: Callable[[str], None], *, quick: bool) -> Iterator[Figure]:
    """The same on one core and on two, with and without groups, beside rows that only pass through Python."""
    rows = Rows(800_000, 1000, 8) if quick else Rows(5_000_000, 1000, 10)
    with TemporaryDirectory(prefix="skyband-bench-") as scratch:
        files = rows.write(Path(scratch) / "rows")
        for system, group in (("pass-through", False), ("skyband", False), ("skyband", True)):
            rates = []
            for number in (1, 2):
                what = f"{system}{f', {PARTS} groups' if group else ''}"
                say(f"{what}, {number} of 2 cores")
                rates.append(outcome(Case(system, 1, SETTING, files, rows.count, cores=number, group=group)).rows_per_second)
            detail = " and ".join(f"{rate:,.0f}" for rate in rates) + " rows/s"
            yield Figure(f"{what}: two cores", "one core", 0, rates[1] / rates[0], "× its throughput", False, detail)


def skew(say: Callable[[str], None], *, quick: bool) -> Iterator[Figure]:
    """Nine rows of ten in one of a hundred groups, against all groups alike."""
    found = []
    with TemporaryDirectory(prefix="skyband-bench-") as scratch:
        for name, hot in (("even", 0.0), ("hot", HOT)):
            rows = Rows(800_000, 1000, 8, hot) if quick else Rows(5_000_000, 1000, 10, hot)
            say(f"{PARTS} groups, {name}")
            files = rows.write(Path(scratch) / name)
            found.append(outcome(Case("skyband", 1, SETTING, files, rows.count, group=True)))
    even, hot = found
    what = f"{HOT:.0%} of the rows in one of {PARTS} groups"
    detail = f"{hot.rows_per_second:,.0f} against {even.rows_per_second:,.0f} rows/s"
    yield Figure(what, "all groups alike", 0, even.rows_per_second / hot.rows_per_second, "× its time", detail=detail)
    sizes = [one.told["largest_state"] for one in found]
    detail = f"{sizes[1] / 1e3:.1f} against {sizes[0] / 1e3:.1f} kB"
    yield Figure(f"{what}: largest state", "all groups alike", 0, sizes[1] / sizes[0], "× its bytes", detail=detail)

"""Flink SQL's Window Top-N beside skyband and Spark's own, over the same CSV files (what PyFlink reads without more jars).

PyFlink has pins of its own, so it lives in an environment of its own, and is left out where there is none.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.figure import Figure
from benchmarks.spark.case import TIMEOUT, Case, in_child, outcome
from benchmarks.spark.rows import Rows, weights
from benchmarks.spark.settings import SECOND, Setting

PYTHON = "SKYBAND_FLINK_PYTHON"
HOW = (
    "python3.11 -m venv flink && flink/bin/pip install apache-flink, then "
    f"{PYTHON}=$PWD/flink/bin/python ./run bench spark flink; Flink needs Java too"
)
CORES = 2
# with so many rows: in A Flink copies each into sixty windows
SETTINGS = ((Setting("C", 60, 10, 10), 3_000_000), (Setting("A", 60, 1, 100), 300_000))


def unavailable() -> str | None:
    """Why Flink cannot run here; None when it can."""
    python = os.environ.get(PYTHON)
    if not python:
        return f"{PYTHON} names no Python with PyFlink: {HOW}"
    try:
        found = subprocess.run([python, "-c", "import pyflink.table"], capture_output=True, text=True, check=False)
    except OSError as problem:
        return f"{PYTHON}={python} does not run: {problem.strerror}; {HOW}"
    if found.returncode:
        return f"{PYTHON}={python} has no PyFlink ({(found.stderr.splitlines() or ['?'])[-1]}): {HOW}"
    return None


def flink(say: Callable[[str], None], *, quick: bool) -> Iterator[Figure]:
    """Seconds from the start of a query to its end, cold JVMs all, two cores: skyband's against the others'.

    Spark's own way here is `window(size, slide)` with panes first. All give the k rows of every window.
    """
    reason = unavailable()
    say("writing the rows")
    with TemporaryDirectory(prefix="skyband-bench-") as scratch:
        if reason is None:
            check(Path(scratch) / "small")
        for setting, count in SETTINGS[:1] if quick else SETTINGS:
            rows = Rows(400_000, 1000, 4) if quick else Rows(count, 1000, 6)
            files = rows.write(Path(scratch) / setting.name, "csv")
            case = Case("skyband", 1, setting, files, rows.count, kind="csv", emit="snapshots")
            say(f"{setting}: skyband")
            ours = outcome(case).seconds
            say(f"{setting}: Spark's own")
            theirs = {"Spark's own": outcome(Case("native", 1, setting, files, rows.count, kind="csv")).seconds}
            if reason is None:
                say(f"{setting}: Flink")
                theirs["Flink SQL, Window Top-N"] = run(setting, rows, Path(scratch) / f"{setting.name}-flink")["seconds"]
            for name, seconds in theirs.items():
                detail = f"{ours:.1f} s against {seconds:.1f} s for {rows.count:,} rows of CSV"
                yield Figure(str(setting), name, 0, seconds / ours, "× as fast", False, detail)
    if reason is not None:
        print(f"Flink is left out: {reason}", file=sys.stderr)


def run(setting: Setting, rows: Rows, folder: Path, show: bool = False) -> dict[str, Any]:
    """Flink over the rows, a file for each core: its seconds, or its rows."""
    job = {
        "files": [str(file) for file in rows.write_shares(folder, CORES)],
        "size": setting.size,
        "slide": setting.slide,
        "k": setting.k,
        "weights": weights(1)[0],
        "cores": CORES,
        "show": show,
    }
    return in_child("benchmarks.spark.flink_child", job, TIMEOUT, python=os.environ[PYTHON])


def check(scratch: Path) -> None:
    """Flink's windows on a small stream are those of sorting; it would be no rival otherwise."""
    setting, rows = Setting("small", 6, 2, 5), Rows(600, 20, 2)
    found: dict[int, list[tuple[int, int]]] = {}
    for end, place, id in run(setting, rows, scratch, show=True)["rows"]:
        moment = datetime.fromisoformat(end).replace(tzinfo=UTC)
        found.setdefault(int(moment.timestamp()) * SECOND, []).append((place, id))
    table = rows.table()
    time, ids = table["ts"].cast(pa.int64()).to_numpy(), table["id"].to_numpy()
    score = sum(weight * table[name].to_numpy() for name, weight in weights(1)[0].items())
    slide, size = setting.slide * SECOND, setting.size * SECOND
    for end in range((time[0] // slide + 1) * slide, time[-1] + 1, slide):
        within = (time >= end - size) & (time < end)
        best = ids[within][np.argsort(-score[within], kind="stable")][: setting.k].tolist()
        if [id for _, id in sorted(found.get(end, []))] != best:
            raise RuntimeError(f"Flink's window {end}: {sorted(found.get(end, []))}, by sorting {best}")

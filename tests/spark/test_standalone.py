"""On a cluster: the same job, with a worker lost in the middle; skyband and its kernels come to workers as a zip."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import trading
from jobs import job_file
from running import ROOT, Run, in_files
from shipped import zipped
from standalone import Standalone

pytestmark = pytest.mark.slow

KERNELS = ROOT / ".cache" / "kernels-of-workers"  # kept, so that only the first run compiles


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Standalone]:
    running = Standalone(tmp_path)
    yield running
    running.stop()


def test_a_worker_that_is_lost_costs_nothing_and_kernels_come_from_the_cache(cluster: Standalone, tmp_path: Path) -> None:
    rows, files = trading.trades(2400), 24
    settings = {
        "spark.master": cluster.url,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
        "spark.submit.pyFiles": str(zipped(tmp_path)),
        "spark.executorEnv.NUMBA_CACHE_DIR": str(KERNELS),
        "spark.executorEnv.NUMBA_DEBUG_CACHE": "1",
    }
    spark = "".join(f'"{name}" = "{value}"\n' for name, value in settings.items())
    job = job_file(
        tmp_path,
        ('lateness = "2 seconds"', 'lateness = "5 seconds"'),
        ('score = "price * 2"\norder = "asc"', 'score = "-price * 2"'),
        ('format = "memory"', 'format = "parquet"\npath = "out"'),
        ("[trigger]", f"[spark]\n{spark}\n[trigger]"),
    )
    for number in range(files):
        file = tmp_path / "in" / f"{number}.parquet"
        pq.write_table(rows.slice(number * 100, 100), file)
        os.utime(file, (1_600_000_000 + number,) * 2)
    with Run(job) as run:
        run.until(lambda: len(run.said) >= 4)
        before = run.rows
        cluster.lose(0)
        assert run.ended() == 0, run.complaint()
    assert before < len(rows) and cluster.alive() == 1  # it was lost in the middle
    assert run.said[-1]["rows"] == len(rows) and trading.by_query(run.said[-1], "late") == {"best": 0, "least": 0}
    assert in_files(tmp_path / "out") == trading.embedded(rows)
    used = [line for line in cluster.said_by_executors().splitlines() if "[cache] data" in line]
    assert used and all(f"{KERNELS}/skyband-" in line for line in used)  # as a zip keeps them, and nowhere else

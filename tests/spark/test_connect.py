"""Through Spark Connect: the same code, the same results; what a client cannot do is refused, with the reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from math import exp
from pathlib import Path
from types import SimpleNamespace

import connected
import pyarrow.parquet as pq
import pytest
import trading
from jobs import job_file
from pyspark.sql import Row
from shipped import zipped

import skyband.spark as sks
from skyband.errors import SkybandError
from skyband.spark.jobs.file import JobError
from skyband.spark.jobs.job import read_job
from skyband.spark.jobs.running import run_job
from skyband.spark.progress import observed

ROOT = Path(connected.__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_client_gets_the_embedded_engines_answers_from_workers_it_sent_skyband_to(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="a client of Spark Connect needs grpcio: pip install 'skyband[connect]'")
    rows = trading.trades()
    (tmp_path / "trades").mkdir()
    for number in range(3):
        pq.write_table(rows.slice(number * 400, 400), tmp_path / "trades" / f"{number}.parquet")
        os.utime(tmp_path / "trades" / f"{number}.parquet", (1_600_000_000 + number,) * 2)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYTHONPATH"))}
    environment |= {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT / "tests" / "spark"))),
    }
    command = [sys.executable, connected.__file__, str(tmp_path), str(zipped(tmp_path))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])

    assert said["client"].startswith("pyspark.sql.connect")
    expected = [list(answer) for answer in trading.embedded(rows)]
    assert sorted(said["stream"], key=str) == sorted(expected, key=str)
    assert {tuple(answer) for answer in said["batch"]} >= {tuple(answer) for answer in expected}
    assert said["rows"] == len(rows)
    assert said["exp(2)"] == exp(2.0)
    assert ".zip" in said["worker"]
    assert said["settings"] == ["2", "UTC"]
    for message, reason in zip(
        said["refused"], ("how many cores", "how many cores", "need the driver's own process"), strict=True
    ):
        assert reason in message


def test_a_session_or_a_job_that_asks_for_a_server_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    job = read_job(job_file(tmp_path, ("[trigger]", '[spark]\n"spark.remote" = "sc://cluster"\n[trigger]')))
    with pytest.raises(
        JobError, match=r"line 34: spark\.remote asks for the Spark Connect server sc://cluster.*use sks\.monitor"
    ):
        run_job(job, None, None)  # type: ignore[arg-type]
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    with pytest.raises(SkybandError, match="SPARK_REMOTE asks for the Spark Connect server sc://elsewhere"):
        sks.session()


def test_metrics_are_read_as_a_client_gets_them_too() -> None:
    plain, remote = Row(rows=3, late=1), Row(values=[3, 1], schema={"fields": [{"name": "rows"}, {"name": "late"}]})
    progress = SimpleNamespace(observedMetrics={"plain": plain, "remote": remote})
    assert observed(progress, "plain") == observed(progress, "remote") == {"rows": 3, "late": 1}
    assert observed(progress, "missing") == {}

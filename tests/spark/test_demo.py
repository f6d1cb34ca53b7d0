"""The demo on Spark: it says that it was checked, and its check notices a wrong answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import skyband.spark as sks
from skyband.spark import demo

ROOT = Path(__file__).resolve().parents[2]


def test_a_small_demo_is_checked_and_equal() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "skyband", "demo", "--rows", "20000", "--json"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    records = [json.loads(line) for line in result.stdout.splitlines()]
    checked = [record for record in records if record["event"] == "checked"]
    assert {record["query"] for record in checked} == {question.query.name for question in demo.QUESTIONS}
    assert all(record["equal"] and record["windows"] > 400 for record in checked)
    assert {record["event"] for record in records} == {"top", "progress", "finished", "checked"}


@pytest.mark.parametrize("question", demo.QUESTIONS[1:], ids=lambda question: question.query.name)
def test_the_check_notices_a_wrong_answer(spark: SparkSession, question: demo.Question) -> None:
    day = demo.make_day(3000, seed=7)
    recorded = spark.createDataFrame(day.rows.to_pandas(), demo.SCHEMA)
    results = sks.monitor(recorded, question.query, time="ts", group_by=question.groups, arrival="seq")
    answers = results.where(F.unix_micros("window_end") <= day.watermark).toArrow()
    late = {question.query.name: day.late_rows}

    def verdict(answers: pa.Table, late: dict[str, int]) -> demo.Verdict:
        listener = SimpleNamespace(figures=SimpleNamespace(late=late))
        (verdict,) = demo.check(SimpleNamespace(questions=[question], answers=[answers], listener=listener), recorded, day)
        return verdict

    assert verdict(answers, late).equal and verdict(answers, late).late_equal
    assert not verdict(answers.slice(1), late).equal
    swapped = answers.set_column(answers.column_names.index("rank"), "rank", pc.subtract(answers["rank"], 1))
    assert not verdict(swapped, late).equal
    assert not verdict(answers, {question.query.name: day.late_rows + 1}).late_equal


def test_the_day_holds_back_only_rows_that_are_surely_late() -> None:
    day = demo.make_day(50_000, seed=7)
    assert len(day.rows) + len(day.late) == 50_000 and 0 < day.late_rows <= len(day.late)
    times = day.rows["ts"].cast("int64").to_numpy()
    newest = np.maximum.accumulate(times)
    assert (times >= newest - 5_000_000).all() and day.watermark == newest[-1] - 5_000_000

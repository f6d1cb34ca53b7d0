"""The other benchmarks on Spark: their rows, their ratios, what they say when something is missing; slow: that they run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

import skyband as sb
from benchmarks.spark import feeder, flink, queries, spread
from benchmarks.spark.case import Case, Outcome, in_child, outcome
from benchmarks.spark.case_child import _together
from benchmarks.spark.command import figures_of
from benchmarks.spark.rows import ATTRIBUTES, PARTS, Rows, asked, weights
from benchmarks.spark.settings import FILES_A_BATCH, Setting

SETTING = Setting("small", 20, 1, 5)


def test_files_shares_and_csv_hold_the_same_rows(tmp_path: Path) -> None:
    rows = Rows(1000, 100, 3)
    table = rows.table()
    files = sorted(rows.write(tmp_path / "parquet").iterdir())
    assert len(files) == 3 * FILES_A_BATCH and pa.concat_tables(map(pq.read_table, files)).equals(table)
    read = csv.ReadOptions(column_names=table.column_names)
    pieces = [csv.read_csv(file, read) for file in (*rows.write_shares(tmp_path / "shares", 2),)]
    assert (
        pa.concat_tables(pieces)
        .sort_by("id")
        .drop_columns("ts")
        .equals(table.drop_columns("ts").cast(pieces[0].drop_columns("ts").schema))
    )
    whole = pa.concat_tables(csv.read_csv(file, read) for file in sorted(rows.write(tmp_path / "csv", "csv").iterdir()))
    assert whole["ts"].cast(pa.timestamp("us", "UTC")).equals(table["ts"]) and all(
        np.diff(piece["id"]).min() > 0 for piece in pieces
    )


def test_hot_rows_are_of_one_part_and_few_weights_begin_many() -> None:
    even, hot = (np.bincount(Rows(20_000, 100, 1, share).table()["part"], minlength=PARTS) for share in (0.0, 0.9))
    assert even.max() < 2 * even.min() + 100 and 0.88 < hot[0] / hot.sum() < 0.92 and hot[1:].min() > 0
    assert weights(3) == weights(1000)[:3] and set(weights(1)[0]) == set(ATTRIBUTES)
    assert [query.name for query in asked(3, SETTING)] == ["q0", "q1", "q2"]


def test_windows_of_rows_and_of_time_hold_the_same() -> None:
    rows, found = Rows(3000, 100, 1).table(), []
    for per_second in (0, 100):
        changes = sb.Monitor(asked(2, SETTING, per_second=per_second), time="ts").push(rows)
        if per_second:  # the last second has not ended, its rows have come
            changes = changes.filter(pc.less(changes["window_end"], 3000))
        found.append(changes.select(["query", "event", "rank", "score", "id"]).to_pylist())
    assert sorted(map(str, found[0])) == sorted(map(str, found[1])) and len(found[0]) > 50


def test_streams_side_by_side_are_timed_from_the_first_begin_to_the_last_end() -> None:
    def report(second: int, ms: int) -> dict[str, Any]:
        return {"numInputRows": 100, "timestamp": f"2026-01-05T10:00:{second:02}Z", "durationMs": {"triggerExecution": ms}}

    one = [report(0, 9000), report(10, 1000), report(20, 1000), report(21, 1000)]
    other = [report(0, 9000), report(11, 1000), report(21, 1000), report(23, 2000)]
    assert _together([one, other]) == pytest.approx(200 / 5)


def test_promises_stand_at_a_thousand_queries_only() -> None:
    native, alone = Outcome(400.0, 1.0, {}), Outcome(60_000.0, 1.0, {"algorithm": "sma", "results": 9})
    rows = Rows(1000, 10_000, 1)
    rival, engine = queries._figures(1000, rows, alone, Outcome(30_000.0, 1.0, {}), native)
    assert (rival.hold, rival.measured, rival.holds) == (50, 30_000 / 2.0, True)
    assert (engine.hold, engine.measured, engine.holds) == (3, 2.0, True)
    rival, engine = queries._figures(1000, rows, alone, Outcome(19.0, 1.0, {}), Outcome(200.0, 1.0, {}))
    assert not rival.holds and not engine.holds
    assert [figure.hold for figure in queries._figures(10, rows, alone, alone, native)] == [0, 0]


def test_what_is_not_known_or_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="'speed' is not known; choose from rivals, queries, cores"):
        figures_of("speed", True, "", "rows", 1)
    with pytest.raises(SystemExit, match="whole numbers, as in 1,1000; got 'many'"):
        figures_of("queries", True, "many", "rows", 1)
    assert all(figures_of(what, True, "1,2", "time", 1) for what in ("queries", "cores", "skew", "latency", "flink"))
    with pytest.raises(RuntimeError, match=r"exit code 1: .*nobody"):
        in_child("benchmarks.spark.nobody", {}, 60)
    monkeypatch.delenv(flink.PYTHON, raising=False)
    assert "names no Python with PyFlink: python3.11 -m venv" in str(flink.unavailable())
    monkeypatch.setenv(flink.PYTHON, "/no/such/python")
    assert "does not run: No such file or directory" in str(flink.unavailable())
    monkeypatch.setenv(flink.PYTHON, sys.executable)
    assert "has no PyFlink (ModuleNotFoundError: No module named 'pyflink')" in str(flink.unavailable())


def test_the_feeder_keeps_its_pace_in_whole_files(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    assert feeder.feed(folder, 1000, 0.3) == 300
    table = pa.concat_tables(pq.read_table(file) for file in sorted(folder.iterdir()))
    assert table["id"].to_pylist() == list(range(300)) and np.diff(table["ts"].cast(pa.int64()).to_numpy()).min() > 0


# -- that they run ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_system_of_a_case_runs_and_gives_as_many_results(tmp_path: Path) -> None:
    rows = Rows(40_000, 1000, 4)
    files = rows.write(tmp_path / "rows")
    alone, spread_out = (outcome(Case(system, 3, SETTING, files, rows.count)) for system in ("embedded", "skyband"))
    assert alone.told["results"] == spread_out.told["results"] > 100 and spread_out.told["largest_state"] > 0
    for case in (Case("native", 2, SETTING, files, rows.count), Case("pass-through", 1, SETTING, files, rows.count, cores=1)):
        assert outcome(case).rows_per_second > 0


@pytest.mark.slow
def test_latency_and_skew_give_their_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    job = {"query": "time", "warm_up": 8, "seconds": 6, "rows_a_second": 2000}
    found = in_child("benchmarks.spark.latency_child", job, 300)
    assert found["taken"] == found["rows"] + 3 == 28_003
    p50, p99, count = found["spans"]
    assert 0 < p50 <= p99 and count > 0 and found["delays"][0] < p50
    monkeypatch.setattr(spread, "Rows", lambda count, per_second, batches, hot: Rows(40_000, per_second, 4, hot))
    slower, larger = spread.skew(lambda _: None, quick=True)
    assert slower.measured > 0 and larger.measured > 0
    json.dumps([slower.as_json(), larger.as_json()])


@pytest.mark.slow
@pytest.mark.skipif(flink.unavailable() is not None, reason=str(flink.unavailable()))
def test_flinks_windows_are_those_of_sorting(tmp_path: Path) -> None:
    flink.check(tmp_path / "small")

"""The Spark benchmark: the hand-written rival equals sorting, figures add up, promises are judged rightly, and every
system's windows are the same on a small stream."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.spark import check, report, runner
from benchmarks.spark.events import BEGIN, SCHEMA, Events, Window, sorted_windows
from benchmarks.spark.measure import Run, Watch, figures
from benchmarks.spark.panes import PaneMerge, reduce_to_panes
from benchmarks.spark.runner import chosen
from benchmarks.spark.settings import FILES_A_BATCH, LEAST_BATCHES, ROWS_A_FILE, SECOND, SETTINGS, Setting
from benchmarks.spark.systems import TABLE

TINY = Setting("tiny", 6, 2, 5)

# -- the hand-written rival ------------------------------------------------------------------------------------


def merged(table: pa.Table, setting: Setting, pieces: list[pa.Table]) -> pa.Table:
    """What the driver writes when micro-batches are `pieces`, each reduced in runs of 7 rows."""
    merge = PaneMerge(setting)
    written = []
    for piece in pieces:
        batches = [reduce_to_panes(batch, setting.slide, setting.k) for batch in piece.to_batches(max_chunksize=7)]
        windows = merge.push(pa.Table.from_batches(batches, schema=table.schema))
        written += [] if windows is None else [windows]
    return pa.concat_tables(written)


@given(
    scores=st.lists(st.integers(0, 30), min_size=30, max_size=120),
    gaps=st.lists(st.integers(0, 3 * SECOND), min_size=120, max_size=120),
    cuts=st.lists(st.integers(1, 119), max_size=6),
    k=st.sampled_from([1, 3, 200]),
    seed=st.integers(0, 9),
)
def test_the_driver_merge_equals_sorting_for_any_cuts_ties_and_order_in_a_batch(
    scores: list[int], gaps: list[int], cuts: list[int], k: int, seed: int
) -> None:
    count = len(scores)
    time = BEGIN + np.cumsum(gaps[:count])
    time[-1] += 100 * SECOND  # closes every window before it
    columns = [time, np.arange(count), ["X"] * count, np.ones(count), np.array(scores, dtype=float)]
    table = pa.Table.from_arrays(
        [pa.array(column).cast(field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )
    setting = Setting("drawn", 6, 2, k)
    # micro-batches begin where a slide does, so that no row is late; within one, rows come in any order
    slides = np.flatnonzero(np.diff(time // (2 * SECOND))) + 1
    edges = [0, *sorted({int(slides[cut % len(slides)]) for cut in cuts}), count]
    rng = np.random.default_rng(seed)
    pieces = [table.slice(low, high - low) for low, high in pairwise(edges)]
    found = merged(table, setting, [piece.take(rng.permutation(len(piece))) for piece in pieces])
    expected = [window for window in sorted_windows(table, setting) if len(window.ids)]
    assert found["id"].to_pylist() == [one for window in expected for one in window.ids]
    assert check.differences(found, expected, "ranked") == []


def test_the_driver_merge_counts_late_rows_and_drops_them() -> None:
    table = Events("uniform", 100, per_second=10).table()
    merge = PaneMerge(TINY)
    merge.push(table.slice(50))
    assert merge.push(table.slice(0, 5)) is None
    assert merge.late == 5


# -- the check itself ------------------------------------------------------------------------------------------


def as_rows(windows: list[Window]) -> pa.Table:
    return pa.table(
        {
            "window_end": pa.array(np.repeat([window.end for window in windows], [len(window.ids) for window in windows])).cast(
                pa.timestamp("us", tz="UTC")
            ),
            "rank": np.concatenate([np.arange(1, len(window.ids) + 1) for window in windows]),
            "id": np.concatenate([window.ids for window in windows]),
            "score": np.concatenate([window.scores for window in windows]),
        }
    )


def test_the_check_sees_a_missing_row_a_wrong_id_and_a_window_too_many() -> None:
    expected = list(sorted_windows(Events("uniform", 300, per_second=10).table(), TINY))
    right = as_rows(expected)
    assert check.differences(right, expected, "ranked") == []
    assert check.differences(right.slice(1), expected, "ranked")
    assert check.differences(right, expected[:-1], "ranked")
    ids = right["id"].to_numpy().copy()
    ids[3] += 1
    assert check.differences(right.set_column(2, "id", pa.array(ids)), expected, "ranked")


def test_a_tie_may_go_either_way_but_no_other_row_may() -> None:
    expected = Window(0, np.array([4, 3, 2]), np.array([9.0, 8.0, 8.0]), left_out=7.0)
    swapped = replace(expected, ids=np.array([4, 2, 3]))
    assert not list(check.against(expected, swapped))
    assert list(check.against(expected, replace(expected, ids=np.array([5, 3, 2]))))
    assert list(check.against(expected, replace(expected, ids=np.array([4, 3, 3]))))
    last = Window(0, np.array([4, 3]), np.array([9.0, 8.0]), left_out=8.0)
    assert not list(check.against(last, replace(last, ids=np.array([4, 1]))))
    assert list(check.against(replace(last, left_out=7.0), replace(last, ids=np.array([4, 1]))))


def test_changes_are_added_up_and_impossible_ones_are_seen() -> None:
    expected = [Window(2, np.array([1]), np.array([5.0])), Window(4, np.array([2]), np.array([6.0]))]
    rows = {"window_end": [2, 4, 4], "event": ["enter", "enter", "leave"], "id": [1, 2, 1], "score": [5.0, 6.0, 5.0]}
    table = pa.table(rows).set_column(0, "window_end", pa.array(rows["window_end"]).cast(pa.timestamp("us")))
    assert check.differences(table, expected, "changes") == []
    assert check.differences(table.slice(1), expected, "changes")  # who leaves never entered
    assert check.differences(table.slice(0, 2), expected, "changes")  # nobody left


# -- figures and promises --------------------------------------------------------------------------------------


def progress(rows: int, ms: int, state: tuple[int, int] | None = None) -> dict[str, Any]:
    operators = [] if state is None else [{"memoryUsedBytes": state[0], "numRowsTotal": state[1]}]
    return {"numInputRows": rows, "durationMs": {"triggerExecution": ms, "addBatch": ms // 2}, "stateOperators": operators}


def test_throughput_is_that_of_the_second_half_of_the_batches_with_input() -> None:
    reports = [
        progress(100, 9000),
        progress(100, 9000),
        progress(100, 500, (7, 3)),
        progress(50, 250, (8, 4)),
        progress(0, 9999),
    ]
    found = figures(reports)
    assert found["throughput"] == pytest.approx(150 / 0.75)
    assert (found["state_bytes"], found["state_rows"], found["batches"]) == (8, 4, 4)
    assert found["batch_ms"] == {"triggerExecution": 375, "addBatch": 187.5}
    assert (found["snapshot_bytes"], found["snapshot_growth"]) == (0, 0.0)
    with pytest.raises(ValueError, match="no micro-batch had any input"):
        figures([progress(0, 10)])


def test_the_state_and_its_growth_are_those_the_pipeline_observed() -> None:
    def saying(size: int) -> dict[str, Any]:
        return progress(100, 10) | {"observedMetrics": {"skyband-1": {"state bytes": size}, "other": {"state bytes": 1e9}}}

    found = figures([saying(10), saying(200), saying(300), saying(250)])
    assert (found["snapshot_bytes"], found["snapshot_growth"]) == (300, 1.5)
    run = Run("skyband", "B", "uniform", 10, 10, throughput=1.0, snapshot_bytes=300_001, snapshot_growth=1.1)
    state, growth = report.figures([run])
    assert (state.measured, state.unit, state.holds) == (300.001, "kB", False)
    assert growth.holds and not report.figures([replace(run, snapshot_growth=1.5)])[1].holds


def test_promises_are_judged_by_the_middle_run_and_against_the_best_rival() -> None:
    def run(system: str, throughput: float, setting: str = "C", **more: Any) -> Run:
        return Run(system, setting, "uniform", 10, 10, throughput=throughput, process_seconds=1.0, peak_bytes=1, **more)

    rivals = [run("driver-merge", 50.0), run("two-stage", 70.0), run("sliding", 10.0)]
    ours = [run("skyband", speed) for speed in (1000.0, 69.0, 1.0)]
    found = {(figure.yardstick, figure.unit): figure for figure in report.figures([*rivals, *ours])}
    best = found["two-stage", report.UNITS["throughput"]]
    assert best.measured == pytest.approx(69 / 70) and not best.holds
    assert found["driver-merge", report.UNITS["wall"]].holds
    assert (
        report.figures([*rivals[:2], Run("sliding", "C", "uniform", 10, 10, failure="too slow"), ours[0]])[0].unit
        == "× its wall time"
    )
    changes = [run("skyband-changes", 80.0, "A"), run("pass-through", 100.0, "A")]
    time, memory = report.figures(changes)
    assert time.measured == pytest.approx(1.25) and time.holds and memory.measured == 1 and memory.holds


def test_tables_and_picture_show_failures_and_shortened_runs(tmp_path: Path) -> None:
    runs = [
        Run("skyband", "A", "uniform", 1000, 100, throughput=5.0, state_rows=2, state_bytes=1, peak_bytes=1),
        Run("sliding", "A", "uniform", 500, 50, throughput=1.0),
        Run("two-stage", "A", "uniform", 1000, 100, failure="not done after 1 s"),
    ]
    table = report.runs_table(runs, 1000)
    assert list(table.columns[3].cells) == ["1,000", "500*", "1,000"]
    assert "not done after 1 s" in list(table.columns[4].cells)[2]
    assert report.picture(runs, tmp_path / "spark.png").stat().st_size > 10_000


def test_every_promise_names_systems_and_settings_there_are() -> None:
    for promise in report.PROMISES:
        assert {promise.ours, *promise.beside} <= set(TABLE) and promise.setting in SETTINGS and promise.of in report.UNITS
    assert set(report.COLOURS) == set(TABLE)


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    assert chosen(" B ,A", list(SETTINGS), "the setting") == ["B", "A"] and chosen("", ["x"], "it") == ["x"]
    with pytest.raises(SystemExit, match="'D' is not known; choose from A, B, C"):
        chosen("A,D", list(SETTINGS), "the setting")


def test_kernels_are_compiled_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The process that ran first had to compile: its run took sixteen seconds of the processor more than the others."""
    happened: list[str] = []
    monkeypatch.setattr(runner, "warm", lambda queries: happened.extend(query.emit for query in queries))
    monkeypatch.setattr(runner, "run", lambda system, *_, **__: happened.append(system))
    list(runner.measurements(["skyband", "read"], ["A"], ["uniform"], 1000, 1, tmp_path, lambda *_: None))
    assert happened == ["snapshots", "changes", "skyband", "read"]


def test_few_events_come_in_smaller_files_and_scores_do_not_depend_on_how_many() -> None:
    assert Events.shortened("uniform", 5_000_000).rows_a_file == ROWS_A_FILE
    assert Events.shortened("uniform", 16_000).rows_a_file * FILES_A_BATCH * LEAST_BATCHES == 16_000
    long, short = (Events("uniform", count).table()["score"].to_pylist() for count in (500, 100))
    assert long[:100] == short and len(set(long)) == 500


def test_the_watch_sees_the_memory_and_the_time_of_a_grandchild() -> None:
    inner = "import sys; x = b'1' * 60_000_000; sum(range(10**6)); print('ready', flush=True); sys.stdin.read()"
    outer = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {inner!r}]))"
    child = subprocess.Popen([sys.executable, "-c", outer], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdin is not None
    assert child.stdout.readline() == "ready\n"
    watch = Watch(child.pid)
    watch.look()
    child.stdin.close()
    assert child.wait() == 0
    assert watch.peak > 60_000_000 and watch.peak_jvm == 0 and watch.cpu_seconds > 0 and len(watch.ticks) == 2


# -- with Spark ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scores", ["uniform", pytest.param("sine", marks=pytest.mark.slow)])
def test_every_system_gives_the_windows_that_sorting_gives(spark: Any, tmp_path: Path, scores: str) -> None:
    told: dict[str, list[str]] = {}
    check.check(spark, TABLE.values(), [TINY], [check.small(scores, 1000, batches=3)], tmp_path, told.__setitem__)
    assert len(told) == sum(bool(system.windows) for system in TABLE.values()) == 7
    assert told == {what: [] for what in told}


def test_a_run_that_fails_says_why() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "benchmarks.spark.child", json.dumps({"system": "nobody"})]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 1 and "nobody" in result.stderr

"""What may be pushed and what comes back: every kind of batch, column names, timestamps, and nothing at all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import skyband as sb
from test_stories import best

# --- what may be pushed -----------------------------------------------------------------------------------

ROWS = {"x": [2.5, 1.0, 4.0], "n": [1, 2, 3], "tag": ["é", "b", ""]}
BATCHES: dict[str, Callable[[], Any]] = {
    "dict of lists": lambda: ROWS,
    "dict of arrays": lambda: {"x": np.array(ROWS["x"]), "n": np.array(ROWS["n"]), "tag": pa.array(ROWS["tag"])},
    "table": lambda: pa.table(ROWS),
    "table in chunks": lambda: pa.concat_tables([pa.table(ROWS).slice(0, 1), pa.table(ROWS).slice(1)]),
    "record batch": lambda: pa.record_batch(ROWS),
    "sliced": lambda: pa.table({name: [values[0], *values] for name, values in ROWS.items()}).slice(1),
    "pandas": lambda: pd.DataFrame(ROWS),
    "pandas with a gap in its index": lambda: pd.DataFrame({k: [v[0], *v] for k, v in ROWS.items()}).iloc[1:],
    "polars": lambda: pl.DataFrame(ROWS),
}


@pytest.mark.parametrize("kind", BATCHES)
def test_batches_of_every_kind_mean_the_same(kind: str) -> None:
    monitor = sb.Monitor([best(2, sb.CountWindow(3, slide=3), score="x * n")])
    result = monitor.push(BATCHES[kind]())
    assert result.to_pylist() == [
        {"query": "best", "window_end": 3, "event": "enter", "rank": 1, "score": 12.0, "seq": 2, "x": 4.0, "n": 3, "tag": ""},
        {"query": "best", "window_end": 3, "event": "enter", "rank": 2, "score": 2.5, "seq": 0, "x": 2.5, "n": 1, "tag": "é"},
    ]
    assert monitor.top("best").column_names == ["rank", "score", "seq", "x", "n", "tag"]
    assert monitor.top("best").to_pylist() == result.drop_columns(["query", "window_end", "event"]).to_pylist()


def test_result_types() -> None:
    result = sb.Monitor([best(2, sb.CountWindow(3))]).push(ROWS)
    types = {field.name: field.type for field in result.schema}
    assert types["window_end"] == types["rank"] == types["seq"] == pa.int64() and types["score"] == pa.float64()
    assert types["query"] == types["event"] == types["tag"] == pa.string()


def test_row_columns_called_like_result_columns() -> None:
    names = ["query", "window_end", "event", "rank", "score", "seq"]
    monitor = sb.Monitor([best(1, sb.CountWindow(2), score="score + rank", where="seq > 0")])
    result = monitor.push({name: [float(at), 10.0 + at] for at, name in enumerate(names)})
    assert result.column_names == [*names, *(f"row_{name}" for name in names)]
    assert result.to_pylist()[0] == {
        "query": "best", "window_end": 1, "event": "enter", "rank": 1, "score": 7.0, "seq": 0,
        "row_query": 0.0, "row_window_end": 1.0, "row_event": 2.0, "row_rank": 3.0, "row_score": 4.0, "row_seq": 5.0,
    }  # fmt: skip
    top = monitor.top("best").to_pylist()[0]
    assert (top["rank"], top["score"], top["seq"]) == (1, 27.0, 1)
    assert (top["row_rank"], top["row_score"], top["row_seq"]) == (13.0, 14.0, 15.0)


def test_row_columns_called_like_renamed_result_columns() -> None:
    monitor = sb.Monitor([best(1, sb.CountWindow(2))])
    result = monitor.push({"x": [1.0], "score": [2.0], "row_score": [3.0]})
    assert len(set(result.column_names)) == len(result.column_names)
    row = result.to_pylist()[0]
    assert (row["score"], row["x"], row["row_score"]) == (1.0, 1.0, 3.0)
    assert 2.0 in row.values()


# --- timestamps ----------------------------------------------------------------------------------------------

START = datetime(2024, 3, 31, 0, 59, 58, tzinfo=UTC)  # two seconds before Berlin's clocks go forward
SECOND = timedelta(seconds=1)


def test_row_columns_called_like_columns_of_pairs() -> None:
    """`a_x` is the older row's `x` where there are pairs, and a column of texts here: results of both stand apart."""
    three = sb.CountWindow(3)
    rows = sb.TopK(name="rows", k=1, score="x", window=three)
    pairs = sb.TopKPairs(name="pairs", k=1, score="abs(a.x - b.x)", window=three)
    objects = sb.TopKAcross(name="objects", k=1, key="a_seq", stream="s", streams=["s"], value="x", window=three)
    monitor = sb.Monitor([rows, pairs, objects])
    results = monitor.push({"x": [1.0, 2.0, 4.0], "a_x": ["p", "q", "r"], "a_seq": ["k", "l", "k"], "s": ["s"] * 3}).to_pylist()
    first = {row["query"]: row for row in reversed(results) if row["event"] == "enter"}
    assert (first["rows"]["row_a_x"], first["rows"]["row_a_seq"], first["rows"]["a_x"]) == ("p", "k", None)
    assert (first["pairs"]["a_seq"], first["pairs"]["a_x"], first["pairs"]["a_a_x"]) == (0, 1.0, "p")
    assert (first["objects"]["row_a_seq"], first["objects"]["a_seq"]) == ("k", None)
    assert monitor.top("rows").select(["a_x", "a_seq"]).to_pylist() == [{"a_x": "r", "a_seq": "k"}]  # rows alone


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "America/St_Johns"])
def test_timestamps_keep_their_type_and_zone(unit: str, zone: str | None) -> None:
    column = pa.timestamp(unit, zone)

    def at(seconds: int) -> datetime:
        moment = START + seconds * SECOND
        return moment.replace(tzinfo=None) if zone is None else moment.astimezone(ZoneInfo(zone))

    monitor = sb.Monitor([best(1, sb.TimeWindow("4 seconds", slide=2 * SECOND))], time="ts", lateness="1 second")
    batch = pa.table({"ts": pa.array([at(0), at(1), at(5)], column), "x": [1.0, 2.0, 0.0]})
    result = monitor.push(batch)
    assert result.schema.field("window_end").type == column and result.schema.field("ts").type == column
    assert [(row["window_end"], row["event"], row["x"]) for row in result.to_pylist()] == [(at(2), "enter", 2.0)]
    result = monitor.advance(at(6))
    assert [(row["window_end"], row["event"], row["ts"]) for row in result.to_pylist()] == [
        (at(6), "leave", at(1)),
        (at(6), "enter", at(5)),
    ]
    assert monitor.top("best").column("ts").to_pylist() == [at(5)]
    assert monitor.flush().column("window_end").to_pylist() == [at(10)]


def test_columns_stand_in_one_order_whatever_the_result_rows_are_about() -> None:
    """The key of objects is a column of rows too, and stands elsewhere among these."""
    rows = best(1, sb.CountWindow(1), name="rows", where="rows > 0")
    objects: dict[str, Any] = {"key": "who", "stream": "where", "value": "x", "streams": ["here", "there"]}
    across = sb.TopKAcross(name="objects", k=1, window=sb.CountWindow(4, 4), **objects)
    for queries in ([across, rows], [rows, across]):
        monitor = sb.Monitor(queries)
        batch = {"x": [1.0], "where": ["here"], "who": ["a"]}
        schemas = [monitor.push({**batch, "rows": [said]}).schema for said in (0, 1, 1, 0, 1)]
        assert schemas == [schemas[0]] * 5


def test_durations_in_every_spelling_mean_the_same() -> None:
    ts = pa.array([START + number * SECOND for number in (0, 30, 61, 95, 200)], pa.timestamp("ms", "UTC"))
    batch = pa.table({"ts": ts, "x": [1.0, 3.0, 2.0, 5.0, 0.0]})
    spellings = [("1 minute", "30 seconds"), ("60 s", "0.5 min"), (60 * SECOND, "30000 ms"), ("1m", 30 * SECOND)]
    results = []
    for size, slide in spellings:
        monitor = sb.Monitor([best(1, sb.TimeWindow(size, slide=slide))], time="ts")
        results.append([monitor.push(batch), monitor.flush()])
    assert all(result == results[0] for result in results) and results[0][0].num_rows > 0


def test_durations_of_pandas_count_nanoseconds(tmp_path: Path) -> None:
    window = sb.TimeWindow(pd.Timedelta(1500, "ns"), slide=pd.Timedelta(750, "ns"))
    assert window == sb.TimeWindow("1500 ns", slide="750 ns")
    monitor = sb.Monitor([best(1, window)], time="ts", lateness=pd.Timedelta(1, "us") + pd.Timedelta(1, "ns"))
    monitor.save(tmp_path / "state")
    again = sb.Monitor.load(tmp_path / "state")
    for each in (monitor, again):
        each.push(pa.table({"ts": pa.array([2300, 1200], pa.timestamp("ns")), "x": [1.0, 2.0]}))
        assert each.watermark.value == 1299
        assert each.stats("best")["late"] == 0


def test_a_long_lateness_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    monitor = sb.Monitor(best(1, sb.TimeWindow("1 us", "1 us")), time="ts", lateness=timedelta(days=300_000, microseconds=1))
    monitor.save(tmp_path / "state")
    again = sb.Monitor.load(tmp_path / "state")
    for each in (monitor, again):
        each.push({"ts": [datetime(3000, 1, 1)], "x": [1.0]})
    assert monitor.watermark == again.watermark


def test_durations_may_be_numbers_of_numpy() -> None:
    assert sb.TimeWindow(np.int64(10), slide=np.uint8(5)) == sb.TimeWindow(10, slide=5)
    monitor = sb.Monitor([best(1, sb.TimeWindow(np.int32(10), slide=5))], time="ts", lateness=np.int64(3))
    assert monitor.push({"ts": [4, 8], "x": [1.0, 2.0]})["window_end"].to_pylist() == [5]


NANOSECONDS = """
import sys
class NotInstalled:
    def find_spec(self, name, path, target=None):
        if name == "pandas":
            raise ImportError(name)
sys.meta_path.insert(0, NotInstalled())
import numpy as np, pyarrow as pa, skyband as sb
def monitor():
    return sb.Monitor([sb.TopK(name="q", k=1, score="x", window=sb.TimeWindow("10 ns", slide="5 ns"))], time="t")
def batch(*times):
    return pa.table({"t": pa.array(times, pa.timestamp("ns", "UTC")), "x": [1.0] * len(times)})
one, early = monitor(), monitor()
one.push(batch(7, 1003))
assert one.watermark == np.datetime64(1003, "ns"), one.watermark
assert one.advance(pa.scalar(1011, pa.timestamp("ns", "UTC"))).num_rows
assert one.watermark == np.datetime64(1011, "ns")
one.advance(np.datetime64(2000, "ns"))
assert one.watermark.microsecond == 2 and str(one.watermark.tzinfo) == "UTC"
early.advance(pa.scalar(2007, pa.timestamp("ns")))
early.save(sys.argv[1])
early = sb.Monitor.load(sys.argv[1])
early.push(batch(2001))
assert (early.watermark, early.stats("q")["late"]) == (np.datetime64(2007, "ns"), 1), early.watermark
print("read")
"""


def test_nanoseconds_need_no_pandas(tmp_path: Path) -> None:
    command = [sys.executable, "-c", NANOSECONDS, tmp_path / "state"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("read\n", "")


def test_nanoseconds_of_pandas() -> None:
    monitor = sb.Monitor([best(1, sb.TimeWindow("10 ns", slide="5 ns"))], time="t")
    monitor.push({"t": pa.array([1003], pa.timestamp("ns")), "x": [1.0]})
    assert monitor.watermark == pd.Timestamp(1003, unit="ns")
    monitor.advance(pd.Timestamp(1011, unit="ns"))
    assert monitor.watermark == pd.Timestamp(1011, unit="ns")


# --- nothing at all ------------------------------------------------------------------------------------------


def test_empty_batches_change_nothing() -> None:
    schema = pa.schema([("t", pa.int64()), ("x", pa.float64()), ("tag", pa.string())])
    monitor = sb.Monitor([best(1, sb.CountWindow(2, slide=2), name="rows"), best(1, sb.TimeWindow(5, slide=5))], time="t")
    assert monitor.push(schema.empty_table()).num_rows == 0
    monitor.push(pa.table({"t": [1], "x": [1.0], "tag": ["a"]}, schema))
    empty = monitor.push(schema.empty_table())
    full = monitor.push(pa.table({"t": [7], "x": [2.0], "tag": ["b"]}, schema))
    assert (empty.num_rows, full.num_rows) == (0, 2)
    assert empty.schema == full.schema == monitor.flush().schema
    assert monitor.push(pa.RecordBatch.from_pylist([], schema)).num_rows == 0


def test_an_empty_batch_may_know_the_type_of_a_column_of_nulls() -> None:
    """As one with rows may."""
    monitor = sb.Monitor([best(1, sb.CountWindow(2))])
    monitor.push({"x": [1.0], "tag": pa.nulls(1)})
    assert monitor.push({"x": pa.array([], pa.float64()), "tag": pa.array([], pa.string())}).num_rows == 0
    monitor.push({"x": [2.0], "tag": [7]})
    assert monitor.top("best").column("tag").to_pylist() == [7]


def test_a_monitor_without_rows_or_queries() -> None:
    silent = sb.Monitor([])
    assert silent.push({}).num_rows == 0
    assert silent.push({"x": [1.0, 2.0]}).num_rows == 0
    assert silent.flush().num_rows == 0
    silent.add(best(1, sb.CountWindow(5)))
    assert silent.top("best").num_rows == 0
    assert silent.push({"x": [0.5]}).column("seq").to_pylist() == [2]
    waiting = sb.Monitor([best(1, sb.TimeWindow(5, slide=5))], time="t")
    assert waiting.top("best").column_names[:3] == ["rank", "score", "seq"]
    assert waiting.flush().num_rows == waiting.advance(3).num_rows == 0
    assert waiting.stats("best")["late"] == 0


def test_a_score_without_columns_of_its_own() -> None:
    """Every row scores the same: the newest rank."""
    monitor = sb.Monitor([best(2, sb.CountWindow(3), score="1")])
    monitor.push({"other": [7, 8, 9]})
    assert monitor.top("best").column("other").to_pylist() == [9, 8]


def test_k_above_the_window() -> None:
    monitor = sb.Monitor([best(100, sb.CountWindow(3, slide=3))])
    monitor.push({"x": [1.0, 3.0, 2.0, 0.0]})
    assert monitor.top("best").column("x").to_pylist() == [3.0, 2.0, 1.0]

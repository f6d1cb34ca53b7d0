"""Edges where state could be lost, grow or be read wrongly."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb

LAST_TEN = sb.CountWindow(10)


def by_x(columns: Mapping[str, Any]) -> Any:
    return columns["x"]


def against_x(columns: Mapping[str, Any]) -> Any:
    return -columns["x"]


def query(name: str = "q", **changes: Any) -> sb.TopK:
    return sb.TopK(**({"name": name, "k": 1, "score": "x", "window": LAST_TEN} | changes))


def test_a_cancelled_query_leaves_its_function_behind(tmp_path: Path) -> None:
    """`b` shared a lane with `a`, was cancelled and asked anew with another function: `a` keeps its own."""
    monitor = sb.Monitor([query("a", score=by_x), query("b", score=by_x)])
    monitor.push({"x": [1.0]})
    monitor.cancel("b")
    monitor.save(tmp_path / "without b")
    monitor.add(query("b", score=against_x))
    monitor.push({"x": [2.0]})
    monitor.save(tmp_path / "with another b")

    alone = sb.Monitor.load(tmp_path / "without b", callables={"a": by_x})
    both = sb.Monitor.load(tmp_path / "with another b", callables={"a": by_x, "b": against_x})
    for loaded in (alone, both):
        loaded.push({"x": [5.0]})
        assert loaded.top("a")["x"].to_pylist() == [5.0]
    assert both.top("b")["x"].to_pylist() == [2.0]


def test_a_refused_batch_does_not_lose_time_that_moved_before_it() -> None:
    monitor = sb.Monitor([query(window=sb.TimeWindow(10, 10))], time="t")
    monitor.advance(100)
    with pytest.raises(sb.SchemaError):
        monitor.push({"t": [5], "y": [1.0]})
    monitor.push({"t": [5], "x": [1.0]})
    assert (monitor.watermark, monitor.stats("q")["late"]) == (100, 1)


@pytest.mark.parametrize(
    "impossible",
    [
        lambda: query("big", k=10**13, window=sb.TimeWindow(5, 5)),
        lambda: query("big", k=2**70, window=sb.TimeWindow(5, 5)),
        lambda: query("big", window=sb.CountWindow(2**63)),
    ],
)
def test_a_query_too_big_for_memory_harms_no_other(impossible: Callable[[], sb.TopK]) -> None:
    monitor = sb.Monitor([query()], time="t")
    monitor.push({"t": [1], "x": [1.0]})
    with pytest.raises(sb.QueryError):
        monitor.add(impossible())
        monitor.push({"t": [2], "x": [9.0]})
    if "big" in monitor.queries:
        monitor.cancel("big")
    monitor.push({"t": [2], "x": [2.0]})
    assert monitor.top("q")["x"].to_pylist() == [2.0]


@pytest.mark.parametrize("many", [1, 16], ids=["one query", "a crowd"])
def test_k_far_above_the_window_costs_what_the_window_does(many: int) -> None:
    monitor = sb.Monitor([query(f"q{i}", k=10**12, score=sb.linear({"x": i + 1.0})) for i in range(many)])
    monitor.push({"x": [1.0, 2.0]})
    assert all(monitor.top(name)["x"].to_pylist() == [2.0, 1.0] for name in monitor.queries)


def test_lateness_is_never_negative() -> None:
    with pytest.raises(sb.QueryError, match="negative"):
        sb.Monitor([], time="t", lateness=dt.timedelta(seconds=-10))


def test_a_window_end_that_its_type_cannot_hold_is_refused() -> None:
    monitor = sb.Monitor([query(window=sb.TimeWindow(20, 10))], time="t")
    with pytest.raises(sb.SchemaError, match="int8"):
        monitor.push({"t": pa.array([120], pa.int8()), "x": [1.0]})
    assert monitor.push({"t": pa.array([60], pa.int8()), "x": [1.0]}).num_rows == 0
    assert monitor.flush().schema.field("window_end").type == pa.int8()


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int32(), pa.int64()], ids=str)
def test_a_watermark_that_its_type_cannot_hold_can_be_read(kind: pa.DataType, tmp_path: Path) -> None:
    """It lies behind the rows, or far ahead of them."""
    monitor = sb.Monitor([query(window=sb.TimeWindow(10, slide=5))], time="t", lateness=300)
    monitor.push({"t": pa.array([3], kind), "x": [1.0]})
    assert monitor.watermark == -297
    monitor.advance(1 << 50)
    assert monitor.watermark == 1 << 50
    monitor.save(tmp_path / "state")
    assert sb.Monitor.load(tmp_path / "state").watermark == 1 << 50


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_a_watermark_that_no_datetime_can_say_can_be_read(zone: str | None) -> None:
    far = pa.array([10**15]).cast(pa.timestamp("s", zone))
    monitor = sb.Monitor([query(window=sb.TimeWindow("10 s", slide="5 s"))], time="t")
    monitor.push({"t": far, "x": [1.0]})
    assert monitor.watermark == np.datetime64(10**15, "s")


def test_nanoseconds_reach_far_enough() -> None:
    monitor = sb.Monitor([query(window=sb.TimeWindow("1 hour", "1 hour"))], time="t")
    monitor.push({"t": np.array(["2100-01-01", "1800-01-01"], "datetime64[ns]"), "x": [1.0, 2.0]})
    assert monitor.stats("q")["late"] == 1
    with pytest.raises(sb.SchemaError, match="epoch"):
        monitor.advance(np.datetime64("2262-04-11T23:47:16", "ns"))


OVER_TIME = [
    row["name"]
    for row in sb.algorithms().to_pylist()
    if row["family"] == "ranked" and row["exact"] and "time" in row["windows"]
]


@pytest.mark.parametrize("algorithm", OVER_TIME)
def test_times_far_from_the_epoch_mean_what_others_do(algorithm: str) -> None:
    """Windows are numbered from the epoch on: with slides of one, these numbers are as large as the times."""
    times, scores = np.arange(12) * 5 % 9 + np.arange(12) * 2, np.arange(12) * 7 % 5 * 1.0
    found = []
    for begin in (0, -(2**63 - 2**61), 2**63 - 2**61 - 100):
        asked = query(k=2, window=sb.TimeWindow(4, 1), emit="snapshots", algorithm=algorithm)
        monitor = sb.Monitor([asked], time="t", lateness=9)
        parts = [slice(0, 7), slice(7, 12)]
        told = pa.concat_tables([monitor.push({"t": begin + times[part], "x": scores[part]}) for part in parts])
        told = pa.concat_tables([told, monitor.flush()])
        ends = [end - begin for end in told["window_end"].to_pylist()]
        found.append(list(zip(ends, told["score"].to_pylist(), told["seq"].to_pylist(), strict=True)))
    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 30


@pytest.mark.parametrize("wrong", [{"x": [2**70]}, {"x": [1.0], "s": ["\ud800"]}, {"x": [object()]}])
def test_values_no_column_can_hold_are_refused(wrong: dict[str, list[Any]]) -> None:
    with pytest.raises(sb.SchemaError):
        sb.Monitor([query()]).push(wrong)


def test_a_column_said_to_have_no_nulls_may_have_some_later() -> None:
    monitor = sb.Monitor([query()])
    strict = pa.schema([pa.field("x", pa.float64(), nullable=False)])
    monitor.push(pa.table({"x": [1.0]}, schema=strict))
    monitor.push({"x": [None, 3.0]})
    assert (monitor.top("q")["x"].to_pylist(), monitor.stats("q")["nulls"]) == ([3.0], 1)


@pytest.mark.parametrize("path", ["nowhere/state", "", ".", "/"])
def test_a_state_that_cannot_be_written_says_so(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sb.StateError, match="cannot write"):
        sb.Monitor([query()]).save(path)
    assert not list(tmp_path.iterdir())


def test_of_an_open_slide_only_rows_that_can_rank_are_kept() -> None:
    """A hundred thousand rows wait for one slide to close; two of them can rank."""
    monitor = sb.Monitor([query(k=2, window=sb.TimeWindow(1000, 1000))], time="t")
    scores = np.random.default_rng(5).permutation(100_000).astype(float)
    for part in np.split(scores, 50):
        monitor.push({"t": np.full(len(part), 7), "x": part})
    assert monitor._store.count < 50_000
    assert monitor.flush()["x"].to_pylist()[:2] == [99_999.0, 99_998.0]


def test_scores_nobody_asks_for_any_more_are_forgotten() -> None:
    monitor = sb.Monitor([query()])
    for i in range(5):
        monitor.add(query("other", score=f"x + {i}"))
        monitor.push({"x": [1.0]})
        monitor.cancel("other")
    assert len(monitor._bound) == 1

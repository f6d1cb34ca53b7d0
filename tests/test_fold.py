"""Changes folded into the current top, whatever happens to the monitor meanwhile."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import skyband as sb
from test_stories import best

NOON = datetime(2026, 1, 5, 12)


def batch(first: int, *scores: float) -> pa.Table:
    return pa.table({"t": [NOON + timedelta(seconds=first + at) for at in range(len(scores))], "x": list(scores)})


def standing(folded: pa.Table, monitor: sb.Monitor) -> None:
    """`folded` holds what the monitor's queries answer, and nothing else."""
    rows = [(row["query"], row["seq"], row["x"]) for row in folded.to_pylist()]
    tops = {name: monitor.top(name).to_pylist() for name in monitor.queries}
    assert sorted(rows) == sorted((name, row["seq"], row["x"]) for name, top in tops.items() for row in top)


COUNT, TIME = sb.CountWindow(3), sb.TimeWindow("3 seconds", slide="1 second")


@pytest.mark.parametrize("second", [COUNT, TIME], ids=["count", "time"])
@pytest.mark.parametrize("first", [COUNT, TIME], ids=["count", "time"])
def test_queries_that_come_and_go(first: Any, second: Any) -> None:
    monitor = sb.Monitor([best(2, first, name="first")], time="t")
    folded = sb.fold(monitor.push(batch(0)))
    assert folded.num_rows == 0
    folded = sb.fold(monitor.push(batch(0, 1.0, 5.0, 2.0)), folded)
    standing(folded, monitor)
    monitor.add(best(1, second, name="second"))
    folded = sb.fold(monitor.push(batch(3)), folded)
    for at, scores in ((3, [3.0]), (4, [9.0, 1.0]), (6, [0.5, 0.25, 0.125])):
        folded = sb.fold(monitor.push(batch(at, *scores)), folded)
        standing(folded, monitor)
    monitor.cancel("first")
    folded = sb.fold(monitor.push(batch(9, 7.0, 6.0)), folded)
    assert "first" in folded.column("query").to_pylist()
    folded = sb.fold(monitor.push(batch(11, 4.0)), folded, queries=monitor.queries)
    standing(folded, monitor)


def test_ends_of_time_windows_keep_to_their_column() -> None:
    monitor = sb.Monitor([best(2, TIME, name="time")], time="t")
    folded = sb.fold(monitor.push(batch(0, 1.0, 5.0)))
    assert folded.column("window_end").to_pylist() == [NOON + timedelta(seconds=1)]
    monitor.add(best(1, COUNT, name="count"))
    folded = sb.fold(monitor.push(batch(2, 2.0)), folded)
    ends = {(row["query"], row["window_end"], row["window_end_time"]) for row in folded.to_pylist()}
    assert ends == {("count", 3, None), *(("time", None, NOON + timedelta(seconds=at)) for at in (1, 2))}


def test_ends_of_time_windows_that_are_numbers_keep_to_their_column_too() -> None:
    """Of a type of their own; int64 are like the ends of count windows."""
    monitor = sb.Monitor([best(2, sb.TimeWindow(3, 1), name="time")], time="t")
    folded = sb.fold(monitor.push({"t": pa.array([0, 1], pa.uint32()), "x": [1.0, 5.0]}))
    monitor.add(best(1, COUNT, name="count"))
    folded = sb.fold(monitor.push({"t": pa.array([2], pa.uint32()), "x": [2.0]}), folded)
    ends = {(row["query"], row["window_end"], row["window_end_time"]) for row in folded.to_pylist()}
    assert ends == {("count", 3, None), ("time", None, 1), ("time", None, 2)}


@pytest.mark.parametrize(("first", "second"), [(COUNT, TIME), (TIME, COUNT)], ids=["count, then time", "time, then count"])
def test_windows_of_one_kind_alone_may_follow_the_other(first: Any, second: Any) -> None:
    """Each kind alone is told in the same column."""
    monitor = sb.Monitor([best(2, first, name="first")], time="t")
    folded = sb.fold(monitor.push(batch(0, 1.0, 5.0, 2.0)))
    monitor.cancel("first")
    monitor.add(best(1, second, name="second"))
    for at in (3, 5, 7):
        folded = sb.fold(monitor.push(batch(at, 1.0, 2.0)), folded, queries=monitor.queries)
        standing(folded, monitor)
    assert folded.num_rows == 1


@pytest.mark.parametrize("own", [{"a_seq": [[1], [1, 2]]}, {"a_seq": [[1], [1]], "b_seq": [{"u": 1}, {"u": 2}]}])
def test_rows_may_have_columns_called_like_those_of_pairs(own: dict[str, list[Any]]) -> None:
    monitor = sb.Monitor([best(2, COUNT)])
    folded = sb.fold(monitor.push({"x": [3.0, 1.0], **own}))
    assert folded.select(["seq", *own]).to_pydict() == {"seq": [0, 1], **own}
    folded = sb.fold(monitor.push({"x": [2.0, 4.0], **own}), folded)
    assert folded.column("seq").to_pylist() == [2, 3]


def test_columns_that_were_all_null_at_first() -> None:
    monitor = sb.Monitor([best(2, COUNT)])
    folded = sb.fold(monitor.push({"x": [1.0], "tag": pa.nulls(1)}))
    folded = sb.fold(monitor.push({"x": [0.5], "tag": ["a"]}), folded)
    assert folded.column("tag").to_pylist() == [None, "a"]


def test_whole_tops_are_not_folded() -> None:
    tops = sb.Monitor([best(2, COUNT, emit="snapshots")]).push({"x": [3.0, 1.0]})
    with pytest.raises(sb.SchemaError, match="whole tops already"):
        sb.fold(tops)


def test_other_tables_are_refused_by_name() -> None:
    monitor = sb.Monitor([best(2, COUNT, name="q")])
    changes = monitor.push({"x": [3.0, 1.0]})
    with pytest.raises(sb.SchemaError, match="without the column 'query'"):
        sb.fold(monitor.top("q"))
    with pytest.raises(sb.SchemaError, match="without the column 'event'"):
        sb.fold(changes, changes.drop_columns(["event"]))
    with pytest.raises(sb.SchemaError, match="of one monitor"):
        sb.fold(changes, sb.Monitor([best(2, COUNT, score="1")]).push({"x": ["text"]}))

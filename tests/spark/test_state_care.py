"""State between micro-batches: every value says its version, an old one is refused with a remedy, and none grows for ever."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cluster import Cluster
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from states import States, Stored
from steered import Steered

import skyband as sb
import skyband.spark as sks
from skyband.errors import StateError
from skyband.spark import logged
from skyband.spark import plan as planning
from skyband.spark.control.terms import make_terms
from skyband.spark.control.travel import packed_rows
from skyband.spark.plan import Plan, make_request
from skyband.spark.progress import Figures, after
from skyband.spark.reduce import reduced
from skyband.spark.stream import Stream
from skyband.state import pack, unpack

OLDER = Path(__file__).parent / "data" / "group-format-1.bin"
"""A group's state as skyband wrote it when its format was 1, of the query below."""

SCHEMA = pa.schema([("t", pa.int64()), ("x", pa.float64()), ("g", pa.string()), ("id", pa.int64())])
QUERY = sb.TopK(name="q", k=2, score="x", window=sb.TimeWindow(20, 5))


def plan_of(*queries: Any) -> Plan:
    return make_request(SCHEMA, queries or [QUERY], "t", 0, [], None).plan


def rows(first: int, last: int) -> list[list[pa.RecordBatch]]:
    """Rows of times `first` to `last`, for one task."""
    at = np.arange(first, last)
    columns = {"c0": at, "c1": np.sin(at), "c2": ["a"] * len(at), "c3": at, "tie": at}
    return [[pa.RecordBatch.from_pydict(columns)]]


def format_of(state: bytes) -> int:
    mark, version = struct.unpack_from("<8sI", state)
    assert mark == b"SKYBAND\0"
    return int(version)


def group_state() -> tuple[States, list[pa.RecordBatch]]:
    """A stream of one query after some rows, and rows that travel next."""
    plan = plan_of()
    cluster = Cluster(plan)
    cluster.batch(rows(0, 40))
    return cluster, list(reduced(plan, rows(40, 60)[0]))


def shard_state() -> tuple[States, list[pa.RecordBatch]]:
    """One of pairs, which shards answer."""
    plan = plan_of(sb.TopKPairs(name="p", k=2, score="abs(a.x - b.x)", window=sb.TimeWindow(20, 5)))
    cluster = Cluster(plan)
    cluster.batch(rows(0, 40))
    return cluster, list(reduced(plan, rows(40, 60)[0]))


def control_state() -> tuple[States, list[pa.RecordBatch]]:
    """One whose queries come and go."""
    terms = make_terms(SCHEMA, [QUERY], Stream("t"), dated=False)
    parts = [
        [batch.append_column("bucket", pa.array([0] * len(batch), pa.int32())) for batch in rows(*span)[0]]
        for span in ((0, 40), (40, 60))
    ]
    stream = Steered(terms)
    stream.batch([parts[0]], [])
    return stream, list(packed_rows(terms, parts[1]))


KEPT = pytest.mark.parametrize("made", [group_state, shard_state, control_state])
"""Every kind of value that the state store has."""


@KEPT
def test_every_state_value_says_its_format(made: Callable[[], tuple[States, Any]]) -> None:
    stream, _ = made()
    now = format_of(pack("any", {}, {}))
    assert now > format_of(OLDER.read_bytes()) == 1
    snapshots = [stored.value[1] for stored in stream.store.values()]
    inner = 0
    for snapshot in snapshots:
        assert format_of(snapshot) == now
        _, arrays = unpack("control shard" if isinstance(stream, Steered) else "group", snapshot)
        monitors = [array.tobytes() for name, array in arrays.items() if "monitor" in name]
        assert all(format_of(state) == now for state in monitors)
        inner += len(monitors)
    assert snapshots and inner


@KEPT
@pytest.mark.parametrize(("change", "says"), [(-1, "an older one"), (7, "a newer one")])
def test_a_state_of_another_format_is_refused_with_what_to_do(
    made: Callable[[], tuple[States, list[pa.RecordBatch]]], change: int, says: str
) -> None:
    stream, parts = made()
    for key, stored in stream.store.items():
        other = bytearray(stored.value[1])
        other[8] += change
        stream.store[key] = Stored((b"another worker's", bytes(other)), stored.timeout)
    before = dict(stream.store)
    with pytest.raises(StateError, match=rf"{says} than \d+.* go on with that one, or start with a new checkpointLocation"):
        list(stream.called(parts))
    assert stream.store == before


def test_a_state_that_an_older_skyband_wrote_is_refused() -> None:
    plan = plan_of()
    cluster = Cluster(plan, store={(): Stored((b"another worker's", OLDER.read_bytes()), -1)})
    with pytest.raises(StateError, match=r"format 1, an older one than \d+.* a new checkpointLocation"):
        cluster.batch(rows(40, 60))
    assert not cluster.results


# -- a long run ------------------------------------------------------------------------------------------------

OBJECTS = sb.TopKAcross(
    name="o",
    k=3,
    key="id",
    stream="g",
    value="x",
    streams=["a", "b"],
    ranges=(0, 1),
    window=sb.TimeWindow(100, 20),
)
SEVERAL = {
    "pairs": [sb.TopKPairs(name="p", k=3, score="abs(a.x - b.x)", window=sb.TimeWindow(100, 20))],
    "objects": [OBJECTS],
    "logs": [sb.TopK(name=f"q{n}", k=3, score=f"x * {n + 1} % 1", window=sb.TimeWindow(100, 20)) for n in range(5)],
}


@pytest.mark.parametrize("kind", SEVERAL)
def test_shards_and_logs_do_not_grow_once_their_windows_are_full(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred windows' worth of rows, the keys of the objects ever new: Spark is played by lists.

    Sizes go up and down: a log grows until a snapshot takes its place, keys that left are forgotten when there are a thousand.
    The first such cycle begins before the windows are full; of the others, some at first are held against as many later on.
    """
    if kind == "logs":
        monkeypatch.setattr(planning, "MANY", 0)
        for name in ("MANY", "CROWD"):
            monkeypatch.setattr(f"skyband.spark.shards.{name}", 1)
        monkeypatch.setattr(logged, "MOST_ENTRIES", 16)
    plan = plan_of(*SEVERAL[kind])
    assert logged.is_logged(plan) == (kind == "logs")
    cluster, sizes = Cluster(plan), []
    generator = np.random.default_rng(5)
    for first in range(0, 10_000, 50):
        at = np.arange(first, first + 50)
        columns = {"c0": at, "c1": generator.random(50), "c2": np.where(at % 2, "a", "b"), "c3": at // 2, "tie": at}
        cluster.batch([[pa.RecordBatch.from_pydict(columns)]])
        stored = [one.value[1] for one in cluster.store.values()]
        stored += [value for log in cluster.logs.values() for value in log.values.values()]
        sizes.append((sum(map(len, stored)), max(map(len, stored))))
    early, late = (np.max(sizes[begin:end], axis=0) for begin, end in ((50, 125), (125, 200)))
    assert (late <= 1.1 * early).all(), f"bytes of all and of the largest: at most {early} at first, {late} in the second half"


BATCHES, SECONDS_A_BATCH, PER_SECOND = 120, 5, 400
ASKED = [
    sb.TopK(name="best", k=20, score="price", window=sb.TimeWindow("20 seconds", "1 second")),
    sb.TopK(name="whole", k=5, score="price * (1 + id % 3)", window=sb.TimeWindow("15 seconds", "5 seconds"), emit="snapshots"),
    sb.Threshold(name="high", above=0.99, score="price", window=sb.TimeWindow("20 seconds", "5 seconds")),
    sb.TopK(name="last", k=10, score="-price", window=sb.CountWindow(500, 50)),
]


@pytest.mark.slow
def test_over_a_long_run_no_state_grows_once_its_windows_are_full(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    generator = np.random.default_rng(3)
    each = SECONDS_A_BATCH * PER_SECOND
    for number in range(BATCHES):
        at = np.arange(number * each, (number + 1) * each)
        table = pa.table(
            {
                "ts": pa.array(1_700_000_000_000_000 + at * (1_000_000 // PER_SECOND)).cast(pa.timestamp("us", "UTC")),
                "id": at,
                "venue": np.array(["north", "south", "west"])[generator.integers(0, 3, each)],
                "price": generator.random(each),
            }
        )
        path = source / f"{number:04}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_600_000_000 + number,) * 2)
    stream = spark.readStream.schema("ts timestamp, id long, venue string, price double").option("maxFilesPerTrigger", 1)
    results = sks.monitor(stream.parquet(str(source)), ASKED, time="ts", group_by=["venue"], arrival="id")
    kept = spark.conf.get("spark.sql.streaming.numRecentProgressUpdates")
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000")
    try:
        query = results.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "state"))
        running = query.trigger(availableNow=True).start()
        running.awaitTermination()
        reports: list[Any] = [report for report in running.recentProgress if report.numInputRows]
    finally:
        spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", kept)
    figures, seen = Figures(), []
    for report in reports:
        figures = after(figures, report)
        seen.append(figures)
    assert len(seen) == BATCHES and figures.rows == BATCHES * each
    assert all(one.groups == one.states == 3 for one in seen)
    full = seen[20 // SECONDS_A_BATCH + 2 :]
    early, late = full[: len(full) // 4], full[-len(full) // 2 :]
    for what in ("state_bytes", "largest_state", "candidates"):
        before, now = (max(getattr(one, what) for one in part) for part in (early, late))
        assert 0 < now <= 1.1 * before, f"{what}: at most {before} at first, {now} in the second half"
    assert max(one.largest_state for one in full) * 3 >= max(one.state_bytes for one in full)


# -- what a checkpoint was written for ---------------------------------------------------------------------------

OLD = sb.TopK(name="q", k=1, score="x", window=sb.TimeWindow(10, 10))
NEW = sb.TopK(name="other", k=2, score="x + 1", window=sb.TimeWindow(10, 10), emit="snapshots")
GROUPED = pa.schema([("t", pa.int64()), ("x", pa.float64()), ("g", pa.int64())])


def grouped_rows(*rows: tuple[int, int | None]) -> list[pa.RecordBatch]:
    """Rows of times and groups, as Catalyst hands them out."""
    time, group = ([row[at] for row in rows] for at in (0, 1))
    ones = pa.array(np.ones(len(rows)))
    columns = [pa.array(time, pa.int64()), ones, pa.array(group, pa.int64()), pa.array(np.arange(len(rows))), ones]
    return [pa.record_batch(columns, names=["c0", "c1", "c2", "tie", "s0"])]


@pytest.mark.parametrize("kind", ["time", "rows", "pairs"])
def test_other_queries_are_refused_though_no_old_group_has_rows(kind: str) -> None:
    asked: dict[str, list[Any]] = {
        "time": [OLD],
        "rows": [sb.TopK(name="q", k=1, score="x", window=sb.CountWindow(3))],
        "pairs": [sb.TopKPairs(name="q", k=1, score="a.x - b.x", window=sb.TimeWindow(10, 10))],
    }
    arrival = "t" if kind == "rows" else None
    plan = make_request(GROUPED, asked[kind], "t", 0, ["g"], arrival).plan
    other = make_request(GROUPED, [replace(asked[kind][0], name="other")], "t", 0, ["g"], arrival).plan
    cluster = Cluster(plan, True)
    cluster.batch([grouped_rows((1, 5))])
    with pytest.raises(StateError, match=r"other queries: query 'q' is gone"):
        Cluster(other, True, store=dict(cluster.store)).batch([grouped_rows((200, 6))])
    again = Cluster(plan, True, store=cluster.store, greatest=cluster.greatest)
    before = dict(cluster.store)
    again.batch([grouped_rows((200, 6))])
    nulls = next(key for key in before if key[0] is None and not any(key[1:]))
    assert again.store[nulls].value == before[nulls].value  # nothing is written to it as long as it holds no row
    again.batch([grouped_rows((201, None))])
    assert kind == "pairs" or again.store[nulls].value != before[nulls].value


def test_another_stream_with_commands_is_refused_though_no_old_group_has_rows() -> None:
    old, new = (make_terms(GROUPED, [query], Stream("t", group_by=("g",)), dated=False) for query in (OLD, NEW))

    def packets(terms: Any, time: int, bucket: int) -> list[pa.RecordBatch]:
        (batch,) = grouped_rows((time, bucket))
        return list(packed_rows(terms, [batch.append_column("bucket", pa.array([bucket], pa.int32()))]))

    cluster = Steered(old, True)
    list(cluster.called(packets(old, 1, 5)))
    with pytest.raises(StateError, match=r"another stream: query 'q' is gone"):
        list(Steered(new, True, store=dict(cluster.store)).called(packets(new, 200, 6)))


def test_other_queries_are_refused_on_spark_before_anything_is_written(spark: SparkSession, tmp_path: Path) -> None:
    progress: list[Any] = []

    def run(query: Any, name: str) -> None:
        stream = spark.readStream.schema("t long, x double, g long").parquet(str(tmp_path / "in"))
        results = sks.monitor(stream, [query], time="t", group_by=["g"])
        writer = results.writeStream.format("parquet").option("path", str(tmp_path / name))
        started = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        started.awaitTermination()
        progress.extend(started.recentProgress)

    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"t": [1, 2], "x": [1.0, 2.0], "g": [5, 7]}), tmp_path / "in" / "0.parquet")
    run(OLD, "out")
    figures = Figures()
    for report in progress:
        figures = after(figures, report)
    assert figures.groups == 2
    pq.write_table(pa.table({"t": [200, 300], "x": [1.0, 2.0], "g": [6, 6]}), tmp_path / "in" / "1.parquet")
    with pytest.raises(StreamingQueryException, match="query 'q' is gone, query 'other' is new"):
        run(NEW, "new")
    # a task of new groups may be done before the witness' refuses: its file is no result, for the sink's log does not name it
    assert not [file for file in (tmp_path / "new" / "_spark_metadata").glob("*") if file.name[0].isdigit()]

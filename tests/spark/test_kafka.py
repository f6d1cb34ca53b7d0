"""`skyband run` between topics of a real broker: equal to the embedded engine, with broken messages, kills and outages.

Where no broker can be had these tests are skipped, with the reason.
"""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import topics
import trading
from running import Run, in_files

from scripts.kafka.artifacts import Unavailable, jars
from scripts.kafka.broker import Broker

pytestmark = pytest.mark.slow

JOB = """\
checkpoint = "state"

[source]
format = "kafka"
schema = "{schema}"
options = {{ "kafka.bootstrap.servers" = "{servers}", subscribe = "{source}", startingOffsets = "earliest", {options} }}

[stream]
time = "ts"
lateness = "5 seconds"
group_by = ["venue"]
arrival = "id"

[[query]]
name = "best"
k = 3
score = "price"
window = {{ size = "10 seconds", slide = "1 second" }}
emit = "snapshots"

[[query]]
name = "least"
k = 2
score = "-price * 2"
where = "price > 0.2"
window = {{ size = "4 seconds", slide = "1 second" }}

[sink]
{sink}

[trigger]
{trigger}

[spark]
"spark.master" = "local[2]"
"spark.driver.memory" = "1g"
"spark.sql.shuffle.partitions" = 2
"spark.jars" = "{jars}"
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    try:
        jars("connector")
        running = Broker(tmp_path_factory.mktemp("broker"), *topics.free_ports()).start()
    except Unavailable as reason:
        pytest.skip(f"no Kafka broker can be had here: {reason}")
    yield running
    running.stop()


def job(folder: Path, broker: Broker, name: str, sink: str, trigger: str = "available_now = true", options: str = "") -> Path:
    """A job that reads the topic NAME-in."""
    file = folder / "job.toml"
    text = {"kafka": f'format = "kafka"\noptions = {{ "kafka.bootstrap.servers" = "{broker.servers}", topic = "{name}-out" }}'}
    text["parquet"] = 'format = "parquet"\npath = "out"'
    file.write_text(
        JOB.format(
            schema=trading.SCHEMA,
            servers=broker.servers,
            source=f"{name}-in",
            options=options or '"failOnDataLoss" = true',
            sink=text[sink],
            trigger=trigger,
            jars=",".join(map(str, jars("connector").glob("*.jar"))),
        )
    )
    return file


def written(broker: Broker, topic: str) -> list[trading.Answer]:
    """All results in a topic, repetitions included."""
    messages = [json.loads(value) for _, value in topics.read(broker.servers, topic)]
    return sorted((trading.answer(message, message["row"]) for message in messages), key=str)


def test_a_job_between_topics_equals_the_embedded_engine_and_counts_broken_messages(broker: Broker, tmp_path: Path) -> None:
    rows = trading.trades()
    values: list[bytes | None] = list(topics.as_json(rows))
    poison = [b'{"ts": "2026-01-05T08:00:', b"\x00\xff", b"[1, 2]", b'{"id": "seven", "price": 9.0}', b"", None]
    topics.write(broker.servers, "poisoned-in", [*values[:600], *poison, *values[600:]])
    with Run(job(tmp_path, broker, "poisoned", "kafka")) as run:
        assert run.ended() == 0, run.complaint()
    last = run.said[-1]
    assert last["event"] == "finished" and last["reason"] == "the source is exhausted"
    assert (
        last["rows"] == len(rows)
        and last["bad_rows"] == len(poison)
        and trading.by_query(last, "late") == {"best": 0, "least": 0}
    )
    assert re.fullmatch(r"poisoned-in, partition [01], offset 30[0-2]", last["last_bad"])
    assert trading.by_query(last, "nulls")["best"] == rows["price"].null_count > 0
    assert written(broker, "poisoned-out") == trading.embedded(rows)
    keys = {key for key, _ in topics.read(broker.servers, "poisoned-out")}
    assert keys == {b"best", b"least"}


@pytest.mark.parametrize("sink", ["parquet", "kafka"])
def test_killed_and_started_again_files_hold_each_result_once_and_topics_at_least_once(
    broker: Broker, tmp_path: Path, sink: str
) -> None:
    rows = trading.trades()
    name = f"killed-{sink}"
    topics.write(broker.servers, f"{name}-in", topics.as_json(rows))
    file = job(tmp_path, broker, name, sink, options="maxOffsetsPerTrigger = 100")
    with Run(file) as run:
        run.until(lambda: len(run.said) >= 3)
        run.killed()
    assert 0 < run.rows < len(rows)
    with Run(file) as again:
        assert again.ended() == 0, again.complaint()
    expected = trading.embedded(rows)
    if sink == "parquet":
        assert in_files(tmp_path / "out") == expected
        return
    results = written(broker, f"{name}-out")
    assert len(results) >= len(expected)
    assert sorted(set(results), key=str) == expected
    # a repeated message has the same bytes, so that a reader needs to understand nothing to leave it out
    assert len(set(topics.read(broker.servers, f"{name}-out"))) == len(expected)


def test_a_broker_that_is_killed_and_comes_back_costs_nothing(broker: Broker, tmp_path: Path) -> None:
    rows = trading.trades()
    values, expected = topics.as_json(rows), trading.embedded(rows)
    # into one partition: of two, a micro-batch may find one far ahead of the other, whose rows would be late then
    topics.write(broker.servers, "outage-in", values[:400], partitions=1)
    with Run(job(tmp_path, broker, "outage", "kafka", trigger='every = "200 ms"')) as run:
        run.until(lambda: run.rows == 400)
        broker.kill()
        time.sleep(3)  # some triggers meet a broker that is not there
        assert run.process.poll() is None
        broker.start()
        topics.write(broker.servers, "outage-in", values[400:800], partitions=1)
        run.until(lambda: run.rows > 400)  # perhaps in the middle of a micro-batch
        broker.kill()
        broker.start()
        topics.write(broker.servers, "outage-in", values[800:], partitions=1)
        run.until(lambda: run.rows == len(rows) and len(set(written(broker, "outage-out"))) >= len(expected))
        assert run.ended(signal.SIGINT) == 0, run.complaint()
    assert sorted(set(written(broker, "outage-out")), key=str) == expected
    assert run.said[-1]["reason"] == "stopped as asked" and trading.by_query(run.said[-1], "late") == {"best": 0, "least": 0}


def test_an_outage_that_lasts_ends_the_job_with_a_reason_and_it_goes_on_when_started_again(
    broker: Broker, tmp_path: Path
) -> None:
    rows = trading.trades()
    values = topics.as_json(rows)
    topics.write(broker.servers, "gone-in", values[:400])
    impatient = '"kafka.default.api.timeout.ms" = 20000, "kafka.request.timeout.ms" = 5000, "fetchOffset.numRetries" = 1'
    file = job(tmp_path, broker, "gone", "parquet", trigger='every = "200 ms"', options=impatient)
    try:
        with Run(file) as run:
            run.until(lambda: run.rows == 400)
            broker.kill()
            assert run.ended() == 2
            complaint = run.complaint().splitlines()[-1]
        assert complaint.startswith("skyband: the stream failed: ") and "imeout" in complaint
        with Run(file) as refused:
            assert refused.ended() == 2 and "no Kafka server can be reached" in refused.complaint()
    finally:
        broker.start()
    topics.write(broker.servers, "gone-in", values[400:])
    with Run(job(tmp_path, broker, "gone", "parquet")) as again:
        assert again.ended() == 0, again.complaint()
    assert in_files(tmp_path / "out") == trading.embedded(rows)

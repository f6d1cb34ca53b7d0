"""Topics written and read without Spark, to check what Spark did."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Iterator

import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition

PATIENCE = 120.0


def free_ports(count: int = 2) -> list[int]:
    """Ports that nobody uses now."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in servers]
    for server in servers:
        server.close()
    return ports


def as_json(rows: pa.Table) -> list[bytes]:
    """A JSON object a row; a null is a field that is missing."""
    texts = []
    for row in rows.to_pylist():
        row["ts"] = row["ts"].isoformat()
        texts.append(json.dumps({name: value for name, value in row.items() if value is not None}).encode())
    return texts


def write(servers: str, topic: str, values: Iterable[bytes | None], partitions: int = 2) -> None:
    """Every value acknowledged, in turn to each partition; waits while the broker is away."""
    missed: list[str] = []
    writer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "message.timeout.ms": int(PATIENCE * 1000)})
    for number, value in enumerate(values):
        writer.produce(
            topic, value, partition=number % partitions, on_delivery=lambda problem, _: problem and missed.append(str(problem))
        )
    assert writer.flush(PATIENCE) == 0 and not missed, missed


def read(servers: str, topic: str) -> Iterator[tuple[bytes | None, bytes]]:
    """Keys and values of all that the topic has now."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "check", "enable.auto.commit": False})
    try:
        known = consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
        for number in known:
            first, end = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=PATIENCE)
            consumer.assign([TopicPartition(topic, number, first)])
            while first < end:
                message = consumer.poll(PATIENCE)
                assert message is not None, f"{topic} has {end - first} messages more, but hands none out"
                assert message.error() is None, message.error()
                first = message.offset() + 1
                yield message.key(), message.value()
    finally:
        consumer.close()

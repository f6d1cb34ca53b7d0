"""Figures for other programs: counted once, over restarts; Prometheus' text; JSON lines; nothing stops a stream."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import threading
import urllib.error
import urllib.request
from collections import Counter
from math import isnan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jobs import job_file
from pyspark.sql import Row, SparkSession

import skyband as sb
import skyband.spark as sks
from skyband.spark import progress as progress_module
from skyband.spark.jobs.file import JobError
from skyband.spark.jobs.job import read_job
from skyband.spark.jobs.running import run_job
from skyband.spark.progress import Figures, after
from skyband.spark.tallies import BY_QUERY, Emitted, Told, heard, heard_together, tell
from skyband.spark.watching import latency as latency_module
from skyband.spark.watching.endpoint import Endpoint
from skyband.spark.watching.exposition import CONTENT_TYPE, Shown, sample, text
from skyband.spark.watching.latency import Latencies, Sliding
from skyband.spark.watching.metrics import MOST_ENDED, Metrics

# -- what groups tell --------------------------------------------------------------------------------------------


def test_what_groups_tell_is_added_up_by_query() -> None:
    ends = pa.array([4, 2, 9], pa.timestamp("s", "UTC"))
    parts = pa.table({"query": ["a", "b"], "end": ends.take([0, 2])}), pa.table({"query": ["a"], "end": ends.take([1])})
    north = tell({"a": (1, 2, 3, 4, 50), "b": (0, None, 5, 0, 7)}, Emitted("end").add(parts[0]).add(parts[1]))
    south = tell({"a": (1, 0, 1, 0, 8), "b": (0, None, 0, 0, 0)}, Emitted("end"))
    assert heard([north, south]) == {"a": Told(2, 2, 4, 4, 58, 2, 2_000_000), "b": Told(0, None, 5, 0, 7, 1, 9_000_000)}
    rows = pa.table({"query": ["n"], "end": pa.nulls(1, ends.type)})  # of windows that count rows
    assert heard([tell({}, Emitted("end").add(rows).add(rows))]) == {"n": Told(results=2)}
    counted = tell({"a": (0, 0, 0, 0, 0)}, Emitted(None).add(pa.table({"query": ["a", "a"]})))
    assert heard([bytearray(counted)]) == {"a": Told(nulls=0, results=2)} and heard([]) == {}
    seen = {"results pairs": 3, "oldest pairs": 7, "results a": 1, "rows": 9}
    assert heard_together({"a": Told(late=1)}, seen) == {"pairs": Told(results=3, oldest=7), "a": Told(late=1, results=1)}


@given(st.lists(st.tuples(st.integers(1, 90), st.integers(1, 5)), min_size=1, max_size=40))
def test_quantiles_are_those_of_rows(samples: list[tuple[int, int]]) -> None:
    sliding = Sliding(kept=8)
    for seconds, weight in samples:
        sliding.add(float(seconds), weight)
    rows = sorted(second for second, weight in samples[-8:] for _ in range(weight))
    found = sliding.quantiles()
    for share, value in ((50, found.p50), (99, found.p99)):
        assert value == rows[-(-len(rows) * share // 100) - 1]
    assert found.rows == sum(weight for _, weight in samples)
    assert found.seconds == sum(second * weight for second, weight in samples)


def report(batch: int, run: str = "r", id: str = "i", name: str | None = "trades", **observed: Any) -> Any:
    """A progress record, as Spark's listener is given it; without observed metrics that of an idle stream."""
    seen = {"rows": 10, "state bytes": 7, "largest state": 5, "states": 2, "tick": 0, **observed}
    return SimpleNamespace(
        batchId=batch,
        runId=run,
        id=id,
        name=name,
        timestamp="2026-01-05T10:00:00.000Z",
        durationMs={"triggerExecution": 250},
        numInputRows=10,
        processedRowsPerSecond=40.0,
        eventTime={},
        stateOperators=[],
        observedMetrics={"skyband-1": Row(*seen)(*seen.values())} if observed else {},
    )


def told(results: int, end: str | None = "2026-01-05T09:59:58Z") -> list[bytes]:
    ends = None if end is None else pa.array([np.datetime64(end.rstrip("Z"), "us")] * results, pa.timestamp("us"))
    rows = pa.table({"query": ["hot"] * results} | ({} if ends is None else {"end": ends}))
    return [tell({"hot": (1, 2, 30, 0, 900)}, Emitted(None if ends is None else "end").add(rows))]


def test_a_batch_counts_once_and_an_idle_stream_changes_nothing() -> None:
    first = after(Figures(), report(0, **{BY_QUERY: told(3)}))
    assert (first.rows, first.late, first.nulls, first.results, first.held) == (
        10,
        {"hot": 1},
        {"hot": 2},
        {"hot": 3},
        {"hot": 30},
    )
    assert after(first, report(0, **{BY_QUERY: told(3)})) is first and after(first, report(1)) is first
    second = after(first, report(1, **{BY_QUERY: told(0)}))
    assert (second.rows, second.batches, second.results, second.largest_state, second.states) == (20, 2, {"hot": 3}, 5, 2)
    queries = second.record()["queries"]
    assert (queries["hot"]["rows"], queries["hot"]["bytes"]) == (20, 900)
    assert queries["hot"]["emit_latency"] == {"p50": 0.25, "p99": 0.25}
    assert queries["hot"]["window_delay"] == {"p50": 2.25, "p99": 2.25}
    json.dumps(second.record())


def test_queries_that_come_and_go_are_counted_by_shard_and_only_where_they_do() -> None:
    figures = after(
        Figures(), report(0, **{"queries": ["0 5", "1 7"], "commands": 12, "refused commands": 2, BY_QUERY: told(1)})
    )
    figures = after(figures, report(1, **{"queries": ["1 4"], "commands": 3, "refused commands": 0, BY_QUERY: told(1)}))
    assert (figures.standing, figures.commands, figures.refused_commands) == (
        9,
        15,
        2,
    )  # a shard that is not called has not changed
    assert figures.record()["standing"] == 9
    shown = samples(text([Shown("s", figures, True), Shown("fixed", after(Figures(), report(0, **{BY_QUERY: told(1)})), True)]))
    for name, value in (("skyband_queries", 9), ("skyband_commands_total", 15), ("skyband_refused_commands_total", 2)):
        assert {labels: count for (one, labels), count in shown.items() if one == name} == {(("stream", "s"),): value}


def test_a_stream_that_starts_again_goes_on_counting_and_others_are_not_shown() -> None:
    meter = Metrics()

    def begin(run: str, id: str, name: str | None = "trades") -> None:
        meter.onQueryStarted(SimpleNamespace(runId=run, id=id, name=name))

    def end(run: str) -> None:
        meter.onQueryTerminated(SimpleNamespace(runId=run))

    def rows() -> int:
        return samples(meter.text())["skyband_rows_total", (("stream", "trades"),)]

    begin("r1", "i1")
    begin("other", "i9", "not ours")
    meter.onQueryProgress(SimpleNamespace(progress=report(0, "other", "i9", "not ours")))
    assert "not ours" not in meter.text() and not meter.streams
    for batch in range(3):
        meter.onQueryProgress(SimpleNamespace(progress=report(batch, "r1", "i1", **{BY_QUERY: told(1)})))
    end("r1")
    assert rows() == 30 and samples(meter.text())["skyband_up", (("stream", "trades"),)] == 0
    begin("r2", "i1")  # from its checkpoint: what was reported is not counted again
    meter.onQueryProgress(SimpleNamespace(progress=report(2, "r2", "i1", **{BY_QUERY: told(1)})))
    assert rows() == 30
    meter.onQueryProgress(SimpleNamespace(progress=report(3, "r2", "i1", **{BY_QUERY: told(1)})))
    assert rows() == 40 and samples(meter.text())["skyband_up", (("stream", "trades"),)] == 1
    end("r2")
    begin("r3", "i2")  # a new checkpoint under the same name: a counter must not fall
    meter.onQueryProgress(SimpleNamespace(progress=report(0, "r3", "i2", **{BY_QUERY: told(1)})))
    assert rows() == 50
    for number in range(MOST_ENDED + 5):
        begin(f"n{number}", f"n{number}", None)
        meter.onQueryProgress(SimpleNamespace(progress=report(0, f"n{number}", f"n{number}", None, **{BY_QUERY: told(1)})))
        end(f"n{number}")
    assert len(meter.streams) == MOST_ENDED + 1 and "trades" in meter.streams and "n0" not in meter.streams


# -- Prometheus --------------------------------------------------------------------------------------------------

_SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)')
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"', re.DOTALL)
_PLAIN = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def samples(document: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The samples of a text, read strictly after Prometheus' description of it: families whole, TYPE before samples."""
    assert document.endswith("\n")
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    types: dict[str, str] = {}
    family = ""
    for line in document.split("\n")[:-1]:
        if line.startswith("# HELP "):
            family = line.split(" ")[2]
            assert family not in types, f"{family} comes in two pieces"
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family and kind in ("counter", "gauge", "summary")
            types[name] = kind
        else:
            match = _SAMPLE.fullmatch(line)
            assert match is not None, line
            name = match[1]
            suffixes = ("", "_sum", "_count") if types[family] == "summary" else ("",)
            assert name in [family + suffix for suffix in suffixes]
            assert types[family] != "counter" or name.endswith("_total")
            labels = tuple(
                (key, re.sub(r'\\[\\"n]', lambda sign: _PLAIN[sign[0]], value)) for key, value in _LABEL.findall(match[2])
            )
            assert (name, labels) not in found
            found[name, labels] = float(match[3])
    return found


@given(st.text(st.characters(codec="utf-8"), max_size=20), st.floats())
def test_any_name_and_any_number_comes_back_from_the_text(name: str, value: float) -> None:
    line = sample("x", {"query": name}, value)
    head = "# HELP x y\n# TYPE x gauge\n"
    ((found, read),) = samples(f"{head}{line}\n").items()
    assert found == ("x", (("query", name),))
    assert read == value or (isnan(read) and isnan(value))


def test_the_text_has_every_figure_of_every_stream_and_query() -> None:
    latencies = Latencies()
    latencies.add('a "b"\\', 3, 0.5, None)
    figures = Figures(
        batches=2,
        rows=5,
        late={'a "b"\\': 1},
        nulls={'a "b"\\': 0},
        results={'a "b"\\': 3},
        held={'a "b"\\': 4},
        seen={'a "b"\\': 5},
        sizes={'a "b"\\': 77},
        latencies=latencies,
    )
    found = samples(text([Shown("one\ntwo", figures, True), Shown("idle", Figures(batches=1), False)]))
    labels = (("stream", "one\ntwo"), ("query", 'a "b"\\'))
    assert found["skyband_rows_total", (("stream", "one\ntwo"),)] == 5 and found["skyband_up", (("stream", "idle"),)] == 0
    assert found["skyband_late_rows_total", labels] == 1 and found["skyband_query_candidates", labels] == 4
    assert found["skyband_query_rows_total", labels] == 5 and found["skyband_query_bytes", labels] == 77
    assert found["skyband_emit_latency_seconds", (*labels, ("quantile", "0.99"))] == 0.5
    assert found["skyband_emit_latency_seconds_count", labels] == 3 and found["skyband_emit_latency_seconds_sum", labels] == 1.5
    assert not [name for name, _ in found if name.startswith(("skyband_window_delay", "skyband_watermark", "skyband_lag"))]


def fetch(url: str, method: str = "GET") -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=30) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers["Content-Type"], refused.read().decode()


def test_the_port_answers_until_it_is_closed_and_is_free_afterwards() -> None:
    endpoint = Endpoint(0, "127.0.0.1", lambda: "x 1\n")
    assert fetch(endpoint.url) == (200, CONTENT_TYPE, "x 1\n") and fetch(f"{endpoint.url}?a=b")[0] == 200
    assert fetch(endpoint.url, "HEAD") == (200, CONTENT_TYPE, "")
    assert fetch(endpoint.url.replace("/metrics", "/")) == (404, "text/plain; charset=utf-8", "the metrics are at /metrics\n")
    with socket.create_connection(("127.0.0.1", endpoint.port)) as rude:  # says nothing and holds nobody up
        assert fetch(endpoint.url)[0] == 200 and rude.fileno() >= 0
    with pytest.raises(
        sb.SkybandError, match=rf"127\.0\.0\.1:{endpoint.port}: another program listens there; choose another port"
    ):
        Endpoint(endpoint.port, "127.0.0.1", lambda: "")
    endpoint.close()
    Endpoint(endpoint.port, "127.0.0.1", lambda: "").close()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"port": 70_000}, "from 0 .* to 65535, got 70000"),
        ({"port": True}, "got True"),
        ({"port": 0, "host": "192.0.2.1"}, "give the name or address of an interface of this machine"),
        ({"path": "/no/such/folder/m.jsonl"}, "cannot be written to /no/such/folder/m.jsonl: No such file"),
        ({"path": "/"}, "cannot be written to /: Is a directory"),
    ],
)
def test_a_bad_port_or_path_is_refused_with_a_remedy(given: dict[str, Any], message: str) -> None:
    with pytest.raises(sb.SkybandError, match=message):
        Metrics(**given)


def test_a_file_that_fills_up_is_given_up_and_the_figures_go_on(caplog: pytest.LogCaptureFixture) -> None:
    meter = Metrics(path="/dev/full")
    with caplog.at_level(logging.ERROR, "skyband"):
        for batch in range(3):
            meter.onQueryProgress(SimpleNamespace(progress=report(batch, **{BY_QUERY: told(1)})))
    assert meter.streams["trades"].rows == 30
    assert [record.getMessage() for record in caplog.records] == [
        "metrics are no longer written to /dev/full: No space left on device; the stream goes on"
    ]
    meter.close()


# -- with Spark ------------------------------------------------------------------------------------------------


def test_figures_of_a_real_stream_with_poisoned_rows_over_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """Lines that are no JSON, without a time, with one that nobody can count, with a text for a price: the stream goes on."""
    source = tmp_path / "in"
    source.mkdir()
    best = sb.TopK(name='the "best"', k=2, score="price", window=sb.TimeWindow("4 seconds", "1 second"))
    lines = [json.dumps({"ts": f"2026-01-05T10:00:{n // 10:02}.{n % 10}00Z", "id": n, "price": n * 7 % 31}) for n in range(200)]
    lines[50:50] = ["{ this is no JSON", '{"id": 1}', json.dumps({"ts": "2026-01-05T10:00:05Z", "id": 2, "price": "dear"})]
    lines.insert(100, json.dumps({"ts": "9999-12-31T00:00:00Z", "id": 3, "price": 1.0}))
    lines.append(json.dumps({"ts": "2026-01-05T10:00:00Z", "id": 4, "price": 9.0}))  # late
    stream = spark.readStream.schema("ts timestamp, id long, price double").option("maxFilesPerTrigger", 1).json(str(source))
    results = sks.monitor(stream, best, time="ts")
    with sks.metrics(spark, port=0, path=tmp_path / "metrics.jsonl") as meter:
        for run in ([lines[:120]], [lines[120:-1], lines[-1:]]):
            for part in run:
                file = source / f"{len(list(source.iterdir()))}.json"
                file.write_text("\n".join(part))
                os.utime(file, (1_600_000_000 + int(file.stem),) * 2)
            writer = results.writeStream.format("parquet").queryName("poisoned").option("path", str(tmp_path / "out"))
            writer = writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True)
            writer.start().awaitTermination()
        seen = spark.read.parquet(str(tmp_path / "out")).collect()
        wait_until_ended(meter)
        assert meter.url is not None
        found = samples(fetch(meter.url)[2])
    labels = (("stream", "poisoned"), ("query", 'the "best"'))
    assert found["skyband_rows_total", labels[:1]] == len(lines)
    assert found["skyband_rows_without_time_total", labels[:1]] == 3
    assert found["skyband_late_rows_total", labels] == 1 and found["skyband_null_scores_total", labels] == 1
    assert found["skyband_result_rows_total", labels] == len(seen) > 20
    assert (
        found["skyband_emit_latency_seconds_count", labels] == found["skyband_window_delay_seconds_count", labels] == len(seen)
    )
    assert found["skyband_state_bytes", labels[:1]] == found["skyband_state_bytes_largest", labels[:1]] > 0
    records = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert all(record["stream"] == "poisoned" for record in records)
    rows = [record["rows"] for record in records]
    assert rows == sorted(rows) and rows[-1] == len(lines) and records[-1]["null_times"] == 3
    good = {"ts": [], "id": [], "price": []}
    for line in lines[:-1]:
        row = json.loads(line) if line.startswith('{"ts": "2026') else {}
        if isinstance(row.get("price"), int):
            good["ts"].append(np.datetime64(row["ts"].rstrip("Z"), "us"))
            good["id"].append(row["id"])
            good["price"].append(float(row["price"]))
    monitor = sb.Monitor([best], time="ts")
    expected = Counter((row["event"], row["window_end"], row["id"]) for row in monitor.push(good).to_pylist())
    assert Counter((row.event, row.window_end, row.row.id) for row in seen) == expected


def wait_until_ended(meter: Metrics) -> None:
    """Spark tells its listeners in a thread of its own."""
    pause = threading.Event()
    while 'skyband_up{stream="poisoned"} 0' not in meter.text():
        pause.wait(0.05)


def test_a_job_offers_its_figures_where_the_file_says(spark: SparkSession, tmp_path: Path) -> None:
    from test_job import Notes, write_source

    class Curious(Notes):
        found = ""

        def offers(self, url: str) -> None:
            self.url = url

        def moved(self, figures: Figures, boards: Any) -> None:
            super().moved(figures, boards)
            self.found = fetch(self.url)[2]

    table = write_source(tmp_path / "in")
    file = job_file(tmp_path, ("[trigger]", '[metrics]\nport = 0\npath = "m.jsonl"\n[trigger]'))
    screen = Curious()
    run_job(read_job(file), screen, threading.Event(), spark)
    assert samples(screen.found)["skyband_rows_total", (("stream", "job"),)] > 0
    records = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert records[-1]["rows"] == len(table) and set(records[-1]["queries"]) == {"best", "least"}
    with pytest.raises(urllib.error.URLError):
        fetch(screen.url)


def test_a_job_whose_port_or_file_cannot_be_had_names_the_line_before_spark_starts(tmp_path: Path) -> None:
    from test_job import Notes

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for content, line, message in (
            (f"port = {port}", 34, "another program listens there"),
            ('path = "nowhere/m.jsonl"', 34, "No such file or directory; give a file in a folder that exists"),
        ):
            job = read_job(job_file(tmp_path, ("[trigger]", f"[metrics]\n{content}\n[trigger]")))
            with pytest.raises(JobError, match=rf"line {line}: .*{message}"):
                run_job(job, Notes(), threading.Event())
    for content, line, message in (
        ("port = 65536", 34, "port must be a number from 0"),
        ('host = "localhost"', 33, "needs a port, a path or both"),
        ("prot = 9400", 34, "did you mean 'port'?"),
        ("port = 1\nprot = 9400", 35, "did you mean 'port'?"),
        ('path = "s3://bucket/m"', 34, "must be a file of this machine, not of s3"),
    ):
        with pytest.raises(JobError) as refused:
            read_job(job_file(tmp_path, ("[trigger]", f"[metrics]\n{content}\n[trigger]")))
        assert f"line {line}: " in str(refused.value) and message in str(refused.value)


def test_figures_of_queries_that_come_and_go_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "MOST_QUERIES", 3)
    monkeypatch.setattr(latency_module, "MOST_QUERIES", 3)
    before = {"old": 1, "a": 2, "b": 3}
    assert progress_module._added(before, {"a": 5, "new": 1}) == {"b": 3, "a": 7, "new": 1}
    latencies = Latencies()
    for name in ("old", "a", "b", "a", "new"):
        latencies.add(name, 1, 0.5, None)
    assert list(latencies.emit) == ["b", "a", "new"] and latencies.emit["a"].quantiles().rows == 2

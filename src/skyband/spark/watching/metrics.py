"""`metrics`: the figures of every stream of a session, at a port for Prometheus, as JSON lines in a file, or in Python.

It listens to Spark's own progress reports, so it costs a stream nothing but what those cost, and a stream never waits for it:
a file that can no longer be written is given up, with a word in the log.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from skyband.errors import SkybandError
from skyband.spark.progress import Figures, after
from skyband.spark.watching.endpoint import Endpoint
from skyband.spark.watching.exposition import Shown, text

MOST_ENDED = 64
"""Streams that have ended and are still shown; the longest ended go first."""

_log = logging.getLogger("skyband")


def metrics(
    spark: SparkSession | None = None,
    *,
    port: int | None = None,
    host: str = "127.0.0.1",
    path: str | os.PathLike[str] | None = None,
) -> Metrics:
    """Watch every `monitor` stream of a session (the active one) from now on, until `close()`.

    port    where Prometheus finds them, http://HOST:PORT/metrics; 0: any that is free, which `url` then says
    host    the interface; only this machine can ask unless another is given
    path    a file to which a JSON object is appended after every micro-batch

    A port that is taken or a file that cannot be written is refused at once (SkybandError).

    >>> import skyband.spark as sks
    >>> meter = sks.metrics(spark, port=9400)  # doctest: +SKIP
    """
    session = spark or SparkSession.getActiveSession()
    if session is None:
        raise SkybandError("there is no Spark session to watch; give one: metrics(spark), or make one first: session()")
    return Metrics(port=port, host=host, path=path).attach(session)


@dataclass
class _Stream:
    """One stream under its name, over all its runs."""

    figures: Figures = field(default_factory=Figures)
    id: str = ""  # of its checkpoint
    runs: set[str] = field(default_factory=set)  # runs that have begun and not ended


class Metrics(StreamingQueryListener):  # type: ignore[misc]
    """What `metrics` gives. A context manager; all methods may be called from any thread."""

    def __init__(self, *, port: int | None = None, host: str = "127.0.0.1", path: str | os.PathLike[str] | None = None) -> None:
        self._lock = threading.Lock()
        self._streams: dict[str, _Stream] = {}  # by name, the one that ended last at the end
        self._names: dict[str, str] = {}  # of runs that have begun and not ended
        self._session: SparkSession | None = None
        self._file = None if path is None else _opened(Path(path))
        try:
            self._endpoint = None if port is None else Endpoint(port, host, self.text)
        except SkybandError:
            if self._file is not None:
                self._file.close()
            raise

    def attach(self, spark: SparkSession) -> Metrics:
        """Begin to listen."""
        spark.streams.addListener(self)
        self._session = spark
        return self

    def close(self) -> None:
        """Listen no more; free the port, close the file."""
        if self._session is not None:
            self._session.streams.removeListener(self)
            self._session = None
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def __enter__(self) -> Metrics:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what is known -------------------------------------------------------------------------------------------

    @property
    def url(self) -> str | None:
        """Where Prometheus finds the figures; None without a port."""
        return None if self._endpoint is None else self._endpoint.url

    @property
    def streams(self) -> dict[str, Figures]:
        """The figures of every stream that has done a micro-batch, by the query's name; by its id where it has none."""
        return {shown.name: shown.figures for shown in self._shown()}

    def text(self) -> str:
        """The figures as Prometheus reads them."""
        return text(self._shown())

    def _shown(self) -> list[Shown]:
        with self._lock:
            known = [Shown(name, stream.figures, bool(stream.runs)) for name, stream in self._streams.items()]
        return [shown for shown in known if shown.figures.batches]  # without any it may be no stream of ours

    # -- what Spark says -----------------------------------------------------------------------------------------

    def onQueryStarted(self, event: Any) -> None:
        """A stream, perhaps one that ran before: its counts go on."""
        with self._lock:
            self._named(str(event.runId), str(event.id), event.name)

    def onQueryProgress(self, event: Any) -> None:
        """Count what the micro-batch did; streams of others are not kept."""
        progress = event.progress
        with self._lock:
            stream = self._named(str(progress.runId), str(progress.id), progress.name)
            before, stream.figures = stream.figures, after(stream.figures, progress)
            if stream.figures is not before:
                self._write(self._names[str(progress.runId)], stream.figures)

    def onQueryIdle(self, event: Any) -> None:
        """No rows came."""

    def onQueryTerminated(self, event: Any) -> None:
        """A stream that counted nothing was not ours, or never began; what another counted stays."""
        with self._lock:
            name = self._names.pop(str(event.runId), None)
            if name is None:
                return
            stream = self._streams.pop(name)
            stream.runs.discard(str(event.runId))
            if stream.runs or stream.figures.batches:
                self._streams[name] = stream
            ended = [name for name, stream in self._streams.items() if not stream.runs]
            for old in ended[:-MOST_ENDED]:
                del self._streams[old]

    def _named(self, run: str, id: str, name: str | None) -> _Stream:
        """The stream of a run; a new checkpoint under a known name counts batches from the beginning."""
        known = self._names.setdefault(run, name or id)
        stream = self._streams.setdefault(known, _Stream())
        stream.runs.add(run)
        if stream.id != id:
            stream.id, stream.figures = id, replace(stream.figures, batch=-1)
        return stream

    def _write(self, name: str, figures: Figures) -> None:
        if self._file is None:
            return
        record = {"stream": name, "at": datetime.now(UTC).isoformat(timespec="milliseconds"), **figures.record()}
        try:
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()
        except OSError as problem:
            _log.error("metrics are no longer written to %s: %s; the stream goes on", self._file.name, problem.strerror)
            file, self._file = self._file, None
            try:
                file.close()
            except OSError:
                return  # what could not be written before cannot be written now


def _opened(path: Path) -> TextIO:
    try:
        return path.open("a", encoding="utf-8")
    except OSError as problem:
        raise SkybandError(
            f"metrics cannot be written to {path}: {problem.strerror}; give a file in a folder that exists and may be written"
        ) from None

"""Result rows of a file sink, read back for the screen as the sink's own log names them.

The log is what makes the sink exactly-once: a file counts when it is named there, and readers of Spark go by it too.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from skyband.spark.flat import IDENTITIES
from skyband.spark.jobs.board import Board
from skyband.spark.jobs.checks import local
from skyband.spark.jobs.job import Sink

_WRITTEN_OTHERWISE = {"compression", "encoding", "charset", "linesep"}
"""Options of Spark's writer after which a file is not lines of UTF-8."""


def can_read(sink: Sink) -> bool:
    """Whether the files of a sink can be read back here."""
    return sink.format == "parquet" or (
        sink.format == "json" and not _WRITTEN_OTHERWISE & {name.lower() for name in sink.options}
    )


class Committed:
    """Follows the log from here on; what was written before is left out."""

    def __init__(self, folder: Path, kind: str, numbers: Iterable[str] = ("score",)) -> None:
        """`numbers`: columns of the results that hold numbers other than whole ones."""
        self.log, self.kind, self.numbers = folder / "_spark_metadata", kind, frozenset(numbers)
        self.next = 0
        self.known: set[str] = set()
        for _ in self._new_files():
            pass

    def show(self, board: Board) -> None:
        """Hand the rows of every micro-batch committed since the last call to the board."""
        for file in self._new_files():
            table = pq.read_table(file) if self.kind == "parquet" else _from_json(file, self.numbers)
            if len(table):
                board.take(table)

    def _new_files(self) -> Iterator[Path]:
        """Entries of log files in order; every tenth holds all before it once more."""
        while batch := next((file for end in ("", ".compact") if (file := self.log / f"{self.next}{end}").exists()), None):
            self.next += 1
            for line in batch.read_text().splitlines()[1:]:
                path = json.loads(line)["path"]
                if path not in self.known:
                    self.known.add(path)
                    if (place := local(path)) is not None:
                        yield place


def _from_json(file: Path, numbers: Collection[str]) -> pa.Table:
    """A table of what JSON has: times are texts, and a number that JSON lacks, such as Infinity, is a text too. So whom a
    result is about stays as it is written: a column of numbers and texts Arrow does not take."""
    # a line ends where Spark says, not at all that Python takes for an end, such as U+2028 within a text
    records = [json.loads(line) for line in file.read_bytes().split(b"\n") if line]
    columns: dict[str, pa.Array] = {}
    for name in dict.fromkeys(name for record in records for name in record):
        values = [record.get(name) for record in records]
        if name in IDENTITIES:
            values = [json.dumps(value) if isinstance(value, dict) else value for value in values]
        columns[name] = pa.array(map(_number, values) if name in numbers else values)
    return pa.table(columns)


def _number(value: object) -> float | None:
    """A number; an acknowledgement has no score."""
    return None if value is None else float(str(value))

"""Spark's part of a stream with commands in plain Python, after `cluster.py`; and what a `Monitor` says to the same.

The oracle knows the rules of live control in a few lines of its own: which commands hold, from when on, and which rows are
late. The answers are those of embedded monitors whose `add` and `cancel` are called at these points.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.state import GroupState
from states import States

import skyband as sb
from skyband.spark.control import steps
from skyband.spark.control.travel import packed_commands, packed_rows
from skyband.state import table_from_bytes

BEGINNING = -(1 << 63)
Rows = list[dict[str, Any]]


@dataclass
class Steered(States):
    """One streaming query with commands."""

    results: Rows = field(default_factory=list)
    figures: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    told: list[bytes] = field(default_factory=list)  # of queries, by every shard called
    kept = steps._remembered

    def batch(self, rows: list[list[pa.RecordBatch]], commands: list[list[pa.RecordBatch]]) -> None:
        """One micro-batch: what the tasks read of rows and of commands."""
        packets = [packet for task in rows for packet in packed_rows(self.plan, task)]
        packets += [packet for task in commands for packet in packed_commands(self.plan, task)]
        for frame in self.called(packets):
            for name in steps.FIGURES:
                self.figures[name] += int(frame[name].sum())
            self.told += frame["told"].dropna().tolist()
            for results in frame["results"].dropna():
                self.results += table_from_bytes(results).to_pylist()

    def key_of(self, part: pa.RecordBatch) -> tuple[int, ...]:
        return (part["shard"][0].as_py(),)

    def answer(self, key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        return steps.answer_micro_batch(self.plan, key[0], frames, state)


# -- what must come out ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Said:
    """A command, the micro-batch it came in, and the time from which it is to hold; None: that of its arrival."""

    text: str | None
    batch: int
    time: int | None = None


@dataclass
class Oracle:
    """Rules of live control over rows with t, tie, g and batch."""

    queries: list[Any]
    rows: Rows
    said: list[Said]
    lateness: int
    dated: bool
    end: int  # of time: the last watermark
    tick: int  # the watermark's step
    acknowledged: list[tuple[str, str | None]] = field(default_factory=list)
    lives: list[tuple[Any, int, int]] = field(default_factory=list)  # query, from, until

    def __post_init__(self) -> None:
        standing = {query.name: (query, BEGINNING) for query in self.queries}
        known = [(self._watermark(one.batch), one) for one in self.said]
        late = [one for mark, one in known if self.dated and (one.time is None or one.time < mark)]
        self.acknowledged += [("refused", name_of(one.text)) for one in late]
        due = [(mark if one.time is None else one.time, one) for mark, one in known if one not in late]
        batch = 0 if self.dated else 1
        for moment, one in sorted(
            due, key=lambda d: (d[0], d[1].batch * batch, "cancel" not in (d[1].text or ""), d[1].text or "")
        ):
            self._obey(standing, moment, one.text)
        self.lives += [(query, since, self.end) for query, since in standing.values()]

    def _watermark(self, batch: int) -> int:
        seen = [row["t"] for row in self.rows if row["t"] is not None and row["batch"] < batch]
        mark = (max(seen, default=0) - self.lateness) // self.tick * self.tick
        return mark if mark > 0 else BEGINNING

    def _obey(self, standing: dict[str, Any], moment: int, text: str | None) -> None:
        name = name_of(text)
        document = {} if text is None or not text.endswith("}") else json.loads(text)
        if name is None:
            self.acknowledged.append(("refused", None))
        elif "cancel" in document and name in standing:
            query, since = standing.pop(name)
            self.lives.append((query, since, moment))
            self.acknowledged.append(("cancelled", name))
        elif "add" in document and "score" in document["add"] and name not in standing:
            plain = document["add"]
            window = (
                sb.TimeWindow(*plain["window"]["time"])
                if "time" in plain["window"]
                else sb.CountWindow(*plain["window"]["count"])
            )
            score = plain["score"]["expression"]
            if score == "nowhere":
                self.acknowledged.append(("refused", name))
                return
            more = {key: value for key, value in plain.items() if key not in ("score", "window")}
            kind = sb.Threshold if "above" in plain else sb.TopK
            standing[name] = (kind(score=score, window=window, **more), moment)
            self.acknowledged.append(("added", name))
        else:
            self.acknowledged.append(("refused", name))

    def expected(self, schema: pa.Schema) -> list[str]:
        """The result rows of every group, as text."""
        found: list[str] = []
        for group in {row["g"] for row in self.rows}:
            for query, since, until in self.lives:
                found += self._life(schema, group, query, since, until)
        return sorted(found)

    def nulls(self) -> dict[str, int]:
        """By query, the rows it saw that have no score."""
        found: Counter[str] = Counter()
        for query, since, until in self.lives:
            for group in {row["g"] for row in self.rows}:
                seen = (row for row in self._rows(group, query, until) if row["t"] >= since)
                found[query.name] += sum(row["x"] is None or math.isnan(row["x"]) for row in seen)
        return {name: count for name, count in found.items() if count}

    def late(self) -> dict[str, int]:
        """By query that stood all the time, the rows that were late for it."""
        whole = [query for query, since, until in self.lives if since == BEGINNING and until == self.end]
        rows = [row for row in self.rows if row["t"] is not None]
        return {query.name: sum(self._late(row, query) for row in rows) for query in whole}

    def _rows(self, group: Any, query: Any, until: int) -> Rows:
        """Rows of a group that are in time for a query and come before it goes, in their order."""
        rows = [row for row in self.rows if row["g"] == group and row["t"] is not None and not self._late(row, query)]
        return sorted((row for row in rows if row["t"] < min(until, self.end)), key=lambda row: (row["t"], row["tie"]))

    def _life(self, schema: pa.Schema, group: Any, query: Any, since: int, until: int) -> list[str]:
        timed = isinstance(query.window, sb.TimeWindow)
        rows = self._rows(group, query, until)
        before, after = [row for row in rows if row["t"] < since], [row for row in rows if row["t"] >= since]
        if timed:  # rows before do not count, so that `add` may come first
            monitor = sb.Monitor([query], time="t")
        else:
            monitor = sb.Monitor()
            if before:
                monitor.push(as_table(before, schema))
            monitor.add(query)
        tables = [monitor.push(as_table(after, schema))] if after else []
        if timed and until > BEGINNING:
            tables.append(monitor.advance(min(until, self.end)))
        return [shown(row, group) for table in tables for row in table.to_pylist()]

    def _late(self, row: dict[str, Any], query: Any) -> bool:
        mark = self._watermark(row["batch"])
        slide = query.window.slide
        return (row["t"] // slide + 1) * slide <= mark if isinstance(query.window, sb.TimeWindow) else row["t"] < mark


def as_table(rows: Rows, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in rows], schema)


def name_of(text: str | None) -> str | None:
    """The query a command speaks of, as the tests write commands."""
    if text is None or not text.endswith("}"):
        return None
    document = json.loads(text)
    content = document.get("add", document.get("cancel"))
    return content.get("name") if isinstance(content, dict) else content if isinstance(content, str) else None


def shown(row: dict[str, Any], group: Any) -> str:
    return str((row["query"], group, row["window_end"], row["event"], row["rank"], row["score"], row["id"]))

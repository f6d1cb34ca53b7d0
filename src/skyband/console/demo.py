"""The demo: a day of generated trades, three standing questions, and a check of the last answers by sorting.

The stream is made up but not tidy: prices walk, volumes have a heavy tail, trading comes in bursts, rows arrive
slightly out of order, a few have no price and a few come too late to count. The check at the end shares nothing
with the engine: it sorts the last window of every question with NumPy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

import skyband as sb

SYMBOLS = ("ALFA", "BRVO", "CHAR", "DLTA", "ECHO", "FOXT", "GOLF", "HOTL")
VENUES = {1: "North", 2: "South", 3: "East", 4: "West"}

_OPEN = int(np.datetime64("2025-03-03T08:00:00", "ms").astype(np.int64))
_SECONDS = 8 * 3600 + 1800  # of trading, 08:00 to 16:30
_MINUTE = 60_000  # in the time column's unit, as everything below
_LATENESS = 5_000
_LONGEST_DELAY = 4_000  # of a row that is not late
_PUSHES = 200

Columns = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Question:
    """A query, and the same question once more in NumPy for the check."""

    query: sb.TopK
    title: str
    size: int  # of the window, in rows or milliseconds
    slide: int
    score: Callable[[Columns], np.ndarray]
    where: Callable[[Columns], np.ndarray] | None = None

    @property
    def by_time(self) -> bool:
        """Is the window one of time, not of rows?"""
        return isinstance(self.query.window, sb.TimeWindow)


QUESTIONS = (
    Question(
        sb.TopK(name="hot", k=10, score="price * volume", window=sb.TimeWindow("30 minutes", slide="1 minute")),
        title="biggest trades of the last 30 minutes",
        size=30 * _MINUTE,
        slide=_MINUTE,
        score=lambda rows: rows["price"] * rows["volume"],
    ),
    Question(
        sb.TopK(
            name="tight", k=5, score="10000 * (ask - bid) / price", order="asc", window=sb.CountWindow(50_000, slide=5_000)
        ),
        title="smallest spreads of 50,000 trades",
        size=50_000,
        slide=5_000,
        score=lambda rows: 10_000 * (rows["ask"] - rows["bid"]) / rows["price"],
    ),
    Question(
        sb.TopK(
            name="east", k=5, score="price * volume", where="venue == 3", window=sb.TimeWindow("10 minutes", slide="1 minute")
        ),
        title="biggest in the East, 10 minutes",
        size=10 * _MINUTE,
        slide=_MINUTE,
        score=lambda rows: rows["price"] * rows["volume"],
        where=lambda rows: rows["venue"] == 3,
    ),
)


# -- the stream ------------------------------------------------------------------------------------------------


def trades(rows: int, seed: int = 7) -> pa.Table:
    """A day of `rows` trades in the order of their arrival: ts, symbol, venue, price, volume, bid, ask."""
    random = np.random.default_rng(seed)
    bursts = _bursts(random)
    second = np.repeat(np.arange(_SECONDS), random.multinomial(rows, _activity(bursts)))
    ts = second * 1000 + random.integers(0, 1000, rows)

    symbol = random.choice(len(SYMBOLS), rows, p=np.arange(len(SYMBOLS), 0, -1) / 36)
    burst = bursts[second]
    drawn_in = (burst >= 0) & (random.random(rows) < 0.8)
    symbol[drawn_in] = burst[drawn_in]

    walk = np.exp(np.cumsum(random.normal(0, 2e-4, (_SECONDS, len(SYMBOLS))), axis=0))
    price = np.geomspace(20, 400, len(SYMBOLS))[symbol] * walk[second, symbol] * (1 + random.normal(0, 2e-4, rows))
    price = np.maximum(price.round(2), 0.01)
    volume = np.ceil(random.lognormal(4, 1.4, rows) * np.where(drawn_in, 2.5, 1)).astype(np.int64)
    half = np.maximum((price * random.lognormal(-8, 0.7, rows)).round(4), 1e-4)

    arrival = np.argsort(ts + _delays(random, rows), kind="stable")
    columns = {
        "ts": pa.array(ts + _OPEN, pa.timestamp("ms")),
        "symbol": pa.DictionaryArray.from_arrays(symbol, SYMBOLS).cast(pa.string()),
        "venue": pa.array(random.choice(list(VENUES), rows, p=[0.4, 0.3, 0.2, 0.1]).astype(np.int8)),
        "price": pa.array(price, mask=random.random(rows) < 2e-4),
        "volume": pa.array(volume),
        "bid": pa.array((price - half).round(4)),
        "ask": pa.array((price + half).round(4)),
    }
    return pa.table(columns).take(pa.array(arrival)).combine_chunks()


def _bursts(random: np.random.Generator) -> np.ndarray:
    """For every second, the symbol everybody is trading, or -1."""
    bursts = np.full(_SECONDS, -1)
    for start in random.integers(0, _SECONDS, 25):
        bursts[start : start + random.integers(20, 120)] = random.integers(len(SYMBOLS))
    return bursts


def _activity(bursts: np.ndarray) -> np.ndarray:
    """Each second's share of the day's trades: busy at open and close, quiet at noon, five times in a burst."""
    of_day = np.linspace(-1, 1, _SECONDS)
    activity = (0.5 + of_day**2) * np.where(bursts >= 0, 5.0, 1.0)
    return activity / activity.sum()


def _delays(random: np.random.Generator, rows: int) -> np.ndarray:
    """Between trade and arrival: mostly a fraction of a second, once in ten thousand minutes."""
    delay = np.minimum(random.exponential(300, rows), _LONGEST_DELAY).astype(np.int64)
    lost = random.random(rows) < 1e-4
    delay[lost] = random.integers(_MINUTE + 2 * _LATENESS, 5 * _MINUTE, int(lost.sum()))
    return delay


# -- the run ---------------------------------------------------------------------------------------------------


@dataclass
class State:
    """Where the run is: what a screen shows."""

    monitor: sb.Monitor
    total: int
    pushed: int = 0
    busy: float = 0.0  # seconds spent in push
    newest: int = _OPEN  # the greatest time seen
    entered: dict[str, set[int]] = field(default_factory=dict)  # by query: who came in at the last change

    @property
    def watermark(self) -> np.datetime64:
        """Time before which every window is closed."""
        return np.datetime64(self.newest - _LATENESS, "ms")

    @property
    def rate(self) -> float:
        """Rows a second that the engine takes."""
        return self.pushed / self.busy if self.busy else 0.0

    def stats(self, name: str) -> Mapping[str, Any]:
        """The monitor's counters of one query."""
        return self.monitor.stats(name)


@dataclass(frozen=True)
class Verdict:
    """The last answer to a question beside what sorting gives."""

    question: Question
    window_end: int
    in_window: int  # rows that were sorted
    equal: bool
    late_equal: bool


class Screen(Protocol):
    """Where a run is shown."""

    def preparing(self) -> None:
        """Kernels are being loaded, or compiled if this is their first run."""

    def moved(self, state: State, changes: pa.Table) -> None:
        """A batch was pushed and gave these changes."""

    def finished(self, state: State, verdicts: list[Verdict]) -> None:
        """The stream is over and checked."""


def run(screen: Screen, rows: int = 1_000_000, seconds: float = 0.0, seed: int = 7) -> bool:
    """Play the day in about `seconds` (0: as fast as it goes); True when the check agrees."""
    screen.preparing()
    stream = trades(rows, seed)
    _monitor().push(stream.slice(0, min(rows, 10_000)))  # so that compiling is not counted as pushing
    state = State(_monitor(), rows)
    began = time.perf_counter()
    for batch in _batches(stream):
        before = time.perf_counter()
        changes = state.monitor.push(batch)
        state.busy += time.perf_counter() - before
        state.pushed += len(batch)
        state.newest = max(state.newest, int(batch["ts"].cast(pa.int64()).to_numpy().max()))
        _note_entered(state, changes)
        screen.moved(state, changes)
        if (ahead := began + seconds * state.pushed / rows - time.perf_counter()) > 0:
            time.sleep(ahead)
    verdicts = [check(question, stream, state.monitor) for question in QUESTIONS]
    screen.finished(state, verdicts)
    return all(verdict.equal and verdict.late_equal for verdict in verdicts)


def _monitor() -> sb.Monitor:
    return sb.Monitor([question.query for question in QUESTIONS], time="ts", lateness="5 seconds")


def _batches(stream: pa.Table) -> Iterator[pa.Table]:
    length = max(len(stream) // _PUSHES, 1)
    for start in range(0, len(stream), length):
        yield stream.slice(start, length)


def _note_entered(state: State, changes: pa.Table) -> None:
    entered: dict[str, set[int]] = {}
    for name, event, seq in zip(*(changes[column].to_pylist() for column in ("query", "event", "seq")), strict=True):
        seqs = entered.setdefault(name, set())
        if event == "enter":
            seqs.add(seq)
    state.entered |= entered


# -- the check -------------------------------------------------------------------------------------------------


def check(question: Question, stream: pa.Table, monitor: sb.Monitor) -> Verdict:
    """Compare the monitor's last answer with sorting the same window, scores and rows, and its count of late rows."""
    name = question.query.name
    window_end, rows, scores, late = last_window(question, stream)
    best = rows[: question.query.k]
    top = monitor.top(name)
    equal = np.array_equal(top["seq"].to_numpy(), best) and np.array_equal(top["score"].to_numpy(), scores[: len(best)])
    return Verdict(question, window_end, len(rows), equal, monitor.stats(name)["late"] == late)


def last_window(question: Question, stream: pa.Table) -> tuple[int, np.ndarray, np.ndarray, int]:
    """The last closed window by its definition: its end, its rows and their scores, best first; rows late so far."""
    columns = {name: stream[name].to_numpy() for name in ("venue", "price", "volume", "bid", "ask")}  # null: NaN
    score = question.score(columns)
    ranks = ~np.isnan(score)
    if question.where is not None:
        ranks &= question.where(columns)
    seq = np.arange(len(stream))
    late = np.zeros(len(stream), bool)
    if question.by_time:
        position = stream["ts"].cast(pa.int64()).to_numpy()
        watermark = np.maximum.accumulate(position) - _LATENESS
        late = (position // question.slide + 1) * question.slide <= watermark
        end = int(watermark[-1]) // question.slide * question.slide
    else:
        position = seq
        end = len(stream) // question.slide * question.slide
    held = seq[ranks & ~late & (end - question.size <= position) & (position < end)]
    badness = score[held] if question.query.order == "asc" else -score[held]
    order = np.lexsort((-held, -position[held], badness))
    return end, held[order], score[held][order], int(late.sum())

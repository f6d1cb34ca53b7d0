"""Streams to test with: score shapes, arrival orders, cuts, and whole scenarios of rows and calls.

Everything random is either drawn by Hypothesis or made from a seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from reference import Asked, Row

# --- shapes of scores, deterministic ------------------------------------------------------------


def _sprinkled(scores: np.ndarray, generator: np.random.Generator, share: float, *values: float) -> np.ndarray:
    hit = generator.random(len(scores)) < share
    return np.where(hit, generator.choice(np.array(values), len(scores)), scores)


SHAPES: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "rising": lambda n, g: np.arange(n, dtype=float),
    "falling": lambda n, g: -np.arange(n, dtype=float),
    "constant": lambda n, g: np.full(n, 7.0),
    "tied": lambda n, g: g.integers(0, 4, n).astype(float),
    "sinusoidal": lambda n, g: np.sin(np.arange(n) * (2 * math.pi / 97)) + 1e-3 * g.random(n),
    "sawtooth": lambda n, g: (np.arange(n) % 29).astype(float),
    "nan-ridden": lambda n, g: _sprinkled(g.random(n), g, 0.6, math.nan),
    "all-nan": lambda n, g: np.full(n, math.nan),
    "infinite": lambda n, g: _sprinkled(g.normal(size=n), g, 0.4, math.inf, -math.inf, math.nan),
    "random": lambda n, g: g.normal(size=n),
}


def shaped(shape: str, n: int, seed: int = 0) -> np.ndarray:
    """n scores of the named shape."""
    return SHAPES[shape](n, np.random.default_rng(seed))


# --- shapes of time, deterministic --------------------------------------------------------------

TIMES: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "in order": lambda n, g: np.cumsum(g.integers(0, 3, n)),
    "out of order": lambda n, g: np.cumsum(g.integers(0, 3, n)) - g.integers(0, 6, n),
    "late": lambda n, g: np.cumsum(g.integers(0, 3, n)) - np.where(g.random(n) < 0.2, 60, 0),
    "with gaps": lambda n, g: np.cumsum(np.where(g.random(n) < 0.1, 500, g.integers(0, 3, n))),
    "negative": lambda n, g: np.cumsum(g.integers(0, 3, n)) - n,
    "all at once": lambda n, g: np.zeros(n, np.int64),
}


def timed(shape: str, n: int, seed: int = 0) -> list[int]:
    """n times of the named shape."""
    return [int(time) for time in TIMES[shape](n, np.random.default_rng(seed))]


def cuts_of(n: int, seed: int = 0) -> list[int]:
    """Uneven, increasing places to cut n rows at: many short batches, some long, some empty."""
    generator = np.random.default_rng(seed)
    places = np.cumsum(generator.choice([0, 1, 1, 2, 5, 40, 300], n + 1))
    return [int(place) for place in places[places < n]]


# --- rows -----------------------------------------------------------------------------------------


def row(number: int, time: int, x: float | None) -> Row:
    """A row with every kind of payload: a tied float, a small integer, a text with nulls."""
    tag = None if number % 7 == 3 else f"row {number} ü"
    return {"t": time, "x": x, "y": float(number * 7 % 5), "g": number % 3, "tag": tag}


def rows_of(scores: np.ndarray, times: list[int] | None = None) -> list[Row]:
    """Rows with the given x, at the given times (in order of arrival unless told)."""
    return [row(i, times[i] if times else i, float(x)) for i, x in enumerate(scores)]


# --- questions: one description, from which both the engine's query and the reference's are made -------------


def _halved(columns: dict[str, np.ndarray]) -> np.ndarray:
    return columns["x"] * -0.5


def _of_x(function: Callable[[float, Row], float]) -> Callable[[Row], float | None]:
    return lambda row: None if row["x"] is None else function(row["x"], row)


def _linear() -> object:
    import skyband as sb

    return sb.linear({"x": 2.0, "y": -1.0})


# name: (the engine's score or how to make it, the same as a function of a row)
SCORES: dict[str, tuple[Any, Callable[[Row], float | None]]] = {
    "column": ("x", _of_x(lambda x, row: x)),
    "integer column": ("g", lambda row: float(row["g"])),
    "tied column": ("y", lambda row: row["y"]),
    "expression": ("x + y * 2", _of_x(lambda x, row: x + row["y"] * 2)),
    "absolute": ("abs(x)", _of_x(lambda x, row: abs(x))),
    "linear": (_linear, _of_x(lambda x, row: 2.0 * x - row["y"])),
    "callable": (lambda: _halved, _of_x(lambda x, row: x * -0.5)),
}
WHERES: dict[str, tuple[Any, Callable[[Row], bool] | None]] = {
    "everything": (None, None),
    "region": ({"y": (1, 3)}, lambda row: 1 <= row["y"] <= 3),
    "half open region": ({"y": (None, 3), "g": (1, None)}, lambda row: row["y"] <= 3 and row["g"] >= 1),
    "region over nulls": ({"x": (0, None)}, lambda row: row["x"] is not None and row["x"] >= 0),
    "expression": ("g == 1 or y > 2", lambda row: row["g"] == 1 or row["y"] > 2),
    "expression over nulls": ("x > 0", lambda row: row["x"] is not None and row["x"] > 0),
    "nothing": ("y > 100", lambda row: False),
}
EMITS = ("changes", "snapshots", "arrivals", "none")


@dataclass(frozen=True)
class Question:
    """A top-k query in names and numbers."""

    name: str
    k: int
    kind: str
    size: int
    slide: int
    score: str = "column"
    where: str = "everything"
    order: str = "desc"
    emit: str = "changes"
    algorithm: str = "auto"

    def asked(self) -> Asked:
        """As the reference takes it."""
        return Asked(
            self.name, self.k, SCORES[self.score][1], self.kind, self.size, self.slide,
            self.order, WHERES[self.where][1], self.emit,
        )  # fmt: skip

    def query(self, unit: str | None = None) -> Any:
        """As the engine takes it; `unit` names the unit of a timestamp column, None means an integer one."""
        import skyband as sb

        size, slide = (self.size, self.slide) if unit is None else (f"{self.size} {unit}", f"{self.slide} {unit}")
        window = sb.CountWindow(self.size, slide=self.slide) if self.kind == "count" else sb.TimeWindow(size, slide=slide)
        score = SCORES[self.score][0]
        return sb.TopK(
            name=self.name, k=self.k, score=score() if callable(score) else score, window=window, order=self.order,
            where=WHERES[self.where][0], emit=self.emit, algorithm=self.algorithm,
        )  # fmt: skip


# --- Hypothesis -------------------------------------------------------------------------------------


@st.composite
def scores(draw: st.DrawFn, max_size: int = 60) -> list[float | None]:
    """Scores of one temper: tied, anything at all, with nulls, monotone, constant."""
    value = draw(
        st.sampled_from(
            [
                st.integers(0, 3).map(float),
                st.integers(-50, 50).map(float),
                st.floats(allow_nan=True, allow_infinity=True, width=32),
                st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, None]),
                st.just(5.0),
            ]
        )
    )
    n = draw(st.integers(0, max_size))  # drawn first: lists left to themselves stay short
    drawn = draw(st.lists(value, min_size=n, max_size=n))
    turn = draw(st.sampled_from(["as drawn", "rising", "falling"]))
    if turn == "as drawn" or any(x is None or math.isnan(x) for x in drawn):
        return drawn
    return sorted(drawn, reverse=turn == "falling")


@st.composite
def times(draw: st.DrawFn, n: int) -> list[int]:
    """n times: steps forward, now and then a gap or a step back."""
    step = draw(
        st.sampled_from(
            [
                st.integers(0, 2),
                st.integers(-3, 5),
                st.sampled_from([0, 1, 1, 2, 40]),
                st.sampled_from([1, 1, 3, -12, 12]),
                st.just(0),
                st.just(1),
            ]
        )
    )
    at = draw(st.integers(-30, 30))
    found = []
    for forward in draw(st.lists(step, min_size=n, max_size=n)):
        at += forward
        found.append(at)
    return found


@st.composite
def windows(draw: st.DrawFn) -> tuple[int, int]:
    """(size, slide) with slide at most size, dividing it or not."""
    size = draw(st.integers(1, 20))
    return size, draw(st.integers(1, size))


@st.composite
def questions(draw: st.DrawFn, name: str, kind: str, algorithm: str) -> Question:
    size, slide = draw(windows())
    return Question(
        name, draw(st.integers(1, 6)), kind, size, slide,
        draw(st.sampled_from(sorted(SCORES))), draw(st.sampled_from(sorted(WHERES))),
        draw(st.sampled_from(["desc", "asc"])), draw(st.sampled_from(EMITS)), algorithm,
    )  # fmt: skip


Step = tuple[Any, ...]  # ("push", rows) | ("advance", time) | ("flush",) | ("add", question) | ("cancel", name)


@dataclass(frozen=True)
class Scenario:
    """A monitor's life: its queries and every call made to it."""

    questions: tuple[Question, ...]
    lateness: int
    steps: tuple[Step, ...]

    @property
    def time(self) -> str | None:
        """The time column, where time plays a part."""
        added = [step[1] for step in self.steps if step[0] == "add"]
        timed = any(question.kind == "time" for question in (*self.questions, *added))
        return "t" if timed or any(step[0] == "advance" for step in self.steps) else None

    def cut(self, length: int | None) -> Scenario:
        """The same calls with rows in batches of `length`; None: as few batches as the calls between allow."""
        return replace(self, steps=tuple(_recut(self.steps, length)))


def _recut(steps: tuple[Step, ...], length: int | None) -> Iterator[Step]:
    waiting: list[Row] = []
    for step in (*steps, ("end",)):
        if step[0] == "push":
            waiting += step[1]
            continue
        for begin in range(0, len(waiting), length or max(len(waiting), 1)):
            yield ("push", waiting[begin : begin + (length or len(waiting))])
        waiting = []
        if step[0] != "end":
            yield step


@st.composite
def scenarios(draw: st.DrawFn, kinds: tuple[str, ...] = ("count", "time"), algorithm: str = "auto") -> Scenario:
    """A few queries, a stream cut into batches, and calls between the batches."""
    xs = draw(scores())
    rows = [row(i, time, x) for i, (time, x) in enumerate(zip(draw(times(len(xs))), xs, strict=True))]
    asked = [draw(questions(f"q{i}", draw(st.sampled_from(kinds)), algorithm)) for i in range(draw(st.integers(1, 3)))]
    if draw(st.booleans()):  # one score, so that structures may be shared
        asked = [replace(question, score=asked[0].score, where=asked[0].where, order=asked[0].order) for question in asked]
    steps: list[Step] = []
    alive = [question.name for question in asked]
    places = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=6)))
    calls = ["none", "none", "add", "cancel"] + (["advance", "flush"] if "time" in kinds else [])
    for number, (begin, end) in enumerate(zip([0, *places], [*places, len(rows)], strict=True)):
        steps.append(("push", rows[begin:end]))
        call = draw(st.sampled_from(calls))
        if call == "add":
            added = draw(questions(f"added {number}", draw(st.sampled_from(kinds)), algorithm))
            alive.append(added.name)
            steps.append(("add", added))
        elif call == "cancel" and len(alive) > 1:
            steps.append(("cancel", alive.pop(draw(st.integers(0, len(alive) - 1)))))
        elif call == "advance":
            now = max((r["t"] for r in rows[:end]), default=0)
            steps.append(("advance", now + draw(st.integers(-5, 30))))
        elif call == "flush":
            steps.append(("flush",))
    return Scenario(tuple(asked), draw(st.sampled_from([0, 0, 1, 4, 15])), tuple(steps))

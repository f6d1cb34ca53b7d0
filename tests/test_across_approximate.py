"""What is guessed of objects not yet seen everywhere: the sample, the chances it gives, and how far answers go wrong."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skyband as sb
from across_harness import SELDOM, SENT, Sent, expected, feed, made, question, right, tuples_of, values_with
from across_reference import counting, ranked
from skyband.algorithms.across import correlation
from skyband.kernels.across import samples
from skyband.kernels.across.returns import no_returns
from skyband.kernels.across.tables import Tuples
from skyband.results import PRECISION

GUESSING = ("eaa-approximate", "eaa-estimate")


def hashes(objects: np.ndarray) -> np.ndarray:
    return tuples_of(question(1, 1, 1, 1), [(int(o), 0, 0.0) for o in objects], 0).hash


def saw(streams: int, stream: np.ndarray, obj: np.ndarray, size: int) -> samples.Sample:
    """A sample that has seen tuples, a window of `size` moving over them."""
    sample = samples.no_sample(streams)
    reach = np.maximum(np.arange(len(obj)) + 1 - size, 0)
    samples.see(sample, no_returns(streams, False), Tuples(obj, stream, np.zeros(len(obj)), reach, hashes(obj)), 0, 0, len(obj))
    return sample


def sets_of(streams: int, stream: np.ndarray, obj: np.ndarray, size: int) -> list[set[int]]:
    last = slice(max(len(obj) - size, 0), None)
    return [set(obj[last][stream[last] == x].tolist()) for x in range(streams)]


@given(st.integers(1, 4), st.integers(0, 99), st.integers(1, 300), st.sampled_from([5, 60, 400]))
def test_small_windows_are_counted_exactly(streams: int, seed: int, size: int, objects: int) -> None:
    generator = np.random.default_rng(seed)
    stream, obj = generator.integers(-1, streams, 500), generator.integers(0, objects, 500)
    sample, seen = saw(streams, stream, obj, size), sets_of(streams, stream, obj, size)
    first = len(obj) - size
    joint = correlation.joint(sample, first)
    for some in range(1, 1 << streams):
        members = [seen[x] for x in range(streams) if some >> x & 1]
        assert joint[some] == len(set.intersection(*members))
    assert correlation.distinct(sample, first).tolist() == [len(one) for one in seen]
    if streams > 1:  # |a ∩ b| = |a| + |b| - |a ∪ b|
        assert joint[0b11] == joint[0b01] + joint[0b10] - len(seen[0] | seen[1])


def test_large_windows_are_sampled_and_the_sample_grows_back() -> None:
    generator = np.random.default_rng(4)
    size, rows = 60_000, 150_000
    obj, stream = generator.integers(0, 40_000, rows), generator.integers(0, 2, rows)
    sample, seen = saw(2, stream, obj, size), sets_of(2, stream, obj, size)
    assert 0 < sample.marks[samples.COUNT] <= samples.MOST and sample.marks[samples.LEVEL] > 0
    first = rows - size
    assert correlation.distinct(sample, first) == pytest.approx([len(one) for one in seen], rel=0.1)
    chance = correlation.chances(sample, first)
    assert chance[0b01, 1] == pytest.approx(len(seen[0] & seen[1]) / len(seen[0]), abs=0.05)
    level, now = int(sample.marks[samples.LEVEL]), rows
    for _ in range(20):  # few objects from now on: a smaller share need not be left out any more
        few = generator.integers(0, 50, 100)
        tuples = Tuples(few, np.zeros(100, np.int64), np.zeros(100), np.full(100, now - 50), hashes(few))
        samples.see(sample, no_returns(2, False), tuples, now, now, now + 100)
        now += 100
        samples.widen(sample, now - 100, now)
    assert sample.marks[samples.LEVEL] < level
    distinct = correlation.distinct(sample, now - 100)
    assert distinct[0] == pytest.approx(len(set(few.tolist())), abs=0.5) or sample.marks[samples.LEVEL] > 0


def test_chances_of_seldom_sets_come_from_fewer_streams() -> None:
    obj = np.concatenate([np.arange(100), np.arange(50), np.arange(98, 198)])
    stream = np.concatenate([np.zeros(100), np.ones(50), np.full(100, 2)]).astype(np.int64)
    table = correlation.chances(saw(3, stream, obj, 1000), 0)
    assert table[0b001, 1] == 0.5 and table[0b010, 0] == 1.0
    assert table[0b001, 2] == 0.02
    assert table[0b101, 1] == 0.5  # two objects were seen in 0 and 2: too few to tell


def test_many_streams_are_looked_at_in_pairs() -> None:
    streams = correlation.JOINT + 1
    obj, stream = np.tile(np.arange(40), streams), np.repeat(np.arange(streams), 40)
    assert correlation.chances(saw(streams, stream, obj, 1000), 0) == pytest.approx(np.ones((streams, streams)))
    query = question(2, 100, 1, streams, repeats=1)
    for name in GUESSING:
        algorithm = made(name, query)
        feed(algorithm, query, [(int(o), int(x), 0.5) for o, x in zip(obj, stream, strict=True)])
        algorithm.check_invariants()


def test_occurrences_are_tuples_by_objects() -> None:
    sample = saw(2, np.array([0, 0, 0, 1]), np.array([7, 7, 8, 9]), 100)
    stretches = correlation.counted(correlation.no_stretches(2), np.array([0, 0, 0, 1]), 0)
    assert correlation.occurrences(sample, stretches, 0).tolist() == [1.5, 1.0]


def test_stretches_stay_few_and_forget() -> None:
    held = correlation.no_stretches(1)
    for start in range(0, 500_000, 10_000):
        held = correlation.forgotten(correlation.counted(held, np.zeros(10_000, np.int64), start), start - 300_000)
    assert len(held.number) <= 513 and held.tuples.sum() == pytest.approx(310_000, rel=0.01)


# --- answers ----------------------------------------------------------------------------------------------------------


def test_a_full_margin_guesses_nothing() -> None:
    query = question(5, 300, 20, 3, repeats=1)
    algorithm = made("eaa-estimate", query, margin=1.0)
    assert feed(algorithm, query, SENT) == expected(query, SENT)
    algorithm.check_invariants()


@given(data=st.data())
@settings(max_examples=80)
def test_a_full_margin_is_exact_whatever_is_known(data: st.DataObject) -> None:
    """Also where no largest value and no bound on repetitions was declared: it holds what `eaa` does."""
    size, repeats = data.draw(st.integers(1, 60)), data.draw(st.sampled_from([None, 1, 2]))
    combine, aggregate = data.draw(st.sampled_from(["sum", "mean", "max"])), data.draw(st.sampled_from(["sum", "max"]))
    query = question(2, size, data.draw(st.integers(1, size)), 3, combine=combine, aggregate=aggregate, repeats=repeats)
    high = data.draw(st.sampled_from([1.0, math.inf]))
    generator, rows = np.random.default_rng(data.draw(st.integers(0, 10**6))), 200
    values = generator.random(rows) * (1.0 if high == 1.0 else np.linspace(0, 3, rows) ** 2)
    columns = (generator.integers(0, data.draw(st.sampled_from([12, 80])), rows), generator.integers(0, 3, rows), values)
    sent = [(int(o), int(x), float(v)) for o, x, v in zip(*columns, strict=True)]
    margin, exact = made("eaa-estimate", query, high, margin=1.0), made("eaa", query, high)
    assert feed(margin, query, sent) == expected(query, sent) == feed(exact, query, sent)
    margin.tidy()
    assert margin.candidates == exact.candidates


def test_guessing_saves_memory_and_is_mostly_right() -> None:
    query = question(5, 600, 20, 3, repeats=1)
    sizes, shares = [], []
    for margin in (-0.5, 0.0, 1.0):
        algorithm = made("eaa-estimate", query, margin=margin)
        shares.append(right(algorithm, query, SENT, 40))
        algorithm.check_invariants()
        sizes.append(algorithm.candidates)
    assert sizes[0] < sizes[1] < 0.75 * sizes[2]
    assert shares[1] > 0.9 and shares[2] == 1.0


OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *(("eaa-approximate", options) for options in ({}, {"precision": 0.6}, {"memory": 4}, {"memory": 12})),
    *(("eaa-estimate", {"margin": margin}) for margin in (-1.0, 0.0, 1.0)),
]


def overstated(query: Any, sent: list[Sent], found: list[Any]) -> list[Any]:
    """The answers that say more of an object than its tuples in the window give, each with what they give."""
    rows = [(i, i, {"key": o, "stream": x, "value": v if x >= 0 else None}) for i, (o, x, v) in enumerate(sent)]
    facts, wrong = counting(query, rows), []
    for end, scores, objects in found:
        true = {f.key: s for s, f in ranked(query, [f for f in facts if end - query.size <= f.position < end])}
        assert len(set(objects)) == len(objects) and list(scores) == sorted(scores, reverse=True)
        wrong += [(end, o, s, true.get(o)) for s, o in zip(scores, objects, strict=True) if s > true.get(o, -1.0)]
    return wrong


@given(data=st.data())
@settings(max_examples=150)
def test_no_score_is_overstated(data: st.DataObject) -> None:
    """What is missed lowers a score, or leaves an object out; nothing raises one, whatever was forgotten and written down."""
    size = data.draw(st.integers(2, 60))
    repeats = data.draw(st.sampled_from([None, 1, 1, 2, 3]))
    aggregate = data.draw(st.sampled_from(["sum", "max", "latest"] if repeats == 1 else ["sum", "max"]))
    combine = data.draw(st.sampled_from(["sum", "mean", "max"]))
    streams, k = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    query = question(k, size, data.draw(st.integers(1, size)), streams, combine=combine, aggregate=aggregate, repeats=repeats)
    name, options = data.draw(st.sampled_from(OPTIONS))
    seldom = data.draw(st.sampled_from(SELDOM))
    high = data.draw(st.sampled_from([1.0, 1.0, math.inf])) if seldom[0] == 0.0 else math.inf
    generator = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    rows, objects = 200, data.draw(st.sampled_from([3, 12, 60]))
    values = values_with(generator, rows, seldom)
    columns = (generator.integers(0, objects, rows), generator.integers(-1, streams, rows), values)
    sent = [(int(o), int(x), float(v)) for o, x, v in zip(*columns, strict=True)]
    algorithm, found = made(name, query, high, pace=1, **options), []
    for upto in [*sorted(data.draw(st.lists(st.integers(1, rows), max_size=3))), rows]:
        found += feed(algorithm, query, sent[:upto])
        again = made(name, query, high, pace=1, **options)
        again.restore(algorithm.snapshot())
        algorithm = again
    assert overstated(query, sent, found) == []


@pytest.mark.parametrize("named", ["eaa-approximate", "eaa-approximate(memory=12)", "eaa-estimate", "eaa-estimate(margin=1)"])
@pytest.mark.parametrize("repeats", [1, 2, None])
def test_the_monitor_overstates_no_score(named: str, repeats: int | None, tmp_path: Path) -> None:
    """Keys are forgotten and given new numbers while objects come again and again; half way the monitor is saved and loaded."""
    generator = np.random.default_rng(5)
    rows = 12_000
    obj = np.where(generator.random(rows) < 0.5, generator.integers(0, 200, rows), 1000 + np.arange(rows) // 3)
    stream, value = generator.integers(0, 3, rows), generator.random(rows)
    query = sb.TopKAcross(
        name="q", k=5, key="key", stream="stream", value="value", streams=(0, 1, 2), window=sb.CountWindow(500, 50),
        ranges=(0, 1), repeats=repeats, algorithm=named, emit="snapshots",
    )  # fmt: skip
    monitor, told = sb.Monitor([query]), []
    for begin in range(0, rows, 1500):
        if begin == rows // 2:
            monitor.save(tmp_path / "state")
            monitor = sb.Monitor.load(tmp_path / "state")
        part = slice(begin, begin + 1500)
        told += monitor.push({"key": obj[part], "stream": stream[part], "value": value[part]}).to_pylist()
    asked = question(5, 500, 50, 3, repeats=repeats)
    found: dict[int, Any] = {}
    for row in told:
        found.setdefault(row["window_end"], []).append((row["score"], row["key"]))
    sent = [(int(o), int(x), float(v)) for o, x, v in zip(obj, stream, value, strict=True)]
    answers = [(end, *(tuple(column) for column in zip(*ranks, strict=True))) for end, ranks in found.items()]
    assert len(answers) == rows // 50 and overstated(asked, sent, answers) == []
    if named == "eaa-estimate(margin=1)":
        assert answers == expected(asked, sent)


def test_exact_answers_carry_no_precision() -> None:
    query = sb.TopKAcross(
        name="q", k=5, key="key", stream="stream", value="value", streams=(0, 1), window=sb.CountWindow(30), algorithm="sla"
    )
    result = sb.Monitor([query]).push({"key": [1, 2], "stream": [0, 1], "value": [1.0, 2.0]})
    assert PRECISION not in (result.schema.metadata or {})

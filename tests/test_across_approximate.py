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
from across_harness import SENT, Sent, expected, feed, made, question, right, tuples_of
from across_reference import counting, ranked
from skyband.algorithms import correlation
from skyband.kernels import across_budget, samples
from skyband.results import PRECISION


def hashes(objects: np.ndarray) -> np.ndarray:
    return tuples_of(question(1, 1, 1, 1), [(int(o), 0, 0.0) for o in objects], 0).hash


def saw(streams: int, stream: np.ndarray, obj: np.ndarray, size: int) -> samples.Sample:
    """A sample that has seen tuples, a window of `size` moving over them."""
    sample = samples.no_sample(streams)
    reach = np.maximum(np.arange(len(obj)) + 1 - size, 0)
    samples.see(sample, stream, hashes(obj), reach, 0, 0, len(obj))
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
        samples.see(sample, np.zeros(100, np.int64), hashes(few), np.full(100, now - 50), now, now, now + 100)
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
    algorithm = made("eaa-approximate", query)
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


def test_how_long_objects_are_alone() -> None:
    """By hand: a window of 8 tuples, now 8. Of the objects seen once, 1 was seen again after 2, 2 after 5; 3 and 4 were not."""
    stream, obj = np.array([0, 0, 1, 0, 0, 0, 1]), np.array([1, 2, 1, 3, 9, 4, 2])
    stream[4] = -1
    shares = correlation.alone(saw(2, stream, obj, 8), 0, 8)
    at = [across_budget.age_of(age, 8) for age in (2, 5)]
    assert shares[1, 0] == shares[1, at[0]] == 1.0
    assert shares[1, at[0] + 1] == shares[1, at[1]] == 3 / 4  # all four were told of: 4 left, 3 of them stayed alone
    assert shares[1, -1] == 3 / 4 * 1 / 2  # 2 and 3 were alone as long, 4 too short a time to tell
    assert (shares[[0, 2]] == 1.0).all()


# --- answers ----------------------------------------------------------------------------------------------------------


def test_a_full_margin_guesses_nothing() -> None:
    query = question(5, 300, 20, 3, repeats=1)
    algorithm = made("eaa-approximate", query, margin=1.0)
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
    margin, exact = made("eaa-approximate", query, high, margin=1.0), made("eaa", query, high)
    assert feed(margin, query, sent) == expected(query, sent) == feed(exact, query, sent)
    margin.tidy()
    assert margin.candidates == exact.candidates


def test_guessing_saves_memory_and_is_mostly_right() -> None:
    query = question(5, 600, 20, 3, repeats=1)
    sizes, shares = [], []
    for margin in (-0.5, 0.0, 1.0):
        algorithm = made("eaa-approximate", query, margin=margin)
        shares.append(right(algorithm, query, SENT, 40))
        algorithm.check_invariants()
        sizes.append(algorithm.candidates)
    assert sizes[0] < sizes[1] < 0.75 * sizes[2]
    assert shares[1] > 0.9 and shares[2] == 1.0


OPTIONS: list[dict[str, Any]] = [
    {},
    {"margin": -1.0},
    {"margin": -0.5, "ahead": 2},
    {"precision": 0.6},
    {"memory": 4},
    {"memory": 12},
    {"margin": 1.0},
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
    options = data.draw(st.sampled_from(OPTIONS))
    high = data.draw(st.sampled_from([1.0, 1.0, math.inf]))
    generator = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    rows, objects = 200, data.draw(st.sampled_from([3, 12, 60]))
    columns = (generator.integers(0, objects, rows), generator.integers(-1, streams, rows), generator.random(rows))
    sent = [(int(o), int(x), float(v)) for o, x, v in zip(*columns, strict=True)]
    algorithm, found = made("eaa-approximate", query, high, pace=1, **options), []
    for upto in [*sorted(data.draw(st.lists(st.integers(1, rows), max_size=3))), rows]:
        found += feed(algorithm, query, sent[:upto])
        again = made("eaa-approximate", query, high, pace=1, **options)
        again.restore(algorithm.snapshot())
        algorithm = again
    assert overstated(query, sent, found) == []


@pytest.mark.parametrize("options", ["", "(memory=12)", "(margin=-0.3)", "(margin=1)"])
@pytest.mark.parametrize("repeats", [1, 2, None])
def test_the_monitor_overstates_no_score(options: str, repeats: int | None, tmp_path: Path) -> None:
    """Keys are forgotten and given new numbers while objects come again and again; half way the monitor is saved and loaded."""
    generator = np.random.default_rng(5)
    rows = 12_000
    obj = np.where(generator.random(rows) < 0.5, generator.integers(0, 200, rows), 1000 + np.arange(rows) // 3)
    stream, value = generator.integers(0, 3, rows), generator.random(rows)
    query = sb.TopKAcross(
        name="q", k=5, key="key", stream="stream", value="value", streams=(0, 1, 2), window=sb.CountWindow(500, 50),
        ranges=(0, 1), repeats=repeats, algorithm=f"eaa-approximate{options}", emit="snapshots",
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
    if options == "(margin=1)":
        assert answers == expected(asked, sent)


def test_looking_ahead_forgets_what_is_new_and_poor() -> None:
    query = question(5, 600, 20, 3, repeats=1)
    plain, ahead = (made("eaa-approximate", query, ahead=ranks) for ranks in (0, 20))
    assert right(ahead, query, SENT, 40) > 0.8
    feed(plain, query, SENT)
    assert ahead.candidates < 0.9 * plain.candidates


def test_exact_answers_carry_no_precision() -> None:
    query = sb.TopKAcross(
        name="q", k=5, key="key", stream="stream", value="value", streams=(0, 1), window=sb.CountWindow(30), algorithm="sla"
    )
    result = sb.Monitor([query]).push({"key": [1, 2], "stream": [0, 1], "value": [1.0, 2.0]})
    assert PRECISION not in (result.schema.metadata or {})

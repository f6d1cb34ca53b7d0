"""Several cores for one push: which, how tasks end, and queries dealt to parts that work side by side."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skyband as sb
from harness import feed, plan_of
from skyband import threads
from skyband.algorithms import build
from skyband.algorithms.ranked import shared_parts
from skyband.algorithms.ranked.shared import SharedViews
from skyband.algorithms.ranked.shared_parts import SharedParts, parts_for
from test_shared import MIXED, SCORES, STREAMS, Query, by_end, queries


@pytest.fixture
def few_a_part(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two queries make a part: small plans are dealt too."""
    monkeypatch.setattr(shared_parts, "QUERIES_A_PART", 2)
    yield


@pytest.fixture(params=[1, 3])
def workers(request: pytest.FixtureRequest) -> Iterator[int]:
    threads.use_at_most(request.param)
    yield request.param
    threads.use_at_most(None)


def sorted_windows(scores: np.ndarray, asked: tuple[Query, ...]) -> list[object]:
    return by_end(feed(build("oracle", plan_of(*asked)), scores))


# -- threads -----------------------------------------------------------------------------------------------------


def test_the_environment_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(threads.SETTING, "3")
    assert threads.cores() == 3
    monkeypatch.delenv(threads.SETTING)
    assert threads.cores() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("said", ["0", "-1", "two", "1.5", "²"])
def test_a_number_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv(threads.SETTING, said)
    for asking in (threads.cores, sb.Monitor):  # of a monitor at once: later rows would be lost with it
        with pytest.raises(sb.SkybandError, match=f"SKYBAND_THREADS must be a whole number.*{said!r}.*unset it"):
            asking()


def test_tasks_run_side_by_side() -> None:
    """Each waits for the other: one after the other they would never end."""
    threads.use_at_most(2)
    meeting = threading.Barrier(2, timeout=30)
    try:
        threads.begin([lambda: meeting.wait() and None, lambda: meeting.wait() and None])()
    finally:
        threads.use_at_most(None)


def test_all_tasks_have_ended_when_one_fails(workers: int) -> None:
    ended = []

    def fails() -> None:
        raise ValueError("no")

    wait = threads.begin([fails, lambda: ended.append(1), lambda: ended.append(2)])
    with pytest.raises(ValueError, match="no"):
        wait()
    assert sorted(ended) == ([1, 2] if workers > 1 else [])


def test_a_task_goes_on_when_the_one_before_it_has_ended(workers: int) -> None:
    """Whatever the others are at: here the second part ends its first round only once the first part has begun its next."""
    went_on, done = threading.Event(), []

    def waits() -> None:
        assert workers == 1 or went_on.wait(30)
        done.append("second, 1")

    def goes_on() -> None:
        done.append("first, 2")
        went_on.set()

    rounds = [threads.begin([lambda: done.append("first, 1"), waits])]
    rounds.append(threads.begin([goes_on, lambda: done.append("second, 2")], after=rounds[-1]))
    for wait in rounds:
        wait()
    assert [one for one in done if "first" in one] == ["first, 1", "first, 2"]
    assert [one for one in done if "second" in one] == ["second, 1", "second, 2"]


def test_a_task_does_not_run_when_the_one_before_it_failed() -> None:
    threads.use_at_most(2)
    ran: list[int] = []

    def fails() -> None:
        raise ValueError("no")

    try:
        first = threads.begin([fails, lambda: ran.append(1)])
        second = threads.begin([lambda: ran.append(2), lambda: ran.append(3)], after=first)
        for wait in (first, second):
            with pytest.raises(ValueError, match="no"):
                wait()
    finally:
        threads.use_at_most(None)
    assert ran == [1, 3]


# -- parts -------------------------------------------------------------------------------------------------------


def test_how_many_parts() -> None:
    assert [parts_for(n) for n in (1, 99, 100, 199, 200, 400, 10**6)] == [1, 1, 2, 2, 4, 8, 8]


@settings(max_examples=60, deadline=None)
@given(st.lists(SCORES, max_size=300), st.lists(queries(), min_size=4, max_size=9), st.data())
def test_parts_equal_the_sorted_window(scores: list[float], asked: list[Query], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(scores)), max_size=5)))
    given_scores, told = np.array(scores, float), data.draw(st.booleans())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shared_parts, "QUERIES_A_PART", 2)
        parts = build("shared", plan_of(*asked))
    assert isinstance(parts, SharedParts)
    assert by_end(feed(parts, given_scores, cuts, changes=told)) == sorted_windows(given_scores, tuple(asked))
    parts.check_invariants()


@pytest.mark.usefixtures("few_a_part")
@pytest.mark.parametrize("stream", ["uniform", "falling", "sine", "few values"])
def test_parts_go_on_from_a_snapshot(stream: str, workers: int) -> None:
    scores = STREAMS[stream](np.arange(7000))
    for cut in (0, 36, 5003):
        parts = build("shared", plan_of(*MIXED))
        before = feed(parts, scores[:cut])
        again = build("shared", plan_of(*MIXED))
        again.restore(parts.snapshot())
        again.check_invariants()
        assert by_end(before + feed(again, scores)) == sorted_windows(scores, MIXED)


@pytest.mark.usefixtures("few_a_part")
@pytest.mark.parametrize("changes", [False, True])
def test_parts_answer_in_rounds(monkeypatch: pytest.MonkeyPatch, workers: int, changes: bool) -> None:
    """More answers than fit: while a round is told, the next one is worked on."""
    monkeypatch.setattr(shared_parts, "_ROOM", 300)
    monkeypatch.setattr(shared_parts, "_ROOM_FOR_CHANGES", 300)
    scores = np.arange(3000.0) % 1013
    asked = ((500, 7, 60), (300, 2, 100), (40, 1, 3), (90, 90, 9))
    assert by_end(feed(build("shared", plan_of(*asked)), scores, [1234], changes=changes)) == sorted_windows(scores, asked)


@pytest.mark.usefixtures("few_a_part")
def test_what_fails_in_a_round_ends_those_after_it(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr(shared_parts, "_ROOM", 300)
    answered: list[SharedViews] = []
    answer = SharedViews.answer

    def fails_once(self: SharedViews, *rows: Any, take_all: bool) -> int:
        answered.append(self)
        if answered.count(self) == 3:
            raise ValueError("the third round")
        return answer(self, *rows, take_all=take_all)

    monkeypatch.setattr(SharedViews, "answer", fails_once)
    parts = build("shared", plan_of((500, 7, 60), (300, 2, 100), (40, 1, 3), (90, 90, 9)))
    with pytest.raises(ValueError, match="the third round"):
        feed(parts, np.arange(3000.0) % 1013)
    assert max(answered.count(part) for part in answered) == 3


@pytest.mark.usefixtures("few_a_part")
def test_a_state_of_other_queries_is_refused() -> None:
    state = build("shared", plan_of(*MIXED)).snapshot()
    with pytest.raises(sb.StateError, match="restore it into one built alike"):
        build("shared", plan_of(*MIXED[1:])).restore(state)


@pytest.mark.parametrize("windows", ["count", "time"])
def test_a_hundred_queries_through_a_monitor(windows: str) -> None:
    """Result rows and tops equal those of each query asked by itself, by sorting."""
    generator = np.random.default_rng(8)
    rows = {"x": generator.integers(0, 500, 6000) / 7.0, "t": np.sort(generator.integers(0, 20_000, 6000))}

    def asked(i: int, algorithm: str) -> sb.TopK:
        window = sb.CountWindow(200 + 9 * i, 20 + i) if windows == "count" else sb.TimeWindow(600 + 30 * i, 60 + 3 * i)
        return sb.TopK(name=f"q{i}", k=1 + i % 13, score="x", window=window, algorithm=algorithm)

    time = {} if windows == "count" else {"time": "t"}
    many = sb.Monitor([asked(i, "auto") for i in range(120)], **time)
    singles = {i: sb.Monitor([asked(i, "oracle")], **time) for i in range(0, 120, 7)}
    for begin, end in ((0, 2500), (2500, 2510), (2510, 6000)):
        batch = {name: column[begin:end] for name, column in rows.items()}
        found = many.push(batch)
        for i, single in singles.items():
            of_one = found.filter(np.array(found["query"]) == f"q{i}")
            assert of_one.drop_columns(["query"]).to_pylist() == single.push(batch).drop_columns(["query"]).to_pylist()
            assert many.top(f"q{i}").to_pylist() == single.top(f"q{i}").to_pylist()
    assert many.stats("q0")["algorithm"] == "shared"

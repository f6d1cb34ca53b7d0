"""The monitor against the plain-Python reference: every algorithm, every kind of window, every way to emit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
import streams
from played import (
    batch_of,
    by_query,
    events_of,
    monitor_of,
    plain,
    reference_of,
    reference_top,
    take,
    take_reference,
    top_of,
)
from reference import Event
from streams import EMITS, Question, Scenario

EXACT = [row for row in sb.algorithms().to_pylist() if row["family"] == "ranked" and row["exact"]]
KEEPS = [(row["name"], kind) for row in EXACT for kind in row["windows"].split(", ")]
assert {kind for _, kind in KEEPS} == {"count", "time"}
each_algorithm_and_kind = pytest.mark.parametrize(("algorithm", "kind"), [("auto", "count"), ("auto", "time"), *KEEPS])


def play(scenario: Scenario, unit: str | None = None) -> list[Event]:
    """Play a scenario, comparing events, tops and counts with the reference after every call."""
    monitor, reference = monitor_of(scenario, unit), reference_of(scenario)
    every: list[Event] = []
    for step in scenario.steps:
        events = take(monitor, step, unit)
        assert events == take_reference(reference, step), step
        every += events
        assert list(monitor.queries) == list(reference.standing)
        for name, standing in reference.standing.items():
            assert top_of(monitor, name, unit) == reference_top(reference, name), (name, step)
            stats = monitor.stats(name)
            assert (stats["late"], stats["nulls"]) == (standing.late, standing.nulls), (name, step)
    return every


def play_in_other_cuts(scenario: Scenario, events: list[Event]) -> None:
    """One batch, many, batches of one row: each query's output is the same."""
    for length in (None, 1, 7):
        monitor, again = monitor_of(scenario), []
        for step in scenario.cut(length).steps:
            again += take(monitor, step)
        assert by_query(again) == by_query(events), f"batches of {length}"


@each_algorithm_and_kind
@given(data=st.data())
def test_every_scenario_means_what_the_reference_says(algorithm: str, kind: str, data: st.DataObject) -> None:
    scenario = data.draw(streams.scenarios((kind,), algorithm))
    play_in_other_cuts(scenario, play(scenario))


@given(scenario=streams.scenarios(("count", "time")))
def test_both_kinds_of_windows_in_one_monitor(scenario: Scenario) -> None:
    play_in_other_cuts(scenario, play(scenario))


@given(scenario=streams.scenarios(("time",)), unit=st.sampled_from(["s", "ms"]))
def test_timestamps_mean_what_integers_mean(scenario: Scenario, unit: str) -> None:
    play(scenario, unit)


@given(scenario=streams.scenarios(("count", "time")), data=st.data())
def test_every_query_has_its_own_algorithm(scenario: Scenario, data: st.DataObject) -> None:
    """Queries of different algorithms over one stream do not disturb each other."""
    able = {kind: [name for name, own in KEEPS if own == kind] for kind in ("count", "time")}
    mixed = tuple(replace(asked, algorithm=data.draw(st.sampled_from(able[asked.kind]))) for asked in scenario.questions)
    play(replace(scenario, questions=mixed))


# --- longer streams, where structures fill, split and merge ---------------------------------------------


def longer(algorithm: str, kind: str, shape: str, time_shape: str, n: int, emit: str) -> Scenario:
    rows = streams.rows_of(streams.shaped(shape, n, seed=n), streams.timed(time_shape, n, seed=n + 1))
    asked = (
        Question("wide", 5, kind, 150, 10, emit=emit, algorithm=algorithm),
        Question("odd", 12, kind, 77, 9, emit=emit, algorithm=algorithm),
        Question("tumbling", 30, kind, 40, 40, emit=emit, algorithm=algorithm),
        Question("upside down", 3, kind, 60, 1, order="asc", emit=emit, algorithm=algorithm),
        Question("some", 4, kind, 90, 7, where="expression", emit=emit, algorithm=algorithm),
    )
    cuts = streams.cuts_of(n, seed=n)
    steps = [("push", rows[begin:end]) for begin, end in zip([0, *cuts], [*cuts, n], strict=True)]
    return Scenario(asked, 6, (*steps, ("flush",)) if kind == "time" else tuple(steps))


LONGER = [
    ("rising", "in order"),
    ("falling", "out of order"),
    ("tied", "late"),
    ("sinusoidal", "with gaps"),
    ("infinite", "negative"),
    ("random", "out of order"),
]


@each_algorithm_and_kind
def test_longer_streams(algorithm: str, kind: str) -> None:
    for number, (shape, time_shape) in enumerate(LONGER):
        play(longer(algorithm, kind, shape, time_shape, 260, EMITS[number % 3]))


@pytest.mark.parametrize("kind", ["count", "time"])
@pytest.mark.parametrize("shape", ["falling", "tied", "random", "nan-ridden"])
def test_rows_come_out_as_they_went_in_however_many_passed(shape: str, kind: str) -> None:
    """Payloads of rows that cannot win any more are forgotten in bulk: long enough for that to happen several times."""
    n = 9000
    rows = streams.rows_of(streams.shaped(shape, n, seed=1), [at // 2 for at in range(n)])
    asked = (Question("wide", 40, kind, 1200, 300), Question("narrow", 3, kind, 100, 100, score="expression", order="asc"))
    steps = [("push", rows[begin : begin + 900]) for begin in range(0, n, 900)]
    steps[3:4] = [("push", rows[at : at + 10]) for at in range(2700, 3600, 10)]
    steps.insert(60, ("add", Question("added", 5, kind, 700, 70, emit="snapshots", where="region")))
    steps.append(("cancel", "wide"))
    play(Scenario(asked, 40, (*steps, ("push", rows[-1:]))))


@pytest.mark.slow
@each_algorithm_and_kind
@pytest.mark.parametrize("shape", sorted(streams.SHAPES))
def test_much_longer_streams(algorithm: str, kind: str, shape: str) -> None:
    for number, time_shape in enumerate(streams.TIMES if kind == "time" else ["in order"]):
        play(longer(algorithm, kind, shape, time_shape, 700 + number, EMITS[number % 3]))


# --- relations between outputs --------------------------------------------------------------------------


def folded(events: list[Event], top: dict[int, Any]) -> dict[int, Any]:
    """Apply changes to a set of rows keyed by seq."""
    top = dict(top)
    for event in events:
        if event.event == "leave":
            assert event.rank is None
            assert top.pop(event.seq) == (event.score, event.row)
        else:
            assert event.event == "enter" and event.seq not in top
            top[event.seq] = (event.score, event.row)
    return top


@given(scenario=streams.scenarios(("count", "time")))
def test_folding_changes_gives_the_top(scenario: Scenario) -> None:
    scenario = replace(scenario, questions=tuple(replace(question, emit="changes") for question in scenario.questions))
    monitor = monitor_of(scenario)
    names = {question.name for question in scenario.questions}
    tops: dict[str, dict[int, Any]] = {name: {} for name in names}
    for step in scenario.steps:
        events = by_query(take(monitor, step))
        names -= {step[1]} if step[0] == "cancel" else set()
        for name in names:
            tops[name] = folded(events.get(name, []), tops[name])
            assert tops[name] == {seq: (score, row) for _, score, seq, row in top_of(monitor, name)}


@given(scenario=streams.scenarios(("count", "time")))
def test_the_ways_to_emit_tell_the_same_story(scenario: Scenario) -> None:
    """The same query under every emit mode: snapshots hold the tops, arrivals are first entries, none is silent."""
    first = scenario.questions[0]
    asked = tuple(replace(first, name=emit, emit=emit) for emit in EMITS)
    steps = tuple(step for step in scenario.steps if step[0] not in ("add", "cancel"))
    scenario = replace(scenario, questions=asked, steps=steps)
    monitor = monitor_of(scenario)
    every: list[Event] = []
    for step in steps:
        every += take(monitor, step)
        tops = [top_of(monitor, emit) for emit in EMITS]
        assert all(top == tops[0] for top in tops)
    found = by_query(every)
    assert "none" not in found
    entered: dict[int, int] = {}
    for event in found.get("changes", []):
        if event.event == "enter":
            entered.setdefault(event.seq, event.window_end)
    assert {event.seq: event.window_end for event in found.get("arrivals", [])} == entered
    assert len(found.get("arrivals", [])) == len(entered)
    snapped: dict[int, int] = {}
    for event in found.get("snapshots", []):
        snapped.setdefault(event.seq, event.window_end)
    assert snapped == entered


@given(scenario=streams.scenarios(("count", "time")))
def test_queries_do_not_depend_on_their_neighbours(scenario: Scenario) -> None:
    steps = tuple(step for step in scenario.steps if step[0] in ("push", "advance"))
    together: list[Event] = []
    monitor = monitor_of(replace(scenario, steps=steps))
    for step in steps:
        together += take(monitor, step)
    for question in scenario.questions:
        alone = replace(scenario, questions=(question,), steps=steps)
        monitor, events = monitor_of(alone), []
        for step in steps:
            events += take(monitor, step)
        assert events == by_query(together).get(question.name, [])


# --- the reference itself, where it could mislead ---------------------------------------------------------


def test_the_reference_on_a_stream_worked_by_hand() -> None:
    """Windows of 10 every 5, lateness 2: times 3, 12, 11, 4 (late: its slide ended at 5, watermark 10), 31."""
    scenario = Scenario((Question("q", 1, "time", 10, 5, score="tied column"),), 2, ())
    reference = reference_of(scenario)
    rows = [{"t": time, "y": y} for time, y in [(3, 5.0), (12, 4.0), (11, 4.0), (4, 9.0), (31, 1.0)]]
    assert [event[1:6] for event in reference.push(rows[:2])] == [(5, "enter", 1, 5.0, 0)]
    assert [event[1:6] for event in reference.push(rows[2:4])] == []
    assert reference.standing["q"].late == 1
    assert [event[1:6] for event in reference.push(rows[4:])] == [
        (15, "leave", None, 5.0, 0),
        (15, "enter", 1, 4.0, 1),
        (25, "leave", None, 4.0, 1),
    ]
    assert [event[1:6] for event in reference.flush()] == [(35, "enter", 1, 1.0, 4), (45, "leave", None, 1.0, 4)]
    assert reference.watermark == 45
    assert [end for end, _ in reference.standing["q"].reported] == [5, 10, 15, 20, 25, 35, 40, 45]


def test_result_rows_are_compared_whole() -> None:
    rows = streams.rows_of(streams.shaped("tied", 3))
    monitor = monitor_of(Scenario((Question("q", 2, "count", 3, 3),), 0, ()))
    events = events_of(monitor.push(batch_of(rows)))
    assert len(events) == 2
    assert all(event.row == plain(rows[event.seq]) for event in events)
    assert events != [event._replace(row=plain({**dict(event.row), "tag": "another"})) for event in events]

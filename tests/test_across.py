"""SLA and EAA: equal to the oracle whatever comes; EAA holds the k dominance set, no more and no less (CIKM09)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from across_harness import AGGREGATES, Sent, expected, feed, made, question
from across_reference import Asked, counting
from skyband.algorithms import TABLE
from skyband.algorithms.across.contract import Across
from skyband.errors import QueryError, StateError
from skyband.kernels.across import lists as across_lists
from skyband.kernels.across import sorted_blocks
from skyband.kernels.across.tables import ANY_NUMBER

EXACT = [entry.name for entry in TABLE if entry.family == "across" and entry.exact]
each_algorithm = pytest.mark.parametrize("name", EXACT)
LEVELS = (0.0, 0.25, 0.5, 1.0)


@st.composite
def questions(draw: st.DrawFn, *, growing: bool = False) -> Asked:
    """`growing`: only such as instances can answer."""
    size = draw(st.integers(1, 20))
    repeats = draw(st.sampled_from([None, 1, 1, 2, 3]))
    kinds = ["sum", "max"] if growing and repeats != 1 else [*AGGREGATES]
    return question(
        draw(st.integers(1, 4)),
        size,
        draw(st.integers(1, size)),
        draw(st.integers(1, 4)),
        combine=draw(st.sampled_from(["sum", "mean", "max"])),
        aggregate=draw(st.sampled_from(kinds)),
        repeats=repeats,
    )


@st.composite
def sendings(draw: st.DrawFn, streams: int, most: int = 80) -> list[Sent]:
    objects = draw(st.sampled_from([1, 4, 12, 40]))
    values = st.sampled_from(LEVELS) if draw(st.booleans()) else st.floats(0, 1)
    one = st.tuples(st.integers(0, objects - 1), st.integers(-1, streams - 1), values)
    return draw(st.lists(one, min_size=1, max_size=most))


def cuts_in(draw: Any, sent: list[Sent]) -> list[int]:
    return sorted(draw(st.lists(st.integers(1, len(sent)), max_size=4)))


def continued(name: str, query: Asked, algorithm: Across, high: float = 1.0) -> Any:
    fresh = made(name, query, high)
    fresh.restore(bytes(bytearray(algorithm.snapshot())))
    fresh.check_invariants()
    return fresh


# --- answers ----------------------------------------------------------------------------------------------------------


@each_algorithm
@given(data=st.data())
def test_answers_are_those_of_sorting_the_window(name: str, data: st.DataObject) -> None:
    query = data.draw(questions(growing=name == "eaa"))
    sent = data.draw(sendings(len(query.streams)))
    high = data.draw(st.sampled_from([1.0, 1.0, 3.0, math.inf]))
    algorithm = made(name, query, high)
    assert feed(algorithm, query, sent, cuts_in(data.draw, sent)) == expected(query, sent)
    algorithm.check_invariants()


@each_algorithm
@given(data=st.data())
def test_a_state_written_down_goes_on(name: str, data: st.DataObject) -> None:
    query = data.draw(questions(growing=name == "eaa"))
    sent = data.draw(sendings(len(query.streams)))
    cut = data.draw(st.integers(0, len(sent)))
    algorithm = made(name, query)
    found = feed(algorithm, query, sent[:cut]) if cut else []
    other = continued(name, query, algorithm)
    assert found + feed(other, query, sent) == expected(query, sent)
    other.check_invariants()


@each_algorithm
def test_a_state_of_another_plan_is_refused(name: str) -> None:
    one, other = (made(name, question(k, 10, 1, 2)) for k in (2, 3))
    with pytest.raises(StateError, match="made for"):
        other.restore(one.snapshot())


@each_algorithm
def test_infinite_values_rank_and_ties_go_to_the_newest(name: str) -> None:
    query = question(3, 6, 1, 2)
    sent = [(0, 0, math.inf), (1, 0, math.inf), (2, 1, 1.0), (0, 1, 0.0), (3, 1, 1.0)]
    found = feed(made(name, query, math.inf), query, sent)
    assert found == expected(query, sent)
    assert found[-1] == (5, (math.inf, math.inf, 1.0), (0, 1, 3))


@each_algorithm
@pytest.mark.parametrize("shape", ["falling", "rising", "one object", "many objects"])
def test_memory_does_not_grow_with_the_stream(name: str, shape: str) -> None:
    query = question(3, 50, 7, 2, repeats=None)
    algorithm, held = made(name, query), []
    rows = 4000
    value = {"falling": lambda i: 1 - i / rows, "rising": lambda i: i / rows}.get(shape, lambda i: i * 7 % 10 / 10)
    objects = {"one object": 1, "many objects": 200}.get(shape, 60)
    sent = [(i % objects, i % 2, value(i)) for i in range(rows)]
    for upto in range(400, rows + 1, 400):
        feed(algorithm, query, sent[:upto])
        held.append(algorithm.nbytes)
    assert held[-1] == held[2]
    assert algorithm.candidates <= 57


@each_algorithm
@pytest.mark.parametrize("aggregate", ["sum", "max"])
@pytest.mark.parametrize("slide", [1, 7, 40])
def test_objects_that_come_again_and_again(name: str, aggregate: str, slide: int) -> None:
    """One has half the tuples of the window, and another a fifth: sums to the last bit, whatever has left."""
    generator = np.random.default_rng(slide)
    query = question(3, 150, slide, 2, aggregate=aggregate)
    objects = generator.choice(6, 900, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05])
    columns = (objects, generator.integers(-1, 2, 900), generator.random(900))
    sent = [(int(o), int(x), float(v)) for o, x, v in zip(*columns, strict=True)]
    algorithm = made(name, query)
    assert feed(algorithm, query, sent, (400, 401, 650)) == expected(query, sent)
    algorithm.check_invariants()
    other = continued(name, query, algorithm)
    assert feed(other, query, [*sent, *sent[:300]]) == expected(query, [*sent, *sent[:300]])[len(sent) // slide :]


@each_algorithm
def test_what_is_handed_over_is_not_kept(name: str) -> None:
    query, sent = question(2, 8, 3, 2), [(i % 5, i % 2, i * 7 % 10 / 10) for i in range(40)]
    algorithm = made(name, query)
    found = []
    for upto in (11, 25, 40):
        lent = [*sent[:upto]]
        found += feed(algorithm, query, lent)
        lent.clear()
    assert found == expected(query, sent)


# --- the k dominance set ----------------------------------------------------------------------------------------------


def dominance_set(query: Asked, sent: list[Sent], high: float) -> dict[int, tuple[int, float, float]]:
    """The instances fewer than k other objects dominate, from scratch: object, score, best by ordinal (definition 1)."""
    rows = [(i, i, {"key": o, "stream": x, "value": v if x >= 0 else None}) for i, (o, x, v) in enumerate(sent)]
    facts = counting(query, rows)
    last = len(sent) - 1
    reach = (last // query.slide + 1) * query.slide - query.size
    lives: dict[Any, Any] = {}
    for fact in facts:
        lives[fact.key] = fact.life
    instances: dict[int, tuple[int, float, float]] = {}
    for start in (fact for fact in facts if fact.position >= reach):
        mine = [fact for fact in facts if fact.key == start.key and fact.life == lives[start.key]]
        now, best = [], []
        for stream in query.streams:
            own = [fact.value for fact in mine if fact.stream == stream and fact.position >= start.position]
            total = max(own, default=0.0) if query.aggregate == "max" else float(np.cumsum([0.0, *own])[-1])
            left = math.inf if query.repeats is None else query.repeats - sum(fact.stream == stream for fact in mine)
            more = left * high if left else 0.0
            now.append(total)
            best.append(total + more if query.aggregate != "max" else max(total, high) if left else total)
        instances[start.position] = (start.key, combined(query, now), combined(query, best))
    return {
        time: (key, score, best)
        for time, (key, score, best) in instances.items()
        if len({k for t, (k, s, _) in instances.items() if t > time and s > best and k != key}) < query.k
    }


def combined(query: Asked, values: list[float]) -> float:
    total = max(values) if query.combine == "max" else float(np.cumsum([0.0, *values])[-1])
    return total / len(values) if query.combine == "mean" else total


@given(data=st.data())
def test_eaa_holds_the_k_dominance_set_and_nothing_else(data: st.DataObject) -> None:
    query = data.draw(questions(growing=True))
    sent = data.draw(sendings(len(query.streams), 60))
    algorithm = made("eaa", query)
    cut = data.draw(st.integers(1, len(sent)))
    for upto in sorted({cut, len(sent)}):
        feed(algorithm, query, sent[:upto])
        algorithm.tidy()
        algorithm.check_invariants()
        wanted = dominance_set(query, sent[:upto], 1.0)
        held = {ordinal: (obj, score, best) for ordinal, obj, score, best in algorithm.instances()}
        assert set(held) == set(wanted), f"{held} is not {wanted}"
        for ordinal, (obj, score, best) in wanted.items():
            assert held[ordinal][:2] == (obj, score)
            assert held[ordinal][2] == pytest.approx(best) or best > 1e10


def test_most_instances_are_pruned_when_objects_are_complete() -> None:
    generator = np.random.default_rng(5)
    query = question(3, 600, 1, 2, repeats=1)
    sent = [(i // 2, i % 2, float(v)) for i, v in enumerate(generator.random(2000))]
    algorithm = made("eaa", query)
    feed(algorithm, query, sent)
    assert 3 <= algorithm.candidates < 60
    assert set(dominance_set(query, sent, 1.0)) == {ordinal for ordinal, *_ in algorithm.instances()}


def test_an_instance_never_dominates_one_of_its_own_object() -> None:
    query = question(1, 10, 1, 2, repeats=1)
    algorithm = made("eaa", query)
    feed(algorithm, query, [(0, 0, 0.0), (0, 1, 1.0)])
    algorithm.tidy()
    assert [entry[:2] for entry in algorithm.instances()] == [(0, 0), (1, 0)]


def test_figure_2_step_by_step() -> None:
    """p is seen in stream 2 at time 1, in 3 at 5, in 1 at 10; scores and bests of its instances after each."""
    query = question(1, 100, 1, 3, repeats=1)
    nothing = (0, -1, 0.0)
    sent: list[Sent] = [nothing] * 11
    sent[1], sent[5], sent[10] = (0, 1, 0.2), (0, 2, 0.3), (0, 0, 0.8)
    algorithm = made("eaa", query)
    shown = {}
    for upto in (2, 6, 11):
        feed(algorithm, query, sent[:upto])
        shown[upto - 1] = {time: (round(score, 6), round(best, 6)) for time, _, score, best in algorithm.instances()}
    assert shown == {
        1: {1: (0.2, 2.2)},
        5: {1: (0.5, 1.5), 5: (0.3, 1.3)},
        10: {1: (1.3, 1.3), 5: (1.1, 1.1), 10: (0.8, 0.8)},
    }


def test_latest_values_may_fall_and_are_not_for_instances() -> None:
    with pytest.raises(QueryError, match="only grow"):
        made("eaa", question(1, 10, 1, 2, aggregate="latest"))
    made("eaa", question(1, 10, 1, 2, aggregate="latest", repeats=1))


# --- sorted lists and the threshold algorithm ----------------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 400), st.integers(0, 5)), max_size=600), st.integers(0, 9))
def test_sorted_blocks_are_a_sorted_list(steps: list[tuple[bool, int, int]], seed: int) -> None:
    blocks, wanted = sorted_blocks.no_blocks(2, 4), []
    generator = np.random.default_rng(seed)
    many = [(False, int(x), int(y)) for x, y in generator.integers(0, 300, (seed * 60, 2))]
    for take_out, value, obj in [*many, *steps]:
        if blocks.spare[0] < 2:
            blocks = sorted_blocks.more_blocks(blocks)
        if take_out and wanted:
            entry = wanted.pop(value % len(wanted))
            sorted_blocks.remove(blocks, 1, *entry)
        elif (float(value), obj) not in wanted:
            wanted.append((float(value), obj))
            sorted_blocks.insert(blocks, 1, float(value), obj)
    found = []
    for block in blocks.order[1, : blocks.used[1]]:
        size = int(blocks.size[block])
        assert size > 0
        found += zip(blocks.value[block, :size].tolist(), blocks.obj[block, :size].tolist(), strict=True)
    assert found == sorted(wanted)
    assert blocks.used[0] == 0 and blocks.spare[0] + blocks.used.sum() == len(blocks.size)


def test_the_threshold_algorithm_reads_only_the_top_of_the_lists() -> None:
    """The window's best objects expire first, over and over, so that the view runs out and is filled again."""
    query = question(2, 400, 1, 2, repeats=1)
    sent = [(i // 2, i % 2, max(0.0, 1 - i / 3000)) for i in range(2000)]
    algorithm = made("sla", query, view=4)
    assert feed(algorithm, query, sent) == expected(query, sent)
    marks = algorithm.lists.marks
    assert marks[across_lists.REFILLS] > 100
    assert marks[across_lists.READ] < 12 * marks[across_lists.REFILLS]
    algorithm.check_invariants()


def test_the_invariants_notice_a_broken_state() -> None:
    query, sent = question(2, 8, 1, 2), [(i % 5, i % 2, i * 7 % 10 / 10) for i in range(40)]
    for name in EXACT:
        algorithm = made(name, query)
        feed(algorithm, query, sent)
        algorithm.check_invariants()
        if name == "across-oracle":
            algorithm.held.ordinal[:2] = algorithm.held.ordinal[1::-1].copy()
        elif name == "sla":
            algorithm.lists.whole[int(algorithm.view.obj[0]), 0] += 1.0
        else:
            algorithm.held.floor[: algorithm.held.marks[1]] += 1.0
        with pytest.raises(AssertionError):
            algorithm.check_invariants()


def test_any_number_of_repetitions_is_more_than_come() -> None:
    assert ANY_NUMBER > 1e12

"""How soon objects come again, in which stream and with what value, and what a score is worth to them: small cases by hand."""

from __future__ import annotations

import numpy as np
import pytest

from across_harness import feed, made, question
from skyband.kernels.across import instances as across_instances
from skyband.kernels.across import samples
from skyband.kernels.across.promise import GRID, Promises, promise_of, refill
from skyband.kernels.across.returns import GAPS, LADDER, Returns, class_after, class_of, foresee, gap_of, no_outlook, no_returns
from skyband.kernels.across.tables import Tuples


def noted(once: bool, *seen: tuple[int, int]) -> tuple[samples.Sample, Returns]:
    """A sample of two streams that saw these objects (object, stream), one after the other, a window of 100 moving along."""
    obj, stream = (np.array(column, np.int64) for column in zip(*seen, strict=True))
    count = len(obj)
    sample, returns = samples.no_sample(2), no_returns(2, once)
    hashes = (obj.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    tuples = Tuples(obj, stream, np.arange(count) / 10, np.zeros(count, np.int64), hashes)
    samples.see(sample, returns, tuples, 0, 0, count)
    return sample, returns


def test_gaps_are_noted_by_what_was_seen_of_an_object() -> None:
    """1 comes again after 2, in the other stream; 2 after 4; 3 does not; 4 only where it was, which counts once."""
    _, returns = noted(True, (1, 0), (2, 0), (1, 1), (3, 1), (4, 0), (4, 0), (2, 1))
    assert np.argwhere(returns.gaps).tolist() == [[0b01, gap_of(2)], [0b01, gap_of(5)]]
    assert returns.streams[0b01].tolist() == [0, 2] and returns.came.tolist() == [4, 3]
    assert returns.values[1, :3].tolist() == [0.2, 0.3, 0.6]
    _, returns = noted(False, (1, 0), (1, 0), (1, 1))
    assert returns.gaps[1].sum() == returns.gaps[2].sum() == 1  # it was seen once, then twice


def test_who_waits_tells_of_what_came_so_far() -> None:
    sample, returns = noted(True, (1, 0), (2, 0), (1, 1), (3, 1))
    waiting, unit = samples.waiting(sample, returns, 0, 4)
    assert unit == 1.0 and waiting.sum() == 3
    assert waiting[0b01, gap_of(3)] == waiting[0b10, gap_of(1)] == waiting[0b11, gap_of(2)] == 1


def test_classes_of_how_often_an_object_came_widen() -> None:
    classes = [class_of(0, story) for story in range(1, 400)]
    assert classes[:8] == list(range(1, 9)) and classes == sorted(classes) and classes[-1] == LADDER - 1
    assert class_after(1, 0b001, 2) == 0b101 and class_after(0, 3, 1) == 4


def test_what_comes_soon_is_expected_soon_and_what_waited_long_is_not() -> None:
    """Of a thousand objects seen in stream 0, half come again after some ten ordinals; the others never do."""
    returns, waiting = no_returns(2, True), np.zeros((4, GAPS))
    returns.gaps[0b01, gap_of(10)], returns.streams[0b01] = 500, (0, 500)
    waiting[0b01, gap_of(900)] = 500
    outlook = no_outlook(returns)
    foresee(returns, waiting, 1000, 1.0, outlook)
    assert outlook.chance[0b01] == pytest.approx(0.5, abs=0.05)
    assert outlook.soon[0b01, gap_of(8)] > 0.03 and outlook.soon[0b01, gap_of(40)] < 1e-3
    assert outlook.share[0b01].tolist() == pytest.approx([0, 1])


def test_a_promise_is_the_time_among_the_best_by_the_time_held() -> None:
    """One that leads ranks all its time; one far behind promises what its object's coming again does: less and less."""
    query = question(2, 100, 1, 2, repeats=1)
    algorithm = made("eaa-approximate", query)
    feed(algorithm, query, [(i, 0, 0.9 if i < 3 else 0.1) for i in range(60)])
    held, objects, rule = algorithm.held, algorithm.objects, algorithm.rule
    returns, waiting = no_returns(2, True), np.zeros((4, GAPS))
    returns.gaps[0b01, gap_of(10)], returns.streams[0b01] = 500, (0, 500)
    returns.values[:], returns.came[:] = 0.9, 64
    waiting[0b01, gap_of(90)] = 500
    outlook, (ranking, raised) = no_outlook(returns), np.ones((2, 4, GRID))
    foresee(returns, waiting, 100, 1.0, outlook)
    room, filled = np.zeros((2, len(held.ordinal))), np.array([0.0, -1.0])
    promises = Promises(1, 0, 0, np.zeros(1), returns.sets, outlook, ranking, raised, filled, room)
    held.level[:3], held.level[3:6] = 0.9, 0.1
    refill(promises, held.level, 6, rule)
    last = int(held.marks[across_instances.STOP]) - 1
    room[0, last] = 6
    soon, late = (promise_of(held, objects, last, 0, now, 6, rule, promises) for now in (61, 95))
    assert soon > 0.5 and late < 0.05 * soon
    room[0, last], held.current[last] = 0, 1.0
    assert promise_of(held, objects, last, 0, 95, 6, rule, promises) > 0.9

"""ICDE12's experiments: every line of every table can be measured, and what is measured answers rightly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from repro import pairs
from repro.icde12 import EXPERIMENTS, LAB, SENSORS
from repro.pairs import Effort, PairExperiment, PairSet, Setting, asked, feed, fill, structures

TINY = Effort(pairs=0, rows=5, shrink=50)
UNIFORM = PairSet("uniform", "uniform", 200)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_every_line_is_measured(experiment: PairExperiment) -> None:
    columns = {column.axis: column for column in experiment.columns if column.quick}
    small = replace(experiment.narrowed(tuple(columns.values())), data={"uniform": UNIFORM}, queries=min(experiment.queries, 5))
    told: list[str] = []
    cells = pairs.run(small, TINY, {}, told.append)
    assert len(told) == len(columns) and len(cells) == len(columns) * len(experiment.series)
    for cell in cells:
        line = experiment.series[cell.series]
        measured = (not line.only or cell.axis in line.only) and cell.k <= line.largest_k
        assert (cell.ours is not None and cell.ours > 0) if measured else cell.ours is None, cell


def test_windows_that_take_too_long_are_left_out_and_said_so() -> None:
    experiment = next(one for one in EXPERIMENTS if one.name == "icde12-figure12")
    (basic,) = [line for name, line in experiment.series.items() if name == "basic"]
    small = replace(experiment, data={"uniform": UNIFORM}, series={"basic": replace(basic, largest=100)})
    cells = pairs.run(small.narrowed(small.columns[:1]), TINY, {}, lambda text: None)
    assert [(cell.ours, "takes too long" in cell.reason) for cell in cells] == [(None, True)]


def test_windows_for_which_there_are_too_few_readings_are_left_out_and_said_so() -> None:
    experiment = next(one for one in EXPERIMENTS if one.name == "icde12-figure7-lab")
    short = replace(experiment, data={"short": replace(UNIFORM, largest=100)})
    cells = pairs.run(short.narrowed(short.columns[:1]), TINY, {}, lambda text: None)
    assert [(cell.ours, cell.reason) for cell in cells] == [(None, "has rows for windows of 100")] * len(experiment.series)


@pytest.mark.data
@pytest.mark.parametrize("source", [*SENSORS.values(), *LAB.values()], ids=lambda source: source.kind)
def test_readings_come_in_the_order_of_time(source: PairSet) -> None:
    minute, temperature, humidity = source.draw(12_000, 3)
    assert (np.diff(minute) >= 0).all() and minute[-1] - minute[0] > 4 * 60
    assert 10 < np.median(temperature) < 40 and 10 < np.median(humidity) < 80


def test_the_four_scores_and_what_they_ask_for() -> None:
    setting = Setting(UNIFORM, "scase", 3, 300, 2)
    rows = UNIFORM.draw(400, 2)
    apart = np.abs(rows[:, None, -300:] - rows[:, -300:, None])
    kept = np.triu_indices(300, 1)
    plain = {"l1": apart.sum(axis=0)[kept], "product": apart.prod(axis=0)[kept]}
    expected = [
        np.sort(plain["l1"])[:3],
        -np.sort(-plain["l1"])[:3],
        np.sort(plain["product"])[:3],
        -np.sort(-plain["product"])[:3],
    ]
    for structure, best in zip(structures(setting), expected, strict=True):
        queries = asked(setting)
        fill(structure, rows, setting, queries)
        feed(structure, rows, 300, 400, queries, 300)
        assert np.allclose(np.abs(structure.answers.score[0, :3]), best)


def test_data_sets_are_related_as_they_are_called() -> None:
    def relation(kind: str) -> float:
        return float(np.corrcoef(PairSet(kind, kind, 1).draw(4000, 2))[0, 1])

    assert relation("correlated") > 0.9 and relation("anticorrelated") < -0.8 and abs(relation("uniform")) < 0.05

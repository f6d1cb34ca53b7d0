"""The papers' experiments: claims are well formed, judged rightly, and a small run writes what it promises."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from harness import feed, plan_of
from repro import claims as table
from repro import record, report, tkde17
from repro.__main__ import RESULTS, app
from repro.claims import CLAIMS, EXPERIMENTS, FAILS, HOLDS, OPEN, Claim, claims_of, judge
from repro.experiment import Cell, Column, OneQuery
from repro.plot import picture
from repro.relations import RELATIONS
from repro.remarks import REMARKS
from repro.runner import Effort, measure, pieces, run, structure_of
from repro.streams import DataSet
from repro.tkde17 import BYTES_A_CANDIDATE, DATA
from skyband.algorithms import TABLE, build

GENERATED = DataSet("D", "uniform", 1000)


def cells_of(ours: dict[str, list[float | None]], paper: dict[str, list[float]], data: str = "D") -> list[Cell]:
    return [
        Cell(data, name, "k", str(place), 1000, 10, 100, value, paper[name][place], "" if value is not None else "no data")
        for name, line in ours.items()
        for place, value in enumerate(line)
    ]


def verdict_of(claim: Claim, cells: list[Cell], data: DataSet = GENERATED) -> table.Verdict:
    (verdict,) = judge(claim, cells, {"D": data})
    return verdict


# -- the table -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_a_claim_names_what_exists(claim: Claim) -> None:
    experiment = EXPERIMENTS[claim.experiment]
    assert claim.relation in RELATIONS
    named = [names if isinstance(names, tuple) else (names,) for names in (claim.of, claim.than or ())]
    assert set(named[0] + named[1]) <= set(experiment.series) and claim.of
    assert set(claim.data) | set(claim.aside) <= set(experiment.data)
    assert set(claim.axes) <= {column.axis for column in experiment.columns}
    assert set(claim.columns) <= {
        column.label for column in experiment.columns if column.axis in (claim.axes or (column.axis,))
    }
    assert claim.over in ("mean", "every") and claim.bound > 0
    assert ("{than}" in RELATIONS[claim.relation].text) == bool(claim.than)


def test_claims_have_names_of_their_own_and_every_experiment_has_some() -> None:
    assert len({claim.name for claim in CLAIMS}) == len(CLAIMS)
    assert {claim.experiment for claim in CLAIMS} == set(EXPERIMENTS)


@pytest.mark.parametrize("experiment", tkde17.EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_an_experiment_has_a_figure_for_every_column_and_algorithms_of_the_registry(experiment: OneQuery) -> None:
    assert {line.algorithm for line in experiment.series.values()} <= {entry.name for entry in TABLE}
    assert set(experiment.figures) == (set(experiment.data) if experiment.table.startswith("Table") else set())
    for lines in experiment.figures.values():
        assert set(lines) <= set(experiment.series)
        assert all(len(line) == len(experiment.columns) and min(line) > 0 for line in lines.values())
    assert {column.axis for column in experiment.quick().columns} == {column.axis for column in experiment.columns}
    for data in experiment.data:
        for name in experiment.series:
            for column in experiment.columns:
                setting = experiment.setting(data, name, column)
                assert 1 <= setting.slide <= setting.size and setting.k <= setting.size
                structure_of(replace(setting, size=64, slide=8, k=2))


def test_the_papers_own_figures_keep_what_the_paper_says_of_them() -> None:
    """Relations within one table hold for the printed figures too, wherever there are any."""
    for claim in CLAIMS:
        experiment = EXPERIMENTS[claim.experiment]
        printed = {name for lines in experiment.figures.values() for name in lines}
        if not RELATIONS[claim.relation].own or not {claim.of, claim.than} <= printed:  # several names: none are printed
            continue
        for data in claim.data or experiment.data:
            of, than = (experiment.figures[data][name] for name in (claim.of, claim.than))
            cells = [
                Cell(data, name, column.axis, column.label, 1, 1, 1, figure, figure)
                for name, line in ((claim.of, of), (claim.than, than))
                for column, figure in zip(experiment.columns, line, strict=True)
            ]
            (verdict,) = judge(replace(claim, data=(data,)), cells, experiment.data)
            assert verdict.verdict == HOLDS and verdict.measured == verdict.printed, (claim.name, data, verdict)


def test_default_settings_are_the_papers() -> None:
    experiment = EXPERIMENTS["tkde17-table3"]
    default = [column for column in experiment.columns if column.label in ("0.1%", "100")]
    settings = {experiment.setting("TIME-U", "EQUAL", column) for column in default}
    assert [(one.size, one.slide, one.k) for one in settings] == [(100_000, 100, 100)]
    assert all(24 < size < 36 for size in BYTES_A_CANDIDATE.values())


def test_the_page_of_claims_says_what_the_stored_results_say() -> None:
    assert record.PAGE.read_text() == record.page(RESULTS), "write it anew: ./run repro record"


def test_the_page_of_claims_tells_why_where_a_claim_fails_and_says_what_was_not_measured(tmp_path: Path) -> None:
    assert set(REMARKS) <= {claim.name for claim in CLAIMS}
    experiment, claim = EXPERIMENTS["tkde17-table2"], next(one for one in CLAIMS if one.name == "delay")
    for slower, shown in ((0.5, "TIMEᵘ 0.5 ✓"), (2.0, "TIMEᵘ 2 ✗")):
        cells = [
            Cell(data, name, column.axis, column.label, 1000, 10, 100, slower if name == claim.of else 1.0, 1.0)
            for data in experiment.data
            for name in experiment.series
            for column in experiment.columns
        ]
        (tmp_path / "tkde17-table2.json").write_text(json.dumps({"cells": [asdict(cell) for cell in cells]}))
        page = record.page(tmp_path)
        assert shown in page and (REMARKS["delay"] in page) == (slower > 1)
        assert "Not measured: `./run repro run sigmod06-fig15`." in page


# -- judging ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "over", "a", "b", "bound", "verdict", "measured"),
    [
        ("at most", "mean", [1, 4], [2, 2], 1.0, HOLDS, 1.0),
        ("at most", "every", [1, 4], [2, 2], 1.0, FAILS, 2.0),
        ("at most", "every", [1, None], [2, None], 1.0, HOLDS, 0.5),
        ("at most", "mean", [None, None], [None, None], 1.0, OPEN, None),
        ("at most the paper's", "mean", [5, 20], [1, 1], 1.0, HOLDS, 1.0),
        ("at most the paper's", "mean", [5, 21], [1, 1], 1.0, FAILS, 1.0247),
        ("gains as the paper's", "mean", [1, 1], [1, 1], 1.0, FAILS, 2.0),
        ("gains as the paper's", "mean", [1, 1], [2, 2], 1.0, HOLDS, 1.0),
        ("steadier", "mean", [1, 3], [1, 2], 1.05, FAILS, 1.5),
        ("steadier", "mean", [1, None], [1, None], 1.05, OPEN, None),
        ("fades", "mean", [1, 2], [2, 2], 1.05, HOLDS, 0.5),
    ],
)
def test_a_claim_is_judged(
    relation: str,
    over: str,
    a: list[float | None],
    b: list[float | None],
    bound: float,
    verdict: str,
    measured: float | None,
) -> None:
    cells = cells_of({"a": a, "b": b}, {"a": [10, 10], "b": [20, 20]})
    than = "b" if "{than}" in RELATIONS[relation].text else ""
    found = verdict_of(Claim("c", "e", "", relation, "a", than, bound, over), cells)
    assert found.verdict == verdict
    assert found.measured == (None if measured is None else pytest.approx(measured, abs=1e-4))


@pytest.mark.parametrize(
    ("relation", "line", "than", "measured"),
    [
        ("straight", [3, 5, 9, 17], [], 0.0),  # 1 + 2 x
        ("straight", [1, 4, 16, 64], [], 0.0379),  # x²: 1 - R²
        ("straight", [9, 5, 3, 1], [], math.inf),
        ("straight", [3, 5], [], None),
        ("power", [5, 5, 5, 5], [], 0.0),
        ("power", [1, 4, 16, 64], [], 2.0),
        ("in proportion", [3, 6, 12, 24], [], 0.0),
        ("in proportion", [1, 2**0.5, 2, 8**0.5], [], 0.5),
        ("slower", [1, 2, 4, 8], [1, 4, 16, 64], 0.5),
    ],
)
def test_growth_is_fitted_over_all_columns(relation: str, line: list[float], than: list[float], measured: float | None) -> None:
    """Columns at 1, 2, 4 and 8, whatever their order in a table."""
    cells = [
        Cell("D", name, "n", str(x), x, 1, 1, y, None, value=x)
        for name, figures in (("a", line), ("b", than))
        for x, y in zip((1, 2, 4, 8), figures, strict=False)
    ]
    found = verdict_of(Claim("c", "e", "", relation, "a", "b" if than else ""), cells)
    assert found.measured == (None if measured is None else pytest.approx(measured, abs=1e-3))


def test_what_is_set_aside_or_left_out_says_why() -> None:
    cells = cells_of({"a": [1, None]}, {"a": [10, 10]})
    claim = Claim("c", "e", "", "at most the paper's", "a")
    assert "1 left out: no data" in verdict_of(claim, cells).reason
    aside = verdict_of(replace(claim, aside={"D": "another stream"}), cells)
    assert (aside.verdict, aside.reason, aside.measured) == (OPEN, "another stream", pytest.approx(0.1))


def test_a_stand_ins_counts_are_shown_but_decide_nothing() -> None:
    stand_in = replace(GENERATED, stands_in="something like it")
    cells = cells_of({"a": [1], "b": [2]}, {"a": [10], "b": [10]})
    counted = verdict_of(Claim("c", "e", "", "at most the paper's", "a"), cells, stand_in)
    assert counted.verdict == OPEN and counted.measured == pytest.approx(0.1) and "stand-in" in counted.reason
    assert verdict_of(Claim("c", "e", "", "at most", "a", "b"), cells, stand_in).verdict == HOLDS


def test_the_expected_skyband_is_that_of_random_order() -> None:
    """k rows for sure, then each older row with chance k/i."""
    expected = sum(min(1.0, 100 / i) for i in range(1, 1001))
    claim = Claim("c", "e", "", "random order", "a", bound=0.05, over="every")
    assert verdict_of(claim, cells_of({"a": [expected]}, {"a": [1.0]})).measured == pytest.approx(0.0, abs=1e-9)
    assert verdict_of(claim, cells_of({"a": [1.1 * expected]}, {"a": [1.0]})).verdict == FAILS


# -- running ---------------------------------------------------------------------------------------------------------


def small(name: str) -> OneQuery:
    """An experiment on generated data with tiny windows, and one real stream that is not there."""
    experiment = EXPERIMENTS[name]
    assert isinstance(experiment, OneQuery)
    data = {
        "TIME-U": DataSet("TIMEᵘ", "uniform", 400),
        "STOCK": DATA["STOCK"],
    }
    figures = {key: experiment.figures[key] for key in data}
    return replace(experiment, data=data, figures=figures, k=5).quick()


def test_every_window_is_answered_in_pieces_of_whole_slides() -> None:
    scores = np.random.default_rng(1).random(1000)
    structure, whole = (build("strict", plan_of((100, 7, 5))) for _ in range(2))
    stops = [stop for stop, _ in pieces(structure, scores, 50)]
    assert all(stop % 7 == 0 for stop in stops) and stops[-1] == 994
    feed(whole, scores)
    assert np.array_equal(structure.tops.ordinal, whole.tops.ordinal)


def test_candidates_are_averaged_once_the_window_is_full() -> None:
    """Where scores fall every row can still win: after the first window as many candidates as rows in the window."""
    falling = -np.arange(2000.0)
    setting = EXPERIMENTS["tkde17-table6"].setting("TIME-U", "k-skyband", Column("k", "3", 3))
    found = measure(replace(setting, size=200, slide=10), falling, piece=10)
    assert found.candidates == 200 and found.seconds > 0 and found.bytes >= 200 * 16


def test_an_algorithm_over_points_is_driven_with_scores() -> None:
    """Where scores fall SMA holds what it was last filled with: up to k rows, and none that k newer ones outrank."""
    setting = EXPERIMENTS["tkde17-fig9"].setting("TIME-U", "SMA", Column("k", "3", 3))
    found = measure(replace(setting, size=200, slide=10), -np.arange(2000.0), piece=10)
    assert found.candidates == 3 and found.seconds > 0 and found.bytes >= 200 * 16
    random = measure(replace(setting, size=200, slide=10), np.random.default_rng(1).random(4000), piece=10)
    assert 3 < random.candidates < 12


def test_a_small_run_writes_json_tables_and_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SKYBAND_DATA", raising=False)
    name = "tkde17-table8"
    experiment = small(name)
    steps: list[str] = []
    cells = run(experiment, Effort(rows=800, tries=1), {}, steps.append)
    assert len(steps) == len(experiment.data) * len(experiment.columns)
    assert len(cells) == len(steps) * len(experiment.series)
    verdicts = [verdict for claim in claims_of(name) for verdict in judge(replace(claim, data=()), cells, experiment.data)]
    shown = report.outcome(experiment, cells, claims_of(name), verdicts)
    path = report.write(tmp_path, experiment, cells, verdicts, shown, quick=True)
    document = json.loads(path.read_text())
    assert {cell["reason"] for cell in document["cells"] if cell["data"] == "STOCK"} == {"needs SKYBAND_DATA"}
    assert all(cell["ours"] > 0 for cell in document["cells"] if cell["data"] == "TIME-U")
    assert {entry["verdict"] for entry in document["verdicts"] if entry["data"] == "STOCK"} == {OPEN}
    assert {entry["verdict"] for entry in document["verdicts"] if entry["data"] == "TIME-U"} <= {HOLDS, FAILS}
    assert "needs SKYBAND_DATA" in path.with_suffix(".txt").read_text()
    assert picture(experiment, cells, tmp_path).read_bytes().startswith(b"\x89PNG")


def test_tables_that_share_settings_measure_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SKYBAND_DATA", raising=False)
    taken: dict[object, object] = {}
    run(small("tkde17-table6"), Effort(rows=400, tries=1), taken, lambda text: None)  # type: ignore[arg-type]
    before = dict(taken)
    run(small("tkde17-table8"), Effort(rows=400, tries=1), taken, lambda text: None)  # type: ignore[arg-type]
    assert taken == before


def test_the_command_lists_claims_and_refuses_unknown_experiments() -> None:
    listed = CliRunner().invoke(app, [])
    assert listed.exit_code == 0 and all(claim.name in listed.output for claim in CLAIMS)
    refused = CliRunner().invoke(app, ["run", "table99"])
    assert refused.exit_code == 2 and "tkde17-table2" in refused.output.replace("\n", "")

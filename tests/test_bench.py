"""What the benchmarks print for programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import __main__ as bench
from benchmarks import grid, numbers, record
from benchmarks.figure import Figure
from benchmarks.measure import Setting
from benchmarks.pairs import any_score, crossing


def test_json_is_one_object_a_line_and_a_part_does_not_replace_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "RESULTS", tmp_path)
    monkeypatch.setattr(bench, "console", bench.console)  # set back afterwards, as are the lines
    monkeypatch.setattr(bench, "lines", bench.lines)
    monkeypatch.setattr(grid, "ALGORITHMS", ("auto", "strict"))
    monkeypatch.setattr(grid, "names", lambda: ["uniform"])
    words = ["--json", "grid", "--budget", "0.001", "--rounds", "1", "--only", "10000:1000:10"]
    said = CliRunner().invoke(bench.app, words, catch_exceptions=False)
    cells = [json.loads(line) for line in said.stdout.splitlines()]
    assert {cell["algorithm"] for cell in cells} == {"auto", "strict"}
    assert all(cell["rows_per_second"] > 0 and cell["slide"] == 1000 for cell in cells)
    assert [file.name for file in tmp_path.iterdir()] == ["grid-changes-part.json"]


def test_figures_of_some_leave_the_others_in_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "RESULTS", tmp_path)

    def measured(*values: tuple[str, float]) -> Callable[..., list[Figure]]:
        return lambda say: [Figure(what, "nothing", 0, value, "s") for what, value in values]

    bench._show("Many", "many", measured(("one", 1.0), ("ten", 10.0)), some=True)
    bench._show("Many", "many", measured(("ten", 11.0), ("all", 12.0)), some=True)
    recorded = json.loads((tmp_path / "many.json").read_text())["figures"]
    assert [(one["what"], one["measured"]) for one in recorded] == [("one", 1.0), ("ten", 11.0), ("all", 12.0)]
    bench._show("Many", "many", measured(("one", 2.0)))
    assert len(json.loads((tmp_path / "many.json").read_text())["figures"]) == 1


def test_rough_figures_leave_the_record_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "RESULTS", tmp_path)
    monkeypatch.setattr(numbers, "figures", lambda say, quick: [Figure("one", "nothing", 0, 1.0, "s")])
    for words, written in ((["numbers", "--quick"], ["numbers-quick.json"]), ([], ["numbers-quick.json", "numbers.json"])):
        assert CliRunner().invoke(bench.app, words, catch_exceptions=False).exit_code == 0
        assert sorted(file.name for file in tmp_path.iterdir()) == written


def test_a_rival_whose_window_did_not_fill_is_left_out() -> None:
    scores, batches = np.arange(40.0), [np.arange(5.0)]
    rows = []
    for algorithm, limit in (("auto", np.inf), ("panes", 0.0), ("strict", np.inf)):
        rival = grid.Rival.filled(Setting("rising", 20, 5, 2, algorithm, "changes"), scores, limit)
        assert (rival.full is None) == (algorithm == "panes")
        if rival.full is not None:
            rival.take(batches, np.inf)
            assert rival.full.stats("q")["rows"] == 20, "rounds must not go on from one another"
        rows.append(rival.measured(5, 1.0).as_json())
    assert [row["rows_per_second"] is None for row in rows] == [False, True, False]
    (verdict,) = grid.auto_against_best(rows)
    assert (verdict["best"], verdict["left_out"]) == ("strict", ["panes"])
    assert grid.time_of(rows, "strict", "panes") == [] and len(grid.time_of(rows, "auto", "strict")) == 1


def test_a_promise_says_whether_the_paper_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """TKDE17 gives SAP's ratios for its three real streams alone, which are measured whenever real streams are."""
    monkeypatch.setattr(numbers, "names", lambda: ["uniform", "sine", "falling", "taxi"])
    monkeypatch.setattr(numbers, "real_folder", lambda: Path("somewhere"))
    monkeypatch.setattr(numbers, "stream", lambda data, rows: np.zeros(0))
    monkeypatch.setattr(numbers, "drive", lambda setting, scores, batch, budget: 1e-9)
    found = [one for one in numbers.rivals(lambda what: None, quick=True) if one.hold == 0.035]
    said = {one.what.split(", ")[1]: one.yardstick for one in found}
    assert {data for data, beside in said.items() if "its own ratio" in beside} == {"taxi", "trades", "observations"}
    assert {data for data, beside in said.items() if "it says only: faster" in beside} == {"uniform", "sine"}
    assert "no stream of the paper's" in said["falling"]
    sizes = {one.what.split(", ")[1]: one.what.split(", ")[2:4] for one in found}
    assert sizes["trades"] == ["n=5·10⁴", "s=50"] and sizes["observations"] == ["n=10⁴", "s=10"]


def test_the_page_of_promises_is_what_stored_results_say() -> None:
    assert record.PAGE.read_text() == record.page(bench.RESULTS), "write it anew: ./run bench record"


def test_the_page_says_what_is_missed_and_what_was_never_measured(tmp_path: Path) -> None:
    def stored(*found: Figure) -> None:
        (tmp_path / "points.json").write_text(json.dumps({"figures": [figure.as_json() for figure in found]}))

    stored(
        Figure("rows", "a yardstick", 2.0, 1.5, "s"), Figure("bytes", "–", 2.0, 1.5, "kB", False), Figure("x", "", 0, 9.0, "s")
    )
    page = record.page(tmp_path)
    assert "1 of 2 promises hold" in page and "Not measured: `./run bench pairs`." in page
    assert "| rows | a yardstick | ≤ 2 s | 1.5 ✓ |  |" in page and "| bytes |  | ≥ 2 kB | 1.5 ✗ |  |" in page
    assert "| x |" not in page


def test_a_missed_promise_comes_with_its_reason() -> None:
    """Every one of those that the record holds, and none that is not there any more."""
    missed = [one for section in record.SECTIONS for one in record.figures(bench.RESULTS / f"{section.file}.json")]
    missed = [one for one in missed if not one["holds"]]
    assert all(len(record.reasons(one)) <= 1 for one in missed)
    assert {why for _, why in record.WHY} == {why for one in missed for why in record.reasons(one)}


@pytest.mark.parametrize(
    ("times", "says"),
    [
        ([2.0, 1.0, 0.5], "faster from 20,000 rows on"),
        ([2.0, 0.5, 0.25], "faster from 14,000 rows on"),
        ([0.9, 1.2, 0.5], "faster from 23,000 rows on"),
        ([0.9, 0.8, 0.7], "faster below 10,000 rows"),
        ([0.9, 1.0, 1.1], "slower up to 40,000 rows"),
    ],
)
def test_where_two_ways_cost_the_same(times: list[float], says: str) -> None:
    assert crossing((10_000, 20_000, 40_000), times) == says


def test_any_score_that_a_text_can_say_is_measured() -> None:
    figures = list(any_score(lambda what: None, Figure, windows=[(300, 40, 10)]))
    assert len(figures) == len({figure.what for figure in figures}) == 12
    assert all(0 < figure.measured < np.inf for figure in figures)

"""What the benchmarks print for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks import __main__ as bench


def test_json_is_one_object_a_line_and_a_part_does_not_replace_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "RESULTS", tmp_path)
    monkeypatch.setattr(bench, "console", bench.console)  # set back afterwards, as are the lines
    monkeypatch.setattr(bench, "lines", bench.lines)
    monkeypatch.delenv("SKYBAND_DATA", raising=False)
    words = ["--json", "grid", "--budget", "0.001", "--rounds", "1", "--only", "10000:1000:10"]
    said = CliRunner().invoke(bench.app, words, catch_exceptions=False)
    cells = [json.loads(line) for line in said.stdout.splitlines()]
    assert {cell["algorithm"] for cell in cells} == set(bench.grid.ALGORITHMS)
    assert all(cell["rows_per_second"] > 0 and cell["slide"] == 1000 for cell in cells)
    assert [file.name for file in tmp_path.iterdir()] == ["grid-changes-part.json"]

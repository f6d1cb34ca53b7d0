"""The picture of a running job in a terminal: tops as tables, and the figures."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from rich.console import Console

import skyband as sb
from skyband.console.job_screen import picture
from skyband.spark.jobs.board import Board
from skyband.spark.progress import Figures

WINDOW = sb.TimeWindow(10, 10)


def seen(queries: list[Any], results: list[dict[str, Any]], width: int) -> list[str]:
    """The lines of the picture, without figures."""
    board = Board(queries)
    board.take(pa.Table.from_pylist(results))
    console = Console(width=width, height=30, highlight=False)
    with console.capture() as captured:
        console.print(picture(Figures(), [board], 30, width))
    return [line.rstrip() for line in captured.get().splitlines()][:-2]


def test_a_title_is_one_line_however_narrow_its_table() -> None:
    query = sb.TopKAcross(name="most", k=1, key="id", stream="s", value="x", streams=["r"], window=WINDOW)
    result = {"query": "most", "window_end": 1_700_000_000, "event": "enter", "rank": 1, "score": 2.5, "object": {"id": 7}}
    assert seen([query], [{**result, "row": None}], 100) == [
        "most, window to 1700000000",
        " #   score   id",
        "────────────────",
        " 1     2.5    7",
        "",
    ]


def test_of_pairs_too_wide_for_the_screen_both_rows_are_shown() -> None:
    query = sb.TopKPairs(name="near", k=1, score="abs(a.x - b.x)", window=WINDOW)
    a, b = ({"t": t, "id": t % 7, "x": float(t), "y": 0, "z": 0} for t in (3, 9))
    result = {"query": "near", "window_end": 10, "event": "enter", "rank": 1, "score": 6.0, "pair": {"a": a, "b": b}}
    header = {width: seen([query], [{**result, "row": None}], width)[1].split() for width in (40, 60, 90, 200)}
    assert header[40] == ["#", "score", "a.t"]
    assert header[60] == ["#", "score", "a.t", "b.t"]
    assert header[90] == ["#", "score", "a.t", "a.id", "b.t", "b.id"]
    assert header[200] == ["#", "score", *(f"{side}.{name}" for side in "ab" for name in a)]

"""What `auto` takes for one score: the measured rule, seen from outside."""

from __future__ import annotations

import numpy as np
import pytest

import skyband as sb


@pytest.mark.parametrize(
    ("size", "slide", "k", "emit", "chosen"),
    [
        (100_000, 100, 1, "changes", "sap"),
        (100_000, 10, 1, "changes", "shared"),  # many windows a row
        (1_000_000, 1000, 1, "changes", "shared"),  # a large window of many slides
        (1_000_000, 100_000, 1, "changes", "sap"),
        (100_000, 100, 2, "changes", "shared"),
        (100_000, 100, 1, "none", "shared"),  # nobody is told of most windows
    ],
)
def test_sap_finds_the_best_row_alone_where_slides_are_long(size: int, slide: int, k: int, emit: str, chosen: str) -> None:
    monitor = sb.Monitor([sb.TopK(name="q", k=k, score="x", window=sb.CountWindow(size, slide), emit=emit)])
    monitor.push({"x": np.arange(3.0)})
    assert monitor.stats("q")["algorithm"] == chosen

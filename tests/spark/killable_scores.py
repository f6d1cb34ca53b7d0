"""The job of `killable_kinds` with more scores than columns are made for: its states are logs."""

from __future__ import annotations

import sys

from killable_kinds import main

import skyband as sb

_EMITS = ("changes", "changes", "snapshots", "arrivals")
SCORES = [
    sb.TopK(name=f"q{n}", k=3, score=sb.linear({"x": n / 80, "y": 1.0}), window=sb.CountWindow(90, 15), emit=_EMITS[n % 4])
    for n in range(72)
] + [
    sb.TopK(name=f"t{n}", k=2, score=sb.linear({"x": 1.0, "y": n / 9}), window=sb.TimeWindow("10 seconds", "2 seconds"))
    for n in range(4)
]


if __name__ == "__main__":
    main(*sys.argv[1:5], asked=SCORES)

"""`algorithm="auto"`: which algorithm for which question, from measured costs.

The rule looks at the plan (how many queries, n, s, k, the kind of window) and never at the data, so that the choice is
the same on every run. `./run bench grid` measures every algorithm over the grid of sizes, slides, k and data, and prints
where the choice is how far from the best; docs/performance.md shows the last run.

What the grid says:

- `shared` reads a row with one vectorized comparison and touches its views only for rows that reach them: it is the
  fastest or within noise of it on steady streams for every n, s and k, and keeps within reach of the others on rising and
  falling ones, because it leaps over rows nobody will ask about and ranks leaves only when questions come often.
- `panes` does the same work as `shared` where a window is few slides long and k is small against the slide, with less
  to look after: no floors, no ladder.
- `sap` needs fewer candidates than any other, at up to twice the time of `shared`.
- `strict` and `mintopk` win on falling streams only (nothing is ever dropped there, and they do nothing else), and lose
  by one or two orders of magnitude on others: no plan tells which stream will come, so they are never chosen.
"""

from __future__ import annotations

from skyband.algorithms.contract import Plan


def choose(plan: Plan) -> str:
    """The name of the algorithm to use for a plan."""
    return "shared"

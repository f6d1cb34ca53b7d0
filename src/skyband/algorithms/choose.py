"""`algorithm="auto"`: which algorithm for which question, from measured costs.

The rule may look at the plan (how many queries, n, s, k, the kind of window) and never at the data, so that the choice is
the same on every run. `./run bench grid` measures every algorithm over n from 10⁴ to 10⁶, s from 1 to n/10, k from 1 to 1000
on random, sinusoidal, falling and real streams, every window answered, and prints how far the choice is from the best.
Time over that of the cell's fastest algorithm, over the 220 cells of the last run:

    ============  ==============  ===========================  ================================================
    algorithm     geometric mean  cells within 1.3 of the best  where it is the best
    ============  ==============  ===========================  ================================================
    shared        1.14            179 (188: see below)         nearly everywhere, the more so the smaller s
    sap           1.4             111                          slides of n/10; fewest candidates everywhere
    sap-equal     1.5             110                          slides of n/10
    panes         1.9             81                           a few cells, mostly slides of n/10
    strict        3.2             62                           falling streams, where nothing can be dropped
    mintopk       4.2             47                           falling streams with s = 1
    ============  ==============  ===========================  ================================================

(The run measures `shared` twice, under its own name and as `auto`; by the better of the two it is within 1.3 in 188.)

No other algorithm beats `shared` on more than one kind of stream for the same plan, and those that beat it on falling
streams (by up to 3 times) lose by 10 to 100 times on random ones. So one answer serves every plan, until a
measurement says otherwise.
"""

from __future__ import annotations

from skyband.algorithms.contract import Plan

_WORTH_BOXES = 50_000  # rows of a window from which on boxes cost less than a scan
MANY = 64  # distinct scores from which on a crowd is faster than a structure for each
GRID = 400  # from which on a grid is faster than a scan


def choose(plan: Plan) -> str:
    """The name of the algorithm to use for a plan."""
    return "shared"


def choose_crowd(scores: int, k: int, plain: bool) -> str | None:
    """The algorithm for queries on so many distinct scores over the same attributes and windows, the largest k being `k`; None
    for a structure each. `plain`: all scores are weighted sums or distances, with no regions."""
    if scores < MANY:
        return None
    return "sma(grid=1)" if plain and scores < GRID else "sma"


def choose_pairs(metric: str, order: str, columns: int, rows: int | None) -> str:
    """The name of the algorithm for a pair score: its metric (empty for any other score), which way, over how many columns,
    in windows of how many rows (None: not known).

    Boxes cost about as much for any window, a scan is proportional to it; `./run bench pairs` shows both. The smallest
    products lie along every column's plane through the new row, which too many boxes touch.
    """
    if not metric or (metric == "product" and order == "asc" and columns > 1):
        return "scase"
    return "pairs-ta" if rows is None or rows >= _WORTH_BOXES else "scase"

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
MOST_FOR_GRID = 4  # attributes up to which it is whatever k
SPARE = 0.5  # of k: rows more than k that a search finds; a half makes searches rare, and more rows cost more to keep


def choose(plan: Plan) -> str:
    """The name of the algorithm to use for a plan."""
    return "shared"


def choose_crowd(scores: int, attributes: int, k: int, plain: bool) -> str | None:
    """The algorithm for queries on so many distinct scores over the same attributes and windows, the largest k being `k`; None
    for a structure each. `plain`: all scores are weighted sums or distances, with no regions.

    `./run bench points` measures grid and scan side by side; milliseconds a cycle of 10⁴ rows, N = 10⁶, k = 1 / 20 / 100:

        ==========  ==================  =====================  ====================
        scores      d = 2               d = 4                  d = 6
        ==========  ==================  =====================  ====================
        100, grid   3.2 / 3.8 / 4.0     3.8 / 3.8 / 5.2        6.8 / 7.6 / 9.9
        100, scan   1.5 / 1.7 / 1.9     1.9 / 1.9 / 5.8        2.1 / 6.0 / 4.4
        1000, grid  5.8 / 6.4 / 10.7    6.7 / 12.3 / 16.4      46.7 / 44.0 / 146.7
        1000, scan  9.9 / 11.6 / 19.4   12.4 / 30.4 / 26.9     16.9 / 51.7 / 119.4
        5000, grid  12.3 / 12.2 / 37.8  23.9 / 35.2 / 58.1     231.5 / 184.4 / ?
        5000, scan  48.1 / 49.7 / 80.4  76.7 / 130.1 / 110.8   79.5 / 238.5 / ?
        ==========  ==================  =====================  ====================

    In many dimensions the best cells of a query are many: few rows then pay for opening them.
    """
    if scores < MANY:
        return None
    scan = scores < GRID or (attributes > MOST_FOR_GRID and not 10 <= k <= 50)
    return f"sma(grid=1, spare={SPARE})" if plain and scan else f"sma(spare={SPARE})"


def choose_pairs(metric: str, order: str, columns: int, rows: int | None) -> str:
    """The name of the algorithm for a pair score: its metric (empty for any other score), which way, over how many columns,
    in windows of how many rows (None: not known).

    Boxes cost about as much for any window, a scan is proportional to it; `./run bench pairs` shows both. The smallest
    products lie along every column's plane through the new row, which too many boxes touch.
    """
    if not metric or (metric == "product" and order == "asc" and columns > 1):
        return "scase"
    return "pairs-ta" if rows is None or rows >= _WORTH_BOXES else "scase"

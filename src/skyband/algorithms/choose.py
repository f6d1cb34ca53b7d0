"""`algorithm="auto"`: which algorithm for which question, from measured costs.

The rule may look at the plan (how many queries, n, s, k, the kind of window) and at what is told of it, never at the data, so
that the choice is the same on every run. `./run bench grid` measures every algorithm over n from 10⁴ to 10⁶, s from 1 to n/10,
k from 1 to 1000 on random, sinusoidal, falling and real streams, every window answered, and prints how far the choice is from
the best: `auto` is within 1.3 times of it in all 220 cells, 1.24 at worst. Time over that of the cell's fastest algorithm,
where a window filled in time:

    ============  ==============  =============================  ==============================================
    algorithm     geometric mean  cells within 1.3 of the best   where it is the best
    ============  ==============  =============================  ==============================================
    shared        1.05            212 of 220                     145 cells, the more so the smaller s
    sap           1.29            161 of 217                     slides of n/10 and k = 1; fewest candidates
    sap-dynamic   1.29            160 of 218                     the same
    sap-equal     1.30            154 of 218                     the same, and sinusoidal scores
    panes         2.3             81 of 216                      a few cells, mostly slides of n/10
    strict        2.5             45 of 171                      falling streams, where nothing can be dropped
    mintopk       2.5             49 of 162                      three falling cells
    ============  ==============  =============================  ==============================================

For the best row alone (k = 1) `sap` is the faster one from slides of a hundred rows on in windows of 10⁵, up to 5 times on
network connections; in windows of 10⁶ only where a slide is a good part of the window, and `shared` is 1.2 to 1.4 times as fast
elsewhere.
Where only the last window of a push is asked for, `shared` passes over most rows unread.
"""

from __future__ import annotations

from skyband.algorithms.contract import Plan

LONG_SLIDE = 100  # rows from which on `sap` finds the best row of each window faster,
LARGE_WINDOW = 500_000  # rows from which on it does so only where
FEW_SLIDES = 20  # or fewer make a window
_NEAR_IN_BOXES, _FAR_IN_BOXES = 50_000, 80_000  # rows of a window from which on boxes cost less than a scan
MANY = 16  # distinct scores from which on they form a crowd instead of having a structure each
MANY_BOUNDS = 4  # distinct scores or bounds of threshold queries from which on they do
MANY_ALIKE = 1000  # of them over the same columns from which on these have a crowd of their own
SPARE = 0.5  # of k: rows more than k that a search finds; a half makes searches rare, and more rows cost more to keep


def choose(plan: Plan, told: bool) -> str:
    """The name of the algorithm to use for a plan. `told`: every window's answer is, of some query."""
    if not told or plan.ks != (1,) or plan.sizes is None or plan.slides is None:
        return "shared"
    size, slide = plan.sizes[0], plan.slides[0]
    return "sap" if slide >= LONG_SLIDE and (size < LARGE_WINDOW or size <= FEW_SLIDES * slide) else "shared"


def choose_crowd(scores: int) -> str | None:
    """The algorithm for queries on so many distinct scores over the same attributes and windows; None for a structure each.

    `./run bench points` measures grid and scan side by side; milliseconds a cycle of 10⁴ rows, N = 10⁶, k = 1 / 20 / 100:

        ==========  ==================  ===================  ====================
        scores      d = 2               d = 4                d = 6
        ==========  ==================  ===================  ====================
        100, grid   0.54 / 0.63 / 0.74  0.73 / 0.75 / 0.93   1.93 / 1.18 / 1.79
        100, scan   1.39 / 1.35 / 1.45  1.66 / 1.67 / 1.70   2.12 / 2.24 / 2.02
        1000, grid  1.3 / 1.1 / 3.7     2.1 / 1.9 / 4.6      9.2 / 4.7 / 10
        1000, scan  8.6 / 8.5 / 11      13 / 13 / 14         14 / 14 / 16
        5000, grid  2.3 / 2.5 / 16      6.8 / 5.4 / 22       44 / 20 / 54
        5000, scan  43 / 44 / 49        61 / 54 / 61         70 / 69 / 80
        ==========  ==================  ===================  ====================

    The grid is the faster one in all of these.

    From how many scores on a crowd is worth it: time of a structure each over that of a crowd, linear scores, d = 4, k = 20:

        =======================  =======================  ==========================  ===========================
        n / s / rows a push      uniform, 4 / 8 / 16 / 32  sine, three waves, 4 / 16  falling throughout, 4 / 16
        =======================  =======================  ==========================  ===========================
        10⁴ / 1 / 10³            1.7 / 2.9 / 4.4 / 7.3                                0.5 / 0.4
        10⁴ / 10 / 10³           2.0 /     / 4.3          2.1 / 5.4                   0.4
        10⁴ / 10³ / 10³          1.7 / 2.7 / 5.0 / 7.2                                1.5 / 2.6
        10⁵ / 1 / 10⁴            1.4 / 1.8 / 3.5 / 8.3                                0.1 / 0.1
        10⁵ / 100 / 10⁴          1.0 / 1.9 / 2.9 / 5.7    1.0 / 3.1                   0.1 / 0.1
        10⁵ / 10³ / 10³          1.9 / 2.3 / 3.9 / 7.3                                0.9 / 1.8
        10⁶ / 10³ / 10⁴          0.3 /     / 1.8          1.0 / 3.2                   0.1 / 0.1
        10⁶ / 10⁴ / 10⁴          0.9 /     / 1.9          1.0 / 3.1                   0.4 / 0.5
        =======================  =======================  ==========================  ===========================

    k = 1 and 100 are alike (16 scores: 1.2 to 5.8). Where all columns fall together without end, in a window by 16 times their
    noise here, a crowd searches for every answer, and is slower however many scores there are; below MANY, what it gains
    elsewhere is less than what it may lose there.
    """
    return f"sma(spare={SPARE})" if scores >= MANY else None


def choose_thresholds(scores: int) -> str | None:
    """The same for threshold queries on so many distinct scores or bounds; a grid, or a structure each.

    Time of a structure each over that of the grid, d = 4, about 20 rows in an answer unless told:

        ===================================  ====  ====  ====  ====
        n / s / rows a push, scores          4     16    100   300
        ===================================  ====  ====  ====  ====
        10⁵ / 10³ / 10³                      1.5   4.2   30    70
        10⁵ / 1 / 10⁴                              8.9
        10⁵ / 100 / 10⁴, answers of 1000           1.7
        10⁵ / 10³ / 10³, time                      6.1   55 (d = 2)
        ===================================  ====  ====  ====  ====
    """
    return "tma" if scores >= MANY_BOUNDS else None


def choose_pairs(kind: str, *, nearest: bool, columns: int, rows: int | None) -> str:
    """The name of the algorithm for a pair score that a distance tells: its kind, which way, over how many columns, in
    windows of how many rows (None: not known). All other scores are scanned.

    Boxes cost about as much for any window, a scan is proportional to it. `pairs-ta`'s time over that of `scase`, K = 20,
    uniform points (`./run bench pairs` measures it again):

        ==========================  ===========  ===========  ===========  ===========  ===========
        N =                         5000         10,000       20,000       40,000       80,000
        ==========================  ===========  ===========  ===========  ===========  ===========
        s1 nearest sum, d = 2 / 4   1.65 / 1.72  1.90 / 1.83  1.61 / 1.46  1.14 / 1.00  0.91 / 0.80
        s2 furthest sum             2.07 / 1.63  2.42 / 1.83  2.60 / 1.97  1.62 / 1.31  1.67 / 1.14
        s3 nearest product          1.79 / 1.87  1.79 / 2.04  1.86 / 2.91  1.50 / 3.01  1.37 / 3.65
        s4 furthest product         1.98 / 1.61  2.44 / 1.93  2.52 / 2.00  1.57 / 1.30  1.57 / 1.20
        ==========================  ===========  ===========  ===========  ===========  ===========

    For the furthest pairs a scan passes over blocks out of reach, and either takes 1 to 3 microseconds a row; of anticorrelated
    points, d = 4, it cannot, and boxes take 0.74 times as long at N = 40,000 and 0.58 at 80,000. There what boxes may lose and
    what they may save are about the same.

    The smallest products lie along every column's plane through the new row, which too many boxes touch. Where nobody knows how
    many rows will come, boxes are the safer choice: they lose microseconds a row in a small window, and a scan loses any number
    in a large one.
    """
    if kind == "product" and nearest and columns > 1:
        return "scase"
    return "pairs-ta" if rows is None or rows >= (_NEAR_IN_BOXES if nearest else _FAR_IN_BOXES) else "scase"

"""The current top-k of every query, and how a window's answer is handed out."""

from __future__ import annotations

from skyband.kernels.jit import lean
from skyband.kernels.tables import SAME


@lean
def has_room(results, used, k):
    """True when another answer of k ranks fits into `results` of which `used` places are taken."""
    return used + k <= results.score.shape[0]


@lean
def hand_out_same(results, at):
    """Window `at` of these results is answered by its query's last top-k."""
    results.size[at] = SAME
    results.begin[at] = 0


@lean
def hand_out_written(results, at, used, count):
    """Window `at` is answered by `count` ranks that are written already, behind the places of `results` that are taken.

    Returns how many places are taken now.
    """
    results.begin[at] = used
    results.size[at] = count
    return used + count


@lean
def _copy(source, target, count):
    for rank in range(count):  # between views, counted from 0: this is vectorized
        target[rank] = source[rank]


@lean
def hand_out(tops, query, results, at, used, report, score, ordinal, count):
    """Make (score, ordinal)[:count] the query's current top-k and, if `report`, the answer of window `at`.

    Returns how many places of `results` are taken now.
    """
    tops.count[query] = count
    _copy(score, tops.score[query], count)
    _copy(ordinal, tops.ordinal[query], count)
    if report:
        results.begin[at] = used
        results.size[at] = count
        _copy(score, results.score[used : used + count], count)
        _copy(ordinal, results.ordinal[used : used + count], count)
        return used + count
    hand_out_same(results, at)
    return used

"""Consecutive answers of pairs to result rows, as `kernels.emission` does for rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyband.kernels.emission import ENTER, LEAVE, TOP
from skyband.kernels.jit import lean
from skyband.kernels.pairs.state import above
from skyband.kernels.tables import ARRIVALS, CHANGES, NOTHING, SAME, SNAPSHOTS


class Reported(NamedTuple):
    """What each query's last result rows amount to: rank r of query q is score[q, r], a[q, r], b[q, r]."""

    score: np.ndarray  # float64 [queries, largest k]
    a: np.ndarray  # int64 [queries, largest k]
    b: np.ndarray  # int64 [queries, largest k]
    count: np.ndarray  # int64 [queries]


class PairEvents(NamedTuple):
    """Result rows, as `changes.Emitted` with two ordinals."""

    query: np.ndarray  # int64
    window_end: np.ndarray  # int64
    event: np.ndarray  # int8
    rank: np.ndarray  # int64, 0 for a leave
    score: np.ndarray  # float64
    a: np.ndarray  # int64
    b: np.ndarray  # int64


@lean
def emit(query, value, start, stop, results, emission, reported, out):
    """Write the result rows of windows[start:stop] into `out`, which has room for them, and bring `reported` up to date;
    returns how many. Leaves come first, in their old ranks' order, then enters by rank."""
    n = 0
    for w in range(start, stop):
        q, size, begin = query[w], results.size[w], results.begin[w]
        if emission[q] == NOTHING:
            continue
        if size != SAME:
            if emission[q] == CHANGES:
                n = _differences(LEAVE, q, value[w], size, begin, results, reported, out, n)
            if emission[q] == CHANGES or emission[q] == ARRIVALS:
                n = _differences(ENTER, q, value[w], size, begin, results, reported, out, n)
            for r in range(size):
                reported.score[q, r] = results.score[begin + r]
                reported.a[q, r], reported.b[q, r] = results.a[begin + r], results.b[begin + r]
            reported.count[q] = size
        if emission[q] == SNAPSHOTS:
            for r in range(reported.count[q]):
                _write(out, n, q, value[w], TOP, r + 1, reported.score[q, r], reported.a[q, r], reported.b[q, r])
                n += 1
    return n


@lean
def _differences(event, q, end, size, begin, results, reported, out, n):
    """One walk down both answers: the pairs only in the old one (for LEAVE) or only in the new one (for ENTER)."""
    i, j, old = 0, 0, reported.count[q]
    while i < size or j < old:
        if i < size and j < old and results.a[begin + i] == reported.a[q, j] and results.b[begin + i] == reported.b[q, j]:
            i += 1
            j += 1
        elif j == old or (
            i < size
            and above(
                results.score[begin + i],
                results.a[begin + i],
                results.b[begin + i],
                reported.score[q, j],
                reported.a[q, j],
                reported.b[q, j],
            )
        ):
            if event == ENTER:
                _write(out, n, q, end, ENTER, i + 1, results.score[begin + i], results.a[begin + i], results.b[begin + i])
                n += 1
            i += 1
        else:
            if event == LEAVE:
                _write(out, n, q, end, LEAVE, 0, reported.score[q, j], reported.a[q, j], reported.b[q, j])
                n += 1
            j += 1
    return n


@lean
def _write(out, n, q, end, event, rank, score, a, b):
    out.query[n], out.window_end[n], out.event[n], out.rank[n] = q, end, event, rank
    out.score[n], out.a[n], out.b[n] = score, a, b

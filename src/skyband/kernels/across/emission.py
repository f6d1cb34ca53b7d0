"""Consecutive answers about objects to result rows: who entered, who left, or the whole top.

An object keeps its place in the top whatever its score does meanwhile, so answers are compared by object, not by rank.
"""

from __future__ import annotations

from skyband.kernels.emission import ENTER, LEAVE, TOP
from skyband.kernels.jit import lean
from skyband.kernels.tables import ARRIVALS, CHANGES, NOTHING, SAME, SNAPSHOTS


@lean
def count_events(answers, windows, size, emission):
    """An upper bound of the result rows of the first `windows` answers, `size` ranks having been reported before."""
    total = 0
    for at in range(windows):
        before = size
        if answers.size[at] != SAME:
            size = answers.size[at]
        if emission == SNAPSHOTS:
            total += size
        elif emission != NOTHING and answers.size[at] != SAME:
            total += before + size
    return total


@lean
def _write(out, n, end, event, rank, score, obj):
    out.query[n] = 0
    out.window_end[n] = end
    out.event[n] = event
    out.rank[n] = rank
    out.score[n] = score
    out.ordinal[n] = obj


@lean
def emit(answers, ends, windows, emission, reported, mark, out, life):
    """Write the result rows of the first `windows` answers into `out`, and of whose life each tells into `life`; bring
    `reported` up to date. Returns how many. Leaves come first, by their old rank, then enters by rank; a leave carries the
    score of the window before."""
    n, size = 0, reported.size[0]
    for at in range(windows):
        begin, count = answers.begin[at], answers.size[at]
        if count != SAME:
            if emission not in (NOTHING, SNAPSHOTS):
                for rank in range(count):
                    mark[answers.obj[begin + rank]] |= 1
                for rank in range(size):
                    obj = reported.obj[rank]
                    mark[obj] |= 2
                    if emission == CHANGES and mark[obj] & 1 == 0:
                        _write(out, n, ends[at], LEAVE, 0, reported.score[rank], obj)
                        life[n] = reported.life[rank]
                        n += 1
                for rank in range(count):
                    obj = answers.obj[begin + rank]
                    if mark[obj] & 2 == 0 or emission == ARRIVALS:
                        _write(out, n, ends[at], ENTER, rank + 1, answers.score[begin + rank], obj)
                        life[n] = answers.life[begin + rank]
                        n += 1
                for rank in range(size):
                    mark[reported.obj[rank]] = 0
                for rank in range(count):
                    mark[answers.obj[begin + rank]] = 0
            size = count
            for rank in range(count):
                reported.score[rank], reported.obj[rank] = answers.score[begin + rank], answers.obj[begin + rank]
                reported.life[rank] = answers.life[begin + rank]
        if emission == SNAPSHOTS:
            for rank in range(size):
                _write(out, n, ends[at], TOP, rank + 1, reported.score[rank], reported.obj[rank])
                life[n] = reported.life[rank]
                n += 1
    reported.size[0] = size
    return n

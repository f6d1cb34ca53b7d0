"""Which windows close when, and which rows they hold: arithmetic on positions and ordinals.

A row's *position* is its arrival number (count windows) or its time (time windows). Both kinds of window
are then the same thing: for every multiple `end` of `slide`, the rows with end - size <= position < end.
A row at position p is first seen by the window ending at enter(p) and no longer by the one ending at leave(p):

    enter(p) = (p // slide + 1) * slide          leave(p) = ((p + size) // slide + 1) * slide
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from skyband.held_panes import HeldPanes
from skyband.kernels.tables import NOTHING, SNAPSHOTS, Panes, Windows

_NONE = np.zeros(0, np.int64)
NO_WINDOWS = Windows(_NONE, _NONE, _NONE, _NONE, np.zeros(0, bool))


def count_windows(query: int, size: int, slide: int, since: int, after: int, upto: int, *, last_only: bool) -> Windows:
    """The windows of a count query with after < end <= upto, over rows that begin at `since`.

    `last_only`: just the last of them, as nobody wants to hear of the others.
    """
    first_number, last_number = after // slide + 1, upto // slide
    if first_number > last_number:
        return NO_WINDOWS
    if last_only:
        upto = last_number * slide
        one = np.array([query, last_number, max(upto - size, since), upto], np.int64)
        return Windows(one[:1], one[1:2], one[2:3], one[3:], np.zeros(1, bool))
    number = np.arange(first_number, last_number + 1, dtype=np.int64)
    end = number * slide
    asked = len(number)
    return Windows(np.full(asked, query, np.int64), number, np.maximum(end - size, since), end, np.full(asked, not last_only))


def all_count_windows(spans: list[tuple[int, int]], report: list[bool], since: int, after: int, upto: int) -> Windows:
    """The windows of several count queries of (size, slide) with after < end <= upto, sorted by end, then by query; of a
    query that is not to be reported only the last."""
    if len(spans) == 1:
        return count_windows(0, *spans[0], since, after, upto, last_only=not report[0])
    from skyband.kernels.listing import list_windows

    sizes, slides = np.array(spans, np.int64).T.copy()
    told = np.array(report)
    each = upto // slides - after // slides
    asked = int(np.where(told, each, np.minimum(each, 1)).sum())
    query, number, first, end = (np.empty(asked, np.int64) for _ in range(4))
    windows = Windows(query, number, first, end, np.empty(asked, bool))
    list_windows(sizes, slides, told, since, after, upto, *windows)
    return windows


def count_panes(size: int, slide: int, begin: int, stop: int) -> Panes:
    """The panes of a count query that hold the rows from `begin` up to `stop`: cut at every window's end and
    at every window's beginning."""
    if stop <= begin:
        return Panes(*(np.zeros(0, np.int64) for _ in range(3)))
    cuts = np.arange(begin // slide * slide, stop, slide, dtype=np.int64)
    odd = -size % slide  # windows begin at multiples of slide plus this
    if odd:
        cuts = np.stack([cuts, cuts + odd], axis=1).reshape(-1)
    cuts = cuts[(cuts > begin) & (cuts < stop)]
    at = np.concatenate([np.array([begin], np.int64), cuts])
    return Panes(at, at // slide + 1, (at + size) // slide + 1)


def in_order_of_end(parts: list[Windows]) -> Windows:
    """The windows of several queries as one list, sorted by end, then by query."""
    if len(parts) == 1:
        return parts[0]
    joined = Windows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    order = np.lexsort((joined.query, joined.end))
    return Windows(*(column[order] for column in joined))


def cut_panes(time: np.ndarray, slide: int, sizes: list[int]) -> np.ndarray:
    """Places in the sorted `time` where a pane begins: rows between two of them enter and leave every window
    together, for windows of all `sizes`."""
    if len(time) == 0:
        return np.zeros(0, np.int64)
    fresh = np.zeros(len(time), bool)
    fresh[0] = True
    for shift in sorted({0, *(size % slide for size in sizes)}):
        number = (time + shift) // slide
        fresh[1:] |= number[1:] != number[:-1]
    return np.flatnonzero(fresh)


def pane_cuts(slide: int, sizes: Iterable[int]) -> np.ndarray:
    """Where, within a slide, some window begins; increasing, none at 0. There a slide falls into panes."""
    return np.array(sorted({-size % slide for size in sizes} - {0}), np.int64)


def time_panes(time: np.ndarray, begin: np.ndarray, size: int, slide: int) -> Panes:
    """Panes of one query from the times and ordinals of their first rows."""
    return Panes(begin, time // slide + 1, (time + size) // slide + 1)


def time_windows(
    query: int,
    size: int,
    slide: int,
    after: int,
    upto: int,
    panes: HeldPanes,
    fed: int,
    emission: int,
) -> Windows:
    """The windows of a time query with after < end <= upto that can differ from the one before them.

    Rows are told by their panes; `fed` rows there are in all. O(log panes), and those that enter or leave such a window.
    With emission "none" only the last of them matters; with "snapshots" also windows that hold the same rows
    as their predecessor are wanted, unless they are empty.
    """
    enter = (_between(panes.time, after - slide, upto) // slide + 1) * slide
    leave = ((_between(panes.time, after - size - slide, upto - size) + size) // slide + 1) * slide
    ends = np.unique(np.concatenate([enter, leave]))
    ends = ends[(ends > after) & (ends <= upto)]
    if emission == NOTHING:
        ends = ends[-1:]
    elif emission == SNAPSHOTS:
        ends = _with_those_between(ends, size, slide, after, upto, panes.time)
    first, end = panes.first_row(ends - size, fed), panes.first_row(ends, fed)
    asked = len(ends)
    return Windows(np.full(asked, query, np.int64), ends // slide, first, end, np.full(asked, emission != NOTHING))


def _between(times: np.ndarray, after: int, upto: int) -> np.ndarray:
    """Of increasing times, those with after <= time < upto; `after` may be earlier than any time."""
    first, stop = np.searchsorted(times, (max(after, np.iinfo(np.int64).min), max(upto, np.iinfo(np.int64).min)))
    return times[first:stop]


def _with_those_between(ends: np.ndarray, size: int, slide: int, after: int, upto: int, pane_time: np.ndarray) -> np.ndarray:
    """`ends` and, after each non-empty window, the ends up to the next that is listed."""
    starts = ends
    if after > np.iinfo(np.int64).min:
        starts = np.concatenate([np.array([after], np.int64), ends])
    if len(starts) == 0:
        return ends
    following = np.append(starts[1:], upto + slide)
    held = np.searchsorted(pane_time, starts) > np.searchsorted(pane_time, starts - size)
    repeats = np.where(held, (following - starts) // slide, 1)
    offset = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    filled = np.repeat(starts, repeats) + offset * slide
    return filled[filled > after]

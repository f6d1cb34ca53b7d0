"""How soon an object comes again, in which stream and with what value: told by the objects of the sample that did.

What is to be expected of an object depends on what was seen of it, its *class*: the set of streams it was seen in, where it
counts once in each; where it may count more often, or streams are many, how often it came, in steps that widen. Gaps between
an object's tuples are counted, those still open too, so that objects seen not long ago tell of what came so far
(product-limit). How the chance to come depends on the gap is taken from all classes; each then has it so many times as high as
its objects have shown (proportional hazards), and classes with few objects as those like them have.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from skyband.kernels.jit import jit, tiny

SETS = 6  # streams of which all sets are told apart
LADDER = 16  # classes where it is counted how often an object came
GAPS = 80  # two for each doubling of the gap
QUANTILES = 8  # of the values of a stream
RECENT = 64  # values of a stream that tell what they are like
AT_ONCE = 1e9  # how soon an object is taken to come again while nothing is known
_BORROWED = 16  # objects' worth of what is known of classes alike
_SINGLE = 8  # classes of the ladder that are one number each


class Returns(NamedTuple):
    """What was seen of objects that came again."""

    sets: np.ndarray  # int64 [1]: 1: classes are sets of streams
    gaps: np.ndarray  # float64 [classes, GAPS]: objects of the class that came again after such a gap; older ones fade
    streams: np.ndarray  # float64 [classes, streams]: in which stream; older ones fade
    values: np.ndarray  # float64 [streams, RECENT]: the last values
    came: np.ndarray  # int64 [streams]: how many there were


class Outlook(NamedTuple):
    """What is to be expected of an object, by its class."""

    soon: np.ndarray  # float64 [classes, GAPS]: sightings by ordinals waited, at best, when the last one is so long ago
    chance: np.ndarray  # float64 [classes]: that it comes again while an instance lasts, half a window
    share: np.ndarray  # float64 [classes, streams]: in which stream
    value: np.ndarray  # float64 [streams, QUANTILES]: with what value


def no_returns(streams: int, once: bool) -> Returns:
    """Nothing has been seen; `once`: an object counts once in a stream."""
    sets = once and streams <= SETS
    classes = 1 << streams if sets else LADDER
    values, came = np.zeros((streams, RECENT)), np.zeros(streams, np.int64)
    return Returns(np.array([int(sets)]), np.zeros((classes, GAPS)), np.zeros((classes, streams)), values, came)


def no_outlook(returns: Returns) -> Outlook:
    """Nothing is known: everything may come at once."""
    classes, streams = returns.streams.shape
    soon, share = np.full((classes, GAPS), AT_ONCE), np.full((classes, streams), 1.0 / streams)
    return Outlook(soon, np.ones(classes), share, np.zeros((streams, QUANTILES)))


@tiny
def class_of(sets, story):
    """The class of an object, of which `story` tells: the bits of streams it was seen in, or how often it came."""
    if sets or story < _SINGLE:
        return story
    return min(_SINGLE + int(2.0 * math.log2(story / _SINGLE)), LADDER - 1)


@tiny
def class_after(sets, before, stream):
    """The class of an object that was in the class `before` and is seen once more."""
    if sets:
        return before | 1 << stream
    return before + 1 if before < _SINGLE else before


@tiny
def gap_of(gap):
    """Which gap it is."""
    return min(int(2.0 * math.log2(gap)), GAPS - 1) if gap > 1 else 0


@tiny
def _gap_from(which):
    return 2.0 ** (which / 2)


@tiny
def note(returns, story, stream, gap, weight):
    """Objects came again, so many of them."""
    which = class_of(returns.sets[0], story)
    returns.gaps[which, gap_of(gap)] += weight
    returns.streams[which, stream] += weight


@tiny
def note_value(returns, stream, value):
    """A value came."""
    returns.values[stream, returns.came[stream] % RECENT] = value
    returns.came[stream] += 1


@tiny
def _streams_in(which):
    count = 0
    while which:
        count += which & 1
        which >>= 1
    return count


@jit
def foresee(returns, waiting, span, unit, outlook):
    """Tell what is to be expected, in a window of `span` ordinals. `waiting` are the objects of each class whose last tuple is
    so long ago, each of those that were looked at standing for `unit`."""
    (classes, streams), sets = returns.streams.shape, returns.sets[0]
    last, open_to = gap_of(span), classes - 1 if sets else classes  # an object seen in all streams does not come again
    often = _how_often(returns.gaps[1:open_to], waiting[1:open_to], last)
    came, awaited = np.zeros(classes), np.zeros(classes)
    came_alike, awaited_alike = np.zeros(classes), np.zeros(classes)
    for c in range(1, open_to):
        rest = 0.0
        for b in range(GAPS - 1, -1, -1):
            rest += returns.gaps[c, b] + waiting[c, b]
            came[c] += returns.gaps[c, b]
            awaited[c] += rest * often[b]
        if rest > 0.0:
            alike = _streams_in(c) if sets else c
            came_alike[alike] += came[c]
            awaited_alike[alike] += awaited[c]
    borrowed = _BORROWED * unit
    for c in range(1, open_to):
        alike = _streams_in(c) if sets else c
        usual = (came_alike[alike] + borrowed) / (awaited_alike[alike] + borrowed)
        _foresee_class(outlook, c, often, (came[c] + borrowed * usual) / (awaited[c] + borrowed), last, span)
        total = 0.0
        for x in range(streams):
            outlook.share[c, x] = 0.0 if sets and c >> x & 1 else returns.streams[c, x] + borrowed / streams
            total += outlook.share[c, x]
        for x in range(streams):
            outlook.share[c, x] /= total
    for x in range(streams):
        count = min(returns.came[x], RECENT)
        if count > 0:
            values = np.sort(returns.values[x, :count])
            for q in range(QUANTILES):
                outlook.value[x, q] = values[int((q + 0.5) / QUANTILES * count)]


@jit
def _how_often(gaps, waiting, last):
    """Of the objects that have waited for a gap, the share that came in it; none after the gap `last`."""
    often, rest = np.zeros(GAPS), 0.0
    for b in range(GAPS - 1, -1, -1):
        rest += gaps[:, b].sum() + waiting[:, b].sum()
        if b <= last and rest > 0.0:
            often[b] = gaps[:, b].sum() / rest
    return often


@jit
def _foresee_class(outlook, c, often, times, last, span):
    """The same of one class, whose objects come so many `times` as often as others."""
    alone, chance = np.ones(last + 2), 0.0
    for b in range(last + 1):
        alone[b + 1] = alone[b] * (1.0 - min(times * often[b], 1.0))
        chance += (alone[b] - alone[b + 1]) * math.exp(-2.0 * _gap_from(b + 0.5) / span)
    outlook.chance[c] = chance
    for b in range(GAPS):
        outlook.soon[c, b], waited = 0.0, 0.0
        for until in range(b, last + 1):
            waited += 0.5 * (alone[until] + alone[until + 1]) * (_gap_from(until + 1) - _gap_from(until))
            if waited > 0.0:
                outlook.soon[c, b] = max(outlook.soon[c, b], (alone[b] - alone[until + 1]) / waited)

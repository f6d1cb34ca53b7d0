"""How many rows a view keeps, and the room it needs for them."""

from __future__ import annotations

import numpy as np

from skyband.kernels.jit import jit

LEAST_TREND = 128  # rows that a view on a falling stream takes at once, at least: finding fewer costs as much
FEW = 8  # rows that wait, or left, up to this number are put in or taken out one by one; more are merged


@jit
def steady_capacity(k):
    """Rows of a view whose stream neither rises nor falls. Their number then varies like a Poisson variable, by
    the root of k: three deviations to spare make refills rare, and more would only be carried along."""
    return k + int(3.0 * np.sqrt(k)) + 4


@jit
def trend_capacity(k):
    """Rows of a view on a falling stream, where every refill is used up from the top."""
    return max(2 * k + 16, LEAST_TREND)


@jit
def trim_limit(k, capacity):
    """A view of more rows than this is cut back."""
    return 2 * capacity - k


@jit
def waiting_room(k):
    """Waiting rows after which a view takes them in before its window comes."""
    return max(64, k // 2)


@jit
def view_room(k):
    """Places a view needs."""
    return trim_limit(k, trend_capacity(k)) + waiting_room(k) + FEW


@jit
def queue_room(k):
    """Places a view's queue needs; twice its rows, so that it is seldom moved to the front."""
    return 2 * view_room(k)


@jit
def buffer_room(k):
    """Places the buffers of one run need, for the largest k."""
    return 2 * trend_capacity(k) + waiting_room(k)

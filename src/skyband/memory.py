"""Large arrays that live for a push: where their memory comes from, and sorting by small numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

_NUMBERS = {np.dtype(np.int64): pa.int64(), np.dtype(np.float64): pa.float64()}


def pooled(count: int, kind: Any) -> np.ndarray:
    """An array in Arrow's memory pool, which keeps what is freed: pages that come anew from the system cost more than
    filling them."""
    return np.frombuffer(pa.allocate_buffer(np.dtype(kind).itemsize * count), kind)


def arrow(numbers: np.ndarray) -> pa.Array:
    """int64 or float64 as Arrow's, without a copy; NaN stays. Of a few numbers, `pa.array` takes twice as long."""
    own = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(_NUMBERS[own.dtype], len(own), [None, pa.py_buffer(own)])


def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The parts, one after the other."""
    return np.concatenate(parts, out=pooled(sum(map(len, parts)), parts[0].dtype))


def taken(column: np.ndarray, places: np.ndarray) -> np.ndarray:
    """column[places], for places that are there."""
    return np.take(column, places, out=pooled(len(places), column.dtype), mode="clip")


def picked(column: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The same, for increasing places: those one after the other, as of a falling stream, are copied at once."""
    first, last = int(places[0]), int(places[-1])
    if last - first + 1 > len(places):
        return taken(column, places)
    kept = pooled(len(places), column.dtype)
    kept[:] = column[first : last + 1]
    return kept


def order_of(numbers: np.ndarray, upto: int) -> np.ndarray:
    """The places of the numbers, all below `upto`, in increasing order, equal ones as they stand. Small numbers are sorted by
    their digits, in O(rows)."""
    small = np.uint8 if upto <= 1 << 8 else np.uint16 if upto <= 1 << 16 else np.int64
    return np.argsort(numbers.astype(small, copy=False), kind="stable")

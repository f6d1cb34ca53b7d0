"""Equality of floats that tells zeros apart."""

from __future__ import annotations

import numpy as np


def assert_same_bits(found: np.ndarray, expected: np.ndarray, about: object) -> None:
    """Equal bit for bit, so also in the sign of zero; any NaN equals any NaN."""
    assert found.dtype == expected.dtype == np.float64 and found.shape == expected.shape
    differ = (found.view(np.int64) != expected.view(np.int64)) & ~(np.isnan(found) & np.isnan(expected))
    assert not differ.any(), (str(about), np.flatnonzero(differ)[:5], found[differ][:5], expected[differ][:5])

"""Numbers for texts, so that few have to be compared."""

from __future__ import annotations

import numpy as np

from skyband.kernels.jit import jit

_START = np.uint64(0xCBF29CE484222325)
_FACTOR = np.uint64(0x100000001B3)
_MIX = np.uint64(0xFF51AFD7ED558CCD)


@jit
def hash_texts(offset, data, out):
    """out[i]: a hash of data[offset[i] : offset[i + 1]] (FNV-1a, mixed). O(bytes)."""
    for i in range(out.shape[0]):
        found = _START
        for at in range(offset[i], offset[i + 1]):
            found = (found ^ np.uint64(data[at])) * _FACTOR
        found = (found ^ (found >> np.uint64(33))) * _MIX
        out[i] = np.int64(found ^ (found >> np.uint64(29)))

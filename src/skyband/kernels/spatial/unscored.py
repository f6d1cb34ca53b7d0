"""How many rows have no score, for each of many queries."""

from __future__ import annotations

import numpy as np

from skyband.kernels.jit import jit
from skyband.kernels.spatial.code import UNKNOWN, bounds_of, value_of
from skyband.kernels.spatial.code_blocks import takes_blocks, values_of
from skyband.kernels.spatial.questions import CODE, scores_of


@jit
def count_unscored(questions, rows, moderate, counts):
    """Add to `counts` how many of the rows, float64 [d, n], have no score for each query, wherever they lie. `moderate`: their
    numbers are such that only an expression may have no value; it is computed only where one of their range may have none."""
    dimensions, count = rows.shape
    scores, here, out = np.empty(count), np.empty(dimensions), np.empty(3)
    low, high = np.empty(dimensions), np.empty(dimensions)
    for axis in range(dimensions if moderate else 0):
        low[axis], high[axis] = rows[axis].min(), rows[axis].max()
    by_row = np.ascontiguousarray(rows.T)
    codes = questions.codes
    for q in range(counts.shape[0]):
        if questions.kind[q] != CODE:
            if moderate:
                continue
            scores_of(questions, q, rows, 0, count, scores)
        else:
            if moderate:
                bounds_of(codes, q, low, high, out)
                if out[UNKNOWN] == 0.0:
                    continue
            if takes_blocks(codes):
                values_of(codes, q, 1.0, by_row, 0, count, scores)
            else:
                for i in range(count):
                    here[:] = by_row[i]
                    scores[i] = value_of(codes, q, here)
        for i in range(count):
            counts[q] += scores[i] != scores[i]

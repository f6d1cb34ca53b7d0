"""Choosing the best rows of a buffer, against sorting it."""

from __future__ import annotations

import numpy as np
import pytest

from skyband.kernels.best import keep_best

SHAPES = {
    "any": lambda rng, n: rng.random(n),
    "rising": lambda rng, n: np.arange(n) * 1.0,
    "falling": lambda rng, n: -np.arange(n) * 1.0,
    "rising halves": lambda rng, n: np.concatenate([np.arange(n // 2), np.arange(n - n // 2)]) * 1.0,
    "constant": lambda rng, n: np.full(n, 7.0),
    "few levels": lambda rng, n: rng.integers(0, 4, n) * 1.0,
    "both zeros": lambda rng, n: rng.choice([-0.0, 0.0], n),
    "heavy tail": lambda rng, n: rng.random(n) ** -30.0,
    "infinite": lambda rng, n: rng.choice([-np.inf, np.inf, 1.0, 2.0], n),
    "all but one infinite": lambda rng, n: np.where(np.arange(n) == n // 3, 0.0, np.inf),
    "neighbouring numbers": lambda rng, n: np.nextafter(1.0, 2.0) * (1 + rng.integers(0, 3, n) * 2.0**-52),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_best_come_to_the_front(shape: str) -> None:
    """Every row of them once and with the score it had, ties to the newer; whatever the number asked for."""
    rng = np.random.default_rng(5)
    for count in (1, 2, 24, 47, 49, 64, 135, 270, 271, 1000, 2700):
        for keep in sorted({0, 1, 2, count // 3, count // 2, count - 1, count, count + 5}):
            scores, ordinals = SHAPES[shape](rng, count), rng.permutation(count) if keep % 2 else np.arange(count)
            score, ordinal = np.append(scores, 99.0), np.append(ordinals, -1)
            keep_best(score, ordinal, count, keep)
            best = sorted(zip(scores.tolist(), ordinals.tolist(), strict=True))[max(count - keep, 0) :]
            kept = sorted(zip(score[: min(keep, count)].tolist(), ordinal[: min(keep, count)].tolist(), strict=True))
            assert str(kept) == str(best), (count, keep)  # as texts: -0.0 is not 0.0 there
            assert (score[count], ordinal[count]) == (99, -1), "wrote behind the rows it was given"

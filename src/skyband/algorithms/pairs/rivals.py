"""Two rivals of the K-skyband of pairs, for the experiments.

`Basic` holds every new pair against the band by itself: it counts dominators from the best pair on and stops at K; a pair that
goes in counts as one for those below it. Paper: ICDE12 VI-D (basic: Algorithm 3 without a staircase, with dominance
counters). Guarantee: exact. Cost a row: O(N K) and more where bands are long.

`Supreme` scores every pair and asks an oracle for the rest, which costs nothing: it keeps no pair and has no answers. Paper:
ICDE12 VI-B. It is the lower bound for scores that nothing is known of. Cost a row: O(N), the same loops as the skyband's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skyband.algorithms.pairs.skyband import PairSkyband
from skyband.kernels.pairs import rivals as kernel
from skyband.kernels.pairs import state as band
from skyband.kernels.pairs.state import Answers


class Basic(PairSkyband):
    """The same band, kept pair by pair."""

    def _run(self, begin: int, older: np.ndarray, newer: np.ndarray, *windows: Any) -> int:
        return int(kernel.run(self._state, True, self._scorer, begin, older, newer, *windows))

    def add(self, k: int, *, watched: bool, first: int) -> None:
        super().add(k, watched=False, first=first)

    def _change(self, changed: Callable[[Answers], Answers]) -> None:
        super()._change(changed)
        state, count = self._state, int(self._state.marks[band.BAND])
        kept = np.flatnonzero(state.kth[:count] < state.marks[band.K])  # a smaller K may have more dominated
        for column in (*state.band, state.kth):
            column[: len(kept)] = column[kept]
        state.marks[band.BAND] = len(kept)

    def _merge(self) -> None:
        """No pair waits, and `kth` counts dominators here."""
        return

    def _settle(self) -> None:
        """No row is young."""
        return

    def check_invariants(self) -> None:
        marks = self._state.marks
        held = slice(0, int(marks[band.BAND]))
        score, a, b = (column[held] for column in self._state.band)
        dominators = self._state.kth[held]
        shown = list(zip(score.tolist(), a.tolist(), b.tolist(), dominators.tolist(), strict=True))
        keys = [(-s, -older, -newer) for s, older, newer, _ in shown]
        assert keys == sorted(keys), f"out of order: {shown}"
        counted = np.array([int((a[:place] >= a[place]).sum()) for place in range(len(a))], np.int64)
        assert (dominators >= counted).all() and (dominators < marks[band.K]).all(), f"should be {counted}: {shown}"


class Supreme(PairSkyband):
    """Scores only."""

    def _run(self, begin: int, older: np.ndarray, newer: np.ndarray, *windows: Any) -> int:
        return int(kernel.run(self._state, False, self._scorer, begin, older, newer, *windows))

"""Looking ahead in large windows of pairs, on all cores: which of the next rows' scores can matter at all.

The rows of a large window are scored with the next new rows before their turn comes, each thread taking a part of the
window. Only where a score may matter is it looked at again when the row comes, by one thread, in order: the
answers are the same.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from skyband import threads
from skyband.algorithms.pairs.contract import Scoring
from skyband.kernels.expression import BLOCK
from skyband.kernels.pairs import state as band
from skyband.kernels.pairs.score import Scorer
from skyband.kernels.pairs.screen import FIRST, ROWS, UPTO, Screen, lay_limits, look_ahead, no_screen
from skyband.kernels.pairs.state import Skyband

LEAST_ROWS = 32 * BLOCK  # of a window for which it pays to look ahead
AHEAD = 64  # new rows at once: limits rise meanwhile, and what joined the window since is not known
NEVER = -1  # no row has this ordinal


class Screening:
    """Looks ahead for one structure. What it finds need not be saved."""

    def __init__(self, scoring: Scoring) -> None:
        self.scoring = scoring
        self.screen: Screen = no_screen()
        self._scorers: list[Scorer] = []  # one a thread: each has room for the scores of a block

    def forget(self) -> None:
        """The rows have moved, or others come."""
        self.screen.marks[:] = 0

    def look_ahead(self, state: Skyband, begin: int, newer: np.ndarray) -> int:
        """Look at the next rows of `newer`, whose first has the ordinal `begin`, unless some are left that are known.

        Returns the ordinal of the row at which to look again, or NEVER.
        """
        marks = self.screen.marks
        upcoming, end = int(state.marks[band.NEXT]), begin + newer.shape[1]
        held = int(state.marks[band.FRONT] - state.marks[band.HEAD])
        if upcoming < marks[FIRST] + marks[ROWS]:
            return int(marks[FIRST] + marks[ROWS])
        if held < LEAST_ROWS or end - upcoming < 2 or state.marks[band.SCAN] != band.IDLE:
            return NEVER
        self._make_room(len(state.tail.ordinal) // BLOCK + 1)
        marks = self.screen.marks
        marks[FIRST], marks[ROWS] = upcoming, min(AHEAD, end - upcoming)
        lay_limits(state.marks, state.segments, self.screen)
        head = int(state.marks[band.HEAD])
        cuts = np.linspace(head // BLOCK, marks[UPTO] // BLOCK, threads.cores() + 1).astype(int).tolist()
        while len(self._scorers) < len(cuts) - 1:
            self._scorers.append(self.scoring.scorer())
        of_rows = (state.tail, newer, upcoming - begin)
        threads.begin(
            [
                partial(look_ahead, scorer, *of_rows, low, high, head, self.screen)
                for scorer, low, high in zip(self._scorers, cuts, cuts[1:], strict=False)
            ]
        )()
        return int(marks[FIRST] + marks[ROWS])

    def _make_room(self, blocks: int) -> None:
        if self.screen.hits.shape[1] < blocks:
            self.screen = no_screen(AHEAD, blocks + blocks // 4)

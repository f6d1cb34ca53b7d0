"""Panes first: where slides are long, a structure is shown the best k rows of each pane, and no others.

Rows that enter and leave every window together form a pane (a slide, or the two parts of one that a window's beginning cuts
it into), and only its best k can ever rank. So a window of n rows is one of k rows a pane to the structure behind, whose rows
are numbered pane by pane; answers get their ordinals back. What SAP would keep of every row is kept of those alone.

Papers: panes as in Li et al., SIGMOD Record 2005; TKDE17 appendix C does the same within a partition. Guarantee: that of the
structure behind: exact. Cost: one vectorized comparison a row, O(k) a pane, and what the structure behind takes for k rows a
pane. Memory: 8 bytes for each of these rows, and what the structure behind holds of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from skyband.algorithms.contract import UNKNOWN_CEILINGS, Plan, Ranked, read_only
from skyband.kernels.ranked import pane_tops as kernel
from skyband.kernels.ranked.pane_tops import PaneTops
from skyband.kernels.sap.ranksum import zeta_star
from skyband.kernels.tables import Panes, Results, Windows
from skyband.layout import grows
from skyband.state import unpack

LONG = 512
"""Times k: a slide of so many rows is long. Finding the best of each shorter one takes more
than SAP does by itself where scores are in random order."""
_FEWEST_ROWS = 64


def has_long_slides(plan: Plan) -> bool:
    """One query over a count window with long slides."""
    return plan.slides is not None and len(plan.ks) == 1 and plan.slides[0] >= LONG * plan.ks[0]


class PanesFirst(Ranked):
    """One query over the best rows of its panes, answered by a structure that `made` makes."""

    wants_panes = True
    growing: ClassVar[dict[str, str]] = {**grows("state", rows=("ordinals",)), "behind": "behind"}
    _state: PaneTops

    def __init__(self, plan: Plan, made: Callable[[Plan], Ranked]) -> None:
        assert plan.sizes is not None and plan.slides is not None
        self._k, self._size, self._slide = plan.ks[0], plan.sizes[0], plan.slides[0]
        self._odd = -self._size % self._slide  # windows begin at multiples of the slide plus this
        each = 2 if self._odd else 1  # panes of a slide
        held = self._size // self._slide * each + (each - 1)  # panes of a window
        self._behind = made(Plan((self._k,), (held * self._k,), (each * self._k,)))
        self._keep = math.ceil(zeta_star(self._k))
        super().__init__(plan)

    def _empty(self) -> PaneTops:
        """The structure behind forgets by itself."""
        return PaneTops(np.zeros(_FEWEST_ROWS, np.int64), np.full(1, -np.inf), np.zeros(kernel.MARKS, np.int64))

    def _prepare(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None) -> None:
        assert panes is not None
        cuts, asked = panes.begin, len(windows.end)
        best, first, end = np.empty(len(cuts) * self._k), np.empty(asked, np.int64), np.empty(asked, np.int64)
        kernel.number_windows(windows.first, windows.end, self._slide, self._odd, self._k, first, end)
        start = int(end[-1]) - len(best) if asked else self._behind.next  # rows end where the last window ends
        if asked:
            self._make_room(int(first[0]), start, start + len(best))
        kernel.best_of_panes(self._state, scores, begin, cuts, start // self._k, self._k, self._keep, best)
        self._asked = (start, read_only(best), windows._replace(first=first, end=end))
        self._behind.start(*self._asked, None, UNKNOWN_CEILINGS, self._changes)
        self._behind.next = start + len(best)

    def _make_room(self, oldest: int, start: int, stop: int) -> None:
        """Room for the ordinals of the rows that are numbered from `oldest` up to `stop`; those before `start` are known."""
        old = self._state.ordinals
        room = len(old)
        while room < stop - oldest:
            room *= 2
        if room == len(old):
            return
        numbers, ordinals = np.arange(max(oldest, start - len(old)), start), np.zeros(room, np.int64)
        ordinals[numbers & (room - 1)] = old[numbers & (len(old) - 1)]
        self._state = self._state._replace(ordinals=ordinals)

    def _run(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None, start: int, results: Results) -> int:
        first, best, asked = self._asked
        stop = self._behind._run(first, best, asked, None, start, results)
        kernel.give_ordinals(self._state, results, start, stop)
        theirs, ordinals = self._behind.tops, self._state.ordinals
        self.tops.score[:], self.tops.count[:] = theirs.score, theirs.count
        self.tops.ordinal[:] = ordinals[theirs.ordinal & (len(ordinals) - 1)]
        return stop

    @property
    def candidates(self) -> int:
        return self._behind.candidates

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._behind.nbytes

    def _made_for(self) -> dict[str, Any]:
        return {**super()._made_for(), "behind": self._behind._made_for()}

    def _arrays(self) -> dict[str, np.ndarray]:
        return {**super()._arrays(), "behind": np.frombuffer(self._behind.snapshot(), np.uint8)}

    def restore(self, data: bytes) -> None:
        super().restore(data)
        _, arrays = unpack(type(self).__name__, data)
        self._behind.restore(arrays["behind"].tobytes())

    def check_invariants(self) -> None:
        self._behind.check_invariants()
        count, numbers = self.tops.count[0], np.empty((2, self._k), np.int64)
        ordinals = self.tops.ordinal[0, :count]
        kernel.number_windows(ordinals, ordinals, self._slide, self._odd, self._k, *numbers)
        theirs = self._behind.tops.ordinal[0, :count]
        assert (theirs // self._k * self._k == numbers[0, :count]).all(), ("rows of other panes", ordinals, theirs, self._state)

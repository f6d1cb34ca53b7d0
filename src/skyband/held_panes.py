"""The panes of time windows that a coming window may hold: rows that enter and leave every window together."""

from __future__ import annotations

from typing import ClassVar

import numpy as np


class HeldPanes:
    """Time and ordinal of each pane's first row, both increasing. Adding costs O(1) a pane, on average: arrays have room."""

    def __init__(self) -> None:
        self._time, self._begin = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._head = self._stop = 0

    @property
    def time(self) -> np.ndarray:
        """When the first row of each is: a view."""
        return self._time[self._head : self._stop]

    @property
    def begin(self) -> np.ndarray:
        """Its ordinal: a view."""
        return self._begin[self._head : self._stop]

    def add(self, time: np.ndarray, begin: np.ndarray) -> None:
        """Hold newer panes."""
        held, more = self._stop - self._head, len(time)
        if self._stop + more > len(self._time):
            room = 2 * (held + more)
            for name, kept in (("_time", self.time), ("_begin", self.begin)):
                wider = np.empty(room, np.int64)
                wider[:held] = kept
                setattr(self, name, wider)
            self._head, self._stop = 0, held
        self._time[self._stop : self._stop + more], self._begin[self._stop : self._stop + more] = time, begin
        self._stop += more

    def forget_before(self, time: int) -> None:
        """Let panes go that begin before."""
        self._head += int(self.time.searchsorted(time))

    def first_row(self, time: np.ndarray, fed: int) -> np.ndarray:
        """Ordinals of the first rows of the panes that begin at these times, or after; of `fed` rows in all."""
        place = self.time.searchsorted(time)
        found = np.full(len(place), fed, np.int64)
        some = place < len(self.begin)
        found[some] = self.begin[place[some]]
        return found

    def oldest(self, fed: int) -> int:
        """The first row of all; of `fed` rows."""
        return int(self._begin[self._head]) if self._stop > self._head else fed

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._time.nbytes + self._begin.nbytes

    saved: ClassVar = {
        "pane_time": "int64 panes",
        "pane_begin": "int64 panes",
    }  # what `save` gives, as `layout.fields` takes it

    def save(self) -> dict[str, np.ndarray]:
        """What `restore` goes on from."""
        return {"pane_time": self.time, "pane_begin": self.begin}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take up what `save` gave."""
        self._time, self._begin = arrays["pane_time"], arrays["pane_begin"]
        self._head, self._stop = 0, len(self._time)

"""Which rows can still win, whatever the algorithm: those that fewer than k newer rows outrank."""

from __future__ import annotations

import numpy as np

from skyband.algorithms.contract import read_only


class LiveRows:
    """Rows of one lane that can still win, oldest first, and a few that no longer can.

    New rows are thinned as they come; old ones are looked at again each time the number held has doubled, so
    that keeping the list costs O(1) a row.
    """

    def __init__(self, k: int) -> None:
        self.k = k
        self.count = 0
        self.limit = 1024  # rows at which the old ones are looked at again
        self._ordinal, self._seq, self._score = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)

    @property
    def ordinal(self) -> np.ndarray:
        return self._ordinal[: self.count]

    @property
    def seq(self) -> np.ndarray:
        return self._seq[: self.count]

    @property
    def score(self) -> np.ndarray:
        return self._score[: self.count]

    def extend(self, first_ordinal: int, seq: np.ndarray | int, score: np.ndarray, reach: int) -> None:
        """Add rows with consecutive ordinals. `seq`: their arrival numbers, or the first of consecutive ones.
        No later window holds rows before the ordinal `reach`."""
        from skyband.kernels.live import live_rows

        places = live_rows(read_only(score), self.k)
        self._append(first_ordinal + places, seq + places if isinstance(seq, int) else seq[places], score[places])
        if self.count > self.limit:
            places = live_rows(read_only(self.score), self.k)
            places = places[self.ordinal[places] >= reach]
            self.count = len(places)
            for column in (self._ordinal, self._seq, self._score):
                column[: self.count] = column[places]
            self.limit = 2 * self.count + 1024

    def _append(self, ordinal: np.ndarray, seq: np.ndarray, score: np.ndarray) -> None:
        count = self.count + len(ordinal)
        if count > len(self._ordinal):
            self._ordinal, self._seq, self._score = (
                np.concatenate([column[: self.count], np.empty(count, column.dtype)])
                for column in (self._ordinal, self._seq, self._score)
            )
        for column, new in ((self._ordinal, ordinal), (self._seq, seq), (self._score, score)):
            column[self.count : count] = new
        self.count = count

    def save(self) -> dict[str, np.ndarray]:
        limit = np.array([self.limit], np.int64)
        return {"live.ordinal": self.ordinal, "live.seq": self.seq, "live.score": self.score, "live.limit": limit}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._ordinal, self._seq, self._score = arrays["live.ordinal"], arrays["live.seq"], arrays["live.score"]
        self.count, self.limit = len(self._ordinal), int(arrays["live.limit"][0])

    @property
    def nbytes(self) -> int:
        return self._ordinal.nbytes + self._seq.nbytes + self._score.nbytes

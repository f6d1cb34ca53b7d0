"""Which rows can still win, whatever the algorithm: those that fewer than k newer rows outrank."""

from __future__ import annotations

import numpy as np

from skyband.algorithms.contract import read_only

_AT_LEAST = 1 << 13  # fewer rows are not worth looking at again


class LiveRows:
    """Rows of one lane that can still win, oldest first, and a few that no longer can.

    New rows are thinned as they come, those that left every window go from the front, and the others are looked at
    again each time their number has doubled: keeping the list costs O(1) a row. `seq` is kept only where arrival
    numbers differ from ordinals.
    """

    def __init__(self, k: int, *, has_seq: bool) -> None:
        self.k = k
        self.limit = _AT_LEAST  # rows at which the old ones are looked at again
        self._columns = {"ordinal": np.empty(0, np.int64), "score": np.empty(0)}
        if has_seq:
            self._columns["seq"] = np.empty(0, np.int64)
        self._begin = self._end = 0  # the part of the columns in use

    def _used(self, name: str) -> np.ndarray:
        return self._columns[name][self._begin : self._end]

    @property
    def count(self) -> int:
        """Rows held."""
        return self._end - self._begin

    @property
    def ordinal(self) -> np.ndarray:
        """Increasing ordinals."""
        return self._used("ordinal")

    @property
    def seq(self) -> np.ndarray:
        """Arrival numbers."""
        return self._used("seq" if "seq" in self._columns else "ordinal")

    def extend(self, first_ordinal: int, seq: np.ndarray | None, score: np.ndarray, reach: int) -> int:
        """Add rows with consecutive ordinals; no later window holds rows before the ordinal `reach`.

        Returns how many of the scores are NaN, which the walk over them finds out by the way.
        """
        from skyband.kernels.live import live_rows

        places, unknown = live_rows(read_only(score), self.k)
        new = {"ordinal": first_ordinal + places, "score": score[places]}
        if seq is not None:
            new["seq"] = seq[places]
        self._begin += int(np.searchsorted(self.ordinal, reach))
        self._append(new, len(places))
        if self.count > self.limit:
            places, _ = live_rows(read_only(self._used("score")), self.k)
            for name in self._columns:
                self._columns[name] = self._used(name)[places]
            self._begin, self._end = 0, len(places)
            self.limit = 2 * self.count + _AT_LEAST
        return int(unknown)

    def _append(self, new: dict[str, np.ndarray], added: int) -> None:
        if self._end + added > len(self._columns["ordinal"]):  # move to the front of columns twice as long
            used = {name: self._used(name) for name in self._columns}
            room = 2 * (self.count + added)
            for name, column in used.items():
                wider = np.empty(room, column.dtype)
                wider[: len(column)] = column
                self._columns[name] = wider
            self._begin, self._end = 0, self.count
        for name, column in new.items():
            self._columns[name][self._end : self._end + added] = column
        self._end += added

    def save(self) -> dict[str, np.ndarray]:
        """What `restore` goes on from."""
        return {f"live.{name}": self._used(name) for name in self._columns} | {"live.limit": np.array([self.limit])}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take up what `save` gave."""
        self._columns = {name: arrays[f"live.{name}"] for name in self._columns}
        self._begin, self._end = 0, len(self._columns["ordinal"])
        self.limit = int(arrays["live.limit"][0])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(column.nbytes for column in self._columns.values())

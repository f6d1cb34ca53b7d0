"""Which rows can still win, whatever the algorithm: those that fewer than k newer rows outrank."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from skyband.algorithms.contract import read_only

_AT_LEAST = 1 << 13  # fewer rows are not worth looking at again
_CHUNKS = 64  # more make lookups slow


class _Chunk(NamedTuple):
    """Rows of increasing ordinal."""

    ordinal: np.ndarray
    seq: np.ndarray  # arrival numbers: the ordinals themselves in a count lane
    score: np.ndarray


class LiveRows:
    """Rows of one lane that can still win, oldest first, and a few that no longer can.

    New rows are thinned as they come, chunks that left every window go whole, and the others are looked at again
    each time their number has doubled: keeping the list costs O(1) a row.
    """

    def __init__(self, k: int, *, by_arrival: bool) -> None:
        self.k = k
        self.by_arrival = by_arrival  # ordinals are arrival numbers
        self.limit = _AT_LEAST  # rows at which the old ones are looked at again
        self.count = 0
        self._chunks: deque[_Chunk] = deque()

    def extend(self, first_ordinal: int, seq: np.ndarray | None, score: np.ndarray, reach: int) -> int:
        """Add rows with consecutive ordinals (and `seq`, if that differs); no later window holds rows before the
        ordinal `reach`.

        Returns how many of the scores are NaN, which the walk over them finds out by the way.
        """
        from skyband.kernels.live import live_rows

        while self._chunks and self._chunks[0].ordinal[-1] < reach:
            self.count -= len(self._chunks.popleft().ordinal)
        places, unknown = live_rows(read_only(score), self.k)
        if len(places):
            ordinal = first_ordinal + places
            self._chunks.append(_Chunk(ordinal, ordinal if seq is None else seq[places], score[places]))
            self.count += len(places)
        if self.count > self.limit:
            self.thin(reach)
        elif len(self._chunks) > _CHUNKS:
            self._hold(self._whole())
        return int(unknown)

    def thin(self, reach: int) -> None:
        """Look at all rows again: only those that can still win stay."""
        from skyband.kernels.live import live_rows

        whole = self._whole()
        places, _ = live_rows(read_only(whole.score), self.k)
        places = places[np.searchsorted(whole.ordinal[places], reach) :]
        self._hold(_Chunk(*(column[places] for column in whole)))
        self.limit = 2 * self.count + _AT_LEAST

    def _whole(self) -> _Chunk:
        if not self._chunks:
            return _Chunk(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
        return _Chunk(*(np.concatenate(column) for column in zip(*self._chunks, strict=True)))

    def _hold(self, chunk: _Chunk) -> None:
        self.count = len(chunk.ordinal)
        self._chunks = deque([chunk] if self.count else [])

    @property
    def oldest(self) -> int | None:
        """The ordinal of the first row."""
        return int(self._chunks[0].ordinal[0]) if self._chunks else None

    def seqs(self, since: int = 0) -> np.ndarray:
        """Arrival numbers of all rows that arrived from `since` on, by ordinal."""
        parts = [np.zeros(0, np.int64)]
        for chunk in self._chunks:
            if not self.by_arrival:
                parts.append(chunk.seq[chunk.seq >= since])
            elif chunk.seq[-1] >= since:
                parts.append(chunk.seq[np.searchsorted(chunk.seq, since) :])
        return parts[1] if len(parts) == 2 else np.concatenate(parts)

    def find(self, ordinal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Arrival numbers of the rows `ordinal`, and which of them are here at all."""
        seq, found = np.zeros(len(ordinal), np.int64), np.zeros(len(ordinal), bool)
        for chunk in self._chunks:
            place = np.minimum(np.searchsorted(chunk.ordinal, ordinal), len(chunk.ordinal) - 1)
            here = chunk.ordinal[place] == ordinal
            seq[here], found[here] = chunk.seq[place[here]], True
        return seq, found

    def save(self) -> dict[str, np.ndarray]:
        """What `restore` goes on from."""
        whole = self._whole()._asdict()
        return {f"live.{name}": column for name, column in whole.items()} | {"live.limit": np.array([self.limit])}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take up what `save` gave."""
        self._hold(_Chunk(*(arrays[f"live.{name}"] for name in _Chunk._fields)))
        self.limit = int(arrays["live.limit"][0])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        own = 2 if self.by_arrival else 3
        return sum(own * chunk.score.nbytes for chunk in self._chunks)

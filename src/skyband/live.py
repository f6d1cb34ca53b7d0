"""Which rows can still win, whatever the algorithm: those that fewer than k newer rows outrank."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import ClassVar, NamedTuple

import numpy as np

from skyband.algorithms.contract import UNKNOWN_CEILINGS, read_only
from skyband.kernels.tables import BLOCK, Ceilings
from skyband.memory import joined, picked, pooled, taken

_AT_LEAST = 1 << 13  # fewer rows are not worth looking at again
_JOINED = 16  # chunks at a time
_LARGE = 1 << 16  # rows of a chunk that is not copied any more for being joined with the next


class _Chunk(NamedTuple):
    """Rows of increasing ordinal."""

    ordinal: np.ndarray
    seq: np.ndarray  # arrival numbers: the ordinals themselves, the same array, in a count lane
    score: np.ndarray

    def only(self, places: np.ndarray) -> _Chunk:
        """The rows at these places, a copy."""
        ordinal = taken(self.ordinal, places)
        return _Chunk(ordinal, ordinal if self.seq is self.ordinal else taken(self.seq, places), taken(self.score, places))

    @classmethod
    def join(cls, chunks: Iterable[_Chunk]) -> _Chunk:
        """One of several."""
        ordinals, seqs, scores = zip(*chunks, strict=True)
        ordinal = joined(ordinals)
        same = all(own is others for own, others in zip(seqs, ordinals, strict=True))
        return cls(ordinal, ordinal if same else joined(seqs), joined(scores))


class Walk(NamedTuple):
    """What a walk over new scores found."""

    places: np.ndarray  # of the rows that can still win, increasing
    unknown: int  # scores that are NaN
    ceilings: Ceilings  # of the scores


class LiveRows:
    """Rows of one lane that can still win, oldest first, and a few that no longer can.

    New rows are thinned as they come, chunks that left every window go whole, and the others are looked at again
    each time their number has doubled: keeping the list costs O(1) a row.
    """

    def __init__(self, k: int | None, *, by_arrival: bool, unscored: bool = False) -> None:
        self.k = k  # None: every row with a score can win
        self.unscored = unscored  # and those without are remembered too
        self.by_arrival = by_arrival  # ordinals are arrival numbers
        self.limit = _AT_LEAST  # rows at which the old ones are looked at again
        self.count = 0
        self._chunks: deque[_Chunk] = deque()

    def walk(self, score: np.ndarray, begin: int = 0, asked: int | None = None) -> Walk:
        """Find the rows that can still win among new ones, of which those before the place `begin` are in no later
        window. `asked`: no window that is answered from now on ends before this place."""
        from skyband.kernels.live import live_rows

        if asked is not None and asked < len(score):
            if asked <= begin:
                return self.walk(score, begin)
            older, newer = self.walk(score[:asked], begin, asked), self.walk(score[asked:])  # who is not in every such window
            places = np.concatenate([older.places, newer.places + asked])
            whole_blocks = older.ceilings.limit[: (asked - begin) // BLOCK]
            return Walk(places, older.unknown + newer.unknown, older.ceilings._replace(limit=whole_blocks))
        if self.k is None or len(score) - begin <= self.k:  # no row is outranked often enough
            known = score == score
            places = (known | self.unscored).nonzero()[0]
            unknown = len(score) - int(np.count_nonzero(known))
            return Walk(places[places.searchsorted(begin) :] if begin else places, unknown, UNKNOWN_CEILINGS)
        before = 0
        if begin > 0 and np.isnan(score[:begin].max()):  # a maximum that is NaN: one pass as fast as any
            before = int(np.count_nonzero(np.isnan(score[:begin])))
        places, unknown, limit = live_rows(read_only(score[begin:]), self.k, asked is not None)
        if begin > 0:
            places = places + begin
        return Walk(places, before + int(unknown), Ceilings(begin, limit))

    def extend(self, first_ordinal: int, seq: np.ndarray | None, score: np.ndarray, places: np.ndarray, reach: int) -> None:
        """Add the rows at the `places` that a walk found among rows with consecutive ordinals (and `seq`, if that
        differs); no later window holds rows before the ordinal `reach`."""
        while self._chunks and self._chunks[0].ordinal[-1] < reach:
            self.count -= len(self._chunks.popleft().ordinal)
        if len(places):
            ordinal = np.add(places, first_ordinal, out=pooled(len(places), np.int64))
            self._chunks.append(_Chunk(ordinal, ordinal if seq is None else seq[places], picked(score, places)))
            self.count += len(places)
            self._join_small_chunks()
        if self.count > self.limit:
            self.thin(reach)

    def _join_small_chunks(self) -> None:
        """As `rows.RowStore` does: chunks grow like powers of sixteen, so that there are few, and a row is seldom copied."""
        while len(self._chunks) >= _JOINED:
            newest = [self._chunks[at] for at in range(-_JOINED, 0)]
            if len(newest[0].score) > min(sum(len(chunk.score) for chunk in newest[1:]), _LARGE):
                return
            for _ in newest:
                self._chunks.pop()
            self._chunks.append(_Chunk.join(newest))

    def thin(self, reach: int) -> None:
        """Look at all rows again: only those that can still win stay."""
        from skyband.kernels.live import live_rows

        if self.k is not None and self._chunks:
            places, _, _ = live_rows(read_only(joined(tuple(chunk.score for chunk in self._chunks))), self.k, False)
            lengths = [len(chunk.score) for chunk in self._chunks]
            ends = np.cumsum(lengths)
            cuts = places.searchsorted(ends)
            kept = np.split(places, cuts[:-1])
            chunks = zip(self._chunks, kept, ends - lengths, strict=True)
            self._chunks = deque(
                chunk if len(own) == len(chunk.score) else chunk.only(own - begin) for chunk, own, begin in chunks if len(own)
            )
        while self._chunks and self._chunks[0].ordinal[-1] < reach:
            self._chunks.popleft()
        if self._chunks and (past := int(self._chunks[0].ordinal.searchsorted(reach))):
            self._chunks[0] = self._chunks[0].only(np.arange(past, len(self._chunks[0].score)))
        self.count = sum(len(chunk.score) for chunk in self._chunks)
        self.limit = 2 * self.count + _AT_LEAST

    def _whole(self) -> _Chunk:
        if not self._chunks:
            return _Chunk(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
        return _Chunk.join(self._chunks)

    def _hold(self, chunk: _Chunk) -> None:
        self.count = len(chunk.ordinal)
        self._chunks = deque([chunk] if self.count else [])

    @property
    def oldest(self) -> int | None:
        """The ordinal of the first row."""
        return int(self._chunks[0].ordinal[0]) if self._chunks else None

    def seqs(self, since: int = 0) -> np.ndarray:
        """Arrival numbers of all rows that arrived from `since` on, by ordinal."""
        parts: list[np.ndarray] = []
        for chunk in reversed(self._chunks):
            if not self.by_arrival:
                parts.append(chunk.seq[chunk.seq >= since])
            elif chunk.seq[-1] < since:
                break
            else:
                parts.append(chunk.seq[chunk.seq.searchsorted(since) :])
        return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int64), *reversed(parts)])

    def find(self, ordinal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Arrival numbers of the rows `ordinal`, and which of them are here at all."""
        seq, found = np.zeros(len(ordinal), np.int64), np.zeros(len(ordinal), bool)
        for chunk in self._chunks:
            place = np.minimum(np.searchsorted(chunk.ordinal, ordinal), len(chunk.ordinal) - 1)
            here = chunk.ordinal[place] == ordinal
            seq[here], found[here] = chunk.seq[place[here]], True
        return seq, found

    def since(self, ordinal: int) -> tuple[np.ndarray, np.ndarray]:
        """Ordinals and arrival numbers of all rows from the ordinal on; O(those)."""
        ordinals, seqs = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for chunk in reversed(self._chunks):
            if chunk.ordinal[-1] < ordinal:
                break
            begin = chunk.ordinal.searchsorted(ordinal)
            ordinals.append(chunk.ordinal[begin:])
            seqs.append(chunk.seq[begin:])
        return np.concatenate(ordinals[::-1]), np.concatenate(seqs[::-1])

    saved: ClassVar = {  # what `save` gives, as `layout.fields` takes it
        "live.ordinal": "int64 live",
        "live.seq": "int64 live",
        "live.score": "float64 live",
        "live.limit": "int64 1",
    }

    def save(self) -> dict[str, np.ndarray]:
        """What `restore` goes on from."""
        whole = self._whole()._asdict()
        return {f"live.{name}": column for name, column in whole.items()} | {"live.limit": np.array([self.limit])}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take up what `save` gave."""
        ordinal, seq, score = (arrays[f"live.{name}"] for name in _Chunk._fields)
        self._hold(_Chunk(ordinal, ordinal if self.by_arrival else seq, score))
        self.limit = int(arrays["live.limit"][0])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        own = 2 if self.by_arrival else 3
        return sum(own * chunk.score.nbytes for chunk in self._chunks)

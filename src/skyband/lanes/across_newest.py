"""Objects across streams as one part of several: every result row also says which tuple of its object is the newest.

Of equal scores the object with the newer tuple ranks first. Parts of an answer can be put together only if they tell how new
that is: by the place in the stream where rows are counted, else by time and a column that tells rows of one time apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from skyband.changes import Emitted
from skyband.kernels.tables import Windows
from skyband.lanes.across import AcrossLane
from skyband.lanes.base import Place, Rows

TIE = "#tie"
"""The column by which rows of one time are ordered; they come in that order."""

_NOTHING = np.zeros((2, 0), np.int64)


class NewestAcrossLane(AcrossLane):
    """A lane that hands windows on one by one, and looks after each at who is how new: a little slower."""

    kind = "across, newest told"

    def __init__(self, place: Place, since: int) -> None:
        super().__init__(place, since)
        self.newest = _NOTHING  # of each result row of the last call: place and 0, or time and tie
        self._moments = _NOTHING  # time and tie of each object's newest tuple that counts, by number
        self._fed_moments = _NOTHING  # of the tuples being handed on

    def take(self, rows: Rows) -> tuple[Emitted, pa.Array]:
        self.newest = _NOTHING
        return super().take(rows)

    def close(self, watermark: int) -> tuple[Emitted, pa.Array]:
        self.newest = _NOTHING
        return super().close(watermark)

    def _order(self, rows: Rows, places: np.ndarray) -> np.ndarray:
        ties: np.ndarray = rows.table.column(TIE).to_numpy()[places]
        return ties

    def _closing(self, upto: int) -> tuple[np.ndarray, ...]:
        closing = super()._closing(upto)
        self._fed_moments = np.stack(closing[:2])
        return closing

    def _feed(self, begin: int, columns: tuple[np.ndarray, ...], windows: Windows) -> Emitted:
        parts, newest, done, total = [], [_NOTHING], 0, len(columns[0])
        for at in range(len(windows.end)):
            stop = max(done, min(int(windows.end[at]) - begin, total))
            parts.append(self._one(begin, done, stop, columns, Windows(*(column[at : at + 1] for column in windows))))
            newest.append(self._how_new(parts[-1].ordinal))
            done = stop
        self._one(begin, done, total, columns, Windows(*(column[:0] for column in windows)))
        self.newest = np.concatenate(newest, axis=1)
        return Emitted.join(parts)

    def _one(self, begin: int, start: int, stop: int, columns: tuple[np.ndarray, ...], windows: Windows) -> Emitted:
        """Hand on the tuples from `start` to `stop`, and note who is new."""
        emitted = super()._feed(begin + start, tuple(column[start:stop] for column in columns), windows)
        if self.timed and stop > start:
            if len(self.numbering) > self._moments.shape[1]:
                more = len(self.numbering) - self._moments.shape[1]
                self._moments = np.hstack([self._moments, np.zeros((2, more), np.int64)])
            objects = np.unique(columns[0][start:stop])
            last = self.structure.objects.last[objects] - begin
            fresh = last >= start
            self._moments[:, objects[fresh]] = self._fed_moments[:, last[fresh]]
        return emitted

    def _how_new(self, objects: np.ndarray) -> np.ndarray:
        if self.timed:
            return self._moments[:, objects]
        return np.stack([self.structure.objects.last[objects], np.zeros(len(objects), np.int64)])

    def save(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header, arrays = super().save()
        return header, {**arrays, "moments": self._moments}

    @classmethod
    def saved(cls, members: int) -> dict[str, str]:
        return {**super().saved(members), "moments": "int64 2 moments"}

    @classmethod
    def restored(cls, places: list[Place], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> AcrossLane:
        lane = super().restored(places, header, arrays)
        assert isinstance(lane, NewestAcrossLane)
        lane._moments = arrays["moments"]
        return lane

"""The lanes of pairs: rows by arrival and count windows, rows by time and time windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.changes import Emitted
from skyband.held_panes import HeldPanes
from skyband.kernels.tables import NOTHING
from skyband.lanes.base import NEVER, Names, Place, Rows
from skyband.lanes.pairs import NO_NAMES, PairLane
from skyband.schedule import count_windows, cut_panes, in_order_of_end, time_windows


class PairCountLane(PairLane):
    """Rows by arrival, count windows. An ordinal is an arrival number."""

    kind = "pairs by count"

    def _first_ordinal(self) -> int:
        return self.structure.next if self.members else self.since

    def _waits(self) -> bool:
        return False

    def take(self, rows: Rows) -> tuple[Emitted, Names]:
        before = self.structure.next
        seen = before + rows.table.num_rows
        older, newer, sides, missing = self._columns(rows.table, np.arange(before, seen))
        for member in self.members:
            member.count(len(sides), 0, int(np.count_nonzero(missing)))
        windows = in_order_of_end(
            [
                count_windows(q, m.size, m.slide, since, before, seen, last_only=m.emission == NOTHING)
                for q, (m, since) in enumerate(zip(self.members, self.sinces, strict=True))
            ]
        )
        answered = self._answer(older, newer, sides, None, windows, self._next_reach(seen))
        self.texts.forget_before(self.reach)
        return answered

    def _next_reach(self, seen: int) -> int:
        """First row of the earliest window to come."""
        nexts = [(seen // m.slide + 1) * m.slide - m.size for m in self.members]
        return min(max(first, since) for first, since in zip(nexts, self.sinces, strict=True))

    def oldest_needed(self) -> int:
        return self.floor

    def _restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        return


class PairTimeLane(PairLane):
    """Rows by time, then arrival, handed on as slides close. All queries have one slide, as a row is late by its slide."""

    kind = "pairs by time"

    def __init__(self, place: Place, since: int) -> None:
        self.fed = 0  # ordinals given out
        super().__init__(place, since)
        self.slide = place.slide
        self.open = OpenPairRows(len(self.older) + len(self.newer))
        self.panes = HeldPanes()  # that a coming window may hold
        self.closed = NEVER  # every window up to this end has been answered
        self.last_time = NEVER  # greatest time of a row that was not late

    def _first_ordinal(self) -> int:
        return self.fed

    def _waits(self) -> bool:
        return self.open.count > 0

    def take(self, rows: Rows) -> tuple[Emitted, Names]:
        assert rows.times is not None
        older, newer, sides, missing = self._columns(rows.table, rows.times)
        late = rows.late(self.slide)
        on_time = np.ones(len(sides), bool) if late is None else ~late
        counts = len(sides), int(np.count_nonzero(~on_time)), int(np.count_nonzero(missing & on_time))
        for member in self.members:
            member.count(*counts)
        if on_time.any():
            self.last_time = max(self.last_time, int(rows.times[on_time].max()))
        places = np.flatnonzero(on_time & (sides > 0))
        columns = np.vstack([older, newer])[:, places]
        self.open.add(rows.times[places], rows.base + places, sides[places], columns)
        return self.close(rows.watermark)

    def last_end(self) -> int:
        if self.last_time == NEVER:
            return NEVER
        return ((self.last_time + max(member.size for member in self.members)) // self.slide + 1) * self.slide

    def close(self, watermark: int) -> tuple[Emitted, Names]:
        upto = watermark // self.slide * self.slide
        if watermark == NEVER or upto <= self.closed:
            return Emitted.room(0), NO_NAMES
        time, seq, sides, columns = self.open.take_before(upto)
        begin, self.fed = self.fed, self.fed + len(time)
        cuts = cut_panes(time, self.slide, [member.size for member in self.members])
        self.panes.add(time[cuts], begin + cuts)
        parts = []
        for q, (m, since) in enumerate(zip(self.members, self.sinces, strict=True)):
            held = time_windows(q, m.size, m.slide, self.closed, upto, self.panes, self.fed, m.emission)
            parts.append(held._replace(first=np.maximum(held.first, since)))
        self.closed = upto
        earliest = upto - max(member.size for member in self.members)
        self.panes.forget_before(earliest)
        reach = self.panes.oldest(self.fed)
        older, newer = columns[: len(self.older)], columns[len(self.older) :]
        answered = self._answer(older, newer, sides, seq, in_order_of_end(parts), reach)
        self.texts.forget_before(earliest)
        return answered

    def needed(self, base: int = 0) -> np.ndarray:
        waiting = self.open.seq[self.open.seq >= base]
        return np.union1d(super().needed(base), waiting)

    def oldest_needed(self) -> int:
        return 0  # rows may be much older by arrival than by time

    def _numbers(self) -> dict[str, int]:
        return {"fed": self.fed, "closed": self.closed, "last_time": self.last_time}

    def _arrays(self) -> dict[str, np.ndarray]:
        return self.panes.save() | self.open.arrays()

    @classmethod
    def saved(cls, members: int) -> dict[str, str]:
        waiting = {"time": "int64 open", "seq": "int64 open", "sides": "uint8 open", "columns": "float64 columns open"}
        return super().saved(members) | HeldPanes.saved | {f"open.{name}": text for name, text in waiting.items()}

    def _restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.fed, self.closed, self.last_time = header["fed"], header["closed"], header["last_time"]
        self.panes.restore(arrays)
        self.open.add(*(arrays[f"open.{name}"] for name in ("time", "seq", "sides", "columns")))


class OpenPairRows:
    """Rows of slides that have not closed, with the columns that pairs need, in the order of arrival."""

    def __init__(self, columns: int) -> None:
        self._pieces = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros((columns, 0)))]
        self.count = 0

    def add(self, time: np.ndarray, seq: np.ndarray, sides: np.ndarray, columns: np.ndarray) -> None:
        """Hold more rows, of increasing `seq`."""
        self._pieces.append((time, seq, sides, columns))
        self.count += len(time)

    def _whole(self) -> tuple[np.ndarray, ...]:
        """All rows: times, arrival numbers, sides, columns; joined into one piece."""
        if len(self._pieces) > 1:
            joined = [np.concatenate(parts, axis=-1) for parts in zip(*self._pieces, strict=True)]
            self._pieces = [(joined[0], joined[1], joined[2], joined[3])]
        return self._pieces[0]

    def take_before(self, time: int) -> tuple[np.ndarray, ...]:
        """Hand out the rows before `time`, in the order of time, then arrival."""
        whole = self._whole()
        done = whole[0] < time
        left = [column[..., ~done] for column in whole]
        self._pieces, self.count = [(left[0], left[1], left[2], left[3])], int(np.count_nonzero(~done))
        taken = [column[..., done] for column in whole]
        order = np.argsort(taken[0], kind="stable")
        return tuple(np.ascontiguousarray(column[..., order]) for column in taken)

    @property
    def seq(self) -> np.ndarray:
        """The rows' arrival numbers."""
        return self._whole()[1]

    def arrays(self) -> dict[str, np.ndarray]:
        """What `add` goes on from."""
        names = ("time", "seq", "sides", "columns")
        return {f"open.{name}": column for name, column in zip(names, self._whole(), strict=True)}

"""Many queries with scores of their own over the same attributes and time window: rows by time, one structure for all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from skyband.algorithms import load, settled
from skyband.changes import NO_EVENTS, Emitted
from skyband.held_panes import HeldPanes
from skyband.kernels.tables import CHANGES, NOTHING, SNAPSHOTS
from skyband.lanes.base import NEVER, NO_ROW, Lane, Place, Rows
from skyband.lanes.crowd import OF_ROW, UID_SHIFT, CrowdLane
from skyband.lanes.open_rows import OpenRows
from skyband.lanes.snapshots import Unchanged
from skyband.rows import united
from skyband.schedule import cut_panes, time_windows

if TYPE_CHECKING:
    from skyband.algorithms.spatial.crowd_time import TimeCrowd


class CrowdTimeLane(CrowdLane):
    """Ordinals are given out as slides close, in the order of time. A row that has waited for that is seen by all queries
    alike, so none can join while one waits; it is taken over from a lane of its own when that has seen all rows there are."""

    kind = "crowd-time"
    structure: TimeCrowd

    def __init__(self, place: Place, since: int) -> None:
        super().__init__(place, since)
        self.size, self.slide = place.size, place.slide
        self.open = OpenRows()  # the rows' attributes take the place of a score
        self.panes = HeldPanes()  # that a coming window may hold
        self.seqs = np.zeros(0, np.int64)  # arrival numbers of the rows from the ordinal `seqs_from` on, and room
        self.seqs_from = 0
        self.closed = NEVER  # every window up to this end has been answered
        self.last_time = NEVER  # greatest time of a row that was not late
        self._pushed = (0, np.zeros(0, np.int64), 0)  # the first row of the last push, those not late, and the first ordinal

    def _made(self, place: Place, attributes: tuple[str, ...]) -> TimeCrowd:
        kind = cast("type[TimeCrowd]", load(place.algorithm, over_time=True))
        return kind(attributes, settled(place.algorithm)[1].get("grid"))

    @property
    def is_open(self) -> bool:
        return self.open.count == 0

    def take_over(self, lane: Lane) -> None:
        """Answer the queries of another lane from now on, which has seen all rows that this one holds, and holds no other."""
        lane.settle()
        live = self._live()
        order = np.argsort(live, kind="stable")
        for at, member in enumerate(lane.members):
            if not member.active:
                continue
            place = Place(member.query, type(self), self.key, self.size, self.slide, self.algorithm, timed=True)
            place.crowd = self.gathers
            score, seq = lane.top(at)
            ordinal = self._oldest() + order[live.searchsorted(seq, sorter=order)]
            self.structure.take_over(self._asked(place), score, ordinal)
            told = lane.arrived(at)
            told = live.searchsorted(told[np.isin(told, live)], sorter=order)
            member.gathers = None
            self._seat(member, place)
            told = (self.uids[-1] << UID_SHIFT) + self._oldest() + np.sort(order[told])
            self.ranked = np.concatenate([self.ranked, told])  # no number of a member is larger

    def arrived(self, at: int) -> np.ndarray:
        rows = self.ranked[self.ranked >> UID_SHIFT == self.uids[at]] & OF_ROW
        return self._seq_of(rows[rows >= self._oldest()])

    def read_since(self, lane: Lane) -> int:
        """The first row of which, and of all later ones, everything is known here that another lane's queries read."""
        names = {name for member in lane.members if member.active for name in self._columns_of(member)}
        return max(self._read_from.get(name, NO_ROW) for name in names)

    def oldest_held(self) -> int:
        """The row that arrived first of those that an answer to come may hold, or all that are to come."""
        return int(min(self._live().min(initial=NO_ROW), self.open.seqs(0).min(initial=NO_ROW)))

    # -- rows ----------------------------------------------------------------------------------------------------

    def take(self, rows: Rows) -> tuple[Emitted, np.ndarray]:
        assert rows.times is not None
        points, late, time = self._points(rows), rows.late(self.slide), rows.times
        seq = np.arange(rows.base, rows.base + len(time))
        self._uncounted += len(time)
        if late is not None and late.any():
            lates = int(np.count_nonzero(late))
            for member in self.members:
                member.late += lates
            points, time, seq = points[:, ~late], time[~late], seq[~late]
        if len(time):
            self.last_time = max(self.last_time, int(time.max()))
        nulls = self._nulls(rows, points)
        for at in np.flatnonzero(nulls).tolist():
            self.members[at].nulls += int(nulls[at])
        self.open.add(time.copy(), seq, np.ascontiguousarray(points.T))
        self._pushed = (rows.base, seq, self.structure.seen)
        return self.close(rows.watermark)

    def last_end(self) -> int:
        return NEVER if self.last_time == NEVER else ((self.last_time + self.size) // self.slide + 1) * self.slide

    def close(self, watermark: int) -> tuple[Emitted, np.ndarray]:
        upto = watermark // self.slide * self.slide
        if watermark == NEVER or upto <= self.closed:
            return NO_EVENTS, np.zeros(0, np.int64)
        time, seq, rows = self.open.take_before(upto)
        begin, reach = self.structure.seen, self._oldest()
        fed = begin + len(time)
        cuts = cut_panes(time, self.slide, [self.size])
        self.panes.add(time[cuts], begin + cuts)
        self._number(seq, begin, reach)
        emission = self._emissions()
        widest = SNAPSHOTS if (emission == SNAPSHOTS).any() else CHANGES if (emission != NOTHING).any() else NOTHING
        windows = time_windows(0, self.size, self.slide, self.closed, upto, self.panes, fed, widest)
        self.closed = upto
        points = rows.reshape(-1, len(self.structure.attributes)).T
        answered = self.structure.take(points, windows.first, windows.end)
        parts = list(self._told(answered, windows.number * self.slide, emission))
        self.panes.forget_before(upto - self.size)  # the last windows answered hold the others
        emitted = self._first_arrivals_of(Emitted.join(parts), emission)
        return emitted, self._seq_of(emitted.ordinal)

    def _told(self, answered: Iterator[Any], ends: np.ndarray, emission: np.ndarray) -> Iterator[Emitted]:
        """Result rows of the windows with these ends."""
        queries = len(self.members)
        unchanged = Unchanged(emission == SNAPSHOTS, np.full(queries, -1))
        for query, number, results in answered:
            query, number, results = unchanged.among(query, number, results)
            yield self._emit(query, ends[number], results, emission)
        query, number, results = unchanged.rest(np.full(queries, len(ends) - 1))
        if len(query):
            yield self._emit(query, ends[number], results, emission)

    def delete(self, seq: np.ndarray) -> tuple[Emitted, np.ndarray]:
        self.open.drop(seq)
        emitted = self._delete(self._oldest() + np.flatnonzero(np.isin(self._live(), seq)))
        return emitted, self._seq_of(emitted.ordinal)

    def _delete(self, ordinals: np.ndarray) -> Emitted:
        """The result rows of the window that ended last, without these rows."""
        if len(ordinals) == 0:
            return NO_EVENTS
        query, _, results = self.structure.delete(ordinals)
        emission = self._emissions()
        return self._first_arrivals_of(self._emit(query, np.full(len(query), self.closed), results, emission), emission)

    def _oldest(self) -> int:
        return self.panes.oldest(self.structure.seen)

    # -- arrival numbers -----------------------------------------------------------------------------------------

    def _number(self, seq: np.ndarray, begin: int, reach: int) -> None:
        """Note the arrival numbers of new rows, the first of which has the ordinal `begin`; those before `reach` may go."""
        held = begin - self.seqs_from
        if held + len(seq) > len(self.seqs):
            kept = self.seqs[reach - self.seqs_from : held]
            self.seqs = np.empty(2 * (len(kept) + len(seq)), np.int64)
            self.seqs[: len(kept)] = kept
            self.seqs_from, held = reach, len(kept)
        self.seqs[held : held + len(seq)] = seq

    def _seq_of(self, ordinal: np.ndarray) -> np.ndarray:
        return self.seqs[ordinal - self.seqs_from]

    def _live(self) -> np.ndarray:
        """Arrival numbers of the rows that a coming window, or a last answer, may hold."""
        return self.seqs[self._oldest() - self.seqs_from : self.structure.seen - self.seqs_from]

    def top(self, at: int) -> tuple[np.ndarray, np.ndarray]:
        score, ordinal = super().top(at)
        return score, self._seq_of(ordinal)

    def needed(self, base: int = 0) -> np.ndarray:
        return self.live_rows(base, 0)

    def oldest_needed(self) -> int:
        return 0  # rows may be much older by arrival than by time

    def live_rows(self, base: int, seen: int) -> np.ndarray:
        if base == self._pushed[0] and base > 0:
            return self._pushed[1]
        live = self._live()
        return united([np.unique(live[live >= base]), self.open.seqs(base)])

    def holds(self, seq: np.ndarray) -> np.ndarray:
        return np.isin(seq, self._live()) | np.isin(seq, self.open.seqs(0))

    @property
    def nbytes(self) -> int:
        waiting = sum(column.nbytes for column in self.open.whole())
        return self.structure.nbytes + self.seqs.nbytes + self.panes.nbytes + waiting

    # -- state ---------------------------------------------------------------------------------------------------

    def save(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header, arrays = super().save()
        time, seq, rows = self.open.whole()
        arrays |= {"open_time": time, "open_seq": seq, "open_rows": rows.reshape(-1, len(self.structure.attributes))}
        arrays |= self.panes.save() | {"seqs": self._live()}
        return {**header, "closed": self.closed, "last_time": self.last_time}, arrays

    @classmethod
    def saved(cls, members: int) -> dict[str, str]:
        own = HeldPanes.saved | {"seqs": "int64 live"}
        own |= {"open_time": "int64 open", "open_seq": "int64 open", "open_rows": "float64 open attributes"}
        return super().saved(members) | own

    @classmethod
    def restored(cls, places: list[Place], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> CrowdTimeLane:
        lane = cast(CrowdTimeLane, super().restored(places, header, arrays))
        lane.closed, lane.last_time = header["closed"], header["last_time"]
        lane.open.add(arrays["open_time"], arrays["open_seq"], arrays["open_rows"])
        lane.panes.restore(arrays)
        lane.seqs, lane.seqs_from = arrays["seqs"], lane._oldest()
        return lane

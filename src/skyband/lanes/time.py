"""Rows by time, then arrival; a slide's rows are handed on when the watermark passes its end."""

from __future__ import annotations

import numpy as np

from skyband.algorithms.contract import Answers, Plan
from skyband.changes import NO_EVENTS, Emitted
from skyband.held_panes import HeldPanes
from skyband.kernels.tables import NOTHING, Ceilings, Panes, Windows
from skyband.lanes.base import NEVER, NO_ROW, Place, Rows
from skyband.lanes.open_rows import OpenRows
from skyband.lanes.ranked import RankedLane
from skyband.rows import united
from skyband.schedule import cut_panes, in_order_of_end, time_panes, time_windows


class TimeLane(RankedLane):
    """All its queries have one slide, since a row is late when its slide has closed. Ordinals are given out as
    slides close, in the order of time."""

    kind = "time"

    def __init__(self, place: Place, since: int) -> None:
        super().__init__(place, since)
        self.open = OpenRows()
        self.panes = HeldPanes()  # that a coming window may hold
        self.top_ordinal = np.zeros(0, np.int64)  # rows in a current top-k
        self.top_seq = np.zeros(0, np.int64)
        self.fed = 0  # ordinals given out
        self.closed = NEVER  # every window up to this end has been answered
        self.last_time = NEVER  # greatest time of a row that was not late, whether it can rank or not
        self._pushed = (0, 0)  # the first row of the last push, and the first ordinal that one of its rows may have

    @property
    def slide(self) -> int:
        return self.members[0].slide

    @property
    def _widest(self) -> int:
        return max(member.size for member in self.members)

    def _plan(self) -> Plan:
        return Plan(tuple(m.query.k for m in self.members), None, None, whole=self.door.above is not None)

    def take(self, rows: Rows) -> tuple[Emitted, np.ndarray]:
        assert rows.times is not None
        missing, late = np.isnan(rows.values[self.door.score]), rows.late(self.slide)
        if late is not None:
            missing &= ~late
        lates = 0 if late is None else int(np.count_nonzero(late))
        nulls = int(np.count_nonzero(missing))
        for member in self.members:
            member.count(len(rows.table), lates, nulls)
        self._hold(rows.times, rows.base, rows.scores(self.door), late)
        self._pushed = (rows.base, self.fed)
        return self.close(rows.watermark)

    def _hold(self, time: np.ndarray, first_seq: int, scores: np.ndarray, late: np.ndarray | None) -> None:
        """Hold rows until their slide closes; `late` marks those whose slide has closed already."""
        kept = np.isnan(scores)
        np.logical_not(kept, out=kept)
        if self.deletions:
            kept[:] = True
        if late is not None:
            on_time = time[~late]
            kept &= ~late
        else:
            on_time = time
        if len(on_time):
            self.last_time = max(self.last_time, int(on_time.max()))
        places = np.flatnonzero(kept)
        self.open.add(time[places], first_seq + places, scores[places])
        if self.live.k is not None:
            self.open.tidy(self.slide, [member.size for member in self.members], self.structure.plan.largest_k)

    def last_end(self) -> int:
        if self.last_time == NEVER:
            return NEVER
        widest = max(member.size for member in self.members if member.active)
        return ((self.last_time + widest) // self.slide + 1) * self.slide

    def close(self, watermark: int) -> tuple[Emitted, np.ndarray]:
        upto = watermark // self.slide * self.slide
        if watermark == NEVER or upto <= self.closed:
            return NO_EVENTS, np.zeros(0, np.int64)
        time, seq, scores = self.open.take_before(upto)
        begin, self.fed = self.fed, self.fed + len(time)
        cuts = cut_panes(time, self.slide, [member.size for member in self.members])
        new_panes = time_panes(time[cuts], begin + cuts, self.members[0].size, self.slide)
        self.panes.add(time[cuts], begin + cuts)
        windows = in_order_of_end(
            [
                time_windows(q, m.size, m.slide, self.closed, upto, self.panes, self.fed, m.emission)
                for q, m in enumerate(self.members)
            ]
        )
        self.closed = upto
        walk = self.live.walk(scores)
        emitted = NO_EVENTS
        if len(windows.end):
            start = max(begin, min(int(windows.first[windows.query == q][0]) for q in np.unique(windows.query)))
            if len(np.unique(windows.query)) < len(self.members):
                start = begin  # a query without a window here may still need every row

            def panes_of(a: int, b: int) -> Panes:
                low, high = np.searchsorted(new_panes.begin, (a, b), "left")
                return Panes(*(column[low:high] for column in new_panes))

            emitted = self._answer(
                start, scores[start - begin :], Ceilings(begin - start, walk.ceilings.limit), windows, panes_of
            )
        resolved = self._resolve(emitted.ordinal, begin, seq)
        top_ordinal = np.unique(self._in_tops())
        self.top_seq = self._resolve(top_ordinal, begin, seq)
        self.top_ordinal = top_ordinal
        self.panes.forget_before(upto - self._widest)  # the last windows answered hold the others
        self.live.extend(begin, seq, scores, walk.places, self._reach())
        return emitted, resolved

    def delete(self, seq: np.ndarray) -> tuple[Emitted, np.ndarray]:
        self.open.drop(seq)
        ordinals, seqs = self.live.since(self._first_of(self._widest))
        gone = ordinals[np.isin(seqs, seq)]
        if len(gone) == 0:
            return NO_EVENTS, NO_EVENTS.ordinal
        query = [
            q
            for q, count in enumerate(self.structure.tops.count)
            if np.isin(self.structure.tops.ordinal[q, :count], gone).any()
        ]
        first = [self._first_of(self.members[q].size) for q in query]
        asked = len(query)
        number, end = np.full(asked, self.closed // self.slide), np.full(asked, self.fed)
        windows = Windows(np.array(query, np.int64), number, np.array(first, np.int64), end, np.ones(asked, bool))
        results = self.structure.delete(gone, windows)
        emitted = NO_EVENTS
        if asked and any(member.emission != NOTHING for member in self.members):
            emitted = self._told([(windows, Answers(0, asked, results))], windows)
        resolved = self._resolve(emitted.ordinal, self.fed, seqs)
        top_ordinal = np.unique(self._in_tops())
        self.top_seq, self.top_ordinal = self._resolve(top_ordinal, self.fed, seqs), top_ordinal
        return emitted, resolved

    def _first_of(self, size: int) -> int:
        """The first row of the last window of that size."""
        return int(self.panes.first_row(np.array([self.closed - size]), self.fed)[0])

    def _just_pushed(self) -> np.ndarray:
        """Arrival numbers of live rows that were closed with the last push: those of it, and some that had waited."""
        return self.live.since(self._pushed[1])[1]

    def _held(self) -> np.ndarray:
        """Arrival numbers of the rows in the last window of any query."""
        return self.live.since(self._first_of(max(member.size for member in self.members if member.active)))[1]

    def oldest_held(self) -> int:
        """The row that arrived first of those that an answer, the last or one to come, may hold."""
        held = np.concatenate([self._held(), self.open.seqs(0), self.top_seq])
        return int(held.min(initial=NO_ROW))

    def live_rows(self, base: int, seen: int) -> np.ndarray:
        held = self._just_pushed() if base == self._pushed[0] else self._held()
        return united([np.unique(held[held >= base]), self.open.seqs(base)])

    def holds(self, seq: np.ndarray) -> np.ndarray:
        return np.isin(seq, self._held()) | np.isin(seq, self.open.seqs(0))

    def _reach(self) -> int:
        return self.panes.oldest(self.fed)

    def _resolve(self, ordinal: np.ndarray, begin: int, seq: np.ndarray) -> np.ndarray:
        """Arrival numbers of rows: new ones (from `begin` on) by `seq`, others live or in a top-k until now."""
        result = np.empty(len(ordinal), np.int64)
        new = ordinal >= begin
        result[new] = seq[ordinal[new] - begin]
        old = ordinal[~new]
        if len(old):
            known, found = self.live.find(old)
            known[~found] = self.top_seq[np.searchsorted(self.top_ordinal, old[~found])]
            result[~new] = known
        return result

    def seq_of(self, ordinal: np.ndarray) -> np.ndarray:
        return self.top_seq[np.searchsorted(self.top_ordinal, ordinal)]

    def arrived(self, at: int) -> np.ndarray:
        if self.door.above is not None:
            return np.zeros(0, np.int64)  # a row comes once
        ordinals, seqs = self.live.since(self._reach())
        return seqs[np.isin(ordinals, self.members[at].ranked)]

    def needed(self, base: int = 0) -> np.ndarray:
        live = self._just_pushed() if base == self._pushed[0] else self.live.seqs(base)
        tops = self.top_seq[self.top_seq >= base]
        return np.unique(np.concatenate([live[live >= base], tops, self.open.seqs(base)]))

    def oldest_needed(self) -> int:
        return 0  # rows may be much older by arrival than by time

    def _numbers(self) -> dict[str, int]:
        return {"fed": self.fed, "closed": self.closed, "last_time": self.last_time}

    def _arrays(self) -> dict[str, np.ndarray]:
        waiting = dict(zip(("open_time", "open_seq", "open_score"), self.open.whole(), strict=True))
        return waiting | {
            "open_limit": np.array([self.open.limit]),
            **self.panes.save(),
            "top_ordinal": self.top_ordinal,
            "top_seq": self.top_seq,
        }

    @classmethod
    def saved(cls, members: int) -> dict[str, str]:
        waiting = {"open_time": "int64 open", "open_seq": "int64 open", "open_score": "float64 open", "open_limit": "int64 1"}
        return super().saved(members) | waiting | HeldPanes.saved | {"top_ordinal": "int64 tops", "top_seq": "int64 tops"}

    def _restore_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        self.open.restore(arrays["open_time"], arrays["open_seq"], arrays["open_score"], int(arrays["open_limit"][0]))
        self.panes.restore(arrays)
        self.top_ordinal, self.top_seq = arrays["top_ordinal"], arrays["top_seq"]

"""Rows by arrival, count windows. An ordinal is an arrival number."""

from __future__ import annotations

import numpy as np

from skyband.algorithms.contract import Answers, Plan
from skyband.changes import NO_EVENTS, Emitted
from skyband.kernels.tables import NOTHING, Windows
from skyband.lanes.base import Member, Place, Rows
from skyband.lanes.ranked import RankedLane
from skyband.rows import united
from skyband.schedule import all_count_windows, count_panes


class CountLane(RankedLane):
    """Hands rows on as soon as they complete a window of some query."""

    kind = "count"

    def __init__(self, place: Place, since: int) -> None:
        super().__init__(place, since)
        self.seen = since  # arrivals so far, those before `since` included
        self.open: list[np.ndarray] = []  # scores of the rows after the last window of any query

    def _plan(self) -> Plan:
        ks, sizes, slides = zip(*((min(m.query.k, m.size), m.size, m.slide) for m in self.members), strict=True)
        return Plan(ks, sizes, slides, whole=self.door.above is not None)

    def take(self, rows: Rows) -> tuple[Emitted, np.ndarray]:
        emitted, nulls = self._push(rows.scores(self.door))
        if self.door.where is not None or self.door.above is not None:  # rows outside are NaN there too
            nulls = int(np.count_nonzero(np.isnan(rows.values[self.door.score])))
        for member in self.members:
            member.count(len(rows.table), 0, nulls)
        return emitted, emitted.ordinal

    def _push(self, scores: np.ndarray) -> tuple[Emitted, int]:
        """Take the next rows' scores; the result rows of the windows they complete, and how many scores are NaN."""
        before, self.seen = self.seen, self.seen + len(scores)
        spans, report = [(m.size, m.slide) for m in self.members], [m.emission != NOTHING for m in self.members]
        windows = all_count_windows(spans, report, self.since, before, self.seen)
        reach = self._reach()
        asked = None if any(report) or not len(windows.end) else int(windows.end[0]) - before
        walk = self.live.walk(scores, min(max(reach - before, 0), len(scores)), asked)
        emitted = NO_EVENTS
        if len(windows.end):
            fed = before - sum(map(len, self.open))
            rows = np.concatenate([*self.open, scores]) if self.open else scores
            begin = min(self._next_first(member, before) for member in self.members)
            if begin - fed <= max(member.size for member in self.members):
                begin = fed  # a gap empties the structure, which only pays when it is long
            stop = int(windows.end[-1])
            only = self.members[0]
            ceilings = walk.ceilings._replace(ahead=walk.ceilings.ahead + before - begin)
            emitted = self._answer(
                begin, rows[begin - fed : stop - fed], ceilings, windows, lambda a, b: count_panes(only.size, only.slide, a, b)
            )
            self.open, scores_left = [], rows[stop - fed :]
        else:
            scores_left = scores
        if len(scores_left):
            self.open.append(scores_left.copy())
        self.live.extend(before, None, scores, walk.places, reach)
        return emitted, walk.unknown

    def delete(self, seq: np.ndarray) -> tuple[Emitted, np.ndarray]:
        seq = seq[seq >= self.since]
        waiting = sum(map(len, self.open))
        if waiting:
            rows, begin = np.concatenate(self.open), self.seen - waiting
            rows[seq[seq >= begin] - begin] = np.nan
            self.open = [rows]
        windows = self._last_windows(seq)
        results = self.structure.delete(seq, windows)
        if all(member.emission == NOTHING for member in self.members) or len(windows.query) == 0:
            return NO_EVENTS, NO_EVENTS.ordinal
        emitted = self._told([(windows, Answers(0, len(windows.query), results))], windows)
        return emitted, emitted.ordinal

    def _last_windows(self, seq: np.ndarray) -> Windows:
        """The window that ended last, of each query in whose answer one of the rows stands."""
        tops = self.structure.tops
        query = [q for q, count in enumerate(tops.count) if np.isin(tops.ordinal[q, :count], seq).any()]
        size, slide = (np.array([getattr(self.members[q], name) for q in query], np.int64) for name in ("size", "slide"))
        end = self.seen // slide * slide
        order = np.argsort(end, kind="stable")
        columns = (np.array(query, np.int64), end // slide, np.maximum(end - size, self.since), end, np.ones(len(query), bool))
        return Windows(*(column[order] for column in columns))

    def _next_first(self, member: Member, before: int) -> int:
        """First row of the earliest window a query had to answer after `before` arrivals: rows before it are left
        out. One that nobody hears of answers only its last window."""
        number = before // member.slide + 1
        if member.emission == NOTHING:
            number = max(number, self.seen // member.slide)
        return max(number * member.slide - member.size, self.since)

    def _reach(self) -> int:
        return min((self.seen // m.slide + 1) * m.slide - m.size for m in self.members)

    def seq_of(self, ordinal: np.ndarray) -> np.ndarray:
        return ordinal

    def needed(self, base: int = 0) -> np.ndarray:
        live, tops = self.live.seqs(base), self._in_tops()
        tops = tops[tops >= base]
        if len(tops) == 0:
            return live
        if len(live) and (live.take(live.searchsorted(tops), mode="clip") == tops).all():
            return live
        return united([live, np.unique(tops)])

    def oldest_needed(self) -> int:
        if self.structure.deletes:  # any row of the last window may be asked for by its key
            return min(max(self.seen // m.slide * m.slide - m.size, self.since) for m in self.members if m.active)
        oldest = self.live.oldest
        return int(self._in_tops().min(initial=self.seen if oldest is None else oldest))

    def _numbers(self) -> dict[str, int]:
        return {"seen": self.seen}

    def _arrays(self) -> dict[str, np.ndarray]:
        return {"open": np.concatenate([np.zeros(0), *self.open])}

    @classmethod
    def saved(cls, members: int) -> dict[str, str]:
        return {**super().saved(members), "open": "float64 open"}

    def _restore_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        self.open = [arrays["open"]] if len(arrays["open"]) else []

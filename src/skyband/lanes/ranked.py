"""Lanes over a structure of the ranked family: rows are handed to it in pieces, its answers become result rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from skyband.algorithms import build, load
from skyband.algorithms.choose import choose
from skyband.algorithms.contract import Answers, Plan, Ranked
from skyband.changes import NO_EVENTS, Emitted
from skyband.kernels.tables import ARRIVALS, CHANGES, NOTHING, Ceilings, Panes, Tops, Windows
from skyband.lanes.base import Door, Lane, Place
from skyband.live import LiveRows

_FEED = 1 << 16  # rows handed over at once, at least; a window's worth if that is more


class RankedLane(Lane):
    """One structure, one score, one order of rows."""

    def __init__(self, place: Place, since: int) -> None:
        super().__init__(place, since)
        assert place.door is not None
        self.door = place.door
        self.algorithm = place.algorithm  # a name of the registry, or "auto" until the first row
        self.deletions = place.timed and place.deletions  # where rows count, those without a score are known by their number
        self.structure: Ranked
        self.reported: Tops  # what each query's last result rows amount to
        self.live: LiveRows
        self.started = False

    @property
    def doors(self) -> list[Door]:
        return [self.door]

    def admits(self, place: Place) -> bool:
        """Not once rows have come; not where a structure serves one query."""
        alone = self.door.above is not None or (self.algorithm != "auto" and not load(self.algorithm).shares)
        return not self.started and not alone

    def join(self, *places: Place) -> None:
        self.members += [place.member for place in places]

    def start(self) -> None:
        """Fix the plan and build the structure: the first row is here."""
        if self.started:
            return
        plan = self._plan()
        if self.algorithm == "auto":
            self.algorithm = choose(plan, told=any(member.emission != NOTHING for member in self.members))
        self.structure = build(self.algorithm, plan)
        # empty as the answers are; a copy of them would take all the memory that is only set aside for a large k
        self.reported = Tops(*(np.zeros(array.shape, array.dtype) for array in self.structure.tops))
        k = None if self.structure.deletes else plan.largest_k
        self.live = LiveRows(k, by_arrival=self.kind == "count", unscored=self.deletions)
        self.started = True

    @abstractmethod
    def _plan(self) -> Plan:
        """What is asked of the structure."""

    def _answer(
        self, begin: int, scores: np.ndarray, ceilings: Ceilings, windows: Windows, panes_of: Callable[[int, int], Panes]
    ) -> Emitted:
        """Hand the rows from ordinal `begin` on, and the windows they complete, to the structure; collect the result
        rows."""
        if all(member.emission == NOTHING for member in self.members):
            for _ in self._answers(begin, scores, ceilings, windows, panes_of):
                pass
            return NO_EVENTS
        emission = np.array([member.emission for member in self.members], np.int64)
        changes = (emission == CHANGES) | (emission == ARRIVALS) if self.structure.tells_changes else None
        return self._told(self._answers(begin, scores, ceilings, windows, panes_of, changes), windows)

    def _told(self, answers: Iterable[tuple[Windows, Answers]], windows: Windows) -> Emitted:
        """The result rows of answers to `windows`."""
        from skyband.kernels.emission import count_events, emit

        emission = np.array([member.emission for member in self.members], np.int64)
        slide = np.array([member.slide for member in self.members], np.int64)
        parts: list[Emitted] = []
        for piece, (start, stop, results) in answers:
            value = piece.number * slide[piece.query]
            self._widen_reported()
            out = Emitted.room(count_events(piece.query, start, stop, results.size, emission, self.reported.count))
            written = emit(piece.query, value, start, stop, results, emission, self.reported, out)
            if written:
                parts.append(out.where(slice(0, written)))
        emitted = Emitted.join(parts)
        if (emission == ARRIVALS).any():
            emitted = self._first_arrivals(emitted, emission == ARRIVALS, windows)
        return emitted

    def _widen_reported(self) -> None:
        """Room for what was reported last where answers have no fixed length."""
        missing = self.structure.tops.score.shape[1] - self.reported.score.shape[1]
        if missing > 0:
            score, ordinal = (np.pad(column, ((0, 0), (0, missing))) for column in self.reported[:2])
            self.reported = Tops(score, ordinal, self.reported.count)

    def _answers(
        self,
        begin: int,
        scores: np.ndarray,
        ceilings: Ceilings,
        windows: Windows,
        panes_of: Callable[[int, int], Panes],
        changes: np.ndarray | None = None,
    ) -> Iterator[tuple[Windows, Answers]]:
        """The structure's answers, a window's worth of rows at a time: windows, and what it says to some of them."""
        first, at = begin, 0
        while at < len(windows.end):
            limit = begin + max(_FEED, int(windows.end[at] - windows.first[at]))
            upto = max(int(windows.end.searchsorted(limit, "right")), at + 1)
            stop = int(windows.end[upto - 1])
            piece = Windows(*[column[at:upto] for column in windows])
            panes = panes_of(begin, stop) if self.structure.wants_panes else None
            ahead = Ceilings(ceilings.ahead - (begin - first), ceilings.limit)
            for answers in self.structure.advance(begin, scores[begin - first : stop - first], piece, panes, ahead, changes):
                yield piece, answers
            begin, at = stop, upto

    def _first_arrivals(self, emitted: Emitted, once: np.ndarray, windows: Windows) -> Emitted:
        """Of the queries marked in `once`, leave only the first entry of each row, ever."""
        keep = np.ones(len(emitted.query), bool)
        for q in np.flatnonzero(once):
            member = self.members[q]
            places = np.flatnonzero(emitted.query == q)
            ordinals, first_places = np.unique(emitted.ordinal[places], return_index=True)
            keep[places] = False
            keep[places[first_places[~np.isin(ordinals, member.ranked)]]] = True
            ranked = np.union1d(member.ranked, ordinals)
            first = windows.first[windows.query == q]
            member.ranked = ranked[ranked >= first[-1]] if len(first) else ranked
        return emitted.where(keep)

    def _in_tops(self) -> np.ndarray:
        """Ordinals of the rows in some query's current top-k, in no order, a row perhaps several times. Read only."""
        _, ordinal, count = self.structure.tops
        if len(count) == 1:
            return ordinal[0, : count[0]]
        return np.concatenate([ordinal[q, :n] for q, n in enumerate(count)])

    @abstractmethod
    def seq_of(self, ordinal: np.ndarray) -> np.ndarray:
        """The arrival numbers of rows in a current top-k."""

    @abstractmethod
    def _reach(self) -> int:
        """No coming window holds rows before this ordinal."""

    def shrink(self) -> None:
        self.live.thin(self._reach())

    def top(self, at: int) -> tuple[np.ndarray, np.ndarray]:
        tops = self.structure.tops
        count = int(tops.count[at])
        return tops.score[at, :count].copy(), self.seq_of(tops.ordinal[at, :count]).copy()

    def figures(self, at: int) -> dict[str, Any]:
        structure = self.structure
        found = {"algorithm": self.algorithm, "candidates": structure.candidates, "bytes": self.nbytes}
        return found | {"search": "scan"} | structure.figures()

    @property
    def candidates(self) -> int:
        return self.structure.candidates

    def missed_at_most(self, at: int) -> float:
        return self.structure.missed_at_most

    @property
    def nbytes(self) -> int:
        return self.structure.nbytes + self.live.nbytes + sum(array.nbytes for array in self._arrays().values())

    # What a lane remembers besides structure and live rows: arrays and whole numbers, by attribute name.

    @abstractmethod
    def _arrays(self) -> dict[str, np.ndarray]: ...

    @abstractmethod
    def _numbers(self) -> dict[str, int]: ...

    def save(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header = {**self.header(), "algorithm": self.algorithm, "numbers": self._numbers()}
        live, structure = self.live.save(), np.frombuffer(self.structure.snapshot(), np.uint8)
        arrays = {"live.score": live["live.score"], "structure": structure}  # near each other: both hold the same scores
        arrays |= live | self._arrays() | {f"ranked.{q}": member.ranked for q, member in enumerate(self.members)}
        return header, arrays | {f"reported.{name}": array for name, array in self.reported._asdict().items()}

    @classmethod
    def saved(cls, members: int) -> dict[str, str]:
        reported = {"reported.score": "float64 members ranks", "reported.ordinal": "int64 members ranks"}
        ranked = {f"ranked.{q}": f"int64 ranked-{q}" for q in range(members)}
        return {"structure": "uint8 structure", **ranked, **reported, "reported.count": "int64 members", **LiveRows.saved}

    @classmethod
    def restored(cls, places: list[Place], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> RankedLane:
        lane = cls(places[0], header["since"])
        lane.algorithm = header["algorithm"]
        for place in places:
            lane.join(place)
        lane.read_counters(header)
        for q, member in enumerate(lane.members):
            member.ranked = arrays[f"ranked.{q}"]
        lane.start()
        lane.structure.restore(arrays["structure"].tobytes())
        lane.reported = Tops(**{name: arrays[f"reported.{name}"] for name in Tops._fields})
        lane.live.restore(arrays)
        for name, value in header["numbers"].items():
            setattr(lane, name, value)
        lane._restore_arrays(arrays)
        return lane

    @abstractmethod
    def _restore_arrays(self, arrays: dict[str, np.ndarray]) -> None: ...

"""Pairs of rows: one structure for all queries on a pair score. Queries come and go while rows do.

A row that may be the older or the newer one of a pair is handed on at once (count windows) or when its slide closes (time
windows), with the columns each side needs. Any row of the window may be in a coming pair, so that all are kept.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from skyband.algorithms import build_pairs
from skyband.algorithms.choose import choose_pairs
from skyband.changes import Emitted
from skyband.kernels.tables import ARRIVALS, NOTHING, SAME, SNAPSHOTS, Windows
from skyband.lanes.base import Lane, Member, Names, Place
from skyband.lanes.texts import LiveTexts
from skyband.live import LiveRows
from skyband.pairs_query import TopKPairs
from skyband.scores.binding import compared, is_text, numbers
from skyband.scores.evaluation import compute
from skyband.scores.expression import comparison
from skyband.scores.pair_score import PairDoor
from skyband.scores.pair_search import NEWER, OLDER
from skyband.window import pairs_among

if TYPE_CHECKING:
    from skyband.algorithms.pairs.contract import Answered, PairStructure, Scoring
    from skyband.kernels.pairs.emission import PairEvents, Reported
    from skyband.kernels.pairs.state import Answers

_SIDES = ((OLDER, 1), (NEWER, 2))  # what a row may be in a pair, as bits
_FEW_ROWS = 64  # their pairs are room enough for most answers
_SPARE = 8  # the share of rows by which more are expected than have come, so that room seldom grows
_SHIFT = 31  # bits of a difference between ordinals in one window
NO_NAMES = np.zeros((2, 0), np.int64)


class PairLane(Lane):
    """What both kinds of windows have in common. `sinces`: the first ordinal each member sees."""

    def __init__(self, place: Place, since: int) -> None:
        super().__init__(place, since)
        assert isinstance(place.query, TopKPairs)
        self.pair_door: PairDoor = place.query.door
        scoring, self.older, self.newer = self.pair_door.scoring()
        self.algorithm = place.algorithm
        if self.algorithm == "auto":
            self.algorithm = _chosen(scoring, None if place.timed else place.size)
        self.structure: PairStructure = build_pairs(self.algorithm, scoring)
        self.structure.begin_at(self._first_ordinal())
        self.conditions = [(self.pair_door.side_condition(side), bit) for side, bit in _SIDES]
        self.texts = LiveTexts()
        self.expected = _FEW_ROWS  # rows up to whose pairs there is room for answers
        self.sinces: list[int] = []
        self.live = LiveRows(None, by_arrival=not place.timed)
        self.reported: Reported = _nothing_reported()
        self.reach = self._first_ordinal()  # no coming window holds rows before this ordinal
        self.floor = self.reach  # nor did an answer, when the last rows had come

    # -- queries -------------------------------------------------------------------------------------------------

    @abstractmethod
    def _first_ordinal(self) -> int:
        """The ordinal of the first row to come."""

    @abstractmethod
    def _waits(self) -> bool:
        """Are rows held back that a query that joins now must not see?"""

    def admits(self, place: Place) -> bool:
        return (self.structure.shares or not self.members) and not self._waits()

    def join(self, *places: Place) -> None:
        for place in places:
            self._join(place.member)

    def _join(self, member: Member) -> None:
        since = self._first_ordinal()
        self.structure.add(pairs_among(self.expected, self._asked(member)), watched=member.query.emit != "none", first=since)
        self.reported = _with_room(self.reported, 1, self.structure.answers)
        member.ranked = NO_NAMES
        self.members.append(member)
        self.sinces.append(since)

    def _asked(self, member: Member) -> int:
        """The pairs a query may have at most, whatever comes."""
        return member.query.k if self.timed else pairs_among(member.size, member.query.k)

    def _expect(self, rows: int) -> None:
        """Up to so many rows will be held at once: queries that ask for more pairs than there were get room for theirs."""
        if rows > self.expected:
            self.expected = rows + rows // _SPARE
            self.structure.expect([self._asked(member) for member in self.members], self.expected)
            self.reported = _with_room(self.reported, 0, self.structure.answers)

    def cancel(self, at: int) -> None:
        """Stop answering a query and forget what only it held."""
        self.structure.remove(at)
        self.reported = type(self.reported)(*(np.delete(column, at, axis=0) for column in self.reported))
        del self.members[at], self.sinces[at]

    # -- rows ----------------------------------------------------------------------------------------------------

    def _columns(self, table: pa.Table, moments: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What rows bring as older and as newer ones, which of the two they may be, and which lack a column of the score.
        `moments`: what they will leave by, an ordinal or a time."""
        known = {name: self._values(name, table, moments) for name in self.pair_door.reads}
        rows = table.num_rows
        sides = np.zeros(rows, np.uint8)
        for condition, bit in self.conditions:
            passes = np.ones(rows, bool)
            if condition is not None:
                value = compute(condition, known, rows)
                passes = (value != 0.0) & ~np.isnan(value)
            sides[passes] |= bit
        missing = np.zeros(rows, bool)
        for name in self.pair_door.scored:
            missing |= np.isnan(known[name])
        if self.structure.scoring.search is not None:
            sides[missing] = 0  # no pair of theirs has a score
        older, newer = (_stacked([known[name] for name in names], rows) for names in (self.older, self.newer))
        return older, newer, sides, missing

    def _values(self, name: str, table: pa.Table, moments: np.ndarray) -> np.ndarray:
        """What a column counts as: its numbers, or those of its texts."""
        if comparison(name) is not None:
            return compared(name, table)
        column = table.column(name)
        return self.texts.numbers(column, moments) if is_text(column.type) else numbers(column)

    def _answer(
        self, older: np.ndarray, newer: np.ndarray, sides: np.ndarray, seq: np.ndarray | None, windows: Windows, reach: int
    ) -> tuple[Emitted, Names]:
        """Hand rows to the structure, answer the windows they complete, collect result rows. `seq`: their arrival numbers,
        where these are not the ordinals. `reach`: no window after these holds rows before it."""
        begin = self.structure.next
        reaches = np.minimum.accumulate(np.append(windows.first, reach)[::-1])[::-1].copy()
        emission = np.array([member.emission for member in self.members], np.int64)
        slide = np.array([member.slide for member in self.members], np.int64)
        value = windows.number * slide[windows.query]
        parts: list[PairEvents] = []
        held = np.append(windows.end, begin + len(sides)) - reaches
        self._expect(int(held.max()))
        for answered in self.structure.advance(older, newer, sides, windows, reaches):
            if (emission != NOTHING).any():
                parts += self._events(windows, value, emission, answered)
        # rows that leave now are still looked up
        self.live.extend(begin, seq, np.zeros(len(sides)), np.flatnonzero(sides), self.floor)
        self.reach, self.floor = reach, self._oldest(reach)
        events = _joined(parts)
        if events is None:
            return Emitted.room(0), NO_NAMES
        keep = self._first_arrivals(events, emission, windows)
        emitted = Emitted(*events[:5], events.a).where(keep)
        return emitted, np.stack([self._seq_of(events.a[keep]), self._seq_of(events.b[keep])])

    def _events(self, windows: Windows, value: np.ndarray, emission: np.ndarray, answered: Answered) -> list[PairEvents]:
        """The result rows of a round of answers."""
        from skyband.kernels.pairs.emission import PairEvents, emit

        start, stop, results = answered
        query, size = windows.query[start:stop], results.size[start:stop]
        largest = self.reported.count.copy()  # answers of each query, the one before these windows among them
        np.maximum.at(largest, query, size)
        told = np.where((size != SAME) | (emission[query] == SNAPSHOTS), 2 * largest[query], 0)
        room = int(told[emission[query] != NOTHING].sum())
        if room == 0:
            return []
        whole = [np.empty(room, np.int64) for _ in range(5)]
        out = PairEvents(whole[0], whole[1], np.empty(room, np.int8), whole[2], np.empty(room), whole[3], whole[4])
        count = emit(windows.query, value, start, stop, results, emission, self.reported, out)
        return [PairEvents(*(column[:count] for column in out))] if count else []

    def _first_arrivals(self, events: PairEvents, emission: np.ndarray, windows: Windows) -> np.ndarray:
        """Which result rows stay: of queries that report arrivals, only the first entry of each pair, ever."""
        keep = np.ones(len(events.query), bool)
        for q in np.flatnonzero(emission == ARRIVALS):
            member, places = self.members[q], np.flatnonzero(events.query == q)
            known = member.ranked.shape[1]
            pairs = np.hstack([member.ranked, np.stack([events.a[places], events.b[places]])])
            _, first_places = np.unique(_keys(pairs), return_index=True)
            keep[places] = False
            keep[places[first_places[first_places >= known] - known]] = True
            first = windows.first[windows.query == q]
            pairs = pairs[:, np.sort(first_places)]
            member.ranked = pairs[:, pairs[0] >= first[-1]] if len(first) else pairs
        return keep

    # -- what is held --------------------------------------------------------------------------------------------

    def _oldest(self, reach: int) -> int:
        """No row before this ordinal is in a coming window, which begin at `reach`, or in an answer."""
        for held in (self.structure.answers, self.reported):
            for q, count in enumerate(held.count.tolist()):
                reach = int(held.a[q, :count].min(initial=reach))
        return reach

    def _seq_of(self, ordinal: np.ndarray) -> np.ndarray:
        if not self.timed:
            return ordinal
        seq, found = self.live.find(ordinal)
        assert found.all(), "an answer names a row that was not kept"
        return seq

    def top(self, at: int) -> tuple[np.ndarray, Names]:
        # an answer that is kept up may be ahead of the last window
        kept = self.structure.answers if self.members[at].emission == NOTHING else self.reported
        held = slice(0, int(kept.count[at]))
        return kept.score[at, held].copy(), np.array([self._seq_of(kept.a[at, held]), self._seq_of(kept.b[at, held])])

    def needed(self, base: int = 0) -> np.ndarray:
        seqs = self.live.seqs(base)
        return np.unique(seqs) if self.timed else seqs

    def shrink(self) -> None:
        self.live.thin(self.floor)

    def figures(self, at: int) -> dict[str, Any]:
        found = {"algorithm": self.algorithm, "candidates": self.candidates, "bytes": self.nbytes}
        return found | self.structure.figures()

    @property
    def candidates(self) -> int:
        return self.structure.candidates

    @property
    def nbytes(self) -> int:
        return self.structure.nbytes + self.live.nbytes + self.texts.nbytes

    # -- state ---------------------------------------------------------------------------------------------------

    def save(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        texts, of_texts = self.texts.save()
        header = (
            self.header()
            | {"algorithm": self.algorithm, "sinces": self.sinces, "reach": self.reach, "floor": self.floor, "texts": texts}
            | self._numbers()
        )
        arrays = {
            "structure": np.frombuffer(self.structure.snapshot(), np.uint8),
            **self.live.save(),
            **self._arrays(),
            **of_texts,
        }
        arrays |= {f"ranked.{at}": member.ranked for at, member in enumerate(self.members)}
        return header, arrays | {f"reported.{name}": column for name, column in self.reported._asdict().items()}

    @classmethod
    def saved(cls, members: int) -> dict[str, str]:
        texts = {"texts": "uint8 texts", "texts.free": "int64 free", "texts.last": "int64 numbers"}
        reported = dict.fromkeys(("reported.a", "reported.b"), "int64 members ranks")
        reported |= {"reported.score": "float64 members ranks", "reported.count": "int64 members"}
        ranked = {f"ranked.{at}": f"int64 2 ranked-{at}" for at in range(members)}
        return {"structure": "uint8 structure", **LiveRows.saved, **texts, **ranked, **reported}

    @classmethod
    def restored(cls, places: list[Place], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Lane:
        lane = cls(places[0], header["since"])
        if lane.algorithm != header["algorithm"]:  # what "auto" means may have changed since
            lane.algorithm = header["algorithm"]
            lane.structure = build_pairs(lane.algorithm, lane.structure.scoring)
        for at, place in enumerate(places):
            lane.members.append(place.member)
            lane.members[at].ranked = arrays[f"ranked.{at}"]
        lane.read_counters(header)
        lane.sinces, lane.reach, lane.floor = list(header["sinces"]), header["reach"], header["floor"]
        lane.structure.restore(arrays["structure"].tobytes())
        lane.live.restore(arrays)
        lane.texts.restore(header["texts"], arrays)
        reported = type(lane.reported)
        lane.reported = reported(*(arrays[f"reported.{name}"] for name in reported._fields))
        lane._restore(header, arrays)
        return lane

    def _numbers(self) -> dict[str, int]:
        return {}

    def _arrays(self) -> dict[str, np.ndarray]:
        return {}

    @abstractmethod
    def _restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Take up what `_numbers` and `_arrays` gave."""


def _chosen(scoring: Scoring, rows: int | None) -> str:
    search = scoring.search
    if search is None:
        return "scase"
    return choose_pairs(search.kind, nearest=scoring.nearest, columns=len(search.weights), rows=rows)


def _stacked(columns: list[np.ndarray], rows: int) -> np.ndarray:
    return np.stack(columns) if columns else np.zeros((0, rows))


def _keys(pairs: np.ndarray) -> np.ndarray:
    """A number for each pair, equal only for equal pairs: the rows of a window are few enough to count both in one."""
    if pairs.shape[1] == 0:
        return np.zeros(0, np.int64)
    keys: np.ndarray = ((pairs[0] - pairs[0].min()) << _SHIFT) + (pairs[1] - pairs[0])
    return keys


def _joined(parts: list[PairEvents]) -> PairEvents | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else type(parts[0])(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _nothing_reported() -> Reported:
    from skyband.kernels.pairs.emission import Reported

    return Reported(np.zeros((0, 1)), np.zeros((0, 1), np.int64), np.zeros((0, 1), np.int64), np.zeros(0, np.int64))


def _with_room(reported: Reported, more: int, answers: Answers) -> Reported:
    """Room for the largest of the answers, and for `more` queries to which nothing was reported."""
    missing = max(int(answers.k.max(initial=1)) - reported.score.shape[1], 0)
    score, a, b = (np.pad(column, ((0, more), (0, missing))) for column in reported[:3])
    return type(reported)(score, a, b, np.pad(reported.count, (0, more)))

"""What the monitor asks of any lane: take rows, answer the windows they close, say what is held, be written down."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from skyband.changes import NO_EVENTS, Emitted
from skyband.kernels.tables import ARRIVALS, CHANGES, NOTHING, SNAPSHOTS
from skyband.query import Query

NEVER = int(np.iinfo(np.int64).min)
"""A time before all others."""

NO_ROW = int(np.iinfo(np.int64).max)
"""An arrival number after all others."""

_EMISSIONS = {"none": NOTHING, "changes": CHANGES, "snapshots": SNAPSHOTS, "arrivals": ARRIVALS}

Names = Any
"""Who result rows are about: arrival numbers; for pairs two rows of them, the older rows' and the newer rows'; for objects
an Arrow array of keys."""


@dataclass(frozen=True)
class Door:
    """How a row's columns become the score a lane sees: what is ranked, which way, which rows."""

    score: Hashable
    order: str
    where: Hashable
    above: float | None = None  # a threshold query's bound

    def turn(self, values: dict[Hashable, np.ndarray]) -> np.ndarray:
        """A score array as lanes see it: larger is better, NaN where a row cannot rank."""
        scores = values[self.score]
        if self.above is not None:
            beyond = scores > self.above if self.order == "desc" else scores < self.above
            scores = np.where(beyond, scores, np.nan)
        if self.order == "asc":
            scores = -scores
        if self.where is not None:
            chosen = values[self.where]
            scores = np.where((chosen != 0) & ~np.isnan(chosen), scores, np.nan)
        return scores


@dataclass
class Rows:
    """The rows of one push."""

    table: pa.Table
    base: int  # arrival number of the first
    times: np.ndarray | None
    before: np.ndarray | None  # the watermark before each row, where some row may be late
    watermark: int  # after all of them
    values: dict[Hashable, np.ndarray]  # what each distinct score and condition makes of them
    _turned: dict[Door, np.ndarray] = field(default_factory=dict)

    def scores(self, door: Door) -> np.ndarray:
        """The rows' scores behind a door."""
        if door not in self._turned:
            self._turned[door] = door.turn(self.values)
        return self._turned[door]

    def late(self, slide: int) -> np.ndarray | None:
        """Which rows fall into a slide that has closed; None when none can."""
        if self.before is None:
            return None
        assert self.times is not None
        return late_in(self.times, self.before, slide)


def late_in(times: np.ndarray, before: np.ndarray, slide: int) -> np.ndarray:
    """Which rows fall into a slide that has closed; `before`: the watermark before each."""
    late: np.ndarray = (times // slide + 1) * slide <= before
    return late


def late_for_all(lanes: list[Lane], times: np.ndarray | None, before: np.ndarray | None) -> np.ndarray | None:
    """Which rows every lane will find too late; None when none can be."""
    if times is None or before is None or not lanes or not all(lane.timed for lane in lanes):
        return None
    slides = {member.slide for lane in lanes for member in lane.members}
    return np.logical_and.reduce([late_in(times, before, slide) for slide in slides])


@dataclass(frozen=True)
class Gathers:
    """What queries of a crowd have in common: they read no other columns, have this window, and are of one kind."""

    columns: frozenset[str]
    window: tuple[bool, int, int]  # is it one of time, its size and slide
    bounded: bool = False  # all are Threshold queries, or none

    @property
    def alike(self) -> Hashable:
        """What must be the same."""
        return self.window, self.bounded

    def within(self, crowd: Gathers) -> bool:
        """May such a query be in the crowd?"""
        return self.alike == crowd.alike and self.columns <= crowd.columns


class Member:
    """One query in a lane: its window in rows or in the time column's unit, and its counters."""

    def __init__(self, query: Query, size: int, slide: int) -> None:
        self.query, self.size, self.slide = query, size, slide
        self.active = True  # a cancelled query may stay in its structure's plan, unheard
        self.algorithm = query.algorithm  # what answers it, where that differs from member to member
        self.gathers: Gathers | None = None  # what it could share a crowd by, had others been there when it came
        self.rows = self.late = self.nulls = 0
        self.ranked: np.ndarray = np.zeros(0, np.int64)  # emit="arrivals": rows that ranked before and are still in the window

    @property
    def emission(self) -> int:
        """What its windows give, as a code of kernels.tables."""
        return _EMISSIONS[self.query.emit] if self.active else NOTHING

    def count(self, rows: int, late: int, nulls: int) -> None:
        """Add to what `stats` says of rows."""
        self.rows, self.late, self.nulls = self.rows + rows, self.late + late, self.nulls + nulls


@dataclass
class Place:
    """A query that has been checked against the columns and found its key: queries of one key may share a lane."""

    query: Query
    lane: type[Lane]
    key: Hashable
    size: int
    slide: int
    algorithm: str
    door: Door | None = None  # how its score comes about, unless the lane reads the columns itself
    timed: bool = False  # the window is one of time
    gathers: Gathers | None = None  # what crowds it may be in, if the algorithm is left to us
    crowd: Gathers | None = None  # the one it was put into
    deletions: bool = False  # rows may be deleted: all of the window are remembered

    @property
    def member(self) -> Member:
        """The query as a lane holds it."""
        member = Member(self.query, self.size, self.slide)
        member.gathers = self.gathers
        return member


class Lane(ABC):
    """Queries answered together. It sees only rows that arrive after `since` others."""

    kind: ClassVar[str]  # its name in saved state

    def __init__(self, place: Place, since: int) -> None:
        self.key, self.timed = place.key, place.timed
        self.since = since
        self.members: list[Member] = []

    # -- queries -------------------------------------------------------------------------------------------------

    @abstractmethod
    def admits(self, place: Place) -> bool:
        """Can this query, which has the lane's key, join now and see the rows from here on?"""

    @abstractmethod
    def join(self, *places: Place) -> None:
        """Take up queries."""

    def start(self) -> None:
        """All queries that begin with the lane have joined: the first row is here. May fail for want of memory."""
        return

    def cancel(self, at: int) -> None:
        """Stop answering a query: it stays among the members, unheard."""
        self.members[at].active = False

    @property
    def identity(self) -> Hashable:
        """Who its result rows are about: "row", "pair", or ("object", the key column)."""
        return self.members[0].query.identity

    @property
    def doors(self) -> list[Door]:
        """What it reads of `Rows.scores`."""
        return []

    # -- rows ----------------------------------------------------------------------------------------------------

    def check(self, table: pa.Table) -> None:
        """SchemaError when the rows of the coming `take` cannot be taken. Nothing has changed yet, and nothing may."""
        return

    @abstractmethod
    def take(self, rows: Rows) -> tuple[Emitted, Names]:
        """Take the next rows and count them; the result rows of the windows they close, and who these are about."""

    def close(self, watermark: int) -> tuple[Emitted, Names]:
        """Answer every window whose end the watermark has reached."""
        return NO_EVENTS, np.zeros(0, np.int64)

    def delete(self, seq: np.ndarray) -> tuple[Emitted, Names]:
        """Rows are in no window any more; the windows that ended last and held one are answered again."""
        raise AssertionError(f"a lane of kind {self.kind!r} cannot delete rows")

    def first_live(self) -> int:
        """Rows that arrived earlier are neither in the window that ended last nor in one to come."""
        return self.oldest_needed()

    def live_rows(self, base: int, seen: int) -> np.ndarray:
        """Arrival numbers from `base` on, of `seen` rows so far, increasing, of those that are: which may be deleted."""
        return np.arange(max(base, self.first_live()), seen)

    def holds(self, seq: np.ndarray) -> np.ndarray:
        """Which of these rows are."""
        held: np.ndarray = seq >= self.first_live()
        return held

    def settle(self) -> None:
        """Bring the members' counters up to date: a lane may count rows for all of them at once."""
        return

    def last_end(self) -> int:
        """End of the first window that holds none of the rows taken so far, over the queries still asked."""
        return NEVER

    # -- what is held --------------------------------------------------------------------------------------------

    def arrived(self, at: int) -> np.ndarray:
        """Arrival numbers of rows that a query was told of with `emit="arrivals"` and that may come into its answer again."""
        raise AssertionError(f"queries of a lane of kind {self.kind!r} are not taken over")

    @abstractmethod
    def top(self, at: int) -> tuple[np.ndarray, Names]:
        """Turned scores of a query's last answer, and who they are of."""

    @abstractmethod
    def needed(self, base: int = 0) -> np.ndarray:
        """Arrival numbers, from `base` on, of every row whose payload must be kept, increasing."""

    @abstractmethod
    def oldest_needed(self) -> int:
        """No row that arrived earlier is needed. Cheap, perhaps too small."""

    def shrink(self) -> None:
        """Hold no row that cannot win any more; between calls of this some may be held."""
        return

    @abstractmethod
    def figures(self, at: int) -> dict[str, Any]:
        """What `stats` says of the structure that answers a query: algorithm, candidates, bytes, and more of its own."""

    @property
    @abstractmethod
    def candidates(self) -> int:
        """Rows held because they may still rank, for all queries together."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of all that is held for its queries, rows' own columns apart."""

    def held(self) -> list[tuple[str, int, int]]:
        """The name of every query with the rows and bytes that the structure which answers it holds; cheaper than
        `figures`."""
        together, size = self.candidates, self.nbytes
        return [(member.query.name, together, size) for member in self.members if member.active]

    def missed_at_most(self, at: int) -> float:
        """How many rows that ranked a query may have missed; 0: none, it is exact."""
        return 0.0

    @property
    def is_exact(self) -> bool:
        """Can no query have missed a row?"""
        return all(self.missed_at_most(at) == 0 for at in range(len(self.members)))

    @property
    def precision(self) -> float | None:
        """The share of the answers of its only query that are right, as far as can be told; None: all, or it cannot."""
        return None

    # -- state ---------------------------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def saved(cls, members: int) -> dict[str, str]:
        """The arrays that `save` gives of so many members, as `layout.fields` takes them."""

    @abstractmethod
    def save(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """A JSON-able header, beginning with `header()`, and arrays."""

    @classmethod
    @abstractmethod
    def restored(cls, places: list[Place], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Lane:
        """The lane that `save` wrote down; `places` are its members'."""

    def header(self) -> dict[str, Any]:
        """What every lane writes down of itself."""
        self.settle()
        members = [
            {"active": m.active, "algorithm": m.algorithm, "rows": m.rows, "late": m.late, "nulls": m.nulls}
            for m in self.members
        ]
        return {"kind": self.kind, "since": self.since, "members": members}

    def read_counters(self, header: dict[str, Any]) -> None:
        """Take up the members' counters."""
        for member, saved in zip(self.members, header["members"], strict=True):
            member.active, member.algorithm = saved["active"], saved["algorithm"]
            member.rows, member.late, member.nulls = saved["rows"], saved["late"], saved["nulls"]

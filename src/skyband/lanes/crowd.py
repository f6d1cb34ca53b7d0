"""Many queries with scores of their own over the same attributes: rows by arrival, one structure for all."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, cast

import numpy as np

from skyband.algorithms import load, settled
from skyband.binding import numbers
from skyband.changes import NO_EVENTS, Emitted
from skyband.formulas import Distance, Linear
from skyband.kernels.tables import Results
from skyband.lanes.base import Lane, Place, Rows
from skyband.query import Query
from skyband.window import CountWindow

_MODERATE = 1e100  # far from overflow, also squared and added up
_UID_SHIFT = 44  # bits of an arrival number


def crowd_key(query: Query, algorithm: str) -> Hashable | None:
    """Queries of one key share a lane; None for one that needs a lane of its own.

    A crowd takes cores and filters over count windows whose score is `linear` or `distance`. With a grid, they must
    agree in all that the walk through it relies on.
    """
    score = query.score
    if algorithm == "auto" or not isinstance(query.window, CountWindow) or not isinstance(score, Linear | Distance):
        return None
    named, options = settled(algorithm)
    if "core" not in named.options or query.where is not None or query.emit == "snapshots":
        return None
    attributes = frozenset(name for name, _ in _pairs(query))
    if "grid" not in options and named.family != "spatial":
        return ("crowd", attributes)
    return ("crowd", attributes, algorithm, query.window.size, query.window.slide)


class CrowdLane(Lane):
    """Queries come and go while rows do. Answers name rows by arrival number."""

    kind = "crowd"

    def __init__(self, place: Place, since: int) -> None:
        from skyband.algorithms.crowd import Crowd, resolution

        super().__init__(place, since)
        pairs = _pairs(place.query)
        named, options = settled(place.algorithm)
        usual = resolution(place.size, len(pairs)) if named.family == "spatial" else 0
        kind = cast(type[Crowd], load(named.name)) if named.family == "spatial" else Crowd
        self.structure = kind(tuple(sorted(name for name, _ in pairs)), options.get("grid", usual))
        self.structure.seen = since
        self.uids: list[int] = []  # a number for each member that no other gets
        self.next_uid = 0
        self.ranked = np.zeros(0, np.int64)  # emit="arrivals": uid and row of those reported, increasing
        self.ranked_limit = 1 << 12  # how many there may be until expired ones are forgotten

    def admits(self, place: Place) -> bool:
        return True

    def join(self, place: Place) -> None:
        from skyband.algorithms.crowd import Asked

        query, (named, options) = place.query, settled(place.algorithm)
        assert isinstance(query.score, Linear | Distance)
        given = {name: value for name, value in options.items() if name != "grid"}
        core, sieve = named.options["core"], named.options.get("filter")
        k = min(query.k, place.size)
        heard = query.emit != "none"
        self.structure.add(Asked(query.score, query.order, k, place.size, place.slide, core, sieve, heard, given))
        self.members.append(place.member)
        self.members[-1].algorithm = place.algorithm
        self.uids.append(self.next_uid)
        self.next_uid += 1

    def cancel(self, at: int) -> None:
        """Stop answering a query and forget what only it held."""
        self.structure.remove(at)
        del self.members[at], self.uids[at]

    # -- rows ----------------------------------------------------------------------------------------------------

    def take(self, rows: Rows) -> tuple[Emitted, np.ndarray]:
        points = np.stack([numbers(rows.table.column(name)) for name in self.structure.attributes])
        emission = np.array([member.emission for member in self.members], np.int64)
        parts = [self._emit(query, ends, results, emission) for query, ends, results in self.structure.push(points)]
        for member, nulls in zip(self.members, self._nulls(points).tolist(), strict=True):
            member.count(len(rows.table), 0, nulls)
        emitted = self._first_arrivals_of(Emitted.join(parts), emission)
        return emitted, emitted.ordinal

    def _emit(self, query: np.ndarray, ends: np.ndarray, results: Results, emission: np.ndarray) -> Emitted:
        from skyband.kernels.emission import count_events, emit

        tops, stop = self.structure.tops, len(query)
        out = Emitted.room(count_events(query, 0, stop, results.size, emission, tops.count))
        written = emit(query, ends, 0, stop, results, emission, tops, out)
        return out.where(slice(0, written)) if written else NO_EVENTS

    def _first_arrivals_of(self, emitted: Emitted, emission: np.ndarray) -> Emitted:
        """Of queries that report arrivals, leave only the first entry of each row, ever."""
        from skyband.kernels.emission import ARRIVALS

        places = np.flatnonzero(emission[emitted.query] == ARRIVALS)
        if len(places) == 0:
            return emitted
        keys = (np.array(self.uids, np.int64)[emitted.query[places]] << _UID_SHIFT) + emitted.ordinal[places]
        order = np.lexsort((places, emitted.window_end[places]))  # the first in time, wherever it stands
        keys, first_places = np.unique(keys[order], return_index=True)
        at = self.ranked.searchsorted(keys)
        fresh = np.append(self.ranked, -1)[at] != keys
        keep = np.ones(len(emitted.query), bool)
        keep[places] = False
        keep[places[order[first_places[fresh]]]] = True
        self.ranked = np.insert(self.ranked, at[fresh], keys[fresh])
        if len(self.ranked) > self.ranked_limit:
            oldest = self.structure.seen - max(member.size for member in self.members)
            rows, uids = self.ranked & ((1 << _UID_SHIFT) - 1), self.ranked >> _UID_SHIFT
            self.ranked = self.ranked[(rows >= oldest) & np.isin(uids, self.uids)]
            self.ranked_limit = 2 * len(self.ranked) + (1 << 12)
        return emitted.where(keep)

    def _nulls(self, rows: np.ndarray) -> np.ndarray:
        """How many rows have no score, for each query: only rows with an attribute that is not finite, or that arithmetic
        may take beyond that, can lack one."""
        counts = np.zeros(len(self.members), np.int64)
        largest = max(self.structure.largest_number, 1.0)
        odd = np.flatnonzero(~(np.abs(rows) < _MODERATE / largest).all(axis=0))
        if len(odd):
            counts += self.structure.unscored(np.ascontiguousarray(rows[:, odd]))
        return counts

    # -- what is held --------------------------------------------------------------------------------------------

    def top(self, at: int) -> tuple[np.ndarray, np.ndarray]:
        tops = self.structure.tops
        count = int(tops.count[at])
        return tops.score[at, :count].copy(), tops.ordinal[at, :count].copy()

    def needed(self, base: int = 0) -> np.ndarray:
        return self.structure.needed(base)

    def oldest_needed(self) -> int:
        seen = self.structure.seen  # a query's answer is that of its last window, which may have ended before
        return max(min((seen // member.slide * member.slide - member.size for member in self.members), default=seen), 0)

    def figures(self, at: int) -> dict[str, Any]:
        member, crowd = self.members[at], self.structure
        found: dict[str, Any] = {"algorithm": member.algorithm, "candidates": crowd.candidates(at), "bytes": crowd.nbytes}
        if crowd.asked[at].core == "probabilistic":
            found["missed_at_most"] = self.missed_at_most(at)
        if crowd.refills:
            found["searches"] = crowd.searches
        return found

    @property
    def candidates(self) -> int:
        return sum(self.structure.candidates(at) for at in range(len(self.members)))

    def missed_at_most(self, at: int) -> float:
        return self.structure.missed_at_most(at, self.members[at].rows)

    # -- state ---------------------------------------------------------------------------------------------------

    def save(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header = {**self.header(), "uids": self.uids, "next_uid": self.next_uid, "ranked_limit": self.ranked_limit}
        return header, {"structure": np.frombuffer(self.structure.snapshot(), np.uint8), "ranked": self.ranked}

    @classmethod
    def restored(cls, places: list[Place], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> CrowdLane:
        lane = cls(places[0], header["since"])
        for place in places:
            lane.join(place)
        lane.read_counters(header)
        lane.uids, lane.next_uid = header["uids"], header["next_uid"]
        lane.ranked, lane.ranked_limit = arrays["ranked"], header["ranked_limit"]
        lane.structure.restore(arrays["structure"].tobytes())
        return lane


def _pairs(query: Query) -> tuple[tuple[str, float], ...]:
    """The attributes a score reads, with a number for each."""
    assert isinstance(query.score, Linear | Distance)
    return query.score.weights if isinstance(query.score, Linear) else query.score.point

"""Many queries with scores of their own over the same attributes: rows by arrival, one structure for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from skyband.algorithms import load, settled
from skyband.changes import NO_EVENTS, Emitted
from skyband.errors import StateError
from skyband.kernels.tables import ARRIVALS, SNAPSHOTS, Results
from skyband.lanes.base import Gathers, Lane, Member, Place, Rows
from skyband.lanes.crowd_queries import attributes_of, condition_of, ranking_of, region_of
from skyband.lanes.snapshots import Unchanged
from skyband.layout import OTHER_VERSION
from skyband.query import Query, RankedQuery, Threshold, TopK
from skyband.scores.binding import column_values
from skyband.scores.expression import Call
from skyband.scores.formulas import Distance, Linear

if TYPE_CHECKING:
    from skyband.algorithms.spatial.crowd import Asked, Crowd

MODERATE = 1e100  # far from overflow, also squared and added up
UID_SHIFT = 44  # bits of an arrival number
OF_ROW = (1 << UID_SHIFT) - 1  # of a member's number and a row's, as one, those of the row
_MOST_UIDS = 1 << (63 - UID_SHIFT)
_FEW_REPORTED = 1 << 12  # rows that were reported as arrivals: as few are not worth asking which have expired


def crowd_lane(query: Query, *, timed: bool) -> type[CrowdLane]:
    """The lane of a crowd for such queries, over windows of one kind."""
    from skyband.lanes.crowd_time import CrowdTimeLane
    from skyband.lanes.thresholds import ThresholdLane, ThresholdTimeLane

    if isinstance(query, Threshold):
        return ThresholdTimeLane if timed else ThresholdLane
    return CrowdTimeLane if timed else CrowdLane


def crowd_place(place: Place, algorithm: str, crowd: Gathers) -> Place:
    """The place of such a query in a crowd."""
    key = ("crowd", "auto", crowd)
    lane = crowd_lane(place.query, timed=place.timed)
    return replace(place, lane=lane, key=key, algorithm=algorithm, door=None, gathers=None, crowd=crowd)


class CrowdLane(Lane):
    """Queries come and go while rows do. Answers name rows by arrival number."""

    kind = "crowd"

    def __init__(self, place: Place, since: int) -> None:
        super().__init__(place, since)
        self.gathers = place.crowd  # who may join, where the algorithm was left to us
        self.structure = self._made(place, self._attributes(place))
        self.uids: list[int] = []  # a number for each member that no other has or, for long, gets; increasing
        self.next_uid = 0
        self.algorithm = place.algorithm  # of the query it was made for
        self.ranked = np.zeros(0, np.int64)  # emit="arrivals": uid and row of those reported, increasing
        self.ranked_limit = _FEW_REPORTED  # how many there may be until expired ones are forgotten
        self._uncounted = 0  # rows taken since the members' counters were brought up to date
        self._emission: np.ndarray | None = None  # what each member's windows give
        self._read: Counter[str] = Counter()  # how many members read an attribute
        self._read_from: dict[str, int] = {}  # the first row from which on some member did, as far as is known

    def _made(self, place: Place, attributes: tuple[str, ...]) -> Crowd:
        """What answers its queries."""
        from skyband.algorithms.spatial.crowd import Crowd, resolution

        named, options = settled(place.algorithm)
        usual = resolution(place.size, len(attributes)) if named.family == "spatial" else 0
        kind = cast(type[Crowd], load(named.name)) if named.family == "spatial" else Crowd
        made = kind(attributes, options.get("grid", usual))
        made.seen = self.since
        return made

    def admits(self, place: Place) -> bool:
        return self.is_open

    @property
    def is_open(self) -> bool:
        """May queries join now?"""
        return True

    def join(self, *places: Place) -> None:
        self.structure.add(*[self._asked(place) for place in places])
        for place in places:
            self._seat(place.member, place)

    def _seat(self, member: Member, place: Place) -> None:
        """Let a query that the structure has taken up be the last of the members."""
        self.settle()
        if self._emission is not None:
            self._emission = np.append(self._emission, member.emission)
        self._read.update(self._columns_of(place))
        self.members.append(member)
        member.algorithm = place.algorithm
        if self.next_uid >= _MOST_UIDS:
            self._number_anew()
        self.uids.append(self.next_uid)
        self.next_uid += 1

    def _number_anew(self) -> None:
        """Number the members from 0 on, and forget what was reported to others."""
        rows, uids, known = self.ranked & OF_ROW, self.ranked >> UID_SHIFT, np.array(self.uids, np.int64)
        stays = np.isin(uids, known)
        self.ranked = (known.searchsorted(uids[stays]) << UID_SHIFT) + rows[stays]  # uids increase from member to member
        self.next_uid = len(known)
        self.uids = list(range(self.next_uid))

    def _asked(self, place: Place) -> Asked:
        """A query as the structure takes it."""
        from skyband.algorithms.spatial.crowd import Asked

        query, (named, options) = ranked(place), settled(place.algorithm)
        score, order = self._score(place)
        given = {name: value for name, value in options.items() if name != "grid"}
        core, sieve = named.options["core"], named.options.get("filter")
        k = query.k if place.timed else min(query.k, place.size)
        heard = query.emit != "none"
        region, condition = (region_of(query), condition_of(query)) if named.family == "spatial" else ((), None)
        return Asked(score, order, k, place.size, place.slide, core, sieve, heard, given, region, condition)

    def _attributes(self, place: Place) -> tuple[str, ...]:
        """What the structure calls the numbers it is given of a row."""
        return attributes_of(ranked(place)) if place.crowd is None else tuple(sorted(place.crowd.columns))

    def _columns_of(self, one: Place | Member) -> tuple[str, ...]:
        """The attributes that are read for a query."""
        return attributes_of(ranked(one))

    def _score(self, place: Place) -> tuple[Linear | Distance | Call, str]:
        """How it ranks them for a query, and which way."""
        return ranking_of(ranked(place)), place.query.order

    def cancel(self, at: int) -> None:
        """Stop answering a query and forget what only it held."""
        if self._emission is not None:
            self._emission = np.delete(self._emission, at)
        self._read.subtract(self._columns_of(self.members[at]))
        self.structure.remove(at)
        del self.members[at], self.uids[at]

    # -- rows ----------------------------------------------------------------------------------------------------

    def take(self, rows: Rows) -> tuple[Emitted, np.ndarray]:
        points = self._points(rows)
        emission = self._emissions()
        parts = list(self._parts(points, emission))
        self._uncounted += len(rows.table)
        nulls = self._nulls(rows, points)
        for at in np.flatnonzero(nulls).tolist():
            self.members[at].nulls += int(nulls[at])
        emitted = self._first_arrivals_of(Emitted.join(parts), emission)
        return emitted, emitted.ordinal

    def _parts(self, points: np.ndarray, emission: np.ndarray) -> Iterator[Emitted]:
        """Result rows of the windows that the rows complete."""
        wanting = emission == SNAPSHOTS
        if not wanting.any():
            for query, ends, results in self.structure.push(points):
                yield self._emit(query, ends, results, emission)
            return
        slide = np.array([member.slide for member in self.members])
        unchanged = Unchanged(wanting, self.structure.seen // slide)
        for query, ends, results in self.structure.push(points):
            query, number, results = unchanged.among(query, ends // slide[query], results)
            yield self._emit(query, number * slide[query], results, emission)
        query, number, results = unchanged.rest(self.structure.seen // slide)
        yield self._emit(query, number * slide[query], results, emission)

    def delete(self, seq: np.ndarray) -> tuple[Emitted, np.ndarray]:
        emission = self._emissions()
        seq = seq[seq >= self.since]
        emitted = self._emit(*self.structure.delete(seq), emission) if len(seq) else NO_EVENTS
        emitted = self._first_arrivals_of(emitted, emission)
        return emitted, emitted.ordinal

    def settle(self) -> None:
        if self._uncounted == 0:
            return
        for member in self.members:
            member.rows += self._uncounted
        self._uncounted = 0

    def _emissions(self) -> np.ndarray:
        if self._emission is None:
            self._emission = np.array([member.emission for member in self.members], np.int64)
        return self._emission

    def _points(self, rows: Rows) -> np.ndarray:
        """The numbers of the rows: float64 [attributes, rows]."""
        attributes = self.structure.attributes
        read = [name for name in attributes if self._read[name] > 0]
        self._read_from = {name: self._read_from.get(name, rows.base) for name in read}
        known = column_values(read, rows.table)
        # a column that nobody reads any more may have become one of texts
        return np.stack([known[name] if name in known else np.zeros(len(rows.table)) for name in attributes])

    def _emit(self, query: np.ndarray, ends: np.ndarray, results: Results, emission: np.ndarray) -> Emitted:
        from skyband.kernels.emission import count_events, emit

        tops, stop = self.structure.tops, len(query)
        out = Emitted.room(count_events(query, 0, stop, results.size, emission, tops.count))
        written = emit(query, ends, 0, stop, results, emission, tops, out)
        return out.where(slice(0, written)) if written else NO_EVENTS

    def _first_arrivals_of(self, emitted: Emitted, emission: np.ndarray) -> Emitted:
        """Of queries that report arrivals, leave only the first entry of each row, ever."""
        places = np.flatnonzero(emission[emitted.query] == ARRIVALS)
        if len(places) == 0:
            return emitted
        keys = (np.array(self.uids, np.int64)[emitted.query[places]] << UID_SHIFT) + emitted.ordinal[places]
        order = np.lexsort((places, emitted.window_end[places]))  # the first in time, wherever it stands
        keys, first_places = np.unique(keys[order], return_index=True)
        at = self.ranked.searchsorted(keys)
        fresh = np.append(self.ranked, -1)[at] != keys
        keep = np.ones(len(emitted.query), bool)
        keep[places] = False
        keep[places[order[first_places[fresh]]]] = True
        self.ranked = np.insert(self.ranked, at[fresh], keys[fresh])
        if len(self.ranked) > self.ranked_limit:
            oldest = self._oldest()
            rows, uids = self.ranked & OF_ROW, self.ranked >> UID_SHIFT
            self.ranked = self.ranked[(rows >= oldest) & np.isin(uids, self.uids)]
            self.ranked_limit = 2 * len(self.ranked) + _FEW_REPORTED
        return emitted.where(keep)

    def _oldest(self) -> int:
        """No window to come holds a row before this ordinal, nor does one that ended last, which may be answered again."""
        return self.structure.oldest_needed()

    def _nulls(self, rows: Rows, points: np.ndarray) -> np.ndarray:
        """How many rows have no score, for each query: only rows with an attribute that is not finite, or that arithmetic
        may take beyond that, can lack one, but for expressions that say otherwise."""
        crowd = self.structure
        moderate = MODERATE / max(crowd.asking.largest_number, 1.0)
        if -moderate < points.min(initial=0.0) and points.max(initial=0.0) < moderate:  # a NaN is neither
            return crowd.unscored(points, moderate=True)
        usual = (np.abs(points) < moderate).all(axis=0)
        return crowd.unscored(points[:, ~usual]) + crowd.unscored(points[:, usual], moderate=True)

    # -- what is held --------------------------------------------------------------------------------------------

    def top(self, at: int) -> tuple[np.ndarray, np.ndarray]:
        tops = self.structure.tops
        count = int(tops.count[at])
        return tops.score[at, :count].copy(), tops.ordinal[at, :count].copy()

    def needed(self, base: int = 0) -> np.ndarray:
        return self.structure.needed(base)

    def oldest_needed(self) -> int:
        return max(self.structure.oldest_needed(), self.since)

    def figures(self, at: int) -> dict[str, Any]:
        member, crowd = self.members[at], self.structure
        found: dict[str, Any] = {"algorithm": member.algorithm, "candidates": crowd.candidates(at), "bytes": crowd.nbytes}
        found["search"] = crowd.search_of(at)
        if crowd.asked[at].core == "probabilistic":
            found["missed_at_most"] = self.missed_at_most(at)
        if crowd.refills:
            found["searches"] = crowd.searches
        return found

    @property
    def candidates(self) -> int:
        return int(self.structure.all_candidates().sum())

    @property
    def nbytes(self) -> int:
        return self.structure.nbytes

    def held(self) -> list[tuple[str, int, int]]:
        counts, size = self.structure.all_candidates().tolist(), self.nbytes
        return [(member.query.name, count, size) for member, count in zip(self.members, counts, strict=True) if member.active]

    def missed_at_most(self, at: int) -> float:
        return self.structure.missed_at_most(at, self.members[at].rows + self._uncounted)

    @property
    def is_exact(self) -> bool:
        return self.structure.asking.is_exact

    # -- state ---------------------------------------------------------------------------------------------------

    def save(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header = {**self.header(), "uids": self.uids, "next_uid": self.next_uid, "ranked_limit": self.ranked_limit}
        header["attributes"] = list(self.structure.attributes)
        return header, {"structure": np.frombuffer(self.structure.snapshot(), np.uint8), "ranked": self.ranked}

    @classmethod
    def saved(cls, members: int) -> dict[str, str]:
        return {"structure": "uint8 structure", "ranked": "int64 ranked"}

    @classmethod
    def restored(cls, places: list[Place], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> CrowdLane:
        places = [_again(one, header, known["algorithm"]) for one, known in zip(places, header["members"], strict=True)]
        lane = cls(places[0], header["since"])
        lane._prepare(places, header)
        lane.join(*places)
        lane.read_counters(header)
        lane.uids, lane.next_uid = header["uids"], header["next_uid"]
        lane.ranked, lane.ranked_limit = arrays["ranked"], header["ranked_limit"]
        lane.structure.restore(arrays["structure"].tobytes())
        if header["attributes"] != list(lane.structure.attributes):
            read = list(lane.structure.attributes)
            raise StateError(f"this state is of rows with {header['attributes']}, its queries read {read}; {OTHER_VERSION}")
        return lane

    def _prepare(self, places: list[Place], header: dict[str, Any]) -> None:
        """Before its queries join again: nothing, where attributes are all there from the start."""
        return


def ranked(one: Place | Member) -> RankedQuery:
    """Its query."""
    assert isinstance(one.query, TopK | Threshold)
    return one.query


def _again(one: Place, header: dict[str, Any], algorithm: str) -> Place:
    """The place of a query in the crowd that was written down."""
    if issubclass(one.lane, CrowdLane):
        return one
    assert one.gathers is not None
    return crowd_place(one, algorithm, replace(one.gathers, columns=frozenset(header["attributes"])))

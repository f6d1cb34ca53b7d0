"""Many queries with scores of their own over the same attributes: rows by arrival, one structure for all."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from skyband.algorithms import settled
from skyband.algorithms.contract import Plan
from skyband.binding import numbers
from skyband.changes import NO_EVENTS, Emitted
from skyband.formulas import Distance, Linear
from skyband.kernels.tables import Results
from skyband.lanes.base import Lane, Member
from skyband.query import Query
from skyband.window import CountWindow

if TYPE_CHECKING:
    from skyband.algorithms.crowd import Crowd

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
    attributes = frozenset(name for name, _ in (score.weights if isinstance(score, Linear) else score.point))
    if "grid" not in options and named.family != "spatial":
        return ("crowd", attributes)
    return ("crowd", attributes, algorithm, query.window.size, query.window.slide)


class CrowdLane(Lane):
    """Queries come and go while rows do. Answers name rows by arrival number."""

    kind = "crowd"
    structure: Crowd  # type: ignore[assignment]

    def __init__(self, since: int, attributes: tuple[str, ...], grid: int = 0) -> None:
        from skyband.algorithms.crowd import Crowd

        super().__init__(since, "crowd")
        self.structure = Crowd(attributes, grid)
        self.structure.seen = since
        self.started = True
        self.uids: list[int] = []  # a number for each member that no other gets
        self.next_uid = 0
        self.ranked = np.zeros(0, np.int64)  # emit="arrivals": uid and row of those reported, increasing
        self.ranked_limit = 1 << 12  # how many there may be until expired ones are forgotten

    @classmethod
    def of(cls, query: Query, algorithm: str, since: int) -> CrowdLane:
        """An empty lane for queries like this one."""
        assert isinstance(query.score, Linear | Distance)
        from skyband.algorithms.crowd import resolution

        pairs = query.score.weights if isinstance(query.score, Linear) else query.score.point
        assert isinstance(query.window, CountWindow)
        named, options = settled(algorithm)
        usual = resolution(query.window.size, len(pairs)) if named.family == "spatial" else 0
        return cls(since, tuple(sorted(name for name, _ in pairs)), options.get("grid", usual))

    def admits(self, algorithm: str) -> bool:
        return False

    def start(self) -> None:
        return

    def _plan(self) -> Plan:
        raise AssertionError("a crowd has no plan")

    def join(self, member: Member, algorithm: str) -> None:
        """Take up a query; it sees the rows from now on."""
        from skyband.algorithms.crowd import Asked

        query, (named, options) = member.query, settled(algorithm)
        assert isinstance(query.score, Linear | Distance)
        given = {name: value for name, value in options.items() if name != "grid"}
        core, sieve = named.options["core"], named.options.get("filter")
        k = min(query.k, member.size)
        heard = query.emit != "none"
        self.structure.add(Asked(query.score, query.order, k, member.size, member.slide, core, sieve, heard, given))
        member.algorithm = algorithm
        self.members.append(member)
        self.uids.append(self.next_uid)
        self.next_uid += 1

    def cancel(self, at: int) -> None:
        """Stop answering a query and forget what only it held."""
        self.structure.remove(at)
        del self.members[at], self.uids[at]

    # -- rows ----------------------------------------------------------------------------------------------------

    def push_rows(self, table: pa.Table) -> tuple[Emitted, np.ndarray]:
        """Take the next rows; the result rows of the windows they complete, and how many rows each query cannot score."""
        rows = np.stack([numbers(table.column(name)) for name in self.structure.attributes])
        emission = np.array([member.emission for member in self.members], np.int64)
        parts = [self._emit(query, ends, results, emission) for query, ends, results in self.structure.push(rows)]
        return self._first_arrivals_of(Emitted.join(parts), emission), self._nulls(rows)

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

    def _reach(self) -> int:
        return self.structure.seen - max(member.size for member in self.members)

    def shrink(self) -> None:
        return

    def seq_of(self, ordinal: np.ndarray) -> np.ndarray:
        return ordinal

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

    @property
    def nbytes(self) -> int:
        return self.structure.nbytes

    # -- state ---------------------------------------------------------------------------------------------------

    def save(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header = {
            "kind": self.kind,
            "since": self.since,
            "attributes": list(self.structure.attributes),
            "grid": self.structure.grid,
            "next_uid": self.next_uid,
            "ranked_limit": self.ranked_limit,
            "members": [
                {"active": True, "algorithm": one.algorithm, "uid": uid, "rows": one.rows, "late": one.late, "nulls": one.nulls}
                for one, uid in zip(self.members, self.uids, strict=True)
            ],
        }
        return header, {"structure": np.frombuffer(self.structure.snapshot(), np.uint8), "ranked": self.ranked}

    def restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        for member, saved in zip(self.members, header["members"], strict=True):
            member.rows, member.late, member.nulls = saved["rows"], saved["late"], saved["nulls"]
        self.uids = [saved["uid"] for saved in header["members"]]
        self.next_uid, self.ranked_limit, self.ranked = header["next_uid"], header["ranked_limit"], arrays["ranked"]
        self.structure.restore(arrays["structure"].tobytes())

    def _arrays(self) -> dict[str, np.ndarray]:
        return {}

    def _numbers(self) -> dict[str, int]:
        return {}

    def _restore_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        return

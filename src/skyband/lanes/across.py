"""Objects whose attributes arrive in separate streams: tuples by arrival or by time, one structure a query."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from skyband.across_query import AGGREGATES, COMBINES, TopKAcross
from skyband.algorithms import load, settled
from skyband.changes import NO_EVENTS, Emitted
from skyband.held_panes import HeldPanes
from skyband.kernels.tables import NOTHING, SNAPSHOTS, Windows
from skyband.lanes.across_rows import Read, Reader, check_columns
from skyband.lanes.base import NEVER, Lane, Place, Rows
from skyband.numbering import Numbering, hashes
from skyband.schedule import count_windows, cut_panes, time_windows
from skyband.state import table_from_bytes, table_to_bytes
from skyband.window import CountWindow

_NO_HASH = np.zeros(0, np.uint64)
_FEW_REPORTED = 1 << 12  # lives that were reported as arrivals: as few are not worth asking which have ended
_WAITING = ("time", "seq", "obj", "stream", "value", "hash")
_KINDS = ("int64", "int64", "int64", "int64", "float64", "uint64")


def across_place(query: TopKAcross, schema: pa.Schema, size: int, slide: int) -> Place:
    """Check a query against the columns; SchemaError when it does not fit them. Each has a lane of its own."""
    check_columns(query, schema)
    timed = not isinstance(query.window, CountWindow)
    return Place(query, AcrossLane, ("across", query.name), size, slide, query.settled_algorithm, timed=timed)


class AcrossLane(Lane):
    """One query. Time windows see tuples as their slides close, in the order of time, then of arrival; ordinals are given out
    in that order."""

    kind = "across"

    def __init__(self, place: Place, since: int) -> None:
        from skyband.kernels.across.tables import ANY_NUMBER, no_ranking

        super().__init__(place, since)
        assert isinstance(place.query, TopKAcross)
        self.query, self.algorithm = place.query, place.algorithm
        self.reader = Reader(self.query)
        from skyband.algorithms.across.contract import AcrossPlan

        combine = COMBINES.index(self.query.combine) if isinstance(self.query.combine, str) else 0
        k = self.query.k if place.timed else min(self.query.k, place.size)
        repeats = ANY_NUMBER if self.query.repeats is None else min(self.query.repeats, ANY_NUMBER)
        plan = AcrossPlan(k, combine, AGGREGATES.index(self.query.aggregate), repeats, self.reader.high)
        named, options = settled(place.algorithm)
        if self.query.precision is not None:
            options = {**options, "precision": self.query.precision}
        self.hashing = not named.exact
        structure: Any = load(place.algorithm)
        self.structure = structure(plan, **options)
        self.reported = no_ranking(k)
        self.numbering = Numbering()
        self.key_type = pa.null()
        self.outside = 0
        self.ranked = np.zeros(0, np.int64)  # emit="arrivals": when the lives of those reported began, increasing
        self.ranked_limit = _FEW_REPORTED  # how many there may be until those that ended are forgotten
        self.fed = since if not place.timed else 0  # ordinals given out
        self.closed = NEVER  # every window up to this end has been answered
        self.last_time = NEVER  # greatest time of a row that was not late
        self.waiting: list[tuple[np.ndarray, ...]] = []  # of slides that have not closed; see _WAITING
        self.panes = HeldPanes()  # that a coming window may hold
        self._read: tuple[pa.Table, Read] | None = None

    def admits(self, place: Place) -> bool:
        return False

    def join(self, *places: Place) -> None:
        self.members += [place.member for place in places]

    # -- rows ----------------------------------------------------------------------------------------------------

    def check(self, table: pa.Table) -> None:
        self._read = (table, self.reader.read(table))

    def take(self, rows: Rows) -> tuple[Emitted, pa.Array]:
        assert self._read is not None and self._read[0] is rows.table
        read, self._read = self._read[1], None
        member, table = self.members[0], rows.table
        self.key_type = table.schema.field(self.query.key).type
        late = rows.late(member.slide) if self.timed else None
        on_time = slice(None) if late is None else ~late
        member.count(len(table), 0 if late is None else int(late.sum()), int(read.null[on_time].sum()))
        self.outside += int(read.outside[on_time].sum())
        keys = table.column(self.query.key)
        obj = self.numbering.numbers(keys)
        hashed = hashes(keys) if self.hashing else _NO_HASH
        if not self.timed:
            return self._count(obj, read, hashed)
        assert rows.times is not None
        if len(rows.times[on_time]):
            self.last_time = max(self.last_time, int(rows.times[on_time].max()))
        kept = read.stream >= 0
        if late is not None:
            kept &= ~late
        places = np.flatnonzero(kept)
        if len(places):
            hashed = hashed[places] if self.hashing else np.zeros(len(places), np.uint64)
            columns = (column[places] for column in (rows.times, obj, read.stream, read.value))
            time, obj, stream, value = columns
            self.waiting.append((time, self._order(rows, places), obj, stream, value, hashed))
        return self.close(rows.watermark)

    def _order(self, rows: Rows, places: np.ndarray) -> np.ndarray:
        """What tuples of one time are ordered by: their arrival."""
        return rows.base + places

    def _count(self, obj: np.ndarray, read: Read, hashed: np.ndarray) -> tuple[Emitted, pa.Array]:
        member = self.members[0]
        begin, self.fed = self.fed, self.fed + len(obj)
        ordinal = np.arange(begin, self.fed)
        reach = np.maximum((ordinal // member.slide + 1) * member.slide - member.size, self.since)
        last_only = member.emission == NOTHING and not self.structure.learns_from_windows
        windows = count_windows(0, member.size, member.slide, self.since, begin, self.fed, last_only=last_only)
        return self._answer(begin, (obj, read.stream, read.value, reach, hashed), windows)

    def close(self, watermark: int) -> tuple[Emitted, pa.Array]:
        member = self.members[0]
        size, slide = member.size, member.slide
        upto = watermark // slide * slide
        if watermark == NEVER or upto <= self.closed:
            return NO_EVENTS, self.numbering.keys(np.zeros(0, np.int64), self.key_type)
        time, _, obj, stream, value, hashed = self._closing(upto)
        begin, self.fed = self.fed, self.fed + len(time)
        cuts = cut_panes(time, slide, [size])
        self.panes.add(time[cuts], begin + cuts)
        reach = self.panes.first_row((time // slide + 1) * slide - size, self.fed)
        wanted = SNAPSHOTS if self.structure.learns_from_windows else member.emission
        windows = time_windows(0, size, slide, self.closed, upto, self.panes, self.fed, wanted)
        self.closed = upto
        answered = self._answer(begin, (obj, stream, value, reach, hashed if self.hashing else _NO_HASH), windows)
        self.panes.forget_before(upto - size)  # the last window answered holds the others
        return answered

    def _closing(self, upto: int) -> tuple[np.ndarray, ...]:
        """Tuples before `upto`, which wait no longer, in the order of time, then arrival."""
        columns = self._all_waiting()
        done = columns[0] < upto
        left = tuple(column[~done] for column in columns)
        self.waiting = [left] if len(left[0]) else []
        closing = tuple(column[done] for column in columns)
        order = np.lexsort((closing[1], closing[0]))
        return tuple(column[order] for column in closing)

    def _all_waiting(self) -> tuple[np.ndarray, ...]:
        nothing = tuple(np.zeros(0, kind) for kind in _KINDS)
        return tuple(np.concatenate(column) for column in zip(nothing, *self.waiting, strict=True))

    def _answer(self, begin: int, columns: tuple[np.ndarray, ...], windows: Windows) -> tuple[Emitted, pa.Array]:
        """Hand tuples and the windows they complete to the structure; result rows, and the keys they are about."""
        emitted = self._feed(begin, columns, windows)
        names = self.numbering.keys(emitted.ordinal, self.key_type)
        if self.numbering.is_full:
            self._forget_keys()
        return emitted, names

    def _feed(self, begin: int, columns: tuple[np.ndarray, ...], windows: Windows) -> Emitted:
        from skyband.kernels.across.emission import count_events, emit
        from skyband.kernels.across.tables import Tuples

        member, parts, lives = self.members[0], [], []
        ends = windows.number * member.slide
        mark = np.zeros(len(self.numbering), np.uint8)
        for start, stop, answers in self.structure.advance(begin, Tuples(*columns), windows, len(self.numbering)):
            if member.emission == NOTHING:
                continue
            some = type(answers)(answers.begin[start:stop], answers.size[start:stop], *answers[2:])
            most = count_events(some, stop - start, self.reported.size[0], member.emission)
            out, life = Emitted.room(most), np.empty(most, np.int64)
            written = emit(some, ends[start:stop], stop - start, member.emission, self.reported, mark, out, life)
            parts.append(out.where(slice(0, written)))
            lives.append(life[:written])
        emitted = Emitted.join(parts)
        if member.query.emit == "arrivals" and len(emitted.query):
            emitted = self._first_arrivals(emitted, np.concatenate(lives))
        return emitted

    def _first_arrivals(self, emitted: Emitted, life: np.ndarray) -> Emitted:
        """Leave only the first entry of each object during its life."""
        lives, first = np.unique(life, return_index=True)
        fresh = ~np.isin(lives, self.ranked)
        self.ranked = np.union1d(self.ranked, lives)
        if len(self.ranked) > self.ranked_limit:
            alive = self.structure.objects.life[self.structure.alive()]
            self.ranked = self.ranked[np.isin(self.ranked, alive)]
            self.ranked_limit = 2 * len(self.ranked) + _FEW_REPORTED
        return emitted.where(np.sort(first[fresh]))

    def _forget_keys(self) -> None:
        alive = self.structure.alive()
        alive[self.reported.obj[: self.reported.size[0]]] = True
        for _, _, obj, *_ in self.waiting:
            inside = obj[obj < len(alive)]
            alive[inside] = True
            if len(inside) < len(obj):
                alive = np.concatenate([alive, np.ones(int(obj.max()) + 1 - len(alive), bool)])
        self.numbering.forget_all_but(alive)

    def last_end(self) -> int:
        if self.last_time == NEVER:
            return NEVER
        member = self.members[0]
        return ((self.last_time + member.size) // member.slide + 1) * member.slide

    # -- what is held --------------------------------------------------------------------------------------------

    def top(self, at: int) -> tuple[np.ndarray, pa.Array]:
        top, size = self.structure.top, int(self.structure.top.size[0])
        return top.score[:size].copy(), self.numbering.keys(top.obj[:size], self.key_type)

    def needed(self, base: int = 0) -> np.ndarray:
        return np.zeros(0, np.int64)  # keys are all that results show

    def oldest_needed(self) -> int:
        return int(np.iinfo(np.int64).max)

    def figures(self, at: int) -> dict[str, Any]:
        found = {"algorithm": self.algorithm, "candidates": self.candidates, "bytes": self.nbytes, "outside": self.outside}
        return found | self.structure.figures()

    @property
    def candidates(self) -> int:
        return self.structure.candidates + sum(len(piece[0]) for piece in self.waiting)

    @property
    def precision(self) -> float | None:
        return self.structure.estimated_precision

    @property
    def nbytes(self) -> int:
        return self.structure.nbytes + sum(column.nbytes for piece in self.waiting for column in piece)

    # -- state ---------------------------------------------------------------------------------------------------

    def save(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        numbers = {name: getattr(self, name) for name in ("outside", "ranked_limit", "fed", "closed", "last_time")}
        keys = {"count": len(self.numbering), "limit": self.numbering.limit}
        table = self.numbering.save(self.key_type)
        arrays: dict[str, np.ndarray] = {
            "structure": np.frombuffer(self.structure.snapshot(), np.uint8),
            "keys": np.frombuffer(table_to_bytes(table), np.uint8),
            "key_type": np.frombuffer(pa.schema([("key", self.key_type)]).serialize().to_pybytes(), np.uint8),
            "free": np.array(self.numbering.free, np.int64),
            "ranked": self.ranked,
            **self.panes.save(),
        }
        arrays |= {f"waiting.{name}": column for name, column in zip(_WAITING, self._all_waiting(), strict=True)}
        arrays |= {f"reported.{name}": array for name, array in self.reported._asdict().items()}
        return {**self.header(), "numbers": numbers, "keys": keys}, arrays

    @classmethod
    def saved(cls, members: int) -> dict[str, str]:
        waiting = {f"waiting.{name}": f"{kind} waiting" for name, kind in zip(_WAITING, _KINDS, strict=True)}
        reported = dict.fromkeys(("reported.obj", "reported.life", "reported.time"), "int64 ranks")
        reported |= {"reported.score": "float64 ranks", "reported.size": "int64 1"}
        keys = {"keys": "uint8 keys", "key_type": "uint8 key_type", "free": "int64 free", "ranked": "int64 ranked"}
        return {"structure": "uint8 structure", **keys, **HeldPanes.saved, **waiting, **reported}

    @classmethod
    def restored(cls, places: list[Place], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> AcrossLane:
        lane = cls(places[0], header["since"])
        lane.join(places[0])
        lane.read_counters(header)
        lane.structure.restore(arrays["structure"].tobytes())
        for name, value in header["numbers"].items():
            setattr(lane, name, value)
        lane.key_type = pa.ipc.read_schema(pa.py_buffer(arrays["key_type"].tobytes())).field("key").type
        keys = table_from_bytes(arrays["keys"].tobytes())
        lane.numbering.restore(keys, header["keys"]["count"], arrays["free"], header["keys"]["limit"])
        lane.ranked = arrays["ranked"]
        lane.panes.restore(arrays)
        waiting = tuple(arrays[f"waiting.{name}"] for name in _WAITING)
        lane.waiting = [waiting] if len(waiting[0]) else []
        lane.reported = type(lane.reported)(**{name: arrays[f"reported.{name}"] for name in lane.reported._fields})
        return lane

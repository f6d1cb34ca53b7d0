"""One state: the commands of one share of the queries, in order, and the windows of one share of the groups.

Every bucket of a shard hears the same commands in the same micro-batches and settles them in the order of time, which the
watermark makes final; so all of them come to the same set of queries, and a group that appears later finds it there. The
first bucket alone acknowledges.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.errors import QueryError, SkybandError, StateError
from skyband.lanes import NEVER
from skyband.layout import reading
from skyband.query import Query, query_from_json
from skyband.spark.arriving import as_keys
from skyband.spark.control.answer import (
    ADDED,
    CANCELLED,
    REFUSED,
    Acknowledgement,
    acknowledgement_table,
    answer_schema,
    result_table,
)
from skyband.spark.control.command import ADD, Command, home
from skyband.spark.control.live import OWN, LiveGroup
from skyband.spark.control.pace import Counts, Due, Results
from skyband.spark.control.terms import Terms
from skyband.spark.marks import REMEDY_WITH_COMMANDS, differences
from skyband.spark.tallies import Bounds, Counted, worst
from skyband.state import pack, table_from_bytes, table_to_bytes, unpack

_KIND = "control shard"


class Shard:
    """Rows and commands in, result rows and acknowledgements out.

    Invariant: `standing` is what the commands up to `watermark` leave; `pending` are those that hold from a later time on.
    """

    def __init__(self, terms: Terms, number: int) -> None:
        self.terms, self.number = terms, number
        self.schema = answer_schema(terms)
        self.watermark = NEVER
        own = [query for query in terms.queries if home(query.name, terms.shards) == number // terms.buckets]
        self.standing: dict[str, tuple[Query, int]] = {query.name: (query, NEVER) for query in own}
        self.pending: list[Command] = []
        self.groups: dict[tuple[Any, ...], LiveGroup] = {}
        self.values: dict[tuple[Any, ...], list[pa.Scalar]] = {}  # of the group columns
        self.said: list[Acknowledgement] = []
        self.counts = {"commands": 0, "refused commands": 0}  # since the last `figures`
        self.gone = Counts()  # of groups that were forgotten since the last `counted`

    # -- commands ------------------------------------------------------------------------------------------------

    def hear(self, commands: Iterable[Command]) -> list[pa.Table]:
        """Take the commands of a micro-batch. Those with a time wait for it, the others hold from the watermark on."""
        for command in sorted(commands, key=lambda one: one.turn):
            self.counts["commands"] += 1
            if not self.terms.dated:
                self._settle(command, self.watermark)
            elif command.time is None:
                self._refuse(command, "the command has no time; say from when on it is to hold")
            elif command.time < self.watermark:
                self._refuse(
                    command,
                    f"the command comes too late: it is to hold from {self._time(command.time)} on, and the stream has passed "
                    f"{self._time(self.watermark)}; send it again with a later time",
                )
            else:
                self.pending.append(command)
        return self._acknowledged()

    def _settle(self, command: Command, time: int) -> None:
        """Obey a command from `time` on, or refuse it: then nothing has changed."""
        try:
            verb, content = command.read()
            if verb == ADD:
                assert not isinstance(content, str)
                self._check(content)
                query, event = content, ADDED
                self.standing[query.name] = (query, time)
            else:
                assert isinstance(content, str)
                query, event = self._named(content), CANCELLED
                del self.standing[query.name]
        except SkybandError as problem:
            self._refuse(command, str(problem))
            return
        for group in self.groups.values():
            group.schedule(Due(time, query, verb == ADD))
        self.said.append(Acknowledgement(event, query.name, time))

    def _check(self, query: Query) -> None:
        if query.name in self.standing:
            raise QueryError(
                f"a query called {query.name!r} is there already; give this one another name or cancel that one first"
            )
        self.terms.check(query)

    def _named(self, name: str) -> Query:
        if name not in self.standing:
            raise QueryError(f"no query is called {name!r}; it may have been cancelled before, or never added")
        return self.standing[name][0]

    def _refuse(self, command: Command, message: str) -> None:
        self.counts["refused commands"] += 1
        self.said.append(Acknowledgement(REFUSED, command.names, command.time, message))

    def _time(self, time: int) -> str:
        clock = self.terms.clock
        return str(time) if clock is None else str(clock.column_of(np.array([time]))[0].as_py())

    def _acknowledged(self) -> list[pa.Table]:
        said, self.said = self.said, []
        if not said or self.number % self.terms.buckets:
            return []
        return [acknowledgement_table(self.terms, self.schema, said)]

    # -- rows and time -------------------------------------------------------------------------------------------

    def take(self, rows: pa.Table) -> list[pa.Table]:
        """Take rows (time, tie, then the input's columns); results where they need not wait."""
        results: list[pa.Table] = []
        for key, places in self._by_group(rows):
            if key not in self.groups:
                self.groups[key] = LiveGroup(self.terms, self.watermark, self.standing.values())
                self.values[key] = [rows.column(OWN + i)[int(places[0])] for i in self._columns]
            own = rows if len(places) == len(rows) else rows.take(pa.array(places))
            results += self._tables(key, self.groups[key].take(own))
        return results

    @property
    def _columns(self) -> list[int]:
        return [self.terms.schema.names.index(name) for name in self.terms.groups]

    def _by_group(self, rows: pa.Table) -> Iterable[tuple[tuple[Any, ...], np.ndarray]]:
        """The places of each group's rows."""
        code = np.zeros(len(rows), np.int64)
        keys = [as_keys(rows.column(OWN + i)) for i in self._columns]
        for column in keys:
            encoded = column.dictionary_encode(null_encoding="encode")
            _, code = np.unique(code * len(encoded.dictionary) + encoded.indices.to_numpy(), return_inverse=True)
            code = code.reshape(-1)
        order = np.argsort(code, kind="stable")
        runs = [places for places in np.split(order, np.flatnonzero(np.diff(code[order])) + 1) if len(places)]
        return [(tuple(column[int(places[0])].as_py() for column in keys), places) for places in runs]

    def advance(self, watermark: int) -> list[pa.Table]:
        """Obey the commands whose time has come, and answer every window whose end the watermark has reached."""
        if watermark <= self.watermark:
            return []
        due = sorted((command for command in self.pending if self._time_of(command) < watermark), key=lambda one: one.turn)
        self.pending = [command for command in self.pending if self._time_of(command) >= watermark]
        for command in due:
            self._settle(command, self._time_of(command))
        self.watermark = watermark
        results = self._acknowledged()
        for key, group in list(self.groups.items()):
            results += self._tables(key, group.advance(watermark))
            if group.idle:
                self.gone.add(group.take_counts())
                del self.groups[key], self.values[key]
        return results

    def finish(self) -> list[pa.Table]:
        """The stream has ended: obey every command and answer every window that holds a row."""
        for command in sorted(self.pending, key=lambda one: one.turn):
            self._settle(command, self._time_of(command))
        self.pending = []
        results = self._acknowledged()
        for key, group in self.groups.items():
            results += self._tables(key, group.finish())
        return results

    @staticmethod
    def _time_of(command: Command) -> int:
        assert command.time is not None
        return command.time

    def next_end(self) -> int | None:
        """When the watermark reaches this, there is something to do; None: nothing waits."""
        ends = [end for group in self.groups.values() if (end := group.next_end()) is not None]
        return min([*ends, *(self._time_of(command) + 1 for command in self.pending)], default=None)

    def _tables(self, key: tuple[Any, ...], results: list[Results]) -> list[pa.Table]:
        return [result_table(self.terms, self.schema, one, self.values[key]) for one in results]

    # -- figures -------------------------------------------------------------------------------------------------

    def figures(self) -> dict[str, int]:
        """What happened since the last call, and what is held: commands are counted where they are acknowledged."""
        counts, self.counts = self.counts, dict.fromkeys(self.counts, 0)
        if self.number % self.terms.buckets:
            counts = dict.fromkeys(counts, 0)
        held = sum(group.candidates for group in self.groups.values())
        return {**counts, "candidates": held}

    def standing_count(self) -> str | None:
        """The shard and how many queries stand in it, where commands are acknowledged; None elsewhere."""
        shard, bucket = divmod(self.number, self.terms.buckets)
        return None if bucket else f"{shard} {len(self.standing)}"

    def counted(self) -> dict[str, Counted]:
        """By query, what became of rows since the last call, and the rows held for it, in all groups."""
        counts, self.gone = self.gone, Counts()
        held: Counter[str] = Counter()
        size: Counter[str] = Counter()
        for group in self.groups.values():
            counts.add(group.take_counts())
            for name, rows, taken in group.held():
                held[name] += rows
                size[name] += taken
        names = dict.fromkeys([*self.standing, *counts.names()])  # some may have been cancelled just now
        return {name: (counts.late[name], counts.nulls[name], held[name], counts.refused[name], size[name]) for name in names}

    def bounds(self) -> str | None:
        """What approximate answers are worth, of the worst group: see `tallies.worst`; None where there are none."""
        found: Bounds = {}
        for group in self.groups.values():
            for name, *own in group.bounds():
                found[name] = worst(own, found.get(name))
        return json.dumps(found) if found else None

    # -- state ---------------------------------------------------------------------------------------------------

    @property
    def marks(self) -> Mapping[str, str]:
        """What a checkpoint must agree with."""
        return self.terms.marks

    @property
    def is_idle(self) -> bool:
        """Nothing is known that a shard made anew would not know."""
        fresh = {query.name: (query, NEVER) for query in self.terms.queries if query.name in self.standing}
        own = sum(home(query.name, self.terms.shards) == self.number // self.terms.buckets for query in self.terms.queries)
        return not self.groups and not self.pending and self.standing == fresh and len(fresh) == own

    is_blank = is_idle

    def snapshot(self) -> bytes:
        """Everything remembered, in the format of `skyband.state`."""
        arrays: dict[str, np.ndarray] = {}
        groups = []
        for number, group in enumerate(self.groups.values()):
            header, own = group.save()
            groups.append(header)
            arrays |= {f"{number}/{name}": array for name, array in own.items()}
        if self.groups and self.terms.groups:
            columns = [
                pa.concat_arrays([pa.repeat(values[i], 1) for values in self.values.values()])
                for i in range(len(self.terms.groups))
            ]
            names = [f"g{i}" for i in range(len(columns))]
            arrays["groups"] = np.frombuffer(table_to_bytes(pa.table(columns, names=names)), np.uint8)
        header = {
            "marks": dict(self.terms.marks),
            "number": self.number,
            "watermark": self.watermark,
            "standing": [[query.to_json(), since] for query, since in self.standing.values()],
            "pending": [command.to_json() for command in self.pending],
            "groups": groups,
        }
        return pack(_KIND, header, arrays, compress=True)

    @classmethod
    def restore(cls, terms: Terms, data: bytes) -> Shard:
        """What `snapshot` gave; StateError when it was made on other terms."""
        header, arrays = unpack(_KIND, data, REMEDY_WITH_COMMANDS)
        with reading("a shard", REMEDY_WITH_COMMANDS):
            return cls._restored(terms, header, arrays)

    @classmethod
    def _restored(cls, terms: Terms, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Shard:
        if changed := differences(header["marks"], terms.marks):
            raise StateError(
                f"this checkpoint was written for another stream: {changed}; start with a new checkpointLocation, or ask what "
                "was asked when it was written and change the queries by commands"
            )
        shard = cls(terms, header["number"])
        shard.watermark = header["watermark"]
        read = [(query_from_json(query, terms.callables), since) for query, since in header["standing"]]
        shard.standing = {query.name: (query, since) for query, since in read}
        shard.pending = [Command(*saved) for saved in header["pending"]]
        named = table_from_bytes(arrays["groups"].tobytes()) if "groups" in arrays else None
        keys = [] if named is None else [as_keys(column) for column in named.columns]
        for number, saved in enumerate(header["groups"]):
            own = {name.removeprefix(f"{number}/"): array for name, array in arrays.items() if name.startswith(f"{number}/")}
            values = [] if named is None else [column[number] for column in named.columns]
            key = tuple(column[number].as_py() for column in keys)
            shard.groups[key] = LiveGroup.restored(terms, saved, own)
            shard.values[key] = values
        return shard

"""A monitor as a file, and back."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Hashable, Mapping
from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from skyband import written_rows
from skyband.clock import Clock
from skyband.errors import StateError
from skyband.lanes import KINDS
from skyband.layout import Layout, check, extents_of, fields, reading
from skyband.query import Query, query_from_json
from skyband.rows import RowStore
from skyband.scores.score import BoundScore
from skyband.seating import bind_place
from skyband.state import pack, unpack

if TYPE_CHECKING:
    from skyband.monitor import Monitor

_KIND = "monitor"
_SEQ, _ROWS = "store.seq", "store.rows."


def monitor_to_bytes(monitor: Monitor, *, compress: bool = True) -> bytes:
    """Everything a monitor remembers, in the format of `skyband.state`; `compress` unless it is part of another state."""
    lanes: list[dict[str, Any]] = []
    arrays, nulls = _rows_of(monitor)  # before the lanes, so that scores among them lie near those of the lanes
    for number, lane in enumerate(monitor._lanes):
        header, own = lane.save()
        header["queries"] = [member.query.to_json() for member in lane.members]
        header["extents"] = extents_of(_lane_layout(header), own)
        lanes.append(header)
        arrays |= {f"{number}/{name}": array for name, array in own.items()}
    header = {
        "time": monitor._time,
        "lateness": _duration_to_json(monitor._lateness),
        "seen": monitor._seen,
        "watermark": monitor._watermark,
        "early": [_moment_to_json(moment) for moment in monitor._early],
        "waiting": [query.to_json() for query in monitor._waiting],
        "order": list(monitor._queries),
        "lanes": lanes,
        "schema": None,
    }
    if monitor._keys is not None:
        header["key"] = monitor._keys.column
        header["key_counts"], own = monitor._keys.save()
        arrays |= own
    if monitor._schema is not None:
        header["schema"] = base64.b64encode(monitor._schema.serialize().to_pybytes()).decode()
        header["limit"], header["nulls"] = monitor._store.limit, nulls
    header["extents"] = extents_of(_own_layout(header, monitor._schema), arrays)
    return pack(_KIND, header, arrays, compress=compress)


def _rows_of(monitor: Monitor) -> tuple[dict[str, np.ndarray], list[int]]:
    """The rows that a monitor keeps, as arrays, and which of their columns have nulls."""
    if monitor._schema is None:
        return {}, []
    seq, rows = monitor._store.whole()
    own = written_rows.written(rows)
    return {_SEQ: seq, **{f"{_ROWS}{name}": array for name, array in own.items()}}, written_rows.with_nulls(own)


def _own_layout(header: dict[str, Any], schema: pa.Schema | None) -> Layout:
    """The arrays of a monitor besides those of its lanes; `schema`: of its rows."""
    keys = {"keys.number": "int64 keys", "keys.seq": "int64 keys", "keys.deleted": "int64 deleted"}
    layout = fields(keys if "key" in header else {})
    if schema is not None:
        layout |= fields({_SEQ: "int64 stored"})
        own = written_rows.layout(schema, set(header["nulls"]))
        layout |= {f"{_ROWS}{name}": field for name, field in own.items()}
    return layout


def _lane_layout(header: dict[str, Any]) -> Layout:
    """The arrays of a lane."""
    members = len(header["members"])
    return fields(KINDS[header["kind"]].saved(members), members=members)


def write_monitor(monitor: Monitor, path: str | PathLike[str]) -> None:
    """Write `monitor` to `path` through a file beside it, so that a crash leaves the old one whole."""
    data = monitor_to_bytes(monitor)
    target = Path(path)
    beside = target.parent / f".{target.name}.{os.getpid()}.part"
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except OSError as problem:
        beside.unlink(missing_ok=True)
        raise StateError(
            f"cannot write the state file {os.fspath(path)!r}: {problem.strerror}; nothing was changed"
        ) from problem


def read_monitor(cls: type[Monitor], path: str | PathLike[str], callables: Any) -> Monitor:
    """The monitor in the file `path`."""
    if not isinstance(callables, Mapping):
        raise StateError(
            f"callables must be a mapping from query names to functions, got {callables!r}; write {{'name': function}}"
        )
    try:
        data = Path(path).read_bytes()
    except OSError as problem:
        raise StateError(f"cannot read the state file {os.fspath(path)!r}: {problem.strerror}") from problem
    return monitor_from_bytes(cls, data, callables)


def monitor_from_bytes(cls: type[Monitor], data: bytes, callables: Mapping[str, Callable[..., Any]]) -> Monitor:
    """The monitor that `monitor_to_bytes` wrote down."""
    header, arrays = unpack(_KIND, data)
    with reading("a monitor"):
        return _monitor_of(cls, header, arrays, callables)


def _monitor_of(
    cls: type[Monitor], header: dict[str, Any], arrays: dict[str, np.ndarray], callables: Mapping[str, Callable[..., Any]]
) -> Monitor:
    prefixes = tuple(f"{number}/" for number in range(len(header["lanes"])))
    own = {name: one for name, one in arrays.items() if not name.startswith(prefixes)}
    written = header["schema"]
    schema = None if written is None else pa.ipc.read_schema(pa.py_buffer(base64.b64decode(written)))
    check(_own_layout(header, schema), own, header["extents"])
    monitor = cls((), time=header["time"], lateness=_duration_from_json(header["lateness"]), key=header.get("key"))
    if monitor._keys is not None:
        monitor._keys.restore(header["key_counts"], arrays)
    monitor._seen, monitor._watermark = header["seen"], header["watermark"]
    monitor._early = [_moment_from_json(moment) for moment in header["early"]]
    if schema is not None:
        monitor._schema = schema
        monitor._store = RowStore(schema)
        kept = {name.removeprefix(_ROWS): one for name, one in own.items() if name.startswith(_ROWS)}
        rows = written_rows.read(schema, kept, len(own[_SEQ]))
        monitor._store.fill(own[_SEQ], rows, header["limit"])
        if monitor._time is not None:
            monitor._clock = Clock(monitor._time, monitor._schema)
            monitor._allowed = monitor._clock.length(monitor._lateness, "lateness")
    queries: dict[str, Query] = {}
    bound: dict[Hashable, BoundScore] = {}
    for number, saved in enumerate(header["lanes"]):
        prefix = f"{number}/"
        held = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        check(_lane_layout(saved), held, saved["extents"])
        assert monitor._schema is not None
        asked = _members(saved, callables)
        queries |= {query.name: query for query, known in zip(asked, saved["members"], strict=True) if known["active"]}
        places = [monitor._place(query, monitor._schema, monitor._clock) for query in asked]
        for seat in places:
            bind_place(seat, monitor._schema, bound)
        monitor._lanes.append(KINDS[saved["kind"]].restored(places, saved, held))
    monitor._keep_bound(bound)
    monitor._waiting = [query_from_json(document, callables) for document in header["waiting"]]
    queries |= {query.name: query for query in monitor._waiting}
    monitor._queries = {name: queries[name] for name in header["order"]}
    return monitor


def _members(saved: dict[str, Any], callables: Mapping[str, Callable[..., Any]]) -> list[Query]:
    """The queries of a saved lane. A cancelled one's function may be gone: it had the score of those it shares the lane
    with."""
    documents = list(zip(saved["queries"], saved["members"], strict=True))
    heard = {document["name"]: query_from_json(document, callables) for document, known in documents if known["active"]}
    stand_in = next(iter(heard.values()))
    return [
        heard[document["name"]] if known["active"] else query_from_json(document, {document["name"]: cast(Any, stand_in.score)})
        for document, known in documents
    ]


def _duration_to_json(value: Any) -> Any:
    return value if isinstance(value, int | str) else {"us": value // timedelta(microseconds=1)}


def _duration_from_json(value: Any) -> Any:
    return f"{value['us']} us" if isinstance(value, dict) else value


def _moment_to_json(moment: Any) -> Any:
    """What advance() was given before the time column's type was known."""
    if hasattr(moment, "to_datetime64"):  # pandas: a datetime that may count nanoseconds
        moment = moment.to_datetime64()
    if isinstance(moment, np.datetime64):
        return {"datetime64": str(moment)}
    return {"datetime": moment.isoformat()} if isinstance(moment, datetime) else int(moment.__index__())


def _moment_from_json(moment: Any) -> Any:
    if not isinstance(moment, dict):
        return moment
    return np.datetime64(moment["datetime64"]) if "datetime64" in moment else datetime.fromisoformat(moment["datetime"])

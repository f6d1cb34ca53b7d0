"""What states hold: a field that is missing, strange, of another type or length is refused by name, before a kernel sees it;
and whoever changes what states hold is told to raise their format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, cast

import numpy as np
import pytest

import skyband as sb
from skyband.algorithms import TABLE, Entry
from skyband.lanes import KINDS
from skyband.saving import monitor_from_bytes, monitor_to_bytes
from skyband.state import FORMAT, pack, unpack

PINNED = (8, "22e40a3c2667407d")
"""The format of states, and a digest of what they hold."""

ROWS = 90
NAMED = [entry.name for entry in TABLE if entry.name != "supreme"]  # which no query may name
BY_TIME = ("panes", "relaxed+probabilistic", "above", "tma", "tsl", "scase", "sla", "eaa")
MORE = {f"{name} by time": name for name in BY_TIME}
MORE |= {"shared, in parts": "shared", "pairs-ta, in boxes": "pairs-ta", "relaxed, many": "relaxed", "tma, with keys": "tma"}
MORE |= {"thresholds": "tma", "thresholds by time": "tma"}
"""What algorithms hold besides, where more is asked of them."""

Arrays = dict[str, np.ndarray]


def asked(entry: Entry, case: str) -> list[Any]:
    """Queries that the algorithm of a row answers."""
    window: Any = sb.TimeWindow(20, 5) if "by time" in case else sb.CountWindow(2500 if "boxes" in case else 20, 4)
    given = {"window": window, "algorithm": entry.name, "name": "q"}
    if entry.family == "pairs":
        score: Any = sb.pair_distance(["x", "y"]) if entry.needs == "a pair distance" else "abs(a.x - b.y)"
        return [sb.TopKPairs(k=3, score=score, **given)]
    if entry.family == "across":
        if entry.name == "eaa-approximate":
            given["precision"] = 0.9
        return [sb.TopKAcross(k=3, key="id", stream="s", value="v", streams=["a", "b"], ranges=(0, 1), **given)]
    if entry.name == "above" or "thresholds" in case:
        return [sb.Threshold(above=0.3, score="x", emit="arrivals", **given)]
    many = {"shared, in parts": 120, "relaxed, many": 3}.get(case, 1)
    score = sb.distance({"x": 0.2, "y": 0.4}) if "distance" in entry.needs else sb.linear({"x": 1, "y": 2})
    if case == "relaxed, many":
        return [sb.TopK(k=3, score=f"x + {n} * y", **given | {"name": f"q{n}"}) for n in range(many)]
    return [sb.TopK(k=3 + n % 5, score=score, **given | {"name": f"q{n}"}) for n in range(many)]


def rows_of(count: int) -> dict[str, Any]:
    generator = np.random.default_rng(7)
    number = np.arange(count)
    return {
        "n": number,
        "t": number // 2,
        "x": generator.random(count),
        "y": generator.random(count),
        "v": generator.random(count),
        "id": number * 7 % 11,
        "s": np.array(["a", "b"])[number % 2],
    }


CASES = [*NAMED, *MORE]
each_case = pytest.mark.parametrize("case", CASES)


@cache
def state_of(case: str) -> bytes:
    """A monitor that has seen some rows, as bytes."""
    entry = next(row for row in TABLE if row.name == MORE.get(case, case))
    monitor = sb.Monitor(asked(entry, case), time="t", key="n" if "keys" in case else None)
    monitor.push(rows_of(4000 if "boxes" in case else ROWS))
    return monitor_to_bytes(monitor)


def changed(arrays: Arrays) -> Iterator[tuple[str, Arrays]]:
    """The same arrays, of which one is not as it should be."""
    yield "more", {**arrays, "strange": np.zeros(1)}
    for name, array in arrays.items():
        if name.startswith("0/ranked.") and name > "0/ranked.1":
            continue  # like the first two, one for each of many queries
        rest = {other: column for other, column in arrays.items() if other != name}
        yield f"{name} dropped", rest
        yield f"{name} renamed", {**rest, f"{name}s": array}
        kinds = {np.dtype("float64"): "float32", np.dtype("int64"): "float64", np.dtype("uint8"): "int8"}
        yield f"{name} retyped", {**rest, name: array.astype(kinds.get(array.dtype, "int64"))}
        yield f"{name} flattened", {**rest, name: array.reshape(-1, 1, 1)}
        for axis, length in enumerate(array.shape):
            for other in {0, length - 1, length + 1} if length else ():
                places = np.minimum(np.arange(other), length - 1)
                yield f"{name} of {other}, not {length}, along {axis}", {**rest, name: array.take(places, axis)}


def refused(take_up: Callable[[bytes], Any], data: bytes, what: str) -> None:
    try:
        take_up(data)
    except sb.StateError as problem:
        assert ";" in str(problem), f"{what}: {problem} says not what to do"
    else:
        pytest.fail(f"{what}: was taken for a state")


def loaded(data: bytes) -> sb.Monitor:
    return monitor_from_bytes(sb.Monitor, data, {})


@each_case
def test_a_structure_refuses_fields_that_are_not_its_own(case: str) -> None:
    structure = cast(Any, loaded(state_of(case))._lanes[0]).structure
    data = structure.snapshot()
    kind = kind_of(data)
    header, arrays = unpack(kind, data)
    for what, other in changed(arrays):
        refused(structure.restore, pack(kind, header, other), what)
    for key in header.keys() - {"attributes", "grid"}:  # which are said for the reader's sake
        less = {name: value for name, value in header.items() if name != key}
        refused(structure.restore, pack(kind, less, arrays), f"without {key}")
    _, again = unpack(kind, structure.snapshot())
    assert all(np.array_equal(again[name], arrays[name], equal_nan=True) for name in arrays if name != "marks")


@each_case
def test_a_monitor_refuses_fields_that_are_not_its_own(case: str) -> None:
    header, arrays = unpack("monitor", state_of(case))
    for what, other in changed(arrays):
        refused(loaded, pack("monitor", header, other), what)
    for holder, of in ((header, "monitor"), (header["lanes"][0], "lane")):
        for key in list(holder):
            value = holder.pop(key)
            refused(loaded, pack("monitor", header, arrays), f"{of} without {key}")
            holder[key] = value
    assert loaded(pack("monitor", header, arrays)).queries


def test_the_field_and_what_to_do_are_named() -> None:
    structure = cast(Any, loaded(state_of("strict"))._lanes[0]).structure
    header, arrays = unpack("Strict", structure.snapshot())
    arrays["state.marks"] = arrays["state.marks"][:-1]
    with pytest.raises(sb.StateError, match=r"'state.marks' .*int64 \[\d\] and should be int64 \[\d\]; .*another version"):
        structure.restore(pack("Strict", header, arrays))


def kind_of(data: bytes) -> str:
    """The kind of a packed state."""
    try:
        unpack("", data)
    except sb.StateError as problem:
        return str(problem).split("'")[1]
    raise AssertionError


def keys_of(header: Any) -> Any:
    """The names in a header, and those in what it holds; extents apart, which follow from the layout."""
    if isinstance(header, dict):
        return {key: keys_of(value) for key, value in sorted(header.items()) if key not in ("extents", "made_for", "queries")}
    return [keys_of(header[0])] if isinstance(header, list) and header and isinstance(header[0], dict) else None


def test_whoever_changes_what_states_hold_raises_their_format() -> None:
    """Fails when a structure or a lane has other fields, types or fixed extents than when the format was last raised."""
    held: dict[str, Any] = {kind: lane.saved(1) for kind, lane in KINDS.items()}
    for case in CASES:
        monitor = loaded(state_of(case))
        header, arrays = unpack("monitor", state_of(case))
        data = arrays["0/structure"].tobytes()
        lane: Any = monitor._lanes[0]
        layout = {name: str(field) for name, field in sorted(lane.structure.layout().items())}
        held[case] = [keys_of(header), layout, keys_of(unpack(kind_of(data), data)[0])]
    digest = hashlib.sha256(json.dumps(held, sort_keys=True).encode()).hexdigest()[:16]
    assert (FORMAT, digest) == PINNED, (
        f"states hold something else than when their format became {PINNED[0]}: raise state.FORMAT, so that older ones are "
        f"refused with what to do, and pin it with the digest {digest!r} here (only the digest if an algorithm is new)"
    )

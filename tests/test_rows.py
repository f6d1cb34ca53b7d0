"""The store of rows: whoever is asked for comes in the order asked for, however the rows came."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.rows import RowStore


@pytest.mark.parametrize("pieces", [[50], [20_000, 7, 1], [5] * 40, [40_000, 20_000, 300, 20, 1]])
@pytest.mark.parametrize("kept", [1, 3])
def test_rows_are_found_in_any_order(pieces: list[int], kept: int) -> None:
    """In one chunk or many, small and large, whole or with gaps, with some in the newest batch."""
    generator, count = np.random.default_rng(1), sum(pieces)
    table = pa.table({"x": generator.random(count), "name": [f"row {i}" for i in range(count)]})
    store, base = RowStore(table.schema), 0
    for piece in pieces:
        store.remember(base, table.slice(base, piece), np.arange(base, base + piece)[base % kept :: kept])
        base += piece
    held = np.concatenate([seq for seq, _ in store.chunks])
    newest = table.slice(0, 4)
    for asked in (1, 2, 40, min(len(held), 3000)):
        seq = generator.choice(held, asked)
        assert store.find(seq, count, None) == table.take(seq)
        mixed = np.append(seq, [count + 3, count])
        assert store.find(mixed, count, newest) == table.take(np.append(seq, [3, 0]))


@pytest.mark.parametrize("rows", [1, 3, 5, 400])
def test_a_caller_may_reuse_the_arrays_it_pushed(rows: int) -> None:
    """Whether all rows of a push are kept, as of few, or some."""
    monitor = sb.Monitor([sb.TopK(name="q", k=4, score="x", window=sb.CountWindow(1000))])
    generator, pushed = np.random.default_rng(rows), []
    room = {"x": np.empty(rows), "number": np.empty(rows, np.int64)}
    for begin in range(0, 20 * rows, rows):
        room["x"][:], room["number"][:] = generator.random(rows), np.arange(begin, begin + rows)
        pushed.append(room["x"].copy())
        monitor.push(room)
        room["x"][:], room["number"][:] = 2.0, -1
    scores = np.concatenate(pushed)
    first = max(0, len(scores) - 1000)
    best = first + np.argsort(-scores[first:])[:4]
    top = monitor.top("q")
    assert top["number"].to_pylist() == top["seq"].to_pylist() == best.tolist()
    assert top["x"].to_pylist() == scores[best].tolist()

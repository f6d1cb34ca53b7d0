"""The store of rows: whoever is asked for comes in the order asked for, however the rows came."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb
from skyband.rows import RowStore


def every_kind(count: int) -> pa.Table:
    """Rows with a column of each kind that is read in a way of its own, some with nulls."""
    generator, numbers = np.random.default_rng(1), np.arange(count)
    gone = generator.random(count) < 0.2
    texts = [f"row {i}" * (i % 3) for i in range(count)]
    money = pa.array([Decimal(i) for i in range(100)], pa.decimal128(9, 2))
    return pa.table(
        {
            "x": generator.random(count),
            "some x": pa.array(generator.random(count), mask=gone),
            "small": pa.array(numbers % 100, pa.int16()),
            "truth": pa.array(numbers % 3 == 0, mask=gone),
            "money": money.take(pa.array(numbers % 100)),
            "name": texts,
            "some names": pa.array([None if lost else text for lost, text in zip(gone.tolist(), texts, strict=True)]),
            "long name": pa.array(texts, pa.large_string()),
            "list": pa.array([[i, i] for i in range(count)]),
            "nothing": pa.nulls(count),
        }
    )


@pytest.mark.parametrize("pieces", [[50], [20_000, 7, 1], [5] * 40, [40_000, 20_000, 300, 20, 1]])
@pytest.mark.parametrize("kept", [1, 3])
def test_rows_are_found_in_any_order(pieces: list[int], kept: int) -> None:
    """In one chunk or many, small and large, whole or with gaps, with some in the newest batch, which may be in pieces."""
    generator, count = np.random.default_rng(1), sum(pieces)
    table = every_kind(count)
    store, base = RowStore(table.schema), 0
    for piece in pieces:
        store.remember(base, table.slice(base, piece), np.arange(base, base + piece)[base % kept :: kept])
        base += piece
    held = np.concatenate([chunk.seq for chunk in store.chunks])
    for first in (0, len(held) // 3):  # then of rows that begin within a chunk
        store.forget_all_but(held[first:])
        for asked in (1, 2, 40, min(len(held), 3000), 9000):
            seq = generator.choice(held[first:], asked)
            assert found(store, seq, count, None) == table.take(seq)
            mixed = np.append(seq, [count + 3, count])
            for newest in (table.slice(0, 4), pa.concat_tables([table.slice(0, 3), table.slice(3, 1)])):
                assert found(store, mixed, count, newest) == table.take(np.append(seq, [3, 0]))


def found(store: RowStore, seq: np.ndarray, base: int, batch: pa.Table | None) -> pa.Table:
    table = pa.table(store.find(seq, base, batch), schema=store.schema)
    table.validate(full=True)
    return table.combine_chunks()


@pytest.mark.parametrize("seq", [4, 10, -1, 7])
@pytest.mark.parametrize("times", [1, 1000], ids=["few", "many"])
def test_rows_that_were_not_kept_are_never_made_up(seq: int, times: int) -> None:
    table = pa.table({"x": np.arange(10.0)})
    store = RowStore(table.schema)
    store.remember(0, table, np.array([0, 1, 2, 3, 5, 6, 8, 9]))
    with pytest.raises(AssertionError, match="not kept"):
        store.find(np.array([3, seq] * times), 10, None)


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


@pytest.mark.parametrize("many", [1, 5], ids=["one", "a grid"])
@pytest.mark.parametrize("kind", ["top", "threshold", "threshold with keys", "top with keys"])
def test_rows_that_wait_for_their_slide_are_kept_in_their_order(kind: str, many: int) -> None:
    """They came in several pushes, and no slide has closed: nothing else is needed."""
    queries: list[sb.TopK | sb.Threshold] = []
    for at in range(many):
        score, window = sb.linear({"x": 1.0, "y": float(at)}), sb.TimeWindow(100, 100)
        if kind.startswith("top"):
            queries.append(sb.TopK(name=f"q{at}", k=9, score=score, window=window))
        else:
            queries.append(sb.Threshold(name=f"q{at}", above=0.0, score=score, window=window))
    monitor = sb.Monitor(queries, time="t", key="id" if kind.endswith("keys") else None)
    before = 0
    for count in (5, 1, 4):
        seq = np.arange(before, before + count)
        monitor.push({"t": 50 - seq, "x": 1.0 + seq, "y": np.zeros(count), "id": seq, "name": [f"row {i}" for i in seq]})
        before += count
    monitor.shrink()
    monitor.advance(100)
    for query in queries:
        assert monitor.top(query.name).column("name").to_pylist() == [f"row {i}" for i in range(9, -(kind[:3] != "top"), -1)]

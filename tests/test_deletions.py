"""Rows deleted by key: windows without them, against a plain list of rows; and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from played import reloaded
from skyband.algorithms.spatial import crowd
from skyband.changes import fold
from skyband.lanes import CrowdLane
from skyband.saving import monitor_to_bytes

SCORES = {
    "x": lambda x, y: x,
    "x * y": lambda x, y: x * y,
    "abs(x - 1) - y": lambda x, y: abs(x - 1) - y,
}


@dataclass
class Plain:
    """One query over count windows, by sorting the window after every call."""

    k: int
    size: int
    slide: int
    score: str
    since: int = 0
    rows: list[tuple[Any, float]] = field(default_factory=list)  # key and score of every row; key None once deleted

    def push(self, key: Any, x: float, y: float) -> None:
        self.rows.append((key, SCORES[self.score](x, y)))

    @property
    def end(self) -> int:
        return len(self.rows) // self.slide * self.slide

    def top(self) -> list[int]:
        held = range(max(self.end - self.size, self.since), self.end)
        ranked = [
            (-self.rows[seq][1], -seq) for seq in held if self.rows[seq][0] is not None and not math.isnan(self.rows[seq][1])
        ]
        return [-seq for _, seq in sorted(ranked)[: self.k]]

    def is_live(self, seq: int, sizes: list[int]) -> bool:
        return seq >= self.end - max(sizes)


numbers = st.sampled_from([0.0, 1.0, 2.0, 3.0, -1.0, math.nan, math.inf])


@pytest.mark.parametrize("texts", [False, True], ids=["numbers", "texts"])
@given(data=st.data())
def test_windows_are_those_without_the_rows_deleted(texts: bool, data: st.DataObject) -> None:
    compare(texts, data)


@given(data=st.data())
def test_they_are_where_a_grid_is_left_for_a_scan_and_taken_up_again(data: st.DataObject) -> None:
    with patch.multiple(crowd, _LOOK=1, _WINDOWS=0):
        compare(False, data)


def compare(texts: bool, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 9), label="size")
    slide = data.draw(st.integers(1, size), label="slide")
    asked = [
        Plain(data.draw(st.integers(1, 3)), size, slide, data.draw(st.sampled_from(sorted(SCORES))))
        for _ in range(data.draw(st.integers(1, 3)))
    ]
    queries = [
        sb.TopK(name=f"q{at}", k=one.k, score=one.score, window=sb.CountWindow(size, slide=slide), algorithm=algorithm)
        for at, (one, algorithm) in enumerate(zip(asked, ["auto", "tma(grid=3)", "tma(grid=1)"], strict=False))
    ]
    monitor = sb.Monitor(queries, key="id")
    folded: pa.Table | None = None
    name = (lambda number: f"k{number}") if texts else (lambda number: number)
    kind = pa.string() if texts else pa.int64()
    seen = 0
    deleted: set[int] = set()
    missing = 0
    for _ in range(data.draw(st.integers(1, 8), label="calls")):
        call = data.draw(st.sampled_from(["push", "push", "delete", "save"]))
        if call == "save":
            monitor = reloaded(monitor)
            continue
        if call == "push":
            drawn = data.draw(st.lists(st.tuples(numbers, numbers), max_size=8), label="rows")
            keys = [name(seen + at) for at in range(len(drawn))]
            columns = {"x": [x for x, _ in drawn], "y": [y for _, y in drawn]}
            schema = pa.schema([("id", kind), ("x", pa.float64()), ("y", pa.float64())])
            results = monitor.push(pa.table({"id": pa.array(keys, kind), **columns}, schema=schema))
            for key, (x, y) in zip(keys, drawn, strict=True):
                for one in asked:
                    one.push(key, x, y)
            seen += len(drawn)
        else:
            wanted = data.draw(st.lists(st.integers(0, max(seen, 1)), max_size=4), label="keys")
            results = monitor.delete([name(number) for number in wanted])
            for number in wanted:
                if number < seen and number not in deleted and asked[0].is_live(number, [size]):
                    deleted.add(number)
                    for one in asked:
                        one.rows[number] = (None, one.rows[number][1])
                else:
                    missing += 1
        folded = fold(results, folded) if seen else None
        for lane in monitor._lanes:
            assert isinstance(lane, CrowdLane)
            lane.structure.check_invariants()
        for at, one in enumerate(asked):
            top = monitor.top(f"q{at}")
            assert top["seq"].to_pylist() == one.top()
            if folded is not None:
                mine = folded.filter(pa.compute.equal(folded["query"], f"q{at}"))
                assert sorted(mine["seq"].to_pylist()) == sorted(one.top())
    if seen:
        assert (monitor.stats("q0")["deleted"], monitor.stats("q0")["not_found"]) == (len(deleted), missing)


def watched(**more: Any) -> sb.Monitor:
    query = sb.TopK(name="q", k=2, score="x", window=sb.CountWindow(4), **more)
    monitor = sb.Monitor([query], key="id")
    monitor.push({"id": [1, 2, 3, 4], "x": [5.0, 9.0, 7.0, 1.0]})
    return monitor


def keyed(name: Callable[[int], Any]) -> sb.Monitor:
    monitor = sb.Monitor([sb.TopK(name="q", k=2, score="x", window=sb.CountWindow(4))], key="id")
    monitor.push({"id": [name(number) for number in (1, 2, 3, 4)], "x": [5.0, 9.0, 7.0, 1.0]})
    return monitor


def test_a_deleted_row_leaves_and_the_next_best_enters_at_once() -> None:
    monitor = watched()
    changes = monitor.delete([2])
    assert changes.select(["window_end", "event", "rank", "id"]).to_pylist() == [
        {"window_end": 4, "event": "leave", "rank": None, "id": 2},
        {"window_end": 4, "event": "enter", "rank": 2, "id": 1},
    ]
    assert monitor.top("q")["id"].to_pylist() == [3, 1]
    assert monitor.delete([2, 77]).num_rows == 0
    assert monitor.stats("q")["deleted"] == 1 and monitor.stats("q")["not_found"] == 2
    assert monitor.stats("q")["algorithm"] == "tma"


def test_a_key_may_come_again_once_its_row_is_gone() -> None:
    monitor = watched()
    with pytest.raises(sb.SchemaError, match=r"row 1 of the batch has the key 2 of a live row \(seq 1\)"):
        monitor.push({"id": [5, 2], "x": [1.0, 1.0]})
    with pytest.raises(sb.SchemaError, match="the key 6 stands more than once"):
        monitor.push({"id": [6, 6], "x": [1.0, 1.0]})
    monitor.delete([2])
    monitor.push({"id": [2], "x": [8.0]})
    assert monitor.top("q")["id"].to_pylist() == [2, 3]
    monitor.push({"id": [10, 11, 12, 13], "x": [0.0, 0.0, 0.0, 0.0]})
    monitor.push({"id": [3], "x": [2.0]})  # the first row with key 3 has left the window
    assert monitor.top("q")["seq"].to_pylist() == [9, 8]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"algorithm": "sma"}, "'sma' cannot do without rows it has dropped; use one of 'oracle', 'tma', 'cpm'"),
        ({"algorithm": "strict"}, "'strict' cannot do without rows"),
        ({"algorithm": "tsl"}, "'tsl' cannot do without rows"),
        ({"score": np.sum}, "no callable"),
    ],
)
def test_what_cannot_delete_is_refused_where_it_is_asked(asked: dict[str, Any], text: str) -> None:
    given_: dict[str, Any] = {"name": "q", "k": 1, "score": "x", "window": sb.CountWindow(3), **asked}
    with pytest.raises(sb.QueryError, match=text):
        sb.Monitor([sb.TopK(**given_)], key="id", time="t")


def test_keys_that_cannot_be_used_change_nothing(tmp_path: Path) -> None:
    with pytest.raises(sb.QueryError, match="key must be the name of a column"):
        sb.Monitor(key="")
    with pytest.raises(sb.StateError, match="name their column"):
        sb.Monitor().delete([1])
    monitor = watched()
    for batch, text in [
        ({"id": [None, 9], "x": [1.0, 1.0]}, "row 0 of the batch has no key"),
    ]:
        with pytest.raises(sb.SchemaError, match=text):
            monitor.push(batch)
    with pytest.raises(sb.SchemaError, match="takes keys of the column 'id'"):
        monitor.delete(["a"])
    fresh = sb.Monitor([sb.TopK(name="q", k=1, score="x", window=sb.CountWindow(3))], key="id")
    with pytest.raises(sb.SchemaError, match="the stream does not have"):
        fresh.push({"x": [1.0]})
    with pytest.raises(sb.SchemaError, match="keys are whole numbers or texts"):
        fresh.push({"x": [1.0], "id": [1.5]})
    monitor.save(tmp_path / "state")
    loaded = sb.Monitor.load(tmp_path / "state")
    assert loaded.delete([3])["id"].to_pylist() == monitor.delete([3])["id"].to_pylist() == [3, 1]


def frame(**columns: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(columns)


@pytest.mark.parametrize("keys", ["numbers", "texts"])
def test_keys_may_come_in_any_iterable(keys: str) -> None:
    number = {"numbers": int, "texts": str}[keys]
    kinds: list[Callable[[list[Any]], Any]] = [list, tuple, set, iter, np.array, pa.array]
    for made in kinds:
        monitor = keyed(number)
        assert monitor.delete(made([number(2), number(77)]))["id"].to_pylist() == [number(2), number(1)], made
        assert (monitor.stats("q")["deleted"], monitor.stats("q")["not_found"]) == (1, 1)
        monitor.push({"id": [number(2)], "x": [8.0]})  # the key is free again
        assert monitor.top("q")["id"].to_pylist() == [number(2), number(3)]
    for several in (
        (number(key) for key in [2]),
        frame(id=[number(2)])["id"],
        frame(id=[number(2)])["id"].astype("category"),
        pa.chunked_array([[number(2)], [number(2)]]),
        pa.array([number(2)]).dictionary_encode(),
        [None, number(2)],
        range(2, 3) if keys == "numbers" else ["2"],
    ):
        monitor = keyed(number)
        assert monitor.delete(several)["event"].to_pylist() == ["leave", "enter"]
        assert monitor.top("q")["id"].to_pylist() == [number(3), number(1)]


def test_whole_numbers_may_be_written_as_floats_and_reach_beyond_int64() -> None:
    monitor = watched()
    monitor.delete([2.0])
    monitor.delete(np.array([3.0]))
    assert monitor.top("q")["id"].to_pylist() == [1, 4]
    wide = sb.Monitor([sb.TopK(name="q", k=1, score="x", window=sb.CountWindow(4))], key="id")
    wide.delete([2**63])
    wide.push({"id": np.array([1, 2**63, 2**64 - 1], np.uint64), "x": [1.0, 2.0, 3.0]})
    wide.delete([2**64 - 1, 2**63, 5])
    assert wide.top("q")["id"].to_pylist() == [1] and wide.stats("q")["not_found"] == 2


ONE = r"got {}; to delete one row: delete\(\[{}\]\)"
BAD = [
    ("numbers", [2.9], "truncated"),
    ("numbers", [1, 2.9], "truncated"),
    ("numbers", np.array([2.9]), "truncated"),
    ("numbers", np.array([math.nan]), "truncated"),
    ("numbers", [True], "got keys of type bool"),
    ("numbers", ["2"], "got keys of type string"),
    ("numbers", np.array(["2"]), "got keys of type string"),
    ("numbers", [2, "3"], "takes keys of the column 'id', of type int64"),
    ("numbers", [2, object()], "takes keys of the column 'id'"),
    ("numbers", [[2]], "got keys of type list"),
    ("numbers", np.array([[2]]), "1-dimensional"),
    ("numbers", pa.chunked_array([pa.array([2], pa.timestamp("s"))]), "got keys of type timestamp"),
    ("numbers", [2**70], "too large"),
    ("numbers", 2, ONE.format(2, 2)),
    ("numbers", 2.9, "got 2.9; to delete one row"),
    ("numbers", np.int64(2), r"to delete one row: delete\(\[np.int64\(2\)\]\)"),
    ("numbers", np.array(2), "to delete one row"),
    ("numbers", None, "got None$"),
    ("texts", [2], "got keys of type int64"),
    ("texts", [2.0], "got keys of type int64"),
    ("texts", [b"2"], "got keys of type binary"),
    ("texts", ["\ud800"], "surrogates"),
    ("texts", "23", ONE.format("'23'", "'23'")),
    ("texts", b"23", ONE.format("b'23'", "b'23'")),
    ("texts", bytearray(b"23"), "to delete one row"),
    ("texts", {"id": ["2"]}, "got a dict; give its column of keys alone"),
    ("texts", pa.table({"2": ["2"]}), "got a Table; give its column of keys alone"),
    ("texts", frame(id=["2"]), "got a DataFrame; give its column of keys alone"),
]


@pytest.mark.parametrize(("kind", "keys", "text"), BAD, ids=[f"{kind}-{at}" for at, (kind, _, _) in enumerate(BAD)])
def test_what_are_no_keys_is_refused_and_changes_nothing(kind: str, keys: Any, text: str) -> None:
    monitor = keyed({"numbers": int, "texts": str}[kind])
    before = monitor_to_bytes(monitor)
    with pytest.raises(sb.SchemaError, match=text):
        monitor.delete(keys)
    assert monitor_to_bytes(monitor) == before


@pytest.mark.parametrize("keys", [5, 5.5, "abc", b"abc", None, {"id": [1]}, [2.5], [True], [b"a"], [1, "a"], ...], ids=repr)
def test_the_same_is_refused_before_the_first_row(keys: Any) -> None:
    monitor = sb.Monitor([sb.TopK(name="q", k=2, score="x", window=sb.CountWindow(4))], key="id")
    with pytest.raises(sb.SchemaError, match=r"delete\(\) takes keys"):
        monitor.delete(keys)
    for unknown in (["a", "b"], (key for key in [7]), []):
        assert monitor.delete(unknown).num_rows == 0
    monitor.push({"id": [1], "x": [1.0]})
    assert (monitor.stats("q")["deleted"], monitor.stats("q")["not_found"]) == (0, 3)


def test_an_error_among_the_keys_changes_nothing() -> None:
    def broken() -> Any:
        yield 2
        raise RuntimeError("no more")

    monitor = watched()
    before = monitor_to_bytes(monitor)
    with pytest.raises(RuntimeError, match="no more"):
        monitor.delete(broken())
    assert monitor_to_bytes(monitor) == before


def test_deletions_in_any_order_among_many_rows() -> None:
    generator = np.random.default_rng(5)
    queries = [
        sb.TopK(name=f"q{at}", k=10, score=sb.linear({"x": w, "y": 1 - w}), window=sb.CountWindow(2000, slide=50))
        for at, w in enumerate(generator.random(20))
    ]
    monitor = sb.Monitor(queries, key="id")
    x, y = generator.random(8000), generator.random(8000)
    alive = np.ones(8000, bool)
    for begin in range(0, 8000, 500):
        rows = np.arange(begin, begin + 500)
        monitor.push({"id": np.array([f"row {at}" for at in rows]), "x": x[rows], "y": y[rows]})
        low = max(begin + 500 - 2000, 0)
        gone = generator.choice(np.arange(low, begin + 500), 120, replace=False)
        monitor.delete([f"row {at}" for at in gone])
        alive[gone] = False
        for at, query in enumerate(queries):
            weights = dict(query.score.weights)  # type: ignore[union-attr]
            score = weights["x"] * x[low : begin + 500] + weights["y"] * y[low : begin + 500]
            score = np.where(alive[low : begin + 500], score, -1.0)
            right = low + np.lexsort((-np.arange(len(score)), -score))[:10]
            assert monitor.top(f"q{at}")["seq"].to_pylist() == right.tolist()


def test_a_core_packed_while_it_held_little_has_room_for_what_a_search_finds() -> None:
    queries = [
        sb.TopK(name=f"q{at}", k=30, score=f"x * {at + 1}", window=sb.CountWindow(40), algorithm="tma") for at in range(3)
    ]
    monitor = sb.Monitor(queries, key="id")
    x = np.random.default_rng(3).random(80)
    monitor.push({"id": np.arange(35), "x": x[:35]})
    monitor.delete(np.arange(34))
    monitor = reloaded(monitor)
    monitor.push({"id": np.arange(35, 80), "x": x[35:]})
    for at in range(3):
        assert monitor.top(f"q{at}")["seq"].to_pylist() == (40 + np.argsort(-x[40:])[:30]).tolist()
    for lane in monitor._lanes:
        assert isinstance(lane, CrowdLane)
        lane.structure.check_invariants()


def test_a_window_of_the_rows_it_was_searched_for_is_searched_again_when_one_was_deleted() -> None:
    window = sb.TimeWindow(10, slide=1)
    monitor = sb.Monitor([sb.TopK(name="q", k=2, score="x", window=window, emit="snapshots")], time="t", key="id")
    monitor.push({"id": range(5), "t": [0, 5, 5, 5, 5], "x": [10.0, 9.0, 8.0, 7.0, 6.0]})
    assert monitor.advance(11)["id"].to_pylist()[-2:] == [1, 2]  # the first row has left, so that the next is searched for
    assert monitor.delete([1])["id"].to_pylist() == [2, 3]
    assert monitor.advance(12)["id"].to_pylist() == [2, 3]


def test_a_row_that_comes_back_by_a_deletion_is_no_arrival_however_many_there_were() -> None:
    monitor = sb.Monitor([sb.TopK(name="q", k=1, score="x", window=sb.CountWindow(20, slide=10), emit="arrivals")], key="id")
    monitor.push({"id": [0], "x": [5.0]})
    (lane,) = monitor._lanes
    assert isinstance(lane, CrowdLane)
    lane.ranked_limit = 0  # as when thousands have been told of
    told = monitor.push({"id": range(1, 29), "x": [9.0 if at == 15 else 0.0 for at in range(1, 29)]})
    assert told["id"].to_pylist() == [0, 15]
    assert monitor.delete([15]).num_rows == 0  # the window of the first 20 rows is answered again, and row 0 is its best
    assert monitor.top("q")["id"].to_pylist() == [0]


@pytest.mark.parametrize("algorithm", ["tma(grid=1)", "tma(grid=2)", "oracle"])
@pytest.mark.parametrize("window", [sb.CountWindow(1), sb.TimeWindow(1, 1)], ids=["count", "time"])
def test_rows_of_one_window_after_the_other_are_deleted(window: sb.CountWindow | sb.TimeWindow, algorithm: str) -> None:
    monitor = sb.Monitor([sb.TopK(name="q", k=1, score="x", window=window, algorithm=algorithm)], time="t", key="id")
    for row in range(4):  # each worse than the one before
        monitor.push({"id": [row], "t": [row], "x": [-float(row)]})
        monitor.advance(row + 1)
        assert monitor.top("q")["id"].to_pylist() == [row]
        assert monitor.delete([row])["event"].to_pylist() == ["leave"]


def test_a_query_whose_rows_were_all_deleted_is_indexed_by_its_threshold() -> None:
    window = sb.CountWindow(4)
    monitor = sb.Monitor([sb.TopK(name="q", k=1, score="abs(x)", window=window, algorithm="tma(grid=2)")], key="id")
    monitor.push({"id": range(8), "x": [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0]})
    monitor.delete([7])
    monitor = reloaded(monitor)
    assert monitor.stats("q")["search"] == "scan"  # a row as good may be in either cell
    (lane,) = monitor._lanes
    assert isinstance(lane, CrowdLane)
    lane.structure.check_invariants()

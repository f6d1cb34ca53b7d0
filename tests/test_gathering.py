"""Which queries that leave the algorithm to us are answered together, and that it changes no answer."""

from __future__ import annotations

import math
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from played import reloaded
from skyband import gathering
from skyband.algorithms import choose
from skyband.lanes import CrowdLane

CHOSEN = f"sma(spare={choose.SPARE})"
WINDOW = sb.CountWindow(200, slide=20)


def points(rows: int, seed: int = 0, columns: str = "xyz") -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {name: generator.random(rows) for name in columns}


def sums(count: int, prefix: str = "q", **more: Any) -> list[sb.TopK]:
    """Queries on so many distinct scores over x and y."""
    given: dict[str, Any] = {"k": 3, "window": WINDOW, **more}
    return [sb.TopK(name=f"{prefix}{i}", score=sb.linear({"x": i + 1.0, "y": 2.0}), **given) for i in range(count)]


def crowds(monitor: sb.Monitor) -> list[CrowdLane]:
    return [lane for lane in monitor._lanes if isinstance(lane, CrowdLane)]


def oracle(query: Any, name: str) -> sb.TopK:
    given = {field: getattr(query, field) for field in ("k", "score", "window", "order", "where", "emit")}
    return sb.TopK(name=name, algorithm="oracle", **given)


def test_queries_that_come_together_join_a_crowd_together() -> None:
    monitor = sb.Monitor(sums(choose.MANY))
    monitor.push(points(250))
    (crowd,) = crowds(monitor)
    for query in [*sums(30, "later", emit="arrivals"), oracle(sums(7)[-1], "oracle")]:
        monitor.add(query)
    with patch.object(crowd.structure, "add", wraps=crowd.structure.add) as add:
        monitor.push(points(250, seed=1))
    crowd.structure.check_invariants()
    assert add.call_count == 1 and len(crowd.members) == choose.MANY + 30
    assert monitor.top("later6")["seq"].to_pylist() == monitor.top("oracle")["seq"].to_pylist()


def test_queries_that_come_one_by_one_gather_once_there_are_many() -> None:
    monitor = sb.Monitor()
    queries = sums(choose.MANY + 10)
    for number, query in enumerate(queries):
        monitor.add(query)
        monitor.add(oracle(query, f"oracle{number}"))
        monitor.push(points(7, seed=number))
        if number == choose.MANY + 4:
            monitor = reloaded(monitor)
    (crowd,) = crowds(monitor)
    assert [member.query.name for member in crowd.members] == [query.name for query in queries[choose.MANY - 1 :]]
    assert {monitor.stats(query.name)["algorithm"] for query in queries[: choose.MANY - 1]} <= {"shared", "sap"}
    assert monitor.stats(queries[-1].name)["algorithm"] == CHOSEN
    monitor.push(points(450, seed=99))
    for number, query in enumerate(queries):
        assert monitor.top(query.name)["seq"].to_pylist() == monitor.top(f"oracle{number}")["seq"].to_pylist()


def test_queries_that_were_cancelled_or_have_another_window_do_not_count() -> None:
    monitor = sb.Monitor(sums(choose.MANY - 1))
    monitor.push(points(50))
    monitor.cancel("q0")
    monitor.add(sb.TopK(name="late", k=1, score=sb.linear({"x": -1.0, "y": 1.0}), window=WINDOW))
    monitor.add(sb.TopK(name="other", k=1, score=sb.linear({"x": -1.0, "y": 1.0}), window=sb.CountWindow(100)))
    monitor.push(points(50, seed=1))
    assert not crowds(monitor)
    monitor.add(sb.TopK(name="one more", k=1, score=sb.linear({"x": -2.0, "y": 1.0}), window=WINDOW))
    monitor.push(points(50, seed=2))
    assert [member.query.name for lane in crowds(monitor) for member in lane.members] == ["one more"]


# --- different columns ------------------------------------------------------------------------------------------------------

COLUMNS = ("a", "b", "c", "d")
odd_numbers = st.sampled_from([0.0, 1.0, 2.0, -1.0, 0.5, math.inf, -math.inf, math.nan, None])


@st.composite
def scores(draw: st.DrawFn) -> Any:
    names = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3, unique=True))
    numbers = {name: draw(st.sampled_from([0.0, 1.0, -2.0, 0.5])) for name in names}
    kind = draw(st.sampled_from(["linear", "linear", "distance", "expression"]))
    if kind == "expression":
        return " + ".join(f"{name} * {number}" for name, number in numbers.items())
    return sb.linear(numbers) if kind == "linear" else sb.distance(numbers)


@st.composite
def asked(draw: st.DrawFn, number: int, emissions: list[str]) -> sb.TopK:
    return sb.TopK(
        name=f"q{number}",
        k=draw(st.integers(1, 3)),
        score=draw(scores()),
        window=sb.CountWindow(draw(st.sampled_from([5, 9])), slide=draw(st.sampled_from([1, 3]))),
        order=draw(st.sampled_from(["asc", "desc"])),
        where=draw(st.sampled_from([None, None, {"b": (0.0, None)}, "c < a or d == 1"])),
        emit=draw(st.sampled_from(emissions)),
    )


def told(table: pa.Table, name: str) -> list[tuple[Any, ...]]:
    """The result rows of one query, NaN-free but for its own columns."""
    found = [row for row in table.to_pylist() if row["query"] == name]
    return [tuple(row[column] for column in ("window_end", "event", "rank", "score", "seq")) for row in found]


def compare_with_oracle(data: st.DataObject, emissions: list[str]) -> None:
    """Queries over any columns come and go; each is asked twice, left to us and of the oracle."""
    schema = pa.schema([(name, pa.float64()) for name in COLUMNS])
    monitor, came = sb.Monitor(), 0
    for _ in range(data.draw(st.integers(1, 5), label="calls")):
        for _ in range(data.draw(st.integers(0, 4), label="more queries")):
            query = data.draw(asked(came, emissions))
            monitor.add(query)
            monitor.add(oracle(query, f"o{came}"))
            came += 1
        if monitor.queries and data.draw(st.booleans(), label="cancel"):
            number = data.draw(st.sampled_from(sorted(int(name[1:]) for name in monitor.queries if name[0] == "q")))
            monitor.cancel(f"q{number}")
            monitor.cancel(f"o{number}")
        if data.draw(st.booleans(), label="save"):
            monitor = reloaded(monitor)
        drawn = data.draw(st.lists(st.tuples(*[odd_numbers] * len(COLUMNS)), max_size=12), label="rows")
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in drawn]
        results = monitor.push(pa.Table.from_pylist(rows, schema))
        for lane in crowds(monitor):
            lane.structure.check_invariants()
        for name in [name for name in monitor.queries if name[0] == "q"]:
            twin = f"o{name[1:]}"
            assert told(results, name) == told(results, twin)
            assert monitor.top(name)["seq"].to_pylist() == monitor.top(twin)["seq"].to_pylist()
            assert monitor.stats(name)["nulls"] == monitor.stats(twin)["nulls"]


@given(data=st.data(), many=st.integers(1, 3), alike=st.sampled_from([1, 2, 1000]))
def test_scores_over_different_columns_in_one_grid_are_those_of_the_oracle(data: st.DataObject, many: int, alike: int) -> None:
    with patch.object(choose, "MANY", many), patch.object(gathering, "MANY_ALIKE", alike):
        compare_with_oracle(data, ["changes", "snapshots", "arrivals", "none"])


def test_a_column_ranked_under_a_condition_leaves_the_rows_of_others_as_they_are() -> None:
    queries = [
        sb.TopK(name="d", k=2, score=sb.linear({"d": 1.0}), where="c < a or d == 1", window=WINDOW),
        sb.TopK(name="nothing", k=2, score=sb.linear({"a": 0.0, "d": 0.0}), window=WINDOW),  # 0 · ∞ is no number
    ]
    with patch.object(choose, "MANY", 2):
        monitor = sb.Monitor([*queries, oracle(queries[1], "oracle")])
        monitor.push({"a": [0.0, 1.0], "c": [0.0, 0.0], "d": [math.inf, 1.0]})
    assert [member.query.name for lane in crowds(monitor) for member in lane.members] == ["d", "nothing"]
    assert monitor.stats("nothing")["nulls"] == monitor.stats("oracle")["nulls"] == 1


def over(columns: str, number: int, **more: Any) -> sb.TopK:
    score = sb.linear(dict.fromkeys(columns, 1.0 + number) | {columns[0]: 1.0})
    given: dict[str, Any] = {"k": 3, "window": WINDOW, **more}
    return sb.TopK(name=f"{columns}{number}", score=score, **given)


def columns_of(monitor: sb.Monitor) -> list[str]:
    return sorted("".join(lane.structure.attributes) for lane in crowds(monitor))


def test_queries_whose_columns_overlap_share_a_grid_over_all_of_them() -> None:
    monitor = sb.Monitor([over(columns, i) for columns in ("ab", "bc", "cd", "abc") for i in range(5)])
    monitor.push(points(30, columns="abcdefgh"))
    assert columns_of(monitor) == ["abcd"] and len(monitor._lanes) == 1
    monitor.add(over("ad", 0))  # finds the crowd
    monitor.add(over("ae", 0))  # does not
    monitor.push(points(30, seed=1, columns="abcdefgh"))
    assert columns_of(monitor) == ["abcd"] and len(monitor._lanes) == 2
    apart = sb.Monitor([over(columns, i) for columns in ("ab", "cd", "efg", "gh") for i in range(16)])
    apart.push(points(30, columns="abcdefgh"))
    assert columns_of(apart) == ["ab", "cd", "efgh"]
    single = sb.Monitor([sb.TopK(name=c, k=1, score=c, window=WINDOW) for c in "abcdefgh"])
    with patch.object(choose, "MANY", 2):
        single.push(points(30, columns="abcdefgh"))
    assert len(single._lanes) == 8


def test_many_scores_over_the_same_columns_have_a_grid_to_themselves() -> None:
    with patch.object(gathering, "MANY_ALIKE", 20):
        monitor = sb.Monitor([over("ab", i) for i in range(20)] + [over("bc", i) for i in range(16)])
        monitor.push(points(30, columns="abc"))
    assert columns_of(monitor) == ["ab", "bc"]


def test_a_column_that_nobody_reads_any_more_may_become_one_of_texts() -> None:
    monitor = sb.Monitor([over("ab", i) for i in range(16)] + [over("bc", 0)])
    data = points(30, columns="ab")
    monitor.push({**data, "c": pa.nulls(30)})
    assert columns_of(monitor) == ["abc"] and monitor.stats("bc0")["nulls"] == 30
    monitor.cancel("bc0")
    monitor.push({**data, "c": ["text"] * 30})
    assert monitor.stats("ab0")["nulls"] == 0 and len(monitor.top("ab0")) == 3


def test_snapshots_of_every_window_come_out_of_a_crowd_whether_it_changed_or_not() -> None:
    queries = sums(choose.MANY, emit="snapshots", window=sb.CountWindow(40, slide=2))
    monitor = sb.Monitor([*queries, *(oracle(query, f"o{at}") for at, query in enumerate(queries))])
    for seed, rows in enumerate((1, 30, 301, 3)):
        results = monitor.push(points(rows, seed))
        for at, query in enumerate(queries):
            assert told(results, query.name) == told(results, f"o{at}")
    assert len(crowds(monitor)) == 1 and len(crowds(monitor)[0].members) == choose.MANY

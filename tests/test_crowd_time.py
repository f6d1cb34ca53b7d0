"""Many queries with scores of their own over time windows: one structure for all, against the oracle in lanes of its own."""

from __future__ import annotations

import math
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from played import reloaded
from skyband.algorithms import choose
from skyband.algorithms.spatial import crowd, scanned
from skyband.lanes import CrowdTimeLane

ROW = pa.schema([("t", pa.int64()), ("x", pa.float64()), ("y", pa.float64()), ("tag", pa.int64())])
SPANS = [(10, 10), (10, 3), (7, 2), (12, 4), (3, 1)]
ALGORITHMS = ["auto", "auto", "tma", "sma", "tma(grid=3)", "sma(grid=1, spare=1)", "cpm", "snn", "tsl"]
STEPS = [0, 0, *range(-6, 10)]  # of time, from row to row
GENERATOR = np.random.default_rng(5)
JIT = not __import__("numba").config.DISABLE_JIT
numbers = st.sampled_from([0.0, 1.0, 2.0, -1.0, 0.5, math.inf, -math.inf, math.nan, None])


@st.composite
def asked(draw: st.DrawFn, number: int) -> dict[str, Any]:
    names = draw(st.sampled_from(["x", "xy", "yx", "y"]))
    weights = {name: draw(st.sampled_from([1.0, -2.0, 0.0, 0.5])) for name in names}
    size, slide = draw(st.sampled_from(SPANS))
    algorithm = draw(st.sampled_from(ALGORITHMS))
    expression = " + ".join(f"{name} * {weight} * {name}" for name, weight in weights.items())
    scores = {"linear": sb.linear(weights), "distance": sb.distance(weights), "expression": expression}
    kinds = ["distance"] if algorithm in ("cpm", "snn") else sorted(scores) if JIT else ["distance", "linear"]
    return {
        "k": draw(st.sampled_from([1, 2, 3, 4, 9])),  # also more than a window is long, where ticks have several rows
        "score": scores[draw(st.sampled_from(kinds))],
        "window": sb.TimeWindow(size, slide),
        "order": draw(st.sampled_from(["asc", "desc"])),
        "emit": draw(st.sampled_from(["changes", "snapshots", "arrivals", "none"])),
        "where": draw(st.sampled_from([None, None, {"x": (0.0, 1.0)}] + ["x > y or y == 2"] * JIT)),
        "algorithm": algorithm,
    }


def lanes(monitor: sb.Monitor) -> list[CrowdTimeLane]:
    return [lane for lane in monitor._lanes if isinstance(lane, CrowdTimeLane)]


def told(table: pa.Table, name: str) -> list[tuple[Any, ...]]:
    columns = ("window_end", "event", "rank", "score", "seq", "tag")
    return [tuple(row[column] for column in columns) for row in table.to_pylist() if row["query"] == name]


def compare(monitor: sb.Monitor, results: pa.Table) -> None:
    for lane in lanes(monitor):
        lane.structure.check_invariants()
    compare_answers(monitor, results)


def compare_answers(monitor: sb.Monitor, results: pa.Table) -> None:
    for name in [name for name in monitor.queries if name[0] == "q"]:
        twin = f"o{name[1:]}"
        assert told(results, name) == told(results, twin)
        mine, other = monitor.top(name), monitor.top(twin)
        assert mine["seq"].to_pylist() == other["seq"].to_pylist() and mine["tag"].to_pylist() == other["tag"].to_pylist()
        figures, wanted = monitor.stats(name), monitor.stats(twin)
        assert [figures[one] for one in ("rows", "late", "nulls")] == [wanted[one] for one in ("rows", "late", "nulls")]


@given(
    data=st.data(), lateness=st.sampled_from([0, 3]), piece=st.sampled_from([2, 1 << 13]), look=st.sampled_from([1, 1 << 14])
)
def test_answers_are_those_of_the_oracle_whatever_the_order_of_rows(
    data: st.DataObject, lateness: int, piece: int, look: int
) -> None:
    pieces, looks = patch.multiple(scanned, PIECE=piece, WALKED=piece), patch.multiple(crowd, _LOOK=look, _WINDOWS=0)
    with patch.object(choose, "MANY", 1), pieces, looks:
        monitor, came, now, tag = sb.Monitor(time="t", lateness=lateness), 0, 0, 0
        for _ in range(data.draw(st.integers(1, 6), label="calls")):
            for _ in range(data.draw(st.integers(0, 3), label="more queries")):
                given = data.draw(asked(came))
                monitor.add(sb.TopK(name=f"q{came}", **given))
                monitor.add(sb.TopK(name=f"o{came}", **given | {"algorithm": "oracle"}))
                came += 1
            call = data.draw(st.sampled_from(["push", "push", "push", "advance", "flush", "cancel", "save"]), label="call")
            mine = sorted(int(name[1:]) for name in monitor.queries if name[0] == "q")
            if call == "cancel" and mine:
                number = data.draw(st.sampled_from(mine))
                monitor.cancel(f"q{number}")
                monitor.cancel(f"o{number}")
            elif call == "save":
                monitor = reloaded(monitor)
            elif call == "advance" and tag:
                now += data.draw(st.integers(0, 25), label="by")
                compare(monitor, monitor.advance(now))
            elif call == "flush" and tag:
                compare(monitor, monitor.flush())
            else:
                drawn = data.draw(st.lists(st.tuples(st.sampled_from(STEPS), numbers, numbers), max_size=14), label="rows")
                rows = []
                for step, x, y in drawn:
                    rows.append({"t": now + step, "x": x, "y": y, "tag": tag})
                    now, tag = max(now, now + step), tag + 1
                results = monitor.push(pa.Table.from_pylist(rows, ROW))
                if tag:
                    compare(monitor, results)
        if tag and monitor.queries:
            compare(monitor, monitor.flush())


def stream(rows: int, begin: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(begin)
    return {"t": np.arange(begin, begin + rows), "x": generator.random(rows), "y": generator.random(rows)}


def sums(count: int, **more: Any) -> list[sb.TopK]:
    given: dict[str, Any] = {"k": 3, "window": sb.TimeWindow(100, 10), **more}
    return [sb.TopK(name=f"q{i}", score=sb.linear({"x": i + 1.0, "y": 2.0}), **given) for i in range(count)]


def test_many_scores_over_one_time_window_form_a_crowd_and_few_do_not() -> None:
    monitor = sb.Monitor(sums(choose.MANY), time="t")
    monitor.push(stream(500))
    assert len(lanes(monitor)) == len(monitor._lanes) == 1
    assert monitor.stats("q0")["algorithm"] == f"sma(spare={choose.SPARE})" and monitor.stats("q0")["search"] == "grid"
    few = sb.Monitor(sums(choose.MANY - 1), time="t")
    few.push(stream(500))
    assert len(few._lanes) == choose.MANY - 1 and not lanes(few)
    inside = sb.Monitor(sums(choose.MANY, where={"x": (0.5, None)}), time="t")
    inside.push(stream(500))
    assert len(lanes(inside)) == len(inside._lanes) == 1


def test_a_query_joins_when_no_row_waits_for_its_slide_to_close() -> None:
    monitor = sb.Monitor(sums(choose.MANY), time="t")
    monitor.push(stream(50))
    late = {"k": 3, "score": sb.linear({"x": -1.0, "y": 2.0}), "window": sb.TimeWindow(100, 10)}
    monitor.add(sb.TopK(name="waits", **late))
    monitor.push(stream(50, 50))
    assert [len(lane.members) for lane in monitor._lanes] == [choose.MANY, 1]
    monitor.advance(100)
    monitor.add(sb.TopK(name="joins", **late))
    monitor.push(stream(50, 100))
    assert [len(lane.members) for lane in monitor._lanes] == [choose.MANY + 1, 1]
    monitor.advance(150)
    monitor = reloaded(monitor)
    data = stream(50, 100)
    best = 100 + np.argsort(data["x"] - 2 * data["y"])[:3]
    assert monitor.top("joins")["seq"].to_pylist() == best.tolist() and monitor.stats("joins")["rows"] == 50
    monitor.push(stream(20, 150))
    monitor.push(stream(110, 170))  # which columns were read of rows that came before it was loaded is not known
    assert [len(lane.members) for lane in monitor._lanes] == [choose.MANY + 2]  # the rows before it are in no window any more
    assert monitor.stats("waits")["rows"] == 230 and monitor.stats("waits")["algorithm"] == monitor.stats("q0")["algorithm"]


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("lateness", [0, 50])
def test_queries_that_come_one_by_one_share_a_crowd_in_the_end(bounded: bool, lateness: int) -> None:
    monitor, begin = sb.Monitor(time="t", lateness=lateness), 0
    for at in range(24):
        given: dict[str, Any] = {"score": sb.linear({"x": 1.0 + at, "y": 1.0}), "window": sb.TimeWindow(200, 20)}
        given |= {"emit": ["changes", "snapshots", "none", "arrivals"][at % 4]}
        for kind, algorithm in (("q", "auto"), ("o", "above" if bounded else "oracle")):
            given |= {"name": f"{kind}{at}", "algorithm": algorithm}
            monitor.add(sb.Threshold(above=1.6 + at, **given) if bounded else sb.TopK(k=3, **given))
        more = stream(37, begin) if at % 2 else {"t": np.array([begin - 20]), "x": np.array([0.9]), "y": np.array([0.95])}
        compare_answers(monitor, monitor.push({**more, "tag": more["t"]}))
        begin += 37 * (at % 2)
        if at == 20:
            monitor = reloaded(monitor)
    for _ in range(8):
        more = stream(37, begin)
        compare_answers(monitor, monitor.push({**more, "tag": more["t"]}))
        begin += 37
    assert [len(lane.members) for lane in lanes(monitor)] == [24]
    compare(monitor, monitor.flush())


@pytest.mark.parametrize("bounded", [False, True])
def test_many_that_come_while_rows_wait_form_a_crowd_until_they_are_taken_over(bounded: bool) -> None:
    monitor, begin, sizes = sb.Monitor(time="t", lateness=7), 0, []
    for step in range(12):
        for at in range(choose.MANY if step in (0, 3) else 0):
            given: dict[str, Any] = {"score": sb.linear({"x": 1.0 + at, "y": 1.0}), "window": sb.TimeWindow(100, 20)}
            given |= {"emit": ["changes", "snapshots", "none", "arrivals"][at % 4]}
            for kind, algorithm in (("q", "auto"), ("o", "above" if bounded else "oracle")):
                given |= {"name": f"{kind}{step + 100 * at}", "algorithm": algorithm}
                monitor.add(sb.Threshold(above=1.6 + at, **given) if bounded else sb.TopK(k=3, **given))
        more = stream(37, begin)
        compare_answers(monitor, monitor.push({**more, "tag": more["t"]}))
        begin += 37
        sizes.append([len(lane.members) for lane in lanes(monitor)])
    assert sizes[3] == [choose.MANY, choose.MANY] and sizes[-1] == [2 * choose.MANY]
    compare(monitor, monitor.flush())


def test_a_crowd_takes_no_query_over_whose_columns_it_has_not_read() -> None:
    window, monitor, begin = sb.TimeWindow(50, 10), sb.Monitor(time="t", lateness=20), 0
    for at in range(choose.MANY):
        score = sb.linear({"x": 1.0 + at, "y": 1.0} if at else {"x": 1.0, "y": 1.0, "z": 1.0})
        monitor.add(sb.TopK(name=f"q{at}", k=3, score=score, window=window))
    for step in range(12):
        if step == 4:
            monitor.cancel("q0")  # who alone read z
            for name, algorithm in (("q99", "auto"), ("o99", "oracle")):
                score = sb.linear({"x": 0.1, "z": 1.0})
                monitor.add(sb.TopK(name=name, k=3, score=score, window=window, algorithm=algorithm))
        results = monitor.push({**stream(17, begin), "z": GENERATOR.random(17)})
        begin += 17
        if step >= 4:
            assert told(results.append_column("tag", results["seq"]), "q99") == told(
                results.append_column("tag", results["seq"]), "o99"
            )
            assert monitor.top("q99").equals(monitor.top("o99"))


@pytest.mark.parametrize("emit", ["changes", "none"])
def test_what_is_held_is_bounded_by_the_window(emit: str) -> None:
    monitor = sb.Monitor(sums(choose.MANY, emit=emit), time="t")
    held = []
    for begin in range(0, 20_000, 500):
        monitor.push(stream(500, begin))
        held.append(monitor.stats("q0")["bytes"])
    assert max(held[20:]) <= 1.5 * max(held[:20])
    assert len(lanes(monitor)[0].needed()) <= 110

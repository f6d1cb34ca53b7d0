"""save and load: a monitor put away at any point goes on as if nothing had happened."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
import streams
from played import batch_of, monitor_of, reference_of, take, take_reference, top_of
from skyband import written_rows
from skyband.layout import check, extents_of
from skyband.saving import monitor_to_bytes
from streams import EMITS, Question, Scenario

TABLE = [row for row in sb.algorithms().to_pylist() if row["family"] == "ranked" and row["exact"]]


def carried(monitor: Any, path: Path, **callables: Any) -> Any:
    """The monitor after a stay on disk."""
    monitor.save(path)
    return sb.Monitor.load(path, callables=callables) if callables else sb.Monitor.load(path)


def told(stats: Any) -> dict[str, Any]:
    """What stats say, but for the room that arrays take, rows not yet forgotten and cells that happen to be monitored."""
    chance = ("bytes", "bytes_per_query", "search", "rows_kept", "payload_bytes")
    return {key: value for key, value in dict(stats).items() if key not in chance}


def same(one: Any, other: Any) -> None:
    """Two monitors that must not be told apart."""
    assert dict(one.queries) == dict(other.queries)
    for name in one.queries:
        assert top_of(one, name) == top_of(other, name)
        assert told(one.stats(name)) == told(other.stats(name))


def life_of(kind: str, algorithm: str = "auto") -> Scenario:
    """Every way to emit, both orders, shared and unshared scores, and a query that comes and goes."""
    rows = streams.rows_of(streams.shaped("infinite", 48, seed=3), streams.timed("out of order", 48, seed=4))
    rows[40]["t"] += 100  # a gap
    asked = [
        Question(emit, 1 + number, kind, 12, 5, emit=emit, algorithm=algorithm, order=("desc", "asc")[number % 2])
        for number, emit in enumerate(EMITS)
    ]
    added = Question("added", 2, kind, 9, 4, score="expression", where="region", algorithm=algorithm)
    cuts = [0, 1, 2, 9, 10, 20, 31, 32, 40, 48]
    steps: list[Any] = [("push", rows[begin:end]) for begin, end in pairwise(cuts)]
    steps.insert(4, ("add", added))
    steps.insert(7, ("cancel", "snapshots"))
    if kind == "time":
        steps.insert(9, ("advance", rows[31]["t"] + 4))
        steps.append(("flush",))
    return Scenario(tuple(asked), 6, tuple(steps))


@pytest.mark.parametrize("kind", ["count", "time"])
def test_saved_and_loaded_at_every_point(kind: str, tmp_path: Path) -> None:
    scenario = life_of(kind)
    for put_away in range(len(scenario.steps) + 1):
        monitor, reference = monitor_of(scenario), reference_of(scenario)
        for number, step in enumerate((*scenario.steps, ("push", []))):
            if number == put_away:
                again = carried(monitor, tmp_path / "state")
                same(monitor, again)
                monitor = again
            assert take(monitor, step) == take_reference(reference, step), (put_away, number)


@pytest.mark.parametrize("kind", ["count", "time"])
@pytest.mark.parametrize("algorithm", [row["name"] for row in TABLE])
def test_saved_and_loaded_between_all_calls(algorithm: str, kind: str, tmp_path: Path) -> None:
    if kind not in next(row["windows"] for row in TABLE if row["name"] == algorithm):
        pytest.skip(f"{algorithm} keeps no {kind} windows")
    scenario = life_of(kind, algorithm)
    untouched, monitor = monitor_of(scenario), monitor_of(scenario)
    for step in scenario.steps:
        monitor = carried(monitor, tmp_path / "state")
        assert take(monitor, step) == take(untouched, step)
        same(monitor, untouched)


def without_callables(scenario: Scenario) -> Scenario:
    def plain(question: Question) -> Question:
        return replace(question, score="column") if question.score == "callable" else question

    steps = tuple(("add", plain(step[1])) if step[0] == "add" else step for step in scenario.steps)
    return replace(scenario, questions=tuple(map(plain, scenario.questions)), steps=steps)


@given(scenario=streams.scenarios(), data=st.data())
def test_any_scenario_may_be_interrupted(
    tmp_path_factory: pytest.TempPathFactory, scenario: Scenario, data: st.DataObject
) -> None:
    scenario, path = without_callables(scenario), tmp_path_factory.getbasetemp() / "interrupted"
    monitor, reference = monitor_of(scenario), reference_of(scenario)
    for step in scenario.steps:
        if reference.arrived and data.draw(st.booleans(), label="interrupt"):
            monitor = carried(monitor, path)
        assert take(monitor, step) == take_reference(reference, step)


def test_time_that_moved_before_the_first_row_is_kept(tmp_path: Path) -> None:
    scenario = Scenario((Question("q", 2, "time", 10, 5),), 0, ())
    monitor = monitor_of(scenario)
    monitor.advance(20)
    monitor = carried(monitor, tmp_path / "state")
    monitor.push(batch_of(streams.rows_of(streams.shaped("tied", 3), [19, 20, 14])))
    assert monitor.stats("q")["late"] == 2


def test_a_large_state_with_timestamps_and_texts(tmp_path: Path) -> None:
    """Thousands of live rows: falling scores, so that every row of the window may still win."""
    rows = streams.rows_of(streams.shaped("falling", 4000), [at // 2 for at in range(4000)])
    question = Question("q", 50, "time", 900, 30)
    whole, parted = (monitor_of(Scenario((question,), 5, ()), "s") for _ in range(2))
    one = [whole.push(batch_of(rows[:2500], "s")), whole.push(batch_of(rows[2500:], "s")), whole.flush()]
    other = [parted.push(batch_of(rows[:2500], "s"))]
    parted = carried(parted, tmp_path / "state")
    other += [parted.push(batch_of(rows[2500:], "s")), parted.flush()]
    assert one == other and one[1].num_rows > 100


# --- callables ---------------------------------------------------------------------------------------------


def doubled(columns: dict[str, np.ndarray]) -> np.ndarray:
    return columns["x"] * 2


def test_callables_are_handed_back(tmp_path: Path) -> None:
    asked = [
        sb.TopK(name="own", k=2, score=doubled, window=sb.CountWindow(3)),
        sb.TopK(name="plain", k=2, score="x", window=sb.CountWindow(3)),
    ]
    monitor, untouched = sb.Monitor(asked), sb.Monitor(asked)
    for batch in ({"x": [3.0, 1.0]}, {"x": [2.0, 5.0, 4.0]}):
        assert monitor.push(batch) == untouched.push(batch)
        monitor = carried(monitor, tmp_path / "state", own=doubled)
    assert monitor.top("own") == untouched.top("own")


@pytest.mark.parametrize("given", [None, {}, {"other": doubled}])
def test_a_state_with_a_callable_says_which_one_it_needs(given: Any, tmp_path: Path) -> None:
    sb.Monitor([sb.TopK(name="own", k=2, score=doubled, window=sb.CountWindow(3))]).save(tmp_path / "state")
    with pytest.raises(sb.StateError, match=r"'own'(.|\n)*callables"):
        sb.Monitor.load(tmp_path / "state", **({} if given is None else {"callables": given}))


@pytest.mark.parametrize("given", [doubled, [doubled], "own"])
def test_functions_are_handed_back_by_the_name_of_their_query(given: Any, tmp_path: Path) -> None:
    sb.Monitor([sb.TopK(name="own", k=2, score=doubled, window=sb.CountWindow(3))]).save(tmp_path / "state")
    with pytest.raises(sb.StateError, match="callables must be a mapping from query names to functions"):
        sb.Monitor.load(tmp_path / "state", callables=given)


# --- files -----------------------------------------------------------------------------------------------------


class Trap:
    """Sets off when unpickled."""

    def __reduce__(self) -> Any:
        return (pytest.fail, ("a state file was unpickled",))


@pytest.mark.parametrize("before", [b"", b"SKYBAND\0"])
def test_loading_never_unpickles(before: bytes, tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(before + pickle.dumps(Trap()))
    with pytest.raises(sb.StateError):
        sb.Monitor.load(tmp_path / "state")


def test_a_state_file_holds_no_pickle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((pickle, "loads"), (pickle, "load"), (pickle, "dumps"), (pickle, "dump")):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("pickle was used"))
    monitor = monitor_of(life_of("count"))
    monitor.push(batch_of(streams.rows_of(streams.shaped("random", 30))))
    same(monitor, carried(monitor, tmp_path / "state"))


def test_save_replaces_a_file_whole_and_takes_texts_as_paths(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"older and much longer " * 10_000)
    monitor = monitor_of(life_of("time"))
    monitor.save(str(path))
    same(monitor, sb.Monitor.load(str(path)))
    assert sorted(found.name for found in tmp_path.iterdir()) == ["state"], "something was left beside the state"


def test_a_failed_save_keeps_the_older_file(tmp_path: Path) -> None:
    """A monitor saved over its own file: what cannot be written must not cost what was there."""
    monitor = monitor_of(life_of("count"))
    monitor.save(tmp_path / "state")
    older = (tmp_path / "state").read_bytes()
    with pytest.raises((OSError, sb.StateError)):
        monitor.save(tmp_path / "no such folder" / "state")
    assert (tmp_path / "state").read_bytes() == older


def test_a_monitor_that_saw_nothing_can_be_saved(tmp_path: Path) -> None:
    monitor = carried(monitor_of(life_of("time")), tmp_path / "state")
    assert all(monitor.top(name).num_rows == 0 for name in monitor.queries)
    assert isinstance(monitor.push(batch_of(streams.rows_of(streams.shaped("tied", 9)))), pa.Table)


NUMBERS = [pa.int64(), pa.uint64(), pa.float64(), pa.timestamp("ms"), pa.timestamp("ns", "UTC"), pa.duration("s"), pa.date64()]
OTHERS = [pa.int32(), pa.bool_(), pa.float32(), pa.time32("s")]


TEXTS = [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()]


def rows_of_kind(kind: pa.DataType) -> pa.Table:
    """81 rows, one of them null, the texts of different lengths."""
    days = pa.array([86_400_000 * at for at in range(81)], pa.int64(), mask=np.arange(81) == 40)  # whole ones, as date64 has
    number = pc.divide(days, 86_400_000)
    if kind == pa.date64():
        values = days.cast(kind)
    elif kind in TEXTS:
        values = pc.binary_repeat("\u00e9", number).cast(kind)
    elif pa.types.is_list(kind):
        values = pa.array([None if at is None else [at, None] for at in number.to_pylist()], kind)
    else:
        values = (number.cast(pa.int32()) if kind.bit_width <= 32 else number).cast(kind)
    return pa.table({"x": values, "n": range(81)})


@pytest.mark.parametrize("kind", [*NUMBERS, pa.time64("us"), *OTHERS, *TEXTS, pa.list_(pa.int8())], ids=str)
def test_rows_that_are_written_are_the_rows(kind: pa.DataType) -> None:
    """Whether some are null or not, of a slice of a larger column, in pieces, and none at all."""
    table = rows_of_kind(kind)
    for rows in (table, table.slice(3, 50), table.slice(45), pa.concat_tables([table.slice(39, 5), table]), table.slice(0, 0)):
        arrays = written_rows.written(rows)
        layout = written_rows.layout(rows.schema, set(written_rows.with_nulls(arrays)))
        check(layout, arrays, extents_of(layout, arrays))
        again = written_rows.read(rows.schema, arrays, len(rows))
        again.validate(full=True)
        assert again.equals(rows)


@pytest.mark.parametrize(
    ("lengths", "text"), [([2, 2], b"abc"), ([1, 1], b"abc"), ([-1, 4], b"abc"), ([2**31 - 1, 2**31 - 1, 5], b"abc")]
)
def test_texts_that_are_not_as_long_as_they_say_are_refused(lengths: list[int], text: bytes) -> None:
    """Nothing that reads them looks where they end."""
    arrays = {"0.length": np.array(lengths, np.int32), "0.text": np.frombuffer(text, np.uint8)}
    with pytest.raises(ValueError, match="other lengths"):
        written_rows.read(pa.schema([("x", pa.string())]), arrays, len(lengths))


def test_rows_that_all_may_rank_take_little_room() -> None:
    """On falling scores all rows will rank and must be held. Their scores stand in the rows, among those that can win and in
    the structure: 21 bytes a row where what a state holds twice is written twice, 45 where numbers are not in planes."""
    rows, window = 20_000, sb.TimeWindow(40_000, 100)
    monitor = sb.Monitor([sb.TopK(name="q", k=100, score="x", window=window)], time="t")
    at = np.arange(rows)
    monitor.push({"t": at, "x": np.cos(at / rows), "id": 7 * at + 1_000_003, "name": [f"{n % 97}" for n in range(rows)]})
    assert monitor.stats("q")["rows_kept"] == rows
    assert len(monitor_to_bytes(monitor)) < 10 * rows

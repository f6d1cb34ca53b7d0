"""Bad input: which error, what its message says, and that it never costs state."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skyband as sb

COUNT = sb.CountWindow(4, slide=2)
TIME = sb.TimeWindow(10, slide=5)


def top(**changed: Any) -> sb.TopK:
    """A sound query, but for what is changed."""
    return sb.TopK(**{"name": "q", "k": 2, "score": "x", "window": COUNT, **changed})


def monitor(time: str | None = None, lateness: Any = None, **changed: Any) -> sb.Monitor:
    """A monitor of one query."""
    options = {} if lateness is None else {"lateness": lateness}
    return sb.Monitor([top(**changed)], **({} if time is None else {"time": time}), **options)


# --- queries that cannot be asked ----------------------------------------------------------------------

QUERIES: dict[str, tuple[Callable[[], object], str]] = {
    "a minus before a text": (lambda: top(score="-'a'"), "'-' cannot take the text"),
    "k below 1": (lambda: top(k=0), "k must be at least 1, got 0"),
    "k negative": (lambda: top(k=-3), "-3"),
    "k a fraction": (lambda: top(k=2.5), "2.5"),
    "k a text": (lambda: top(k="ten"), "'ten'"),
    "k a truth value": (lambda: top(k=True), "True"),
    "no name": (lambda: top(name=""), "name"),
    "name no text": (lambda: top(name=7), "7"),
    "order unknown": (lambda: top(order="up"), "'desc', 'asc'"),
    "emit unknown": (lambda: top(emit="everything"), "'everything'"),
    "emit unknown, the known ones": (lambda: top(emit="everything"), "'snapshots'"),
    "algorithm unknown": (lambda: top(algorithm="magic"), "'magic'"),
    "algorithm unknown, the known ones": (lambda: top(algorithm="magic"), "mintopk"),
    "window of no kind": (lambda: top(window=100), "100"),
    "algorithm no text": (lambda: top(algorithm=3), "got 3"),
    "error below 0": (lambda: top(error=-0.1), "-0.1"),
    "error of 1": (lambda: top(error=1), "below 1, got 1"),
    "error of an exact algorithm": (lambda: top(error=0.01, algorithm="strict"), "'strict' is exact; leave error at 0"),
    "error other than sigma": (
        lambda: top(error=0.01, algorithm="probabilistic(sigma=0.5)", window=sb.CountWindow(500)),
        "error=0.01 and algorithm 'probabilistic(sigma=0.5)' contradict each other: sigma is the error; leave one",
    ),
    "error other than the hybrid's sigma": (
        lambda: top(error=0.01, algorithm="hybrid(sigma=0.5)", window=sb.CountWindow(500)),
        "or give sigma=0.01",
    ),
    "error over time": (lambda: top(error=0.01, window=TIME), "use CountWindow"),
    "error over too few rows": (lambda: top(k=5, error=0.001, window=sb.CountWindow(12)), "at least 15 rows"),
    "probabilistic over time": (lambda: top(algorithm="probabilistic", window=TIME), "use CountWindow"),
    "a filter before PA": (lambda: top(algorithm="probabilistic+strict"), "takes no filter"),
    "gamma negative": (lambda: top(algorithm="relaxed(gamma=-0.1)"), "gamma must be a number of at least 0"),
    "gamma no number": (lambda: top(algorithm="relaxed(gamma=few)"), "got 'few'"),
    "sigma 0": (lambda: top(algorithm="probabilistic(sigma=0)"), "between 0 and 1, both excluded, got '0'"),
    "sigma 1": (lambda: top(algorithm="relaxed+probabilistic(sigma=1)"), "got '1'"),
    "buffer above half": (lambda: top(algorithm="relaxed+strict(buffer=51)", window=sb.CountWindow(100)), "ask for at most 50"),
    "an option of another": (lambda: top(algorithm="relaxed(buffer=10)"), "it has: gamma"),
    "an option of none": (lambda: top(algorithm="sap(gamma=1)"), "it has: none"),
    "options left open": (lambda: top(algorithm="relaxed(gamma=1"), "unknown algorithm"),
    "a grid without points": (lambda: top(algorithm="probabilistic(grid=10)"), "linear() or distance()"),
    "a grid of snapshots": (
        lambda: top(algorithm="probabilistic(grid=9)", score=sb.linear({"x": 1}), emit="snapshots"),
        "another emit",
    ),
    "count slide above size": (lambda: sb.CountWindow(10, slide=11), "slide 11 exceeds its size 10"),
    "count size 0": (lambda: sb.CountWindow(0), "at least 1"),
    "count slide 0": (lambda: sb.CountWindow(10, slide=0), "at least 1"),
    "count size a text": (lambda: sb.CountWindow("10 s"), "'10 s'"),
    "count size a fraction": (lambda: sb.CountWindow(1.5), "1.5"),
    "time slide above size": (lambda: sb.TimeWindow("1 minute", slide="61 s"), "'61 s'"),
    "time size 0": (lambda: sb.TimeWindow("0 s", slide="0 s"), "'0 s'"),
    "time size negative": (lambda: sb.TimeWindow(-5, slide=-5), "-5"),
    "time size unreadable": (lambda: sb.TimeWindow("soon", slide="1 s"), "'soon'"),
    "time size of NumPy's": (lambda: sb.TimeWindow(np.timedelta64(5, "s"), slide=5), "np.timedelta64(5,'s')"),
    "time unit unknown": (lambda: sb.TimeWindow("5 lightyears", slide="1 s"), "lightyears"),
    "time size and slide of two kinds": (lambda: sb.TimeWindow(10, slide="5 s"), "'5 s'"),
    "expression with two operators": (lambda: top(score="x * / 2"), "x * / 2"),
    "expression that stops": (lambda: top(score="(x + 1"), "(x + 1"),
    "expression that is empty": (lambda: top(score=""), "found the end"),
    "function unknown": (lambda: top(score="cosh(x)"), "cosh"),
    "score of no kind": (lambda: top(score=3), "3"),
    "where that does not parse": (lambda: top(where="x > > 1"), "x > > 1"),
    "region the wrong way round": (lambda: top(where={"x": (3, 1)}), "x"),
    "region of three bounds": (lambda: top(where={"x": (1, 2, 3)}), "x"),
    "region with a text": (lambda: top(where={"x": ("low", None)}), "'low'"),
    "a name that is no text": (lambda: top(name="q\ud800"), r"'q\ud800'"),
    "duplicate names": (lambda: sb.Monitor([top(), top()]), "'q'"),
    "duplicate name added": (lambda: monitor().add(top()), "'q'"),
    "time window without time": (lambda: monitor(window=TIME), "time="),
    "time window added without time": (lambda: monitor().add(top(name="r", window=TIME)), "time="),
    "not a query": (lambda: sb.Monitor(["q"]), "'q'"),
    "lateness negative": (lambda: monitor(time="t", lateness=-1, window=TIME), "-1"),
    "lateness unreadable": (lambda: monitor(time="t", lateness="a while", window=TIME), "'a while'"),
}


@pytest.mark.parametrize("case", QUERIES)
def test_a_question_that_cannot_be_asked(case: str) -> None:
    call, text = QUERIES[case]
    with pytest.raises(sb.QueryError, match=re.escape(text)):
        call()


@pytest.mark.parametrize(
    ("text", "place"), [("x * / 2", 4), ("x + ", 4), ("price ? 2", 6), ("log(x, 2", 8), ("1 + x)", 5), ("2 x", 2)]
)
def test_an_expression_error_points_at_the_place(text: str, place: int) -> None:
    with pytest.raises(sb.QueryError) as caught:
        top(score=text)
    lines = str(caught.value).splitlines()
    carets = [line for line in lines if line.strip() == "^"]
    shown = [line for line in lines if text.rstrip() in line]
    assert len(carets) == 1 and shown, caught.value
    assert carets[0].index("^") - shown[-1].index(text.rstrip()) == place, caught.value


# --- rows that do not fit ------------------------------------------------------------------------------

X = [1.0, 2.0, 3.0]
NOW = np.array(["2024-05-01T10:00:00", "2024-05-01T10:00:01", "2024-05-01T10:00:02"], "datetime64[ms]")
SECONDS = sb.TimeWindow("10 s", slide="5 s")


def failing(columns: dict[str, float]) -> np.ndarray:
    raise ZeroDivisionError("the user's own mistake")


FIRST_BATCHES: dict[str, tuple[Callable[[], sb.Monitor], Any, type[Exception], str]] = {
    "score column unknown": (lambda: monitor(score="y"), {"x": X}, sb.SchemaError, "'y'"),
    "score column unknown, the known ones": (lambda: monitor(score="y"), {"x": X}, sb.SchemaError, "'x'"),
    "expression's column unknown": (lambda: monitor(score="x + y"), {"x": X}, sb.SchemaError, "'y'"),
    "linear's column unknown": (lambda: monitor(score=sb.linear({"z": 1.0})), {"x": X}, sb.SchemaError, "'z'"),
    "where's column unknown": (lambda: monitor(where="y > 1"), {"x": X}, sb.SchemaError, "'y'"),
    "region's column unknown": (lambda: monitor(where={"y": (1, 2)}), {"x": X}, sb.SchemaError, "'y'"),
    "score a text": (lambda: monitor(), {"x": ["a", "b", "c"]}, sb.SchemaError, "string"),
    "score a list": (lambda: monitor(), {"x": [[1.0], [2.0], [3.0]]}, sb.SchemaError, "list"),
    "expression over a text": (lambda: monitor(score="x + 1"), {"x": ["a", "b", "c"]}, sb.SchemaError, "string"),
    "region over a text": (lambda: monitor(where={"z": (1, 2)}), {"x": X, "z": list("abc")}, sb.SchemaError, "'z'"),
    "time column missing": (lambda: monitor(time="t", window=TIME), {"x": X}, sb.SchemaError, "'t'"),
    "time column null": (lambda: monitor(time="t", window=TIME), {"x": X, "t": [1, None, 3]}, sb.SchemaError, "'t'"),
    "time column a float": (lambda: monitor(time="t", window=TIME), {"x": X, "t": [1.0, 2.0, 3.0]}, sb.SchemaError, "double"),
    "time column a text": (lambda: monitor(time="t", window=TIME), {"x": X, "t": list("abc")}, sb.SchemaError, "string"),
    "integer duration, timestamps": (lambda: monitor(time="t", window=TIME), {"x": X, "t": NOW}, sb.SkybandError, "10"),
    "text duration, integers": (lambda: monitor(time="t", window=SECONDS), {"x": X, "t": [1, 2, 3]}, sb.SkybandError, "10 s"),
    "integer lateness, timestamps": (
        lambda: monitor(time="t", window=SECONDS, lateness=3), {"x": X, "t": NOW}, sb.SkybandError, "lateness"
    ),
    "text lateness, integers": (
        lambda: monitor(time="t", window=TIME, lateness="3 s"), {"x": X, "t": [1, 2, 3]}, sb.SkybandError, "lateness"
    ),
    "duration finer than the unit": (
        lambda: monitor(time="t", window=sb.TimeWindow("10 ms", slide="100 us")), {"x": X, "t": NOW}, sb.SkybandError, "100 us"
    ),
    "callable raises": (lambda: monitor(score=failing), {"x": X}, Exception, "the user's own mistake"),
    "callable of another length": (lambda: monitor(score=lambda c: c["x"][:2]), {"x": X}, sb.SchemaError, "2"),
    "callable of texts": (lambda: monitor(score=lambda c: np.array(list("abc"))), {"x": X}, sb.SchemaError, "numbers"),
    "no batch at all": (lambda: monitor(), 42, sb.SchemaError, "int"),
    "columns of uneven length": (lambda: monitor(), {"x": X, "y": [1.0]}, sb.SchemaError, "1"),
    "a set, in no order": (lambda: monitor(), {"x": {1.0, 2.0}}, sb.SchemaError, "an array or a list"),
    "two columns of one name": (lambda: monitor(), pa.table([pa.array(X), pa.array(X)], ["x", "x"]), sb.SchemaError, "'x'"),
}  # fmt: skip


@pytest.mark.parametrize("case", FIRST_BATCHES)
def test_a_first_batch_that_does_not_fit(case: str) -> None:
    make, batch, error, text = FIRST_BATCHES[case]
    refusing = make()
    with pytest.raises(error, match=re.escape(text)):
        refusing.push(batch)
    with pytest.raises(error, match=re.escape(text)):  # nothing was learnt from the refused batch
        refusing.push(batch)
    assert refusing.top("q").num_rows == 0


def test_a_refused_first_batch_does_not_fix_the_schema() -> None:
    asked = monitor(score="x")
    with pytest.raises(sb.SchemaError):
        asked.push({"x": ["a", "b"], "z": [1, 2]})
    assert asked.push({"x": [1.0, 2.0]}).column("seq").to_pylist() == [1, 0]


# --- later batches: refused whole, forgotten whole --------------------------------------------------------

GOOD = [
    {"t": [1, 2, 3], "x": [1.0, 5.0, 2.0], "n": [1, 2, 3], "tag": ["a", "b", "c"]},
    {"t": [4, 7, 12], "x": [4.0, None, 3.0], "n": [4, 5, 6], "tag": ["d", None, "f"]},
    {"t": [11, 18, 40], "x": [9.0, 1.0, 1.0], "n": [7, 8, 9], "tag": ["g", "h", "i"]},
    {"t": [41, 42], "x": [0.5, 0.25], "n": [1, 1], "tag": ["j", "k"]},
]
OTHER_BATCHES: dict[str, tuple[Any, str]] = {
    "new column": ({**GOOD[1], "more": [1, 2, 3]}, "'more'"),
    "column missing": ({name: GOOD[1][name] for name in ("t", "x", "n")}, "'tag'"),
    "score column missing": ({name: GOOD[1][name] for name in ("t", "n", "tag")}, "'x'"),
    "column retyped": ({**GOOD[1], "n": [1.5, 2.5, 3.5]}, "'n' was int64 in earlier batches and is double in this one; begin"),
    "fractions that are none": ({**GOOD[1], "n": [1.0, 2.0, 3.0]}, "push it as double from the first batch on"),
    "whole numbers for fractions": ({**GOOD[1], "x": [1, 2, 3]}, "'x' was double"),
    "score retyped": ({**GOOD[1], "x": ["4", "5", "6"]}, "'x'"),
    "a column that cannot be": ({**GOOD[1], "tag": [["a"], ["b"], ["c"]]}, "'tag' was string"),
    "time retyped": ({**GOOD[1], "t": NOW}, "'t'"),
    "time null": ({**GOOD[1], "t": [100, None, 102]}, "'t'"),
    "uneven": ({**GOOD[1], "n": [1]}, "length"),
    "no columns": ({}, "'n'"),
    "no batch": ("rows", "str"),
}


def several() -> sb.Monitor:
    """Count and time queries, sharing a score or not, in every way to emit."""
    return sb.Monitor(
        [
            top(name="count"),
            top(name="wider", window=sb.CountWindow(5), k=1, emit="snapshots"),
            top(name="time", window=TIME),
            top(name="arrivals", window=sb.TimeWindow(7, slide=3), score="x + n", order="asc", emit="arrivals", where="n > 1"),
        ],
        time="t",
        lateness=2,
    )


def life(asked: sb.Monitor, disturbance: Callable[[sb.Monitor], None] | None, at: int) -> list[Any]:
    """All that a monitor gives for the good batches, with something done to it before batch `at`."""
    given: list[Any] = []
    for number, batch in enumerate(GOOD):
        if disturbance is not None and number == at:
            disturbance(asked)
        given.append(asked.push(pa.table(batch)))
        given += [asked.top(name) for name in ("count", "wider", "time", "arrivals")]
        given += [{key: asked.stats(name)[key] for key in ("rows", "late", "nulls")} for name in ("count", "time")]
    given.append(asked.flush())
    return given


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("case", OTHER_BATCHES)
def test_a_refused_batch_leaves_no_trace(case: str, at: int) -> None:
    batch, text = OTHER_BATCHES[case]

    def disturb(asked: sb.Monitor) -> None:
        with pytest.raises(sb.SchemaError, match=re.escape(text)):
            asked.push(batch)

    assert life(several(), disturb, at) == life(several(), None, at)


class Moody:
    """A score that raises when told to, or gives nonsense."""

    def __init__(self) -> None:
        self.mood = "fine"

    def __call__(self, columns: dict[str, np.ndarray]) -> np.ndarray:
        if self.mood == "raises":
            raise ValueError("not in the mood")
        return columns["x"][:1] if self.mood == "short" else columns["x"] * 2


@pytest.mark.parametrize("mood", ["raises", "short"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_callable_that_fails_leaves_no_trace(mood: str, at: int) -> None:
    """The failing query is the last, so that others were served before it."""
    score = Moody()
    later = pa.table({"t": [50, 51, 60], "x": [90.0, 91.0, 92.0], "n": [5, 6, 7], "tag": ["l", "m", "n"]})

    def disturb(asked: sb.Monitor) -> None:
        score.mood = mood
        with pytest.raises(Exception, match="not in the mood" if mood == "raises" else "1"):
            asked.push(later)
        score.mood = "fine"

    def asked() -> sb.Monitor:
        found = several()
        found.add(top(name="moody", score=score))
        return found

    assert life(asked(), disturb, at) == life(asked(), None, at)


# --- names, moments, files --------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["top", "cancel", "stats"])
def test_an_unknown_query_name_is_named_with_the_known_ones(call: str) -> None:
    asked = several()
    with pytest.raises(sb.SkybandError, match="'nobody'") as caught:
        getattr(asked, call)("nobody")
    assert "'count'" in str(caught.value) or "count" in str(caught.value)


def test_a_cancelled_query_is_unknown() -> None:
    asked = several()
    asked.cancel("time")
    for call in ("top", "cancel", "stats"):
        with pytest.raises(sb.SkybandError, match="'time'"):
            getattr(asked, call)("time")
    asked.add(top(name="time", window=TIME))  # its name is free again


def test_refused_additions_leave_no_trace() -> None:
    def disturb(asked: sb.Monitor) -> None:
        with pytest.raises(sb.QueryError):
            asked.add(top(name="count"))
        with pytest.raises(sb.SkybandError):
            asked.cancel("nobody")

    assert life(several(), disturb, 2) == life(several(), None, 2)


def test_a_query_added_to_a_running_stream_is_checked_against_its_columns() -> None:
    asked = monitor()
    asked.push({"x": X})
    with pytest.raises(sb.SchemaError, match="'y'"):
        asked.add(top(name="r", score="y"))
        asked.push({"x": X})


def test_advance_needs_a_time_column() -> None:
    with pytest.raises(sb.SkybandError, match="time="):
        monitor().advance(5)


@pytest.mark.parametrize("wrong", ["tomorrow", None, 2.5, NOW[0], True])
def test_advance_needs_a_moment_of_the_time_column(wrong: Any) -> None:
    asked = monitor(time="t", window=TIME)
    asked.push({"t": [1], "x": [1.0]})
    with pytest.raises(sb.SkybandError, match="'t'"):
        asked.advance(wrong)
    assert asked.push({"t": [1, 5], "x": [2.0, 3.0]}).column("seq").to_pylist() == [1, 0]


@pytest.mark.parametrize("said", ["2024-05-02", "2024-05-02T00", "2024-05-02T00:00", "2024-05-02T00:00:00.000"])
@pytest.mark.parametrize("early", [False, True])
def test_a_moment_of_numpy_may_count_any_unit(said: str, early: bool) -> None:
    asked = monitor(time="t", window=sb.TimeWindow("1 day", slide="1 hour"))
    for begin in (early, not early):
        if begin:
            asked.advance(np.datetime64(said))
        else:
            asked.push({"t": NOW, "x": X})
    assert asked.watermark == dt.datetime(2024, 5, 2)


@pytest.mark.parametrize("wrong", ["tomorrow", None, 2.5, True, np.datetime64("NaT"), pa.scalar(None, pa.timestamp("ns"))])
def test_what_is_no_time_is_refused_before_the_first_row(wrong: Any) -> None:
    asked = monitor(time="t", window=TIME)
    with pytest.raises(sb.SchemaError, match=r"advance\(\) cannot read .* as a time"):
        asked.advance(wrong)
    asked.push({"t": [1], "x": [1.0]})
    assert asked.flush().column("seq").to_pylist()[0] == 0


def test_an_early_advance_of_another_kind_of_time_is_named_once() -> None:
    """Before the first batch the time column's type is not known: the mistake shows with that batch."""
    asked = monitor(time="t", window=TIME)
    asked.advance(NOW[0])
    with pytest.raises(sb.SchemaError, match=r"advance\(\) was called before the first row.*'t' \(int64\)"):
        asked.push({"t": [1], "x": [1.0]})
    asked.push({"t": [1], "x": [1.0]})
    assert asked.flush().column("seq").to_pylist()[0] == 0


def test_a_first_batch_refused_for_something_else_keeps_an_early_advance() -> None:
    asked = monitor(time="t", window=TIME)
    asked.advance(100)
    with pytest.raises(sb.SchemaError, match="null"):
        asked.push({"t": [None, 1], "x": [1.0, 2.0]})
    asked.push({"t": [1], "x": [1.0]})
    assert (asked.watermark, asked.stats("q")["late"]) == (100, 1)


def test_lateness_needs_a_time_column() -> None:
    with pytest.raises(sb.QueryError, match=r"lateness='5 seconds' means nothing without a time column"):
        sb.Monitor([], lateness="5 seconds")
    sb.Monitor([], lateness=0)
    sb.Monitor([], lateness="0 s")


@pytest.mark.parametrize("kind", [sb.TopK, sb.Threshold, sb.TopKPairs])
def test_a_region_belongs_to_its_query(kind: Any) -> None:
    """A frozen query can be hashed, pickled and written down, whatever becomes of the dict it was made with."""
    own = {
        sb.TopK: {"k": 2, "score": "x"},
        sb.Threshold: {"above": 1, "score": "x"},
        sb.TopKPairs: {"k": 2, "score": "a.x - b.x"},
    }
    region: dict[str, Any] = {"x": (0, None), "y": (1, 2)}
    query = kind(name="q", window=sb.CountWindow(3), where=region, **own[kind])
    same = kind(name="q", window=sb.CountWindow(3), where=dict(reversed(region.items())), **own[kind])
    region["x"] = (5, 6)
    assert query.where == {"x": (0.0, None), "y": (1.0, 2.0)} != region
    assert repr(query.where) == "{'x': (0.0, None), 'y': (1.0, 2.0)}"
    assert query == same == pickle.loads(pickle.dumps(query)) and len({query, same}) == 1
    with pytest.raises(TypeError):
        query.where["x"] = (5, 6)
    written = json.loads(json.dumps(query.to_json()))
    assert written["where"] == {"x": [0.0, None], "y": [1.0, 2.0]}
    assert (kind.from_json(written) if kind is sb.TopKPairs else kind.from_json(written, {})) == query


def test_weights_and_ranges_of_streams_belong_to_their_query() -> None:
    """As a region does."""
    weights: dict[str, Any] = {"a": 2, "b": 0.5}
    own: dict[str, Any] = {"k": 1, "key": "id", "stream": "s", "value": "v", "streams": ["a", "b"], "window": sb.CountWindow(4)}
    query = sb.TopKAcross(name="q", combine=weights, ranges={"a": (0, 5)}, **own)
    same = sb.TopKAcross(name="q", combine=dict(reversed(weights.items())), ranges={"b": (0, None), "a": (0, 5)}, **own)
    weights["a"] = 7
    assert query.combine == {"a": 2.0, "b": 0.5} != weights
    assert query == same == pickle.loads(pickle.dumps(query)) and len({query, same, sb.TopKAcross(name="q", **own)}) == 2
    assert sb.TopKAcross.from_json(json.loads(json.dumps(query.to_json()))) == query
    with pytest.raises(TypeError):
        query.ranges["a"] = (0, 9)  # type: ignore[index]


def state_file(folder: Path) -> tuple[Path, bytes]:
    asked = several()
    asked.push(pa.table(GOOD[0]))
    asked.save(folder / "state")
    return folder / "state", (folder / "state").read_bytes()


def test_a_state_file_damaged_anywhere_is_refused(tmp_path: Path) -> None:
    path, good = state_file(tmp_path)
    for at in [*range(0, 60), *range(60, len(good), max(1, len(good) // 50)), len(good) - 1]:
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        with pytest.raises(sb.StateError):
            sb.Monitor.load(path)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_state_file_is_refused(tmp_path: Path, share: float) -> None:
    path, good = state_file(tmp_path)
    path.write_bytes(good[: int(len(good) * share)])
    with pytest.raises(sb.StateError):
        sb.Monitor.load(path)


@pytest.mark.parametrize("foreign", [b"PAR1" * 100, b"{}", b"SKYBAND\0", b"SKYBAND\0" + b"\0" * 500])
def test_a_foreign_file_is_refused(tmp_path: Path, foreign: bytes) -> None:
    (tmp_path / "foreign").write_bytes(foreign)
    with pytest.raises(sb.StateError):
        sb.Monitor.load(tmp_path / "foreign")


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises((sb.StateError, FileNotFoundError), match="nowhere"):
        sb.Monitor.load(tmp_path / "nowhere")


def test_every_error_is_a_skyband_error_and_a_plain_one() -> None:
    assert issubclass(sb.QueryError, sb.SkybandError) and issubclass(sb.QueryError, ValueError)
    assert issubclass(sb.SchemaError, sb.SkybandError) and issubclass(sb.SchemaError, ValueError)
    assert issubclass(sb.StateError, sb.SkybandError)


# --- one query, and what folding refuses ---------------------------------------------------------------------------------


def test_a_single_query_needs_no_list() -> None:
    rows = {"x": [3.0, 1.0, 2.0, 4.0]}
    assert sb.Monitor(top()).push(rows) == sb.Monitor([top()]).push(rows)


@pytest.mark.parametrize("given", [7, "q", ["q"], None])
def test_what_is_no_query_is_refused_as_such(given: Any) -> None:
    with pytest.raises(sb.QueryError, match="expected a query such as TopK"):
        sb.Monitor(given)

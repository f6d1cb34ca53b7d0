"""Texts in conditions: compared by == and !=, with each other and with quoted ones, equal to comparing them in plain Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skyband as sb
from skyband.scores.expression import Text
from skyband.scores.parser import parse

Row = dict[str, Any]
VENUES = ["NYSE", "LSE", "it's", "", "ü"]
KINDS = [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]


def same(x: str | None, y: str | None) -> bool | None:
    return None if x is None or y is None else x == y


def differ(x: str | None, y: str | None) -> bool | None:
    return None if x is None or y is None else x != y


def either(x: bool | None, y: bool | None) -> bool | None:
    return True if x or y else None if x is None or y is None else False


# condition, and the same of two rows
PAIRS: dict[str, Any] = {
    "a.venue != b.venue": lambda a, b: differ(a["venue"], b["venue"]),
    "a.venue == b.home": lambda a, b: same(a["venue"], b["home"]),
    "a.venue == 'NYSE'": lambda a, b: same(a["venue"], "NYSE"),
    "b.venue != 'it''s' and a.venue != b.venue": lambda a, b: differ(b["venue"], "it's") and differ(a["venue"], b["venue"]),
    "\"it's\" == a.venue or b.home == ''": lambda a, b: either(same(a["venue"], "it's"), same(b["home"], "")),
    "a.venue == a.home and b.x > 1": lambda a, b: same(a["venue"], a["home"]) and b["x"] > 1,
    "not (a.venue == b.venue or a.home == 'ü')": lambda a, b: (
        either(same(a["venue"], b["venue"]), same(a["home"], "ü")) is False
    ),
    "(a.venue == b.venue) != (a.x < b.x)": lambda a, b: (
        same(a["venue"], b["venue"]) is not None and same(a["venue"], b["venue"]) != (a["x"] < b["x"])
    ),
}
ROWS: dict[str, Any] = {
    where.replace("a.", "").replace("b.", ""): passes for where, passes in PAIRS.items() if "a.x" not in where
}


def rows() -> st.SearchStrategy[list[Row]]:
    venue = st.sampled_from([*VENUES, None])
    return st.lists(st.fixed_dictionaries({"x": st.integers(0, 4), "venue": venue, "home": venue}), min_size=1, max_size=40)


def table(of: list[Row], kind: pa.DataType) -> pa.Table:
    columns: dict[str, Any] = {"x": pa.array([float(row["x"]) for row in of])}
    for name in ("venue", "home"):
        texts = pa.array([row[name] for row in of], pa.string())
        columns[name] = texts.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else texts.cast(kind)
    return pa.table(columns)


def best_pairs(of: list[tuple[int, Row]], k: int, passes: Any) -> list[tuple[float, int, int]]:
    found = [(float(abs(a["x"] - b["x"])), -i, -j) for later, (j, b) in enumerate(of) for i, a in of[:later] if passes(a, b)]
    return [(score, -i, -j) for score, i, j in sorted(found)[:k]]


@pytest.mark.parametrize("where", PAIRS)
@given(given_rows=rows(), size=st.integers(2, 15), cuts=st.integers(1, 7), kind=st.sampled_from(KINDS), stay=st.booleans())
def test_pairs_are_restricted_by_texts(
    where: str, given_rows: list[Row], size: int, cuts: int, kind: pa.DataType, stay: bool, tmp_path_factory: Any
) -> None:
    query = sb.TopKPairs(name="q", k=3, score="abs(a.x - b.x)", where=where, window=sb.CountWindow(size), emit="none")
    monitor = sb.Monitor([query])
    for begin in range(0, len(given_rows), cuts):
        monitor.push(table(given_rows[begin : begin + cuts], kind))
        if stay:
            path = tmp_path_factory.getbasetemp() / "texts.monitor"
            monitor.save(path)
            monitor = sb.Monitor.load(path)
        seen = min(begin + cuts, len(given_rows))
        window = list(enumerate(given_rows))[max(seen - size, 0) : seen]
        found = [(one["score"], one["a_seq"], one["b_seq"]) for one in monitor.top("q").to_pylist()]
        assert found == best_pairs(window, 3, PAIRS[where])


@pytest.mark.parametrize("algorithm", ["auto", "pairs-naive", "pairs-basic", "pairs-oracle"])
def test_numbers_given_out_again_mean_the_new_text(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts come and go; some come back when all that had them have left."""
    monkeypatch.setattr("skyband.numbering._AT_LEAST", 2)
    random = np.random.default_rng(3)
    every = [
        {"x": int(random.integers(50)), "venue": f"v{i // 9 + int(random.integers(3)) % 5}", "home": None} for i in range(300)
    ]
    for i in random.integers(0, 300, 40).tolist():
        every[i]["venue"] = None if i % 3 else "v0"
    where = "a.venue == b.venue"
    query = sb.TopKPairs(
        name="q", k=4, score="abs(a.x - b.x)", where=where, window=sb.CountWindow(25), algorithm=algorithm, emit="snapshots"
    )
    monitor = sb.Monitor([query])
    for begin in range(0, 300, 20):
        found: dict[int, list[Any]] = {}
        for one in monitor.push(table(every[begin : begin + 20], pa.string())).to_pylist():
            found.setdefault(one["window_end"], []).append((one["score"], one["a_seq"], one["b_seq"]))
        for end in range(begin + 1, begin + 21):
            window = list(enumerate(every))[max(end - 25, 0) : end]
            assert found.get(end, []) == best_pairs(window, 4, _same_venue)


def _same_venue(a: Row, b: Row) -> bool | None:
    return same(a["venue"], b["venue"])


def test_windows_of_time_and_rows_out_of_order() -> None:
    random = np.random.default_rng(5)
    times = np.arange(400) // 4
    order = np.argsort(times + random.integers(0, 4, 400), kind="stable")  # at most 3 late
    every = [{"x": int(random.integers(90)), "venue": f"v{int(t) // 7 + int(random.integers(2))}"} for t in times[order]]
    where = "a.venue != b.venue"
    window = sb.TimeWindow(10, 5)
    query = sb.TopKPairs(name="q", k=5, score="abs(a.x - b.x)", where=where, window=window, emit="snapshots")
    monitor = sb.Monitor([query], time="t", lateness=3)
    events = []
    for begin in range(0, 400, 30):
        part = slice(begin, begin + 30)
        columns = {"t": times[order][part], "x": [float(row["x"]) for row in every[part]]}
        events += monitor.push({**columns, "venue": [row["venue"] for row in every[part]]}).to_pylist()
    events += monitor.flush().to_pylist()
    in_time = sorted(range(400), key=lambda seq: (times[order][seq], seq))
    for end in range(5, 100, 5):
        held = [seq for seq in in_time if end - 10 <= times[order][seq] < end]
        expected = best_pairs([(place, every[seq]) for place, seq in enumerate(held)], 5, lambda a, b: a["venue"] != b["venue"])
        found = [(one["score"], one["a_seq"], one["b_seq"]) for one in events if one["window_end"] == end]
        assert found == [(score, held[a], held[b]) for score, a, b in expected]


def test_texts_that_no_live_row_has_are_forgotten() -> None:
    query = sb.TopKPairs(name="q", k=2, score="a.x - b.x", where="a.venue != b.venue", window=sb.CountWindow(100), emit="none")
    monitor = sb.Monitor([query])
    held = []
    for begin in range(0, 40_000, 1000):
        monitor.push({"x": np.arange(1000.0), "venue": [f"text {i}" for i in range(begin, begin + 1000)]})
        held.append(monitor.stats("q")["bytes"])
    assert max(held[20:]) <= 1.05 * max(held[:20])


def check_rows(algorithm: str, of: list[Row], kind: pa.DataType, order: str) -> None:
    """Every condition on rows, asked with one algorithm."""
    queries = [
        sb.TopK(
            name=where, k=3, score="x", order=order, where=where, window=sb.CountWindow(9), algorithm=algorithm, emit="none"
        )
        for where in ROWS
    ]
    monitor = sb.Monitor(queries)
    monitor.push(table(of, kind))
    sign = 1 if order == "asc" else -1
    for where, passes in ROWS.items():
        held = [(sign * row["x"], -seq) for seq, row in list(enumerate(of))[-9:] if passes(row, row)]
        found = [(sign * one["score"], -one["seq"]) for one in monitor.top(where).to_pylist()]
        assert found == sorted(held)[:3], where


@given(given_rows=rows(), kind=st.sampled_from(KINDS), order=st.sampled_from(["asc", "desc"]))
def test_rows_are_restricted_by_texts(given_rows: list[Row], kind: pa.DataType, order: str) -> None:
    check_rows("strict", given_rows, kind, order)


@pytest.mark.parametrize("algorithm", ["auto", "tma"])
def test_rows_kept_as_points_are_too(algorithm: str) -> None:
    random = np.random.default_rng(8)
    texts = [*VENUES, None]
    for _ in range(10):
        draws = random.integers(0, [5, 6, 6], (30, 3)).tolist()
        check_rows(algorithm, [{"x": x, "venue": texts[v], "home": texts[h]} for x, v, h in draws], pa.string(), "desc")


def test_a_score_may_ask_for_a_text() -> None:
    monitor = sb.Monitor([sb.TopK(name="q", k=2, score="where(venue == 'LSE', 10 * x, x)", window=sb.CountWindow(9))])
    monitor.push({"x": [1.0, 2.0, 3.0], "venue": ["LSE", "NYSE", None]})
    assert monitor.top("q").column("score").to_pylist() == [10.0, 2.0]
    pairs = sb.TopKPairs(name="q", k=2, score="where(a.venue == b.venue, 100, a.x + b.x)", window=sb.CountWindow(9))
    monitor = sb.Monitor([pairs])
    monitor.push({"x": [1.0, 2.0, 3.0, 4.0], "venue": ["LSE", "NYSE", "LSE", None]})
    assert monitor.top("q").column("score").to_pylist() == [3.0, 5.0]
    assert monitor.stats("q")["nulls"] == 1


def test_texts_survive_being_written() -> None:
    for text in ["venue == 'it''s'", "'a' != `b c`", 'x == "say ""no"""', "not (v == '' or v == w)"]:
        assert parse(str(parse(text))) == parse(text)
    assert str(parse('x == "say ""no"" it\'s"')) == "x == 'say \"no\" it''s'"
    assert Text("a") in parse("x == 'a'").args  # type: ignore[union-attr]
    query = sb.TopKPairs(name="q", k=1, score="a.x - b.x", where="a.v != 'x'", window=sb.CountWindow(3))
    assert sb.TopKPairs.from_json(query.to_json()) == query


# condition: what is said, and the place that is marked
WRONG: dict[str, tuple[str, int]] = {
    "a.venue < 'x'": ("'<' cannot take the text 'x'; a text is compared with a column by == or !=", 8),
    "a.x == 1 and 'x'": ("'and' cannot take the text 'x'", 9),
    "'x'": ("the text 'x' alone says nothing", 0),
    "a.venue == 'x": ("close the text with a second quote", 11),
    "a.x + 1 == 'x'": ("the text 'x' is compared with a.x + 1; compare it with a column", 8),
    "'a' == 'b'": ("the text 'a' is compared with 'b'", 4),
    "a.venue == 'it''s' 3": ("expected an operator or the end, found '3'", 19),
}


@pytest.mark.parametrize("where", WRONG)
def test_a_text_in_the_wrong_place_is_refused_and_marked(where: str) -> None:
    says, place = WRONG[where]
    with pytest.raises(sb.QueryError) as refused:
        sb.TopKPairs(name="q", k=1, score="a.x - b.x", where=where, window=sb.CountWindow(3))
    assert says in str(refused.value)
    assert str(refused.value).endswith(f"\n    {where}\n    {' ' * place}^")


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("a.venue < b.venue", "'venue' as a number, but it is of type string; .*texts can only be compared, by == and !="),
        ("a.venue == 1", "'venue' as a number, but it is of type string"),
        ("a.x == 'x'", "compares a column of type double with a text: a.x == 'x'"),
        ("a.venue == b.x", "compares string with double: a.venue == b.x; compare texts with texts"),
        ("a.venu == 'x'", "needs the column 'venu', .* did you mean 'venue'"),
    ],
)
def test_a_text_where_a_number_stands_is_refused_and_nothing_changes(where: str, says: str) -> None:
    monitor = sb.Monitor([sb.TopKPairs(name="q", k=1, score="a.x - b.x", window=sb.CountWindow(3))])
    monitor.push({"x": [1.0, 2.0], "venue": ["a", "b"]})
    with pytest.raises(sb.SchemaError, match=says):
        monitor.add(sb.TopKPairs(name="r", k=1, score="a.x - b.x", where=where, window=sb.CountWindow(3)))
    assert list(monitor.queries) == ["q"]


def test_a_column_of_nulls_compares_to_nothing_until_it_has_texts(tmp_path: Path) -> None:
    query = sb.TopKPairs(
        name="q", k=3, score="abs(a.x - b.x)", where="a.venue == b.venue or a.venue == 'x'", window=sb.CountWindow(9)
    )
    monitor = sb.Monitor([query])
    monitor.push({"x": [1.0, 2.0], "venue": pa.nulls(2)})
    assert monitor.top("q").num_rows == 0
    monitor.push({"x": [1.0, 2.0], "venue": ["x", "y"]})
    assert monitor.top("q").column("a_seq").to_pylist() == [2]


@pytest.mark.parametrize("where", ["venue == 'x'", "venue != 'y' and x > 0", "x > 5 or not (venue == 'y')"])
@pytest.mark.parametrize("many", [1, 20])
def test_a_row_with_no_text_yet_is_let_in_by_what_else_is_known(where: str, many: int) -> None:
    queries = [
        sb.TopK(name=f"q{i}", k=9, score=sb.linear({"x": 1.0 + i}), where=where, window=sb.CountWindow(9)) for i in range(many)
    ]
    monitor = sb.Monitor(queries)
    monitor.push({"x": [1.0, 2.0, 9.0], "venue": pa.nulls(3)})
    known = [2] if "or" in where else []
    assert [monitor.top(query.name).column("seq").to_pylist() for query in queries] == [known] * many
    monitor.push({"x": [1.0, 2.0], "venue": ["x", "y"]})
    assert [monitor.top(query.name).column("seq").to_pylist() for query in queries] == [[*known, 3]] * many
    monitor.push({"x": [3.0], "venue": pa.nulls(1)})
    assert [monitor.top(query.name).column("seq").to_pylist() for query in queries] == [[*known, 3]] * many

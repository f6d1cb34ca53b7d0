"""Short stories of streams, as text: each row is pushed by itself, and below it stands what the monitor said.

    + end tag rank    a row enters the top-k of the window that ended at `end`
    - end tag         a row leaves it
    = end tag rank    a row is part of it (snapshots)

With several queries the query's name comes first. `flush` and `advance 20` are calls between rows.
"""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pyarrow as pa

import skyband as sb

SIGNS = {"enter": "+", "leave": "-", "top": "="}
READ: dict[str, Callable[[str], Any]] = {"t": int, "x": lambda text: None if text == "null" else float(text), "tag": str}
TYPES = {"t": pa.int64(), "x": pa.float64(), "tag": pa.string()}


def said(result: pa.Table, several: bool) -> list[list[str]]:
    """Result rows as words."""
    lines = []
    for row in result.to_pylist():
        ends = [row[name] for name in ("window_end", "window_end_time") if row.get(name) is not None]
        assert len(ends) == 1
        words = [SIGNS[row["event"]], *([row["query"]] if several else []), str(ends[0]), row["tag"]]
        lines.append(words + ([] if row["rank"] is None else [str(row["rank"])]))
    return lines


def tell(monitor: sb.Monitor, story: str) -> None:
    """Live through a story and compare it with what is written."""
    written = [line.split() for line in dedent(story).strip().splitlines()]
    names, several = written[0], len(monitor.queries) > 1
    lived = [names]
    for words in written[1:]:
        if words[0] in SIGNS.values():
            continue
        lived.append(words)
        if words[0] == "flush":
            result = monitor.flush()
        elif words[0] == "advance":
            result = monitor.advance(int(words[1]))
        else:
            row = zip(names, words, strict=True)
            result = monitor.push({name: pa.array([READ[name](word)], TYPES[name]) for name, word in row})
        lived += said(result, several)
    assert [" ".join(line) for line in lived] == [" ".join(line) for line in written]


def best(k: int, window: Any, **more: Any) -> sb.TopK:
    return sb.TopK(**{"name": "best", "k": k, "score": "x", "window": window, **more})


def test_the_two_best_of_the_last_four_after_every_two() -> None:
    tell(
        sb.Monitor([best(2, sb.CountWindow(4, slide=2))]),
        """
        x    tag
        3    ann
        1    bob
             + 2 ann 1
             + 2 bob 2
        2    cid
        1    dan
             - 4 bob
             + 4 cid 2
        1    eve
        1    fay
             - 6 ann
             + 6 fay 2
        1    gus
        1    hal
             - 8 cid
             - 8 fay
             + 8 hal 1
             + 8 gus 2
        """,
    )


def test_the_newer_of_equals_ranks_first() -> None:
    tell(
        sb.Monitor([best(1, sb.CountWindow(3))]),
        """
        x    tag
        5    first
             + 1 first 1
        5    second
             - 2 first
             + 2 second 1
        4    third
        5    fourth
             - 4 second
             + 4 fourth 1
        """,
    )


def test_nulls_and_nan_take_up_room_but_never_rank() -> None:
    tell(
        sb.Monitor([best(2, sb.CountWindow(2))]),
        """
        x     tag
        1     a
              + 1 a 1
        null  b
        nan   c
              - 3 a
        -inf  d
              + 4 d 1
        inf   e
              + 5 e 1
        """,
    )


def test_a_slide_that_does_not_divide_the_size() -> None:
    """Windows of five every three: at 6 it holds rows 1 to 5, at 9 rows 4 to 8."""
    tell(
        sb.Monitor([best(1, sb.CountWindow(5, slide=3))]),
        """
        x    tag
        9    r0
        8    r1
        1    r2
             + 3 r0 1
        1    r3
        7    r4
        1    r5
             - 6 r0
             + 6 r1 1
        1    r6
        1    r7
        1    r8
             - 9 r1
             + 9 r4 1
        """,
    )


def test_time_windows_with_rows_out_of_order_late_rows_and_a_gap() -> None:
    """Ten long every five, two late. The row at 4 comes when 5 has passed; the one at 9 comes out of order, in time."""
    monitor = sb.Monitor([best(1, sb.TimeWindow(10, slide=5))], time="t", lateness=2)
    tell(
        monitor,
        """
        t    x    tag
        1    4    one
        8    2    eight
             + 5 one 1
        4    99   late
        11   1    eleven
        9    3    nine
        12   0    twelve
        17   1    seventeen
             - 15 one
             + 15 nine 1
        60   5    sixty
             - 20 nine
             + 20 seventeen 1
             - 30 seventeen
        flush
             + 65 sixty 1
             - 75 sixty
        """,
    )
    assert monitor.stats("best")["late"] == 1
    assert monitor.top("best").num_rows == 0


def test_times_before_the_epoch_fall_into_windows_that_end_at_multiples_of_the_slide() -> None:
    tell(
        sb.Monitor([best(1, sb.TimeWindow(4, slide=4))], time="t"),
        """
        t    x    tag
        -9   1    a
        -8   2    b
             + -8 a 1
        -1   3    c
             - -4 a
             + -4 b 1
        0    4    d
             - 0 b
             + 0 c 1
        flush
             - 4 c
             + 4 d 1
             - 8 d
        """,
    )


def test_time_moves_without_rows() -> None:
    monitor = sb.Monitor([best(1, sb.TimeWindow(10, slide=10))], time="t")
    tell(
        monitor,
        """
        t    x    tag
        3    1    a
        advance 9
        advance 10
             + 10 a 1
        advance 4
        7    9    late
        12   2    b
        advance 500
             - 20 a
             + 20 b 1
             - 30 b
        flush
        """,
    )
    assert monitor.stats("best")["late"] == 1


def test_equal_scores_go_to_the_later_time_then_to_the_later_arrival() -> None:
    tell(
        sb.Monitor([best(3, sb.TimeWindow(10, slide=10), emit="snapshots")], time="t", lateness=5),
        """
        t    x    tag
        8    1    later
        3    1    earlier
        8    1    latest
        flush
             = 10 latest 1
             = 10 later 2
             = 10 earlier 3
        """,
    )


def test_the_smallest_first() -> None:
    tell(
        sb.Monitor([best(1, sb.CountWindow(2), order="asc")]),
        """
        x    tag
        3    a
             + 1 a 1
        5    b
        4    c
             - 3 a
             + 3 c 1
        -inf d
             - 4 c
             + 4 d 1
        """,
    )


def test_arrivals_tell_of_each_row_once() -> None:
    """`high` ranks in four windows and `low` in one, when `high` has gone."""
    tell(
        sb.Monitor([best(1, sb.TimeWindow(20, slide=5), emit="arrivals")], time="t"),
        """
        t    x    tag
        2    3    high
        7    1    low
             + 5 high 1
        advance 24
        26   0    lower
             + 25 low 1
        flush
             + 30 lower 1
        """,
    )


def test_arrivals_do_not_repeat_a_row_that_comes_back() -> None:
    """`small` is pushed out by `tall` and ranks again when `large` has left the window: changes tell, arrivals do not."""
    window = sb.CountWindow(3)
    tell(
        sb.Monitor([best(2, window, name="changes"), best(2, window, name="arrivals", emit="arrivals")]),
        """
        x    tag
        9    large
             + changes 1 large 1
             + arrivals 1 large 1
        5    small
             + changes 2 small 2
             + arrivals 2 small 2
        7    tall
             - changes 3 small
             + changes 3 tall 2
             + arrivals 3 tall 2
        1    tiny
             - changes 4 large
             + changes 4 small 2
        """,
    )


def test_snapshots_tell_everything() -> None:
    tell(
        sb.Monitor([best(2, sb.CountWindow(3, slide=1), emit="snapshots")]),
        """
        x    tag
        2    a
             = 1 a 1
        3    b
             = 2 b 1
             = 2 a 2
        1    c
             = 3 b 1
             = 3 a 2
        1    d
             = 4 b 1
             = 4 d 2
        """,
    )


def test_a_query_that_says_nothing_can_be_asked() -> None:
    monitor = sb.Monitor([best(1, sb.CountWindow(2), emit="none")])
    tell(
        monitor,
        """
        x    tag
        2    a
        3    b
        1    c
        """,
    )
    assert monitor.top("best").to_pylist() == [{"rank": 1, "score": 3.0, "seq": 1, "x": 3.0, "tag": "b"}]


def test_rows_outside_where_take_up_room_in_a_count_window() -> None:
    tell(
        sb.Monitor([best(1, sb.CountWindow(2), where={"x": (None, 10)})]),
        """
        x    tag
        10   a
             + 1 a 1
        11   b
        12   c
             - 3 a
        """,
    )


def test_count_and_time_queries_side_by_side() -> None:
    monitor = sb.Monitor([best(1, sb.CountWindow(2), name="rows"), best(1, sb.TimeWindow(10, slide=10), name="time")], time="t")
    tell(
        monitor,
        """
        t    x    tag
        1    5    a
             + rows 1 a 1
        11   3    b
             + time 10 a 1
        12   2    c
             - rows 3 a
             + rows 3 b 1
        """,
    )
    result = monitor.push({"t": [25], "x": [1.0], "tag": ["d"]})
    assert result.column_names[:3] == ["query", "window_end", "window_end_time"]
    assert result.select(["query", "window_end", "window_end_time", "event"]).to_pylist() == [
        {"query": "rows", "window_end": 4, "window_end_time": None, "event": "leave"},
        {"query": "rows", "window_end": 4, "window_end_time": None, "event": "enter"},
        {"query": "time", "window_end": None, "window_end_time": 20, "event": "leave"},
        {"query": "time", "window_end": None, "window_end_time": 20, "event": "enter"},
    ]


def test_a_query_added_later_sees_only_later_rows() -> None:
    monitor = sb.Monitor([best(1, sb.CountWindow(4, slide=2), name="old")])
    monitor.push({"x": [9.0, 8.0, 7.0], "tag": ["a", "b", "c"]})
    monitor.add(best(1, sb.CountWindow(4, slide=2), name="new"))
    tell(
        monitor,
        """
        x    tag
        1    d
             + new 4 d 1
        2    e
        3    f
             - old 6 a
             + old 6 c 1
             - new 6 d
             + new 6 f 1
        """,
    )
    monitor.cancel("old")
    result = monitor.push({"x": [5.0, 6.0], "tag": ["g", "h"]})
    assert said(result, True) == [["-", "new", "8", "f"], ["+", "new", "8", "h", "1"]]


def test_cancelled_queries_do_not_hold_back_time() -> None:
    """A wide query, cancelled, has no windows left for flush() to close."""
    wide = best(1, sb.TimeWindow(100, slide=5), name="wide")
    monitor = sb.Monitor([wide, best(1, sb.TimeWindow(5, slide=5))], time="t")
    monitor.push({"t": [1], "x": [1.0], "tag": ["a"]})
    monitor.cancel("wide")
    tell(
        monitor,
        """
        t    x    tag
        2    0    b
        flush
             + 5 a 1
             - 10 a
        11   1    c
        flush
             + 15 c 1
             - 20 c
        """,
    )
    assert monitor.stats("best")["late"] == 0

"""Rows that wait for their slide to close, against a list of them."""

from __future__ import annotations

import numpy as np
import pytest

from skyband.lanes import open_rows
from skyband.lanes.open_rows import OpenRows

Row = tuple[int, int, float]  # time, seq, score


def listed(rows: tuple[np.ndarray, ...]) -> list[Row]:
    return list(zip(*(column.tolist() for column in rows), strict=True))


@pytest.mark.parametrize("large", [1, 3, 20, 1000], ids=lambda rows: f"pieces of {rows}")
def test_rows_come_in_order_of_time_whatever_the_pieces(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_rows, "_LARGE", large)
    rng = np.random.default_rng(large)
    held, expected, seen = OpenRows(), list[Row](), 0
    for at in range(400):
        count = int(rng.integers(0, 8))
        time, seq, score = at + rng.integers(0, 30, count), np.arange(seen, seen + count), rng.random(count)
        held.add(time, seq, score)
        expected += listed((time, seq, score))
        seen += count
        if at % 3 == 0:
            due = sorted(row for row in expected if row[0] < at - 5)
            assert listed(held.take_before(at - 5)) == due
            expected = [row for row in expected if row[0] >= at - 5]
        if at % 50 == 49:
            gone = [seq for _, seq, _ in expected[::4]]
            held.drop(np.array(gone))
            expected = [row for row in expected if row[1] not in gone]
        assert held.count == len(expected)
        assert listed(held.whole()) == expected
        since = seen - 20
        assert held.seqs(since).tolist() == [seq for _, seq, _ in expected if seq >= since]


def test_rows_far_from_a_slide_that_closes_are_not_read() -> None:
    held, rows = OpenRows(), 1 << 18
    held.add(np.arange(rows), np.arange(rows), np.zeros(rows))
    before = [id(rows) for _, rows in held._pieces]
    assert listed(held.take_before(10)) == [(at, at, 0.0) for at in range(10)]
    assert [id(rows) for _, rows in held._pieces][1:] == before[1:]
    assert len(before) == 8

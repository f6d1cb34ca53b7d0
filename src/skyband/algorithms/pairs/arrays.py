"""Arrays for a skyband of pairs, with nothing in them."""

from __future__ import annotations

import numpy as np

from skyband.kernels.expression import BLOCK
from skyband.kernels.pairs import boxes as boxing
from skyband.kernels.pairs.boxes import Boxes
from skyband.kernels.pairs.state import DEPTH, Pairs, Segments, Tail, Tree, Young

_LINE = 64  # bytes of a line of the cache


def room_for_tail(columns: int, coarse: int, room: int) -> Tail:
    """Room for at least so many rows; every column begins with a line of the cache."""
    room = -(-room // _LINE) * _LINE
    blocks = room // BLOCK + 1
    zones = np.zeros((blocks, columns)), np.zeros((blocks, columns))
    return Tail(
        _lines(columns, room, np.float64), np.zeros(room, np.int64), *zones, _lines(coarse, room, np.float32), np.zeros(coarse)
    )


def _lines(columns: int, room: int, kind: type) -> np.ndarray:
    """Numbers of a kind, the first at the beginning of a line."""
    raw: np.ndarray = np.zeros(columns * room + _LINE, kind)
    begin = -raw.ctypes.data % _LINE // raw.itemsize
    return raw[begin : begin + columns * room].reshape(columns, room)


def room_for_young(rows: int, k: int) -> Young:
    """Room for so many young rows, and as many that meet them."""
    return Young(np.zeros((rows, rows)), np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros(rows), np.zeros(2 * k))


def room_for_pairs(room: int) -> Pairs:
    """Room for so many pairs."""
    return Pairs(np.zeros(room), np.zeros(room, np.int64), np.zeros(room, np.int64))


def room_for_segments(columns: int, rows: int) -> Segments:
    """Room for the segments of a tail of so many rows."""
    room = rows // BLOCK + 16
    zones = np.zeros((room, columns)), np.zeros((room, columns))
    return Segments(np.zeros(room, np.int64), np.zeros(room), *zones, np.zeros(BLOCK))


def room_for_tree(room: int, k: int) -> Tree:
    """Room for a tree over a band of so many pairs."""
    place, left, right, items = (np.zeros(room, np.int64) for _ in range(4))
    return Tree(place, left, right, items, np.zeros(6 * DEPTH, np.int64), np.zeros(k + DEPTH, np.int64))


def room_for_boxes(columns: int, searched: int, boxed: int, rows: int) -> Boxes:
    """Room for `rows` rows in runs of `boxed` or more; none is ever in one where that is 0."""
    runs, nodes = rows // max(boxed, 1) + 2, 2 * (rows // boxing.LEAF_ROWS + 1)
    marks = np.zeros(boxing.MARKS, np.int64)
    marks[boxing.BOXED] = boxed
    table = np.zeros((runs, boxing.FIELDS), np.int64)
    low, high = np.zeros((nodes, searched)), np.zeros((nodes, searched))
    return Boxes(np.zeros((columns, rows)), np.zeros(rows, np.int64), table, np.zeros(runs), low, high, marks)

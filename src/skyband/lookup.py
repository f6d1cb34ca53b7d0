"""Some rows out of several chunks, in any order, at about what Arrow's `take` costs out of one.

Arrow joins the chunks of a column before it takes rows from them, or has to be asked chunk by chunk, which costs microseconds
each. Here kernels read numbers, times, truth values and texts where they lie. Other columns are left to Arrow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

_LEFT = -1  # widths that stand for columns left to Arrow,
_BITS = 0  # for values of one bit,
_NARROW, _WIDE = -4, -8  # and for texts: minus that of their offsets
_MOST = {_NARROW: np.iinfo(np.int32).max, _WIDE: np.iinfo(np.int64).max}  # bytes of text in an array


class Laid(NamedTuple):
    """Where a chunk of increasing arrival numbers lies, as long as it is there."""

    of_rows: tuple[int, int, int]  # its first arrival number, its rows, the address of their numbers or 0: consecutive
    where: np.ndarray  # uint64 [columns, FIELDS]: see `kernels.lookup`
    nullable: list[bool]  # [columns]: are some rows null?


class Known(NamedTuple):
    """The same of several chunks, oldest first."""

    of_rows: np.ndarray  # int64 [3, chunks]
    where: np.ndarray  # uint64 [columns, chunks, FIELDS]
    nullable: list[bool]

    @classmethod
    def of(cls, chunks: list[Laid]) -> Known:
        """What is known of these, at least one."""
        of_rows, where, nullable = zip(*chunks, strict=True)
        some = [any(each) for each in zip(*nullable, strict=True)]
        return cls(np.array(of_rows, np.int64).T.copy(), np.stack(where, axis=1), some)


class Columns:
    """How the columns of a schema are read."""

    def __init__(self, schema: pa.Schema) -> None:
        from skyband.kernels.expression import COMPILED

        self._kinds = schema.types
        self._widths = [_width(kind) if COMPILED else _LEFT for kind in self._kinds]
        self.left = [at for at, width in enumerate(self._widths) if width == _LEFT]  # to Arrow

    def laid(self, seq: np.ndarray, rows: pa.Table) -> Laid | None:
        """Where a chunk of one row or more lies; None when a column is in pieces, or not aligned."""
        found, nullable = [], []
        for column, width in zip(rows.columns, self._widths, strict=True):
            address = valid = text = bit = 0
            if width != _LEFT:
                if column.num_chunks != 1:
                    return None
                array = column.chunk(0)
                bits, values, *texts = array.buffers()
                bit = array.offset
                address = values.address + bit * abs(width)
                valid = bits.address if array.null_count else 0
                text = texts[0].address if texts and texts[0] is not None else 0
                if width in (8, _NARROW, _WIDE) and address % width:
                    return None
            found.append((address, valid, text, bit))
            nullable.append(valid != 0)
        first = int(seq[0])
        own = 0 if int(seq[-1]) - first + 1 == len(seq) else seq.ctypes.data
        return Laid((first, len(seq), own), np.array(found, np.uint64).reshape(len(found), -1), nullable)

    def taken(self, known: Known, seq: np.ndarray, span: tuple[int, int] | None = None) -> list[Any] | None:
        """The rows `seq`, in that order: an array for each column, None of those that are left; None for all when there is more
        text than an array holds. `span`: the least and the greatest of many numbers that lie close together."""
        from skyband.kernels import lookup

        owner, place = np.empty(len(seq), np.int64), np.empty(len(seq), np.int64)
        if span is None:
            found = lookup.locate(known.of_rows, seq, owner, place)
        else:
            table = np.zeros(span[1] - span[0] + 1, np.int64)
            found = lookup.locate_many(known.of_rows, seq, span[0], table, owner, place)
        if not found:
            raise AssertionError("rows are asked for that were not kept")
        bits = (len(seq) + 7) // 8
        arrays: list[Any] = []
        for kind, width, where, nullable in zip(self._kinds, self._widths, known.where, known.nullable, strict=True):
            if width == _LEFT:
                arrays.append(None)
                continue
            parts: list[np.ndarray | None] = [None]
            if nullable:
                parts[0] = np.zeros(bits, np.uint8)
                lookup.copy_valid(where, owner, place, parts[0])
            if width >= _BITS:
                parts.append(np.zeros(width * len(seq) or bits, np.uint8))
                lookup.copy_values(where, width, owner, place, parts[1])
            else:
                offsets = np.empty(len(seq) + 1, np.int64 if width == _WIDE else np.int32)
                size = lookup.measure_texts(where, owner, place, offsets)
                if size > _MOST[width]:
                    return None
                text = np.empty(size, np.uint8)
                lookup.copy_texts(where, owner, place, offsets, text)
                parts += [offsets, text]
            buffers = [None if part is None else pa.py_buffer(part) for part in parts]
            arrays.append(pa.Array.from_buffers(kind, len(seq), buffers))
        return arrays


def _width(kind: pa.DataType) -> int:
    """Bytes of a value, or a number that stands for another kind of column."""
    if pa.types.is_boolean(kind):
        return _BITS
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _NARROW
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return _WIDE
    fixed = pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind)
    return kind.bit_width // 8 or _LEFT if fixed else _LEFT

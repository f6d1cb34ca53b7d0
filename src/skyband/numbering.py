"""Objects by their keys: each key that is in use has a small whole number, those no longer in use are given out again."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pyarrow as pa

_AT_LEAST = 1 << 10  # fewer keys are not worth sorting out


def plain_keys(column: pa.ChunkedArray) -> pa.Array:
    """A key column as values that Python tells apart by equality: times as whole numbers, all else as it is."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], column.type)
    kind = plain_type(array.type)
    return array if kind == array.type else array.cast(kind)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """What `plain_keys` makes of values of this type."""
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_temporal(kind) else kind


def can_name_objects(kind: pa.DataType) -> bool:
    """Are values of this type equal exactly when they are the same key?"""
    one_of = ("is_integer", "is_boolean", "is_string", "is_large_string", "is_binary", "is_large_binary", "is_null")
    more = ("is_fixed_size_binary", "is_temporal", "is_decimal")
    return any(getattr(pa.types, name)(kind) for name in (*one_of, *more)) and not pa.types.is_interval(kind)


class Numbering:
    """Numbers for the keys in use. Python meets each distinct key of a batch once, not each row."""

    def __init__(self) -> None:
        self.number: dict[Any, int] = {}
        self.key: list[Any] = []  # by number; None: not given out
        self.free: list[int] = []
        self.limit = _AT_LEAST  # keys at which it is worth asking which are still in use

    def __len__(self) -> int:
        return len(self.key)

    def numbers(self, column: pa.ChunkedArray) -> np.ndarray:
        """The number of every row's key; keys that are new get one. None may be null."""
        encoded = plain_keys(column).dictionary_encode()
        distinct = encoded.dictionary.to_pylist()
        found = list(map(self.number.get, distinct))
        if None in found:
            new = [place for place, number in enumerate(found) if number is None]
            for place, number in zip(new, self._give_out([distinct[place] for place in new]), strict=True):
                found[place] = number
        return np.array(found, np.int64)[encoded.indices.to_numpy(zero_copy_only=False)]

    def _give_out(self, keys: list[Any]) -> list[int]:
        """Numbers for new keys: first those that are free."""
        again = [self.free.pop() for _ in range(min(len(self.free), len(keys)))]
        for number, key in zip(again, keys, strict=False):
            self.key[number] = key
        numbers = [*again, *range(len(self.key), len(self.key) + len(keys) - len(again))]
        self.key.extend(keys[len(again) :])
        self.number.update(zip(keys, numbers, strict=True))
        return numbers

    def keys(self, numbers: np.ndarray, kind: pa.DataType) -> pa.Array:
        """The keys behind numbers, of the column's type."""
        return pa.array([self.key[number] for number in numbers.tolist()], plain_type(kind)).cast(kind)

    @property
    def is_full(self) -> bool:
        """Has the number of keys doubled since it was last known how many are in use?"""
        return len(self.number) > self.limit

    def forget_all_but(self, alive: np.ndarray) -> None:
        """Let the numbers that are not marked be given out again."""
        for number, key in enumerate(self.key):
            if key is not None and not (number < len(alive) and alive[number]):
                del self.number[key]
                self.key[number] = None
                self.free.append(number)
        self.limit = 2 * len(self.number) + _AT_LEAST

    def save(self, kind: pa.DataType) -> pa.Table:
        """Keys and numbers, as `restore` takes them."""
        number = np.fromiter(self.number.values(), np.int64, len(self.number))
        return pa.table({"key": pa.array(list(self.number), plain_type(kind)), "number": number})

    def restore(self, table: pa.Table, count: int, free: np.ndarray, limit: int) -> None:
        """Take up what `save` gave; `count` numbers there are in all, `free` in the order they are given out."""
        self.key, self.free, self.limit = [None] * count, free.tolist(), limit
        self.number = dict(zip(table["key"].to_pylist(), table["number"].to_pylist(), strict=True))
        for key, number in self.number.items():
            self.key[number] = key


def hashes(column: pa.ChunkedArray) -> np.ndarray:
    """A 64-bit hash of every key, the same in every process."""
    array = plain_keys(column)
    if pa.types.is_integer(array.type):
        return _mixed(array.to_numpy(zero_copy_only=False).astype(np.uint64, copy=False))
    encoded = array.dictionary_encode()
    raw = [zlib.crc32(one if isinstance(one, bytes) else str(one).encode()) for one in encoded.dictionary.to_pylist()]
    return _mixed(np.array(raw, np.uint64))[encoded.indices.to_numpy(zero_copy_only=False)]


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """SplitMix64."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed

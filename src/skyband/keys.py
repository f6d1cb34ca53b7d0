"""Which live row has which key: what deletions need.

Keys are looked up by a number (a whole number itself, the hash of a text) in sorted pieces that grow like powers of two, so
that a row is sorted O(log rows) times; texts with equal hashes are compared. Rows that left every window are forgotten when
large pieces are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.errors import SchemaError
from skyband.numbering import plain_keys

NOT_FOUND = -1
_WORTH_A_LOOK = 1 << 13  # rows of a piece from which on it is worth asking who left: that may take a look at the window
Finder = Callable[[np.ndarray], pa.Array]  # keys of rows, by arrival number
Alive = Callable[[np.ndarray], np.ndarray]  # which rows, by arrival number, some window holds, or will


class LiveKeys:
    """The keys of live rows. `column`: where they stand."""

    def __init__(self, column: str) -> None:
        self.column = column
        self.deleted = np.zeros(0, np.int64)  # arrival numbers, increasing, of deleted rows; some have left since
        self.rows_deleted = self.not_found = 0  # so far
        self._pieces: list[tuple[np.ndarray, np.ndarray]] = []  # numbers, increasing, and arrival numbers

    def check(self, schema: pa.Schema) -> None:
        """SchemaError when the stream has no such column, or none that can name rows."""
        places = schema.get_all_field_indices(self.column)
        if len(places) != 1:
            found = "does not have" if not places else f"has {len(places)} times"
            raise SchemaError(f"key={self.column!r} names a column that the stream {found}; it has {schema.names}")
        kind = schema.field(places[0]).type
        if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise SchemaError(f"the key column {self.column!r} is of type {kind}; keys are whole numbers or texts: cast it")

    def numbered(self, table: pa.Table, late: np.ndarray | None, alive: Alive, keys_of: Finder) -> np.ndarray:
        """A number for the key of each new row; SchemaError when one is null, or the key of another live row, which those
        that come too `late` for every query never are. Changes nothing."""
        column = table.column(self.column)
        if column.null_count:
            place = column.is_null().index(True).as_py()
            raise SchemaError(f"row {place} of the batch has no key in {self.column!r}; give every row one")
        keys = plain_keys(column)
        number = _numbers(keys)
        places = np.arange(len(keys)) if late is None else np.flatnonzero(~late)
        counted, own = (keys, number) if late is None else (keys.take(pa.array(places)), number[places])
        if len(_repeated(own)) and len(pc.unique(counted)) < len(counted):
            counts = pc.value_counts(counted)
            worst = counts.field(0)[int(np.argmax(counts.field(1).to_numpy(zero_copy_only=False)))].as_py()
            raise SchemaError(f"the key {worst!r} stands more than once in the batch; keys of live rows must differ")
        found = self._find(counted, own, alive, keys_of)
        if (found != NOT_FOUND).any():
            at = int(np.flatnonzero(found != NOT_FOUND)[0])
            place = int(places[at])
            raise SchemaError(
                f"row {place} of the batch has the key {keys[place].as_py()!r} of a live row (seq {found[at]}); "
                "delete that one first, or give rows keys of their own"
            )
        return number

    def add(self, number: np.ndarray, base: int, alive: Alive) -> None:
        """Rows have come; `number` is what `numbered` made of their keys."""
        order = np.argsort(number, kind="stable")
        self._pieces.append((number[order], base + order))
        while len(self._pieces) > 1 and len(self._pieces[-2][0]) < 2 * len(self._pieces[-1][0]):
            first, second = self._pieces.pop(), self._pieces.pop()
            joined = [np.concatenate(columns) for columns in zip(second, first, strict=True)]
            if len(joined[0]) >= _WORTH_A_LOOK:
                live = self._live(joined[1], alive)
                joined = [column[live] for column in joined]
                if len(self.deleted):
                    self.deleted = self.deleted[alive(self.deleted)]
            order = np.argsort(joined[0], kind="stable")
            self._pieces.append((joined[0][order], joined[1][order]))

    def found(self, wanted: pa.Array, alive: Alive, keys_of: Finder) -> np.ndarray:
        """Arrival numbers, increasing, of the live rows with these keys, which `read_keys` gave. Changes nothing."""
        distinct = pc.unique(wanted.drop_null())
        found = self._find(distinct, _numbers(distinct), alive, keys_of)
        return np.sort(found[found != NOT_FOUND])

    def forget(self, gone: np.ndarray, asked: int) -> None:
        """The rows `gone` are live no more, of as many as were asked for; keys of no live row are counted."""
        self.deleted = np.insert(self.deleted, self.deleted.searchsorted(gone), gone)  # none of them is there: they were live
        self.rows_deleted += len(gone)
        self.not_found += asked - len(gone)

    def _live(self, seq: np.ndarray, alive: Alive) -> np.ndarray:
        """Which rows are neither expired nor deleted."""
        live = alive(seq)
        if len(self.deleted):
            live &= self.deleted.take(self.deleted.searchsorted(seq), mode="clip") != seq
        return live

    def _find(self, keys: pa.Array, number: np.ndarray, alive: Alive, keys_of: Finder) -> np.ndarray:
        """The live row with each key, or NOT_FOUND."""
        found = np.full(len(number), NOT_FOUND)
        for numbers, seq in self._pieces:
            first, stop = numbers.searchsorted(number, "left"), numbers.searchsorted(number, "right")
            many = stop - first  # rows of one number: a key may have come, and left, any number of times
            if not many.any():
                continue
            at = np.repeat(np.arange(len(number)), many)
            candidate = seq[np.repeat(stop - many.cumsum(), many) + np.arange(len(at))]
            live = self._live(candidate, alive)
            at, candidate = at[live], candidate[live]
            if len(at) and not pa.types.is_integer(keys.type):
                same = pc.equal(keys_of(candidate), keys.take(pa.array(at))).to_numpy(zero_copy_only=False)
                at, candidate = at[same], candidate[same]
            found[at] = candidate
        return found

    def save(self) -> tuple[dict[str, int], dict[str, np.ndarray]]:
        """What is remembered: counts, and arrays."""
        nothing = np.zeros(0, np.int64)
        number = np.concatenate([nothing, *(piece[0] for piece in self._pieces)])
        seq = np.concatenate([nothing, *(piece[1] for piece in self._pieces)])
        counts = {"deleted": self.rows_deleted, "not_found": self.not_found}
        return counts, {"keys.number": number, "keys.seq": seq, "keys.deleted": self.deleted}

    def restore(self, counts: dict[str, int], arrays: dict[str, np.ndarray]) -> None:
        """Take up what `save` gave."""
        order = np.argsort(arrays["keys.number"], kind="stable")
        self._pieces = [(arrays["keys.number"][order], arrays["keys.seq"][order])] if len(order) else []
        self.deleted = arrays["keys.deleted"]
        self.rows_deleted, self.not_found = counts["deleted"], counts["not_found"]


def read_keys(keys: Any, column: str, kind: pa.DataType | None) -> pa.Array:
    """The keys that delete() was given, as values of the key column's type (None: not known yet); SchemaError when they are
    none. No number is rounded and no text read as a number: either could name another row."""
    listed = _listed(keys)
    try:
        return _as_keys(_array_of(listed), kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        what = "whole numbers or texts" if kind is None else f"of type {kind}"
        raise SchemaError(f"delete() takes keys of the column {column!r}, {what}, in a list or array: {problem}") from None


def _listed(keys: Any) -> Any:
    """What an Arrow array can be made of; SchemaError when these are not several keys."""
    if isinstance(keys, Mapping) or hasattr(keys, "columns"):
        raise SchemaError(f"delete() takes keys in a list or array, got a {type(keys).__name__}; give its column of keys alone")
    several = isinstance(keys, Iterable) and not isinstance(keys, str | bytes | bytearray | memoryview)
    if not several or getattr(keys, "ndim", 1) == 0:
        remedy = "" if keys is None else f"; to delete one row: delete([{keys!r}])"
        raise SchemaError(f"delete() takes keys in a list or array, got {keys!r}{remedy}")
    return keys if isinstance(keys, pa.Array | pa.ChunkedArray) or hasattr(keys, "__array__") else list(keys)


def _array_of(listed: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(listed, pa.Array | pa.ChunkedArray):
        return listed
    try:
        return pa.array(listed)
    except OverflowError:  # whole numbers beyond int64
        if not all(isinstance(key, int | np.integer) for key in listed if key is not None):
            raise
        return pa.array(listed, pa.uint64())


def _as_keys(values: pa.Array | pa.ChunkedArray, kind: pa.DataType | None) -> pa.Array:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_floating(values.type):
        values = values.cast(pa.int64())  # raises for what is no whole number
    if kind is None:
        kind = values.type if _is_text(values.type) or pa.types.is_integer(values.type) else pa.int64()
    fits = _is_text(values.type) if _is_text(kind) else pa.types.is_integer(values.type)
    if not fits and not pa.types.is_null(values.type):
        raise TypeError(f"got keys of type {values.type}")
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    return values.cast(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _numbers(keys: pa.Array) -> np.ndarray:
    """A number for each key: equal for equal keys."""
    if pa.types.is_integer(keys.type):
        return keys.to_numpy(zero_copy_only=False).astype(np.int64)
    from skyband.kernels.hashing import hash_texts

    texts = keys.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    out = np.empty(len(texts), np.int64)
    if len(texts):
        offset = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        hash_texts(offset, np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8), out)
    return out


def _repeated(number: np.ndarray) -> np.ndarray:
    """Numbers that stand more than once."""
    ordered = np.sort(number)
    repeated: np.ndarray = ordered[1:][ordered[1:] == ordered[:-1]]
    return repeated

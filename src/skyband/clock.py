"""The time column: its values as whole numbers, durations in its unit, and back."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.errors import SchemaError
from skyband.window import Duration, nanoseconds

_UNIT_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_FAR = 1 << 61  # times beyond this would overflow when a window's size is added


class Clock:
    """Reads one time column, an integer or a timestamp."""

    def __init__(self, column: str, schema: pa.Schema) -> None:
        if column not in schema.names:
            raise SchemaError(f"the time column {column!r} is not in the batch; its columns are {schema.names}")
        self.column = column
        self.type = schema.field(column).type
        self.is_timestamp = pa.types.is_timestamp(self.type)
        if not self.is_timestamp and not pa.types.is_integer(self.type):
            raise SchemaError(
                f"the time column {column!r} is {self.type}; it must be an integer or a timestamp, cast it before pushing"
            )

    def read(self, table: pa.Table) -> np.ndarray:
        """The column as int64; SchemaError when a value is null or out of reach."""
        values = table.column(self.column)
        if values.null_count:
            place = values.is_null().to_pylist().index(True)
            raise SchemaError(
                f"the time column {self.column!r} is null in row {place} of the batch; drop or repair such rows before pushing"
            )
        try:
            times = values.cast(pa.int64()).to_numpy()
        except pa.ArrowInvalid as problem:
            raise SchemaError(f"the time column {self.column!r} holds values beyond int64: {problem}") from problem
        if len(times) and (int(times.max()) > _FAR or int(times.min()) < -_FAR):
            raise SchemaError(
                f"the time column {self.column!r} holds {times.max()}, too far from the epoch to add a window to it"
            )
        return times

    def length(self, value: Duration, what: str) -> int:
        """A duration in the column's unit."""
        if not self.is_timestamp:
            if not isinstance(value, int):
                raise SchemaError(
                    f"{what} is {value!r}, but the time column {self.column!r} is a plain {self.type}: "
                    "give an integer in that column's unit"
                )
            return self._within_reach(value, what)
        if isinstance(value, int):
            if value == 0:
                return 0
            raise SchemaError(
                f"{what} is the integer {value}, but the time column {self.column!r} is a {self.type}: "
                "give a duration with a unit, as in '30 minutes'"
            )
        exact, unit = nanoseconds(value, what), _UNIT_NANOSECONDS[self.type.unit]
        if exact % unit:
            raise SchemaError(
                f"{what} {value!r} is finer than the time column {self.column!r} ({self.type}); "
                f"use a multiple of 1 {self.type.unit}"
            )
        return self._within_reach(exact // unit, what)

    def _within_reach(self, value: int, what: str) -> int:
        if value > _FAR:
            raise SchemaError(f"{what} is {value}, longer than time itself can be counted here; use less than {_FAR}")
        return value

    def moment(self, value: Any) -> int:
        """A single time (an integer, datetime, numpy or pandas timestamp) as the column counts it."""
        given = value
        try:
            if isinstance(value, pa.Scalar):
                value = value.as_py()
            if self.is_timestamp:
                if not isinstance(value, datetime | np.datetime64):
                    raise TypeError("give a datetime")
                moment = pa.scalar(value, self.type) if isinstance(value, datetime) else pa.scalar(value).cast(self.type)
                return int(moment.cast(pa.int64()).as_py())
            if isinstance(value, bool) or not hasattr(value, "__index__"):
                raise TypeError("give an integer")
            return self._within_reach(value.__index__(), "the time")
        except (pa.ArrowException, TypeError, OverflowError) as problem:
            raise SchemaError(
                f"cannot read {given!r} as a time of the column {self.column!r} ({self.type}): {problem}"
            ) from problem

    def column_of(self, times: np.ndarray, hidden: np.ndarray | None = None) -> pa.Array:
        """Whole numbers as values of the column's type, null where `hidden` (a narrower integer type is widened if
        they do not fit)."""
        plain = pa.array(times, pa.int64(), mask=hidden)
        try:
            return plain.cast(self.type)
        except pa.ArrowInvalid:
            return plain

"""The time column: its values as whole numbers, durations in its unit, and back."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from skyband.errors import SchemaError
from skyband.window import Duration, nanoseconds

_UNIT_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_COARSE = ("Y", "M", "W", "D", "h", "m")  # units of NumPy's above a second
_LONGEST = 1 << 58  # of a duration, in the column's unit
_FAR = (1 << 63) - 8 * _LONGEST  # of a time from the epoch: windows around it can still be counted


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
        if len(times):
            self._reachable(int(times.max()))
            self._reachable(int(times.min()))
        return times

    def length(self, value: Duration, what: str) -> int:
        """A duration in the column's unit."""
        if not self.is_timestamp:
            if not isinstance(value, int):
                raise SchemaError(
                    f"{what} is {value!r}, but the time column {self.column!r} is a plain {self.type}: "
                    "give an integer in that column's unit"
                )
            return self._short(value, what)
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
        return self._short(exact // unit, what)

    def _short(self, value: int, what: str) -> int:
        if value > _LONGEST:
            raise SchemaError(f"{what} is {value}, longer than can be counted from any time; use at most {_LONGEST}")
        return value

    def _reachable(self, time: int) -> int:
        if not -_FAR <= time <= _FAR:
            raise SchemaError(
                f"the time {time} of the column {self.column!r} is too far from the epoch to count windows around it"
            )
        return time

    def moment(self, value: Any) -> int:
        """A single time (an integer, datetime, numpy, pandas or Arrow timestamp) as the column counts it."""
        given = value
        try:
            value = plain_moment(value)
            if self.is_timestamp:
                if not isinstance(value, datetime | np.datetime64):
                    raise TypeError("give a datetime")
                moment = pa.scalar(value, self.type) if isinstance(value, datetime) else _arrow_time(value).cast(self.type)
                return self._reachable(int(moment.cast(pa.int64()).as_py()))
            if isinstance(value, datetime | np.datetime64):
                raise TypeError("give an integer")
            return self._reachable(value.__index__())
        except (pa.ArrowException, TypeError, OverflowError) as problem:
            raise SchemaError(
                f"cannot read {given!r} as a time of the column {self.column!r} ({self.type}): {problem}"
            ) from problem

    def value_of(self, moment: int) -> Any:
        """What `moment` gave, as a Python value, also where the column could not hold it; a timestamp that is finer than a
        datetime can say, and without pandas, or further away: a numpy.datetime64."""
        if not self.is_timestamp:
            return moment
        try:
            return self.column_of(np.array([moment]))[0].as_py()
        except (ValueError, OverflowError):
            return np.datetime64(moment, self.type.unit)

    def check_end(self, end: int) -> None:
        """SchemaError when a window's end does not fit the column's type."""
        if not self.is_timestamp:
            signed = pa.types.is_signed_integer(self.type)
            if end >= 1 << (self.type.bit_width - signed):
                raise SchemaError(
                    f"a window around the newest row ends at {end}, which the time column {self.column!r} ({self.type}) "
                    "cannot hold; cast it to int64 before pushing"
                )

    def column_of(self, times: np.ndarray, hidden: np.ndarray | None = None) -> pa.Array:
        """Whole numbers as values of the column's type, null where `hidden`."""
        return pa.array(times, pa.int64(), mask=hidden).cast(self.type)


def _arrow_time(value: np.datetime64) -> pa.Scalar:
    """The same in Arrow, which reads no days, hours or minutes."""
    return pa.scalar(value.astype("datetime64[s]") if np.datetime_data(value)[0] in _COARSE else value)


def plain_moment(value: Any) -> Any:
    """A whole number, datetime or numpy.datetime64 that `value` is, or stands for; TypeError when it is no time."""
    if isinstance(value, pa.Scalar):
        # not as_py(), which needs pandas for nanoseconds
        timed = pa.types.is_timestamp(value.type) and value.is_valid
        value = np.datetime64(value.value, value.type.unit) if timed else value.as_py()
    if isinstance(value, bool) or not (isinstance(value, datetime | np.datetime64) or hasattr(value, "__index__")):
        raise TypeError("give an integer or a datetime")
    if value != value:  # NaT
        raise TypeError("it is no time")
    return value


def early_moment(value: Any) -> Any:
    """What advance() is given before the first row, as far as it can be checked without the time column."""
    try:
        return plain_moment(value)
    except TypeError as problem:
        raise SchemaError(f"advance() cannot read {value!r} as a time: {problem}") from None


def early_moments(clock: Clock, values: list[Any]) -> list[int]:
    """What advance() was given then, as the time column of the first row counts it."""
    try:
        return [clock.moment(value) for value in values]
    except SchemaError as problem:
        raise SchemaError(
            f"advance() was called before the first row with another kind of time: {problem}; now forgotten"
        ) from None


def watermarks_before(times: np.ndarray | None, watermark: int, allowed: int) -> np.ndarray | None:
    """The watermark before each new row, where some may be late; `watermark`: before all of them."""
    if times is None or (times[0] >= watermark and (times[1:] >= times[:-1]).all()):
        return None
    before: np.ndarray = np.maximum.accumulate(times) - allowed
    before[1:] = np.maximum(before[:-1], watermark)
    before[0] = watermark
    return before

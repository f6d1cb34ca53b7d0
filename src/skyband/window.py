"""Windows: which part of the stream a query looks at, and how often. Frozen and validated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import TypeAlias

from skyband.errors import QueryError

Duration: TypeAlias = int | str | timedelta

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
    "w": 7 * 86400 * 10**9,
}
_UNIT_NAMES = {
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), "ns"),
    **dict.fromkeys(("us", "µs", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("h", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("w", "week", "weeks"), "w"),
}
_MOST_ROWS = 1 << 61
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Zµ]+)\s*")


def duration(value: object, what: str) -> int | timedelta | str:
    """`value` as a duration; QueryError when it is none. `what` names it in the error."""
    if isinstance(value, bool) or not (isinstance(value, str | timedelta) or hasattr(value, "__index__")):
        raise QueryError(
            f"{what} must be a duration, got {value!r}; write '30 minutes', a timedelta or an integer in the time column's unit"
        )
    if not isinstance(value, str | timedelta):
        return int(value.__index__())
    exact = nanoseconds(value, what)
    if isinstance(value, timedelta) and (finer := int(getattr(value, "nanoseconds", 0))):  # that of pandas has some
        return f"{exact + finer} ns"
    return value


def lateness_of(value: object, *, timed: bool = True) -> int | timedelta | str:
    """Check that `value` says how far behind the greatest time a row may come; nothing, unless rows are `timed`."""
    lateness = duration(value, "lateness")
    length = lateness if isinstance(lateness, int) else nanoseconds(lateness, "lateness")
    if length < 0:
        raise QueryError(f"lateness must not be negative, got {lateness!r}")
    if length > 0 and not timed:
        raise QueryError(f"lateness={lateness!r} means nothing without a time column; name it: Monitor(..., time='...')")
    return lateness


def nanoseconds(value: str | timedelta, what: str) -> int:
    """A text or timedelta duration in nanoseconds, exactly."""
    if isinstance(value, timedelta):
        return (value.days * 86400 + value.seconds) * 10**9 + value.microseconds * 1000
    total, place = Fraction(0), 0
    while match := _DURATION.match(value, place):
        unit = _UNIT_NAMES.get(match[2]) or _UNIT_NAMES.get(match[2].lower())
        if unit is None:
            break
        total += Fraction(match[1]) * _NANOSECONDS[unit]
        place = match.end()
    if place != len(value) or place == 0 or total.denominator != 1:
        raise QueryError(
            f"{what}={value!r} is not a duration; write a number and a unit, as in '500 ms', '1 second', '30 minutes', '1 hour'"
        )
    return int(total)


@dataclass(frozen=True)
class CountWindow:
    """The last `size` rows, looked at after every `slide` rows.

    >>> CountWindow(1000, slide=10)
    CountWindow(size=1000, slide=10)
    """

    size: int
    slide: int = 1

    def __post_init__(self) -> None:
        for what, value in (("size", self.size), ("slide", self.slide)):
            if isinstance(value, bool) or not hasattr(value, "__index__"):
                raise QueryError(f"CountWindow {what} must be a whole number of rows, got {value!r}")
            object.__setattr__(self, what, value.__index__())
            if not 1 <= value <= _MOST_ROWS:
                raise QueryError(f"CountWindow {what} must be at least 1 and at most {_MOST_ROWS:,}, got {value}")
        if self.slide > self.size:
            raise QueryError(
                f"CountWindow slide {self.slide} exceeds its size {self.size}: rows would be skipped; make slide at most size"
            )


@dataclass(frozen=True)
class TimeWindow:
    """The rows of the last `size` of time, looked at at every multiple of `slide` since the epoch.

    >>> TimeWindow("30 minutes", slide="1 minute")
    TimeWindow(size='30 minutes', slide='1 minute')

    Both are durations: a text such as "500 ms" or "1 hour", a timedelta, or a whole number in the time column's own unit
    where that column is of integers.
    """

    size: Duration
    slide: Duration

    def __post_init__(self) -> None:
        size, slide = duration(self.size, "TimeWindow size"), duration(self.slide, "TimeWindow slide")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "slide", slide)
        if isinstance(size, int) != isinstance(slide, int):
            raise QueryError(
                f"TimeWindow size {size!r} and slide {slide!r} must both be integers or both be durations with a unit"
            )
        length, step = (value if isinstance(value, int) else nanoseconds(value, "TimeWindow") for value in (size, slide))
        for what, value, given in (("size", length, size), ("slide", step, slide)):
            if value < 1:
                raise QueryError(f"TimeWindow {what} must be positive, got {given!r}")
        if step > length:
            raise QueryError(
                f"TimeWindow slide {slide!r} exceeds its size {size!r}: rows would be skipped; make slide at most size"
            )


Window: TypeAlias = CountWindow | TimeWindow


def pairs_among(rows: int, asked: int) -> int:
    """How many of the pairs asked for so many rows have; 1 at least."""
    return max(min(asked, rows * (rows - 1) // 2), 1)

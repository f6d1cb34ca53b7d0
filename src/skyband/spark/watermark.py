"""Times as Spark's watermark holds them: in milliseconds, up to the year 2262.

A timestamp's milliseconds are its own, and Spark takes the lateness off. An integer has no unit, so a millisecond stands for
the greatest step in which no window's end is lost, and the lateness is taken off first: it need not be a whole number of steps.
Integers may be negative, or begin at zero: what Spark's watermark counts of them begins long before.
Where a stream's integers are so large that they would not fit, in microseconds or nanoseconds, each further
doubling is counted in 2³⁷ steps: the watermark then moves by eight milliseconds at a time. It is never ahead of the true one,
so no row is late that would not be, and a window waits a moment longer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyband.clock import Clock
from skyband.errors import QueryError, SchemaError
from skyband.window import Duration, lateness_of

Array = np.ndarray
_FARTHEST = (1 << 63) // 10**6 - 1  # milliseconds from the epoch: pandas, through which marks pass, counts nanoseconds
_STRAIGHT = 42  # integers of so many bits stand for themselves
_STEPS = 37  # bits of the steps in which every further doubling is counted
_BEFORE = 1 << 40  # steps before zero that integers may lie, for Spark's watermark begins at zero
_REACH = 1 << 62  # integers beyond are no times in any unit
_MANY = 100  # rows of a task that have no place in the watermark, all of them, before that is taken for a mistake


@dataclass(frozen=True)
class Scale:
    """How the times of one column stand in the watermark."""

    tick: int = 1  # what a millisecond stands for, in the column's unit
    delay: int = 0  # milliseconds that Spark takes off: the lateness of timestamps
    behind: int = 0  # what is taken off before: the lateness of integers
    reach: int = _REACH  # times farther from zero are as good as none
    integer: bool = False

    def mark(self, time: int) -> int:
        """The millisecond of a time, which moves the watermark."""
        steps = (time - self.behind) // self.tick
        return bent(steps) if self.integer else steps

    def time(self, millisecond: int) -> int:
        """What the watermark says when it is at a millisecond."""
        return (straight(millisecond) if self.integer else millisecond) * self.tick

    def shown(self, time: int) -> int:
        """The watermark that a row of this time brings about."""
        return self.time(self.mark(time) - self.delay)

    def reached(self, end: int) -> int:
        """The first millisecond at which the watermark is at `end` or past it."""
        steps = -(-end // self.tick)
        if not self.integer:
            return steps
        millisecond = bent(steps)
        return millisecond if straight(millisecond) >= steps else millisecond + 1


def bent(steps: int) -> int:
    """A whole number as one that the watermark holds: never smaller for a larger one."""
    if steps < 1 << _STRAIGHT:
        return max(_BEFORE + steps, -_FARTHEST)
    octave = steps.bit_length() - _STRAIGHT - 1
    begin = 1 << (_STRAIGHT + octave)
    return _BEFORE + (1 << _STRAIGHT) + (octave << _STEPS) + ((steps - begin) >> (_STRAIGHT - _STEPS + octave))


def straight(millisecond: int) -> int:
    """The smallest number of which `bent` makes this."""
    place = millisecond - _BEFORE
    if place < 1 << _STRAIGHT:
        return place
    octave, step = divmod(place - (1 << _STRAIGHT), 1 << _STEPS)
    return (1 << (_STRAIGHT + octave)) + (step << (_STRAIGHT - _STEPS + octave))


def make_scale(clock: Clock | None, lateness: Duration, slides: Iterable[int | None]) -> Scale:
    """The scale of a time column. `slides`: those of time windows, and None where windows of rows wait for the watermark."""
    lateness_of(lateness)
    if clock is None:
        if lateness != 0:
            raise QueryError(f"lateness is {lateness!r}, but there is no time to be late by; name the time column: time='...'")
        return Scale()
    allowed = clock.length(lateness, "lateness")
    if not clock.is_timestamp:
        steps = [1 if slide is None else slide for slide in slides]
        timed = [slide for slide in slides if slide is not None]
        reach = min(_REACH, _FARTHEST * min(timed, default=_REACH))
        return Scale(tick=gcd(*steps) or 1, behind=allowed, reach=reach, integer=True)
    tick = {"s": 1, "ms": 1, "us": 1000, "ns": 10**6}[clock.type.unit]
    if allowed % tick:
        raise QueryError(f"lateness is {lateness!r}, and Spark counts watermarks in milliseconds; use a whole number of them")
    return Scale(tick=tick, delay=allowed // tick, reach=_FARTHEST * tick)


class Times:
    """The times of the rows that one task reads.

    One beyond the reach of the watermark is as good as none, where rows wait for it: a single such row must not end the
    stream. Where all are, they are of a unit that does not fit the windows, and nothing would ever come out.
    """

    def __init__(self, scale: Scale, *, waits: bool) -> None:
        self.scale, self.waits = scale, waits
        self.beyond = 0  # so many rows
        self.example = 0
        self.within = False  # some row is not

    def countable(self, time: pa.Array) -> Array | None:
        """Which rows have a time that can be counted; None: all."""
        reach = self.scale.reach
        number = time.cast(pa.int64())
        ends = pc.min_max(number)
        low, high = ends["min"].as_py() or 0, ends["max"].as_py() or 0
        beyond = self.waits and (high > reach or low < -reach)
        self.within = self.within or (not beyond and time.null_count < len(time))
        if not beyond and not time.null_count:
            return None
        known: Array = time.is_valid().to_numpy(zero_copy_only=False)
        if beyond:
            moment = number.fill_null(0).to_numpy()
            near = (moment <= reach) & (moment >= -reach)
            self.beyond += int(np.count_nonzero(~near))
            self.example = high if high > reach else low
            known = known & near
            self.within = self.within or bool(known.any())
        return known

    def check(self) -> None:
        """SchemaError when a whole task's integers are beyond; to be called after its last row."""
        if self.scale.integer and not self.within and self.beyond >= _MANY:
            raise SchemaError(
                f"all times of {self.beyond} rows, such as {self.example}, are more than {self.scale.reach} from 0: the "
                f"watermark cannot follow windows that slide by {self.scale.tick} so far; make the slide longer, or the times "
                "timestamps: timestamp_micros(...) before monitor()"
            )

"""What is said of a stream besides its queries: the arguments of `monitor`, the table [stream] of a job."""

from __future__ import annotations

from dataclasses import dataclass

from skyband.window import Duration


@dataclass(frozen=True)
class Stream:
    """See `skyband.spark.monitor`."""

    time: str | None = None
    lateness: Duration = 0
    group_by: tuple[str, ...] = ()
    arrival: str | None = None
    key: str | None = None
    deletes: str | None = None
    shards: int | None = None

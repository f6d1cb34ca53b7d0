"""Names of the metrics that a streaming query carries in its progress reports: see `progress` for who reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from skyband.spark.control.terms import Terms
    from skyband.spark.plan import Plan

OBSERVED = "skyband-"  # begins the name of each set of metrics
STANDING = "queries"  # what shards of a stream with commands say of their number: "shard count", perhaps not all of them
WITNESS = "witness"  # 2: one of the states in the store is of no group; 1: it is; 0: nobody has looked
PRECISION, MISSED = "precision ", "missed at most "  # begin the names of what is said of an approximate query
BOUNDS = "bounds"  # the same where queries come and go: what every state says, by query, as JSON


def observed_states(size: str, *, alone: bool = False) -> list[Column]:
    """How many states a micro-batch wrote, and how large the largest is, from the column of their sizes. `alone`: there is one.
    A sum says its size too, and Spark generates the metrics' code anew in every micro-batch, the longest for a maximum."""
    sizes = F.col(f"`{size}`")
    written = F.count(F.when(sizes > 0, F.lit(1)))
    largest = F.sum(sizes) if alone else F.max(sizes)
    return [written.alias("states"), F.coalesce(largest, F.lit(0)).alias("largest state")]


def observed_scale(plan: Plan | Terms) -> list[Column]:
    """What one millisecond of Spark's watermark stands for, and what was taken off; 0: the times are timestamps."""
    told = {"tick": plan.scale.tick if plan.scale.integer else 0, "behind": plan.scale.behind}
    return [F.lit(value).alias(name) for name, value in told.items()]

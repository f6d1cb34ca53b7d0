"""skyband on Spark: `monitor(df, queries, …)` answers standing queries over a streaming or a batch DataFrame.

    pipeline.py   monitor(): the steps as one query of Spark      sessions.py   a session with the settings that matter
    scores.py     scores as Catalyst columns                      plan.py       what workers are told; paces.py, marks.py
    reduce.py     rows next to the data; candidate_rows.py        group.py      the windows of one group
    stateful.py   a group's answers to a micro-batch              kept.py       a state between micro-batches; memory.py
    logged.py     the same as a log                               observed.py   names of the figures in Spark's reports
    tallies.py    what a group says of each query                 progress.py   those figures, read
    watching/     metrics(): those figures for other programs     control/      queries that come and go by commands
    daemon.py     Python workers, and what they load first        worker.py     what a worker does once
    warm.py       kernels compiled while Spark starts             jvm.py        the JVM of a session that is started here
    arriving.py   columns in the types that workers were told     watermark.py  times as Spark's watermark holds them
    stream.py     what is said of a stream besides its queries    columns.py    columns for Catalyst
    carried.py    plans on their way to the workers               packets.py    tables on theirs
    ties.py       what tells equal rows apart

Where a column of scores is not the answer (many scores, pairs, objects, deletions), a group has several states:

    shards.py     which shard answers which query                 needs.py      which rows it can rank
    contest.py    which rows of a pane some of many can rank      addressed.py  rows sent to shards
    merge.py      parts of answers put together                   shard_group.py  the windows of one shard
    flat.py       how results of all kinds travel
    packed.py     and how they come out, without Catalyst where it can be done without

Jobs without code, `skyband run JOB.toml`, are in jobs/; demo.py has the demo's stream, questions and check.

Workers import from this package in every Python process, so its public names are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skyband.spark.control.table import queries_from
    from skyband.spark.pipeline import monitor
    from skyband.spark.scores import condition_column, score_column
    from skyband.spark.sessions import configure, session, settings
    from skyband.spark.watching.metrics import metrics

__all__ = ["condition_column", "configure", "metrics", "monitor", "queries_from", "score_column", "session", "settings"]

_HOMES = {
    "condition_column": "scores",
    "configure": "sessions",
    "metrics": "watching.metrics",
    "monitor": "pipeline",
    "queries_from": "control.table",
    "score_column": "scores",
    "session": "sessions",
    "settings": "sessions",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'skyband.spark' has no attribute {name!r}")
    value = getattr(import_module(f"skyband.spark.{_HOMES[name]}"), name)
    globals()[name] = value
    return value

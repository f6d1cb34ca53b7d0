"""skyband on Spark: `monitor(df, queries, …)` answers standing queries over a streaming or a batch DataFrame.

session.py    a session with the settings that matter
pipeline.py   monitor(): the steps as one query of Spark
scores.py     scores as Catalyst columns              plan.py       what workers are told
reduce.py     rows next to the data                   group.py      the windows of one group
stateful.py   a group's state between micro-batches
"""

from skyband.spark.pipeline import monitor
from skyband.spark.scores import condition_column, score_column
from skyband.spark.session import configure, session, settings

__all__ = ["condition_column", "configure", "monitor", "score_column", "session", "settings"]

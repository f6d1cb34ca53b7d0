"""Lanes: the queries that share one score, one order of rows and one structure.

    scores (turned; NaN: cannot rank) ─► open rows ─► structure ─► answers ─► result rows
                                         until their
                                         slide closes

base.py    what all lanes do: hand rows to the structure in pieces, turn answers into result rows
count.py   rows by arrival, count windows
time.py    rows by time, then arrival; slides close when the watermark passes them
open_rows.py  where rows wait for that
crowd.py   many queries with scores of their own over the same attributes
"""

from skyband.lanes.base import Lane, Member
from skyband.lanes.count import CountLane
from skyband.lanes.crowd import CrowdLane, crowd_key
from skyband.lanes.time import TimeLane

__all__ = ["CountLane", "CrowdLane", "Lane", "Member", "TimeLane", "crowd_key"]

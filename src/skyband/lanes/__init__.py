"""Lanes: queries that are answered together, most by one structure over one score.

    scores (turned; NaN: cannot rank) ─► open rows ─► structure ─► answers ─► result rows
                                         until their
                                         slide closes

base.py    what the monitor asks of any lane
ranked.py  lanes over a structure of the ranked family
count.py   rows by arrival, count windows
time.py    rows by time, then arrival; slides close when the watermark passes them
open_rows.py  where rows wait for that
crowd.py   many queries with scores of their own over the same attributes
pairs.py   pairs of rows; pairs_windows.py: their two kinds of windows
"""

from skyband.lanes.base import NEVER, Door, Lane, Member, Names, Place, Rows
from skyband.lanes.count import CountLane
from skyband.lanes.crowd import CrowdLane, crowd_key
from skyband.lanes.pairs_windows import PairCountLane, PairTimeLane
from skyband.lanes.time import TimeLane

KINDS: dict[str, type[Lane]] = {lane.kind: lane for lane in (CountLane, TimeLane, CrowdLane, PairCountLane, PairTimeLane)}
"""The lanes by their names in saved state."""

__all__ = [
    "KINDS",
    "NEVER",
    "CountLane",
    "CrowdLane",
    "Door",
    "Lane",
    "Member",
    "Names",
    "PairCountLane",
    "PairTimeLane",
    "Place",
    "Rows",
    "TimeLane",
    "crowd_key",
]

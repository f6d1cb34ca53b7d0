"""Lanes: queries that are answered together, most by one structure over one score.

    scores (turned; NaN: cannot rank) ─► open rows ─► structure ─► answers ─► result rows
                                         until their
                                         slide closes

base.py    what the monitor asks of any lane
ranked.py  lanes over a structure of the ranked family
count.py   rows by arrival, count windows
time.py    rows by time, then arrival; slides close when the watermark passes them
open_rows.py  where rows wait for that
crowd.py   many queries with scores of their own over the same attributes; crowd_queries.py: what is read of each, and with whom
           it may be
crowd_time.py  the same over time windows
thresholds.py  many threshold queries, over windows of both kinds
snapshots.py  the windows that it says nothing of
scores.py  many queries with scores of any form
across.py  objects whose attributes arrive in separate streams; across_rows.py reads and checks their rows; across_newest.py:
           as one part of several
pairs.py   pairs of rows; pairs_windows.py: their two kinds of windows; texts.py: the texts among what is compared
"""

from skyband.lanes.across import AcrossLane, across_place
from skyband.lanes.across_newest import NewestAcrossLane
from skyband.lanes.base import NEVER, Door, Gathers, Lane, Member, Names, Place, Rows, late_for_all
from skyband.lanes.count import CountLane
from skyband.lanes.crowd import CrowdLane, crowd_lane, crowd_place
from skyband.lanes.crowd_queries import MOST_ATTRIBUTES, attributes_of, auto_key, crowd_key
from skyband.lanes.crowd_time import CrowdTimeLane
from skyband.lanes.pairs_windows import PairCountLane, PairTimeLane
from skyband.lanes.scores import ScoresLane, in_scores_lane
from skyband.lanes.thresholds import ThresholdLane, ThresholdTimeLane
from skyband.lanes.time import TimeLane

_OF_ROWS = (CountLane, TimeLane, CrowdLane, CrowdTimeLane, ScoresLane, ThresholdLane, ThresholdTimeLane)
_OTHERS = (PairCountLane, PairTimeLane, AcrossLane, NewestAcrossLane)
KINDS: dict[str, type[Lane]] = {lane.kind: lane for lane in (*_OF_ROWS, *_OTHERS)}
"""The lanes by their names in saved state."""

__all__ = [
    "KINDS",
    "MOST_ATTRIBUTES",
    "NEVER",
    "AcrossLane",
    "CountLane",
    "CrowdLane",
    "CrowdTimeLane",
    "Door",
    "Gathers",
    "Lane",
    "Member",
    "Names",
    "NewestAcrossLane",
    "PairCountLane",
    "PairTimeLane",
    "Place",
    "Rows",
    "ScoresLane",
    "TimeLane",
    "across_place",
    "attributes_of",
    "auto_key",
    "crowd_key",
    "crowd_lane",
    "crowd_place",
    "in_scores_lane",
    "late_for_all",
]

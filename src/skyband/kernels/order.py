"""Who outranks whom: the one definition of skyband's total order.

Inside the engine a larger score is better (`order="asc"` turns scores around at the door), and among
equal scores the newer row is better. A row's *ordinal* is its place in the order of the stream that its
query sees (arrival for count windows, time then arrival for time windows): larger is newer.
NaN never enters a comparison: rows without a score are left out before they are ranked.
"""

from __future__ import annotations

from skyband.kernels.jit import lean


@lean
def outranks(score: float, ordinal: int, other_score: float, other_ordinal: int) -> bool:
    """True when (score, ordinal) ranks above (other_score, other_ordinal)."""
    return score > other_score or (score == other_score and ordinal > other_ordinal)

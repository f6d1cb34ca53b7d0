"""`algorithm="auto"`: which algorithm for which question, from measured costs."""

from __future__ import annotations

from skyband.algorithms.contract import Plan


def choose(plan: Plan) -> str:
    """The name of the algorithm to use for a plan."""
    if len(plan.ks) > 1:
        return "shared"
    return "sap"

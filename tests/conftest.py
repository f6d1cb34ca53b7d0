"""Hypothesis profiles: `default` is quick, `ci` (where the variable CI is set) draws the same examples every time,
`slow` draws many; HYPOTHESIS_PROFILE or --hypothesis-profile chooses. None has a deadline: a kernel's first call compiles it.
Tests marked `slow` are left out unless `-m` names the marker, those marked `data` unless SKYBAND_DATA names a folder.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("default", max_examples=20, deadline=None, suppress_health_check=_QUIET)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, print_blob=True)
settings.register_profile("slow", settings.get_profile("default"), max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [] if "slow" in config.getoption("-m") else ["slow"]
    if not os.environ.get("SKYBAND_DATA"):
        left_out.append("data")
    dropped = [item for item in items if any(item.get_closest_marker(name) for name in left_out)]
    config.hook.pytest_deselected(items=dropped)
    items[:] = [item for item in items if item not in dropped]

"""Panes of time windows: which windows they make differ."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skyband.held_panes import HeldPanes
from skyband.kernels.emission import CHANGES, NOTHING, SNAPSHOTS
from skyband.schedule import time_windows

NEVER = int(np.iinfo(np.int64).min)


def held(times: list[int]) -> HeldPanes:
    """A pane a row, entered in several pieces."""
    panes, time = HeldPanes(), np.array(times, np.int64)
    for piece in np.array_split(np.arange(len(time)), 3):
        panes.add(time[piece], piece)
    return panes


@given(
    times=st.lists(st.integers(-30, 60), unique=True, max_size=12).map(sorted),
    size=st.integers(1, 20),
    slide=st.integers(1, 7),
    after=st.none() | st.integers(-10, 10),
    closed=st.integers(0, 12),
    emission=st.sampled_from([NOTHING, CHANGES, SNAPSHOTS]),
)
def test_windows_are_those_whose_rows_differ_from_the_one_before(
    times: list[int], size: int, slide: int, after: int | None, closed: int, emission: int
) -> None:
    begin = NEVER if after is None else after * slide
    upto = ((-10 if after is None else after) + closed) * slide
    found = time_windows(0, size, slide, begin, upto, held(times), len(times), emission)

    def rows(end: int) -> list[int]:
        return [at for at, time in enumerate(times) if end - size <= time < end]

    first = max(begin, (min(times, default=0) // slide - 1) * slide)
    wanted = []
    for end in range(first + slide, upto + 1, slide):
        turned = any(end in ((time // slide + 1) * slide, ((time + size) // slide + 1) * slide) for time in times)
        if turned or (emission == SNAPSHOTS and rows(end)):
            wanted.append(end)
    wanted = wanted[-1:] if emission == NOTHING else wanted
    assert (found.number * slide).tolist() == wanted
    for low, high, end in zip(found.first.tolist(), found.end.tolist(), wanted, strict=True):
        assert list(range(low, high)) == rows(end)


def test_panes_that_are_past_make_room_for_others() -> None:
    panes, added = HeldPanes(), 0
    for _ in range(100):
        panes.add(np.arange(added, added + 7), np.arange(added, added + 7))
        added += 7
        panes.forget_before(added - 20)
    assert panes.time.tolist() == panes.begin.tolist() == list(range(added - 20, added))
    assert panes.oldest(added) == added - 20 and panes.nbytes <= 16 * 3 * 27
    again = HeldPanes()
    again.restore(panes.save())
    again.add(np.array([added]), np.array([added]))
    assert again.time.tolist() == list(range(added - 20, added + 1))

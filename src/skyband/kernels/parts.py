"""Windows dealt to parts of a structure, each of which answers its own queries, and their answers put in one order."""

from __future__ import annotations

from skyband.kernels.jit import jit
from skyband.kernels.tables import SAME


@jit
def own_windows(query, part_of, part, places):
    """The places of the windows of one part's queries, into `places`; returns how many."""
    found = 0
    for at in range(query.shape[0]):
        places[found] = at
        found += part_of[query[at]] == part
    return found


@jit
def end_of_round(windows, part_of, needs, start, room, used):
    """The answers of windows[start:stop] certainly fit into `room` places for each part. Returns `stop`, beyond `start` if
    there is another. `used` is a buffer, a number for each part."""
    used[:] = 0
    at = start
    while at < windows.query.shape[0]:
        query = windows.query[at]
        part = part_of[query]
        if windows.report[at]:
            used[part] += needs[query]
            if used[part] > room and at > start:
                break
        at += 1
    return at


@jit
def put_in_order(results, places, begins, sizes, offset):
    """Where the answers of a part's windows lie, told of all windows: its places begin at `offset`."""
    for i in range(places.shape[0]):
        results.begin[places[i]] = begins[i] + offset if sizes[i] != SAME else 0
        results.size[places[i]] = sizes[i]

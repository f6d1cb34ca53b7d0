"""Who forms a crowd with whom, of the queries that leave the algorithm to us.

Queries over the same columns and the same window may share one grid. So may those over some of its columns: a score is
computed of its own columns only, whatever the others hold, and cells that differ in the others are as good as each other. A
crowd costs about half a millisecond a push before it has a query, and a query more, the more columns the grid has. So queries
whose columns overlap share a grid over all of them, up to six; a thousand and more over the same columns have their own.

Milliseconds a cycle of 1000 rows, windows of 20,000, k = 20, linear scores:

    ==============================  ===========  =======================  =========
    queries                         a lane each  a crowd for each subset  one crowd
    ==============================  ===========  =======================  =========
    62 over 31 subsets of 5          20           11                       1.0
    320 over 31 subsets of 5         75           12                       2.4
    1000 over 31 subsets of 5                     15                       4.3
    1000 over 10 pairs of 5                       7.5                      3.8
    3000 over 10 pairs of 5                       15                       10
    630 over 63 subsets of 6         162          28                       3.9
    900 over 3 pairs of 3                         4.5                      3.0
    ==============================  ===========  =======================  =========
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from skyband.algorithms.choose import MANY_ALIKE, choose_crowd, choose_thresholds
from skyband.lanes import MOST_ATTRIBUTES, CrowdLane, CrowdTimeLane, Door, Gathers, Lane, Place, TimeLane, crowd_place
from skyband.query import Threshold


@dataclass
class _Group:
    """Queries that may share a grid over `columns`."""

    columns: frozenset[str]
    places: list[Place] = field(default_factory=list)  # that come now
    doors: set[Door | None] = field(default_factory=set)  # distinct scores, of those that are answered alone too

    def take(self, other: _Group) -> None:
        self.columns |= other.columns
        self.places += other.places
        self.doors |= other.doors


def gathered(places: list[Place], lanes: list[Lane]) -> list[Place]:
    """The places, where queries that have many scores among them form a crowd, or join one.

    Those that have been answered for a while stay where they are, and count: once there are many, whoever comes starts a crowd,
    which the next ones join. While rows wait none can join one over time; who comes then is alone, or in a crowd with many that
    come at the same moment, and taken over later (`brought_together`).
    """
    joinable = [lane for lane in lanes if isinstance(lane, CrowdLane) and lane.is_open]
    crowds = [lane.gathers for lane in joinable if lane.gathers is not None]
    later = [lane.gathers for lane in _over_time(lanes) if not lane.is_open]
    algorithms = {lane.gathers: lane.algorithm for lane in lanes if isinstance(lane, CrowdLane)}
    found: dict[int, Place] = {}
    groups: dict[Gathers, _Group] = {}
    apart: dict[Gathers, _Group] = {}  # that come while rows wait for those they could join
    for one in places:
        if one.gathers is None:
            continue
        open_to = [crowd for crowd in crowds if one.gathers.within(crowd)]
        if open_to:
            crowd = min(open_to, key=lambda crowd: len(crowd.columns))
            found[id(one)] = crowd_place(one, algorithms[crowd], crowd)
            continue
        waits = any(one.gathers.within(crowd) for crowd in later if crowd is not None)
        group = (apart if waits else groups).setdefault(one.gathers, _Group(one.gathers.columns))
        group.places.append(one)
        group.doors.add(one.door)
    kinds = {gathers.alike: gathers for gathers in groups}
    for lane in lanes if groups else []:
        for member in lane.members:
            if member.active and member.gathers is not None and member.gathers.alike in kinds:
                groups.setdefault(member.gathers, _Group(member.gathers.columns)).doors.update(lane.doors)
    for of_these in (groups, apart):
        found |= {id(one): crowd_place(one, algorithm, crowd) for one, algorithm, crowd in _crowds(of_these)}
    return [found.get(id(one), one) for one in places]


def _crowds(groups: dict[Gathers, _Group]) -> Iterator[tuple[Place, str, Gathers]]:
    """The places that form crowds: by which algorithm, and with whom."""
    for kind, any_of_them in {gathers.alike: gathers for gathers in groups}.items():
        for group in _united([group for gathers, group in groups.items() if gathers.alike == kind]):
            if group.places and (algorithm := _algorithm(group)):
                crowd = replace(any_of_them, columns=group.columns)
                yield from ((one, algorithm, crowd) for one in group.places)


def _over_time(lanes: list[Lane]) -> list[CrowdTimeLane]:
    return [lane for lane in lanes if isinstance(lane, CrowdTimeLane) and lane.gathers is not None]


def brought_together(lanes: list[Lane], seen: int) -> list[Lane]:
    """The lanes that are left when crowds over time have taken over the queries that have seen all rows a crowd holds, and
    whose answers need no others; `seen` rows have come. O(rows held), where there are such lanes."""
    crowds = _over_time(lanes)
    if not crowds:
        return lanes
    left = []
    for lane in lanes:
        host = next((crowd for crowd in crowds if _may_take_over(crowd, lane, seen)), None) if lane.timed else None
        if host is None:
            left.append(lane)
        else:
            host.take_over(lane)
            crowds = [crowd for crowd in crowds if crowd is not lane]
    return left


def _may_take_over(crowd: CrowdTimeLane, lane: Lane, seen: int) -> bool:
    if crowd is lane or not isinstance(lane, CrowdTimeLane | TimeLane) or crowd.closed != lane.closed:
        return False
    asking = [member for member in lane.members if member.active]
    if isinstance(lane, CrowdTimeLane):
        if len(asking) > len(crowd.members):
            return False  # the other way round
        gathers = [lane.gathers]
    else:
        gathers = [member.gathers for member in asking]
    if not all(one is not None and crowd.gathers is not None and one.within(crowd.gathers) for one in gathers):
        return False
    lane.settle()
    since = seen - min(member.rows for member in asking)  # all have seen the rows from there on
    return crowd.oldest_held() >= max(since, crowd.read_since(lane)) and lane.oldest_held() >= crowd.since


def _united(groups: list[_Group]) -> list[_Group]:
    """Groups of the same window, brought together over the union of their columns where that is cheaper."""
    hosts: list[_Group] = []
    for group in sorted(groups, key=lambda group: (-len(group.columns), sorted(group.columns))):
        large = len(group.doors) >= MANY_ALIKE
        host = next((host for host in hosts if not large and group.columns <= host.columns), None)
        if host is None and not large:
            near = [host for host in hosts if len(host.doors) < MANY_ALIKE or host.columns >= group.columns]
            host = next((one for one in near if _overlap(one, group)), None)
        if host is None:
            hosts.append(group)
        else:
            host.take(group)
    return hosts


def _overlap(one: _Group, other: _Group) -> bool:
    return bool(one.columns & other.columns) and len(one.columns | other.columns) <= MOST_ATTRIBUTES


def _algorithm(group: _Group) -> str | None:
    if isinstance(group.places[0].query, Threshold):
        return choose_thresholds(len(group.doors))
    return choose_crowd(len(group.doors))

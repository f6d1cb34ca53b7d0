"""Many queries with scores of any form over the same rows: each distinct score is computed once, as one more attribute of
the rows, and one structure takes them all."""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.algorithms import settled
from skyband.lanes.base import Door, Member, Place, Rows
from skyband.lanes.crowd import CrowdLane
from skyband.query import RankedQuery
from skyband.scores.formulas import Linear
from skyband.window import CountWindow


def in_scores_lane(query: RankedQuery, algorithm: str) -> bool:
    """Does a query go into the lane? One with a core, perhaps a filter, over a count window, whatever its score."""
    if algorithm == "auto" or not isinstance(query.window, CountWindow) or query.emit == "snapshots":
        return False
    named, options = settled(algorithm)
    return "core" in named.options and named.family == "ranked" and "grid" not in options


class ScoresLane(CrowdLane):
    """A crowd whose attributes are scores behind doors. Filters share one buffer of the rows' scores and one time order;
    a score leaves with the last query that asks for it."""

    kind = "scores"

    def __init__(self, place: Place, since: int) -> None:
        self._names: dict[Door, str] = {}  # what the structure calls each score, in its order
        self._named = 0
        super().__init__(place, since)

    @property
    def doors(self) -> list[Door]:
        return list(self._names)

    def _attributes(self, place: Place) -> tuple[str, ...]:
        return ()

    def _columns_of(self, one: Place | Member) -> tuple[str, ...]:
        return ()  # scores are read, which may be callables

    def _score(self, place: Place) -> tuple[Linear, str]:
        assert place.door is not None
        self._open(place.door)
        return Linear(((self._names[place.door], 1.0),)), "desc"

    def _open(self, door: Door) -> None:
        if door not in self._names:
            self._call(door, self._named)

    def _call(self, door: Door, number: int) -> None:
        self._names[door] = f"score {number}"
        self._named = max(self._named, number + 1)
        self.structure.add_attribute(self._names[door])

    def cancel(self, at: int) -> None:
        super().cancel(at)
        used = {name for asked in self.structure.asked for name in asked.attributes}
        for door, name in list(self._names.items()):
            if name not in used:
                del self._names[door]
                self.structure.remove_attribute(name)

    def _points(self, rows: Rows) -> np.ndarray:
        return np.stack([rows.scores(door) for door in self._names])

    def _nulls(self, rows: Rows, points: np.ndarray) -> np.ndarray:
        missing = {name: int(np.isnan(rows.values[door.score]).sum()) for door, name in self._names.items()}
        return np.array([missing[asked.attributes[0]] for asked in self.structure.asked])

    def save(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        header, arrays = super().save()
        asking = [asked.attributes[0] for asked in self.structure.asked]
        return {**header, "asking": [asking.index(name) for name in self._names.values()]}, arrays

    def _prepare(self, places: list[Place], header: dict[str, Any]) -> None:
        for at, name in zip(header["asking"], header["attributes"], strict=True):  # a member that asks for the score, for each
            door = places[at].door
            assert door is not None
            self._call(door, int(name.removeprefix("score ")))  # some scores may have left: names are not in a row

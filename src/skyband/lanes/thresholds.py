"""Many threshold queries with scores of their own over the same attributes and windows: one structure for all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from skyband.algorithms import settled
from skyband.changes import NO_EVENTS, Emitted
from skyband.lanes.base import Place
from skyband.lanes.crowd import CrowdLane
from skyband.lanes.crowd_queries import condition_of, ranking_of, region_of
from skyband.lanes.crowd_time import CrowdTimeLane
from skyband.query import Threshold
from skyband.rows import united

if TYPE_CHECKING:
    from skyband.algorithms.spatial.thresholds import Asked, Thresholds


class _Bounded(CrowdLane):
    """What answers tell is told by the structure, which knows what came and went."""

    structure: Thresholds  # type: ignore[assignment]

    def _made(self, place: Place, attributes: tuple[str, ...]) -> Any:
        from skyband.algorithms.spatial.thresholds import Thresholds

        made = Thresholds(attributes, settled(place.algorithm)[1].get("grid"))
        made.seen = 0 if place.timed else self.since
        return made

    def _asked(self, place: Place) -> Asked:
        from skyband.algorithms.spatial.thresholds import Asked

        query = place.query
        assert isinstance(query, Threshold)
        return Asked(
            ranking_of(query),
            query.order,
            k=1,
            size=place.size,
            slide=place.slide,
            core="above",
            region=region_of(query),
            condition=condition_of(query),
            above=query.above,
            emission=place.member.emission,
        )

    def _named(self, answered: Iterable[Any], ends: np.ndarray) -> Iterator[Emitted]:
        """Result rows of windows with these ends."""
        for told in answered:
            yield Emitted(told.query, ends[told.window], *told[2:6])

    def _told(self, answered: Iterator[Any], ends: np.ndarray, emission: np.ndarray) -> Iterator[Emitted]:
        return self._named(answered, ends)

    def _first_arrivals_of(self, emitted: Emitted, emission: np.ndarray) -> Emitted:
        return emitted  # a row comes once

    def top(self, at: int) -> tuple[np.ndarray, np.ndarray]:
        return self.structure.top(at)


class ThresholdLane(_Bounded):
    """Rows by arrival."""

    kind = "thresholds"

    def _parts(self, points: np.ndarray, emission: np.ndarray) -> Iterator[Emitted]:
        size, slide, seen = self.members[0].size, self.members[0].slide, self.structure.seen
        end = np.arange(seen // slide + 1, (seen + points.shape[1]) // slide + 1) * slide
        return self._named(self.structure.take(points, np.maximum(end - size, 0), end), end)

    def delete(self, seq: np.ndarray) -> tuple[Emitted, np.ndarray]:
        end = self.structure.seen // self.members[0].slide * self.members[0].slide
        emitted = Emitted.join(list(self._named([self.structure.delete(seq[seq >= self.since])], np.array([end]))))
        return emitted, emitted.ordinal

    def first_live(self) -> int:
        return max(self.structure.asking.oldest_needed(self.structure.seen), self.since)


class ThresholdTimeLane(_Bounded, CrowdTimeLane):  # type: ignore[misc]
    """Rows by time."""

    kind = "thresholds-time"

    def top(self, at: int) -> tuple[np.ndarray, np.ndarray]:
        score, ordinal = self.structure.top(at)
        return score, self._seq_of(ordinal)

    def needed(self, base: int = 0) -> np.ndarray:
        just_pushed = base == self._pushed[0] and base > 0  # such rows have no ordinals of earlier ones
        let_in = self._seq_of(self.structure.needed(self._pushed[2] if just_pushed else 0))
        return united([np.unique(let_in[let_in >= base]), self.open.seqs(base)])

    def _delete(self, ordinals: np.ndarray) -> Emitted:
        if len(ordinals) == 0:
            return NO_EVENTS
        return Emitted.join(list(self._named([self.structure.delete(ordinals)], np.array([self.closed]))))

"""What all structures for many queries over the same attributes have in common: the queries, and their scores."""

from __future__ import annotations

import numpy as np

from skyband.algorithms.spatial.asked import Asked, Asking
from skyband.kernels.spatial import questions
from skyband.kernels.spatial.unscored import count_unscored


class Many:
    """Queries over the same attributes."""

    def __init__(self, attributes: tuple[str, ...]) -> None:
        self.attributes = attributes
        self.asked: list[Asked] = []
        self.seen = 0  # rows so far
        self._asking: Asking | None = None

    @property
    def asking(self) -> Asking:
        """What is derived from the queries."""
        if self._asking is None:
            self._asking = Asking(self.asked, self.attributes)
        return self._asking

    def _take_up(self, asked: Asked) -> None:
        """One more query; what is derived from the others stands."""
        self.asked.append(asked)
        if self._asking is not None:
            self._asking = self._asking.with_last(self.asked, self.attributes)

    def _let_go(self, number: int) -> None:
        """One query less; those after it move up."""
        del self.asked[number]
        if self._asking is not None:
            self._asking = self._asking.without(number, self.asked, self.attributes)

    @property
    def questions(self) -> questions.Questions:
        """The scores, as the kernels read them."""
        return self.asking.questions

    def missed_at_most(self, number: int, rows: int) -> float:
        """How many rows that ranked a query missed while so many came, at most, on average over streams in random
        order; 0: it is exact."""
        return 0.0

    def unscored(self, rows: np.ndarray, *, moderate: bool = False) -> np.ndarray:
        """How many of the rows have no score, for each query; where a row lies does not matter. `moderate`: they hold moderate
        numbers, of which only an expression may have no value."""
        counts = np.zeros(len(self.asked), np.int64)
        if rows.shape[1] and (self.asking.has_expressions or not moderate):
            count_unscored(self.asking.scores, np.ascontiguousarray(rows), moderate, counts)
        return counts

    def oldest_needed(self) -> int:
        """The first row of the last window of any query: an answer stands until the next one ends."""
        return self.asking.oldest_needed(self.seen)

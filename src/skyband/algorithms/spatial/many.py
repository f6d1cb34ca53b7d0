"""What all structures for many queries over the same attributes have in common: the queries, and their scores."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from skyband.algorithms.spatial.asked import Asked, Asking
from skyband.kernels.spatial import code, questions
from skyband.scores.evaluation import compute
from skyband.scores.expression import Call


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

    def unscored(self, rows: np.ndarray, which: Iterable[int] | None = None) -> np.ndarray:
        """How many of the rows have no score, for each query, or for those of `which`; where a row lies does not matter."""
        counts = np.zeros(len(self.asked), np.int64)
        room = np.empty(rows.shape[1])
        for number in range(len(self.asked)) if which is None else which:
            asked = self.asked[number]
            if asked.code is not None:
                tree = asked.score if isinstance(asked.score, Call) else asked.score.tree
                scores = compute(tree, dict(zip(self.attributes, rows, strict=True)), rows.shape[1])  # may be one of `rows`
            else:
                questions.scores_of(self.questions, number, rows, 0, rows.shape[1], room)
                scores = room
            counts[number] = np.isnan(scores).sum()
        return counts

    def unscored_among(self, rows: np.ndarray) -> np.ndarray:
        """The same for rows of moderate numbers, which only an expression may have no value for: those are computed whose
        value cannot be told to exist from the range of the rows."""
        if not self.asking.has_expressions:
            return np.zeros(len(self.asked), np.int64)
        low, high, out = rows.min(axis=1), rows.max(axis=1), np.empty(3)
        doubtful = []
        for number, asked in enumerate(self.asked):
            if isinstance(asked.score, Call):
                out[code.UNKNOWN] = 1.0
                if asked.condition is None:
                    code.bounds_of(self.questions.codes, number, low, high, out)
                if out[code.UNKNOWN] > 0:
                    doubtful.append(number)
        return self.unscored(rows, doubtful)

    def oldest_needed(self) -> int:
        """The first row of the last window of any query: an answer stands until the next one ends."""
        return self.asking.oldest_needed(self.seen)

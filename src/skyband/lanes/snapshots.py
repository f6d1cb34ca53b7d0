"""The windows in which nothing changed: a crowd is silent about them, and `emit="snapshots"` is told of them too."""

from __future__ import annotations

import numpy as np

from skyband.kernels.tables import NO_RANKS, SAME, Results

Answered = tuple[np.ndarray, np.ndarray, Results]  # queries, their windows' numbers, answers


class Unchanged:
    """Puts the windows in between, for the queries that are told of all, among those that a structure answers while it takes
    some rows. Windows of a query are numbered without gaps."""

    def __init__(self, wanting: np.ndarray, before: np.ndarray) -> None:
        self._wanting = wanting  # bool [queries]
        self._told = before.copy()  # the last window of each query that was reported

    def among(self, query: np.ndarray, number: np.ndarray, results: Results) -> Answered:
        """The windows of one round and those before each in which nothing changed, by query."""
        order = np.argsort(query, kind="stable")
        query, number = query[order], number[order]
        first = np.ones(len(query), bool)
        first[1:] = query[1:] != query[:-1]
        before = np.concatenate([number[:1], number[:-1]])
        before[first] = self._told[query[first]]
        self._told[query] = number  # of several the last, which is the latest
        repeats = np.where(self._wanting[query], number - before, 1)
        last = np.cumsum(repeats) - 1
        query, number = np.repeat(query, repeats), np.repeat(number, repeats)
        number -= np.repeat(last, repeats) - np.arange(len(number))
        begin, size = np.zeros(len(query), np.int64), np.full(len(query), SAME, np.int64)
        begin[last], size[last] = results.begin[order], results.size[order]
        return query, number, results._replace(begin=begin, size=size)

    def rest(self, upto: np.ndarray) -> Answered:
        """What is left up to these windows, of which nothing was said."""
        missing = np.where(self._wanting, upto - self._told, 0)
        query = np.repeat(np.arange(len(missing)), missing)
        number = np.arange(len(query)) - np.repeat(np.cumsum(missing) - missing, missing) + self._told[query] + 1
        nothing, same = np.zeros(len(query), np.int64), np.full(len(query), SAME, np.int64)
        return query, number, Results(nothing, same, np.zeros(0), np.zeros(0, np.int64), NO_RANKS)

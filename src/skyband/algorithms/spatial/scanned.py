"""Many queries, each with a score of its own, over all rows of one stream: one pass, one buffer, one time order for all.

Each query has a core and perhaps a filter (`pruned`), as bands in one arena. The rows' attributes are kept once, as long
as they may wait in a filter's buffer. Every query is taken over all rows of a batch, its scores computed many rows at a
time.

Paper: TODS15 section 6 (shared buffer, time tree). Guarantee: that of each query's core. Cost a row: the sum of the queries'.
Memory: what the queries hold, and the attributes of the last b rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import numpy as np

from skyband.algorithms.contract import read_only
from skyband.algorithms.ranked.arena import Band, held, joined, pruners, with_room, without
from skyband.algorithms.ranked.pruned import GAMMA, RULE, SIGMA, band, buffer_of
from skyband.algorithms.spatial.asked import Asked
from skyband.algorithms.spatial.many import Many
from skyband.errors import QueryError
from skyband.kernels.ranked import bands, pruning
from skyband.kernels.spatial import points
from skyband.kernels.spatial import scan as kernel
from skyband.kernels.tables import Results, Tops

REFILLED = {"tma": "probabilistic", "sma": "strict"}  # cores that are filled from the window, and the kind of their band
PIECE = 1 << 13  # rows scored at once: their scores stay in the cache
WALKED = 1 << 14  # rows taken at once where each is shown to the queries of its cell only
Round = tuple[np.ndarray, np.ndarray, Results]  # queries, the ends of their windows, answers
_ANSWERS = 1 << 14
_ADDITIONAL = 10  # candidates besides PA's limit where queries are indexed (TODS15 table IX)
_UNUSED = Band("strict", 0)  # holds the place of a filter that a query does not have


NO_POINTS = points.empty_points(1, 1, 1)


class Scanned(Many):
    """Queries over the same attributes. `grid`: cells along each, 0 for none: see `crowd`."""

    def __init__(self, attributes: tuple[str, ...], grid: int = 0) -> None:
        super().__init__(attributes)
        self.grid = grid
        self.rows = np.zeros((len(attributes), 0))  # attributes of the last rows, those that may wait in a buffer
        self.state = pruners([], 0)
        self.tops = Tops(np.zeros((0, 0)), np.zeros((0, 0), np.int64), np.zeros(0, np.int64))
        self._points = NO_POINTS  # the window, where cores are filled from it
        self.searches = 0  # how often one was

    # -- queries -------------------------------------------------------------------------------------------------

    def add(self, *asked: Asked) -> None:
        """Take up queries: they see the rows from now on. Many at once cost no more than what each holds."""
        extra = pruners([band for one in asked for band in self._bands(one)], len(asked))
        for number, (one, query) in enumerate(zip(asked, extra.query, strict=True)):
            query[[pruning.CORE, pruning.FILTER]] = 2 * number, 2 * number + 1 if one.filter else pruning.NONE
            query[pruning.SIZE] = one.size if one.core == "probabilistic" else 0
            query[pruning.BUFFER] = 0 if one.filter is None else buffer_of(one.size, one.options.get("buffer"))
            query[[pruning.TAKEN, pruning.LEFT]] = self.seen
            query[pruning.REFILLS] = one.core in REFILLED
            query[[pruning.WANTED, pruning.LEAST_WANTED]] = one.wanted
            query[pruning.SEARCHED] = self.seen
        self.state = joined(self.state, extra) if self.asked else extra
        for one in asked:
            self._take_up(one)
        self._resize_tops()

    def _bands(self, asked: Asked) -> list[Band]:
        if asked.core in REFILLED:
            limit = asked.wanted + asked.k + pruning.FEW_MORE if asked.core == "sma" else 0
            return [Band(REFILLED[asked.core], asked.k, limit=limit, least=-1), _UNUSED]
        given = {name: value for name, value in asked.options.items() if name != "buffer"}
        shape: dict[str, Any] = {"gamma": GAMMA, "sigma": SIGMA, "rule": RULE, **given}
        shape["additional"] = _ADDITIONAL if self.grid and asked.core == "probabilistic" else 0
        core = band(asked.core, asked.k, asked.size, **shape, is_filter=False, indexed=self.grid > 1)
        if asked.filter is None:
            return [core, _UNUSED]
        if asked.core == "probabilistic":
            raise QueryError("a probabilistic core takes no filter: it looks at few rows as it is; leave the filter out")
        rows = buffer_of(asked.size, asked.options.get("buffer"))
        return [core, band(asked.filter, asked.k, rows, **shape, is_filter=True)]

    def remove(self, number: int) -> None:
        """Forget a query and what it held; those after it move up."""
        self.state = without(self.state, number)
        self.tops = Tops(*(np.delete(column, number, axis=0) for column in self.tops))
        self._let_go(number)

    def _resize_tops(self) -> None:
        queries, k = len(self.asked), max(map(attrgetter("k"), self.asked), default=0)
        old = self.tops
        score, ordinal, count = np.zeros((queries, k)), np.zeros((queries, k), np.int64), np.zeros(queries, np.int64)
        filled = (slice(len(old.count)), slice(min(k, old.score.shape[1])))  # a query with a larger k may have gone
        score[filled], ordinal[filled] = old.score[:, : filled[1].stop], old.ordinal[:, : filled[1].stop]
        count[: len(old.count)] = old.count
        self.tops = Tops(score, ordinal, count)

    def _forget_index(self) -> None:
        """What is derived from the queries is made anew when rows come."""
        self._asking = None

    def add_attribute(self, name: str) -> None:
        """Rows have one more number from now on."""
        self.attributes = (*self.attributes, name)
        self.rows = np.concatenate([self.rows, np.full((1, self.rows.shape[1]), np.nan)])
        self._forget_index()

    def remove_attribute(self, name: str) -> None:
        """Rows lack a number from now on that no query asks for."""
        self.rows = np.delete(self.rows, self.attributes.index(name), axis=0)
        self.attributes = tuple(other for other in self.attributes if other != name)
        self._forget_index()

    # -- rows ----------------------------------------------------------------------------------------------------

    def push(self, rows: np.ndarray) -> Iterator[Round]:
        """Take rows, float64 [attributes, rows]; in rounds, the windows whose top-k may have changed: queries, window
        ends and answers. The iterator must be exhausted, and `tops` brought up to date from it: it does the work."""
        length = WALKED if self.grid > 1 else PIECE
        for begin in range(0, rows.shape[1], length):
            piece = rows[:, begin : begin + length]
            known = np.ascontiguousarray(np.concatenate([self.rows, piece], axis=1) if self.rows.shape[1] else piece)
            start, self.seen = self.seen, self.seen + piece.shape[1]
            if self.asked:
                yield from self._take(known, self.seen - known.shape[1], start)
            wait = int(self.state.query[:, pruning.BUFFER].max(initial=0))
            self.rows = known[:, max(known.shape[1] - wait, 0) :].copy()

    def _take(self, rows: np.ndarray, rows_from: int, begin: int) -> Iterator[Round]:
        """The rows from the ordinal `begin` on; `rows` begins with `rows_from`."""
        slides = self._slides(begin)
        progress = np.zeros(kernel.PROGRESS, np.int64)
        progress[kernel.SCORED] = pruning.NONE
        scored, apart = np.empty(2 * (self.seen - begin)), np.empty(self.seen - begin)
        seen = read_only(scored), read_only(apart)  # as the scores of one query are that has no others beside it
        answers = self._answers()
        while True:
            status = kernel.scan(
                self.state, self.questions, slides, self._points,
                rows, rows_from, begin, self.seen, progress, scored, apart, *seen, answers,
            )  # fmt: skip
            written = int(answers.used[0])
            if written and status < 0:
                query = answers.query[:written]
                windows = self._named(slides, slides.begin[slides.kind[query]] + answers.window[:written])
                yield query, windows, Results(*answers[2:6])
                answers = self._answers()
            if status == pruning.DONE:
                self.searches += int(progress[kernel.SEARCHES])
                return
            if status >= 0:
                self.state = with_room(self.state, status)

    def _slides(self, begin: int) -> kernel.Slides:
        """The windows that end in the rows from `begin` up to `seen`; of a query that is not heard, the last of them."""
        kinds: dict[tuple[int, int, bool], int] = {}
        kind = [kinds.setdefault((asked.size, asked.slide, asked.heard), len(kinds)) for asked in self.asked]
        ends = []
        for _, slide, heard in kinds:
            every = np.arange(begin // slide + 1, self.seen // slide + 1) * slide
            ends.append(every if heard else every[-1:])
        begins = np.concatenate([[0], np.cumsum([len(column) for column in ends])])
        first = [end - size for end, (size, _, _) in zip(ends, kinds, strict=True)]
        return kernel.Slides(np.array(kind, np.int64), begins.astype(np.int64), np.concatenate(first), np.concatenate(ends))

    def _named(self, slides: kernel.Slides, places: np.ndarray) -> np.ndarray:
        """What the windows at these places are called in answers."""
        return slides.end[places]

    def _answers(self) -> pruning.Answers:
        room = max(4 * self.tops.score.shape[1], 1 << 16)
        return pruning.answers_room(_ANSWERS, np.empty(room), np.empty(room, np.int64))

    @property
    def refills(self) -> bool:
        """Are its cores filled from the window?"""
        return bool(self.asked) and self.asked[0].core in REFILLED

    # -- what is held --------------------------------------------------------------------------------------------

    def references(self, number: int) -> int:
        """Rows that a query's core and filter hold, a row in both twice."""
        return sum(len(held(self.state, which).score) for which in (2 * number, 2 * number + 1))

    def candidates(self, number: int) -> int:
        """Rows that a query's core holds."""
        return int((held(self.state, 2 * number).ordinal >= self.state.marks[2 * number, bands.REACH]).sum())

    def all_candidates(self) -> np.ndarray:
        """The same for every query, at once."""
        marks = self.state.marks[: 2 * len(self.asked) : 2]
        counts = marks[:, bands.STOP] - marks[:, bands.HEAD]
        query = np.repeat(np.arange(len(marks)), counts)
        first = np.cumsum(counts) - counts  # where each query's rows begin, laid end to end
        place = np.arange(len(query)) + (marks[:, bands.HEAD] - first)[query]
        live = self.state.rows.ordinal[place] >= marks[query, bands.REACH]
        return np.bincount(query[live], minlength=len(marks))

    def search_of(self, number: int) -> str:
        """Which rows are scored for a query: here every one."""
        return "scan"

    def missed_at_most(self, number: int, rows: int) -> float:
        """How many rows that ranked a query missed while so many came, at most, on average over streams in random
        order; 0: it is exact."""
        asked = self.asked[number]
        return asked.options.get("sigma", SIGMA) * rows / asked.size if asked.core == "probabilistic" else 0.0

    def needed(self, base: int = 0) -> np.ndarray:
        """Ordinals from `base` on of every row that some query holds or that waits in the buffer, increasing."""
        base = max(base, self.oldest_needed())
        # with cores that are filled from the window, any row of it may be searched for
        kept = self.asked[0].size + self.asked[0].slide if self.refills else self.rows.shape[1]
        if self.seen - kept <= base:
            return np.arange(base, self.seen)
        held = np.zeros(self.seen - base, bool)
        pruning.mark_held(self.state.rows.ordinal, self.state.marks, base, held)
        tops = self.in_tops()
        held[tops[tops >= base] - base] = True
        held[self.seen - kept - base :] = True
        return base + np.flatnonzero(held)

    def in_tops(self) -> np.ndarray:
        """Ordinals in some query's last answer."""
        ranks = np.arange(self.tops.ordinal.shape[1])
        return self.tops.ordinal[ranks < self.tops.count[:, None]]

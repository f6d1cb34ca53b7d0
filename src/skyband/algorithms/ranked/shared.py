"""One structure for many queries of different size, k and slide over one score.

Every query has a *view*: all rows of its window from a floor up, a few more than k, and their ranking, so that the
answer is the view's best k rows. A new row is compared with the lowest floor of all views, and only the few rows that pass are
given to the views whose floor they reach; rows that leave the window leave the view. When a view has fewer than k
rows left, it is refilled from what all queries share: the raw scores of the widest window and a *ladder* of ranked
partitions over them, in which the best rows of any interval are quickly found.

Paper: the idea of the PH-Tree (ICDE24), many queries over one tree of partitions; partitions that keep their best
rows are those of TKDE17, section 3.
Guarantee: exact, for any scores.
Cost: one vectorized comparison a row; O(k), vectorized, for a row that reaches a view or leaves it and for a changed
answer; O(1) for each row that differs where the answer is told by those. A refill is O(l + K log(n / l)), with n the rows
of the widest window, K = max(2 k + 16, 128) for the largest k and partitions of l = sqrt(n K) rows; ranking them, when
first asked for, is O(1) a row. On a random stream a view is refilled once in hundreds of windows; on a falling one at most
once a window, and only after about k rows have left it; there a refill is O(l + K), because the window's oldest rows are
its best.
Memory: 8 bytes a row of the widest window, rounded up to a power of two; 32 K n / l bytes for the ladder; at most
130 k + 11000 bytes for each view.
Deviations: TKDE17 merges the partitions' best rows into one candidate list and counts dominators. Here they are
kept in a binary tree instead, because that list holds K n / l rows on a falling stream and each refill would pass
over it, while the tree is never visited in more than 2 log2(n / l) nodes; and a candidate list for the largest n
says little about the smaller windows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skyband.algorithms.contract import Plan, Ranked
from skyband.kernels.ranked import view_size, views
from skyband.kernels.ranked.ladder import CELLS, LEAF, ORIGIN, RANKED, TAKEN, SharedState, move_rows, rows_needed
from skyband.kernels.ranked.shared import answer_windows
from skyband.kernels.tables import Panes, Results, Windows
from skyband.layout import grows

_SMALLEST_RING = 256
_FEWEST_LEAVES = 4  # a shorter ladder saves nothing against reading the rows
_ROWS_PER_KEPT = 4  # a leaf has at least so many rows for each one it ranks


def _power_of_two(at_least: float) -> int:
    return 1 << max(0, int(np.ceil(np.log2(at_least))))


class SharedViews(Ranked):
    """A view a query, one ladder for all."""

    shares = True
    tells_changes = True
    growing = grows("state", ring=("ring",), nodes=("node_score", "node_ordinal", "node_count"))
    _state: SharedState

    @classmethod
    def for_plan(cls, plan: Plan, **options: Any) -> Ranked:
        """One structure, or several that share the cores."""
        from skyband.algorithms.ranked.shared_parts import SharedParts, parts_for

        return SharedParts(plan) if parts_for(len(plan.ks)) > 1 else cls(plan, **options)

    def __init__(self, plan: Plan) -> None:
        self._keep = int(view_size.trend_capacity(plan.largest_k))
        super().__init__(plan)

    def _empty(self) -> SharedState:
        queries = len(self.plan.ks)
        cells = np.zeros(CELLS, np.int64)
        cells[TAKEN] = -1
        view = np.zeros((queries, views.COLUMNS), np.int64)
        rooms = np.array([view_size.view_room(k) + views.SPAN for k in self.plan.ks], np.int64)
        queues = np.array([view_size.queue_room(k) + views.SPAN for k in self.plan.ks], np.int64)
        for column in (views.RANKS_START, views.RANKS):
            view[:, column] = np.cumsum(rooms) - rooms
        for column in (views.QUEUE_START, views.HEAD, views.WAITING, views.TAIL):
            view[:, column] = np.cumsum(queues) - queues
        view[:, views.CAPACITY] = [view_size.steady_capacity(k) for k in self.plan.ks]
        view[:, views.FLOOR_ORDINAL] = views.COMPLETE
        view[:, views.WATCH] = np.arange(queries)
        view[:, views.DIRTY] = 1
        return SharedState(
            cells,
            *self._ring_and_ladder(cells, _SMALLEST_RING),
            view,
            np.zeros(rooms.sum(), np.int32),
            np.full(queues.sum(), np.nan),
            np.zeros(queues.sum(), np.int64),
            np.full(queries, -np.inf),
            np.arange(queries),
        )

    def _ring_and_ladder(self, cells: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """An empty ring of at least `rows` rows and the ladder that suits it; writes the leaf's length into `cells`."""
        size = _power_of_two(rows)
        leaf = _power_of_two(max(np.sqrt(size * self._keep) / np.sqrt(2), _ROWS_PER_KEPT * self._keep))
        nodes = 2 * size // leaf if size // leaf >= _FEWEST_LEAVES else 0
        cells[LEAF] = leaf if nodes else size
        shape = (nodes, self._keep)
        return np.full(size, np.nan), np.zeros(shape), np.zeros(shape, np.int64), np.zeros(nodes, np.int64)

    def _prepare(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None) -> None:
        state = self._state
        if state.cells[TAKEN] < 0:
            state.cells[TAKEN] = state.cells[ORIGIN] = begin
            state.cells[RANKED] = -(-begin // state.cells[LEAF]) * state.cells[LEAF]
            state.views[:, (views.FIRST, views.END)] = begin
        last = begin + len(scores)
        if last == begin:
            return
        if self.plan.largest_size is not None:
            needed = min(self.plan.largest_size, last - int(state.cells[ORIGIN]))
        else:
            needed = int(rows_needed(windows, state.views[:, views.FIRST].copy(), last))
        if needed > len(state.ring):
            cells = state.cells.copy()
            ring, node_score, node_ordinal, node_count = self._ring_and_ladder(cells, needed)
            self._state = state._replace(
                cells=cells, ring=ring, node_score=node_score, node_ordinal=node_ordinal, node_count=node_count
            )
            move_rows(state, self._state)

    def _run(self, begin: int, scores: np.ndarray, windows: Windows, panes: Panes | None, start: int, results: Results) -> int:
        return self._answered(begin, scores, windows, start, begin, results, last=True)

    def answer(self, begin: int, scores: np.ndarray, windows: Windows, results: Results, *, take_all: bool) -> int:
        """Answer windows whose answers `results` has room for, and take the rows up to the last one's end, or all: then `tops`
        is brought up to date. Returns how many."""
        return self._answered(begin, scores, windows, 0, begin + len(scores) if take_all else begin, results, last=take_all)

    def _answered(
        self, begin: int, scores: np.ndarray, windows: Windows, start: int, upto: int, results: Results, *, last: bool
    ) -> int:
        ahead, limit = self._ceilings
        rows = (begin, scores, limit, ahead, upto)
        return int(answer_windows(self._state, self.tops, self.ks, *rows, windows, start, self._changes, results, last))

    @property
    def candidates(self) -> int:
        """Rows in the views, sorted in or waiting, and in the ladder's leaves."""
        view, nodes = self._state.views, self._state.node_count
        waiting = view[:, views.TAIL] - view[:, views.WAITING]
        return int(view[:, views.COUNT].sum() + waiting.sum() + nodes[len(nodes) // 2 :].sum())

    def check_invariants(self) -> None:
        state = self._state
        if state.cells[TAKEN] < 0:
            return
        self._check_watch_list()
        for query in range(len(self.plan.ks)):
            self._check_view(query)
        leaves = len(state.node_count) // 2
        for rung in range(leaves.bit_length()):
            self._check_rung(leaves >> rung, int(state.cells[LEAF]) << rung)

    def _held(self, first: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows [first, end) of the ring with a score, best first."""
        ordinals = np.arange(first, end)
        scores = self._state.ring[ordinals & (len(self._state.ring) - 1)]
        order = np.lexsort((-ordinals, -scores))
        order = order[~np.isnan(scores[order])]
        return scores[order], ordinals[order]

    def _oldest_held(self) -> int:
        return int(max(self._state.cells[ORIGIN], self._state.cells[TAKEN] - len(self._state.ring)))

    def _check_watch_list(self) -> None:
        state = self._state
        assert (state.watch_floor[1:] >= state.watch_floor[:-1]).all(), state.watch_floor
        assert (state.watch_query[state.views[:, views.WATCH]] == np.arange(len(self.plan.ks))).all(), state

    def _check_view(self, query: int) -> None:
        """A view and its waiting rows are all rows of the window from the floor up; the view is sorted, and its
        queue holds the same rows in the order of arrival."""
        state, row = self._state, self._state.views[query]
        floor, floor_ordinal = state.watch_floor[row[views.WATCH]], row[views.FLOOR_ORDINAL]
        places = row[views.QUEUE_START] + state.ranking[row[views.RANKS] : row[views.RANKS] + row[views.COUNT]]
        queue = slice(row[views.HEAD], row[views.TAIL])
        queue_scores, queue_ordinals = state.queue_score[queue], state.queue_ordinal[queue]
        scores, ordinals = state.queue_score[places], state.queue_ordinal[places]
        context = (query, dict(zip(self._view_columns(), row.tolist(), strict=False)), floor, scores, ordinals)
        assert (np.lexsort((-ordinals, -scores)) == np.arange(len(scores))).all(), context
        assert row[views.COUNT] <= view_size.trim_limit(self.plan.ks[query], row[views.CAPACITY]), context
        assert (ordinals >= row[views.FIRST]).all(), context
        assert (np.diff(queue_ordinals) > 0).all(), (context, queue_ordinals)
        end = row[views.QUEUE_START] + view_size.queue_room(self.plan.ks[query]) + views.SPAN
        assert np.isnan(state.queue_score[row[views.TAIL] : end]).all(), context
        listed = (queue_scores > floor) | ((queue_scores == floor) & (queue_ordinals >= floor_ordinal))
        listed[row[views.WAITING] - row[views.HEAD] :] = False
        assert np.array_equal(np.sort(ordinals), queue_ordinals[listed]), (context, queue_ordinals)
        first = max(int(row[views.FIRST]), self._oldest_held())
        expected_score, expected = self._held(first, int(state.cells[TAKEN]))
        above = (expected_score > floor) | ((expected_score == floor) & (expected >= floor_ordinal))
        kept = np.concatenate([ordinals, state.queue_ordinal[row[views.WAITING] : row[views.TAIL]]])
        assert np.array_equal(np.sort(kept[kept >= first]), np.sort(expected[above])), (context, expected[above])

    def _check_rung(self, nodes: int, length: int) -> None:
        """Every complete node of a rung of `nodes` nodes holds the best rows of its `length` rows."""
        state, ranked = self._state, int(self._state.cells[RANKED])
        for begin in range(-(-self._oldest_held() // length) * length, ranked // length * length, length):
            node = nodes + (begin // length & (nodes - 1))
            scores, ordinals = self._held(begin, begin + length)
            count = state.node_count[node]
            assert count == min(len(scores), self._keep), (node, count, len(scores))
            assert np.array_equal(state.node_ordinal[node, :count], ordinals[:count]), (node, state.node_ordinal[node])
            assert np.array_equal(state.node_score[node, :count], scores[:count]), (node, state.node_score[node])

    @staticmethod
    def _view_columns() -> list[str]:
        names = ["RANKS", "COUNT", "FIRST", "FLOOR_ORDINAL", "QUEUE_START", "HEAD", "WAITING", "TAIL"]
        names += ["CAPACITY", "DIRTY", "BEHIND", "WATCH", "QUIET", "END", "RANKS_START"]
        return sorted(names, key=lambda name: int(getattr(views, name)))

"""The hand-written rival's arithmetic, without Spark: each pane's best k next to the data, panes merged into windows.

A pane is one slide of time. Only its best k rows can ever rank, so tasks send no others. The merge keeps the panes of
the last window, sorted by pane, so that a window is a slice of them; its best k are found by partitioning the slice.
Rows rank by score, then by time, then by id.

The merge keeps its panes in the driver's memory alone: after a failure they are gone, and the windows that were open
come out wrong. That is the price of being this short; skyband and Spark's own operators do not pay it.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

from benchmarks.spark.settings import SECOND, Setting


def best_first(time: np.ndarray, ids: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Places of the rows, the best first."""
    return np.lexsort((-ids, -time, -score))


class Columns:
    """The columns that rank rows, as arrays, and the pane each row falls into."""

    def __init__(self, rows: pa.Table | pa.RecordBatch, slide: int) -> None:
        self.time = rows.column("ts").cast(pa.int64()).to_numpy()
        self.ids = rows.column("id").to_numpy()
        self.score = rows.column("score").to_numpy()
        self.pane = self.time // (slide * SECOND)

    def best(self, low: int, high: int, k: int) -> np.ndarray:
        """Places of the best `k` rows from `low` to `high`, best first: a partition, then a sort of what is left."""
        score = self.score[low:high]
        if high - low > k:
            least = np.partition(score, high - low - k)[high - low - k]
            places = low + np.flatnonzero(score >= least)  # more than k where some tie with the k-th
        else:
            places = np.arange(low, high)
        return places[best_first(self.time[places], self.ids[places], self.score[places])[:k]]


def reduce_to_panes(batch: pa.RecordBatch, slide: int, k: int) -> pa.RecordBatch:
    """The best `k` rows of every pane in the batch; rows may come in any order."""
    columns = Columns(batch, slide)
    if (columns.pane[1:] < columns.pane[:-1]).any():
        batch = batch.take(pa.array(np.argsort(columns.pane, kind="stable")))
        columns = Columns(batch, slide)
    edges = [0, *(np.flatnonzero(np.diff(columns.pane)) + 1).tolist(), len(columns.pane)]
    kept = [columns.best(low, high, k) for low, high in pairwise(edges)]
    return batch.take(pa.array(np.concatenate(kept)))


class PaneMerge:
    """Panes of the open windows; `push` takes reduced rows and returns the rows of every window they close.

    A window closes when a row of a later pane has come, which is when the watermark without lateness reaches its end:
    every pane that has rows sends at least one.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.kept: pa.Table | None = None  # at most k rows a pane, sorted by pane
        self.open_pane: int | None = None  # the first pane whose window has not been reported
        self.late = 0

    def push(self, reduced: pa.Table) -> pa.Table | None:
        """Result rows, window after window, best first: window_start, window_end, rank, then the row; None without any."""
        if reduced.num_rows == 0:
            return None
        rows = self._merged(reduced)
        columns = Columns(rows, self.setting.slide)
        first = int(columns.pane[0]) if self.open_pane is None else self.open_pane
        last = int(columns.pane[-1])
        closed = np.arange(first, last)  # a window is named by its newest pane
        bounds = np.searchsorted(columns.pane, (closed - self.setting.panes + 1, closed + 1))
        tops = [columns.best(low, high, self.setting.k) for low, high in bounds.T.tolist()]
        oldest = np.searchsorted(columns.pane, last - self.setting.panes + 1)
        self.kept, self.open_pane = rows.slice(oldest), last
        return self._windows(rows, closed, tops) if tops else None

    def _merged(self, reduced: pa.Table) -> pa.Table:
        """What is kept and what is new, sorted by pane, at most k rows in each."""
        if self.open_pane is not None:
            timely = Columns(reduced, self.setting.slide).pane >= self.open_pane
            self.late += int((~timely).sum())
            reduced = reduced.filter(pa.array(timely))
        rows = reduced if self.kept is None else pa.concat_tables([self.kept, reduced])
        columns = Columns(rows, self.setting.slide)
        order = np.lexsort((-columns.ids, -columns.time, -columns.score, columns.pane))
        pane = columns.pane[order]
        rank = np.arange(len(pane)) - np.searchsorted(pane, pane)
        return rows.take(pa.array(order[rank < self.setting.k]))

    def _windows(self, rows: pa.Table, closed: np.ndarray, tops: list[np.ndarray]) -> pa.Table:
        lengths = [len(top) for top in tops]
        end = np.repeat((closed + 1) * self.setting.slide * SECOND, lengths)
        kind = rows.schema.field("ts").type
        rank = np.concatenate([np.arange(1, length + 1, dtype=np.int32) for length in lengths])
        found = rows.take(pa.array(np.concatenate(tops)))
        named = {
            "window_start": pa.array(end - self.setting.size * SECOND).cast(kind),
            "window_end": pa.array(end).cast(kind),
            "rank": pa.array(rank),
        }
        return pa.table(named | dict(zip(found.column_names, found.columns, strict=True)))

"""The payload of rows that can still win, and of those being reported: everything else is forgotten."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_CHUNKS = 32  # more make lookups slow


class RowStore:
    """Rows by their `seq`. Rows are copied in, so a caller may reuse the batch it pushed.

    Between two `forget` calls the store may hold up to twice the rows it needs: forgetting is then O(1) a row.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.seq = np.zeros(0, np.int64)  # increasing
        self.rows = schema.empty_table()  # row i has seq[i]
        self.limit = 1024  # rows at which it is worth asking who is still needed

    def remember(self, base: int, batch: pa.Table, seq: np.ndarray) -> None:
        """Keep the rows `seq` (increasing) of `batch`, whose first row is `base`."""
        if len(seq):
            self.rows = pa.concat_tables([self.rows, _take(batch, seq - base)])
            if self.rows.num_columns and self.rows.column(0).num_chunks > _CHUNKS:
                self.rows = self.rows.combine_chunks()
            self.seq = np.concatenate([self.seq, seq])

    @property
    def is_full(self) -> bool:
        return len(self.seq) > self.limit

    def forget_all_but(self, needed: np.ndarray) -> None:
        """Keep only the rows `needed` (increasing)."""
        places = np.searchsorted(self.seq, needed)
        self.rows = _take(self.rows, places)
        self.seq = needed.copy()
        self.limit = 2 * len(needed) + 1024

    def find(self, seq: np.ndarray, base: int, batch: pa.Table | None) -> pa.Table:
        """The rows `seq`, in that order: from `base` on out of `batch`, earlier ones out of the store."""
        fresh = seq >= base
        if batch is None or not fresh.any():
            return _take(self.rows, np.searchsorted(self.seq, seq))
        if fresh.all():
            return _take(batch, seq - base)
        old = _take(self.rows, np.searchsorted(self.seq, seq[~fresh]))
        new = _take(batch, seq[fresh] - base)
        place = np.empty(len(seq), np.int64)
        place[~fresh] = np.arange(len(old))
        place[fresh] = len(old) + np.arange(len(new))
        return _take(pa.concat_tables([old, new]), place)

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes) + self.seq.nbytes


def _take(table: pa.Table, places: np.ndarray) -> pa.Table:
    """table[places] as one contiguous chunk a column."""
    if table.num_columns == 0:
        return table
    return table.take(pa.array(places)).combine_chunks()

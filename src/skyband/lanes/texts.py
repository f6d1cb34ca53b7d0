"""Texts of live rows by number, so that rows kept as numbers can be compared by their texts.

Equal texts have one number for as long as a live row has the text; later the number may be given to another. Every text is
remembered with the last moment (an ordinal or a time: what rows leave by) at which a row had it. Memory: the texts of live
rows, and of others until there are as many again, or a thousand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from skyband.numbering import Numbering
from skyband.state import table_from_bytes, table_to_bytes

_KIND = pa.large_string()


class LiveTexts:
    """Numbers for texts."""

    def __init__(self) -> None:
        self.numbering = Numbering()
        self.last = np.zeros(0, np.int64)  # by number: the latest moment of a row with the text

    def numbers(self, column: pa.ChunkedArray, moments: np.ndarray) -> np.ndarray:
        """The number of every row's text as float64, NaN where null; `moments`: when each row comes."""
        known = column.is_valid().to_numpy(zero_copy_only=False)
        if not known.all():
            column, moments = column.drop_null(), moments[known]
        numbers = self.numbering.numbers(column.cast(_KIND))
        if len(self.last) < len(self.numbering):
            new = np.full(len(self.numbering) - len(self.last), np.iinfo(np.int64).min)
            self.last = np.concatenate([self.last, new])
        np.maximum.at(self.last, numbers, moments)
        found = np.full(len(known), np.nan)
        found[known] = numbers
        return found

    def forget_before(self, moment: int) -> None:
        """Rows of earlier moments have left; now and then, drop what only they had."""
        if self.numbering.is_full:
            alive = self.last >= moment
            self.numbering.forget_all_but(alive)
            self.last[~alive] = np.iinfo(np.int64).min

    @property
    def nbytes(self) -> int:
        """Bytes held, of texts their characters."""
        return self.last.nbytes + sum(len(text) for text in self.numbering.number)

    def save(self) -> tuple[dict[str, int], dict[str, np.ndarray]]:
        """What is remembered: counts, and arrays."""
        counts = {"count": len(self.numbering), "limit": self.numbering.limit}
        table = np.frombuffer(table_to_bytes(self.numbering.save(_KIND)), np.uint8)
        return counts, {"texts": table, "texts.free": np.array(self.numbering.free, np.int64), "texts.last": self.last}

    def restore(self, counts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Take up what `save` gave."""
        table = table_from_bytes(arrays["texts"].tobytes())
        self.numbering.restore(table, counts["count"], arrays["texts.free"], counts["limit"])
        self.last = arrays["texts.last"]

"""The data sets of the papers: generated as they say, or what stands for them in the folder SKYBAND_DATA names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np

from benchmarks import streams as measured

_REAL: dict[str, Callable[[Path], np.ndarray]] = {**measured.REAL, **measured.SHORT}


class Source(Protocol):
    """What tables and pictures need to know of a data set."""

    @property
    def label(self) -> str:
        """What the paper calls it."""

    @property
    def size(self) -> int:
        """The default window."""

    @property
    def stands_in(self) -> str:
        """What is measured, where it is not the paper's own."""

    def missing(self) -> str:
        """Why it cannot be measured here; empty when it can."""


@dataclass(frozen=True)
class DataSet:
    """A data set of a paper and the stream that is measured for it."""

    label: str
    stream: str
    size: int  # the default window
    cycle: int = 0  # rows after which the stream repeats its shape, so that averages need a whole number of them
    stands_in: str = ""  # what the measured stream is, where it is not the paper's own

    def missing(self) -> str:
        """Why it cannot be measured here; empty when it can."""
        if self.stream in measured.SYNTHETIC or measured.real_folder() is not None:
            return ""
        return "needs SKYBAND_DATA"

    def too_short_for(self, size: int) -> str:
        """Why a window of `size` rows says nothing here; empty when it does."""
        if self.stream in measured.SYNTHETIC:
            return ""
        rows = len(_whole(self.stream))
        return f"windows longer than the stand-in's {rows:,} rows" if rows < size else ""

    def scores(self, rows: int) -> np.ndarray:
        """The first `rows` scores; a real stream that is shorter is repeated."""
        if self.stream in measured.SYNTHETIC:
            return _synthetic(self.stream, rows)
        return np.resize(_whole(self.stream), rows)


@lru_cache(maxsize=2)
def _synthetic(name: str, rows: int) -> np.ndarray:
    return measured.stream(name, rows)


@lru_cache(maxsize=2)
def _whole(name: str) -> np.ndarray:
    """All rows of a real stream."""
    folder = measured.real_folder()
    if folder is None:
        raise SystemExit(f"the stream {name!r} is real data: set SKYBAND_DATA to the folder that holds it")
    return _REAL[name](folder)

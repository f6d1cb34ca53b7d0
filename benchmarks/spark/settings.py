"""What is asked of every system, and the sizes they share."""

from __future__ import annotations

from dataclasses import dataclass

SECOND = 1_000_000  # event time is in microseconds, as Spark's timestamps are


@dataclass(frozen=True)
class Setting:
    """The `k` best events of the last `size` seconds, every `slide` seconds."""

    name: str
    size: int
    slide: int
    k: int

    def __post_init__(self) -> None:
        if self.size % self.slide:
            raise ValueError(f"size={self.size} is not a multiple of slide={self.slide}: panes would not make up a window")

    @property
    def panes(self) -> int:
        """How many slides a window consists of."""
        return self.size // self.slide

    @property
    def size_text(self) -> str:
        return f"{self.size} seconds"

    @property
    def slide_text(self) -> str:
        return f"{self.slide} seconds"

    def __str__(self) -> str:
        return f"{self.name}: {self.size} s window, {self.slide} s slide, k={self.k}"


SETTINGS = {
    setting.name: setting for setting in (Setting("A", 60, 1, 100), Setting("B", 600, 1, 100), Setting("C", 60, 10, 10))
}

EVENTS = 5_000_000
PER_SECOND = 1000
ROWS_A_FILE = 62_500
FILES_A_BATCH = 8  # 500 thousand events a micro-batch; an even number, so that both cores get the same share
LEAST_BATCHES = 4  # a shortened run takes smaller micro-batches rather than fewer

"""A promised figure and what was measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One promise, `hold`, 0 where nothing is promised, and what was measured. `at_most`: smaller is better; otherwise larger
    is."""

    what: str
    yardstick: str
    hold: float
    measured: float
    unit: str
    at_most: bool = True
    detail: str = ""

    @property
    def holds(self) -> bool:
        return self.measured <= self.hold if self.at_most else self.measured >= self.hold

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"holds": self.holds if self.hold else None}

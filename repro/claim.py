"""What a claim is: a relation between lines of an experiment's table, and a bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from repro.relations import RELATIONS

NOISE = 1.05  # two runs of the same thing differ by so much


@dataclass(frozen=True)
class Claim:
    """One statement of a paper: numbers of a relation that must stay at or below a bound.

    `of` and `than` name a series, or several: then the largest of the first and the smallest of the second, column by
    column. `over`: the geometric mean of the columns, or every single one. `axes`: only columns of these parameters.
    `columns`: only columns with these labels. `data`: only these data sets. `aside`: data sets of which it cannot be
    judged, and why.
    """

    name: str
    experiment: str
    says: str
    relation: str
    of: str | tuple[str, ...]
    than: str | tuple[str, ...] = ()
    bound: float = 1.0
    over: str = "mean"  # or "every"
    axes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    aside: Mapping[str, str] = field(default_factory=dict)

    @property
    def wants(self) -> str:
        """What is held against the bound, in words."""
        of_what = RELATIONS[self.relation].text.format(of=_one_of("largest", self.of), than=_one_of("smallest", self.than))
        where = f" at {', '.join(self.columns)}" if self.columns else " in every column" if self.over == "every" else ""
        return f"{of_what}{where} ≤ {self.bound:.3g}"


def _one_of(which: str, names: str | tuple[str, ...]) -> str:
    return names if isinstance(names, str) else f"the {which} of {', '.join(names)}"

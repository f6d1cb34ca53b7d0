"""THE TABLE: every algorithm, one row each. The module of a row is imported when it is first built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from skyband.errors import QueryError

if TYPE_CHECKING:
    import pyarrow as pa

    from skyband.algorithms.contract import Plan, Ranked


@dataclass(frozen=True)
class Entry:
    """One row of the table."""

    name: str
    paper: str
    family: str  # "ranked" | "spatial" | "pairs" | "across"
    exact: bool
    windows: str  # kinds of windows it can keep
    deletions: bool
    needs: str  # what a query must bring
    home: str  # "module:Class" below skyband.algorithms
    options: Mapping[str, Any] = field(default_factory=dict)


def _ranked(name: str, paper: str, home: str, needs: str = "a score", **options: Any) -> Entry:
    return Entry(name, paper, "ranked", True, "count, time", False, needs, home, options)


TABLE: tuple[Entry, ...] = (
    _ranked("oracle", "definition", "oracle:Oracle"),
    _ranked("strict", "TODS15 4.1, TKDE17 2.1", "strict:Strict"),
    _ranked("relaxed", "TODS15 4.2 (RA)", "pruned:Pruned", core="relaxed"),
    _ranked("strict+strict", "TODS15 5 (SASF)", "pruned:Pruned", core="strict", filter="strict"),
    _ranked("strict+relaxed", "TODS15 5 (SARF)", "pruned:Pruned", core="strict", filter="relaxed"),
    _ranked("strict+probabilistic", "TODS15 5 (SAPF)", "pruned:Pruned", core="strict", filter="probabilistic"),
    _ranked("relaxed+strict", "TODS15 5 (RASF)", "pruned:Pruned", core="relaxed", filter="strict"),
    _ranked("relaxed+relaxed", "TODS15 5 (RARF)", "pruned:Pruned", core="relaxed", filter="relaxed"),
    _ranked("relaxed+probabilistic", "TODS15 5 (RAPF)", "pruned:Pruned", core="relaxed", filter="probabilistic"),
    Entry("probabilistic", "TODS15 4.1 (PA)", "ranked", False, "count", False, "a score", "pruned:Pruned", {"core": "probabilistic"}),
    _ranked("mintopk", "EDBT11 (TKDE17 2.1)", "mintopk:MinTopK"),
    _ranked("panes", "VLDB15 two stacks", "panes:TwoStackPanes"),
    _ranked("sap-equal", "TKDE17 4.1", "sap:SAP", policy="equal"),
    _ranked("sap-dynamic", "TKDE17 4.2", "sap:SAP", policy="dynamic"),
    _ranked("sap", "TKDE17 4.3, 5.2", "sap:SAP", policy="enhanced"),
    _ranked("sap-proactive", "TKDE17 5.1", "sap:SAP", policy="enhanced", formation="proactive"),
    _ranked("sap-equal-eager", "TKDE17 6.2 (no delay)", "sap:SAP", policy="equal", formation="eager"),
    _ranked("sap-equal-rescan", "TKDE17 6.2 (no S-AVL)", "sap:SAP", policy="equal", meaningful="sorted"),
    _ranked("shared", "TKDE17 3, ICDE24 (idea)", "shared:SharedViews"),
)

_BY_NAME = {entry.name: entry for entry in TABLE}


def entry(name: str) -> Entry:
    """The row called `name`; QueryError with the nearest names when there is none."""
    try:
        return _BY_NAME[name]
    except KeyError:
        known = ", ".join(["auto", *_BY_NAME])
        raise QueryError(f"unknown algorithm {name!r}; choose one of: {known}") from None


def load(name: str) -> type[Ranked]:
    """The class behind a row."""
    module, _, cls = entry(name).home.partition(":")
    found: type[Ranked] = getattr(import_module(f"skyband.algorithms.{module}"), cls)
    return found


def build(name: str, plan: Plan, **options: Any) -> Ranked:
    """A fresh structure of the algorithm `name` for a plan. `options` override the row's own."""
    return load(name)(plan, **{**entry(name).options, **options})


def algorithms() -> pa.Table:
    """The registry as a table: name, paper, family, exact, windows, deletions, needs.

    >>> import skyband as sb
    >>> sb.algorithms().column("name")[0].as_py()
    'oracle'
    """
    import pyarrow as pa

    columns = ("name", "paper", "family", "exact", "windows", "deletions", "needs")
    return pa.table({column: [getattr(row, column) for row in TABLE] for column in columns})

"""THE TABLE: every algorithm, one row each. The module of a row is imported when it is first built."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from skyband.errors import QueryError

if TYPE_CHECKING:
    import pyarrow as pa

    from skyband.algorithms.contract import Plan, Ranked
    from skyband.algorithms.pairs.contract import PairStructure, Scoring


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
    home: str  # "module:Class" in the folder of its family
    options: Mapping[str, Any] = field(default_factory=dict)
    settable: tuple[str, ...] = ()  # options a query may give
    home_over_time: str = ""  # the same for windows of time, where it is another


def _ranked(name: str, paper: str, home: str, **options: Any) -> Entry:
    return Entry(name, paper, "ranked", True, "count, time", False, "a score", home, options)


def _pruned(name: str, paper: str) -> Entry:
    """A core, or core+filter."""
    core, _, sieve = name.partition("+")
    settable = ("gamma",) * ("relaxed" in name) + ("sigma", "rule") * ("probabilistic" in name)
    settable += ("buffer",) * bool(sieve) + ("grid",) * (bool(sieve) or core == "probabilistic")
    exact, windows = core != "probabilistic", "count" if core == "probabilistic" else "count, time"
    options = {"core": core} | ({"filter": sieve} if sieve else {})
    return Entry(name, paper, "ranked", exact, windows, False, "a score", "pruned:Pruned", options, settable)


def _spatial(name: str, paper: str, core: str, needs: str) -> Entry:
    """A core that is filled from a grid over the window's points."""
    settable = ("grid",) if core == "tma" else ("grid", "spare")
    homes = {"home": "crowd:Crowd", "home_over_time": "crowd_time:TimeCrowd"}
    options = {"core": core}
    return Entry(name, paper, "spatial", True, "count, time", core == "tma", needs, options=options, settable=settable, **homes)


def _pairs(name: str, paper: str, home: str, needs: str = "a score of pairs", exact: bool = True, **options: Any) -> Entry:
    return Entry(name, paper, "pairs", exact, "count, time", False, needs, home, options)


_HYBRID = Entry(
    name="hybrid",
    paper="TODS15 4.1.3 (future work)",
    family="ranked",
    exact=True,
    windows="count",
    deletions=False,
    needs="a score",
    home="hybrid:Hybrid",
    settable=("sigma", "gamma", "buffer"),
)


_TSL = Entry(
    name="tsl",
    paper="SIGMOD06 3.2",
    family="spatial",
    exact=True,
    windows="count, time",
    deletions=False,
    needs="a score without choices",
    home="tsl:TSL",
    options={"core": "tsl"},
    home_over_time="tsl_time:TimeTSL",
)


def _across(name: str, paper: str, home: str, *, exact: bool = True, settable: tuple[str, ...] = ()) -> Entry:
    return Entry(name, paper, "across", exact, "count, time", False, "key, stream, value", home, settable=settable)


TABLE: tuple[Entry, ...] = (
    Entry("oracle", "definition", "ranked", True, "count, time", True, "a score", "oracle:Oracle"),
    _ranked("strict", "TODS15 4.1, TKDE17 2.1", "strict:Strict"),
    _pruned("relaxed", "TODS15 4.2 (RA)"),
    _pruned("strict+strict", "TODS15 5 (SASF)"),
    _pruned("strict+relaxed", "TODS15 5 (SARF)"),
    _pruned("strict+probabilistic", "TODS15 5 (SAPF)"),
    _pruned("relaxed+strict", "TODS15 5 (RASF)"),
    _pruned("relaxed+relaxed", "TODS15 5 (RARF)"),
    _pruned("relaxed+probabilistic", "TODS15 5 (RAPF)"),
    _pruned("probabilistic", "TODS15 4.1 (PA)"),
    _HYBRID,
    _ranked("mintopk", "EDBT11 (TKDE17 2.1)", "mintopk:MinTopK"),
    _ranked("panes", "VLDB15 two stacks", "panes:TwoStackPanes"),
    _ranked("sap-equal", "TKDE17 4.1", "sap:SAP", policy="equal"),
    _ranked("sap-dynamic", "TKDE17 4.2", "sap:SAP", policy="dynamic"),
    _ranked("sap", "TKDE17 4.3, 5.2", "sap:SAP", policy="enhanced"),
    _ranked("sap-proactive", "TKDE17 5.1", "sap:SAP", policy="enhanced", formation="proactive"),
    _ranked("sap-equal-eager", "TKDE17 6.2 (no delay)", "sap:SAP", policy="equal", formation="eager"),
    _ranked("sap-equal-rescan", "TKDE17 6.2 (no S-AVL)", "sap:SAP", policy="equal", meaningful="sorted"),
    _ranked("shared", "TKDE17 3, ICDE24 (idea)", "shared:SharedViews"),
    Entry("above", "SIGMOD06 7", "spatial", True, "count, time", True, "a bound", "above:Above"),
    _spatial("tma", "SIGMOD06 4", "tma", "a score that is no callable"),
    _spatial("sma", "SIGMOD06 5", "sma", "a score that is no callable"),
    _TSL,
    _spatial("cpm", "TODS15 2 (CPM/w)", "tma", "a distance score"),
    _spatial("snn", "TODS15 2 (SNN)", "sma", "a distance score"),
    _across("across-oracle", "definition", "oracle:AcrossOracle"),
    _across("sla", "CIKM09 3.1", "sla:SortedLists"),
    _across("eaa", "CIKM09 3.2", "eaa:Instances"),
    _across("eaa-approximate", "CIKM09 4 (aim)", "promised:PromisedInstances", exact=False, settable=("memory",)),
    _across("eaa-estimate", "CIKM09 4", "estimated:EstimatedInstances", exact=False, settable=("margin",)),
    _pairs("pairs-oracle", "definition", "oracle:PairOracle"),
    _pairs("scase", "ICDE12 V-A (SCase)", "skyband:PairSkyband", access="scan"),
    _pairs("pairs-ta", "ICDE12 V-B (TA)", "skyband:PairSkyband", "a pair distance", access="boxes"),
    _pairs("pairs-basic", "ICDE12 VI-D (basic)", "rivals:Basic"),
    _pairs("pairs-naive", "ICDE12 VI-B (naive)", "naive:PairNaive"),
    _pairs("supreme", "ICDE12 VI-B (scores only, no answers)", "rivals:Supreme", exact=False),
)

_BY_NAME = {entry.name: entry for entry in TABLE}
_NAMED = re.compile(r"(?P<name>[^()]*?)\s*(?:\((?P<options>[^()]*)\))?\s*")


def entry(name: str) -> Entry:
    """The row called `name`, whatever options stand behind it; QueryError with the names there are when there is none."""
    return settled(name)[0]


def settled(text: str) -> tuple[Entry, dict[str, Any]]:
    """The row and the options of an algorithm as a query names it: `relaxed` or `relaxed(gamma=0.5)`.

    >>> settled("relaxed+probabilistic(gamma=0.5, buffer=1000)")[1]
    {'gamma': 0.5, 'buffer': 1000}
    """
    match = _NAMED.fullmatch(text)
    found = _BY_NAME.get(match["name"].strip()) if match else None
    if match is None or found is None:
        if text.startswith("probabilistic+"):
            raise QueryError(
                f"algorithm {text!r}: a probabilistic core takes no filter, it looks at few rows as it is; "
                "use 'probabilistic', or 'relaxed+probabilistic' for exact answers"
            )
        known = ", ".join(["auto", *_BY_NAME])
        raise QueryError(f"unknown algorithm {text!r}; choose one of: {known}")
    options: dict[str, Any] = {}
    for part in filter(None, (match["options"] or "").split(",")):
        key, _, value = (piece.strip() for piece in part.partition("="))
        if key in options:
            raise QueryError(f"algorithm {text!r}: {key!r} is given twice; give it once")
        if key not in found.settable:
            may = ", ".join(found.settable) or "none"
            raise QueryError(f"algorithm {text!r}: {key!r} is not an option of {found.name!r}; it has: {may}")
        options[key] = SETTINGS[key].read(text, key, value)
    return found, options


@dataclass(frozen=True)
class Setting:
    """An option: how it is written and what it may be."""

    read_as: type
    wanted: str
    allowed: Callable[[Any], bool]

    def read(self, text: str, key: str, value: str) -> Any:
        """The value behind `key=`; QueryError when it is none."""
        try:
            number = self.read_as(value)
        except ValueError:
            number = None
        if number is None or not self.allowed(number):
            raise QueryError(f"algorithm {text!r}: {key} must be {self.wanted}, got {value!r}")
        return number


SETTINGS: Mapping[str, Setting] = {
    "gamma": Setting(float, "a number of at least 0, the share by which candidates may grow", lambda x: 0 <= x < math.inf),
    "sigma": Setting(float, "a probability between 0 and 1, both excluded", lambda x: 0 < x < 1),
    "buffer": Setting(int, "a whole number of rows, at least 1", lambda x: x >= 1),
    "rule": Setting(str, "'auto', 'swept', 'definition' or 'table'", lambda x: x in ("auto", "swept", "definition", "table")),
    "margin": Setting(float, "a number from -1 to 1, added to every estimated chance", lambda x: -1 <= x <= 1),
    "spare": Setting(float, "how many rows more than k a search finds, as a share of k: 0 to 100", lambda x: 0 <= x <= 100),
    "memory": Setting(int, "a whole number of instances, at least k", lambda x: x >= 1),
    "grid": Setting(int, "how many cells divide each attribute, 1 to 1000", lambda x: 1 <= x <= 1000),
}


def check(text: str, k: int, rows: int | None, error: float) -> None:
    """QueryError when the algorithm cannot answer the best `k` of `rows` rows (None: not known beforehand) with that
    error."""
    named, options = settled(text) if text != "auto" else (None, {})
    if named is not None and named.name == "above":
        raise QueryError(f"{text!r} answers Threshold queries; ask a Threshold, or choose another algorithm")
    if named is not None and named.family == "across":
        raise QueryError(f"{text!r} answers TopKAcross queries; ask a TopKAcross, or choose another algorithm")
    if named is not None and named.family == "pairs":
        raise QueryError(f"{text!r} ranks pairs of rows; ask a TopKPairs, or choose another algorithm")
    if named is not None and named.windows == "count" and rows is None:
        raise QueryError(f"{text!r} needs a window of a known number of rows: use CountWindow, or another algorithm")
    if named is not None and rows is not None and "buffer" in options:
        from skyband.algorithms.ranked.pruned import buffer_of

        buffer_of(rows, options["buffer"])
    if error == 0:
        return
    if named is not None and named.exact and named is not _HYBRID:  # which an error makes hold fewer rows
        raise QueryError(f"error={error!r} asks for an approximate answer and {text!r} is exact; leave error at 0")
    if options.get("sigma", error) != error:
        raise QueryError(
            f"error={error!r} and algorithm {text!r} contradict each other: sigma is the error; "
            f"leave one of the two out, or give sigma={error!r}"
        )
    if rows is None:
        raise QueryError(f"error={error!r} needs a window of a known number of rows: use CountWindow, or leave error at 0")
    from skyband.algorithms.ranked.candidate_limit import least_window, prunes

    if not prunes(min(k, rows), rows, error):
        raise QueryError(
            f"error={error!r} means nothing over {rows} rows: all of them would have to be kept to hold it; "
            f"for k={k} use a window of at least {least_window(k, error)} rows, or leave error at 0"
        )


def check_threshold(text: str) -> None:
    """QueryError when the algorithm cannot answer a Threshold query."""
    if text == "auto":
        return
    named, options = settled(text)
    if named.name == "tsl":
        raise QueryError(
            f"{text!r} keeps views of k rows and a few more, and a Threshold has no k; use 'above', 'tma', or 'auto'"
        )
    if named.family != "spatial" and named.name != "oracle":
        raise QueryError(
            f"{text!r} keeps what can come into the best k rows, and a Threshold asks for every row above its bound; "
            "use 'above', 'tma', 'oracle', or 'auto'"
        )
    if "spare" in options:
        raise QueryError(f"{text!r}: spare says how many rows more than k are searched for, and a Threshold needs no search")


def with_error(text: str, error: float) -> str:
    """The algorithm to build for a query: one that asks for an error gets it as its sigma."""
    if error == 0:
        return text
    if text == "auto":
        return f"hybrid(sigma={error!r})"
    named, options = settled(text)
    options["sigma"] = error
    return f"{named.name}({', '.join(f'{key}={value}' for key, value in options.items())})"


def load(name: str, *, over_time: bool = False) -> type[Ranked]:
    """The class behind a row."""
    named = entry(name)
    found: type[Ranked] = _found(named, named.home_over_time if over_time else named.home)
    return found


def build(name: str, plan: Plan, **options: Any) -> Ranked:
    """A fresh structure of the algorithm `name` for a plan. `options` override those named, which override the row's."""
    named, written = settled(name)
    return load(name).for_plan(plan, **{**named.options, **written, **options})


def build_pairs(name: str, scoring: Scoring, **options: Any) -> PairStructure:
    """A fresh structure of the algorithm `name` for a pair score."""
    named = entry(name)
    made: PairStructure = _found(named, named.home)(scoring, **{**named.options, **options})
    return made


def _found(named: Entry, home: str) -> Any:
    module, _, cls = home.partition(":")
    return getattr(import_module(f"skyband.algorithms.{named.family}.{module}"), cls)


def algorithms() -> pa.Table:
    """The registry as a table: name, paper, family, exact, windows, deletions, needs.

    >>> import skyband as sb
    >>> sb.algorithms().column("name")[0].as_py()
    'oracle'
    """
    import pyarrow as pa

    columns = ("name", "paper", "family", "exact", "windows", "deletions", "needs")
    return pa.table({column: [getattr(row, column) for row in TABLE] for column in columns})

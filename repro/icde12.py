"""The experiments of ICDE12 (top-k pairs over sliding windows), and what it claims. The paper draws, it prints no figures.

Where its text and ours mean different things: a pair's score is computed with all four of its scoring functions, s1 to s4
(closest and furthest by sum, most and least alike by product), and the mean of the four is shown.
"""

from __future__ import annotations

from dataclasses import replace

from repro.claim import NOISE, Claim
from repro.experiment import Column
from repro.pairs import Cost, PairExperiment, PairLine, PairSet, query_cost

__all__ = ["CLAIMS", "EXPERIMENTS", "Cost"]

UNIFORM = PairSet("uniform", "uniform", 10_000)
SYNTHETIC = {
    "uniform": UNIFORM,
    "correlated": PairSet("correlated", "correlated", 10_000),
    "anticorrelated": PairSet("anticorrelated", "anticorrelated", 10_000),
}
SENSORS = {
    "sensors": PairSet("Intel lab", "rooms", 10_000, "rooms of a hall in Berkeley: minute, temperature, humidity; 45 rooms"),
}
LAB = {"lab": PairSet("Intel lab itself", "lab", 10_000, "its 50 sensors each half hour, 12,000 readings", largest=10_000)}


def _columns(axis: str, values: tuple[int, ...], quick: tuple[int, ...]) -> tuple[Column, ...]:
    return tuple(Column(axis, f"{value:,}", value, quick=value in quick) for value in values)


K = _columns("K", (1, 5, 10, 20, 50, 100), (20, 100))
N = _columns("N", (10_000, 50_000, 100_000, 500_000, 1_000_000), (10_000, 100_000))
SMALL_N = _columns("N", (1000, 2000, 5000), (5000,))  # where the naive algorithm can be followed
D = _columns("d", (2, 3, 4, 5, 6), (2, 4))

_COST = "microseconds"
SCASE = PairLine("scase", _COST, "#1f77b4")
TA = PairLine("pairs-ta", _COST, "#2ca02c")
BASIC = PairLine("pairs-basic", _COST, "#d62728", largest=100_000)
NAIVE = PairLine("pairs-naive", _COST, "#9467bd", largest=10_000, largest_k=50)  # filling a window takes a minute
SUPREME = PairLine("supreme", _COST, "#7f7f7f")
_SIZE = PairLine("scase", "share", "#17becf", detail=True)

_UNIT = "microseconds a row"

EXPERIMENTS = (
    PairExperiment(
        name="icde12-figure7",
        paper="ICDE12",
        table="Figure 7",
        title="overall cost, 100 queries of random k and n, sensors",
        unit=_UNIT,
        data=SENSORS,
        series={"SCase": SCASE, "naive": NAIVE, "supreme": SUPREME},
        columns=(*K, *SMALL_N, *N),
        queries=100,
        timed=True,
        notes=("the naive algorithm serves one window size: it answers the largest query alone, 100 times",),
    ),
    PairExperiment(
        name="icde12-figure7-lab",
        paper="ICDE12",
        table="Figure 7, the lab's own readings",
        title="overall cost, 100 queries of random k and n, as far as the readings go",
        unit=_UNIT,
        data=LAB,
        series={"SCase": SCASE, "naive": replace(NAIVE, largest_k=20), "supreme": SUPREME},
        columns=(*K, *SMALL_N, *N[:1]),
        queries=100,
        timed=True,
        notes=("the naive algorithm serves one window size: it answers the largest query alone, 100 times",),
    ),
    PairExperiment(
        name="icde12-figure8",
        paper="ICDE12",
        table="Figure 8",
        title="overall cost over K and N",
        unit=_UNIT,
        data={"uniform": UNIFORM},
        series={"SCase": SCASE, "naive": NAIVE, "supreme": SUPREME},
        columns=(*K, *SMALL_N, *N),
        timed=True,
    ),
    PairExperiment(
        name="icde12-figure9",
        paper="ICDE12",
        table="Figure 9",
        title="overall cost over k and n, where only the rivals are told them",
        unit=_UNIT,
        data={"uniform": UNIFORM},
        series={
            "SCase": SCASE,
            "naive++": PairLine("pairs-naive", _COST, "#9467bd", largest=10_000, knows=True),
            "supreme++": PairLine("supreme", _COST, "#7f7f7f", knows=True),
        },
        columns=(*_columns("k", (1, 5, 10, 20), (1, 20)), *_columns("n", (1000, 2000, 5000, 10_000), (1000, 10_000))),
        asked_k=20,
        asked_size=10_000,
        timed=True,
    ),
    PairExperiment(
        name="icde12-figure10",
        paper="ICDE12",
        table="Figure 10",
        title="a snapshot query, by the tree and by the list",
        unit="microseconds a query",
        data={"uniform": UNIFORM},
        series={
            "snapshot": PairLine("scase", _COST, "#1f77b4", answering="tree"),
            "linear": PairLine("scase", _COST, "#ff7f0e"),
        },
        columns=(
            *K,
            *N,
            *_columns("k", (1, 5, 10, 20, 50, 100), (20,)),
            *_columns("n", (500, 1000, 2000, 5000, 10_000), (1000,)),
        ),
        measure=query_cost,
        k=100,
        asked_k=20,
        asked_size=1000,
        scores=("s1",),
        timed=True,
    ),
    PairExperiment(
        name="icde12-figure11",
        paper="ICDE12",
        table="Figure 11",
        title="continuous queries of random k and n",
        unit="microseconds a row, all queries",
        data={"uniform": UNIFORM},
        series={
            "continuous": SCASE,
            "snapshot": PairLine("scase", _COST, "#2ca02c", watched=False, answering="tree"),
            "linear": PairLine("scase", _COST, "#ff7f0e", watched=False),
        },
        columns=(*K, *_columns("Q", (100, 250, 500, 1000), (100, 1000))),
        queries=1000,
        scores=("s1",),
        timed=True,
    ),
    PairExperiment(
        name="icde12-figure12",
        paper="ICDE12",
        table="Figure 12",
        title="keeping the skyband",
        unit=_UNIT,
        data=SYNTHETIC,
        series={"basic": BASIC, "SCase": SCASE, "TA": TA, "supreme": SUPREME, "pairs ÷ expected": _SIZE},
        columns=(*K, *N, *D),
        timed=True,
    ),
    PairExperiment(
        name="icde12-closest",
        paper="ICDE12",
        table="Figure 12, s1 and s2 alone",
        title="keeping the skyband of the closest and the furthest pairs",
        unit=_UNIT,
        data=SYNTHETIC,
        series={"SCase": SCASE, "TA": TA, "supreme": SUPREME},
        columns=(*N, *_columns("d", (2, 3, 4), (2, 4))),
        size=100_000,
        scores=("s1", "s2"),
        timed=True,
    ),
)

_BIG = ("100,000", "500,000", "1,000,000")
_LARGE = ("10,000", "50,000", *_BIG)

CLAIMS = (
    Claim(
        "naive-real", "icde12-figure7", "two to three orders of magnitude faster than naive",
        "at most", "SCase", "naive", 0.01, axes=("N",), columns=("10,000",),
    ),
    Claim(
        "supreme-real", "icde12-figure7", "reasonably close to supreme",
        "at most", "SCase", "supreme", 1.6, axes=("N",), columns=_LARGE,
    ),
    Claim(
        "naive-lab", "icde12-figure7-lab", "two to three orders of magnitude faster than naive",
        "at most", "SCase", "naive", 0.01, axes=("N",), columns=("10,000",),
    ),
    Claim(
        "supreme-lab", "icde12-figure7-lab", "reasonably close to supreme",
        "at most", "SCase", "supreme", 1.6, axes=("N",), columns=("10,000",),
    ),
    Claim(
        "naive-synthetic", "icde12-figure8", "the same on synthetic data",
        "at most", "SCase", "naive", 0.01, axes=("N",), columns=("10,000",),
    ),
    Claim(
        "supreme-n", "icde12-figure8", "close to supreme for every N, K = 20",
        "at most", "SCase", "supreme", 1.3, over="every", axes=("N",), columns=_LARGE,
    ),
    Claim(
        "supreme-k", "icde12-figure8", "close to supreme for every K",
        "at most", "SCase", "supreme", 1.6, over="every", axes=("K",),
    ),
    Claim(
        "naive++", "icde12-figure9", "faster than naive++ even for n = 1000",
        "at most", "SCase", "naive++", 1.0, axes=("n",), columns=("1,000",),
    ),
    Claim("not-by-n", "icde12-figure9", "its cost does not depend on n", "grows", "SCase", bound=1.2, axes=("n",)),
    Claim(
        "snapshot-k", "icde12-figure10", "snapshot is faster than linear for every K",
        "at most", "snapshot", "linear", 1.0, axes=("K",),
    ),
    Claim("snapshot-n", "icde12-figure10", "and for every N", "at most", "snapshot", "linear", 1.0, axes=("N",)),
    Claim(
        "snapshot-steady", "icde12-figure10", "and scales better with N",
        "steadier", "snapshot", "linear", NOISE, axes=("N",),
    ),
    Claim(
        "linear-at-n", "icde12-figure10", "linear is faster where n is close to N",
        "at most", "linear", "snapshot", 1.0, axes=("n",), columns=("10,000",),
    ),
    Claim(
        "continuous", "icde12-figure11", "continuous is faster than snapshot and linear",
        "at most", "continuous", ("snapshot", "linear"), 1.0, over="every",
    ),
    Claim("scase-below-basic", "icde12-figure12", "SCase is faster than basic", "at most", "SCase", "basic", 1.0, over="every"),
    Claim("ta-below-basic", "icde12-figure12", "TA is faster than basic", "at most", "TA", "basic", 1.0, over="every"),
    Claim("ta-below-scase", "icde12-figure12", "TA is faster than SCase", "at most", "TA", "SCase", 1.0),
    Claim(
        "ta-below-supreme", "icde12-figure12", "TA is faster than supreme where N is large",
        "at most", "TA", "supreme", 1.0, over="every", axes=("N",), columns=_BIG,
    ),
    Claim("ta-by-d", "icde12-figure12", "TA degrades with d", "shrinks", "TA", bound=1.0, axes=("d",)),
    Claim(
        "small-skyband", "icde12-figure12", "the skyband holds O(K log(N/K)) pairs",
        "itself", "pairs ÷ expected", bound=1.3, over="every",
    ),
    Claim(
        "closest-n", "icde12-closest", "TA is faster than supreme for the closest and furthest pairs, N >= 10⁵",
        "at most", "TA", "supreme", 1.0, over="every", axes=("N",), columns=_BIG,
    ),
    Claim("closest-d", "icde12-closest", "and for d = 2 to 4", "at most", "TA", "supreme", 1.0, over="every", axes=("d",)),
)  # fmt: skip

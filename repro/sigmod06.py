"""Continuous monitoring of top-k queries over sliding windows (Mouratidis, Bakiras, Papadias, SIGMOD 2006), section 8:
1000 linear preference queries over a window of a million points, 10⁴ arrivals a cycle (timestamp).

Figures 14 to 21 print no numbers here, so claims are the relations the text states; table 2 has figures. Defaults are those
of table 1. IND: independent, uniform attributes; ANT: anti-correlated ones, made as Börzsönyi et al. do (ICDE 2001).

Departures: times are the mean of five seconds' cycles, 5 to 100 of them, after the queries have come to a full window, not of
100, TSL's views then being as long as they are in the long run (in the paper's 100 timestamps they are longer, and refills
rarer). Figure 16 stops at 3 million points. Table 2 is taken over 100 timestamps as the paper's, from full views and skybands
of exactly k, with N = 20,000 and r = N/100 on 60 streams: sizes depend on k and r/N only, and queries over one stream hold
much the same rows, so that one stream's average, which is what the paper prints, is off by some per cent, and most where k is
small: by 11 % for TSL's views at k = 1. What TSL's should be can be computed: from k_max rows on a view of i rows gains one
and loses one with the chance i in as many arrivals as the window has rows, keeps k_max, and is filled again below k. Over 100
timestamps that makes 3.06, 8.46, 17.35, 27.06, 64.75 and 114.09 rows on average for k from 1 to 100, whatever the data: ours
are within 1 % of them; the paper's 3.3 (IND) and 3.1 (ANT) at k = 1 are two draws around 3.06. The average over one stream
differs as much at the paper's own N and r: by 11 % for 20 queries (60 streams), by 9 % for 100 (17 streams). The grid's cells
are as many as skyband chooses, (N/100)^(1/d) along each attribute, 10 at the defaults, where the paper has 12⁴ in all.
"""

from __future__ import annotations

from repro.claim import NOISE, Claim
from repro.experiment import Column
from repro.points import PointSet
from repro.preferences import Line, Preferences, cost, held

_N = 1_000_000
DATA = {"IND": PointSet("IND", "uniform", _N), "ANT": PointSet("ANT", "anticorrelated", _N)}
_COLOURS = {"TSL": "#c0392b", "TMA": "#e6820e", "SMA": "#1b4f9c"}
_AXES = {
    "d": "dimensions d",
    "N": "window N (r = N/100)",
    "r": "arrivals r a cycle",
    "Q": "queries Q",
    "k": "k",
    "grid": "cells along each attribute",
}
_DIMENSIONS = tuple(Column("d", str(d), d, quick=d in (2, 4)) for d in (2, 3, 4, 5, 6))
_KS = tuple(Column("k", str(k), k, quick=k in (1, 20, 100)) for k in (1, 5, 10, 20, 50, 100))


def _lines(quantity: str, names: tuple[str, ...] = ("TSL", "TMA", "SMA")) -> dict[str, Line]:
    return {name: Line(name.lower(), quantity, _COLOURS[name]) for name in names}


def _times(figure: str, title: str, columns: tuple[Column, ...], function: str = "linear", notes: tuple[str, ...] = ()):  # type: ignore[no-untyped-def]
    """An experiment of the three algorithms' time."""
    return Preferences(
        name=f"sigmod06-fig{figure}",
        paper="SIGMOD06",
        table=f"Figure {figure}",
        title=title,
        unit="ms a cycle",
        data=DATA,
        series=_lines("milliseconds"),
        columns=columns,
        measure=cost,
        function=function,
        axes=_AXES,
        notes=notes,
    )


_GRID = {
    "data": {"IND": DATA["IND"]},
    "columns": tuple(Column("grid", str(g), g, quick=g in (5, 12, 15)) for g in (5, 7, 9, 11, 12, 13, 15)),
    "measure": cost,
    "axes": _AXES,
}

EXPERIMENTS: tuple[Preferences, ...] = (
    Preferences(
        name="sigmod06-table2",
        paper="SIGMOD06",
        table="Table 2",
        title="Rows in a view (TSL) and a skyband (SMA), by query",
        unit="rows",
        data=DATA,
        series=_lines("rows", ("TSL", "SMA")),
        columns=_KS,
        figures={
            "IND": {"TSL": (3.3, 8.6, 17.1, 26.7, 63.0, 113.2), "SMA": (1.1, 5.9, 11.2, 21.6, 53.3, 104.6)},
            "ANT": {"TSL": (3.1, 8.4, 17.2, 26.9, 64.4, 113.6), "SMA": (1.1, 5.9, 11.5, 22.4, 54.4, 106.5)},
        },
        measure=held,
        axes=_AXES,
    ),
    Preferences(
        name="sigmod06-table2-spread",
        paper="SIGMOD06",
        table="Table 2",
        title="By how much one stream's average of table 2 differs",
        unit="%",
        data=DATA,
        series=_lines("spread", ("TSL", "SMA")),
        columns=_KS,
        measure=held,
        logarithmic=False,
        axes=_AXES,
    ),
    Preferences(
        name="sigmod06-fig14-time",
        paper="SIGMOD06",
        table="Figure 14 a",
        title="Time by the grid's granularity",
        unit="ms a cycle",
        series=_lines("milliseconds", ("TMA", "SMA")),
        **_GRID,  # type: ignore[arg-type]
    ),
    Preferences(
        name="sigmod06-fig14-space",
        paper="SIGMOD06",
        table="Figure 14 b",
        title="Space by the grid's granularity",
        unit="MB",
        series=_lines("megabytes", ("TMA", "SMA")),
        **_GRID,  # type: ignore[arg-type]
    ),
    _times("15", "Time by the dimensions", _DIMENSIONS),
    _times(
        "16",
        "Time by the window, 1 % of it new each cycle",
        tuple(Column("N", f"{n}M", n * _N, quick=n < 3) for n in (1, 2, 3)),
    ),
    _times(
        "17",
        "Time by the arrivals a cycle",
        tuple(Column("r", f"{r:,}K", 1000 * r, quick=r in (1, 10, 100)) for r in (1, 5, 10, 50, 100)),
    ),
    Preferences(
        name="sigmod06-fig18",
        paper="SIGMOD06",
        table="Figure 18",
        title="Time by the queries",
        unit="µs a cycle and query",
        data=DATA,
        series=_lines("microseconds"),
        columns=tuple(Column("Q", f"{q:,}", q, quick=q in (100, 1000)) for q in (100, 500, 1000, 2000, 5000)),
        measure=cost,
        axes=_AXES,
    ),
    _times("19", "Time by k", _KS),
    Preferences(
        name="sigmod06-fig20",
        paper="SIGMOD06",
        table="Figure 20",
        title="Space by k",
        unit="MB",
        data=DATA,
        series=_lines("megabytes"),
        columns=_KS,
        measure=cost,
        logarithmic=False,
        axes=_AXES,
    ),
    _times("21-product", "Time by the dimensions, f = Π (aᵢ + xᵢ)", _DIMENSIONS, "product"),
    _times("21-quadratic", "Time by the dimensions, f = Σ aᵢ xᵢ²", _DIMENSIONS, "quadratic"),
)

# -- what the paper says of them -----------------------------------------------------------------------------------

_OURS = ("TMA", "SMA")
_COSTLIER = ("15", "19")  # figures over whose columns every algorithm costs more


def _order(figure: str) -> tuple[Claim, ...]:
    """SMA before TMA before TSL, and by how much."""
    name, slug = f"sigmod06-fig{figure}", f"f{figure}"
    return (
        Claim(f"{slug}-tma", name, "TMA is faster than TSL", "at most", "TMA", "TSL", NOISE),
        Claim(f"{slug}-sma", name, "SMA is faster than TMA", "at most", "SMA", "TMA", NOISE),
    )


CLAIMS: tuple[Claim, ...] = (
    *(
        Claim(
            f"{name.lower()}-rows",
            "sigmod06-table2",
            "as many rows as the paper's, within 5 %",
            "off the paper's",
            name,
            "",
            0.05,
            "every",
            columns=columns,
        )
        for name, columns in (("SMA", ()), ("TSL", ("5", "10", "20", "50", "100")))
    ),
    Claim(
        "tsl-rows-1",
        "sigmod06-table2",
        "as many rows as the paper's, within what the average over one stream differs by",
        "off the paper's",
        "TSL",
        "",
        0.11,
        columns=("1",),
    ),
    *(
        Claim(f"spread-{name.lower()}", "sigmod06-table2-spread", "one stream says least where k is small", "grows", name, "")
        for name in ("SMA", "TSL")
    ),
    Claim("fewer-rows", "sigmod06-table2", "SMA holds fewer than TSL", "at most", "SMA", "TSL", 1.0, "every"),
    *(
        Claim(f"granularity-{name.lower()}", "sigmod06-fig14-time", "12 cells are the best", "least at 12", name, "", 1.1)
        for name in _OURS
    ),
    *(
        Claim(f"granularity-space-{name.lower()}", "sigmod06-fig14-space", "a finer grid takes more space", "shrinks", name)
        for name in _OURS
    ),
    *(claim for figure in ("15", "16", "17", "18", "19", "21-product", "21-quadratic") for claim in _order(figure)),
    Claim(
        "tenth",
        "sigmod06-fig15",
        "TMA takes a tenth of TSL's time at the defaults",
        "at most",
        "TMA",
        "TSL",
        0.1,
        columns=("4",),
    ),
    Claim("tenth-n", "sigmod06-fig16", "both take a tenth of TSL's time in most cases", "at most", _OURS, "TSL", 0.1),
    *(
        Claim(f"f{figure}-costlier-{name.lower()}", f"sigmod06-fig{figure}", "costs more with each column", "shrinks", name)
        for figure in _COSTLIER
        for name in _COLOURS
    ),
    *(
        Claim(f"f16-costlier-{name.lower()}", "sigmod06-fig16", "costs more with a longer window", "shrinks", name)
        for name in _COLOURS
    ),
    *(Claim(f"f17-costlier-{name.lower()}", "sigmod06-fig17", "costs more with r", "shrinks", name) for name in _OURS),
    *(
        Claim(f"f18-linear-{name.lower()}", "sigmod06-fig18", "linear in Q: no more a query", "grows", name, "", 1.25)
        for name in _COLOURS
    ),
    Claim("gap", "sigmod06-fig19", "the gap between TMA and SMA widens with k", "fades", "TMA", "SMA"),
    Claim(
        "tma-worst",
        "sigmod06-fig19",
        "for k = 100 on ANT TMA is hardly better than TSL, if at all",
        "at most",
        "TSL",
        "TMA",
        1.5,
        columns=("100",),
        data=("ANT",),
    ),
    Claim("lists-space", "sigmod06-fig20", "TSL takes the most space", "at most", _OURS, "TSL", 1.0, "every"),
    *(Claim(f"space-{name.lower()}", "sigmod06-fig20", "space grows with k", "shrinks", name) for name in _COLOURS),
)

"""SAP (Zhu, Wang, Yang, Zheng, Wang: SAP: Improving Continuous Top-K Queries over Streaming Data, TKDE 2017).

Tables 2 and 3 (section 6.2) are running times, as are figures 9 and 10 (section 6.3, without printed numbers); tables 6 and 8
(appendices E and F) are candidates and memory, averaged over the windows. The paper gives n as a share of its data. m* =
⌈√(n/max(s, k))⌉ = 33 with k = 100 and s = n/1000 says n ≈ 10⁵ (and 11 says n ≈ 10⁴ for PLANET), as does minTopK's average
on TIMEᵘ: 784, where theory has k (1 + ln(n/k)) = 791 for n = 10⁵, and 1015 against 1021 for ten times that.

Departures: STOCK and PLANET are stood in for by shorter streams, so STOCK's default window is 5·10⁴, and columns
whose window is longer than the stream are left out; TRIP is in the order of drop-off, not of pick-up.
"""

from __future__ import annotations

from statistics import median

from repro.experiment import Column, OneQuery, Series
from repro.streams import DataSet

DATA = {
    "STOCK": DataSet("STOCK", "trades", 50_000, stands_in="coin trades, price × quantity"),
    "TRIP": DataSet("TRIP", "taxi", 100_000, stands_in="green taxis of 2020, miles a second"),
    "PLANET": DataSet("PLANET", "observations", 10_000, stands_in="observations of 15 near-Earth objects, angle from a point"),
    "TIME-U": DataSet("TIMEᵘ", "uniform", 100_000),
    "TIME-R": DataSet("TIMEʳ", "sine", 100_000, cycle=2_000_000),
}

_PARTITIONS = tuple(Column("m", str(m), m, quick=m in (5, 33)) for m in range(5, 38, 2))
_PARAMETERS = (
    *(Column("n", f"{x / 10:g}%", x, quick=x in (0.1, 1)) for x in (0.1, 0.5, 1, 5, 10)),
    *(Column("k", f"{k}", k, quick=k in (10, 100)) for k in (10, 50, 100, 500, 1000)),
    *(Column("s", f"{x:g}%", x / 100, quick=x in (0.01, 0.1, 10)) for x in (0.01, 0.05, 0.1, 1, 5, 10)),
)


def _figures(text: str, names: tuple[str, ...]) -> dict[str, dict[str, tuple[float, ...]]]:
    """A printed table: for each data set a line with its name, then one line of figures for each of `names`."""
    figures: dict[str, dict[str, tuple[float, ...]]] = {}
    lines = iter(text.split("\n")[1:-1])
    for data in lines:
        figures[data.strip()] = {name: tuple(float(x) for x in next(lines).split()) for name in names}
    return figures


_TABLE_2 = _figures(
    """
STOCK
53.6 46.3 42.8 40.5 38.5 36.3 34.6 33.5 31.6 29.7 28.6 27.7 28.1 27.8 27.6 27.3 27.2
18.2 15.6 14.9 14.8 14.3 14.2 13.7 13.8 13.9 14.4 14.8 15.2 15.5 15.7 16.0 16.4 16.6
14.5 12.6 12.5 12.5 12.6 12.7 12.8 13.1 13.4 13.9 14.0 14.8 15.3 15.4 15.8 16.1 16.1
TRIP
55.3 45.3 43.1 42.9 41.7 40.3 39.1 38.2 36.7 34.1 32.9 31.8 30.7 28.1 27.9 27.3 27.4
14.9 14.2 14.0 14.2 14.7 14.9 15.4 15.6 15.8 16.2 16.6 16.8 17.2 17.7 18.1 18.3 18.6
12.8 11.7 11.9 12.1 12.6 12.9 13.3 13.9 14.3 14.8 15.1 15.3 15.6 15.9 16.1 16.6 17.3
PLANET
6.2 5.3 5.1 5.0 4.9 4.7 4.5 4.4 4.2 4.3 4.3 4.4 4.4 4.5 4.6 4.6 4.7
5.0 4.4 4.3 4.2 4.1 4.1 4.1 4.0 4.0 4.0 3.8 3.8 3.7 3.7 3.7 3.7 3.7
3.6 3.2 3.0 2.9 2.9 2.9 2.9 3.0 3.1 3.1 3.6 3.2 3.2 3.3 3.3 3.3 3.4
TIME-U
35.6 34.7 33.2 31.9 30.8 29.9 27.2 27.5 27.9 28.1 28.8 29.7 30.7 31.3 32.6 33.3 33.7
13.2 12.7 12.8 13.2 13.5 14.2 14.4 15.1 15.2 15.7 16.2 16.8 17.2 17.3 17.9 18.4 18.3
12.9 12.5 12.7 13.1 13.4 14.1 14.4 14.9 15.2 15.6 16.1 16.4 16.9 17.3 17.5 17.7 18.1
TIME-R
90.3 88.6 86.4 83.2 81.6 78.8 76.5 75.9 74.3 74.1 73.3 72.8 71.7 70.9 71.1 71.7 72.1
73.0 67.5 63.4 60.2 57.6 57.4 55.5 54.9 53.4 52.5 51.3 50.8 49.3 48.8 48.3 47.7 46.2
57.4 51.6 47.2 46.9 46.6 45.6 44.7 43.9 43.6 42.7 42.3 41.9 41.7 41.4 41.3 41.2 41.3
""",
    ("non-delay", "Algo 1", "Algo 1+S-AVL"),
)

_TABLE_3 = _figures(
    """
STOCK
11.2 11.8 12.5 13.5 14.3 9.58 11.2 12.5 14.4 15.4 19.7 15.5 12.5 11.3 10.6 10.1
11.9 12.4 13.7 15.0 15.7 10.64 12.3 13.7 17.1 19.2 26.7 16.5 13.7 12.8 10.8 10.1
14.9 15.3 15.8 16.8 18.2 12.3 13.8 15.8 23.2 36.2 38.8 27.6 15.8 13.2 10.7 10.2
TRIP
10.4 10.9 12.2 12.9 13.8 9.5 10.1 12.2 13.4 20.4 15.6 13.9 12.2 11.2 11 10.3
10.7 11.0 12.5 13.1 14.1 9.7 10.2 12.5 13.8 21.1 16.7 14.4 12.5 11.2 11.1 10.4
15.2 15.9 16.1 18.6 20.3 11.7 12.9 16.1 18.9 26.7 33.6 24.1 16.1 13.4 11.2 10.3
PLANET
1.3 1.5 1.6 2.5 2.6 0.9 1.3 1.6 2.2 2.8 2.2 2.1 1.6 1.5 1.8 1.2
1.8 2.0 2.4 3.0 3.1 1.1 1.8 2.4 2.8 3.8 3.3 2.9 2.4 2.0 1.8 1.3
1.9 2.3 2.9 3.1 3.3 1.1 2.0 2.9 3.0 4.2 3.9 3.1 2.9 2.2 1.8 1.3
TIME-U
10.4 10.9 12.2 12.9 13.8 9.5 10.1 12.2 13.4 20.4 15.6 13.9 12.2 11.27 11 10.3
10.5 11.1 12.3 13.0 14.2 9.6 10.1 12.3 13.5 20.7 15.8 14.1 12.3 11.3 11.03 10.4
16.6 17.1 17.5 19.6 20.3 13.8 16.7 17.5 23.4 34.2 27.9 21.1 17.5 14.1 11.2 10.4
TIME-R
32.7 28.1 24.1 17.6 17.2 18.8 21.2 24.1 33.7 39.4 41.3 29.8 24.1 19.8 17.8 15.4
46.7 43.1 38.1 16.3 15.7 23.8 32.2 38.1 46.7 54.4 55.3 45.8 38.1 22.8 17.8 15.6
50.4 47.5 41.1 36.4 34.8 25.2 33.7 41.1 48.8 56.7 59.4 47.6 41.1 23.4 17.9 15.5
""",
    ("EN-DYNA", "DYNA", "EQUAL"),
)

_RIVALS = ("SAP", "minTopK", "k-skyband")

_TABLE_6 = _figures(  # as printed: the default setting, in three columns, does not always have one value
    """
STOCK
461 488 495 531 551 57 249 495 2683 4895 603 533 495 436 391 369
1123 1319 1428 1493 1564 132 643 1428 4323 21500 2013 1890 1428 1069 621 422
1628 1922 2359 2677 2953 266 1886 2359 9020 30763 2391 2386 2382 2372 2371 2368
TRIP
387 401 453 466 498 82 226 453 2151 4888 510 486 453 383 367 345
453 507 673 799 822 128 432 673 3500 9752 866 737 673 582 419 369
677 811 931 1165 1285 191 634 931 6538 12832 953 948 931 932 925 922
PLANET
361 388 455 467 488 67 211 455 1409 5261 496 460 455 415 379 336
438 488 636 774 811 177 269 636 1799 8878 1142 976 636 552 455 346
1346 1493 1522 1724 1811 230 479 1522 2338 11541 1532 1527 1522 1507 1501 1494
TIME-U
228 241 286 337 360 28 130 286 1644 2782 303 298 286 269 263 257
639 713 784 853 1015 128 458 784 3204 5462 905 820 784 469 421 383
710 873 940 1043 1149 188 647 940 3958 6364 942 941 940 935 932 931
TIME-R
986 1355 1902 650 598 320 670 1902 7500 15620 4650 2628 1902 920 350 260
1239 3169 5104 10352 10352 562 2010 5104 12212 48360 5364 3309 3017 1453 401 277
4618 10158 17258 23558 23598 1383 2775 17258 27019 98403 17258 17258 17258 17258 17258 17258
""",
    _RIVALS,
)

_TABLE_8 = _figures(
    """
STOCK
15.6 16.5 16.8 18.5 18.7 1.9 8.4 16.8 91.2 166.4 20.5 18.1 16.8 14.8 13.2 12.5
31.0 36.0 39.0 41.0 43.0 3.6 18.0 39.0 161.0 602.0 56.3 52.9 39.0 29.8 17.0 13.2
42.0 49.0 62.0 69.0 76.0 6.8 49.0 62.0 334.0 799.0 63.1 62.8 62.0 61.5 61.1 60.4
TRIP
10.8 11.2 12.6 13.0 13.8 2.4 6.4 12.6 60.2 136.8 14.2 13.6 12.6 10.8 10.2 9.6
14.6 16.2 19.8 23.8 25.0 3.6 12.2 19.8 98.0 273.0 22.7 20.6 19.8 14.2 12.7 10.0
16.2 19.4 22.4 27.6 30.8 4.6 15.2 22.0 156.0 307.0 23.5 22.9 22.4 22.3 22.2 21.6
PLANET
12.8 13.2 15.4 15.8 16.8 2.4 7.2 15.4 47.8 178 16.8 15.6 15.4 14 12.8 11.2
19.8 21.2 21.9 24.8 26.5 4.6 13.9 21.9 48.2 239.0 30.8 26.6 21.9 14.8 13.2 11.4
32.4 35.8 36.8 41.2 43.4 5.2 11.6 36.8 56.2 276.0 37.1 36.9 36.8 36.0 35.4 35.2
TIME-U
6.6 6.8 7.2 9.0 9.2 0.9 3.4 7.2 44.8 75.4 8.8 8.0 7.2 7.6 7.0 6.6
18.4 20.6 22.6 24.2 26.3 2.1 13.2 22.6 92.6 158.8 26.4 23.8 22.6 13.0 12.2 11.0
19.4 21.9 24.4 26.2 29.4 3.7 5.2 24.4 112 210.2 26.9 26.6 26.4 26.2 25.9 25.6
TIME-R
28.4 39.2 55.8 18.8 17.2 9.8 19.4 55.8 217.0 452.0 134.0 76.0 55.8 26.0 10.0 7.6
35.0 91.2 148.0 300.2 300.2 16.2 58.0 148.0 354.0 1402.0 205.0 175.0 148.0 83.0 41.0 12.9
120.0 264.0 448.0 612.0 613.0 35.0 72.0 448.0 702.0 2558.0 448.0 448.0 448.0 448.0 448.0 448.0
""",
    _RIVALS,
)

BYTES_A_CANDIDATE = {
    name: median(
        1024 * kilobytes / candidates
        for data in DATA
        for kilobytes, candidates in zip(_TABLE_8[data][name], _TABLE_6[data][name], strict=True)
    )
    for name in _RIVALS
}
"""What tables 6 and 8 together say a candidate of each algorithm takes: 24 to 35 bytes."""

_ALGORITHMS = {"SAP": ("sap", "#1b4f9c"), "minTopK": ("mintopk", "#e6820e"), "k-skyband": ("strict", "#7a7a7a")}

EXPERIMENTS = (
    OneQuery(
        name="tkde17-table2",
        paper="TKDE17",
        table="Table 2",
        title="Running time of equal partition by the number of partitions m",
        unit="time, relative",
        data=DATA,
        series={
            "non-delay": Series("sap-equal-eager", "seconds", "#c0392b"),
            "Algo 1": Series("sap-equal-rescan", "seconds", "#e6820e"),
            "Algo 1+S-AVL": Series("sap-equal", "seconds", "#1b4f9c"),
        },
        columns=_PARTITIONS,
        figures=_TABLE_2,
        reference="Algo 1+S-AVL",
        recorded="seconds a million rows",
        timed=True,
    ),
    OneQuery(
        name="tkde17-table3",
        paper="TKDE17",
        table="Table 3",
        title="Running time of enhanced, dynamic and equal partition",
        unit="time, relative",
        data=DATA,
        series={
            "EN-DYNA": Series("sap", "seconds", "#1b4f9c"),
            "DYNA": Series("sap-dynamic", "seconds", "#2a9d8f"),
            "EQUAL": Series("sap-equal", "seconds", "#e6820e"),
        },
        columns=_PARAMETERS,
        figures=_TABLE_3,
        reference="EN-DYNA",
        recorded="seconds a million rows",
        timed=True,
    ),
    OneQuery(
        name="tkde17-fig9",
        paper="TKDE17",
        table="Figures 9 and 10",
        title="Running time of SAP and its rivals",
        unit="time, relative",
        data=DATA,
        series={
            **{name: Series(algorithm, "seconds", colour) for name, (algorithm, colour) in _ALGORITHMS.items()},
            "SMA": Series("sma", "seconds", "#2a9d8f"),
        },
        columns=_PARAMETERS,
        reference="SAP",
        recorded="seconds a million rows",
        timed=True,
        notes=("SMA keeps the scores as points of one attribute in a grid of n/32 cells",),
    ),
    OneQuery(
        name="tkde17-table6",
        paper="TKDE17",
        table="Table 6",
        title="Candidates, average over the windows",
        unit="candidates",
        data=DATA,
        series={name: Series(algorithm, "candidates", colour) for name, (algorithm, colour) in _ALGORITHMS.items()},
        columns=_PARAMETERS,
        figures=_TABLE_6,
        notes=("ours count every row held: for SAP also M₀ and the best of the unit being read",),
    ),
    OneQuery(
        name="tkde17-table8",
        paper="TKDE17",
        table="Table 8",
        title="Memory: candidates as the paper counts them, and all that is held",
        unit="KB",
        data=DATA,
        series={
            **{
                name: Series(algorithm, "candidates", colour, scale=BYTES_A_CANDIDATE[name] / 1024)
                for name, (algorithm, colour) in _ALGORITHMS.items()
            },
            **{
                f"{name}, all held": Series(algorithm, "bytes", colour, scale=1 / 1024, detail=True)
                for name, (algorithm, colour) in _ALGORITHMS.items()
            },
        },
        columns=_PARAMETERS,
        figures=_TABLE_8,
        notes=(
            "the upper lines are candidates times the bytes that tables 6 and 8 say one takes: "
            + ", ".join(f"{name} {size:.0f}" for name, size in BYTES_A_CANDIDATE.items()),
            '"all held" is every array of the structure: SAP keeps the scores of the whole window, the others do not',
        ),
    ),
)

"""What TODS15 says of its experiments."""

from __future__ import annotations

from repro.claim import NOISE, Claim
from repro.tods15 import EXACT, FILTERED, LOOSE, RANDOM, RIVALS, SIGMA

_RIVALS = tuple(RIVALS)
_BOUND, _LOOSE_BOUND = 25 * SIGMA, 25 * LOOSE  # σ N/n
_FLAT = 81**0.25  # "hardly changes" while k grows 81 times: by no more than the fourth root of that
_LARGE = ("27", "81")
_SYNTHETIC = tuple(RANDOM)
_FIRST, _SECOND, _THIRD = ("SA", "SASF", "RASF"), ("RA", "SARF", "RARF"), ("PA", "SAPF", "RAPF")

_ERRORS = (
    ("missed-bound", "fewer false negatives than σ N/n", "missed", SIGMA, _BOUND),
    ("wrong-bound", "fewer false positives than 3/2 σ N/n", "wrong", SIGMA, 1.5 * _BOUND),
    ("missed-bound-loose", "the same for σ = 0.9, where there are some", "missed", LOOSE, _LOOSE_BOUND),
    ("wrong-bound-loose", "the same for σ = 0.9, where there are some", "wrong", LOOSE, 1.5 * _LOOSE_BOUND),
)

CLAIMS: tuple[Claim, ...] = (
    *(
        Claim(name, "tods15-fig8", says, "itself", f"{what}, σ={sigma:g}", bound=bound, over="every", data=_SYNTHETIC)
        for name, says, what, sigma, bound in _ERRORS
    ),
    Claim(
        "no-errors-of-one",
        "tods15-fig8",
        "no errors for k = 1 (here: less than one in 1000 queries)",
        "itself",
        (f"missed, σ={SIGMA:g}", f"wrong, σ={SIGMA:g}"),
        bound=0.001,
        over="every",
        columns=("1",),
        data=_SYNTHETIC,
    ),
    Claim(
        "fewer-wrong",
        "tods15-fig8",
        "far fewer false positives than false negatives",
        "in all",
        f"wrong, σ={LOOSE:g}",
        f"missed, σ={LOOSE:g}",
        bound=0.5,
        data=_SYNTHETIC,
    ),
    Claim(
        "errors-in-order",
        "tods15-fig8",
        "many errors on data correlated in time (here: at least one a query)",
        "at least one",
        f"missed, σ={SIGMA:g}",
        over="every",
        data=("real",),
    ),
    # Figure 9
    Claim("indexed-pa", "tods15-fig9", "PA is faster than RAPF", "at most", "PA", "RAPF", NOISE, "every", data=_SYNTHETIC),
    Claim("indexed-buffer", "tods15-fig9", "RAPF2 is faster than RAPF", "at most", "RAPF2", "RAPF"),
    Claim("indexed-sasf", "tods15-fig9", "SASF is the slowest", "at most", ("RAPF", "RAPF2"), "SASF", NOISE, "every"),
    Claim(
        "rivals-small",
        "tods15-fig9",
        "for small k PA, RAPF2, SNN and CPM/w are alike (here: within twice)",
        "at most",
        ("PA", "RAPF2", "CPM/w", "SNN"),
        ("PA", "RAPF2", "CPM/w", "SNN"),
        2.0,
        columns=("1", "3"),
        data=_SYNTHETIC,
    ),
    Claim(
        "rivals-pa",
        "tods15-fig9",
        "PA is up to ten times as fast as CPM/w and SNN",
        "at most",
        "PA",
        _RIVALS,
        0.1,
        columns=("81",),
        data=_SYNTHETIC,
    ),
    Claim(
        "rivals-rapf2",
        "tods15-fig9",
        "RAPF2 is 4 to 8 times as fast as CPM/w and SNN",
        "at most",
        "RAPF2",
        _RIVALS,
        0.25,
        columns=_LARGE,
        data=_SYNTHETIC,
    ),
    Claim(
        "rivals-in-order",
        "tods15-fig9",
        "RAPF and RAPF2 are faster than CPM/w and SNN on real data in its order",
        "at most",
        ("RAPF", "RAPF2"),
        _RIVALS,
        NOISE,
        "every",
        data=("real",),
    ),
    # Figure 10, without an index
    Claim("pa-first", "tods15-fig10-scan", "PA is faster than all exact ones", "at most", "PA", EXACT, NOISE, "every"),
    Claim(
        "pa-fifth", "tods15-fig10-scan", "and 5 times as fast as SA for large k", "at most", "PA", "SA", 0.2, columns=("81",)
    ),
    Claim("pa-flat", "tods15-fig10-scan", "PA hardly changes with k", "grows", "PA", bound=_FLAT),
    Claim(
        "rapf-best",
        "tods15-fig10-scan",
        "RAPF is the best exact one for large k",
        "at most",
        "RAPF",
        EXACT,
        1.1,
        "every",
        columns=_LARGE,
    ),
    Claim(
        "worst-group",
        "tods15-fig10-scan",
        "SA, SASF and RASF are slower than RA, SARF and RARF, above all for large k",
        "at most",
        _SECOND,
        _FIRST,
        columns=_LARGE,
    ),
    Claim(
        "best-group", "tods15-fig10-scan", "PA, SAPF and RAPF are faster than both", "at most", _THIRD, _FIRST + _SECOND, NOISE
    ),
    Claim("strict-filter", "tods15-fig10-scan", "SASF improves SA a little", "at most", "SASF", "SA", NOISE),
    Claim("probable-filter", "tods15-fig10-scan", "SAPF improves SA by almost ten times", "at most", "SAPF", "SA", 0.15),
    # Figure 10, with one
    Claim("grid-pa-first", "tods15-fig10-grid", "PA is faster than all exact ones", "at most", "PA", FILTERED, NOISE, "every"),
    *(
        Claim(
            f"grid-pays-{name.lower()}",
            "tods15-fig10-grid",
            "on uniform data an index always pays",
            "at most",
            name,
            f"{name}, no index",
            NOISE,
            "every",
            data=("uniform",),
        )
        for name in ("PA", "RAPF")
    ),
    *(
        Claim(
            f"grid-pays-{name.lower()}-small",
            "tods15-fig10-grid",
            "on other data it pays for small k",
            "at most",
            name,
            f"{name}, no index",
            NOISE,
            "every",
            columns=("1", "3"),
            data=("clustered", "shuffled"),
        )
        for name in ("PA", "RAPF")
    ),
    # Figure 11
    *(
        Claim(
            f"dimensions-{name.lower()}",
            "tods15-fig11",
            "grows more slowly than d (5 times)",
            "grows",
            name,
            bound=5,
            axes=("d",),
        )
        for name in _THIRD
    ),
    Claim(
        "dimensions-many",
        "tods15-fig11",
        "PA and PF outperform the others in many dimensions",
        "at most",
        _THIRD,
        ("SASF", "RARF"),
        axes=("d",),
        columns=("6", "8", "10"),
    ),
    *(
        Claim(
            f"resolution-{name.lower()}",
            "tods15-fig11",
            "is fastest with ρ = 9 or 10",
            "least at last",
            name,
            bound=1.1,
            axes=("rho",),
        )
        for name in ("PA", "RAPF")
    ),
    *(
        Claim(
            f"queries-{name.lower()}",
            "tods15-fig11",
            "time is linear in u: no more a query",
            "grows",
            name,
            bound=1.25,
            axes=("u",),
        )
        for name in ("PA", "SASF", "RAPF")
    ),
    *(
        Claim(
            f"buffer-{name.lower()}",
            "tods15-fig11",
            "a larger buffer is faster",
            "falls",
            name,
            "",
            NOISE,
            "every",
            axes=("b",),
        )
        for name in ("SASF", "SAPF", "RAPF")
    ),
    *(
        Claim(f"buffer-enough-{name.lower()}", "tods15-fig11", "and gains less from 2000 on", "levels off", name, axes=("b",))
        for name in ("SASF", "SAPF", "RAPF")
    ),
    *(
        Claim(
            f"gamma-{name.lower()}",
            "tods15-fig11",
            "gains little by γ above 0.2",
            "gains late",
            name,
            bound=1.1,
            axes=("gamma",),
        )
        for name in ("RARF", "RAPF")
    ),
    Claim("window-pa", "tods15-fig11", "PA is faster with longer windows", "grows", "PA", axes=("n",)),
    *(
        Claim(f"window-{name.lower()}", "tods15-fig11", "others are slower with longer windows", "shrinks", name, axes=("n",))
        for name in ("SASF", "RAPF")
    ),
    # Figure 12
    Claim(
        "quarter-of-references",
        "tods15-fig12-references",
        "PA holds a quarter of SA's references for k = 81",
        "at most",
        "PA",
        "SA",
        0.25,
        columns=("81",),
    ),
    Claim("references-of-one", "tods15-fig12-references", "and more than SA for k = 1", "at most", "SA", "PA", columns=("1",)),
    Claim(
        "relaxed-references",
        "tods15-fig12-references",
        "RA holds about 10 % more than SA (1 + γ/2)",
        "a tenth more",
        "RA",
        "SA",
        0.05,
        "every",
    ),
    Claim(
        "filtered-references",
        "tods15-fig12-references",
        "with filters fewer than without",
        "at most",
        ("SASF", "SAPF", "RAPF"),
        ("SA", "RA"),
    ),
    Claim("rapf-references", "tods15-fig12-references", "RAPF holds a little more than SAPF", "at most", "SAPF", "RAPF"),
    Claim(
        "stored-alike",
        "tods15-fig12-stored",
        "exact algorithms store about the same",
        "at most",
        ("SA", "RA", "SASF", "SAPF", "RAPF"),
        ("SA", "RA", "SASF", "SAPF", "RAPF"),
        1.5,
    ),
    Claim("stored-of-one", "tods15-fig12-stored", "PA stores more for k = 1", "at most", "SA", "PA", columns=("1",)),
    Claim(
        "stored-by-rivals",
        "tods15-fig12-stored",
        "CPM/w and SNN store the whole window, 100 rows a query",
        "itself",
        _RIVALS,
        bound=100.01,
        over="every",
    ),
    Claim(
        "stored-by-rivals-most",
        "tods15-fig12-stored",
        "which no other exceeds",
        "at most",
        ("PA", "SA", "RA", "SASF", "SAPF", "RAPF"),
        _RIVALS,
        1.0,
        "every",
    ),
    Claim(
        "references-of-snn",
        "tods15-fig12-references",
        "SASF, SAPF and SNN refer to about as many (here: within twice)",
        "at most",
        ("SASF", "SAPF", "SNN"),
        ("SASF", "SAPF", "SNN"),
        2.0,
    ),
    Claim(
        "references-of-cpm",
        "tods15-fig12-references",
        "CPM/w refers to k rows only: the fewest",
        "at most",
        "CPM/w",
        ("PA", "SA", "RA", "SASF", "SAPF", "RAPF", "SNN"),
        1.0,
        "every",
    ),
)

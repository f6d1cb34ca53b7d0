"""What CIKM09 says must hold of the experiments in `repro.cikm09`, what is asked of ours, and what is not reached."""

from __future__ import annotations

from repro.claim import NOISE, Claim


def _claim(
    name: str, experiment: str, says: str, relation: str, of: str, *than: str, bound: float = 1.0, **more: object
) -> Claim:
    return Claim(name, f"cikm09-{experiment}", says, relation, of, than[0] if than else (), bound, **more)  # type: ignore[arg-type]


CLAIMS = (
    _claim(
        "interval-linear", "fig4", "with intervals the skyline grows linearly with n", "in proportion", "intervals",
        bound=0.05, axes=("n",),
    ),
    _claim(
        "exact-logarithmic", "fig4", "of exact scores it grows like the logarithm", "grows", "exact",
        bound=1.6, axes=("n",),
    ),
    _claim(
        "interval-width", "fig4", "and linearly with their width", "in proportion", "intervals", bound=0.05, axes=("width",),
    ),
    _claim("eaa-below-sla", "fig5-window", "EAA holds less than SLA", "at most", "EAA", "SLA", over="every"),
    *(
        claim
        for suffix, of, when in (("", "", "while the window fills"), ("-full", ", full", "in full windows"))
        for claim in (
            _claim(
                f"eaa-straight{suffix}", "fig5-window", f"EAA grows along a straight line, {when}", "straight", f"EAA{of}",
                bound=0.02,
            ),
            _claim(
                f"eaa-proportional{suffix}", "fig5-window", f"and in proportion to W, {when}", "in proportion", f"EAA{of}",
                bound=0.1,
            ),
            _claim(
                f"approx-flat{suffix}", "fig5-window", f"the approximate algorithm grows less than the root of W, {when}",
                "power", f"approx{of}", bound=0.5,
            ),
            _claim(
                f"approx-slower{suffix}", "fig5-window", f"and with at most two thirds of EAA's power, {when}", "slower",
                f"approx{of}", f"EAA{of}", bound=2 / 3,
            ),
        )
    ),
    _claim(
        "promises-flat", "fig5-window", "what ours holds does not grow with W, in full windows", "power", "promises, full",
        bound=0.1,
    ),
    _claim(
        "promises-less", "fig5-window", "and is less than the paper's estimate holds, from W = 500 on", "at most",
        "promises, full", "approx, full", over="every", columns=("500", "1000", "1500", "2000"),
    ),
    _claim(
        "promises-precision", "fig5-window-precision", "with a precision above 0.95", "at least one", "promises, full",
        bound=1 / 0.95, over="every",
    ),
    _claim(
        "precision-by-window", "fig5-window-precision", "precision varies little with W", "shrinks",
        "approx", bound=NOISE,
    ),
    _claim("eaa-falls-with-xi", "fig5-xi", "EAA holds less where streams correlate more", "grows", "EAA, full"),
    _claim("approx-falls-with-xi", "fig5-xi", "so does the approximate algorithm", "grows", "approx, full"),
    _claim("promises-falls-with-xi", "fig5-xi", "and ours", "grows", "promises, full"),
    _claim("precision-by-xi", "fig5-xi-precision", "precision rises with ξ", "shrinks", "approx, full", bound=NOISE),
    _claim(
        "eaa-instances", "tables12", "EAA holds no more than the paper's", "at most the paper's", "EAA",
        bound=1.1, over="every",
    ),
    _claim(
        "approx-instances", "tables12", "the paper's estimate holds no more than in the paper", "at most the paper's", "approx",
        bound=1.1, over="every",
    ),
    _claim(
        "ours-instances", "tables12", "ours can be kept within the memory of the paper's", "at most the paper's",
        "ours", bound=1.0, over="every",
    ),
    _claim(
        "ours-precision", "tables12-precision", "at the paper's memory precision is above 0.80", "at least one", "ours",
        bound=1 / 0.8, over="every", columns=("3", "10"),
    ),
    _claim(
        "ours-twice-precision", "tables12-precision", "at twice that memory above 0.95", "at least one", "ours, twice",
        bound=1 / 0.95, over="every", columns=("3", "10"),
    ),
    _claim(
        "ours-full-precision", "tables12-precision", "the same once the window is full", "at least one", "ours, full",
        bound=1 / 0.8, over="every", columns=("3", "10"),
    ),
    _claim(
        "ours-twice-full-precision", "tables12-precision", "and at twice the memory", "at least one", "ours, twice, full",
        bound=1 / 0.95, over="every", columns=("3", "10"),
    ),
    _claim(
        "precision-by-k", "tables12-precision", "precision rises with k", "shrinks", "approx", bound=NOISE, axes=("k",),
    ),
    _claim(
        "ours-error", "tables12-error", "at the paper's memory scores err no more than the paper's", "at most the paper's",
        "ours", over="every",
    ),
    _claim(
        "ours-relative-error", "tables12-relative", "as shares of the score they do err no more", "at most the paper's", "ours",
        over="every",
    ),
    _claim(
        "ours-error-large-k", "tables12-error", "where k is 50 or 100 they do err no more", "at most the paper's", "ours",
        over="every", columns=("50", "100"),
    ),
    _claim(
        "ours-twice-error", "tables12-error", "and at twice the memory", "at most the paper's", "ours, twice", over="every",
    ),
    _claim("asked-memory", "asked", "guessing with a precision asked for holds less", "at most", "asked", "EAA, full"),
    _claim(
        "asked-no-dearer", "asked", "asking for 0.8 holds no more than the paper's estimate does", "at most",
        "asked", "approx, full", over="every", columns=("0.7", "0.8"),
    ),
    *(
        _claim(
            f"asked-{asked:g}", "asked-precision", f"a precision of {asked:g} is reached", "at least one", "asked",
            bound=1 / asked, columns=(f"{asked:g}",),
        )
        for asked in (0.8, 0.9)
    ),
    _claim("requests-eaa", "tables34", "EAA holds no more than the paper's", "at most the paper's", "EAA", bound=1.1),
    _claim("requests-gain", "tables34", "guessing saves a tenth of the memory", "at most", "approx", "EAA", bound=0.9),
    _claim(
        "requests-error", "tables34-error", "scores err no more than the paper's", "at most the paper's", "approx",
        over="every",
    ),
    _claim(
        "requests-ours-error", "tables34-error", "and at the paper's memory", "at most the paper's", "ours", over="every",
    ),
    _claim(
        "requests-precision", "tables34-precision", "precision is between 0.92 and 0.97", "at least one", "approx",
        bound=1 / 0.92,
    ),
)  # fmt: skip

"""THE TABLE: what each paper says must hold, one row a claim. `judge` says of each data set whether it does.

The claims of TODS15, SIGMOD06, ICDE12 and CIKM09 stand beside their experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from repro import cikm09, cikm09_claims, icde12, sigmod06, tkde17, tods15, tods15_claims
from repro.claim import NOISE, Claim
from repro.experiment import Cell, Experiment, lines_of
from repro.relations import RELATIONS, Line, mean
from repro.streams import Source

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for paper in (tkde17, tods15, sigmod06, icde12, cikm09) for experiment in paper.EXPERIMENTS
}

HOLDS, FAILS, OPEN = "holds", "does not hold", "not comparable"

_NOT_THIS_SINE = (
    "where scores fall every row is in the k-skyband, whatever k, so half the stream alone gives n/2; "
    "the printed figures are smaller and grow with k: the stream was not sin(π t/10⁶) with this n"
)

CLAIMS: tuple[Claim, ...] = (
    # Table 2: equal partition with m partitions
    Claim("delay", "tkde17-table2", "forming meaningful objects only when needed saves time", "at most", "Algo 1", "non-delay"),
    Claim(
        "delay-gain", "tkde17-table2", "and as much of it as the paper's", "gains as the paper's", "Algo 1", "non-delay", NOISE
    ),
    Claim("s-avl", "tkde17-table2", "S-AVL is not slower than a sorted list", "at most", "Algo 1+S-AVL", "Algo 1", NOISE),
    Claim(
        "s-avl-fades",
        "tkde17-table2",
        "what S-AVL saves shrinks as m grows",
        "fades",
        "Algo 1+S-AVL",
        "Algo 1",
        NOISE,
    ),
    # Table 3: where partitions end
    Claim("enhanced", "tkde17-table3", "enhanced is not slower than dynamic partition", "at most", "EN-DYNA", "DYNA", NOISE),
    Claim("dynamic", "tkde17-table3", "dynamic is not slower than equal partition", "at most", "DYNA", "EQUAL", NOISE),
    Claim(
        "enhanced-gain",
        "tkde17-table3",
        "enhanced takes 90 % of dynamic's time on STOCK, 70 % on PLANET and TIMEʳ",
        "gains as the paper's",
        "EN-DYNA",
        "DYNA",
        1.1,
        data=("STOCK", "PLANET", "TIME-R"),
    ),
    Claim(
        "dynamic-gain",
        "tkde17-table3",
        "on TRIP dynamic takes 70 % of equal's time over all n",
        "gains as the paper's",
        "DYNA",
        "EQUAL",
        1.1,
        axes=("n",),
        data=("TRIP",),
    ),
    Claim("steady-k", "tkde17-table3", "varies less with k than equal", "steadier", "EN-DYNA", "EQUAL", NOISE, axes=("k",)),
    Claim("steady-s", "tkde17-table3", "varies less with s than equal", "steadier", "EN-DYNA", "EQUAL", NOISE, axes=("s",)),
    # Figures 9 and 10: rivals
    *(
        Claim(f"sap-{name.lower()}", "tkde17-fig9", f"SAP is faster than {name}", "at most", "SAP", name, NOISE, "every")
        for name in ("minTopK", "SMA", "k-skyband")
    ),
    *(
        Claim(
            f"sap-share-{name.lower()}",
            "tkde17-fig9",
            f"and takes {share:g} of its time over all n, on average",
            "at most",
            "SAP",
            name,
            share,
            axes=("n",),
            data=("STOCK", "TRIP", "PLANET"),
        )
        for name, share in (("minTopK", 0.17), ("SMA", 0.06), ("k-skyband", 0.035))
    ),
    Claim("mintopk-s", "tkde17-fig9", "minTopK is faster the larger s", "falls", "minTopK", "", NOISE, "every", axes=("s",)),
    Claim("sap-s", "tkde17-fig9", "SAP varies less with s", "steadier", "SAP", "minTopK", axes=("s",)),
    Claim("sap-k", "tkde17-fig9", "and with k", "steadier", "SAP", "minTopK", axes=("k",)),
    # Table 6: candidates
    Claim("sap-candidates", "tkde17-table6", "SAP holds no more candidates than the paper's", "at most the paper's", "SAP"),
    Claim("fewer-than-mintopk", "tkde17-table6", "SAP holds fewer candidates than minTopK", "at most", "SAP", "minTopK"),
    Claim(
        "third-of-skyband",
        "tkde17-table6",
        "k-skyband holds about three times SAP's",
        "gains as the paper's",
        "SAP",
        "k-skyband",
        aside={"TIME-R": _NOT_THIS_SINE},
    ),
    Claim(
        "mintopk-below-skyband",
        "tkde17-table6",
        "minTopK holds part of the k-skyband",
        "at most",
        "minTopK",
        "k-skyband",
        over="every",
    ),
    Claim(
        "mintopk-candidates",
        "tkde17-table6",
        "minTopK holds no more candidates than the paper's",
        "at most the paper's",
        "minTopK",
        aside={"TIME-R": _NOT_THIS_SINE},
    ),
    Claim(
        "skyband-candidates",
        "tkde17-table6",
        "k-skyband holds no more candidates than the paper's",
        "at most the paper's",
        "k-skyband",
        aside={"TIME-R": _NOT_THIS_SINE},
    ),
    Claim(
        "skyband-theory",
        "tkde17-table6",
        "the k-skyband of scores in random order is as large as theory says",
        "random order",
        "k-skyband",
        bound=0.05,
        over="every",
        data=("TIME-U",),
    ),
    # Table 8: memory
    Claim("sap-memory", "tkde17-table8", "SAP's candidates take no more than the paper's", "at most the paper's", "SAP"),
    Claim("least-memory", "tkde17-table8", "SAP's candidates take less than minTopK's", "at most", "SAP", "minTopK"),
    Claim(
        "least-memory-held",
        "tkde17-table8",
        "all that SAP holds is less than all that minTopK holds",
        "at most",
        "SAP, all held",
        "minTopK, all held",
    ),
    *tods15_claims.CLAIMS,
    *sigmod06.CLAIMS,
    *icde12.CLAIMS,
    *cikm09_claims.CLAIMS,
)


@dataclass(frozen=True)
class Verdict:
    """A claim on one data set: what came out, beside the bound and what the paper's own figures give."""

    claim: str
    data: str
    verdict: str
    measured: float | None
    bound: float
    printed: float | None
    reason: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def claims_of(experiment: str) -> list[Claim]:
    """The claims an experiment is to decide."""
    return [claim for claim in CLAIMS if claim.experiment == experiment]


def judge(claim: Claim, cells: list[Cell], data: Mapping[str, Source]) -> list[Verdict]:
    """What the cells of its experiment, measured on `data`, say of a claim, for each data set.

    Counts depend on the stream, so those of a stand-in are shown beside the paper's but decide nothing.
    """
    verdicts = []
    for name in claim.data or data:
        aside = claim.aside.get(name, "")
        if not aside and RELATIONS[claim.relation].absolute and data[name].stands_in:
            aside = "a stand-in: another stream, and counts depend on it"
        verdicts.append(_judge_on(claim, name, lines_of(cells, name, claim.axes, claim.columns), aside))
    return verdicts


def _judge_on(claim: Claim, data: str, lines: dict[str, Line], aside: str) -> Verdict:
    of, than = _group(lines, claim.of, max), _group(lines, claim.than or claim.of, min)
    number, reason = _number(claim, of, than)
    printed = None
    if RELATIONS[claim.relation].own and all(cell.paper is not None for cell in (*of, *than)):
        printed, _ = _number(claim, _as_printed(of), _as_printed(than))
    if aside and number is not None:
        return Verdict(claim.name, data, OPEN, number, claim.bound, printed, aside)
    verdict = OPEN if number is None else HOLDS if number <= claim.bound else FAILS
    return Verdict(claim.name, data, verdict, number, claim.bound, printed, reason)


def _number(claim: Claim, of: Line, than: Line) -> tuple[float | None, str]:
    """What is held against the bound, and a word on the columns behind it."""
    known = [(a, b) for a, b in zip(of, than, strict=True) if a.ours is not None and b.ours is not None]
    left_out = sorted({cell.reason for cell in of if cell.reason})
    if not known:
        return None, "; ".join(left_out or ["no such columns"])
    numbers = RELATIONS[claim.relation].numbers([a for a, _ in known], [b for _, b in known])
    if not numbers:
        return None, "; ".join(["too few columns", *left_out])
    where, worst = max(numbers, key=lambda entry: entry[1])
    number = worst if claim.over == "every" or len(numbers) == 1 else mean([number for _, number in numbers])
    reason = where if len(numbers) == 1 else f"worst {worst:.3g} at {where}, {len(numbers)} columns"
    if left_out:
        reason += f"; {len(of) - len(known)} left out: " + "; ".join(left_out)
    return number, reason


def _as_printed(line: Line) -> Line:
    return [replace(cell, ours=cell.paper, reason="") for cell in line]


def _group(lines: dict[str, Line], names: str | tuple[str, ...], extreme: Callable[[list[float]], float]) -> Line:
    """The line of a series, or of the extreme of several in each column; a column that one of them lacks is left out."""
    if isinstance(names, str):
        return lines.get(names, [])
    merged = []
    for column in zip(*(lines.get(name, []) for name in names), strict=True):
        figures = [cell.ours for cell in column if cell.ours is not None]
        known = len(figures) == len(column)
        reason = next((cell.reason for cell in column if cell.reason), "")
        merged.append(replace(column[0], ours=extreme(figures) if known else None, paper=None, reason=reason))
    return merged

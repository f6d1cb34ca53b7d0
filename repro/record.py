"""The page of all claims: what each paper says, what stored results make of it, and why where it comes out otherwise.

It is made from `results/` alone and judged anew each time, so that it cannot say anything else than the stored figures do.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from repro.claim import Claim
from repro.claims import EXPERIMENTS, FAILS, HOLDS, OPEN, Verdict, claims_of, judge
from repro.experiment import Cell, Experiment
from repro.remarks import REMARKS

PAGE = Path(__file__).parent.parent / "docs" / "experiments.md"
TITLES = {
    "TKDE17": "Zhu, Wang, Yang, Zheng, Wang: *SAP: improving continuous top-k queries over streaming data* (TKDE 2017)",
    "TODS15": "Pripužić, Podnar Žarko, Aberer: *Time- and space-efficient sliding window top-k query processing* (TODS 2015)",
    "SIGMOD06": "Mouratidis, Bakiras, Papadias: *Continuous monitoring of top-k queries over sliding windows* (SIGMOD 2006)",
    "ICDE12": "Shen, Cheema, Lin, Zhang, Wang: *Efficiently monitoring top-k pairs over sliding windows* (ICDE 2012)",
    "CIKM09": "Haghani, Michel, Aberer: *Evaluating top-k queries over incomplete data streams* (CIKM 2009)",
}
_MARK = {HOLDS: "✓", FAILS: "✗", OPEN: "–"}
_HEAD = """# The papers' claims

What five papers say must hold, and what came out here: {holds} verdicts hold (✓), {fails} do not (✗), {open} cannot be
compared (–), because the stream is another. A verdict is one claim on one data set. The number is what stands before the bound
in *must hold*: a mean over the columns of the paper's figure, or the worst of them where it says *in every column*.

`./run repro run NAME` measures an experiment again, `./run repro record` writes this page from `repro/results/`, and
`./run repro` lists the data that stands in for streams that cannot be had. [performance.md](performance.md) has the promises
this project makes itself.
"""


def stored(folder: Path) -> dict[str, list[Cell]]:
    """The cells of every experiment that has a result in `folder`, by its name."""
    found = {}
    for name in EXPERIMENTS:
        path = folder / f"{name}.json"
        if path.exists():
            found[name] = [Cell(**cell) for cell in json.loads(path.read_text())["cells"]]
    return found


def verdicts_on(experiment: Experiment, cells: list[Cell]) -> list[tuple[Claim, list[Verdict]]]:
    """Every claim of an experiment, judged by its cells."""
    return [(claim, judge(claim, cells, experiment.data)) for claim in claims_of(experiment.name)]


def page(folder: Path) -> str:
    """The whole page, as Markdown."""
    cells = stored(folder)
    judged = {name: verdicts_on(EXPERIMENTS[name], cells[name]) for name in cells}
    counts = Counter(verdict.verdict for claims in judged.values() for _, found in claims for verdict in found)
    parts = [_HEAD.format(holds=counts[HOLDS], fails=counts[FAILS], open=counts[OPEN])]
    for paper, title in TITLES.items():
        parts.append(f"## {paper}\n\n{title}.\n")
        for experiment in EXPERIMENTS.values():
            if experiment.paper == paper:
                parts.append("\n".join(_section(experiment, judged.get(experiment.name))) + "\n")
    return "\n".join(parts)


def _section(experiment: Experiment, judged: list[tuple[Claim, list[Verdict]]] | None) -> Iterator[str]:
    yield f"### {experiment.table}: {experiment.title}\n"
    if judged is None:
        yield f"Not measured: `./run repro run {experiment.name}`."
        return
    files = f"../repro/results/{experiment.name}"
    yield f"`{experiment.name}`, {experiment.unit}: [picture]({files}.png), [all figures]({files}.txt).\n"
    yield "| the paper says | must hold | measured |"
    yield "|---|---|---|"
    remarks: dict[str, None] = {}
    for claim, verdicts in judged:
        shown = " · ".join(_shown(experiment, verdict) for verdict in verdicts)
        yield f"| {_cell(claim.says)} | {_cell(claim.wants)} | {shown} |"
        if claim.name in REMARKS and any(verdict.verdict == FAILS for verdict in verdicts):
            remarks[REMARKS[claim.name]] = None
    if remarks:
        yield "\n" + "\n".join(f"✗ {remark}  " for remark in remarks)


def _shown(experiment: Experiment, verdict: Verdict) -> str:
    """A verdict on one data set in a few characters."""
    number = "" if verdict.measured is None else f" {verdict.measured:.3g}"
    return _cell(f"{experiment.data[verdict.data].label}{number} {_MARK[verdict.verdict]}")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

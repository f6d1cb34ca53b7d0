"""The page of all promises: what each benchmark promises, what its stored result says, and why where it is missed.

It is made from `results/` alone, so that it cannot say anything else than the stored figures do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent.parent / "docs" / "promises.md"
NOTHING = ("", "–", "(no promise)")  # beside what: a figure that stands for itself


@dataclass(frozen=True)
class Section:
    """The figures of one command."""

    title: str
    command: str
    file: str
    about: str


SECTIONS = (
    Section(
        "One process",
        "./run bench",
        "numbers",
        "One query, SAP and its rivals, many queries, the start of a process. That SAP takes 0.17 times MinTopK's time and "
        "0.035 times the k-skyband's (`strict`) TKDE17 says of its three real streams, as a mean over n; of TIMEᵘ and TIMEʳ it "
        "says only that SAP is faster, and the other streams it does not have.",
    ),
    Section("Points", "./run bench points", "points", "The grid beside a scan by the same kernels; ten thousand queries."),
    Section("Pairs", "./run bench pairs", "pairs", "Beside `supreme`, which computes scores and keeps no answers (ICDE12)."),
    Section("Across streams", "./run bench across", "across", "The best objects of unsynchronized streams."),
    Section("Spark", "./run bench spark", "spark", "A: 60 s by 1 s, k=100. B: 600 s by 1 s, k=100. C: 60 s by 10 s, k=10."),
    Section("Many queries on Spark", "./run bench spark queries", "spark-queries", "Linear queries over windows of time."),
    Section(
        "Many queries on Spark, windows of rows",
        "./run bench spark queries --windows rows",
        "spark-queries-rows",
        "Every row travels, for each moves the windows.",
    ),
)

WHY: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("pushes of 200,000",),
        "Half of the quarter of a millisecond are steps of a push in Python and Arrow, which do not shrink with the rows.",
    ),
    (
        ("SAP", "strict"),
        "The k-skyband is a sorted array here, not a tree, and raises the counters of a run of candidates by vector "
        "instructions. Where scores fall a new row dominates nothing and the oldest leaves first: under 10 ns a row, which "
        "leaves SAP little to save.",
    ),
    (
        ("skyband-changes, A, sine", "driver-merge"),
        "In most seconds a hundred rows enter and a hundred leave: twice the rows of snapshots, each of which goes through "
        "Python and the JVM, while the hand-written merge has its windows in the driver and reports none of them to Spark.",
    ),
    (
        ("B, sine", "–"),
        "All 60,000 rows of a window will rank while they fall, and none can be forgotten: twelve bytes a row.",
    ),
    (
        ("queries", "embedded"),
        "Rows leave the JVM as Arrow and come back, twice, which takes longer than answering them; rows that only pass "
        "through Python do not come within three times the embedded engine's time either.",
    ),
)
"""Words of a promise that is missed, and why it is."""

_HEAD = """# The promises

What this project promises of itself, each figure beside its yardstick in the same run: {holds} of {all} promises hold. All were
measured on one machine with two shared cores. `./run bench record` writes this page from `benchmarks/results/`;
[performance.md](performance.md) says what the figures mean, [experiments.md](experiments.md) what the papers claim.
"""


def page(folder: Path) -> str:
    """The whole page, as Markdown."""
    found = {section: figures(folder / f"{section.file}.json") for section in SECTIONS}
    promised = [figure for group in found.values() for figure in group]
    parts = [_HEAD.format(holds=sum(figure["holds"] for figure in promised), all=len(promised))]
    parts += ["\n".join(_auto(folder / "grid-changes.json")) + "\n"]
    return "\n".join([*parts, *("\n".join(_section(*item)) + "\n" for item in found.items())])


def figures(path: Path) -> list[dict[str, Any]]:
    """What is promised of a stored result; nothing where it was never measured."""
    return [figure for figure in json.loads(path.read_text())["figures"] if figure["hold"]] if path.exists() else []


def _auto(path: Path) -> Iterator[str]:
    """How far `auto` is from the best algorithm, over the grid."""
    yield "## What `auto` takes\n"
    if not path.exists():
        yield "Not measured: `./run bench grid`."
        return
    verdicts = json.loads(path.read_text())["auto"]
    times = [verdict["times_best"] for verdict in verdicts]
    within = sum(one <= 1.3 for one in times)
    yield (
        f"`./run bench grid`. Within 1.3 times of the best algorithm's time in {within} of {len(times)} cells of size, slide, "
        f"k and data; {max(times):.2f} times at worst."
    )


def _section(section: Section, found: list[dict[str, Any]]) -> Iterator[str]:
    yield f"## {section.title}\n"
    if not found:
        yield f"Not measured: `{section.command}`."
        return
    held = sum(figure["holds"] for figure in found)
    yield f"`{section.command}`. {section.about} {held} of {len(found)} hold.\n"
    yield "| what | beside | promised | measured | |"
    yield "|---|---|---:|---:|---|"
    for figure in found:
        sign, mark = "≤≥"[not figure["at_most"]], "✗✓"[figure["holds"]]
        beside = "" if figure["yardstick"] in NOTHING else figure["yardstick"]
        row = (figure["what"], beside, f"{sign} {figure['hold']:g} {figure['unit']}", f"{figure['measured']:.3g} {mark}")
        yield "| " + " | ".join(_cell(text) for text in (*row, figure["detail"])) + " |"
    if why := dict.fromkeys(reason for figure in found if not figure["holds"] for reason in reasons(figure)):
        yield "\n" + "\n".join(f"✗ {reason}  " for reason in why)


def reasons(figure: dict[str, Any]) -> list[str]:
    """Why a promise is missed, as far as it is known."""
    said = f"{figure['what']} | {figure['yardstick']}"
    return [why for words, why in WHY if all(word in said for word in words)]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

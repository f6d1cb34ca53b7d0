"""Pictures of the grid: rows per second of each algorithm, a panel for each k, a line for each algorithm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

COLOURS = {
    "strict": "#9e9e9e",
    "mintopk": "#e6820e",
    "panes": "#2a9d8f",
    "sap-equal": "#a8c5e8",
    "sap-dynamic": "#5b8fd1",
    "sap": "#1b4f9c",
    "shared": "#b5179e",
    "auto": "#000000",
}


def grid_pictures(results: list[dict[str, Any]], folder: Path, emit: str) -> list[Path]:
    """One picture for each stream: slides along, rows per second up, sizes as rows of panels and k as columns."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    drawn = []
    for data in sorted({row["data"] for row in results}):
        rows = [row for row in results if row["data"] == data]
        sizes, ks = sorted({row["size"] for row in rows}), sorted({row["k"] for row in rows})
        figure, axes = plt.subplots(len(sizes), len(ks), figsize=(3.1 * len(ks), 2.6 * len(sizes)), sharey="row", squeeze=False)
        for i, size in enumerate(sizes):
            for j, k in enumerate(ks):
                axis = axes[i][j]
                for algorithm, colour in COLOURS.items():
                    points = sorted(
                        (row["slide"], row["rows_per_second"])
                        for row in rows
                        if (row["size"], row["k"], row["algorithm"]) == (size, k, algorithm) and row["rows_per_second"]
                    )
                    if points:
                        style = (
                            {"lw": 1, "ls": ":", "marker": "x"} if algorithm == "auto" else {"lw": 1.6, "marker": "o", "ms": 3}
                        )
                        axis.plot(*zip(*points, strict=True), color=colour, label=algorithm, **style)
                axis.set_xscale("log")
                axis.set_yscale("log")
                axis.grid(alpha=0.25)
                axis.set_title(f"n={size:,}  k={k:,}", fontsize=9)
                if j == 0:
                    axis.set_ylabel("rows per second", fontsize=8)
                if i == len(sizes) - 1:
                    axis.set_xlabel("slide", fontsize=8)
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncol=len(labels), fontsize=8, frameon=False)
        what = "every window answered" if emit == "changes" else f'emit="{emit}"'
        figure.suptitle(f"skyband on one core: {data} scores, {what}", fontsize=11)
        figure.tight_layout(rect=(0, 0.04, 1, 0.97))
        path = folder / f"grid-{emit}-{data}.png"
        figure.savefig(path, dpi=110)
        plt.close(figure)
        drawn.append(path)
    return drawn

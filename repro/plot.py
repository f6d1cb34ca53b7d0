"""Pictures of the results: a row of panels for each data set, ours as lines, the paper's as dashes."""

from __future__ import annotations

from pathlib import Path

from repro.experiment import Cell, Experiment, lines_of
from repro.report import scale_of

_AXES = {"n": "window n, share of the paper's data", "s": "slide s, share of n", "m": "partitions m"}


def picture(experiment: Experiment, cells: list[Cell], folder: Path) -> Path:
    """Draw an experiment into `folder`: data sets as rows, parameters as columns of panels.

    An experiment of one parameter takes its data sets side by side, one of one data set its parameters.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, LogLocator

    axes = list(dict.fromkeys(column.axis for column in experiment.columns))
    measured = {cell.data for cell in cells if cell.ours is not None}
    shown = [data for data in experiment.data if data in measured or not measured]
    panels = [(data, axis) for data in shown for axis in axes]
    across = len(axes) if len(axes) > 1 and len(shown) > 1 else min(3, len(panels))
    down = -(-len(panels) // across)
    figure, grid = plt.subplots(
        down,
        across,
        figsize=(max(4.1 * across, 7.5), 2.7 * down + 1.1),
        sharey="row" if len(axes) > 1 else "none",  # a data set's panels have one scale
        squeeze=False,
        layout="constrained",
    )
    places = [place for row in grid for place in row]
    for place in places[len(panels) :]:
        place.set_axis_off()
    handles: dict[str, Line2D] = {}
    values = {(column.axis, column.label): column.value for column in experiment.columns}
    for place, (data, axis) in zip(places, panels, strict=False):
        everything, lines = lines_of(cells, data), lines_of(cells, data, (axis,))
        ours, paper = (scale_of(experiment, everything, paper=paper) for paper in (False, True))
        for name, line in lines.items():
            style = experiment.series[name]
            labels = [cell.column for cell in line]
            at = [values[axis, label] for label in labels] if experiment.spaced else list(range(len(labels)))
            known = [(x, cell.ours / ours) for x, cell in zip(at, line, strict=True) if cell.ours is not None and ours]
            dashes = [(x, cell.paper / paper) for x, cell in zip(at, line, strict=True) if cell.paper is not None and paper]
            if known:
                look = {"lw": 1.0, "ls": ":", "marker": "x"} if style.detail else {"lw": 2.0, "marker": "o"}
                (handles[name],) = place.plot(*zip(*known, strict=True), color=style.colour, ms=3.5, **look)
            if dashes:
                place.plot(*zip(*dashes, strict=True), color=style.colour, lw=1.1, ls="--", alpha=0.75)
            place.set_xticks(at, labels, fontsize=7)
        if experiment.logarithmic:
            place.set_yscale("log")
            place.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        elif experiment.spaced:
            place.set_xlim(left=0)
            place.set_ylim(bottom=0)
        place.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        place.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
        place.tick_params(axis="y", which="both", labelsize=7)
        place.grid(alpha=0.2, which="both", lw=0.5)
        place.spines[["top", "right"]].set_visible(False)
        source = experiment.data[data]
        place.set_title(f"{source.label} (stand-in)" if source.stands_in else source.label, fontsize=9, loc="left")
        place.set_xlabel(experiment.axes.get(axis) or _AXES.get(axis, axis), fontsize=8)
        if place is places[places.index(place) // across * across]:
            place.set_ylabel(f"÷ mean of {experiment.reference}" if experiment.reference else experiment.unit, fontsize=8)
    if experiment.figures:
        handles["the paper's"] = Line2D([], [], color="#555555", lw=1.1, ls="--")
    figure.suptitle(f"{experiment.paper}, {experiment.table}: {experiment.title}", fontsize=12, fontweight="bold")
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncol=min(len(handles), 7) or 1,
        fontsize=8,
        frameon=False,
    )
    path = folder / f"{experiment.name}.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path

"""Charts as PNG, SVG and PDF, by Matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from svmp.study.chart import Chart, Column, Line, Row

FORMATS = ("png", "svg", "pdf")
LOOK: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#9a9a9a",
    "axes.grid": True,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "grid.color": "#ececec",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "svmp",
    "xtick.color": "#606060",
    "ytick.color": "#606060",
}
DASHES = {"solid": "-", "dash": (0, (4, 2)), "dot": (0, (1, 1.5))}


def save(chart: Chart, path: Path) -> None:
    """Draw a chart to a file, in the format of its suffix."""
    with mpl.rc_context(LOOK):
        figure = draw(chart)
        kind = path.suffix[1:]
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
        figure.savefig(path, dpi=300 if kind == "png" else "figure", metadata=undated.get(kind))


def draw(chart: Chart) -> Figure:
    """Draw a chart, panel by panel."""
    rows, columns = len(chart.rows), len(chart.columns)
    figure = Figure(figsize=(3.8 * columns + 0.9, 2.35 * rows + 1.1), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False, sharex="col")
    for i, row in enumerate(chart.rows):
        for j, column in enumerate(chart.columns):
            axes = grid[i, j]
            panel(axes, column, row)
            if i == 0:
                axes.set_title(column.title)
            if i == rows - 1:
                axes.set_xlabel(column.x_label)
            if j == 0:
                axes.set_ylabel(chart.y_label)
    keys = legend(chart)
    figure.legend(
        keys, [str(key.get_label()) for key in keys], loc="outside right upper", fontsize=7.5,
        handlelength=1.6, labelspacing=0.35,
    )  # fmt: skip
    return figure


def panel(axes: Axes, column: Column, row: Row) -> None:
    """Draw the lines of a column within the limits of a row."""
    for order, line in enumerate(column.lines):
        axes.plot(
            line.x, line.y, color=line.colour.light, linewidth=line.width if line.joined else 0,
            linestyle=DASHES[line.dash], marker="o" if line.markers else "", markersize=4.5,
            zorder=2 + order / 100,
        )  # fmt: skip
        mark_loss(axes, line, row)
    axes.set_xscale(column.x_scale)
    axes.set_yscale(row.scale)
    axes.set_ylim(row.low, row.high)
    if row.ticks:
        axes.yaxis.set_major_locator(FixedLocator(list(row.ticks)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_yticks(list(row.ticks), list(row.ticks.values()))
    else:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def mark_loss(axes: Axes, line: Line, row: Row) -> None:
    """Put a cross where a run diverged, or where its line leaves the panel on the way there."""
    if not line.lost:
        return
    x, y = line.x[-1], line.y[-1]
    if y < row.low:
        inside = [i for i, value in enumerate(line.y) if value >= row.low]
        if not inside:
            return
        i = inside[-1]
        share = (line.y[i] - row.low) / (line.y[i] - line.y[i + 1])
        x = float(np.exp(np.log(line.x[i]) + share * np.log(line.x[i + 1] / line.x[i])))
        y = row.low
    axes.plot([x], [y], "x", color=line.colour.light, markersize=5, clip_on=False, zorder=5)


def legend(chart: Chart) -> list[Line2D]:
    """Return a key for each label, in the order of the lines."""
    keys: dict[str, Line2D] = {}
    for column in chart.columns:
        for line in column.lines:
            if line.dash != "solid" and any(
                other.label == line.label and other.dash == "solid" for other in column.lines
            ):
                continue
            keys.setdefault(
                line.label,
                Line2D(
                    [], [], color=line.colour.light, linewidth=line.width if line.joined else 0,
                    linestyle=DASHES[line.dash], marker="o" if line.markers else "",
                    markersize=4.5, label=line.label,
                ),
            )  # fmt: skip
    return list(keys.values())


def short(value: float) -> str:
    """Write a number with thousands, millions or billions.

    >>> short(-1_540_000), short(0), short(-2.5e9), short(12.5)
    ('−1.54M', '0', '−2.5G', '12.5')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")):
        if abs(value) >= size:
            return f"{value / size:.4g}{unit}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")

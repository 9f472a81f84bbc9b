"""Charts as PNG, SVG and PDF, drawn by Matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from svmp.study.chart import Chart, Line, PanelColumn, PanelRow, label_row, lost_at
from svmp.study.labels import groups, spread

LONG_LABEL = 24
"""Number of characters; a legend with a longer label goes below the panels."""
DPI = 220
TEXT = 6.5
"""Size of the labels where lines end, in points."""
FORMATS = ("png", "svg", "pdf")
LOOK: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#9a9a9a",
    "axes.grid": True,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
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
DASHES: dict[str, Any] = {"solid": "-", "dash": (0, (4, 2)), "dot": (0, (1, 1.5))}


class Paper:
    """A chart that is drawn once and saved in several formats."""

    def __init__(self, chart: Chart) -> None:
        with mpl.rc_context(LOOK):
            self.figure = draw(chart)
            ConstrainedLayoutEngine().execute(self.figure)  # once, not for each format

    def save(self, path: Path) -> None:
        """Write a file in the format of its suffix."""
        kind = path.suffix[1:]
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
        with mpl.rc_context(LOOK):
            self.figure.savefig(path, dpi=DPI, metadata=undated.get(kind))


def draw(chart: Chart) -> Figure:
    """Draw a chart, panel by panel."""
    rows, columns = len(chart.rows), len(chart.columns)
    figure = Figure(figsize=(3.7 * columns + 1.1, 2.3 * rows + 1.0))
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
    label_ends(figure, chart, grid)
    keys = legend(chart)
    labels = [str(key.get_label()) for key in keys]
    below = max(map(len, labels), default=0) > LONG_LABEL
    place: Any = "outside lower center" if below else "outside right upper"
    figure.legend(
        keys, labels, loc=place, ncols=2 if below else 1, fontsize=7.5, handlelength=1.8,
        labelspacing=0.35,
    )  # fmt: skip
    return figure


def panel(axes: Axes, column: PanelColumn, row: PanelRow) -> None:
    """Draw the lines of a column within the limits of a row."""
    for order, line in enumerate(column.lines):
        axes.plot(line.x, line.y, zorder=2 + order / 100, **style(line))
        cross = lost_at(line, row)
        if cross is not None:
            look: Any = {"color": line.colour.light, "markersize": 5, "clip_on": False, "zorder": 5}
            axes.plot([cross[0]], [cross[1]], "x", **look)
    axes.set_xscale(column.x_scale)
    if column.x_ticks:
        axes.set_xticks(column.x_ticks, [str(tick) for tick in column.x_ticks])
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yscale(row.scale)
    axes.set_ylim(row.low, row.high)
    if row.ticks:
        axes.yaxis.set_major_locator(FixedLocator(list(row.ticks)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_yticks(list(row.ticks), list(row.ticks.values()))
    else:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def label_ends(figure: Figure, chart: Chart, grid: Any) -> None:
    """Label each line where it ends, in the panel of its column that magnifies the end most."""
    figure.draw_without_rendering()  # sets the limits, in which heights are measured
    for j, column in enumerate(chart.columns):
        for i, row in enumerate(chart.rows):
            axes = grid[i, j]
            here = [line for line in column.lines if label_row(line, chart.rows) == i]
            ends = [lost_at(line, row) or (line.x[-1], line.y[-1]) for line in here]
            if not ends:
                continue
            at = axes.transData.transform(ends) * 72 / figure.dpi
            for group in groups(at[:, 0].tolist(), within=30):
                shifts = spread(at[group, 1].tolist(), TEXT + 1) - at[group, 1]
                sunk = min([0.0, *(s for i, s in zip(group, shifts, strict=True) if here[i].lost)])
                for i, shift in zip(group, shifts - sunk, strict=True):
                    axes.annotate(
                        here[i].end or here[i].label, ends[i], (4, shift + 5 * here[i].lost),
                        textcoords="offset points", va="center", fontsize=TEXT,
                        color=here[i].colour.light, annotation_clip=False,
                    )  # fmt: skip


def style(line: Line) -> dict[str, Any]:
    """Return the look of a line, in the panels and in the legend."""
    colour = line.colour.light
    return {
        "color": colour,
        "linewidth": line.width if line.joined else 0,
        "linestyle": DASHES[line.dash],
        "marker": "" if line.marker == "none" else "o",
        "markerfacecolor": "none" if line.marker == "ring" else colour,
        "markersize": 4.5,
    }


def legend(chart: Chart) -> list[Line2D]:
    """Return a legend entry for each label, in the order of the lines."""
    keys: dict[str, Line2D] = {}
    for column in chart.columns:
        for line in column.lines:
            if line.dash != "solid" and any(
                other.label == line.label and other.dash == "solid" for other in column.lines
            ):
                continue
            keys.setdefault(line.label, Line2D([], [], label=line.label, **style(line)))
    return list(keys.values())


def short(value: float) -> str:
    """Format a number with the suffix k, M or G.

    >>> short(-1_540_000), short(0), short(-2.5e9), short(12.5)
    ('−1.54M', '0', '−2.5G', '12.5')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")):
        if abs(value) >= size:
            return f"{value / size:.4g}{unit}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")

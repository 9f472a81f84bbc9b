"""Description of a chart, which `on_paper.py` and the page's script draw.

A chart is a grid of panels. The panels of a column share their lines and those of a row their
limits, so the rows are magnifications of the same lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Scale = Literal["linear", "log"]


@dataclass(frozen=True)
class Colour:
    """A colour on a white background, and its counterpart on a dark one."""

    light: str
    dark: str


INK = Colour("#000000", "#ffffff")
# Okabe and Ito's colours, which can be told apart with every kind of colour vision.
BLUE, ORANGE = Colour("#0072b2", "#56b4e9"), Colour("#d55e00", "#ff9248")
GREEN, PURPLE = Colour("#009e73", "#2fd6a5"), Colour("#b0578d", "#e9a3cb")
SKY, GOLD = Colour("#4a9fd0", "#9ad4f5"), Colour("#b98500", "#f0c543")
GREY = Colour("#8a8a8a", "#9a9a9a")


def ordered(position: float) -> Colour:
    """Return a colour of viridis, whose lightness rises with the position, between 0 and 1.

    The end of the scale that would fade into the background is left out.

    >>> ordered(0.0).light, ordered(1.0).dark
    ('#440154', '#fde725')
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    viridis = colormaps["viridis"]
    return Colour(to_hex(viridis(0.88 * position)), to_hex(viridis(0.25 + 0.75 * position)))


@dataclass(frozen=True)
class Line:
    """A line of a panel.

    Attributes
    ----------
    label
        Name in the legend; lines with the same label are switched on and off together.
    lost
        Whether the run diverged at the end of the line, which is marked by a cross.
    marker, joined
        How points are marked, and whether lines join them.
    notes
        Hover text of each point, if it is more than its two numbers.
    end
        Text where the line ends; the label if empty.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    colour: Colour
    width: float = 1.4
    dash: Literal["solid", "dash", "dot"] = "solid"
    lost: bool = False
    marker: Literal["none", "dot", "ring"] = "none"
    joined: bool = True
    notes: Sequence[str] = ()
    end: str = ""


@dataclass(frozen=True)
class PanelColumn:
    """Panels above each other, which show the same lines."""

    title: str
    x_label: str
    lines: Sequence[Line]
    x_scale: Scale = "log"
    x_ticks: Sequence[int] = ()


@dataclass(frozen=True)
class PanelRow:
    """Panels beside each other, which have the same limits."""

    low: float
    high: float
    scale: Scale = "linear"
    ticks: dict[float, str] = field(default_factory=dict)


def lost_at(line: Line, row: PanelRow) -> tuple[float, float] | None:
    """Return where a cross marks a diverged run: its end, or where it leaves the panel for good.

    >>> fall = Line("C = 1", [1, 2, 4], [-1.0, -2.0, -4.0], INK, lost=True)
    >>> (
    ...     lost_at(fall, PanelRow(-9, 0)),
    ...     lost_at(fall, PanelRow(-2, 0)),
    ...     lost_at(fall, PanelRow(-0.5, 0)),
    ... )
    ((4, -4.0), (2.0, -2), None)
    """
    if not line.lost:
        return None
    if line.y[-1] >= row.low:
        return line.x[-1], line.y[-1]
    inside = [i for i, value in enumerate(line.y) if value >= row.low]
    if not inside:
        return None
    i = inside[-1]
    share = (line.y[i] - row.low) / (line.y[i] - line.y[i + 1])
    return line.x[i] * (line.x[i + 1] / line.x[i]) ** share, row.low


def label_row(line: Line, rows: Sequence[PanelRow]) -> int | None:
    """Return the row whose panel labels a line: the last that shows its end, or its first cross.

    >>> rows = [PanelRow(-9, 0), PanelRow(-2, 0)]
    >>> label_row(Line("full VB", [1, 2], [-5.0, -1.0], INK), rows)
    1
    >>> label_row(Line("C = 1", [1, 2], [-5.0, -12.0], INK, lost=True), rows)
    0
    """
    if not len(line.x):
        return None
    if line.lost:
        shown = [i for i, row in enumerate(rows) if lost_at(line, row) is not None]
        return shown[0] if shown else None
    shown = [i for i, row in enumerate(rows) if row.low <= line.y[-1] <= row.high]
    return shown[-1] if shown else None


@dataclass(frozen=True)
class Chart:
    """A figure."""

    name: str
    title: str
    caption: str
    alt: str
    y_label: str
    columns: Sequence[PanelColumn]
    rows: Sequence[PanelRow]
    legend: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the chart as JSON types, for the page."""
        return {
            "name": self.name,
            "yLabel": self.y_label,
            "legend": self.legend,
            "columns": [
                {
                    "title": column.title,
                    "xLabel": column.x_label,
                    "xScale": column.x_scale,
                    "xTicks": list(column.x_ticks),
                    "lines": [_line(line, self.rows) for line in column.lines],
                }
                for column in self.columns
            ],
            "rows": [
                {
                    "low": row.low,
                    "high": row.high,
                    "scale": row.scale,
                    "ticks": [[at, text] for at, text in row.ticks.items()],
                }
                for row in self.rows
            ],
        }


def _line(line: Line, rows: Sequence[PanelRow]) -> dict[str, Any]:
    return {
        **{k: v for k, v in vars(line).items() if k not in ("x", "y", "colour", "notes")},
        "x": [float(f"{value:.7g}") for value in line.x],
        "y": [float(f"{value:.7g}") for value in line.y],
        "colour": vars(line.colour),
        "notes": list(line.notes),
        "end": line.end or line.label,
        "endRow": label_row(line, rows),
        "crosses": [lost_at(line, row) for row in rows],
    }


def with_start(x: Any, y: Any, start: float) -> tuple[list[float], list[float]]:
    """Prepend the start to a line, at half of its first x: a log axis has no zero.

    >>> with_start([0, 4, 8], [-9.0, -5.0, -3.0], -9.0)
    ([2.0, 4.0, 8.0], [-9.0, -5.0, -3.0])
    """
    places, values = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    later = places > 0
    first = places[later].min(initial=np.inf)
    if not np.isfinite(first):
        return [], []
    return [float(first) / 2, *places[later].tolist()], [start, *values[later].tolist()]

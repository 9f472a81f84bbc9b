"""What a chart shows, said once; `on_paper.py` and the page's script draw it.

A chart is a grid. The panels of a column share their lines, those of a row their limits: rows are
magnifications of the same lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Scale = Literal["linear", "log"]


@dataclass(frozen=True)
class Colour:
    """A colour on white paper, and the one that stands for it on a dark page."""

    light: str
    dark: str


INK = Colour("#000000", "#ffffff")
# Okabe and Ito's colours, which all kinds of colour vision tell apart; lighter on a dark page.
BLUE, ORANGE = Colour("#0072b2", "#56b4e9"), Colour("#d55e00", "#ff9248")
GREEN, PURPLE = Colour("#009e73", "#2fd6a5"), Colour("#b0578d", "#e9a3cb")
SKY, GOLD = Colour("#4a9fd0", "#9ad4f5"), Colour("#b98500", "#f0c543")
GREY = Colour("#8a8a8a", "#9a9a9a")


def ordered(position: float) -> Colour:
    """Return a colour of viridis: the order of C is that of its lightness, in print as well.

    On either background the end that would fade into it is left out.

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
        Its name; lines of one label are switched together.
    lost
        Whether its end is where a run diverged, which is marked.
    markers, hollow, joined
        Whether its points are marked; `hollow`, by rings; `joined`, and by lines between them.
    notes
        What is said of each point, where it is more than its two numbers.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    colour: Colour
    width: float = 1.4
    dash: Literal["solid", "dash", "dot"] = "solid"
    lost: bool = False
    markers: bool = False
    hollow: bool = False
    joined: bool = True
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Column:
    """Panels above each other: the same lines, magnified."""

    title: str
    x_label: str
    lines: Sequence[Line]
    x_scale: Scale = "log"
    x_ticks: Sequence[int] = ()


@dataclass(frozen=True)
class Row:
    """The limits of panels beside each other."""

    low: float
    high: float
    scale: Scale = "linear"
    ticks: dict[float, str] = field(default_factory=dict)


def lost_at(line: Line, row: Row) -> tuple[float, float] | None:
    """Return where a cross marks a lost run: at its end, or where it leaves the panel for good.

    >>> fall = Line("C = 1", [1, 2, 4], [-1.0, -2.0, -4.0], INK, lost=True)
    >>> lost_at(fall, Row(-9, 0)), lost_at(fall, Row(-2, 0)), lost_at(fall, Row(-0.5, 0))
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


@dataclass(frozen=True)
class Chart:
    """A figure."""

    name: str
    title: str
    caption: str
    alt: str
    y_label: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    legend: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the chart in JSON's types, for the page."""
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


def _line(line: Line, rows: Sequence[Row]) -> dict[str, Any]:
    return {
        **{k: v for k, v in vars(line).items() if k not in ("x", "y", "colour", "notes")},
        "x": [float(f"{value:.7g}") for value in line.x],
        "y": [float(f"{value:.7g}") for value in line.y],
        "colour": vars(line.colour),
        "notes": list(line.notes),
        "crosses": [lost_at(line, row) for row in rows],
    }


def with_start(x: Any, y: Any, start: float) -> tuple[list[float], list[float]]:
    """Put the start before a line; a log axis has no zero, so it stands at half the first place.

    >>> with_start([0, 4, 8], [-9.0, -5.0, -3.0], -9.0)
    ([2.0, 4.0, 8.0], [-9.0, -5.0, -3.0])
    """
    places, values = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    later = places > 0
    first = places[later].min(initial=np.inf)
    if not np.isfinite(first):
        return [], []
    return [float(first) / 2, *places[later].tolist()], [start, *values[later].tolist()]

"""New figures of Matplotlib, which is imported when a figure is made."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import SvmpError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise SvmpError('a plot needs matplotlib: pip install "svmp[plot]"') from None
    return pyplot


def new_axes() -> Axes:
    """Return the axes of a new figure."""
    axes: Axes = _pyplot().subplots(layout="constrained")[1]
    return axes


def new_panels(panels: int, across: int = 3, heights: list[float] | None = None) -> NDArray[Any]:
    """Return the axes of a new figure with some panels, as an array.

    Every plot returns axes, as pandas does, and none a figure: a notebook draws each open figure at
    the end of a cell, and would draw one that is the value of the cell again.

    Parameters
    ----------
    panels, across
        Number of panels, and most of them side by side.
    heights
        Height of each panel in inches; by default 3.
    """
    columns = min(panels, across)
    rows = -(-panels // columns)
    each = heights or [3.0] * panels
    tall = [max(each[r * columns : (r + 1) * columns]) for r in range(rows)]
    axes = (
        _pyplot()
        .subplots(
            rows,
            columns,
            figsize=(4 * columns, sum(tall)),
            squeeze=False,
            layout="constrained",
            height_ratios=tall,
        )[1]
        .ravel()
    )
    for unused in axes[panels:]:
        unused.remove()
    return np.asarray(axes[:panels])


def log_axis(ax: Axes) -> None:
    """Make the x axis logarithmic, with a few labels as 20,000, also within one power of ten.

    What is drawn already gives its range.
    """
    ticker: Any = import_module("matplotlib.ticker")
    low, high = ax.dataLim.intervalx
    ax.set_xscale("log")
    if not 0 < low < high < np.inf:
        return
    decades = np.log10(high / low)
    marks = (1, 3) if decades < 2 else (1,)
    few = ticker.MaxNLocator(4) if decades < 1 else ticker.LogLocator(subs=marks, numticks=5)
    ax.xaxis.set_major_locator(few)
    ax.xaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: _short_number(x)))
    ax.xaxis.set_minor_formatter(ticker.NullFormatter())


def _short_number(x: float) -> str:
    return f"{x:,.0f}" if x < 1e7 else f"{x:.0e}".replace("e+0", "e")

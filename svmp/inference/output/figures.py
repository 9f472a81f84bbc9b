"""New figures of Matplotlib, which is imported when a figure is made."""

from __future__ import annotations

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

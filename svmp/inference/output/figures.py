"""New figures of Matplotlib, which is imported when a figure is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from svmp.errors import SvmpError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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


def new_figure(
    panels: int, across: int = 3, heights: list[float] | None = None
) -> tuple[Figure, list[Any]]:
    """Return a figure with some panels, and their axes.

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
    figure, axes = _pyplot().subplots(
        rows,
        columns,
        figsize=(4 * columns, sum(tall)),
        squeeze=False,
        layout="constrained",
        height_ratios=tall,
    )
    flat = list(axes.ravel())
    for unused in flat[panels:]:
        unused.remove()
    return figure, flat[:panels]

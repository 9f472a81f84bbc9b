"""`fit.plot()`: the bound against the rows that were read, as in the paper's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmp.errors import SvmpError
from svmp.inference.run_record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def new_axes() -> Axes:
    """Return the axes of a new figure."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise SvmpError('a plot needs matplotlib: pip install "svmp[plot]"') from None
    return pyplot.subplots()[1]


def plot(fit: RunRecord, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw the bound against the accesses, without the start, which has no place on a log axis.

    Estimates are drawn as a band of two standard errors either way.
    """
    ax = new_axes() if ax is None else ax
    accesses, bound, se = (fit.trace[c] for c in ("accesses", "bound", "bound_se"))
    later, exact = accesses > 0, (accesses > 0) & (se == 0)
    if np.any(exact):
        (line,) = ax.plot(accesses[exact], bound[exact], **{"marker": ".", **options})
        if np.any(se > 0):
            low, high = (bound - 2 * se)[later], (bound + 2 * se)[later]
            colour = line.get_color()
            ax.fill_between(accesses[later], low, high, color=colour, alpha=0.2, linewidth=0)
    ax.set_title("Evidence lower bound", loc="center")
    ax.set(
        xlabel="accesses (rows read for an element)",
        ylabel="bound (nats)",
        xscale="log",
    )
    return ax

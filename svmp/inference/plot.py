"""`fit.plot()`: the bound against the rows that were read, as in the paper's figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmp.errors import SvmpError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from svmp.inference.result import Fit


def plot(fit: Fit, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw the bound against the accesses; the start has none, and so no place on a log axis."""
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError:
            raise SvmpError('a plot needs matplotlib: pip install "svmp[plot]"') from None
        ax = pyplot.subplots()[1]
    accesses, bound = fit.trace["accesses"], fit.trace["bound"]
    if np.any(accesses > 0):
        ax.plot(accesses[accesses > 0], bound[accesses > 0], **{"marker": ".", **options})
    ax.set_title("Evidence lower bound", loc="center")
    ax.set(
        xlabel="accesses (rows read for an element)",
        ylabel="bound (nats)",
        xscale="log",
    )
    return ax

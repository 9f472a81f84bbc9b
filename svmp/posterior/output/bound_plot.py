"""`fit.plot()` and `fit.plot_trace()`: the run against the rows that were read, as in the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from svmp.inference.trace import HELD_OUT
from svmp.posterior.output.figures import log_axis, new_axes, new_panels
from svmp.posterior.record.run_record import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACCESSES = "accesses (rows read for an element)"


def plot(fit: RunRecord, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw the bound against the accesses, without the start, which has no place on a log axis.

    Estimates are drawn as a band of two standard errors either way, and a vertical line marks where
    a run diverged.
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
    if fit.status == "diverged":
        label = f"diverged at iteration {fit.iterations:,}"
        ax.axvline(max(fit.accesses, 1), color="C3", linestyle="--", label=label)
        ax.legend()
    ax.set_title("Evidence lower bound", loc="center")
    ax.set(xlabel=ACCESSES, ylabel="bound (nats)")
    log_axis(ax)
    return ax


def plot_trace(fit: RunRecord) -> NDArray[Any]:
    """Draw the bound, its distance from the best bound, and held-out scores if there are any."""
    held_out = HELD_OUT in fit.trace.columns
    axes = new_panels(2 + held_out)
    plot(fit, axes[0])
    accesses, bound, se = (fit.trace[c] for c in ("accesses", "bound", "bound_se"))
    exact = (accesses > 0) & (se == 0)
    best = bound[exact].max() if exact.any() else 0.0
    before = exact & (bound < best)
    if before.any():
        axes[1].plot(accesses[before], best - bound[before], marker=".")
        axes[1].set_yscale("log")
        log_axis(axes[1])
    axes[1].set(title="Distance from the best bound", xlabel=ACCESSES, ylabel="nats")
    if held_out:
        score = fit.trace[HELD_OUT]
        there = (accesses > 0) & np.isfinite(score)
        axes[2].plot(accesses[there], score[there], marker=".")
        axes[2].set(title="Held-out values", xlabel=ACCESSES, ylabel="score (nats per row)")
        log_axis(axes[2])
    return axes

"""`fit.plot_posterior()`: a panel for each variable.

a single number              its density or its probabilities, the central interval shaded
an array of some entries     mean and central interval of each, with its label; of two dims or
                             more a line for each label of the longest, in a colour for each other
a larger array               means in ascending order, and the intervals as a band
a Categorical                mean probability of each category over all elements
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import ModelError
from svmp.network.validation import shown
from svmp.posterior.marginals.posterior import Posterior
from svmp.posterior.output.figures import new_panels
from svmp.posterior.output.lines import Lines, short
from svmp.posterior.record.kinds import Q, kind_of_variable
from svmp.posterior.record.run_record import RunRecord
from svmp.posterior.tables.entries import Dim, dims_of, is_categorical, statistics

EDGES = (0.0005, 0.9995)
"""The quantiles between which a density is drawn."""
POINTS = 400
"""Number of points of a density."""


def plot_posterior(fit: RunRecord, names: list[str], prob: float, most: int) -> NDArray[Any]:
    """Draw a panel for each variable."""
    if type(most) is not int or most < 1:
        raise ModelError(f"most must be a whole number from 1, not {shown(most)}")
    if not names:
        raise ModelError("there is no variable to draw; name at least one")
    every = [fit.posteriors[name] for name in names]
    lines = [Lines.of(dims_of(fit, q), most) for q in every]
    heights = [_height(q, some, most) for q, some in zip(every, lines, strict=True)]
    axes = new_panels(len(names), heights=heights)
    for ax, q, some in zip(axes, every, lines, strict=True):
        ax.set_title(q.name)
        dims = dims_of(fit, q)
        if not np.size(q.mean):
            ax.text(0.5, 0.5, "no elements", ha="center", va="center")
        elif is_categorical(q):
            _categories(ax, q, dims[-1])
        elif not dims:
            _number(ax, q, prob)
        elif some is not None:
            _entries(ax, q, some, prob)
        else:
            _band(ax, q, prob)
        sds = kind_of_variable(fit, q.name)
        if sds != Q:
            ax.set_xlabel(f"{ax.get_xlabel()}, by {sds}")
    return axes


def _height(q: Posterior, lines: Lines | None, most: int) -> float:
    if is_categorical(q):
        entries = np.shape(q.mean)[-1]
        return max(3.0, 0.8 + 0.22 * entries) if entries <= most else 3.0
    return 3.0 if lines is None else max(3.0, 0.8 + 0.17 * lines.count + 0.05 * lines.entries)


def _number(ax: Any, q: Posterior, prob: float) -> None:
    """Draw the density of a single number."""
    low, high = q.quantile(EDGES)
    lower, upper = q.interval(prob)
    if q.family.counts:
        values = np.arange(low, high + 1)
        inside = (values >= lower) & (values <= upper)
        heights = np.exp(q.logpdf(values))
        ax.bar(values, heights, color=["C0" if here else "C7" for here in inside])
        ax.set_ylabel("probability")
    else:
        values = np.linspace(low, high, POINTS)
        heights = np.exp(q.logpdf(values))
        heights = np.where(np.isfinite(heights), heights, 0.0)
        ax.plot(values, heights)
        ax.fill_between(
            values, heights, where=(values >= lower) & (values <= upper), alpha=0.3, linewidth=0
        )
        ax.set_ylabel("density")
        ax.set_ylim(bottom=0)
    ax.set_xlabel(f"mean {float(q.mean):.3g}, {prob:.0%} from {lower:.3g} to {upper:.3g}")


def _entries(ax: Any, q: Posterior, lines: Lines, prob: float) -> None:
    """Draw the interval of each entry, on the line of its label."""
    numbers = {k: np.ravel(v) for k, v in statistics(q, prob).items()}
    for colour, (text, entries, places) in enumerate(lines.groups()):
        style: dict[str, Any] = {"color": f"C{colour}"}
        lower, upper = numbers["lower"][entries], numbers["upper"][entries]
        ax.hlines(places, lower, upper, linewidth=2, alpha=0.6, **style)
        ax.plot(numbers["mean"][entries], places, "o", markersize=4, label=text, **style)
    if lines.colours > 1:
        ax.legend(title=lines.colour_name, fontsize="small")
    ax.set_yticks(range(lines.count), lines.texts, fontsize="small")
    ax.set_ylabel(lines.name)
    ax.set_ylim(lines.count - 0.5, -0.5)
    ax.set_xlabel(f"mean and {prob:.0%} interval")


def _band(ax: Any, q: Posterior, prob: float) -> None:
    """Draw means in ascending order with their intervals as a band."""
    numbers = {k: np.ravel(v) for k, v in statistics(q, prob).items()}
    order = np.argsort(numbers["mean"], kind="stable")
    rank = np.arange(len(order))
    ax.fill_between(rank, numbers["lower"][order], numbers["upper"][order], alpha=0.3, linewidth=0)
    ax.plot(rank, numbers["mean"][order])
    ax.set_xlabel(f"{len(order):,} entries by their mean")
    ax.set_ylabel(f"mean and {prob:.0%} interval")


def _categories(ax: Any, q: Posterior, dim: Dim) -> None:
    """Draw the mean probability of each category."""
    share = q.mean.reshape(-1, dim.size).mean(axis=0)
    places = np.arange(dim.size)
    ax.barh(places, share)
    ax.set_yticks(places, [short(dim.text(i)) for i in range(dim.size)], fontsize="small")
    ax.invert_yaxis()
    ax.set_ylabel(dim.name)
    ax.set_xlabel("mean probability")

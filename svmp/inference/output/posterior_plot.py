"""`fit.plot_posterior()`: a panel for each variable.

a single number              its density or its probabilities, the central interval shaded
an array of some entries     mean and central interval of each, with its label
a larger array               means in ascending order, and the intervals as a band
a Categorical                mean probability of each category over all elements
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from svmp.errors import ModelError
from svmp.families import Bernoulli, Binomial, Multinomial, Poisson
from svmp.inference.output.entries import Dim, dims_of, is_categorical, statistics
from svmp.inference.output.figures import new_figure
from svmp.inference.posteriors.posterior import Posterior
from svmp.inference.run_record import RunRecord
from svmp.network.validation import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DISCRETE = (Bernoulli, Binomial, Multinomial, Poisson)
EDGES = (0.0005, 0.9995)
"""The quantiles between which a density is drawn."""
POINTS = 400
"""Number of points of a density."""


def plot_posterior(fit: RunRecord, names: list[str], prob: float, most: int) -> Figure:
    """Draw a panel for each variable."""
    if type(most) is not int or most < 1:
        raise ModelError(f"most must be a whole number from 1, not {shown(most)}")
    if not names:
        raise ModelError("there is no variable to draw; name at least one")
    every = [fit.posteriors[name] for name in names]
    heights = [_height(q, most) for q in every]
    figure, axes = new_figure(len(names), heights=heights)
    for ax, q in zip(axes, every, strict=True):
        ax.set_title(q.name)
        dims = dims_of(fit, q)
        if not np.size(q.mean):
            ax.text(0.5, 0.5, "no elements", ha="center", va="center")
        elif is_categorical(q):
            _categories(ax, q, dims[-1])
        elif not dims:
            _number(ax, q, prob)
        elif np.size(q.mean) <= most:
            _entries(ax, q, dims, prob)
        else:
            _band(ax, q, prob)
    return figure


def _height(q: Posterior, most: int) -> float:
    entries = np.shape(q.mean)[-1] if is_categorical(q) else np.size(q.mean)
    return max(3.0, 0.8 + 0.22 * entries) if 1 < entries <= most else 3.0


def _number(ax: Any, q: Posterior, prob: float) -> None:
    """Draw the density of a single number."""
    low, high = q.quantile(EDGES)
    lower, upper = q.interval(prob)
    if isinstance(q.family, DISCRETE):
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


def _entries(ax: Any, q: Posterior, dims: list[Dim], prob: float) -> None:
    """Draw the interval of each entry beside its label."""
    numbers = {k: np.ravel(v) for k, v in statistics(q, prob).items()}
    mean, places = numbers["mean"], np.arange(np.size(q.mean))
    ax.hlines(places, numbers["lower"], numbers["upper"], linewidth=2, alpha=0.6)
    ax.plot(mean, places, "o", markersize=4)
    at = np.unravel_index(places, [dim.size for dim in dims])
    texts = [
        ", ".join(dim.text(int(i)) for dim, i in zip(dims, row, strict=True))
        for row in zip(*at, strict=True)
    ]
    ax.set_yticks(places, [_short(text) for text in texts], fontsize="small")
    ax.set_ylabel(", ".join(dim.name for dim in dims))
    ax.set_ylim(len(places) - 0.5, -0.5)
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
    ax.set_yticks(places, [_short(dim.text(i)) for i in range(dim.size)], fontsize="small")
    ax.invert_yaxis()
    ax.set_ylabel(dim.name)
    ax.set_xlabel("mean probability")


def _short(text: str, most: int = 24) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"

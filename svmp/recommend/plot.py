"""`evaluation.plot()`: whether what a model says of itself is true, and how it ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from svmp.errors import SvmpError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from svmp.recommend.evaluate import Evaluation

COLOURS = {"model": "#0072b2", "biases": "#e69f00", "popularity": "#999999"}


def plot(evaluation: Evaluation) -> Figure:
    """Draw three panels: calibration, error by predicted spread, rankings; of events the last."""
    try:
        from matplotlib import pyplot
    except ImportError:  # pragma: no cover
        raise SvmpError('a plot needs matplotlib: pip install "svmp[plot]"') from None
    if not evaluation.calibration:
        figure, right = pyplot.subplots(figsize=(5, 4), layout="constrained")
        rankings(evaluation, right)
        return figure
    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(13, 4), layout="constrained")
    levels, shares = zip(*evaluation.calibration.items(), strict=True)
    left.plot([0, 1], [0, 1], color="#bbbbbb", lw=1)
    left.plot(levels, shares, marker=".", color=COLOURS["model"])
    left.set(xlabel="level of the interval", ylabel="share of ratings that it held", aspect=1)
    left.set_title("Calibration", loc="left")
    spread, error = np.array(evaluation.by_spread).T
    middle.plot(spread, error, marker="o", color=COLOURS["model"])
    middle.axline((spread[0], spread[0]), slope=1, color="#bbbbbb", lw=1)
    middle.set(xlabel="predicted standard deviation", ylabel="root mean squared error")
    middle.set_title("Error by predicted spread", loc="left")
    rankings(evaluation, right)
    for axes in (left, middle):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def rankings(evaluation: Evaluation, right: Axes) -> None:
    """Draw the scores of the rankings, side by side."""
    names = [m for m in evaluation.scores["model"] if "@" in m]
    for row, (model, found) in enumerate(evaluation.scores.items()):
        scores = [found[name] for name in names if name in found]
        places = np.arange(len(scores)) + 0.25 * (row - 1)
        value = np.array([score.value for score in scores])
        reach = [[s.value - s.low for s in scores], [s.high - s.value for s in scores]]
        right.bar(places, value, 0.24, yerr=reach, color=COLOURS[model], label=model)
    right.set_xticks(range(len(names)), names)
    right.set_title("Rankings, with 95% intervals", loc="left")
    right.legend(frameon=False)
    right.spines[["top", "right"]].set_visible(False)

"""`evaluation.plot()`: calibration of the predictions, and scores of the rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from svmp.errors import SvmpError
from svmp.recommend.metrics import Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Scores = Mapping[str, Mapping[str, Score]]
COLOURS = {"model": "#0072b2", "biases": "#e69f00", "popularity": "#999999"}


def plot(
    scores: Scores, calibration: Mapping[float, float], by_spread: Sequence[tuple[float, float]]
) -> NDArray[Any]:
    """Draw calibration, error by predicted deviation, and rankings; for events only the last."""
    try:
        from matplotlib import pyplot
    except ImportError:  # pragma: no cover
        raise SvmpError('a plot needs matplotlib: pip install "svmp[plot]"') from None
    if not calibration:
        right = pyplot.subplots(figsize=(5, 4), layout="constrained")[1]
        rankings(scores, right)
        return np.array([right])
    panels = pyplot.subplots(1, 3, figsize=(13, 4), layout="constrained")[1]
    left, middle, right = panels
    levels, shares = zip(*calibration.items(), strict=True)
    left.plot([0, 1], [0, 1], color="#bbbbbb", lw=1)
    left.plot(levels, shares, marker=".", color=COLOURS["model"])
    left.set(xlabel="level of the interval", ylabel="share of ratings inside", aspect=1)
    left.set_title("Calibration", loc="left")
    spread, error = np.array(by_spread).T
    middle.plot(spread, error, marker="o", color=COLOURS["model"])
    middle.axline((spread[0], spread[0]), slope=1, color="#bbbbbb", lw=1)
    middle.set(xlabel="predicted standard deviation", ylabel="root mean squared error")
    middle.set_title("Error by predicted deviation", loc="left")
    rankings(scores, right)
    for axes in (left, middle):
        axes.spines[["top", "right"]].set_visible(False)
    return np.asarray(panels)


def rankings(scores: Scores, right: Axes) -> None:
    """Draw the ranking scores of all models as a bar chart."""
    names = [m for m in scores["model"] if "@" in m]
    for row, (model, found) in enumerate(scores.items()):
        shown = [found[name] for name in names if name in found]
        places = np.arange(len(shown)) + 0.25 * (row - 1)
        value = np.array([score.value for score in shown])
        reach = [[s.value - s.low for s in shown], [s.high - s.value for s in shown]]
        right.bar(places, value, 0.24, yerr=reach, color=COLOURS[model], label=model)
    right.set_xticks(range(len(names)), names)
    right.set_title("Rankings, with 95% intervals", loc="left")
    right.legend(frameon=False)
    right.spines[["top", "right"]].set_visible(False)

"""`fit.plot_predictive()`: predictions with their intervals, beside observed values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.network.validation import array, shown
from svmp.network.variable import Variable
from svmp.posterior.output.figures import new_axes
from svmp.posterior.output.lines import Lines
from svmp.posterior.prediction.prediction import Prediction
from svmp.posterior.tables.entries import Dim

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 40
"""Largest number of rows with a line each; more are drawn as a band."""


def observed_values(variable: Variable) -> Array:
    """Return the observed values of a variable in its shape, NaN where they are missing."""
    values = np.full((variable.size, *variable.shape[len(variable.plate.shape) :]), np.nan)
    values[variable.rows] = variable.values
    return values.reshape(variable.shape)


def plot_predictive(
    prediction: Prediction,
    x: ArrayLike | None = None,
    observed: ArrayLike | None = None,
    prob: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Draw means and intervals of a prediction, against x, or row by row."""
    if prediction.shape != prediction._variable.shape:
        raise ModelError(
            f"the categories of '{prediction.name}' have no order to draw them by; use the "
            "prediction's mean, which has their probabilities"
        )
    mean = np.ravel(prediction.mean)
    lower, upper = (np.ravel(end) for end in prediction.interval(prob))
    seen = None if observed is None else _numbers(observed, prediction, "observed")
    ax = new_axes() if ax is None else ax
    lines = None if x is not None else Lines.of(_dims(prediction), FEW)
    if lines is not None:
        for colour, (text, entries, across) in enumerate(lines.groups()):
            style: dict[str, Any] = {"color": f"C{colour}"}
            label = f"predicted mean, {lines.colour_name} {text}" if text else "predicted mean"
            ax.vlines(across, lower[entries], upper[entries], linewidth=2, alpha=0.6, **style)
            ax.plot(across, mean[entries], "o", markersize=4, label=label, **style)
        if seen is not None:
            for colour, (_, entries, across) in enumerate(lines.groups()):
                known: dict[str, Any] = {} if colour else {"label": "observed"}
                ax.plot(across, seen[entries], "k.", markersize=4, alpha=0.6, **known)
        _name_rows(ax, prediction, lines)
    else:
        place = mean if x is None else _numbers(x, prediction, "x")
        order = np.argsort(place, kind="stable")
        across = np.arange(len(mean)) if x is None else place[order]
        ax.fill_between(
            across, lower[order], upper[order], alpha=0.3, linewidth=0, label=f"{prob:.0%} interval"
        )
        ax.plot(across, mean[order], label="predicted mean")
        if seen is not None:
            ax.plot(across, seen[order], "k.", markersize=4, alpha=0.6, label="observed")
        if x is None:
            ax.set_xlabel(f"{len(mean):,} rows by their predicted mean")
    ax.set_ylabel(prediction.name)
    ax.legend(fontsize="small")
    return ax


def _numbers(values: Any, prediction: Prediction, what: str) -> Array:
    found = array(values)
    if found is None or found.shape != prediction.shape:
        given = shown(values) if found is None else f"an array of shape {found.shape}"
        raise ModelError(
            f"{what} needs a number for each row of '{prediction.name}', in the shape "
            f"{prediction.shape}, not {given}"
        )
    return np.ravel(found).astype(np.float64)


def _dims(prediction: Prediction) -> list[Dim]:
    """Return the dims of the rows, with their labels."""
    return [
        Dim(name, size, list(prediction.labels[name]) if name in prediction.labels else None)
        for name, size in zip(prediction.dims, prediction.shape, strict=True)
    ]


def _name_rows(ax: Any, prediction: Prediction, lines: Lines) -> None:
    """Write the label or the place of each line below it."""
    if any(dim in prediction.labels for dim in prediction.dims) or len(prediction.dims) > 1:
        ax.set_xticks(range(lines.count), lines.texts, rotation=90, fontsize="small")
    ax.set_xlabel(lines.name)

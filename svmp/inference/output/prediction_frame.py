"""`prediction.to_frame()`: a row for each entry, with a column for each dim and each statistic."""

from __future__ import annotations

from typing import Any

from svmp.inference.output.entries import Dim
from svmp.inference.output.frames import entries_frame
from svmp.inference.posterior import tails
from svmp.inference.predictive.prediction import Prediction


def prediction_frame(prediction: Prediction, prob: float, backend: str) -> Any:
    """Return means, standard deviations and intervals with their labels."""
    tails(prob)
    numbers = {"mean": prediction.mean, "sd": prediction.std}
    names = list(prediction.dims)
    if len(names) < len(prediction.shape):
        names.append("category")
    else:
        numbers["lower"], numbers["upper"] = prediction.interval(prob)
    dims: list[Dim] = []
    for name, size in zip(names, prediction.shape, strict=True):
        labels = prediction.labels.get(name)
        twice = any(dim.name == name for dim in dims)
        dims.append(
            Dim(f"{name}_2" if twice else name, size, None if labels is None else [*labels])
        )
    return entries_frame(prediction.name, dims, numbers, backend)

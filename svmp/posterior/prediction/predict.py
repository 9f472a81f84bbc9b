"""`Fit.predict`: checks its arguments, and matches the rows to predict with the fit."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from svmp.errors import ModelError
from svmp.inference.running.seeds import Seed, whole_seed
from svmp.network.model import Model
from svmp.network.validation import shown
from svmp.posterior.marginals.posterior import draw_count
from svmp.posterior.prediction.known import know
from svmp.posterior.prediction.linearised import linearised
from svmp.posterior.prediction.prediction import Prediction
from svmp.posterior.record.run_record import RunRecord


def predict(
    fit: RunRecord,
    model: Any,
    name: str,
    fitted: bool,
    noise: bool = True,
    draws: int = 1000,
    seed: Seed = 0,
    new: Collection[str] = (),
    known: Collection[str] = (),
    covariances: str = "q",
) -> Prediction:
    """Return the prediction of a variable; see `Fit.predict`."""
    if not isinstance(model, Model):
        raise ModelError(f"predict needs a svmp.Model of the rows to predict, not {shown(model)}")
    if not isinstance(noise, bool):
        raise ModelError(f"noise must be True or False, not {shown(noise)}")
    if draw_count(draws) < 1:
        raise ModelError("draws must be at least 1")
    found = linearised(know(fit, model, name, fitted, new, known), name)
    variable = found.variables[name]
    if found.own(name).any() and not noise:
        raise ModelError(
            f"'{name}' is hidden, and has elements with a q of their own: noise=False has no "
            "meaning for it"
        )
    if found.values(name) is not None:
        raise ModelError(
            f"'{name}' is observed in part in the model to predict: leave out its values; those "
            f"that are missing in the fit have their q in fit['{name}']"
        )
    dims = [*variable.dims, *(variable.category_axis or ())[:1]]
    labels = {dim: list(model.labels[dim]) for dim in dims if dim in model.labels}
    numbers = int(draws), whole_seed(seed)
    return Prediction(name, variable.dims, labels, noise, *numbers, covariances, found)

"""What a fit carries on about rates of forgetting, as arrays of its file.

"drift_weights/<name>"    (rates,)                      w_r
"drift_offsets/<name>"    (rates, elements, numbers)    S_r less the S of the fit
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from svmp.families.family import Family
from svmp.posterior.record.drift import RATES, Drift
from svmp.saving.schema import Tensor, Tensors, finite, need


def pack(drifts: Mapping[str, Drift]) -> Tensors:
    """Return the arrays of what is carried on, by variable."""
    weights = {f"drift_weights/{name}": drift.weights for name, drift in drifts.items()}
    return weights | {f"drift_offsets/{name}": drift.offsets for name, drift in drifts.items()}


def declared(
    names: Sequence[str], variables: Mapping[str, Any], families: Mapping[str, Family]
) -> dict[str, Tensor]:
    """Declare the arrays, whose variables must be known."""
    found = {}
    for name in names:
        need(name in variables, f"damaged: there is no variable {name!r:.60}, which drifts")
        shape = (len(RATES), prod(variables[name]["plate"]), families[name].size)
        found[f"drift_weights/{name}"] = Tensor((len(RATES),), probabilities)
        found[f"drift_offsets/{name}"] = Tensor(shape, finite)
    return found


def probabilities(weights: np.ndarray) -> str | None:
    """Refuse weights that are no probabilities."""
    sound = (weights >= 0).all() and abs(weights.sum() - 1) < 1e-6
    return None if sound else "has weights that are no probabilities"


def unpack(names: Sequence[str], tensors: Tensors) -> dict[str, Drift]:
    """Return what is carried on, by variable."""
    return {
        name: Drift(tensors[f"drift_weights/{name}"], tensors[f"drift_offsets/{name}"])
        for name in names
    }

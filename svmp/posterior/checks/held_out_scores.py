"""The score of held-out values under the q of a fit (inference/running/held_out.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.gaussian.joint_posterior import JointPosterior
from svmp.inference.running.arguments import check_model_and_method
from svmp.inference.running.held_out import HeldOut
from svmp.inference.starts.start import start
from svmp.inference.updaters.joint_block import joint_normals
from svmp.network.model import Model
from svmp.network.network import Network
from svmp.posterior.marginals.posterior import Posterior


def score(
    q: Mapping[str, Posterior],
    model: Model,
    values: Mapping[str, Any],
    joint: Sequence[JointPosterior] = (),
) -> float:
    """Return the score of held-out values under the q of a fit."""
    return float(pointwise_scores(q, model, values, joint)[0].mean())


def pointwise_scores(
    q: Mapping[str, Posterior],
    model: Model,
    values: Mapping[str, Any],
    joint: Sequence[JointPosterior] = (),
) -> tuple[Array, str]:
    """Return the score of each held-out row under the q of a fit, and a hash of the values."""
    check_model_and_method(model, None, None)
    network = Network(model)
    if sorted(network.hidden) != sorted(q):
        raise ModelError(f"the fit has q of {list(q)}, but the model hides {list(network.hidden)}")
    held = HeldOut.of(network, values)
    found = start(network, 0, q)
    found.blocks = joint_normals(network, found, joint)
    return held.pointwise(found), held.fingerprint

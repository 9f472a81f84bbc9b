"""A fit whose Normals have the covariances of linear response instead of those of q.

Mean field understates variances, and has no correlations. Linear response estimates both at the
same means. The Normals of the corrected fit are one joint block,

    theta ~ Normal(m, C),

with m the means of q and C the covariance matrix by linear response, so that predictions, draws and
intervals have them. Other variables stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from svmp.errors import ModelError
from svmp.families import MvNormal, Normal
from svmp.inference.posteriors.joint_posterior import JointPosterior
from svmp.inference.posteriors.posterior import Posterior
from svmp.inference.run_record import RunRecord
from svmp.inference.uncertainty.covariance import Covariance
from svmp.inference.uncertainty.linear_response import asked_names, covariance, not_a_maximum
from svmp.network.arrow import Arrow, Split
from svmp.network.joint_normal import Layout
from svmp.network.model import Model


def corrected_fields(fit: RunRecord, model: Model, names: Any) -> dict[str, Any]:
    """Return the fields of a fit that change: its posteriors, and one joint block."""
    posteriors = fit.posteriors
    normals = [n for n, q in posteriors.items() if isinstance(q.family, Normal | MvNormal)]
    names = normals if names is None else asked_names(names, posteriors)
    other = [name for name in names if name not in normals]
    if other or not names:
        raise ModelError(
            f"only Normals and MvNormals are corrected, of which the fit has {normals}; "
            "fit.covariance(names, model) has the variances of others"
        )
    found = covariance(fit, names, model, "linear_response")
    try:
        block = block_of(posteriors, names, found)
    except np.linalg.LinAlgError:
        raise ModelError(not_a_maximum(names[0])) from None
    changed = {}
    for name in names:
        q = posteriors[name]
        natural = block.marginal(name, q.natural, q.family)
        changed[name] = Posterior(name, q.dims, q.plate, q.family, natural)
    return {"posteriors": {**posteriors, **changed}, "joint": (block,)}


def block_of(posteriors: Any, names: list[str], found: Covariance) -> JointPosterior:
    """Return a joint block with a given covariance matrix."""
    sizes = {name: len(posteriors[name].natural) for name in names}
    numbers = {name: int(np.size(posteriors[name].mean)) for name in names}
    dimensions = {name: numbers[name] // max(sizes[name], 1) for name in names}
    layout = Layout.of(sizes, dimensions)
    count = layout.size
    np.linalg.cholesky(found.matrix)  # refuses what is no covariance matrix
    precision = sparse.csr_array(np.linalg.inv(found.matrix))
    split = Split.of_groups(count, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    arrow = Arrow.of(split, precision)
    return JointPosterior(layout, arrow, 0.0, None, np.ones(count), np.zeros(count))

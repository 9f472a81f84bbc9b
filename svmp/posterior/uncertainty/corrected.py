"""A fit whose Normals and Gammas have the variances of linear response instead of those of q.

Mean field understates variances, and has no correlations. Linear response estimates both at the
same means. The Normals of the corrected fit are one joint block,

    theta ~ Normal(m, C),

with m the means of q and C the covariance matrix by linear response, so that predictions, draws and
intervals have them. A Gamma has the mean of its logarithm under q and the variance of its logarithm
by linear response (log_scale.py). Elements that no data depend on have the variance of their
prior given uncertain parents (barren.py). Other variables stay as they are, and so do Gammas that
rows multiply by each other. In a fit with joint blocks these stay too,
and the precisions of their rows are corrected (joint_response.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from svmp.errors import ModelError
from svmp.families import Gamma, MvNormal, Normal
from svmp.families.family import Array
from svmp.inference.gaussian.factor import Factor
from svmp.inference.gaussian.joint_posterior import JointPosterior
from svmp.inference.updaters.joint_block import INFLATED, quoted
from svmp.network.joint_normal import Layout
from svmp.network.model import Model
from svmp.network.network import Network
from svmp.network.slot import Product
from svmp.posterior.marginals.posterior import Posterior
from svmp.posterior.record.covariance import Covariance, NothingToCorrect
from svmp.posterior.record.run_record import RunRecord
from svmp.posterior.uncertainty.barren import with_barren
from svmp.posterior.uncertainty.covariance_of_q import LARGEST, covariance_of
from svmp.posterior.uncertainty.joint_response import joint_response
from svmp.posterior.uncertainty.linear_response import (
    asked_names,
    linear_response,
    message_map,
    not_a_maximum,
)
from svmp.posterior.uncertainty.log_scale import gamma_of_variance

Posteriors = Mapping[str, Posterior]
SAME = 1e-9
"""Relative difference up to which a variance is that of q."""


def correctable(posteriors: Posteriors) -> list[str]:
    """Return the variables that can be corrected: Normals, MvNormals and Gammas."""
    kinds = Normal | MvNormal | Gamma
    plain = {n: q for n, q in posteriors.items() if type(q) is Posterior and len(q.natural)}
    return [n for n, q in plain.items() if isinstance(q.family, kinds)]


def response_of(fit: RunRecord, model: Model | None, names: Any = None) -> Covariance:
    """Return the covariances of linear response of all variables that are corrected, or of some."""
    if fit.joint and names is None:
        return joint_response(fit, model)
    possible = correctable(fit.posteriors)
    phi = message_map(fit, model)
    apart = factors_of_rates(phi.network)
    default = [name for name in possible if name not in apart]
    names = default if names is None else asked_names(names, fit.posteriors)
    if not names or not set(names) <= set(possible):
        raise NothingToCorrect(
            f"only Normals, MvNormals and Gammas are corrected, of which the fit has {possible}; "
            "fit.covariance(names, model=model) has the variances of others"
        )
    with np.errstate(all="ignore"):
        found = linear_response(phi, names, whole=False, matched=True)
        found = with_barren(phi.network, phi.q, found)
    try:
        np.linalg.cholesky(found.matrix)
    except np.linalg.LinAlgError:
        raise ModelError(not_a_maximum(names[0])) from None
    if not has_digits(found.matrix):
        raise ModelError(
            f"the covariance matrix of {quoted(names)} by linear response has too few digits: rows "
            "hardly tell some of their terms apart; centre and scale covariates, leave one of the "
            "terms out, or use stronger priors"
        )
    return found


def has_digits(matrix: Array) -> bool:
    """Return whether a covariance matrix can be inverted with some digits."""
    scale = 1 / np.sqrt(matrix.diagonal())
    try:
        inverse = np.linalg.inv(matrix * scale[:, None] * scale)
        np.linalg.cholesky(inverse)
    except np.linalg.LinAlgError:
        return False
    return bool((np.abs(inverse.diagonal()) <= INFLATED).all())


def factors_of_rates(network: Network) -> set[str]:
    """Return the Gammas that rows multiply by another one.

    Such a product is known better than its factors are. Wider Gammas that are independent of each
    other would make it less certain, so they keep their q.
    """
    conditionals = [v.conditional for v in (*network.hidden.values(), *network.observed.values())]
    slots = [s for given in conditionals for s in given.slots.values() if isinstance(s, Product)]
    each = [{r.variable.name for r in slot.readers if r.variable.hidden} for slot in slots]
    return {name for names in each if len(names) > 1 for name in names}


def corrected_fields(fit: RunRecord, found: Covariance) -> dict[str, Any]:
    """Return the fields of a fit that change: its posteriors, and one joint block."""
    posteriors = fit.posteriors
    normals = [n for n in found.names if posteriors[n].family.precision != "number"]
    gammas = [n for n in found.names if n not in normals]
    natural = {n: gamma_natural(posteriors[n], found.var(n)) for n in gammas}
    joint = fit.joint
    if normals and not is_that_of_q(posteriors, normals, found.of(normals)):
        block = block_of(posteriors, normals, found.of(normals))
        joint = (block,)
        natural |= {
            n: block.marginal(n, posteriors[n].natural, posteriors[n].family) for n in normals
        }
    changed = {
        n: Posterior(n, posteriors[n].dims, posteriors[n].plate, posteriors[n].family, new)
        for n, new in natural.items()
    }
    return {
        "posteriors": {**posteriors, **changed},
        "joint": joint,
        "response": None,
        "responding": tuple(found.names),
        "refused": "",
    }


def is_that_of_q(posteriors: Posteriors, names: Sequence[str], matrix: Array) -> bool:
    """Return whether a covariance matrix is that of q up to rounding: then q stays as it is."""
    if len(matrix) > LARGEST:
        return False
    own, scale = covariance_of((), posteriors, names), np.sqrt(matrix.diagonal())
    return bool((np.abs(matrix - own) <= SAME * scale[:, None] * scale).all())


def gamma_natural(q: Posterior, var: Array) -> Array:
    """Return the natural parameters of Gammas with the E[log x] of q and other variances."""
    alpha, beta = gamma_of_variance(q.natural, var.ravel())
    same = np.abs(var.ravel() / q.var.ravel() - 1) <= SAME
    return np.where(same[:, None], q.natural, q.family.natural(alpha=alpha, beta=beta))


def block_of(posteriors: Posteriors, names: Sequence[str], matrix: Array) -> JointPosterior:
    """Return a joint block with a given covariance matrix."""
    sizes = {name: len(posteriors[name].natural) for name in names}
    numbers = {name: int(np.size(posteriors[name].mean)) for name in names}
    dimensions = {name: numbers[name] // max(sizes[name], 1) for name in names}
    layout = Layout.of(sizes, dimensions)
    count = layout.size
    scale = 1 / np.sqrt(matrix.diagonal())
    inverse = np.linalg.inv(matrix * scale[:, None] * scale)
    precision = 0.5 * (inverse + inverse.T) * scale[:, None] * scale
    factor = Factor.of_matrix(precision)
    # Two inversions lose digits of nearly collinear terms: the variances are those of the matrix.
    exact = np.sqrt(matrix.diagonal() / factor.variances)
    return JointPosterior(layout, factor, 0.0, None, exact, np.zeros(count))

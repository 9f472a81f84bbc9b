"""Pareto smoothed importance sampling of q (Vehtari et al. 2024; Yao et al. 2018).

Draws of q get the weights p(data, draw) / q(draw). The shape k of a generalised Pareto fitted to
the largest of them says how far q is from the posterior: below 0.5 it is near, above 0.7 it
misses parts of it, and no weights can repair that. The mean weight estimates the evidence, which
the bound lies below.

The smoothing is that of ArviZ (the package arviz-stats).
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import logsumexp

from svmp.errors import ModelError, needing
from svmp.families.family import Array
from svmp.inference.running.seeds import Seed, check_seed
from svmp.network.model import Model
from svmp.network.validation import shown
from svmp.posterior.record.run_record import RunRecord
from svmp.posterior.uncertainty.fitted import network_and_q
from svmp.posterior.uncertainty.joint_density import Draws, JointDensity

DRAWS = 1000
"""Draws by default."""
FEWEST = 100
"""Fewest draws: the tail of fewer is too short."""
EXACT = 1e-6
"""Largest spread of log weights, in nats, of a q that is the posterior up to rounding."""
GOOD, USABLE = 0.5, 0.7
"""Up to the first k-hat q is near the posterior; beyond the second, weights are not reliable."""


@dataclass(frozen=True, eq=False)
class Importance:
    """Draws of q and their weights.

    Attributes
    ----------
    density, draws
        The joint density, and the draws.
    log_ratios
        log p(data, draw) - log q(draw).
    log_weights
        Smoothed, with sum 1.
    khat
        Shape of the tail of the weights; 0 if q is the posterior up to rounding.
    log_evidence
        Estimate of the log evidence.
    """

    density: JointDensity
    draws: Draws
    log_ratios: Array
    log_weights: Array
    khat: float
    log_evidence: float


def smooth(log_ratios: Array) -> tuple[Array, Array]:
    """Return smoothed log weights, of sum 1 along the last axis, and k-hat.

    >>> smooth(np.zeros(200))[1]
    array(0.)
    """
    stats: Any = needing("psis", "arviz_stats.base").array_stats
    weights = np.full(log_ratios.shape, -np.log(log_ratios.shape[-1]))
    khat = np.zeros(log_ratios.shape[:-1])
    uneven = np.ptp(log_ratios, axis=-1) > EXACT
    if uneven.any():
        with np.errstate(all="ignore"):  # it takes log likelihoods, and so the negative
            weights[uneven], khat[uneven] = stats.psislw(-log_ratios[uneven])
    return weights, khat


def importance(fit: RunRecord, model: Model, draws: Any = DRAWS, seed: Seed = 0) -> Importance:
    """Return draws of a fit's q with their weights."""
    count = check_draws(draws)
    check_seed(seed)
    density = JointDensity(*network_and_q(fit, model))
    drawn = density.draw(count, seed)
    with np.errstate(all="ignore"):
        joint = [density.log_joint(density.at(drawn, i)) for i in range(count)]
        ratios = np.array(joint) - density.log_q(drawn)
    if not np.isfinite(ratios).all():
        raise ModelError(
            "the joint density is not finite at some draws of q: a hidden variable is so close to "
            "the edge of its domain that its draws round to it; give it a tighter prior"
        )
    weights, khat = smooth(ratios)
    # Weights below the tail are not smoothed, so they have the scale of the ratios.
    least = int(np.argmin(ratios))
    evidence = float(ratios[least] - weights[least] + logsumexp(weights) - np.log(count))
    return Importance(density, drawn, ratios, weights, float(khat), evidence)


def check_draws(draws: Any) -> int:
    """Check a number of draws."""
    sound = isinstance(draws, Integral) and not isinstance(draws, bool)
    if not sound or int(draws) < FEWEST:
        raise ModelError(f"draws must be a whole number of at least {FEWEST}, not {shown(draws)}")
    return int(draws)

"""Learn how much of what was learned to forget: hierarchical power priors (Masegosa et al. 2017).

Let p_first be the prior of a variable x, with natural parameter eta, and p_last what earlier rows
have made of it, with eta + S. The new rows have the prior

    p(x | k) with the natural parameter eta + k S,    k in [0, 1].

At k = 1 nothing is forgotten, at k = 0 everything. With probability 1 - CHANGE nothing has changed
and k = 1; else k is uniform. The log-partition is convex, so that
A(eta + k S) <= k A(eta + S) + (1 - k) A(eta), which gives a lower bound on the evidence in which

    q(k) ~ p(k) exp(w k),    w = KL(q(x) || p_first) - KL(q(x) || p_last)
                               = S . E[phi(x)] - A(eta + S) + A(eta),

k = 1 or a truncated exponential of mean m = 1 / (1 - exp(-w)) - 1 / w, and q(x) has the prior
eta + E[k] S. The two are updated in turn. As a function of E[k] the bound has a maximum near either
end: `updating.py` climbs both and takes the higher.

In the paper p(k) is a truncated exponential alone. E[k] is then 1 - 1 / w where nothing has
changed, and 20 batches of a stationary stream lose most of what was learned.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from svmp.families.family import Array, dot
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network

CHANGE = 0.01
"""Prior probability that a variable has changed."""


def slab_mean(w: float) -> float:
    """Return the mean of a truncated exponential, 1 / (1 - exp(-w)) - 1 / w.

    >>> slab_mean(0.0), round(slab_mean(20.0), 3), round(slab_mean(-20.0), 3)
    (0.5, 0.95, 0.05)
    """
    if abs(w) < 1e-3:
        return 0.5 + w / 12
    if w < 0:
        return 1 - slab_mean(-w)
    return float(-1 / np.expm1(-w) - 1 / w)


def slab_log_partition(w: float) -> float:
    """Return the log of the integral of exp(w k) over [0, 1].

    >>> round(slab_log_partition(0.0), 12), round(slab_log_partition(1.0), 4)
    (0.0, 0.5413)
    """
    if abs(w) < 1e-3:
        return w / 2 + w**2 / 24
    if w < 0:
        return w + slab_log_partition(-w)
    return float(w + np.log(-np.expm1(-w)) - np.log(w))


def log_partition(w: float) -> float:
    """Return the log of E[exp(w k)] under p(k)."""
    return float(np.logaddexp(np.log1p(-CHANGE) + w, np.log(CHANGE) + slab_log_partition(w)))


def expected_share(w: float) -> float:
    """Return E[k] under q(k).

    >>> round(expected_share(5.0), 4), round(expected_share(-20.0), 4)
    (0.9997, 0.05)
    """
    unchanged = float(np.exp(np.log1p(-CHANGE) + w - log_partition(w)))
    return unchanged + (1 - unchanged) * slab_mean(w)


def log_ratios(network: Network, q: Beliefs, taught: Mapping[str, Array]) -> dict[str, float]:
    """Return A(eta + S) - A(eta) of each variable, summed over elements.

    `taught` is S, whatever share of it the network has as `learned`.
    """
    found = {}
    for name, evidence in taught.items():
        variable = network.hidden[name]
        elements = np.flatnonzero((evidence != 0).any(axis=1))
        eta = np.array(variable.conditional.to_child(q, elements))
        family = variable.family.at(elements)
        ratio = family.log_partition(eta + evidence[elements]) - family.log_partition(eta)
        found[name] = float(ratio.sum())
    return found


def natural_parameters(
    q: Beliefs, taught: Mapping[str, Array], ratios: Mapping[str, float]
) -> dict[str, float]:
    """Return w of each variable."""
    return {
        name: float(dot(evidence, q.moments[name]).sum()) - ratios[name]
        for name, evidence in taught.items()
    }


def bound_of_shares(
    shares: Mapping[str, float], natural: Mapping[str, float], ratios: Mapping[str, float]
) -> float:
    """Return what the shares add to the bound of q(x) under the prior eta + E[k] S.

    That is -E[k] (A(eta + S) - A(eta)) and minus the KL of q(k) from p(k).
    """
    return sum(
        log_partition(natural[name]) - (natural[name] + ratios[name]) * share
        for name, share in shares.items()
    )

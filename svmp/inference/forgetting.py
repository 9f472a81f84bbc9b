"""Learn how much of what was learned to forget: hierarchical power priors (Masegosa et al. 2017).

Let p_first be the prior of a variable x, with natural parameter eta, and p_last what earlier rows
have made of it, with eta + S. The new rows have the prior

    p(x | k) with the natural parameter eta + k S,    k in [0, 1],    p(k) ~ exp(KEEP k).

At k = 1 nothing is forgotten, at k = 0 everything. The log-partition is convex, so that
A(eta + k S) <= k A(eta + S) + (1 - k) A(eta), which gives a lower bound on the evidence in which

    q(k) ~ exp(w k),    w = KEEP + KL(q(x) || p_first) - KL(q(x) || p_last)
                          = KEEP + S . E[phi(x)] - A(eta + S) + A(eta),
    E[k] = 1 / (1 - exp(-w)) - 1 / w,

and q(x) has the prior eta + E[k] S. The two are updated in turn. As a function of E[k] the bound
has a maximum near either end: `updating.py` climbs both and takes the higher.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from svmp.families.family import Array, dot
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network

KEEP = 20.0
"""Prior natural parameter of k: a variable is forgotten where the evidence for a change exceeds
this many nats; without a change, E[k] is at least 0.95."""


def expected_share(w: float) -> float:
    """Return E[k] of a truncated exponential, 1 / (1 - exp(-w)) - 1 / w.

    >>> expected_share(0.0), round(expected_share(20.0), 3), round(expected_share(-20.0), 3)
    (0.5, 0.95, 0.05)
    """
    if abs(w) < 1e-3:
        return 0.5 + w / 12
    if w < 0:
        return 1 - expected_share(-w)
    return float(-1 / np.expm1(-w) - 1 / w)


def log_partition(w: float) -> float:
    """Return the log of the integral of exp(w k) over [0, 1].

    >>> round(log_partition(0.0), 12), round(log_partition(1.0), 4)
    (0.0, 0.5413)
    """
    if abs(w) < 1e-3:
        return w / 2 + w**2 / 24
    if w < 0:
        return w + log_partition(-w)
    return float(w + np.log(-np.expm1(-w)) - np.log(w))


def log_ratios(network: Network, q: Beliefs, evidence: Mapping[str, Array]) -> dict[str, float]:
    """Return A(eta + S) - A(eta) of each variable, summed over elements.

    `evidence` is S, whatever share of it the network has as `learned`.
    """
    found = {}
    for name, taught in evidence.items():
        variable = network.hidden[name]
        elements = np.flatnonzero((taught != 0).any(axis=1))
        eta = np.array(variable.conditional.to_child(q, elements))
        family = variable.family.at(elements)
        ratio = family.log_partition(eta + taught[elements]) - family.log_partition(eta)
        found[name] = float(ratio.sum())
    return found


def natural_parameters(
    q: Beliefs, evidence: Mapping[str, Array], ratios: Mapping[str, float]
) -> dict[str, float]:
    """Return w of each variable."""
    return {
        name: KEEP + float(dot(taught, q.moments[name]).sum()) - ratios[name]
        for name, taught in evidence.items()
    }


def bound_of_shares(
    shares: Mapping[str, float], natural: Mapping[str, float], ratios: Mapping[str, float]
) -> float:
    """Return what the shares add to the bound of q(x) under the prior eta + E[k] S."""
    return sum(
        (KEEP - natural[name] - ratios[name]) * share
        + log_partition(natural[name])
        - log_partition(KEEP)
        for name, share in shares.items()
    )

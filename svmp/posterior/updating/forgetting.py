"""Learn how much of what was learned to forget: hierarchical power priors (Masegosa et al. 2017).

Let eta be the natural parameter of the prior of a variable x, and eta + S that of what earlier rows
have made of it. The new rows have the prior

    p(x | k) with the natural parameter eta + k S,    k in [0, 1].

At k = 1 nothing is forgotten, at k = 0 everything. With probability 1 - CHANGE nothing has changed
and k = 1; else k = v^POWER with v uniform, which is k ~ Beta(1 / POWER, 1). With N earlier and n
new rows, a jump of d standard errors of the new rows leaves a share k of about n / (N d^2). A
uniform prior would make such a small k very improbable. With q(x) q(k),

    q(k) ~ p(k) exp(g(k)),    g(k) = k S . E[phi(x)] - A(eta + k S) + A(eta),

and q(x) has the prior eta + E[k] S. They are updated in turn. There may be one maximum of the bound
near k = 1 and one at a smaller k: `updating.py` climbs both and takes the higher.

The paper replaces A(eta + k S) by k A(eta + S) + (1 - k) A(eta), which makes q(k) a truncated
exponential. It then forgets much of a stationary stream, and all or nothing of one that drifts.
Here g is computed at POINTS + 1 values of v, and taken to be linear in between. Slow changes are
left to `drifting.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from svmp.families.family import Array, dot
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network

CHANGE = 0.01
"""Prior probability that a variable has changed."""
POINTS = 32
"""Number of intervals between values of v at which g is computed. Later there are as many values
again around its maximum."""
POWER = 5
"""Where a variable has changed, the share that is kept is a uniform number to this power."""


class Share(NamedTuple):
    """q(k) of one variable.

    Attributes
    ----------
    mean
        E[k], the share of what was learned that is kept.
    changed
        Probability that the variable has changed.
    log_partition
        Log of E[exp(g(k))] under p(k).
    told
        S . E[phi(x)].
    """

    mean: float
    changed: float
    log_partition: float
    told: float


def exponential_mean(w: Array) -> Array:
    """Return the mean of a density exp(w t) on [0, 1], 1 / (1 - exp(-w)) - 1 / w.

    >>> exponential_mean(np.array([0.0, 20.0, -20.0])).round(3)
    array([0.5 , 0.95, 0.05])
    """
    size = np.maximum(np.abs(w), 1e-3)
    mean = -1 / np.expm1(-size) - 1 / size
    mean = np.where(np.abs(w) < 1e-3, 0.5 + np.abs(w) / 12, mean)
    return np.asarray(np.where(w < 0, 1 - mean, mean))


def exponential_log_partition(w: Array) -> Array:
    """Return the log of the integral of exp(w t) over [0, 1].

    >>> exponential_log_partition(np.array([0.0, 1.0])).round(4)
    array([0.    , 0.5413])
    """
    size = np.maximum(np.abs(w), 1e-3)
    log = size + np.log(-np.expm1(-size)) - np.log(size)
    log = np.where(np.abs(w) < 1e-3, np.abs(w) / 2 + w**2 / 24, log)
    return np.asarray(np.where(w < 0, w + log, log))


def share_of(told: float, ratio: Callable[[float], float]) -> Share:
    """Return q(k) from S . E[phi(x)] and the function A(eta + k S) - A(eta) of k."""
    v = np.linspace(0.0, 1.0, POINTS + 1)
    g = np.array([point * told - ratio(point) for point in v**POWER])
    top = int(np.argmax(g))
    more = np.linspace(v[max(top - 3, 0)], v[min(top + 3, POINTS)], POINTS + 2)[1:-1]
    more = np.setdiff1d(more, v)
    v, g = np.append(v, more), np.append(g, [k * told - ratio(k) for k in more**POWER])
    order = np.argsort(v)
    v, g = v[order], g[order]
    width, rise = np.diff(v), np.diff(g)
    parts = g[:-1] + np.log(width) + exponential_log_partition(rise)
    slab = float(np.logaddexp.reduce(parts))
    within = exponential_mean(rise)
    chord, arc = np.diff(v**POWER) * within + v[:-1] ** POWER, (v[:-1] + width * within) ** POWER
    slab_mean = float(np.exp(parts - slab) @ (chord + 2 * arc) / 3)  # as in Simpson's rule
    total = float(np.logaddexp(np.log1p(-CHANGE) + g[-1], np.log(CHANGE) + slab))
    changed = float(np.exp(np.log(CHANGE) + slab - total))
    return Share(1 - changed + changed * slab_mean, changed, total, told)


def shares_of(network: Network, q: Beliefs, taught: Mapping[str, Array]) -> dict[str, Share]:
    """Return q(k) of each variable, summed over the elements that earlier rows taught about.

    `taught` is S, whatever share of it the network has as `learned`.
    """
    return {name: _share(network, q, name, evidence) for name, evidence in taught.items()}


def _share(network: Network, q: Beliefs, name: str, evidence: Array) -> Share:
    variable = network.hidden[name]
    elements = np.flatnonzero((evidence != 0).any(axis=1))
    eta, some = np.array(variable.conditional.to_child(q, elements)), evidence[elements]
    family = variable.family.at(elements)
    first = float(family.log_partition(eta).sum())

    def ratio(k: float) -> float:
        return float(family.log_partition(eta + k * some).sum()) - first

    return share_of(float(dot(some, q.moments[name][elements]).sum()), ratio)


def bound_of_shares(shares: Mapping[str, Share]) -> float:
    """Return what q(k) adds to the bound of q(x) under the prior eta + E[k] S.

    That is -E[A(eta + k S) - A(eta)] and minus the KL of q(k) from p(k).
    """
    return sum(share.log_partition - share.mean * share.told for share in shares.values())

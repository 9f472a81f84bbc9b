"""Elements that no row depends on, in the covariances of a fit.

q of such an element x is its prior given the *expected* parents. With the uncertainty of the
parents it has:

    Var[x] = E[1 / tau] + X C X^T,        Cov[x, parents] = X C,

where mu = X parents and C is the covariance of the parents, which the element does not change. It
is what a prediction of a new element has.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from svmp import factors
from svmp.families import Gamma
from svmp.families.family import Array
from svmp.inference.updaters.joint_rows import lines_of, mean_of
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import Conditional
from svmp.network.grid import Ints
from svmp.network.joint_normal import Layout
from svmp.network.network import Network
from svmp.posterior.prediction.closed import power
from svmp.posterior.record.covariance import Covariance
from svmp.posterior.uncertainty.log_scale import gamma_of_variance


def with_barren(network: Network, q: Beliefs, found: Covariance) -> Covariance:
    """Return covariances in which barren Normals have the uncertainty of their parents."""
    hidden, matrix = network.hidden, found.matrix.copy()
    normals = [n for n in found.names if hidden[n].family.gaussian is not None]
    counts = {n: int(np.prod(found.shapes[found.names.index(n)])) for n in normals}
    sizes = {n: hidden[n].size for n in normals}
    layout = Layout.of(sizes, {n: counts[n] // max(sizes[n], 1) for n in normals})
    at = np.concatenate([np.zeros(0, np.int64), *(found.places(n) for n in normals)])
    q = replace(q, natural={**q.natural, **gammas(network, q, found)})
    for name in network.hidden:  # parents first
        elements, given = network.barren(name), hidden[name].conditional
        if name not in normals or not len(elements) or not is_linear(given, normals):
            continue
        lines = sparse.vstack([*lines_of(layout, q, given)], format="csr")
        own = layout.places(name)
        # A line is that of the residual: the mean less the element itself.
        lines = lines + sparse.csr_array(
            (np.ones(own.size), (np.arange(own.size), own.ravel())), shape=lines.shape
        )
        lines = lines[np.arange(own.size).reshape(own.shape)[elements].ravel()]
        places = at[own[elements].ravel()]
        across = lines @ matrix[at]
        within = matrix[np.ix_(places, places)]
        if isinstance(given.factor, factors.Normal):
            within = np.diag(inverses(given, q, elements, within.diagonal()))
        matrix[places], matrix[:, places] = across, across.T
        matrix[np.ix_(places, places)] = within + lines @ across[:, at].T
    return replace(found, matrix=0.5 * (matrix + matrix.T))


def is_linear(given: Conditional, normals: list[str]) -> bool:
    """Return whether a density is Normal, with a mean that is linear in the variables named."""
    if (
        not isinstance(given.factor, factors.Normal | factors.MvNormal)
        or given.selector is not None
    ):
        return False
    means = {v.name for v in given.slots[mean_of(given)].variables if v.hidden}
    return means <= set(normals)


def gammas(network: Network, q: Beliefs, found: Covariance) -> dict[str, Array]:
    """Return the natural parameters of Gammas with the variances that were found."""
    changed = {}
    for name in found.names:
        if network.hidden[name].family.precision == "number":
            alpha, beta = gamma_of_variance(q.natural[name], found.var(name).ravel())
            changed[name] = Gamma().natural(alpha, beta)
    return changed


def inverses(given: Conditional, q: Beliefs, elements: Ints, otherwise: Array) -> Array:
    """Return E[1 / tau] of some elements; `otherwise` where it is not known, or is infinite."""
    found = power(given.slots["tau"], q, elements, -1)
    return otherwise if found is None else np.where(np.isfinite(found), found, otherwise)

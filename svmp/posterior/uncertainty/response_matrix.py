"""Linear response of a small network: H and V as matrices, and one eigensystem for all tilts.

With V = L L^T, the solution of (I - H V) u = b for b = H c is

    u = b + H L M^-1 L^T b,    M = I - L^T H L,

where M is symmetric, and positive definite at a maximum of the bound.

An eigenvalue of 0 is a ridge, along which the bound is flat: a rotation of the factors of a
factorization, which no row sees. Where ridges are allowed, they do not respond: the covariance
along them is that of q.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.network.means.linear import Linear
from svmp.network.means.vector_mean import VectorMean
from svmp.network.network import Network
from svmp.network.partly_known import base_of
from svmp.posterior.uncertainty.hessian import hessian_of
from svmp.posterior.uncertainty.message_map import MessageMap

LARGEST = 300
"""Most statistics of a network whose H is formed."""
SADDLE = -0.01
"""Eigenvalues below it are those of a saddle point, and not of a q that has nearly converged."""
FLAT, FLAT_PRODUCTS = 1e-6, 1e-3
"""Eigenvalues below it are those of ridges; the second where means multiply hidden variables."""


def responses(phi: MessageMap, tilts: Array, ridges: bool = False) -> Array:
    """Return the solutions u of (I - H V) u = H c, one column for each column c.

    Parameters
    ----------
    phi, tilts
        The message map, and c.
    ridges
        Whether the bound may be flat in some directions.

    Raises
    ------
    numpy.linalg.LinAlgError
        If q is not at a maximum of the bound.
    """
    hessian, root = hessian_of(phi).toarray(), root_of(phi)
    right = hessian @ tilts
    values, vectors = np.linalg.eigh(np.eye(phi.size) - root.T @ hessian @ root)
    low = values < flat(phi)
    if not np.isfinite(values).all() or values.min(initial=1.0) < SADDLE or low.any() > ridges:
        raise np.linalg.LinAlgError("not at a maximum")
    inverse = np.where(low, -1 / (1 - values), 1 / np.where(low, 1.0, values))
    towards = root @ vectors
    return np.asarray(right + hessian @ towards @ (inverse[:, None] * (towards.T @ right)))


def flat(phi: MessageMap) -> float:
    """Return the eigenvalue below which the bound counts as flat."""
    return FLAT_PRODUCTS if multiplies(phi.network) else FLAT


def multiplies(network: Network) -> bool:
    """Return whether some mean multiplies hidden variables by each other."""
    tables = (*network.hidden.values(), *network.observed.values())
    slots = [slot for table in tables for slot in table.conditional.slots.values()]
    return any(
        sum(reader.variable.hidden for reader in term.readers) > 1
        for slot in slots
        if isinstance(slot, Linear | VectorMean)
        for term in slot.terms
    )


def root_of(phi: MessageMap) -> Array:
    """Return L, with one block for each element."""
    found = np.zeros((phi.size, phi.size))
    for name, place in phi.places.items():
        start, size = place.start, phi.variables[name].family.size
        for element, block in enumerate(roots(phi, name)):
            at = slice(start + element * size, start + (element + 1) * size)
            found[at, at] = block
    return phi.counted[:, None] * found


def roots(phi: MessageMap, name: str) -> Array:
    """Return the blocks of L of the elements of a variable."""
    family, natural = base_of(phi.variables[name].family), phi.q.natural[name]
    blocks = np.empty((len(natural), family.size, family.size))
    for place in range(family.size):
        unit = np.zeros_like(natural)
        unit[:, place] = 1.0
        blocks[:, place] = family.fisher_times(natural, unit)
    values, vectors = np.linalg.eigh(0.5 * (blocks + blocks.swapaxes(1, 2)))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])

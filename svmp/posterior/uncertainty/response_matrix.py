"""Linear response of a small network: H and V as matrices, and one eigensystem for all tilts.

With V = L L^T, the solution of (I - H V) u = b for b = H c is

    u = b + H L M^-1 L^T b,    M = I - L^T H L,

where M is symmetric, and positive definite at a maximum of the bound. A column of H is a difference
of Phi along one statistic, in which messages are linear (all but convex bounds). Where there are
fewer statistics than iterations of conjugate gradients, that is much less work.

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
from svmp.posterior.uncertainty.message_map import MessageMap

LARGEST = 300
"""Most statistics of a network whose H is formed."""
STEP = 1e-3
"""Step of the differences, in standard deviations of a statistic."""
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
    hessian, root = hessian_of(phi), root_of(phi)
    right = hessian @ tilts
    values, vectors = np.linalg.eigh(np.eye(phi.size) - root.T @ hessian @ root)
    flat = values < (FLAT_PRODUCTS if multiplies(phi.network) else FLAT)
    if not np.isfinite(values).all() or values.min(initial=1.0) < SADDLE or flat.any() > ridges:
        raise np.linalg.LinAlgError("not at a maximum")
    inverse = np.where(flat, -1 / (1 - values), 1 / np.where(flat, 1.0, values))
    towards = root @ vectors
    return np.asarray(right + hessian @ towards @ (inverse[:, None] * (towards.T @ right)))


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


def hessian_of(phi: MessageMap) -> Array:
    """Return H, 0 along statistics that are constant or not counted."""
    found = np.zeros((phi.size, phi.size))
    steps = STEP * phi.deviations
    for column in np.flatnonzero((phi.counted > 0) & (steps > 0)):
        move = np.zeros(phi.size)
        move[column] = steps[column]
        both = phi(phi.moments + move) - phi(phi.moments - move)
        found[:, column] = phi.counted * both / (2 * steps[column])
    moving = steps > 0
    found *= moving[:, None]
    return 0.5 * (found + found.T)


def root_of(phi: MessageMap) -> Array:
    """Return L, with one block for each element."""
    found = np.zeros((phi.size, phi.size))
    for name, variable in phi.variables.items():
        size, start = variable.family.size, phi.places[name].start
        natural = phi.q.natural[name]
        blocks = np.empty((len(natural), size, size))
        for place in range(size):
            unit = np.zeros_like(natural)
            unit[:, place] = 1.0
            blocks[:, place] = base_of(variable.family).fisher_times(natural, unit)
        values, vectors = np.linalg.eigh(0.5 * (blocks + blocks.swapaxes(1, 2)))
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        for element, block in enumerate(roots):
            at = slice(start + element * size, start + (element + 1) * size)
            found[at, at] = block
    return phi.counted[:, None] * found

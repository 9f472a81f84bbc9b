"""Linear response of a small network: H and V as matrices, and one eigensystem for all tilts.

With V = L L^T, the solution of (I - H V) u = b for b = H c is

    u = b + H L M^-1 L^T b,    M = I - L^T H L,

where M is symmetric, and positive definite at a maximum of the bound. M is scaled, with ones on its
diagonal. Its smallest eigenvalues belong to directions about which rows say little, and to
differences of variables that rows hardly tell apart. Where messages are linear in statistics, a
column of H is a difference of Phi along one, with a step so large that nothing of Phi but that
column is left, which makes H exact, and eigenvalues right down to 1e-12. Elsewhere the differences
are along the columns of L, in which the statistics of an element move together, as those of x and
x^2 do where x moves: so it does not matter how far from 0 it is.

An eigenvalue of 0 is a ridge, along which the bound is flat: a rotation of the factors of a
factorization, which no row sees. There is no linear response at it.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array, Family
from svmp.network.means.linear import Linear
from svmp.network.means.vector_mean import VectorMean
from svmp.network.network import Network
from svmp.network.partly_known import base_of
from svmp.posterior.uncertainty.hessian import far_steps
from svmp.posterior.uncertainty.message_map import MessageMap

LARGEST = 300
"""Most statistics of a network whose H is formed."""
STEP = 1e-2
"""Step of the differences elsewhere, in standard deviations."""
FLAT, FLAT_BOUNDS, FLAT_PRODUCTS = 1e-11, 1e-6, 1e-3
"""Eigenvalues below it count as 0: where messages are linear, where they are not, and where means
multiply hidden variables, so that ridges are flat only at the very maximum."""
SURE = 10.0
"""An eigenvalue must be this many times its error, which the asymmetry of H shows."""


def responses(phi: MessageMap, tilts: Array) -> Array:
    """Return the solutions u of (I - H V) u = H c, one column for each column c.

    Raises
    ------
    numpy.linalg.LinAlgError
        If q is not at a maximum of the bound.
    """
    root = root_of(phi)
    if phi.is_linear:
        hessian = dense_hessian(phi)
        towards, right = hessian @ root, hessian @ tilts
    else:
        towards = differences(phi, root)
        right = towards @ coefficients(phi, root, tilts)
    inner = root.T @ towards
    values, vectors = np.linalg.eigh(np.eye(phi.size) - 0.5 * (inner + inner.T))
    error = (abs(vectors) * (abs(inner - inner.T) @ abs(vectors))).sum(axis=0)
    if not (values > np.maximum(flat(phi), SURE * error)).all():
        raise np.linalg.LinAlgError("not at a maximum")
    return np.asarray(
        right + towards @ vectors @ ((vectors.T @ (root.T @ right)) / values[:, None])
    )


def flat(phi: MessageMap) -> float:
    """Return below which eigenvalue the bound counts as flat."""
    if multiplies(phi.network):
        return FLAT_PRODUCTS
    return FLAT if phi.is_linear else FLAT_BOUNDS


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


def dense_hessian(phi: MessageMap) -> Array:
    """Return H where messages are linear, 0 along statistics that are constant or not counted."""
    found = np.zeros((phi.size, phi.size))
    moving = (phi.counted > 0) & (phi.deviations > 0)
    step = far_steps(phi)
    for column in np.flatnonzero(moving):
        unit = np.zeros(phi.size)
        unit[column] = step[column]
        both = phi(phi.moments + unit) - phi(phi.moments - unit)
        found[:, column] = both / (2 * step[column])
    return np.where(moving[:, None], found, 0.0)


def differences(phi: MessageMap, root: Array) -> Array:
    """Return H L, by differences of fourth order."""
    found = np.zeros((phi.size, phi.size))
    for column in np.flatnonzero(root.any(axis=0)):
        step = STEP * root[:, column]
        near = phi(phi.moments + step) - phi(phi.moments - step)
        far = phi(phi.moments + 2 * step) - phi(phi.moments - 2 * step)
        found[:, column] = phi.counted * (8 * near - far) / (12 * STEP)
    return found


def coefficients(phi: MessageMap, root: Array, tilts: Array) -> Array:
    """Return y with L y = c, one column for each column c."""
    found = np.zeros_like(tilts)
    for name, variable in phi.variables.items():
        size, start = variable.family.size, phi.places[name].start
        for element in range(variable.size):
            at = slice(start + element * size, start + (element + 1) * size)
            block = root[at, at]
            scale = np.sqrt((block**2).sum(axis=1))
            scale = np.where(scale > 0, scale, 1.0)[:, None]
            found[at] = np.linalg.pinv(block / scale, rcond=1e-13) @ (tilts[at] / scale)
    return found


def root_of(phi: MessageMap) -> Array:
    """Return L, with one block for each element."""
    found = np.zeros((phi.size, phi.size))
    for name, variable in phi.variables.items():
        size, start = variable.family.size, phi.places[name].start
        for element, block in enumerate(roots(base_of(variable.family), phi.q.natural[name])):
            at = slice(start + element * size, start + (element + 1) * size)
            found[at, at] = block
    return phi.counted[:, None] * found


def roots(family: Family, natural: Array) -> Array:
    """Return a root of Cov[phi(x)] for each element.

    That of a Normal is computed around its mean m, since x^2 = (x - m)^2 + 2 m (x - m) + m^2 loses
    the digits of the first term where m is large.
    """
    size = family.size
    if family.gaussian is None:
        return symmetric_roots(family, natural)
    mean = np.reshape(family.mean(natural), (len(natural), -1))
    length = mean.shape[1]
    centred = natural.copy()
    centred[:, :length] = 0.0
    shift = np.broadcast_to(np.eye(size), (len(natural), size, size)).copy()
    each = np.eye(length)
    squares = np.einsum("ei,jk->eijk", mean, each) + np.einsum("ej,ik->eijk", mean, each)
    shift[:, length:, :length] = squares.reshape(len(natural), -1, length)
    return np.asarray(shift @ symmetric_roots(family, centred))


def symmetric_roots(family: Family, natural: Array) -> Array:
    """Return a root of Cov[phi(x)] for each element from its eigensystem."""
    size = family.size
    blocks = np.empty((len(natural), size, size))
    for place in range(size):
        unit = np.zeros_like(natural)
        unit[:, place] = 1.0
        blocks[:, place] = family.fisher_times(natural, unit)
    values, vectors = np.linalg.eigh(0.5 * (blocks + blocks.swapaxes(1, 2)))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])

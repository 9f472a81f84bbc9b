"""Linear response of networks with up to some ten thousand statistics: one sparse factorisation.

With V = L L^T and M = I - L^T H L as in response_matrix.py, and both sparse,

    c_g . u = c_g . H c_h + (L^T H c_g) . M^-1 (L^T H c_h)

for all entries g and h at once, from one factorisation M = P^T R^T D R P. M is positive definite at
a maximum of the bound, and then D is positive.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh, splu

from svmp.families.family import Array
from svmp.network.partly_known import base_of
from svmp.posterior.uncertainty.hessian import hessian_of
from svmp.posterior.uncertainty.message_map import MessageMap
from svmp.posterior.uncertainty.response_matrix import flat, roots

LARGEST = 20_000
"""Most statistics of a network whose H is formed as a sparse matrix."""


def sparse_responses(phi: MessageMap, tilts: Any) -> Array:
    """Return c_g . u for all pairs of the columns c of a sparse matrix.

    Raises
    ------
    numpy.linalg.LinAlgError
        If q is not at a maximum of the bound.
    """
    hessian, root = hessian_of(phi), root_of(phi)
    matrix = sparse.csc_array(sparse.eye_array(phi.size) - root.T @ hessian @ root)
    if not np.isfinite(matrix.data).all():
        raise np.linalg.LinAlgError("not at a maximum")
    try:
        factor = splu(
            matrix,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError:  # exactly singular
        raise np.linalg.LinAlgError("not at a maximum") from None
    least = factor.U.diagonal().min(initial=1.0)
    if not least > 0 or not least_eigenvalue(factor, phi.size) > flat(phi):
        raise np.linalg.LinAlgError("not at a maximum")
    right = hessian @ tilts
    towards = (root.T @ right).toarray()
    return np.asarray((tilts.T @ right).toarray() + towards.T @ factor.solve(towards))


def least_eigenvalue(factor: Any, size: int) -> float:
    """Return the least eigenvalue of a positive definite matrix to a few digits."""
    inverse = LinearOperator((size, size), matvec=factor.solve, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    return float(1 / eigsh(inverse, 1, v0=start, tol=0.1, return_eigenvectors=False)[0])


def root_of(phi: MessageMap) -> Any:
    """Return L as a sparse matrix."""
    blocks = [
        block
        for name, variable in phi.variables.items()
        for block in roots(base_of(variable.family), phi.q.natural[name])
    ]
    found = sparse.block_diag(blocks, format="csr")
    return sparse.csr_array(sparse.diags_array(phi.counted) @ found)

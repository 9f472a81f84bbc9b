"""Solving large crossed systems without a factor, by conjugate gradients.

Where two crossed factors are both too large for a dense matrix, the larger one, 2, is eliminated.
Its block of the precision matrix is (block) diagonal, and

    S x_1 = b_1 - P_12 P_22^-1 b_2,             S = P_11 - P_12 P_22^-1 P_21,
    x_2 = P_22^-1 (b_2 - P_21 x_1)

is solved by conjugate gradients with the diagonal of S as the preconditioner, for any number of
right sides at once: the gradient for the means, unit vectors for the columns of fixed effects, and
vectors of random signs z, from which

    tr(D P^-1) ~ mean of z^T D P^-1 z,        log |S| ~ log |M| + mean of z^T log(M^-1/2 S M^-1/2) z

follow (Hutchinson 1990; Ubaru, Chen and Saad 2017: the logarithm by Lanczos' method, whose matrix
is that of the steps of conjugate gradients). Both come with their standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh_tridiagonal

from svmp.families.family import Array
from svmp.network.grid import Ints

TOLERANCE = 1e-10
"""Size of a residual, relative to that of its right side, at which a solution is accepted."""
MOST = 1000
"""Most steps."""
PROBES = 8
"""Vectors of random signs."""


class Estimate(NamedTuple):
    """A number that is estimated from random vectors, and its standard error."""

    value: float
    error: float


class Steps(NamedTuple):
    """Solutions, and the steps that led to them.

    Attributes
    ----------
    solution
        One column for each right side.
    lengths, turns
        alpha and beta of each step, (steps, right sides); 0 after a solution was accepted.
    """

    solution: Array
    lengths: Array
    turns: Array


@dataclass(frozen=True, eq=False)
class Reduced:
    """A precision matrix of which one factor is eliminated.

    Attributes
    ----------
    stay, gone
        The unknowns of 1 and 2.
    own, across
        P_11 and P_12, sparse.
    inverse
        P_22^-1, sparse.
    diagonal
        The diagonal of S.
    log_det
        Logarithm of the determinant of P_22.
    """

    stay: Ints
    gone: Ints
    own: Any
    across: Any
    inverse: Any
    diagonal: Array
    log_det: float

    @classmethod
    def of(cls, precision: Any, blocks: Ints) -> Reduced:
        """Eliminate the unknowns of a factor.

        Parameters
        ----------
        precision
            A symmetric sparse matrix.
        blocks
            The unknowns of each element of the factor, (elements, entries).

        Raises
        ------
        numpy.linalg.LinAlgError
            If the matrix is not positive definite.
        """
        precision, gone = sparse.csr_array(precision), blocks.ravel()
        count, width = blocks.shape
        stay = np.setdiff1d(np.arange(precision.shape[0]), gone)
        across = precision[stay][:, gone].tocsr()
        entries = [
            np.asarray(precision[blocks[:, i], blocks[:, j]]).ravel()
            for i in range(width)
            for j in range(width)
        ]
        matrix = np.stack(entries, axis=1).reshape(count, width, width)
        inside = precision[gone][:, gone]
        if abs(inside).sum() > np.abs(matrix).sum() * (1 + 1e-12):
            raise ValueError("elements of the factor that is eliminated meet in rows")
        root = np.linalg.cholesky(matrix)
        log_det = 2 * float(np.log(np.diagonal(root, axis1=1, axis2=2)).sum())
        place = np.arange(count + 1), np.arange(count)
        inverse = sparse.bsr_array(
            (np.linalg.inv(matrix), place[1], place[0]), shape=(count * width,) * 2
        ).tocsr()
        own = precision[stay][:, stay].tocsr()
        through = (across @ inverse).multiply(across).sum(axis=1)
        diagonal = own.diagonal() - np.asarray(through).ravel()
        if not (diagonal > 0).all():
            raise np.linalg.LinAlgError("not positive definite")
        return cls(stay, gone, own, across, inverse, diagonal, log_det)

    def times(self, x: Array) -> Array:
        """Return S x."""
        return np.asarray(self.own @ x - self.across @ (self.inverse @ (self.across.T @ x)))

    def solve(self, b: Array, start: Array | None = None, tolerance: float = TOLERANCE) -> Array:
        """Return P^-1 b, for one right side or for several as columns.

        Parameters
        ----------
        b
            The right sides.
        start
            Solutions of a similar system, to begin with.
        tolerance
            See `TOLERANCE`.
        """
        shape = b.shape
        b = b.reshape(shape[0], -1)
        inner = self.inverse @ b[self.gone]
        first = None if start is None else start.reshape(b.shape)[self.stay]
        x = self.steps(b[self.stay] - self.across @ inner, first, tolerance).solution
        found = np.empty_like(b)
        found[self.stay] = x
        found[self.gone] = inner - self.inverse @ (self.across.T @ x)
        return found.reshape(shape)

    def steps(self, b: Array, start: Array | None = None, tolerance: float = TOLERANCE) -> Steps:
        """Solve S x = b for several right sides at once.

        Raises
        ------
        numpy.linalg.LinAlgError
            If S is not positive definite, or a solution is not reached.
        """
        x = np.zeros_like(b) if start is None else start.copy()
        r = b - self.times(x) if start is not None else b.copy()
        scaled = r / self.diagonal[:, None]
        p, rho = scaled.copy(), np.einsum("ij,ij->j", r, scaled)
        goal = (tolerance * np.linalg.norm(b, axis=0)) ** 2
        lengths, turns = list[Array](), list[Array]()
        for _ in range(MOST):
            going = np.einsum("ij,ij->j", r, r) > goal
            if not going.any():
                return Steps(x, np.array(lengths), np.array(turns))
            image = self.times(p)
            curvature = np.einsum("ij,ij->j", p, image)
            if not (curvature[going] > 0).all():
                raise np.linalg.LinAlgError("not positive definite")
            alpha = np.divide(rho, curvature, out=np.zeros_like(rho), where=going)
            x += alpha * p
            r -= alpha * image
            scaled = r / self.diagonal[:, None]
            following = np.einsum("ij,ij->j", r, scaled)
            beta = np.divide(following, rho, out=np.zeros_like(rho), where=going)
            p = np.where(going, scaled + beta * p, 0.0)
            rho = np.where(going, following, rho)
            lengths.append(alpha)
            turns.append(beta)
        raise np.linalg.LinAlgError(f"no solution after {MOST} steps of conjugate gradients")

    def traces(self, weights: Array, probes: Array | None = None) -> list[Estimate]:
        """Estimate tr(D P^-1) for diagonal matrices D, the rows of `weights`."""
        z = signs(len(self.stay) + len(self.gone)) if probes is None else probes
        each = weights @ (z * self.solve(z))
        return [estimate(row, probes is not None) for row in each]

    def log_determinant(self, probes: Array | None = None) -> Estimate:
        """Estimate log |P|."""
        z = signs(len(self.stay)) if probes is None else probes
        root = np.sqrt(self.diagonal)
        found = self.steps(root[:, None] * z)
        each = np.empty(z.shape[1])
        for place in range(z.shape[1]):
            count = int(np.count_nonzero(found.lengths[:, place]))
            alpha, beta = found.lengths[:count, place], found.turns[:count, place]
            main = 1 / alpha
            main[1:] += beta[:-1] / alpha[:-1]
            values, vectors = eigh_tridiagonal(main, np.sqrt(beta[:-1]) / alpha[:-1])
            each[place] = z[:, place] @ z[:, place] * (vectors[0] ** 2 @ np.log(values))
        known = self.log_det + 2 * float(np.log(root).sum())
        value, error = estimate(each, probes is not None)
        return Estimate(known + value, error)


def signs(size: int) -> Array:
    """Return vectors of random signs, always the same ones."""
    return np.random.default_rng(0).choice([-1.0, 1.0], (size, PROBES))


def estimate(each: Array, whole: bool) -> Estimate:
    """Return the mean over random vectors; the exact sum if the vectors are a basis."""
    if whole:
        return Estimate(float(each.sum()), 0.0)
    return Estimate(float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each))))

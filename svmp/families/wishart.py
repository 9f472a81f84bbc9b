"""Wishart with nu degrees of freedom and scale V, E[X] = nu V: a precision matrix.

phi(X) = (X, log|X|), lam = (-V^-1 / 2, (nu - d - 1) / 2), with matrices flattened in C order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincinv, gammaln, polygamma, psi

from svmp.families.family import Array, Bools, Family, every
from svmp.families.gamma import TINY
from svmp.families.matrix import (
    cholesky,
    flat,
    inverse,
    is_positive_definite,
    is_symmetric,
    join,
    log_det,
    symmetric,
)
from svmp.families.quantiles import normal_mixture_quantile

NODES = 96
"""Nodes of the integral over a diagonal entry, for quantiles of the others."""


@dataclass(frozen=True)
class Wishart(Family):
    """The Wishart family on positive definite matrices of one dimension, nu > dimension - 1.

    >>> family = Wishart(dimension=2)
    >>> family.mean(family.natural(nu=5.0, V=[[1.0, 0.0], [0.0, 0.2]]))
    array([[5., 0.],
           [0., 1.]])
    """

    dimension: int

    parameters: ClassVar[tuple[str, ...]] = ("nu", "V")
    event_ndim: ClassVar[int] = 2
    possible: ClassVar[str] = "symmetric positive definite matrices"
    precision: ClassVar[Literal["matrix"]] = "matrix"

    @classmethod
    def sized(cls, length: int) -> Self:
        return cls(length)

    @property
    def length(self) -> int:
        return self.dimension

    @property
    def size(self) -> int:
        return self.dimension**2 + 1

    def natural(self, nu: ArrayLike, V: ArrayLike) -> Array:
        half = 0.5 * inverse(np.asarray(V, dtype=np.float64))
        last = 0.5 * (np.asarray(nu, dtype=np.float64) - self.dimension - 1)
        return join(-flat(half), last[..., None])

    def standard(self, natural: Array) -> dict[str, Array]:
        return {"nu": self._nu(natural), "V": 0.5 * inverse(self._half(natural))}

    def moments(self, natural: Array) -> Array:
        half = self._half(natural)
        mean_log_det = psi(self._shapes(natural)).sum(axis=-1) - log_det(half)
        return join(flat(self.mean(natural)), mean_log_det[..., None])

    def log_partition(self, natural: Array) -> Array:
        d = self.dimension
        log_gamma = gammaln(self._shapes(natural)).sum(axis=-1) + 0.25 * d * (d - 1) * np.log(np.pi)
        return np.asarray(log_gamma - 0.5 * self._nu(natural) * log_det(self._half(natural)))

    def statistics(self, x: ArrayLike) -> Array:
        x = np.asarray(x, dtype=np.float64)
        return join(flat(x), log_det(x)[..., None])

    def in_domain(self, natural: Array) -> Bools:
        proper = every(np.isfinite(natural)) & (natural[..., -1] > -1)
        return proper & is_positive_definite(self._half(natural))

    def in_support(self, x: ArrayLike) -> Bools:
        x = np.asarray(x, dtype=np.float64)
        positive = is_positive_definite(x)
        return positive & is_symmetric(np.where(positive[..., None, None], x, 0.0))

    def mean(self, natural: Array) -> Array:
        return 0.5 * self._nu(natural)[..., None, None] * inverse(self._half(natural))

    def var(self, natural: Array) -> Array:
        nu, V = self.standard(natural).values()
        diagonal = np.diagonal(V, axis1=-2, axis2=-1)
        return nu[..., None, None] * (V**2 + diagonal[..., :, None] * diagonal[..., None, :])

    def cov(self, natural: Array) -> Array:
        """Cov[X_ij, X_kl] = nu (V_ik V_jl + V_il V_jk), on four axes."""
        nu, V = self.standard(natural).values()
        first = np.einsum("...ik,...jl->...ijkl", V, V)
        return nu[..., None, None, None, None] * (first + np.swapaxes(first, -1, -2))

    def quantile(self, natural: Array, p: ArrayLike) -> Array:
        """Return those of the entries.

        X_ii / V_ii is a chi-squared with nu degrees of freedom, and X_ij a Normal given X_ii, with
        mean X_ii V_ij / V_ii and variance X_ii (V_jj - V_ij^2 / V_ii), over which a sum of
        Gauss-Legendre integrates.
        """
        nu, V = self.standard(natural).values()
        p = np.broadcast_to(p, np.broadcast_shapes(np.shape(p), V.shape))
        own = np.broadcast_to(np.diagonal(V, axis1=-2, axis2=-1)[..., :, None], V.shape)
        half = 0.5 * np.broadcast_to(nu[..., None, None], V.shape)
        diagonal = 2 * own * gammaincinv(half, p)
        u, weights = np.polynomial.legendre.leggauss(NODES)
        chi2 = 2 * gammaincinv(half[..., None], 0.5 * (u + 1))
        other = np.swapaxes(own, -1, -2)
        rest = np.maximum(other - V**2 / own, TINY)
        centre, spread = (
            V[..., None] * chi2,
            np.sqrt(np.maximum(own * rest, TINY)[..., None] * chi2),
        )
        off = normal_mixture_quantile(centre, spread, np.broadcast_to(0.5 * weights, chi2.shape), p)
        return np.where(np.eye(self.dimension, dtype=bool), diagonal, off)

    def draw(self, natural: Array, rng: np.random.Generator, size: int = 1) -> Array:
        """Draw by Bartlett's decomposition: X = R R' with R = chol(V) times a random triangle."""
        shapes = self._shapes(natural)[..., ::-1]
        triangle = np.tril(rng.standard_normal((size, *shapes.shape, self.dimension)), -1)
        diagonal = np.arange(self.dimension)
        chi2 = 2 * rng.gamma(shapes, size=(size, *shapes.shape))
        triangle[..., diagonal, diagonal] = np.sqrt(chi2)
        root = cholesky(self.standard(natural)["V"]) @ triangle
        x = root @ np.swapaxes(root, -1, -2)
        return 0.5 * (x + np.swapaxes(x, -1, -2))

    def fisher_times(self, natural: Array, vector: Array) -> Array:
        nu, scale = self.standard(natural).values()
        matrix, last = symmetric(vector[..., :-1], self.dimension), vector[..., -1]
        spread = 2 * (
            nu[..., None, None] * (scale @ matrix @ scale) + last[..., None, None] * scale
        )
        log_det = 2 * np.einsum("...ij,...ji->...", matrix, scale)
        log_det = log_det + polygamma(1, self._shapes(natural)).sum(axis=-1) * last
        return join(flat(spread), log_det[..., None])

    def as_evidence(self, natural: Array) -> Array:
        values, vectors = np.linalg.eigh(self._half(natural))
        half = vectors * np.maximum(values, 0.0)[..., None, :] @ np.swapaxes(vectors, -1, -2)
        found = join(-flat(half), np.maximum(natural[..., -1:], 0.0))
        return np.where((values[..., :1] >= 0) & (natural[..., -1:] >= 0), natural, found)

    def start(self, natural: Array, rng: np.random.Generator) -> Array:
        """Keep the degrees of freedom and perturb the scale by about a tenth."""
        nu, V = self.standard(natural).values()
        return self.natural(nu, V * np.exp(0.1 * rng.standard_normal(nu.shape))[..., None, None])

    def _half(self, natural: Array) -> Array:
        return -symmetric(natural[..., :-1], self.dimension)

    def _nu(self, natural: Array) -> Array:
        return 2 * natural[..., -1] + self.dimension + 1

    def _shapes(self, natural: Array) -> Array:
        """Return (nu - d + 1) / 2, ..., nu / 2: the shapes of the d Gammas within a Wishart."""
        return natural[..., -1:] + 1 + 0.5 * np.arange(self.dimension)

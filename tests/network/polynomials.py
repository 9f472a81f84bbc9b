"""Means as explicit polynomials in scalars: a simple twin of svmp's expressions and of linear.py.

A `Polynomials` is an array with named axes whose cells are sums of monomials; a monomial is the
tuple of the scalars in it, a scalar is a variable's name and an index. The code is as simple as
possible, so that it can be trusted.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

Scalar = tuple[str, tuple[int, ...]]
Polynomial = dict[tuple[Scalar, ...], float]


@dataclass(eq=False)
class Polynomials:
    """One polynomial for each index along some named axes."""

    axes: tuple[str, ...]
    sizes: dict[str, int]
    cells: dict[tuple[int, ...], Polynomial]

    def places(self, axes: tuple[str, ...]) -> product[tuple[int, ...]]:
        return product(*(range(self.sizes[a]) for a in axes))

    def at(self, axes: tuple[str, ...], place: tuple[int, ...]) -> Polynomial:
        """Return the cell at an index that may have more axes."""
        where = dict(zip(axes, place, strict=True))
        return self.cells[tuple(where[a] for a in self.axes)]

    def __add__(self, other: Polynomials) -> Polynomials:
        def add(a: Polynomial, b: Polynomial) -> Polynomial:
            total: Polynomial = defaultdict(float, a)
            for monomial, coefficient in b.items():
                total[monomial] += coefficient
            return total

        return self._combined(other, add)

    def __mul__(self, other: Polynomials) -> Polynomials:
        def multiply(a: Polynomial, b: Polynomial) -> Polynomial:
            total: Polynomial = defaultdict(float)
            for (m, c), (n, d) in product(a.items(), b.items()):
                total[tuple(sorted(m + n))] += c * d
            return total

        return self._combined(other, multiply)

    def _combined(self, other: Polynomials, how: Any) -> Polynomials:
        axes = tuple(dict.fromkeys(self.axes + other.axes))
        cells = {p: how(self.at(axes, p), other.at(axes, p)) for p in self.places(axes)}
        return Polynomials(axes, self.sizes, cells)

    def sum(self, dim: str) -> Polynomials:
        axes = tuple(a for a in self.axes if a != dim)
        cells: dict[tuple[int, ...], Polynomial] = {}
        for place in self.places(axes):
            total = Polynomials((), self.sizes, {(): {}})
            for i in range(self.sizes[dim]):
                cell = self.at((*axes, dim), (*place, i))
                total = total + Polynomials((), self.sizes, {(): cell})
            cells[place] = total.cells[()]
        return Polynomials(axes, self.sizes, cells)


def constant(values: Any, axes: tuple[str, ...], sizes: dict[str, int]) -> Polynomials:
    array = np.asarray(values, dtype=float)
    return Polynomials(axes, sizes, {p: {(): float(array[p])} for p in np.ndindex(array.shape)})


def read(name: str, index: list[Any], sizes: dict[str, int]) -> Polynomials:
    """Index a variable by the name of an axis, an integer, or (axes, array of integers)."""
    used: list[str] = []
    for i in index:
        used += [i] if isinstance(i, str) else i[0] if isinstance(i, tuple) else []
    axes = tuple(dict.fromkeys(used))
    cells: dict[tuple[int, ...], Polynomial] = {}
    for place in product(*(range(sizes[a]) for a in axes)):
        where = dict(zip(axes, place, strict=True))
        element = tuple(
            where[i]
            if isinstance(i, str)
            else int(i[1][tuple(where[a] for a in i[0])])
            if isinstance(i, tuple)
            else i
            for i in index
        )
        cells[place] = {((name, element),): 1.0}
    return Polynomials(axes, sizes, cells)


@dataclass(frozen=True)
class Gaussian:
    """q of one variable: its mean, and the covariance of any two of its scalars."""

    mean: np.ndarray
    cov: np.ndarray  # by element, (elements, d, d); d = 1 for a Normal
    vector: bool

    def covariance(self, i: tuple[int, ...], j: tuple[int, ...]) -> float:
        shape = self.mean.shape[:-1] if self.vector else self.mean.shape
        cut = len(shape)
        if i[:cut] != j[:cut]:
            return 0.0
        flat = int(np.ravel_multi_index(i[:cut], shape)) if cut else 0
        return float(self.cov[flat][(i[-1], j[-1]) if self.vector else (0, 0)])


MOST = 11


def expectations(polynomial: Polynomial, q: dict[str, Gaussian]) -> tuple[float, float] | None:
    """Return E[mu] and E[mu^2], exactly; None if it has too many scalars.

    mu is linear in each variable, so mu^2 has degree 2 at most in every whitened coordinate, and
    the mean over the corners of a cube (the two-point Gauss rule) is its expectation.
    """
    scalars = sorted({s for monomial in polynomial for s in monomial})
    if len(scalars) > MOST:
        return None
    mean = np.array([q[n].mean[i] for n, i in scalars])
    cov = np.array(
        [[q[n].covariance(i, j) if n == m else 0.0 for m, j in scalars] for n, i in scalars]
    ).reshape(len(scalars), len(scalars))
    corners = np.array(list(product([-1.0, 1.0], repeat=len(scalars))))
    # An observed scalar has no variance: its row of the root is zero.
    spread = np.flatnonzero(np.diag(cov) > 0)
    root = np.zeros_like(cov)
    root[np.ix_(spread, spread)] = np.linalg.cholesky(cov[np.ix_(spread, spread)])
    points = mean + corners @ root.T
    value = np.zeros(len(points))
    for monomial, coefficient in polynomial.items():
        factor = np.full(len(points), coefficient)
        for scalar in monomial:
            factor = factor * points[:, scalars.index(scalar)]
        value += factor
    return float(value.mean()), float((value**2).mean())

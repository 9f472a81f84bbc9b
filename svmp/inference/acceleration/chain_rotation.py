"""The linear change of the states of a chain of vectors that raises the bound most.

The mean C x_t of observations stays the same under x <- R x, C <- C R^-1 for every invertible R,
and so does the chain under A <- R A R^-1 with another covariance of its steps; priors and entropies
do not. Sweeps of coordinate ascent change R slowly, since each variable has to wait for the others
(Luttinen 2013). With B = R^-1, sums over all transitions, n rows and N lines of C the bound is, up
to a constant,

    (n - N) log|det R|  +  E[log p(R x_1)]  -  sum_l tr(P_l B' E[c_l c_l'] B) / 2 + h_l . B' E[c_l]
    + max over q(A) and q(tau) of  E[log p(R x_t | R x_(t-1))] - KL(A) - KL(tau)

with the prior N(P_l^-1 h_l, P_l^-1) of a line. The maximum is found by a few updates of both in
turn. Its derivative is the one in which they are held fixed, and L-BFGS does the rest. q of x and C
are changed exactly and the others are at their optimum, so that the bound never falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from svmp.families.family import Array, Family, dot
from svmp.families.matrix import flat, join
from svmp.families.mvnormal import MvNormal
from svmp.network.grid import Ints

PASSES = 4
"""How often A and tau are updated in turn."""
STEPS = 20
"""Most steps of L-BFGS."""
LEAST = 1e-9
"""Smallest gain, relative to the number of rows, for which states are changed."""


class StateSums(NamedTuple):
    """Sums of moments of the states.

    Attributes
    ----------
    xx, xr, rr, transitions
        Sums of E[x_t x_t'], E[x_t x_(t-1)'] and E[x_(t-1) x_(t-1)'] over transitions, and their
        number.
    first, pull, precision
        Sum of E[x_1 x_1'] over sequences, of E[tau mu] E[x_1]', and E[tau] of first states.
    rows
        Number n of rows.
    """

    xx: Array
    xr: Array
    rr: Array
    transitions: float
    first: Array
    pull: Array
    precision: Array
    rows: int


class Lines(NamedTuple):
    """E[c c'] and E[c] of the lines of C, and P and h of their priors."""

    square: Array
    mean: Array
    precision: Array
    linear: Array


@dataclass(frozen=True)
class StepPrecision:
    """The precision matrix tau of the steps: known, a Wishart, or a diagonal of Gammas.

    Attributes
    ----------
    family, prior
        None if tau is known; else the natural parameters of the prior, (elements, size).
    entries
        The element that is each entry of the diagonal, for Gammas.
    known
        tau, if it is known.
    """

    family: Family | None
    prior: Array
    entries: Ints
    known: Array

    def moments(self, natural: Array) -> tuple[Array, float]:
        """Return E[tau] and E[log|tau|]."""
        size = len(self.known)
        if self.family is None:
            return self.known, 0.0
        found = self.family.moments(natural)
        if self.family.precision == "matrix":
            return found[0, :-1].reshape(size, size), float(found[0, -1])
        return np.diag(found[self.entries, 0]), float(found[self.entries, 1].sum())

    def update(self, residual: Array, transitions: float) -> Array:
        """Return the optimum given the expected sum of squares of the steps."""
        if self.family is None:
            return self.prior
        if self.family.precision == "matrix":
            return self.prior + join(-0.5 * flat(residual), np.array([0.5 * transitions]))
        message = np.zeros_like(self.prior)
        np.add.at(message[:, 0], self.entries, -0.5 * np.diag(residual))
        np.add.at(message[:, 1], self.entries, 0.5 * transitions)
        return self.prior + message


class Dynamics(NamedTuple):
    """q of A and tau, as natural parameters."""

    A: Array
    tau: Array


@dataclass(frozen=True)
class Basis:
    """What the bound depends on under a linear change of the states.

    Attributes
    ----------
    sums, lines
        Of the states, and of the loadings of each table.
    prior
        Natural parameters of the prior of the rows of A.
    precision, now
        The precision of the steps, and q of A and tau as they are.
    """

    sums: StateSums
    lines: tuple[Lines, ...]
    prior: Array
    precision: StepPrecision
    now: Dynamics

    @property
    def size(self) -> int:
        """Length K of the states."""
        return len(self.sums.xx)

    @property
    def _rows_of_A(self) -> MvNormal:
        return MvNormal(self.size)

    def _coefficients(self, natural: Array) -> tuple[Array, Array]:
        """E[A] and the covariance of each of its rows."""
        size, found = self.size, self._rows_of_A.moments(natural)
        mean = found[:, :size]
        square = found[:, size:].reshape(-1, size, size)
        return mean, square - mean[:, :, None] * mean[:, None, :]

    def _residual(self, change: Array, mean: Array, cov: Array) -> Array:
        """E[sum of (x_t - A x_(t-1)) (x_t - A x_(t-1))'] of the changed states."""
        xx, xr, rr = (change @ s @ change.T for s in self.sums[:3])
        cross = mean @ xr.T
        scatter = np.diag(np.einsum("kij,ij->k", cov, rr))
        return np.asarray(xx - cross - cross.T + mean @ rr @ mean.T + scatter)

    def optimum(self, change: Array) -> Dynamics:
        """Return q of A and tau that are optimal for changed states."""
        xr, rr = (change @ s @ change.T for s in self.sums[1:3])
        natural = self.now.tau
        A = self.now.A
        for _ in range(1 if self.precision.family is None else PASSES):
            tau, _ = self.precision.moments(natural)
            A = self._best_rows(tau, xr, rr)
            found = self._residual(change, *self._coefficients(A))
            natural = self.precision.update(found, self.sums.transitions)
        return Dynamics(A, natural)

    def _best_rows(self, tau: Array, xr: Array, rr: Array) -> Array:
        """Return the optimum of all rows of A, whose means are coupled if tau is not diagonal."""
        size = self.size
        own = -2 * self.prior[:, size:].reshape(-1, size, size)
        precision = own + np.diag(tau)[:, None, None] * rr
        linear = self.prior[:, :size] + tau @ xr
        if (tau == np.diag(np.diag(tau))).all():
            return join(linear, -0.5 * flat(precision))
        whole = np.zeros((size, size, size, size))
        whole[np.arange(size), :, np.arange(size), :] = own
        whole += tau[:, None, :, None] * rr[None, :, None, :]
        mean = np.linalg.solve(whole.reshape(size**2, -1), linear.ravel()).reshape(size, size)
        return join(np.einsum("kij,kj->ki", precision, mean), -0.5 * flat(precision))

    def value(self, change: Array, q: Dynamics) -> tuple[float, Array]:
        """Return the terms of the bound that change, and their derivative with respect to R."""
        sums, size = self.sums, self.size
        back = np.linalg.inv(change)
        mean, cov = self._coefficients(q.A)
        tau, log_tau = self.precision.moments(q.tau)
        spread = mean.T @ tau @ mean + np.einsum("kij,k->ij", cov, np.diag(tau))
        residual = self._residual(change, mean, cov)
        total = 0.5 * (sums.transitions * log_tau - float(np.vdot(tau, residual)))
        slope = -tau @ change @ sums.xx - spread @ change @ sums.rr
        slope += tau @ mean @ change @ sums.xr.T + (tau @ mean).T @ change @ sums.xr
        total -= 0.5 * float(np.vdot(sums.precision, change @ sums.first @ change.T))
        total += float(np.vdot(sums.pull, change))
        slope += sums.pull - sums.precision @ change @ sums.first
        free = float(sums.rows)
        for lines in self.lines:
            free -= len(lines.mean)
            turned = np.einsum("ij,nik,kl->njl", back, lines.square, back, optimize=True)
            total -= 0.5 * float(np.vdot(lines.precision, turned))
            total += float(np.vdot(lines.linear, lines.mean @ back))
            inner = -np.einsum("nij,jk,nkl->il", lines.square, back, lines.precision, optimize=True)
            inner += lines.mean.T @ lines.linear
            slope -= back.T @ inner @ back.T
        total += free * float(np.linalg.slogdet(change)[1])
        slope += free * back.T
        total += float(_divergence(self._rows_of_A, self.prior, q.A))
        if self.precision.family is not None:
            total += float(_divergence(self.precision.family, self.precision.prior, q.tau))
        return total, np.asarray(slope).reshape(size, size)

    def best_change(self) -> tuple[Array, Dynamics] | None:
        """Return R and q of A and tau that raise the bound; None if hardly anything is gained."""
        from scipy.optimize import minimize  # takes longer to import than a small fit

        size = self.size

        def loss(vector: Array) -> tuple[float, Array]:
            change = vector.reshape(size, size)
            if not np.linalg.cond(change) < 1e8:
                return np.inf, np.zeros_like(vector)
            value, slope = self.value(change, self.optimum(change))
            return (before - value) / scale, -slope.ravel() / scale

        scale = float(max(self.sums.rows, 1))
        before, _ = self.value(np.eye(size), self.now)
        options = {"maxiter": STEPS, "ftol": 1e-12, "gtol": 1e-9}
        try:
            found = minimize(
                loss, np.eye(size).ravel(), jac=True, method="L-BFGS-B", options=options
            )
        except np.linalg.LinAlgError:
            return None
        change = np.asarray(found.x).reshape(size, size)
        if not (np.isfinite(change).all() and found.fun < -LEAST):
            return None
        return change, self.optimum(change)


def _divergence(family: Family, prior: Array, natural: Array) -> float:
    """Minus the KL divergence of q from its prior, up to a constant."""
    moments = family.moments(natural)
    return float((dot(prior - natural, moments) + family.log_partition(natural)).sum())

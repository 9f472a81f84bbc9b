"""Mean vectors that are linear expressions, and scaled matrices, against dense solves.

The theorems about messages and bounds hold for them too: see "vector means" in networks.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, linalg, stats
from scipy.special import gammaln

import svmp

from ..tools import fitted

RNG = np.random.default_rng(5)
N, P, D = 12, 3, 2
X, Y = RNG.normal(size=(N, P)), RNG.normal(size=(N, D))
NOISE = np.array([[1.0, 0.6], [0.6, 0.8]])
TAU = np.linalg.inv(NOISE)
PRIOR = 0.7


def truth(design: np.ndarray, y: np.ndarray, blocks: list[np.ndarray]) -> tuple[np.ndarray, float]:
    """Mean of a Gaussian posterior, and the bound of a q that factorises over blocks.

    All coefficients have precision PRIOR, and y = design @ coefficients + noise, stacked.
    """
    noise = np.kron(np.eye(len(y) // D), NOISE)
    weight = np.linalg.inv(noise)
    precision = PRIOR * np.eye(design.shape[1]) + design.T @ weight @ design
    mean = np.linalg.solve(precision, design.T @ weight @ y)
    covariance = design @ design.T / PRIOR + noise
    evidence = stats.multivariate_normal(np.zeros(len(y)), covariance).logpdf(y)
    parts = sum(np.linalg.slogdet(precision[np.ix_(b, b)])[1] for b in blocks)
    return mean, float(evidence - 0.5 * (parts - np.linalg.slogdet(precision)[1]))


def coefficients(kind: str) -> Any:
    """Declare coefficients of (P, D), with one of three factorised q."""
    if kind == "scalars":
        return svmp.Normal("B", mu=0, tau=PRIOR, dims=("feature", "out"))
    if kind == "by feature":
        return svmp.MvNormal("B", mu=0, tau=PRIOR * np.eye(D), dims=("feature", "out"))
    return svmp.MvNormal("B", mu=0, tau=PRIOR * np.eye(P), dims=("out", "feature"))


PLACES = np.arange(P * D).reshape(P, D)  # of coefficient (feature, out)
BLOCKS = {"scalars": [*PLACES.reshape(-1, 1)], "by feature": [*PLACES], "by output": [*PLACES.T]}


@pytest.mark.parametrize("kind", BLOCKS)
def test_multivariate_regression(kind: str) -> None:
    """The means are exact, and the gap of the bound is that of a factorised Gaussian."""
    with svmp.Model(coords={"feature": P, "out": D}) as model:
        mean = svmp.dot(X, coefficients(kind), dim="feature")
        svmp.MvNormal("y", mu=mean, tau=TAU, dims=("row", "out"), observed=Y)
    fit = fitted(model)
    mean, bound = truth(np.kron(X, np.eye(D)), Y.ravel(), BLOCKS[kind])
    found = fit.mean("B").T if kind == "by output" else fit.mean("B")
    np.testing.assert_allclose(found, mean.reshape(P, D), atol=1e-6)
    assert fit.bound == pytest.approx(bound, abs=1e-9)


def test_random_slopes_with_a_predictor_of_the_group() -> None:
    """Coefficients of groups around intercept + z * slope; all of it is one Gaussian."""
    groups, of = 4, np.array([0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3])
    z, y = np.array([-1.0, 0.5, 2.0, 0.0]), Y[:, 0]
    with svmp.Model(coords={"group": groups, "coef": D}) as model:
        intercept = svmp.MvNormal("intercept", mu=0, tau=PRIOR * np.eye(D), dims="coef")
        slope = svmp.MvNormal("slope", mu=0, tau=PRIOR * np.eye(D), dims="coef")
        beta = svmp.MvNormal("beta", mu=intercept + z * slope, tau=TAU, dims=("group", "coef"))
        svmp.Normal("y", mu=svmp.dot(X[:, :D], beta[of]), tau=1.0, observed=y)
    fit = fitted(model, tol=1e-15)
    read = np.zeros((N, groups, D))
    read[np.arange(N), of] = X[:, :D]
    read = read.reshape(N, -1)
    above = np.kron(np.column_stack([np.ones(groups), z]), np.eye(D))
    noise = read @ np.kron(np.eye(groups), NOISE) @ read.T + np.eye(N)
    design = read @ above
    precision = PRIOR * np.eye(2 * D) + design.T @ np.linalg.solve(noise, design)
    mean = np.linalg.solve(precision, design.T @ np.linalg.solve(noise, y)).reshape(2, D)
    np.testing.assert_allclose(fit.mean("intercept"), mean[0], atol=1e-5)
    np.testing.assert_allclose(fit.mean("slope"), mean[1], atol=1e-5)


@pytest.mark.parametrize("plain", [True, False])
def test_a_matrix_times_a_vector(plain: bool) -> None:
    """One hidden vector: q is the posterior and the bound the evidence."""
    matrix, offset, y = X[:D], np.array([1.0, 2.0]), Y[0]
    with svmp.Model(coords={"in": P, "out": D}) as model:
        x = svmp.MvNormal("x", mu=0, tau=PRIOR * np.eye(P), dims="in")
        named = matrix if plain else svmp.data(matrix, dims=("out", "in"))
        mean = svmp.dot(named, x) + offset
        svmp.MvNormal("y", mu=mean, tau=TAU, dims="out", observed=y)
    fit = fitted(model)
    mean, evidence = truth(matrix, y - offset, [np.arange(P)])
    np.testing.assert_allclose(fit.mean("x"), mean, atol=1e-10)
    assert fit.bound == pytest.approx(evidence, abs=1e-10)


def test_an_array_along_the_rows_needs_a_name_where_nothing_has_the_axis_of_the_vector() -> None:
    with svmp.Model(coords={"out": D}):
        a = svmp.Normal("a", mu=0, tau=1)
        with pytest.raises(svmp.ModelError, match=r"mu of 'y': .* name it with svmp.data"):
            svmp.MvNormal("y", a * X[:, 0], TAU, dims=("row", "out"), observed=Y)
        mean = a * svmp.data(X[:, 0], dims="row")
        svmp.MvNormal("y", mean, TAU, dims=("row", "out"), observed=Y)


def smoothness(count: int) -> np.ndarray:
    """Return a positive definite precision matrix of a random walk that starts near 0."""
    steps = np.eye(count) - np.eye(count, k=-1)
    return np.asarray(steps.T @ steps)


def test_a_gamma_times_a_fixed_matrix() -> None:
    """Observed vectors: the Gamma has a closed form, with d / 2 for each vector."""
    matrix, x = smoothness(4), RNG.normal(size=(3, 4))
    with svmp.Model(coords={"t": 4}) as model:
        g = svmp.Gamma("g", alpha=1.5, beta=0.7)
        svmp.MvNormal("x", mu=0.1, tau=2 * g * matrix, dims=("row", "t"), observed=x)
    fit = fitted(model)
    square = 2 * np.einsum("ri,ij,rj->", x - 0.1, matrix, x - 0.1)
    assert fit["g"].alpha == pytest.approx(1.5 + 6)
    assert fit["g"].beta == pytest.approx(0.7 + square / 2)
    log = 1.5 * np.log(0.7) - gammaln(1.5) + gammaln(7.5) - 7.5 * np.log(0.7 + square / 2)
    evidence = log + 6 * np.log(2 / (2 * np.pi)) + 1.5 * np.linalg.slogdet(matrix)[1]
    assert fit.bound == pytest.approx(evidence, abs=1e-10)


def test_a_random_walk_with_a_learned_scale() -> None:
    """E[x] beside quadrature over the exact posterior of the scale, and q(g) at its fixed point."""
    count, noise = 40, 4.0
    rng = np.random.default_rng(11)
    walk = np.cumsum(0.5 * rng.normal(size=count))
    y = walk + rng.normal(size=count) / np.sqrt(noise)
    matrix = smoothness(count)
    with svmp.Model(coords={"t": count}) as model:
        g = svmp.Gamma("g", alpha=2, beta=0.5)
        x = svmp.MvNormal("x", mu=0, tau=g * matrix, dims="t")
        svmp.Normal("y", mu=x, tau=noise, dims="t", observed=y)
    fit = fitted(model)
    covariance = np.linalg.inv(matrix)

    def joint(log_g: float) -> float:
        total = covariance / np.exp(log_g) + np.eye(count) / noise
        return float(
            stats.multivariate_normal(np.zeros(count), total).logpdf(y)
            + stats.gamma.logpdf(np.exp(log_g), 2, scale=2.0)
            + log_g
        )

    grid = np.linspace(-2, 5, 141)
    log = np.array([joint(v) for v in grid])
    weight = np.exp(log - log.max())
    evidence = np.log(integrate.simpson(weight, x=grid)) + log.max()
    weight /= weight.sum()
    means = [linalg.solve(np.exp(v) * matrix + noise * np.eye(count), noise * y) for v in grid]
    assert 0 < evidence - fit.bound < 1
    np.testing.assert_allclose(fit.mean("x"), weight @ means, atol=0.05)
    square = fit.mean("x") @ matrix @ fit.mean("x")
    square += np.trace(np.linalg.solve(fit.mean("g") * matrix + noise * np.eye(count), matrix))
    assert fit["g"].alpha == pytest.approx(2 + count / 2)
    assert fit["g"].beta == pytest.approx(0.5 + square / 2)


def test_an_intrinsic_prior_in_the_basis_of_its_eigenvectors() -> None:
    """A walk without a start, in deviations from a level: as the limit of small ridges."""
    count, y = 6, np.array([1.0, 2.0, 2.5, 4.0, 3.0, 5.0])
    steps = np.diff(np.eye(count), axis=0)
    singular = steps.T @ steps
    with svmp.Model(coords={"t": count}):
        g = svmp.Gamma("g", alpha=2, beta=1)
        with pytest.raises(svmp.ModelError, match="rank 5 of 6"):
            svmp.MvNormal("x", mu=0, tau=g * singular, dims="t")
    values, vectors = np.linalg.eigh(singular)
    with svmp.Model(coords={"t": count, "basis": count - 1}) as model:
        level = svmp.Normal("level", mu=0, tau=1e-6)
        z = svmp.MvNormal("z", mu=0, tau=3.0 * np.diag(values[1:]), dims="basis")
        svmp.Normal("y", mu=level + svmp.dot(vectors[:, 1:], z), tau=2, dims="t", observed=y)
    fit = fitted(model)
    found = fit.mean("level") + vectors[:, 1:] @ fit.mean("z")
    exact = np.linalg.solve(3.0 * singular + 2 * np.eye(count), 2 * y)
    np.testing.assert_allclose(found, exact, atol=1e-5)

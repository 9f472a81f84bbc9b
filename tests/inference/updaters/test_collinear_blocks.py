"""Joint blocks of nearly collinear terms, against exact rational arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import svmp


def solved(matrix: list[list[Fraction]]) -> tuple[list[list[Fraction]], Fraction]:
    """Inverse and determinant, by elimination without rounding."""
    size, det = len(matrix), Fraction(1)
    rows = [[*row, *(Fraction(int(i == j)) for j in range(size))] for i, row in enumerate(matrix)]
    for column in range(size):
        det *= (pivot := rows[column][column])
        rows[column] = [value / pivot for value in rows[column]]
        for other in range(size):
            if other != column and (factor := rows[other][column]):
                rows[other] = [
                    a - factor * b for a, b in zip(rows[other], rows[column], strict=True)
                ]
    return [row[size:] for row in rows], det


def log(value: Fraction) -> float:
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    return shift * math.log(2) + math.log(float(value / Fraction(2) ** shift))


@dataclass
class Regression:
    """y ~ Normal(X b, tau), b ~ Normal(0, prior)."""

    X: np.ndarray
    y: np.ndarray
    prior: np.ndarray
    tau: float

    def model(self) -> svmp.Model:
        with svmp.Model() as model:
            b = [svmp.Normal(f"b{i}", mu=0, tau=float(t)) for i, t in enumerate(self.prior)]
            mean = sum((b[i] * self.X[:, i] for i in range(1, len(b))), b[0])
            svmp.Normal("y", mu=mean, tau=self.tau, observed=self.y)
        return model

    def exact(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Sds of coefficients, variances of the means of rows, and the log evidence."""
        X = [[Fraction(float(v)) for v in row] for row in self.X]
        y, tau = [Fraction(float(v)) for v in self.y], Fraction(float(self.tau))
        prior, each = [Fraction(float(v)) for v in self.prior], range(self.X.shape[1])
        P = [[tau * sum(row[i] * row[j] for row in X) for j in each] for i in each]
        for i in each:
            P[i][i] += prior[i]
        S, det = solved(P)
        g = [tau * sum(row[i] * v for row, v in zip(X, y, strict=True)) for i in each]
        m = [sum(S[i][j] * g[j] for j in each) for i in each]
        off = [v - sum(row[i] * m[i] for i in each) for row, v in zip(X, y, strict=True)]
        square = tau * sum(r * r for r in off) + sum(prior[i] * m[i] ** 2 for i in each)
        evidence = 0.5 * (len(y) * math.log(self.tau / (2 * math.pi)) - float(square))
        evidence += 0.5 * (sum(map(log, prior)) - log(det))
        var = [float(sum(r[i] * S[i][j] * r[j] for i in each for j in each)) for r in X]
        sd = [math.sqrt(float(S[i][i])) for i in each]
        return np.array(sd), np.array(var), evidence


def regression(seed: int) -> Regression:
    """Columns that differ by 1e-9 to 1 of their size, in units from 1e-8 to 1e8."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 30)), int(rng.integers(2, 5))
    X = rng.normal(size=(n, 1)) @ rng.normal(size=(1, d)) + rng.choice([0, 100.0])
    X = X + 10.0 ** rng.uniform(-9, 0) * rng.normal(size=(n, d))
    X = np.c_[np.ones(n), X * 10.0 ** rng.uniform(-8, 8, size=d)]
    prior, tau = 10.0 ** rng.uniform(-8, 4, size=d + 1), 10.0 ** rng.uniform(-8, 8)
    theta = rng.normal(size=d + 1) / np.sqrt(prior) * rng.choice([0.0, 1.0])
    return Regression(X, X @ theta + rng.normal(size=n) / np.sqrt(tau), prior, tau)


def inflation(problem: Regression) -> float:
    """The largest variance of a coefficient, over the one given all others."""
    sd, _, _ = problem.exact()
    return float(np.max(sd**2 * (problem.tau * (problem.X**2).sum(axis=0) + problem.prior)))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_joint_fits_are_exact_or_refused(seed: int) -> None:
    problem = regression(seed)
    model, (sd, var, evidence) = problem.model(), problem.exact()
    far = np.sqrt(problem.tau) * np.abs(problem.y).max()
    if inflation(problem) > 1e12 or far > 1e9:
        with pytest.raises(svmp.ModelError, match=r"tell the terms|from 0"):
            svmp.fit(model, joint="auto")
        return
    try:
        fit = svmp.fit(model, joint="auto")
    except svmp.ModelError:
        assert inflation(problem) > 1e10 or far > 1e6
        return
    if fit.joint:
        found = np.array([float(fit.std(f"b{i}")) for i in range(len(sd))])
        assert found == pytest.approx(sd, rel=1e-3)
        assert fit.predict(model, "y", noise=False).var == pytest.approx(var, rel=1e-3)
        lost = len(var) * far**2 * 1e-15  # digits of E[mu^2]
        assert fit.bound == pytest.approx(evidence, rel=1e-5, abs=0.01 + lost)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_terms_that_rows_do_not_tell_apart_are_named(scale: float) -> None:
    z = np.random.default_rng(0).normal(size=40)
    with svmp.Model(coords={"k": 3}) as model:
        a = svmp.Normal("a", mu=0, tau=1)
        b = svmp.Normal("b", mu=0, tau=1e-16 * scale**2, dims="k")
        c = svmp.Normal("c", mu=0, tau=1)
        X = np.c_[scale * z, z**2, scale * z * (1 + 1e-14)]
        svmp.Normal("y", mu=a + c * z**3 + svmp.dot(X, b), tau=1, observed=z)
    with pytest.raises(svmp.ModelError, match=r"tell the terms 'b'\[0\], 'b'\[2\] apart"):
        svmp.fit(model, joint="auto")


def test_rows_that_are_far_from_zero_are_refused() -> None:
    """Their E[mu^2] has no digits of a variance: the bound came out 1e5 nats too low."""
    x = 1e9 * np.arange(30.0)
    with svmp.Model() as model:
        a = svmp.Normal("a", mu=0, tau=1e-24)
        b = svmp.Normal("b", mu=0, tau=1e-24)
        svmp.Normal("y", mu=a + b * x, tau=1, observed=3 * x)
    with pytest.raises(svmp.ModelError, match=r"rows of 'y' have means .* deviations from 0"):
        svmp.fit(model, joint="auto")


def test_collinear_vectors_are_refused_by_name_where_they_are_corrected() -> None:
    """A product with a vector of coefficients converges, and has no more digits than a block."""
    z = np.random.default_rng(1).normal(size=12)
    with svmp.Model(coords={"k": 4}) as model:
        X = np.c_[np.ones(12), z, z + 1e-9 * z**2, z + 1e-9 * z**3]
        b = svmp.MvNormal("b", mu=0, tau=1e-6 * np.eye(4), dims="k")
        svmp.Normal("y", mu=svmp.dot(X, b), tau=1e8, observed=z)
    fit = svmp.fit(model)
    assert (fit.predict(model, "y", noise=False).var >= 0).all()
    assert "b" in str(fit.summary())
    with pytest.raises(svmp.ModelError, match="'b'"):
        fit.corrected(model)


def test_separable_logits_too_far_from_0_are_refused_with_a_remedy_for_logits() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 3))
    with svmp.Model(coords={"row": 60}) as model:
        w = [svmp.Normal(f"w{i}", mu=0, tau=1e-60) for i in range(3)]
        logit = w[0] * x[:, 0] + w[1] * x[:, 1] + w[2] * x[:, 2]
        svmp.Bernoulli("y", logit=logit, dims="row", observed=(x[:, 0] > 0) * 1)
    with pytest.raises(svmp.ModelError, match=r"logits of 'y' lie .* stronger priors"):
        svmp.fit(model, joint="auto")

"""Bernoullis with logits against integrals, the equations of the textbook, and scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit, log_expit
from sklearn.linear_model import LogisticRegression

import svmp

from .tools import fitted


def data(rows: int = 60, features: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A design with an intercept, and outcomes."""
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(rows), rng.normal(size=(rows, features - 1))])
    outcome = rng.random(rows) < expit(design @ rng.normal(0, 1.5, features))
    return design, outcome.astype(int)


def regression(x: np.ndarray, y: np.ndarray, full: bool = True, tau: float = 1.0) -> svmp.Model:
    d = x.shape[1]
    with svmp.Model(coords={"feature": d}) as model:
        if full:
            w = svmp.MvNormal("w", mu=0, tau=tau * np.eye(d), dims="feature")
        else:
            w = svmp.Normal("w", mu=0, tau=tau, dims="feature")
        svmp.Bernoulli("y", logit=svmp.dot(x, w), observed=y)
    return model


# --- against the evidence -------------------------------------------------------------------


def log_evidence(x: np.ndarray, y: np.ndarray, tau: float) -> float:
    """log of the integral over w ~ Normal(0, 1 / tau) of the likelihood of logits w x."""
    sign, sd = 2 * y - 1, tau**-0.5

    def joint(w: float) -> float:
        return float(np.exp(log_expit(sign * w * x).sum() + stats.norm.logpdf(w, 0, sd)))

    return float(np.log(integrate.quad(joint, -12 * sd, 12 * sd, epsabs=0, limit=400)[0]))


def best_tangents(x: np.ndarray, y: np.ndarray, tau: float) -> float:
    """The highest bound over tangents: log of the integral with the tangent of each row.

    Each xi is optimised in turn on the closed form of the integral.
    """
    xi = np.ones(len(x))
    for _ in range(5000):
        weight = np.tanh(xi / 2) / (2 * xi)
        precision = tau + (weight * x**2).sum()
        mean = ((y - 0.5) * x).sum() / precision
        xi = np.abs(x) * np.sqrt(mean**2 + 1 / precision)
    height = (weight * xi**2 / 2 - np.log(2 * np.cosh(xi / 2))).sum()
    return float(0.5 * np.log(tau / precision) + 0.5 * precision * mean**2 + height)


@pytest.mark.parametrize("rows", [1, 4, 30])
@pytest.mark.parametrize("tau", [0.1, 1.0, 10.0])
def test_the_bound_of_one_weight_is_the_optimum_over_tangents(rows: int, tau: float) -> None:
    x, y = np.linspace(-2, 1.5, rows), np.arange(rows) % 3 == 0
    with svmp.Model() as model:
        w = svmp.Normal("w", mu=0, tau=tau)
        svmp.Bernoulli("y", logit=w * x, observed=y)
    bound, exact = fitted(model).bound, log_evidence(x, y, tau)
    assert bound == pytest.approx(best_tangents(x, y, tau), abs=1e-9)
    assert exact - 0.4 < bound < exact


def test_many_rows_that_agree_leave_almost_no_gap() -> None:
    """Where w is almost known, the tangents touch at all of its mass."""
    x, y = np.ones(20_000), np.arange(20_000) % 4 == 0
    with svmp.Model() as model:
        w = svmp.Normal("w", mu=0, tau=1)
        svmp.Bernoulli("y", logit=w * x, observed=y)
    fit = fitted(model)
    assert fit.mean("w") == pytest.approx(-np.log(3), abs=1e-3)
    exact = 5000 * np.log(0.25) + 15_000 * np.log(0.75) + stats.norm.logpdf(np.log(3))
    exact += 0.5 * np.log(2 * np.pi / (20_000 * 3 / 16 + 1))  # Laplace, which is exact here
    assert exact - 0.3 < fit.bound < exact + 1e-3


# --- against the textbook equations ---------------------------------------------------------


def bishop(x: np.ndarray, y: np.ndarray, tau: float, full: bool) -> tuple[Any, Any, float]:
    """Bishop (2006), section 10.6: mean, precision and bound at convergence.

    If q is factorised, the variances are the inverse of the diagonal of the precision, at the same
    mean.
    """
    d = x.shape[1]
    xi = np.ones(len(x))
    for _ in range(3000):
        lam = np.tanh(xi / 2) / (4 * xi)
        precision = tau * np.eye(d) + 2 * (x.T * lam) @ x
        mean = np.linalg.solve(precision, x.T @ (y - 0.5))
        precision = precision if full else np.diag(np.diag(precision))
        cov = np.linalg.inv(precision)
        xi = np.sqrt(np.einsum("nd,de,ne->n", x, cov + np.outer(mean, mean), x))
    likelihood = ((y - 0.5) * (x @ mean) - np.log(2 * np.cosh(xi / 2))).sum()
    prior = -0.5 * tau * (mean @ mean + np.trace(cov)) + 0.5 * d * np.log(tau / (2 * np.pi))
    entropy = 0.5 * np.linalg.slogdet(2 * np.pi * np.e * cov)[1]
    return mean, cov, float(likelihood + prior + entropy)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("tau", [0.05, 2.0])
def test_regression_matches_the_textbook_updates(full: bool, tau: float) -> None:
    x, y = data()
    mean, cov, bound = bishop(x, y, tau, full)
    fit = fitted(regression(x, y, full, tau))
    np.testing.assert_allclose(fit.mean("w", corrected=False), mean, rtol=1e-5)
    assert fit.bound == pytest.approx(bound, rel=1e-9)
    if full:
        np.testing.assert_allclose(
            np.linalg.inv(fit.posteriors["w"].tau), cov, rtol=1e-5, atol=1e-8
        )
    else:
        np.testing.assert_allclose(1 / fit.posteriors["w"].tau, np.diag(cov), rtol=1e-5)


def test_with_many_rows_the_mean_is_that_of_scikit_learn() -> None:
    """The penalised optimum, from which the mean of q differs by less than a standard deviation."""
    x, y = data(3000, 4, seed=1)
    fit = fitted(regression(x, y, tau=1.0), tol=1e-9)
    other = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10).fit(x, y).coef_[0]
    spread = np.sqrt(np.diag(np.linalg.inv(fit["w"].tau)))
    assert np.abs(fit.mean("w") - other).max() < 0.3 * spread.max()


# --- applications ---------------------------------------------------------------------------


def test_abilities_and_difficulties_are_recovered() -> None:
    """Rasch's item response model, on simulated answers."""
    rng = np.random.default_rng(4)
    ability, difficulty = rng.normal(size=400), rng.normal(size=30)
    right = rng.random((400, 30)) < expit(ability[:, None] - difficulty)
    with svmp.Model(coords={"person": 400, "item": 30}) as model:
        a = svmp.Normal("a", mu=0, tau=svmp.Gamma("between", alpha=1, beta=1), dims="person")
        b = svmp.Normal("b", mu=0, tau=0.1, dims="item")
        svmp.Bernoulli("right", logit=a - b, dims=("person", "item"), observed=right)
    fit = svmp.fit(model, svmp.FullVB())
    assert np.corrcoef(fit.mean("b"), difficulty)[0, 1] > 0.98
    assert np.corrcoef(fit.mean("a"), ability)[0, 1] > 0.9


def test_a_hidden_outcome_is_given_by_its_logit_and_does_not_affect_it() -> None:
    """q of a leaf g is sigma(E[z]); z does not depend on it."""
    with svmp.Model() as model:
        z = svmp.Normal("z", mu=1.0, tau=2.0)
        svmp.Normal("seen", mu=z, tau=1.0, observed=0.5)
        svmp.Bernoulli("g", logit=z)
    fit = fitted(model)
    mean, variance = fit.mean("z"), fit.var("z")
    assert fit.mean("g") == pytest.approx(expit(mean))
    assert 1 / variance == pytest.approx(3)
    assert mean / variance == pytest.approx(2 * 1.0 + 0.5)


@pytest.mark.parametrize(
    "method", [svmp.Batch(20), svmp.Children(4), svmp.Growing(first=0.3), None], ids=str
)
def test_sampled_runs_end_near_full_vb(method: Any) -> None:
    x, y = data(200, 2, seed=2)
    model = regression(x, y, full=False)
    full = fitted(model)
    fit = svmp.fit(model, method, max_sweeps=15)
    assert fit.bound == pytest.approx(full.bound, abs=1)
    assert fit.bound <= full.bound + 1e-6


def test_the_score_of_held_out_rows_is_the_mean_of_their_bounds() -> None:
    x, y = data(80, 3, seed=3)
    out = np.arange(80) % 4 == 0
    with svmp.Model(coords={"feature": 3}) as model:
        w = svmp.MvNormal("w", mu=0, tau=np.eye(3), dims="feature")
        svmp.Bernoulli("y", logit=svmp.dot(x, w), observed=y, missing=out)
    fit = fitted(model, held_out={"y": np.where(out, y, np.nan)})
    mean, cov = fit.mean("w", corrected=False), np.linalg.inv(fit.posteriors["w"].tau)
    xi = np.sqrt((x @ mean) ** 2 + np.einsum("nd,de,ne->n", x, cov, x))
    bound = (y - 0.5) * (x @ mean) - np.log(2 * np.cosh(xi / 2))
    assert fit.trace["held_out"][-1] == pytest.approx(bound[out].mean())
    nodes = np.random.default_rng(0).multivariate_normal(mean, cov, 4000)
    predicted = np.log(expit((2 * y - 1) * (nodes @ x.T)).mean(axis=0))
    assert bound[out].mean() < predicted[out].mean()


def test_a_run_resumed_from_a_checkpoint_gives_the_same_bits(tmp_path: Any) -> None:
    model = regression(*data(), full=False)
    whole = svmp.fit(model, svmp.Batch(10), max_sweeps=6, tol=0)
    svmp.fit(model, svmp.Batch(10), max_sweeps=3, tol=0, checkpoint=tmp_path / "run")
    rest = svmp.fit(model, resume=tmp_path / "run", max_sweeps=6)
    assert np.array_equal(rest["w"].natural, whole["w"].natural)
    other = regression(*data(seed=9), full=False)
    with pytest.raises(svmp.SvmpError, match="y"):
        svmp.fit(other, resume=tmp_path / "run", max_sweeps=6)


def test_logits_of_any_size_stay_finite() -> None:
    """Logits of 0 and of thousands, which fit the rows perfectly or not at all."""
    x = np.array([0.0, 1e-9, 3000.0, -3000.0, 40.0])
    with svmp.Model() as model:
        w = svmp.Normal("w", mu=1, tau=1e6)
        svmp.Bernoulli("y", logit=w * x, observed=[0, 1, 1, 1, 1])
    fit = svmp.fit(model, svmp.FullVB())
    assert np.isfinite(fit.bound)
    assert fit.status == "converged"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"observed": [0, 2]}, "family Bernoulli"),
        ({"observed": [0, 0.5]}, "family Bernoulli"),
        ({"observed": [0, np.nan]}, "missing=True"),
        ({"observed": [0, 1], "p": 0.5}, "Bernoulli takes p, logit: give one of them"),
        ({"observed": [0, 1], "logit": None}, "Bernoulli takes p, logit: give one of them"),
    ],
)
def test_bad_input_is_refused(given: dict[str, Any], words: str) -> None:
    with svmp.Model():
        z = svmp.Normal("z", mu=0, tau=1)
        with pytest.raises(svmp.ModelError, match=words):
            svmp.Bernoulli("g", **{"logit": z, **given})


def test_a_logit_that_is_not_linear_in_normals_is_refused() -> None:
    with svmp.Model():
        rate = svmp.Gamma("rate", alpha=1, beta=1)
        with pytest.raises(svmp.ModelError, match="a mean or logit needs"):
            svmp.Bernoulli("g", logit=rate, observed=[0, 1])

"""Binomials with logits against the Bernoullis that they are sums of, and against integrals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, gammaln

import svmp

from .tools import fitted

DOSE, TRIALS, DEAD = np.array([-0.86, -0.3, -0.05, 0.73]), np.array([5, 5, 6, 0]), [0, 1, 3, 0]


def lines(trials: np.ndarray, dose: np.ndarray, dead: list[int] | None) -> svmp.Model:
    with svmp.Model(coords={"row": len(dose)}) as model:
        level = svmp.Normal("level", mu=0.3, tau=0.5)
        slope = svmp.Normal("slope", mu=1, tau=0.1)
        logit = level + slope * dose
        svmp.Binomial("dead", n=trials, logit=logit, dims="row", observed=dead)
    return model


def test_trials_are_bernoullis_with_the_same_logit() -> None:
    """q is the same, and the bound differs by the number of orders of the outcomes."""
    row = np.repeat(np.arange(4), TRIALS)
    outcome = np.concatenate([np.arange(n) < k for n, k in zip(TRIALS, DEAD, strict=True)])
    with svmp.Model() as model:
        level = svmp.Normal("level", mu=0.3, tau=0.5)
        slope = svmp.Normal("slope", mu=1, tau=0.1)
        svmp.Bernoulli("dead", logit=level + slope * DOSE[row], observed=outcome)
    ours, each = fitted(lines(TRIALS, DOSE, DEAD)), fitted(model)
    for name in ("level", "slope"):
        assert ours.mean(name) == pytest.approx(each.mean(name), abs=1e-7)
        assert ours.var(name) == pytest.approx(each.var(name), abs=1e-9)
    dead = np.array(DEAD)
    orders = (gammaln(TRIALS + 1) - gammaln(dead + 1) - gammaln(TRIALS - dead + 1)).sum()
    assert ours.bound == pytest.approx(each.bound + orders, abs=1e-9)


def test_predictions_match_integrals_over_the_logit() -> None:
    fit = fitted(lines(TRIALS, DOSE, DEAD))
    trials, dose = np.array([1, 20, 3000, 0]), np.array([0.5, 0.2, -1.0, 2.0])
    rows = lines(trials, dose, None)
    found = fit.predict(rows, "dead", corrected=False)
    part = fit.predict(rows, "dead", corrected=False, noise=False)
    assert found.exact
    for i, (n, x) in enumerate(zip(trials, dose, strict=True)):
        mean = fit.mean("level", corrected=False) + x * fit.mean("slope", corrected=False)
        sd = np.sqrt(fit.var("level", corrected=False) + x**2 * fit.var("slope", corrected=False))
        z = mean + sd * np.linspace(-9, 9, 4001)
        weight = stats.norm.pdf(z, mean, sd)
        weight /= weight.sum()
        p = expit(z)
        first = n * (p @ weight)
        assert found.mean[i] == pytest.approx(first, rel=1e-6)
        spread = n**2 * ((p**2) @ weight) - first**2
        assert part.var[i] == pytest.approx(spread, rel=1e-5, abs=1e-12)
        assert found.var[i] == pytest.approx(spread + n * ((p * (1 - p)) @ weight), rel=1e-5)
        for k in {0, n // 3, n}:
            exact = stats.binom.cdf(k, n, p) @ weight
            assert found.cdf([k] * 4)[i] == pytest.approx(exact, abs=1e-6)
        middle = n * expit(mean)
        assert part.quantile(0.5)[i] == pytest.approx(middle, rel=1e-9)


@pytest.mark.parametrize("given", [{}, {"p": 0.5, "logit": 0.0}])
def test_one_of_p_and_logit_is_needed(given: dict[str, float]) -> None:
    with svmp.Model(), pytest.raises(svmp.ModelError, match="give one of p and logit"):
        svmp.Binomial("x", n=3, observed=[1], **given)


def test_linear_response_and_importance_weights_know_them() -> None:
    model = lines(TRIALS, DOSE, DEAD)
    fit = fitted(model)
    wider = fit.covariance(["level", "slope"], model=model)
    assert np.all(
        np.diag(wider.matrix)
        > [fit.var("level", corrected=False), fit.var("slope", corrected=False)]
    )
    assert fit.khat(model) < 0.7

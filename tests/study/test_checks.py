"""Claims 8 and 9 hold up to rounding, and the checks detect errors."""

from __future__ import annotations

import numpy as np
import pytest

from svmp.study import checks, claims


@pytest.mark.parametrize("seed", range(3))
def test_the_sampled_update_is_unbiased(seed):
    error, samples = checks.bias(seed)
    assert error < 1e-12
    assert samples > 50


@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_is_the_covariance_times_the_natural_gradient(seed):
    error, factors = checks.gradient_error(seed)
    assert error < 1e-7
    assert factors == checks.FACTORS * (checks.USERS + checks.ITEMS)


def test_the_fisher_matrix_is_block_diagonal():
    assert checks.fisher_off_diagonal() < 1e-12


def test_the_covariance_agrees_with_draws():
    natural = np.array([1.2, -0.8])
    tau = -2 * natural[1]
    x = np.random.default_rng(0).normal(natural[0] / tau, tau**-0.5, 400_000)
    assert checks.covariance(natural) == pytest.approx(np.cov([x, x**2]), rel=0.02)


def test_a_wrong_covariance_is_detected(monkeypatch):
    monkeypatch.setattr(checks, "covariance", lambda natural: np.eye(2))
    assert claims.natural_gradient().verdict == "differs"


def test_a_biased_sample_is_detected(monkeypatch):
    assert claims.unbiased().verdict == "holds"
    monkeypatch.setattr(checks, "combinations", lambda items, size: [tuple(items)[:size]])
    assert claims.unbiased().verdict == "differs"

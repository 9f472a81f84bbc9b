"""Claims 8 and 9 hold up to rounding, the checks detect errors, and verdicts follow from runs."""

from __future__ import annotations

from fractions import Fraction

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


def cell(method: str, option: str, size: int, **tried: str) -> dict:
    """A search whose runs ended so; the names of first steps begin with "_"."""
    ends = {name[1:].replace("_", "/"): end for name, end in tried.items()}
    good = [float(Fraction(name)) for name, end in ends.items() if end == "converged"]
    largest = max(good, default=None)
    return {"method": method, "option": option, "size": size, "rho1": largest, "tried": ends}


@pytest.mark.parametrize(
    ("end", "verdict"),
    [
        ("converged", "holds"),
        ("slow", "undecided"),
        ("diverged", "differs"),
        ("far off", "differs"),
    ],
)
def test_a_verdict_on_a_first_step_is_about_the_run_from_it(end, verdict):
    """Where the threshold lies is a figure beside the paper's, and no verdict."""
    searched = [cell("children", "a", 1, _1="diverged", _1_64="converged", _1_512=end)]
    claim = claims.first_step(3, searched, "a")
    assert (claim.verdict, "1/64" in claim.evidence) == (verdict, True)
    assert claims.first_step(4, searched, "b").verdict == "not run"


@pytest.mark.parametrize(
    ("unit", "small", "verdict"),
    [
        ("diverged", "converged", "holds"),
        ("converged", "converged", "differs"),
        ("far off", "slow", "undecided"),
        ("diverged", "diverged", "differs"),
    ],
)
def test_batches_together_need_small_first_steps(unit, small, verdict):
    searched = [cell("batch", "b", 500, _1=unit, _1_32=small)]
    assert claims.batches_together(searched).verdict == verdict
    assert claims.batches_together([]).verdict == "not run"

"""Predictions of small networks have the covariances of linear response by default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmp
from svmp.posterior.uncertainty import small

pytestmark = pytest.mark.by_size

X = np.random.default_rng(0).normal(size=12) + 2.0
Y = 1 + X + np.random.default_rng(1).normal(size=12)
NEW = np.array([0.0, 3.0])


def line(x: Any, y: Any = None) -> svmp.Model:
    with svmp.Model(coords={"row": len(x)}) as model:
        a = svmp.Normal("a", mu=0, tau=0.5)
        b = svmp.Normal("b", mu=0, tau=1)
        svmp.Normal("y", mu=a + b * np.asarray(x), tau=2, dims="row", observed=y)
    return model


def fitted() -> svmp.Fit:
    """The fit of a model that nobody holds."""
    return svmp.fit(line(X, Y), svmp.FullVB(), tol=1e-13)


def exact() -> Any:
    design, new = (np.column_stack([np.ones(len(x)), x]) for x in (X, NEW))
    cov = np.linalg.inv(np.diag([0.5, 1]) + 2 * design.T @ design)
    return new @ cov @ new.T + np.eye(2) / 2


def test_predictions_of_a_line_are_those_of_its_exact_posterior(tmp_path: Path) -> None:
    fit = fitted()
    fit.save(tmp_path / "fit.svmp")
    for each in (fit, svmp.load(tmp_path / "fit.svmp")):
        found = each.predict(line(NEW), "y")
        np.testing.assert_allclose(found.var, np.diag(exact()), rtol=1e-5)
        assert "covariances of linear response" in repr(found)
    draws = found.draw(10_000, seed=0)
    np.testing.assert_allclose(np.cov(draws.T), exact(), atol=0.04)


def test_q_alone_on_request_and_where_the_network_is_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fit = fitted()
    found = fit.predict(line(NEW), "y", corrected=False)
    own = 0.5 + fit.posteriors["a"].var + fit.posteriors["b"].var * NEW**2
    np.testing.assert_allclose(found.var, own)
    assert found.covariances == "q"
    monkeypatch.setattr(small, "LARGEST", 1)
    large = fitted()
    np.testing.assert_allclose(large.predict(line(NEW), "y").var, own)
    with pytest.raises(svmp.ModelError, match="linear response needs model="):
        large.predict(line(NEW), "y", corrected=True)
    with pytest.raises(svmp.ModelError, match="corrected must be True, False or None, not 'yes'"):
        fit.predict(line(NEW), "y", corrected="yes")  # type: ignore[arg-type]


def test_a_fit_without_a_fixed_point_predicts_under_q() -> None:
    fit = svmp.fit(line(X, Y), svmp.FullVB(), max_sweeps=1)
    assert fit.predict(line(NEW), "y").covariances == "q"


def test_a_joint_q_is_used_as_it_is() -> None:
    fit = svmp.fit(line(X, Y), joint="auto")
    found = fit.predict(line(NEW), "y")
    assert found.covariances == "a joint block"
    np.testing.assert_allclose(found.var, np.diag(exact()), rtol=1e-6)


def test_products_of_two_corrected_variables_are_drawn_together() -> None:
    """u and v are known by their product alone, which is known better than they are."""

    def declare(y: Any = None) -> svmp.Model:
        with svmp.Model(coords={"row": 6}) as model:
            u = svmp.Normal("u", mu=1, tau=1)
            v = svmp.Normal("v", mu=1, tau=1)
            svmp.Normal("y", mu=u * v, tau=4.0, dims="row", observed=y)
        return model

    y = np.array([2.0, 2.5, 1.5, 2.2, 1.8, 2.0])
    fit = svmp.fit(declare(y), svmp.FullVB(), tol=1e-13)
    found = fit.predict(declare(), "y", noise=False)
    grid = np.linspace(-6, 8, 1401)
    u, v = np.meshgrid(grid, grid)
    log_p = -((u - 1) ** 2 + (v - 1) ** 2) / 2 - 2 * ((y[:, None, None] - u * v) ** 2).sum(axis=0)
    weight = np.exp(log_p - log_p.max()) * (u > 0)  # the mode that q is at
    weight /= weight.sum()
    mean = (weight * u * v).sum()
    sd = np.sqrt((weight * (u * v - mean) ** 2).sum())
    assert found.std[0] == pytest.approx(sd, rel=0.05)
    draws = found.draw(4000, seed=0)
    assert draws[:, 0].std() == pytest.approx(sd, rel=0.06)
    assert np.corrcoef(draws.T)[0, 1] > 0.98  # all rows have the same mean
    assert fit.predict(declare(), "y", noise=False, corrected=False).std[0] > 1.3 * sd


def test_the_size_of_a_network_decides() -> None:
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        svmp.Normal("y", mu=mu, tau=1, observed=np.zeros(1_000_000))
    assert svmp.fit(model, svmp.FullVB()).predict(model, "y").covariances == "q"

"""One rule for the sds that a fit shows: every call shows the same, and says what they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmp

from .test_linear_response import GROUP, SIDE, Y, mixture, schools

pytestmark = pytest.mark.by_size


def pair() -> svmp.Model:
    """Two coefficients of one row: q has variances of 1/2, the posterior of 2/3."""
    with svmp.Model() as model:
        a, b = svmp.Normal("a", mu=0, tau=1), svmp.Normal("b", mu=0, tau=1)
        svmp.Normal("y", mu=a + b, tau=1, observed=[3.0])
    return model


def sds(fit: svmp.Fit, model: svmp.Model, name: str, **how: Any) -> dict[str, Any]:
    """Return the sd of a number as every call shows it, draws with the error of their number."""
    drawn = fit.draw([name], 20_000, seed=1, **how)[name]
    q = fit.posterior(name, **how)
    lower, upper = fit.predict(model, name, **how).interval(0.9)
    (row,) = (r for r in fit.summary(prob=0.9, **how).rows if r[0] == name)
    arviz = fit.to_arviz(draws=20_000, seed=2, **how)["posterior"][name].values
    axes = fit.plot_posterior(name, **how)
    label = str(axes[0].get_xlabel())
    found = {
        "var": np.sqrt(fit.var(name, **how)),
        "std": fit.std(name, **how),
        "posterior": q.std,
        "covariance": fit.covariance(name, **how).std(name),
        "to_frame": fit.to_frame(name, **how)["sd"][0],
        "all numbers": fit.to_frame(**how).set_index("variable")["sd"][name],
        "summary frame": fit.summary(kind="frame", **how).set_index("variable")["sd"][name],
        "xarray": fit.to_xarray(**how)[name].sel(statistic="sd").item(),
        "predict": fit.predict(model, name, **how).std,
    }
    near = {"draw": drawn.std(), "arviz": arviz.std(), "posterior.draw": q.draw(20_000, 3).std()}
    own = float(q.std)
    for what, sd in found.items():
        assert float(sd) == pytest.approx(own, rel=1e-9), what
    for what, sd in near.items():
        assert float(sd) == pytest.approx(own, rel=0.06), what
    assert float(row[4]) == pytest.approx(own, rel=1e-3)
    np.testing.assert_allclose([lower, upper], q.interval(0.9), rtol=1e-6)
    assert f"from {lower:.3g} to {upper:.3g}" in label
    return {"sd": own, "kind": q.covariances, "label": label}


@pytest.mark.parametrize("name", ["mu", "tau"])
def test_every_call_shows_the_sds_of_linear_response(name: str, tmp_path: Path) -> None:
    model = schools()
    fit = svmp.fit(model)
    found, own = sds(fit, model, name), sds(fit, model, name, corrected=False)
    assert found["kind"] == fit.covariances == "linear response"
    assert own["kind"] == "q"
    assert "by linear response" in found["label"]
    assert found["sd"] > 1.5 * own["sd"]
    assert own["sd"] == float(fit.posteriors[name].std)
    assert found["sd"] == float(fit[name].std) == float(fit.corrected()[name].std)
    assert "linear response" in repr(fit[name])
    assert "linear response" not in repr(fit.posteriors[name])
    assert fit.to_frame(name).attrs["covariances"] == "linear response"
    assert fit.to_frame(name, corrected=False).attrs["covariances"] == "q"
    assert fit.to_xarray().attrs["covariances"] == "linear response"
    fit.save(tmp_path / "fit.svmp")
    loaded = svmp.load(tmp_path / "fit.svmp")
    assert sds(loaded, model, name)["sd"] == pytest.approx(found["sd"], rel=1e-12)
    assert sds(loaded, model, name, corrected=False)["sd"] == own["sd"]
    assert str(loaded) == str(fit)
    fit.corrected().save(tmp_path / "corrected.svmp")
    corrected = svmp.load(tmp_path / "corrected.svmp")
    assert corrected.covariances == "linear response"
    assert sds(corrected, model, name)["sd"] == pytest.approx(found["sd"], rel=1e-9)
    with pytest.raises(svmp.ModelError, match="those of q are in the fit that it was made from"):
        corrected.std(name, corrected=False)


def test_a_joint_q_shows_its_own() -> None:
    model = schools()
    fit = svmp.fit(model, joint=[("mu", "theta")])
    assert fit["theta"].covariances == "a joint block"
    assert fit["tau"].covariances == "linear response"  # a precision of its rows
    assert fit.covariances == "linear response and a joint block"
    assert sds(fit, model, "mu")["kind"] == "a joint block"
    assert fit["tau"].std > fit.posteriors["tau"].std


def refused(tmp_path: Path) -> list[tuple[svmp.Fit, str]]:
    """Fits that have no linear response, and what they say of it."""
    early = svmp.fit(schools(), svmp.FullVB(), max_sweeps=1)
    early.save(tmp_path / "early.svmp")
    model = mixture()
    init = {"mu": {"mu": np.zeros(2), "tau": np.ones(2)}, "z": np.full((30, 2), 0.5)}
    order = svmp.FullVB(order=["p", "mu", "tau", "z"])
    with np.errstate(all="ignore"):
        saddle = svmp.fit(model, order, init=init, tol=1e-12, kernels=False)
    with svmp.Model(coords={"group": 4, "side": 3, "k": 2}) as ridge:
        u = svmp.MvNormal("u", mu=np.zeros(2), tau=np.eye(2), dims=("group", "k"))
        v = svmp.MvNormal("v", mu=np.zeros(2), tau=np.eye(2), dims=("side", "k"))
        svmp.Normal("y", mu=svmp.dot(u[GROUP], v[SIDE]), tau=4.0, observed=2 * Y)
    return [
        (early, "not at a fixed point"),
        (svmp.load(tmp_path / "early.svmp"), "not at a fixed point"),
        (saddle, "saddle point"),
        (svmp.fit(ridge, svmp.FullVB(), tol=1e-12, max_sweeps=3000), "on a ridge"),
    ]


def test_where_linear_response_is_refused_nothing_shows_it(tmp_path: Path) -> None:
    for fit, reason in refused(tmp_path):
        assert fit.covariances == "q"
        assert reason in str(fit)
        for name, q in fit.posteriors.items():
            assert np.array_equal(fit[name].natural, q.natural)
        with pytest.raises(svmp.ModelError, match=reason):
            fit.summary(corrected=True)


def test_parts_and_updates_show_those_of_q() -> None:
    def declare(y: Any) -> svmp.Model:
        with svmp.Model() as model:
            a, b = svmp.Normal("a", mu=0, tau=1), svmp.Normal("b", mu=0, tau=1)
            svmp.Normal("y", mu=a + b, tau=1, observed=y)
        return model

    rows = [np.array([3.0, 1.0]), np.array([2.0])]
    parts = svmp.fit(svmp.Parts(declare, rows, shared=["a", "b"]), svmp.FullVB())
    fit = svmp.fit(declare(rows[0]))
    updated = fit.update(declare(rows[1]))
    assert fit.covariances == "linear response"
    for found, reason in ((parts, "in parts"), (updated, "is an update")):
        assert found.covariances == found["a"].covariances == "q"
        assert found["a"].std == found.posteriors["a"].std == pytest.approx(0.5)
        assert reason in str(found)
        with pytest.raises(svmp.ModelError, match=reason):
            found.std("a", corrected=True)
    # What an update starts from is q, whose sum is that of one fit to all rows.
    assert updated["a"].natural[0, 1] == pytest.approx(fit.posteriors["a"].natural[0, 1] - 0.5)


def line(y: Any) -> svmp.Model:
    """A group without rows, under a mean that is not known."""
    with svmp.Model(coords={"group": 3}) as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        tau = svmp.Gamma("tau", alpha=5, beta=4)
        u = svmp.Normal("u", mu=mu, tau=tau, dims="group")
        svmp.Normal("y", mu=u[np.array([0, 0, 1])], tau=1, observed=y)
    return model


@pytest.mark.parametrize("loaded", [False, True])
def test_a_group_without_rows_is_as_uncertain_as_its_prediction(
    loaded: bool, tmp_path: Path
) -> None:
    model = line([1.0, 2.0, 0.0])
    fit = svmp.fit(model, tol=1e-12)
    if loaded:
        fit.save(tmp_path / "fit.svmp")
        fit = svmp.load(tmp_path / "fit.svmp")
    alpha, beta = fit["tau"].alpha, fit["tau"].beta
    expected = np.sqrt(beta / (alpha - 1) + fit["mu"].var)
    assert fit["u"].std[2] == pytest.approx(expected, rel=1e-9)
    assert fit.predict(model, "u").std[2] == pytest.approx(expected, rel=1e-9)
    drawn = fit.draw(["mu", "u"], 20_000, seed=0)
    found = np.cov(drawn["mu"], drawn["u"][:, 2])
    assert found[0, 1] == pytest.approx(fit["mu"].var, rel=0.1)
    assert np.sqrt(found[1, 1]) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("declare", [pair, schools])
def test_wrong_requests_are_refused(declare: Callable[[], svmp.Model]) -> None:
    fit = svmp.fit(declare())
    name = next(iter(fit.posteriors))
    for call in (fit.std, fit.var, fit.mean, fit.posterior, fit.to_frame, fit.plot_posterior):
        with pytest.raises(svmp.ModelError, match="corrected must be True, False or None"):
            call(name, corrected="yes")  # type: ignore[operator]
    with pytest.raises(svmp.ModelError, match="method= or corrected=, not both"):
        fit.covariance(name, method="q", corrected=True)


def test_checks_of_a_small_network_need_no_model() -> None:
    fit = svmp.fit(schools())
    assert fit.khat(seed=1) == fit.khat(schools(), seed=1)
    with pytest.raises(svmp.ModelError, match="model="):
        replace(fit, _kept=None).khat()

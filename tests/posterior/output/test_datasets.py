"""xarray and ArviZ: dims, labels, moments and draws."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import xarray
from scipy import stats

import svmp

from ..labelled import DAYS, GROUPS, WHO, labelled


def test_means_and_sds_have_dims_and_labels() -> None:
    _, fit = labelled()
    data = fit.to_xarray()
    assert data["u"].sel(who="Bo", statistic="mean") == fit.mean("u")[1]
    np.testing.assert_array_equal(
        data["grid"].sel(statistic="sd", day=np.datetime64(DAYS[1]), who="Cy"),
        fit["grid"].std[1, 2],
    )
    assert data["matrix"].dims == ("statistic", "part", "part_2")
    assert data["z"].dims == ("statistic", "row", "part")
    assert data["z"].sel(part="high", statistic="mean").shape == (4,)
    assert data["group"].dims == ("statistic", "group_dim")  # a variable has the name of its dim
    assert data["group_dim"].values.tolist() == GROUPS
    assert data.attrs["bound"] == fit.bound
    for name in fit.posteriors:
        np.testing.assert_array_equal(data[name].sel(statistic="mean"), fit.mean(name))
    assert list(fit.to_xarray("p").data_vars) == ["p"]


def test_draws_are_those_of_the_fit() -> None:
    _, fit = labelled()
    data = fit.to_xarray(draws=7, seed=3)
    for name, draws in fit.draw(list(fit.posteriors), 7, 3).items():
        np.testing.assert_array_equal(data[name], draws)
        assert data[name].dims[0] == "draw"
    assert data["z"].dims == ("draw", "row")
    assert data["u"]["who"].values.tolist() == WHO


DATA = {"log_likelihood", "posterior_predictive", "observed_data"}


def groups(found: Any) -> set[str]:
    """Return the names of the groups of a DataTree, or of an InferenceData."""
    return set(found.children if isinstance(found, xarray.DataTree) else found.groups())


def test_arviz_reads_the_draws() -> None:
    arviz = pytest.importorskip("arviz")
    _, fit = labelled()
    found = fit.to_arviz(["u", "p"], draws=400, seed=0)
    assert groups(found) == {*DATA, "posterior", "trace"}
    assert found.posterior["u"].dims == ("chain", "draw", "who")
    np.testing.assert_array_equal(found.trace["bound"], fit.trace["bound"])
    extracted = arviz.extract(found, var_names="u")
    np.testing.assert_allclose(extracted.sel(who="Ann").mean(), fit.mean("u")[0], atol=0.15)


def test_leave_one_out_scores_of_arviz_are_those_of_the_posterior() -> None:
    arviz = pytest.importorskip("arviz")
    y = np.random.default_rng(0).normal(1, 1, 30)
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=0.01)
        svmp.Normal("y", mu=mu, tau=1, observed=y)
    found = arviz.loo(svmp.fit(model).to_arviz(draws=4000, seed=0))
    precision = 0.01 + 29
    exact = stats.norm((y.sum() - y) / precision, np.sqrt(1 + 1 / precision)).logpdf(y).sum()
    assert found.elpd_loo == pytest.approx(exact, abs=0.1)


def test_log_likelihoods_are_those_of_the_draws() -> None:
    _, fit = labelled()
    found = fit.to_arviz(draws=5, seed=2)
    u = found.posterior["u"].values[0]
    y = found.observed_data["y"].values
    np.testing.assert_array_equal(y, [1.0, 2.0, 4.0, -1.0, 0.0, 1.0])
    expected = stats.norm(u[:, [0, 0, 1, 2, 2, 2]], 1).logpdf(y)
    np.testing.assert_allclose(found.log_likelihood["y"].values[0], expected)
    np.testing.assert_array_equal(u, fit.to_arviz("u", draws=5, seed=2).posterior["u"].values[0])


def test_predictive_draws_belong_to_the_draws_of_their_parents() -> None:
    with svmp.Model(coords={"group": 400}) as model:
        mean = svmp.Normal("mean", mu=0, tau=0.0001, dims="group")
        svmp.Normal("y", mu=mean, tau=100, dims="group", observed=np.zeros(400))
    found = svmp.fit(model).to_arviz(model=model, draws=1000, seed=0)
    around = found.posterior_predictive["y"].values[0] - found.posterior["mean"].values[0]
    np.testing.assert_allclose(around.std(axis=1), 0.1, rtol=0.2)
    assert abs(around.mean()) < 0.002


def test_rows_of_a_mixture_have_the_likelihood_of_the_mixture() -> None:
    x = np.array([-2.0, -1.5, 1.0, 2.5])
    with svmp.Model(coords={"row": 4, "kind": 2}) as model:
        weight = svmp.Dirichlet("weight", a=[2, 1], dims="kind")
        z = svmp.Categorical("z", p=weight, dims="row")
        mu = svmp.Normal("mu", mu=0, tau=1, dims="kind")
        svmp.Mixture("x", z, svmp.Normal.dist(mu=mu, tau=1), dims="row", observed=x)
    found = svmp.fit(model, svmp.FullVB(), max_sweeps=3, tol=0).to_arviz(draws=3, seed=0)
    mu, weight = (found.posterior[name].values[0] for name in ("mu", "weight"))
    for place in range(3):
        density = weight[place] * stats.norm(mu[place], 1).pdf(x[:, None])
        likelihood = found.log_likelihood["x"].values[0, place]
        np.testing.assert_allclose(likelihood, np.log(density.sum(axis=1)))


def test_missing_rows_have_predictions_and_no_likelihood() -> None:
    arviz = pytest.importorskip("arviz")
    with svmp.Model(coords={"row": ["a", "b", "c"]}) as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        y = [1.0, np.nan, 2.0]
        svmp.Normal("y", mu=mu, tau=1, dims="row", observed=y, missing=True)
    found = svmp.fit(model).to_arviz(draws=500, seed=0)
    assert found.log_likelihood["y"].dims == ("chain", "draw", "y_observed")
    assert found.log_likelihood["y_observed"].values.tolist() == [0, 2]
    assert found.posterior_predictive["y"].dims == ("chain", "draw", "row")
    assert np.isfinite(found.posterior_predictive["y"].sel(row="b")).all()
    assert np.isnan(found.observed_data["y"].sel(row="b"))
    assert np.isfinite(arviz.loo(found).elpd_loo)


def test_large_networks_have_these_groups_with_their_model() -> None:
    with svmp.Model(coords={"group": 2000}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims="group")
        svmp.Poisson("n", mu=svmp.Gamma("rate", alpha=2, beta=1), dims="group", observed=[3] * 2000)
        svmp.Normal("y", mu=u, tau=1, dims="group", observed=np.ones(2000))
    fit = svmp.fit(model)
    assert groups(fit.to_arviz(draws=3)) == {"posterior", "trace"}
    found = fit.to_arviz("rate", model=model, draws=3, seed=0)
    assert groups(found) == {*DATA, "posterior", "trace"}
    rate = found.posterior["rate"].values[0]
    expected = np.broadcast_to(stats.poisson(rate).logpmf(3)[:, None], (3, 2000))
    np.testing.assert_allclose(found.log_likelihood["n"].values[0], expected)
    with pytest.raises(svmp.ModelError, match="give fewer draws=, or leave out model="):
        fit.to_arviz(model=model, draws=6000)


def test_states_of_a_chain_are_draws_too() -> None:
    y = np.array([0.0, 0.2, 3.0, 3.1])
    with svmp.Model(coords={"time": 4, "state": 2, "next": 2}) as model:
        init = svmp.Dirichlet("init", a=[1, 1], dims="state")
        move = svmp.Dirichlet("move", a=[1, 1], dims=("state", "next"))
        z = svmp.DiscreteMarkovChain("z", init=init, P=move, dims="time")
        mu = svmp.Normal("mu", mu=[0.0, 3.0], tau=4, dims="state")
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=1), dims="time", observed=y)
    found = svmp.fit(model).to_arviz(model=model, draws=4, seed=0)
    mu, z = found.posterior["mu"].values[0], found.posterior["z"].values[0].astype(int)
    expected = stats.norm(np.take_along_axis(mu, z, axis=1), 1).logpdf(y)
    np.testing.assert_allclose(found.log_likelihood["y"].values[0], expected)


def test_names_of_axes_are_refused_as_dims() -> None:
    with svmp.Model(coords={"draw": 2}) as model:
        svmp.Normal("x", mu=0, tau=1, dims="draw")
        svmp.Normal("y", mu=0, tau=1, observed=[1.0])
    with pytest.raises(svmp.ModelError, match="'draw' of 'x' has the name of an axis"):
        svmp.fit(model).to_xarray(draws=2)


@pytest.mark.parametrize(
    ("module", "call", "says"),
    [
        ("xarray", lambda fit: fit.to_xarray(), r"svmp\[xarray\]"),
        ("arviz", lambda fit: fit.to_arviz(), r"svmp\[arviz\]"),
        ("pandas", lambda fit: fit.to_frame("u"), "needs pandas: pip install pandas"),
        ("polars", lambda fit: fit.to_frame("u", backend="polars"), "needs polars"),
    ],
)
def test_absent_libraries_are_named(module, call, says, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    _, fit = labelled()
    with pytest.raises(svmp.SvmpError, match=says):
        call(fit)

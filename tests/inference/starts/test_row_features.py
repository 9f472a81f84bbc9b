"""Mixtures of every family start at clusters of rows, and so find well separated components."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import svmp
from svmp.inference.starts.row_features import row_features
from svmp.inference.starts.start import start
from svmp.network.network import Network

N, K = 90, 3
Component = Callable[[], Any]


def kinds() -> np.ndarray:
    return np.arange(N) % K


def mixture(component: Component, y: Any, *more: str, **options: Any) -> svmp.Model:
    sizes = {"row": N, "k": K, "item": 4, "category": 3, "axis": 2}
    with svmp.Model(coords=sizes) as model:
        share = svmp.Dirichlet("share", a=1, dims="k")
        z = svmp.Categorical("z", p=share, dims="row")
        svmp.Mixture("y", z, component(), dims=("row", *more), observed=y, **options)
    return model


def normals() -> Any:
    return svmp.Normal.dist(
        mu=svmp.Normal("mu", 0, 1e-8, dims=("k", "item")), tau=svmp.Gamma("tau", 1, 1)
    )


def vectors() -> Any:
    mu = svmp.MvNormal("mu", mu=0, tau=1e-3 * np.eye(2), dims=("k", "axis"))
    tau = svmp.Wishart("tau", nu=2, V=np.eye(2), dims=("k", "axis", "axis"))
    return svmp.MvNormal.dist(mu=mu, tau=tau)


def rates() -> Any:
    return svmp.Poisson.dist(mu=svmp.Gamma("rate", 1, 0.1, dims="k"))


def waits() -> Any:
    return svmp.Exponential.dist(lam=svmp.Gamma("rate", 1, 1, dims=("k", "item")))


def answers() -> Any:
    return svmp.Bernoulli.dist(p=svmp.Beta("p", 1, 1, dims=("k", "item")))


def trials() -> Any:
    return svmp.Binomial.dist(n=np.arange(20, 20 + N), p=svmp.Beta("p", 1, 1, dims="k"))


def choices() -> Any:
    return svmp.Categorical.dist(p=svmp.Dirichlet("p", a=1, dims=("k", "item", "category")))


def counts() -> Any:
    return svmp.Multinomial.dist(n=30, p=svmp.Dirichlet("p", a=1, dims=("k", "category")))


def draw(component: Component) -> tuple[Any, tuple[str, ...]]:
    """Return values of components that are far apart, and the dims of a row."""
    rng, kind = np.random.default_rng(0), kinds()
    shares = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]])
    ones = rng.random((N, 4)) < np.array([[0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 0]])[kind]
    found = {
        normals: (1000 * kind[:, None] + 5 * rng.normal(size=(N, 4)), ("item",)),
        vectors: (9 * np.eye(K)[kind, :2] + rng.normal(size=(N, 2)), ("axis",)),
        rates: (rng.poisson(np.array([1, 30, 200])[kind]), ()),
        waits: (rng.exponential(10.0 ** (3 * kind)[:, None], (N, 4)), ("item",)),
        answers: (ones, ("item",)),
        trials: (rng.binomial(np.arange(20, 20 + N), np.array([0.05, 0.5, 0.95])[kind]), ()),
        choices: (np.where(rng.random((N, 4)) < 0.95, kind[:, None], 0), ("item",)),
        counts: (np.stack([rng.multinomial(30, shares[k]) for k in kind]), ("category",)),
    }
    return found[component]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "component", [normals, vectors, rates, waits, answers, trials, choices, counts]
)
def test_separate_components_are_found(component: Component, seed: int) -> None:
    y, more = draw(component)
    fit = svmp.fit(mixture(component, y, *more), seed=seed, max_sweeps=40)
    found = fit.mean("z").argmax(axis=1)
    together = found[:, None] == found
    assert np.mean(together == (kinds()[:, None] == kinds())) > 0.97


def features(model: svmp.Model) -> np.ndarray:
    network = Network(model)
    return row_features(network, start(network, 0), "z", np.arange(N))


def test_missing_values_have_the_mean_of_their_column() -> None:
    y = np.random.default_rng(1).normal(size=(N, 4))
    y[0, 2] = np.nan
    found = features(mixture(normals, y, "item", missing=True))
    assert found.shape == (N, 4)
    assert found[0, 2] == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-12)


def test_order_of_rows_in_a_long_table_does_not_matter() -> None:
    y, _ = draw(answers)
    order = np.random.default_rng(2).permutation(4 * N)
    person, item = np.divmod(order, 4)
    with svmp.Model(coords={"row": N, "k": K, "item": 4}) as model:
        z = svmp.Categorical("z", p=svmp.Dirichlet("share", a=1, dims="k"), dims="row")
        p = svmp.Beta("p", 1, 1, dims=("item", "k"))
        svmp.Mixture("y", z[person], svmp.Bernoulli.dist(p=p[item]), observed=y[person, item])
    np.testing.assert_array_equal(features(model), features(mixture(answers, y, "item")))


def test_means_with_covariates_are_not_compared() -> None:
    x = np.random.default_rng(3).normal(size=(N, 2))

    def lines() -> Any:
        w = svmp.MvNormal("w", mu=0, tau=np.eye(2), dims=("k", "axis"))
        return svmp.Normal.dist(
            mu=svmp.dot(svmp.data(x, dims=("row", "axis")), w, dim="axis"), tau=1
        )

    assert features(mixture(lines, x[:, 0])).shape == (N, 0)

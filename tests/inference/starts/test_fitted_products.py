"""Products that start at fits of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import svmp
from svmp.inference.starts.fitted_products import SAMPLE, SMALL, fitted_terms
from svmp.inference.starts.start import start
from svmp.network.network import Network

SIZES = {"a": 9, "b": 8, "c": 7, "d": 6}


def planted(
    kind: str = "three", seed: int = 0, rows: int = 1500, noise: float = 0.5, prior: float = 0.0
) -> svmp.Model:
    """Declare a product of variables over data that have one."""
    rng = np.random.default_rng(seed)
    dims = {"four": "abcd", "pair": "ab", "factors": "ab"}.get(kind, "abc")
    keys = {dim: rng.integers(SIZES[dim], size=rows) for dim in dims}
    width = 1 if kind == "alone" else 2
    truth = np.prod([rng.normal(size=(SIZES[d], width))[keys[d]] for d in dims], axis=0)
    y = truth.sum(axis=1) + noise * rng.normal(size=rows)
    with svmp.Model(coords={**SIZES, "k": width}) as model:
        found: list[Any] = []
        for dim in dims:
            if kind == "alone":
                x: Any = svmp.Normal(f"x_{dim}", mu=prior, tau=1, dims=dim)
            elif kind in ("vectors", "factors") or (kind == "mixed" and dim == "b"):
                x = svmp.MvNormal(f"x_{dim}", mu=prior, tau=np.eye(2), dims=(dim, "k"))
            else:
                x = svmp.Normal(f"x_{dim}", mu=prior, tau=1, dims=(dim, "k"))
            found.append(x[keys[dim]])
        mu = found[0]
        for x in found[1:]:
            mu = mu * x
        mu = mu if kind == "alone" else mu.sum("k")
        if kind == "bias":
            y = y + 5 + rng.normal(size=9)[keys["a"]]
            mu = mu + svmp.Normal("bias", mu=0, tau=0.01, dims="a")[keys["a"]]
        tau = svmp.Gamma("tau", alpha=1, beta=0.1)
        svmp.Normal("y", mu=mu, tau=tau, observed=y)
    return model


@pytest.mark.parametrize(
    "kind", ["three", "four", "vectors", "mixed", "alone", "bias", "pair", "factors"]
)
@pytest.mark.parametrize("method", [None, svmp.FullVB()], ids=["default", "full VB"])
def test_no_run_ends_where_a_product_is_zero(kind: str, method: Any) -> None:
    """The noise that is found is that of the data: 0.5, not that of data without a product."""
    for seed in range(3):
        fit = svmp.fit(planted(kind, seed), method, seed=seed, max_sweeps=40)
        assert 1 / np.sqrt(fit.mean("tau")) == pytest.approx(0.5, abs=0.06)


def test_starts_are_near_the_optimum_in_any_unit() -> None:
    for unit in (1e-2, 1.0, 1e2):
        model = planted(seed=4)
        network = Network(model)
        table = network.observed["y"]
        table.observed = unit * table.values
        q = start(network, 0)
        means = {n: q.moments[f"x_{n}"][:, 0].reshape(-1, 2) for n in "abc"}
        (term,) = fitted_terms(network)["y"]
        keys = [r.element(table.rows, 0 * table.rows) // 2 for r in term.readers]
        product = np.prod([means[n][k] for n, k in zip("abc", keys, strict=True)], axis=0)
        left = table.values - product.sum(axis=1)
        assert np.var(left) < 0.5 * np.var(table.values)


def test_given_starts_and_prior_means_are_kept() -> None:
    network = Network(planted())
    given = start(network, 1, {"x_a": 0.5})
    np.testing.assert_allclose(given.moments["x_a"][:, 0], 0.5)
    assert (
        np.abs(given.moments["x_b"][:, 0]).max()
        < 0.5 * np.abs(start(network, 1).moments["x_b"][:, 0]).max()
    )
    for prior in (0.7, -0.7):
        q = start(Network(planted(prior=prior)), 1)
        assert np.sign(q.moments["x_a"][:, 0].mean()) == np.sign(prior)


def test_the_same_seed_gives_the_same_start() -> None:
    model = planted(rows=SAMPLE + 1000)  # a sample of the rows is read
    one, same, other = (start(Network(model), seed) for seed in (1, 1, 2))
    for name in ("x_a", "x_b", "x_c"):
        np.testing.assert_array_equal(one.natural[name], same.natural[name])
        assert (one.natural[name] != other.natural[name]).all()


def test_which_terms_are_fitted() -> None:
    def fitted(model: svmp.Model) -> list[list[str]]:
        found = fitted_terms(Network(model))
        return [
            [r.variable.name for r in term.readers] for terms in found.values() for term in terms
        ]

    assert fitted(planted("four")) == [["x_a", "x_b", "x_c", "x_d"]]
    assert fitted(planted("bias")) == [["bias"], ["x_a", "x_b", "x_c"]]
    assert fitted(planted("pair")) == [["x_a", "x_b"]]
    assert fitted(planted("pair", rows=2 * (9 + 8))) == [["x_a", "x_b"]]
    assert fitted(planted("pair", rows=2 * (9 + 8) - 1)) == []  # fewer rows than numbers
    assert fitted(planted("pair", rows=SMALL + 1)) == []
    assert fitted(planted(rows=SMALL + 1)) == [["x_a", "x_b", "x_c"]]
    with svmp.Model(coords={"a": 5}) as model:
        x = svmp.Normal("x", mu=0, tau=1, dims="a")
        z = svmp.Normal("z", mu=0, tau=1, dims="a")
        s = svmp.Normal("s", mu=0, tau=1)
        svmp.Normal("two", mu=x * z, tau=1, dims="a", observed=np.ones(5))
        svmp.Normal("three", mu=x * z * s, tau=1, dims="a", observed=np.ones(5))
    assert fitted(model) == []  # x and z are in both tables


def test_parts_start_at_the_fits_of_the_largest() -> None:
    rng = np.random.default_rng(8)
    rows = 900
    a, b, c = (rng.normal(size=(n, 2)) for n in (30, 8, 7))
    table = {"a": rng.integers(30, size=rows), "b": rng.integers(8, size=rows)}
    table["c"] = rng.integers(7, size=rows)
    signal = (a[table["a"]] * b[table["b"]] * c[table["c"]]).sum(axis=1)
    table["y"] = signal + 0.3 * rng.normal(size=rows)

    def declare(part: Any) -> svmp.Model:
        with svmp.Model(
            coords={"a": part.labels("a"), "b": range(8), "c": range(7), "k": 2}
        ) as model:
            u = svmp.Normal("u", mu=0, tau=1, dims=("a", "k"))
            v = svmp.Normal("v", mu=0, tau=1, dims=("b", "k"))
            w = svmp.Normal("w", mu=0, tau=1, dims=("c", "k"))
            tau = svmp.Gamma("tau", alpha=1, beta=0.1)
            mu = (u[part.keys("a")] * v[part.b] * w[part.c]).sum("k")
            svmp.Normal("r", mu=mu, tau=tau, observed=part.y)
        return model

    fit = svmp.fit(svmp.Parts(declare, svmp.split(table, by="a", parts=3)), max_sweeps=40)
    assert 1 / np.sqrt(fit.mean("tau")) == pytest.approx(0.3, abs=0.05)

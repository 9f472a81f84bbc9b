"""CP factorization: each update written as explicit sums, and gaps as absent rows."""

from __future__ import annotations

import numpy as np
import pytest

import svmp

from .formulas import (
    assert_never_falls,
    gamma_mean,
    gamma_mean_log,
    gamma_term,
    normal_density,
    normal_entropy,
)

FACTORS = 3
NAMES = ("a", "b", "c", "alpha", "tau")


@pytest.fixture(scope="module")
def tensor(script):
    y, _ = script.data()
    return y[:15]


@pytest.fixture(scope="module")
def begin(tensor):
    rng = np.random.default_rng(8)
    means = {
        n: rng.normal(size=(size, FACTORS)) for n, size in zip("abc", tensor.shape, strict=True)
    }
    return {
        **{name: {"mu": mean, "tau": 1.0} for name, mean in means.items()},
        "alpha": {"alpha": 1.0, "beta": 1.0},
        "tau": {"alpha": 2.0, "beta": 1.0},
    }


def by_hand(y, init, sweeps):
    """Sums over the observed entries, one factor of one mode at a time."""
    there = ~np.isnan(y)
    y = np.where(there, y, 0)
    mean = {name: init[name]["mu"].copy() for name in "abc"}
    var = {name: np.ones_like(mean[name]) for name in "abc"}
    alpha, tau = (np.ones(FACTORS), np.ones(FACTORS)), (2.0, 1.0)
    modes = {"a": "ijl,j,l->i", "b": "ijl,i,l->j", "c": "ijl,i,j->l"}
    for _ in range(sweeps):
        t = gamma_mean(tau)
        for name, sums in modes.items():
            others = [n for n in "abc" if n != name]
            prior = gamma_mean(alpha) if name == "c" else np.ones(FACTORS)
            for k in range(FACTORS):
                rest = y.copy()
                for j in range(FACTORS):
                    if j != k:
                        rest -= np.einsum("i,j,l->ijl", *(mean[n][:, j] for n in "abc"))
                second = [(mean[n] ** 2 + var[n])[:, k] for n in others]
                var[name][:, k] = 1 / (prior[k] + t * np.einsum(sums, there * 1.0, *second))
                first = [mean[n][:, k] for n in others]
                mean[name][:, k] = var[name][:, k] * t * np.einsum(sums, there * rest, *first)
        size = len(mean["c"])
        alpha = (np.full(FACTORS, 1 + size / 2), 0.1 + (mean["c"] ** 2 + var["c"]).sum(0) / 2)
        guess = np.einsum("ik,jk,lk->ijl", *mean.values())
        spread = np.einsum("ik,jk,lk->ijl", *(mean[n] ** 2 + var[n] for n in "abc"))
        spread -= np.einsum("ik,jk,lk->ijl", *(mean[n] ** 2 for n in "abc"))
        square = ((y - guess) ** 2 + spread)[there]
        tau = (1 + there.sum() / 2, 0.1 + square.sum() / 2)
    bound = normal_density(square, gamma_mean(tau), gamma_mean_log(tau))
    bound += sum(normal_density(mean[n] ** 2 + var[n], 1.0) for n in "ab")
    bound += normal_density(mean["c"] ** 2 + var["c"], gamma_mean(alpha), gamma_mean_log(alpha))
    bound += sum(normal_entropy(v) for v in var.values())
    return mean, var, tau, bound + gamma_term(1, 0.1, alpha) + gamma_term(1, 0.1, tau)


def test_sweeps_and_bound_match_the_formulas(script, tensor, begin):
    mean, var, tau, bound = by_hand(tensor, begin, sweeps=3)
    network = script.model(tensor, FACTORS)
    fit = svmp.fit(network, svmp.FullVB(), init=begin, max_sweeps=3, tol=0)
    for name in "abc":
        np.testing.assert_allclose(fit.mean(name), mean[name], rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(fit.var(name), var[name], rtol=1e-9)
    assert fit["tau"].beta == pytest.approx(tau[1], rel=1e-10)
    assert fit.bound == pytest.approx(bound, rel=1e-11)
    assert_never_falls(fit.trace["bound"])


def test_gaps_are_the_same_as_absent_rows(script, tensor, begin):
    there = ~np.isnan(tensor)
    i, j, l = np.nonzero(there)  # noqa: E741
    sizes = dict(zip(("sample", "antigen", "receptor"), tensor.shape, strict=True))
    with svmp.Model(coords={**sizes, "factor": FACTORS}) as table:
        tau = svmp.Gamma("tau", alpha=1, beta=0.1)
        alpha = svmp.Gamma("alpha", alpha=1, beta=0.1, dims="factor")
        a = svmp.Normal("a", mu=0, tau=1, dims=("sample", "factor"))
        b = svmp.Normal("b", mu=0, tau=1, dims=("antigen", "factor"))
        c = svmp.Normal("c", mu=0, tau=alpha, dims=("receptor", "factor"))
        svmp.Normal("y", mu=(a[i] * b[j] * c[l]).sum("factor"), tau=tau, observed=tensor[there])
    gaps, rows = (
        svmp.fit(network, svmp.FullVB(), init=begin, max_sweeps=5, tol=0)
        for network in (script.model(tensor, FACTORS), table)
    )
    for name in NAMES:
        np.testing.assert_allclose(gaps[name].natural, rows[name].natural, rtol=1e-9, atol=1e-9)
    assert gaps.bound == pytest.approx(rows.bound, rel=1e-12)


def test_hidden_entries_are_predicted(script, monkeypatch, tmp_path):
    """On the simulated data, with three factors and noise 0.4."""
    monkeypatch.setattr(script, "SHARED", tmp_path)
    y, whole = script.data(samples=40)
    network = script.model(y, factors=3)
    fits = [svmp.fit(network, svmp.FullVB(), seed=seed, max_sweeps=60) for seed in range(3)]
    best = max(fits, key=lambda fit: fit.bound)
    hidden = np.isnan(y)
    error = np.sqrt(np.mean((script.predict(best) - whole)[hidden] ** 2))
    assert 0.35 < error < 0.5

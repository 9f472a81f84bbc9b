"""How much is forgotten is learned: q(k) by quadrature, streams with and without a change."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

import svmp
from svmp.families import Gamma, Normal
from svmp.posterior.updating.forgetting import CHANGE, POWER, share_of

FIRST = {"Gamma": (Gamma(), [-1.0, 1.0]), "Normal": (Normal(), [0.0, -0.005])}


def taught(name, rows):
    """Return S of rows with mean 5 (and variance 1), and a sum of messages of ten more rows."""
    row = {"Gamma": (-1.0, 5.0), "Normal": (5.0, -0.5)}[name]
    return rows * np.array(row), np.array(row)


@pytest.mark.parametrize("shift", [0.0, 0.5, 4.0])
@pytest.mark.parametrize("rows", [3, 100, 3000])
@pytest.mark.parametrize("name", FIRST)
def test_q_of_the_share_by_quadrature(name, rows, shift):
    """Its normaliser, its mean and the probability of a change, by adaptive integration."""
    family, eta = FIRST[name][0], np.array(FIRST[name][1])
    evidence, row = taught(name, rows)
    moved = row * [1, 1 + shift / 5] if name == "Gamma" else row * [1 + shift / 5, 1]
    moments = family.moments(eta + evidence / (1 + shift * rows / 10) + 10 * moved)

    def ratio(k):
        return float(family.log_partition(eta + k * evidence) - family.log_partition(eta))

    def g(k):
        return k * float(evidence @ moments) - ratio(k)

    found = share_of(float(evidence @ moments), ratio)
    grid = np.linspace(0, 1, 161)
    top = max(g(v**POWER) for v in grid)
    slab = slab_mean = 0.0

    def density(points):
        return np.exp(np.array([g(v**POWER) for v in points]) - top)

    for low, high in pairwise(grid):
        slab += integrate.fixed_quad(density, low, high, n=9)[0]
        slab_mean += integrate.fixed_quad(lambda v: v**POWER * density(v), low, high, n=9)[0]
    spike = np.exp(g(1.0) - top)
    total = (1 - CHANGE) * spike + CHANGE * slab
    assert found.log_partition == pytest.approx(np.log(total) + top, abs=0.01)
    assert found.changed == pytest.approx(CHANGE * slab / total, rel=0.02, abs=1e-12)
    mean = ((1 - CHANGE) * spike + CHANGE * slab_mean) / total
    assert found.mean == pytest.approx(mean, rel=0.02)


def counts(observed):
    with svmp.Model() as model:
        rate = svmp.Gamma("rate", alpha=2, beta=1)
        svmp.Poisson("count", mu=rate, observed=observed)
    return model


def numbers(observed):
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=0.01)
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        svmp.Normal("y", mu=mu, tau=tau, observed=observed)
    return model


def test_the_share_and_the_rate_are_at_their_fixed_point():
    """q(rate) has the share of what was learned, and q(k) follows from divergences of q(rate)."""
    rng = np.random.default_rng(0)
    old, new = rng.poisson(4, 20), rng.poisson(5, 20)
    fit = svmp.fit(counts(old)).update(counts(new), forget="learn")
    kept = 1 - fit.forgetting["rate"]
    assert fit["rate"].alpha == pytest.approx(2 + kept * old.sum() + new.sum(), rel=1e-3)
    q = stats.gamma(float(fit["rate"].alpha), scale=1 / float(fit["rate"].beta))
    low, high = q.ppf([1e-13, 1 - 1e-13])

    def g(k):
        """E[log p(x | k)] - E[log p(x | 0)] under q."""
        p, first = stats.gamma(2 + k * old.sum(), scale=1 / (1 + 20 * k)), stats.gamma(2)
        return integrate.quad(lambda x: q.pdf(x) * (p.logpdf(x) - first.logpdf(x)), low, high)[0]

    slab = integrate.quad(lambda v: np.exp(g(v**POWER) - g(1)), 0, 1)[0]
    changed = CHANGE * slab / (1 - CHANGE + CHANGE * slab)
    assert fit.changed["rate"] == pytest.approx(changed, rel=0.02)


@pytest.mark.parametrize("rows", [10, 50])
@pytest.mark.parametrize("seed", range(3))
def test_a_stationary_stream_forgets_nothing(rows, seed):
    rng = np.random.default_rng(seed)
    rate, normal = svmp.fit(counts(rng.poisson(5, rows))), svmp.fit(numbers(rng.normal(size=rows)))
    for _ in range(20):
        rate = rate.update(counts(rng.poisson(5, rows)), forget="learn")
        normal = normal.update(numbers(rng.normal(size=rows)), forget="learn")
        assert rate.forgetting.keys() == {"rate"}
        assert max(*rate.forgetting.values(), *normal.forgetting.values()) < 0.05
    assert rate["rate"].beta == pytest.approx(1 + 21 * rows, rel=0.05)
    assert normal["tau"].alpha == pytest.approx(1 + 21 * rows / 2, rel=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_a_jump_is_forgotten_by_the_variable_that_jumped(seed):
    rng = np.random.default_rng(seed)
    fit = svmp.fit(numbers(rng.normal(3, 2, 50)))
    for t in range(16):
        mu, sd = (3 if t < 5 else 7), (2 if t < 10 else 0.5)
        fit = fit.update(numbers(rng.normal(mu, sd, 50)), forget="learn")
        for name, jump in (("mu", 5), ("tau", 10)):
            forgotten = fit.forgetting[name]
            assert forgotten > 0.9 if t == jump else forgotten < 0.05
    assert fit.mean("mu") == pytest.approx(7, abs=0.3)
    assert fit.mean("tau") == pytest.approx(4, rel=0.25)


def test_a_drift_is_followed():
    """The rate rises in each batch: what was learned is forgotten, and the mean keeps up."""
    rng = np.random.default_rng(1)
    rates = 5 + 1.0 * np.arange(15)
    fits = {"learn": None, 0.0: None}
    found = []
    for rate in rates:
        batch = counts(rng.poisson(rate, 50))
        for forget, fit in fits.items():
            fits[forget] = svmp.fit(batch) if fit is None else fit.update(batch, forget=forget)
        found.append(fits["learn"].forgetting.get("rate", 0.0))
    assert (np.array(found) > 0.5).sum() >= 2
    error = {forget: abs(fit.mean("rate") - rates[-1]) for forget, fit in fits.items()}
    assert error["learn"] < 0.5 * error[0.0]


def test_what_was_learned_about_forgetting_is_saved(tmp_path):
    rng = np.random.default_rng(0)
    fit = svmp.fit(counts(rng.poisson(4, 20))).update(counts(rng.poisson(40, 20)), forget="learn")
    assert fit.forgetting["rate"] > 0.9
    fit.save(tmp_path / "fit.svmp")
    loaded = svmp.load(tmp_path / "fit.svmp")
    assert loaded.forgetting == fit.forgetting
    assert loaded.changed == fit.changed
    assert svmp.fit(counts([3])).forgetting == {}


def test_kernels_agree_on_what_is_forgotten():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2, 200))

    def line(rows, slope):
        with svmp.Model(coords={"row": 200}) as model:
            a = svmp.Normal("a", mu=0, tau=0.1)
            b = svmp.Normal("b", mu=0, tau=0.1)
            tau = svmp.Gamma("tau", alpha=1, beta=1)
            noise = rng.normal(size=200)
            y = 1 + slope * x[rows] + noise
            svmp.Normal("y", mu=a + b * x[rows], tau=tau, dims="row", observed=y)
        return model

    first, second = svmp.fit(line(0, 1.0)), line(1, -1.0)
    both = [first.update(second, forget="learn", kernels=k) for k in (True, False)]
    assert both[0].forgetting["b"] > 0.9
    assert both[0].forgetting["a"] < 0.05
    assert both[0].forgetting == pytest.approx(both[1].forgetting, rel=1e-4, abs=1e-6)

"""How much is forgotten is learned: q(k) by quadrature, streams with and without a change."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

import svmp
from svmp.inference.forgetting import CHANGE, expected_share, log_partition, slab_log_partition


@pytest.mark.parametrize("w", [-300.0, -20.0, -1.0, -1e-4, 0.0, 1e-4, 0.9e-3, 1.1e-3, 3.0, 40.0])
def test_q_of_the_share_is_normalised(w):
    """The log-partition and the mean, by integration over the slab and the spike at 1."""

    def slab(k):
        return CHANGE * np.exp(w * k - max(w, 0))

    spike = (1 - CHANGE) * np.exp(w - max(w, 0))
    edge = [1 / max(abs(w), 1), 1 - 1 / max(abs(w), 1)]
    total = spike + integrate.quad(slab, 0, 1, points=edge, epsabs=0)[0]
    mean = spike + integrate.quad(lambda k: k * slab(k), 0, 1, points=edge, epsabs=0)[0]
    assert log_partition(w) == pytest.approx(np.log(total) + max(w, 0), rel=1e-9, abs=1e-12)
    assert expected_share(w) == pytest.approx(mean / total, rel=1e-7)
    assert slab_log_partition(w) == pytest.approx(
        np.log(integrate.quad(lambda k: np.exp(w * (k - (w > 0))), 0, 1, points=edge)[0])
        + max(w, 0),
        rel=1e-9,
        abs=1e-12,
    )


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


def test_natural_parameter_is_a_difference_of_divergences():
    """w = KL(q || p_first) - KL(q || p_last), each by quadrature over the rate."""
    rng = np.random.default_rng(0)
    old, new = rng.poisson(4, 20), rng.poisson(5, 20)
    first = svmp.fit(counts(old))
    fit = first.update(counts(new), forget="learn")

    def gamma(alpha, beta):
        return stats.gamma(float(alpha), scale=1 / float(beta))

    q = gamma(fit["rate"].alpha, fit["rate"].beta)
    last, prior = gamma(first["rate"].alpha, first["rate"].beta), gamma(2, 1)
    low, high = q.ppf([1e-12, 1 - 1e-12])

    def divergence(p):
        return integrate.quad(lambda x: q.pdf(x) * (q.logpdf(x) - p.logpdf(x)), low, high)[0]

    w = fit.forgetting_natural["rate"]
    assert w == pytest.approx(divergence(prior) - divergence(last), rel=1e-5)
    kept = 1 - fit.forgetting["rate"]
    assert kept == pytest.approx(expected_share(w), rel=1e-12)
    assert fit["rate"].alpha == pytest.approx(2 + kept * old.sum() + new.sum(), rel=1e-3)


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


def test_what_was_learned_about_forgetting_is_saved(tmp_path):
    rng = np.random.default_rng(0)
    fit = svmp.fit(counts(rng.poisson(4, 20))).update(counts(rng.poisson(40, 20)), forget="learn")
    assert fit.forgetting["rate"] > 0.9
    fit.save(tmp_path / "fit.svmp")
    loaded = svmp.load(tmp_path / "fit.svmp")
    assert loaded.forgetting == fit.forgetting
    assert loaded.forgetting_natural == fit.forgetting_natural
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

"""Slow changes are followed: evidence of rates in closed form, streams beside Kalman filters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import svmp
from svmp.posterior.record.drift import RATES
from svmp.posterior.updating.drifting import SWITCH

ROWS = 25


def numbers(observed):
    """A mean with the prior N(0, 100) and noise of variance 1."""
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=0.01)
        svmp.Normal("y", mu=mu, tau=1, observed=observed)
    return model


def rows(mean, rng):
    return mean + rng.standard_normal(ROWS)


def test_weights_of_rates_follow_from_the_evidence_of_filters():
    """Each rate is a filter with Normal predictions, in closed form."""
    rng = np.random.default_rng(0)
    first = rows(0, rng)
    fit = svmp.fit(numbers(first))
    weights = np.eye(len(RATES))[0]
    counts, sums = np.full(len(RATES), float(ROWS)), np.full(len(RATES), first.sum())
    for t in range(6):
        batch = rows(0.15 * t, rng)
        fit = fit.update(numbers(batch), forget="learn")
        found = fit.drifts["mu"].weights
        k = (1 - fit.forgetting["mu"]) / (found @ RATES)
        counts, sums = k * RATES * counts, k * RATES * sums
        precision = 0.01 + counts
        predicted = stats.norm(sums / precision, np.sqrt(1 / precision + 1 / ROWS))
        weights = (1 - SWITCH) * weights + SWITCH / len(RATES)
        weights = weights * predicted.pdf(batch.mean())
        weights /= weights.sum()
        assert found == pytest.approx(weights, rel=1e-3)
        counts, sums = counts + ROWS, sums + batch.sum()
        prior = fit["mu"].natural[0, 0] - batch.sum()
        assert prior == pytest.approx(weights @ (sums - batch.sum()), rel=1e-3, abs=1e-3)


def kalman(means, variance):
    """Return the estimates of a local level model; observations have the variance 1 / ROWS."""
    level, spread = means[0], 1 / ROWS
    found = [level]
    for y in means[1:]:
        gain = (spread + variance) / (spread + variance + 1 / ROWS)
        level, spread = level + gain * (y - level), gain / ROWS
        found.append(level)
    return np.array(found)


@pytest.mark.parametrize(("steady", "size", "worse"), [(True, 0.5, 1.3), (False, 1.0, 1.8)])
def test_a_slow_drift_is_followed_nearly_as_by_the_best_filter(steady, size, worse):
    """The mean moves by some standard errors of an update; the filter knows by how many."""
    rng, error = np.random.default_rng(0), {}
    step = size / np.sqrt(ROWS)
    steps = np.full(29, step) if steady else step * rng.standard_normal(29)
    truth = np.concatenate([[0.0], np.cumsum(steps)])
    batches = [rows(mean, rng) for mean in truth]
    for forget in ("learn", 0.0):
        fit, found = None, []
        for batch in batches:
            model = numbers(batch)
            fit = svmp.fit(model) if fit is None else fit.update(model, forget=forget)
            found.append(float(fit.mean("mu")))
        error[forget] = np.sqrt(np.mean((np.array(found) - truth)[10:] ** 2))
    best = kalman([batch.mean() for batch in batches], step**2)
    best = np.sqrt(np.mean((best - truth)[10:] ** 2))
    assert error["learn"] < worse * best
    assert error[0.0] > 1.5 * worse * best


def test_what_is_carried_on_is_saved(tmp_path):
    rng = np.random.default_rng(0)
    fit = svmp.fit(numbers(rows(0, rng)))
    for mean in (0.2, 0.4):
        fit = fit.update(numbers(rows(mean, rng)), forget="learn")
    fit.save(tmp_path / "fit.svmp")
    more = numbers(rows(0.6, rng))
    one, other = (f.update(more, forget="learn") for f in (fit, svmp.load(tmp_path / "fit.svmp")))
    assert np.array_equal(one["mu"].natural, other["mu"].natural)
    assert np.array_equal(one.drifts["mu"].offsets, other.drifts["mu"].offsets)
    assert fit.update(more, forget=0.5).drifts == {}


def shops(names, shop, counts):
    with svmp.Model(coords={"shop": names}) as model:
        rate = svmp.Gamma("rate", alpha=2, beta=1, dims="shop")
        svmp.Poisson("count", mu=rate[shop], observed=counts)
    return model


def test_elements_come_and_go():
    """Elements that an update does not have keep what they carry; new ones carry nothing."""
    fit = svmp.fit(shops(["a", "b"], [0, 1], [4, 9]))
    fit = fit.update(shops(["a", "b"], [0, 1], [5, 8]), forget="learn")
    before = fit.drifts["rate"].offsets
    fit = fit.update(shops(["c", "b"], [0, 1], [3, 7]), forget="learn")
    after = fit.drifts["rate"].offsets
    assert fit.coords["shop"] == ["a", "b", "c"]
    assert np.array_equal(after[:, 0], before[:, 0])
    assert (after[1:, 1] != before[1:, 1]).all()
    assert not after[:, 2].any()


def texts(words, counts):
    with svmp.Model(coords={"word": words}) as model:
        p = svmp.Dirichlet("p", a=np.ones(len(words)), dims="word")
        svmp.Multinomial("count", n=int(sum(counts)), p=p, dims="word", observed=counts)
    return model


def test_new_categories_are_added_to_what_is_carried_on():
    fit = svmp.fit(texts(["x", "y"], [5, 5]))
    fit = fit.update(texts(["x", "y"], [5, 4]), forget="learn")
    fit = fit.update(texts(["y", "z", "x"], [4, 2, 5]), forget="learn")
    assert fit.drifts["p"].offsets.shape == (len(RATES), 1, 3)
    assert not fit.drifts["p"].offsets[..., 2].any()
    assert fit["p"].a == pytest.approx([16, 14, 3], rel=0.02)

"""Streaming counts: Bayes' rule where nothing is forgotten, and batches where the rate jumps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

LEARN = 'forget="learn"'


@pytest.fixture(scope="module")
def streams(script):
    batches = script.data()
    return batches, {name: script.stream(batches, forget) for name, forget in script.FITS.items()}


def test_keeping_everything_is_the_posterior_of_all_counts(streams):
    batches, fits = streams
    last = fits["forget nothing"][-1]["rate"]
    assert last.alpha == pytest.approx(2 + batches.sum(), rel=1e-12)
    assert last.beta == pytest.approx(0.5 + batches.size, rel=1e-12)


def test_evidence_of_a_batch_is_predictive(streams):
    """A sum of Poissons under a Gamma is negative binomial, times their multinomial split."""
    batches, fits = streams
    for before, fit, batch in zip(
        fits["forget nothing"], fits["forget nothing"][1:], batches[1:], strict=False
    ):
        alpha, beta, rows = float(before["rate"].alpha), float(before["rate"].beta), len(batch)
        total = stats.nbinom(alpha, beta / (beta + rows)).logpmf(batch.sum())
        split = stats.multinomial(batch.sum(), np.full(rows, 1 / rows)).logpmf(batch)
        assert fit.bound == pytest.approx(total + split, rel=1e-9)


def test_forgetting_half_is_a_weighted_sum(streams):
    batches, fits = streams
    weight = 0.5 ** np.arange(len(batches))[::-1]
    last = fits["forget half"][-1]["rate"]
    assert last.alpha == pytest.approx(2 + weight @ batches.sum(axis=1), rel=1e-9)
    assert last.beta == pytest.approx(0.5 + weight.sum() * batches.shape[1], rel=1e-9)


def test_only_jumps_are_forgotten(script, streams):
    jumps = np.flatnonzero(np.diff(script.RATES)) + 1
    forgotten = np.array([fit.forgetting["rate"] for fit in streams[1][LEARN][1:]])
    expected = np.isin(np.arange(1, len(script.RATES)), jumps)
    assert (forgotten[expected] > 0.9).all()
    assert (forgotten[~expected] < 0.05).all()
    for fit, rate in zip(streams[1][LEARN], script.RATES, strict=True):
        assert abs(fit.mean("rate") - rate) < 4 * fit["rate"].std

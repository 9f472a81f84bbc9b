"""Updates of topics by `Memoized`: sums at the end of the first sweep, and which variables read."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.inference.methods import division
from svmp.inference.program import default
from svmp.inference.updaters import groups

DOCUMENTS, TOPICS, WORDS, PARTS = 40, 3, 12, 4
RNG = np.random.default_rng(4)
DOC = np.repeat(np.arange(DOCUMENTS), 25)
TOPIC = RNG.integers(TOPICS, size=DOCUMENTS)[DOC]
EMISSION = RNG.dirichlet(np.full(WORDS, 0.2), size=TOPICS)
WORD = np.array([RNG.choice(WORDS, p=EMISSION[topic]) for topic in TOPIC])


def topics(first: int, end: int) -> svmp.Model:
    """Topics of some documents."""
    mine = (first <= DOC) & (end > DOC)
    coords = {"doc": range(first, end), "topic": TOPICS, "word": WORDS, "token": mine.sum()}
    with svmp.Model(coords=coords) as model:
        theta = svmp.Dirichlet("theta", a=0.5, dims=("doc", "topic"))
        phi = svmp.Dirichlet("phi", a=0.1, dims=("topic", "word"))
        z = svmp.Categorical("z", p=theta.iloc[DOC[mine] - first], dims="token")
        svmp.Mixture("w", z, svmp.Categorical.dist(p=phi), dims="token", observed=WORD[mine])
    return model


def test_sums_after_the_first_sweep_of_an_update_are_those_of_plain_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(default, "SMALL", 0)
    monkeypatch.setattr(division, "PASSES", 10_000)
    monkeypatch.setattr(groups, "TOLERANCE", 1e-12)
    memoized = svmp.Memoized(over="doc", parts=PARTS)
    fit = svmp.fit(topics(0, 20), memoized, kernels=False, max_sweeps=30)

    def after_the_first_sweep(kernels: bool) -> svmp.Fit:
        """Passes over documents count as well, so the budget of one sweep is searched for."""
        for budget in range(1, 2000, 3):
            found = fit.update(topics(20, 40), memoized, kernels=kernels, max_sweeps=budget, tol=0)
            if found.iterations == PARTS:
                return found
        raise AssertionError("no budget ends with the first sweep")

    plain, compiled = after_the_first_sweep(False), after_the_first_sweep(True)
    np.testing.assert_allclose(compiled["phi"].a, plain["phi"].a, rtol=1e-6)


def test_an_update_without_dirichlets_reads_no_means() -> None:
    def counts(seed: int) -> svmp.Model:
        rng, key = np.random.default_rng(seed), np.repeat(np.arange(20), 5)
        with svmp.Model(coords={"g": 20}) as model:
            rate = svmp.Gamma("rate", alpha=1, beta=1)
            x = svmp.Gamma("x", alpha=2, beta=rate, dims="g")
            y = rng.poisson(rng.gamma(2, 1, 20)[key])
            svmp.Poisson("y", mu=x[key], dims="row", observed=y)
        return model

    memoized = svmp.Memoized(over="g", parts=PARTS)
    update = svmp.fit(counts(0), memoized).update(counts(1), memoized)
    assert update.trace["iteration"][0] == PARTS  # the first sweep already has an exact bound

"""LDA: the batch updates of Blei, Ng and Jordan, token by token, and the bound."""

from __future__ import annotations

import numpy as np
import pytest

import svmp

from .formulas import (
    assert_never_falls,
    categorical_entropy,
    dirichlet_mean_log,
    dirichlet_term,
    softmax,
)

TOPICS = 4
METHOD = svmp.FullVB(order=["z", "theta", "phi"])


@pytest.fixture(scope="module")
def corpus(script):
    """The first twenty documents."""
    document, word, _, vocabulary = script.data()
    here = document < 20
    return document[here], word[here], 20, len(vocabulary)


def by_hand(document, word, documents, words, gamma, lam, sweeps, optimised):
    def shares():
        theta, phi = dirichlet_mean_log(gamma), dirichlet_mean_log(lam)
        return np.array(
            [softmax(theta[d] + phi[:, w]) for d, w in zip(document, word, strict=True)]
        )

    for _ in range(sweeps):
        z = shares()
        gamma = np.full((documents, TOPICS), 0.2)
        lam = np.full((TOPICS, words), 0.1)
        for d, w, share in zip(document, word, z, strict=True):
            gamma[d] += share
            lam[:, w] += share
    z = shares() if optimised else z
    theta, phi = dirichlet_mean_log(gamma), dirichlet_mean_log(lam)
    bound = (z * (theta[document] + phi[:, word].T)).sum() + categorical_entropy(z)
    return z, gamma, lam, bound + dirichlet_term(0.2, gamma) + dirichlet_term(0.1, lam)


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("sweeps", [1, 4])
def test_sweeps_and_bound_match_the_formulas(script, corpus, sweeps, kernels):
    """The compiled loops do not store z: theirs is the optimal one at the end of the sweep."""
    _, _, documents, words = corpus
    rng = np.random.default_rng(5)
    gamma, lam = 1 + rng.random((documents, TOPICS)), 1 + rng.random((TOPICS, words))
    z, gamma_hand, lam_hand, bound = by_hand(*corpus, gamma, lam, sweeps, kernels)
    network = script.model(*corpus, topics=TOPICS)
    init = {"theta": {"a": gamma}, "phi": {"a": lam}}
    options = {"max_sweeps": sweeps, "tol": 0, "kernels": kernels}
    fit = svmp.fit(network, METHOD, init=init, **options)
    np.testing.assert_allclose(fit.mean("z"), z, atol=1e-11)
    np.testing.assert_allclose(fit["theta"].a, gamma_hand, rtol=1e-10)
    np.testing.assert_allclose(fit["phi"].a, lam_hand, rtol=1e-10)
    assert fit.bound == pytest.approx(bound, rel=1e-11)
    assert_never_falls(fit.trace["bound"])


def test_topics_that_share_no_word_are_recovered(script):
    """Three topics with ten words each, and documents of one topic each: no ambiguity."""
    rng = np.random.default_rng(6)
    topic = np.arange(30) % 3
    document = np.repeat(np.arange(30), 40)
    word = 10 * topic[document] + rng.integers(0, 10, len(document))
    network = script.model(document, word, 30, 30, topics=3)
    fits = [svmp.fit(network, svmp.FullVB(), seed=seed) for seed in range(5)]
    best = max(fits, key=lambda fit: fit.bound)
    theta = best.mean("theta")
    assert theta.max(1).min() > 0.97
    assert len({(t, k) for t, k in zip(topic, theta.argmax(1), strict=True)}) == 3
    for t in range(3):
        k = theta[topic == t].argmax(1)[0]
        assert best.mean("phi")[k, 10 * t : 10 * t + 10].sum() > 0.99

"""Crossed effects: with fixed precisions a dense solve; learned, the truth of the simulation."""

from __future__ import annotations

import numpy as np
import pytest

import svmp

TAU = {"reader": 1 / 60**2, "word": 1 / 30**2, "noise": 1 / 80**2}


def test_fixed_precisions_give_the_exact_means(script):
    time, reader, word, x, _ = script.data(readers=12, words=15, rows=150)
    network = script.model(time, reader, word, x, readers=12, tau=TAU)
    fit = svmp.fit(network, tol=1e-14)
    design = np.hstack([np.ones((150, 1)), x[word][:, None], np.eye(12)[reader], np.eye(15)[word]])
    prior = np.repeat([1e-6, 1e-4, TAU["reader"], TAU["word"]], [1, 1, 12, 15])
    precision = np.diag(prior) + TAU["noise"] * design.T @ design
    exact = np.linalg.solve(precision, TAU["noise"] * design.T @ time)
    found = np.concatenate([np.ravel(fit.mean(name, corrected=False)) for name in script.EFFECTS])
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-5)
    taus = np.concatenate([np.ravel(fit.posteriors[name].tau) for name in script.EFFECTS])
    np.testing.assert_allclose(taus, np.diag(precision), rtol=1e-9)


def test_standard_deviations_and_effects_are_recovered(script):
    time, reader, word, x, effect = script.data()
    fit = svmp.fit(script.model(time, reader, word, x, readers=50))
    for name, sd in script.TRUTH.items():
        assert 1 / np.sqrt(fit.mean(f"tau_{name}")) == pytest.approx(sd, rel=0.2)
    assert np.corrcoef(fit.mean("reader"), effect["reader"])[0, 1] > 0.95
    assert np.corrcoef(fit.mean("word"), effect["word"])[0, 1] > 0.75

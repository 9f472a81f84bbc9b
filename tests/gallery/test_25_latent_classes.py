"""Latent classes: sweeps by hand from the same start, and the classes of the simulation."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma

import svmp

from .formulas import assert_never_falls, dirichlet_mean_log, softmax


def by_hand(answers, z, sweeps):
    """Update the shares and profiles, then the classes of all persons."""
    for _ in range(sweeps):
        share = 0.5 + z.sum(0)
        yes, no = 1 + z.T @ answers, 1 + z.T @ (1 - answers)
        log_yes, log_no = (digamma(side) - digamma(yes + no) for side in (yes, no))
        z = softmax(dirichlet_mean_log(share) + answers @ log_yes.T + (1 - answers) @ log_no.T)
    return share, yes, no, z


def test_sweeps_match_the_formulas(script):
    answers, _ = script.data(people=40)
    begin = np.random.default_rng(1).dirichlet(np.ones(3), 40)
    method = svmp.FullVB(order=["share", "p", "z"])
    network = script.model(answers, 3)
    fit = svmp.fit(network, method, init={"z": begin}, max_sweeps=4, tol=0)
    share, yes, no, z = by_hand(answers, begin, sweeps=4)
    np.testing.assert_allclose(fit["share"].a, share, rtol=1e-9)
    np.testing.assert_allclose(fit["p"].alpha, yes, rtol=1e-9)
    np.testing.assert_allclose(fit["p"].beta, no, rtol=1e-9)
    np.testing.assert_allclose(fit.mean("z"), z, atol=1e-9)
    assert_never_falls(fit.trace["bound"])


def test_three_classes_are_found(script):
    answers, kind = script.data()
    fits = {classes: script.best(answers, classes, starts=2) for classes in (2, 3, 4)}
    assert fits[3].bound > max(fits[2].bound, fits[4].bound)
    order = np.argsort(-fits[3].mean("share"))
    found = np.argsort(order)[fits[3].mean("z").argmax(1)]
    assert np.mean(found == kind) > 0.9
    np.testing.assert_allclose(fits[3].mean("p")[order], script.PROFILES, atol=0.2)

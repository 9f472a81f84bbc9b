"""Nested groups: with fixed precisions, a Gaussian that a dense solve gives exactly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import svmp

from .formulas import (
    assert_never_falls,
    gamma_mean,
    gamma_mean_log,
    gamma_term,
    normal_density,
    normal_entropy,
)

TAU = {"district": 0.03, "school": 0.1, "pupil": 0.01}
LEVELS = ("region", "district", "school")


def joint(score, of_pupil, of_school):
    """Precision matrix and linear term of (region, districts, schools), and the evidence."""
    districts, schools = of_school.max() + 1, len(of_school)
    size = 1 + districts + schools
    precision, linear = np.zeros((size, size)), np.zeros(size)

    def link(child, parent, tau):
        precision[child, child] += tau
        precision[parent, parent] += tau
        precision[child, parent] -= tau
        precision[parent, child] -= tau

    precision[0, 0] = 0.0001
    for d in range(districts):
        link(1 + d, 0, TAU["district"])
    for s, d in enumerate(of_school):
        link(1 + districts + s, 1 + d, TAU["school"])
    np.add.at(linear, 1 + districts + of_pupil, TAU["pupil"] * score)
    prior = np.linalg.inv(precision)
    diagonal = np.arange(size)
    counts = np.bincount(1 + districts + of_pupil, minlength=size)
    precision[diagonal, diagonal] += TAU["pupil"] * counts
    reads = 1 + districts + of_pupil
    covariance = prior[np.ix_(reads, reads)] + np.eye(len(score)) / TAU["pupil"]
    evidence = stats.multivariate_normal(np.zeros(len(score)), covariance).logpdf(score)
    return precision, linear, evidence


def test_fixed_precisions_give_the_exact_means(script):
    data = script.data(districts=4, schools=25)
    precision, linear, evidence = joint(*data)
    fit = svmp.fit(script.model(*data, tau=TAU), svmp.FullVB(), tol=1e-15, max_sweeps=5000)
    assert fit.status == "converged"
    means = np.concatenate([np.ravel(fit.mean(name, corrected=False)) for name in LEVELS])
    precisions = np.concatenate([np.ravel(fit.posteriors[name].tau) for name in LEVELS])
    np.testing.assert_allclose(means, np.linalg.solve(precision, linear), rtol=1e-6)
    np.testing.assert_allclose(precisions, np.diag(precision), rtol=1e-12)
    gap = 0.5 * (np.log(np.diag(precision)).sum() - np.linalg.slogdet(precision)[1])
    assert gap > 0
    assert fit.bound == pytest.approx(evidence - gap, rel=1e-10)


@pytest.fixture(scope="module")
def learned(script):
    return svmp.fit(script.model(*script.data()), svmp.FullVB(), tol=1e-14)


def test_learned_precisions_are_at_their_fixed_point(script, learned):
    """Each Gamma gets half the expected squares of its level; and the bound, term by term."""
    fit, (score, of_pupil, of_school) = learned, script.data()
    assert_never_falls(fit.trace["bound"])
    mean = {name: fit.mean(name, corrected=False) for name in LEVELS}
    var = {name: fit.var(name, corrected=False) for name in LEVELS}
    squares = {
        "district": (mean["district"] - mean["region"]) ** 2 + var["district"] + var["region"],
        "school": (mean["school"] - mean["district"][of_school]) ** 2
        + var["school"]
        + var["district"][of_school],
        "pupil": (score - mean["school"][of_pupil]) ** 2 + var["school"][of_pupil],
    }
    bound = normal_density(mean["region"] ** 2 + var["region"], 0.0001)
    bound += sum(normal_entropy(v) for v in var.values())
    for level, square in squares.items():
        q = fit.posteriors[f"tau_{level}"]
        assert q.alpha == pytest.approx(1 + len(square) / 2, rel=1e-12)
        assert q.beta == pytest.approx(1 + square.sum() / 2, rel=1e-5)
        pair = (q.alpha, q.beta)
        bound += normal_density(square, gamma_mean(pair), gamma_mean_log(pair))
        bound += gamma_term(1, 1, pair)
    assert fit.bound == pytest.approx(bound, rel=1e-12)


def test_small_schools_are_shrunk_more(script, learned):
    """E[school] lies between its average and its district, by n tau_pupil against tau_school."""
    fit, (score, of_pupil, of_school) = learned, script.data()
    pupils = np.bincount(of_pupil)
    average = np.bincount(of_pupil, score) / pupils
    own = (
        fit.mean("tau_pupil", corrected=False)
        * pupils
        / (
            fit.mean("tau_pupil", corrected=False) * pupils
            + fit.mean("tau_school", corrected=False)
        )
    )
    expected = own * average + (1 - own) * fit.mean("district", corrected=False)[of_school]
    np.testing.assert_allclose(fit.mean("school", corrected=False), expected, rtol=1e-6)


def test_standard_deviations_are_recovered(script, learned):
    for level, sd in script.TRUTH.items():
        assert 1 / np.sqrt(learned.mean(f"tau_{level}")) == pytest.approx(sd, rel=0.4)

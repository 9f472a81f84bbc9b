"""Bradley-Terry: beside the mode and curvature of the exact posterior, found by SciPy."""

from __future__ import annotations

import numpy as np
from scipy import optimize
from scipy.special import expit

import svmp


def test_skills_are_near_the_exact_mode(script):
    winner, loser, _ = script.data()
    players, tau = 16, 0.7
    fit = svmp.fit(script.model(winner, loser, players, tau=tau), svmp.FullVB(), tol=1e-12)

    def cost(skill):
        gap = skill[winner] - skill[loser]
        missed = expit(-gap)
        gradient = tau * skill - np.bincount(winner, missed, players)
        gradient += np.bincount(loser, missed, players)
        return np.logaddexp(0, -gap).sum() + tau / 2 * skill @ skill, gradient

    mode = optimize.minimize(cost, np.zeros(players), jac=True, tol=1e-10).x
    share = expit(mode[winner] - mode[loser])
    curvature = tau + sum(np.bincount(k, share * (1 - share), players) for k in (winner, loser))
    sd = 1 / np.sqrt(curvature)
    assert np.all(np.abs(fit.mean("skill", corrected=False) - mode) < 0.35 * sd)
    assert list(np.argsort(fit.mean("skill", corrected=False))[:1]) == list(np.argsort(mode)[:1])
    narrower = fit.posteriors["skill"].std / sd  # as the tangents of the logistic are
    assert np.all((narrower > 0.7) & (narrower < 1.02))


def test_better_players_are_ranked_higher(script):
    winner, loser, skill = script.data()
    fit = svmp.fit(script.model(winner, loser, len(skill)))
    assert np.corrcoef(fit.mean("skill"), skill)[0, 1] > 0.85

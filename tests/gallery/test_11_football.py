"""Football: the fixed point of the Gammas, and the bound, from sums over the matches."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln

import svmp

from .formulas import assert_never_falls, gamma_mean, gamma_mean_log, gamma_term


@pytest.fixture(scope="module")
def season(script):
    *rows, names = script.data()
    fit = svmp.fit(script.model(*rows, teams=len(names)), svmp.FullVB(), tol=1e-15)
    return rows, names, fit


def test_gammas_are_at_their_fixed_point(season):
    """The shape counts goals; the rate sums the expectations of the other strengths."""
    (scorer, opponent, venue, goals), names, fit = season
    attack, weakness, level = (fit.mean(n) for n in ("attack", "weakness", "level"))
    teams = len(names)
    for name, key, size, prior, expected in (
        ("attack", scorer, teams, 10, level[venue] * weakness[opponent]),
        ("weakness", opponent, teams, 10, level[venue] * attack[scorer]),
        ("level", venue, 2, 1, attack[scorer] * weakness[opponent]),
    ):
        q = fit[name]
        np.testing.assert_allclose(q.alpha, prior + np.bincount(key, goals, size), rtol=1e-12)
        np.testing.assert_allclose(q.beta, prior + np.bincount(key, expected, size), rtol=1e-6)


def test_bound_matches_the_formulas(season):
    (scorer, opponent, venue, goals), _, fit = season
    attack, weakness, level = (
        (fit[name].alpha, fit[name].beta) for name in ("attack", "weakness", "level")
    )
    parts = ((attack, scorer), (weakness, opponent), (level, venue))
    log_rate = sum(gamma_mean_log(q)[key] for q, key in parts)
    rate = np.prod([gamma_mean(q)[key] for q, key in parts], axis=0)
    bound = (goals * log_rate - rate - gammaln(goals + 1)).sum()
    bound += gamma_term(10, 10, attack) + gamma_term(10, 10, weakness) + gamma_term(1, 1, level)
    assert fit.bound == pytest.approx(bound, rel=1e-11)
    assert_never_falls(fit.trace["bound"])


def test_one_sweep_matches_the_formulas(script, season):
    rows, names, _ = season
    scorer, opponent, venue, goals = rows
    teams = len(names)
    one = {"alpha": 4.0, "beta": 4.0}
    init = {"attack": one, "weakness": one, "level": one}
    method = svmp.FullVB(order=["attack", "weakness", "level"])
    fit = svmp.fit(script.model(*rows, teams=teams), method, init=init, max_sweeps=1)
    attack = (10 + np.bincount(scorer, goals, teams)) / (10 + np.bincount(scorer, minlength=teams))
    weakness = 10 + np.bincount(opponent, goals, teams)
    weakness = weakness / (10 + np.bincount(opponent, attack[scorer], teams))
    level = 1 + np.bincount(venue, goals, 2)
    level = level / (1 + np.bincount(venue, attack[scorer] * weakness[opponent], 2))
    np.testing.assert_allclose(fit.mean("attack"), attack, rtol=1e-12)
    np.testing.assert_allclose(fit.mean("weakness"), weakness, rtol=1e-12)
    np.testing.assert_allclose(fit.mean("level"), level, rtol=1e-12)


def test_home_teams_score_more(season):
    (_, _, venue, goals), _, fit = season
    ratio = fit.mean("level")[0] / fit.mean("level")[1]
    assert ratio == pytest.approx(goals[venue == 0].sum() / goals[venue == 1].sum(), rel=0.02)


def test_strengths_are_recovered_from_a_long_simulated_league(script):
    """After sixty seasons the posterior means are near the strengths that were drawn."""
    rng = np.random.default_rng(9)
    attack, weakness = rng.gamma(10, 0.1, (2, 8))
    home, away = (np.tile(side, 60) for side in np.nonzero(~np.eye(8, dtype=bool)))
    goals = (rng.poisson(1.5 * attack[home] * weakness[away]),
             rng.poisson(1.2 * attack[away] * weakness[home]))  # fmt: skip
    rows = script.table(home, away, *goals)
    fit = svmp.fit(script.model(*rows, teams=8), svmp.FullVB(), tol=1e-8)
    np.testing.assert_allclose(
        fit.mean("attack") / fit.mean("attack").mean(), attack / attack.mean(), rtol=0.12
    )
    assert fit.mean("level")[0] / fit.mean("level")[1] == pytest.approx(1.25, rel=0.05)

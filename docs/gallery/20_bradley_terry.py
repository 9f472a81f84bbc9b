"""Bradley-Terry: who is the best player, from who beat whom?

    tau ~ Gamma(2, 1)      skill_i ~ Normal(0, tau)
    i beats j with probability 1 / (1 + exp(skill_j - skill_i))

A game is a row with two keys. Most pairs of players never met; they are compared through those
whom both have met. How much skills differ is learned with them.

See: two players are far ahead, and most neighbours in the list cannot be told apart. The
probability that a player is the best of all follows from draws. Intervals of q are somewhat too
narrow.
"""

import numpy as np
from _style import BLUE, GREY, ORANGE, figure, save, target

import svmp


def data(players=16, games=240):
    """Return winner and loser of each game, and the true skills, the best player first."""
    rng = np.random.default_rng(14)
    skill = np.sort(1.2 * rng.normal(size=players))[::-1]
    pairs = np.array([rng.choice(players, 2, replace=False) for _ in range(games)])
    first, second = pairs.T
    wins = rng.random(games) < 1 / (1 + np.exp(skill[second] - skill[first]))
    return np.where(wins, first, second), np.where(wins, second, first), skill


def model(winner, loser, players, tau=None):
    """Declare the network; `tau` fixes the precision of skills instead of learning it."""
    with svmp.Model(coords={"player": players}) as network:
        if tau is None:
            tau = svmp.Gamma("tau", alpha=2, beta=1)
        skill = svmp.Normal("skill", mu=0, tau=tau, dims="player")
        won = np.ones(len(winner), dtype=int)
        svmp.Bernoulli("won", logit=skill[winner] - skill[loser], observed=won)
    return network


def main(path):
    winner, loser, skill = data()
    fit = svmp.fit(model(winner, loser, len(skill)))
    best = np.bincount(fit["skill"].draw(20_000, seed=0).argmax(1), minlength=len(skill)) / 20_000
    print(f"{len(winner)} games of {len(skill)} players; {fit.status}, bound {fit.bound:.2f}")
    print(f"sd of skills {1 / np.sqrt(fit.mean('tau')):.2f} (drawn with 1.2)")
    for i in np.argsort(-fit.mean("skill"))[:3]:
        print(f"player {i + 1:2}: skill {fit.mean('skill')[i]:.2f}, best of all with {best[i]:.2f}")
    plot(path, winner, loser, skill, fit)


def plot(path, winner, loser, skill, fit):
    fig, ax = figure(1, 1, (9, 4.8))
    games = np.bincount(winner, minlength=len(skill)) + np.bincount(loser, minlength=len(skill))
    wins = np.bincount(winner, minlength=len(skill))
    order = np.argsort(fit.mean("skill"))
    place = np.arange(len(order))
    mean, sd = fit.mean("skill")[order], fit["skill"].std[order]
    ax.errorbar(mean, place, xerr=2 * sd, fmt="o", color=BLUE, label="posterior mean ± 2 sd")
    ax.plot(skill[order], place, "|", color=ORANGE, ms=13, mew=2.5, label="truth")
    ax.set_yticks(place, [f"player {i + 1}: {wins[i]} of {games[i]}" for i in order], fontsize=8)
    ax.axvline(0, color=GREY, lw=0.8)
    ax.set(xlabel="skill")
    ax.set_title("Skills from games won; player 1 is the best in truth")
    ax.legend(loc="lower right")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

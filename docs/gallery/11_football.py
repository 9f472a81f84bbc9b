"""Football scores: goals are Poisson, everything that multiplies their rate is a Gamma.

    attack_i ~ Gamma(10, 10)      weakness_j ~ Gamma(10, 10)      level_v ~ Gamma(1, 1)
    goals ~ Poisson(level_v attack_i weakness_j)

for the goals of team i against team j, at home (v = 0) or away (v = 1): two rows a match. A rate
that is a product of Gammas stays conjugate to each of them.

See: the English Premier League of 2015-16, which Leicester City won. Attack and defence are
separated, and playing at home is worth about a quarter more goals.
"""

import csv
import gzip

import numpy as np
from _style import BLUE, GREY, ORANGE, SHARED, figure, save, target

import svmp


def data(league="en.1", season="2015-16"):
    """Return scorer, opponent, venue (0 home, 1 away), goals, and the names of the teams."""
    file = SHARED / "football" / "matches.csv.gz"
    if not file.exists():
        return stand_in()
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        matches = [
            m for m in csv.DictReader(lines) if (m["league"], m["season"]) == (league, season)
        ]
    names = sorted({m["home"] for m in matches})
    home, away = (np.array([names.index(m[side]) for m in matches]) for side in ("home", "away"))
    goals = [np.array([int(m[f"{side}_goals"]) for m in matches]) for side in ("home", "away")]
    return (*table(home, away, *goals), names)


def table(home, away, home_goals, away_goals):
    """Return two rows for each match: scorer, opponent, venue and goals."""
    venue = np.repeat([0, 1], len(home))
    goals = np.concatenate([home_goals, away_goals])
    return np.concatenate([home, away]), np.concatenate([away, home]), venue, goals


def stand_in(teams=20):
    """Generate a season."""
    rng = np.random.default_rng(31)
    attack, weakness = rng.gamma(10, 0.1, (2, teams))
    home, away = np.nonzero(~np.eye(teams, dtype=bool))
    goals = (rng.poisson(1.5 * attack[home] * weakness[away]),
             rng.poisson(1.2 * attack[away] * weakness[home]))  # fmt: skip
    return (*table(home, away, *goals), [f"Team {i}" for i in range(teams)])


def model(scorer, opponent, venue, goals, teams):
    with svmp.Model(coords={"team": teams, "venue": ["home", "away"]}) as network:
        attack = svmp.Gamma("attack", alpha=10, beta=10, dims="team")
        weakness = svmp.Gamma("weakness", alpha=10, beta=10, dims="team")
        level = svmp.Gamma("level", alpha=1, beta=1, dims="venue")
        rate = level[venue] * attack[scorer] * weakness[opponent]
        svmp.Poisson("goals", mu=rate, observed=goals)
    return network


def main(path):
    *rows, names = data()
    fit = svmp.fit(model(*rows, teams=len(names)), svmp.FullVB(), tol=1e-10)
    home, away = fit.mean("level")
    print(f"{fit.status} after {len(fit.trace)} sweeps, bound {fit.bound:.3f}")
    print(f"goals of two average teams: {home:.2f} at home, {away:.2f} away ({home / away:.2f} x)")
    for i in np.argsort(-fit.mean("attack") / fit.mean("weakness"))[:4]:
        print(
            f"{names[i]:26} attack {fit.mean('attack')[i]:.2f}   weakness "
            f"{fit.mean('weakness')[i]:.2f}"
        )
    plot(path, fit, names)


def plot(path, fit, names):
    fig, ax = figure(1, 1, (8.5, 5.6))
    attack, weakness = fit["attack"], fit["weakness"]
    grid = np.linspace(0.5, 1.7, 50)
    for ratio in (0.5, 0.75, 1, 1.5, 2):
        ax.plot(grid, grid / ratio, color=GREY, lw=0.7, alpha=0.5)
    ax.errorbar(
        attack.mean,
        weakness.mean,
        weakness.std,
        attack.std,
        fmt="none",
        color=BLUE,
        alpha=0.25,
        lw=1,
    )
    for i, name in enumerate(names):
        x, y = attack.mean[i], weakness.mean[i]
        champion = name.startswith("Leicester")
        right, near = attack.mean - x, np.abs(weakness.mean - y) < 0.025
        crowded = bool(np.any((right > 0) & (right < 0.11) & near)) and not champion
        ax.plot(x, y, "o", color=ORANGE if champion else BLUE, ms=7 if champion else 5)
        ax.annotate(
            name.removesuffix(" FC").removeprefix("AFC "),
            (x, y),
            xytext=(-5 if crowded else 5, -13 if champion else 4),
            textcoords="offset points",
            ha="right" if crowded else "left",
            fontsize=8,
            weight="bold" if champion else "normal",
        )
    pad = 0.12
    ax.set(
        xlim=(attack.mean.min() - pad, attack.mean.max() + 2 * pad),
        ylim=(weakness.mean.max() + pad, weakness.mean.min() - pad),
    )
    ax.set(
        xlabel="attack (goals scored, relative)", ylabel="weakness in defence (downwards: worse)"
    )
    ax.set_title("Posterior means ± 1 sd; along a grey line attack / weakness is the same")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

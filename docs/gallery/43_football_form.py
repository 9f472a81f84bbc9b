"""Football form over seasons: a chain for each team, and matches that read two of them.

    form_i,1 ~ Normal(0, 4)       form_i,t ~ Normal(form_i,t-1, tau)       tau ~ Gamma(2, 0.1)
    goals at home - goals away ~ Normal(edge + form_home,t - form_away,t, s)

A row of the chain is a season of a team; teams join and leave the league, so that sequences have
different lengths. A match reads two rows of different sequences, which are updated in turn.

See: ten seasons of the English Premier League. Form changes by about a quarter of a goal from one
season to the next, and Leicester's title is a peak between modest seasons.
"""

import csv
import gzip

import numpy as np
from _style import COLOURS, GREY, SHARED, figure, save, target

import svmp

SEASONS = [f"20{y:02}-{y + 1:02}" for y in range(10, 20)]
SHOWN = ("Leicester", "Manchester City", "Manchester United", "Chelsea")


def data(league="en.1"):
    """Return for each match the season, the home and the away team and the goal difference."""
    file = SHARED / "football" / "matches.csv.gz"
    if not file.exists():
        return stand_in()
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        matches = [
            m for m in csv.DictReader(lines) if m["league"] == league and m["season"] in SEASONS
        ]
    season = np.array([SEASONS.index(m["season"]) for m in matches])
    home, away = (np.array([m[side] for m in matches]) for side in ("home", "away"))
    goals = np.array([int(m["home_goals"]) - int(m["away_goals"]) for m in matches], dtype=float)
    return season, home, away, goals


def stand_in(teams=14):
    """Generate ten seasons of matches; two teams are absent in every other season."""
    rng = np.random.default_rng(43)
    form = 0.5 * rng.normal(size=teams) + np.cumsum(rng.normal(0, 0.25, (10, teams)), axis=0)
    names = np.array([*SHOWN, *(f"Team {i}" for i in range(teams - len(SHOWN)))])
    found = []
    for season in range(len(SEASONS)):
        there = np.arange(teams - 2 * (season % 2))
        home, away = (part.ravel() for part in np.meshgrid(there, there))
        home, away = home[home != away], away[home != away]
        goals = np.round(0.4 + form[season, home] - form[season, away] + rng.normal(0, 1.6))
        found.append((np.full(len(home), season), names[home], names[away], goals))
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))


def model(season, home, away, goals):
    """Return the network, and the team and season of each row of the chain."""
    both = np.concatenate([home, away])
    rows, key = np.unique(
        np.char.add(np.char.add(both, "|"), np.tile(season, 2).astype(str)), return_inverse=True
    )
    team, when = (np.array(part) for part in zip(*(row.split("|") for row in rows), strict=True))
    when, (at_home, abroad) = when.astype(int), key.reshape(2, -1)
    with svmp.Model(coords={"row": len(rows), "state": 1, "match": len(goals)}) as network:
        tau = svmp.Gamma("tau", alpha=2, beta=0.1)
        form = svmp.LinearGaussianChain(
            "form", init=svmp.Normal.dist(0, 4), A=1.0, tau=tau, sequence=team, order=when,
            sequence_dim="team", dims=("row", "state"),
        )  # fmt: skip
        edge = svmp.Normal("edge", mu=0, tau=1)
        s = svmp.Gamma("s", alpha=1, beta=1)
        mean = edge + form[at_home, 0] - form[abroad, 0]
        svmp.Normal("goals", mu=mean, tau=s, dims="match", observed=goals)
    return network, team, when


def main(path):
    matches = data()
    network, team, when = model(*matches)
    fit = svmp.fit(network, svmp.FullVB())
    print(f"{len(matches[0]):,} matches, {len(np.unique(team))} teams; {fit.status}")
    print(
        f"home is worth {fit.mean('edge'):.2f} goals; form changes by {fit.mean('tau') ** -0.5:.2f}"
    )
    last = when == when.max()
    best = team[last][np.argmax(fit.mean("form")[last, 0])]
    print(f"best team of {SEASONS[when.max()]}: {best}")
    plot(path, fit, team, when)


def plot(path, fit, team, when):
    fig, ax = figure(1, 1, (9.5, 4.2))
    mean, std = fit.mean("form")[:, 0], fit["form"].std[:, 0]
    for name in np.unique(team):
        rows = np.flatnonzero(team == name)
        rows = rows[np.argsort(when[rows])]
        shown = next((i for i, some in enumerate(SHOWN) if name.startswith(some)), None)
        if shown is None:
            ax.plot(when[rows], mean[rows], color=GREY, lw=0.5, alpha=0.6)
            continue
        low, high = mean[rows] - 1.96 * std[rows], mean[rows] + 1.96 * std[rows]
        ax.fill_between(when[rows], low, high, color=COLOURS[shown], alpha=0.15)
        ax.plot(when[rows], mean[rows], ".-", color=COLOURS[shown], label=name)
    ax.set(xlabel="season", ylabel="form, goals a match")
    ax.set_xticks(range(len(SEASONS)), SEASONS)
    ax.legend(ncol=2)
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

"""Nights of sleep: hidden states with two kinds of measurements, some of them missing.

    start ~ Dirichlet(1)                      move_i ~ Dirichlet(1)
    z_t ~ Categorical(move_z(t-1))
    pulse_t ~ Normal(mu_z, tau_z)             turns_t ~ Poisson(rate_z)

Twenty generated nights of different lengths, with the pulse and the number of movements in each
five minutes. A fifth of the pulses are missing, and the sensor of movements fails for hours.

See: the states, their transition matrix and the hidden path are recovered from both measurements
together. Where one is missing the other speaks, and where both are, the chain does.
"""

import numpy as np
from _style import BLUE, GREY, ORANGE, figure, save, target

import svmp

STATES = ("deep", "light", "awake")
MOVE = np.array([[0.93, 0.06, 0.01], [0.06, 0.90, 0.04], [0.01, 0.14, 0.85]])
PULSE, SPREAD, TURNS = np.array([50.0, 56.0, 66.0]), 3.0, np.array([0.2, 1.5, 6.0])


def data():
    """Return the night of each row, both measurements with NaN for missing, and the states."""
    rng = np.random.default_rng(3)
    night = np.repeat(np.arange(20), rng.integers(60, 110, 20))
    state = np.full(len(night), 2)
    for t in range(1, len(night)):
        if night[t] == night[t - 1]:
            state[t] = rng.choice(3, p=MOVE[state[t - 1]])
    pulse, turns = rng.normal(PULSE[state], SPREAD), rng.poisson(TURNS[state]).astype(float)
    pulse[rng.random(len(night)) < 0.2] = np.nan
    for first in rng.choice(len(night), 8, replace=False):
        turns[first : first + 24] = np.nan
    return night, pulse, turns, state


def model(night, pulse, turns):
    coords = {"state": 3, "to": 3, "row": len(night)}
    with svmp.Model(coords=coords) as network:
        start = svmp.Dirichlet("start", a=1, dims="state")
        move = svmp.Dirichlet("move", a=1, dims=("state", "to"))
        z = svmp.DiscreteMarkovChain("z", start, move, sequence=night, dims="row")
        mu = svmp.Normal("mu", mu=60, tau=0.01, dims="state")
        tau = svmp.Gamma("tau", alpha=1, beta=10, dims="state")
        rate = svmp.Gamma("rate", alpha=1, beta=0.5, dims="state")
        normal = svmp.Normal.dist(mu=mu, tau=tau)
        svmp.Mixture("pulse", z, normal, dims="row", observed=pulse, missing=True)
        poisson = svmp.Poisson.dist(mu=rate)
        svmp.Mixture("turns", z, poisson, dims="row", observed=turns, missing=True)
    return network


def main(path):
    night, pulse, turns, state = data()
    fit = svmp.fit(model(night, pulse, turns))
    order = np.argsort(fit.mean("mu"))  # states have no names: sort them by their pulse
    found = np.argsort(order)[fit.path("z")]
    none = np.isnan(pulse) & np.isnan(turns)
    print(f"{fit.status} after {len(fit.trace)} sweeps, bound {fit.bound:.1f}")
    print(
        f"states right: {(found == state).mean():.1%}; nothing measured: "
        f"{(found == state)[none].mean():.0%} of {none.sum()} rows"
    )
    for name, k in zip(STATES, order, strict=True):
        row = fit.mean("move")[k][order]
        print(
            f"{name:6} pulse {fit.mean('mu')[k]:.1f}  turns {fit.mean('rate')[k]:.2f}  next "
            + "  ".join(f"{p:.2f}" for p in row)
        )
    plot(path, night, pulse, turns, state, fit, order)


def plot(path, night, pulse, turns, state, fit, order):
    fig, axes = figure(3, 1, (9.5, 5.6), sharex=True)
    rows = np.flatnonzero(night == most_missing(night, turns))
    hours = np.arange(len(rows)) / 12
    axes[0].plot(hours, pulse[rows], ".", color=BLUE)
    axes[0].set(ylabel="pulse")
    axes[0].set_title(
        "one night: pulse, movements (grey: missing), and the probability of each state"
    )
    axes[1].bar(hours, np.nan_to_num(turns[rows]), 0.07, color=ORANGE)
    for t in hours[np.isnan(turns[rows])]:
        axes[1].axvspan(t - 0.04, t + 0.04, color=GREY, alpha=0.25, lw=0)
    axes[1].set(ylabel="movements")
    chances = fit.mean("z")[rows][:, order]
    axes[2].stackplot(hours, chances.T, colors=(BLUE, "#9CC9E5", ORANGE), labels=STATES)
    axes[2].plot(hours, 0.5 + 0.3 * (state[rows] - 1), "k-", lw=1, label="true state")
    axes[2].set(xlabel="hours", ylabel="probability", ylim=(0, 1))
    axes[2].legend(loc="upper left", ncols=4, facecolor="white", frameon=True)
    save(fig, path)


def most_missing(night, turns):
    """Return the night with most movements missing."""
    return np.bincount(night, np.isnan(turns)).argmax()


if __name__ == "__main__":
    main(target(__file__))

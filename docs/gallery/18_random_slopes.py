"""Random slopes: does everybody react in the same way?

    centre ~ MvNormal(0, 0.0001 I)        L ~ Wishart(3, diag(1/300, 1/3) )
    line_i ~ MvNormal(centre, L)          intercept and slope of person i
    y_n ~ Normal(line_i0 + line_i1 day_n, tau)                tau ~ Gamma(1, 100)

Reaction times of people who sleep too little, day after day. Each person has a line of their own.
The lines are drawn from a common Normal, whose mean and covariance are learned.

See: lines of people with few days are drawn towards the common line. An MvNormal keeps the
correlation of intercept and slope, within a person and between people.
"""

import numpy as np
from _style import BLUE, GREY, ORANGE, figure, save, target

import svmp

CENTRE = np.array([250.0, 10.0])
COVARIANCE = np.array([[600.0, 40.0], [40.0, 36.0]])
NOISE = 25.0
SCALE = np.diag([1 / 300, 1 / 3])


def data(people=18):
    """Return reaction times with their person and day, and the true lines."""
    rng = np.random.default_rng(8)
    line = rng.multivariate_normal(CENTRE, COVARIANCE, people)
    days = rng.integers(3, 11, people)
    person = np.repeat(np.arange(people), days)
    day = np.concatenate([np.arange(n) for n in days]).astype(float)
    y = line[person, 0] + line[person, 1] * day + NOISE * rng.normal(size=len(day))
    return y, person, day, line


def model(y, person, day, people, fixed=None):
    """Declare the network; `fixed` gives L and tau as numbers instead of learning them."""
    with svmp.Model(coords={"person": people, "term": ["intercept", "slope"]}) as network:
        if fixed is None:
            precision = svmp.Wishart("L", nu=3, V=SCALE, dims=("term", "term"))
            tau = svmp.Gamma("tau", alpha=1, beta=100)
        else:
            precision, tau = fixed
        centre = svmp.MvNormal("centre", mu=0, tau=0.0001 * np.eye(2), dims="term")
        line = svmp.MvNormal("line", mu=centre, tau=precision, dims=("person", "term"))
        svmp.Normal("y", mu=line[person, 0] + line[person, 1] * day, tau=tau, observed=y)
    return network


def main(path):
    y, person, day, line = data()
    fit = svmp.fit(model(y, person, day, len(line)))
    sd = np.sqrt(np.diag(np.linalg.inv(fit.mean("L"))))
    print(f"{len(y)} times of {len(line)} people; {fit.status}, bound {fit.bound:.2f}")
    print(f"common line {fit.mean('centre').round(1)}   (drawn with {CENTRE})")
    print(f"sd between people {sd.round(1)}   (drawn with {np.sqrt(np.diag(COVARIANCE)).round(1)})")
    print(f"noise {1 / np.sqrt(fit.mean('tau')):.1f}   (drawn with {NOISE})")
    plot(path, y, person, day, line, fit)


def plot(path, y, person, day, line, fit):
    fig, axes = figure(2, 4, (10.5, 5), sharex=True, sharey=True)
    grid, centre = np.array([0.0, 9.0]), fit.mean("centre")
    shown = np.argsort(np.bincount(person), kind="stable")[
        np.linspace(0, len(line) - 1, 8).astype(int)
    ]
    for ax, i in zip(axes.flat, shown, strict=True):
        here, (a, b) = person == i, fit.mean("line")[i]
        ax.plot(grid, centre[0] + centre[1] * grid, color=GREY, ls=":", label="common line")
        slope, intercept = np.polyfit(day[here], y[here], 1)
        ax.plot(grid, intercept + slope * grid, color=ORANGE, lw=1.2, label="least squares")
        ax.plot(grid, a + b * grid, color=BLUE, label="posterior mean")
        ax.plot(day[here], y[here], "o", color="#2B2B2B", ms=3)
        ax.set_title(f"{here.sum()} days")
        ax.set(ylim=(150, 520))
    for ax in axes[:, 0]:
        ax.set_ylabel("reaction, ms")
    for ax in axes[1]:
        ax.set_xlabel("day")
    axes[0, 3].legend(loc="upper left", fontsize=7.5)
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

"""Survey with poststratification: what does the whole population think, if the sample is skewed?

    logit P(yes) = centre + age_a + region_r + school_s
    centre ~ Normal(0, 0.1)      age_a ~ Normal(0, tau_age), and so on, each tau ~ Gamma(1, 0.1)

Each effect is a random effect, drawn towards zero by an amount that is learned.
Poststratification then predicts the share of yes in every cell (age, region, school), and weights
each cell by the number of people in it, which a census gives. Also called MRP.

See: old people with a long education answer more often, and the raw share of yes is far too high.
The weighted prediction is right, for the country and for the regions with few answers.
"""

import numpy as np
from _style import BLUE, GREY, ORANGE, figure, save, target

import svmp

SIZES = {"age": 5, "region": 12, "school": 3}


def data(answers=1500):
    """Return the cells' people and true shares of yes, and each answer's cell and value."""
    rng = np.random.default_rng(12)
    cells = np.indices(tuple(SIZES.values())).reshape(3, -1)
    age, region, school = cells
    people = rng.multinomial(2_000_000, rng.dirichlet(np.full(len(age), 2.0)))
    logit = -0.6 + 0.5 * (age - 2) + 0.8 * (school - 1) + 0.5 * rng.normal(size=12)[region]
    share = 1 / (1 + np.exp(-logit))
    willing = people * np.exp(0.5 * age + 0.7 * school + 0.7 * rng.normal(size=12)[region])
    cell = rng.choice(len(age), answers, p=willing / willing.sum())
    return cells, people, share, cell, (rng.random(answers) < share[cell]).astype(int)


def model(cells, cell, yes):
    with svmp.Model(coords=SIZES) as network:
        logit = svmp.Normal("centre", mu=0, tau=0.1)
        for name, key in zip(SIZES, cells, strict=True):
            tau = svmp.Gamma(f"tau_{name}", alpha=1, beta=0.1)
            effect = svmp.Normal(name, mu=0, tau=tau, dims=name)
            logit = logit + effect[key[cell]]
        svmp.Bernoulli("yes", logit=logit, observed=yes)
    return network


def shares(fit, cells, draws=2000):
    """Return draws of the share of yes in each cell."""
    logit = fit["centre"].draw(draws, seed=0)[:, None]
    for seed, (name, key) in enumerate(zip(SIZES, cells, strict=True), start=1):
        logit = logit + fit[name].draw(draws, seed=seed)[:, key]
    return 1 / (1 + np.exp(-logit))


def weighted(shares, people, region):
    """Return the shares of yes by region, weighted by the people of each cell."""
    here = region[:, None] == np.arange(SIZES["region"])
    return shares @ (here * people[:, None]) / (here * people[:, None]).sum(0)


def main(path):
    cells, people, share, cell, yes = data()
    fit = svmp.fit(model(cells, cell, yes))
    found = shares(fit, cells)
    truth, whole = share @ people / people.sum(), found @ people / people.sum()
    print(f"{len(yes)} answers, {fit.status}, bound {fit.bound:.2f}")
    print(f"share of yes: {yes.mean():.3f} in the sample, {whole.mean():.3f} weighted,", end=" ")
    print(f"{truth:.3f} in truth")
    region = cells[1]
    raw = np.bincount(region[cell], yes, 12) / np.bincount(region[cell], minlength=12)
    exact = weighted(share, people, region)
    by_region = weighted(found, people, region)
    for name, guess in (("raw", raw), ("weighted", by_region.mean(0))):
        print(f"error by region, {name:9} {np.sqrt(np.mean((guess - exact) ** 2)):.3f}")
    plot(path, np.bincount(region[cell], minlength=12), raw, by_region, exact)


def plot(path, answers, raw, found, exact):
    fig, ax = figure(1, 1, (9.5, 4.4))
    order, place = np.argsort(exact), np.arange(len(exact))
    low, high = np.quantile(found, (0.025, 0.975), axis=0)
    ax.vlines(place, low[order], high[order], color=BLUE, lw=5, alpha=0.25)
    ax.plot(place, found.mean(0)[order], "o", color=BLUE, label="weighted, with 95% interval")
    ax.plot(place, raw[order], "x", color=GREY, label="share of yes among the answers")
    ax.plot(place, exact[order], "_", color=ORANGE, ms=16, mew=2.5, label="truth")
    ax.set_xticks(place, [f"{n}" for n in answers[order]])
    ax.set(xlabel="regions, with their number of answers", ylabel="share of yes", ylim=(0, 1))
    ax.set_title("One survey, twelve regions")
    ax.legend(loc="upper left", ncols=3)
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

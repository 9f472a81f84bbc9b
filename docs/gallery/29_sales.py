"""Sales hierarchy: how much does a store sell, in which weeks, and what does a promotion add?

    region_r ~ Gamma(1, 1)                    small where stores sell much
    store_s ~ Gamma(6, region_r(s))           items a week of store s
    week_t ~ Gamma(50, 50)                    the season, about 1
    promotion ~ Gamma(4, 4)
    sold_st ~ Poisson(store_s week_t), times promotion in weeks with one

Everything that multiplies sales is a Gamma. Stores are drawn towards their region, so that a
store which opened three weeks ago borrows from its neighbours.

See: the effect of the promotion is told apart from the weeks it fell into. Stores with few weeks
are predicted better from the hierarchy than from their own average.
"""

import numpy as np
from _style import BLUE, INK, ORANGE, figure, save, target

import svmp

REGIONS, WEEKS = 5, 26
PROMOTION = 1.6
SHAPE = 6.0


def data(stores=60):
    """Return rows (store, week, promotion, sold), each store's region, and the truth."""
    rng = np.random.default_rng(21)
    region = rng.integers(0, REGIONS, stores)
    level = np.array([4.0, 8.0, 12.0, 20.0, 30.0])
    truth = {"store": rng.gamma(SHAPE, level[region] / SHAPE)}
    truth["week"] = 1 + 0.25 * np.sin(2 * np.pi * np.arange(WEEKS) / WEEKS)
    first = np.where(rng.random(stores) < 0.4, WEEKS - rng.integers(1, 4, stores), 0)
    store, week = np.nonzero(np.arange(WEEKS) >= first[:, None])
    promotion = rng.random(len(store)) < 0.1 + 0.3 * (truth["week"][week] > 1)
    mean = truth["store"][store] * truth["week"][week] * np.where(promotion, PROMOTION, 1)
    return store, week, promotion, rng.poisson(mean), region, truth


def model(store, week, promotion, sold, region):
    with svmp.Model(coords={"region": REGIONS, "store": len(region), "week": WEEKS}) as network:
        rate = svmp.Gamma("region", alpha=1, beta=1, dims="region")
        of_store = svmp.Gamma("store", alpha=SHAPE, beta=rate[region], dims="store")
        of_week = svmp.Gamma("week", alpha=50, beta=50, dims="week")
        factor = svmp.Gamma("promotion", alpha=4, beta=4)
        for name, rows in (("plain", ~promotion), ("promoted", promotion)):
            mean = of_store[store[rows]] * of_week[week[rows]]
            mean = mean * factor if name == "promoted" else mean
            svmp.Poisson(name, mu=mean, observed=sold[rows])
    return network


def main(path):
    store, week, promotion, sold, region, truth = data()
    fit = svmp.fit(model(store, week, promotion, sold, region))
    weeks = np.bincount(store)
    own = np.bincount(store, sold) / weeks
    new = weeks <= 3
    raw = sold[promotion].mean() / sold[~promotion].mean()
    print(f"{len(region)} stores, {new.sum()} of them new; {fit.status}, bound {fit.bound:.1f}")
    print(f"promotion: raw ratio {raw:.2f}, posterior {fit.mean('promotion'):.2f}", end=" ")
    print(f"± {fit['promotion'].std:.2f} (drawn with {PROMOTION})")
    for name, guess in (("own average", own), ("posterior mean", fit.mean("store"))):
        error = np.sqrt(np.mean((guess - truth["store"])[new] ** 2))
        print(f"error in new stores, {name:15} {error:.2f}")
    plot(path, own, weeks, region, truth, fit)


def plot(path, own, weeks, region, truth, fit):
    fig, (left, right) = figure(1, 2, (10.5, 4.2), gridspec_kw={"width_ratios": (3, 2)})
    new, q = weeks <= 3, fit["store"]
    place = np.argsort(np.argsort(region * 1000 + truth["store"])) + 2.0 * region
    left.vlines(place, q.mean - 2 * q.std, q.mean + 2 * q.std, color=BLUE, alpha=0.35, lw=3)
    left.plot(place, q.mean, "o", color=BLUE, ms=3.5, label="posterior mean ± 2 sd")
    left.plot(place[new], own[new], "x", color=ORANGE, label="own average of a new store")
    left.plot(place, truth["store"], "_", color=INK, ms=7, label="truth")
    middle = [place[region == r].mean() for r in range(REGIONS)]
    left.set_xticks(middle, [f"region {r + 1}" for r in range(REGIONS)])
    left.grid(visible=False, axis="x")
    left.set(ylabel="items a week", ylim=(0, None))
    left.set_title("Stores by region")
    left.legend(loc="upper left")
    w = fit["week"]
    right.errorbar(np.arange(WEEKS), w.mean, 2 * w.std, fmt="o", color=BLUE, ms=3.5)
    right.plot(truth["week"], color=INK, ls=":", label="truth")
    right.set(xlabel="week", ylabel="factor of the week")
    right.set_title("Season")
    right.legend()
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

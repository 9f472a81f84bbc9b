"""Change point: when did the rate of accidents change, and how certain is that?

    rate_before, rate_after ~ Gamma(1, 1)
    change ~ Categorical over the years, all alike
    count_t ~ Poisson(rate_before) in years before the change, Poisson(rate_after) from then on

One choice is shared by all rows: a mixture whose components are the possible years of the change,
and whose rates are looked up by row and component. The counts are coal-mining disasters in
Britain by year, 1851 to 1961 (Jarrett 1979).

See: the rate falls from three disasters a year to one, around 1890. q of the year is near the
exact posterior, a sum over all years in which the two rates are integrated out.
"""

import numpy as np
from _style import BLUE, GREY, ORANGE, figure, save, target
from scipy.special import gammaln, softmax

import svmp

COUNTS = np.array(
    [int(c) for c in "454014340633402633545314415534252234213221111300101100310322011"]
    + [int(c) for c in "101010002100011023311211112420014000100000100101"]
)
YEARS = 1851 + np.arange(len(COUNTS))


def data():
    return COUNTS


def model(counts):
    years = len(counts)
    after = np.arange(years)[:, None] >= np.arange(1, years)  # of each year, by year of the change
    coords = {"year": years, "change": years - 1, "side": ["before", "after"]}
    with svmp.Model(coords=coords) as network:
        rate = svmp.Gamma("rate", alpha=1, beta=1, dims="side")
        p = svmp.data(np.full(years - 1, 1 / (years - 1)), dims="change")
        change = svmp.Categorical("change_at", p=p)
        side = svmp.data(after.astype(int), dims=("year", "change"))
        component = svmp.Poisson.dist(mu=rate[side])
        svmp.Mixture("count", change, component, dims="year", observed=counts)
    return network


def exact(counts):
    """Return log p(counts, change) for each year of the change, with the rates integrated out."""
    total, years = counts.sum(), len(counts)
    before, n = np.cumsum(counts)[:-1], np.arange(1, years)
    one = gammaln(1 + before) - (1 + before) * np.log(1 + n)
    two = gammaln(1 + total - before) - (1 + total - before) * np.log(1 + years - n)
    return one + two - gammaln(counts + 1).sum() - np.log(years - 1)


def main(path):
    counts = data()
    fit = svmp.fit(model(counts), svmp.FullVB(), tol=1e-10)
    year, q, p = YEARS[1:], fit.mean("change_at"), softmax(exact(counts))
    print(f"{len(counts)} years; {fit.status}, bound {fit.bound:.3f}")
    print("disasters a year: {:.2f} before, {:.2f} after".format(*fit.mean("rate")))
    print(f"year of the change: q {q @ year:.1f}, exact {p @ year:.1f}; most probable", end=" ")
    print(f"{year[q.argmax()]} and {year[p.argmax()]}")
    plot(path, counts, fit, q, p)


def plot(path, counts, fit, q, p):
    heights = {"height_ratios": (3, 2)}
    fig, (top, low) = figure(2, 1, (9.5, 5.4), sharex=True, gridspec_kw=heights)
    top.bar(YEARS, counts, 0.8, color=GREY, alpha=0.6)
    before = np.concatenate([[1.0], 1 - np.cumsum(q)])  # q that the change is still to come
    top.plot(YEARS, fit.mean("rate") @ [before, 1 - before], color=BLUE)
    top.annotate("posterior mean of the rate", (1894, 3.3), color=BLUE, weight="bold")
    top.set(ylabel="disasters")
    top.set_title("Coal-mining disasters by year")
    low.bar(YEARS[1:], q, 0.8, color=BLUE, alpha=0.5, label="q")
    low.step(YEARS[1:], p, where="mid", color=ORANGE, label="exact")
    low.set(ylabel="probability", xlabel="year of the change", xlim=(1850, 1962))
    low.legend(loc="upper right")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

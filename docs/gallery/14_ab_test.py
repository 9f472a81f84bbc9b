"""A/B test: which of two pages makes more visitors buy, and by how much?

    p_v ~ Beta(1, 1)                     v = A, B
    buyers_v ~ Binomial(visitors_v, p_v)

One hidden number for each page, and nothing else: q is the exact posterior. The probability that
B is better, and the expected loss of choosing it, follow from draws of the two Betas.

See: B is better with a probability of 0.92. A decision needs the expected loss: choosing B loses
0.0003 buyers a visitor on average, choosing A forty times as many.
"""

import numpy as np
from _style import BLUE, GREY, ORANGE, figure, save, target
from scipy import stats

import svmp

PAGES = ("A", "B")
TRUTH = np.array([0.10, 0.12])


def data(visitors=(2400, 2350)):
    """Return visitors and buyers of each page."""
    visitors = np.array(visitors)
    return visitors, np.random.default_rng(1).binomial(visitors, TRUTH)


def model(visitors, buyers):
    with svmp.Model(coords={"page": PAGES}) as network:
        p = svmp.Beta("p", alpha=1, beta=1, dims="page")
        svmp.Binomial("buyers", n=visitors, p=p, dims="page", observed=buyers)
    return network


def compare(fit, count=100_000):
    """Return draws of p_B - p_A."""
    a, b = fit["p"].draw(count, seed=1).T
    return b - a


def main(path):
    visitors, buyers = data()
    fit = svmp.fit(model(visitors, buyers))
    gain = compare(fit)
    for page, n, k, q in zip(PAGES, visitors, buyers, fit.mean("p"), strict=True):
        print(f"page {page}: {k} of {n} visitors buy, E[p] = {q:.4f}")
    print(f"P(B better than A) = {np.mean(gain > 0):.3f}")
    print(
        f"gain of B: {np.mean(gain):+.4f}, 95% between {np.quantile(gain, 0.025):+.4f} and", end=" "
    )
    print(f"{np.quantile(gain, 0.975):+.4f}")
    print(f"expected loss of choosing B {np.mean(np.maximum(-gain, 0)):.5f}, of A", end=" ")
    print(f"{np.mean(np.maximum(gain, 0)):.5f}")
    plot(path, fit, gain)


def plot(path, fit, gain):
    fig, (left, right) = figure(1, 2, (9.5, 3.6))
    grid = np.linspace(0.07, 0.15, 500)
    q = fit["p"]
    for i, (page, colour) in enumerate(zip(PAGES, (BLUE, ORANGE), strict=True)):
        density = stats.beta(q.alpha[i], q.beta[i]).pdf(grid)
        left.fill_between(grid, density, color=colour, alpha=0.2, lw=0)
        left.plot(grid, density, color=colour)
        side = ("right", "left")[i]
        place = grid[np.flatnonzero(density > density.max() / 2)[0 if side == "right" else -1]]
        left.annotate(
            f"page {page}",
            (place, density.max() / 2),
            xytext=(-5 if side == "right" else 14, 0),
            textcoords="offset points",
            ha=side,
            color=colour,
            weight="bold",
        )
        left.axvline(TRUTH[i], color=colour, ls="--", lw=1)
    left.set(title="Share of buyers (dashed: truth)", yticks=[], xlabel="p")
    left.set(ylim=(0, left.get_ylim()[1] * 1.06), xlim=(grid[0], grid[-1]))
    counts, edges = np.histogram(gain, 80, density=True)
    middle = (edges[1:] + edges[:-1]) / 2
    right.bar(middle, counts, np.diff(edges), color=np.where(middle > 0, ORANGE, GREY))
    right.axvline(0, color=GREY, lw=1)
    right.set(title=f"P(B better) = {np.mean(gain > 0):.2f}", yticks=[], xlabel="p of B − p of A")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

"""Zero inflation: how many of those who caught nothing did not fish at all?

    share ~ Dirichlet(1, 1)         z_n ~ Categorical(share)       did not fish, or fished
    rate ~ Gamma(1, 0.1)
    count_n ~ Poisson(rate) if they fished, else 0

Visitors of a lake say how many fish they caught. Those who did not fish have a rate that is as
good as zero, 1e-9 times that of the others: a rate must be positive.

See: a Poisson alone has a rate that is much too low, and expects few zeros. The mixture tells the
two kinds of zeros apart, and q is close to the exact posterior on a grid.
"""

import numpy as np
from _style import BLUE, GREY, INK, ORANGE, figure, save, target
from scipy import stats
from scipy.special import logsumexp

import svmp

TRUTH = {"fished": 0.6, "rate": 3.0}


def data(visitors=250):
    rng = np.random.default_rng(16)
    fished = rng.random(visitors) < TRUTH["fished"]
    return rng.poisson(TRUTH["rate"], visitors) * fished


def model(count):
    with svmp.Model(coords={"visitor": len(count), "kind": ["none", "fished"]}) as network:
        share = svmp.Dirichlet("share", a=1, dims="kind")
        z = svmp.Categorical("z", p=share, dims="visitor")
        rate = svmp.Gamma("rate", alpha=1, beta=0.1)
        component = svmp.Poisson.dist(mu=rate * svmp.data([1e-9, 1], dims="kind"))
        svmp.Mixture("count", z, component, dims="visitor", observed=count)
    return network


def exact(count, points=400):
    """Return the grid of (share, rate), log p(count, share, rate) on it, and the log evidence."""
    share, rate = np.linspace(0.001, 0.999, points), np.linspace(1.5, 5, points)[:, None]
    zeros, rest = np.sum(count == 0), count[count > 0]
    log_p = zeros * np.log(1 - share + share * np.exp(-rate)) + len(rest) * np.log(share)
    log_p = log_p + stats.poisson(rate).logpmf(rest).sum(1, keepdims=True)
    log_p = log_p + stats.gamma(1, scale=10).logpdf(rate)
    cell = (share[1] - share[0]) * (rate[1, 0] - rate[0, 0])
    return share, rate[:, 0], log_p, float(logsumexp(log_p) + np.log(cell))


def main(path):
    count = data()
    fit = svmp.fit(model(count))
    grid = exact(count)
    share, rate, log_p, evidence = grid
    p = np.exp(log_p - logsumexp(log_p))
    print(f"{len(count)} visitors, {np.sum(count == 0)} without fish; {fit.status}")
    print(f"fished: q {fit.mean('share')[1]:.3f}, exact {p.sum(0) @ share:.3f}, truth 0.6")
    print(f"rate:   q {fit.mean('rate'):.3f}, exact {p.sum(1) @ rate:.3f}, truth 3")
    print(f"bound {fit.bound:.2f}, log evidence {evidence:.2f}")
    print(f"a visitor without fish did not fish: {fit.mean('z')[count == 0][0, 0]:.2f}")
    plot(path, count, fit, share, rate, p)


def plot(path, count, fit, share, rate, p):
    fig, (left, right) = figure(1, 2, (10, 4))
    values = np.arange(count.max() + 1)
    left.bar(values, np.bincount(count), 0.7, color=GREY, alpha=0.5, label="visitors")
    fished = fit.mean("share")[1]
    expected = fished * stats.poisson(fit.mean("rate")).pmf(values) + (1 - fished) * (values == 0)
    left.plot(values, len(count) * expected, "o-", color=BLUE, label="with zero inflation")
    alone = stats.poisson(count.mean()).pmf(values)
    left.plot(values, len(count) * alone, "o--", color=INK, lw=1, ms=3, label="Poisson alone")
    left.set(xlabel="fish", ylabel="visitors")
    left.set_title("Too many zeros for a Poisson")
    left.legend()
    right.contour(share, rate, p, 6, colors=ORANGE, linewidths=1.2)
    a, q = fit["share"].a, fit["rate"]
    density = stats.beta(a[1], a[0]).pdf(share) * stats.gamma(q.alpha, scale=1 / q.beta).pdf(
        rate[:, None]
    )
    right.contour(share, rate, density, 6, colors=BLUE, linewidths=1.2)
    right.plot(*TRUTH.values(), "x", color=INK)
    right.plot([], [], color=BLUE, label="q")
    right.plot([], [], color=ORANGE, label="exact")
    right.set(xlabel="share who fished", ylabel="rate", xlim=(0.45, 0.8), ylim=(2.3, 3.7))
    right.set_title("Posterior (x: truth)")
    right.legend(loc="upper right")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

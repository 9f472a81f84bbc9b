"""One hidden variable: five conjugate pairs, for which everything is known exactly.

    p    ~ Beta(2, 2)            x_n ~ Bernoulli(p)
    rate ~ Gamma(2, 1/2)         x_n ~ Poisson(rate)
    p    ~ Dirichlet(1, 1, 1)    x_n ~ Categorical(p)
    mu   ~ Normal(0, 1)          x_n ~ Normal(mu, 2)
    L    ~ Wishart(4, I/4)       x_n ~ MvNormal(0, L)

See: with nothing else hidden, one sweep makes q the exact posterior, and the bound is the log
evidence log p(x) itself, to the last digits.
"""

import numpy as np
from _style import BLUE, GREY, ORANGE, ellipse, figure, save, target
from scipy import stats
from scipy.special import betaln, gammaln, multigammaln

import svmp

TRUTH = {
    "Beta-Bernoulli": 0.7,
    "Gamma-Poisson": 4.0,
    "Dirichlet-Categorical": np.array([0.5, 0.3, 0.2]),
    "Normal-Normal": 0.8,
    "Wishart-MvNormal": np.linalg.inv([[1.0, 0.6], [0.6, 0.8]]),
}


def data(count=40):
    rng = np.random.default_rng(7)
    p, rate, q, mu, precision = TRUTH.values()
    draws = (
        rng.binomial(1, p, count),
        rng.poisson(rate, count),
        rng.choice(3, count, p=q),
        rng.normal(mu, np.sqrt(1 / 2), count),
        rng.multivariate_normal(np.zeros(2), np.linalg.inv(precision), count),
    )
    return dict(zip(TRUTH, draws, strict=True))


def model(x):
    """Declare the five networks; the hidden variable of each is called theta."""
    networks = {name: svmp.Model(coords={"category": 3, "axis": 2}) for name in TRUTH}
    coin, counts, categories, normal, vectors = (x[name] for name in TRUTH)
    with networks["Beta-Bernoulli"]:
        p = svmp.Beta("theta", alpha=2, beta=2)
        svmp.Bernoulli("x", p=p, observed=coin)
    with networks["Gamma-Poisson"]:
        rate = svmp.Gamma("theta", alpha=2, beta=0.5)
        svmp.Poisson("x", mu=rate, observed=counts)
    with networks["Dirichlet-Categorical"]:
        p = svmp.Dirichlet("theta", a=1, dims="category")
        svmp.Categorical("x", p=p, observed=categories)
    with networks["Normal-Normal"]:
        mu = svmp.Normal("theta", mu=0, tau=1)
        svmp.Normal("x", mu=mu, tau=2, observed=normal)
    with networks["Wishart-MvNormal"]:
        precision = svmp.Wishart("theta", nu=4, V=np.eye(2) / 4, dims=("axis", "axis"))
        svmp.MvNormal("x", mu=np.zeros(2), tau=precision, dims=("row", "axis"), observed=vectors)
    return networks


def log_evidence(x):
    """Return log p(x) of each network, by textbook formulas."""
    coin, counts, categories, normal, vectors = (x[name] for name in TRUTH)
    n = len(coin)
    hits, total, each = coin.sum(), counts.sum(), np.bincount(categories, minlength=3)
    covariance = np.eye(n) / 2 + 1  # of x, with mu integrated out
    scatter = 4 * np.eye(2) + vectors.T @ vectors
    gamma_ratio = gammaln(2 + total) - gammaln(2)
    values = (
        betaln(2 + hits, 2 + n - hits) - betaln(2, 2),
        gamma_ratio - total * np.log(0.5 + n) - 2 * np.log1p(2 * n) - gammaln(counts + 1).sum(),
        gammaln(1 + each).sum() + gammaln(3) - gammaln(3 + n),
        stats.multivariate_normal(np.zeros(n), covariance).logpdf(normal),
        multigammaln((4 + n) / 2, 2)
        - multigammaln(2, 2)
        - n * np.log(np.pi)
        + 2 * np.linalg.slogdet(4 * np.eye(2))[1]
        - (4 + n) / 2 * np.linalg.slogdet(scatter)[1],
    )
    return dict(zip(TRUTH, map(float, values), strict=True))


def main(path):
    x = data()
    exact = log_evidence(x)
    fits = {name: svmp.fit(network, svmp.FullVB()) for name, network in model(x).items()}
    for name, fit in fits.items():
        print(f"{name:22} bound {fit.bound:11.6f}   log evidence {exact[name]:11.6f}")
    plot(path, x, fits, exact)


def plot(path, x, fits, exact):
    fig, axes = figure(2, 3, (10.5, 5.8))
    (beta, gamma, bars), (normal, plane, gaps) = axes
    q = {name: fit["theta"] for name, fit in fits.items()}
    b, g, n = q["Beta-Bernoulli"], q["Gamma-Poisson"], q["Normal-Normal"]
    densities = (
        (beta, (0, 1), stats.beta(2, 2), stats.beta(b.alpha, b.beta)),
        (gamma, (0, 8), stats.gamma(2, scale=2), stats.gamma(g.alpha, scale=1 / g.beta)),
        (normal, (-2.5, 2.5), stats.norm(0, 1), stats.norm(n.mu, n.std)),
    )
    for ax, (low, high), prior, posterior in densities:
        grid = np.linspace(low, high, 400)
        ax.plot(grid, prior.pdf(grid), color=GREY, label="prior")
        ax.fill_between(grid, posterior.pdf(grid), color=BLUE, alpha=0.2)
        ax.plot(grid, posterior.pdf(grid), color=BLUE, label="posterior")
        ax.set(ylim=(0, None), xlim=(low, high), yticks=[])
    titles = {"Beta-Bernoulli": beta, "Gamma-Poisson": gamma, "Normal-Normal": normal}
    for name, ax in titles.items():
        ax.axvline(TRUTH[name], color=ORANGE, ls="--", label="truth")
        ax.set_title(name)
    beta.legend(loc="upper left")

    d = q["Dirichlet-Categorical"]
    places = np.arange(3)
    bars.bar(places, d.mean, 0.6, color=BLUE, alpha=0.35)
    bars.errorbar(places, d.mean, 2 * d.std, fmt="none", color=BLUE, capsize=4)
    name = "Dirichlet-Categorical"
    bars.hlines(TRUTH[name], places - 0.35, places + 0.35, color=ORANGE, ls="--")
    bars.set(title=name, xticks=places, xlabel="category", ylim=(0, 0.9))

    plane.plot(*x["Wishart-MvNormal"].T, ".", color=GREY, ms=4)
    for precision in q["Wishart-MvNormal"].draw(25, seed=2):
        ellipse(plane, (0, 0), np.linalg.inv(precision), color=BLUE, alpha=0.25, lw=1)
    ellipse(plane, (0, 0), np.linalg.inv(TRUTH["Wishart-MvNormal"]), color=ORANGE, ls="--")
    plane.autoscale_view()
    plane.set(title="Wishart-MvNormal", aspect="equal", adjustable="datalim")

    gap = [max(abs(fits[name].bound - exact[name]), 1e-16) for name in TRUTH]
    gaps.plot(gap, np.arange(5)[::-1], "o", color=BLUE)
    gaps.axvline(1e-10, color=GREY, ls=":")
    gaps.set(xscale="log", xlim=(1e-17, 1e-8), ylim=(-0.6, 4.6), xlabel="nats")
    gaps.set_yticks(np.arange(5)[::-1], [name.replace("-", "-\n") for name in TRUTH], fontsize=7.5)
    gaps.set_title("|bound − log evidence|")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

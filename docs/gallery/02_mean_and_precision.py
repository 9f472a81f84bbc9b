"""A Normal with unknown mean and precision: the smallest network on which q is not exact.

    tau ~ Gamma(1, 1)      mu ~ Normal(0, tau / 2)      x_n ~ Normal(mu, tau)

The exact posterior is a Normal-Gamma, in which mu and tau depend on each other; q(mu) q(tau)
cannot (Bishop, Pattern Recognition and Machine Learning, section 10.1.3).

See: q has the right centre, but cannot widen in mu where tau is small, as the exact posterior
does. The bound climbs in a few sweeps to just below the log evidence; the gap that stays is
KL(q || p), the price of factorising.
"""

import numpy as np
from _style import BLUE, GREY, ORANGE, figure, save, target
from scipy import stats
from scipy.special import gammaln

import svmp

ALPHA, BETA, MU, LAMBDA = 1.0, 1.0, 0.0, 0.5


def data(count=8):
    return np.random.default_rng(8).normal(1.0, 1.5, count)


def model(x):
    with svmp.Model() as network:
        tau = svmp.Gamma("tau", alpha=ALPHA, beta=BETA)
        mu = svmp.Normal("mu", mu=MU, tau=LAMBDA * tau)
        svmp.Normal("x", mu=mu, tau=tau, observed=x)
    return network


def exact(x):
    """Return the posterior Normal-Gamma (mu, lambda, alpha, beta) and the log evidence."""
    n, mean = len(x), x.mean()
    lam, alpha = LAMBDA + n, ALPHA + n / 2
    mu = (LAMBDA * MU + n * mean) / lam
    squares = ((x - mean) ** 2).sum() + LAMBDA * n * (mean - MU) ** 2 / lam
    beta = BETA + squares / 2
    evidence = gammaln(alpha) - gammaln(ALPHA) + ALPHA * np.log(BETA) - alpha * np.log(beta)
    evidence += 0.5 * np.log(LAMBDA / lam) - n / 2 * np.log(2 * np.pi)
    return (mu, lam, alpha, beta), float(evidence)


def main(path):
    x = data()
    fit = svmp.fit(model(x), svmp.FullVB(), tol=1e-12)
    posterior, evidence = exact(x)
    print(f"q(mu)  = Normal({fit['mu'].mu:.4f}, precision {fit['mu'].tau:.4f})")
    print(f"q(tau) = Gamma({fit['tau'].alpha:.4f}, {fit['tau'].beta:.4f})")
    print(f"bound {fit.bound:.6f}   log evidence {evidence:.6f}   gap {evidence - fit.bound:.6f}")
    plot(path, fit, posterior, evidence)


def plot(path, fit, posterior, evidence):
    fig, (plane, climb) = figure(1, 2, (9.5, 4), width_ratios=(1.3, 1))
    mu, lam, alpha, beta = posterior
    width, top = 3.5 * fit["mu"].std, stats.gamma(alpha, scale=1 / beta).ppf(0.9995)
    m, t = np.meshgrid(np.linspace(mu - width, mu + width, 300), np.linspace(0.001, top, 300))
    p = stats.norm(mu, 1 / np.sqrt(lam * t)).pdf(m) * stats.gamma(alpha, scale=1 / beta).pdf(t)
    q_mu, q_tau = fit["mu"], fit["tau"]
    q = stats.norm(q_mu.mu, q_mu.std).pdf(m)
    q = q * stats.gamma(q_tau.alpha, scale=1 / q_tau.beta).pdf(t)
    levels = p.max() * np.array([0.05, 0.2, 0.4, 0.6, 0.8])
    plane.contourf(m, t, p, [*levels, p.max()], cmap="Greys", alpha=0.55)
    plane.contour(m, t, q, levels, colors=BLUE, linewidths=1.4)
    plane.plot([], [], color=BLUE, label="q(μ) q(τ)")
    plane.plot([], [], "s", color=GREY, ms=9, alpha=0.6, label="exact p(μ, τ | x)")
    plane.set(xlabel="mean μ", ylabel="precision τ", title="The posterior and its approximation")
    plane.legend(loc="upper right")

    bound = fit.trace["bound"][:6]
    climb.axhline(evidence, color=ORANGE, ls="--", label=f"log evidence {evidence:.3f}")
    climb.plot(np.arange(1, len(bound) + 1), bound, "o-", color=BLUE, label="bound")
    climb.set(xlabel="sweep", ylabel="nats", title="The bound, sweep by sweep")
    climb.legend(loc="center right")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

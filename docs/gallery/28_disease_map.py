"""Disease mapping: in which areas is the risk really higher?

    beta ~ Gamma(1, 1)            risk_i ~ Gamma(8, beta)
    cases_i ~ Poisson(expected_i risk_i)

`expected` is what the area would have at the common risk, from the age and number of its people.
The raw ratio cases / expected is extreme where few people live. The hierarchy draws each area
towards the others, the more the fewer cases it expects.

See: the raw map shows the small areas, the fitted map the risk. q is compared with the exact
posterior, an integral over beta in which each area is negative binomial.
"""

import numpy as np
from _style import BLUE, GREY, ORANGE, figure, save, target
from scipy import stats
from scipy.special import logsumexp

import svmp

SIDE = 12
ALPHA = 8.0


def data():
    """Return cases and expected cases of the areas of a square, and their true risks."""
    rng = np.random.default_rng(18)
    expected = rng.lognormal(1.4, 1.1, SIDE**2)
    risk = rng.gamma(ALPHA, 1 / 8, SIDE**2)
    return rng.poisson(expected * risk), expected, risk


def model(cases, expected):
    with svmp.Model(coords={"area": len(cases)}) as network:
        beta = svmp.Gamma("beta", alpha=1, beta=1)
        risk = svmp.Gamma("risk", alpha=ALPHA, beta=beta, dims="area")
        svmp.Poisson("cases", mu=risk * expected, dims="area", observed=cases)
    return network


def exact(cases, expected, points=3000):
    """Return means and deviations of the risks, and the log evidence, over a grid of beta."""
    beta = np.linspace(0.01, 25, points)[:, None]
    log_p = stats.nbinom(ALPHA, beta / (beta + expected)).logpmf(cases).sum(1) - beta[:, 0]
    weight = np.exp(log_p - logsumexp(log_p))
    mean = weight @ ((ALPHA + cases) / (beta + expected))
    square = weight @ ((ALPHA + cases) * (ALPHA + cases + 1) / (beta + expected) ** 2)
    step = beta[1, 0] - beta[0, 0]
    return mean, np.sqrt(square - mean**2), float(logsumexp(log_p) + np.log(step))


def main(path):
    cases, expected, risk = data()
    fit = svmp.fit(model(cases, expected), tol=1e-9)
    mean, sd, evidence = exact(cases, expected)
    q = fit["risk"]
    print(f"{len(cases)} areas, {cases.sum()} cases; {fit.status}")
    print(f"bound {fit.bound:.3f}, log evidence {evidence:.3f}")
    print(f"largest difference from the exact means {np.abs(q.mean - mean).max():.4f},", end=" ")
    print(f"standard deviations {np.abs(q.std - sd).max():.4f}")
    for name, guess in (("cases / expected", cases / expected), ("posterior mean", q.mean)):
        print(f"error of the risk, {name:17} {np.sqrt(np.mean((guess - risk) ** 2)):.2f}")
    plot(path, cases, expected, risk, q.mean)


def plot(path, cases, expected, risk, found):
    fig, axes = figure(1, 4, (12, 3), gridspec_kw={"width_ratios": (1, 1, 1.2, 1.1)})
    maps = (("cases / expected", cases / expected), ("posterior mean", found), ("truth", risk))
    for ax, (name, value) in zip(axes, maps, strict=False):
        shades = ax.imshow(value.reshape(SIDE, SIDE), cmap="cividis", vmin=0, vmax=2.2)
        ax.set_title(name)
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
    fig.colorbar(shades, ax=axes[2], label="risk", fraction=0.046, extend="max")
    axes[3].plot(expected, cases / expected, ".", color=GREY, label="cases / expected")
    axes[3].plot(expected, found, ".", color=BLUE, label="posterior mean")
    axes[3].axhline(1, color=ORANGE, lw=1)
    axes[3].set(xscale="log", xlabel="expected cases", ylim=(0, 4))
    axes[3].set_title("Small areas are extreme")
    axes[3].legend(fontsize=7.5)
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

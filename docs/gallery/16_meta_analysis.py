"""Meta-analysis: what do eight small studies say together?

    mu ~ Normal(0, 0.0025)      tau ~ Gamma(1, 50)
    effect_j ~ Normal(mu, tau)
    y_j ~ Normal(effect_j, 1 / se_j^2)         y and se as reported

The eight schools of Rubin (1981): effects of coaching on a test, with their standard errors. Each
study's effect is drawn towards the common mean, the more the less precise the study is.

See: the largest reported effect, 28 points, becomes 11. Means of q agree with the exact ones,
which are a sum over a grid of tau. Its standard deviations are too small, that of mu by half: q
has no correlation between mu and the effects. With `joint=` it has, and is nearer.
"""

import numpy as np
from _style import BLUE, GREY, ORANGE, figure, save, target
from scipy.special import logsumexp

import svmp

Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SE = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
STUDIES = list("ABCDEFGH")
ALPHA, BETA = 1.0, 50.0
"""Prior of the precision between studies: a standard deviation of 4 to 20 or so."""


def data():
    return Y, SE


def model(y, se):
    with svmp.Model(coords={"study": STUDIES}) as network:
        mu = svmp.Normal("mu", mu=0, tau=0.0025)
        tau = svmp.Gamma("tau", alpha=ALPHA, beta=BETA)
        effect = svmp.Normal("effect", mu=mu, tau=tau, dims="study")
        svmp.Normal("y", mu=effect, tau=1 / se**2, dims="study", observed=y)
    return network


def exact(y, se, points=2000):
    """Return means and standard deviations of mu and of the effects, over a grid of tau."""
    tau = np.exp(np.linspace(np.log(1e-5), np.log(2), points))[:, None]
    spread = 1 / (se**2 + 1 / tau)  # precision of y given mu
    v_mu = 1 / (0.0025 + spread.sum(1, keepdims=True))
    m_mu = v_mu * (spread * y).sum(1, keepdims=True)
    log_y = 0.5 * (np.log(spread).sum(1) + np.log(v_mu[:, 0]) - (spread * y**2).sum(1))
    log_y += 0.5 * m_mu[:, 0] ** 2 / v_mu[:, 0]
    log_weight = log_y + ALPHA * np.log(tau[:, 0]) - BETA * tau[:, 0]  # on a grid of log tau
    weight = np.exp(log_weight - logsumexp(log_weight))[:, None]
    own = tau / (tau + 1 / se**2)  # how far an effect is drawn towards mu
    mean = own * m_mu + (1 - own) * y
    square = mean**2 + 1 / (tau + 1 / se**2) + own**2 * v_mu
    means = np.append(weight.T @ m_mu, weight.T @ mean)
    squares = np.append(weight.T @ (m_mu**2 + v_mu), weight.T @ square)
    return means, np.sqrt(squares - means**2)


def main(path):
    y, se = data()
    fit = svmp.fit(model(y, se), tol=1e-9)
    mean, sd = exact(y, se)
    print(f"{fit.status}, bound {fit.bound:.3f}")
    print(f"mu: q {fit.mean('mu'):.2f} ± {fit['mu'].std:.2f}, exact {mean[0]:.2f} ± {sd[0]:.2f}")
    joint = svmp.fit(model(y, se), joint=[("mu", "effect")])
    print(f"mu with joint=: {joint.mean('mu'):.2f} ± {joint['mu'].std:.2f}")
    print(f"study A: reported {y[0]:.0f}, q {fit.mean('effect')[0]:.2f}, exact {mean[1]:.2f}")
    plot(path, y, se, fit, mean, sd)


def plot(path, y, se, fit, mean, sd):
    fig, ax = figure(1, 1, (8.5, 4.8))
    place = np.arange(len(y), 0, -1)
    kinds = (
        ("reported", GREY, y, se, place, 0.24),
        ("q", BLUE, np.append(fit.mean("mu"), fit.mean("effect")),
         np.append(fit["mu"].std, fit["effect"].std), np.append(0, place), 0.0),
        ("exact", ORANGE, mean, sd, np.append(0, place), -0.24),
    )  # fmt: skip
    for label, colour, m, s, at, shift in kinds:
        ax.errorbar(m, at + shift, xerr=2 * s, fmt="o", color=colour, ms=4, label=label, capsize=2)
    ax.axhline(0.5, color=GREY, lw=0.8)
    ax.set_yticks(np.append(place, 0), [f"study {s}" for s in STUDIES] + ["all: mu"])
    ax.set(xlabel="effect in points, ± 2 sd", xlim=(-40, 65))
    ax.set_title("Eight schools")
    ax.legend(loc="center right")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

"""A mixture of Normal vectors with Wishart precisions: eruptions of Old Faithful.

    weight ~ Dirichlet(0.01, ..., 0.01)    z_n ~ Categorical(weight)
    mu_k ~ MvNormal(0, beta L_k)           L_k ~ Wishart(3, I)
    x_n ~ MvNormal(mu_z, L_z)              x standardised, beta = 0.3

The prior is Bishop's (Pattern Recognition and Machine Learning, section 10.2): the precision of a
component's mean is a multiple of its own precision.

See: of six components the sparse Dirichlet empties those that the data do not need. Every start
ends with two: short eruptions after short waits, and long ones after long waits. Optima are local,
and the bound compares them: with beta = 0.1 these starts keep a third component for the few
eruptions in between, 7 nats below the optimum with two.
"""

import numpy as np
from _style import BLUE, GREY, ORANGE, SHARED, ellipse, figure, save, target

import svmp

COMPONENTS, STARTS, BETA = 6, 6, 0.3


def data():
    """Return the 272 eruptions (minutes, minutes of waiting), or generated data like them."""
    file = SHARED / "faithful" / "faithful.csv"
    if file.exists():
        return np.loadtxt(file, delimiter=",", skiprows=1)
    rng = np.random.default_rng(0)
    short = rng.multivariate_normal([2.04, 54.5], [[0.07, 0.44], [0.44, 33.7]], 97)
    long = rng.multivariate_normal([4.29, 80.0], [[0.17, 0.94], [0.94, 36.0]], 175)
    return rng.permutation(np.vstack([short, long]))


def standardised(x):
    return (x - x.mean(0)) / x.std(0)


def model(x):
    with svmp.Model(coords={"row": len(x), "component": COMPONENTS, "axis": 2}) as network:
        weight = svmp.Dirichlet("weight", a=0.01, dims="component")
        z = svmp.Categorical("z", p=weight, dims="row")
        tau = svmp.Wishart("tau", nu=3, V=np.eye(2), dims=("component", "axis", "axis"))
        mu = svmp.MvNormal("mu", mu=0, tau=BETA * tau, dims=("component", "axis"))
        normal = svmp.MvNormal.dist(mu=mu, tau=tau)
        svmp.Mixture("x", z, normal, dims=("row", "axis"), observed=x)
    return network


def in_use(fit):
    """Return the components with more than a hundredth of the rows, the largest first."""
    weight = fit.mean("weight")
    return [int(k) for k in np.argsort(-weight) if weight[k] > 0.01]


def main(path):
    x = data()
    network = model(standardised(x))
    fits = [svmp.fit(network, svmp.FullVB(), seed=seed) for seed in range(STARTS)]
    fit = max(fits, key=lambda f: f.bound)
    weight, means = fit.mean("weight"), fit.mean("mu") * x.std(0) + x.mean(0)
    print(f"best of {STARTS} starts: {fit.status} after {len(fit.trace)} sweeps, {fit.bound:.3f}")
    for k in in_use(fit):
        print(f"weight {weight[k]:.3f}   eruption {means[k, 0]:.2f}   waiting {means[k, 1]:.1f}")
    plot(path, x, fits, fit, means)


def plot(path, x, fits, best, means):
    fig, (plane, ends) = figure(1, 2, (9.5, 4.2), width_ratios=(2, 1))
    members = best.mean("z").argmax(1)
    for k, colour in zip(in_use(best), (BLUE, ORANGE, GREY), strict=False):
        covariance = np.linalg.inv(best.mean("tau")[k]) * np.outer(x.std(0), x.std(0))
        for radius in (1, 2):
            ellipse(plane, means[k], covariance, radius, color=colour)
        plane.scatter(*x[members == k].T, s=16, color=colour, alpha=0.5, lw=0)
        plane.plot(*means[k], "+", color=colour, ms=12, mew=2)
    plane.set(xlabel="eruption (minutes)", ylabel="waiting before the next (minutes)")
    plane.set_title("Old Faithful, and 1 and 2 sd of the components")
    for fit in fits:
        bound = fit.trace["bound"]
        ends.plot(np.arange(1, len(bound) + 1), bound, color=BLUE, alpha=0.6)
    ends.set(xlabel="sweep", ylabel="bound (nats)", ylim=(best.bound - 90, best.bound + 5))
    ends.set_title(f"{STARTS} starts, one end")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

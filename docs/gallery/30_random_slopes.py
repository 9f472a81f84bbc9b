"""Random slopes with a predictor of the group: lines of schools that depend on the school's size.

    beta_s ~ MvNormal(gamma_0 + z_s gamma_1, Lambda)      the line of school s: intercept and slope
    y_n    ~ Normal(beta_s(n) . (1, x_n), tau)

The mean of beta_s is a linear expression of two vectors, and Lambda a Wishart.

See: schools with few pupils are drawn towards the line that their size predicts, and not towards
one line for all.
"""

import numpy as np
from _style import COLOURS, figure, save, target

import svmp

GAMMA = np.array([[1.0, 0.5], [1.5, -0.8]])
"""Intercept and slope at an average size, and what a larger size adds to each."""
SPREAD = np.array([[0.3, 0.1], [0.1, 0.2]])
"""Covariance of the lines of schools of one size."""


def data(schools=40):
    """Return x, y and school of each pupil, and z of each school."""
    rng = np.random.default_rng(30)
    z = rng.normal(size=schools)
    beta = GAMMA[0] + z[:, None] * GAMMA[1]
    beta = beta + rng.multivariate_normal(np.zeros(2), SPREAD, size=schools)
    of = np.repeat(np.arange(schools), 2 + rng.poisson(6, schools))
    x = rng.normal(size=len(of))
    y = beta[of, 0] + beta[of, 1] * x + 0.7 * rng.normal(size=len(of))
    return x, y, of, z


def model(x, y, of, z, precision=None, noise=None):
    """Declare the network; `precision` and `noise` fix Lambda and tau instead of learning them."""
    with svmp.Model(coords={"school": len(z), "coef": ["intercept", "slope"]}) as network:
        if precision is None:
            precision = svmp.Wishart("Lambda", nu=3, V=np.eye(2), dims=("coef", "coef"))
            noise = svmp.Gamma("tau", alpha=1, beta=1)
        centre = svmp.MvNormal("gamma_0", mu=0, tau=0.01 * np.eye(2), dims="coef")
        slope = svmp.MvNormal("gamma_1", mu=0, tau=0.01 * np.eye(2), dims="coef")
        beta = svmp.MvNormal("beta", mu=centre + z * slope, tau=precision, dims=("school", "coef"))
        line = np.column_stack([np.ones_like(x), x])
        svmp.Normal("y", mu=svmp.dot(line, beta[of]), tau=noise, observed=y)
    return network


def main(path):
    x, y, of, z = data()
    fit = svmp.fit(model(x, y, of, z), svmp.FullVB())
    print(f"{len(y)} pupils in {len(z)} schools; {fit.status}, bound {fit.bound:.2f}")
    print("at average size   ", fit.mean("gamma_0").round(2), "  drawn with", GAMMA[0])
    print("for a larger size ", fit.mean("gamma_1").round(2), "  drawn with", GAMMA[1])
    plot(path, x, y, of, z, fit)


def plot(path, x, y, of, z, fit):
    fig, axes = figure(1, 2, (9.5, 4.2))
    pupils, beta = np.bincount(of), fit.mean("beta")
    alone = np.array([np.polyfit(x[of == s], y[of == s], 1)[::-1] for s in range(len(z))])
    line = np.array([z.min(), z.max()])
    for j, (ax, name) in enumerate(zip(axes, ("intercept", "slope"), strict=True)):
        ax.plot(line, fit.mean("gamma_0")[j] + line * fit.mean("gamma_1")[j], color=COLOURS[1])
        ax.vlines(z, alone[:, j], beta[:, j], color="#BBBBBB", lw=1)
        ax.scatter(z, alone[:, j], s=4 + 3 * pupils, facecolors="none", edgecolors=COLOURS[0])
        ax.plot(z, beta[:, j], "o", color=COLOURS[0], ms=4)
        ax.set(xlabel="size of the school, standardised", ylabel=name)
    axes[1].set_ylim(-3, 3)
    axes[0].scatter([], [], s=30, facecolors="none", edgecolors=COLOURS[0], label="school alone")
    axes[0].plot([], [], "o", color=COLOURS[0], ms=4, label="E[beta]")
    axes[0].plot([], [], color=COLOURS[1], label="by size")
    axes[0].legend(loc="upper left")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

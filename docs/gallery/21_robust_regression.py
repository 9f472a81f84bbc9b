"""Robust regression: what is the line, if some values are far off?

    a, b ~ Normal(0, 0.01)           tau ~ Gamma(1, 1)
    weight_n ~ Gamma(nu / 2, nu / 2)                 nu = 3
    y_n ~ Normal(a + b x_n, tau weight_n)

With the weights integrated out, the noise is Student's t with nu degrees of freedom: a scale
mixture of Normals. q of the weights says which rows were believed.

See: a twelfth of the rows are wrong. They pull the line of Normal noise, and hardly move that of
Student's t, which gives them little weight.
"""

import numpy as np
from _style import BLUE, GREY, INK, ORANGE, figure, save, target

import svmp

TRUTH = (1.0, 2.0)
NU = 3.0


def data(rows=120, wrong=10):
    """Return x, y, and which rows are wrong."""
    rng = np.random.default_rng(2)
    x = rng.uniform(-2, 2, rows)
    y = TRUTH[0] + TRUTH[1] * x + 0.4 * rng.normal(size=rows)
    off = np.argsort(-x)[:wrong]
    y[off] -= rng.gamma(8, 1, wrong)
    return x, y, np.isin(np.arange(rows), off)


def model(x, y, nu=NU):
    """Declare the network; with nu=None noise is Normal."""
    with svmp.Model(coords={"row": len(x)}) as network:
        a = svmp.Normal("a", mu=0, tau=0.01)
        b = svmp.Normal("b", mu=0, tau=0.01)
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        if nu is not None:
            tau = tau * svmp.Gamma("weight", alpha=nu / 2, beta=nu / 2, dims="row")
        svmp.Normal("y", mu=a + b * x, tau=tau, dims="row", observed=y)
    return network


def main(path):
    x, y, wrong = data()
    fits = {"Normal": svmp.fit(model(x, y, nu=None)), "Student's t": svmp.fit(model(x, y))}
    print(f"{len(x)} rows, {wrong.sum()} of them wrong; drawn with a = 1, b = 2")
    for name, fit in fits.items():
        print(
            f"{name:12} a = {fit.mean('a'):.2f}, b = {fit.mean('b'):.2f} ± {fit['b'].std:.2f}",
            end="",
        )
        print(f", bound {fit.bound:.1f}")
    weight = fits["Student's t"].mean("weight")
    print(f"mean weight: wrong rows {weight[wrong].mean():.2f}, others {weight[~wrong].mean():.2f}")
    plot(path, x, y, fits)


def plot(path, x, y, fits):
    fig, (left, right) = figure(1, 2, (10, 4.2))
    weight, grid = fits["Student's t"].mean("weight"), np.array([-2.0, 2.0])
    shades = left.scatter(x, y, c=weight, s=16, cmap="viridis", vmin=0)
    fig.colorbar(shades, ax=left, label="posterior mean of the weight", pad=0.01)
    left.plot(grid, TRUTH[0] + TRUTH[1] * grid, color=INK, ls=":", label="truth")
    for (name, fit), colour in zip(fits.items(), (GREY, ORANGE), strict=True):
        left.plot(grid, fit.mean("a") + fit.mean("b") * grid, color=colour, label=name)
    left.set(xlabel="x", ylabel="y")
    left.set_title("Two lines through the same rows")
    left.legend(loc="upper left")
    residual = y - fits["Student's t"].mean("a") - fits["Student's t"].mean("b") * x
    right.plot(residual, weight, "o", color=BLUE, ms=4, alpha=0.7)
    right.set(
        xlabel="distance from the line", ylabel="posterior mean of the weight", ylim=(0, None)
    )
    right.set_title("Rows far off count little")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

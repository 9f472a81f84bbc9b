"""Mixture of regressions: does the same price mean the same to everybody?

    share ~ Dirichlet(1, 1)        z_n ~ Categorical(share)
    w_k ~ MvNormal(0, 0.1 I)       tau_k ~ Gamma(1, 0.1)
    y_n ~ Normal(w_k0 + w_k1 x_n, tau_k)        with k = z_n

Two kinds of customers answer a higher price in opposite ways, and nothing else tells them apart.

See: one line through all rows says that the price matters little. Two lines fit both kinds, and
each row has a probability for each of them, which is near one half where the lines cross.
"""

import numpy as np
from _style import BLUE, GREY, ORANGE, figure, save, target

import svmp

LINES = np.array([[1.0, 1.5], [0.0, -1.8]])
NOISE = np.array([0.4, 0.3])


def data(rows=240):
    """Return x, y, and the true kind of each row."""
    rng = np.random.default_rng(9)
    kind = (rng.random(rows) < 0.4).astype(int)
    x = rng.uniform(-2, 2, rows)
    return x, LINES[kind, 0] + LINES[kind, 1] * x + NOISE[kind] * rng.normal(size=rows), kind


def design(x):
    return np.column_stack([np.ones_like(x), x])


def model(x, y, kinds=2):
    with svmp.Model(coords={"row": len(x), "kind": kinds, "term": 2}) as network:
        share = svmp.Dirichlet("share", a=1, dims="kind")
        z = svmp.Categorical("z", p=share, dims="row")
        w = svmp.MvNormal("w", mu=0, tau=0.1 * np.eye(2), dims=("kind", "term"))
        tau = svmp.Gamma("tau", alpha=1, beta=0.1, dims="kind")
        mean = svmp.dot(svmp.data(design(x), dims=("row", "term")), w)
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mean, tau=tau), dims="row", observed=y)
    return network


def best(x, y, starts=5):
    """Return the fit with the highest bound of some random starts."""
    network = model(x, y)
    return max((svmp.fit(network, seed=seed) for seed in range(starts)), key=lambda fit: fit.bound)


def main(path):
    x, y, kind = data()
    fit = best(x, y)
    order = np.argsort(-fit.mean("share"))
    print(f"{len(x)} rows; {fit.status}, bound {fit.bound:.2f}")
    print(f"slope of one line {np.polyfit(x, y, 1)[0]:.2f}")
    for k, component in enumerate(order):
        a, b = fit.mean("w")[component]
        sd = 1 / np.sqrt(fit.mean("tau")[component])
        print(
            f"kind {k}: line {a:.2f} {b:+.2f} x, noise {sd:.2f} (drawn with {LINES[k, 0]}", end=" "
        )
        print(f"{LINES[k, 1]:+} x, {NOISE[k]})")
    found = np.argsort(order)[fit.mean("z").argmax(1)]
    print(f"rows in their own kind: {np.mean(found == kind):.2f}")
    plot(path, x, y, fit, order)


def plot(path, x, y, fit, order):
    fig, ax = figure(1, 1, (8.5, 4.6))
    p = fit.mean("z")[:, order[0]]
    shades = ax.scatter(x, y, c=p, cmap="cividis", s=18)
    fig.colorbar(shades, ax=ax, label="probability of the first kind", pad=0.01)
    grid = np.array([-2.0, 2.0])
    slope, intercept = np.polyfit(x, y, 1)
    ax.plot(grid, intercept + slope * grid, color=GREY, ls=":", label="one line for all")
    for component, colour, name in zip(order, (ORANGE, BLUE), ("first", "second"), strict=True):
        a, b = fit.mean("w")[component]
        ax.plot(grid, a + b * grid, color=colour, label=f"{name} kind")
    ax.set(xlabel="x", ylabel="y")
    ax.set_title("Two lines, and who belongs to which")
    ax.legend(loc="lower left")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

"""Missing covariates and missing labels: parents that are observed in part.

    x_n ~ Normal(m, s)              some x_n are missing
    y_n ~ Normal(a + b x_n, t)      m, a, b ~ Normal(0, 0.01);  s, t ~ Gamma(1, 1)

    z_n ~ Categorical(p)            most z_n are missing
    v_n ~ Normal(mu_z(n), tau)      p ~ Dirichlet(1);  mu ~ Normal(0, 0.1)

The missing entries have a q of their own, and the observed ones are fixed.

See: covariates that are missing where y is large bias a regression on complete rows only, but not
one that keeps all rows; and a few labels say which component is which.
"""

import numpy as np
from _style import COLOURS, figure, save, target

import svmp

SLOPE = 1.5


def data(count=400):
    """Return x with gaps, all x, and y; labels with gaps, all labels, and values."""
    rng = np.random.default_rng(32)
    x = rng.normal(1, 1, count)
    y = 0.5 + SLOPE * x + rng.normal(0, 1.5, count)
    gap = rng.random(count) < 1 / (1 + np.exp(-1.5 * (y - 2)))  # large y, missing x
    label = rng.integers(0, 3, count)
    value = rng.normal(np.array([-2.0, 0.0, 2.0])[label], 0.8)
    some = np.arange(count) < 15
    return x, gap, y, label, ~some, value


def regression(x, gap, y, noise=None):
    """Declare the regression with missing covariates; `noise` fixes the precisions s and t."""
    with svmp.Model(coords={"row": len(y)}) as network:
        s, t = (1.0, 1.0) if noise is None else noise
        if noise is None:
            s, t = svmp.Gamma("s", alpha=1, beta=1), svmp.Gamma("t", alpha=1, beta=1)
        m = svmp.Normal("m", mu=0, tau=0.01)
        a = svmp.Normal("a", mu=0, tau=0.01)
        b = svmp.Normal("b", mu=0, tau=0.01)
        known = svmp.Normal("x", mu=m, tau=s, dims="row", observed=x, missing=gap)
        svmp.Normal("y", mu=a + b * known, tau=t, dims="row", observed=y)
    return network


def classes(label, gap, value):
    """Declare the mixture of which some labels are known."""
    with svmp.Model(coords={"row": len(value), "class": 3}) as network:
        p = svmp.Dirichlet("p", a=1, dims="class")
        z = svmp.Categorical("z", p=p, dims="row", observed=label, missing=gap)
        mu = svmp.Normal("mu", mu=0, tau=0.1, dims="class")
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        svmp.Mixture("v", z, svmp.Normal.dist(mu=mu, tau=tau), dims="row", observed=value)
    return network


def main(path):
    x, gap, y, label, unlabelled, value = data()
    fit = svmp.fit(regression(x, gap, y), svmp.FullVB())
    complete = np.polyfit(x[~gap], y[~gap], 1)[0]
    print(f"{gap.sum()} of {len(x)} covariates missing; {fit.status}, bound {fit.bound:.2f}")
    print(f"slope {fit.mean('b'):.2f}, complete rows only {complete:.2f}, drawn with {SLOPE}")
    groups = svmp.fit(classes(label, unlabelled, value), svmp.FullVB())
    right = (groups.mean("z").argmax(axis=1) == label)[unlabelled].mean()
    print(f"{(~unlabelled).sum()} labels: centres {groups.mean('mu').round(2)}, {right:.0%} right")
    plot(path, x, gap, y, fit, complete, value, groups)


def plot(path, x, gap, y, fit, complete, value, groups):
    fig, axes = figure(1, 2, (9.5, 4.2))
    ax, q = axes[0], fit["x"]
    ax.plot(x[~gap], y[~gap], ".", color=COLOURS[0], ms=4, label="x observed")
    ax.errorbar(
        q.mean[gap], y[gap], xerr=q.std[gap], fmt=".", color=COLOURS[1], ms=3, lw=0.5,
        label="x missing: q(x)",
    )  # fmt: skip
    line = np.array([x.min(), x.max()])
    middle = x[~gap].mean(), y[~gap].mean()
    ax.plot(line, fit.mean("a") + fit.mean("b") * line, color="#2B2B2B", label="all rows")
    ax.plot(line, middle[1] + complete * (line - middle[0]), ":", color="#2B2B2B",
            label="complete rows only")  # fmt: skip
    ax.set(xlabel="x", ylabel="y")
    ax.legend()
    ax = axes[1]
    order = np.argsort(value)
    for k in range(3):
        ax.plot(value[order], groups.mean("z")[order, k], ".", color=COLOURS[k], ms=4)
    ax.set(xlabel="value", ylabel="probability of each class")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

"""Measurement error: what is the slope, if x itself was measured with an error?

    x_n ~ Normal(centre, spread)           centre ~ Normal(0, 0.01), spread ~ Gamma(1, 1)
    w_n ~ Normal(x_n, 1 / 0.8^2)           what the device shows; its error is known
    y_n ~ Normal(a + b x_n, tau)           a, b ~ Normal(0, 0.01), tau ~ Gamma(1, 1)

The true x are hidden variables, one for each row, with two children: the measurement and y.

See: regression of y on w has a slope that is too small, by the share of the variance of w that is
x (attenuation). With the error in the model, the slope is that of x.
"""

import numpy as np
from _style import BLUE, GREY, INK, ORANGE, figure, save, target

import svmp

ERROR = 0.8
"""Standard deviation of the device's error."""
TRUTH = {"a": 1.0, "b": 1.5}


def data(rows=1000):
    """Return measurements w, outcomes y, and the true x."""
    rng = np.random.default_rng(10)
    x = rng.normal(0.5, 1, rows)
    y = TRUTH["a"] + TRUTH["b"] * x + 0.5 * rng.normal(size=rows)
    return x + ERROR * rng.normal(size=rows), y, x


def model(w, y):
    with svmp.Model(coords={"row": len(w)}) as network:
        centre = svmp.Normal("centre", mu=0, tau=0.01)
        spread = svmp.Gamma("spread", alpha=1, beta=1)
        x = svmp.Normal("x", mu=centre, tau=spread, dims="row")
        a, b = (svmp.Normal(name, mu=0, tau=0.01) for name in "ab")
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        svmp.Normal("w", mu=x, tau=1 / ERROR**2, dims="row", observed=w)
        svmp.Normal("y", mu=a + b * x, tau=tau, dims="row", observed=y)
    return network


def fitted(w, y, **options):
    """Fit, with x started at what was measured."""
    return svmp.fit(model(w, y), init={"x": w}, **options)


def main(path):
    w, y, x = data()
    fit = fitted(w, y)
    naive = np.polyfit(w, y, 1)[0]
    print(f"{len(w)} rows; {fit.status}, bound {fit.bound:.2f}")
    print(f"slope on w {naive:.2f}, on x {fit.mean('b'):.2f} (drawn with {TRUTH['b']})")
    for name, guess in (("measured", w), ("posterior mean", fit.mean("x"))):
        print(f"error of x, {name:15} {np.sqrt(np.mean((guess - x) ** 2)):.2f}")
    plot(path, w, y, x, fit)


def plot(path, w, y, x, fit):
    fig, (left, right) = figure(1, 2, (10, 4.2), sharey=True)
    grid = np.array([-3.5, 4.5])
    slope, intercept = np.polyfit(w, y, 1)
    left.plot(w, y, ".", color=GREY, ms=3)
    left.plot(grid, intercept + slope * grid, color=ORANGE, label="regression on w")
    left.plot(grid, fit.mean("a") + fit.mean("b") * grid, color=BLUE, label="model with the error")
    left.plot(grid, TRUTH["a"] + TRUTH["b"] * grid, color=INK, ls=":", label="truth")
    left.set(xlabel="w, measured", ylabel="y", xlim=grid)
    left.set_title("The slope is attenuated")
    left.legend(loc="upper left")
    right.plot(x, y, ".", color=INK, ms=3, label="true x")
    right.plot(fit.mean("x"), y, ".", color=BLUE, ms=3, label="posterior mean of x")
    right.set(xlabel="x", xlim=grid)
    right.set_title("The hidden x")
    right.legend(loc="upper left")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

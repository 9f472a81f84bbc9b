"""Linear regression with automatic relevance determination (ARD).

    alpha_j ~ Gamma(0.01, 0.01)     w_j ~ Normal(0, alpha_j)     tau ~ Gamma(0.01, 0.01)
    y_n ~ Normal(x_n . w, tau)

Three ways to declare it: the weights one by one (q factorises over them), the same with a
scipy.sparse design (same numbers, only the entries are read), and the weights as one vector
w ~ MvNormal(0, diag(alpha)), whose q has a full covariance.

See: weights that are zero are switched off by a large alpha_j. Where columns are correlated (here
in pairs), a factorised q finds the same weights but underestimates their variance; the vector does
not.
"""

import numpy as np
from _style import BLUE, GREY, ORANGE, figure, save, target
from scipy import sparse

import svmp

WEIGHTS = np.zeros(16)
WEIGHTS[[0, 1, 4, 9, 12]] = [2.0, -1.5, 1.0, -2.5, 0.7]


def data(count=100):
    """Sparse columns; each odd column is correlated with the one before it."""
    rng = np.random.default_rng(5)
    there = rng.random((count, 8)) < 0.4
    base = np.repeat(there * rng.normal(size=(count, 8)), 2, axis=1)
    x = base + 0.35 * (base != 0) * rng.normal(size=base.shape)
    y = x @ WEIGHTS + rng.normal(0, 0.5, count)
    return x, y


def model(x, y, vector=False):
    """Declare the network; x may be an array or a scipy.sparse matrix."""
    with svmp.Model(coords={"feature": x.shape[1]}) as network:
        alpha = svmp.Gamma("alpha", alpha=0.01, beta=0.01, dims="feature")
        tau = svmp.Gamma("tau", alpha=0.01, beta=0.01)
        if vector:
            w = svmp.MvNormal("w", mu=0, tau=svmp.diag(alpha), dims="feature")
        else:
            w = svmp.Normal("w", mu=0, tau=alpha, dims="feature")
        svmp.Normal("y", mu=svmp.dot(x, w), tau=tau, observed=y)
    return network


def main(path):
    x, y = data()
    method = svmp.FullVB()
    fits = {
        "one by one": svmp.fit(model(x, y), method),
        "sparse": svmp.fit(model(sparse.csr_array(x), y), method),
        "vector": svmp.fit(model(x, y, vector=True), method),
    }
    for name, fit in fits.items():
        error = np.sqrt(np.mean((fit.mean("w") - WEIGHTS) ** 2))
        noise = 1 / np.sqrt(fit.mean("tau"))
        relevant = np.flatnonzero(fit.mean("alpha") < 10)
        print(f"{name:11} RMSE of w {error:.3f}   noise {noise:.3f}   relevant {relevant}")
    plot(path, fits)


def plot(path, fits):
    fig, (weights, relevance) = figure(2, 1, (8.5, 5.4), sharex=True, height_ratios=(1.5, 1))
    place = np.arange(len(WEIGHTS))
    for width in place[::2]:
        weights.axvspan(width - 0.4, width + 1.4, color="#F4F4F4", zorder=0)
    weights.hlines(WEIGHTS, place - 0.35, place + 0.35, color=ORANGE, label="truth", zorder=3)
    for shift, name, colour in ((-0.13, "one by one", BLUE), (0.13, "vector", GREY)):
        q = fits[name]["w"]
        marker = "o" if name == "one by one" else "s"
        weights.errorbar(
            place + shift,
            q.mean,
            2 * q.std,
            fmt=marker,
            ms=4,
            color=colour,
            capsize=2,
            lw=1.3,
            label=f"{name}, ± 2 sd",
        )
    weights.set(ylabel="weight", title="Weights (correlated pairs are shaded together)")
    weights.grid(axis="x", visible=False)
    weights.legend(loc="upper right")
    relevance.bar(
        place,
        fits["one by one"].mean("alpha"),
        0.6,
        color=np.where(WEIGHTS == 0, GREY, BLUE),
        alpha=0.7,
    )
    relevance.set(yscale="log", ylabel="E[alpha]", xticks=place, xlabel="feature")
    relevance.set_title("Precision of each weight's prior (blue: the weight is not zero)")
    relevance.grid(axis="x", visible=False)
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

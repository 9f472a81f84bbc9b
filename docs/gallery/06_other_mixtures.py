"""The same Mixture with other components: Bernoulli pixels and Poisson counts.

    weight ~ Dirichlet(1, 1, 1)            z_n ~ Categorical(weight)
    p_kd ~ Beta(1/2, 1/2)                  x_nd ~ Bernoulli(p_zd)          (pictures)
    rate_k ~ Gamma(1, 0.05)                x_n ~ Poisson(rate_z)           (counts)

See: only the component's distribution changes. Three letters are recovered from 150 unlabelled
pictures with a fifth of the pixels flipped, and three kinds of counts are separated in one
histogram.
"""

import numpy as np
from _style import COLOURS, GREY, figure, save, target
from scipy import stats

import svmp

LETTERS = (
    ("X...X", ".X.X.", "..X..", ".X.X.", "X...X", "X...X"),
    ("XXXX.", "X...X", "XXXX.", "X...X", "X...X", "XXXX."),
    ("..X..", "..X..", "XXXXX", "..X..", "..X..", "..X.."),
)
RATES, SHARES = np.array([2.0, 11.0, 28.0]), np.array([0.5, 0.3, 0.2])


def letters():
    return np.array([[c == "X" for row in letter for c in row] for letter in LETTERS], float)


def data(count=150):
    """Return the pictures, their letters, and the counts."""
    rng = np.random.default_rng(11)
    which = rng.integers(0, 3, count)
    flipped = rng.random((count, 30)) < 0.2
    pictures = np.where(flipped, 1 - letters()[which], letters()[which])
    counts = rng.poisson(RATES[rng.choice(3, 2 * count, p=SHARES)])
    return pictures, which, counts


def model(x, kind="Bernoulli"):
    with svmp.Model(coords={"row": len(x), "component": 3, "pixel": 30}) as network:
        weight = svmp.Dirichlet("weight", a=1, dims="component")
        z = svmp.Categorical("z", p=weight, dims="row")
        if kind == "Bernoulli":
            p = svmp.Beta("p", alpha=0.5, beta=0.5, dims=("component", "pixel"))
            pixel = svmp.Bernoulli.dist(p=p)
            svmp.Mixture("x", z, pixel, dims=("row", "pixel"), observed=x)
        else:
            rate = svmp.Gamma("rate", alpha=1, beta=0.05, dims="component")
            svmp.Mixture("x", z, svmp.Poisson.dist(mu=rate), dims="row", observed=x)
    return network


def best_fit(network, starts=5):
    """Return the fit with the highest bound among some starts."""
    fits = [svmp.fit(network, svmp.FullVB(), seed=seed) for seed in range(starts)]
    return max(fits, key=lambda fit: fit.bound)


def purity(fit, which):
    """Return the share of pictures that agree with most of their component."""
    members = fit.mean("z").argmax(1)
    return sum(np.bincount(which[members == k]).max() for k in set(members)) / len(which)


def main(path):
    pictures, which, counts = data()
    of_pixels, of_counts = best_fit(model(pictures)), best_fit(model(counts, "Poisson"))
    print(f"pictures: bound {of_pixels.bound:.2f}, {purity(of_pixels, which):.1%} told apart")
    order = np.argsort(of_counts.mean("rate"))
    print(
        f"counts:   bound {of_counts.bound:.2f}, rates {of_counts.mean('rate')[order].round(2)}, "
        f"shares {of_counts.mean('weight')[order].round(2)}"
    )
    plot(path, pictures, of_pixels, counts, of_counts)


def plot(path, pictures, of_pixels, counts, of_counts):
    fig, axes = figure(2, 4, (10.5, 3.6), width_ratios=(1, 1, 1, 4.5))
    members = of_pixels.mean("z").argmax(1)
    for k in range(3):
        picture = pictures[np.flatnonzero(members == k)[0]]
        axes[0, k].imshow(picture.reshape(6, 5), cmap="Greys", vmin=0, vmax=1.3)
        axes[1, k].imshow(of_pixels.mean("p")[k].reshape(6, 5), cmap="Blues", vmin=0, vmax=1)
    for ax in axes[:, :3].flat:
        ax.set(xticks=[], yticks=[])
        ax.grid(False)
    axes[0, 0].set_title("Three of 150 pictures")
    axes[1, 0].set_title("E[p] of the three components")

    grid_spec = axes[0, 0].get_gridspec()
    for ax in axes[:, 3]:
        ax.remove()
    ax = fig.add_subplot(grid_spec[:, 3])
    grid = np.arange(counts.max() + 1)
    ax.hist(counts, np.arange(counts.max() + 2) - 0.5, density=True, color=GREY, alpha=0.35)
    weight, rate = of_counts.mean("weight"), of_counts.mean("rate")
    for colour, k in zip(COLOURS, np.argsort(rate), strict=False):
        ax.plot(
            grid,
            weight[k] * stats.poisson(rate[k]).pmf(grid),
            color=colour,
            label=f"rate {rate[k]:.1f}, share {weight[k]:.0%}",
        )
    ax.set(title="Counts: histogram and components", xlabel="count", yticks=[])
    ax.legend(loc="upper right")
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

"""Smooth functions with a learned scale: a random walk, a Gaussian process and a map of regions.

    f ~ MvNormal(0, s K)        s ~ Gamma(2, 0.5),  K a fixed matrix
    y ~ Normal(f, tau)          tau ~ Gamma(1, 0.2)

K is the precision matrix of second differences, the inverse of a squared-exponential covariance, or
for the map that of an intrinsic autoregression (ICAR): neighbours are alike, and nothing else is
said. The last has no inverse, as it does not say where the map lies; in the basis of its other
eigenvectors it does, and the level is a variable of its own.

See: how smooth each is, is learned from the data.
"""

import numpy as np
from _style import COLOURS, figure, save, target

import svmp

SIDE = 12
"""Regions along one side of the map."""


def data(count=80):
    """Return times and readings along a curve, the curve, and readings of a map and the map."""
    rng = np.random.default_rng(31)
    time = np.linspace(0, 1, count)
    curve = np.sin(7 * time) * np.exp(-time) + 0.5 * time
    place = np.linspace(-1, 1, SIDE)
    map_ = np.exp(-3 * ((place[:, None] - 0.3) ** 2 + (place[None, :] + 0.2) ** 2)).ravel()
    return (
        time,
        curve + 0.25 * rng.normal(size=count),
        curve,
        map_ + 0.25 * rng.normal(size=len(map_)),
        map_,
    )


def walk(count):
    """Precision matrix of second differences, with a weak pull to 0 that makes it proper."""
    steps = np.diff(np.eye(count), n=2, axis=0)
    return steps.T @ steps * count**3 + 0.01 * np.eye(count)


def process(time, length=0.15):
    """Inverse of a squared-exponential covariance, with a little on its diagonal."""
    gap = time[:, None] - time[None, :]
    return np.linalg.inv(np.exp(-0.5 * (gap / length) ** 2) + 1e-4 * np.eye(len(time)))


def neighbours(side):
    """Laplacian of a square map: of rank side^2 - 1, as all constants are alike to it."""
    line = np.diff(np.eye(side), axis=0)
    one = line.T @ line
    return np.kron(one, np.eye(side)) + np.kron(np.eye(side), one)


def model(y, precision):
    """Declare y around a vector whose precision matrix has a learned scale."""
    with svmp.Model(coords={"t": len(y)}) as network:
        scale = svmp.Gamma("scale", alpha=2, beta=0.5)
        tau = svmp.Gamma("tau", alpha=1, beta=0.2)
        f = svmp.MvNormal("f", mu=0, tau=scale * precision, dims="t")
        svmp.Normal("y", mu=f, tau=tau, dims="t", observed=y)
    return network


def map_model(y, laplacian):
    """Declare y around a level and deviations from it, whose precision matrix has no inverse."""
    values, vectors = np.linalg.eigh(laplacian)
    known = values > 1e-9 * values[-1]
    with svmp.Model(coords={"region": len(y), "basis": int(known.sum())}) as network:
        scale = svmp.Gamma("scale", alpha=2, beta=0.5)
        tau = svmp.Gamma("tau", alpha=1, beta=0.2)
        level = svmp.Normal("level", mu=0, tau=0.01)
        z = svmp.MvNormal("z", mu=0, tau=scale * np.diag(values[known]), dims="basis")
        f = level + svmp.dot(vectors[:, known], z)
        svmp.Normal("y", mu=f, tau=tau, dims="region", observed=y)
    return network, vectors[:, known]


def main(path):
    time, y, curve, regions, truth = data()
    found = {}
    for name, precision in (("random walk", walk(len(time))), ("process", process(time))):
        fit = found[name] = svmp.fit(model(y, precision), svmp.FullVB(), tol=1e-9)
        error = np.sqrt(np.mean((fit.mean("f") - curve) ** 2))
        print(f"{name:12} bound {fit.bound:8.2f}, error {error:.3f} of readings 0.25 off")
    network, basis = map_model(regions, neighbours(SIDE))
    fit = svmp.fit(network, svmp.FullVB(), tol=1e-9)
    smooth = fit.mean("level") + basis @ fit.mean("z")
    error = np.sqrt(np.mean((smooth - truth) ** 2))
    print(f"{'map':12} bound {fit.bound:8.2f}, error {error:.3f} of readings 0.25 off")
    plot(path, time, y, curve, regions, smooth, found)


def plot(path, time, y, curve, regions, smooth, found):
    fig, axes = figure(1, 3, (10.5, 3.6))
    ax = axes[0]
    ax.plot(time, y, ".", color="#999999", ms=4)
    ax.plot(time, curve, ":", color="#2B2B2B", label="truth")
    for colour, (name, fit) in zip(COLOURS, found.items(), strict=False):
        mean, sd = fit.mean("f"), np.sqrt(fit.var("f"))
        ax.plot(time, mean, color=colour, label=name)
        ax.fill_between(time, mean - 2 * sd, mean + 2 * sd, color=colour, alpha=0.15, lw=0)
    ax.legend()
    ax.set(title="a curve")
    for ax, values, title in zip(axes[1:], (regions, smooth), ("readings", "E[f]"), strict=True):
        ax.imshow(values.reshape(SIDE, SIDE), vmin=-0.5, vmax=1.3, cmap="viridis")
        ax.set(title=f"a map: {title}", xticks=[], yticks=[])
        ax.grid(visible=False)
    save(fig, path)


if __name__ == "__main__":
    main(target(__file__))

"""A Gaussian mixture against scikit-learn's BayesianGaussianMixture: time to the same bound.

A million rows of 10 numbers, 20 components with full covariances. Both start from the q that
scikit-learn has after its first iteration. svmp's q keeps means and precisions apart, where
scikit-learn's does not, so the goal is svmp's exact bound one sweep after scikit-learn's last q.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, Unavailable, ask, main

import svmp

COMPONENTS, WIDTH = 20, 10
PRIOR = {"a": 1.0 / COMPONENTS, "beta": 0.1, "nu": float(WIDTH + 2)}
NEAR = 1e-6
"""Bounds that differ by less than this share count as equal."""


def draw(rows: int, seed: int = 0) -> Any:
    """Draw rows of overlapping components, standardised."""
    rng = np.random.default_rng(seed)
    means = 2.0 * rng.standard_normal((COMPONENTS, WIDTH))
    shapes = np.eye(WIDTH) + 0.3 * rng.standard_normal((COMPONENTS, WIDTH, WIDTH))
    chosen = rng.choice(COMPONENTS, rows, p=rng.dirichlet(np.full(COMPONENTS, 5.0)))
    x = rng.standard_normal((rows, WIDTH))
    for k in range(COMPONENTS):
        here = chosen == k
        x[here] = means[k] + x[here] @ shapes[k]
    return (x - x.mean(0)) / x.std(0)


def network(x: Any) -> svmp.Model:
    coords = {"row": len(x), "component": COMPONENTS, "axis": WIDTH}
    with svmp.Model(coords=coords) as model:
        weight = svmp.Dirichlet("weight", a=PRIOR["a"], dims="component")
        z = svmp.Categorical("z", p=weight, dims="row")
        spread = {"nu": PRIOR["nu"], "V": np.eye(WIDTH)}
        tau = svmp.Wishart("tau", **spread, dims=("component", "axis", "axis"))
        mu = svmp.MvNormal("mu", mu=0, tau=PRIOR["beta"] * tau, dims=("component", "axis"))
        normal = svmp.MvNormal.dist(mu=mu, tau=tau)
        svmp.Mixture("x", z, normal, dims=("row", "axis"), observed=x)
    return model


def fit_from(model: svmp.Model, path: Path, **limits: Any) -> svmp.Fit:
    with np.load(path) as q:
        init = {
            "weight": {"a": q["a"]},
            "mu": {"mu": q["mu"], "tau": q["tau"]},
            "tau": {"nu": q["nu"], "V": q["V"]},
        }
    return svmp.fit(model, svmp.FullVB(), init=init, progress=False, **limits)


def measure(quick: bool) -> Iterator[Row]:
    rows = 20_000 if quick else 1_000_000
    x = draw(rows)
    what = f"time to the same bound, {rows:,} x {WIDTH}, {COMPONENTS} components"
    name = "BayesianGaussianMixture"
    with tempfile.TemporaryDirectory() as folder:
        paths = {part: Path(folder) / f"{part}.npz" for part in ("data", "first", "last")}
        np.savez(paths["data"], x=x)
        request = {part: str(path) for part, path in paths.items()}
        request |= {"components": COMPONENTS, "iterations": 100, "seed": 0, **PRIOR}
        try:
            theirs = ask("sklearn", request, "sklearn_mixture")["seconds"]
        except Unavailable as reason:
            yield Row(what, against=name, note=str(reason))
            return
        model = network(x)
        goal = fit_from(model, paths["last"], max_sweeps=1).bound
        fit = fit_from(model, paths["first"], max_seconds=2 * theirs)
    reached = np.flatnonzero(fit.trace["bound"] >= goal - NEAR * abs(goal))
    note = f"bound {goal:,.0f}"
    if not len(reached):
        note += f"; svmp is at {fit.bound:,.0f} after {fit.trace['seconds'][-1]:.0f} s"
    mine = float(fit.trace["seconds"][reached[0]]) if len(reached) else None
    yield Row(what, mine, theirs, name, wanted=1 / 2, note=note)


if __name__ == "__main__":
    main(measure, __doc__)

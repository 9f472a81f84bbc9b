"""A Gaussian mixture against scikit-learn's BayesianGaussianMixture: time to the same bound.

A million rows of 10 numbers, 20 components with full covariances. Both start from scikit-learn's q
after its first iteration. svmp's q factorises over means and precisions and scikit-learn's does
not, so scikit-learn's bound is measured as svmp's exact bound one sweep after scikit-learn's q. The
goal is within 0.001 nats a row of scikit-learn's bound after 100 iterations.
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
NEAR = 0.001


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


def fit_from(model: svmp.Model, qs: Any, index: int, **limits: Any) -> svmp.Fit:
    """Start at one of scikit-learn's q."""
    init = {
        "weight": {"a": qs["a"][index]},
        "mu": {"mu": qs["mu"][index], "tau": qs["tau"][index]},
        "tau": {"nu": qs["nu"][index], "V": qs["V"][index]},
    }
    return svmp.fit(model, svmp.FullVB(), init=init, progress=False, **limits)


def measure(quick: bool) -> Iterator[Row]:
    rows = 20_000 if quick else 1_000_000
    x = draw(rows)
    what = f"time to the same bound, {rows:,} x {WIDTH}, {COMPONENTS} components"
    name = "BayesianGaussianMixture"
    with tempfile.TemporaryDirectory() as folder:
        data, qs_to = Path(folder) / "data.npz", Path(folder) / "qs.npz"
        np.savez(data, x=x)
        request = {"data": str(data), "qs": str(qs_to), "components": COMPONENTS, **PRIOR}
        iterations = 20 if quick else 100
        request |= {"seed": 0, "every": 10, "iterations": iterations}
        try:
            seconds = ask("sklearn", request, "sklearn_mixture")["seconds"]
        except Unavailable as reason:
            yield Row(what, against=name, note=str(reason))
            return
        with np.load(qs_to) as saved:
            qs = dict(saved)
    model = network(x)
    bounds = [fit_from(model, qs, i, max_sweeps=1).bound for i in range(1, len(seconds))]
    goal = bounds[-1] - NEAR * rows
    theirs = next(s for s, bound in zip(seconds[1:], bounds, strict=True) if bound >= goal)
    fit = fit_from(model, qs, 0, max_sweeps=2 * iterations, tol=1e-9)
    reached = np.flatnonzero(fit.trace["bound"] >= goal)
    note = f"bound {goal:,.0f}"
    if not len(reached):
        note += f"; svmp is at {fit.bound:,.0f} after {fit.trace['seconds'][-1]:.0f} s"
    mine = float(fit.trace["seconds"][reached[0]]) if len(reached) else None
    yield Row(what, mine, theirs, name, wanted=1 / 2, note=note)


if __name__ == "__main__":
    main(measure, __doc__)

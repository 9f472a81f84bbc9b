"""Sequences, subchains and parts without an observed row: they change nothing that is learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import svmp

SEQUENCE = np.repeat(np.arange(6), 5)
RNG = np.random.default_rng(4)
Y = RNG.normal(size=30)
KINDS = ("states", "vectors", "walk", "autoregression", "switching")
BARREN: dict[str, np.ndarray] = {
    "some sequences": np.isin(SEQUENCE, [1, 4]),
    "all but one": SEQUENCE != 2,
}
METHODS: dict[str, Any] = {
    "parts of two sequences": svmp.Memoized(over="sequence", parts=3),
    "parts of one sequence": svmp.Memoized(over="sequence", parts=6),
    "a sequence at a time": svmp.Batch(1, over="sequence"),
    "subchains": svmp.Batch(2, over="row", length=3),
    "rows": svmp.Batch(5),
    "children": svmp.Children(3),
}


def declared(kind: str, y: np.ndarray, sequence: Any = None) -> svmp.Model:
    """Declare a chain of some kind with learned parameters and missing values."""
    coords = {"state": 2, "to": 2, "row": len(y), "latent": 2, "from": 2}
    more: dict[str, Any] = {"sequence": sequence, "dims": "row"}
    with svmp.Model(coords=coords) as model:
        noise: Any = svmp.Gamma("noise", alpha=1, beta=1)
        if kind in ("states", "switching"):
            start = svmp.Dirichlet("start", a=1, dims="state")
            move = svmp.Dirichlet("move", a=1, dims=("state", "to"))
            z = svmp.DiscreteMarkovChain("z", start, move, **more)
        if kind == "states":
            mu = svmp.Normal("mu", mu=0, tau=0.1, dims="state")
            density = svmp.Normal.dist(mu, noise)
            svmp.Mixture("y", z, density, dims="row", observed=y, missing=True)
            return model
        if kind == "walk":
            value = svmp.GaussianRandomWalk("x", svmp.Gamma("tau", alpha=1, beta=1), **more)
        elif kind == "autoregression":
            prior = svmp.MvNormal.dist(mu=np.zeros(2), tau=np.eye(2))
            value = svmp.AR("x", prior, svmp.Gamma.dist(1, 1), **more)
        else:
            more["dims"] = ("row", "latent")
            dims: Any = ("latent", "from")
            if kind == "switching":
                dims, more["switch"] = ("state", *dims), z
            A = svmp.MvNormal("A", mu=0, tau=np.eye(2), dims=dims)
            value = svmp.LinearGaussianChain("x", svmp.Normal.dist(0, 1), A, 1.0, **more)[:, 0]
        svmp.Normal("y", value, noise, dims="row", observed=y, missing=True)
    return model


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_method_serves_them(kind: str, method: str, kernels: bool) -> None:
    for barren in BARREN.values():
        model = declared(kind, np.where(barren, np.nan, Y), SEQUENCE)
        fit = svmp.fit(model, METHODS[method], kernels=kernels, max_sweeps=3, seed=1)
        assert fit.status != "diverged"
        assert np.isfinite(fit.bound)


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("method", ["parts of one sequence", "a sequence at a time", "subchains"])
def test_known_walks_have_the_evidence_of_their_observed_rows(method: str, kernels: bool) -> None:
    time = np.arange(len(Y)) % 5
    cov = (SEQUENCE[:, None] == SEQUENCE) * (np.minimum.outer(time, time) + 2.0) + np.eye(len(Y))
    for barren in BARREN.values():
        y, seen = np.where(barren, np.nan, Y), np.flatnonzero(~barren)
        with svmp.Model(coords={"row": len(y)}) as model:
            more: dict[str, Any] = {"sequence": SEQUENCE, "dims": "row"}
            x = svmp.GaussianRandomWalk("x", 1.0, init=svmp.Normal.dist(0, 0.5), **more)
            svmp.Normal("y", x, 1.0, dims="row", observed=y, missing=True)
        fit = svmp.fit(model, METHODS[method], kernels=kernels)
        truth = stats.multivariate_normal(np.zeros(len(seen)), cov[np.ix_(seen, seen)])
        assert fit.bound == pytest.approx(truth.logpdf(Y[seen]), abs=1e-3)


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", [0, 10, 20])
def test_subchains_of_a_stretch_without_observations(kind: str, first: int, kernels: bool) -> None:
    y = Y.copy()
    y[first : first + 10] = np.nan
    for method in (svmp.Batch(1, over="row", length=5), svmp.Batch(3, over="row", length=3)):
        fit = svmp.fit(declared(kind, y), method, kernels=kernels, max_sweeps=3, seed=1)
        assert fit.status != "diverged"
        assert np.isfinite(fit.bound)

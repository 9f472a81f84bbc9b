"""Shared tools of the tests of sampled inference: networks, iterations, comparisons."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import svmp
from svmp.inference.starts.start import start
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network
from tests.gallery.conftest import load
from tests.programs import compile_means, iterate

ALL = 10**9
"""More children than any element has."""


def factors() -> svmp.Model:
    """Every kind of factor that the gallery lacks, with enough children to draw among."""
    rng = np.random.default_rng(3)
    n, a = 60, 4
    with svmp.Model(coords={"a": a, "row": n, "word": 3, "d": 2}) as model:
        rate = svmp.Gamma("rate", alpha=2, beta=1)
        g = svmp.Gamma("g", alpha=2, beta=rate, dims="a")
        key = rng.integers(a, size=n)
        svmp.Exponential("wait", lam=g[key], dims="row", observed=rng.gamma(1, 1, n) + 0.01)
        svmp.Gamma("size", alpha=3, beta=g[key] * rate, dims="row", observed=rng.gamma(3, 1, n))
        svmp.Poisson("count", mu=g[rng.integers(a, size=n)], dims="row", observed=rng.poisson(2, n))
        p = svmp.Beta("p", alpha=1, beta=2, dims="a")
        trials = rng.integers(1, 6, n)
        svmp.Binomial("hits", n=trials, p=p[key], dims="row", observed=rng.binomial(trials, 0.4))
        svmp.Bernoulli("coin", p=p[key], dims="row", observed=rng.integers(0, 2, n))
        w = svmp.Dirichlet("w", a=0.8, dims=("a", "word"))
        counts = rng.multinomial(5, [0.2, 0.5, 0.3], n)
        svmp.Multinomial("bag", n=5, p=w[key], dims=("row", "word"), observed=counts)
        svmp.Categorical("word", p=w[key], dims="row", observed=rng.integers(3, size=n))
        L = svmp.Wishart("L", nu=4, V=np.eye(2), dims=("a", "d", "d"))
        m = svmp.MvNormal("m", mu=0, tau=np.eye(2), dims=("a", "d"))
        svmp.MvNormal(
            "x", mu=m[key], tau=L[key], dims=("row", "d"), observed=rng.normal(size=(n, 2))
        )
    return model


@cache
def gallery() -> dict[str, svmp.Model]:
    """Every network of docs/gallery."""
    models: dict[str, svmp.Model] = {}

    def script(stem: str) -> Any:
        return load(stem)

    one = script("01_one_hidden")
    networks = one.model(one.data())
    models |= {f"01 {name}": network for name, network in networks.items()}
    two = script("02_mean_and_precision")
    models["02"] = two.model(two.data())
    ard = script("03_ard_regression")
    models["03 scalars"], models["03 vector"] = (
        ard.model(*ard.data(), vector=vector) for vector in (False, True)
    )
    mf = script("04_matrix_factorization")
    models |= {f"04 {kind}": mf.model(*mf.data()[0], kind) for kind in mf.KINDS}
    mixture = script("05_gaussian_mixture")
    models["05"] = mixture.model(mixture.standardised(mixture.data()))
    other = script("06_other_mixtures")
    pictures, _, counts = other.data()
    models["06 pictures"], models["06 counts"] = (
        other.model(pictures),
        other.model(counts, "Poisson"),
    )
    topics = script("07_topics")
    document, word, year, vocabulary = topics.data(words=60, length=20)
    models["07"] = topics.model(document, word, len(year), len(vocabulary))
    analysis = script("08_factor_analysis")
    y = analysis.data()[0]
    models |= {f"08 {kind}": analysis.model(y, kind) for kind in ("factor analysis", "PCA")}
    groups = script("09_nested_groups")
    models["09"] = groups.model(*groups.data())
    tensor = script("10_tensor")
    models["10"] = tensor.model(tensor.data(samples=30)[0])
    football = script("11_football")
    *rows, names = football.data()
    models["11"] = football.model(*rows, teams=len(names))
    return models


GALLERY = (
    *(f"01 {n}" for n in ("Beta-Bernoulli", "Gamma-Poisson", "Dirichlet-Categorical",
                          "Normal-Normal", "Wishart-MvNormal")),
    "02", "03 scalars", "03 vector", "04 paper", "04 vectors", "04 biases", "05", "06 pictures",
    "06 counts", "07", "08 factor analysis", "08 PCA", "09", "10", "11",
)  # fmt: skip


def begin(network: Network, kernels: bool = False, seed: int = 0) -> Beliefs:
    """Return the start of a fit."""
    q = start(network, seed)
    return compile_means(network, q) if kernels else q


def advance(
    network: Network,
    q: Beliefs,
    method: Any,
    iterations: int = 3,
    steps: Any = None,
    seed: int = 0,
) -> Beliefs:
    """Run some iterations in place, as a fit does; with unit steps by default."""
    for iteration in range(1, iterations + 1):
        iterate(network, q, method, steps or svmp.Constant(1.0), seed, iteration)
    q.means.clear()
    return q


def assert_same(q: Beliefs, other: Beliefs, rtol: float, names: Any = None) -> None:
    """Compare two q, with errors relative to the largest entry of each element."""
    for name in names or q.natural:
        for a, b in (
            (q.natural[name], other.natural[name]),
            (q.moments[name], other.moments[name]),
        ):
            scale = np.maximum(np.abs(a), np.abs(b))
            # entries near 0 are differences of larger ones
            scale = np.maximum(scale, scale.max(axis=1, keepdims=True))
            worst = np.max(np.abs(a - b) / np.maximum(scale, 1e-300), initial=0.0)
            assert worst <= rtol, f"{name} differs by {worst:.2g}"

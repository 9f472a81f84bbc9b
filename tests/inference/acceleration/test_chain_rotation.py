"""Linear changes of states: the derivative by finite differences, the gain by the exact bound."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.inference.acceleration.chain_rotating import basis_of, rotatable, rotate_chain
from svmp.inference.engine import step
from svmp.inference.program.program import Program
from svmp.inference.starts.start import start
from svmp.inference.state.state import State
from svmp.network.chains.linear_chain import LinearChain
from svmp.network.network import Network

K, ROWS = 2, 40
KINDS = ("number", "matrix", "Gamma", "one Gamma", "Wishart", "relevance")


def declare(kind: str, seed: int = 0, rows: int = ROWS) -> svmp.Model:
    """Declare a chain with barren rows, ragged sequences and two tables."""
    rng = np.random.default_rng(seed)
    x = np.cumsum(rng.normal(size=(rows, K)), axis=0) * 0.3
    y = x @ rng.normal(size=(K, 4)) + rng.normal(0, 0.3, (rows, 4))
    y[rng.random(y.shape) < 0.2] = np.nan
    y[-5:] = np.nan
    other = np.where(np.arange(rows) < rows - 5, x[:, 0], np.nan)
    sequence = np.sort(rng.integers(0, 3, rows))
    coords = {"row": rows, "latent": K, "from": K, "sensor": 4}
    with svmp.Model(coords=coords) as model:
        tau = {
            "number": lambda: 1.0,
            "relevance": lambda: 1.0,
            "matrix": lambda: np.array([[2.0, 0.5], [0.5, 1.0]]),
            "Gamma": lambda: svmp.Gamma("tau", alpha=1, beta=0.1, dims="latent"),
            "one Gamma": lambda: svmp.Gamma("tau", alpha=1, beta=0.1),
            "Wishart": lambda: svmp.Wishart("tau", nu=3.0, V=np.eye(K), dims=("latent", "from")),
        }[kind]()
        prior = np.array([[1.0, 0.3], [0.3, 2.0]])
        if kind == "relevance":
            prior = svmp.diag(svmp.Gamma("relevance", alpha=0.1, beta=0.1, dims="from"))
        A = svmp.MvNormal("A", mu=0.1, tau=prior, dims=("latent", "from"))
        mu = svmp.MvNormal("mu", mu=0, tau=np.eye(K), dims="latent")
        x = svmp.LinearGaussianChain(
            "x",
            svmp.MvNormal.dist(mu, np.eye(K)),
            A,
            tau,
            sequence=sequence,
            dims=("row", "latent"),
        )
        C = svmp.MvNormal("C", mu=0.2, tau=np.eye(K), dims=("sensor", "latent"))
        c = svmp.MvNormal("c", mu=0.0, tau=np.eye(K), dims="latent")
        noise = svmp.Gamma("noise", alpha=1, beta=0.1)
        mean = svmp.dot(C, x, dim="latent")
        svmp.Normal("y", mean, noise, dims=("row", "sensor"), observed=y, missing=True)
        svmp.Normal(
            "z", svmp.dot(c, x, dim="latent"), 4.0, dims="row", observed=other, missing=True
        )
    return model


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_gain_is_that_of_the_exact_bound(kind: str, kernels: bool) -> None:
    network = Network(declare(kind))
    program = Program.of(network, svmp.FullVB(), kernels=kernels)
    state = State(start(network, 0))
    for _ in range(2):
        state, _ = step(program, state)
    q, chain, loadings = state.q, network.chains["x"], rotatable(network)["x"]
    assert isinstance(chain, LinearChain)
    basis = basis_of(network, q, chain, loadings)
    assert basis is not None
    change = np.eye(K) + 0.2 * np.random.default_rng(1).normal(size=(K, K))
    dynamics = basis.optimum(change)
    _, slope = basis.value(change, dynamics)
    for i, j in np.ndindex(K, K):
        moved = np.zeros((K, K))
        moved[i, j] = 1e-5
        up, down = (basis.value(change + s * moved, dynamics)[0] for s in (1, -1))
        assert (up - down) / 2e-5 == pytest.approx(slope[i, j], rel=1e-5, abs=1e-5)
    found = basis.best_change()
    assert found is not None
    gain = basis.value(*found)[0] - basis.value(np.eye(K), basis.now)[0]
    before = sum(program.bound(q).values())
    assert rotate_chain(network, q, "x", loadings)
    after = sum(program.bound(q).values())
    assert after - before == pytest.approx(gain, rel=1e-8, abs=1e-9)
    assert gain > 0
    moments = network.hidden["x"].family.moments(q.natural["x"])
    np.testing.assert_allclose(moments, q.moments["x"], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", ["Gamma", "Wishart", "relevance"])
def test_default_reaches_the_bound_of_full_vb_in_few_sweeps(kind: str) -> None:
    model = declare(kind, rows=60)
    fit = svmp.fit(model, max_sweeps=40, tol=1e-8, progress=False, kernels=True)
    long = svmp.fit(model, svmp.FullVB(), max_sweeps=150, tol=0, progress=False, kernels=True)
    assert fit.bound >= long.bound - 1e-3
    assert (np.diff(fit.trace["bound"]) >= -1e-8 * abs(fit.bound)).all()


def test_chains_that_cannot_be_changed_are_left_alone() -> None:
    y = np.random.default_rng(0).normal(size=(20, 2))
    with svmp.Model(coords={"row": 20, "latent": K, "from": K}) as model:
        A = svmp.MvNormal("A", mu=0, tau=np.eye(K), dims=("latent", "from"))
        x = svmp.LinearGaussianChain("x", svmp.Normal.dist(0, 1), A, 1.0, dims=("row", "latent"))
        svmp.Normal("y", x[:, 0], 1.0, dims="row", observed=y[:, 0])
    assert rotatable(Network(model)) == {}

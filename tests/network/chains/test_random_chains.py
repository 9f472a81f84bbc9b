"""Random tiny chains against brute force, and random networks whose bound must never fall.

With known parameters the truth is the sum over all paths of states, or one dense Gaussian.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

import svmp

SEEDS = st.integers(0, 2**16)
HOW_MANY = pytest.mark.parametrize("count", [6, pytest.param(150, marks=pytest.mark.slow)])


def on_random(count: int, check: Callable[..., None], **strategies: Any) -> None:
    """Run a check on random examples."""
    settings(max_examples=count, deadline=None)(given(**strategies)(check))()


def ragged(rng: np.random.Generator, sequences: int, most: int) -> np.ndarray:
    """Return the sequence of each row, mixed, with sequences of one row and more."""
    return rng.permutation(np.repeat(np.arange(sequences), rng.integers(1, most + 1, sequences)))


def probabilities(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return probabilities, some of them 0 or tiny."""
    found = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
    found = np.where(rng.random(shape) < 0.2, 10.0 ** -rng.integers(3, 200, shape), found)
    zero = rng.random(shape) < 0.2
    zero[..., 0] = False
    found = np.where(zero, 0.0, found)
    return found / found.sum(axis=-1, keepdims=True)


@HOW_MANY
def test_states_are_those_of_all_paths(count: int) -> None:
    def check(seed: int, states: int, kernels: bool, far: float, likely: bool) -> None:
        rng = np.random.default_rng(seed)
        sequence = ragged(rng, 2, 4)
        rows, means = len(sequence), rng.normal(0, far, states)
        y = np.where(rng.random(rows) < 0.3, np.nan, rng.normal(0, far, rows))
        y[rng.integers(rows)] = 0.0
        first, P = probabilities(rng, states), probabilities(rng, states, states)
        if likely:  # transitions for scaled numbers, first states that are impossible
            P = rng.dirichlet(np.ones(states), states)
        with svmp.Model(coords={"state": states, "row": rows}) as model:
            given = svmp.data(first, dims="state")
            z = svmp.DiscreteMarkovChain("z", given, P, sequence=sequence, dims="row")
            density = svmp.Normal.dist(mu=svmp.data(means, dims="state"), tau=1.0)
            svmp.Mixture("y", z, density, dims="row", observed=y, missing=True)
        fit = svmp.fit(model, svmp.FullVB(), kernels=kernels)
        logs = np.nan_to_num(stats.norm(means, 1).logpdf(y[:, None]))
        evidence, marginal = 0.0, np.zeros((rows, states))
        with np.errstate(divide="ignore"):
            begin, move = np.log(first), np.log(P)
        for s in range(2):
            here = np.flatnonzero(sequence == s)
            paths = np.array(list(product(range(states), repeat=len(here))))
            log = begin[paths[:, 0]] + logs[here, paths].sum(axis=1)
            log += move[paths[:, :-1], paths[:, 1:]].sum(axis=1)
            total = logsumexp(log)
            evidence += total
            for t, row in enumerate(here):
                np.add.at(marginal[row], paths[:, t], np.exp(log - total))
        assert fit.bound == pytest.approx(evidence, rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(fit.mean("z"), marginal, atol=1e-9)

    strategies = {"states": st.integers(1, 3), "far": st.sampled_from([1.0, 10.0, 300.0])}
    strategies |= {name: st.booleans() for name in ("kernels", "likely")}
    on_random(count, check, seed=SEEDS, **strategies)


@HOW_MANY
def test_vectors_are_those_of_one_dense_gaussian(count: int) -> None:
    def check(seed: int, size: int, sensors: int, kernels: bool) -> None:
        rng = np.random.default_rng(seed)
        sequence = ragged(rng, 3, 5)
        rows, step = len(sequence), rng.uniform(0.2, 3, len(sequence))
        A, C = rng.normal(0, 0.8, (size, size)), rng.normal(size=(sensors, size))
        root = rng.normal(size=(size, size))
        Q, start = root @ root.T + 0.1 * np.eye(size), rng.normal(size=size)
        u, B = rng.normal(size=(rows, 2)), rng.normal(size=(size, 2))
        y = np.where(rng.random((rows, sensors)) < 0.4, np.nan, rng.normal(size=(rows, sensors)))
        y[0, 0] = 0.5
        with svmp.Model(coords={"row": rows, "latent": size, "sensor": sensors}) as model:
            init = svmp.MvNormal.dist(mu=start, tau=2 * np.eye(size))
            more: dict[str, Any] = {"B": B, "u": u, "step": step, "sequence": sequence}
            tau, dims = np.linalg.inv(Q), ("row", "latent")
            x = svmp.LinearGaussianChain("x", init, A, (tau + tau.T) / 2, **more, dims=dims)
            mean = svmp.dot(svmp.data(C, dims=("sensor", "latent")), x, dim="latent")
            svmp.Normal("y", mean, 3.0, dims=("row", "sensor"), observed=y, missing=True)
        fit = svmp.fit(model, svmp.FullVB(), kernels=kernels)
        middle, cov = np.zeros((rows, size)), np.zeros((rows, size, rows, size))
        for s in range(3):
            here = np.flatnonzero(sequence == s)
            for t, row in enumerate(here):
                if t == 0:
                    middle[row], cov[row, :, row] = start, np.eye(size) / 2
                    continue
                before = here[t - 1]
                middle[row] = A @ middle[before] + B @ u[row]
                for other in here[:t]:
                    cov[row, :, other] = A @ cov[before, :, other]
                    cov[other, :, row] = cov[row, :, other].T
                cov[row, :, row] = A @ cov[before, :, before] @ A.T + step[row] * Q
        flat = cov.reshape(rows * size, -1)
        observe = np.kron(np.eye(rows), C)[np.isfinite(y).ravel()]
        seen, total = y[np.isfinite(y)], observe @ flat @ observe.T
        total += np.eye(len(seen)) / 3
        expected = observe @ middle.ravel()
        truth = stats.multivariate_normal(expected, total).logpdf(seen)
        gain = np.linalg.solve(total, observe @ flat).T
        mean_x = middle + (gain @ (seen - expected)).reshape(rows, size)
        spread = np.diag(flat - gain @ observe @ flat).reshape(rows, size)
        assert fit.bound == pytest.approx(truth, rel=1e-10, abs=1e-10)
        np.testing.assert_allclose(fit.mean("x"), mean_x, atol=1e-9 * np.abs(mean_x).max())
        np.testing.assert_allclose(fit["x"].var, spread, rtol=1e-7, atol=1e-9 * spread.max())

    sizes = {"size": st.integers(1, 3), "sensors": st.integers(1, 3)}
    on_random(count, check, seed=SEEDS, kernels=st.booleans(), **sizes)


def random_network(seed: int, tau: str, switch: bool, series: bool) -> svmp.Model:
    """Declare a network with a linear chain or an autoregression, ragged and with missing values.

    A and C are learned, and with `switch` A is chosen by a chain of states over the same rows.
    """
    rng = np.random.default_rng(seed)
    sequence, size, sensors = ragged(rng, 3, 8), 2, 3
    rows = len(sequence)
    y = np.where(rng.random((rows, sensors)) < 0.3, np.nan, rng.normal(size=(rows, sensors)))
    y[0, 0] = 1.0
    coords = {"row": rows, "latent": size, "from": size, "sensor": sensors, "state": 2, "to": 2}
    with svmp.Model(coords=coords) as model:
        noise = svmp.Gamma("noise", alpha=1, beta=1)
        if series:
            prior = svmp.MvNormal.dist(mu=np.zeros(3), tau=np.eye(3))
            value = svmp.AR("x", prior, svmp.Gamma.dist(1, 1), sequence=sequence, dims="row")
            svmp.Normal("y", value, noise, dims="row", observed=y[:, 0], missing=True)
            return model
        z, dims = None, ("latent", "from")
        if switch:
            start = svmp.Dirichlet("start", a=1, dims="state")
            move = svmp.Dirichlet("move", a=1, dims=("state", "to"))
            z = svmp.DiscreteMarkovChain("z", start, move, sequence=sequence, dims="row")
            dims = ("state", *dims)
        A = svmp.MvNormal("A", mu=0, tau=np.eye(size), dims=dims)
        precision: Any = 1.0
        if tau == "Gamma":
            precision = svmp.Gamma("tau", alpha=1, beta=1, dims="latent")
        elif tau == "Wishart":
            precision = svmp.Wishart("tau", nu=3.0, V=np.eye(size), dims=("latent", "from"))
        more: dict[str, Any] = {"switch": z, "sequence": sequence, "dims": ("row", "latent")}
        x = svmp.LinearGaussianChain("x", svmp.Normal.dist(0, 1), A, precision, **more)
        C = svmp.MvNormal("C", mu=0, tau=np.eye(size), dims=("sensor", "latent"))
        mean = svmp.dot(C, x, dim="latent")
        svmp.Normal("y", mean, noise, dims=("row", "sensor"), observed=y, missing=True)
    return model


@HOW_MANY
def test_bound_never_falls_and_loops_agree(count: int) -> None:
    def check(seed: int, tau: str, switch: bool, series: bool, default: bool) -> None:
        model = random_network(seed, tau, switch, series)
        method = None if default else svmp.FullVB()
        found = [
            svmp.fit(model, method, seed=seed, kernels=kernels, max_sweeps=6, tol=0)
            for kernels in (False, True)
        ]
        bounds = found[0].trace["bound"]
        assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[:-1])).all()
        if not default:  # the default's search for the best basis magnifies rounding
            np.testing.assert_allclose(found[1].trace["bound"], bounds, rtol=1e-8)

    flags = {name: st.booleans() for name in ("switch", "series", "default")}
    on_random(count, check, seed=SEEDS, tau=st.sampled_from(["1", "Gamma", "Wishart"]), **flags)

"""Chains of vectors start at principal components: compared with the systems that made the data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles

import svmp
from svmp.inference.starts.start import start
from svmp.network.network import Network

SIZE, ROWS = 2, 240
ANGLE = 0.4
A = 0.95 * np.array([[np.cos(ANGLE), np.sin(ANGLE)], [-np.sin(ANGLE), np.cos(ANGLE)]])
SEQUENCE = np.repeat([0, 1, 2], [100, 130, 10])


def states(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, SIZE))
    for t in range(1, ROWS):
        if SEQUENCE[t] == SEQUENCE[t - 1]:
            x[t] = A @ x[t - 1] + rng.normal(0, 0.3, SIZE)
    return x


def declare(y: np.ndarray, kind: str = "MvNormal", tau: str = "number") -> svmp.Model:
    sensors = y.shape[1]
    coords = {"row": ROWS, "latent": SIZE, "from": SIZE, "sensor": sensors}
    with svmp.Model(coords=coords) as model:
        matrix = svmp.MvNormal("A", mu=0, tau=np.eye(SIZE), dims=("latent", "from"))
        step = {
            "number": lambda: 1.0,
            "Gamma": lambda: svmp.Gamma("tau", alpha=1, beta=0.1, dims="latent"),
            "Wishart": lambda: svmp.Wishart("tau", nu=3.0, V=np.eye(2), dims=("latent", "from")),
        }[tau]()
        x = svmp.LinearGaussianChain(
            "x",
            svmp.Normal.dist(0, 0.1),
            A=matrix,
            tau=step,
            sequence=SEQUENCE,
            dims=("row", "latent"),
        )
        if kind == "MvNormal":
            C = svmp.MvNormal("C", mu=0, tau=0.1 * np.eye(SIZE), dims=("sensor", "latent"))
        else:
            C = svmp.Normal("C", mu=0, tau=0.1, dims=("sensor", "latent"))
        level = svmp.Normal("level", mu=0, tau=0.001, dims="sensor")
        noise = svmp.Gamma("noise", alpha=1, beta=0.01)
        mean = svmp.dot(C, x, dim="latent") + level
        svmp.Normal("y", mean, noise, dims=("row", "sensor"), observed=y, missing=True)
    return model


def observe(sensors: int, seed: int = 0, missing: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed + 1)
    C = rng.normal(size=(sensors, SIZE))
    y = 5 + states(seed) @ C.T + rng.normal(0, 0.1, (ROWS, sensors))
    y[rng.random(y.shape) < missing] = np.nan
    y[50:55] = np.nan
    return y, C


@pytest.mark.parametrize("kind", ["MvNormal", "Normal"])
@pytest.mark.parametrize("tau", ["number", "Gamma", "Wishart"])
def test_start_has_the_loadings_and_the_dynamics(kind: str, tau: str) -> None:
    y, C = observe(6)
    q = start(Network(declare(y, kind, tau)), 3)
    found = q.moments["C"][:, : 1 if kind == "Normal" else SIZE].reshape(-1, SIZE)
    assert subspace_angles(found, C).max() < 0.1
    eigenvalues = np.linalg.eigvals(q.moments["A"][:, :SIZE])
    np.testing.assert_allclose(np.abs(eigenvalues), 0.95, atol=0.08)
    np.testing.assert_allclose(np.abs(np.angle(eigenvalues)), ANGLE, atol=0.08)


def test_fewer_columns_than_states_use_the_next_rows() -> None:
    y, _ = observe(1, missing=0.0)
    q = start(Network(declare(y - 5)), 0)
    eigenvalues = np.linalg.eigvals(q.moments["A"][:, :SIZE])
    np.testing.assert_allclose(np.abs(np.angle(eigenvalues)), ANGLE, atol=0.15)


def test_start_depends_on_the_seed_alone_and_leaves_given_values() -> None:
    network = Network(declare(observe(4)[0]))
    one, same, other = start(network, 1), start(network, 1), start(network, 2)
    for name in one.natural:
        np.testing.assert_array_equal(one.natural[name], same.natural[name])
    assert not np.array_equal(one.natural["C"], other.natural["C"])
    given = start(network, 1, {"A": {"mu": A, "tau": np.eye(SIZE)}})
    np.testing.assert_array_equal(given.moments["A"][:, :SIZE], A)
    assert not np.allclose(start(network, 1, {"x": 0.0}).moments["C"], one.moments["C"])


def test_one_row_or_constant_values_give_a_finite_start() -> None:
    y = np.full((ROWS, 3), np.nan)
    y[7, 1] = 2.0
    for values in (y, np.full((ROWS, 3), 4.0)):
        fit = svmp.fit(declare(values), max_sweeps=5)
        assert np.isfinite(fit.bound)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_sensor_that_is_never_read_leaves_the_others_their_start() -> None:
    """Columns are centred where the mean has an intercept: one without a value has no mean."""
    y = np.random.default_rng(0).normal(size=(12, 3))
    y[:, 1] = np.nan
    with svmp.Model(coords={"row": 12, "sensor": 3, "k": 1}) as model:
        x = svmp.LinearGaussianChain("x", svmp.Normal.dist(0, 1), 0.9, 1.0, dims=("row", "k"))
        C = svmp.MvNormal("C", 0.0, np.eye(1), dims=("sensor", "k"))
        a = svmp.Normal("a", 0.0, 1.0)
        mean = svmp.dot(C, x, dim="k") + a
        svmp.Normal("y", mean, 2.0, dims=("row", "sensor"), observed=y, missing=True)
    assert np.isfinite(svmp.fit(model).bound)

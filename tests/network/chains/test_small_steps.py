"""Chains whose steps are small beside their states, against dense evidence and constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import svmp

ROWS, SENSORS, NOISE = 30, 2, 2.0


def chain(
    size: int, tau: float, seed: int, rows: Any = slice(None), drift: bool = False
) -> svmp.Model:
    """A chain with known parameters over some rows, whose sequences are two halves of a table."""
    data = drawn(size, seed)
    y, step = data["y"][rows], data["step"][rows]
    more = {"B": data["B"], "u": data["u"][rows]} if drift else {}
    with svmp.Model(coords={"row": len(y), "k": size, "s": SENSORS}) as model:
        x = svmp.LinearGaussianChain(
            "x", svmp.Normal.dist(0, 1), data["A"], tau, step=step, dims=("row", "k"),
            sequence=data["sequence"][rows], **more,
        )  # fmt: skip
        mean = svmp.dot(svmp.data(data["C"], dims=("s", "k")), x, dim="k")
        svmp.Normal("y", mean, NOISE, dims=("row", "s"), observed=y, missing=True)
    return model


def drawn(size: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(ROWS, SENSORS))
    y[rng.random(y.shape) < 0.2] = np.nan
    return {
        "y": y,
        "step": rng.uniform(0.5, 2.0, ROWS),
        "A": np.linalg.qr(rng.normal(size=(size, size)))[0] if seed % 2 else np.eye(size),
        "B": rng.normal(size=(size, 1)),
        "u": rng.normal(size=(ROWS, 1)),
        "C": rng.normal(size=(SENSORS, size)),
        "sequence": np.repeat([0, 1], ROWS // 2),
    }


def exact(size: int, tau: float, seed: int, drift: bool = False) -> tuple[float, np.ndarray]:
    """Return the evidence and the posterior mean, from the covariance of all values."""
    data = drawn(size, seed)
    A, H = data["A"], np.kron(np.eye(ROWS), data["C"])
    push = data["u"] @ data["B"].T if drift else np.zeros((ROWS, size))
    mean, cov = np.zeros((ROWS, size)), np.zeros((ROWS * size, ROWS * size))
    for t in range(ROWS):
        now, before = (slice(r * size, (r + 1) * size) for r in (t, t - 1))
        if t in (0, ROWS // 2):
            cov[now, now] = np.eye(size)
            continue
        mean[t] = A @ mean[t - 1] + push[t]
        cov[now, : t * size] = A @ cov[before, : t * size]
        cov[: t * size, now] = cov[now, : t * size].T
        cov[now, now] = A @ cov[before, before] @ A.T + np.eye(size) * data["step"][t] / tau
    seen = np.isfinite(data["y"].ravel())
    S = (H @ cov @ H.T)[np.ix_(seen, seen)] + np.eye(seen.sum()) / NOISE
    y, middle = data["y"].ravel()[seen], (H @ mean.ravel())[seen]
    evidence = float(stats.multivariate_normal(middle, S).logpdf(y))
    update = cov @ H.T[:, seen] @ np.linalg.solve(S, y - middle)
    return evidence, mean + update.reshape(ROWS, size)


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("tau", [1e4, 1e9, 1e12, 1e16, 1e20])
def test_the_bound_is_the_evidence_however_small_the_steps(
    size: int, tau: float, kernels: bool
) -> None:
    for seed in (1, 2):
        for drift in (False, True):
            fit = svmp.fit(chain(size, tau, seed, drift=drift), svmp.FullVB(), kernels=kernels)
            evidence, mean = exact(size, tau, seed, drift)
            assert fit.bound == pytest.approx(evidence, abs=1e-6)
            np.testing.assert_allclose(fit.mean("x"), mean, atol=1e-9)


@pytest.mark.parametrize("method", [svmp.Memoized(over="sequence"), svmp.Batch(1, over="sequence")])
def test_sequences_that_are_updated_in_turn_have_the_same_bound(method: Any) -> None:
    fit = svmp.fit(chain(2, 1e18, 1), method, tol=1e-12)
    assert fit.bound == pytest.approx(exact(2, 1e18, 1)[0], abs=1e-6)


def test_rows_that_arrive_later_add_their_part_of_the_evidence() -> None:
    for tau in (1e10, 1e18):
        first = svmp.fit(chain(2, tau, 1, slice(0, ROWS // 3)), svmp.FullVB())
        alone, both = slice(ROWS // 3, ROWS // 2), slice(0, ROWS // 2)
        later = first.update(chain(2, tau, 1, alone), svmp.FullVB(), new=["row"])
        whole = svmp.fit(chain(2, tau, 1, both), svmp.FullVB())
        assert first.bound + later.bound == pytest.approx(whole.bound, abs=1e-6)


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("tau", [1e12, 1e16, 1e20])
def test_a_walk_that_does_not_move_is_a_constant(tau: float, kernels: bool) -> None:
    y = np.random.default_rng(3).normal(2.0, 1.0, 50)

    def model(walk: bool) -> svmp.Model:
        with svmp.Model(coords={"row": 50}) as found:
            noise = svmp.Gamma("noise", 1.0, 1.0)
            start = svmp.Normal.dist(0.0, 0.01)
            mean = (
                svmp.GaussianRandomWalk("x", tau=tau, init=start, dims="row")
                if walk
                else svmp.Normal("x", 0.0, 0.01)
            )
            svmp.Normal("y", mean, noise, dims="row", observed=y)
        return found

    fit = svmp.fit(model(True), kernels=kernels, tol=1e-12)
    constant = svmp.fit(model(False), svmp.FullVB(), tol=1e-12)
    bound = np.asarray(fit.trace["bound"])
    assert np.diff(bound).min(initial=0.0) > -1e-6
    assert fit.bound == pytest.approx(constant.bound, abs=1e-5)
    assert float(fit.posteriors["noise"].mean) == pytest.approx(
        float(constant.posteriors["noise"].mean), rel=1e-6
    )


def test_steps_that_leave_no_digits_are_refused() -> None:
    with pytest.raises(svmp.ModelError, match=r"steps of 'x' at row .* too few digits"):
        svmp.fit(chain(2, 1e27, 1))
    with svmp.Model(coords={"row": 30, "k": 1, "j": 1}) as model:
        A = svmp.MvNormal("A", 1.0, 1e16 * np.eye(1), dims=("k", "j"))
        x = svmp.LinearGaussianChain("x", svmp.Normal.dist(0, 1), A, 1e14, dims=("row", "k"))
        svmp.Normal("y", x[:, 0], 1.0, dims="row", observed=np.ones(30))
    with pytest.raises(svmp.ModelError, match="too few digits"):
        svmp.fit(model)


def test_entries_of_very_different_precisions_are_exact_or_refused() -> None:
    """A trend whose level hardly leaves its slope: its two precisions are far apart."""
    A, rng = np.array([[1.0, 1.0], [0.0, 1.0]]), np.random.default_rng(0)
    y = rng.normal(size=30)
    apart = ([1e14, 1.0], [1e20, 1e8])
    for tau in ([1e6, 1.0], [1.0, 1e6], [1e9, 1e3], [1e18, 1e18], *apart):
        with svmp.Model(coords={"row": 30, "k": 2}) as model:
            x = svmp.LinearGaussianChain(
                "x", svmp.Normal.dist(0, 1), A, np.array(tau), dims=("row", "k")
            )
            svmp.Normal("y", x[:, 0], 1.0, dims="row", observed=y)
        cov = np.zeros((60, 60))
        cov[:2, :2] = np.eye(2)
        for t in range(1, 30):
            now, before = slice(2 * t, 2 * t + 2), slice(2 * t - 2, 2 * t)
            cov[now, : 2 * t] = A @ cov[before, : 2 * t]
            cov[: 2 * t, now] = cov[now, : 2 * t].T
            cov[now, now] = A @ cov[before, before] @ A.T + np.diag(1 / np.array(tau))
        evidence = stats.multivariate_normal(np.zeros(30), cov[::2, ::2] + np.eye(30)).logpdf(y)
        if tau in apart:
            with pytest.raises(svmp.ModelError, match="too few digits"):
                svmp.fit(model)
        else:
            assert svmp.fit(model).bound == pytest.approx(evidence, abs=1e-6)

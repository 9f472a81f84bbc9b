"""Mixed effects against REML by dense algebra, and lme4's published estimates.

Given precisions Lambda of effects and tau of rows, y ~ Normal(X w, V) with V block diagonal, and

    REML = -1/2 (log|V| + log|X' V^-1 X| + r' V^-1 r),    r the residual of least squares.

The fixed point of the means of q(Lambda) and q(tau) is the maximum of REML and a penalty which the
priors make: (k / 2) log|Lambda| - k log|I + Lambda|, in units where y has sd 1 and the columns of
effects are orthonormal.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from svmp.families.family import Array
from svmp.models import MixedEffects

GROUPED = Path(__file__).parents[4] / "shared" / "data" / "grouped"


class Reml(NamedTuple):
    """Estimates: coefficients with their covariance, covariance of effects, sd of rows."""

    coef: Array
    sigma: Array
    covariance: Array
    noise: float


def reml(X: Array, Z: Array, group: Array, y: Array, penalised: bool = False) -> Reml:
    """Return the maximum of REML over a Cholesky root of the covariance and the sd of rows."""
    k, places = Z.shape[1], np.tril_indices(Z.shape[1])
    centre, size = y.mean(), y.std()
    y = (y - centre) / size
    root = np.linalg.cholesky(np.linalg.inv(Z.T @ Z / len(Z)))
    Z = Z @ root
    blocks = [(X[group == g], Z[group == g], y[group == g]) for g in np.unique(group)]

    def unpack(theta: Array) -> tuple[Array, float]:
        L = np.zeros((k, k))
        L[places] = theta[:-1]
        return L, float(np.exp(theta[-1]))

    def solve(theta: Array) -> tuple[float, Array, Array]:
        L, noise = unpack(theta)
        log_det, XX, Xy, yy = 0.0, 0.0, 0.0, 0.0
        for x, z, r in blocks:
            V = noise**2 * np.eye(len(z)) + z @ L @ L.T @ z.T
            white = np.linalg.solve(np.linalg.cholesky(V), np.column_stack([x, r]))
            log_det += np.linalg.slogdet(V)[1]
            xs, rs = white[:, :-1], white[:, -1]
            XX, Xy, yy = XX + xs.T @ xs, Xy + xs.T @ rs, yy + rs @ rs
        w = np.linalg.solve(XX, Xy)
        value = log_det + np.linalg.slogdet(XX)[1] + yy - w @ Xy
        if penalised:
            S = L @ L.T + 1e-14 * np.eye(k)
            value += 2 * k * np.linalg.slogdet(np.eye(k) + np.linalg.inv(S))[1]
            value += k * np.linalg.slogdet(S)[1]
        return value, w, XX

    start = np.append(0.5 * np.eye(k)[places], np.log(0.5))
    found = minimize(lambda t: solve(t)[0], start, method="Nelder-Mead", options={
        "maxiter": 20000, "maxfev": 20000, "xatol": 1e-7, "fatol": 1e-10, "adaptive": True,
    })  # fmt: skip
    _, w, XX = solve(found.x)
    L, noise = unpack(found.x)
    coef = size * w
    coef[0] += centre
    own = size * root @ L
    return Reml(coef, size**2 * np.linalg.inv(XX), own @ own.T, size * noise)


def drawn(seed: int, groups: int = 18, rows: int = 10) -> tuple[pd.DataFrame, Array]:
    """Return a set in the shape of sleepstudy, and its design."""
    rng = np.random.default_rng(seed)
    day = np.tile(np.arange(rows, dtype=float), groups)
    group = np.repeat(np.arange(groups), rows)
    own = rng.normal(size=(groups, 2)) * [rng.uniform(10, 40), rng.uniform(3, 7)]
    slope = rng.uniform(8, 12)
    y = 250 + slope * day + own[group, 0] + own[group, 1] * day
    y = y + rng.uniform(15, 30) * rng.normal(size=len(day))
    frame = pd.DataFrame({"y": y, "day": day, "subject": [f"s{g}" for g in group]})
    return frame, np.column_stack([np.ones(len(day)), day])


def codes(frame: pd.DataFrame) -> Array:
    return np.unique(frame["subject"], return_inverse=True)[1]


@pytest.mark.parametrize("seed", range(4))
def test_the_fixed_point_is_penalised_reml(seed: int) -> None:
    frame, design = drawn(seed)
    model = MixedEffects("y ~ day + (day | subject)", tol=1e-12, max_iter=3000).fit(frame)
    truth = reml(design, design, codes(frame), frame["y"].to_numpy(), penalised=True)
    np.testing.assert_allclose(model.coef_, truth.coef, rtol=1e-4)
    np.testing.assert_allclose(model.covariance_, truth.covariance, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(np.sqrt(model.noise_variance_), truth.noise, rtol=1e-3)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 30.0, 1e3, 1e6])
def test_slopes_are_those_of_reml_at_every_scale(scale: float) -> None:
    frame, design = drawn(1)
    frame["y"] *= scale
    model = MixedEffects("y ~ day + (day | subject)").fit(frame)
    truth = reml(design, design, codes(frame), frame["y"].to_numpy())
    np.testing.assert_allclose(model.coef_, truth.coef, rtol=2e-3)
    sd = np.sqrt(truth.sigma.diagonal())
    np.testing.assert_allclose(np.sqrt(model.sigma_.diagonal()), sd, rtol=0.25)
    assert (np.sqrt(model.sigma_.diagonal()) > 0.98 * sd).all()
    between = np.sqrt(truth.covariance.diagonal())
    np.testing.assert_allclose(np.sqrt(model.covariance_.diagonal()), between, rtol=0.15)
    np.testing.assert_allclose(np.sqrt(model.noise_variance_), truth.noise, rtol=0.02)
    new = pd.DataFrame({"day": [0.0, 9.0], "subject": "another"})
    mean, std = model.predict(new, return_std=True)
    x = np.array([[1.0, 0.0], [1.0, 9.0]])
    np.testing.assert_allclose(mean, x @ truth.coef, rtol=2e-3)
    spread = np.einsum("ri,ij,rj->r", x, truth.sigma + truth.covariance, x) + truth.noise**2
    np.testing.assert_allclose(std, np.sqrt(spread), rtol=0.15)


@pytest.mark.parametrize("spread", [0.0, 0.05])
def test_groups_that_hardly_differ(spread: float) -> None:
    """The sd is at most what REML and its error allow, and the coefficients are those of REML."""
    rng = np.random.default_rng(3)
    group, x = np.repeat(np.arange(40), 25), rng.normal(size=1000)
    y = 5 + 2 * x + spread * rng.normal(size=40)[group] + rng.normal(size=1000)
    frame = pd.DataFrame({"y": y, "x": x, "group": group})
    model = MixedEffects("y ~ x + (1 | group)", max_iter=3000).fit(frame)
    truth = reml(np.column_stack([np.ones(1000), x]), np.ones((1000, 1)), group, y)
    np.testing.assert_allclose(model.coef_, truth.coef, atol=0.002)
    assert np.sqrt(model.covariance_[0, 0]) < np.sqrt(truth.covariance[0, 0]) + 0.1
    np.testing.assert_allclose(np.sqrt(model.noise_variance_), truth.noise, rtol=0.01)


def test_a_random_intercept_has_nearly_the_exact_posterior() -> None:
    """By a grid of both log sds, with the coefficient integrated over in closed form."""
    rng = np.random.default_rng(4)
    groups, rows = 12, 8
    group = np.repeat(np.arange(groups), rows)
    y = 50 + 3 * rng.normal(size=groups)[group] + 2 * rng.normal(size=len(group))
    model = MixedEffects("y ~ 1 + (1 | group)").fit(pd.DataFrame({"y": y, "group": group}))
    size, means = y.std(), y.reshape(groups, rows).mean(axis=1)
    within = ((y - means[group]) ** 2).sum()
    u, s = np.meshgrid(np.linspace(-2, 4, 400), np.linspace(0, 1.5, 200))
    between, noise = np.exp(2 * u), np.exp(2 * s)
    each = between + noise / rows  # the variance of a group's mean
    w, v = means.mean(), each / groups
    log = -0.5 * (groups - 1) * np.log(each) - 0.5 * ((means - w) ** 2).sum() / each
    log += -groups * (rows - 1) * s - 0.5 * within / noise
    log += u - np.log(size**2 + between)  # a half-Cauchy, by log sd
    p = np.exp(log - log.max())
    p /= p.sum()
    assert model.coef_[0] == pytest.approx(w, rel=1e-3)
    assert np.sqrt(model.sigma_[0, 0]) == pytest.approx(np.sqrt((p * v).sum()), rel=0.1)
    found = {row[0]: float(row[1]) for row in model.summary().rows}
    assert found["sd of Intercept by group"] == pytest.approx((p * np.exp(u)).sum(), rel=0.1)
    assert found["sd of the noise"] == pytest.approx((p * np.exp(s)).sum(), rel=0.02)


LME4: dict[str, tuple[str, list[float], list[float], list[float], float]] = {
    "sleepstudy": (
        "Reaction ~ Days + (Days | Subject)",
        [251.40510, 10.46729], [6.82460, 1.54579], [24.741, 5.922], 25.592,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LME4)
def test_estimates_of_lme4(name: str) -> None:
    path = GROUPED / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    formula, coef, sd, between, noise = LME4[name]
    model = MixedEffects(formula).fit(pd.read_csv(path))
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-3)
    np.testing.assert_allclose(np.sqrt(model.sigma_.diagonal()), sd, rtol=0.2)
    np.testing.assert_allclose(np.sqrt(model.covariance_.diagonal()), between, rtol=0.15)
    np.testing.assert_allclose(np.sqrt(model.noise_variance_), noise, rtol=0.02)


@pytest.mark.parametrize("noise", [1e-3, 1e-2, 1.0])
def test_small_noise_beside_a_large_slope(noise: float) -> None:
    rng = np.random.default_rng(6)
    group, x = np.repeat(np.arange(20), 10), rng.normal(size=200)
    y = 5 * x + 10 * noise * rng.normal(size=20)[group] + noise * rng.normal(size=200)
    frame = pd.DataFrame({"y": y, "x": x, "group": group})
    model = MixedEffects("y ~ x + (1 | group)").fit(frame)
    truth = reml(np.column_stack([np.ones(200), x]), np.ones((200, 1)), group, y)
    np.testing.assert_allclose(model.coef_[1], truth.coef[1], atol=1e-3 * noise)
    assert np.sqrt(model.noise_variance_) == pytest.approx(truth.noise, rel=0.02)
    assert np.sqrt(model.covariance_[0, 0]) == pytest.approx(truth.covariance[0, 0] ** 0.5, rel=0.1)


@pytest.mark.parametrize("rows", [20, 1000])
def test_rows_without_noise(rows: int) -> None:
    group, x = np.repeat([1.0, 2.0, 7.0], rows), np.random.default_rng(1).normal(size=3 * rows)
    model = MixedEffects(groups=1).fit(np.column_stack([x, group]), 3 * x + group)
    assert model.coef_[1] == pytest.approx(3, abs=1e-3)
    assert np.sqrt(model.noise_variance_) < 1e-3
    level = model.coef_[0] + model.effects_[:, 0]
    np.testing.assert_allclose(level, [1, 2, 7], atol=1e-3)


def test_columns_that_others_explain_are_left_out_with_a_warning() -> None:
    frame, _ = drawn(1)
    frame["again"] = 2 * frame["day"] - 3
    with pytest.warns(UserWarning, match="the columns again of MixedEffects are sums"):
        model = MixedEffects("y ~ day + again + (day | subject)").fit(frame)
    plain = MixedEffects("y ~ day + (day | subject)").fit(frame)
    np.testing.assert_allclose(model.coef_, [*plain.coef_, 0.0])
    np.testing.assert_allclose(model.predict(frame), plain.predict(frame))
    with pytest.raises(ValueError, match="are 0 in all rows"):
        MixedEffects("y ~ day + (0 + zero | subject)").fit(frame.assign(zero=0.0))


def test_the_summary_has_names_and_the_units_of_the_data() -> None:
    frame, _ = drawn(2)
    model = MixedEffects("y ~ day + (day | subject)").fit(frame)
    rows: dict[str, Any] = {row[0]: row[1:] for row in model.summary().rows}
    assert list(rows) == [
        "Intercept", "day", "sd of Intercept by subject", "sd of day by subject",
        "correlation of Intercept and day by subject", "sd of the noise",
    ]  # fmt: skip
    assert float(rows["day"][0]) == pytest.approx(model.coef_[1], rel=1e-3)
    sds = model.fit_["precision"].draw(20000, seed=1)
    own = model._target.scale * model._own.inverse
    sds = np.sqrt((own @ np.linalg.inv(sds) @ own.T)[:, [0, 1], [0, 1]])
    for j, name in enumerate(("Intercept", "day")):
        mean, sd, interval = rows[f"sd of {name} by subject"]
        assert float(mean) == pytest.approx(sds[:, j].mean(), rel=0.02)
        assert float(sd) == pytest.approx(sds[:, j].std(), rel=0.05)
        ends = [float(end) for end in interval.split(" to ")]
        np.testing.assert_allclose(ends, np.quantile(sds[:, j], [0.05, 0.95]), rtol=0.03)

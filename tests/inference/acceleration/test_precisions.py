"""Extrapolated precisions of joint blocks: the optimum of plain ascent, in fewer sweeps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import svmp
from svmp.inference.acceleration.extrapolation import remember
from svmp.inference.acceleration.precisions import DEPTH, next_logarithms


def crossed(seed: int, slopes: bool = False) -> svmp.Model:
    """Return crossed effects of few groups, whose precisions creep."""
    rng = np.random.default_rng(seed)
    rows, users, items = rng.integers(30, 200), rng.integers(4, 30), rng.integers(3, 9)
    g, h, x = rng.integers(0, users, rows), rng.integers(0, items, rows), rng.normal(size=rows)
    y = rng.normal(size=users)[g] + rng.normal(0, 0.3, items)[h] + rng.normal(size=rows)
    with svmp.Model(coords={"g": users, "h": items}) as model:
        ty = svmp.Gamma("ty", alpha=1e-3, beta=1e-3)
        a = svmp.Normal("a", mu=0, tau=1e-4)
        tu, tv = (svmp.Gamma(name, alpha=0.5, beta=1e-3) for name in ("tu", "tv"))
        u = svmp.Normal("u", mu=0, tau=tu, dims="g")
        v = svmp.Normal("v", mu=0, tau=tv, dims="h")
        mean = a + u[g] + v[h]
        if slopes:
            ts = svmp.Gamma("ts", alpha=0.5, beta=1e-3)
            mean = mean + svmp.Normal("s", mu=0, tau=ts, dims="g")[g] * x
        svmp.Normal("y", mu=mean, tau=ty, observed=y)
    return model


@pytest.mark.parametrize("slopes", [False, True])
def test_precisions_reach_the_optimum_in_fewer_sweeps(slopes: bool) -> None:
    sweeps = []
    for seed in range(4):
        model = crossed(seed, slopes)
        plain = svmp.fit(model, svmp.FullVB(), joint="auto", tol=1e-10, max_sweeps=3000)
        fit = svmp.fit(model, joint="auto", tol=1e-10, max_sweeps=3000)
        assert (np.diff(fit.trace["bound"]) > -1e-9).all()
        assert fit.bound > plain.bound - 1e-7
        sweeps.append((plain.iterations, fit.iterations))
        if fit.bound < plain.bound + 1e-6:  # the same optimum
            for name in ("ty", "tu", "tv"):
                assert fit.mean(name) == pytest.approx(plain.mean(name), rel=1e-3)
    before, after = np.sum(sweeps, axis=0)
    assert after < 0.6 * before


def test_resumed_runs_have_the_same_bits(tmp_path: Path) -> None:
    whole = svmp.fit(crossed(1), joint="auto", tol=0, max_sweeps=9)
    path = tmp_path / "run"
    svmp.fit(crossed(1), joint="auto", tol=0, max_sweeps=5, checkpoint=path)
    resumed = svmp.fit(crossed(1), resume=path, max_sweeps=9)
    assert np.array_equal(resumed.trace["bound"], whole.trace["bound"])
    assert np.array_equal(resumed["tv"].natural, whole["tv"].natural)


def test_extrapolation_solves_a_linear_map() -> None:
    """Anderson's method with a memory of n steps finds the fixed point of a map of n numbers."""
    rng = np.random.default_rng(0)
    matrix, shift = 0.3 * rng.normal(size=(3, 3)), 0.1 * rng.normal(size=3)
    truth, x, history = np.linalg.solve(np.eye(3) - matrix, shift), np.zeros(3), {}
    for _ in range(5):
        mapped = matrix @ x + shift
        parts = ({"a": v[:1, None], "b": v[1:, None]} for v in (x, mapped))
        history = remember(history, *parts, DEPTH)
        following = next_logarithms(history)
        x = mapped if following is None else np.concatenate([*following.values()])[:, 0]
    assert x == pytest.approx(truth, abs=1e-8)

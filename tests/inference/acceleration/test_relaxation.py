"""Over-relaxation: never lowers the bound, ends at the same optimum, in fewer sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import svmp
from svmp.inference.acceleration.relaxation import fell_last, means_of, next_omega, relax
from svmp.inference.methods.draw import AllRows
from svmp.inference.program.program import Program
from svmp.inference.starts.start import start
from svmp.inference.steps.rule import StepRule
from svmp.inference.trace import Trace
from svmp.network.network import Network
from tests.inference.tools import gallery

USERS, ITEMS, ROWS = 30, 25, 400
KINDS = ("normal", "vector", "logit", "biases")


def ratings(kind: str = "normal", rows: slice = slice(None)) -> svmp.Model:
    """Return a factorization."""
    rng = np.random.default_rng(5)
    user, item = rng.integers(USERS, size=ROWS)[rows], rng.integers(ITEMS, size=ROWS)[rows]
    r = (3 + rng.normal(size=ROWS))[rows]
    with svmp.Model(coords={"user": USERS, "item": ITEMS, "k": 3}) as model:
        if kind == "vector":
            u = svmp.MvNormal("u", mu=0, tau=np.eye(3), dims=("user", "k"))
            v = svmp.MvNormal("v", mu=0, tau=np.eye(3), dims=("item", "k"))
        else:
            u = svmp.Normal("u", mu=0, tau=1, dims=("user", "k"))
            v = svmp.Normal("v", mu=0, tau=1, dims=("item", "k"))
        mu = svmp.dot(u[user], v[item])
        if kind == "biases":
            mu = mu + svmp.Normal("a", mu=0, tau=0.1, dims="user")[user]
        if kind == "logit":
            svmp.Bernoulli("r", logit=mu, observed=(r > 3).astype(int))
        else:
            svmp.Normal("r", mu=mu, tau=svmp.Gamma("tau", alpha=1, beta=1), observed=r)
    return model


def crossed(size: int = 400) -> tuple[svmp.Model, dict[str, np.ndarray]]:
    """Return effects that are too many for one block, and their exact means."""
    rng = np.random.default_rng(6)
    a, b = rng.integers(size, size=6 * size), rng.integers(size, size=6 * size)
    y = rng.normal(size=size)[a] + rng.normal(size=size)[b] + rng.normal(size=6 * size)
    with svmp.Model(coords={"a": size, "b": size}) as model:
        first = svmp.Normal("first", mu=0, tau=0.01, dims="a")
        second = svmp.Normal("second", mu=0, tau=0.01, dims="b")
        svmp.Normal("y", mu=first[a] + second[b], tau=1, observed=y)
    x = np.zeros((len(y), 2 * size))
    x[np.arange(len(y)), a] = x[np.arange(len(y)), size + b] = 1
    means = np.linalg.solve(x.T @ x + 0.01 * np.eye(2 * size), x.T @ y)
    return model, {"first": means[:size], "second": means[size:]}


@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "plain"])
@pytest.mark.parametrize("kind", KINDS)
def test_bound_is_a_quadratic_with_its_top_at_the_solution(kind: str, kernels: bool) -> None:
    network = Network(ratings(kind))
    program = Program.of(network, svmp.Growing(1.0), kernels)
    bounds = {}
    for omega in (0.1, 0.5, 1.0, 1.5, 1.9):
        q = program.attach(start(network, 3))
        rows = AllRows(network)
        program.begin(q, rows)
        updater = next(u for u in program.updaters if "u" in u.names)
        before = means_of(q, network, ("u",))
        for change in updater.update(q, rows, StepRule.unit(rows)):
            program.apply(q, change)
        relax(q, network, before, omega)
        bounds[omega] = sum(program.bound(q).values())
    assert bounds[1.0] > bounds[1.5] > bounds[1.9]
    if kind != "logit":  # whose rows have the tangent at q, which is a quadratic below the bound
        for h in (0.5, 0.9):
            assert bounds[1 + h] == pytest.approx(bounds[round(1 - h, 1)], rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_bound_never_falls_and_the_last_block_is_solved(kind: str) -> None:
    model = ratings(kind)
    fit = svmp.fit(model, svmp.Growing(1.0), max_sweeps=12, tol=0, progress=False)
    assert (np.diff(fit.trace["bound"]) > 0).all()
    assert fit.bound == pytest.approx(sum(Network(model).bound(fit_q(model, fit)).values()))
    network, q = Network(model), fit_q(model, fit)
    program = Program.of(network, svmp.Growing(1.0), False)
    last = program.relaxed[-1]
    updater = next(u for u in program.updaters if last == u.names)
    rows = AllRows(network)
    at_end = means_of(q, network, last)
    for change in updater.update(q, rows, StepRule.unit(rows)):
        program.apply(q, change)
    for name, means in means_of(q, network, last).items():  # but for the newer noise or tangent
        np.testing.assert_allclose(means, at_end[name], atol=1e-3)


def fit_q(model: svmp.Model, fit: svmp.Fit) -> svmp.network.beliefs.Beliefs:
    """Return q of a fit."""
    return start(Network(model), 0, fit.posteriors)


@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "plain"])
def test_crossed_effects_converge_to_the_exact_means(kernels: bool) -> None:
    model, truth = crossed()
    options = {"tol": 1e-12, "max_sweeps": 400, "progress": False, "kernels": kernels}
    fit = svmp.fit(model, svmp.Growing(1.0), **options)
    slow = svmp.fit(model, svmp.Growing(1.0, relax=False), **options)
    for name, means in truth.items():
        np.testing.assert_allclose(fit.mean(name), means, atol=1e-4)
    assert fit.status == "converged"
    assert len(fit.trace) < 0.7 * len(slow.trace)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", [1.0, 0.2])
def test_compiled_and_plain_runs_agree(kind: str, first: float) -> None:
    options = {"method": svmp.Growing(first), "max_sweeps": 6, "tol": 0, "progress": False}
    compiled, plain = (svmp.fit(ratings(kind), **options, kernels=k) for k in (True, False))
    rtol = 1e-7 if kind == "logit" else 1e-9  # whose tangents are compiled in single precision
    np.testing.assert_allclose(compiled.trace["bound"], plain.trace["bound"], rtol=rtol)
    np.testing.assert_allclose(compiled.mean("v"), plain.mean("v"), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("first", [1.0, 0.2])
def test_resumed_run_has_the_same_bits(first: float, tmp_path: Path) -> None:
    model, file = ratings(), tmp_path / "run"
    options = {"method": svmp.Growing(first), "tol": 0, "progress": False}
    whole = svmp.fit(model, max_sweeps=9, **options)
    svmp.fit(model, max_sweeps=5, checkpoint=file, **options)
    resumed = svmp.fit(model, max_sweeps=9, resume=file, **options)
    for name in ("u", "v", "tau"):
        assert (resumed[name].natural == whole[name].natural).all()


def test_relaxed_blocks_share_rows_with_others_that_are_solved() -> None:
    def blocks(model: svmp.Model) -> tuple[tuple[str, ...], ...]:
        return Program.of(Network(model), svmp.Growing(1.0)).relaxed

    assert blocks(ratings()) == (("u",), ("v",))
    assert blocks(ratings("biases")) == (("u",), ("v",), ("a",))
    models = gallery()
    for name in ("02", "03", "05", "09"):  # one block, or none
        found = [blocks(model) for key, model in models.items() if key.startswith(name)]
        assert all(b == () for b in found)
    factor_analysis = next(model for key, model in models.items() if key.startswith("08"))
    assert {name for (name,) in blocks(factor_analysis)} == {"m", "w", "x"}
    assert Program.of(Network(ratings()), svmp.Growing(1.0, relax=False)).relaxed == ()
    assert Program.of(Network(ratings()), svmp.FullVB()).relaxed == ()


@pytest.mark.parametrize("coupling", [0.3, 0.8, 0.95])
def test_omega_approaches_the_best_of_successive_over_relaxation(coupling: float) -> None:
    def radius(omega: float) -> float:
        lower = np.array([[1, 0], [omega * coupling, 1]])
        rest = np.array([[1 - omega, -omega * coupling], [0, 1 - omega]])
        return float(np.abs(np.linalg.eigvals(np.linalg.solve(lower, rest))).max())

    grid = np.arange(1, 2, 0.001)
    best = grid[np.argmin([radius(omega) for omega in grid])]
    assert next_omega(1.0, radius(1.0), 2.0) == pytest.approx(best, abs=2e-3)
    assert next_omega(1.05, radius(1.05), 2.0) == pytest.approx(best, abs=0.05)
    assert next_omega(1.0, radius(1.0), 1.02) <= 1.02


def test_only_a_fall_of_exact_bounds_in_the_last_iteration_counts() -> None:
    trace = Trace()
    assert not fell_last(trace, 0)
    trace.append(iteration=1, bound=-5.0, bound_se=0.0)
    trace.append(iteration=2, bound=-6.0, bound_se=0.0)
    assert fell_last(trace, 2)
    assert not fell_last(trace, 3)  # iteration 3 has no bound
    trace.append(iteration=3, bound=-7.0, bound_se=0.5)
    assert not fell_last(trace, 3)  # an estimate
    trace.append(iteration=4, bound=-4.0, bound_se=0.0)
    assert not fell_last(trace, 4)


def test_bounds_rise_after_a_sweep_that_overshoots() -> None:
    rng = np.random.default_rng(0)
    row = {"a": np.repeat(np.arange(200), 10), "b": rng.integers(0, 12, 2000)}
    effects = rng.normal(size=200)[row["a"]] + rng.normal(size=12)[row["b"]]
    row["y"] = 3 + effects + rng.normal(size=2000)

    def crossed(part: Any) -> svmp.Model:
        with svmp.Model(coords={"a": part.labels("a"), "b": range(12)}) as model:
            scales = [svmp.Gamma(f"tau_{x}", alpha=1, beta=1) for x in "aby"]
            a = svmp.Normal("a", mu=0, tau=scales[0], dims="a")
            b = svmp.Normal("b", mu=0, tau=scales[1], dims="b")
            mean = a[part.keys("a")] + b[part.b]
            svmp.Normal("y", mu=mean, tau=scales[2], dims="row", observed=part.y)
        return model

    parts = svmp.Parts(crossed, svmp.split(row, by="a", parts=8))
    fit = svmp.fit(parts, svmp.Growing(1.0), bound_every=1)
    assert fit.status == "converged"
    rises = np.diff(fit.trace["bound"])
    (falls,) = np.nonzero(rises < 0)
    assert len(falls)
    assert (rises[falls + 1] > 0).all()

"""Joint updates of linear terms, compared with least squares and exact posteriors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import svmp
from svmp.inference.methods.draw import AllRows
from svmp.inference.state.info import Info
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters import linear_block, linear_design
from svmp.inference.updaters.linear_block import LinearBlockUpdater, find_blocks
from svmp.network.beliefs import Beliefs
from svmp.network.network import Network
from tests.network.tools import anywhere, bound, optimum
from tests.programs import iterate

UNIT = svmp.Constant(1.0)
YEARS = np.arange(1950.0, 2021.0)
with_and_without = pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "plain"])


@pytest.fixture(params=["dense", "sparse"])
def form(request, monkeypatch):
    """Coefficients as an array, which is the form of few, and as a sparse matrix."""
    if request.param == "sparse":
        monkeypatch.setattr(linear_design, "SMALL", 0)
    return request.param


def trend(columns: list[Any], y: Any, tau: Any = None, weak: float = 1e-12) -> svmp.Model:
    """Declare y = a + b0 x0 + b1 x1 + ..., each coefficient a variable of its own."""
    with svmp.Model() as model:
        noise = svmp.Gamma("tau", alpha=1e-3, beta=1e-3) if tau is None else tau
        mu: Any = svmp.Normal("a", mu=0, tau=weak)
        for j, x in enumerate(columns):
            mu = mu + svmp.Normal(f"b{j}", mu=0, tau=weak) * x
        svmp.Normal("y", mu=mu, tau=noise, observed=y)
    return model


def coefficients(fit: svmp.Fit) -> np.ndarray:
    names = ["a", *(n for n in fit.posteriors if n.startswith("b"))]
    return np.array([float(fit.mean(n)) for n in names])


def years(seed: int, count: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.tile(YEARS, count)
    return x, 0.3 * x - 600 + rng.normal(0, 2, len(x))


@with_and_without
@pytest.mark.parametrize("tau", [None, 0.25], ids=["noise learned", "noise known"])
def test_slope_of_an_uncentred_year_is_that_of_least_squares(kernels, tau):
    x, y = years(0)
    fit = svmp.fit(trend([x], y, tau), kernels=kernels)
    expected = np.linalg.lstsq(np.stack([np.ones_like(x), x], 1), y, rcond=None)[0]
    assert fit.status == "converged"
    assert fit.iterations <= 6
    np.testing.assert_allclose(coefficients(fit), expected, rtol=1e-5)


@with_and_without
def test_several_uncentred_covariates(kernels):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 4)) * [10, 1, 3, 0.1] + [2000, 50, -30, 7]
    y = 5 + x @ [0.3, -1, 2, 10] + rng.normal(size=200)
    fit = svmp.fit(trend([*x.T], y), kernels=kernels)
    expected = np.linalg.lstsq(np.column_stack([np.ones(200), x]), y, rcond=None)[0]
    assert fit.status == "converged"
    assert fit.iterations <= 8
    np.testing.assert_allclose(coefficients(fit), expected, rtol=1e-4)


@with_and_without
def test_polynomial_of_an_uncentred_year(kernels):
    x, y = years(2)
    y = y + 0.01 * (x - 1985) ** 2
    fit = svmp.fit(trend([x, x**2], y, weak=1e-14), kernels=kernels)
    centred = (x - 1985) / 35
    expected = np.polynomial.Polynomial.fit(centred, y, 2)(centred)
    assert fit.status == "converged"
    fitted = np.stack([np.ones_like(x), x, x**2], 1) @ coefficients(fit)
    np.testing.assert_allclose(fitted, expected, atol=1e-4)


@with_and_without
def test_intercept_for_each_group(form, kernels):
    rng = np.random.default_rng(3)
    group = rng.integers(0, 25, 400)
    x = rng.uniform(1950, 2020, 400)
    y = rng.normal(0, 3, 25)[group] + 0.3 * x + rng.normal(size=400)
    with svmp.Model(coords={"group": 25}) as model:
        u = svmp.Normal("u", mu=0, tau=1e-12, dims="group")
        b = svmp.Normal("b", mu=0, tau=1e-12)
        tau = svmp.Gamma("tau", alpha=1e-3, beta=1e-3)
        svmp.Normal("y", mu=u[group] + b * x, tau=tau, observed=y)
    fit = svmp.fit(model, kernels=kernels)
    design = np.column_stack([np.eye(25)[group], x])
    expected = np.linalg.lstsq(design, y, rcond=None)[0]
    assert fit.status == "converged"
    np.testing.assert_allclose([*fit.mean("u"), fit.mean("b")], expected, rtol=1e-4)


@with_and_without
def test_means_are_those_of_the_exact_posterior(form, kernels):
    """With a known precision of the noise, a factorised q has the exact posterior means."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(3, 1, (30, 3)), rng.normal(size=30)
    fit = svmp.fit(trend([*x.T], y, tau=0.7, weak=0.3), kernels=kernels, tol=1e-12)
    design = np.column_stack([np.ones(30), x])
    precision = 0.3 * np.eye(4) + 0.7 * design.T @ design
    exact = np.linalg.solve(precision, 0.7 * design.T @ y)
    np.testing.assert_allclose(coefficients(fit), exact, rtol=1e-9)
    variances = [float(fit.var(n, corrected=False)) for n in ("a", "b0", "b1", "b2")]
    np.testing.assert_allclose(variances, 1 / precision.diagonal(), rtol=1e-9)


def hierarchy() -> svmp.Model:
    """Three levels, missing rows, a noise for each group, and a table that reads two variables."""
    rng = np.random.default_rng(5)
    group, gaps = rng.integers(0, 6, 80), rng.random(80) < 0.2
    with svmp.Model(coords={"group": 6, "row": 80}) as model:
        top = svmp.Normal("top", mu=1, tau=0.1)
        between = svmp.Gamma("between", alpha=2, beta=1)
        u = svmp.Normal("u", mu=2 * top, tau=between, dims="group")
        b = svmp.Normal("b", mu=0, tau=0.5)
        tau = svmp.Gamma("tau", alpha=2, beta=1, dims="group")
        x, y = rng.normal(4, 1, 80), rng.normal(size=80)
        svmp.Normal("y", mu=u[group] + b * x + 1, tau=tau[group], observed=y, missing=gaps)
        svmp.Normal("more", mu=top - b, tau=2, observed=rng.normal(size=3))
    return model


def logistic() -> svmp.Model:
    rng = np.random.default_rng(6)
    x = rng.normal(1, 1, 90)
    with svmp.Model() as model:
        a, b = svmp.Normal("a", mu=0, tau=0.1), svmp.Normal("b", mu=0, tau=0.1)
        y = rng.random(90) < 1 / (1 + np.exp(1 - x))
        svmp.Bernoulli("y", logit=a + b * x, observed=y)
    return model


def vectors() -> svmp.Model:
    """Vectors by group, a scalar, a sparse design, and factors that are not in the block."""
    rng = np.random.default_rng(7)
    group, x = rng.integers(0, 4, 120), rng.normal(2, 1, (120, 3))
    design = sparse.random_array((120, 5), density=0.4, rng=rng)
    with svmp.Model(coords={"group": 4, "column": 3, "word": 5, "k": 2, "row": 120}) as model:
        precision = svmp.Wishart("precision", nu=4, V=np.eye(3), dims=("column", "column"))
        w = svmp.MvNormal("w", mu=0.5, tau=precision, dims=("group", "column"))
        s = svmp.Normal("s", mu=0, tau=1, dims="word")
        a = svmp.Normal("a", mu=0, tau=0.1)
        u = svmp.Normal("u", mu=0, tau=1, dims=("group", "k"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("row", "k"))
        mu = a + svmp.dot(x, w[group]) + svmp.dot(design, s) + svmp.dot(u[group], v)
        svmp.Normal("y", mu=mu, tau=1, dims="row", observed=rng.normal(size=120))
    return model


def pairs() -> svmp.Model:
    """Differences of two elements of one variable, and an observed parent as a covariate."""
    rng = np.random.default_rng(8)
    home, away = rng.integers(0, 7, (2, 60))
    with svmp.Model(coords={"team": 7, "match": 60}) as model:
        skill = svmp.Normal("skill", mu=0, tau=1, dims="team")
        b = svmp.Normal("b", mu=0, tau=1)
        rain = svmp.Normal("rain", mu=0, tau=1, dims="match", observed=rng.normal(5, 1, 60))
        mu = skill[home] - skill[away] + b * rain
        svmp.Normal("goals", mu=mu, tau=0.5, dims="match", observed=rng.normal(size=60))
    return model


NETWORKS: dict[str, tuple[Callable[[], svmp.Model], set[str]]] = {
    "hierarchy": (hierarchy, {"top", "u", "b"}),
    "logistic": (logistic, {"a", "b"}),
    "vectors": (vectors, {"w", "s", "a"}),
    "pairs": (pairs, {"skill", "b"}),
}
every_network = pytest.mark.parametrize("name", NETWORKS)


def solve(network: Network, q: Any) -> Info:
    """Update the block of a network once."""
    updater = LinearBlockUpdater(next(iter(find_blocks(network).values())), {})
    rows, info = AllRows(network), Info()
    for change in updater.update(q, rows, StepRule.unit(rows)):
        network.move(q, change.name, change.elements, change.natural)
        info.add(change)
    return info


@every_network
def test_variables_in_the_block(name):
    declare, members = NETWORKS[name]
    assert find_blocks(Network(declare())).keys() == members


@every_network
@pytest.mark.parametrize("seed", range(3))
def test_bound_rises_from_random_starts(name, seed):
    network = Network(NETWORKS[name][0]())
    q = anywhere(network, seed)
    before = bound(network, q)
    solve(network, q)
    after = bound(network, q)
    assert after > before
    solve(network, q)
    assert bound(network, q) >= after - 1e-9 * abs(after)


@pytest.mark.parametrize("name", ["hierarchy", "vectors", "pairs"])
def test_solution_is_a_fixed_point_of_coordinate_ascent(form, name):
    """Every element is at its optimum given all others: coordinate ascent has converged."""
    network = Network(NETWORKS[name][0]())
    q = anywhere(network, 1)
    done = solve(network, q)
    assert done.accesses == sum(network.child_counts[n].sum() for n in NETWORKS[name][1])
    for member in NETWORKS[name][1]:
        np.testing.assert_allclose(
            q.natural[member], optimum(network, q, member), rtol=1e-8, atol=1e-8
        )


@with_and_without
@every_network
def test_fixed_point_is_that_of_full_vb(name, kernels):
    model = NETWORKS[name][0]()
    options: dict[str, Any] = {"kernels": kernels, "max_sweeps": 20_000, "tol": 1e-11}
    joint = svmp.fit(model, **options)
    start = joint.posteriors if name == "vectors" else {}  # products have many optima
    alone = svmp.fit(model, svmp.FullVB(), init=start, **options)
    assert joint.status == alone.status == "converged"
    assert joint.bound == pytest.approx(alone.bound, rel=1e-10)
    for member in NETWORKS[name][1]:
        np.testing.assert_allclose(joint.mean(member), alone.mean(member), rtol=1e-4, atol=1e-4)


@with_and_without
def test_bound_never_falls(kernels):
    x, y = years(9, count=3)
    network = Network(trend([x, np.sin(x)], y))
    fit = svmp.fit(network, kernels=kernels)
    assert len(fit.trace) > 2
    assert np.diff(fit.trace["bound"]).min() >= -1e-9 * abs(fit.bound)


def test_counts_are_those_of_the_rows_that_read_each_mean(form):
    """A coefficient of 0 is read too, and one that is read twice in a row counts once."""
    group, x = np.array([0, 0, 1, 2]), np.array([0.0, 2.0, 0.0, 3.0])
    with svmp.Model(coords={"group": 4}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims="group")
        b = svmp.Normal("b", mu=0, tau=1)
        svmp.Normal("y", mu=u[group] + b * x + b, tau=1, observed=np.arange(4.0))
    network = Network(model)
    design = find_blocks(network)["u"].design(AllRows(network), network.observed["y"].conditional)
    np.testing.assert_array_equal(design.counts(Beliefs()), [2, 1, 1, 0, 4])


def test_rows_with_many_coefficients_are_read_in_blocks():
    network = Network(vectors())
    block = find_blocks(network)["w"]
    table = network.observed["y"].conditional
    width = block.design(AllRows(network), table).width
    assert width >= 1 + 1 + 3 + 1  # the child, a, w of one group, a word


def test_full_vb_does_not_solve_jointly():
    x, y = years(10)
    fit = svmp.fit(trend([x], y), svmp.FullVB(), max_sweeps=50)
    assert fit.status == "budget"


def products() -> svmp.Model:
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 5, 40), rng.integers(0, 4, 40)
    with svmp.Model(coords={"user": 5, "item": 4, "k": 2}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "k"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "k"))
        svmp.Normal("r", mu=svmp.dot(u[user], v[item]), tau=1, observed=rng.normal(size=40))
    return model


def alone() -> svmp.Model:
    with svmp.Model(coords={"group": 3}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims="group")
        svmp.Normal("y", mu=u[[0, 0, 1, 2]], tau=1, observed=np.zeros(4))
    return model


def components() -> svmp.Model:
    with svmp.Model(coords={"row": 9, "k": 2}) as model:
        z = svmp.Categorical("z", p=svmp.data([0.5, 0.5], dims="k"), dims="row")
        mu = svmp.Normal("mu", mu=0, tau=1, dims="k")
        shift = svmp.Normal("shift", mu=0, tau=1)
        component = svmp.Normal.dist(mu=mu + shift, tau=1)
        svmp.Mixture("x", z, component, dims="row", observed=np.arange(9.0))
    return model


@pytest.mark.parametrize("declare", [products, alone, components])
def test_other_networks_have_no_block(declare):
    assert find_blocks(Network(declare())) == {}


def test_variables_with_fewer_elements_have_precedence():
    group = np.arange(2000) % linear_block.LARGEST
    with svmp.Model(coords={"group": linear_block.LARGEST}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims="group")
        a, b = svmp.Normal("a", mu=0, tau=1), svmp.Normal("b", mu=0, tau=1)
        svmp.Normal("y", mu=u[group] + a + b * group, tau=1, observed=np.zeros(2000))
    assert find_blocks(Network(model)).keys() == {"a", "b"}


def test_recomputed_coefficients_give_the_same_result(monkeypatch):
    x, y = years(11)
    kept = svmp.fit(trend([x], y), kernels=False)
    monkeypatch.setattr(linear_design, "KEPT", 0)
    monkeypatch.setattr(linear_design, "CHUNK", 60)
    anew = svmp.fit(trend([x], y), kernels=False)
    np.testing.assert_allclose(coefficients(anew), coefficients(kept), rtol=1e-8)


@with_and_without
def test_timestamps_in_seconds(kernels):
    """An intercept of ten million standard deviations, with little information in each row."""
    rng = np.random.default_rng(16)
    x = 1.6e9 + rng.uniform(0, 1e6, 20_000)
    y = 2e-5 * (x - 1.6e9) + rng.normal(size=20_000)
    fit = svmp.fit(trend([x], y, weak=1e-16), svmp.Growing(1.0), kernels=kernels, tol=1e-6)
    slope, level = np.polyfit(x - 1.6e9, y, 1)
    assert fit.status == "converged"
    assert fit.iterations <= 8
    assert fit.mean("b0") == pytest.approx(slope, rel=1e-6)
    assert fit.mean("a") + 1.6e9 * fit.mean("b0") == pytest.approx(level, abs=1e-4)


def test_means_too_far_from_zero_do_not_stop_the_run(form):
    x, y = years(12)
    fit = svmp.fit(trend([x**j for j in range(1, 5)], y, weak=1e-14), max_sweeps=50)
    assert np.isfinite(fit.bound)


@with_and_without
def test_growing_sample_ends_at_least_squares(kernels):
    x, y = years(13, count=300)
    fit = svmp.fit(trend([x], y), svmp.Growing(0.05), kernels=kernels)
    expected = np.linalg.lstsq(np.stack([np.ones_like(x), x], 1), y, rcond=None)[0]
    assert fit.status == "converged"
    np.testing.assert_allclose(coefficients(fit), expected, rtol=1e-5)


def test_policy_with_statistics_gets_gradients():
    seen = []

    def half(context: svmp.StepContext) -> float:
        seen.append(context.gradient)
        return 0.5

    half.statistics = True  # type: ignore[attr-defined]
    x, y = years(14)
    svmp.fit(trend([x], y), svmp.Growing(1.0), steps=half, max_sweeps=3)
    assert all(gradient is not None and gradient.shape == (1, 2) for gradient in seen)


def test_bits_do_not_depend_on_threads_or_resuming(tmp_path):
    x, y = years(15)
    model = trend([x, np.cos(x)], y)
    whole = svmp.fit(model, threads=1, tol=0, max_sweeps=8)
    two = svmp.fit(model, threads=2, tol=0, max_sweeps=8)
    place = tmp_path / "run.ckpt"
    svmp.fit(model, tol=0, max_sweeps=4, checkpoint=place)
    resumed = svmp.fit(model, resume=place, max_sweeps=8)
    for other in (two, resumed):
        for name in whole.posteriors:
            np.testing.assert_array_equal(other[name].natural, whole[name].natural)


def test_block_is_updated_once_in_any_order():
    network = Network(hierarchy())
    order = ["b", "tau", "u", "between", "top"]
    q = anywhere(network, 2)
    done = iterate(network, q, svmp.Growing(1.0, order=order), UNIT, 0, 1)
    assert done.accesses == network.sweep_accesses

"""Estimates of the bound are unbiased, with correct standard errors, and do not change the run."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

import svmp
from svmp.inference.running import estimate
from svmp.inference.running.estimate import Estimator, tables
from svmp.network.network import Network
from tests.inference.checkpoints.test_checkpoint import ratings_model, same_bits, topics_model
from tests.inference.models import mixture, rates, ratings
from tests.network.tools import anywhere
from tests.programs import bound_terms, optimise_locals


def gaps() -> svmp.Model:
    """A mixture with missing rows, whose Categoricals have no child."""
    x = np.array([-3.0, np.nan, 2.5, 4.0, np.nan, -2.0, np.nan, 0.5, np.nan])
    with svmp.Model(coords={"k": 2, "row": 9}) as model:
        w = svmp.Dirichlet("w", a=1, dims="k")
        z = svmp.Categorical("z", p=w, dims="row")
        m = svmp.Normal("m", mu=0, tau=0.1, dims="k")
        component = svmp.Normal.dist(mu=m, tau=1)
        svmp.Mixture("x", z, component, dims="row", observed=x, missing=True)
    return model


def two_tables() -> svmp.Model:
    """Local scores with two entries per row; each row is in one of two tables."""
    rng = np.random.default_rng(3)
    y, n = rng.normal(size=7), rng.normal(size=7)
    y[[1, 4]], n[[0, 2, 3, 5, 6]] = np.nan, np.nan
    with svmp.Model(coords={"row": 7, "d": 2}) as model:
        w = svmp.Normal("w", mu=0, tau=1, dims="d")
        s = svmp.Normal("s", mu=0, tau=1, dims=("row", "d"))
        svmp.Normal("y", mu=svmp.dot(s, w), tau=2, dims="row", observed=y, missing=True)
        svmp.Normal("n", mu=svmp.dot(s, w), tau=3, dims="row", observed=n, missing=True)
    return model


def clusters() -> svmp.Model:
    """A mixture with a local scale for each row, shared by all components."""
    rng = np.random.default_rng(4)
    with svmp.Model(coords={"k": 3, "row": 6}) as model:
        w = svmp.Dirichlet("w", a=1, dims="k")
        z = svmp.Categorical("z", p=w, dims="row")
        m = svmp.Normal("m", mu=0, tau=0.1, dims="k")
        g = svmp.Gamma("g", alpha=2, beta=2, dims="row")
        svmp.Mixture("x", z, svmp.Normal.dist(mu=m, tau=g), dims="row", observed=rng.normal(size=6))
    return model


SMALL = [gaps, two_tables, clusters, ratings, mixture, rates]


def every_row(network: Network) -> dict[str, np.ndarray]:
    return {name: table.at(np.arange(table.length)) for name, table in tables(network).items()}


def exact(network: Network, q, optimise: bool) -> float:
    q = q.copy()
    if optimise:
        optimise_locals(network, q)
    return sum(bound_terms(network, q).values())


@pytest.mark.parametrize("optimise", [True, False], ids=["optimal", "as in q"])
@pytest.mark.parametrize("build", SMALL, ids=lambda f: f.__name__)
def test_mean_and_variance_over_all_samples_are_unbiased(
    build: Callable[[], svmp.Model], optimise: bool
) -> None:
    """The squared standard error is an unbiased estimate of the variance over all samples."""
    network = Network(build())
    q, whole = anywhere(network, seed=1), every_row(network)
    before = q.copy()
    estimator = Estimator(network, tables(network))
    expected = exact(network, q, optimise)
    for table, rows in whole.items():
        if len(rows) < 3:
            continue
        size = 3 if len(rows) < 12 else 2
        found = np.array(
            [
                estimator.estimate(q, {**whole, table: np.array(some)}, optimise)
                for some in combinations(rows, size)
            ]
        )
        np.testing.assert_allclose(found[:, 0].mean(), expected, rtol=1e-9)
        variance = found[:, 0].var()
        np.testing.assert_allclose((found[:, 1] ** 2).mean(), variance, rtol=1e-9, atol=1e-18)
    for name in q.natural:
        np.testing.assert_array_equal(q.natural[name], before.natural[name])
        np.testing.assert_array_equal(q.moments[name], before.moments[name])


@pytest.mark.parametrize("build", SMALL, ids=lambda f: f.__name__)
def test_sample_of_all_rows_gives_the_exact_bound(build: Callable[[], svmp.Model]) -> None:
    network = Network(build())
    q, whole = anywhere(network, seed=2), every_row(network)
    found, se = Estimator(network, tables(network)).estimate(q, whole, optimise=True)
    assert found == pytest.approx(exact(network, q, optimise=True), rel=1e-12)
    assert 0 < se < 1e-12 * abs(found)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set the number of rows from which estimates are made."""

    def set_size(rows: int) -> None:
        monkeypatch.setattr(estimate, "LARGE", rows)
        monkeypatch.setattr(estimate, "FEWEST", 10)
        monkeypatch.setattr(estimate, "PART", 20)

    return set_size


@pytest.mark.parametrize("build", [ratings_model, topics_model], ids=["ratings", "topics"])
def test_standard_error_matches_the_spread_of_draws(
    build: Callable[[], svmp.Model], large: Callable[[int], None]
) -> None:
    """Of 400 estimates, the distances from the bound in standard errors have mean 0 and sd 1."""
    large(0)
    network = Network(build())
    q = anywhere(network, seed=0, spread=0.3)
    estimator, expected = Estimator.of(network), exact(network, q, optimise=True)
    assert estimator is not None
    found = np.array(
        [estimator.estimate(q, estimator.draw(7, t), optimise=True) for t in range(400)]
    )
    distance = (found[:, 0] - expected) / found[:, 1]
    assert abs(found[:, 0].mean() - expected) < 4 * found[:, 1].mean() / np.sqrt(400)
    assert 0.85 < distance.std() < 1.2


def test_draws_depend_on_the_seed_and_the_iteration_only(large: Callable[[int], None]) -> None:
    large(0)
    estimator = Estimator.of(Network(topics_model()))
    assert estimator is not None
    one, same, other = estimator.draw(1, 2), estimator.draw(1, 2), estimator.draw(1, 3)
    for name, rows in one.items():
        assert len(np.unique(rows)) == len(rows)
        np.testing.assert_array_equal(rows, same[name])
    assert len(one["w"]) == 400 // 20
    assert not np.array_equal(one["w"], other["w"])


WAYS = {
    "batch": (svmp.Batch(60), None),
    "children": (svmp.Children(2), None),
    "growing": (svmp.Growing(first=0.1), None),
    "diverges": (svmp.Children(1), svmp.Constant(1.0)),
    "full": (svmp.FullVB(), None),
}


@pytest.mark.filterwarnings("ignore::svmp.DivergenceWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("build", [ratings_model, topics_model], ids=["ratings", "topics"])
def test_estimates_do_not_change_the_run(
    build: Callable[[], svmp.Model], way: str, large: Callable[[int], None]
) -> None:
    method, steps = WAYS[way]
    options = {"steps": steps, "max_sweeps": 7, "bound_every": 4 if way == "full" else None}
    large(10**9)
    without = svmp.fit(build(), method, **options)
    large(0)
    fit = svmp.fit(build(), method, **options)
    assert fit.status == without.status
    assert fit.iterations == without.iterations
    assert same_bits(fit, without)
    assert (without.trace["bound_se"] == 0).all()
    assert np.isfinite(list(fit.trace.to_dict().values())).all()
    sure = fit.trace["bound_se"] == 0
    assert sure.all() == (way == "full") or way == "diverges"
    for column in set(fit.trace.columns) - {"seconds"}:
        np.testing.assert_array_equal(fit.trace[column][sure], without.trace[column])


def test_estimates_cost_little(large: Callable[[int], None]) -> None:
    large(0)
    model = topics_model()
    fit = svmp.fit(model, svmp.Batch(20), max_sweeps=30, tol=0)
    estimator = Estimator.of(Network(model))
    assert estimator is not None
    estimated = fit.trace["bound_se"] > 0
    assert estimated.sum() > 2
    assert (np.diff(fit.trace["accesses"])[estimated[1:]] >= estimator.accesses()).all()


def test_estimates_with_more_than_100_000_rows() -> None:
    """With the default constants: at most ten estimates per exact bound, close to it at the end."""
    heads = np.arange(120_000) % 3 == 0
    with svmp.Model() as model:
        p = svmp.Beta("p", alpha=1, beta=1)
        svmp.Bernoulli("x", p=p, observed=heads)
    trace = svmp.fit(model, svmp.Batch(10_000), max_sweeps=20, tol=0).trace
    estimated = trace["bound_se"] > 0
    assert 9 <= np.count_nonzero(estimated) <= 20
    distance = (trace["bound"] - trace["bound"][-1])[estimated] / trace["bound_se"][estimated]
    assert np.abs(distance).max() < 5
    # Terms differ by log 2 at p = 1/3, so that their standard deviation is sqrt(2/9) log 2.
    expected = 120_000 * np.sqrt(2 / 9 / 1200 * 0.99) * np.log(2)
    np.testing.assert_allclose(trace["bound_se"][estimated], expected, rtol=0.05)


def test_small_data_are_not_estimated() -> None:
    assert Estimator.of(Network(ratings_model())) is None


def test_estimate_from_identical_rows_has_a_positive_standard_error(
    large: Callable[[int], None],
) -> None:
    large(0)
    with svmp.Model() as model:
        p = svmp.Beta("p", alpha=1, beta=1)
        svmp.Bernoulli("x", p=p, observed=np.ones(300))
    network = Network(model)
    q, estimator = anywhere(network, seed=0), Estimator.of(network)
    assert estimator is not None
    found, se = estimator.estimate(q, estimator.draw(0, 1), optimise=True)
    assert found == pytest.approx(exact(network, q, optimise=True))
    assert 0 < se < 1e-9


class Stops:
    """Steps of 1/2 that end the run with an error, once."""

    def __init__(self, last: int | None = None) -> None:
        self.last = last

    def __call__(self, context: svmp.StepContext) -> float:
        if context.iteration == self.last:
            raise ZeroDivisionError
        return 0.5


def test_killed_run_resumes_to_the_same_trace(large: Callable[[int], None], tmp_path) -> None:
    large(0)
    model, method, path = topics_model(), svmp.Batch(20), tmp_path / "run"
    whole = svmp.fit(model, method, steps=Stops(), max_sweeps=20, tol=0)
    with pytest.raises(ZeroDivisionError):
        svmp.fit(model, method, steps=Stops(100), tol=0, checkpoint=path, every=9)
    resumed = svmp.fit(model, steps=Stops(), max_sweeps=20, resume=path)
    assert same_bits(whole, resumed)
    assert np.count_nonzero(whole.trace["bound_se"]) > 2
    assert whole.trace["iteration"][-1] > 100
    for column in set(whole.trace.columns) - {"seconds"}:
        np.testing.assert_array_equal(whole.trace[column], resumed.trace[column])


def test_plot_has_a_band_around_estimates(large: Callable[[int], None]) -> None:
    large(0)
    fit = svmp.fit(ratings_model(), svmp.Batch(200), max_sweeps=8, tol=0)
    ax = fit.plot()
    (line,), (band,) = ax.lines, ax.collections
    sure, later = fit.trace["bound_se"] == 0, fit.trace["accesses"] > 0
    np.testing.assert_array_equal(line.get_ydata(), fit.trace["bound"][sure & later])
    edges = band.get_paths()[0].vertices[:, 1]
    assert edges.max() == (fit.trace["bound"] + 2 * fit.trace["bound_se"])[later].max()
    ax.figure.canvas.draw()


def test_progress_line_shows_estimates(
    large: Callable[[int], None], capfd: pytest.CaptureFixture[str]
) -> None:
    large(0)
    shown = svmp.fit(ratings_model(), svmp.Batch(100), max_sweeps=4, tol=0, progress=True)
    silent = svmp.fit(ratings_model(), svmp.Batch(100), max_sweeps=4, tol=0, progress=False)
    assert same_bits(shown, silent)

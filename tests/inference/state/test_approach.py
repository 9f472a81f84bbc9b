"""When a fit stops: its extrapolation against closed forms and long runs, and plateaus."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import svmp
from svmp.inference.state.approach import NEAR, Approach, rate_of, still_to_come
from tests.inference.models import rates, ratings

LAST_DIGIT = 1e-13


@pytest.mark.parametrize("rate", [0.01, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("lengths", [(1, 1), (2, 3), (10, 11), (40, 45)])
def test_extrapolation_of_a_geometric_series(rate, lengths):
    steps = rate ** np.arange(200_000)
    first, then = lengths
    before, after = steps[:first].sum(), steps[first : first + then].sum()
    left = steps[first + then :].sum()
    assert still_to_come(before, after, first, then) == pytest.approx(left, rel=1e-6)


@pytest.mark.parametrize("moved", [(1.0, 1.0), (1.0, 2.0), (0.0, 1.0), (1.0, np.nan)])
def test_nothing_is_foretold_of_what_does_not_shrink(moved):
    assert still_to_come(*moved, 3, 3) == np.inf


@pytest.mark.parametrize(("first", "then"), [(2, 3), (3, 2), (1, 1000), (7, 8)])
def test_movements_that_shrink_by_one_rounding_have_a_rate_of_almost_one(
    first: int, then: int
) -> None:
    before, after = float(first), float(np.nextafter(then, 0))
    assert 1 - 1e-12 < rate_of(before, after, first, then) <= 1
    assert still_to_come(before, after, first, then) > 1e12


def two_effects(rows: int) -> svmp.Model:
    """Two Normals that are only seen through their sum."""
    with svmp.Model() as model:
        a, b = (svmp.Normal(name, mu=0, tau=1) for name in "ab")
        svmp.Normal("y", mu=a + b, tau=1, observed=np.full(rows, 5.0))
    return model


@pytest.mark.parametrize("rows", [1, 3, 10, 30])
def test_what_remains_of_two_effects_is_that_of_the_closed_form(rows):
    """The mean of each is n (5 - other) / (1 + n); the limit is 5 n / (1 + 2 n) for both."""
    fit = svmp.fit(two_effects(rows), svmp.FullVB())
    limit, var = 5 * rows / (1 + 2 * rows), 1 / (1 + rows)
    off = np.array([fit.mean("a") - limit, fit.mean("b") - limit])
    own = np.abs(off).max() / np.sqrt(var)
    together = np.abs(off.sum()) / np.sqrt(2 * var)
    precision = np.eye(2) + rows
    by_bound = np.sqrt(off @ precision @ off)  # twice what the bound lacks
    assert fit.status == "converged"
    assert fit.remaining == pytest.approx(min(max(own, together), by_bound), rel=0.01)
    assert fit.remaining < NEAR


def test_slow_sweeps_do_not_look_converged():
    """Each sweep reduces the distance by 2 parts in 1,000 only."""
    fit = svmp.fit(two_effects(1000), svmp.FullVB(), max_sweeps=None)
    sd = np.sqrt(1001 / 2001)  # of the posterior
    assert abs(fit.mean("a") - 5000 / 2001) < NEAR * sd
    assert fit.iterations > 500


def components_that_are_given_up() -> svmp.Model:
    """Ten components for data that have three."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=(20, 3)) @ rng.normal(size=(3, 50)) + 0.1 * rng.normal(size=(20, 50))
    with svmp.Model(coords={"time": 20, "sensor": 50, "factor": 10}) as model:
        alpha = svmp.Gamma("alpha", alpha=0.01, beta=0.01, dims="factor")
        w = svmp.MvNormal("w", mu=0, tau=svmp.diag(alpha), dims=("sensor", "factor"))
        x = svmp.MvNormal("x", mu=0, tau=np.eye(10), dims=("time", "factor"))
        noise = svmp.Gamma("tau", alpha=1, beta=1)
        svmp.Normal("y", mu=svmp.dot(x, w), tau=noise, dims=("time", "sensor"), observed=y)
    return model


def test_plateau_is_left():
    """A component is given up only after sweeps in which nothing seems to move."""
    model = components_that_are_given_up()
    best = svmp.fit(model, tol=LAST_DIGIT, seed=1)
    early = svmp.fit(model, tol=1e-6, seed=1)
    fit = svmp.fit(model, seed=1)
    assert early.bound < best.bound - 0.5  # the plateau
    assert fit.bound == pytest.approx(best.bound, abs=0.01)


def hierarchy(seed: int) -> svmp.Model:
    rng = np.random.default_rng(seed)
    school, pupil = rng.integers(0, 8, 30), rng.integers(0, 30, 400)
    level = rng.normal(0, 1, 8)[school] + rng.normal(0, 0.5, 30)
    with svmp.Model(coords={"school": 8, "class": 30}) as model:
        mean = svmp.Normal("mean", mu=0, tau=0.01)
        between, within = (svmp.Gamma(f"tau_{n}", alpha=1, beta=1) for n in "sc")
        s = svmp.Normal("s", mu=mean, tau=between, dims="school")
        c = svmp.Normal("c", mu=s[school], tau=within, dims="class")
        noise = svmp.Gamma("noise", alpha=1, beta=1)
        svmp.Normal("y", mu=c[pupil], tau=noise, observed=level[pupil] + rng.normal(size=400))
    return model


def mixture(seed: int) -> svmp.Model:
    rng = np.random.default_rng(seed)
    y = rng.normal(np.array([-4.0, 0.0, 5.0])[rng.integers(0, 3, 300)], 1)
    with svmp.Model(coords={"k": 3, "row": 300}) as model:
        share = svmp.Dirichlet("share", a=1, dims="k")
        z = svmp.Categorical("z", p=share, dims="row")
        mu = svmp.Normal("mu", mu=0, tau=0.1, dims="k")
        tau = svmp.Gamma("tau", alpha=2, beta=2, dims="k")
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=tau), dims="row", observed=y)
    return model


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("build", [hierarchy, mixture])
@pytest.mark.parametrize("method", [None, svmp.FullVB()], ids=["default", "full"])
def test_means_are_near_those_of_a_long_run(build, method, seed):
    model = build(seed)
    fit = svmp.fit(model, method, seed=seed)
    long = svmp.fit(model, method, seed=seed, tol=LAST_DIGIT, max_sweeps=20_000)
    assert fit.status == "converged"
    for name in fit.posteriors:
        if name == "z":
            continue
        shift = (fit.mean(name) - long.mean(name)) / long.std(name)
        assert np.sqrt((shift**2).mean()) < NEAR, name
        assert np.sqrt((np.log(fit.std(name) / long.std(name)) ** 2).mean()) < 0.01, name


def test_turning_factors_do_not_prolong_a_fit():
    """Rows' means are near those of a long run, though the factors still turn."""
    rng = np.random.default_rng(0)
    user, item = rng.integers(0, 60, 1500), rng.integers(0, 40, 1500)
    u, v = rng.normal(size=(60, 2)), rng.normal(size=(40, 2))
    r = (u[user] * v[item]).sum(1) + 0.5 * rng.normal(size=1500)
    with svmp.Model(coords={"user": 60, "item": 40, "factor": 3}) as model:
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
        svmp.Normal("r", mu=svmp.dot(u[user], v[item]), tau=4, observed=r)
    fit = svmp.fit(model)
    long = svmp.fit(model, tol=LAST_DIGIT, max_sweeps=20_000)

    def mean(f):
        return (f.mean("u")[user] * f.mean("v")[item]).sum(1)

    sd = long.predict(model, "r", noise=False, corrected=False).std
    assert np.sqrt((((mean(fit) - mean(long)) / sd) ** 2).mean()) < NEAR
    assert fit.iterations < long.iterations


def test_resumed_run_stops_at_the_same_sweep(tmp_path):
    path, model = tmp_path / "run", hierarchy(0)
    whole = svmp.fit(model)
    svmp.fit(model, max_sweeps=4, checkpoint=path, every=1)
    resumed = svmp.fit(model, resume=path, max_sweeps=None)
    assert whole.iterations > 4
    assert (resumed.iterations, resumed.bound) == (whole.iterations, whole.bound)
    assert resumed.remaining == whole.remaining


def test_what_remains_is_said_and_saved(tmp_path):
    fit = svmp.fit(hierarchy(0))
    said = f"converged within {fit.remaining:.1g} sd"
    fit.save(tmp_path / "fit.svmp")
    for found in (fit, svmp.load(tmp_path / "fit.svmp")):
        assert found.status == "converged"
        assert found.remaining == fit.remaining
        assert said in repr(found)
        assert said in str(found.summary())


def test_tolerance_says_nothing_of_what_remains():
    for fit in (svmp.fit(rates(), tol=1e-6), svmp.fit(ratings(), svmp.Batch(5), max_sweeps=3)):
        assert fit.remaining is None
        assert "within" not in repr(fit)


def test_bounds_that_are_not_computed_are_not_needed():
    often, rarely = (svmp.fit(hierarchy(1), bound_every=n) for n in (None, 10**9))
    assert rarely.status == "converged"
    for name in ("mean", "s", "c"):
        shift = (often.mean(name) - rarely.mean(name)) / often.std(name)
        assert np.abs(shift).max() < NEAR


def test_warning_at_the_limit_says_how_far_it_is(monkeypatch):
    monkeypatch.setattr("svmp.inference.execute.MAX_SWEEPS", 30)
    monkeypatch.setitem(svmp.fit.__wrapped__.__kwdefaults__, "max_sweeps", 30)
    with pytest.warns(svmp.ConvergenceWarning, match="sds from there"):
        svmp.fit(two_effects(1000), svmp.FullVB())


def test_growing_gains_are_an_escape():
    approach = Approach(sweeps=30, lengths=[2, 2, 2, 2])
    assert approach.escapes([1.0, 1e-4, 1e-3, 1e-2]) == 2
    assert approach.escapes([1.0, 0.5, 0.25, 0.125]) == 0
    assert approach.escapes([1.0, 0.1, -0.1, 0.1]) == 0


def test_default_gives_no_warning_on_networks_that_converge():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for build in (hierarchy, mixture):
            assert svmp.fit(build(3)).status == "converged"


@pytest.mark.parametrize("scale", [1e-160, 1e-200, 1e-290])
def test_a_variance_beyond_the_largest_number_does_not_keep_a_fit_from_its_end(scale):
    with svmp.Model() as model:
        rate = svmp.Gamma("rate", alpha=2, beta=scale)
        svmp.Exponential("y", rate, observed=scale * np.array([1.0, 2.0]))
    fit = svmp.fit(model)
    assert fit.status == "converged"
    assert fit.std("rate") * scale == pytest.approx(0.5)

"""Simulation-based calibration: exact posteriors are uniform, a q that is too sure is not."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest
from scipy import stats

import svmp
from svmp.fitting.calibration import simulated_model
from svmp.fitting.ranks import band, p_value

pytestmark = pytest.mark.by_size


def counts() -> svmp.Model:
    """One hidden variable, whose posterior is exact; one of three rows is missing."""
    with svmp.Model() as model:
        rate = svmp.Gamma("rate", alpha=2, beta=1)
        svmp.Poisson("count", mu=rate, observed=[0, 0, np.nan], missing=True)
    return model


def groups() -> svmp.Model:
    with svmp.Model(coords={"group": 4}) as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        theta = svmp.Normal("theta", mu=mu, tau=4, dims="group")
        svmp.Normal("y", mu=theta, tau=1, dims="group", observed=np.zeros(4))
    return model


def test_an_exact_posterior_is_calibrated() -> None:
    found = svmp.calibrate(counts, n=150, seed=1)
    assert found.ranks["rate"].shape == (150, 1)
    assert found.unconverged == 0
    assert found.p_value("rate") > 0.01
    assert found.verdict("rate") == "calibrated"
    assert abs(found.coverage("rate", 0.5) - 0.5) < 0.1
    assert stats.kstest((found.ranks["rate"][:, 0] + 0.5) / 100, "uniform").pvalue > 0.01


def test_a_product_is_too_sure_of_a_hyper_mean() -> None:
    """q of mu takes the groups as known: its sd is 1 / sqrt(17), and that of the posterior 0.49."""
    found = svmp.calibrate(groups(), n=80, names=["mu"], seed=1, tol=1e-4, corrected=False)
    assert found.p_value("mu") < 0.001
    assert found.verdict("mu") == "too sure"
    assert found.spread("mu") == pytest.approx(0.49 * np.sqrt(17), rel=0.25)
    assert found.coverage("mu") < 0.8
    assert "too sure" in repr(found)
    shown = svmp.calibrate(groups(), n=80, names=["mu"], seed=1, tol=1e-4)
    assert shown.verdict("mu") == "calibrated"


def test_a_wrong_q_is_biased() -> None:
    """A fit that is stopped at once stays where it started."""
    init = {"mu": {"mu": -2.0, "tau": 1.0}, "theta": {"mu": np.full(4, -2.0), "tau": np.ones(4)}}
    options: dict[str, Any] = {"init": init, "max_accesses": 1}
    found = svmp.calibrate(groups, n=60, method=svmp.FullVB(), **options)
    assert found.verdict("mu") == "too low"
    assert found.unconverged == 60


def test_p_values_are_uniform_under_uniform_ranks() -> None:
    ranks = np.random.default_rng(3).integers(0, 100, (200, 60))
    values = np.array([p_value(row, 99) for row in ranks])
    assert (values < 0.05).mean() == pytest.approx(0.05, abs=0.05)
    low, high = band(60, 99)
    ecdf = (ranks[:, :, None] < np.arange(1, 100)).mean(axis=1)
    inside = ((low <= ecdf) & (ecdf <= high)).all(axis=1).mean()
    assert inside == pytest.approx(0.95, abs=0.05)


def test_replaced_values_are_those_of_a_new_declaration() -> None:
    """Also where an observed variable has children."""

    def declare(z: Any, y: Any) -> svmp.Model:
        with svmp.Model(coords={"k": 2, "row": 6}) as model:
            p = svmp.Dirichlet("p", a=np.ones(2), dims="k")
            mu = svmp.Normal("mu", mu=0, tau=0.1, dims="k")
            kind = svmp.Categorical("kind", p=p, dims="row", observed=z)
            svmp.Mixture("y", kind, svmp.Normal.dist(mu=mu, tau=1), dims="row", observed=y)
        return model

    rng = np.random.default_rng(0)
    old, new = ({"kind": rng.integers(0, 2, 6), "y": rng.normal(size=6)} for _ in range(2))
    expected = svmp.fit(declare(new["kind"], new["y"]))
    for kernels in (False, True):
        model = simulated_model(None, declare(old["kind"], old["y"]), new)
        found = svmp.fit(model, kernels=kernels)
        np.testing.assert_allclose(found["mu"].natural, expected["mu"].natural)
        np.testing.assert_allclose(found["p"].natural, expected["p"].natural)


def test_chains_are_declared_with_the_simulated_values() -> None:
    def declare(x: Any = (0,) * 12) -> svmp.Model:
        with svmp.Model(coords={"state": 2, "to": 2, "row": 12}) as model:
            move = svmp.Dirichlet("move", a=np.ones(2), dims=("state", "to"))
            z = svmp.DiscreteMarkovChain("z", init=[0.5, 0.5], P=move, dims="row")
            rate = svmp.Gamma("rate", alpha=[2.0, 60.0], beta=[2.0, 3.0], dims="state")
            svmp.Mixture("x", z, svmp.Poisson.dist(mu=rate), dims="row", observed=x)
        return model

    found = svmp.calibrate(declare, n=40, kernels=False)
    assert found.verdict("rate") == "calibrated"  # the states are plain to see
    with pytest.raises(svmp.ModelError, match="'z' is a chain, so that declare must take"):
        svmp.calibrate(lambda: declare())


def test_seeds_decide_the_ranks_and_the_plot_has_a_line_for_each_number() -> None:
    one, again = (svmp.calibrate(groups, n=20, seed=5, draws=19) for _ in range(2))
    assert all(np.array_equal(one.ranks[name], again.ranks[name]) for name in one.ranks)
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = one.plot()
    assert len(ax.lines) == 5
    matplotlib.pyplot.close(ax.figure)


def test_ctrl_c_keeps_the_simulations_so_far() -> None:
    calls = []

    def press(iteration: int) -> bool:
        calls.append(iteration)
        if calls.count(1) == 31 and iteration == 1:
            signal.raise_signal(signal.SIGINT)
        return True

    found = svmp.calibrate(groups, n=200, bound_every=press)
    assert found.n == 30


def test_bad_input_is_refused() -> None:
    for wrong in (3, lambda: 3):
        with pytest.raises(svmp.ModelError, match="function that returns a model"):
            svmp.calibrate(wrong)  # type: ignore[arg-type]
    with pytest.raises(svmp.ModelError, match="without arguments, but it needs x, y; give them"):
        svmp.calibrate(lambda x, y, z=3: groups())
    with pytest.raises(svmp.ModelError, match="n must be a whole number of at least 20"):
        svmp.calibrate(groups, n=5)
    with pytest.raises(svmp.ModelError, match="draws must be a whole number"):
        svmp.calibrate(groups, draws=2.5)  # type: ignore[arg-type]
    with pytest.raises(svmp.ModelError, match="no hidden variable 'y'"):
        svmp.calibrate(groups, names=["y"])
    found = svmp.calibrate(groups, n=20)
    with pytest.raises(svmp.ModelError, match="ranks of"):
        found.p_value("y")
    with pytest.raises(svmp.ModelError, match="level must be between"):
        found.coverage("mu", 1.5)

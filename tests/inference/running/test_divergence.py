"""A fit that diverged says so: a warning, both bounds, and a line in every figure."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import svmp
from tests.inference.models import ratings

FAR = {"u": [[0.1, -0.1]] * 8, "v": [[0.1, -0.1]] * 6}
STEPS = svmp.Constant(1.0)


def diverged(**options) -> svmp.Fit:
    options = {"steps": STEPS, "init": FAR, "max_sweeps": 20, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", svmp.DivergenceWarning)
        fit = svmp.fit(ratings(), svmp.Children(1), **options)
    assert fit.status == "diverged"
    return fit


def test_divergence_warns():
    with pytest.warns(svmp.DivergenceWarning) as caught:
        fit = svmp.fit(ratings(), svmp.Children(1), steps=STEPS, init=FAR, max_sweeps=20)
    (message,) = [str(w.message) for w in caught]
    for words in (
        f"diverged in iteration {fit.iterations} ",
        f"bound {fit.diverged_bound:,.6g} there",
        f"with bound {fit.bound:,.6g}",
        "safe_rho1",
    ):
        assert words in message
    assert caught[0].filename == __file__
    assert issubclass(svmp.DivergenceWarning, svmp.ConvergenceWarning)


def test_both_bounds_are_said():
    fit = diverged(bound_every=1)
    assert fit.diverged_bound == fit.trace["bound"][-1]  # of a run whose every bound is known
    assert fit.diverged_bound < fit.bound
    there = f"diverged at iteration {fit.iterations} (bound there {fit.diverged_bound:,.6g})"
    for shown in (repr(fit), str(fit.summary()), str(fit)):
        assert there in shown
        assert "q is that of the last sound iteration" in shown
        assert f"bound of this q {fit.bound:,.6g}" in shown
    assert fit.diagnosis.bound == fit.diverged_bound


def test_bounds_are_those_of_q_at_both_places():
    """A run of one iteration less ends at the last q before the divergence was seen."""
    fit = diverged(bound_every=1)
    rows = fit.trace["iteration"]
    assert rows[-1] == fit.iterations
    assert fit.bound in fit.trace["bound"][:-1]


def test_saved_fit_says_the_same(tmp_path):
    fit = diverged()
    fit.save(tmp_path / "fit.svmp")
    again = svmp.load(tmp_path / "fit.svmp")
    assert again.diverged_bound == fit.diverged_bound
    assert repr(again) == repr(fit)


@pytest.mark.parametrize("every", [None, 1, 10**9])
def test_figures_mark_the_divergence(every):
    fit = diverged(bound_every=every)
    for ax in (fit.plot(), fit.plot_trace()[0]):
        lines = [line for line in ax.get_lines() if "diverged" in str(line.get_label())]
        assert len(lines) == 1
        assert set(lines[0].get_xdata()) == {fit.accesses}
        assert f"iteration {fit.iterations}" in lines[0].get_label()
        assert ax.get_legend() is not None


def test_improper_q_has_no_bound():
    """Its natural parameters are outside the domain; the trace has the bound of the start."""
    steps = svmp.Constant(2.5, force=True)
    with pytest.warns(svmp.DivergenceWarning, match="no finite bound there"):
        fit = svmp.fit(ratings(), svmp.FullVB(), steps=steps, init=FAR, kernels=True)
    assert not np.isfinite(fit.diverged_bound)
    assert "(bound there not finite)" in repr(fit)
    assert fit.trace["bound"].max() <= svmp.fit(ratings()).bound
    assert fit.plot().get_title()


def test_rolled_back_run_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for steps in (svmp.Nodewise(), svmp.Grow()):
            fit = svmp.fit(ratings(), svmp.Children(1), steps=steps, init=FAR, max_sweeps=5)
            assert fit.status != "diverged"
            assert fit.diverged_bound is None


def test_best_of_several_starts_that_all_diverged_warns():
    with pytest.warns(svmp.DivergenceWarning):
        fit = svmp.fit(ratings(), svmp.FullVB(), steps=svmp.Constant(2.5, force=True), restarts=2)
    assert {start.status for start in fit.restarts} == {"diverged"}


def test_start_that_was_stopped_is_no_budget():
    rng = np.random.default_rng(0)
    y = rng.normal(np.array([-6.0, 0, 6, 12])[rng.integers(0, 4, 400)], 1)
    with svmp.Model(coords={"k": 6, "row": 400}) as model:
        z = svmp.Categorical("z", p=svmp.Dirichlet("p", a=1, dims="k"), dims="row")
        mu = svmp.Normal("mu", mu=0, tau=0.01, dims="k")
        tau = svmp.Gamma("tau", alpha=1, beta=1, dims="k")
        svmp.Mixture("y", z, svmp.Normal.dist(mu=mu, tau=tau), dims="row", observed=y)
    fit = svmp.fit(model, restarts=6, tol=0, max_sweeps=300)
    assert "stopped" in {start.status for start in fit.restarts}
    for start in fit.restarts:
        assert (start.status == "stopped") == (start.status != "converged" and start.sweeps < 300)

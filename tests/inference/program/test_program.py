"""A program says which updater serves each variable, and the engine runs just that."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.inference.engine import step
from svmp.inference.program.program import Program
from svmp.inference.starts.start import start
from svmp.inference.state.state import State
from svmp.network.network import Network
from tests.inference.tools import GALLERY, gallery
from tests.network.tools import anywhere

METHODS = [svmp.FullVB(), svmp.Children(3), svmp.Batch(5, "b"), svmp.Growing(0.5)]


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("name", GALLERY)
def test_every_variable_has_one_updater(name: str, method: svmp.FullVB, kernels: bool) -> None:
    network = Network(gallery()[name])
    program = Program.of(network, method, kernels)
    served = [variable for updater in program.updaters for variable in updater.names]
    assert sorted(served) == sorted(network.hidden)
    summary = program.explain()
    assert [entry.variable for entry in summary.variables] == list(network.hidden)
    for entry in summary.variables:
        compiled = entry.updater.startswith("compiled")
        assert not (compiled and entry.reason)
        assert kernels or entry.reason == "compiled loops are turned off"


@pytest.mark.parametrize("name", GALLERY)
def test_bound_of_a_program_is_that_of_the_network(name: str) -> None:
    """The terms that updaters have are those of plain code."""
    network = Network(gallery()[name])
    q = anywhere(network, 2)
    plain = network.bound(q)
    program = Program.of(network, svmp.FullVB(), stored=list(network.hidden))
    found = program.bound(program.attach(q))
    assert list(found) == list(plain)
    assert list(found.values()) == pytest.approx(list(plain.values()), rel=1e-9)


def test_the_papers_model_is_compiled() -> None:
    text = str(svmp.explain(gallery()["04 paper"]))
    assert "u  compiled (multilinear, joint), rows of 'r'" in text
    assert "not compiled" not in text


def test_reasons_name_the_table() -> None:
    with svmp.Model(coords={"g": 3}) as model:
        rate = svmp.Gamma("rate", alpha=1, beta=1, dims="g")
        svmp.Poisson("y", mu=rate[[0, 1, 2, 0]], observed=[1, 2, 3, 4])
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        svmp.Normal("x", mu=0, tau=tau, observed=[0.5, 1.5])
    reasons = {s.variable: s.reason for s in svmp.explain(model).variables}
    assert reasons == {
        "rate": "no loops for the rows of 'y': they are not Normal, nor Bernoulli with a logit",
        "tau": "the sums over the rows of 'x' suffice",
    }


def test_a_fit_knows_its_program() -> None:
    fit = svmp.fit(gallery()["04 paper"], svmp.Children(2), max_sweeps=1)
    assert str(fit.program).startswith("Children")
    assert "u  compiled (multilinear)" in str(fit.program)


def test_statistics_of_the_gradient_need_plain_updates() -> None:
    class Careful:
        statistics = True

        def __call__(self, context: svmp.StepContext) -> float:
            assert context.gradient is not None
            return 0.1

    summary = svmp.explain(gallery()["04 paper"], svmp.Children(2), steps=Careful())
    assert {s.reason for s in summary.variables} == {
        "the step policy asks for statistics of the gradient"
    }
    fit = svmp.fit(gallery()["04 paper"], svmp.Children(2), steps=Careful(), max_sweeps=1)
    assert np.isfinite(fit.bound)


def test_statistics_of_the_gradient_are_kept_by_every_method() -> None:
    seen = []

    class Careful:
        statistics = True

        def __call__(self, context: svmp.StepContext) -> float:
            seen.append(context.gradient is not None)
            return 0.5

    for method in (svmp.FullVB(), svmp.Growing(1.0), svmp.Batch(20), svmp.Children(2)):
        svmp.fit(gallery()["04 paper"], method, steps=Careful(), max_sweeps=1)
    assert all(seen)


@pytest.mark.filterwarnings("ignore::svmp.DivergenceWarning")
def test_steps_beyond_one_end_as_diverged_under_every_method() -> None:
    """Even where unit steps cannot diverge."""
    model = gallery()["04 paper"]
    for kernels in (True, False):
        fit = svmp.fit(model, svmp.FullVB(), steps=svmp.Constant(2.5, force=True), kernels=kernels)
        assert fit.status == "diverged"
        assert np.isfinite(fit.bound)
        assert all(q.family.in_domain(q.natural).all() for q in fit.posteriors.values())


def test_option_b_changes_nothing_if_one_change_is_improper() -> None:
    rng = np.random.default_rng(0)
    with svmp.Model(coords={"a": 3, "row": 40}) as model:
        m = svmp.Normal("m", mu=0, tau=1000, dims="a")
        tau = svmp.Gamma("tau", alpha=2, beta=1)
        y = rng.normal(size=40)
        svmp.Normal("y", mu=m[rng.integers(3, size=40)], tau=tau, dims="row", observed=y)
    network = Network(model)
    method, steps = svmp.Batch(10, "b", order=["m", "tau"]), svmp.Constant(3.0, force=True)
    program = Program.of(network, method, policy=steps)
    state, improper = State(program.attach(start(network, 0))), False
    while not improper:
        before = state.q.copy()
        try:
            state, _ = step(program, state)
        except svmp.ImproperError:
            improper = True
    for name, natural in before.natural.items():
        assert np.array_equal(state.q.natural[name], natural)


def test_rows_whose_sums_suffice_are_not_read_by_loops() -> None:
    """With known precisions, the posterior of a mean is exact: its precision is 0.5 + 2 N."""
    y = np.random.default_rng(3).normal(1.0, 1.0, 20_000)
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=0.5)
        svmp.Normal("y", mu=mu, tau=2, observed=y)
    for method in (None, svmp.FullVB()):
        assert "the sums over the rows of 'y' suffice" in str(svmp.explain(model, method))
        fit = svmp.fit(model, method)
        assert fit["mu"].tau == pytest.approx(0.5 + 2 * len(y), rel=1e-12)
        assert fit.mean("mu") == pytest.approx(2 * y.sum() / (0.5 + 2 * len(y)), rel=1e-10)
    assert "compiled" in str(svmp.explain(model, svmp.Batch(100))).splitlines()[1]

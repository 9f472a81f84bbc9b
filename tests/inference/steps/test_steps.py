"""Step policies: the formulas of docs and paper, refusals, and user-defined policies."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import svmp
from svmp.network.network import Network
from tests.inference.tools import gallery


def context(
    iteration=1, children=(100,), read=(5,), coupling=0, together=False
) -> svmp.StepContext:
    return svmp.StepContext("u", iteration, np.array(children), np.array(read), coupling, together)


# --- one schedule for all -------------------------------------------------------------------


def test_robbins_monro_is_the_papers_schedule():
    steps = svmp.RobbinsMonro(kappa=0.7, tau=3)
    assert [steps(context(t)) for t in (1, 2, 13)] == pytest.approx([4**-0.7, 5**-0.7, 16**-0.7])
    assert svmp.RobbinsMonro(kappa=1.0, tau=0)(context(4)) == 0.25


@pytest.mark.parametrize(("rho1", "tau"), [(1 / 512, 32767), (1 / 64, 1023), (1 / 8, 31), (1, 0)])
def test_delay_follows_from_the_first_step(rho1, tau):
    steps = svmp.RobbinsMonro(kappa=0.6, rho1=rho1)
    assert steps.tau == pytest.approx(tau, rel=1e-12, abs=1e-12)
    assert steps(context(1)) == pytest.approx(rho1, rel=1e-12)


def test_one_thirty_second_is_a_delay_of_about_321():
    assert svmp.RobbinsMonro(kappa=0.6, rho1=1 / 32).tau == pytest.approx(321.5, abs=0.1)


@given(st.floats(0.501, 1.0), st.floats(1e-4, 1.0))
def test_steps_start_at_rho1_and_fall(kappa, rho1):
    steps = svmp.RobbinsMonro(kappa=kappa, rho1=rho1)
    values = [steps(context(t)) for t in range(1, 20)]
    assert values[0] == pytest.approx(rho1)
    assert all(0 < b < a <= 1 + 1e-9 for a, b in pairwise(values))


BAD = [
    (svmp.RobbinsMonro, {"kappa": 0.5}, "kappa is 0.5.*1/2 < kappa <= 1"),
    (svmp.RobbinsMonro, {"kappa": 0.3}, "kappa"),
    (svmp.RobbinsMonro, {"kappa": 1.1}, "kappa"),
    (svmp.RobbinsMonro, {"kappa": float("nan")}, "kappa"),
    (svmp.RobbinsMonro, {"tau": -1}, "delay must not be negative"),
    (svmp.RobbinsMonro, {"rho1": 1.5}, r"a step must be in \(0, 1\]"),
    (svmp.HoldThenDecay, {"kappa": 0.4}, "kappa"),
    (svmp.HoldThenDecay, {"tau": -2.0}, "delay"),
    (svmp.Constant, {"rho": 0.0}, r"a step must be in \(0, 1\]"),
    (svmp.Constant, {"rho": 1.01}, "step"),
    (svmp.Constant, {"rho": -0.1}, "step"),
]


@pytest.mark.parametrize(("policy", "options", "reason"), BAD)
def test_parameters_outside_the_theory_are_refused_unless_forced(policy, options, reason):
    with pytest.raises(svmp.ModelError, match=reason) as refusal:
        policy(**options)
    assert "force=True" in str(refusal.value)
    assert isinstance(policy(**options, force=True), policy)


@pytest.mark.parametrize("rho1", [0.0, -0.5])
def test_first_step_that_is_not_positive_is_refused(rho1):
    with pytest.raises(svmp.ModelError, match=r"a step must be in \(0, 1\]"):
        svmp.RobbinsMonro(rho1=rho1)


def test_other_refusals():
    with pytest.raises(svmp.ModelError, match="not both"):
        svmp.RobbinsMonro(tau=1, rho1=0.5)
    with pytest.raises(svmp.ModelError, match="hold"):
        svmp.HoldThenDecay(hold=-1)
    for c in (0, -1, 1.5):
        with pytest.raises(svmp.ModelError, match="c must be in"):
            svmp.Nodewise(c=c)
    for options in ({"start": 0.5}, {"rate": 1.0}, {"rate": 0.5}):
        with pytest.raises(svmp.ModelError, match="Grow needs"):
            svmp.Grow(**options)


def test_hold_then_decay_holds_then_decays():
    steps = svmp.HoldThenDecay(hold=10, kappa=0.6)
    assert [steps(context(t)) for t in range(1, 11)] == [1.0] * 10
    assert [steps(context(t)) for t in (11, 12, 42)] == pytest.approx([1, 2**-0.6, 1 / 8])


def test_constant_is_constant():
    assert {svmp.Constant(0.2)(context(t)) for t in (1, 10, 1000)} == {0.2}


# --- each element its own step --------------------------------------------------------------


@given(st.integers(1, 10**6), st.integers(1, 50), st.sampled_from([0.25, 0.5, 1.0]))
def test_first_nodewise_step_is_a_wiener_filter(N, C, c):
    """rho_i1 = c C / (c C + N_i - C), and 1 where C >= N_i."""
    C = min(C, N)
    exact = Fraction(c) * C / (Fraction(c) * C + N - C)
    for steps in (svmp.Nodewise(c=c), svmp.Grow(c=c)):
        assert steps(context(1, [N], [C]))[0] == pytest.approx(float(exact), rel=1e-9)


@given(st.integers(2, 10**5), st.integers(1, 20), st.integers(1, 500))
def test_nodewise_steps_decay_from_their_own_delay(N, C, t):
    """With c = 1 from the start; with a smaller c, which grows to 1, after two readings."""
    C = min(C, N - 1)
    tau = (C / N) ** (-1 / 0.6) - 1
    steps, at = svmp.Nodewise(c=1), context(t, [N], [C])
    assert steps(at)[0] == pytest.approx((t + tau) ** -0.6, rel=1e-9)
    if (t - 1) * C >= 2 * N:
        assert svmp.Nodewise(c=0.1)(at)[0] == pytest.approx(steps(at)[0], rel=1e-9)
    elif t > 1:
        assert svmp.Nodewise(c=0.1)(at)[0] < steps(at)[0]
    assert svmp.Grow(c=1)(at)[0] == pytest.approx(C / N, rel=1e-9)


def test_readings_are_counted_by_element_or_by_the_share_of_a_batch():
    """If a tenth of the observations is drawn, t iterations are t / 10 readings."""
    assert context(21, [10, 40], [1, 4]).readings.tolist() == [2, 2]
    seen = []
    network = gallery()["04 paper"]
    count = Network(network).observed["r"].count

    def spy(at: svmp.StepContext) -> float:
        seen.append((at.iteration, at.readings))
        return 0.1

    svmp.fit(network, svmp.Batch(count // 10), steps=spy, max_sweeps=0.5, tol=0)
    for t, found in seen:
        np.testing.assert_allclose(found, (t - 1) * (count // 10) / count)


def test_c_of_nodewise_steps_grows_linearly_over_two_readings():
    """With one of ten children per iteration c is halfway to 1 after ten iterations."""
    c = 0.25 + 0.75 / 2
    first = c / (c + 9)
    found = svmp.Nodewise(c=0.25)(context(11, [10], [1]))[0]
    assert found == pytest.approx((11 + first ** (-1 / 0.6) - 1) ** -0.6, rel=1e-9)


@pytest.mark.parametrize("steps", [svmp.Nodewise(), svmp.Grow()])
def test_step_is_one_where_every_child_is_read(steps):
    rho = steps(context(99, [1, 5, 20, 0], [1, 5, 20, 0]))
    assert rho.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("steps", [svmp.Nodewise(), svmp.Grow()])
@given(N=st.integers(0, 1000), C=st.integers(1, 1000), K=st.integers(1, 40), t=st.integers(1, 99))
def test_option_b_bounds_the_step_by_the_coupling(steps, N, C, K, t):
    """K factors of two co-parents, 2 K elements in a row: at most 1 / K each."""
    at = context(t, [N], [min(C, N)], coupling=2 * K - 1, together=True)
    apart = context(t, [N], [min(C, N)], coupling=2 * K - 1)
    assert steps(at)[0] == pytest.approx(min(steps(apart)[0], 1 / K))


@given(st.integers(1, 10**6), st.integers(1, 50), st.integers(1, 100))
def test_c_is_reduced_in_crowded_rows(N, C, K):
    """2 K elements in a row: c for K = 5 and fewer, c * 5 / K for more."""
    C, at = min(C, N), context(1, [N], [min(C, N)], coupling=2 * K - 1)
    c = 0.5 * min(1, 5 / K)
    for steps in (svmp.Nodewise(c=0.5), svmp.Grow(c=0.5)):
        assert steps(at)[0] == pytest.approx(c * C / (c * C + N - C), rel=1e-9)


def test_step_context_has_coupling_and_option():
    network = gallery()["04 paper"]
    seen = {}
    for option in "ab":

        def spy(at: svmp.StepContext, option=option) -> float:
            seen.setdefault(option, set()).add((at.coupling, at.together))
            return 0.1

        svmp.fit(network, svmp.Children(2, option=option), steps=spy, max_sweeps=0.2, tol=0)
    assert seen == {"a": {(2 * 5 - 1, False)}, "b": {(2 * 5 - 1, True)}}


def test_grow_reads_more_each_iteration_and_ends_as_full_vb():
    steps = svmp.Grow(start=5, rate=1.15)
    method = svmp.Children(1, share_draw=True)
    sizes = [steps.method_at(method, t).C for t in range(1, 200)]
    assert sizes[:3] == [5, 5, 6]
    assert sizes == [int(min(5 * 1.15 ** (t - 1), 2.0**40)) for t in range(1, 200)]
    with pytest.raises(svmp.ModelError, match="Children"):
        steps.method_at(svmp.Batch(3), 1)
    model = gallery()["04 paper"]
    network = Network(model)
    most = int(max(network.child_counts[name].max() for name in network.hidden))
    fit = svmp.fit(model, method, steps=svmp.Grow(1, 2.0), max_sweeps=15, tol=0, bound_every=1)
    assert fit.trace["C"].max() == most
    last = fit.trace["bound"][-4:]  # exact gradients and unit steps: full VB, which never falls
    assert fit.trace["step_min"][-4:].tolist() == [1.0] * 4
    assert (np.diff(last) >= 0).all()


def test_grow_does_not_overflow_in_a_long_run():
    assert svmp.Grow(start=5, rate=1.15).method_at(svmp.Children(1), 10**6).C >= 2**40


# --- user-defined policies ------------------------------------------------------------------


def cautious(at: svmp.StepContext) -> np.ndarray:
    return 0.5 * at.read / np.maximum(at.children, 1)


class Adaptive:
    """Ranganath et al.: the squared running gradient over the running square."""

    statistics = True

    def __init__(self) -> None:
        self.seen: list[svmp.StepContext] = []

    def __call__(self, at: svmp.StepContext) -> np.ndarray:
        self.seen.append(at)
        ratio = (at.gradient**2).sum(axis=1) / (at.square.sum(axis=1) + 1e-300)
        return np.clip(ratio, 0.001, 0.2)


@pytest.mark.parametrize("kernels", [True, False])
def test_user_defined_policy_is_a_function(kernels):
    fit = svmp.fit(
        gallery()["04 paper"], svmp.Children(3), steps=cautious, max_sweeps=4, kernels=kernels
    )
    assert fit.status in ("budget", "converged")
    assert fit.bound > fit.trace["bound"][0]


@pytest.mark.parametrize("name", ["04 paper", "07", "11"])
def test_policy_can_use_statistics_of_the_gradient(name):
    steps = Adaptive()
    fit = svmp.fit(gallery()[name], svmp.Children(5), steps=steps, max_sweeps=1.0, tol=0)
    assert fit.status == "budget"
    assert fit.bound > fit.trace["bound"][0]
    for at in steps.seen:
        assert at.gradient.shape == at.square.shape
        assert len(at.gradient) == len(at.children) == len(at.read)
        assert np.isfinite(at.gradient).all()
        assert (at.square >= at.gradient**2 * (1 - 1e-9)).all()  # Jensen


def test_statistics_are_running_means_of_the_natural_gradient():
    """On a network of one element that reads every child, the gradient is lambda* - lambda."""
    steps = Adaptive()
    model = gallery()["01 Gamma-Poisson"]
    network = Network(model)
    svmp.fit(model, svmp.Children(10**6), steps=steps, max_sweeps=3, tol=0)
    first, second, _ = (at.gradient[0] for at in steps.seen)
    rho = float(np.clip(1.0, 0.001, 0.2))
    new = (1 - rho) * first  # the gradient after the first step
    assert second == pytest.approx(0.9 * first + 0.1 * new, rel=1e-9)
    assert steps.seen[1].square[0] == pytest.approx(0.9 * first**2 + 0.1 * new**2, rel=1e-9)
    assert network.child_counts["theta"].tolist() == steps.seen[0].read.tolist()


def test_statistics_are_not_computed_unless_used():
    def spy(at: svmp.StepContext) -> float:
        assert at.gradient is None
        assert at.square is None
        return 0.5

    svmp.fit(gallery()["02"], svmp.Children(2), steps=spy, max_sweeps=2, tol=0)


def test_a_policy_cannot_change_the_counts_of_the_network() -> None:
    def doubled(context: svmp.StepContext) -> float:
        context.read[:] = 2 * context.read
        return 1.0

    with svmp.Model() as model:
        rate = svmp.Gamma("rate", alpha=1, beta=1)
        svmp.Poisson("count", mu=rate, observed=[1, 2, 3])
    with pytest.raises(svmp.ModelError, match="read-only"):
        svmp.fit(model, svmp.FullVB(), steps=doubled)

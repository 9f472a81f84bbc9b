"""Online inference: one q on a sequence of networks."""

from __future__ import annotations

import numpy as np
import pytest

import svmp
from svmp.fitting.online import Online
from tests.inference.tools import gallery


@pytest.mark.parametrize("name", ["04 paper", "05", "07", "09"])
def test_unit_steps_on_one_network_are_full_vb(name: str) -> None:
    model = gallery()[name]
    run = Online(svmp.Constant(1.0), tell=False)
    for _ in range(3):
        run.advance(model)
    fit = svmp.fit(model, svmp.FullVB(), max_sweeps=3, tol=0)
    for variable, q in run.posteriors.items():
        if variable != "z":  # its turn is before that of the others
            np.testing.assert_allclose(q.mean, fit.mean(variable), rtol=1e-6, atol=1e-9)


def test_copies_share_nothing_that_changes() -> None:
    class Careful:
        statistics = True

        def __call__(self, context: svmp.StepContext) -> float:
            return 0.5

    run = Online(Careful(), tell=False)
    run.advance(gallery()["04 paper"])
    other = run.copy()
    assert run.state is not None
    before = run.state.statistics.gradient["u"].copy()
    natural = run.state.q.natural["u"].copy()
    other.advance(gallery()["04 paper"])
    assert np.array_equal(run.state.statistics.gradient["u"], before)
    assert np.array_equal(run.state.q.natural["u"], natural)
    assert run.iteration == 1


def counts(observed: list[int]) -> svmp.Model:
    with svmp.Model() as model:
        rate = svmp.Gamma("rate", alpha=2, beta=1)
        svmp.Poisson("count", mu=rate, observed=observed)
    return model


def test_earlier_run_is_the_prior_of_every_network() -> None:
    """After 3 and 4 the rate is Gamma(9, 3), to which each network adds its own rows alone."""
    run = Online(svmp.Constant(1.0), tell=False, earlier=svmp.fit(counts([3, 4])))
    for observed, alpha, beta in (([8], 17, 4), ([1, 1], 11, 5)):
        run.advance(counts(observed))
        rate = run.posteriors["rate"]
        assert (rate.alpha, rate.beta) == (pytest.approx(alpha), pytest.approx(beta))


def ratings(rows: slice, users: int) -> svmp.Model:
    rng = np.random.default_rng(4)
    user, item, rating = rng.integers(users, size=90), rng.integers(7, size=90), rng.normal(size=90)
    coords = {"user": [f"user {m}" for m in range(users)], "item": list("abcdefg"), "factor": 2}
    with svmp.Model(coords=coords) as model:
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
        v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
        mean = svmp.dot(u[user[rows]], v[item[rows]])
        svmp.Normal("r", mu=mean, tau=tau, observed=rating[rows])
    return model


def test_unit_steps_after_an_earlier_run_are_an_update() -> None:
    """Elements are matched by label; users 5 to 8 are new."""
    earlier = svmp.fit(ratings(slice(60), 5), max_sweeps=20)
    model = ratings(slice(60, 90), 9)
    run = Online(svmp.Constant(1.0), tell=False, earlier=earlier)
    for _ in range(3):
        run.advance(model)
    update = earlier.update(model, svmp.FullVB(), max_sweeps=3, tol=0)
    for name, q in run.posteriors.items():
        np.testing.assert_allclose(q.mean, update[name].mean, rtol=1e-6, atol=1e-9)

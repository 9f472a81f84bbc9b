"""Several starts: the best is kept, the hopeless are stopped, and threads change no bits."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

import svmp
from svmp.fitting.restarts import Race
from svmp.inference.running.stopping import Interrupt
from svmp.posterior.record.restart_record import Restarts

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(0, 4, (5, 2))
POINTS = CENTRES[RNG.integers(0, 5, 150)] + RNG.normal(size=(150, 2))
pytestmark = pytest.mark.by_size


@pytest.fixture(scope="module")
def mixture() -> svmp.Model:
    with svmp.Model(coords={"k": 5, "row": 150, "d": 2}) as model:
        p = svmp.Dirichlet("p", a=np.ones(5), dims="k")
        mu = svmp.MvNormal("mu", mu=np.zeros(2), tau=0.05 * np.eye(2), dims=("k", "d"))
        z = svmp.Categorical("z", p=p, dims="row")
        component = svmp.MvNormal.dist(mu=mu, tau=np.eye(2))
        svmp.Mixture("x", z, component, dims=("row", "d"), observed=POINTS)
    return model


def test_the_best_start_is_returned_as_a_fit_with_its_seed(mixture: svmp.Model, tmp_path) -> None:
    fit = svmp.fit(mixture, restarts=4)
    assert fit.restarts is not None
    assert len(fit.restarts) == 4
    (best,) = (start for start in fit.restarts if start.best)
    assert best.bound == fit.bound == max(start.bound for start in fit.restarts)
    alone = svmp.fit(mixture, seed=best.seed)
    for name, q in alone.posteriors.items():
        assert np.array_equal(q.natural, fit[name].natural)
    assert fit.restarts[0].seed == 0
    assert "best" in str(fit)
    fit.save(tmp_path / "fit.svmp")
    assert svmp.load(tmp_path / "fit.svmp").restarts == fit.restarts
    for start in fit.restarts:
        whole = svmp.fit(mixture, seed=start.seed)
        assert whole.bound <= fit.bound + 1e-3  # none that was stopped would have won
        if start.status == "stopped":
            assert start.bound < fit.bound
        else:
            assert (start.bound, start.status) == (whole.bound, whole.status)


def test_threads_do_not_change_the_bits(mixture: svmp.Model) -> None:
    one, two = (svmp.fit(mixture, restarts=4, threads=n, kernels=True) for n in (1, 2))
    assert one.restarts == two.restarts
    assert np.array_equal(one["mu"].natural, two["mu"].natural)


def test_only_the_worse_half_is_stopped_and_only_if_it_cannot_catch_up() -> None:
    class Permits:
        def release(self) -> None: ...
        def acquire(self) -> None: ...

    race = Race(4, Permits(), Interrupt(pressed=True))  # type: ignore[arg-type]
    for start, (bound, gain) in enumerate([(-10.0, 1.0), (-20, 1), (-30, 1), (-30, 5)]):
        race.meet(start, bound, gain)
    assert race.stopped == {2}  # the second is in the better half, the last is catching up
    race.leave(2, -30)
    race.meet(0, -9, 1)
    race.meet(1, -19, np.nan)
    race.meet(3, -19, 0.1)
    assert race.stopped == {2, 3}


def test_one_restart_is_a_single_fit(mixture: svmp.Model) -> None:
    assert svmp.fit(mixture, restarts=1, max_sweeps=2).restarts is None


def test_ctrl_c_ends_all_starts(mixture: svmp.Model) -> None:
    pressed = []

    def press(iteration: int) -> bool:
        if iteration == 3 and not pressed:
            pressed.append(iteration)
            signal.raise_signal(signal.SIGINT)
        return True

    fit = svmp.fit(mixture, restarts=3, bound_every=press, tol=0.0, max_sweeps=None)
    assert fit.status == "interrupted"
    assert isinstance(fit.restarts, Restarts)
    assert {start.status for start in fit.restarts} == {"interrupted"}


def test_errors_of_a_start_are_raised(mixture: svmp.Model) -> None:
    def fail(iteration: int) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        svmp.fit(mixture, restarts=3, bound_every=fail)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"restarts": 0}, "restarts must be a whole number from 1"),
        ({"restarts": 2.5}, "restarts must be a whole number"),
        ({"restarts": True}, "restarts must be a whole number"),
        ({"restarts": 2, "checkpoint": "a.svmp"}, "checkpoint= cannot be used with restarts=2"),
        ({"restarts": 2, "watch": print}, "watch= cannot be used"),
        ({"restarts": 2, "seed": None}, "seed=None cannot be used with restarts=2"),
        ({"restarts": 2, "tol": -1}, "tol must be"),
    ],
)
def test_bad_options_are_refused(
    mixture: svmp.Model, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(svmp.ModelError, match=message):
        svmp.fit(mixture, **options)


def test_a_whole_fit_as_the_start_is_refused(mixture: svmp.Model) -> None:
    fit = svmp.fit(mixture, max_sweeps=1)
    with pytest.raises(svmp.ModelError, match="init= of every variable cannot be used"):
        svmp.fit(mixture, init=fit, restarts=2)


def test_parts_are_refused() -> None:
    def declare(y: Any) -> svmp.Model:
        with svmp.Model() as model:
            mu = svmp.Normal("mu", mu=0, tau=1)
            svmp.Normal("y", mu=mu, tau=1, observed=y)
        return model

    with pytest.raises(svmp.ModelError, match="rows in one table"):
        svmp.fit(svmp.Parts(declare, [np.ones(2), np.ones(3)]), restarts=2)

"""H from differences along many statistics at once: the same as one statistic at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import svmp
from svmp.families.family import Array
from svmp.posterior.uncertainty.hessian import hessian_of
from svmp.posterior.uncertainty.linear_response import message_map
from svmp.posterior.uncertainty.message_map import MessageMap
from svmp.posterior.uncertainty.response_matrix import root_of

from .test_linear_response import crossed, factors, logistic, mixture, schools, vectors


def hidden_states() -> svmp.Model:
    y = np.random.default_rng(0).normal(size=12)
    with svmp.Model(coords={"row": 12, "k": 2}) as model:
        b = svmp.Normal("b", mu=0, tau=1)
        x = svmp.GaussianRandomWalk("x", tau=svmp.Gamma("tau", alpha=2, beta=1), dims="row")
        svmp.Normal("y", mu=x + b, tau=4.0, dims="row", observed=y)
    return model


def persons(count: int = 150, items: int = 8) -> svmp.Model:
    """Every person answers every item; both have a learned spread."""
    rng = np.random.default_rng(1)
    person, item = (places.ravel() for places in np.indices((count, items)))
    y = rng.normal(size=count)[person] + rng.normal(size=items)[item] + rng.normal(size=len(item))
    with svmp.Model(coords={"person": count, "item": items}) as model:
        mean = svmp.Normal("mean", mu=0, tau=0.1)
        wide = svmp.Gamma("wide", alpha=2, beta=2)
        a = svmp.Normal("a", mu=0, tau=wide, dims="person")
        b = svmp.Normal("b", mu=0, tau=1.0, dims="item")
        svmp.Normal("y", mu=mean + a[person] + b[item], tau=1.0, observed=y)
    return model


def one_by_one(phi: MessageMap) -> Array:
    """Return H by central differences of fourth order along one statistic at a time."""
    found = np.zeros((phi.size, phi.size))
    for column in np.flatnonzero((phi.counted > 0) & (phi.deviations > 0)):
        step = np.zeros(phi.size)
        step[column] = 0.01 * phi.deviations[column]
        near, far = (phi(phi.moments + k * step) - phi(phi.moments - k * step) for k in (1.0, 2.0))
        found[:, column] = phi.counted * (8 * near - far) / (12 * step[column])
    return np.where((phi.deviations > 0)[:, None], found, 0.0)


@pytest.mark.parametrize(
    "declare",
    [crossed, schools, factors, logistic, mixture, vectors, hidden_states, lambda: persons(20, 3)],
)
def test_it_is_that_of_one_statistic_at_a_time(declare: Callable[[], svmp.Model]) -> None:
    model = declare()
    phi = message_map(svmp.fit(model, svmp.FullVB(), max_sweeps=2000), model)
    root = root_of(phi)  # of a symmetric matrix, H is defined along symmetric moments only
    found, expected = (root.T @ h @ root for h in (hessian_of(phi).toarray(), one_by_one(phi)))
    np.testing.assert_allclose(found, expected, atol=1e-6 * max(1.0, np.abs(expected).max()))


def test_elements_that_never_meet_are_moved_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two statistics of mean, spread, 8 items, and of all persons at once, in two directions."""
    model = persons()
    phi = message_map(svmp.fit(model, svmp.FullVB()), model)
    calls, call = [], MessageMap.__call__

    def counted(self: MessageMap, *args: Array) -> Array:
        calls.append(1)
        return call(self, *args)

    monkeypatch.setattr(MessageMap, "__call__", counted)
    hessian_of(phi)
    assert len(calls) == 2 * 2 * (1 + 8 + 1 + 1)


def test_covariances_of_many_crossed_effects_are_those_of_dense_algebra() -> None:
    rng = np.random.default_rng(2)
    person, item = (places.ravel() for places in np.indices((180, 6)))
    kept = rng.random(len(person)) < 0.7
    person, item, y = person[kept], item[kept], rng.normal(size=kept.sum())
    with svmp.Model(coords={"person": 180, "item": 6}) as model:
        a = svmp.Normal("a", mu=0, tau=2.0, dims="person")
        b = svmp.Normal("b", mu=1, tau=0.5, dims="item")
        svmp.Normal("y", mu=a[person] + b[item], tau=3.0, observed=y)
    fit = svmp.fit(model, svmp.FullVB(), tol=1e-12, max_sweeps=5000)
    design = np.zeros((len(y), 186))
    design[np.arange(len(y)), person] = design[np.arange(len(y)), 180 + item] = 1.0
    precision = 3.0 * design.T @ design + np.diag(np.repeat([2.0, 0.5], [180, 6]))
    found = fit.covariance(["a", "b"], model=model).matrix
    np.testing.assert_allclose(found, np.linalg.inv(precision), rtol=1e-5, atol=1e-7)

"""Barren elements (without observed descendants) do not affect q of any others.

The evidence does not depend on them, so each network is compared with the one without them. Their
own q is computed from that of their parents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import svmp

METHODS = {
    "default": None,
    "full VB": svmp.FullVB(),
    "all children": svmp.Children(10**6),
    "batch of all": svmp.Batch(10**6),
}


class Case(NamedTuple):
    """Two models that differ in barren elements, the start, and the variables to compare.

    `kept` has, by variable, the elements of the smaller model.
    """

    whole: svmp.Model
    reduced: svmp.Model
    init: dict[str, Any]
    kept: dict[str, Any]


def mixture() -> Case:
    rng = np.random.default_rng(1)
    x = np.where(rng.random(60) < 0.4, rng.normal(-3, 1, 60), rng.normal(3, 1, 60))
    gone = rng.random(60) < 0.7

    def declare(x: Any, missing: Any) -> svmp.Model:
        with svmp.Model(coords={"k": 2, "row": len(x)}) as model:
            w = svmp.Dirichlet("w", a=1, dims="k")
            mu = svmp.Normal("mu", mu=0, tau=0.01, dims="k")
            tau = svmp.Gamma("tau", alpha=1, beta=1, dims="k")
            z = svmp.Categorical("z", p=w, dims="row")
            component = svmp.Normal.dist(mu=mu, tau=tau)
            svmp.Mixture("x", z, component, dims="row", observed=x, missing=missing)
        return model

    kept = {"z": ~gone, "w": ..., "mu": ..., "tau": ...}
    return Case(declare(x, gone), declare(x[~gone], False), {"mu": [-2.0, 2.0]}, kept)


def topics() -> Case:
    """Words are missing, all of them in some documents."""
    rng = np.random.default_rng(2)
    document, word = np.repeat(np.arange(12), 9), rng.integers(0, 7, 108)
    gone = (rng.random(108) < 0.3) | (document % 5 == 0)
    start = rng.dirichlet(np.ones(7), 3)

    def declare(rows: Any, missing: Any) -> svmp.Model:
        with svmp.Model(coords={"topic": 3, "doc": 12, "word": 7, "token": len(rows)}) as model:
            theta = svmp.Dirichlet("theta", a=0.5, dims=("doc", "topic"))
            phi = svmp.Dirichlet("phi", a=0.5, dims=("topic", "word"))
            z = svmp.Categorical("z", p=theta[document[rows]], dims="token")
            component = svmp.Categorical.dist(p=phi)
            svmp.Mixture("w", z, component, dims="token", observed=word[rows], missing=missing)
        return model

    rows = np.flatnonzero(~gone)
    init = {"phi": {"a": 1 + 20 * start}, "theta": {"a": np.ones((12, 3))}}
    kept = {"z": rows, "theta": ..., "phi": ...}
    return Case(declare(np.arange(108), gone), declare(rows, False), init, kept)


def groups() -> Case:
    """Schools without pupils do not affect the distribution of schools."""
    rng = np.random.default_rng(3)
    school = rng.integers(0, 8, 40)
    score = rng.normal(size=8)[school] + rng.normal(size=40)

    def declare(schools: int) -> svmp.Model:
        with svmp.Model(coords={"school": schools}) as model:
            mean = svmp.Normal("mean", mu=0, tau=0.1)
            spread = svmp.Gamma("spread", alpha=1, beta=1)
            effect = svmp.Normal("effect", mu=mean, tau=spread, dims="school")
            noise = svmp.Gamma("noise", alpha=1, beta=1)
            svmp.Normal("score", mu=effect[school], tau=noise, observed=score)
        return model

    kept = {"effect": slice(8), "mean": ..., "spread": ..., "noise": ...}
    return Case(declare(50), declare(8), {}, kept)


def vectors() -> Case:
    rng = np.random.default_rng(4)
    group = rng.integers(0, 5, 40)
    x = rng.normal(size=(5, 2))[group] + rng.normal(size=(40, 2))

    def declare(count: int) -> svmp.Model:
        with svmp.Model(coords={"group": count, "row": 40, "d": 2, "e": 2}) as model:
            mean = svmp.MvNormal("mean", mu=[0, 0], tau=0.1 * np.eye(2), dims="d")
            spread = svmp.Wishart("spread", nu=4, V=np.eye(2), dims=("d", "e"))
            centre = svmp.MvNormal("centre", mu=mean, tau=spread, dims=("group", "d"))
            svmp.MvNormal("x", mu=centre[group], tau=np.eye(2), dims=("row", "d"), observed=x)
        return model

    kept = {"centre": slice(5), "mean": ..., "spread": ...}
    return Case(declare(20), declare(5), {}, kept)


def leaves() -> Case:
    """Variables that were declared for prediction, and a parent that has no other children."""
    y = np.random.default_rng(5).normal(2, 1, 9)

    def declare(more: bool) -> svmp.Model:
        with svmp.Model(coords={"new": 30}) as model:
            mu = svmp.Normal("mu", mu=0, tau=0.01)
            tau = svmp.Gamma("tau", alpha=2, beta=1)
            svmp.Normal("y", mu=mu, tau=tau, observed=y)
            if more:
                shift = svmp.Normal("shift", mu=mu, tau=3)
                svmp.Normal("next", mu=mu + shift, tau=tau, dims="new")
                svmp.Poisson("count", mu=svmp.Gamma("rate", alpha=2, beta=tau))
        return model

    return Case(declare(True), declare(False), {}, {"mu": ..., "tau": ...})


def products() -> Case:
    """Factors of users and items without ratings, under learned means and precisions."""
    rng = np.random.default_rng(6)
    user, item = rng.integers(0, 12, 90), rng.integers(0, 9, 90)
    rating = rng.normal(size=90)
    start = {"u": rng.normal(size=(30, 2)), "v": rng.normal(size=(25, 2))}

    def declare(users: int, items: int) -> svmp.Model:
        with svmp.Model(coords={"user": users, "item": items, "k": 2}) as model:
            mean = svmp.Normal("mean", mu=0, tau=1, dims="k")
            precision = svmp.Gamma("precision", alpha=2, beta=2, dims="k")
            u = svmp.Normal("u", mu=mean, tau=precision, dims=("user", "k"))
            v = svmp.Normal("v", mu=0, tau=1, dims=("item", "k"))
            svmp.Normal("r", mu=svmp.dot(u[user], v[item]), tau=1, observed=rating)
        return model

    kept = {"u": slice(12), "v": slice(9), "mean": ..., "precision": ...}
    return Case(declare(30, 25), declare(12, 9), start, kept)


def logits() -> Case:
    rng = np.random.default_rng(7)
    person = rng.integers(0, 10, 80)
    answer = rng.integers(0, 2, 80)

    def declare(people: int) -> svmp.Model:
        with svmp.Model(coords={"person": people}) as model:
            spread = svmp.Gamma("spread", alpha=2, beta=1)
            skill = svmp.Normal("skill", mu=0, tau=spread, dims="person")
            svmp.Bernoulli("answer", logit=skill[person], observed=answer)
        return model

    return Case(declare(200), declare(10), {}, {"skill": slice(10), "spread": ...})


CASES: list[Callable[[], Case]] = [mixture, topics, groups, vectors, leaves, products, logits]
SLOW = [topics, products]
"""These need hundreds of sweeps to converge to so many digits."""


@pytest.mark.parametrize("kernels", [True, False], ids=["compiled", "plain"])
@pytest.mark.parametrize(
    ("case", "method"),
    [(c, m) for c in CASES for m in METHODS if c not in SLOW or m in ("default", "batch of all")],
)
def test_barren_elements_do_not_change_q_of_other_elements(
    case: Callable[[], Case], method: str, kernels: bool
) -> None:
    whole, reduced, init, kept = case()
    options: dict[str, Any] = {"tol": 1e-12, "max_sweeps": 5000, "kernels": kernels}
    options["steps"] = None if method == "default" else svmp.Constant(1.0)
    few = {n: v[kept[n]] if n in kept and isinstance(v, np.ndarray) else v for n, v in init.items()}
    one = svmp.fit(whole, METHODS[method], init=init, **options)
    two = svmp.fit(reduced, METHODS[method], init=few, **options)
    assert one.status == two.status == "converged"
    assert one.bound == pytest.approx(two.bound, rel=1e-9)
    for name, some in kept.items():
        np.testing.assert_allclose(
            one.mean(name, corrected=False)[some],
            two.mean(name, corrected=False),
            rtol=1e-3,
            atol=1e-4,
        )
        np.testing.assert_allclose(
            one.var(name, corrected=False)[some],
            two.var(name, corrected=False),
            rtol=1e-3,
            atol=1e-6,
        )


@pytest.mark.parametrize("kernels", [True, False], ids=["compiled", "plain"])
@pytest.mark.parametrize("method", [None, svmp.Children(2), svmp.Batch(5)], ids=repr)
def test_q_of_barren_elements_is_given_by_their_parents(method: Any, kernels: bool) -> None:
    fit = svmp.fit(leaves().whole, method, kernels=kernels, max_sweeps=30)
    tau = fit.posteriors["tau"].mean
    np.testing.assert_allclose(
        fit.posteriors["shift"].mu, fit.mean("mu", corrected=False), rtol=1e-12
    )
    np.testing.assert_allclose(fit.posteriors["shift"].tau, 3, rtol=1e-12)
    np.testing.assert_allclose(
        fit.posteriors["next"].mu,
        fit.mean("mu", corrected=False) + fit.mean("shift", corrected=False),
        rtol=1e-12,
    )
    np.testing.assert_allclose(fit.posteriors["next"].tau, tau, rtol=1e-12)
    np.testing.assert_allclose(fit.posteriors["rate"].alpha, 2, rtol=1e-12)
    np.testing.assert_allclose(fit.posteriors["rate"].beta, tau, rtol=1e-12)
    whole, _, init, kept = mixture()
    mixed = svmp.fit(whole, method, init=init, kernels=kernels, max_sweeps=30)
    weight = np.exp(mixed.posteriors["w"].moments)
    missing = mixed.posteriors["z"].p[~kept["z"]]
    np.testing.assert_allclose(
        missing, np.tile(weight / weight.sum(), (len(missing), 1)), rtol=1e-9
    )


@pytest.mark.parametrize("size", [3, 12])
def test_batches_of_documents_ignore_missing_words(size: int) -> None:
    whole, reduced, init, kept = topics()
    options: dict[str, Any] = {"init": init, "max_sweeps": 20}
    method = svmp.Batch(size, over="doc")
    one, two = svmp.fit(whole, method, **options), svmp.fit(reduced, method, **options)
    assert one.bound == pytest.approx(two.bound, rel=1e-8)
    np.testing.assert_allclose(one["phi"].a, two["phi"].a, rtol=1e-6)
    np.testing.assert_allclose(one["theta"].a, two["theta"].a, rtol=1e-4)
    np.testing.assert_allclose(one["z"].p[kept["z"]], two["z"].p, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kernels", [True, False], ids=["compiled", "plain"])
def test_batches_of_schools_ignore_those_without_pupils(kernels: bool) -> None:
    whole, reduced, _, kept = groups()
    options: dict[str, Any] = {"steps": svmp.Constant(1.0), "kernels": kernels, "tol": 1e-14}
    one = svmp.fit(whole, svmp.Batch(50, over="school"), **options)
    two = svmp.fit(reduced, svmp.Batch(8, over="school"), **options)
    assert one.bound == pytest.approx(two.bound, rel=1e-8)
    for name, some in kept.items():
        np.testing.assert_allclose(one.mean(name)[some], two.mean(name), rtol=1e-4, atol=1e-5)


def test_the_bound_rises_to_the_evidence_of_the_observed_rows() -> None:
    """With one hidden number and a leaf below it the bound is exact, as it is without the leaf."""
    y = np.array([1.0, 2.0, 4.0])
    with svmp.Model() as model:
        mu = svmp.Normal("mu", mu=0, tau=1)
        svmp.Normal("y", mu=mu, tau=1, observed=y)
        svmp.Normal("next", mu=mu, tau=1)
    fit = svmp.fit(model)
    covariance = np.eye(3) + 1
    evidence = -0.5 * (
        y @ np.linalg.solve(covariance, y) + np.linalg.slogdet(2 * np.pi * covariance)[1]
    )
    assert fit.bound == pytest.approx(evidence, rel=1e-12)
    assert fit["mu"].tau == pytest.approx(4)


@pytest.mark.parametrize("kernels", [True, False])
def test_predictions_of_groups_match_the_returned_q(kernels):
    """Batches of groups optimise all groups for the last bound, and so their descendants."""
    rng = np.random.default_rng(4)
    key = rng.integers(4, size=60)  # groups 4 and 5 have no rows
    with svmp.Model(coords={"g": 6, "row": 60}) as model:
        tau = svmp.Gamma("tau", alpha=1, beta=1)
        u = svmp.Normal("u", mu=svmp.Normal("m", mu=0, tau=0.1), tau=1, dims="g")
        svmp.Normal("new", mu=u, tau=tau, dims="g")
        svmp.Normal("y", mu=u[key], tau=tau, dims="row", observed=rng.normal(5, 1, 60))
    fit = svmp.fit(model, svmp.Batch(2, over="g"), max_sweeps=3, kernels=kernels)
    np.testing.assert_allclose(fit["new"].mu, fit.mean("u"), rtol=1e-12)
    np.testing.assert_allclose(fit["new"].tau, fit.mean("tau"), rtol=1e-12)
    np.testing.assert_allclose(fit.mean("u")[4:], fit.mean("m"), rtol=1e-12)


@pytest.mark.parametrize("method", [svmp.Children(2), svmp.Batch(5)], ids=["children", "batch"])
def test_the_bound_with_short_steps_is_that_of_the_model_without_empty_groups(method):
    """Elements without rows keep their prior and add nothing to the bound, for any steps."""
    rng = np.random.default_rng(5)
    key, y = rng.integers(3, size=50), rng.normal(size=50)

    def declare(groups: int) -> svmp.Model:
        with svmp.Model(coords={"g": groups, "row": 50}) as model:
            u = svmp.Normal("u", mu=1, tau=2, dims="g")
            tau = svmp.Gamma("tau", alpha=2, beta=1, dims="g")
            svmp.Normal("y", mu=u[key], tau=tau[key], dims="row", observed=y)
        return model

    fit = svmp.fit(declare(6), method, steps=svmp.Constant(0.1), max_sweeps=2, bound_every=1)
    init = {
        "u": {"mu": fit["u"].mu[:3], "tau": fit["u"].tau[:3]},
        "tau": {"alpha": fit["tau"].alpha[:3], "beta": fit["tau"].beta[:3]},
    }
    reduced = svmp.fit(declare(3), svmp.Children(1), init=init, max_sweeps=1)
    assert reduced.trace["bound"][0] == pytest.approx(fit.bound, rel=1e-12)
    assert fit.trace["bound"][-1] == fit.bound


@pytest.mark.parametrize("kernels", [True, False])
def test_batches_of_groups_without_observed_descendants(kernels):
    """Some draws contain only groups without observed rows."""
    rng = np.random.default_rng(6)
    with svmp.Model(coords={"k": 2, "g": 9, "d": 2, "row": 30}) as model:
        z = svmp.Categorical("z", p=svmp.Dirichlet("w", a=1, dims="k"), dims="g")
        mu = svmp.Normal("mu", mu=0, tau=0.1, dims="k")
        e = svmp.Mixture("e", z, svmp.Normal.dist(mu=mu, tau=1), dims="g")
        s = svmp.Gamma("s", alpha=2, beta=1, dims="d")
        x = svmp.MvNormal(
            "x", mu=svmp.data(np.zeros(2), dims="d"), tau=svmp.diag(s), dims=("g", "d")
        )
        key = rng.integers(2, size=30)
        svmp.Normal("y", mu=e[key], tau=1, dims="row", observed=rng.normal(size=30))
        svmp.MvNormal("v", x[key], np.eye(2), dims=("row", "d"), observed=rng.normal(size=(30, 2)))
    fit = svmp.fit(model, svmp.Batch(1, over="g"), max_sweeps=20, kernels=kernels)
    np.testing.assert_allclose(fit.mean("z")[2:], fit.mean("z")[2:3].repeat(7, axis=0))
    np.testing.assert_allclose(fit.mean("e")[2:], fit.mean("z")[2:] @ fit.mean("mu"))

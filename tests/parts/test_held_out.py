"""Held-out values of rows in parts: the scores are those of one table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import digamma

import svmp
from tests.parts.networks import codes, cut, joined

Columns = dict[str, np.ndarray]


class HeldOutCase(NamedTuple):
    """A network, the rows of its parts with a column "out", and what is held out."""

    declare: Callable[[Columns], svmp.Model]
    parts: list[Columns]
    values: Callable[[Columns], dict[str, Any]]
    order: tuple[str, ...]
    init: dict[str, Any]

    def fit(self, divided: bool, **options: Any) -> svmp.Fit:
        kept = {k: options.pop(k) for k in ("groups", "memory", "keep") if k in options}
        whole = joined(self.parts)
        given: dict[str, Any] = {"init": self.init, "tol": 0, "max_sweeps": 4}
        if divided:
            model: Any = svmp.Parts(self.declare, self.parts, **kept)
            given["held_out"] = self.values
        else:
            model, given["held_out"] = self.declare(whole), self.values(whole)
        return svmp.fit(model, svmp.FullVB(order=self.order), **given | options)


def masked(part: Columns, column: str, hidden: bool = True) -> np.ma.MaskedArray[Any, Any]:
    """Return a column without the rows that are held out, or with those alone."""
    return np.ma.masked_array(part[column], part["out"] == hidden)


def rows_of(rng: np.random.Generator, columns: Columns, part: np.ndarray) -> list[Columns]:
    out = rng.random(len(part)) < 0.2
    out[part == 1] = False  # a part of which nothing is held out
    return cut({**columns, "out": out}, part)


def factorization() -> HeldOutCase:
    rng = np.random.default_rng(1)
    user, item = rng.integers(30, size=500), rng.integers(12, size=500)
    rating = 3 + rng.normal(size=30)[user] * rng.normal(size=12)[item] + rng.normal(size=500)

    def declare(part: Columns) -> svmp.Model:
        ids, key = codes(part["user"])
        with svmp.Model(coords={"user": ids, "item": range(12), "factor": 2}) as model:
            u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
            v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
            a = svmp.Normal("a", mu=0, tau=1, dims="user")
            mean = a.iloc[key] + svmp.dot(u.iloc[key], v[part["item"]])
            svmp.Normal("r", mu=mean, tau=1, dims="rating", observed=masked(part, "rating"))
        return model

    parts = rows_of(rng, {"user": user, "item": item, "rating": rating}, user % 4)
    users = [user for part in parts for user in codes(part["user"])[0]]
    start = rng.normal(size=(30, 2))
    init = {"u": start[users], "a": start[users, 0], "v": start[:12]}
    return HeldOutCase(
        declare, parts, lambda part: {"r": masked(part, "rating", False)}, ("u", "a", "v"), init
    )


def mixture() -> HeldOutCase:
    rng = np.random.default_rng(2)
    y = np.where(rng.random(200) < 0.4, rng.normal(-2, 1, 200), rng.normal(2, 0.5, 200))

    def declare(part: Columns) -> svmp.Model:
        with svmp.Model(coords={"k": 2, "row": len(part["y"])}) as model:
            w = svmp.Dirichlet("w", a=1, dims="k")
            z = svmp.Categorical("z", p=w, dims="row")
            mu = svmp.Normal("mu", mu=0, tau=0.1, dims="k")
            component = svmp.Normal.dist(mu=mu, tau=1)
            svmp.Mixture("y", z, component, dims="row", observed=masked(part, "y"))
        return model

    parts = rows_of(rng, {"y": y}, np.repeat([0, 1, 2], [90, 40, 70]))
    values = lambda part: {"y": masked(part, "y", False)}  # noqa: E731
    return HeldOutCase(declare, parts, values, ("z", "w", "mu"), {"mu": np.array([-1.0, 1.0])})


def topics() -> HeldOutCase:
    rng = np.random.default_rng(3)
    doc, word = np.sort(rng.integers(16, size=600)), rng.integers(9, size=600)

    def declare(part: Columns) -> svmp.Model:
        ids, key = codes(part["doc"])
        coords = {"doc": ids, "topic": 3, "word": 9, "token": len(key)}
        with svmp.Model(coords=coords) as model:
            theta = svmp.Dirichlet("theta", a=0.5, dims=("doc", "topic"))
            phi = svmp.Dirichlet("phi", a=0.5, dims=("topic", "word"))
            z = svmp.Categorical("z", p=theta.iloc[key], dims="token")
            component = svmp.Categorical.dist(p=phi)
            svmp.Mixture("w", z, component, dims="token", observed=masked(part, "word"))
        return model

    parts = rows_of(rng, {"doc": doc, "word": word}, doc % 3)
    init = {"phi": {"a": 1 + rng.random((3, 9))}, "theta": {"a": np.ones((16, 3))}}
    return HeldOutCase(
        declare,
        parts,
        lambda part: {"w": masked(part, "word", False)},
        ("z", "theta", "phi"),
        init,
    )


CASES = {"factorization": factorization, "mixture": mixture, "topics": topics}


@pytest.mark.parametrize(
    "kernels", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["compiled", "plain"]
)
@pytest.mark.parametrize("options", [{}, {"groups": 3}, {"groups": 2, "memory": 1}], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_scores_are_those_of_the_undivided_table(
    name: str, options: dict[str, Any], kernels: bool
) -> None:
    case = CASES[name]()
    parts, whole = (case.fit(divided, kernels=kernels, **options) for divided in (True, False))
    np.testing.assert_allclose(parts.trace["bound"], whole.trace["bound"], rtol=1e-10)
    np.testing.assert_allclose(parts.trace["held_out"], whole.trace["held_out"], rtol=1e-8)


def declare_coin(part: Columns) -> svmp.Model:
    with svmp.Model() as model:
        p = svmp.Beta("p", alpha=1, beta=2)
        svmp.Bernoulli("x", p=p, dims="toss", observed=masked(part, "x"))
    return model


def coins() -> list[Columns]:
    rows = ([1.0, 0.0, 1.0], [False, False, True]), ([0.0, 1.0, 0.0], [True, False, False])
    return [{"x": np.array(x), "out": np.array(out)} for x, out in rows]


def test_score_of_a_coin() -> None:
    """After 2 of 4: q is Beta(3, 4); held out are a 1 and a 0."""
    values = lambda part: {"x": masked(part, "x", False)}  # noqa: E731
    fit = svmp.fit(svmp.Parts(declare_coin, coins()), held_out=values)
    expected = (digamma(3) + digamma(4)) / 2 - digamma(7)
    assert fit.trace["held_out"][-1] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_scores_change_no_bit_of_the_run(name: str) -> None:
    case = CASES[name]()
    scored, plain = case.fit(True), case.fit(True, held_out=None)
    assert scored.trace["bound"].tolist() == plain.trace["bound"].tolist()
    for variable in plain.posteriors:
        assert np.array_equal(scored[variable].natural, plain[variable].natural)


def test_bits_do_not_depend_on_memory_or_threads() -> None:
    case = factorization()
    first = case.fit(True, groups=4)
    for options in ({"memory": 1, "threads": 2}, {"keep": "disk", "threads": 1}):
        again = case.fit(True, groups=4, **options)
        assert again.trace["held_out"].tolist() == first.trace["held_out"].tolist()


def test_variables_that_are_local_in_some_parts_only_are_not_optimised() -> None:
    """Users of one part have a row each, so that they would be local to it, and others more."""
    user = np.array([0, 1, 2, 2, 3, 3, 3])
    out = np.array([False, True, False, True, False, False, True])
    rows = {"user": user, "item": user % 2, "rating": np.linspace(1, 5, 7), "out": out}
    base = factorization()
    case = base._replace(
        parts=cut(rows, (user > 1).astype(int)),
        init={"u": base.init["u"][:4], "a": np.arange(4.0), "v": base.init["v"]},
    )
    parts, whole = case.fit(True), case.fit(False)
    np.testing.assert_allclose(parts.trace["held_out"], whole.trace["held_out"], rtol=1e-8)


def test_resumed_runs_have_the_same_scores(tmp_path: Path) -> None:
    case, path = factorization(), tmp_path / "run.ckpt"
    whole = case.fit(True, max_sweeps=6)
    case.fit(True, max_sweeps=2, checkpoint=path, every=1)
    parts = svmp.Parts(case.declare, case.parts)
    resumed = svmp.fit(parts, resume=path, held_out=case.values, max_sweeps=6)
    assert resumed.trace["held_out"].tolist() == whole.trace["held_out"].tolist()
    other = lambda part: {"r": masked(part, "rating", False) + 1}  # noqa: E731
    for values, match in ((other, "other values"), (None, "other values in held_out")):
        with pytest.raises(svmp.FileError, match=match):
            svmp.fit(parts, resume=path, held_out=values)


def test_workers_give_the_same_bits() -> None:
    distributed = pytest.importorskip("distributed")
    case = factorization()
    here = case.fit(True, groups=2)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        there = case.fit(True, groups=2, client=client)
    assert there.trace["held_out"].tolist() == here.trace["held_out"].tolist()


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"x": [1.0]}, "held_out must be a function from the rows of a part"),
        (lambda _: [1.0], "part 0: the function held_out must return values by variable"),
        (lambda _: {"y": [1.0, 1.0, 1.0]}, "part 0: held_out names 'y'"),
        (lambda part: {"x": part["x"][:2]}, r"part 0: held_out: .* shape \(2,\)"),
        (lambda part: {"x": part["x"]}, "part 0: .* which is observed in training"),
        (lambda _: {}, "held_out leaves out nothing"),
        (lambda _: {"x": [np.nan] * 3}, "held_out leaves out nothing"),
    ],
)
def test_bad_held_out_values_are_refused(values: Any, match: str) -> None:
    with pytest.raises(svmp.ModelError, match=match):
        svmp.fit(svmp.Parts(declare_coin, coins()), held_out=values)

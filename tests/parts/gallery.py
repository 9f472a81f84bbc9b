"""The networks of the gallery that have groups, each divided into parts."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import svmp
from tests.parts.networks import Case, codes

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"


def script(name: str) -> ModuleType:
    """Return a script of the gallery as a module."""
    sys.path.insert(0, str(GALLERY))
    try:
        spec = importlib.util.spec_from_file_location(f"gallery_{name[:2]}", GALLERY / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(GALLERY))
    return module


def slices(whole: np.ndarray, cuts: tuple[int, ...]) -> list[np.ndarray]:
    return np.split(whole, cuts)


def other_mixtures(kind: str) -> Case:
    module = script("06_other_mixtures")
    pictures, _, counts = module.data(60)
    whole = pictures if kind == "Bernoulli" else counts
    rng = np.random.default_rng(1)
    weight = {"weight": {"a": np.array([1.0, 2.0, 1.5])}}
    if kind == "Bernoulli":
        shape = (3, 30)
        init = {"p": {"alpha": 1 + rng.random(shape), "beta": 1 + rng.random(shape)}} | weight
        order = ("z", "weight", "p")
    else:
        init = {"rate": {"alpha": np.ones(3), "beta": np.array([1.0, 0.2, 0.05])}} | weight
        order = ("z", "weight", "rate")
    parts = slices(whole, (20, 21, 45))
    return Case(lambda x: module.model(x, kind), parts, whole, ("z",), order, init)


def nested_groups() -> Case:
    module = script("09_nested_groups")
    score, of_pupil, of_school = module.data()
    district = of_school[of_pupil]

    def declare(rows: np.ndarray) -> svmp.Model:
        schools, school = codes(of_pupil[rows])
        districts, of = codes(of_school[np.array(schools)])
        with svmp.Model(coords={"district": districts, "school": schools}) as network:
            tau = {level: svmp.Gamma(f"tau_{level}", alpha=1, beta=1) for level in module.LEVELS}
            region = svmp.Normal("region", mu=0, tau=0.0001)
            mean = svmp.Normal("district", mu=region, tau=tau["district"], dims="district")
            each = svmp.Normal("school", mu=mean.iloc[of], tau=tau["school"], dims="school")
            svmp.Normal(
                "score", mu=each.iloc[school], tau=tau["pupil"], dims="pupil", observed=score[rows]
            )
        return network

    parts = [np.flatnonzero(district == d) for d in range(district.max() + 1)]
    precisions = tuple(f"tau_{level}" for level in module.LEVELS)
    order = ("school", "district", "region", *precisions)
    rng = np.random.default_rng(8)
    init = {
        "district": rng.normal(size=district.max() + 1),
        "school": rng.normal(size=len(of_school)),
    }
    return Case(declare, parts, np.concatenate(parts), ("district", "school"), order, init)


def tensor() -> Case:
    module = script("10_tensor")
    whole = module.data(24)[0]
    rng = np.random.default_rng(2)
    sizes = dict(zip("abc", whole.shape, strict=True))
    init = {name: rng.normal(size=(size, module.FACTORS)) for name, size in sizes.items()}
    parts = slices(whole, (9, 13))
    return Case(module.model, parts, whole, ("a",), ("a", "b", "c", "alpha", "tau"), init)


def factor_analysis() -> Case:
    module = script("08_factor_analysis")
    whole = module.data()[0][:120]
    rng = np.random.default_rng(3)
    sensors = whole.shape[1]
    init = {
        "x": rng.normal(size=(len(whole), module.FACTORS)),
        "w": rng.normal(size=(sensors, module.FACTORS)),
        "m": rng.normal(size=sensors),
    }
    parts = slices(whole, (50, 70))
    return Case(module.model, parts, whole, ("x",), ("x", "w", "m", "alpha", "tau"), init)


def football() -> Case:
    module = script("11_football")
    leagues = [module.stand_in(teams) for teams in (5, 6, 4)]

    def declare(part: Any) -> svmp.Model:
        scorer, opponent, venue, goals, names = part
        return module.model(scorer, opponent, venue, goals, names)

    parts, joint, begin = [], [], 0
    for number, (scorer, opponent, venue, goals, names) in enumerate(leagues):
        teams = [f"{number}: {name}" for name in names]
        parts.append((scorer, opponent, venue, goals, teams))
        joint.append((scorer + begin, opponent + begin, venue, goals))
        begin += len(teams)
    names = [team for part in parts for team in part[4]]
    whole = (*(np.concatenate(column) for column in zip(*joint, strict=True)), names)
    order = ("attack", "weakness", "level")
    rng = np.random.default_rng(4)
    init = {n: {"alpha": 5 + rng.random(begin), "beta": 5 + rng.random(begin)} for n in order[:2]}
    return Case(declare, parts, whole, ("attack", "weakness"), order, init)


def vectors() -> Case:
    rng = np.random.default_rng(5)
    users, items, count, factors = 30, 10, 400, 3
    user, item = np.sort(rng.integers(users, size=count)), rng.integers(items, size=count)
    rating = rng.normal(size=count)

    def declare(rows: np.ndarray) -> svmp.Model:
        ids, key = codes(user[rows])
        coords = {"user": ids, "item": range(items), "factor": factors}
        with svmp.Model(coords=coords) as network:
            spread = svmp.Wishart("spread", nu=factors + 1, V=np.eye(factors), dims=("factor",) * 2)
            u = svmp.MvNormal("u", mu=0, tau=np.eye(factors), dims=("user", "factor"))
            v = svmp.MvNormal("v", mu=0, tau=spread, dims=("item", "factor"))
            mean = svmp.dot(u.iloc[key], v[item[rows]])
            svmp.Normal("r", mu=mean, tau=2, dims="rating", observed=rating[rows])
        return network

    parts = slices(np.arange(count), tuple(np.searchsorted(user, (7, 20))))
    init = {"u": rng.normal(size=(users, factors)), "v": rng.normal(size=(items, factors))}
    return Case(declare, parts, np.arange(count), ("u",), ("u", "v", "spread"), init)


def events() -> Case:
    rng = np.random.default_rng(6)
    users, items, count, factors = 30, 10, 400, 2
    user, item = np.sort(rng.integers(users, size=count)), rng.integers(items, size=count)
    taken = rng.integers(2, size=count)

    def declare(rows: np.ndarray) -> svmp.Model:
        ids, key = codes(user[rows])
        with svmp.Model(coords={"user": ids, "item": range(items), "factor": factors}) as network:
            u = svmp.Normal("u", mu=0, tau=1, dims=("user", "factor"))
            v = svmp.Normal("v", mu=0, tau=1, dims=("item", "factor"))
            b = svmp.Normal("b", mu=0, tau=1, dims="item")
            logit = b[item[rows]] + svmp.dot(u.iloc[key], v[item[rows]])
            svmp.Bernoulli("taken", logit=logit, dims="event", observed=taken[rows])
        return network

    parts = slices(np.arange(count), tuple(np.searchsorted(user, (7, 20))))
    init = {
        "u": rng.normal(size=(users, factors)),
        "v": rng.normal(size=(items, factors)),
        "b": rng.normal(size=items),
    }
    return Case(declare, parts, np.arange(count), ("u",), ("u", "v", "b"), init)


def clusters() -> Case:
    rng = np.random.default_rng(7)
    whole = rng.normal(size=(90, 2)) + 4 * rng.integers(2, size=(90, 1))

    def declare(y: np.ndarray) -> svmp.Model:
        with svmp.Model(coords={"row": len(y), "component": 2, "axis": 2}) as network:
            weight = svmp.Dirichlet("weight", a=1, dims="component")
            z = svmp.Categorical("z", p=weight, dims="row")
            spread = svmp.Wishart("spread", nu=3, V=np.eye(2), dims=("component", "axis", "axis"))
            mu = svmp.MvNormal("mu", mu=0, tau=0.1 * np.eye(2), dims=("component", "axis"))
            component = svmp.MvNormal.dist(mu=mu, tau=spread)
            svmp.Mixture("y", z, component, dims=("row", "axis"), observed=y)
        return network

    init = {
        "mu": np.array([[0.0, 0.0], [3.0, 3.0]]),
        "weight": {"a": np.ones(2)},
        "spread": {"nu": np.full(2, 4.0), "V": np.stack([np.eye(2) / 4] * 2)},
    }
    parts = slices(whole, (40, 41))
    return Case(declare, parts, whole, ("z",), ("z", "weight", "mu", "spread"), init)


GALLERY_CASES: dict[str, Callable[[], Case]] = {
    "06 pictures": lambda: other_mixtures("Bernoulli"),
    "06 counts": lambda: other_mixtures("Poisson"),
    "08 factor analysis": factor_analysis,
    "09 nested groups": nested_groups,
    "10 tensor": tensor,
    "11 football": football,
    "vectors": vectors,
    "events": events,
    "clusters": clusters,
}

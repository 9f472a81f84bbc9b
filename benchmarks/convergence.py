"""Convergence: sweeps of the default against those of the same method without acceleration.

"Without" has no over-relaxation, no rotation of factors, and starts near the prior. Its bound after
12, 25 and 50 sweeps' worth of accesses is taken, and the accesses and seconds are measured until
the default has reached it: the mean of three seeds. In the gallery it is full VB, which updates one
variable after the other, from a start near the prior, after 10 and 30 sweeps.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import DATA, Row, main

import svmp
from svmp.datasets import netflix_shaped
from svmp.families import MvNormal, Normal
from svmp.inference.methods import Growing, Method
from svmp.inference.program.default import choose
from svmp.network.network import Network
from svmp.ratings import Ratings
from svmp.study.netflix import matrix_factorization

AFTER = (12, 25, 50)
"""Sweeps without acceleration whose bound is to be reached."""
MOST = 1_000_000
"""Most ratings of a data set; of more, a random sample is taken."""
ROUNDING = 1e-9
"""A bound is reached up to rounding, relative to its size."""
GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
Curve = dict[str, Any]
"""The sweeps, seconds and bounds of a run."""


def ratings_of(name: str, quick: bool) -> Ratings | None:
    """Return a data set; None if it is not there."""
    if name == "Netflix-shaped":
        return netflix_shaped(0.02 if quick else 1.0)
    file = DATA / name.lower() / "ratings.npz"
    if not file.exists():
        return None
    with np.load(file) as arrays:
        user, item, rating = (arrays[key] for key in arrays.files[:3])
    most = 20_000 if quick else MOST
    some = np.random.default_rng(0).permutation(len(rating))[:most]
    (users, user), (items, item) = (
        np.unique(keys[some], return_inverse=True) for keys in (user, item)
    )
    values = rating[some].astype(np.float32)
    return Ratings.of_keys(user, item, values, len(users), len(items))


def near_prior(network: Network, seed: int) -> dict[str, Any]:
    """Return a start of Gaussian variables near their prior, with no regard to the data."""
    found = {}
    for index, (name, variable) in enumerate(network.hidden.items()):
        if isinstance(variable.family, Normal | MvNormal):
            noise = np.random.default_rng([seed, index]).standard_normal(variable.shape)
            found[name] = 0.3 * noise
    return found


def run(network: Network, method: Method, seed: int, sweeps: int, init: Any = None) -> Curve:
    fit = svmp.fit(network, method, seed=seed, init=init, max_sweeps=sweeps, tol=0, progress=False)
    trace = fit.trace
    exact = np.asarray(trace["bound_se"]) == 0
    sweep = np.asarray(trace["accesses"]) / network.sweep_accesses
    return {
        "sweeps": sweep[exact],
        "seconds": np.asarray(trace["seconds"])[exact],
        "bound": np.asarray(trace["bound"])[exact],
    }


def first_reaching(curve: Curve, goal: float) -> int:
    """Return the place of the first bound that reaches the goal; the last if none does."""
    reached = curve["bound"] >= goal - ROUNDING * abs(goal)
    return int(np.append(np.flatnonzero(reached), -1)[0])


def factorization(name: str, ratings: Ratings, factors: int, seeds: int) -> Iterator[Row]:
    network = Network(matrix_factorization(ratings, factors))
    method, _, _ = choose(network, None, None)
    assert isinstance(method, Growing)
    run(network, method, 0, 2)  # compiles, and sorts the rows
    found: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for seed in range(seeds):
        without = replace(method, relax=False)
        old = run(network, without, seed, AFTER[-1], near_prior(network, seed))
        new = run(network, method, seed, AFTER[-1])
        for sweeps in AFTER:
            goal = np.interp(sweeps, old["sweeps"], old["bound"])
            reached = first_reaching(new, goal)
            for unit in ("sweeps", "seconds"):
                before = float(np.interp(sweeps, old["sweeps"], old[unit]))
                found.setdefault((sweeps, unit), []).append((float(new[unit][reached]), before))
    for (sweeps, unit), pairs in found.items():
        mine, theirs = np.mean(pairs, axis=0)
        what = f"{name}, K = {factors}: bound after {sweeps} sweeps, {unit}"
        yield Row(what, mine, theirs, "without", unit[:1] if unit == "seconds" else unit)


def gallery() -> Iterator[tuple[str, svmp.Model]]:
    """Yield the networks of the gallery that have blocks of Normals which share rows."""
    sys.path.insert(0, str(GALLERY))

    def load(stem: str) -> Any:
        spec = importlib.util.spec_from_file_location(stem, GALLERY / f"{stem}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    script = load("04_matrix_factorization")
    train, _ = script.data()
    for kind in script.KINDS:
        yield f"04 matrix factorization, {kind}", script.model(*train, kind)
    script = load("08_factor_analysis")
    yield "08 factor analysis", script.model(script.data()[0])
    script = load("09_nested_groups")
    yield "09 nested groups", script.model(*script.data())
    script = load("10_tensor")
    yield "10 tensor", script.model(script.data()[0])


def of_gallery(name: str, model: svmp.Model, seeds: int, sweeps: int) -> Iterator[Row]:
    """Yield the sweeps of the default to the bound of full VB from a start near the prior."""
    network, needed = Network(model), []
    method, _, _ = choose(network, None, None)
    for seed in range(seeds):
        full = run(network, svmp.FullVB(), seed, sweeps, near_prior(network, seed))
        new = run(network, method, seed, 2 * sweeps)
        needed.append(float(new["sweeps"][first_reaching(new, full["bound"][-1])]))
    what = f"{name}: bound after {sweeps} sweeps"
    yield Row(what, float(np.mean(needed)), float(sweeps), "full VB", "sweeps")


def measure(quick: bool) -> Iterator[Row]:
    seeds = 1 if quick else 3
    for name in ("Netflix-shaped", "goodbooks", "MovieTweetings"):
        ratings = ratings_of(name, quick)
        if ratings is None:
            yield Row(f"{name}", note="the data set is not there")
            continue
        for factors in (5,) if quick else (5, 20):
            yield from factorization(name, ratings, factors, seeds)
    for name, model in gallery():
        for sweeps in (10,) if quick else (10, 30):
            yield from of_gallery(name, model, seeds, sweeps)


if __name__ == "__main__":
    main(measure, __doc__)

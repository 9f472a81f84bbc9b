"""What the generic tests run on: all families and factors, with random parameters.

These are well inside their domain, so that the tolerances of the tests are those of rounding.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

import numpy as np
from numpy.random import Generator

from svmp.factors.factor import Factor
from svmp.families.family import Array, Family
from svmp.network.partly_known import base_of

Interface = TypeVar("Interface")


def implementations(package: ModuleType, interface: type[Interface]) -> list[type[Interface]]:
    """Return all classes of a package that implement an interface, by listing its folder."""
    modules = [
        importlib.import_module(f"{package.__name__}.{info.name}")
        for info in pkgutil.iter_modules(package.__path__)
    ]
    return [
        thing
        for module in modules
        for thing in vars(module).values()
        if isinstance(thing, type)
        and interface in thing.__mro__[1:]
        and thing.__module__ == module.__name__
    ]


def logits(family: Family, rng: Generator, count: int) -> Array:
    return rng.normal(size=(count, family.size))


def positive_definite(rng: Generator, count: int, dimension: int) -> Array:
    root = rng.normal(size=(count, dimension, dimension)) / np.sqrt(dimension)
    return root @ np.swapaxes(root, -1, -2) + 0.3 * np.eye(dimension)


def mvnormals(family: Family, rng: Generator, count: int) -> Array:
    tau = positive_definite(rng, count, family.dimension)  # type: ignore[attr-defined]
    return family.natural(rng.normal(size=tau.shape[:-1]), tau)


def wisharts(family: Family, rng: Generator, count: int) -> Array:
    d = family.dimension  # type: ignore[attr-defined]
    scale = positive_definite(rng, count, d)
    return family.natural(d - 1 + rng.gamma(3.0, 1.0, count) + 0.5, scale)


NATURALS: dict[str, Callable[[Family, Generator, int], Array]] = {
    "Bernoulli": logits,
    "Beta": lambda f, rng, n: f.natural(rng.gamma(3.0, 1.0, n) + 0.5, rng.gamma(3.0, 1.0, n) + 0.5),
    "Binomial": logits,
    "Categorical": logits,
    "Dirichlet": lambda f, rng, n: f.natural(rng.gamma(3.0, 1.0, (n, f.size)) + 0.5),
    "Exponential": lambda f, rng, n: f.natural(rng.gamma(3.0, 0.5, n) + 0.2),
    "Gamma": lambda f, rng, n: f.natural(
        rng.gamma(3.0, 1.0, n) + 0.2, rng.gamma(3.0, 0.5, n) + 0.2
    ),
    "Multinomial": logits,
    "MvNormal": mvnormals,
    "Normal": lambda f, rng, n: f.natural(rng.normal(size=n), rng.gamma(3.0, 0.5, size=n) + 0.1),
    "Poisson": lambda f, rng, n: f.natural(rng.gamma(3.0, 1.0, n) + 0.2),
    "Wishart": wisharts,
}
"""Random natural parameters of each family, by its name."""


def natural_of(family: Family, rng: Generator, count: int) -> Array:
    """Return `count` random natural parameters of a family."""
    family = base_of(family)
    return NATURALS[type(family).__name__](family, rng, count)


def constants_of(factor: Factor, rng: Generator, length: int, count: int) -> dict[str, Array]:
    """Return random values for the constants of a factor, one for each of `count` rows."""
    if not factor.constants:
        return {}
    if "n" in factor.constants:
        return {"n": rng.integers(0, 9, count).astype(np.float64)}
    family = factor.child.sized(length)
    standard = family.standard(natural_of(family, rng, count))
    return {name: standard[name] for name in factor.constants}

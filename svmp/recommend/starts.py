"""Where the network of ratings starts: biases at shrunken means, factors near 0.

Biases are fitted first (stages.py). Factors start near 0, the first of them along the leading
singular vectors of what the biases leave (spectral.py), and the biases where they are by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from svmp.models.factorization import Covariance
from svmp.ratings import Ratings
from svmp.recommend.network import FIRM, VectorPrior, bias_at, guesses
from svmp.recommend.spectral import leading, leading_directions

SHRUNK, ROUNDS, LEAST = 3.0, 2, 0.01
"""Ratings at the mean that are added to those of each user and item where biases start, how often
both are computed, and least variance of what they leave."""
MANY = 30
"""If `max_sweeps` is at least MANY, precisions start near their prior, and covariance="auto" may
choose covariances."""
NEAR, SURE = 0.5, 0.1
"""Standard deviation of the starting means, and starting variance, relative to the prior's."""


def start(
    users: int,
    items: int,
    differ: bool,
    factors: int,
    covariance: Covariance,
    seed: int,
    spectral: bool = False,
) -> dict[str, Any]:
    """Return a start of the factors near 0 with small variances: large ones would act as noise.

    If all ratings are equal, factors start, and stay, at 0. With `spectral`, the first factors
    start at 0 too: `spectral_start` sets them later.
    """
    if not factors:
        return {}
    rng = np.random.default_rng([seed, 2])
    known = leading(users, items, factors) if spectral else 0
    found: dict[str, Any] = {}
    for name, size in (("u", users), ("v", items)):
        prior = VectorPrior.of(name, size, factors, FIRM)
        precision = prior.alpha / prior.beta
        mean, some = np.tile(prior.mean, (size, 1)), slice(known, factors)
        width = NEAR / np.sqrt(precision[some]) if differ else 0.0
        mean[:, some] = width * rng.standard_normal((size, factors - known))
        tau = precision / SURE
        found[name] = {"mu": mean, "tau": np.diag(tau) if covariance == "full" else tau}
        found[f"of_{name}"] = {"alpha": precision, "beta": 1.0}
    return found


def vector_start(init: Mapping[str, Any], factors: int) -> dict[str, Any]:
    """Return a start of vectors from one of factors, and from biases that were fitted alone."""
    found = {name: q for name, q in init.items() if name not in ("a", "b", "of_a", "of_b")}
    for name, bias in (("u", "a"), ("v", "b")):
        place, alone = bias_at(name, factors), init[bias]
        mean, tau = np.array(init[name]["mu"]), np.array(init[name]["tau"])
        precision = np.array(init[f"of_{name}"]["alpha"])
        mean[:, place] = alone.mean
        tau[(place, place) if tau.ndim > 1 else place] = 1 / alone.var.mean()
        precision[place] = init[f"of_{bias}"].mean
        found[name] = {"mu": mean, "tau": tau}
        found[f"of_{name}"] = {"alpha": precision, "beta": 1.0}
    return found


def bias_start(rows: Ratings, sweeps: float) -> dict[str, Any]:
    """Return a start of the biases and, if there are few sweeps, of the precisions.

    The biases of items are means of what users' means leave, shrunk towards 0: otherwise the first
    sweep would give the users what belongs to their items. The precisions are those of the biases
    and of the residuals, with which the first sweep is almost as good as the third from others.
    With many sweeps factors predict better where the precision of the noise starts low.
    """
    users, items = rows.user, rows.item
    of_user = np.bincount(users, minlength=rows.users)
    of_item = np.bincount(items, minlength=rows.items)
    left = rows.rating
    for _ in range(ROUNDS):
        b = np.bincount(items, left, rows.items) / (of_item + SHRUNK)
        left = rows.rating - b[items]
        a = np.bincount(users, left, rows.users) / (of_user + SHRUNK)
        left = rows.rating - a[users]
    b = np.bincount(items, left, rows.items) / (of_item + SHRUNK)
    if sweeps >= MANY:
        return {"b": {"mu": b, "tau": of_item + SHRUNK}}
    noise = 1 / max(float(np.mean((left - b[items]) ** 2)), LEAST)

    def precision(means: Any, count: Any) -> dict[str, float]:
        squares = means**2 + 1 / (noise * (count + SHRUNK))
        return {"alpha": 1 / float(squares[count > 0].mean()), "beta": 1.0}

    return {
        "b": {"mu": b, "tau": noise * (of_item + SHRUNK)},
        "of_a": precision(a, of_user),
        "of_b": precision(b, of_item),
        "noise": {"alpha": noise, "beta": 1.0},
    }


def spectral_start(
    rows: Ratings, init: Mapping[str, Any], factors: int, seed: int
) -> dict[str, Any]:
    """Return the start of factors, the first of them along the leading singular vectors."""
    found = {}
    q = {name: init[name] for name in ("a", "b")}
    directions = leading_directions(rows, q, factors, seed)
    for name, lines in zip("uv", directions, strict=True):
        mean, count = np.array(init[name]["mu"]), lines.shape[1]
        width = NEAR / np.sqrt(guesses(factors)[:count])
        mean[:, :count] = width * lines
        found[name] = {**init[name], "mu": mean}
    return found

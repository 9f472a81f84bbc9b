"""The paper's matrix factorization against BayesPy: seconds a sweep, 100,000 ratings.

Both start from the same q and are checked to have the same bound after the sweeps. q is factorised
over all scalars, or has a full covariance for each user and item.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, Unavailable, ask, in_turn, iteration_seconds, main

import svmp
from svmp.datasets import netflix_shaped
from svmp.models import NormalPrior, UserItemPairs
from svmp.models import matrix_factorization as factorization
from svmp.ratings import Ratings
from svmp.study.netflix import matrix_factorization

SWEEPS = 3
ITERATIONS = 20
"""Iterations of svmp, of which the fastest counts: they are short compared with disturbances."""
AGREE = 1e-4


def with_vectors(ratings: Ratings, factors: int) -> svmp.Model:
    """Declare the paper's network with a vector for each user and item."""
    prior = NormalPrior(0, np.eye(factors))
    return factorization(
        UserItemPairs(ratings.user, ratings.item, ratings.users, ratings.items),
        ratings.rating,
        factors,
        priors={"u": prior, "v": prior},
        covariance="full",
    )


def compare(ratings: Ratings, factors: int, vectors: bool, folder: Path) -> Row:
    q = "a covariance each" if vectors else "q factorised"
    what = f"full VB sweep, K = {factors}, {q}, {len(ratings.rating):,} ratings"
    rng = np.random.default_rng(factors)
    means = {"u": ratings.users, "v": ratings.items}
    means = {name: 0.3 * rng.standard_normal((n, factors)) for name, n in means.items()}
    path = folder / "ratings.npz"
    np.savez(path, user=ratings.user, item=ratings.item, rating=ratings.rating, **means)
    request = {"data": str(path), "sweeps": SWEEPS, "vectors": vectors}
    try:
        theirs = ask("bayespy", request, "bayespy_vmp")
    except Unavailable as reason:
        return Row(what, against="BayesPy", note=str(reason))
    model = (with_vectors if vectors else matrix_factorization)(ratings, factors)
    tau: Any = np.eye(factors) if vectors else 1.0
    init = {name: {"mu": mean, "tau": tau} for name, mean in means.items()}
    fit = svmp.fit(model, svmp.FullVB(), init=init, max_sweeps=SWEEPS, tol=0, progress=False)
    apart = abs(fit.bound / theirs["bound"] - 1)
    assert apart < AGREE, f"the bounds are {apart:.1e} apart"
    unit = svmp.Constant(1.0)
    least = in_turn(
        {
            "svmp": lambda: iteration_seconds(model, svmp.FullVB(), unit, ITERATIONS, init=init),
            "BayesPy": lambda: ask("bayespy", request, "bayespy_vmp")["seconds"],
        },
        rounds=2,
    )
    return Row(what, least["svmp"], least["BayesPy"], "BayesPy", wanted=1 / 100)


def measure(quick: bool) -> Iterator[Row]:
    ratings = netflix_shaped(0.01 if quick else 0.1)
    with tempfile.TemporaryDirectory() as folder:
        for vectors in (False, True):
            for factors in (5,) if quick else (5, 20):
                yield compare(ratings, factors, vectors, Path(folder))


if __name__ == "__main__":
    main(measure, __doc__)

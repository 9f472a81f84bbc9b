"""The paper's matrix factorization against NumPyro's SVI: time to the same exact bound, K = 5.

NumPyro's AutoNormal has the same factorised q. It takes a fixed number of Adam steps over all
ratings (the better of two rates). svmp's default is timed from the declaration of the model until
its bound reaches NumPyro's highest. Compiling is not counted for either, nor NumPyro's bounds.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from common import Row, Unavailable, ask, main

import svmp
from svmp.datasets import netflix_shaped
from svmp.ratings import Ratings
from svmp.study.netflix import matrix_factorization

FACTORS = 5
RATES = (0.03, 0.1)


def time_to(ratings: Ratings, target: float, limit: float) -> float | None:
    """Return svmp's seconds to the target, including its bounds; None beyond the limit."""
    began = time.perf_counter()
    model = matrix_factorization(ratings, FACTORS)
    declared = time.perf_counter() - began
    fit = svmp.fit(model, max_seconds=limit, progress=False)
    reached = np.flatnonzero(fit.trace["bound"] >= target)
    return declared + float(fit.trace["seconds"][reached[0]]) if len(reached) else None


def measure(quick: bool) -> Iterator[Row]:
    ratings = netflix_shaped(0.05 if quick else 1.0)
    time_to(netflix_shaped(0.01), 0.0, 1.0)  # compiles
    what = f"time to the same bound, K = {FACTORS}, {len(ratings.rating):,} ratings"
    rng = np.random.default_rng(0)
    start = {
        x: 0.3 * rng.standard_normal((n, FACTORS))
        for x, n in zip("uv", (ratings.users, ratings.items), strict=True)
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.npz"
        table = {"user": ratings.user, "item": ratings.item, "rating": ratings.rating}
        np.savez(path, **table, **{x: mean.astype(np.float32) for x, mean in start.items()})
        request = {"data": str(path), "seed": 0, "steps": 100 if quick else 600, "every": 20}
        try:
            curves = [ask("numpyro", {**request, "rate": x}, "numpyro_svi")["curve"] for x in RATES]
        except Unavailable as reason:
            yield Row(what, against="NumPyro SVI", note=str(reason))
            return
    target = max(bound for curve in curves for _, bound in curve)
    theirs = next(s for curve in curves for s, bound in curve if bound == target)
    mine = time_to(ratings, target, 2 * theirs)
    note = f"bound {target:,.0f}"
    yield Row(what, mine, theirs, "NumPyro SVI", wanted=1 / 20, note=note)


if __name__ == "__main__":
    main(measure, __doc__)

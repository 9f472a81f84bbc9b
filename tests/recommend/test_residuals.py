"""Residuals of ratings, plain and clipped, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from svmp import families
from svmp.kernels.machine.threads import use_threads
from svmp.posterior.marginals.posterior import Posterior
from svmp.ratings import Ratings
from svmp.recommend.residuals import BLOCK, clipped, residuals


def posteriors(a: Any, b: Any, u: Any = None, v: Any = None, noise: Any = 1.0) -> dict[str, Any]:
    """Return q with these means, and variances of 1."""
    found = {}
    for name, mean in {"a": a, "b": b, "u": u, "v": v}.items():
        if mean is not None:
            mean = np.asarray(mean, np.float64)
            natural = families.Normal().natural(mu=mean.ravel(), tau=np.ones(mean.size))
            dims = ("element", "factor")[: mean.ndim]
            found[name] = Posterior(name, dims, mean.shape, families.Normal(), natural)
    precision = np.atleast_1d(np.asarray(noise, np.float64))
    natural = families.Gamma().natural(alpha=2 * precision, beta=np.full(precision.shape, 2.0))
    plate = () if np.ndim(noise) == 0 else precision.shape
    found["noise"] = Posterior("noise", ("user",)[: len(plate)], plate, families.Gamma(), natural)
    return found


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("factors", [0, 3])
@pytest.mark.parametrize("shared", [True, False])
def test_residuals_are_those_of_numpy(threads: int, factors: int, shared: bool) -> None:
    rng = np.random.default_rng(factors)
    count, users, items = 6 * BLOCK + 7, 40, 30
    user, item = rng.integers(0, users, count), rng.integers(0, items, count)
    rows = Ratings.of_keys(user, item, 2 * rng.standard_normal(count), users, items)
    a, b = rng.standard_normal(users), rng.standard_normal(items)
    u, v = rng.standard_normal((users, factors)), rng.standard_normal((items, factors))
    noise = 0.7 if shared else rng.uniform(0.5, 2, users)
    q = posteriors(a, b, *((u, v) if factors else ()), noise=noise)
    mean = a[user] + b[item] + np.einsum("rk,rk->r", u[user], v[item])
    reach = 1.5 / np.sqrt(np.broadcast_to(noise, users))[user]
    rest = rows.rating - mean
    with use_threads(threads, tell=False):
        np.testing.assert_allclose(residuals(rows, q), rest, atol=1e-5)
        found = clipped(rows, q, 1.5)
    np.testing.assert_allclose(found.rating, mean + np.clip(rest, -reach, reach), atol=1e-5)
    inside = np.abs(rest) < reach - 1e-4
    assert np.array_equal(found.rating[inside], rows.rating[inside])

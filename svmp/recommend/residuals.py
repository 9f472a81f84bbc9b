"""Residuals of ratings, r - E[a_user + b_item + u_user . v_item], in loops over blocks of rows.

Clipped at c standard deviations of the noise of their user, they turn the squared error into
Huber's loss: the mean of q is fitted to E[r] + clip(r - E[r], -c s, c s) instead of r.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from svmp.kernels.machine.compiling import claim, shared
from svmp.kernels.machine.sorting import read_only
from svmp.kernels.machine.threads import share, threads_for
from svmp.kernels.vectors.means import vector_means
from svmp.posterior.marginals.posterior import Posterior
from svmp.ratings import Ratings

Floats = NDArray[np.float32]
BLOCK = 4096
"""Rows that a thread takes at a time."""


class Means(NamedTuple):
    """Means of q in single precision: biases and factors of users and of items."""

    a: Floats
    b: Floats
    u: Floats
    v: Floats

    @classmethod
    def of(cls, q: Mapping[str, Posterior]) -> Means:
        """Return the means of q; there may be no factors, or biases may be among them."""
        found = {n: np.ascontiguousarray(mean_of(q[n]), np.float32) for n in "abuv" if n in q}
        for bias, factors in ("au", "bv"):
            size = len(found[bias if bias in found else factors])
            found.setdefault(bias, np.zeros(size, np.float32))
            found.setdefault(factors, np.zeros((size, 0), np.float32))
        return cls(*(read_only(found[n]) for n in "abuv"))


def mean_of(q: Posterior) -> NDArray[Any]:
    """Return the mean of q."""
    if q.family.gaussian == "vector":
        return vector_means(q.natural, q.family.length)
    return q.mean


def clipped(rows: Ratings, q: Mapping[str, Posterior], cut: float) -> Ratings:
    """Return ratings whose residuals are clipped at `cut` standard deviations of the noise."""
    reach = cut / np.sqrt(np.broadcast_to(q["noise"].mean, rows.users))
    values = _run(rows, Means.of(q), reach.astype(np.float32), whole=True)
    return Ratings(rows.user, rows.item, values, rows.user_ids, rows.item_ids)


def residuals(rows: Ratings, q: Mapping[str, Posterior]) -> Floats:
    """Return ratings minus their means under q."""
    return _run(rows, Means.of(q), np.full(rows.users, np.inf, np.float32), whole=False)


def _run(rows: Ratings, means: Means, reach: Floats, whole: bool) -> Floats:
    out = np.empty(len(rows), np.float32)
    columns = (read_only(x) for x in (rows.user, rows.item, rows.rating, reach))
    with threads_for(len(rows)):
        share(_clip, *columns, *means, whole, out)
    return out


@shared
def _clip(taken, user, item, rating, reach, a, b, u, v, whole, out):  # type: ignore[no-untyped-def] # pragma: no cover
    first = claim(taken, BLOCK)
    while first < len(out):
        for row in range(first, min(first + BLOCK, len(out))):
            m, n = np.uintp(user[row]), np.uintp(item[row])
            mean = a[m] + b[n]
            for k in range(u.shape[1]):
                mean += u[m, k] * v[n, k]
            residual, most = rating[row] - mean, reach[m]
            beyond = max(residual - most, np.float32(0)) + min(residual + most, np.float32(0))
            out[row] = (rating[row] if whole else residual) - beyond
        first = claim(taken, BLOCK)

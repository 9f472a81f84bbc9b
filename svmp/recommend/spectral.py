"""Where factors start: the leading singular vectors of what biases leave unexplained.

Let R be the residuals of the biases, one row per user and one column per item, with 0 where there
is no rating, and each divided by sqrt((n_user + DAMPING) (n_item + DAMPING)) for n ratings, so that
no user and no item dominates. With R = U S V', factor k of the users starts along column k of U,
and that of the items along column k of V. Random factors take some ten sweeps to get there. A sweep
is about one power iteration, which subspace iteration (Halko, Martinsson and Tropp, 2011, algorithm
4.4) does at a fraction of the cost, as it solves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from svmp.posterior.marginals.posterior import Posterior
from svmp.ratings import Ratings
from svmp.recommend.residuals import residuals

LEADING, MORE, POWERS = 8, 4, 1
"""Most factors that start so, dimensions of the iteration beyond these, and its repetitions."""
DAMPING = 20.0
"""Ratings that are added to the number of each user and item."""
WIDEST = 3.0
"""Entries of the vectors are clipped at this multiple of their root mean square: vectors that few
users or items dominate are noise."""
Array = NDArray[Any]


def leading_directions(
    rows: Ratings, q: Mapping[str, Posterior], factors: int, seed: int
) -> tuple[Array, Array]:
    """Return the directions of the first factors of users and of items, with mean square about 1.

    Parameters
    ----------
    rows
        The ratings to fit.
    q
        The biases.
    factors
        Number of factors; at most LEADING of them get a direction.
    seed
        Of the random start of the iteration.
    """
    count = leading(rows.users, rows.items, factors)
    size = min(count + MORE, rows.users, rows.items)
    of_user, of_item = weights(rows.user, rows.users), weights(rows.item, rows.items)
    values = residuals(rows, q) * of_user[rows.user] * of_item[rows.item]
    keys, shape = (rows.user, rows.item), (rows.users, rows.items)
    table = sparse.coo_array((values, keys), shape=shape).tocsr()
    rng = np.random.default_rng([seed, 3])
    items = rng.standard_normal((rows.items, size), np.float32)
    for _ in range(POWERS):
        items = table.T @ orthonormal(table @ items)
    items = orthonormal(items)
    users = table @ items
    turn = np.linalg.eigh(gram(users))[1][:, ::-1][:, :count]
    return unit(multiply(users, turn)), unit(multiply(items, turn))


def leading(users: int, items: int, factors: int) -> int:
    """Return the number of factors that get a direction."""
    return min(factors, LEADING, users, items)


def weights(keys: NDArray[np.int32], size: int) -> Array:
    """Return 1 / sqrt(n + DAMPING) of each key, for its n ratings."""
    return (np.bincount(keys, minlength=size) + DAMPING).astype(np.float32) ** -0.5


def gram(columns: Array) -> Array:
    """Return X' X in double precision; not by BLAS, whose sums depend on its threads."""
    lines = np.ascontiguousarray(columns.T, np.float64)  # long sums run along memory
    found = np.empty((len(lines), len(lines)))
    for k, line in enumerate(lines):
        found[k, k:] = found[k:, k] = np.einsum("n,ln->l", line, lines[k:])
    return found


def multiply(columns: Array, matrix: Array) -> Array:
    """Return X times a small matrix."""
    lines = np.ascontiguousarray(columns.T)
    return np.einsum("kn,kl->ln", lines, matrix.astype(np.float32)).T


def orthonormal(columns: Array) -> Array:
    """Return orthonormal columns with the same span; those that depend on others become small."""
    values, vectors = np.linalg.eigh(gram(columns))
    least = max(1e-10 * values[-1], 1e-30)  # its inverse root is a float32
    return multiply(columns, vectors / np.sqrt(np.maximum(values, least)))


def unit(columns: Array) -> Array:
    """Scale columns to mean square 1, and clip them; columns of zeros stay."""
    square = np.einsum("nk,nk->k", columns, columns) / len(columns)
    scaled: Array = columns / np.sqrt(np.where(square > 0, square, 1))
    return scaled.clip(-WIDEST, WIDEST)

"""k-means: rows that start a component or a state together.

The first centres are rows far apart: each is drawn with probability proportional to the squared
distance from those before it, the best of a few draws (Arthur & Vassilvitskii 2007). Steps of
Lloyd's algorithm move them. Of several such runs the one with the least sum of squares is kept.
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array
from svmp.network.grid import Ints

STEPS = 10
"""Most steps of Lloyd's algorithm."""
RUNS = 6
"""Runs of k-means, of which the best is kept."""


def centres_of(values: Array, count: int, rng: np.random.Generator, runs: int = RUNS) -> Array:
    """Return the centres of clusters of rows, by k-means.

    >>> rows = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    >>> np.sort(centres_of(rows, 2, np.random.default_rng(0)), axis=0).round(6).tolist()
    [[0.1], [9.1]]
    """
    best, least = values[:0], np.inf
    for _ in range(runs):
        centres, inertia = _lloyd(values, _first_centres(values, count, rng))
        if inertia < least or not len(best):
            best, least = centres, inertia
    return best


def _first_centres(values: Array, count: int, rng: np.random.Generator) -> Array:
    """Return rows that are far apart."""
    centres = np.empty((count, values.shape[1]))
    centres[0] = values[rng.integers(len(values))]
    apart, tries = distances(values, centres[:1])[:, 0], 2 + int(np.log(count))
    for k in range(1, count):
        total = apart.sum()
        chance = apart / total if total > 0 else None
        some = values[rng.choice(len(values), tries, p=chance)]
        left = np.minimum(apart[:, None], distances(values, some))
        first = int(left.sum(axis=0).argmin())
        centres[k], apart = some[first], left[:, first]
    return centres


def _lloyd(values: Array, centres: Array) -> tuple[Array, float]:
    """Return centres after some steps of Lloyd's algorithm, and the sum of squares around them."""
    nearest, places = None, np.arange(len(values))
    inertia = np.inf
    for _ in range(STEPS + 1):
        apart = distances(values, centres)
        last, nearest = nearest, apart.argmin(axis=1)
        inertia = float(apart[places, nearest].sum())
        if last is not None and np.array_equal(nearest, last):
            break
        size = np.bincount(nearest, minlength=len(centres))
        chosen = (nearest[:, None] == np.arange(len(centres))).astype(np.float64)
        mean = (chosen.T @ values) / np.maximum(size, 1)[:, None]
        centres = np.where(size[:, None] > 0, mean, centres)
    return centres, inertia


def members(values: Array, centres: Array, most: int | None = None) -> tuple[Ints, Ints]:
    """Return the rows nearest to each centre among those that are nearest to it, and the centres.

    At most `most` rows of a centre are returned, and at least one.

    >>> members(np.array([[0.0], [0.1], [9.0]]), np.array([[0.0], [9.0]]))
    (array([0, 1, 2]), array([0, 0, 1]))
    """
    apart = distances(values, centres)
    nearest, some = apart.argmin(axis=1), list[Ints]()
    for k in range(len(centres)):
        mine = np.flatnonzero(nearest == k)
        mine = mine[np.argsort(apart[mine, k], kind="stable")][:most]
        some.append(mine if len(mine) else np.array([apart[:, k].argmin()]))
    return np.concatenate(some), np.repeat(np.arange(len(centres)), [len(s) for s in some])


def typical_rows(values: Array, count: int, rng: np.random.Generator) -> Ints:
    """Return different rows, each the nearest to the centre of a cluster.

    >>> rows = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    >>> np.sort(typical_rows(rows, 2, np.random.default_rng(0)))
    array([1, 4])
    """
    centres = centres_of(values, count, rng)
    apart, chosen = distances(values, centres), list[int]()
    for k in range(count):
        apart[chosen, k] = np.inf
        chosen.append(int(apart[:, k].argmin()))
    return np.array(chosen)


def distances(values: Array, centres: Array) -> Array:
    """Return the squared distance of each row from each centre."""
    found = -2 * values @ centres.T
    found += np.einsum("nd,nd->n", values, values)[:, None]
    found += np.einsum("kd,kd->k", centres, centres)
    return np.asarray(np.maximum(found, 0.0))

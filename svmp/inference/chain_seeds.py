"""Starts of chains of states: each state starts at a typical row of a cluster of rows.

k-means finds the clusters: the first centres are rows far apart (Arthur & Vassilvitskii 2007), and
a few steps of Lloyd's algorithm move them. All emissions of a state start at the same row, so that
they agree about what the state is.
"""

from __future__ import annotations

import numpy as np

from svmp.families.categorical import Categorical
from svmp.families.family import Array
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.slot import Single

MOST = 5000
"""Most rows that are clustered."""
STEPS = 10
"""Steps of Lloyd's algorithm."""


def seed_rows(network: Network, name: str, count: int, rng: np.random.Generator) -> Ints:
    """Return the rows of a chain at which its states start, at most one for each state."""
    values, seen = emitted(network, name)
    candidates = np.flatnonzero(seen == seen.max(initial=0)) if len(seen) else np.arange(0)
    if len(candidates) > MOST:
        candidates = np.sort(rng.choice(candidates, MOST, replace=False))
    count = min(count, len(candidates))
    if not values.shape[1] or not count:
        return rng.choice(candidates, count, replace=False)
    return candidates[typical_rows(values[candidates], count, rng)]


def emitted(network: Network, name: str) -> tuple[Array, Ints]:
    """Return the standardised values of all emissions of each row, and how many tables have some.

    Categories have no distances, and are left out.
    """
    size, found = network.hidden[name].size, []
    seen = np.zeros(size, dtype=np.int64)
    for edge in (e for e in network.edges[name] if e.choosing):
        table, chooser = edge.conditional.variable, edge.conditional.selector
        seen += edge.children > 0
        direct = isinstance(chooser, Single) and chooser.reader.index == edge.parent.plate.labels
        direct = direct and table.plate.labels[:1] == edge.parent.plate.labels
        observed = table.observed
        if direct and observed is not None and not isinstance(table.family, Categorical):
            values = np.full((table.size, observed[0].size), np.nan)
            values[table.rows] = observed[table.rows].reshape(len(table.rows), -1)
            found.append(values.reshape(size, -1))
    if not found:
        return np.zeros((size, 0)), seen
    every = np.concatenate(found, axis=1)
    with np.errstate(all="ignore"):
        centre = np.nanmean(every, axis=0, where=np.isfinite(every))
        spread = np.nanstd(every, axis=0, where=np.isfinite(every))
    spread = np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)
    return np.nan_to_num((every - np.nan_to_num(centre)) / spread), seen


def typical_rows(values: Array, count: int, rng: np.random.Generator) -> Ints:
    """Return different rows, each the nearest to the centre of a cluster.

    >>> rows = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    >>> np.sort(typical_rows(rows, 2, np.random.default_rng(0)))
    array([1, 4])
    """
    centres = values[rng.integers(len(values))][None]
    while len(centres) < count:
        apart = distances(values, centres).min(axis=1)
        total = apart.sum()
        chance = apart / total if total > 0 else None
        centres = np.concatenate([centres, values[rng.choice(len(values), 1, p=chance)]])
    for _ in range(STEPS):
        nearest = distances(values, centres).argmin(axis=1)
        size = np.bincount(nearest, minlength=count)
        total = np.zeros_like(centres)
        np.add.at(total, nearest, values)
        centres = np.where(size[:, None] > 0, total / np.maximum(size, 1)[:, None], centres)
    apart, chosen = distances(values, centres), list[int]()
    for k in range(count):
        apart[chosen, k] = np.inf
        chosen.append(int(apart[:, k].argmin()))
    return np.array(chosen)


def distances(values: Array, centres: Array) -> Array:
    """Return the squared distance of each row from each centre."""
    return np.stack([((values - centre) ** 2).sum(axis=1) for centre in centres], axis=1)

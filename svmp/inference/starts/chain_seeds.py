"""Starts of chains of states: each state starts at a typical row of a cluster of rows.

k-means finds the clusters (clusters.py). All emissions of a state start at the same row, so that
they agree about what the state is.

One category says little about a state. Where all emissions are categories, the frequencies of the
categories around each row of a sequence are clustered, and a state starts at many rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.inference.starts.clusters import centres_of, members, typical_rows
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.slot import Single

MOST = 5000
"""Most rows that are clustered."""
AROUND = 5
"""Rows on each side of a row whose categories are counted."""
MEMBERS = 100
"""Most rows at which a state starts, where emissions are categories."""


class Seeds(NamedTuple):
    """The rows of a chain at which its states start, and the state of each."""

    rows: Ints
    states: Ints


def seed_rows(network: Network, name: str, count: int, rng: np.random.Generator) -> Seeds:
    """Return the rows at which the states of a chain start."""
    values, seen = emitted(network, name)
    candidates = np.flatnonzero(seen == seen.max(initial=0)) if len(seen) else np.arange(0)
    if len(candidates) > MOST:
        candidates = np.sort(rng.choice(candidates, MOST, replace=False))
    count = min(count, len(candidates))
    words = frequencies(network, name) if not values.shape[1] and count else None
    if words is not None and words.shape[1]:
        some = words[candidates]
        found, states = members(some, centres_of(some, count, rng), MEMBERS)
        return Seeds(candidates[found], states)
    if not values.shape[1] or not count:
        return Seeds(rng.choice(candidates, count, replace=False), np.arange(count))
    return Seeds(candidates[typical_rows(values[candidates], count, rng)], np.arange(count))


def emitted(network: Network, name: str) -> tuple[Array, Ints]:
    """Return the standardised values of all emissions of each row, and how many tables have some.

    Categories have no distances, and are left out.
    """
    size, found = network.hidden[name].size, []
    seen = np.zeros(size, dtype=np.int64)
    for edge in (e for e in network.edges[name] if e.choosing):
        table = edge.conditional.variable
        seen += edge.children > 0
        observed = table.observed
        if is_direct(edge) and observed is not None and not table.family.nominal:
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


def is_direct(edge: Edge) -> bool:
    """Return whether the rows of a table are those of the chain that chooses its components."""
    table, chooser = edge.conditional.variable, edge.conditional.selector
    direct = isinstance(chooser, Single) and chooser.reader.index == edge.parent.plate.labels
    return direct and table.plate.labels[:1] == edge.parent.plate.labels


def frequencies(network: Network, name: str) -> Array:
    """Return how often each category is emitted around each row, within its sequence."""
    sequences, size = network.chains[name].sequences, network.hidden[name].size
    found = [np.zeros((size, 0))]
    for edge in (e for e in network.edges[name] if e.choosing):
        table = edge.conditional.variable
        observed = table.observed
        if not is_direct(edge) or observed is None or not table.family.nominal:
            continue
        counts = np.zeros((size, table.family.size))
        np.add.at(
            counts,
            (table.rows // (table.size // size), observed[table.rows].astype(np.int64)),
            1.0,
        )
        found.append(counts)
    counts = np.concatenate(found, axis=1)[sequences.order]
    sums = np.concatenate([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
    place, code = np.arange(size), sequences.code[sequences.order]
    begin = np.maximum(place - AROUND, sequences.starts[code])
    end = np.minimum(place + AROUND + 1, sequences.starts[code + 1])
    total = sums[end] - sums[begin]
    around = np.empty_like(total)
    around[sequences.order] = total / np.maximum(total.sum(axis=1, keepdims=True), 1.0)
    return around

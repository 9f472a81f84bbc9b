"""Graph colouring: elements of a variable that share no row may be updated together."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from svmp.network.grid import Ints

MOST_PAIRS = 20_000_000
"""Number of pairs above which a colouring costs more than it saves."""


def greedy_colours(elements: Ints, rows: Ints, count: int) -> Ints:
    """Give each element the first colour that no element sharing a row with it has.

    >>> greedy_colours(np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1]), 3)
    array([0, 1, 0])
    """
    _, line = np.unique(rows, return_inverse=True)
    incidence = sparse.csr_array(
        (np.ones(len(elements), dtype=np.int8), (line, elements)),
        shape=(line.max(initial=-1) + 1, count),
    )
    incidence.sum_duplicates()
    if (np.diff(incidence.indptr).astype(np.float64) ** 2).sum() > MOST_PAIRS:
        return np.arange(count)
    incidence.data[:] = 1
    graph = sparse.csr_array(incidence.T.astype(bool) @ incidence.astype(bool))
    colours = np.full(count, -1)
    for element in range(count):
        near = graph.indices[graph.indptr[element] : graph.indptr[element + 1]]
        taken = set(colours[near].tolist())
        colour = 0
        while colour in taken:
            colour += 1
        colours[element] = colour
    return colours

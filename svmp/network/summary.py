"""`print(model)`: the variables of a network as a table."""

from __future__ import annotations

import numpy as np

from svmp.network.declaration import Declaration
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown
from svmp.network.tables import Row, text_table

HEADS = ("variable", "family", "", "dims", "parents", "children", "children of an element")


def summarise(model: Declaration) -> str:
    """Return a table with one line per variable: family, dims, parents, children, child counts."""
    return text_table(HEADS, rows_of(model))


def rows_of(model: Declaration) -> list[Row]:
    """Return a row of the table for each variable."""
    network = Network(model)
    lines: list[Row] = []
    for variable in model.variables.values():
        dims = ", ".join(f"{d}: {n:,}" for d, n in zip(variable.dims, variable.shape, strict=True))
        parents = ", ".join(p.name for p in variable.conditional.parents())
        children, counts = "", ""
        if variable.hidden:
            state = "local" if variable.name in network.locals else "hidden"
            if isinstance(variable.family, PartlyKnown):
                state += f", {int(variable.family.known.sum()):,} observed"
            edges = network.edges[variable.name]
            children = ", ".join(dict.fromkeys(e.conditional.variable.name for e in edges))
            counts = _spread(network.child_counts[variable.name])
        else:
            gone = variable.size - variable.count
            state = f"observed, {gone:,} missing" if gone else "observed"
        lines.append(
            (variable.name, variable.conditional.title, state, dims, parents, children, counts)
        )
    return lines


def _spread(counts: np.ndarray) -> str:
    if counts.size == 0:
        return "0"
    low, high = int(counts.min()), int(counts.max())
    if low == high:
        return f"{low:,}"
    return f"{low:,} to {high:,}, median {int(np.median(counts)):,}"

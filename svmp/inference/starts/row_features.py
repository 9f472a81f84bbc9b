"""What k-means sees of the rows that a Categorical chooses components for.

Each element of the Categorical has a line of numbers: means over its rows, table by table, and
within a table column by column. Rows of one column have the same parameters given the component, as
the answers of all persons to one question. Values are transformed so that their variance within a
component depends little on the component:

    Normal, MvNormal    x, standardised      Categorical, Multinomial,   square roots of the
    Exponential, Gamma  log x, standardised  Binomial, Bernoulli         shares of categories
    Poisson             sqrt(x)
"""

from __future__ import annotations

import numpy as np

from svmp.families.family import Array, Features
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import Conditional
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.slot import Slot

MOST = 1 << 22
"""Most numbers of some elements."""


def row_features(network: Network, q: Beliefs, name: str, elements: Ints) -> Array:
    """Return the numbers that are clustered, a line for each of some elements of a Categorical.

    There are no columns where rows cannot be compared: values without distances, means that vary
    with covariates, or too many columns.
    """
    found = [np.zeros((len(elements), 0))]
    for edge in (e for e in network.edges[name] if e.choosing):
        owner, rows = edge.rows_of(elements)
        column = columns_of(edge, rows)
        if column is None or not len(rows):
            continue
        width = int(column.max()) + 1
        values, kind = compared(edge.conditional, q, rows)
        if not 0 < len(elements) * width * values.shape[1] <= MOST:
            continue
        means = cell_means(values, owner * width + column, len(elements) * width, kind == "shares")
        lines = means.reshape(len(elements), -1)
        found.append(roots(lines) if kind == "shares" else centred(lines, kind == "numbers"))
    return np.concatenate(found, axis=1)


def columns_of(edge: Edge, rows: Ints) -> Ints | None:
    """Return a number for each row, the same for rows that read the same parameters.

    None where parameters are weighted by covariates.
    """
    table, keys = edge.conditional, list[Ints]()
    for slot in table.slots.values():
        for variable in slot.variables:
            if variable.hidden and table.component_axis in slot.labels(variable):
                read, _ = slot.pairs(variable, rows * table.components)
                if len(read) != len(rows) or has_covariates(table, slot):
                    return None
                keys.append(read)
    if not keys:
        return None
    column = np.zeros(len(rows), dtype=np.int64)
    for key in keys:
        _, column = np.unique(column * (int(key.max()) + 1) + key, return_inverse=True)
    return column.reshape(-1).astype(np.int64)


def has_covariates(table: Conditional, slot: Slot) -> bool:
    """Return whether numbers that vary by row are in a parameter."""
    axes = {str(axis) for array in slot.arrays for axis in array.axes}
    return bool(axes & set(table.variable.plate.labels[:1]))


def compared(table: Conditional, q: Beliefs, rows: Ints) -> Features:
    """Return transformed values of rows, or counts of categories."""
    n = table.constants.get("n")
    trials = 1.0 if n is None else table.scope.look_up(n, rows, rows)
    return table.family.features(table.child(q, rows), trials)


def cell_means(values: Array, cell: Ints, cells: int, shares: bool) -> Array:
    """Return the mean of the values of each cell, or the shares of categories; NaN if none."""
    total = np.stack([np.bincount(cell, v, cells) for v in values.T], axis=1)
    count = total.sum(axis=1) if shares else np.bincount(cell, minlength=cells)
    with np.errstate(all="ignore"):
        return np.asarray(total / count[:, None])


def roots(lines: Array) -> Array:
    """Return square roots of shares, with the mean of its column where there is none."""
    return filled(np.sqrt(lines))


def centred(lines: Array, standardised: bool) -> Array:
    """Return values with the mean 0 in each column, and the deviation 1 if `standardised`."""
    lines = filled(lines)
    lines -= lines.mean(axis=0)
    if not standardised:
        return lines
    spread = lines.std(axis=0)
    return np.asarray(lines / np.where(spread > 0, spread, 1.0))


def filled(lines: Array) -> Array:
    """Replace missing numbers by the mean of their column."""
    known = np.isfinite(lines)
    if known.all():
        return lines
    total = np.where(known, lines, 0.0).sum(axis=0)
    return np.where(known, lines, total / np.maximum(known.sum(axis=0), 1))

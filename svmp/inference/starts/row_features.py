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

from svmp import families
from svmp.families.family import Array
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
        values, shares = compared(edge.conditional, q, rows)
        if not 0 < len(elements) * width * values.shape[1] <= MOST:
            continue
        means = cell_means(values, owner * width + column, len(elements) * width, shares)
        lines = means.reshape(len(elements), -1)
        found.append(roots(lines) if shares else standardised(lines, edge.conditional))
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


def compared(table: Conditional, q: Beliefs, rows: Ints) -> tuple[Array, bool]:
    """Return transformed values of rows, or counts of categories, and whether they are counts.

    There are no columns for families without distances.
    """
    family, child = table.family, table.child(q, rows)
    if isinstance(family, families.Categorical | families.Multinomial):
        return child, True
    if isinstance(family, families.Bernoulli | families.Binomial):
        n = table.scope.look_up(table.constants["n"], rows, rows) if table.constants else 1.0
        return np.stack([child[:, 0], n - child[:, 0]], axis=1), True
    if isinstance(family, families.Normal):
        return child[:, :1], False
    if isinstance(family, families.MvNormal):
        return child[:, : family.dimension], False
    if isinstance(family, families.Poisson):
        return np.sqrt(child[:, :1]), False
    if isinstance(family, families.Exponential | families.Gamma):
        return np.log(np.maximum(child[:, :1], 1e-300)), False
    return child[:, :0], False


def cell_means(values: Array, cell: Ints, cells: int, shares: bool) -> Array:
    """Return the mean of the values of each cell, or the shares of categories; NaN if none."""
    total = np.stack([np.bincount(cell, v, cells) for v in values.T], axis=1)
    count = total.sum(axis=1) if shares else np.bincount(cell, minlength=cells)
    with np.errstate(all="ignore"):
        return np.asarray(total / count[:, None])


def roots(lines: Array) -> Array:
    """Return square roots of shares, with the mean of its column where there is none."""
    return filled(np.sqrt(lines))


def standardised(lines: Array, table: Conditional) -> Array:
    """Return values with the mean 0 in each column, and the deviation 1 if they have a scale."""
    lines = filled(lines)
    lines -= lines.mean(axis=0)
    if isinstance(table.family, families.Poisson):
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

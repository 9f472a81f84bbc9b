"""Terms that read fixed entries of one vector, as one term with a matrix of known numbers.

In w[g, 0] + w[g, 1] * x each term reads one entry of the vector of its row's group. Together they
are dot(c, w[g]) with c the numbers by entry, here (1, x), whose rows form a grid (regular.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from svmp.families.family import Array
from svmp.network.expressions import Index, unused
from svmp.network.grid import Grid, Labelled, Scope
from svmp.network.means.columns import KEPT
from svmp.network.means.terms import LinearTerm


def joined(terms: Sequence[LinearTerm]) -> tuple[LinearTerm, ...]:
    """Return the terms of a mean, with those of entries of one vector joined where that is short.

    They stay apart where another term has the same vectors, most entries are not read, or the
    matrix has more numbers than are kept from one sweep to the next.
    """
    found: list[LinearTerm] = []
    for term in terms:
        if entry(term) is None:
            found.append(term)
            continue
        same = [t for t in terms if t.reader(term.readers[0].variable) is not None]
        if len(same) == 1 or not all(same_elements(t, term) for t in same):
            found.append(term)
        elif term is same[0]:
            found.extend(together(same))
    return tuple(found)


def entry(term: LinearTerm) -> int | None:
    """Return which entry of a vector a term is a multiple of; None if it is something else."""
    if len(term.readers) != 1 or term.scope.inner.labels or term.design is not None:
        return None
    (reader,) = term.readers
    last = reader.index[-1] if reader.variable.event_dims else None
    return last if isinstance(last, int) else None


def same_elements(one: LinearTerm, other: LinearTerm) -> bool:
    """Whether two terms read entries of the same element in every row."""
    if entry(one) is None or entry(other) is None:
        return False
    pairs = zip(one.readers[0].index[:-1], other.readers[0].index[:-1], strict=True)
    return all(same_index(left, right) for left, right in pairs)


def same_index(one: Index, other: Index) -> bool:
    """Whether two indices are equal, number by number if they are keys."""
    if isinstance(one, Labelled) and isinstance(other, Labelled):
        return one.axes == other.axes and np.array_equal(one.values, other.values)
    return type(one) is type(other) and one == other


def together(terms: Sequence[LinearTerm]) -> Sequence[LinearTerm]:
    """Return one term for several of the same elements; the same terms if it is not short."""
    reader, rows = terms[0].readers[0], terms[0].scope.rows
    size = reader.variable.shape[-1]
    varied = {str(axis) for term in terms for array in term.constants for axis in array.axes}
    axes = tuple(label for label in rows.labels if label in varied)
    shape = tuple(rows.length(label) for label in axes)
    if 2 * len({entry(term) for term in terms}) < size or prod(shape) * size > KEPT:
        return terms
    values = np.zeros((*shape, size))
    for term in terms:
        here = np.array([entry(term)])
        values[..., here] += numbers(term, axes)[..., None]
    axis = unused(reader.variable.event_dims[-1], rows.labels)
    scope = Scope(rows, Grid((axis,), (size,)))
    reader = replace(reader, scope=scope, index=(*reader.index[:-1], axis))
    return [LinearTerm(1.0, (Labelled(values, (*axes, axis)),), (reader,), scope, None)]


def numbers(term: LinearTerm, axes: tuple[str, ...]) -> Array:
    """Return the numbers of a term along axes of its table, of length 1 where they are the same.

    >>> scope = Scope(Grid(("a", "b"), (1, 2)), Grid((), ()))
    >>> array = Labelled(np.array([2.0, 3.0]), ("b",))
    >>> numbers(LinearTerm(10.0, (array,), (), scope, None), ("a", "b"))
    array([[20., 30.]])
    """
    found = np.full((1,) * len(axes), term.scale)
    for array in term.constants:
        order = sorted(range(len(array.axes)), key=lambda i: axes.index(str(array.axes[i])))
        lengths = dict(zip(array.axes, array.values.shape, strict=True))
        line = array.values.transpose(order).reshape([lengths.get(axis, 1) for axis in axes])
        found = found * line
    return np.asarray(found, dtype=np.float64)

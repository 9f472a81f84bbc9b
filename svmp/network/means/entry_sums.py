"""Sums of messages to one variable over lists of entries, for terms without a faster form.

With mu = a . x + b in each row, the sums over the rows of an element x are

    sum_r (m_1 E[a] + 2 m_2 E[a b])  and  sum_r m_2 E[a a^T].

A row adds as many numbers as it has (pairs of) entries that read x, straight to those of the
element: a row that reads one entry of a long vector has no matrix of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from svmp.families.family import Array
from svmp.network.beliefs import Beliefs
from svmp.network.expressions import Symbol
from svmp.network.grid import Ints
from svmp.network.means.terms import (
    LinearTerm,
    ReadingEntry,
    dimension,
    first_moment,
    pair_by_owner,
    reading_entries,
    scatter,
    second_moment,
    share_variable,
)


def message_sums(
    q: Beliefs,
    terms: Sequence[LinearTerm],
    variable: Symbol,
    elements: Ints,
    owner: Ints,
    rows: Ints,
    incoming: Array,
    mean: Array,
) -> Array:
    """Return the sum of the messages of its rows to each element of a variable.

    Parameters
    ----------
    q, terms, variable, elements
        The current q, the terms of the mean, the variable, and some elements of it.
    owner, rows
        The position of the element that each row reads, and the rows.
    incoming, mean
        The density's message of each row to (mu, mu^2), and E[mu] of each row.
    """
    shape, read = (len(elements), dimension(variable)), elements[owner]
    linear, square = incoming[:, 0], incoming[:, 1]
    reading = list(reading_entries(terms, q, variable, read, rows))
    own = np.zeros(len(rows))
    for _, reader, at, a in reading:
        own += np.bincount(at.owner, a * first_moment(q, reader, at), len(rows))
    pull = linear + 2 * square * (mean - own)
    vector = np.zeros(shape)
    for _, reader, at, a in reading:
        component = reader.component(at.rows, at.inner)
        vector += scatter(a * pull[at.owner], owner[at.owner], component, shape)
    for value, row, component in _shared_with_rest(q, terms, variable, read, rows, reading):
        vector += scatter(2 * square[row] * value, owner[row], component, shape)
    matrix = np.zeros((shape[0], shape[1] ** 2))
    for value, row, component in _squared_slopes(q, variable, reading):
        matrix += scatter(square[row] * value, owner[row], component, matrix.shape)
    return np.concatenate([vector, matrix], axis=1)


Places = Iterator[tuple[Array, Ints, Ints]]
"""Values, the position of the row of each, and its place in the vector or the flat matrix."""


def _squared_slopes(q: Beliefs, variable: Symbol, reading: Sequence[ReadingEntry]) -> Places:
    """E[a a^T], by pairs of entries."""
    size = dimension(variable)
    for left, left_reader, left_at, _ in reading:
        for right, right_reader, right_at, _ in reading:
            if left is right and size == 1 and left.separable:
                a = b = left_at
            else:
                a, b = pair_by_owner(left_at, right_at)
            value = second_moment(q, left, a, right, b, skip=variable)
            component = left_reader.component(a.rows, a.inner) * size
            yield value, a.owner, component + right_reader.component(b.rows, b.inner)


def _shared_with_rest(
    q: Beliefs,
    terms: Sequence[LinearTerm],
    variable: Symbol,
    elements: Ints,
    rows: Ints,
    reading: Sequence[ReadingEntry],
) -> Places:
    """cov[a, b], by pairs of entries: not zero where one without x shares another variable.

    `elements` has the element that each of `rows` reads.
    """
    for term, reader, at, _ in reading:
        for other in terms:
            if term is other and term.separable:
                continue
            if not share_variable(term, other, skip=variable):
                continue
            a, b = pair_by_owner(at, other.entries(rows))
            again = other.reader(variable)
            if again is not None:
                apart = again.element(b.rows, b.inner) != elements[a.owner]
                a, b = a[np.flatnonzero(apart)], b[np.flatnonzero(apart)]
            value = second_moment(q, term, a, other, b, skip_left=variable)
            value -= term.mean(q, a, skip=variable) * other.mean(q, b)
            yield value, a.owner, reader.component(a.rows, a.inner)

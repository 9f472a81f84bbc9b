"""Normal equations X^T W X of sparse lines X, and the covariances that each row has, x^T S x.

Both go through the unknowns i in turn. The products of i with all later unknowns of its rows are
added to a dense column `work`, from which the entries of the pattern are then taken: no number is
searched for, and nothing but the lines and the pattern is stored. A list of where each pair of a
row belongs would be faster by a quarter, and is larger than the rows themselves.

The columns of X are in the order of elimination, and those of a line ascend, so that each pair is
met once, from its earlier unknown.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from svmp.families.family import Array, Bools
from svmp.kernels.machine.compiling import CHUNK, bare, claim, jit, shared
from svmp.network.grid import Ints


class Columns(NamedTuple):
    """Lines of coefficients, by lines and by columns.

    Attributes
    ----------
    unknowns
        The columns that are not empty.
    starts, place, line
        For each of these, where its entries begin; the place of each in `value`, and its line.
    ends, column, value
        Where each line ends, and the columns and coefficients of the lines.
    size
        Number of lines of a row.
    """

    unknowns: Ints
    starts: Ints
    place: Ints
    line: Ints
    ends: Ints
    column: Ints
    value: Array
    size: int


class Lower(NamedTuple):
    """Where the columns of a lower triangle begin, and its rows, ascending."""

    starts: Ints
    row: Ints


@bare
def add_column(x: Columns, u: int, weight: Array, work: Array) -> None:
    """Add the products of one unknown with all later ones of its rows."""
    i, size = x.unknowns[u], x.size
    for k in range(x.starts[u], x.starts[u + 1]):
        place, line = x.place[k], x.line[k]
        if size == 1:
            c = x.value[place] * weight[line, 0]
            for m in range(place, x.ends[line]):
                work[x.column[m]] += c * x.value[m]
        else:
            row, own = line // size, line % size
            for other in range(size):
                c = x.value[place] * weight[row, own * size + other]
                if c != 0:
                    at = row * size + other
                    for m in range(x.ends[at - 1] if at else 0, x.ends[at]):
                        if x.column[m] >= i:
                            work[x.column[m]] += c * x.value[m]


@shared
def add_products(
    taken: Ints, x: Columns, weight: Array, pattern: Lower, unknowns: int, out: Array
) -> None:
    """Add the lower triangle of X^T W X to the values of a pattern."""
    work = np.zeros(unknowns)
    first = claim(taken, CHUNK)
    while first < len(x.unknowns):
        for u in range(first, min(first + CHUNK, len(x.unknowns))):
            add_column(x, u, weight, work)
            i = x.unknowns[u]
            for k in range(pattern.starts[i], pattern.starts[i + 1]):
                out[k] += work[pattern.row[k]]
                work[pattern.row[k]] = 0.0
        first = claim(taken, CHUNK)


@jit
def add_pairs(x: Columns, u: int, element: Ints, alone: Bools, column: Array, out: Array) -> None:
    """Add the covariances of one unknown with all later ones of other elements to its rows."""
    i, size = x.unknowns[u], x.size
    if size == 1:  # without divisions, which would take half of the time
        for k in range(x.starts[u], x.starts[u + 1]):
            place, line = x.place[k], x.line[k]
            total = 0.0
            for m in range(place + 1, x.ends[line]):
                j = x.column[m]
                if element[j] != element[i] and not alone[j]:
                    total += column[j] * x.value[m]
            out[line, 0] += 2 * total * x.value[place]
        return
    for k in range(x.starts[u], x.starts[u + 1]):
        place, line = x.place[k], x.line[k]
        row, own = line // size, line % size
        for other in range(size):
            at, total = row * size + other, 0.0
            for m in range(x.ends[at - 1] if at else 0, x.ends[at]):
                j = x.column[m]
                if j > i and element[j] != element[i] and not alone[j]:
                    total += column[j] * x.value[m]
            total *= x.value[place]
            out[row, own * size + other] += total
            out[row, other * size + own] += total


@shared
def add_covariances(
    x: Columns, element: Ints, alone: Bools, pattern: Lower, value: Array, tail: Array, out: Array
) -> None:
    """Add sum over unknowns i, j of different elements of x_i cov_ij x_j^T to each row.

    Parameters
    ----------
    x, element
        The lines of the rows, and the element of each unknown.
    alone
        Unknowns that are taken as independent of all others.
    pattern, value
        Covariances of the unknowns that were eliminated with later ones.
    tail
        Covariances of all others.
    out
        (rows, size * size).
    """
    sparse = len(pattern.starts) - 1
    work = np.zeros(len(element))
    for u in range(len(x.unknowns)):
        i = x.unknowns[u]
        if alone[i]:
            continue
        if i < sparse:
            for k in range(pattern.starts[i], pattern.starts[i + 1]):
                work[pattern.row[k]] = value[k]
        else:
            for j in range(i + 1, len(element)):
                work[j] = tail[i - sparse, j - sparse]
        add_pairs(x, u, element, alone, work, out)

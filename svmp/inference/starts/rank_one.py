"""Rank-one fits of sparse tensors, as pure functions over arrays.

A product of three or more variables is flat where all of them are 0, so that a run that starts near
there can stay there. Factors are therefore found one after the other, each from what the earlier
ones leave of the values y, by alternating least squares. With a the product of the other vectors
in a row, the vector of one axis has

    x_i = (sum of a y over the rows of i) / (sum of a^2 over the rows of i + SHRINKAGE mean(a^2)).

The shrinkage is in units of rows, so that the fit does not depend on the unit of y. Of several
random starts the one that explains most is continued.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from svmp.families.family import Array
from svmp.network.grid import Ints

STARTS, FIRST, MORE = 5, 2, 5
"""Random starts of each factor, their rounds, and the rounds of the best of them."""
SHRINKAGE = 4.0
"""Weight of the prior mean of 0, in rows."""
LEAST = 1e-4
"""Smallest variance of what the factors leave, as a share of the mean square of the values."""
TINY = 1e-100
"""Keeps quotients finite where a vector is 0."""


class RankOnes(NamedTuple):
    """The sum of some rank-one tensors.

    Attributes
    ----------
    factors
        For each axis, (elements, factors).
    precision
        For each axis, the precision that the rows give to each number, (elements, factors).
    """

    factors: list[Array]
    precision: list[Array]

    def values(self, keys: Sequence[Ints]) -> Array:
        """Return the value of each row."""
        return rows_of(keys, self.factors).sum(axis=1)


def rank_ones(
    keys: Sequence[Ints],
    sizes: Sequence[int],
    values: Array,
    count: int,
    rng: np.random.Generator,
) -> RankOnes | None:
    """Return a sum of rank-one tensors that fits some values; None if these are 0 or not finite.

    Parameters
    ----------
    keys, sizes
        For each axis, the element that each row reads, and the number of elements.
    values
        The value of each row.
    count
        Number of rank-one tensors.

    Examples
    --------
    >>> keys = [np.arange(800) // 4 % 2, np.arange(800) // 2 % 2, np.arange(800) % 2]
    >>> found = rank_ones(keys, (2, 2, 2), np.full(800, 27.0), 1, np.random.default_rng(0))
    >>> found.values(keys)[:2].round()
    array([27., 27.])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        unit = float(np.sqrt(np.mean(values**2))) if len(values) else 0.0
    if not np.isfinite(unit) or unit == 0:
        return None
    left, found = values / unit, []
    for _ in range(count):
        starts = ([rng.standard_normal(size) for size in sizes] for _ in range(STARTS))
        tried = [improved(keys, start, left, FIRST) for start in starts]
        best = min(tried, key=lambda vectors: np.sum((left - rows_of(keys, vectors)) ** 2))
        found.append(improved(keys, best, left, MORE))
        left = left - rows_of(keys, found[-1])
    spread = max(float(np.mean(left**2)), LEAST)
    root = unit ** (1 / len(sizes))
    factors = [np.stack(vectors, axis=1) for vectors in zip(*found, strict=True)]
    squares = [[s for _, _, s in sums(keys, vectors, left)] for vectors in found]
    precision = [np.stack(s, axis=1) / (spread * root**2) for s in zip(*squares, strict=True)]
    return RankOnes([root * f for f in factors], precision)


def rows_of(keys: Sequence[Ints], vectors: Sequence[Array]) -> Array:
    """Return the product that each row reads."""
    found = vectors[0][keys[0]]
    for x, key in zip(vectors[1:], keys[1:], strict=True):
        found = found * x[key]
    return found


def sums(
    keys: Sequence[Ints], vectors: Sequence[Array], values: Array
) -> Iterator[tuple[int, Array, Array]]:
    """Yield each axis, with the sums of a y and of a^2 by element.

    They are computed when they are asked for, from the vectors as they are by then.
    """
    ones = np.ones(len(values))
    for axis, key in enumerate(keys):
        others = [i for i in range(len(keys)) if i != axis]
        a = rows_of([keys[i] for i in others], [vectors[i] for i in others]) if others else ones
        count = len(vectors[axis])
        linear, square = (np.bincount(key, weights, count) for weights in (a * values, a * a))
        yield axis, np.asarray(linear), np.asarray(square)


def improved(
    keys: Sequence[Ints], vectors: Sequence[Array], values: Array, rounds: int
) -> list[Array]:
    """Return the vectors after some rounds of alternating least squares, all of the same size."""
    found = list(vectors)
    for _ in range(rounds):
        for axis, linear, square in sums(keys, found, values):
            found[axis] = linear / (square + SHRINKAGE * square.sum() / len(values) + TINY)
        sizes = np.array([np.sqrt(np.mean(x**2)) for x in found]) + TINY
        found = [
            x * (prod(sizes) ** (1 / len(sizes)) / s) for x, s in zip(found, sizes, strict=True)
        ]
    return found

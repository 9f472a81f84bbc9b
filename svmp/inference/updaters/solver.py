"""Solvers: lambda_temp of variables from sums over rows.

    lambda_i_temp = eta_i + sum over parts of (sum over rows e of the part of eta_(e -> i))

Sums of disjoint sets of rows add, wherever the rows are. A solver knows the layout of its sums, but
neither rows nor a network, so that it can be sent to the place where the sums are added.

E[log p] of the rows is linear in the moments of each element, all else equal. So the sums also say
how much it rises with an update (`LineSolver.gains`), and the bound needs no other pass over rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.kernels.multilinear import solve as multilinear
from svmp.kernels.vectors import solve as vectors
from svmp.network.grid import Ints

Places = Mapping[str, Ints | None]
"""By variable, the element of a total that each element of the sums is; None for the same."""
AT_ONCE = 1 << 17
"""Numbers that are added at a time, so that they stay in the cache."""


class Solver(ABC):
    """Computes lambda_temp of variables from sums over rows.

    It can be pickled, and serves totals with any number of elements.
    """

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The variables that it solves: one, or several in a linear block."""

    @abstractmethod
    def empty(self, sizes: Mapping[str, int]) -> Array:
        """Return sums of no rows, for a number of elements of each variable."""

    @abstractmethod
    def add(self, total: Array, sums: Array, places: Places) -> None:
        """Add sums to a total, in place.

        Element i of a variable in the sums is element `places[name][i]` in the total; no two are
        the same. None stands for the same elements in the same order.
        """

    @abstractmethod
    def scaled(self, sums: Array, scale: Mapping[str, Array]) -> Array:
        """Return the sums of each element times a factor, which all elements of a key share."""

    @abstractmethod
    def solve(
        self, sums: Array, prior: Mapping[str, Array], natural: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return lambda_temp of every element of each variable.

        Parameters
        ----------
        sums
            The sums over all rows.
        prior
            eta_i of every element.
        natural
            The current natural parameters, from which elements that are updated in turn start.
        """


@dataclass(frozen=True)
class LineSolver(Solver):
    """A solver whose sums have one line for each key.

    Attributes
    ----------
    name
        The variable.
    width
        Number of elements of a key.
    numbers
        Length of a line.
    """

    name: str
    width: int
    numbers: int

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def divides(self) -> bool:
        """Whether the elements of a key follow each other, so that lines can be solved alone."""
        return True

    @abstractmethod
    def gains(self, sums: Array, before: Array, after: Array) -> Array:
        """Return how much E[log p] of the rows of each key rises from one q of it to another.

        `before` and `after` are the moments of all elements. Rows of a convex bound are not served:
        their tangents are chosen anew for every q.
        """

    def empty(self, sizes: Mapping[str, int]) -> Array:
        return np.zeros((sizes[self.name] // self.width, self.numbers))

    def elements(self, keys: int) -> Ints:
        """Return the elements of each key, (keys, width)."""
        return np.arange(keys * self.width).reshape(-1, self.width)

    def key_places(self, place: Ints | None, keys: int, total: int) -> Ints:
        """Return the key of a total with `total` keys that each key of the sums is.

        Raises
        ------
        ModelError
            If the places are not those of different whole keys.
        """
        if place is None:
            if keys != total:
                raise ModelError(f"sums of '{self.name}' have {keys} keys, and the total {total}")
            return np.arange(keys)
        place = checked_places(self.name, place, keys * self.width, total * self.width)
        return self.keys_of(place, keys, total)

    def keys_of(self, place: Ints, keys: int, total: int) -> Ints:
        """Return the keys that places are of, which are known to be those of different elements."""
        lines = place.reshape(keys, self.width)
        first = lines[:, 0]
        if (first % self.width).any() or (lines != first[:, None] + np.arange(self.width)).any():
            raise split_key(self.name)
        return np.ascontiguousarray(first // self.width)

    def add(self, total: Array, sums: Array, places: Places) -> None:
        at = self.key_places(places[self.name], len(sums), len(total))
        if places[self.name] is None:
            total += sums
            return
        step = max(1, AT_ONCE // self.numbers)
        for start in range(0, len(sums), step):
            total[at[start : start + step]] += sums[start : start + step]

    def scaled(self, sums: Array, scale: Mapping[str, Array]) -> Array:
        first = self.elements(len(sums))[:, :1]
        return np.asarray(sums * np.asarray(scale[self.name])[first])


@dataclass(frozen=True)
class PlainSolver(LineSolver):
    """Adds the prior and the summed messages of the rows to each element."""

    @classmethod
    def of(cls, name: str, size: int) -> PlainSolver:
        """Return the solver of a variable with `size` natural parameters an element."""
        return cls(name, 1, size)

    def solve(
        self, sums: Array, prior: Mapping[str, Array], natural: Mapping[str, Array]
    ) -> dict[str, Array]:
        return {self.name: np.asarray(prior[self.name] + sums)}

    def gains(self, sums: Array, before: Array, after: Array) -> Array:
        return np.einsum("ij,ij->i", sums, after - before)


@dataclass(frozen=True)
class MultilinearSolver(LineSolver):
    """Solves the elements of a key together or in turn, in compiled code.

    Attributes
    ----------
    joint
        Whether the elements of a key are solved together.
    """

    joint: bool

    @classmethod
    def of(cls, name: str, width: int, joint: bool) -> MultilinearSolver:
        """Return the solver of a variable with `width` elements a key."""
        return cls(name, width, multilinear.line_size(width), joint)

    def solve(
        self, sums: Array, prior: Mapping[str, Array], natural: Mapping[str, Array]
    ) -> dict[str, Array]:
        given = checked(self, sums, prior, natural, 2)
        return {self.name: multilinear.solve_sums(*given, self.width, self.joint)}

    def gains(self, sums: Array, before: Array, after: Array) -> Array:
        return multilinear.gains_of_sums(sums, before, after, self.width)


@dataclass(frozen=True)
class VectorSolver(LineSolver):
    """Solves MvNormals, in compiled code.

    Attributes
    ----------
    dimension
        Number of entries of a vector.
    """

    dimension: int

    @classmethod
    def of(cls, name: str, dimension: int) -> VectorSolver:
        """Return the solver of a variable with vectors of some dimension."""
        return cls(name, 1, vectors.line_size(dimension), dimension)

    def solve(
        self, sums: Array, prior: Mapping[str, Array], natural: Mapping[str, Array]
    ) -> dict[str, Array]:
        size = self.dimension + self.dimension**2
        given = checked(self, sums, prior, natural, size)
        return {self.name: vectors.solve_sums(*given, self.dimension)}

    def gains(self, sums: Array, before: Array, after: Array) -> Array:
        return np.einsum("ij,ij->i", message_of_lines(sums, self.dimension), after - before)


def message_of_lines(lines: Array, width: int) -> Array:
    """Return messages to (x, x x') from sums of w a r, and diagonal and triangle of w a a'.

    >>> message_of_lines(np.array([[1.0, 2.0, 4.0, 6.0, 8.0]]), 2)
    array([[ 1.,  2., -2., -4., -4., -3.]])
    """
    place = np.zeros((width, width), dtype=np.int64)
    place[np.diag_indices(width)] = width + np.arange(width)
    upper = np.triu_indices(width, 1)
    place[upper] = place[upper[::-1]] = 2 * width + np.arange(len(upper[0]))
    found = lines.take(np.concatenate([np.arange(width), place.ravel()]), axis=1)
    found[:, width:] *= -0.5
    return found


def checked_places(name: str, place: Ints, count: int, total: int) -> Ints:
    """Refuse places that are not those of `count` different elements of a total; return them."""
    place = np.asarray(place)
    if place.dtype.kind not in "iu" or place.shape != (count,):
        raise ModelError(f"places of '{name}' must be {count} whole numbers, one for each element")
    if count and (place.min() < 0 or place.max() >= total):
        raise ModelError(f"places of '{name}' must be elements of a total that has {total}")
    place = place.astype(np.int64, copy=False)
    if np.bincount(place, minlength=1).max() > 1:
        raise ModelError(f"places of '{name}' must be different elements of the total")
    return place


def split_key(name: str) -> ModelError:
    """Return the error for places that take elements of one sum apart."""
    return ModelError(
        f"elements of '{name}' that are in one sum of a mean must be so in all parts, in the same "
        "order"
    )


def checked(
    solver: LineSolver,
    sums: Array,
    prior: Mapping[str, Array],
    natural: Mapping[str, Array],
    size: int,
) -> tuple[Array, Array, Array]:
    """Return the arguments of a compiled solution as arrays of doubles; refuse other shapes."""
    name, shape = solver.name, (len(sums) * solver.width, size)
    found = (np.asarray(a, dtype=np.float64) for a in (sums, prior[name], natural[name]))
    sums, eta, current = found
    if sums.shape[1:] != (solver.numbers,) or eta.shape != shape or current.shape != shape:
        raise ModelError(f"sums, prior and natural parameters of '{name}' differ in size")
    return sums, eta, current

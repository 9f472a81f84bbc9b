"""Linear blocks from sums over rows: intercepts, slopes and group effects of rows in parts.

With x the coefficients of the block in a row, w its precision and m the current means, the sums are

    A = sum over rows of w x x^T,    b = A m + sum over rows of w x (y - E[mu]),

so that b does not depend on m, and the number of rows that read each mean. With the precisions P
and the linear parameters h of the priors, the optimal means solve (A + P) m' = b + h. Rows are
those of tables whose mean reads the block. The variables' own tables are in the prior, so that no
variable of the block may be a parent of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from svmp.errors import ModelError
from svmp.families.family import Array
from svmp.inference.methods.draw import Draw
from svmp.inference.updaters.block_means import block_step, natural_of
from svmp.inference.updaters.linear_block import LinearBlockUpdater, add_rows
from svmp.inference.updaters.linear_design import LinearBlock
from svmp.inference.updaters.solver import Places, Solver, checked_places
from svmp.inference.updaters.updater import SummingUpdater, Term
from svmp.network.beliefs import Beliefs
from svmp.network.grid import Ints
from svmp.network.means.linear import dimension


@dataclass(frozen=True)
class Member:
    """A variable of a block: its name, the dimension of its elements, and whether it is one."""

    name: str
    dimension: int
    single: bool


@dataclass(frozen=True)
class BlockSolver(Solver):
    """Solves the means of several variables together.

    The sums are the columns of A, then b, then the numbers of rows. The unknowns of variables with
    one element come first, then those of the others, each with space for as many elements as the
    largest has: the shape of an array then says where the unknowns of each variable are.
    """

    members: tuple[Member, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    def unknowns(self, elements: int) -> int:
        """Return the number of unknowns, with space for some elements of each variable."""
        return sum(m.dimension * (1 if m.single else elements) for m in self.members)

    def space(self, array: Array) -> int:
        """Return the number of elements of each variable that sums have space for."""
        each = self.unknowns(1) - self.unknowns(0)
        return (len(array) - self.unknowns(0)) // each if each else 1

    def places(self, array: Array) -> Iterator[tuple[Member, Ints]]:
        """Yield each variable, with the numbers of its unknowns: (elements, entries)."""
        space, single, many = self.space(array), 0, self.unknowns(0)
        for member in self.members:
            count = 1 if member.single else space
            start = single if member.single else many
            yield member, start + np.arange(count * member.dimension).reshape(count, -1)
            if member.single:
                single += member.dimension
            else:
                many += count * member.dimension

    def empty(self, sizes: Mapping[str, int]) -> Array:
        count = self.unknowns(max((sizes[m.name] for m in self.members if not m.single), default=1))
        return np.zeros((count, count + 2))

    def add(self, total: Array, sums: Array, places: Places) -> None:
        if all(place is None for place in places.values()) and total.shape == sums.shape:
            total += sums
            return
        own, into = [], []
        for (member, here), (_, there) in zip(self.places(sums), self.places(total), strict=True):
            place, name = places[member.name], member.name
            if place is None or member.single:
                place = np.arange(min(len(here), len(there)))
            place = checked_places(name, place, len(np.asarray(place)), len(there))
            if len(place) > len(here):
                raise ModelError(f"sums of '{name}' have fewer elements than places")
            own.append(here[: len(place)].ravel())
            into.append(there[place].ravel())
        row, target = np.concatenate(own), np.concatenate(into)
        column, to = np.append(row, [-2, -1]), np.append(target, [-2, -1])
        total[target[:, None], to] += sums[row[:, None], column]

    def scaled(self, sums: Array, scale: Mapping[str, Array]) -> Array:
        """Return sums times a factor for each element, and A times the root of both factors."""
        factor = np.ones(len(sums))
        for member, places in self.places(sums):
            given = np.asarray(scale[member.name])
            factor[places[: len(given)]] = given[:, None]
        root = np.sqrt(factor)
        matrix = sums[:, :-2] * root[:, None] * root
        return np.concatenate([matrix, factor[:, None] * sums[:, -2:]], axis=1)

    def solve(
        self, sums: Array, prior: Mapping[str, Array], natural: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return lambda_temp of every element, see `Solver.solve`.

        Where the system has no usable solution, a sweep of coordinate ascent is done instead.
        """
        precision, linear = np.array(sums[:, :-2]), np.array(sums[:, -2])
        largest = precision.diagonal() / np.maximum(sums[:, -1], 1)  # of a row, on average
        means, chosen = np.zeros(len(sums)), []
        for member, every in self.places(sums):
            size, eta = member.dimension, np.asarray(prior[member.name])
            places = every[: len(eta)]
            chosen.append(places.ravel())
            own = square(eta, size)
            precision[places[:, :, None], places[:, None, :]] += own
            largest[places] = np.maximum(largest[places], own.diagonal(axis1=1, axis2=2))
            linear[places] += eta[:, :size]
            means[places] = means_of(np.asarray(natural[member.name]), size)
        barren = np.setdiff1d(np.arange(len(sums)), np.concatenate(chosen))  # no element is there
        precision[barren, barren] = 1.0
        flat = precision.diagonal() == 0
        precision[flat, flat] = 1.0
        means = means + block_step(precision, linear - precision @ means, means, largest)
        found = {}
        for member, every in self.places(sums):
            places = every[: len(prior[member.name])]
            found[member.name] = natural_of(precision, means, places)
        return found


@dataclass(frozen=True, eq=False)
class SummingBlockUpdater(LinearBlockUpdater, SummingUpdater):
    """An updater of a block in which no variable is a parent of another."""

    @property
    def solver(self) -> BlockSolver:
        return BlockSolver(
            tuple(Member(v.name, dimension(v), not v.plate.labels) for v in self.block.variables)
        )

    def sums(self, q: Beliefs, rows: Draw) -> Array:
        block, solver = self.block, self.solver
        (gradient, counts), precision = np.zeros((2, block.size)), np.zeros((block.size,) * 2)
        for table in block.tables:
            if table.variable.name not in block.starts:
                design = block.design(rows, table)
                add_rows(design, q, gradient, precision)
                counts += design.counts(q)
        total = solver.empty({v.name: v.size for v in block.variables})
        means, into = np.empty(block.size), np.empty(block.size, dtype=np.int64)
        for variable, (_, places) in zip(block.variables, solver.places(total), strict=True):
            own = block.places(variable)
            means[own] = q.moments[variable.name][:, : dimension(variable)]
            into[own] = places[: len(own)]
        total[into[:, None], into] = precision
        total[into, -2], total[into, -1] = gradient + precision @ means, counts
        return total


def block_updater(block: LinearBlock, terms: Mapping[str, Term]) -> LinearBlockUpdater:
    """Return the updater of a block, with sums where no variable is a parent of another."""
    children = (e.conditional.variable.name for v in block.starts for e in block.network.edges[v])
    nested = any(name in block.starts for name in children)
    return LinearBlockUpdater(block, terms) if nested else SummingBlockUpdater(block, terms)


def square(natural: Array, size: int) -> Array:
    """Return the precision matrices of Normals or MvNormals."""
    return np.asarray(-2 * natural[:, size:].reshape(-1, size, size))


def means_of(natural: Array, size: int) -> Array:
    """Return the means of Normals or MvNormals."""
    return np.asarray(np.linalg.solve(square(natural, size), natural[:, :size, None])[..., 0])

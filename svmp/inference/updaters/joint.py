"""Joint updates of the elements in one sum of a mean.

The factors of a user are co-parents of the same ratings. Given all else, the optimal mean of each
(equation (6) of the paper) is linear in the means of the others, so the limit of coordinate ascent
over them is the solution of one small linear system, for which the rows are read once.

The sums of the K elements in one sum are a line: the matrix between them (lower triangle, without
the diagonal), their linear messages if the means of the others were 0, and their precisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from svmp.families.family import Array, stack
from svmp.inference.methods.draw import Draw
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.plain import PlainUpdater, RowMessages
from svmp.inference.updaters.solver import LineSolver, Solver, split_key
from svmp.inference.updaters.updater import Change, SummingUpdater, Updater, blend
from svmp.network.beliefs import Beliefs
from svmp.network.conditional import CHUNK
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.means.linear import Linear, LinearTerm, dimension
from svmp.network.means.regular import RegularTerm
from svmp.network.means.terms import second_moment
from svmp.network.network import Network
from svmp.network.partly_known import PartlyKnown


@dataclass(frozen=True, eq=False)
class JointUpdater(Updater):
    """Updates a variable whose elements are read in sums over one axis, each sum jointly.

    Attributes
    ----------
    plain
        The updater of each element given the others.
    elements
        The elements of each sum, (sums, elements).
    """

    plain: PlainUpdater
    edge: Edge
    term: LinearTerm
    elements: Ints
    label = "plain, elements of a sum solved jointly"

    @classmethod
    def of(cls, network: Network, plain: PlainUpdater) -> JointUpdater | None:
        """Return the updater of a variable, or None if its elements are not in one sum."""
        name = plain.name
        variable, edges = network.hidden[name], network.edges[name]
        slot = edges[0].slot if len(edges) == 1 and not edges[0].choosing else None
        if not isinstance(slot, Linear) or dimension(variable) > 1 or name in network.locals:
            return None
        if isinstance(variable.family, PartlyKnown):
            return None
        terms = [t for t in slot.terms if t.reader(variable) is not None]
        if len(terms) > 1 or terms[0].design is not None:
            return None
        reader, inner = terms[0].reader(variable), set(terms[0].scope.inner.labels)
        if reader is None or reader.keyed_by_inner or not inner or reader.carried != inner:
            return None
        every = np.arange(variable.size)
        order = np.lexsort((reader.inner_of(every), reader.base_of(every)))
        width = terms[0].scope.inner.size
        elements, plate = order.reshape(-1, width), variable.plate
        found = edges[0], terms[0], elements
        axes = [
            label
            for label, i in zip(plate.labels, reader.index, strict=False)
            if isinstance(i, str) and i in reader.carried
        ]
        first = plate.labels[:1] == tuple(axes[:1])
        solver = JointSolver.of(name, width, 0 if first else plate.stride(axes[-1]))
        if np.array_equal(solver.elements(len(elements)), elements):
            return SummingJointUpdater(plain, *found, solver)
        return cls(plain, *found)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return self.plain.names

    @property
    def solves_together(self) -> bool:
        return True

    def update(self, q: Beliefs, rows: Draw, rho: StepRule) -> Iterator[Change]:
        name, network = self.plain.name, self.plain.network
        read = rows.read(name, self.elements[:, 0])
        step = rho(q, name, self.elements[:, 0], read, children=read if rows.whole else None)
        target, accesses = np.empty((*self.elements.shape, 2)), 0
        for part in self._parts(read):
            between, linear, precision, scale, count = self._sums(q, rows, part)
            eta = network.prior(q, name, part.ravel()).reshape(*part.shape, 2)
            accesses += count
            target[np.searchsorted(self.elements[:, 0], part[:, 0])] = solve_joint(
                scale[:, None, None] * between,
                eta[..., 0] + scale[:, None] * linear,
                scale[:, None] * precision - 2 * eta[..., 1],
            )
        natural = blend(q.natural[name][self.elements], target, step)
        yield Change(name, self.elements.ravel(), natural.reshape(-1, 2), accesses, step, read)

    def bound_term(self, q: Beliefs) -> dict[str, float]:
        return self.plain.bound_term(q)

    def _sums(self, q: Beliefs, rows: Draw, part: Ints) -> tuple[Array, Array, Array, Array, int]:
        """Return the sums over the rows of each sum, as they are; their scale; and rows read.

        The sums are the matrix between the elements, their linear messages if the means of the
        others were 0, and their precisions.
        """
        conditional, variable = self.edge.conditional, self.edge.parent
        owner, which, scale = rows.rows(self.edge, part[:, 0])
        slot, term = self.edge.slot, self.regular
        if term is None or not isinstance(slot, Linear):
            between = self._between(q, part, owner, which)
            alone = self.plain.sums(q, rows, part.ravel()).reshape(*part.shape, 2)
            means = q.moments[self.plain.name][part, 0]
            linear = alone[..., 0] + np.einsum("mkl,ml->mk", between, means)
            count = len(which) // self.edge.fan * part.shape[1]
            return between, linear, -2 * alone[..., 1], scale, count
        incoming = conditional.weighted_to_slot(q, conditional.slot_of(variable)[0], which)
        between, linear, precision = term.joint_sums(
            q, variable, owner, len(part), which, incoming, slot.mean(q, which)
        )
        return between, linear, precision, scale, len(which) // self.edge.fan * part.shape[1]

    @property
    def regular(self) -> RegularTerm | None:
        """The term as matrices, if its messages are computed row by row."""
        slot, messages = self.edge.slot, self.plain.messages[0]
        plain = isinstance(messages, RowMessages) and not self.edge.conditional.pools
        return slot.regular(self.edge.parent) if plain and isinstance(slot, Linear) else None

    def _between(self, q: Beliefs, part: Ints, owner: Ints, which: Ints) -> Array:
        """Return the decrease of the linear message to each element with the mean of another."""
        conditional, variable = self.edge.conditional, self.edge.parent
        message = conditional.weighted_to_slot(q, conditional.slot_of(variable)[0], which)
        weight, reader = -2 * message[:, 1], self.term.reader(variable)
        assert reader is not None
        term, width = self.term, part.shape[1]
        entries = [term.touching(reader, part[owner, k], which) for k in range(width)]
        between = np.zeros((*part.shape, width))
        for k, left in enumerate(entries):
            for j, right in enumerate(entries[:k]):
                product = second_moment(q, term, left, term, right, skip=variable)
                found = np.bincount(owner, weight * product, len(part))
                between[:, k, j] = between[:, j, k] = found
        return between

    def _parts(self, read: Ints) -> list[Ints]:
        """Split the sums into parts that read a limited number of rows."""
        each = self.elements.shape[1] * self.edge.conditional.components
        cuts = np.flatnonzero(np.diff(np.cumsum(read) * each // CHUNK)) + 1
        return np.split(self.elements, cuts)


@dataclass(frozen=True, eq=False)
class SummingJointUpdater(JointUpdater, SummingUpdater):
    """A joint updater of a variable whose plate says which elements are in one sum.

    Attributes
    ----------
    solves
        The solver of its sums.
    """

    solves: JointSolver

    @property
    def solver(self) -> Solver:
        return self.solves

    def sums(self, q: Beliefs, rows: Draw) -> Array:
        width, found = self.elements.shape[1], []
        lower = np.tril_indices(width, -1)
        for part in self._parts(rows.read(self.plain.name, self.elements[:, 0])):
            between, linear, precision, _, _ = self._sums(q, rows, part)
            found.append(np.concatenate([between[:, *lower], linear, precision], axis=1))
        return np.concatenate(found)


@dataclass(frozen=True)
class JointSolver(LineSolver):
    """Solves the elements in each sum of a mean together.

    Attributes
    ----------
    after
        Number of elements in the axes of the plate after that of the sum; 0 if the axis of the sum
        is the first, so that it depends on the number of elements.
    """

    after: int

    @classmethod
    def of(cls, name: str, width: int, after: int) -> JointSolver:
        """Return the solver of a variable with `width` elements in a sum."""
        return cls(name, width, width * (width - 1) // 2 + 2 * width, after)

    @property
    def divides(self) -> bool:
        return self.after == 1

    def elements(self, keys: int) -> Ints:
        after = self.after or max(keys, 1)
        every = np.arange(keys * self.width).reshape(-1, self.width, after)
        return every.swapaxes(1, 2).reshape(-1, self.width)

    def keys_of(self, place: Ints, keys: int, total: int) -> Ints:
        if self.after and (total % self.after or keys % self.after):
            raise split_key(self.name)
        lines, key = self.elements(total), np.empty(total * self.width, dtype=np.int64)
        key[lines] = np.arange(total)[:, None]
        own = place[self.elements(keys)]
        found = key[own[:, 0]]
        if (lines[found] != own).any():
            raise split_key(self.name)
        return found

    def split(self, sums: Array) -> tuple[Array, Array, Array]:
        """Return the products of slopes, with zeros on the diagonal, linear sums, and squares."""
        width = self.width
        cuts = np.cumsum([width * (width - 1) // 2, width])
        lower, linear, precision = np.split(np.asarray(sums), cuts, axis=1)
        between, (row, column) = np.zeros((len(sums), width, width)), np.tril_indices(width, -1)
        between[:, row, column] = between[:, column, row] = lower
        return between, linear, precision

    def solve(
        self, sums: Array, prior: Mapping[str, Array], natural: Mapping[str, Array]
    ) -> dict[str, Array]:
        elements, (between, linear, precision) = self.elements(len(sums)), self.split(sums)
        eta = np.asarray(prior[self.name])[elements]
        found = np.empty((elements.size, 2))
        found[elements] = solve_joint(between, eta[..., 0] + linear, precision - 2 * eta[..., 1])
        return {self.name: found}

    def gains(self, sums: Array, before: Array, after: Array) -> Array:
        between, linear, precision = self.split(sums)
        old, new = (moments[self.elements(len(sums))] for moments in (before, after))
        products = [np.einsum("mj,mk->mjk", q[..., 0], q[..., 0]) for q in (old, new)]
        crossed = np.einsum("mjk,mjk->m", between, products[1] - products[0])
        change = linear * (new - old)[..., 0] - precision * (new - old)[..., 1] / 2
        return np.asarray(change.sum(axis=1) - crossed / 2)


def solve_joint(between: Array, linear: Array, precision: Array) -> Array:
    """Return the natural parameters of elements whose means are solved together.

    The diagonal of `between` is overwritten.
    """
    here = np.arange(precision.shape[1])
    between[:, here, here] = precision
    means = np.linalg.solve(between, linear[..., None])[..., 0]
    return stack(precision * means, -0.5 * precision)

"""Updaters that use compiled loops: multilinear means and logits, dot products of vectors.

They compute the same updates as `PlainUpdater` and `JointUpdater`, in one pass over the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from svmp.families.family import Array
from svmp.inference.methods.draw import ONE, Draw
from svmp.inference.steps.rule import StepRule
from svmp.inference.updaters.plain import MessageSum, Tangents
from svmp.inference.updaters.solver import (
    LineSolver,
    MultilinearSolver,
    Places,
    VectorSolver,
    message_of_lines,
)
from svmp.inference.updaters.updater import Change, LineAdder, SummingUpdater, Term
from svmp.kernels.multilinear.updater import Multilinear
from svmp.kernels.vectors.updater import Vectors
from svmp.network.beliefs import Beliefs
from svmp.network.edge import Edge
from svmp.network.grid import Ints
from svmp.network.network import Network
from svmp.network.slot import Single


@dataclass(frozen=True, eq=False)
class MultilinearUpdater(SummingUpdater):
    """Updates a variable in the mean of one table by compiled loops.

    Attributes
    ----------
    loops
        The loops of the table.
    joint
        Whether the elements of one sum are solved together.
    term
        The variable's term in the bound.
    """

    network: Network
    name: str
    loops: Multilinear
    joint: bool
    term: Term

    @property
    def label(self) -> str:  # type: ignore[override]
        """Short description."""
        many = self.loops.operand(self.name).width > 1 and self.joint
        kind = (
            "vectors" if not self.loops.draws else "multilinear, joint" if many else "multilinear"
        )
        return f"compiled ({kind}), rows of '{self.loops.table}'"

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def solves_together(self) -> bool:
        return self.name not in self.network.locals and (self.joint or not self.loops.draws)

    def prepare(self) -> None:
        self.loops.prepare(self.name, self.joint)

    def update(self, q: Beliefs, rows: Draw, rho: StepRule) -> Iterator[Change]:
        work, width = rows.work(self.loops, self.name), self.loops.operand(self.name).width
        first, at_once = work.keys * width, rho.at_once(self.name)
        step = rho(q, self.name, first, work.read, children=work.children)
        measured = at_once and self.name in rho.measured and rows.reads_all(self.loops.table)
        prior = self.prior_of(q, first, width)
        update = self.loops.update(q, self.name, work, prior, step, at_once, self.joint, measured)
        accesses = int(work.read.sum()) * width
        noted = (None, None) if self.name in rows.locals else (step, work.read)
        if at_once and update.sound:
            column = self.loops.operand(self.name).column
            losses = self.loops.row_losses(column, update.losses) if measured else None
            change = Change(self.name, first[:0], update.natural[:0], accesses, *noted)
            yield change._replace(applied=True, losses=losses)
            return
        elements = (first[:, None] + np.arange(width)).ravel()
        yield Change(self.name, elements, update.natural[elements], accesses, *noted)

    @property
    def solver(self) -> LineSolver:
        width = self.loops.place(self.name)[2]
        if isinstance(self.loops, Vectors):
            return VectorSolver.of(self.name, width)
        return MultilinearSolver.of(self.name, width, self.joint)

    def sums(self, q: Beliefs, rows: Draw) -> Array:
        """Return the sums of each key; rows of a logit have their tangents at q."""
        total = self.solver.empty({self.name: self.network.hidden[self.name].size})
        self.add_sums(q, rows, total, {self.name: None})
        return total

    def add_sums(self, q: Beliefs, rows: Draw, total: Array, places: Places) -> None:
        work, solver = rows.work(self.loops, self.name), self.solver
        at = solver.key_places(places[self.name], len(work.keyed.keys), len(total))
        flags, lines = total.flags, total.shape[1:] == (solver.numbers,)
        if total.dtype == np.float64 and flags.c_contiguous and flags.writeable and lines:
            self.loops.add_sums(q, self.name, work, at[work.keys], total)
        else:
            solver.add(total, self.sums(q, rows), places)

    def line_adder(self, q: Beliefs, rows: Draw, places: Places) -> LineAdder | None:
        work = rows.work(self.loops, self.name)
        if places[self.name] is not None or len(work.keys) < len(work.keyed.keys):
            return None
        return self.loops.adder(q, self.name, work, work.keys)

    def solve_rows(
        self, q: Beliefs, rows: Draw, prior: Array, measured: bool = False
    ) -> Change | None:
        work = rows.work(self.loops, self.name)
        if len(work.keys) < len(work.keyed.keys):
            return None
        if prior.strides[0] == 0:  # the same for all elements: no copy is made of each
            prior = prior[: self.loops.operand(self.name).width]
        mine = Beliefs(
            q.natural | {self.name: np.zeros(q.natural[self.name].shape)},  # a unit step reads none
            q.moments | {self.name: q.moments[self.name].copy()},
        )
        measured = measured and self.loops.measures(self.name)
        found = self.loops.update(mine, self.name, work, prior, ONE, True, self.joint, measured)
        column = self.loops.operand(self.name).column
        losses = self.loops.row_losses(column, found.losses) if measured else None
        every = np.arange(len(found.natural))
        return Change(self.name, every, found.natural, 0, applied=True, losses=losses)

    def prior_of(self, q: Beliefs, first: Ints, width: int) -> Array:
        """Return eta_i of each element of each key, or of one key if all keys have the same."""
        variable = self.network.hidden[self.name]
        within = set(variable.plate.labels[-1:]) if width > 1 else set()
        alike = set(variable.conditional.kinds.grid.labels) <= within
        if alike and self.name not in self.network.learned:
            return variable.conditional.to_first(q, width)
        if len(first) * width == variable.size:
            return self.network.priors(q, self.name)
        return self.network.prior(q, self.name, (first[:, None] + np.arange(width)).ravel())

    def bound_term(self, q: Beliefs) -> dict[str, float]:
        return {self.name: self.term(q)}


@dataclass(frozen=True, eq=False)
class NoiseMessages:
    """Messages of rows to their precision, from compiled sums of squared residuals."""

    loops: Multilinear
    edge: Edge

    @classmethod
    def of(cls, loops: Multilinear | None, edge: Edge) -> NoiseMessages | None:
        """Return the messages of a table to its precision, or None if loops do not serve it."""
        if loops is None or loops.noise is None or not isinstance(edge.slot, Single):
            return None
        return cls(loops, edge)

    def __call__(self, q: Beliefs, rows: Draw, elements: Ints, tangents: Tangents) -> MessageSum:
        column = self.loops.noise
        assert column is not None
        keyed = rows.keyed(self.loops, column)
        message, counts = self.loops.noise_messages(q, keyed), keyed.counts
        if not self.edge.slot.varies:
            counts = counts.sum(keepdims=True)
        whole = rows.reads_all(self.loops.table)
        scale = ONE if whole else rows.scale(self.edge.parent.name, elements)
        return MessageSum(message[elements], scale, int(counts[elements].sum()))


@dataclass(frozen=True, eq=False)
class VectorMessages:
    """Messages of rows to vectors in their mean, from compiled sums.

    They serve variables that are not updated one element at a time, such as chains.
    """

    loops: Vectors
    edge: Edge

    @classmethod
    def of(cls, loops: Multilinear | None, edge: Edge) -> VectorMessages | None:
        """Return the messages of a table to a vector in its mean, or None if there are no loops."""
        vectors = edge.parent.family.gaussian == "vector" and edge.slot is edge.conditional.linear
        return cls(loops, edge) if isinstance(loops, Vectors) and vectors else None

    def __call__(self, q: Beliefs, rows: Draw, elements: Ints, tangents: Tangents) -> MessageSum:
        name, size = self.edge.parent.name, self.edge.parent.size
        work = rows.work(self.loops, name)
        lines = np.zeros((size, self.loops.line_size(name)))
        self.loops.add_sums(q, name, work, work.keys, lines)
        if len(elements) < size or (elements != np.arange(size)).any():
            lines = lines[elements]
        accesses = int(self.edge.children[elements].sum())
        return MessageSum(message_of_lines(lines, self.loops.place(name)[2]), ONE, accesses)
